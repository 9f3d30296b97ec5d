//! Which paths of git's commands are everything there is.
//!
//! Owns the words that say so, and those that may: `sub/..`, an absolute path. Invariant: pure
//! words; which folder they end in, and whether that is the root of a tree, is seen by whoever sees
//! the files.

use super::super::git::{self, Call};
use super::super::outcome::{Argument, Command, Deeds, Place};
use super::{Verb, is_turned};

/// Does one of these paths name everything, or may it?
pub(super) fn any(paths: &[Argument]) -> bool {
    paths.iter().any(|path| is_all(path) || may_be_all(path))
}

/// Does it name everything there is?
pub(super) fn is_all(operand: &Argument) -> bool {
    let shown = operand.shown();
    let mut rest = shown.trim_end_matches('/');
    while let Some(inner) = rest.strip_prefix("./") {
        rest = inner.trim_start_matches('/');
    }
    !shown.is_empty() && matches!(rest, "" | "." | ".." | "*" | "**" | ":" | ":(top)" | ":/*")
}

/// It may lead to the root of a tree: only the files tell.
fn may_be_all(operand: &Argument) -> bool {
    match operand {
        Argument::Text(text) => text.starts_with('/') || text.split('/').any(|name| name == ".."),
        Argument::Home(_) | Argument::Start(_) => true,
        Argument::Pattern(text) => {
            let climbs = text.starts_with(['/', '~']) || text.split('/').any(|name| name == "..");
            climbs && folder_of_all(text).is_some()
        }
        Argument::Unknown(_) => false,
    }
}

/// The folder of which a pattern matches all.
fn folder_of_all(pattern: &str) -> Option<&str> {
    let folder = pattern.strip_suffix("/**").or_else(|| pattern.strip_suffix("/*"))?;
    Some(folder).filter(|folder| !folder.contains(['*', '?', '[', '{', '\\']))
}

/// What a verb commits or sweeps through, as its command names it; none where it is the whole tree,
/// whatever the folder.
pub(super) fn named(verb: Verb, command: &Command) -> Vec<Place> {
    let call = git::read(command).filter(|_| !is_turned(command));
    let sweeps = matches!(verb, Verb::AddAll | Verb::DiscardAll | Verb::Clean);
    let Some(call) = call.filter(|_| sweeps || verb == Verb::NamedCommit) else {
        return Vec::new();
    };
    let options = call.options();
    if verb == Verb::NamedCommit {
        let file = |path: &Argument| folder(&call, path).unwrap_or(Place::Unknown);
        return options.operands.iter().map(file).collect();
    }
    let paths = match call.verb {
        "clean" if options.operands.is_empty() => return vec![call.folder],
        "checkout" if options.has(&["-f", "--force"]) => return Vec::new(),
        "checkout" => call.behind_dashes().unwrap_or(&options.operands),
        "add" | "stage" | "restore" | "rm" | "reset" | "clean" => &options.operands,
        _ => return Vec::new(),
    };
    let named = paths.iter().filter(|path| call.verb == "clean" || any(std::slice::from_ref(path)));
    let folders: Vec<Option<Place>> = named.map(|path| folder(&call, path)).collect();
    // One of them is the whole tree.
    folders.into_iter().collect::<Option<Vec<Place>>>().unwrap_or_default()
}

/// What a line puts into the index before it commits that, by the names of files; nothing where its
/// words do not tell.
pub fn staged(deeds: &Deeds) -> Option<Vec<Place>> {
    const NEITHER: [&str; 8] =
        ["status", "diff", "log", "show", "push", "fetch", "rev-parse", "ls-files"];
    // These take more than what is staged, or another's commit.
    const MORE: [&str; 10] = [
        "-a",
        "--all",
        "-i",
        "--include",
        "-p",
        "--patch",
        "--interactive",
        "--amend",
        "--pathspec-from-file",
        "--fixup",
    ];
    if deeds.unparsed.is_some() {
        return None;
    }
    let mut places = Vec::new();
    for command in deeds.commands.iter().filter(|command| command.name() == "git") {
        let call = git::read(command).filter(|_| !is_turned(command))?;
        let options = call.options();
        match call.verb {
            "commit" if !options.has(&MORE) => {}
            "add" | "stage" if call.arguments.iter().all(is_plain_file) => {
                places.extend(options.operands.iter().map(|path| call.folder.join(path)));
            }
            verb if NEITHER.contains(&verb) => {}
            _ => return None,
        }
    }
    Some(places)
}

/// A name that stands for itself: no option, no pattern, nothing that git reads in its own way.
fn is_plain_file(path: &Argument) -> bool {
    let plain = |text: &str| !text.starts_with(['-', ':']) && !text.contains(['*', '?', '[']);
    path.text().is_some_and(|text| text == "--" || plain(text)) && !is_all(path)
}

/// The folder that a path names; none where git takes it from the root of the tree.
fn folder(call: &Call<'_>, path: &Argument) -> Option<Place> {
    let shown = path.shown();
    match path {
        _ if shown.starts_with(':') => None,
        Argument::Pattern(text) => match folder_of_all(text) {
            _ if is_all(path) => Some(call.folder.clone()),
            Some(folder) if !folder.starts_with('~') => Some(call.folder.join(&folder.into())),
            _ => Some(Place::Unknown),
        },
        // git reads these itself.
        Argument::Text(text) if is_all(path) && text.contains('*') => Some(call.folder.clone()),
        Argument::Text(text) if text.contains(['*', '?', '[']) => Some(Place::Unknown),
        _ => Some(call.folder.join(path)),
    }
}
