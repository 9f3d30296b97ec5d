//! Why a store could not answer.
//!
//! Every one of these means "not done" or "unknown", never "done" (S13).

use std::path::PathBuf;

use baton_core::view::Unreadable;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{path} is a folder, not a store")]
    Folder { path: PathBuf },
    #[error("the store {path} does not exist")]
    Missing { path: PathBuf },
    #[error("the store {path} cannot be written")]
    ReadOnly { path: PathBuf },
    #[error("the disk is full: nothing was changed")]
    Full { path: PathBuf },
    #[error("the store {path} is damaged: {detail}")]
    Corrupt { path: PathBuf, detail: String },
    #[error("the store was written by a newer Baton (layout {found}; this one knows {known})")]
    Newer { found: u32, known: u32 },
    #[error("the store was written by an older Baton (layout {found}; this one knows {known})")]
    Older { found: u32, known: u32 },
    #[error("{path} is on {filesystem}, where file locks cannot be trusted")]
    NetworkFilesystem { path: PathBuf, filesystem: String },
    #[error("this process is in another time namespace than the store")]
    TimeNamespace,
    #[error("the store's gate has been held for {waited_ms} ms by process {pid}")]
    Busy { pid: u32, waited_ms: u64 },
    #[error("PostgreSQL cannot be reached: {detail}")]
    Unreachable { detail: String },
    #[error("this address of a store cannot be read: {detail}")]
    BadAddress { detail: String },
    #[error("this workspace is on a shared store, and nothing says where that is")]
    NoAddress,
    #[error("this workspace has its own store, {path}, and BATON_STORE names another")]
    OwnStore { path: PathBuf },
    #[error("whether the change was made is unknown: {detail}")]
    OutcomeUnknown { detail: String },
    #[error("{path} is there already")]
    Exists { path: PathBuf },
    #[error("{doing}: {path}")]
    Io { doing: &'static str, path: PathBuf, source: std::io::Error },
    #[error("the store answered what Baton does not understand: {detail}")]
    Backend { detail: String },
    #[error("the store could not be read")]
    Unreadable(#[from] Unreadable),
}
