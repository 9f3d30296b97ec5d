//! Programs that only start another one: what do they start?
//!
//! Owns `env`, `sudo`, `timeout`, `xargs`, `bash -c` and their like. Invariant: what is not
//! understood is not looked through, and a program that is not looked through is judged itself.

use super::options;
use super::outcome::{Argument, Command, How};
use super::walk::Input;

/// What a program starts.
#[derive(Debug)]
pub(super) enum Inner {
    Command(Command),
    /// A script, and `$0`, `$1`, …
    Script(String, Vec<Argument>),
    /// It starts something, and nobody knows what.
    Unknown,
    /// It is none that starts another.
    Itself,
}

/// Name, letters of options with a value, operands before the command.
const PLAIN: [(&str, &str, usize); 19] = [
    ("sudo", "ugpCcDRrtThU", 0),
    ("doas", "uCa", 0),
    ("nohup", "", 0),
    ("nice", "n", 0),
    ("ionice", "cnpPu", 0),
    ("stdbuf", "ioe", 0),
    ("setsid", "", 0),
    ("timeout", "ks", 1),
    ("gtimeout", "ks", 1),
    ("time", "fo", 0),
    ("exec", "a", 0),
    ("command", "", 0),
    ("builtin", "", 0),
    ("noglob", "", 0),
    ("nocorrect", "", 0),
    ("caffeinate", "tw", 0),
    ("busybox", "", 0),
    ("unbuffer", "", 0),
    ("chronic", "", 0),
];

const SHELLS: [&str; 7] = ["bash", "sh", "zsh", "dash", "ksh", "ash", "fish"];

/// Options of `xargs` that take a value, as words of their own.
const XARGS_LONG: [&str; 5] =
    ["--max-args", "--max-procs", "--delimiter", "--arg-file", "--replace"];

pub(super) fn look_through(command: &Command, input: &Input) -> Inner {
    let name = command.name();
    let arguments = command.argv.get(1..).unwrap_or_default();
    if SHELLS.contains(&name) {
        return shell(arguments, input);
    }
    if let Some((_, short, skipped)) = PLAIN.iter().find(|(one, _, _)| *one == name) {
        let asks = matches!(arguments.first().and_then(Argument::text), Some("-v" | "-V" | "-l"));
        if matches!(name, "command" | "sudo") && asks {
            return Inner::Itself;
        }
        return plain(command, short, *skipped);
    }
    match name {
        "env" => env(command),
        "xargs" => xargs(command, input),
        "eval" => joined(arguments),
        "watch" => {
            let start = start_of(arguments, "nd", &["--interval"]);
            joined(arguments.get(start..).unwrap_or_default())
        }
        "flock" => flock(command),
        "script" => recorded(command),
        "su" | "runuser" => {
            let script = options::read(arguments, "cgGsuw", &["--command"]);
            let script = script.value(&["-c", "--command"]).cloned();
            script.map_or(Inner::Itself, |script| joined(&[script]))
        }
        "expect" => Inner::Unknown,
        "baton" => baton(command),
        _ => Inner::Itself,
    }
}

/// Options of Baton itself that take a value.
pub(super) const OF_BATON: [&str; 4] = ["--session", "--agent", "--person-token", "--op-id"];

/// What Baton runs for whoever asks: the command behind `--`, or behind `--exec`.
fn baton(command: &Command) -> Inner {
    let arguments = command.argv.get(1..).unwrap_or_default();
    let rest = arguments.get(start_of(arguments, "C", &OF_BATON)..).unwrap_or_default();
    let word = |at: usize| rest.get(at).and_then(Argument::text).unwrap_or_default();
    let behind = |sign: &str| {
        let at = rest.iter().position(|word| word.text() == Some(sign))?;
        rest.get(at + 1..).filter(|argv| !argv.is_empty())
    };
    match (word(0), word(1)) {
        ("once" | "sandbox", _) => {
            let Some(argv) = behind("--") else { return Inner::Itself };
            let folder = options::read(rest, "", &["--dir", "--net", "--allow-write"]);
            let folder = folder.value(&["--dir"]).map(|dir| command.folder.entered(dir));
            let folder = folder.unwrap_or_else(|| command.folder.clone());
            let argv = argv.to_vec();
            Inner::Command(Command { argv, folder, ..command.clone() })
        }
        ("journal", _) => match behind("--exec") {
            Some(argv) => with(command, argv),
            None if rest.iter().any(|word| word.shown().starts_with("--exec")) => Inner::Unknown,
            None => Inner::Itself,
        },
        // These run what the repository names, and a client.
        ("task", "check") | ("start", _) => Inner::Unknown,
        ("handoff", "accept") if rest.iter().any(|word| word.shown().starts_with("--start")) => {
            Inner::Unknown
        }
        _ => Inner::Itself,
    }
}

/// The files that the starting program itself writes, besides what it starts.
pub(super) fn written(command: &Command) -> Vec<(Argument, How)> {
    let arguments = command.argv.get(1..).unwrap_or_default();
    match command.name() {
        "time" => {
            let start = start_of(arguments, "fo", &["--format", "--output"]);
            let own = arguments.get(..start).unwrap_or_default();
            let options = options::read(own, "fo", &["--format", "--output"]);
            let how = if options.has(&["-a", "--append"]) { How::Append } else { How::Create };
            options.values(&["-o", "--output"]).map(|file| (file.clone(), how)).collect()
        }
        "script" => {
            let options = options::read(arguments, "cEIOBTmt", &["--command"]);
            let how = if options.has(&["-a", "--append"]) { How::Append } else { How::Create };
            let file = options.operands.first().cloned().unwrap_or_else(|| "typescript".into());
            vec![(file, how)]
        }
        _ => Vec::new(),
    }
}

/// Where the options end.
fn start_of(arguments: &[Argument], short: &str, long: &[&str]) -> usize {
    let mut at = 0;
    while let Some(text) = arguments.get(at).and_then(Argument::text) {
        let Some(letters) = text.strip_prefix('-').filter(|letters| !letters.is_empty()) else {
            break;
        };
        at += 1;
        if text == "--" {
            break;
        }
        let valued = match letters.starts_with('-') {
            true => long.contains(&text),
            // The value is a word of its own if nothing stands behind the letter.
            false => letters.find(|letter| short.contains(letter)) == Some(letters.len() - 1),
        };
        at += usize::from(valued);
    }
    at
}

fn with(command: &Command, argv: &[Argument]) -> Inner {
    if argv.is_empty() {
        return Inner::Itself;
    }
    Inner::Command(Command { argv: argv.to_vec(), ..command.clone() })
}

fn plain(command: &Command, short: &str, skipped: usize) -> Inner {
    let arguments = command.argv.get(1..).unwrap_or_default();
    let long = [
        "--user",
        "--group",
        "--signal",
        "--kill-after",
        "--adjustment",
        "--chdir",
        "--output",
        "--format",
    ];
    let mut start = start_of(arguments, short, &long) + skipped;
    let mut inner = command.clone();
    inner.terminal |= command.name() == "unbuffer";
    // sudo takes variables as env does.
    while let Some((name, value)) = arguments.get(start).and_then(assigned) {
        inner.assigned.push((name, value));
        start += 1;
    }
    with(&inner, arguments.get(start..).unwrap_or_default())
}

/// `NAME=value`.
pub(super) fn assigned(argument: &Argument) -> Option<(String, Argument)> {
    let shown = argument.shown();
    let (name, value) = shown.split_once('=')?;
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || !name.chars().all(plain) {
        return None;
    }
    let value = match argument {
        Argument::Text(_) => Argument::Text(value.to_owned()),
        _ => Argument::Unknown(value.to_owned()),
    };
    Some((name.to_owned(), value))
}

fn env(command: &Command) -> Inner {
    let arguments = command.argv.get(1..).unwrap_or_default();
    let long = ["--unset", "--chdir", "--split-string"];
    let start = start_of(arguments, "uCS", &long);
    let options = options::read(arguments.get(..start).unwrap_or_default(), "uCS", &long);
    if let Some(split) = options.value(&["-S", "--split-string"]) {
        let rest = arguments.get(start..).unwrap_or_default();
        return joined(&[std::slice::from_ref(split), rest].concat());
    }
    let mut inner = command.clone();
    if options.has(&["-i", "--ignore-environment"]) || options.operands.iter().any(is_dash) {
        inner.unset.push("*".to_owned());
    }
    let unset = ["-u", "--unset"];
    inner.unset.extend(options.values(&unset).map(|name| name.shown().into_owned()));
    if let Some(folder) = options.value(&["-C", "--chdir"]) {
        inner.folder = inner.folder.entered(folder);
    }
    let mut rest = arguments.get(start..).unwrap_or_default();
    if rest.first().is_some_and(is_dash) {
        inner.unset.push("*".to_owned());
        rest = rest.get(1..).unwrap_or_default();
    }
    while let Some((name, value)) = rest.first().and_then(assigned) {
        inner.assigned.push((name, value));
        rest = rest.get(1..).unwrap_or_default();
    }
    with(&inner, rest)
}

fn is_dash(argument: &Argument) -> bool {
    argument.text() == Some("-")
}

/// Words that a shell reads again.
fn joined(arguments: &[Argument]) -> Inner {
    let texts: Option<Vec<&str>> = arguments.iter().map(Argument::text).collect();
    texts.map_or(Inner::Unknown, |texts| Inner::Script(texts.join(" "), Vec::new()))
}

fn shell(arguments: &[Argument], input: &Input) -> Inner {
    let (mut at, mut commanded, mut from_input) = (0, false, false);
    while let Some(text) = arguments.get(at).and_then(Argument::text) {
        let Some(letters) = text.strip_prefix(['-', '+']).filter(|rest| !rest.is_empty()) else {
            break;
        };
        at += 1;
        if text == "--" {
            break;
        }
        if matches!(text, "--rcfile" | "--init-file" | "--command") || letters.ends_with(['o', 'O'])
        {
            at += usize::from(text != "--command");
        }
        commanded |= text == "--command" || !letters.starts_with('-') && letters.contains('c');
        from_input |= letters == "s";
        if matches!(text, "--version" | "--help") {
            return Inner::Script(String::new(), Vec::new());
        }
    }
    let rest = arguments.get(at..).unwrap_or_default();
    match (commanded, rest.first(), input) {
        (true, Some(Argument::Text(script)), _) => {
            Inner::Script(script.clone(), rest.get(1..).unwrap_or_default().to_vec())
        }
        (true, _, _) => Inner::Unknown,
        (false, Some(_), _) if !from_input => Inner::Itself,
        (false, _, Input::Known(script)) => {
            let given = std::iter::once("sh".into()).chain(rest.iter().cloned());
            Inner::Script(script.clone(), given.collect())
        }
        (false, _, Input::Outside | Input::Unknown) => Inner::Unknown,
    }
}

fn xargs(command: &Command, input: &Input) -> Inner {
    let arguments = command.argv.get(1..).unwrap_or_default();
    let start = start_of(arguments, "aEILnPsd", &XARGS_LONG);
    let options =
        options::read(arguments.get(..start).unwrap_or_default(), "aEILnPsd", &XARGS_LONG);
    let mut argv = arguments.get(start..).unwrap_or_default().to_vec();
    if argv.is_empty() {
        argv.push("echo".into());
    }
    let replaced = options.value(&["-I", "--replace"]).and_then(Argument::text);
    let replaced = replaced.or(options.has(&["-i"]).then_some("{}"));
    let unknown = || Argument::Unknown("…".to_owned());
    if let Some(sign) = replaced {
        for word in &mut argv {
            if word.shown().contains(sign) {
                *word = Argument::Unknown(word.shown().replace(sign, "…"));
            }
        }
        return with(command, &argv);
    }
    match input {
        Input::Known(text)
            if !text.contains(['\'', '"', '\\'])
                && !options.has(&["-a", "-0", "-d", "--null", "--arg-file", "--delimiter"]) =>
        {
            argv.extend(text.split_whitespace().map(Argument::from));
        }
        _ => argv.push(unknown()),
    }
    with(command, &argv)
}

fn flock(command: &Command) -> Inner {
    let arguments = command.argv.get(1..).unwrap_or_default();
    let start = start_of(arguments, "wE", &["--timeout"]) + 1;
    let rest = arguments.get(start..).unwrap_or_default();
    match rest.first().and_then(Argument::text) {
        Some("-c" | "--command") => joined(rest.get(1..).unwrap_or_default()),
        _ => with(command, rest),
    }
}

/// `script -c 'command' file`, and `script file command` as other systems have it.
fn recorded(command: &Command) -> Inner {
    let arguments = command.argv.get(1..).unwrap_or_default();
    let options = options::read(arguments, "cEIOBTmt", &["--command"]);
    if let Some(inner) = options.value(&["-c", "--command"]) {
        return joined(std::slice::from_ref(inner));
    }
    let inner = Command { terminal: true, ..command.clone() };
    with(&inner, options.operands.get(1..).unwrap_or_default())
}
