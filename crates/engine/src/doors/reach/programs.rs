//! Programs by what they are known to do to files that they are not told to write.
//!
//! Owns which rewrite whatever they find, which only look at what they are given, and which verbs
//! of git change files of the tree. That a line names a file for a program that only looks is no
//! sign that it wrote it. What is in no list may do anything with what it names.

use super::tokens;

/// How many words after `git` its verb may stand.
const GIT_WORDS_MAX: usize = 6;

/// Builders that also run what they have built.
const BUILDERS: &[&str] = &["cargo", "go", "dotnet", "swift", "zig"];
/// Programs that rewrite files without being told which.
const REWRITERS: &[&str] = &["black", "isort", "yapf", "rustfmt", "goimports"];
/// What others are told to do so, as the first word behind their name.
const REWRITES: &[&str] = &["fmt", "format", "fix"];
/// Options with which a program rewrites what it is given, or what it finds.
const WRITES: &[&str] = &["--autofix", "--fix", "--write", "--in-place"];
/// Short words with which some rewrite all that is below the folders they are given, or here.
const REWRITES_BELOW: &[(&str, &[&str])] = &[
    ("ast-grep", &["-U", "--update-all"]),
    ("buf", &["generate"]),
    ("gofmt", &["-w"]),
    ("jest", &["-u"]),
    ("prettier", &["-w"]),
    ("rubocop", &["-a", "-A", "--autocorrect", "--autocorrect-all"]),
    ("sg", &["-U", "--update-all"]),
    ("shfmt", &["-w"]),
    ("sqlc", &["generate"]),
    ("vitest", &["-u"]),
];
/// The same, where it is given files.
const WRITES_GIVEN: &[&str] = &[
    "-i",
    "-w",
    "-a",
    "-A",
    "-u",
    "--inplace",
    "--fix-only",
    "--unsafe-fixes",
    "--autofix",
    "--autocorrect",
    "--auto-correct",
    "--update-snapshot",
    "--updateSnapshot",
    "--snapshot-update",
    "--install-types",
];
/// With these nothing is written at all.
const ASKS: &[&str] = &["--check", "--diff", "--dry-run"];
/// Checkers, test runners, compilers and counters: they look at what they are given.
const CHECKERS: &[&str] = &[
    "ava",
    "bandit",
    "basedpyright",
    "cc",
    "clang",
    "clang++",
    "cloc",
    "compileall",
    "ctags",
    "ctest",
    "doctest",
    "eslint",
    "flake8",
    "g++",
    "gcc",
    "golangci-lint",
    "hadolint",
    "htmlhint",
    "jest",
    "jshint",
    "jslint",
    "markdownlint",
    "markdownlint-cli2",
    "mocha",
    "mypy",
    "nox",
    "nyc",
    "phpstan",
    "phpunit",
    "playwright",
    "py.test",
    "py_compile",
    "pycodestyle",
    "pydocstyle",
    "pyflakes",
    "pylint",
    "pyright",
    "pytest",
    "rspec",
    "rubocop",
    "rustc",
    "scc",
    "semgrep",
    "shellcheck",
    "standard",
    "staticcheck",
    "stylelint",
    "tabnanny",
    "tokei",
    "tox",
    "trace",
    "tsc",
    "tslint",
    "unittest",
    "vitest",
    "vulture",
    "yamllint",
];
/// Programs that only look with one of these verbs, and with none of them.
const CHECKING: &[(&str, &[&str])] = &[
    ("biome", &["check", "ci", "lint"]),
    ("bun", &["test"]),
    ("cargo", &["bench", "build", "check", "clippy", "doc", "metadata", "nextest", "test", "tree"]),
    ("clang-format", &[]),
    ("deno", &["check", "lint", "test"]),
    ("dotnet", &["build", "test"]),
    ("go", &["build", "list", "test", "vet"]),
    ("gofmt", &[]),
    ("gradle", &["check", "test"]),
    ("mvn", &["test", "verify"]),
    ("npm", &["t", "test"]),
    ("pnpm", &["test"]),
    ("prettier", &[]),
    ("ruff", &["check", "rule"]),
    ("swift", &["build", "test"]),
    ("yarn", &["test"]),
    ("zig", &["build", "test"]),
];
/// Words that only start the program behind them.
const STARTERS: &[(&str, &[&str])] = &[
    ("npx", &[]),
    ("bunx", &[]),
    ("uvx", &[]),
    ("uv", &["run"]),
    ("poetry", &["run"]),
    ("pipenv", &["run"]),
    ("pdm", &["run"]),
    ("hatch", &["run"]),
    ("bundle", &["exec"]),
    ("pnpm", &["exec", "dlx"]),
    ("npm", &["exec"]),
    ("yarn", &["exec", "dlx", "run"]),
];
/// Verbs of git that change no file of the tree. What is neither here nor below is an alias or a
/// program of somebody's own, and may do anything.
const GIT_QUIET: &[&str] = &[
    "add",
    "annotate",
    "archive",
    "bisect",
    "blame",
    "branch",
    "cat-file",
    "check-ignore",
    "commit",
    "config",
    "count-objects",
    "describe",
    "diff",
    "diff-tree",
    "fetch",
    "for-each-ref",
    "format-patch",
    "fsck",
    "gc",
    "grep",
    "help",
    "init",
    "log",
    "ls-files",
    "ls-remote",
    "ls-tree",
    "merge-base",
    "mv",
    "notes",
    "push",
    "reflog",
    "remote",
    "rev-list",
    "rev-parse",
    "rm",
    "shortlog",
    "show",
    "show-ref",
    "stage",
    "status",
    "tag",
    "update-index",
    "version",
    "worktree",
];
/// Verbs of git that change files of the tree.
const GIT_VERBS: &[&str] = &[
    "checkout",
    "restore",
    "reset",
    "stash",
    "clean",
    "switch",
    "pull",
    "merge",
    "rebase",
    "revert",
    "apply",
    "am",
    "cherry-pick",
];

/// The program that really runs, by its name, and the words behind it.
fn started(words: &[String]) -> (&str, &[String]) {
    let mut rest = words;
    loop {
        let Some((first, behind)) = rest.split_first() else { return ("", &[]) };
        let name = first.rsplit('/').next().unwrap_or(first);
        let options = behind.iter().take_while(|word| word.starts_with('-')).count();
        let word = |at: usize| behind.get(at).map(String::as_str).unwrap_or_default();
        let verbs = STARTERS.iter().filter(|(starter, _)| *starter == name);
        let skipped = verbs.filter_map(|(_, verbs)| match verbs.is_empty() {
            true => Some(options),
            false => verbs.contains(&word(0)).then_some(1),
        });
        let module = (name.starts_with("python") && word(0) == "-m").then_some(1);
        match skipped.chain(module).next().and_then(|at| behind.get(at..)) {
            Some(inner) if !inner.is_empty() => rest = inner,
            _ => return (name, behind),
        }
    }
}

/// The first word that is no option: what most programs are told to do.
fn verb(words: &[String]) -> &str {
    let mut plain = words.iter().filter(|word| !word.starts_with(['-', '+']));
    let first = plain.next().map(String::as_str).unwrap_or_default();
    match first {
        "run" | "run-script" => plain.next().map(String::as_str).unwrap_or_default(),
        _ => first,
    }
}

fn has(words: &[String], any: &[&str]) -> bool {
    words.iter().any(|word| any.contains(&word.split('=').next().unwrap_or(word)))
}

/// Does it only look at what it is given? With an option to mend something it does more.
pub(super) fn only_checks(words: &[String]) -> bool {
    let (name, behind) = started(words);
    let mends = has(behind, WRITES) || has(behind, WRITES_GIVEN);
    let is_checker = CHECKERS.contains(&name)
        || CHECKING.iter().any(|(one, verbs)| {
            *one == name && (verbs.is_empty() || verbs.contains(&verb(behind)))
        });
    let asks = has(behind, ASKS) && (REWRITERS.contains(&name) || REWRITES.contains(&verb(behind)));
    is_checker && !mends || asks
}

/// Does it rewrite whatever it finds?
pub(super) fn rewrites(words: &[String]) -> bool {
    let (name, behind) = started(words);
    let mends = has(behind, WRITES);
    let told = REWRITERS.contains(&name) || REWRITES.contains(&verb(behind));
    let below = rewrites_below(name, behind);
    !has(behind, ASKS) && (mends || below || told && !CHECKERS.contains(&name) && name != "git")
}

/// Told to rewrite, and given no file of which it would be seen by its name.
fn rewrites_below(name: &str, behind: &[String]) -> bool {
    let is_file = |word: &&String| {
        let last = word.rsplit('/').next().unwrap_or(word);
        !word.starts_with('-') && last.trim_matches('.').contains('.')
    };
    REWRITES_BELOW.iter().any(|(one, words)| *one == name && has(behind, words))
        && !behind.iter().any(|word| is_file(&word))
}

/// `cargo run`, `go generate`, an alias of a project for one of its own programs.
pub(super) fn runs_what_it_built(name: &str, words: &[String]) -> bool {
    let verb = words.iter().skip(1).find(|word| !word.starts_with(['-', '+']));
    BUILDERS.contains(&name)
        && verb.is_some_and(|verb| matches!(verb.as_str(), "run" | "generate" | "xtask"))
}

/// What a call of git does to files of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Git {
    Nothing,
    Changes,
    /// Its verb is none of its own, or cannot be read.
    Unknown,
}

pub(super) fn git(words: &[String]) -> Git {
    let mut rest = words.iter().skip(1).map(String::as_str);
    while let Some(word) = rest.next() {
        match word {
            "-C" | "-c" | "--git-dir" | "--work-tree" | "--namespace" => drop(rest.next()),
            _ if word.starts_with('-') => {}
            verb if GIT_VERBS.contains(&verb) => return Git::Changes,
            verb if GIT_QUIET.contains(&verb) => return Git::Nothing,
            _ if has_git_verb(&words.join(" ")) => return Git::Changes,
            _ => return Git::Unknown,
        }
    }
    Git::Nothing
}

/// Does a text call git to change files of the tree?
pub(super) fn has_git_verb(text: &str) -> bool {
    let tokens: Vec<&str> = tokens(text).collect();
    tokens.iter().enumerate().filter(|(_, token)| **token == "git").any(|(at, _)| {
        tokens[at + 1..].iter().take(GIT_WORDS_MAX).any(|word| GIT_VERBS.contains(word))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn a_checker_looks_and_a_formatter_writes() {
        for line in [
            "mypy src",
            "pytest -k fix src",
            "npx eslint src",
            "npx --yes eslint src",
            "ruff check src",
            "uv run pytest src",
            "python3 -m py_compile src/x.py",
            "python3 -m pytest",
            "cargo test format",
            "npm test",
            "prettier src/x.js",
            "black --check src",
            "cargo fmt --check",
        ] {
            assert!(only_checks(&words(line)), "{line}");
            assert!(!rewrites(&words(line)), "{line}");
        }
        for line in [
            "npx eslint --fix src",
            "ruff check --fix src",
            "ruff format src",
            "prettier --write src",
            "cargo fmt",
            "cargo clippy --fix",
            "npm run format",
            "black src",
            "python3 -m black src",
            "gofmt -w .",
            "gofmt -s -w ./...",
            "npx prettier -w src",
            "bundle exec rubocop -A",
            "buf generate",
        ] {
            assert!(!only_checks(&words(line)), "{line}");
            assert!(rewrites(&words(line)), "{line}");
        }
        for line in ["tool src/x.py", "npm run gen", "gofmt -w a.go", "make", "git commit -m fix"] {
            assert!(!only_checks(&words(line)) && !rewrites(&words(line)), "{line}");
        }
    }

    #[test]
    fn git_is_judged_by_its_verb() {
        assert_eq!(git(&words("git commit -m merge")), Git::Nothing);
        assert_eq!(git(&words("git -C x reset --hard")), Git::Changes);
        assert_eq!(git(&words("git … reset --hard")), Git::Changes);
        assert_eq!(git(&words("git …")), Git::Unknown);
    }
}
