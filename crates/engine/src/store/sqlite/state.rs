//! Where the store stands: its clock, its journal's head, its epoch.
//!
//! The store's clock is an anchor (a wall time and the boot-time clock at that moment) plus what
//! the boot-time clock has counted since, so nobody can set it and it counts through sleep. The
//! epoch rises when entries may be gone: the machine was started again (commits that were not
//! synced may be lost), or the head is below the highest epoch ever used (an older store was put in
//! place). That highest epoch is kept in a file of its own, which no restore takes back.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use baton_core::id::Position;
use baton_core::journal::{Hash, Head};
use baton_core::time::Moment;
use rusqlite::{Connection, OptionalExtension};
use serde::{Deserialize, Serialize};

use super::fault;
use crate::clock::{Anchor, Millis, Reading, Renewed};
use crate::store::surroundings::Surroundings;
use crate::store::{Error, SCHEMA_VERSION, State};

const STARTED_AGAIN: &str = "the machine was started again, so the last entries may be lost";
const OLDER_STORE: &str = "an older copy of the store was put in place";

/// Two plain statements: one that joins both rows takes twice as long to prepare.
const CLOCK: &str = "SELECT value FROM meta WHERE key='clock'";
const HEAD: &str = "SELECT epoch, number, at, hash FROM journal ORDER BY number DESC LIMIT 1";

/// The state, and the anchor to store with the next entries when the machine was started again.
#[derive(Debug)]
pub(super) struct Standing {
    pub(super) state: State,
    pub(super) new_anchor: Option<Anchor>,
}

/// Reads the state inside a transaction that is open already.
pub(super) fn read(
    connection: &Connection,
    path: &Path,
    surroundings: &Surroundings,
) -> Result<Standing, Error> {
    check_version(connection, path)?;
    let fault = |error| fault::not_done(path, &error);
    let anchor: Option<String> = connection
        .prepare_cached(CLOCK)
        .and_then(|mut statement| statement.query_row([], |row| row.get(0)).optional())
        .map_err(fault)?;
    let head = connection
        .prepare_cached(HEAD)
        .and_then(|mut statement| statement.query_row([], head_of).optional())
        .map_err(fault)?;
    let corrupt = |detail: String| Error::Corrupt { path: path.to_owned(), detail };
    let anchor = anchor.ok_or_else(|| corrupt("its clock is missing".to_owned()))?;
    let anchor: Anchor = serde_json::from_str(&anchor)
        .map_err(|error| corrupt(format!("its clock cannot be read: {error}")))?;
    let head = match head {
        Some(head) => head,
        None => archived(connection, path)?.unwrap_or_else(Head::start),
    };
    let high_water = HighWater::beside(path).read()?;
    judge(&anchor, head, high_water, &surroundings.read())
}

fn head_of(row: &rusqlite::Row<'_>) -> rusqlite::Result<Head> {
    Ok(Head {
        position: Position { epoch: row.get(0)?, number: row.get::<_, i64>(1)?.cast_unsigned() },
        at: Moment(row.get::<_, i64>(2)?.cast_unsigned()),
        hash: Hash(row.get(3)?),
    })
}

fn judge(
    anchor: &Anchor,
    head: Head,
    high_water: u32,
    reading: &Reading,
) -> Result<Standing, Error> {
    let last = Millis(i64::try_from(head.at.0).unwrap_or(i64::MAX));
    let new_anchor = match anchor.renew(reading, last) {
        Ok(Renewed::Same) => None,
        Ok(Renewed::New(anchor)) => Some(anchor),
        Err(_) => return Err(Error::TimeNamespace),
    };
    let clock = new_anchor.as_ref().unwrap_or(anchor).now(reading);
    let clock = clock.map_err(|_| Error::TimeNamespace)?;
    let raised_because = if high_water > head.position.epoch {
        Some(OLDER_STORE.to_owned())
    } else {
        new_anchor.as_ref().map(|_| STARTED_AGAIN.to_owned())
    };
    let highest = head.position.epoch.max(high_water);
    let epoch = if raised_because.is_some() { highest.saturating_add(1) } else { highest };
    let now = Moment(u64::try_from(clock.0).unwrap_or(0)).max(head.at);
    let state = State { now, head, epoch, raised_because, failed_over_at: None };
    Ok(Standing { state, new_anchor })
}

/// In every transaction, so that a process that outlives an upgrade stops writing (S21).
pub(super) fn check_version(connection: &Connection, path: &Path) -> Result<(), Error> {
    let found: u32 = connection
        .prepare_cached("PRAGMA user_version")
        .and_then(|mut statement| statement.query_row([], |row| row.get(0)))
        .map_err(|error| fault::not_done(path, &error))?;
    match found {
        SCHEMA_VERSION => Ok(()),
        0 => Err(Error::Corrupt {
            path: path.to_owned(),
            detail: "it is not a store of Baton".to_owned(),
        }),
        found if found > SCHEMA_VERSION => Err(Error::Newer { found, known: SCHEMA_VERSION }),
        found => Err(Error::Older { found, known: SCHEMA_VERSION }),
    }
}

pub(super) fn archived(connection: &Connection, path: &Path) -> Result<Option<Head>, Error> {
    let stored: Option<String> = connection
        .prepare_cached("SELECT value FROM meta WHERE key = 'archived'")
        .and_then(|mut statement| statement.query_row([], |row| row.get(0)).optional())
        .map_err(|error| fault::not_done(path, &error))?;
    let Some(stored) = stored else { return Ok(None) };
    let sealed: Sealed = serde_json::from_str(&stored).map_err(|error| Error::Corrupt {
        path: path.to_owned(),
        detail: format!("what was archived cannot be read: {error}"),
    })?;
    Ok(Some(Head { position: sealed.position, at: sealed.at, hash: sealed.hash }))
}

/// The last archived entry, as it is kept in `meta`.
#[derive(Serialize, Deserialize)]
pub(super) struct Sealed {
    position: Position,
    at: Moment,
    hash: Hash,
}

impl From<&Head> for Sealed {
    fn from(head: &Head) -> Self {
        Self { position: head.position, at: head.at, hash: head.hash.clone() }
    }
}

/// The highest epoch ever used, in a file beside the database. No file: never raised.
#[derive(Debug)]
pub(super) struct HighWater {
    path: PathBuf,
}

impl HighWater {
    pub(super) fn beside(database: &Path) -> Self {
        Self { path: database.with_file_name("epoch") }
    }

    pub(super) fn read(&self) -> Result<u32, Error> {
        use rustix::fs::{Mode, OFlags};
        let fault = |error: rustix::io::Errno| {
            fault::of_file("reading the highest epoch", &self.path, error.into())
        };
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let file = match rustix::fs::open(&self.path, flags, Mode::empty()) {
            Ok(file) => file,
            Err(rustix::io::Errno::NOENT) => return Ok(0),
            Err(error) => return Err(fault(error)),
        };
        let mut bytes = [0; 16];
        let length = rustix::io::read(&file, &mut bytes).map_err(fault)?;
        let text = std::str::from_utf8(&bytes[..length]).unwrap_or_default().trim();
        text.parse().map_err(|_| Error::Corrupt {
            path: self.path.clone(),
            detail: "it must hold one number".to_owned(),
        })
    }

    /// On disk before this returns, so before any entry of that epoch is.
    pub(super) fn raise(&self, epoch: u32) -> Result<(), Error> {
        if self.read()? >= epoch {
            return Ok(());
        }
        let written = || -> io::Result<()> {
            let next = self.path.with_file_name("epoch.next");
            let mut file =
                File::options().write(true).create(true).truncate(true).mode(0o600).open(&next)?;
            writeln!(file, "{epoch}")?;
            file.sync_all()?;
            std::fs::rename(&next, &self.path)?;
            sync_folder(&self.path)
        };
        written().map_err(|error| fault::of_file("writing the highest epoch", &self.path, error))
    }
}

/// Makes the names in the folder of `path` safe from a power cut.
pub(super) fn sync_folder(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}
