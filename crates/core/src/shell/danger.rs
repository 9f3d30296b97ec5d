//! Verbs that endanger the work of others, or that only a person may say.
//!
//! Owns the list of the shell door. Invariant: pure words: whether anybody is at risk, holds
//! `@git/tree`, or is a person, is judged by whoever asks. Rather one too many is told than one too
//! few: abbreviations count, and in a line that could not be read each `git` begins a command.

mod sweeps;

pub use sweeps::staged;

use std::borrow::Cow;

use super::Unparsed;
use super::git::{self, Call, first};
use super::outcome::{Argument, Command, Deeds, How, Place, Write};

/// Variables in which clients tell their own id of a session.
pub const CLIENT_IDS: [&str; 7] = [
    "CLAUDE_CODE_SESSION_ID",
    "CODEX_THREAD_ID",
    "CODEX_SESSION_ID",
    "GEMINI_SESSION_ID",
    "CURSOR_CONVERSATION_ID",
    "OPENCODE_SESSION_ID",
    "AMP_CURRENT_THREAD_ID",
];
/// Variables by which an agent is known as one.
pub const CLIENT_SIGNS: [&str; 8] = [
    "CLAUDECODE",
    "CODEX_SANDBOX",
    "CODEX_SANDBOX_NETWORK_DISABLED",
    "CODEX_CI",
    "GEMINI_CLI",
    "CURSOR_AGENT",
    "OPENCODE",
    "GOOSE_TERMINAL",
];

/// What is dangerous, and the command it came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Danger {
    pub verb: Verb,
    /// The words as far as they are known, to be shown.
    pub argv: Vec<String>,
    /// Where it takes effect: the folder it runs in, or what it writes. Unknown where that may be
    /// anywhere.
    pub folder: Place,
    /// What it names itself: the files it commits, or the folders it sweeps through. Where none of
    /// these is the root of a tree, no tree is swept; none are named: it is the whole tree.
    pub named: Vec<Place>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    /// One stack for all working trees.
    Stash,
    /// Edits of everyone in the tree are gone.
    ResetHard,
    Clean,
    /// Restores or checks out everything.
    DiscardAll,
    /// Another commit is put into the tree: needs `@git/tree`.
    SwitchTree,
    /// Takes what others staged or changed.
    AddAll,
    ForcePush,
    Push,
    /// A commit that Baton does not make.
    PlainCommit,
    /// The same of files that it names: nothing that others staged goes along.
    NamedCommit,
    /// Leaves out hooks, or points git at other ones.
    NoVerify,
    /// Sets where hooks lie, for good.
    ConfigHooks,
    /// A whole working tree goes: found by whoever knows the trees, not by words.
    RemovesTree,
    /// Writes into `.git` or `.baton`.
    DeletesBaton,
    /// Does what only a person may do, or pretends to be one.
    ActsAsPerson,
    /// Says which session acts: its own is no harm, and whoever knows it can tell.
    ActsAsSession,
    KillsBaton,
    /// A line of which nobody can tell what it does, for its length.
    TooLong,
}

impl Verb {
    /// In a few words, without anything of the line itself.
    pub fn what(self) -> &'static str {
        match self {
            Self::Stash => "git stash",
            Self::ResetHard => "git reset --hard",
            Self::Clean => "git clean",
            Self::DiscardAll => "a restore of everything",
            Self::SwitchTree => "another commit for the whole tree",
            Self::AddAll => "git add of everything",
            Self::ForcePush => "git push --force",
            Self::Push => "git push",
            Self::PlainCommit | Self::NamedCommit => "git commit",
            Self::NoVerify => "git without its hooks",
            Self::ConfigHooks => "other hooks for git",
            Self::RemovesTree => "the removal of a working tree",
            Self::DeletesBaton => "a write into .git or .baton",
            Self::ActsAsPerson => "an act as a person",
            Self::ActsAsSession => "an act as another session",
            Self::KillsBaton => "an end to baton",
            Self::TooLong => "a line that is too long to be read",
        }
    }
}

/// All dangers of a line, each command's once.
pub fn of(deeds: &Deeds) -> Vec<Danger> {
    let mut dangers = Vec::new();
    if deeds.unparsed == Some(Unparsed::TooLong) {
        let (folder, named) = (Place::Unknown, Vec::new());
        dangers.push(Danger { verb: Verb::TooLong, argv: vec!["…".to_owned()], folder, named });
    }
    for command in &deeds.commands {
        let mut verbs = Vec::new();
        judge(command, &mut verbs);
        let mut about = Cow::Borrowed(command);
        // A program that nobody knows may start these: poetry run git stash.
        if verbs.is_empty() && !is_known(command.name()) {
            let starts = |word: &Argument| matches!(word.program(), "git" | "baton");
            let later = command.argv.iter().skip(1).position(starts);
            if let Some(argv) = later.and_then(|at| command.argv.get(at + 1..)) {
                let inner = Command { argv: argv.to_vec(), ..command.clone() };
                judge(&inner, &mut verbs);
                about = Cow::Owned(inner);
            }
        }
        if kills_unknown(command) && deeds.commands.iter().any(finds_baton) {
            verbs.push(Verb::KillsBaton);
        }
        verbs.sort_unstable();
        verbs.dedup();
        let argv = command.words();
        let folder = takes_effect_in(&about);
        let danger = |verb| Danger {
            verb,
            argv: argv.clone(),
            folder: folder.clone(),
            named: sweeps::named(verb, &about),
        };
        dangers.extend(verbs.into_iter().map(danger));
    }
    for write in deeds.writes.iter().filter(|write| is_inside(write)) {
        let (argv, folder) = (vec![shown(&write.place)], write.place.clone());
        dangers.push(Danger { verb: Verb::DeletesBaton, argv, folder, named: Vec::new() });
    }
    dangers
}

/// The folder that a command is about. What turns git elsewhere, or holds for every repository, may
/// be about any.
fn takes_effect_in(command: &Command) -> Place {
    let lasting = matches!(command.name(), "export" | "declare" | "typeset" | "readonly");
    if lasting || is_turned(command) {
        return Place::Unknown;
    }
    match git::read(command) {
        Some(call) if call.verb == "config" && call.options().has(&["--global", "--system"]) => {
            Place::Unknown
        }
        Some(call) => call.folder,
        None => command.folder.clone(),
    }
}

fn is_turned(command: &Command) -> bool {
    command.assigned.iter().any(|(name, _)| name.starts_with("GIT_"))
}

/// Programs for which `git` is just a word.
fn is_known(name: &str) -> bool {
    const WORDS: [&str; 28] = [
        // These act elsewhere.
        "ssh", "docker", "podman", "kubectl", "git", "baton", "echo", "printf", "cat", "grep", "rg",
        "which", "man", "type", "ls", "find", "head", "tail", "test", "[", "cp", "mv", "rm",
        "mkdir", "touch", "cd", "pushd", "export",
    ];
    WORDS.contains(&name)
}

fn shown(place: &Place) -> String {
    match place {
        Place::Path(text) | Place::Pattern(text) => text.clone(),
        Place::Home(rest) => format!("~/{rest}"),
        Place::Root(rest) => format!(":/{rest}"),
        Place::Unknown => "…".to_owned(),
    }
}

/// Does it write the repository's or Baton's own files, right where the line runs? A `.gitignore`
/// is none of them, the rules in `.baton` are everybody's, and whose another `.git` is, elsewhere
/// or deeper, whoever judges the path can tell.
fn is_inside(write: &Write) -> bool {
    let (Place::Path(text) | Place::Root(text) | Place::Pattern(text)) = &write.place else {
        return false;
    };
    let mut segments = text.split('/').filter(|segment| !matches!(*segment, "" | "."));
    let first = segments.next().unwrap_or_default();
    let whole = write.below || write.how == How::MoveFrom;
    match first.to_ascii_lowercase().as_str() {
        _ if text.starts_with('/') => false,
        ".git" => true,
        ".baton" => segments.next().map_or(whole, |next| next.eq_ignore_ascii_case("store")),
        _ => false,
    }
}

fn judge(command: &Command, verbs: &mut Vec<Verb>) {
    environment(command, verbs);
    match command.name() {
        "baton" if command.terminal => verbs.push(Verb::ActsAsPerson),
        "baton" => baton(command, verbs),
        "expect" if mentions(command, "baton") => verbs.push(Verb::ActsAsPerson),
        name if AWAY.contains(&name) && asks_as_person(command) => verbs.push(Verb::ActsAsPerson),
        "kill" | "pkill" | "killall" | "skill" if mentions(command, "baton") => {
            verbs.push(Verb::KillsBaton);
        }
        "gh" if command.words().windows(2).any(|pair| pair == ["pr", "checkout"]) => {
            verbs.push(Verb::SwitchTree);
        }
        "git" => {
            if let Some(call) = git::read(command) {
                settings(&call, verbs);
                verb(&call, verbs);
            }
        }
        _ => {}
    }
}

/// `kill $(pgrep …)`.
fn kills_unknown(command: &Command) -> bool {
    let unknown = |argument: &Argument| matches!(argument, Argument::Unknown(_));
    command.name() == "kill" && command.argv.iter().any(unknown)
}

/// Does it tell another command the processes of Baton?
fn finds_baton(command: &Command) -> bool {
    let looks = match command.name() {
        "pgrep" | "pidof" | "ps" | "lsof" | "fuser" => true,
        "cat" | "grep" | "egrep" | "rg" | "awk" | "gawk" | "sed" | "head" => command.feeds,
        _ => false,
    };
    looks && mentions(command, "baton")
}

/// Programs that run a line elsewhere than under the agent, mostly with a terminal.
const AWAY: [&str; 10] =
    ["abduco", "at", "batch", "dtach", "screen", "socat", "systemd-run", "tmux", "ttyd", "zellij"];
/// What only a person is asked to say, whatever stands around it.
const PERSONS: [&str; 8] =
    ["approve", "deny", "trust", "revive", "restore", "revoke", "person", "--remove"];

fn asks_as_person(command: &Command) -> bool {
    mentions(command, "baton") && PERSONS.iter().any(|word| mentions(command, word))
}

fn mentions(command: &Command, text: &str) -> bool {
    command.argv.iter().skip(1).any(|argument| argument.shown().contains(text))
        || command.input.as_deref().is_some_and(|input| input.contains(text))
}

/// Variables that say who acts, and those that turn git elsewhere.
fn environment(command: &Command, verbs: &mut Vec<Verb>) {
    let exports = matches!(command.name(), "export" | "unset" | "declare" | "typeset" | "readonly");
    let typed = command.argv.iter().skip(1).filter(|_| exports);
    let typed = typed.map(|word| {
        let word = word.shown();
        let (name, value) = word.split_once('=').unwrap_or((&word, "…"));
        (name.to_owned(), value.is_empty())
    });
    let empty = |value: &Argument| value.text() == Some("");
    let assigned = command.assigned.iter().map(|(name, value)| (name.clone(), empty(value)));
    let typed = typed.map(|(name, empty)| (name, empty || command.name() == "unset"));
    let unset = command.unset.iter().map(|name| (name.clone(), true));
    let shows = git::read(command).is_some_and(|call| git::SHOWS.contains(&call.verb));
    let asks_baton = matches!(command.name(), "baton" | "git") && !shows;
    for (name, gone) in assigned.chain(typed).chain(unset) {
        match name.as_str() {
            "BATON_SESSION" | "BATON_AGENT" if !gone => verbs.push(Verb::ActsAsSession),
            "BATON_SESSION" | "BATON_PERSON_TOKEN_FILE" | "BATON_AGENT" => {
                verbs.push(Verb::ActsAsPerson);
            }
            // An empty environment hides the session, from Baton and from its hooks.
            "*" if asks_baton => verbs.push(Verb::ActsAsPerson),
            id if CLIENT_IDS.contains(&id) && (asks_baton || exports) => {
                verbs.push(Verb::ActsAsSession);
            }
            sign if CLIENT_SIGNS.contains(&sign) && gone && asks_baton => {
                verbs.push(Verb::ActsAsPerson);
            }
            // Where nothing calls a hook, none is left out; but this says which programs run.
            "GIT_EXEC_PATH" => verbs.push(Verb::NoVerify),
            _ if shows => {}
            "GIT_DIR"
            | "GIT_WORK_TREE"
            | "GIT_INDEX_FILE"
            | "GIT_COMMON_DIR"
            | "GIT_CONFIG"
            | "GIT_CONFIG_GLOBAL"
            | "GIT_CONFIG_SYSTEM"
            | "GIT_CONFIG_COUNT"
            | "GIT_CONFIG_PARAMETERS"
            | "GIT_OBJECT_DIRECTORY"
            | "GIT_TEMPLATE_DIR" => {
                verbs.push(Verb::NoVerify);
            }
            _ if name.starts_with("GIT_CONFIG_KEY_") => verbs.push(Verb::NoVerify),
            _ => {}
        }
    }
    let reads = |word: &Argument| word.shown().contains("BATON_PERSON_TOKEN");
    if command.argv.iter().any(reads) {
        verbs.push(Verb::ActsAsPerson);
    }
}

/// `git -c …` and its like.
fn settings(call: &Call<'_>, verbs: &mut Vec<Verb>) {
    for setting in &call.settings {
        let name = setting.to_ascii_lowercase();
        let elsewhere =
            ["core.hookspath", "alias.", "include", "git-dir", "work-tree", "exec-path"];
        if elsewhere.iter().any(|one| name.starts_with(one)) {
            verbs.push(Verb::NoVerify);
        }
    }
}

fn verb(call: &Call<'_>, verbs: &mut Vec<Verb>) {
    let options = call.options();
    let operands = &options.operands;
    match call.verb {
        _ if call.asks_for_help() => return,
        "stash" if !matches!(first(&options), "list" | "show" | "create") => {
            verbs.push(Verb::Stash);
        }
        "reset" => reset(call, verbs),
        "clean" if !options.has(&["-n", "--dry-run"]) => verbs.push(Verb::Clean),
        "restore" | "rm" if !sweeps::any(operands) || options.has(&["-n", "--dry-run"]) => {}
        "restore" => {
            let staged = options.has(&["-S", "--staged"]) && !options.has(&["-W", "--worktree"]);
            verbs.push(if staged { Verb::AddAll } else { Verb::DiscardAll });
        }
        "rm" if options.has(&["--cached"]) => verbs.push(Verb::AddAll),
        "rm" => verbs.push(Verb::DiscardAll),
        "checkout" => checkout(call, verbs),
        "bisect" if matches!(first(&options), "log" | "view") => {}
        "bisect" | "am" | "rebase" | "merge" | "pull" | "cherry-pick" | "revert" | "switch" => {
            verbs.push(Verb::SwitchTree);
        }
        "read-tree" | "checkout-index" | "sparse-checkout" | "filter-branch" | "filter-repo" => {
            verbs.push(Verb::SwitchTree);
        }
        "add" | "stage" => {
            let dry = options.has(&["-n", "--dry-run"]);
            let whole = operands.is_empty() && options.has(&["-A", "--all", "-u", "--update"]);
            if !dry && (sweeps::any(operands) || whole) {
                verbs.push(Verb::AddAll);
            }
        }
        "branch" if options.has(&["-f", "--force", "-m", "--move", "-M", "-C"]) => {
            verbs.push(Verb::SwitchTree);
        }
        "symbolic-ref" if options.operands.len() > 1 && first(&options) == "HEAD" => {
            verbs.push(Verb::SwitchTree);
        }
        "update-ref" => verbs.push(Verb::SwitchTree),
        "commit" if options.has(&["--dry-run"]) => {}
        "commit" => {
            let takes_all = operands.iter().any(sweeps::is_all) || options.has(&["-a", "--all"]);
            let staged_too = options.operands.is_empty() || options.has(&["-i", "--include"]);
            verbs.push(match takes_all || staged_too {
                true => Verb::PlainCommit,
                false => Verb::NamedCommit,
            });
            if takes_all {
                verbs.push(Verb::AddAll);
            }
            if options.has(&["-n", "--no-verify"]) {
                verbs.push(Verb::NoVerify);
            }
        }
        "push" => push(call, verbs),
        "config" => config(call, verbs),
        _ => {}
    }
    if matches!(call.verb, "merge" | "rebase" | "am") && options.has(&["--no-verify"]) {
        verbs.push(Verb::NoVerify);
    }
}

/// Paths behind `--` are written by name; everything, or another commit, is a danger.
fn checkout(call: &Call<'_>, verbs: &mut Vec<Verb>) {
    let options = call.options();
    let paths = call.behind_dashes().unwrap_or(&options.operands);
    if sweeps::any(paths) || options.has(&["-f", "--force"]) {
        verbs.push(Verb::DiscardAll);
    }
    let named = call.behind_dashes().is_some_and(|paths| !paths.is_empty());
    let sure = |operand: &Argument| operand.text().is_some_and(git::is_surely_path);
    let making = options.has(&["-b", "-B", "--orphan", "--detach"]);
    let only_paths = !options.operands.is_empty() && options.operands.iter().all(sure)
        || options.has(&git::OF_CONFLICTS);
    if !named && !only_paths && (making || options.operands.len() < 2) {
        verbs.push(Verb::SwitchTree);
    }
}

/// Files by name are whoever's who names them; the index and the branch are everybody's.
fn reset(call: &Call<'_>, verbs: &mut Vec<Verb>) {
    let options = call.options();
    if options.has(&["--hard", "--merge", "--keep"]) {
        return verbs.push(Verb::ResetHard);
    }
    let behind = call.behind_dashes().unwrap_or_default();
    let operands = &options.operands;
    let before = &operands[..operands.len().saturating_sub(behind.len())];
    let is_path = |operand: &Argument| match operand.text() {
        Some(text) => git::is_surely_path(text),
        None => !matches!(operand, Argument::Unknown(_)),
    };
    let commit = match before {
        [only] if is_path(only) => None,
        [only] => Some(only),
        _ => None,
    };
    let named = behind.len() + before.len() - usize::from(commit.is_some());
    let moves = commit.is_some_and(|commit| !matches!(commit.text(), Some("HEAD" | "@")));
    if named > 0 {
        if sweeps::any(operands) {
            verbs.push(Verb::AddAll);
        }
    } else if moves {
        verbs.push(Verb::SwitchTree);
    } else if !options.has(&["--soft", "-p", "--patch"]) {
        verbs.push(Verb::AddAll);
    }
}

fn push(call: &Call<'_>, verbs: &mut Vec<Verb>) {
    let options = call.options();
    if options.has(&["-n", "--dry-run"]) {
        return;
    }
    verbs.push(Verb::Push);
    let forced = ["-f", "--force", "--force-with-lease", "--force-if-includes", "--mirror", "-d"];
    let by_reference = |operand: &Argument| operand.shown().starts_with(['+', ':']);
    let rest = options.operands.get(1..).unwrap_or_default();
    let gone = options.has(&["--delete", "--prune"]) || rest.iter().any(by_reference);
    if options.has(&forced) || gone {
        verbs.push(Verb::ForcePush);
    }
    if options.has(&["--no-verify"]) {
        verbs.push(Verb::NoVerify);
    }
}

fn config(call: &Call<'_>, verbs: &mut Vec<Verb>) {
    let options = call.options();
    let mut operands = options.operands.iter().map(|operand| operand.shown().to_ascii_lowercase());
    let reads = ["--get", "--get-all", "--list", "-l", "--get-regexp", "--show-origin"];
    let named = |name: &String| {
        let begins = ["core.hookspath", "alias.", "include.path", "includeif."];
        begins.iter().any(|one| name.starts_with(one))
    };
    // With its section the setting goes, or comes from another.
    let whole =
        |name: &String| matches!(name.split('.').next(), Some("core" | "include" | "includeif"));
    let read = options.has(&reads) || matches!(first(&options), "get" | "list");
    // A name alone is read; with a value, or taken away, it is changed.
    let changes =
        options.has(&["--unset", "--unset-all", "--add", "--replace-all", "-e", "--edit"])
            || matches!(first(&options), "set" | "unset")
            || options.operands.len() > 1;
    let edits = options.has(&["-e", "--edit"]) || first(&options) == "edit";
    let section = options.has(&["--remove-section", "--rename-section"])
        || matches!(first(&options), "remove-section" | "rename-section");
    let about = |name: String| if section { whole(&name) } else { changes && named(&name) };
    if !read && (edits || operands.any(about)) {
        verbs.push(Verb::ConfigHooks);
    }
}

/// What Baton itself lets only a person do; the command line marks it "a person's right".
fn baton(command: &Command, verbs: &mut Vec<Verb>) {
    let arguments = command.argv.get(1..).unwrap_or_default();
    let options = super::options::read(arguments, "C", &super::wrappers::OF_BATON);
    let word = |at: usize| options.operands.get(at).and_then(Argument::text).unwrap_or_default();
    let persons = matches!(
        (word(0), word(1)),
        ("gate", "approve" | "deny" | "trust")
            | ("task", "revive")
            | ("policy", "approve")
            | ("store", "restore")
            | ("session", "revive")
            | ("trust" | "revoke" | "person", _)
    );
    let forced = word(0) == "worktree" && word(1) == "remove" && options.has(&["--force"]);
    let unguards = word(0) == "init" && options.has(&["--remove"]);
    if persons || forced || unguards || options.has(&["--person-token"]) {
        verbs.push(Verb::ActsAsPerson);
    }
    // What a client tells at its hooks, it tells itself.
    if options.has(&["--session", "--agent"]) || word(0) == "hook" {
        verbs.push(Verb::ActsAsSession);
    }
}
