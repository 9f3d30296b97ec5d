//! git as a line calls it: its own options, its verb, and what the verb writes to the tree.
//!
//! Owns the reading of git's command line, for this and for `danger`. Invariant: a verb that is not
//! known to leave the files of the tree alone makes the line not harmless.

use crate::patches;

use super::options::{self, Options};
use super::outcome::{Argument, Command, How, Place, When};
use super::walk::{Input, Walker};
use super::writers;

/// One call of git.
#[derive(Debug)]
pub(super) struct Call<'a> {
    /// Where it runs, `-C` counted.
    pub(super) folder: Place,
    /// `-c name=value`, and options that point it elsewhere.
    pub(super) settings: Vec<String>,
    pub(super) verb: &'a str,
    pub(super) arguments: &'a [Argument],
    /// A word before the verb, or the verb itself, is not known: it may do anything.
    unread: bool,
}

impl Call<'_> {
    pub(super) fn options(&self) -> Options {
        let (short, long) = valued(self.verb);
        options::read(self.arguments, short, long)
    }

    /// It only tells how it would be called.
    pub(super) fn asks_for_help(&self) -> bool {
        let first = self.arguments.first().and_then(Argument::text);
        first == Some("--help") || first == Some("-h") && self.arguments.len() == 1
    }

    /// What stands behind `--`.
    pub(super) fn behind_dashes(&self) -> Option<&[Argument]> {
        let at = self.arguments.iter().position(|one| one.text() == Some("--"))?;
        self.arguments.get(at + 1..)
    }
}

/// Whether it makes a commit, moves a reference, or makes a branch.
pub(super) fn makes_commits(command: &Command) -> bool {
    let Some(call) = read(command).filter(|call| !call.asks_for_help()) else { return false };
    let options = call.options();
    match call.verb {
        "commit" => !options.has(&["--dry-run"]),
        "commit-tree" | "cherry-pick" | "revert" | "am" | "update-ref" => true,
        "checkout" => options.has(&["-b", "-B", "--orphan"]),
        "switch" => options.has(&["-c", "-C", "--create", "--force-create", "--orphan"]),
        "branch" => {
            let looks =
                ["-l", "--list", "-a", "--all", "-r", "--remotes", "--contains", "--merged"];
            !options.operands.is_empty() && !options.has(&looks)
        }
        _ => false,
    }
}

/// Options of a verb that take a value as a word of their own.
fn valued(verb: &str) -> (&'static str, &'static [&'static str]) {
    match verb {
        "commit" => (
            "mFCctS",
            &["--message", "--file", "--author", "--date", "--template", "--cleanup", "--fixup"],
        ),
        "checkout" | "switch" => ("bBcC", &["--orphan", "--create", "--force-create"]),
        "restore" => ("s", &["--source", "--pathspec-from-file"]),
        "push" => ("o", &["--push-option", "--receive-pack", "--exec", "--repo"]),
        "tag" => ("mFu", &["--message", "--file"]),
        "clean" => ("e", &["--exclude"]),
        "apply" => ("pC", &["--directory", "--exclude", "--include"]),
        "rebase" => ("xsX", &["--exec", "--onto"]),
        "merge" | "pull" => ("msXF", &["--message", "--strategy"]),
        "config" => ("f", &["--file", "--blob", "--type", "--default"]),
        "worktree" => ("bB", &["--reason"]),
        _ => ("", &[]),
    }
}

/// Reads a call; None when the command is not git.
pub(super) fn read(command: &Command) -> Option<Call<'_>> {
    if command.name() != "git" {
        return None;
    }
    let mut folder = command.folder.clone();
    let mut settings = Vec::new();
    let arguments = command.argv.get(1..).unwrap_or_default();
    let (mut at, mut unread) = (0, false);
    // An option counts even where its value is not known.
    while let Some(word) = arguments.get(at) {
        let text = word.shown();
        // Options may stand in it, the verb, or nothing.
        unread |= word.text().is_none();
        if !text.starts_with('-') && word.text().is_some() {
            break;
        }
        at += 1;
        let next = arguments.get(at);
        match &*text {
            "-C" => {
                folder = next.map_or(Place::Unknown, |next| folder.entered(next));
                at += 1;
            }
            "-c" | "--config-env" => {
                settings.extend(next.map(|next| next.shown().into_owned()));
                at += 1;
            }
            "--git-dir" | "--work-tree" | "--namespace" | "--exec-path" | "--super-prefix" => {
                settings.push(text.trim_start_matches('-').to_owned());
                folder = Place::Unknown;
                at += 1;
            }
            _ if text.starts_with("--git-dir=") || text.starts_with("--work-tree=") => {
                settings.push(text.trim_start_matches('-').to_owned());
                folder = Place::Unknown;
            }
            _ if text.starts_with("-c") => settings.push(text[2..].to_owned()),
            _ => {}
        }
    }
    let verb = arguments.get(at).and_then(Argument::text).unwrap_or_default();
    let arguments = arguments.get(at + 1..).unwrap_or_default();
    Some(Call { folder, settings, verb, arguments, unread })
}

/// Verbs that only show something, and call no hook.
pub(super) const SHOWS: [&str; 9] =
    ["blame", "diff", "grep", "log", "ls-files", "rev-parse", "show", "status", "version"];

/// Verbs that leave the files of the tree as they are, whatever their arguments.
const READS: [&str; 45] = [
    "add",
    "annotate",
    "blame",
    "branch",
    "cat-file",
    "check-attr",
    "check-ignore",
    "check-ref-format",
    "cherry",
    "config",
    "count-objects",
    "describe",
    "diff-files",
    "diff-index",
    "diff-tree",
    "fetch",
    "for-each-ref",
    "fsck",
    "grep",
    "hash-object",
    "help",
    "log",
    "ls-files",
    "ls-remote",
    "ls-tree",
    "merge-base",
    "merge-tree",
    "name-rev",
    "notes",
    "range-diff",
    "reflog",
    "remote",
    "rev-list",
    "rev-parse",
    "shortlog",
    "show-branch",
    "show-ref",
    "status",
    "symbolic-ref",
    "tag",
    "update-ref",
    "var",
    "verify-commit",
    "version",
    "whatchanged",
];

/// Is it told to run another program? A setting may name one: a pager, an editor, an alias.
fn runs_more(call: &Call<'_>) -> bool {
    let names_one = |setting: &String| {
        let name = setting.to_ascii_lowercase();
        let quiet = ["color.", "user.", "core.quotepath", "advice.", "core.pager=cat"];
        !quiet.iter().any(|one| name.starts_with(one))
    };
    let starts = |one: &Argument| {
        let word = one.shown();
        word.starts_with("--upload-pa") || word.starts_with("ext::") || word == "--ext-diff"
    };
    call.settings.iter().any(names_one) || call.arguments.iter().any(starts)
}

pub(super) fn judge(walker: &mut Walker, command: &Command, input: &Input) {
    let Some(call) = read(command) else { return };
    if runs_more(&call) || options::may_have_more(call.arguments) {
        walker.opaque();
    }
    if call.unread {
        walker.writes(Place::Unknown, How::Change, true);
        return walker.opaque();
    }
    let inner = Command { folder: call.folder.clone(), ..command.clone() };
    let mut options = call.options();
    options.operands.iter_mut().for_each(as_pathspec);
    match call.verb {
        _ if call.asks_for_help() => {}
        "diff" | "show" | "format-patch" | "log" if options.has(&["--output"]) => {
            let file = options.value(&["--output"]).cloned();
            let file = file.unwrap_or_else(|| Argument::Unknown("…".to_owned()));
            walker.writes_all(&inner, &[file], How::Create, false);
        }
        "" | "diff" | "show" => {}
        "config" if options.has(&["-f", "--file"]) => configured(walker, &inner, &options),
        // What git does not look at any more is in no status: as good as written.
        "update-index" if options.has(&["--skip-worktree", "--assume-unchanged"]) => {
            walker.writes_all(&inner, &options.operands, How::Change, false);
        }
        "grep" if options.has(&["-O", "--open-files-in-pager"]) => walker.opaque(),
        verb if READS.contains(&verb) => {}
        "rm" if options.has(&["--cached"]) => {}
        "rm" => {
            let below = options.has(&["-r"]);
            walker.writes_all(&inner, &options.operands, How::DeleteFiles, below);
        }
        "mv" => moved(walker, &inner, &options),
        "restore" => {
            let staged = options.has(&["-S", "--staged"]) && !options.has(&["-W", "--worktree"]);
            let how = if options.has(&["-s", "--source"]) { How::Change } else { How::Restore };
            if !staged {
                walker.writes_all(&inner, &options.operands, how, true);
            }
        }
        "checkout" => checkout(walker, &inner, &call, &options),
        "reset" if !options.has(&["--hard", "--merge", "--keep"]) => {}
        "clean" if options.has(&["-n", "--dry-run"]) => {}
        // Only what is not tracked goes, and other repositories only if that is asked for twice.
        "clean" => {
            let how = if options.count("-f") > 1 { How::Delete } else { How::DeleteFiles };
            match &options.operands[..] {
                [] => walker.writes_part(call.folder.clone(), how),
                paths => walker.writes_part_of_all(&inner, paths, how),
            }
        }
        "apply" => apply(walker, &inner, &options, input),
        "stash" if matches!(first(&options), "list" | "show") => {}
        "worktree" => worktree(walker, &inner, &options),
        "bisect" if matches!(first(&options), "log" | "view") => {}
        "submodule" if matches!(first(&options), "status" | "summary") => {}
        _ => {
            walker.writes(Place::Unknown, How::Change, true);
            walker.opaque();
        }
    }
}

/// git reads globs and `:` in its paths itself, and in its own way.
fn as_pathspec(operand: &mut Argument) {
    let special = |text: &str| text.contains(['*', '?', '[']) || text.starts_with(':');
    let Some(text) = operand.text().filter(|text| special(text)) else { return };
    // Its star goes through folders.
    let ends = text.strip_prefix('*').filter(|end| !end.contains(['*', '?', '[', '/', '{', '\\']));
    *operand = match ends {
        Some(end) => Argument::Pattern(format!("**/*{end}")),
        None => Argument::Unknown(text.to_owned()),
    };
}

pub(super) fn first(options: &Options) -> &str {
    options.operands.first().and_then(Argument::text).unwrap_or_default()
}

fn moved(walker: &mut Walker, command: &Command, options: &Options) {
    if options.has(&["-n", "--dry-run"]) {
        return;
    }
    let Some((target, sources)) = options.operands.split_last() else { return };
    walker.writes_all(command, sources, How::MoveFrom, true);
    walker.writes_all(command, std::slice::from_ref(target), How::MoveTo, true);
}

/// A file of settings that is named is one like any other.
fn configured(walker: &mut Walker, command: &Command, options: &Options) {
    let asks = ["--get", "--get-all", "--get-regexp", "--get-urlmatch", "--list", "-l"];
    let sets = ["--unset", "--unset-all", "--remove-section", "--rename-section", "--edit", "-e"];
    let asks = options.has(&asks) || matches!(first(options), "get" | "list");
    if !asks && (options.operands.len() > 1 || options.has(&sets)) {
        let files: Vec<Argument> = options.values(&["-f", "--file"]).cloned().collect();
        walker.writes_all(command, &files, How::Change, false);
    }
}

/// A tree that is removed or moved goes from where it is, with all that is in it.
fn worktree(walker: &mut Walker, command: &Command, options: &Options) {
    let tree = options.operands.get(1..2).unwrap_or_default();
    match first(options) {
        "list" | "prune" | "lock" | "unlock" => {}
        "remove" => walker.writes_all(command, tree, How::Delete, true),
        "move" => {
            walker.writes_all(command, tree, How::MoveFrom, true);
            walker.opaque();
        }
        _ => {
            walker.writes(Place::Unknown, How::Change, true);
            walker.opaque();
        }
    }
}

/// `checkout` of paths; a name alone may be a branch, and then anything changes.
fn checkout(walker: &mut Walker, command: &Command, call: &Call<'_>, options: &Options) {
    if let Some(paths) = call.behind_dashes() {
        let plain = options.operands.len() <= paths.len();
        let how = if plain { How::Restore } else { How::Change };
        let mut paths = paths.to_vec();
        paths.iter_mut().for_each(as_pathspec);
        return walker.writes_all(command, &paths, how, true);
    }
    let paths = &options.operands;
    let making = options.has(&["-b", "-B", "--orphan"]);
    if making && paths.is_empty() {
        return;
    }
    let sure = paths.first().and_then(Argument::text).is_some_and(is_surely_path);
    let sure = sure || options.has(&OF_CONFLICTS);
    if let (false, Some((first, others))) = (making, paths.split_first()) {
        let when = if sure { When::Always } else { When::There };
        // The first of several that is no path is a commit.
        let how = if sure { How::Restore } else { How::Change };
        walker.writes_when(walker.place(command, first), how, true, when);
        walker.writes_all(command, others, how, true);
    }
    if paths.len() < 2 && !sure {
        walker.writes(Place::Unknown, How::Change, true);
        walker.opaque();
    }
}

/// Options with which `checkout` takes only paths.
pub(super) const OF_CONFLICTS: [&str; 2] = ["--ours", "--theirs"];

/// Where `--` would stand in a `checkout NAME` or a `reset NAME`, and the file that it is about if
/// that is there: git itself refuses a name that is a branch as well.
pub(super) fn doubtful_name(command: &Command) -> Option<(usize, Place)> {
    let call = read(command).filter(|call| matches!(call.verb, "checkout" | "reset"))?;
    let options = call.options();
    let [only] = &options.operands[..] else { return None };
    let making = options.has(&["-b", "-B", "--orphan", "--detach"]);
    if making || call.behind_dashes().is_some() || only.text().is_none_or(is_surely_path) {
        return None;
    }
    let at = command.argv.iter().rposition(|word| word == only)?;
    Some((at, call.folder.join(only)))
}

/// A word that no branch is called.
pub(super) fn is_surely_path(text: &str) -> bool {
    matches!(text, "." | "..")
        || text.starts_with("./")
        || text.starts_with("../")
        || text.starts_with(':')
        || text.starts_with('/')
        || text.ends_with('/')
}

fn apply(walker: &mut Walker, command: &Command, options: &Options, input: &Input) {
    let looks = ["--check", "--stat", "--numstat", "--summary", "--cached"];
    if options.has(&looks) && !options.has(&["--apply", "--index"]) {
        return;
    }
    let from_input = options.operands.iter().all(|operand| operand.text() == Some("-"));
    let text = match input {
        Input::Known(text) if from_input => Some(text.as_str()),
        _ => None,
    };
    let strip = match options.has(&["-p", "--strip"]) {
        true => writers::strip_of(options),
        false => Some(1),
    };
    // Without a plain folder the names of the patch say nothing.
    let strip = strip.filter(|_| !options.has(&["--directory", "--unsafe-paths"]));
    writers::patched(walker, command, text, |text| patches::unified(text, strip?).ok());
}
