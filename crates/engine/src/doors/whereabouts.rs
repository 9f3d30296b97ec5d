//! Where a shell line is about: which of its folders lie in which tree of the workspace.
//!
//! Owns the step from a place in a line to a tree. What cannot be told is taken for the tree the
//! line starts in: rather one danger too many is seen there than one too few.

use std::path::{Path, PathBuf};

use baton_core::shell::danger::{Danger, Verb};
use baton_core::shell::{Argument, Command, Deeds, Place as Named};

use crate::place::Place;
use crate::place::identity::{self, resolve};

/// Folders of one line that are looked at.
const PLACES_MAX: usize = 100;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Whereabouts {
    Here,
    /// In the tree with this root.
    Tree(PathBuf),
    /// In no tree of this workspace.
    Outside,
}

/// Where a place of a line lies, for a line that starts in `cwd`.
pub(super) fn of(place: &Place, cwd: &Path, named: &Named) -> Whereabouts {
    let Some(path) = path_of(cwd, named) else { return Whereabouts::Here };
    match resolve(place, cwd, path.as_os_str()) {
        Ok(located) => match located.into_iter().next_back() {
            Some(last) if last.tree_root != place.root => Whereabouts::Tree(last.tree_root),
            _ => Whereabouts::Here,
        },
        Err(identity::Error::Outside { .. }) => Whereabouts::Outside,
        Err(_) => Whereabouts::Here,
    }
}

/// The path on disk; nothing where the line alone does not tell.
fn path_of(cwd: &Path, named: &Named) -> Option<PathBuf> {
    match named {
        Named::Path(text) => Some(cwd.join(text)),
        Named::Home(rest) => std::env::home_dir().map(|home| home.join(rest)),
        // The root of the tree the line runs in is in that tree.
        Named::Root(_) | Named::Pattern(_) | Named::Unknown => None,
    }
}

/// Roots of the other trees in which the line runs something or writes, or that it names to a
/// program of which nobody knows what it does.
pub(super) fn other_trees(place: &Place, cwd: &Path, deeds: &Deeds) -> Vec<PathBuf> {
    let folders = deeds.commands.iter().map(|command| &command.folder);
    let mut named: Vec<&Named> = folders.chain(deeds.writes.iter().map(|one| &one.place)).collect();
    named.sort_unstable();
    named.dedup();
    let elsewhere = |named: &&Named| !matches!(named, Named::Path(text) if text == ".");
    let mut roots = Vec::new();
    for named in named.into_iter().filter(elsewhere).take(PLACES_MAX) {
        if let Whereabouts::Tree(root) = of(place, cwd, named)
            && root.is_dir()
            && !roots.contains(&root)
        {
            roots.push(root);
        }
    }
    if !deeds.harmless {
        let words: Vec<String> = deeds.commands.iter().flat_map(Command::words).collect();
        let named = |root: &PathBuf| {
            let text = root.display().to_string();
            *root != place.root && words.iter().any(|word| word.contains(&text))
        };
        let others = place.tree_roots().into_iter().filter(named);
        let others: Vec<PathBuf> = others.filter(|root| !roots.contains(root)).collect();
        roots.extend(others);
    }
    roots
}

/// Working trees, and git's own folder, that go with what the line removes or moves away.
pub(super) fn removals(place: &Place, cwd: &Path, deeds: &Deeds) -> Vec<Danger> {
    let mut dangers = Vec::new();
    let mut gone: Vec<PathBuf> = deeds.commands.iter().flat_map(|one| removed(cwd, one)).collect();
    gone.sort_unstable();
    gone.dedup();
    for path in gone.into_iter().take(PLACES_MAX) {
        // Of a link only the link goes.
        let is_link = path.symlink_metadata().is_ok_and(|found| found.is_symlink());
        let Some(gone) = path.canonicalize().ok().filter(|_| !is_link) else { continue };
        let argv = vec![path.display().to_string()];
        let mut kept = place.git.iter().map(|dirs| &dirs.common_dir).chain([&place.store]);
        if kept.any(|kept| kept.starts_with(&gone)) {
            dangers.push(Danger { verb: Verb::DeletesBaton, argv, folder: Named::Unknown });
            continue;
        }
        for root in place.tree_roots().into_iter().filter(|root| root.starts_with(&gone)) {
            let folder = Named::Path(root.display().to_string());
            dangers.push(Danger { verb: Verb::RemovesTree, argv: argv.clone(), folder });
        }
    }
    dangers
}

/// What a command takes away with all that is in it. Others delete file by file, and never a tree.
fn removed(cwd: &Path, command: &Command) -> Vec<PathBuf> {
    let words = command.words();
    let has = |wanted: &[&str]| words.iter().any(|word| wanted.contains(&word.as_str()));
    let recursive = |word: &String| {
        word == "--recursive"
            || word.starts_with('-') && !word.starts_with("--") && word.contains(['r', 'R'])
    };
    let mut operands: Vec<&Argument> =
        command.argv.iter().skip(1).filter(|one| !one.shown().starts_with('-')).collect();
    match command.name() {
        "rm" if words.iter().any(recursive) => {}
        "mv" => drop(operands.pop()),
        "git" if has(&["worktree"]) && has(&["remove", "move"]) => {}
        _ => return Vec::new(),
    }
    let turned = words.iter().position(|word| word == "-C").and_then(|at| words.get(at + 1));
    let turned = turned.filter(|_| command.name() == "git");
    let folder = path_of(cwd, &command.folder);
    let folder = folder.map(|folder| turned.map_or(folder.clone(), |to| folder.join(to)));
    let path = |operand: &&Argument| match operand {
        Argument::Text(text) => folder.as_ref().map(|folder| folder.join(text)),
        Argument::Start(text) => Some(cwd.join(text)),
        Argument::Home(rest) => path_of(cwd, &Named::Home(rest.clone())),
        Argument::Pattern(_) | Argument::Unknown(_) => None,
    };
    operands.iter().filter_map(path).collect()
}
