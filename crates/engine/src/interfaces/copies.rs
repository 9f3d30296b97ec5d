//! Copies of what others build on, kept by what is in them.
//!
//! Owns a folder beside the store, apart from the traces: those go after some days, and a change
//! is to be told however long ago the file was looked at last. A copy that is gone, or on another
//! machine, makes a sentence poorer and never a decision wrong.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;

use crate::doors::reads;
use crate::place::Place;

const FOLDER: &str = "interfaces";

#[derive(Debug)]
pub(super) struct Copies {
    folder: PathBuf,
}

/// The mark of a text: the same as of what sessions read.
pub(super) fn mark(text: &str) -> String {
    reads::mark(text.as_bytes())
}

impl Copies {
    pub(super) fn of(place: &Place) -> Self {
        Self { folder: place.store.join(FOLDER) }
    }

    /// Keeps a copy, and gives its mark.
    pub(super) fn keep(&self, text: &str) -> String {
        let mark = mark(text);
        let path = self.folder.join(&mark);
        if !path.exists() {
            // Written aside first: half a copy would be taken for the whole.
            let fresh = self.folder.join(format!("{mark}.{}", std::process::id()));
            let _ = fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder);
            let mut options = fs::OpenOptions::new();
            options.write(true).create(true).truncate(true).mode(0o600);
            let written = options.open(&fresh).and_then(|mut file| {
                std::io::Write::write_all(&mut file, text.as_bytes())?;
                fs::rename(&fresh, &path)
            });
            if written.is_err() {
                let _ = fs::remove_file(&fresh);
            }
        }
        mark
    }

    /// The text with this mark, if it is here and whole.
    pub(super) fn get(&self, wanted: &str) -> Option<String> {
        let text = fs::read_to_string(self.folder.join(wanted)).ok()?;
        (mark(&text) == wanted).then_some(text)
    }
}
