//! Programs that put files in order, and write them back in place.
//!
//! Owns the list: what makes each write, and which of its options take a value. Of folders that are
//! named to one it is seen afterwards what changed. Invariant: none of them is harmless, since
//! nobody knows what its settings make it run.

use super::options;
use super::outcome::{Argument, Command, How, When};
use super::walk::Walker;

struct Formatter {
    name: &'static str,
    /// Words of which one must be its first argument.
    verbs: &'static [&'static str],
    /// It writes only with one of these; with none here, always.
    writes: &'static [&'static str],
    /// With one of these it only looks.
    looks: &'static [&'static str],
    /// Letters, and long options, that take a value.
    valued: (&'static str, &'static [&'static str]),
}

const PLAIN: Formatter =
    Formatter { name: "", verbs: &[], writes: &[], looks: &["--check"], valued: ("", &[]) };

const FORMATTERS: [Formatter; 24] = [
    Formatter {
        name: "rustfmt",
        looks: &["--check", "--emit", "--print-config"],
        valued: ("", &["--edition", "--config", "--config-path", "--color", "--style-edition"]),
        ..PLAIN
    },
    Formatter {
        name: "prettier",
        writes: &["--write", "-w"],
        valued: ("", &["--config", "--parser", "--plugin", "--ignore-path", "--print-width"]),
        ..PLAIN
    },
    Formatter {
        name: "black",
        looks: &["--check", "--diff", "-c", "--code"],
        valued: ("ltW", &["--config", "--line-length", "--target-version", "--exclude"]),
        ..PLAIN
    },
    Formatter {
        name: "ruff",
        verbs: &["format"],
        looks: &["--check", "--diff"],
        valued: ("", &["--config", "--line-length", "--target-version", "--exclude"]),
        ..PLAIN
    },
    Formatter {
        name: "ruff",
        verbs: &["check"],
        writes: &["--fix", "--fix-only", "--add-noqa"],
        looks: &["--diff"],
        valued: ("", &["--config", "--select", "--ignore", "--target-version", "--exclude"]),
    },
    Formatter {
        name: "isort",
        looks: &["-c", "--check", "--check-only", "--diff", "-d", "--stdout"],
        valued: ("lpsm", &["--profile", "--settings-path", "--settings-file", "--line-length"]),
        ..PLAIN
    },
    Formatter {
        name: "eslint",
        writes: &["--fix"],
        valued: ("cfo", &["--config", "--ext", "--format", "--rule", "--parser", "--plugin"]),
        ..PLAIN
    },
    Formatter {
        name: "biome",
        verbs: &["format", "check", "lint"],
        writes: &["--write", "--fix", "--apply", "--apply-unsafe"],
        valued: ("", &["--config-path"]),
        ..PLAIN
    },
    Formatter { name: "stylelint", writes: &["--fix"], valued: ("", &["--config"]), ..PLAIN },
    Formatter { name: "standard", writes: &["--fix"], ..PLAIN },
    Formatter { name: "gofmt", writes: &["-w"], valued: ("r", &[]), ..PLAIN },
    Formatter { name: "gofumpt", writes: &["-w"], ..PLAIN },
    Formatter { name: "goimports", writes: &["-w"], ..PLAIN },
    Formatter { name: "shfmt", writes: &["-w", "--write"], valued: ("i", &[]), ..PLAIN },
    Formatter { name: "clang-format", writes: &["-i"], looks: &["-n", "--dry-run"], ..PLAIN },
    Formatter { name: "perltidy", writes: &["-b", "--backup-and-modify-in-place"], ..PLAIN },
    Formatter { name: "autopep8", writes: &["-i", "--in-place"], ..PLAIN },
    Formatter { name: "autoflake", writes: &["-i", "--in-place"], ..PLAIN },
    Formatter { name: "yapf", writes: &["-i", "--in-place"], ..PLAIN },
    Formatter {
        name: "rubocop",
        writes: &["-a", "-A", "--autocorrect", "--autocorrect-all", "--fix-layout", "-x"],
        ..PLAIN
    },
    Formatter { name: "stylua", looks: &["--check", "-c"], ..PLAIN },
    Formatter { name: "taplo", verbs: &["fmt", "format"], ..PLAIN },
    Formatter { name: "dart", verbs: &["format"], looks: &["-o", "--output"], ..PLAIN },
    Formatter { name: "sponge", looks: &[], ..PLAIN },
];

/// Programs that start one of them by its name, perhaps behind a word of their own.
const STARTERS: [&str; 14] = [
    "npx", "bunx", "pnpx", "npm", "pnpm", "yarn", "bun", "uv", "uvx", "poetry", "pipenv", "bundle",
    "python", "python3",
];
const STARTS: [&str; 6] = ["exec", "run", "dlx", "x", "tool", "--"];

/// Notes what a formatter writes; false when the program is none.
pub(super) fn judge(walker: &mut Walker, command: &Command) -> bool {
    let argv = started(&command.argv);
    let name = argv.first().map_or("", |word| unversioned(word.program()));
    let first = argv.get(1).and_then(Argument::text).unwrap_or_default();
    let meant =
        |one: &&Formatter| one.name == name && (one.verbs.is_empty() || one.verbs.contains(&first));
    let Some(formatter) = FORMATTERS.iter().find(meant) else { return false };
    walker.opaque();
    let arguments = argv.get(1 + usize::from(!formatter.verbs.is_empty())..).unwrap_or_default();
    // `-style=file` is one long option.
    let long = |word: &&Argument| {
        word.text().is_none_or(|text| !text.starts_with('-') || !text.contains('='))
    };
    let arguments: Vec<Argument> = arguments.iter().filter(long).cloned().collect();
    let options = options::read(&arguments, formatter.valued.0, formatter.valued.1);
    let writes = formatter.writes.is_empty() || options.has(formatter.writes);
    if !writes || options.has(formatter.looks) {
        return true;
    }
    // They read patterns themselves, and change only what is there.
    let is_file = |operand: &&Argument| operand.text().is_none_or(|t| !t.contains(['*', '{', '!']));
    for operand in options.operands.iter().filter(is_file) {
        let place = walker.place(command, operand);
        match name {
            "sponge" if options.has(&["-a"]) => walker.writes(place, How::Append, false),
            "sponge" => walker.writes(place, How::Create, false),
            _ => walker.writes_when(place, How::Change, false, When::There),
        }
    }
    true
}

/// The words from the formatter on, where another program starts it.
fn started(argv: &[Argument]) -> &[Argument] {
    let Some((starter, rest)) = argv.split_first() else { return argv };
    if !STARTERS.contains(&starter.program()) {
        return argv;
    }
    let before = |word: &&Argument| {
        word.text().is_some_and(|text| text.starts_with('-') || STARTS.contains(&text))
    };
    rest.get(rest.iter().take_while(before).count()..).unwrap_or_default()
}

/// `prettier` of `prettier@3`.
fn unversioned(name: &str) -> &str {
    name.split('@').next().filter(|name| !name.is_empty()).unwrap_or(name)
}
