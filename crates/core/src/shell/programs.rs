//! Programs that are known: which only read, and which of their options write.
//!
//! Owns the list. Invariant: a program that is not in it, or an option that runs something else,
//! makes the line not harmless. What writes by its nature is in `writers`, git in `git`.

use super::options::{self, Options};
use super::outcome::{Argument, Command, How, Place, TEMPORARY};
use super::scripts::is_temporary;
use super::state::State;
use super::tree::Parsed;
use super::walk::{Input, Walker};
use super::{git, writers};

/// Neither reads nor writes files of interest, whatever its arguments.
const QUIET: [&str; 61] = [
    ":", "[", "arch", "basename", "baton", "bg", "break", "builtin", "cal", "clear", "command",
    "continue", "date", "df", "dirname", "du", "echo", "env", "exec", "exit", "expr", "false",
    "fg", "free", "getconf", "groups", "hash", "hostname", "id", "jobs", "kill", "let", "locale",
    "logname", "ls", "lsof", "man", "nproc", "pgrep", "pkill", "printenv", "printf", "ps", "pwd",
    "read", "realpath", "return", "seq", "sleep", "stat", "test", "time", "times", "tput", "tr",
    "true", "tty", "type", "umask", "uname", "whoami",
];

/// The same, in two lists so that each can be read.
const QUIET_TOO: [&str; 11] = [
    "killall", "wait", "which", "yes", "readlink", "uptime", "ulimit", "shopt", "disown", "whatis",
    "sync",
];

/// Reads every operand.
const READERS: [&str; 36] = [
    "base64",
    "bat",
    "batcat",
    "b2sum",
    "cat",
    "cksum",
    "cmp",
    "column",
    "comm",
    "cut",
    "diff",
    "expand",
    "file",
    "fmt",
    "fold",
    "head",
    "hexdump",
    "join",
    "less",
    "md5sum",
    "more",
    "nl",
    "od",
    "paste",
    "rev",
    "sha1sum",
    "sha256sum",
    "sha512sum",
    "strings",
    "sum",
    "tac",
    "tail",
    "unexpand",
    "wc",
    "zcat",
    "zless",
];

/// Reads every operand but the first, which says what to look for.
const SEARCHERS: [&str; 9] =
    ["ag", "egrep", "fgrep", "grep", "jq", "rg", "zgrep", "ack", "pcregrep"];

/// Programs that only read, but for an option or an operand that makes them write or run something.
const WITH_WRITING_OPTIONS: [&str; 21] = [
    "sort", "gsort", "tree", "uniq", "xxd", "find", "gfind", "fd", "fdfind", "awk", "gawk", "mawk",
    "nawk", "sed", "gsed", "yq", "rg", "less", "file", "bat", "batcat",
];

/// Letters of options with a value, by program.
fn valued(name: &str) -> &'static str {
    match name {
        "head" | "tail" => "ncs",
        "grep" | "egrep" | "fgrep" | "zgrep" => "efmABCdD",
        "rg" => "efmABCgtTjMr",
        "cut" => "bcdf",
        "sort" => "kStTo",
        "uniq" => "fsw",
        "jq" => "L",
        "diff" => "UCWIxX",
        "nl" => "bdfhilnsvw",
        "fold" | "fmt" | "column" => "wst",
        "base64" => "w",
        "od" | "hexdump" => "AjNtSwnse",
        "join" | "paste" => "tdaeojv12",
        _ => "",
    }
}

pub(super) fn judge(
    walker: &mut Walker,
    command: &Command,
    state: &mut State,
    input: &Input,
) -> Parsed<()> {
    let name = command.name();
    let arguments = command.argv.get(1..).unwrap_or_default();
    let read = |short: &str| options::read(arguments, short, &[]);
    if QUIET.contains(&name) || QUIET_TOO.contains(&name) {
        return Ok(());
    }
    if WITH_WRITING_OPTIONS.contains(&name) && options::may_have_more(arguments) {
        walker.opaque();
    }
    if READERS.contains(&name) {
        let options = read(valued(name));
        walker.reads_all(command, &options.operands);
        return Ok(());
    }
    if SEARCHERS.contains(&name) {
        searches(walker, command, &read(valued(name)));
        return Ok(());
    }
    match name {
        "sort" => sort(walker, command),
        "tree" => {
            let options = read("oLPIT");
            let written: Vec<Argument> = options.values(&["-o"]).cloned().collect();
            walker.writes_all(command, &written, How::Create, false);
        }
        "uniq" | "xxd" => {
            let options = read(if name == "uniq" { valued(name) } else { "clgosn" });
            walker.reads_all(command, options.operands.get(..1).unwrap_or_default());
            let written = options.operands.get(1..).unwrap_or_default();
            walker.writes_all(command, written, How::Create, false);
        }
        "find" | "gfind" => find(walker, command, state)?,
        "fd" | "fdfind" => {
            let options = read("exXdtEgc");
            if options.has(&["-x", "-X", "--exec", "--exec-batch"]) {
                walker.opaque();
            }
        }
        "awk" | "gawk" | "mawk" | "nawk" => awk(walker, command),
        "sed" | "gsed" => sed(walker, command),
        "yq" => yq(walker, command, &read("IopP")),
        "git" => git::judge(walker, command, input),
        "mktemp" if is_temporary(command, state) => {
            let folder = read("").has(&["-d", "--directory"]);
            let how = if folder { How::Folder } else { How::Create };
            walker.writes(Place::Path(TEMPORARY.to_owned()), how, false);
        }
        _ => {
            if !writers::judge(walker, command, input) {
                walker.opaque();
            }
        }
    }
    Ok(())
}

fn sort(walker: &mut Walker, command: &Command) {
    let arguments = command.argv.get(1..).unwrap_or_default();
    let options = options::read(arguments, valued("sort"), &["--output"]);
    if let Some(file) = options.value(&["-o", "--output"]) {
        let place = walker.place(command, file);
        walker.writes(place, How::Create, false);
    }
    if options.has(&["--compress-program"]) {
        walker.opaque();
    }
    walker.reads_all(command, &options.operands);
}

fn yq(walker: &mut Walker, command: &Command, options: &Options) {
    let files = options.operands.get(1..).unwrap_or_default();
    match options.has(&["-i", "--inplace", "--in-place"]) {
        true => walker.writes_all(command, files, How::Change, false),
        false => walker.reads_all(command, files),
    }
}

/// Lines that match are not the file: whoever saw them has not read it.
fn searches(walker: &mut Walker, command: &Command, options: &Options) {
    if command.name() == "rg" && options.has(&["--pre", "--hostname-bin"]) {
        walker.opaque();
    }
}

/// `find`: harmless, but for what it is told to do with what it finds.
fn find(walker: &mut Walker, command: &Command, state: &mut State) -> Parsed<()> {
    let arguments = command.argv.get(1..).unwrap_or_default();
    let is_action = |argument: &Argument| {
        argument.text().is_some_and(|text| text.starts_with(['-', '(', '!', ')']))
    };
    let roots = arguments.iter().take_while(|argument| !is_action(argument));
    let mut roots: Vec<Argument> = roots.cloned().collect();
    if roots.is_empty() {
        roots.push(".".into());
    }
    let found = Found::of(command, &roots, arguments);
    let mut at = 0;
    while let Some(argument) = arguments.get(at) {
        at += 1;
        match argument.text() {
            Some("-delete") => found.writes(walker, How::Delete, false),
            Some("-fprint" | "-fprint0" | "-fls" | "-fprintf") => {
                let file = arguments.get(at..=at).unwrap_or_default();
                walker.writes_all(command, file, How::Create, false);
            }
            Some(action @ ("-exec" | "-execdir" | "-ok" | "-okdir")) => {
                let ends = |argument: &Argument| matches!(argument.text(), Some(";" | "+"));
                let rest = arguments.get(at..).unwrap_or_default();
                let length = rest.iter().position(ends).unwrap_or(rest.len());
                // What it finds begins with a root of the search, and is no option.
                let filled = |argument: &Argument| match argument.shown().contains("{}") {
                    true => Argument::Unknown(argument.shown().replace("{}", "./…")),
                    false => argument.clone(),
                };
                let argv: Vec<Argument> = rest[..length].iter().map(filled).collect();
                at += length + 1;
                if argv.is_empty() {
                    continue;
                }
                let folder = match action {
                    "-exec" | "-ok" => command.folder.clone(),
                    _ => Place::Unknown,
                };
                let inner = Command { argv, folder, ..command.clone() };
                let before = walker.deeds.writes.len();
                walker.deeper(|walker| walker.command(inner, state, &Input::Unknown))?;
                for write in walker.deeds.writes.split_off(before) {
                    match write.place {
                        // What is written to a found file lies below a root of the search.
                        Place::Unknown => found.writes(walker, write.how, write.below),
                        _ => walker.deeds.writes.push(write),
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// What a `find` finds: all below its roots, what has a name there, or nobody can tell what.
struct Found {
    places: Vec<Place>,
    /// It looks at more than names.
    unsure: bool,
    named: bool,
}

impl Found {
    fn of(command: &Command, roots: &[Argument], arguments: &[Argument]) -> Self {
        let (mut name, mut deep, mut unsure, mut only) = (None, true, false, true);
        let mut tests =
            arguments.iter().skip_while(|one| !one.shown().starts_with(['-', '(', '!']));
        while let Some(test) = tests.next() {
            match test.text().unwrap_or_default() {
                "-name" | "-iname" if name.is_none() => {
                    name = tests.next().filter(|name| name.text() != Some("*"));
                }
                // Folders go only with what is in them, or when that is nothing.
                "-type" => unsure |= tests.next().and_then(Argument::text) != Some("f"),
                "-maxdepth" => {
                    let depth = tests.next().and_then(Argument::text);
                    unsure |= depth != Some("1");
                    deep = depth != Some("1");
                }
                // All below its roots, only not these themselves.
                "-mindepth" => unsure |= tests.next().and_then(Argument::text) != Some("1"),
                "-depth" | "-print" | "-print0" | "-delete" => {}
                "-exec" | "-execdir" | "-ok" | "-okdir" => {
                    let ends = |one: &Argument| matches!(one.text(), Some(";" | "+"));
                    tests.by_ref().find(|one| ends(one));
                }
                // Beside the name there may be another way to be found.
                "-o" | "-or" | "!" | "-not" | "," | "(" | ")" => (unsure, only) = (true, false),
                _ => unsure = true,
            }
        }
        let between = if deep { "**/" } else { "" };
        let literal = |name: &str| name.replace('{', "\\{").replace('}', "\\}").replace(',', "\\,");
        let name_text = name.and_then(Argument::text);
        let pattern = name_text.map(|name| format!("{between}{}", literal(name)));
        let whole = deep && name.is_none();
        unsure |= !whole && pattern.is_none();
        let place = |root: &Argument| {
            let root = command.folder.join(root);
            match (&pattern, !unsure || only) {
                (Some(pattern), true) => root.join(&Argument::Pattern(pattern.clone())),
                _ => root,
            }
        };
        Self { places: roots.iter().map(place).collect(), unsure, named: !whole }
    }

    fn writes(&self, walker: &mut Walker, how: How, below: bool) {
        for place in self.places.iter().cloned() {
            match self.unsure {
                true => walker.writes_part(place, how),
                false => walker.writes(place, how, below || !self.named),
            }
        }
    }
}

/// awk writes where its program says so, and in place with `-i inplace`.
fn awk(walker: &mut Walker, command: &Command) {
    let arguments = command.argv.get(1..).unwrap_or_default();
    let options = options::read(arguments, "Fvfieo", &["--include", "--file", "--source"]);
    let in_place = |value: &Argument| value.text().is_some_and(|text| text.contains("inplace"));
    let scripted = options.has(&["-f", "--file"]);
    let program = options.operands.first().filter(|_| !scripted);
    let includes = options.values(&["-i", "--include"]).any(in_place);
    // In a program `>` compares as well as it writes: whoever has one is compared afterwards.
    let acts = |text: &str| text.contains(['>', '|']) || text.contains("system");
    let source = options.value(&["-e", "--source"]).or(program);
    if scripted || source.and_then(Argument::text).is_none_or(acts) {
        walker.opaque();
    }
    let first = usize::from(program.is_some() && !options.has(&["-e", "--source"]));
    let files = options.operands.get(first..).unwrap_or_default();
    let is_file = |argument: &&Argument| super::wrappers::assigned(argument).is_none();
    let files: Vec<Argument> = files.iter().filter(is_file).cloned().collect();
    match includes {
        true => walker.writes_all(command, &files, How::Change, false),
        false => walker.reads_all(command, &files),
    }
}

/// sed writes in place with `-i`, and where its script says so.
fn sed(walker: &mut Walker, command: &Command) {
    let arguments = command.argv.get(1..).unwrap_or_default();
    let long = ["--expression", "--file", "--line-length"];
    // `-i` takes a suffix only if it stands right behind it.
    let plain: Vec<Argument> = arguments.iter().filter(|one| !is_suffixed(one)).cloned().collect();
    let options = options::read(&plain, "efl", &long);
    let in_place = plain.len() < arguments.len() || options.has(&["-i", "--in-place"]);
    let scripts: Vec<&Argument> = options.values(&["-e", "--expression"]).collect();
    let given = !scripts.is_empty() || options.has(&["-f", "--file"]);
    // `sed -i '' …`, as other systems want it.
    let empty = usize::from(in_place && options.operands.first() == Some(&"".into()));
    let operands = options.operands.get(empty..).unwrap_or_default();
    let first = if given { None } else { operands.first() };
    let mut all = scripts.into_iter().chain(first);
    if options.has(&["-f", "--file"]) || all.any(|one| one.text().is_none_or(script_acts)) {
        walker.opaque();
    }
    let files = operands.get(usize::from(!given)..).unwrap_or_default();
    match in_place {
        true => walker.writes_all(command, files, How::Change, false),
        false => walker.reads_all(command, files),
    }
    for suffix in arguments.iter().filter(|one| is_suffixed(one)).filter_map(Argument::text) {
        let suffix = suffix.trim_start_matches("--in-place=").trim_start_matches("-i");
        let kept = |file: &Argument| match file {
            Argument::Text(file) if !suffix.contains(['*', '/']) => {
                Argument::Text(format!("{file}{suffix}"))
            }
            _ => Argument::Unknown("…".to_owned()),
        };
        let copies: Vec<Argument> = files.iter().map(kept).collect();
        walker.writes_all(command, &copies, How::Create, false);
    }
}

fn is_suffixed(argument: &Argument) -> bool {
    let text = argument.text().unwrap_or_default();
    text.starts_with("-i") && text.len() > 2 || text.starts_with("--in-place=")
}

/// Has an `s` with any letter between its parts a flag that writes or runs?
fn substitution_acts(script: &str) -> bool {
    let starts = script.char_indices().filter(|(_, letter)| *letter == 's');
    starts.filter_map(|(at, _)| script.get(at + 1..)).any(|rest| {
        let mut letters = rest.chars();
        let Some(between) = letters.next().filter(|one| !one.is_alphanumeric() && *one != '\n')
        else {
            return false;
        };
        let (mut ends, mut escaped) = (0, false);
        for letter in letters.by_ref() {
            match (escaped, letter) {
                (false, '\\') => escaped = true,
                (false, letter) if letter == between => ends += 1,
                _ => escaped = false,
            }
            if ends == 2 {
                break;
            }
        }
        let flag = |letter: &char| letter.is_ascii_digit() || "gIimMp".contains(*letter);
        ends == 2 && letters.find(|letter| !flag(letter)).is_some_and(|one| "we".contains(one))
    })
}

/// Has the script a command `w`, `W` or `e`, or such a flag? Rather one too many.
fn script_acts(script: &str) -> bool {
    if substitution_acts(script) {
        return true;
    }
    script.split(['\n', ';', '{', '}']).any(|part| {
        let part = part.trim();
        let command = part.trim_start_matches(|c: char| {
            c.is_ascii_digit() || matches!(c, ',' | '$' | '!' | '+' | '~' | ' ')
        });
        let alone = |text: &str| {
            text.starts_with(['w', 'W', 'e']) && text[1..].chars().next().is_none_or(|c| c == ' ')
        };
        // Behind an address in slashes, or as a flag of `s`.
        let behind = part.rsplit(['/', '|', '#', ',', '@']).next().unwrap_or_default();
        let flags = behind.split(' ').next().unwrap_or_default();
        let flagged = part.len() > behind.len()
            && flags.chars().all(|c| c.is_ascii_digit() || "gIimpweW".contains(c))
            && flags.contains(['w', 'e', 'W']);
        // The name of the file may have slashes of its own.
        let named = ["/w ", "/gw ", "/e ", "/W ", "|w ", "#w "].iter().any(|s| part.contains(s));
        alone(command) || flagged || named
    })
}
