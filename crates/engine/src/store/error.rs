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
    /// Baton's own writers, or those of a server; 0 when it is not known who.
    #[error("{}", busy(*pid, *waited_ms))]
    Busy { pid: u32, waited_ms: u64 },
    /// The database file itself is locked, which Baton's own writers do only at the gate.
    #[error("{}", locked(*pid, program, *waited_ms))]
    Locked { pid: u32, program: String, waited_ms: u64 },
    #[error("another program wrote to the store in the middle of this: nothing was changed")]
    Disturbed,
    #[error("PostgreSQL cannot be reached: {detail}")]
    Unreachable { detail: String },
    #[error("PostgreSQL has no free connection: {detail}")]
    NoConnection { detail: String },
    /// It starts or stops.
    #[error("PostgreSQL takes no connections at the moment: {detail}")]
    NotReady { detail: String },
    #[error("this address of a store cannot be read: {detail}")]
    BadAddress { detail: String },
    #[error("this workspace is on a shared store, and nothing says where that is")]
    NoAddress,
    #[error("this workspace has its own store, {path}, and BATON_STORE names another")]
    OwnStore { path: PathBuf },
    /// The database answers and does not have this workspace.
    #[error("this clone belongs to a workspace in another store: {path} does not have it")]
    OtherStore { path: PathBuf },
    #[error("the database {path} does not exist")]
    NoDatabase { path: PathBuf },
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

fn busy(pid: u32, waited_ms: u64) -> String {
    match (pid, waited_ms) {
        (0, 0) => "others changed the store at the same moment: nothing was changed".to_owned(),
        (0, _) => format!("others have kept the store busy for {waited_ms} ms"),
        _ => format!("the store's gate has been held for {waited_ms} ms by process {pid}"),
    }
}

fn locked(pid: u32, program: &str, waited_ms: u64) -> String {
    let who = match (pid, program) {
        (0, _) => "another program has".to_owned(),
        (_, "") => format!("process {pid}, another program, has"),
        (_, "baton") => format!("process {pid} (baton) has"),
        _ => format!("another program, {program} (process {pid}), has"),
    };
    format!("{who} the store locked; it did not let go in {waited_ms} ms, and nothing was changed")
}
