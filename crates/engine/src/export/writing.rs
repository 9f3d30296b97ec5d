//! Putting Markdown files into an export's folder, and taking away those that are stale.
//!
//! Owns the folders `tasks/` and `handoffs/`. Invariant: in them a file is replaced or removed only
//! when its own text says that Baton wrote it for this workspace, so whatever people keep beside
//! them stays. A file is replaced in one step, and only when it differs.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use super::{Error, io, pages};
use crate::failure::Failure;
use crate::handing::markdown;

/// A larger file than any of ours is somebody else's.
const OWN_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// What is at the place of a file.
enum There {
    Nothing,
    File(Vec<u8>),
    /// A folder, a link, or too much: none of ours.
    Foreign,
}

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
        if matches!(&there, There::File(known) if known == text.as_bytes()) {
            return Ok(());
        }
        if let Some((below, _)) = name.split_once('/') {
            if !matches!(there, There::Nothing) && !self.is_ours(below, &there) {
                return Err(Error::NotOurs { path }.into());
            }
            self.make(below)?;
        }
        settle(&path, text)?;
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
                if self.is_ours(below, &there) {
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

    fn read(&self, path: &Path) -> Result<There, Failure> {
        let data = match path.symlink_metadata() {
            Ok(data) => data,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(There::Nothing),
            // A file stands where its folder would be.
            Err(error) if error.kind() == ErrorKind::NotADirectory => {
                let path = path.parent().map_or_else(PathBuf::new, Path::to_owned);
                return Err(Error::NotOurs { path }.into());
            }
            Err(error) => return Err(io("look at", path)(error)),
        };
        if !data.is_file() || data.len() > OWN_BYTES_MAX {
            return Ok(There::Foreign);
        }
        std::fs::read(path).map(There::File).map_err(io("read", path))
    }

    fn is_ours(&self, below: &str, there: &There) -> bool {
        let There::File(text) = there else { return false };
        let text = String::from_utf8_lossy(text);
        match below {
            // What a power cut left of a file that was new: nothing is lost by writing over it.
            _ if text.is_empty() => true,
            pages::TASKS => text.starts_with(&pages::mark(self.workspace)),
            _ => text.ends_with(&markdown::mark(self.workspace)),
        }
    }
}

/// Replaces a file in one step. It is not forced to the disk: there may be thousands, the store is
/// the truth, and the next export writes whatever a power cut took.
fn settle(path: &Path, text: &str) -> Result<(), Failure> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let draft = path.with_file_name(format!(".{name}.baton-new"));
    match std::fs::remove_file(&draft) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(io("write", &draft)(error));
        }
        _ => {}
    }
    let made = File::options().write(true).create_new(true).open(&draft);
    let written = made.and_then(|mut file| file.write_all(text.as_bytes()));
    let settled = written
        .map_err(io("write", &draft))
        .and_then(|()| std::fs::rename(&draft, path).map_err(io("replace", path)));
    if settled.is_err() {
        let _ = std::fs::remove_file(&draft);
    }
    settled
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
