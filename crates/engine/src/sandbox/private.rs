//! The private folder of one sandbox: its TMPDIR, that of its calls, and the broker's socket.
//!
//! Owns what lies where in it. Only the TMPDIR is open to the command, so nobody inside can put
//! another socket in the broker's place, or change what a client was pointed at.

use std::path::PathBuf;

use crate::failure::Failure;
use crate::temporary::{SECRET_CHARACTERS, Temporary};

const KIND: &str = "baton-sandbox-";
/// The longest path that a socket can have.
const SOCKET_BYTES_MAX: usize = 100;

#[derive(Debug)]
pub(crate) struct Private {
    folder: Temporary,
}

impl Private {
    pub(crate) fn make() -> Result<Self, Failure> {
        let mut parent = std::env::temp_dir();
        let below = KIND.len() + SECRET_CHARACTERS + "/broker".len();
        if parent.as_os_str().len() + below > SOCKET_BYTES_MAX {
            parent = PathBuf::from("/tmp");
        }
        let folder = Temporary::make(&parent, KIND)?;
        for name in ["tmp", "calls"] {
            folder.subfolder(name)?;
        }
        Ok(Self { folder })
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
