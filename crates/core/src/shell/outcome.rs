//! What came out of reading a line, in the words of those who judge it.
//!
//! Owns the answer's shape, how a path stands on a folder, and what is guessed of a line that could
//! not be read. Invariant: a path is as the line says it, from the folder where the line started;
//! `..` is left in it, since only the file system knows what it means behind a link.

use std::borrow::Cow;

use super::{LINE_BYTES_MAX, Unparsed};

/// More commands than this are guessed only where they may be a danger by their name.
const GUESSES_MAX: usize = 500;
/// Programs that take away what they name.
const REMOVERS: [&str; 8] = ["rm", "rmdir", "mv", "unlink", "shred", "trash", "rsync", "find"];

/// What `mktemp` prints, where nothing turns it elsewhere: whoever knows the folder of temporary
/// files puts that for `/tmp`.
pub const TEMPORARY: &str = "/tmp/tmp.XXXXXXXXXX";

/// What a line does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deeds {
    /// Every program it runs, without those that only start another one.
    pub commands: Vec<Command>,
    pub writes: Vec<Write>,
    pub reads: Vec<Place>,
    /// Every command is known to write nothing but what is in `writes`, all of it known.
    pub harmless: bool,
    /// Something of it may go on when the line itself is over.
    pub background: bool,
    /// Why the line could not be followed; then `commands` are guesses.
    pub unparsed: Option<Unparsed>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// Variables set for it alone.
    pub assigned: Vec<(String, Argument)>,
    /// Variables taken from it.
    pub unset: Vec<String>,
    /// The program and its arguments; never empty.
    pub argv: Vec<Argument>,
    /// Where it runs.
    pub folder: Place,
    /// What it reads from standard input, where that is known.
    pub input: Option<String>,
    /// Something gives it a terminal that is none: `script`, `unbuffer`, `expect`.
    pub terminal: bool,
    /// What it prints becomes words or the input of another command.
    pub feeds: bool,
}

impl Command {
    pub(super) fn new(argv: Vec<Argument>, folder: Place) -> Self {
        let (assigned, unset) = (Vec::new(), Vec::new());
        Self { assigned, unset, argv, folder, input: None, terminal: false, feeds: false }
    }

    /// The name of the program, without its folder; empty when it is not known.
    pub fn name(&self) -> &str {
        self.argv.first().map_or("", Argument::program)
    }

    /// The words as far as they are known, to be shown and compared.
    pub fn words(&self) -> Vec<String> {
        self.argv.iter().map(|argument| argument.shown().into_owned()).collect()
    }
}

/// One word of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Argument {
    Text(String),
    /// Below the home folder: `~/…`.
    Home(String),
    /// Below the folder where the line started, wherever it has gone since: `$PWD/…`.
    Start(String),
    /// A glob, in the language of claims. A `~` at its start that is not escaped is the home
    /// folder, and `~+` the folder where the line started.
    Pattern(String),
    /// Only running it would tell; the text has `…` for what is not known.
    Unknown(String),
}

impl Argument {
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    pub fn shown(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) | Self::Pattern(text) | Self::Unknown(text) => Cow::Borrowed(text),
            Self::Home(rest) => Cow::Owned(format!("~/{rest}")),
            Self::Start(rest) => Cow::Owned(format!("./{rest}")),
        }
    }

    pub(super) fn program(&self) -> &str {
        match self {
            Self::Text(text) | Self::Home(text) | Self::Start(text) => {
                text.rsplit('/').next().unwrap_or(text)
            }
            _ => "",
        }
    }
}

impl From<&str> for Argument {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// Where something lies.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// From the folder where the line started, or absolute; `.` is that folder.
    Path(String),
    Home(String),
    /// From the root of the working tree in which the line started.
    Root(String),
    /// All that a glob matches; it may begin with `~/`.
    Pattern(String),
    Unknown,
}

impl Place {
    pub(super) fn here() -> Self {
        Self::Path(".".to_owned())
    }

    /// What a word names for a program that runs in this folder.
    pub(super) fn join(&self, argument: &Argument) -> Self {
        match (argument, self) {
            (Argument::Unknown(_), _) => Self::Unknown,
            (Argument::Home(rest), _) => Self::Home(rest.clone()),
            (Argument::Start(rest), _) => Self::Path(below(".", rest)),
            (Argument::Text(text), _) if text.starts_with('/') => Self::Path(text.clone()),
            (Argument::Pattern(text), _) if text.starts_with("~+/") => {
                Self::Pattern(text[3..].to_owned())
            }
            (Argument::Pattern(text), _) if text.starts_with(['/', '~']) => {
                Self::Pattern(text.clone())
            }
            (Argument::Text(text), Self::Path(folder)) => Self::Path(below(folder, text)),
            (Argument::Text(text), Self::Home(folder)) => Self::Home(below(folder, text)),
            (Argument::Pattern(text), Self::Path(folder)) => {
                Self::Pattern(below(&escaped(folder), text))
            }
            (Argument::Pattern(text), Self::Home(folder)) => {
                Self::Pattern(below(&format!("~/{}", escaped(folder)), text))
            }
            (_, Self::Root(_) | Self::Pattern(_) | Self::Unknown) => Self::Unknown,
        }
    }

    /// The folder after `cd`: the shell takes `..` as letters, unlike everyone else.
    pub(super) fn entered(&self, argument: &Argument) -> Self {
        let (text, home) = match self.join(argument) {
            Self::Path(text) => (text, false),
            Self::Home(text) => (text, true),
            Self::Root(_) | Self::Pattern(_) | Self::Unknown => return Self::Unknown,
        };
        let mut segments: Vec<&str> = Vec::new();
        for segment in text.split('/') {
            match (segment, segments.last()) {
                ("." | "", _) => {}
                ("..", Some(last)) if *last != ".." => {
                    segments.pop();
                }
                ("..", None) if text.starts_with('/') => {}
                _ => segments.push(segment),
            }
        }
        let joined = segments.join("/");
        match (home, text.starts_with('/')) {
            (true, _) => Self::Home(joined),
            (_, true) => Self::Path(format!("/{joined}")),
            (_, false) if joined.is_empty() => Self::here(),
            (_, false) => Self::Path(joined),
        }
    }
}

impl Place {
    /// The folder in which a pattern begins, and the pattern from there; any other place is itself,
    /// with nothing behind it.
    pub fn parted(&self) -> (Self, &str) {
        let Self::Pattern(text) = self else { return (self.clone(), "") };
        let special = text.find(['*', '?', '[', '{', '\\']).unwrap_or(text.len());
        let (folder, rest) = match text[..special].rfind('/') {
            Some(0) => ("/", &text[1..]),
            Some(at) => (&text[..at], &text[at + 1..]),
            None => (".", text.as_str()),
        };
        let folder = match folder.strip_prefix('~') {
            None => Self::Path(folder.to_owned()),
            Some("") => Self::Home(String::new()),
            Some(below) => match below.strip_prefix('/') {
                Some(below) => Self::Home(below.to_owned()),
                None => Self::Unknown,
            },
        };
        (folder, rest)
    }

    /// The word that names it whatever folder the line goes to.
    pub(super) fn as_argument(&self) -> Argument {
        match self {
            Self::Path(text) if text.starts_with('/') => Argument::Text(text.clone()),
            Self::Path(text) if text == "." => Argument::Start(String::new()),
            Self::Path(text) => Argument::Start(text.clone()),
            Self::Home(text) => Argument::Home(text.clone()),
            Self::Root(_) | Self::Pattern(_) | Self::Unknown => Argument::Unknown("…".to_owned()),
        }
    }
}

fn below(folder: &str, path: &str) -> String {
    let mut path = path;
    while let Some(rest) = path.strip_prefix("./") {
        path = rest.trim_start_matches('/');
    }
    match (folder, path) {
        (_, "" | ".") => folder.to_owned(),
        ("." | "", _) => path.to_owned(),
        _ => format!("{}/{path}", folder.trim_end_matches('/')),
    }
}

/// A text as a pattern that matches it alone, wherever in one it stands.
pub fn escaped(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for letter in text.chars() {
        if ",*?[]{}\\~!".contains(letter) {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
    pattern
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    pub place: Place,
    pub how: How,
    /// Everything below it too: `rm -r`, `cp -r`.
    pub below: bool,
    /// Only some of what lies there, and nobody can tell which: `tar x`, `find -newer`.
    pub part: bool,
    pub when: When,
}

/// What must be so for it to be written; whoever sees the files can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    Always,
    /// It is there already: `git checkout NAME` is about a branch otherwise.
    There,
    /// It is no folder, else what is copied lands in it.
    NoFolder,
    /// It lies in a folder that is there.
    InFolder,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum How {
    /// Made, or written over.
    Create,
    /// Made, or changed where it is.
    Change,
    /// Goes back to what git has of it, where it differs: `git restore`.
    Restore,
    Append,
    /// It goes, and with `below` all that is in it.
    Delete,
    /// Files in it go; other repositories and trees there, and git's own folder, are left:
    /// `git rm`.
    DeleteFiles,
    MoveFrom,
    MoveTo,
    Copy,
    /// A folder is made; that alone changes no file.
    Folder,
}

/// Words as they would be without any grammar: rather one too many is looked at than one too few.
pub(super) fn guessed(line: &str, why: Unparsed) -> Deeds {
    let mut end = line.len().min(LINE_BYTES_MAX);
    while !line.is_char_boundary(end) {
        end -= 1;
    }
    let parts = line[..end].split(['\n', ';', '&', '|', '(', ')', '`', '{', '}']);
    let mut commands: Vec<Command> = Vec::new();
    for part in parts {
        let mut known = None;
        let words = part.split(|letter: char| letter.is_whitespace() || "'\"<>".contains(letter));
        for word in words.filter(|word| !word.is_empty()) {
            let word = Argument::Text(word.trim_start_matches(['$', '\\']).replace('\\', ""));
            // What starts other programs is not known here: these begin wherever they stand.
            let begins = match word.program() {
                "git" | "baton" => true,
                program => REMOVERS.contains(&program) && known != Some("git"),
            };
            let crowded = commands.len() >= GUESSES_MAX;
            match commands.last_mut().filter(|_| known.is_some() && !begins) {
                Some(command) => command.argv.push(word),
                // Of many commands only those are looked at.
                None if crowded && !begins => {}
                None => {
                    known = Some(if word.program() == "git" { "git" } else { "" });
                    let command = Command::new(vec![word], Place::Unknown);
                    commands.push(Command { feeds: true, ..command });
                }
            }
        }
    }
    let anywhere = Write {
        place: Place::Unknown,
        how: How::Change,
        below: true,
        part: true,
        when: When::Always,
    };
    let mut writes = vec![anywhere];
    writes.extend(commands.iter().flat_map(guessed_removals));
    let background = line[..end].contains('&');
    Deeds { commands, writes, background, unparsed: Some(why), ..Deeds::default() }
}

/// What a guessed command would take away, from where the line starts.
fn guessed_removals(command: &Command) -> Vec<Write> {
    let removes = match command.name() {
        "git" => command.argv.iter().any(|word| word.text() == Some("worktree")),
        name => REMOVERS.contains(&name),
    };
    let words = command.argv.iter().skip(1).filter_map(Argument::text).filter(|_| removes);
    let named = words.filter(|word| !word.starts_with('-'));
    let place = |word: &str| match word.strip_prefix("~/") {
        Some(rest) => Place::Home(rest.to_owned()),
        None => Place::here().join(&word.into()),
    };
    let gone = |word: &str| Write {
        place: place(word),
        how: How::Delete,
        below: true,
        part: false,
        when: When::Always,
    };
    named.map(gone).collect()
}
