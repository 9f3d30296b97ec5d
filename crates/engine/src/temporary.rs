//! A folder of this process alone, among those of everybody.
//!
//! Owns its making and its end. What a process that was killed has left is swept by the next that
//! makes one of the same kind: a lock that nobody holds says so.

use std::fs::{self, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use crate::failure::Failure;
use crate::workspace::secret;

/// So many leftovers are looked at.
const SWEPT_MAX: usize = 1_000;
/// So much of a secret is in a name.
pub(crate) const SECRET_CHARACTERS: usize = 16;

#[derive(Debug)]
pub(crate) struct Temporary {
    folder: PathBuf,
    /// Held as long as this process needs it.
    _lock: File,
}

impl Temporary {
    /// `kind` begins its name, which nobody can guess.
    pub(crate) fn make(parent: &Path, kind: &str) -> Result<Self, Failure> {
        let cannot = |path: &Path| {
            let path = path.to_owned();
            move |source| Failure::File { doing: "cannot make a private folder", path, source }
        };
        // Named as the system knows it, so that a program which asks where it is finds itself.
        let parent = parent.canonicalize().map_err(cannot(parent))?;
        sweep(&parent, kind);
        let name = format!("{kind}{}", secret()?.get(..SECRET_CHARACTERS).unwrap_or_default());
        let folder = parent.join(name);
        fs::DirBuilder::new().mode(0o700).create(&folder).map_err(cannot(&folder))?;
        // It has its name only when it is held: whoever sweeps in between would take it for left.
        let fresh = folder.join("lock.new");
        let lock = File::create(&fresh).map_err(cannot(&folder))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)
            .map_err(|error| cannot(&folder)(error.into()))?;
        fs::rename(&fresh, folder.join("lock")).map_err(cannot(&folder))?;
        Ok(Self { folder, _lock: lock })
    }

    /// A folder in it, for nobody else either.
    pub(crate) fn subfolder(&self, name: &str) -> Result<PathBuf, Failure> {
        let folder = self.folder.join(name);
        fs::DirBuilder::new().mode(0o700).create(&folder).map_err(|source| Failure::File {
            doing: "cannot make a private folder",
            path: folder.clone(),
            source,
        })?;
        Ok(folder)
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // Whatever cannot be removed now is swept later.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Removes what processes that were killed have left.
fn sweep(parent: &Path, kind: &str) {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let ours = |entry: &fs::DirEntry| {
        let folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        folder && entry.file_name().to_string_lossy().starts_with(kind)
    };
    for entry in entries.filter(ours).take(SWEPT_MAX) {
        // One that is being made has no lock yet, and is left alone.
        let Ok(lock) = File::open(entry.path().join("lock")) else { continue };
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
