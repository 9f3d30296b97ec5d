//! What SQLite's refusals mean to Baton.
//!
//! Owns the one table from SQLite's codes to [`Error`]. Keeps the difference that matters most:
//! whether a failed commit is "not done" or "unknown".

use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use rusqlite::ErrorCode;
use rusqlite::ffi;

use super::holder;
use crate::store::Error;

/// For anything but COMMIT: whatever it was, nothing was changed.
pub(super) fn not_done(path: &Path, error: &rusqlite::Error) -> Error {
    let path = path.to_owned();
    let detail = error.to_string();
    let rusqlite::Error::SqliteFailure(code, _) = error else {
        return Error::Corrupt { path, detail };
    };
    match code.code {
        ErrorCode::CannotOpen => cannot_open(path, detail),
        ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => Error::Corrupt { path, detail },
        ErrorCode::DiskFull => Error::Full { path },
        ErrorCode::ReadOnly | ErrorCode::PermissionDenied => Error::ReadOnly { path },
        // A stranger wrote between our look and our write.
        ErrorCode::DatabaseBusy if code.extended_code == ffi::SQLITE_BUSY_SNAPSHOT => {
            Error::Disturbed
        }
        // The gate keeps Baton's own writers apart, so this is another program (a shell), or a
        // process that was stopped while it rewrote the index of the log.
        // When SQLite has tried for long to read past one, it calls that the locking protocol.
        ErrorCode::DatabaseBusy
        | ErrorCode::DatabaseLocked
        | ErrorCode::FileLockingProtocolFailed => locked(&path),
        ErrorCode::SystemIoFailure if code.extended_code == ffi::SQLITE_IOERR_SHMSIZE => {
            Error::Full { path }
        }
        ErrorCode::SystemIoFailure => Error::Io {
            doing: "reading or writing the store",
            path,
            source: io::Error::other(detail),
        },
        _ => Error::Backend { detail },
    }
}

/// For COMMIT. The commit mark is the last thing written to the log, so a failed *write* means that
/// it is not there. A failed sync, or a failure after it, leaves a mark that recovery may find.
pub(super) fn of_commit(path: &Path, error: &rusqlite::Error) -> Error {
    let rusqlite::Error::SqliteFailure(code, _) = error else {
        return Error::OutcomeUnknown { detail: error.to_string() };
    };
    match code.code {
        ErrorCode::DiskFull
        | ErrorCode::ReadOnly
        | ErrorCode::DatabaseBusy
        | ErrorCode::ConstraintViolation => not_done(path, error),
        ErrorCode::SystemIoFailure if code.extended_code == ffi::SQLITE_IOERR_WRITE => {
            not_done(path, error)
        }
        _ => Error::OutcomeUnknown { detail: error.to_string() },
    }
}

/// How long was waited is known to whoever began it: see [`after`].
fn locked(path: &Path) -> Error {
    let pid = holder::of_database(path).unwrap_or(0);
    Error::Locked { pid, program: holder::program(pid), waited_ms: 0 }
}

/// The same error with how long was waited before it.
pub(super) fn after(begun: Instant, error: Error) -> Error {
    match error {
        Error::Locked { pid, program, .. } => {
            let waited_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
            Error::Locked { pid, program, waited_ms }
        }
        other => other,
    }
}

/// SQLite says only that it could not open the file; the file itself says why.
fn cannot_open(path: PathBuf, detail: String) -> Error {
    let source = match std::fs::metadata(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return gone(path);
        }
        Err(error) => error,
        Ok(data) if data.is_dir() => return Error::Folder { path },
        Ok(_) => match rustix::fs::access(&path, rustix::fs::Access::READ_OK) {
            Err(error) => error.into(),
            // The file can be read, so it is the log or the index beside it that cannot be made.
            Ok(()) if folder_is_closed(&path) => return Error::ReadOnly { path },
            Ok(()) => io::Error::other(detail),
        },
    };
    Error::Io { doing: "opening the store", path, source }
}

fn gone(path: PathBuf) -> Error {
    gone_from_its_log(&path).unwrap_or(Error::Missing { path })
}

/// SQLite would play a log that is left into a new database.
pub(super) fn gone_from_its_log(database: &Path) -> Option<Error> {
    let mut log = database.as_os_str().to_owned();
    log.push("-wal");
    let log = PathBuf::from(log);
    let detail = "the database is gone but its log is there".to_owned();
    log.exists().then_some(Error::Corrupt { path: log, detail })
}

fn folder_is_closed(path: &Path) -> bool {
    path.parent()
        .is_some_and(|folder| rustix::fs::access(folder, rustix::fs::Access::WRITE_OK).is_err())
}

/// A file of the store other than the database.
pub(super) fn of_file(doing: &'static str, path: &Path, error: io::Error) -> Error {
    let path = path.to_owned();
    match error.kind() {
        io::ErrorKind::NotFound => gone(path),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Error::Full { path },
        io::ErrorKind::ReadOnlyFilesystem => Error::ReadOnly { path },
        io::ErrorKind::IsADirectory => Error::Folder { path },
        _ => Error::Io { doing, path, source: error },
    }
}
