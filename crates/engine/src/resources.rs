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
use crate::place::identity::{self, Kind, Located, resolve};

/// Resources named by words typed in `cwd`.
pub fn named(place: &Place, cwd: &Path, words: &[String]) -> Result<Vec<Resource>, Failure> {
    let mut resources = Vec::with_capacity(words.len());
    for word in words {
        resources.extend(one(place, cwd, word)?);
    }
    Ok(resources)
}

fn one(place: &Place, cwd: &Path, word: &str) -> Result<Vec<Resource>, Failure> {
    if let Some(path) = word.strip_prefix("path:") {
        return literal(place, cwd, OsStr::new(path));
    }
    if let Some(pattern) = word.strip_prefix("glob:") {
        return glob(place, cwd, pattern).map(|resource| vec![resource]);
    }
    let special = word.starts_with('@') || word.contains(['*', '?', '[', ']', '{', '}', '\\']);
    if special && !exists(cwd, word) {
        return match word.starts_with('@') {
            true => parsed(word, word).map(|resource| vec![resource]),
            false => glob(place, cwd, word).map(|resource| vec![resource]),
        };
    }
    literal(place, cwd, OsStr::new(word))
}

fn exists(cwd: &Path, word: &str) -> bool {
    cwd.join(word).symlink_metadata().is_ok()
}

/// A path taken as it is: from git, from a hook, or forced with `path:`.
pub fn literal(place: &Place, cwd: &Path, path: &OsStr) -> Result<Vec<Resource>, Failure> {
    let located = resolve(place, cwd, path)?;
    located.iter().map(resource_of).collect()
}

fn resource_of(located: &Located) -> Result<Resource, Failure> {
    let folder = located.kind == Kind::Folder || located.path.is_empty();
    let slash = if folder { "/" } else { "" };
    let text = if located.path.is_empty() { "." } else { &located.path };
    Resource::literal(&format!("{text}{slash}"))
        .map_err(|source| Refusal::BadResource { text: located.path.clone(), source }.into())
}

/// A pattern means what it would mean to the shell in `cwd`, whatever the workspace's root is.
fn glob(place: &Place, cwd: &Path, pattern: &str) -> Result<Resource, Failure> {
    // What stands before the first special letter is a folder like any other.
    let plain = |segment: &&str| !segment.contains(['*', '?', '[', ']', '{', '}', '\\']);
    let last = pattern.rfind('/').map_or(0, |at| at + 1);
    let folders = pattern[..last].split_inclusive('/').take_while(plain).map(str::len).sum();
    let (folder, pattern) = pattern.split_at(folders);
    let here = relative(place, &cwd.join(folder))?;
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
    parsed(&format!("glob:{full}"), pattern)
}

fn parsed(text: &str, typed: &str) -> Result<Resource, Failure> {
    Resource::parse(text)
        .map_err(|source| Refusal::BadResource { text: typed.to_owned(), source }.into())
}

/// Where a folder lies in this tree; empty at the root.
fn relative(place: &Place, folder: &Path) -> Result<String, Failure> {
    let located = resolve(place, folder, OsStr::new("."))?.into_iter().next();
    match located.filter(|located| located.tree_root == place.root) {
        Some(located) => Ok(located.path),
        None => Err(identity::Error::Outside { given: folder.display().to_string() }.into()),
    }
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
