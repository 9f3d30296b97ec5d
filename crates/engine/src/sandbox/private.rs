//! The private folder of one sandbox: its TMPDIR, that of its calls, and the broker's socket.
//!
//! Owns its making and its end. Only the TMPDIR is open to the command, so nobody inside can put
//! another socket in the broker's place, or change what a client was pointed at. What a sandbox
//! that was killed has left is swept by the next one: a lock that nobody holds says so.

use std::fs::{self, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use crate::failure::Failure;
use crate::workspace::secret;

const PREFIX: &str = "baton-sandbox-";
/// The longest path that a socket can have.
const SOCKET_BYTES_MAX: usize = 100;
/// So many leftovers are looked at.
const SWEPT_MAX: usize = 1_000;

#[derive(Debug)]
pub(crate) struct Private {
    folder: PathBuf,
    /// Held as long as this sandbox lives.
    _lock: File,
}

impl Private {
    pub(crate) fn make() -> Result<Self, Failure> {
        let name = format!("{PREFIX}{}", secret()?.get(..16).unwrap_or_default());
        let mut parent = std::env::temp_dir();
        if parent.as_os_str().len() + name.len() + "/broker".len() > SOCKET_BYTES_MAX {
            parent = PathBuf::from("/tmp");
        }
        let cannot = |path: &Path| {
            let path = path.to_owned();
            move |source| Failure::File { doing: "cannot make a private folder", path, source }
        };
        let parent = parent.canonicalize().map_err(cannot(&parent))?;
        sweep(&parent);
        let folder = parent.join(name);
        let mut builder = fs::DirBuilder::new();
        builder.mode(0o700);
        builder.create(&folder).map_err(cannot(&folder))?;
        // It has its name only when it is held: whoever sweeps in between would take it for left.
        let fresh = folder.join("lock.new");
        let lock = File::create(&fresh).map_err(cannot(&folder))?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)
            .map_err(|error| cannot(&folder)(error.into()))?;
        fs::rename(&fresh, folder.join("lock")).map_err(cannot(&folder))?;
        for name in ["tmp", "calls"] {
            builder.create(folder.join(name)).map_err(cannot(&folder))?;
        }
        Ok(Self { folder, _lock: lock })
    }

    pub(super) fn temporary(&self) -> PathBuf {
        self.folder.join("tmp")
    }

    /// The TMPDIR of calls, closed inside: what a commit is put together from lies there.
    pub(super) fn of_calls(&self) -> PathBuf {
        self.folder.join("calls")
    }

    /// For what is only read inside.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(super) fn socket(&self) -> PathBuf {
        self.folder.join("broker")
    }
}

impl Drop for Private {
    fn drop(&mut self) {
        // Whatever cannot be removed now is swept later.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Removes what sandboxes that were killed have left.
fn sweep(parent: &Path) {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let ours = |entry: &fs::DirEntry| {
        let folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        folder && entry.file_name().to_string_lossy().starts_with(PREFIX)
    };
    for entry in entries.filter(ours).take(SWEPT_MAX) {
        // One that is being made has no lock yet, and is left alone.
        let Ok(lock) = File::open(entry.path().join("lock")) else { continue };
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
