//! What a typed word means: which file, folder, pattern or name.
//!
//! Owns the step from command-line words and hook paths to resources of the rules. A word that
//! names something that exists is that, letter by letter; only then is it read as a pattern.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use baton_core::refusal::Refusal;
use baton_core::resource::Resource;

use crate::failure::Failure;
use crate::place::Place;
use crate::place::identity::{Kind, Located, resolve};

/// A resource, and the root of the tree it lies in, which need not be the acting one.
type Lying = (PathBuf, Resource);

/// What a word means: resources of the acting tree, and other trees that it is about too.
#[derive(Debug, Default)]
pub(crate) struct Meant {
    pub(crate) here: Vec<Resource>,
    pub(crate) elsewhere: Vec<PathBuf>,
}

impl Meant {
    fn of(place: &Place, lying: Vec<Lying>) -> Self {
        let mut meant = Self::default();
        for (root, resource) in lying {
            if root == place.root {
                meant.here.push(resource);
            } else if !meant.elsewhere.contains(&root) {
                meant.elsewhere.push(root);
            }
        }
        meant
    }

    /// Other trees are those of both.
    pub(crate) fn add(&mut self, other: Self) {
        self.here.extend(other.here);
        for root in other.elsewhere {
            if !self.elsewhere.contains(&root) {
                self.elsewhere.push(root);
            }
        }
    }
}

/// Resources named by words typed in `cwd`, whatever trees they lie in.
pub fn named(place: &Place, cwd: &Path, words: &[String]) -> Result<Vec<Resource>, Failure> {
    let mut resources = Vec::with_capacity(words.len());
    for word in words {
        resources.extend(one(place, cwd, word)?.into_iter().map(|(_, resource)| resource));
    }
    Ok(resources)
}

/// As `named`, and the root of the one other tree that all of them lie in, if there is one.
pub(crate) fn named_apart(
    place: &Place,
    cwd: &Path,
    words: &[String],
) -> Result<(Vec<Resource>, Option<PathBuf>), Failure> {
    let mut lying = Vec::with_capacity(words.len());
    for word in words {
        lying.extend(one(place, cwd, word)?);
    }
    let first = lying.first().map(|(root, _)| root.clone()).filter(|root| *root != place.root);
    let apart = first.filter(|first| lying.iter().all(|(root, _)| root == first));
    Ok((lying.into_iter().map(|(_, resource)| resource).collect(), apart))
}

/// What one word means, tree by tree.
pub(crate) fn meant(place: &Place, cwd: &Path, word: &str) -> Result<Meant, Failure> {
    Ok(Meant::of(place, one(place, cwd, word)?))
}

/// What a path means, tree by tree; nothing where it is none of ours.
pub(crate) fn meant_path(place: &Place, cwd: &Path, path: &str) -> Meant {
    let lying = lying(place, cwd, path.as_ref());
    lying.map(|lying| Meant::of(place, lying)).unwrap_or_default()
}

fn one(place: &Place, cwd: &Path, word: &str) -> Result<Vec<Lying>, Failure> {
    if let Some(path) = word.strip_prefix("path:") {
        return lying(place, cwd, OsStr::new(path));
    }
    if let Some(pattern) = word.strip_prefix("glob:") {
        return glob(place, cwd, pattern).map(|lying| vec![lying]);
    }
    let special = word.starts_with('@') || word.contains(['*', '?', '[', ']', '{', '}', '\\']);
    if special && !exists(cwd, word) {
        return match word.starts_with('@') {
            true => parsed(word, word).map(|resource| vec![(place.root.clone(), resource)]),
            false => glob(place, cwd, word).map(|lying| vec![lying]),
        };
    }
    lying(place, cwd, OsStr::new(word))
}

fn exists(cwd: &Path, word: &str) -> bool {
    cwd.join(word).symlink_metadata().is_ok()
}

/// A path taken as it is: from git, from a hook, or forced with `path:`.
pub fn literal(place: &Place, cwd: &Path, path: &OsStr) -> Result<Vec<Resource>, Failure> {
    Ok(lying(place, cwd, path)?.into_iter().map(|(_, resource)| resource).collect())
}

fn lying(place: &Place, cwd: &Path, path: &OsStr) -> Result<Vec<Lying>, Failure> {
    let located = resolve(place, cwd, path)?;
    let mut lying = Vec::with_capacity(located.len());
    for one in located {
        let resource = resource_of(&one)?;
        lying.push((one.tree_root, resource));
    }
    Ok(lying)
}

fn resource_of(located: &Located) -> Result<Resource, Failure> {
    let folder = located.kind == Kind::Folder || located.path.is_empty();
    let slash = if folder { "/" } else { "" };
    let text = if located.path.is_empty() { "." } else { &located.path };
    Resource::literal(&format!("{text}{slash}"))
        .map_err(|source| Refusal::BadResource { text: located.path.clone(), source }.into())
}

/// A pattern means what it would mean to the shell in `cwd`, whatever the workspace's root is.
fn glob(place: &Place, cwd: &Path, pattern: &str) -> Result<Lying, Failure> {
    // What stands before the first special letter is a folder like any other.
    let plain = |segment: &&str| !segment.contains(['*', '?', '[', ']', '{', '}', '\\']);
    let last = pattern.rfind('/').map_or(0, |at| at + 1);
    let folders = pattern[..last].split_inclusive('/').take_while(plain).map(str::len).sum();
    let (folder, pattern) = pattern.split_at(folders);
    let (root, here) = relative(place, &cwd.join(folder))?;
    let escaped: String = here
        .chars()
        .flat_map(|c| {
            let special = "*?[]{}\\,!".contains(c);
            special.then_some('\\').into_iter().chain([c])
        })
        .collect();
    let full = match escaped.as_str() {
        "" => pattern.to_owned(),
        folder => format!("{folder}/{pattern}"),
    };
    parsed(&format!("glob:{full}"), pattern).map(|resource| (root, resource))
}

fn parsed(text: &str, typed: &str) -> Result<Resource, Failure> {
    Resource::parse(text)
        .map_err(|source| Refusal::BadResource { text: typed.to_owned(), source }.into())
}

/// The tree of a folder, and where it lies in that; empty at the root.
fn relative(place: &Place, folder: &Path) -> Result<(PathBuf, String), Failure> {
    let located = resolve(place, folder, OsStr::new("."))?.into_iter().next();
    let here = located.map(|located| (located.tree_root, located.path));
    Ok(here.unwrap_or_else(|| (place.root.clone(), String::new())))
}

/// The files a resource may stand for on disk, as paths below `root`: only literals and folders
/// have one.
pub fn path_on_disk(root: &Path, resource: &Resource) -> Option<PathBuf> {
    match resource {
        Resource::Path(pattern) if pattern.kind() != baton_core::pattern::Kind::Glob => {
            Some(root.join(pattern.text()))
        }
        _ => None,
    }
}
