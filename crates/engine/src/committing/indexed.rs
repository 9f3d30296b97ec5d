//! What the tree's own index has at the named paths, as a status told it.
//!
//! Owns the proof that it is still so: a print of the index file, taken before the status and
//! compared under git's lock. Git never writes an index in place, it puts a new file there.
//! Invariant: where anything is not known for certain, git is asked again.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::git::{Blob, Changed, Entry};

/// An index ends with a hash of all that is before it.
const HASH_BYTES_MAX: u64 = 32;

/// Which file it is, when it was changed last, and the hash at its end.
#[derive(Debug, PartialEq, Eq)]
struct Print {
    file: [u64; 3],
    times: [i64; 4],
    hash: Vec<u8>,
}

#[derive(Debug)]
pub(super) struct Indexed {
    index: PathBuf,
    /// Nothing when it could not be read; nothing within when there is no index yet.
    print: Option<Option<Print>>,
    entries: BTreeMap<String, Option<Blob>>,
}

impl Indexed {
    /// Must be made before the status is asked for.
    pub(super) fn begin(git_dir: &Path) -> Self {
        let index = git_dir.join("index");
        Self { print: print_of(&index).ok(), index, entries: BTreeMap::new() }
    }

    pub(super) fn learn(&mut self, changed: &[Changed]) {
        for one in changed {
            if let Some(known) = &one.indexed {
                let blob = known.clone().map(|(mode, oid)| Blob { mode, oid });
                self.entries.insert(one.path.clone(), blob);
            }
        }
    }

    /// What the index has at these paths now, if that is known. Git's lock must be ours.
    pub(super) fn still(&self, paths: &[String]) -> Option<Vec<Entry>> {
        let before = self.print.as_ref()?;
        if print_of(&self.index).ok()? != *before {
            return None;
        }
        let entry = |path: &String| {
            let blob = self.entries.get(path)?.clone();
            Some(Entry { path: path.clone(), blob })
        };
        paths.iter().map(entry).collect()
    }
}

fn print_of(index: &Path) -> io::Result<Option<Print>> {
    let file = match File::open(index) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let data = file.metadata()?;
    let bytes = data.len().min(HASH_BYTES_MAX);
    let mut hash = vec![0; usize::try_from(bytes).unwrap_or_default()];
    file.read_exact_at(&mut hash, data.len() - bytes)?;
    let times = [data.mtime(), data.mtime_nsec(), data.ctime(), data.ctime_nsec()];
    Ok(Some(Print { file: [data.dev(), data.ino(), data.len()], times, hash }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_told_of_another_index_is_not_believed() {
        let folder = tempfile::tempdir().unwrap();
        let index = folder.path().join("index");
        let paths = ["a".to_owned()];
        let told = |staged: Option<Option<(String, crate::git::Oid)>>| {
            let mut changed = Changed::unstaged("a".to_owned());
            changed.indexed = staged;
            changed
        };
        let put = |text: &str| {
            let new = folder.path().join("new");
            std::fs::write(&new, text).unwrap();
            std::fs::rename(&new, &index).unwrap();
        };
        // Before the first `git add` there is none.
        let mut known = Indexed::begin(folder.path());
        known.learn(&[told(Some(None))]);
        assert_eq!(known.still(&paths), Some(vec![Entry { path: "a".to_owned(), blob: None }]));
        put("one");
        assert_eq!(known.still(&paths), None, "an index came");
        let mut known = Indexed::begin(folder.path());
        assert_eq!(known.still(&paths), None, "nothing was told");
        known.learn(&[told(None)]);
        assert_eq!(known.still(&paths), None, "the status did not tell");
        known.learn(&[told(Some(None))]);
        assert!(known.still(&paths).is_some());
        put("one");
        assert_eq!(known.still(&paths), None, "another file, though of the same content");
    }
}
