//! Putting Markdown files into an export's folder, and taking away those that are stale.
//!
//! Owns the folders `tasks/` and `handoffs/`. Invariant: in them a file is replaced or removed only
//! when its own text says that Baton wrote it for this workspace, so whatever people keep beside
//! them stays. A file is replaced in one step, and only when it differs.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::{Error, io, pages, replace};
use crate::failure::Failure;
use crate::handing::markdown;

/// A larger file than any of ours is somebody else's.
const OWN_BYTES_MAX: u64 = 64 * 1024 * 1024;

pub(super) struct Writer<'a> {
    folder: &'a Path,
    workspace: &'a str,
    written: BTreeSet<String>,
    changed: Vec<String>,
}

impl<'a> Writer<'a> {
    pub(super) fn new(folder: &'a Path, workspace: &'a str) -> Self {
        Self { folder, workspace, written: BTreeSet::new(), changed: Vec::new() }
    }

    pub(super) fn put(&mut self, name: &str, text: &str) -> Result<(), Failure> {
        self.written.insert(name.to_owned());
        let path = self.folder.join(name);
        let there = self.read(&path)?;
        if there.as_deref() == Some(text.as_bytes()) {
            return Ok(());
        }
        if let Some((below, _)) = name.split_once('/') {
            if there.is_some_and(|there| !self.is_ours(below, &there)) {
                return Err(Error::NotOurs { path }.into());
            }
            self.make(below)?;
        }
        replace(self.folder, name, |out| Ok(out.write_all(text.as_bytes())?))?;
        self.changed.push(name.to_owned());
        Ok(())
    }

    /// The names of the changed files, and of those that were taken away.
    pub(super) fn finish(self) -> Result<(Vec<String>, Vec<String>), Failure> {
        let mut removed = Vec::new();
        for below in [pages::TASKS, pages::HANDOFFS] {
            let folder = self.folder.join(below);
            if !is_folder(&folder) {
                continue;
            }
            let entries = std::fs::read_dir(&folder).map_err(io("look at", &folder))?;
            for entry in entries.flatten() {
                let name = format!("{below}/{}", entry.file_name().to_string_lossy());
                if self.written.contains(&name) || !is_our_name(&name) {
                    continue;
                }
                let there = self.read(&entry.path())?;
                if there.is_some_and(|there| self.is_ours(below, &there)) {
                    std::fs::remove_file(entry.path()).map_err(io("remove", &entry.path()))?;
                    removed.push(name);
                }
            }
        }
        removed.sort_unstable();
        Ok((self.changed, removed))
    }

    fn make(&self, below: &str) -> Result<(), Failure> {
        let folder = self.folder.join(below);
        match std::fs::create_dir(&folder) {
            Ok(()) => Ok(()),
            // A link could lead anywhere.
            Err(error) if error.kind() == ErrorKind::AlreadyExists && is_folder(&folder) => Ok(()),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                Err(Error::NotOurs { path: folder }.into())
            }
            Err(error) => Err(io("make", &folder)(error)),
        }
    }

    /// What is there; something that is no plain file counts as a foreign one.
    fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, Failure> {
        let data = match path.symlink_metadata() {
            Ok(data) => data,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            // A file stands where its folder would be.
            Err(error) if error.kind() == ErrorKind::NotADirectory => {
                let path = path.parent().map_or_else(PathBuf::new, Path::to_owned);
                return Err(Error::NotOurs { path }.into());
            }
            Err(error) => return Err(io("look at", path)(error)),
        };
        if !data.is_file() || data.len() > OWN_BYTES_MAX {
            return Ok(Some(Vec::new()));
        }
        std::fs::read(path).map(Some).map_err(io("read", path))
    }

    fn is_ours(&self, below: &str, text: &[u8]) -> bool {
        let text = String::from_utf8_lossy(text);
        match below {
            pages::TASKS => text.starts_with(&pages::mark(self.workspace)),
            _ => text.ends_with(&markdown::mark(self.workspace)),
        }
    }
}

fn is_folder(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|data| data.is_dir())
}

/// `tasks/t3.md`, `handoffs/t3-h1.md`.
fn is_our_name(name: &str) -> bool {
    let stem = name.rsplit('/').next().and_then(|file| file.strip_suffix(".md"));
    stem.and_then(|stem| stem.strip_prefix('t')).is_some_and(|rest| {
        rest.starts_with(|c: char| c.is_ascii_digit())
            && rest.chars().all(|c| c.is_ascii_digit() || matches!(c, '-' | 'h'))
    })
}
