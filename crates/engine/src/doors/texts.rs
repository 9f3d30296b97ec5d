//! Texts as they were known, kept by what is in them.
//!
//! Owns folders of copies beside the store, so that it can be said what changed since a file was
//! read or told of, and not only that it did. A copy may be gone at any time, or be on another
//! machine: that makes a sentence poorer and never a decision wrong.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};

use super::traces::FOLDER;
use crate::place::Place;

/// Larger files are not copied.
pub(super) const BYTES_MAX: usize = 512 * 1024;
/// So often, and so long each time, is waited for somebody who removes copies.
const SWEEP_WAITS_MAX: u32 = 20;
const SWEEP_WAIT: Duration = Duration::from_millis(5);
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

    /// What others build on. They stay as long as an interface refers to them: a change is to be
    /// told however long ago the file was looked at last.
    pub(crate) fn of_interfaces(place: &Place) -> Self {
        Self { folder: place.store.join(INTERFACES) }
    }

    /// Copies that are made while this lives stay until somebody can refer to them. Without it a
    /// copy may be gone, as at any other time: nobody waits long for who sweeps, and perhaps hangs.
    pub(crate) fn in_use(&self) -> Option<File> {
        let _ = self.make_folder();
        let folder = File::open(&self.folder).ok()?;
        for _ in 0..SWEEP_WAITS_MAX {
            if flock(&folder, FlockOperation::NonBlockingLockShared).is_ok() {
                return Some(folder);
            }
            std::thread::sleep(SWEEP_WAIT);
        }
        None
    }

    /// Removes the copies that nobody refers to. `referred` is asked when nobody is about to refer
    /// to another; while somebody is, nothing is removed.
    pub(crate) fn sweep<E>(
        &self,
        referred: impl FnOnce() -> Result<BTreeSet<String>, E>,
    ) -> Result<(), E> {
        let Ok(folder) = File::open(&self.folder) else { return Ok(()) };
        if flock(&folder, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Ok(());
        }
        let referred = referred()?;
        let Ok(entries) = fs::read_dir(&self.folder) else { return Ok(()) };
        for entry in entries.flatten() {
            let unknown = entry.file_name().to_str().is_some_and(|name| !referred.contains(name));
            if unknown && entry.file_type().is_ok_and(|kind| kind.is_file()) {
                let _ = fs::remove_file(entry.path());
            }
        }
        Ok(())
    }

    fn make_folder(&self) -> std::io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)
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
                self.make_folder().and_then(|()| options.open(&path))
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

    /// Where the copy with this mark lies, if it is still there.
    pub(super) fn path_of(&self, mark: &str) -> Option<PathBuf> {
        Some(self.folder.join(mark)).filter(|path| path.is_file())
    }

    /// The text with this mark, if it is still there and whole.
    pub(crate) fn get(&self, mark: &str) -> Option<String> {
        let bytes = fs::read(self.folder.join(mark)).ok()?;
        (super::reads::mark(&bytes) == mark).then(|| String::from_utf8(bytes).ok())?
    }
}
