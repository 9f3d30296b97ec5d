//! Texts as they were known, kept by what is in them.
//!
//! Owns folders of copies beside the store, so that it can be said what changed since a file was
//! read or told of, and not only that it did. A copy may be gone at any time, or be on another
//! machine: that makes a sentence poorer and never a decision wrong.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;

use super::traces::FOLDER;
use crate::place::Place;

/// Larger files are not copied.
const BYTES_MAX: usize = 512 * 1024;
const TEXTS: &str = "texts";
const INTERFACES: &str = "interfaces";

#[derive(Debug)]
pub(crate) struct Texts {
    folder: PathBuf,
}

impl Texts {
    /// What sessions have read. They go with the other traces.
    pub(crate) fn of_sessions(place: &Place) -> Self {
        Self { folder: place.store.join(FOLDER).join(TEXTS) }
    }

    /// What others build on. They stay: a change is to be told however long ago the file was
    /// looked at last.
    pub(crate) fn of_interfaces(place: &Place) -> Self {
        Self { folder: place.store.join(INTERFACES) }
    }

    /// Keeps a copy of what has this mark. One that is there already is as good.
    pub(crate) fn keep(&self, mark: &str, bytes: &[u8]) {
        if bytes.len() > BYTES_MAX {
            return;
        }
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        let path = self.folder.join(mark);
        let opened = match options.open(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let folder = fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder);
                folder.and_then(|()| options.open(&path))
            }
            other => other,
        };
        // Half a copy would be taken for the whole.
        if let Ok(mut file) = opened
            && file.write_all(bytes).is_err()
        {
            let _ = fs::remove_file(&path);
        }
    }

    /// The text with this mark, if it is still there and whole.
    pub(crate) fn get(&self, mark: &str) -> Option<String> {
        let bytes = fs::read(self.folder.join(mark)).ok()?;
        (super::reads::mark(&bytes) == mark).then(|| String::from_utf8(bytes).ok())?
    }
}
