//! Which parts of a tree a role may write, as folders and files for Landlock.
//!
//! Owns the walk. Landlock opens a folder with everything below, now and later, so a folder is
//! opened where nothing lies that the role may not write, and otherwise what of it may be written
//! is opened one by one. Where tests lie beside the source they are of, as files of one folder, it
//! is opened to whoever writes one of both: without new files there neither could do its work, and
//! the other doors tell them apart. Invariant: no folder is opened because of what lies beside it
//! or above it.

use std::collections::BTreeSet;
use std::fs::{self, DirEntry};
use std::path::{Path, PathBuf};

use baton_core::resource::Resource;
use baton_core::roles::Kind;
use baton_core::roles::writing::Writes;

use super::Error;
use crate::failure::Failure;
use crate::git::Git;
use crate::place::Place;

/// A tree with more files is not told apart.
pub(super) const FILES_MAX: usize = 200_000;
/// How long the names of everything that is opened may be together: they are told in one argument
/// of a command, for which Linux has 128 KiB.
const NAMES_BYTES_MAX: usize = 96 * 1024;
/// Where a role that writes no source makes its own.
const OWN_FOLDERS: [&str; 2] = ["tests", "docs"];
/// What builds and tests write beside the source, where git ignores it.
const BUILD_FOLDERS: [&str; 9] = [
    "target",
    "build",
    "dist",
    "out",
    "coverage",
    ".cache",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
];

/// What of a tree is opened.
#[derive(Debug, Default)]
pub(super) struct Parts {
    /// Folders first, those near the root before those below.
    pub(super) opened: Vec<PathBuf>,
    /// So many more could not be named.
    pub(super) left_out: usize,
    /// All of it.
    pub(super) whole: bool,
    /// Something is there that the role may not write; otherwise only git's folder stays closed.
    pub(super) refused: bool,
    /// Folders that were made for it, since it could not make them.
    pub(super) made: Vec<PathBuf>,
}

pub(super) fn of(place: &Place, writes: &Writes, closed: &[PathBuf]) -> Result<Parts, Failure> {
    let git = match &place.git {
        Some(_) => Some(Git::in_tree(&place.root)?),
        None => None,
    };
    let ignored = match &git {
        Some(git) => git.all_ignored()?.into_iter().collect(),
        None => BTreeSet::new(),
    };
    let mut walk = Walk { writes, closed, ignored, files: 0, refused: false };
    let found = walk.folder(&place.root, "")?;
    if found.whole {
        let opened = vec![place.root.clone()];
        return Ok(Parts { opened, whole: true, ..Parts::default() });
    }
    let mut opened = found.parts;
    let made = make_missing(place, writes, git.as_ref())?;
    opened.extend(made.iter().cloned());
    opened.sort_by_cached_key(|path| (!path.is_dir(), path.components().count(), path.clone()));
    let mut bytes = 0;
    let all = opened.len();
    opened.retain(|path| {
        bytes += path.as_os_str().len();
        bytes <= NAMES_BYTES_MAX
    });
    let refused = walk.refused;
    Ok(Parts { left_out: all - opened.len(), opened, whole: false, refused, made })
}

/// Makes what the command will look for and could not make: nothing new is made beside what is
/// opened one by one. An empty folder is nothing to git.
fn make_missing(
    place: &Place,
    writes: &Writes,
    git: Option<&Git>,
) -> Result<Vec<PathBuf>, Failure> {
    let mut names: Vec<String> = Vec::new();
    if !may(writes, "file") {
        let own = OWN_FOLDERS.iter().filter(|name| may(writes, &format!("{name}/file")));
        names.extend(own.map(|name| (*name).to_owned()));
    }
    if let Some(git) = git.filter(|_| writes.has_the_rest()) {
        let inside = BUILD_FOLDERS.map(|name| format!("{name}/file"));
        let ignored = git.would_ignore(&inside)?;
        names
            .extend(ignored.iter().filter_map(|file| Some(file.strip_suffix("/file")?.to_owned())));
    }
    let missing = names.iter().map(|name| place.root.join(name));
    let missing = missing.filter(|path| fs::symlink_metadata(path).is_err());
    // Where it cannot be made, the command goes without, as it would have.
    Ok(missing.filter(|path| fs::create_dir(path).is_ok()).collect())
}

fn may(writes: &Writes, path: &str) -> bool {
    Resource::literal(path).is_ok_and(|path| writes.may(&path))
}

/// What of one folder may be written.
#[derive(Default)]
struct Found {
    /// The folder itself may be opened.
    whole: bool,
    /// Otherwise these.
    parts: Vec<PathBuf>,
}

/// What lies directly in one folder.
#[derive(Default)]
struct Files {
    /// Something is there, if only a folder.
    any: bool,
    may: BTreeSet<Option<Kind>>,
    may_not: BTreeSet<Option<Kind>>,
}

impl Files {
    /// Nothing is among them that closes the folder.
    fn are_open(&self) -> bool {
        let beside = |own: Kind, other: Kind| {
            self.may.contains(&Some(own)) && self.may_not.contains(&Some(other))
        };
        self.may_not.is_empty()
            || beside(Kind::Tests, Kind::Source)
            || beside(Kind::Source, Kind::Tests)
    }
}

struct Walk<'a> {
    writes: &'a Writes,
    closed: &'a [PathBuf],
    /// Files and folders that git ignores: they are of no kind.
    ignored: BTreeSet<String>,
    files: usize,
    /// Something is there that the role may not write.
    refused: bool,
}

impl Walk<'_> {
    /// `name` is the folder's path in the tree.
    fn folder(&mut self, folder: &Path, name: &str) -> Result<Found, Failure> {
        let mut found = Found { whole: true, parts: Vec::new() };
        let mut files = Files::default();
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let own = entry.file_name();
            let path = match name {
                "" => own.to_string_lossy().into_owned(),
                above => format!("{above}/{}", own.to_string_lossy()),
            };
            // Where a linked tree's git folder is; that of a repository is among the closed.
            if own == ".git" && !self.closed.contains(&entry.path()) {
                continue;
            }
            self.entry(&entry, &path, &mut files, &mut found)?;
        }
        let open = match files.any {
            true => files.are_open(),
            // Nothing is there yet: what a plain file in it would be.
            false => may(self.writes, format!("{name}/file").trim_start_matches('/')),
        };
        found.whole &= open;
        self.refused |= !open || !files.may_not.is_empty();
        Ok(found)
    }

    fn entry(
        &mut self,
        entry: &DirEntry,
        path: &str,
        files: &mut Files,
        found: &mut Found,
    ) -> Result<(), Failure> {
        let full = entry.path();
        // What a link means may lie anywhere, and the command is told of its folders as text.
        let kind = entry.file_type().ok().filter(|kind| !kind.is_symlink());
        let kind = kind.filter(|_| full.to_str().is_some());
        if self.closed.contains(&full) {
            found.whole = false;
        } else if self.ignored.contains(path) {
            found.whole &= !self.closed.iter().any(|closed| closed.starts_with(&full));
            if self.writes.has_the_rest() && kind.is_some() {
                super::folders::open(&full, self.closed, &mut found.parts);
            }
        } else if kind.is_some_and(|kind| kind.is_dir()) {
            files.any = true;
            let below = self.folder(&full, path)?;
            found.whole &= below.whole;
            match below.whole {
                true => found.parts.push(full),
                false => found.parts.extend(below.parts),
            }
        } else {
            self.files += 1;
            if self.files > FILES_MAX {
                return Err(Error::TooManyFiles.into());
            }
            files.any = true;
            let Ok(resource) = Resource::literal(path) else {
                found.whole = false;
                return Ok(());
            };
            let is = self.writes.kind_of(&resource);
            match self.writes.may(&resource) {
                true => {
                    files.may.insert(is);
                    found.parts.extend(kind.map(|_| full));
                }
                false => {
                    files.may_not.insert(is);
                }
            }
        }
        Ok(())
    }
}
