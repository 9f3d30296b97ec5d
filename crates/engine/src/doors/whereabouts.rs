//! Where a shell line is about: which of its folders lie in which tree of the workspace.
//!
//! Owns the step from a place in a line to a path and a tree. What cannot be told is taken for the
//! tree the line starts in: rather one danger too many is seen there than one too few.

use std::path::{Component, Path, PathBuf};

use baton_core::pattern::Pattern;
use baton_core::shell::danger::{Danger, Verb};
use baton_core::shell::{self, Command, Deeds, How, Place as Named, TEMPORARY, Write};

use crate::place::Place;
use crate::place::identity::{self, resolve};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Whereabouts {
    Here,
    /// In the tree with this root.
    Tree(PathBuf),
    /// In no tree of this workspace.
    Outside,
}

/// Where a place of a line lies, for a line that starts in `cwd`.
pub(super) fn of(place: &Place, cwd: &Path, named: &Named) -> Whereabouts {
    let Some(path) = path_of(place, cwd, named) else { return Whereabouts::Here };
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
pub(super) fn path_of(place: &Place, cwd: &Path, named: &Named) -> Option<PathBuf> {
    match named {
        Named::Root(path) => Some(place.root.join(path)),
        other => path_anywhere(cwd, other),
    }
}

/// The same, where no tree is known yet.
fn path_anywhere(cwd: &Path, named: &Named) -> Option<PathBuf> {
    match named {
        Named::Path(text) => Some(match text.strip_prefix(TEMPORARY) {
            Some(rest) => std::env::temp_dir().join(format!("tmp.XXXXXXXXXX{rest}")),
            None => cwd.join(text),
        }),
        Named::Home(rest) => home().map(|home| home.join(rest)),
        Named::Root(_) | Named::Pattern(_) | Named::Unknown => None,
    }
}

/// What `~` is in a shell.
pub(super) fn home() -> Option<PathBuf> {
    std::env::home_dir().filter(|home| home.is_absolute())
}

/// Paths that a line which starts in `cwd` is about, for whoever stands outside all workspaces.
pub fn places(cwd: &Path, line: &str) -> Vec<PathBuf> {
    shell::places(line).iter().filter_map(|named| path_anywhere(cwd, named)).collect()
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
    for named in named.into_iter().filter(elsewhere) {
        if let Whereabouts::Tree(root) = of(place, cwd, &named.parted().0)
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

/// Roots of the other trees that a line of which nobody knows what it writes may get to: by a way
/// that leads there in its words or in the scripts it runs, or by asking git for all of them.
pub(super) fn reached(place: &Place, cwd: &Path, line: &str, deeds: &Deeds) -> Vec<PathBuf> {
    let mut roots = place.tree_roots();
    roots.retain(|root| *root != place.root && root.is_dir());
    if roots.is_empty() {
        return roots;
    }
    let scripts = deeds.commands.iter().flat_map(Command::words).filter_map(|word| {
        let file = cwd.join(&word);
        let small = |found: std::fs::Metadata| found.is_file() && found.len() <= SCRIPT_BYTES_MAX;
        let is_read = word.contains(['/', '.']) && std::fs::metadata(&file).is_ok_and(small);
        is_read.then(|| std::fs::read_to_string(&file).ok())?
    });
    let texts: Vec<String> = scripts.take(SCRIPTS_MAX).chain([line.to_owned()]).collect();
    let ways: Vec<PathBuf> = texts.iter().flat_map(|text| ways(cwd, text)).collect();
    let asks_git = texts.iter().any(|text| text.contains("worktree"));
    let leads = |root: &PathBuf| ways.iter().any(|way| root.starts_with(way));
    roots.retain(|root| asks_git || leads(root) || ways.iter().any(|way| way.starts_with(root)));
    roots
}

/// Scripts that are read for one line, and their size.
const SCRIPTS_MAX: usize = 4;
const SCRIPT_BYTES_MAX: u64 = 64 * 1024;

/// The folders that words lead to, up to where a pattern or a variable begins.
fn ways(cwd: &Path, text: &str) -> Vec<PathBuf> {
    let is_part = |letter: char| letter.is_alphanumeric() || "/._-~+@%*?[]{}$".contains(letter);
    let words = text.split(|letter| !is_part(letter)).filter(|word| {
        word.contains('/') || matches!(*word, "." | "..") || word.contains(['*', '?'])
    });
    let mut ways: Vec<PathBuf> = words
        .map(|word| {
            let plain = word.find(['*', '?', '[', '{', '$', '~']).map_or(word, |at| &word[..at]);
            let mut way = PathBuf::new();
            for part in cwd.join(plain).components() {
                match part {
                    Component::ParentDir => drop(way.pop()),
                    Component::CurDir => {}
                    other => way.push(other),
                }
            }
            way
        })
        .collect();
    ways.sort_unstable();
    ways.dedup();
    ways
}

/// Working trees, and git's own folder, that go with what the line removes or moves away.
pub(super) fn removals(place: &Place, cwd: &Path, deeds: &Deeds) -> Vec<Danger> {
    let away = |write: &&Write| {
        matches!(write.how, How::Delete | How::MoveFrom) && (write.below || write.part)
    };
    let mut gone: Vec<(&Named, bool)> =
        deeds.writes.iter().filter(away).map(|write| (&write.place, write.part)).collect();
    gone.sort_unstable();
    gone.dedup();
    let roots = if gone.is_empty() { Vec::new() } else { place.tree_roots() };
    let mut dangers = Vec::new();
    for (away, part) in gone {
        let Some(gone) = Gone::of(place, cwd, away) else { continue };
        let named = Vec::new();
        let mut kept = place.git.iter().map(|dirs| &dirs.common_dir).chain([&place.store]);
        if !part && kept.any(|kept| gone.takes(kept)) {
            let (argv, folder) = (vec![gone.shown.clone()], Named::Unknown);
            dangers.push(Danger { verb: Verb::DeletesBaton, argv, folder, named });
            continue;
        }
        // Of what is only thinned out, one's own tree stays, and is compared afterwards.
        let goes = |root: &PathBuf| gone.takes(root) && (!part || *root != place.root);
        for root in roots.iter().filter(|root| goes(root)) {
            let (argv, folder) = (vec![gone.shown.clone()], root.display().to_string());
            let (verb, folder) = (Verb::RemovesTree, Named::Path(folder));
            dangers.push(Danger { verb, argv, folder, named: named.clone() });
        }
    }
    dangers
}

/// What a line takes away with all that is in it.
struct Gone {
    /// As it is told.
    shown: String,
    /// The folder itself, or the one below which the pattern matches.
    folder: PathBuf,
    pattern: Option<String>,
}

impl Gone {
    /// Nothing where there is nothing to take away.
    fn of(place: &Place, cwd: &Path, named: &Named) -> Option<Self> {
        let Named::Pattern(text) = named else {
            let path = path_of(place, cwd, named)?;
            // Of a link only the link goes.
            let is_link = path.symlink_metadata().is_ok_and(|found| found.is_symlink());
            let folder = path.canonicalize().ok().filter(|_| !is_link)?;
            return Some(Self { shown: path.display().to_string(), folder, pattern: None });
        };
        let (folder, pattern) = named.parted();
        let folder = path_of(place, cwd, &folder)?.canonicalize().ok()?;
        let pattern = pattern.trim_end_matches('/').to_owned();
        Some(Self { shown: text.clone(), folder, pattern: Some(pattern) })
    }

    fn takes(&self, path: &Path) -> bool {
        let Some(text) = &self.pattern else { return path.starts_with(&self.folder) };
        let Some(below) = path.strip_prefix(&self.folder).ok().and_then(Path::to_str) else {
            return false;
        };
        let Ok(pattern) = Pattern::glob(text) else {
            // Whatever it means, it may match what is not hidden.
            return !below.is_empty() && !below.starts_with('.');
        };
        let names: Vec<&str> = below.split('/').collect();
        (1..=names.len()).map(|count| &names[..count]).any(|names| {
            let seen = text.contains("**") || !is_hidden(text, names);
            seen && pattern.matches(&names.join("/"))
        })
    }
}

/// To a shell, what begins with a dot is matched by a dot alone; programs that search are asked
/// with `**`, and match it.
fn is_hidden(pattern: &str, names: &[&str]) -> bool {
    let mut pairs = pattern.split('/').zip(names);
    pairs.any(|(pattern, name)| name.starts_with('.') && pattern.starts_with(['*', '?']))
}
