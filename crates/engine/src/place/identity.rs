//! Path identity: every spelling of a file is one resource.
//!
//! Owns the way from a spelling (relative, absolute, through links) to a tree and a path in it.
//! It refuses to know patterns: what comes in here is a literal. Case and Unicode form are left as
//! spelled, because the comparison key in core folds them on every platform.
//! Invariants: what it returns lies in the workspace (S10); two spellings that the system opens as
//! the same file give the same answer (S9); what cannot be looked at is an error, not a guess.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use super::{Place, STORE_IN_PLAIN, discovery};

/// Linux's own limit on a path, also applied to what is not there yet.
pub const PATH_BYTES_MAX: usize = 4096;
/// The limit of every file system in use on one name.
pub const NAME_BYTES_MAX: usize = 255;
/// Linux's own limit on links in one path.
pub const LINKS_MAX: usize = 40;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("a path cannot be empty")]
    Empty,
    #[error("{given:?} has a NUL character in it")]
    Nul { given: String },
    #[error("{given:?} is longer than any file system allows")]
    TooLong { given: String },
    #[error("{lossy:?} is not UTF-8")]
    NotUtf8 { lossy: String },
    #[error("{given:?} is outside the workspace")]
    Outside { given: String },
    #[error("{given:?} belongs to git or to Baton's store")]
    GitDir { given: String },
    #[error("{given:?} goes round in a circle of links")]
    Loop { given: String },
    #[error("cannot look at {}", path.display())]
    Unreadable {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("cannot tell whose {given:?} is")]
    Place {
        given: String,
        #[source]
        source: Box<super::Error>,
    },
}

/// A literal path in a tree of the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Located {
    /// The root of the tree it lies in, which need not be the acting tree.
    pub tree_root: PathBuf,
    /// Relative to the tree's root, with `/` between names; empty for the root itself.
    pub path: String,
    pub kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    File,
    /// An existing folder, or a missing path spelled with a trailing `/`.
    Folder,
    /// Nothing is there yet.
    Missing,
    /// A link itself. Its target is the next one in the list, unless it leads out of the workspace.
    Link {
        leads_outside: bool,
    },
}

/// What a spelling means when used in `cwd`: one path, or for a link the link and its target.
///
/// A link that leads outside is not an error, since the link itself can still be replaced or
/// removed, and that needs its claim; a path *through* such a link is outside.
pub fn resolve(place: &Place, cwd: &Path, given: &OsStr) -> Result<Vec<Located>, Error> {
    let lossy = || given.to_string_lossy().into_owned();
    if given.is_empty() {
        return Err(Error::Empty);
    }
    if given.as_bytes().contains(&0) {
        return Err(Error::Nul { given: lossy() });
    }
    if given.len() > PATH_BYTES_MAX {
        return Err(Error::TooLong { given: lossy() });
    }
    let full = cwd.join(given);
    let mut walk = Walk::new(place, given);
    let end = walk.follow(&full)?;
    let wants_folder = given.as_bytes().ends_with(b"/");
    let Some(link) = walk.last_link.take() else {
        return Ok(vec![walk.locate(end, wants_folder)?]);
    };
    let link = End { path: link, kind: Kind::File, existing: None };
    let link = inside(walk.locate(link, false))?;
    let target = inside(walk.locate(end, wants_folder))?;
    // A link that lies outside is no resource, but it opens its target all the same.
    let leads_outside = target.is_none();
    let link = link.map(|link| Located { kind: Kind::Link { leads_outside }, ..link });
    let found: Vec<Located> = link.into_iter().chain(target).collect();
    if found.is_empty() { Err(Error::Outside { given: lossy() }) } else { Ok(found) }
}

fn inside(found: Result<Located, Error>) -> Result<Option<Located>, Error> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(Error::Outside { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// One walk along a spelling, the way the kernel does it.
struct Walk<'a> {
    place: &'a Place,
    given: &'a OsStr,
    /// The final component as spelled, if it is a link: its path, with everything before resolved.
    last_link: Option<PathBuf>,
}

/// Where a walk ended: a path free of links, `.` and `..`.
struct End {
    path: PathBuf,
    kind: Kind,
    /// The deepest folder on the way that exists, if that is not simply the path's parent.
    existing: Option<PathBuf>,
}

impl<'a> Walk<'a> {
    fn new(place: &'a Place, given: &'a OsStr) -> Self {
        Self { place, given, last_link: None }
    }

    fn lossy(&self) -> String {
        self.given.to_string_lossy().into_owned()
    }

    /// Resolves link by link. Below the first missing name there is nothing to resolve, so `..`
    /// just takes a name away there; once it has taken the missing ones, looking goes on.
    fn follow(&mut self, full: &Path) -> Result<End, Error> {
        let (mut at, mut left) = self.start(full);
        let mut kind = Kind::Folder;
        let mut links = 0;
        // How many names at the end of `at` do not exist.
        let mut missing = 0_usize;
        while let Some(step) = left.pop_front() {
            match step {
                Step::Root => (at, missing, kind) = (PathBuf::from("/"), 0, Kind::Folder),
                Step::Up => {
                    at.pop();
                    missing = missing.saturating_sub(1);
                    kind = if missing == 0 { Kind::Folder } else { Kind::Missing };
                }
                Step::Name { name, last } => {
                    if name.len() > NAME_BYTES_MAX {
                        return Err(Error::TooLong { given: self.lossy() });
                    }
                    at.push(&name);
                    kind = if missing > 0 { Kind::Missing } else { self.look(&at)? };
                    if kind == Kind::Missing {
                        missing += 1;
                    } else if matches!(kind, Kind::Link { .. }) {
                        links += 1;
                        if links > LINKS_MAX {
                            return Err(Error::Loop { given: self.lossy() });
                        }
                        if last && self.last_link.is_none() {
                            self.last_link = Some(at.clone());
                        }
                        let target = self.read_link(&at)?;
                        at.pop();
                        prepend(&mut left, &target);
                        kind = Kind::Folder;
                    }
                }
            }
            if at.as_os_str().len() > PATH_BYTES_MAX {
                return Err(Error::TooLong { given: self.lossy() });
            }
        }
        let existing = at.ancestors().nth(missing.max(1)).filter(|_| missing > 1);
        let existing = existing.map(Path::to_path_buf);
        Ok(End { path: at, kind, existing })
    }

    /// The tree's root is canonical already, so a spelling that begins with it starts there.
    fn start(&self, full: &Path) -> (PathBuf, VecDeque<Step>) {
        let (at, rest) = match full.strip_prefix(&self.place.root) {
            Ok(rest) => (self.place.root.clone(), rest),
            Err(_) => (PathBuf::from("/"), full),
        };
        let mut left: VecDeque<Step> = steps(rest).collect();
        // `.`, `x/.` and `x/..` do not name the link that may be at x, but what it leads to.
        let mut trimmed = self.given.as_bytes();
        while let [start @ .., b'/'] = trimmed {
            trimmed = start;
        }
        let named =
            matches!(Path::new(self.given).components().next_back(), Some(Component::Normal(_)))
                && !trimmed.ends_with(b"/.");
        if let Some(Step::Name { last, .. }) = left.back_mut() {
            *last = named;
        }
        (at, left)
    }

    fn look(&self, path: &Path) -> Result<Kind, Error> {
        match fs::symlink_metadata(path) {
            Ok(metadata) if metadata.is_symlink() => Ok(Kind::Link { leads_outside: false }),
            Ok(metadata) if metadata.is_dir() => Ok(Kind::Folder),
            Ok(_) => Ok(Kind::File),
            Err(error) => match error.kind() {
                ErrorKind::NotFound | ErrorKind::NotADirectory => Ok(Kind::Missing),
                ErrorKind::InvalidFilename => Err(Error::TooLong { given: self.lossy() }),
                _ => Err(Error::Unreadable { path: path.to_path_buf(), source: error }),
            },
        }
    }

    fn read_link(&self, path: &Path) -> Result<PathBuf, Error> {
        fs::read_link(path).map_err(|source| Error::Unreadable { path: path.to_path_buf(), source })
    }

    /// From a resolved path to its tree.
    fn locate(&self, end: End, wants_folder: bool) -> Result<Located, Error> {
        let End { path, kind, existing } = end;
        let kind = if wants_folder && kind == Kind::Missing { Kind::Folder } else { kind };
        let tree_root = match path.strip_prefix(&self.place.root) {
            Ok(inside) => self.nearest_tree(inside)?,
            Err(_) => {
                let folder = match (&existing, kind) {
                    (Some(folder), _) => folder,
                    (None, Kind::Folder) if !wants_folder => &path,
                    (None, _) => path.parent().unwrap_or(&path),
                };
                return self.locate_elsewhere(&path, folder, kind);
            }
        };
        self.located(tree_root, &path, kind)
    }

    fn located(&self, tree_root: PathBuf, path: &Path, kind: Kind) -> Result<Located, Error> {
        let git_dir = || Error::GitDir { given: self.lossy() };
        let dirs = self.place.git.iter().flat_map(|git| [&git.git_dir, &git.common_dir]);
        if dirs.chain([&self.place.store]).any(|reserved| path.starts_with(reserved)) {
            return Err(git_dir());
        }
        let outside = |_| Error::Outside { given: self.lossy() };
        let relative = path.strip_prefix(&tree_root).map_err(outside)?;
        let text = relative.to_str();
        let text =
            text.ok_or_else(|| Error::NotUtf8 { lossy: relative.to_string_lossy().into() })?;
        if is_reserved(text) {
            return Err(git_dir());
        }
        Ok(Located { tree_root, path: text.to_owned(), kind })
    }

    /// Between the root and the path there may be a linked worktree of the same repository; the
    /// innermost one owns the path. Nested repositories and submodules do not.
    fn nearest_tree(&self, inside: &Path) -> Result<PathBuf, Error> {
        let root = &self.place.root;
        let Some(git) = &self.place.git else { return Ok(root.clone()) };
        for folder in inside.ancestors().filter(|folder| !folder.as_os_str().is_empty()) {
            // An unreadable or broken `.git` on the way makes no tree.
            let dirs = discovery::git_dirs(&root.join(folder)).ok().flatten();
            if dirs.is_some_and(|dirs| dirs.common_dir == git.common_dir) {
                return Ok(root.join(folder));
            }
        }
        Ok(root.clone())
    }

    /// A path that is not below the acting tree's root as spelled: another tree of the workspace,
    /// or another name of the same one (a bind mount, another case of the root), or outside.
    fn locate_elsewhere(&self, path: &Path, folder: &Path, kind: Kind) -> Result<Located, Error> {
        let outside = || Error::Outside { given: self.lossy() };
        let reserved = self.place.git.iter().flat_map(|git| [&git.git_dir, &git.common_dir]);
        if reserved.chain([&self.place.store]).any(|reserved| path.starts_with(reserved)) {
            return Err(Error::GitDir { given: self.lossy() });
        }
        let there = match Place::find(folder) {
            Ok(there) => there,
            Err(super::Error::NotInitialised { .. } | super::Error::BareRepository { .. }) => {
                return Err(outside());
            }
            Err(source) => {
                return Err(Error::Place { given: self.lossy(), source: Box::new(source) });
            }
        };
        if there.store != self.place.store && !same_folder(&there.store, &self.place.store) {
            return Err(outside());
        }
        // `Place::find` may spell the folder otherwise than the walk (its canonical case).
        let spelled = fs::canonicalize(folder)
            .map_err(|source| Error::Unreadable { path: folder.to_path_buf(), source })?;
        let tail = path.strip_prefix(folder).unwrap_or(Path::new(""));
        let path = if tail.as_os_str().is_empty() { spelled } else { spelled.join(tail) };
        let mut located = self.located(there.root, &path, kind)?;
        if same_folder(&located.tree_root, &self.place.root) {
            located.tree_root.clone_from(&self.place.root);
        }
        Ok(located)
    }
}

fn same_folder(one: &Path, other: &Path) -> bool {
    match (fs::metadata(one), fs::metadata(other)) {
        (Ok(one), Ok(other)) => one.dev() == other.dev() && one.ino() == other.ino(),
        _ => false,
    }
}

enum Step {
    Root,
    Up,
    Name { name: OsString, last: bool },
}

fn steps(path: &Path) -> impl DoubleEndedIterator<Item = Step> {
    path.components().filter_map(|component| match component {
        Component::RootDir => Some(Step::Root),
        Component::ParentDir => Some(Step::Up),
        Component::Normal(name) => {
            Some(Step::Name { name: OsString::from_vec(name.as_bytes().to_vec()), last: false })
        }
        Component::CurDir | Component::Prefix(_) => None,
    })
}

fn prepend(left: &mut VecDeque<Step>, target: &Path) {
    for step in steps(target).rev() {
        left.push_front(step);
    }
}

/// Whether a path in a tree is git's or the store's, in any spelling that some file system would
/// open as theirs. Git itself refuses to track every one of these names.
fn is_reserved(path: &str) -> bool {
    if path.split('/').any(is_dot_git) {
        return true;
    }
    let store = STORE_IN_PLAIN.len();
    path.get(..store).is_some_and(|start| start.eq_ignore_ascii_case(STORE_IN_PLAIN))
        && path[store..].chars().next().is_none_or(|next| next == '/')
}

fn is_dot_git(name: &str) -> bool {
    // The usual case first: no allocation for a name that has nothing of it.
    if !name.bytes().any(|byte| byte.eq_ignore_ascii_case(&b'g')) {
        return false;
    }
    // Windows opens `.git::$INDEX_ALLOCATION` and `.git . ` as `.git`.
    let name = name.split(':').next().unwrap_or_default().trim_end_matches([' ', '.']);
    let plain = |letter: &char| !is_ignored_by_hfs(*letter);
    let mut letters = name.chars().filter(plain).map(|letter| letter.to_ascii_lowercase());
    letters.clone().eq(".git".chars()) || letters.by_ref().eq("git~1".chars())
}

/// Code points that HFS+ drops when it compares names.
fn is_ignored_by_hfs(letter: char) -> bool {
    matches!(letter, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}'
        | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_some_system_opens_as_dot_git_are_reserved() {
        let reserved = [
            ".git",
            ".GIT",
            "a/.Git/config",
            ".g\u{200c}it",
            ".git\u{feff}/x",
            ".git ",
            ".git...",
            "git~1",
            "GIT~1/hooks",
            ".git::$INDEX_ALLOCATION",
            ".baton/store",
            ".Baton/STORE/x",
        ];
        for path in reserved {
            assert!(is_reserved(path), "{path:?}");
        }
        let free = [
            "",
            ".gitignore",
            ".github/x",
            "git",
            "a.git",
            "git~2",
            ".baton/storey",
            ".baton",
            "x/.baton/store",
            "é.baton/store",
            ".baton/stor\u{e9}",
        ];
        for path in free {
            assert!(!is_reserved(path), "{path:?}");
        }
    }
}
