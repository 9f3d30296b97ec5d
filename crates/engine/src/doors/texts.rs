//! Texts as sessions knew them, kept by what is in them.
//!
//! Owns a folder of copies beside the store, so that it can be said what others changed since a
//! file was read, and not only that they did. A copy is a trace: it may be gone at any time.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;

use super::traces::FOLDER;
use crate::place::Place;

/// Larger files are not copied.
const BYTES_MAX: usize = 512 * 1024;
const TEXTS: &str = "texts";

#[derive(Debug)]
pub(crate) struct Texts {
    folder: PathBuf,
}

impl Texts {
    pub(crate) fn of(place: &Place) -> Self {
        Self { folder: place.store.join(FOLDER).join(TEXTS) }
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
