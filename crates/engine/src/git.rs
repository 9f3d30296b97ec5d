//! Git, spawned through one hardened wrapper.
//!
//! Owns every call of git in Baton. It refuses to know claims, landings and the store. Nothing
//! here is on the hook path, because each call is a process. Invariants: a repository's own
//! configuration never makes a call run a program, a path or a name never becomes an option or a
//! pattern, and every call ends, in bounded time and with bounded output.

mod committing;
mod hidden;
mod hooks;
mod index;
mod judge;
mod landing;
mod merging;
mod patch;
mod programs;
mod read;
mod remote;
mod rescue;
mod run;
mod snapshot;
#[cfg(test)]
mod tests;
mod trees;
mod write;

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use committing::{Blob, Entry, Own};
pub use hooks::{HooksPath, RefMove};
pub(crate) use index::{Index, Stamp};
pub use landing::{Merged, Unmerged};
pub use merging::{Clash, Difference, Landed};
pub(crate) use programs::own_programs;
pub use read::{Changed, Commit, Status};
pub(crate) use read::{Setting, nested_repository};
pub use remote::{FETCH_SECONDS_MAX, Incoming, Replayed};
pub use rescue::{RESCUE_BYTES_MAX, Rescue, Text};
use run::Call;
pub(crate) use snapshot::Asked;
pub use snapshot::Work;
pub use trees::{Kept, Linked, POOL};
pub use write::{Author, PrivateIndex};

/// The oldest git whose options we use.
pub const VERSION_MIN: Version = Version { major: 2, minor: 38, patch: 0 };
/// How long one call may take.
pub const CALL_SECONDS_MAX: u64 = 120;
/// How much one call may answer.
pub const OUTPUT_BYTES_MAX: u64 = 64 * 1024 * 1024;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("git is not installed, or not on an absolute folder of PATH")]
    NotInstalled,
    #[error("git {found} is too old; Baton needs {VERSION_MIN}")]
    TooOld { found: Version },
    #[error("git {command} cannot be started")]
    Spawn {
        command: String,
        #[source]
        source: std::io::Error,
    },
    #[error("git {command} took longer than {seconds} s and was ended")]
    TimedOut { command: String, seconds: u64 },
    #[error("git {command} answered more than {limit} bytes and was ended")]
    TooMuchOutput { command: String, limit: u64 },
    #[error("git {command} failed: {message}")]
    Failed {
        command: String,
        /// Nothing if a signal ended it.
        status: Option<i32>,
        /// The first line git wrote about it.
        message: String,
    },
    #[error("git {command} answered something unexpected")]
    Unexpected { command: String },
    #[error("{lossy:?} is not UTF-8")]
    NotUtf8 { lossy: String },
    #[error("{name:?} is not a reference of Baton's")]
    BadReference { name: String },
    #[error("{name} was moved by someone else")]
    ReferenceMoved { name: String },
    #[error("{path}: saving it would take more than {limit} bytes")]
    TooLarge { path: String, limit: u64 },
    #[error("the system gave no random bytes")]
    NoRandomness,
    #[error("cannot read {}", path.display())]
    Io {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    pub major: u32,
    pub minor: u32,
    pub patch: u32,
}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

impl Version {
    /// From `git version 2.39.5 (Apple Git-154)`.
    fn parse(text: &str) -> Option<Self> {
        let numbers = text.trim().strip_prefix("git version ")?;
        let numbers = numbers.split_ascii_whitespace().next()?;
        let mut parts = numbers.split(['.', '-']).map(|part| part.parse().ok());
        let (major, minor) = (parts.next()??, parts.next()??);
        Some(Self { major, minor, patch: parts.next().flatten().unwrap_or(0) })
    }
}

/// The name of an object: 40 or 64 lower-case hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Oid(String);

impl Oid {
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        (digits && matches!(text.len(), 40 | 64)).then(|| Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name that stands for nothing, in the same hash.
    fn zero(&self) -> String {
        "0".repeat(self.0.len())
    }
}

impl fmt::Display for Oid {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[derive(Debug, thiserror::Error)]
#[error("{text:?} does not name a git object")]
pub struct NotAnOid {
    pub text: String,
}

impl TryFrom<String> for Oid {
    type Error = NotAnOid;

    fn try_from(text: String) -> Result<Self, NotAnOid> {
        Self::parse(&text).ok_or(NotAnOid { text })
    }
}

impl From<Oid> for String {
    fn from(oid: Oid) -> String {
        oid.0
    }
}

/// Git at work in one place.
#[derive(Debug, Clone)]
pub struct Git {
    program: PathBuf,
    place: At,
    timeout: Duration,
}

#[derive(Debug, Clone)]
enum At {
    /// The root of a working tree; git finds the repository by itself and checks its owner.
    Tree(PathBuf),
    /// A git directory, without any tree.
    Repository(PathBuf),
}

impl Git {
    pub fn in_tree(root: &Path) -> Result<Self, Error> {
        Self::at(At::Tree(root.to_path_buf()))
    }

    /// For deeds that need no tree, such as Baton's own references.
    pub fn in_repository(common_dir: &Path) -> Result<Self, Error> {
        Self::at(At::Repository(common_dir.to_path_buf()))
    }

    fn at(place: At) -> Result<Self, Error> {
        let program = run::find_program()?;
        Ok(Self { program, place, timeout: Duration::from_secs(CALL_SECONDS_MAX) })
    }

    /// The same with another limit per call.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    fn folder(&self) -> &Path {
        match &self.place {
            At::Tree(folder) | At::Repository(folder) => folder,
        }
    }

    fn call(&self, subcommand: &'static str) -> Call<'_> {
        Call::new(self, subcommand)
    }

    /// The installed git, refused if too old.
    pub fn version(&self) -> Result<Version, Error> {
        let text = self.call("version").text()?;
        let found = Version::parse(&text);
        let found = found.ok_or_else(|| Error::Unexpected { command: "version".to_owned() })?;
        if found < VERSION_MIN { Err(Error::TooOld { found }) } else { Ok(found) }
    }
}
