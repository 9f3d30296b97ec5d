//! Copies: one to keep, and one to take back.
//!
//! A restore writes into the database that is there, in one transaction, so that processes which
//! have it open see the old store or the new one and never half of each. Nothing is deleted: what
//! was replaced stays beside it. Every restore raises the epoch, also one that dies half-way.

use std::fs::File;
use std::path::{Path, PathBuf};

use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags, OptionalExtension, params_from_iter};

use super::gate::Gate;
use super::state::{HighWater, sync_folder};
use super::{LONG_PATIENCE, database_in, fault, news, schema, state, trust};
use crate::store::Error;
use crate::store::surroundings::Surroundings;

/// So many replaced databases are kept; then a person must tidy up before the next restore.
const REPLACED_MAX: u32 = 20;

/// Writes what `connection` sees to the new file `to`.
pub(super) fn copy_out(connection: &Connection, path: &Path, to: &Path) -> Result<(), Error> {
    let doing = "writing the backup";
    match schema::private_file(to) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            return Err(Error::Exists { path: to.to_owned() });
        }
        made => made.map_err(|error| fault::of_file(doing, to, error))?,
    }
    let copied = match to.to_str() {
        // SQLite fills an empty file and refuses any other.
        Some(name) => connection
            .execute("VACUUM INTO ?1", [name])
            .map(|_| ())
            .map_err(|error| fault::not_done(path, &error)),
        None => Err(Error::BadAddress { detail: "the path is not UTF-8".to_owned() }),
    };
    let synced = copied.and_then(|()| {
        let sync = File::open(to).and_then(|file| file.sync_all()).and_then(|()| sync_folder(to));
        sync.map_err(|error| fault::of_file(doing, to, error))
    });
    if synced.is_err() {
        // Half a backup, which we have just made ourselves, would look like a whole one.
        let _ = std::fs::remove_file(to);
    }
    synced
}

/// Puts the backup `from` in the place of the store in `folder`.
pub fn restore(folder: &Path, from: &Path) -> Result<(), Error> {
    restore_in(folder, from, &Surroundings::look(folder)?)
}

/// The workspace a backup is of; its first entry tells, unless that was archived.
pub fn workspace_of(from: &Path) -> Result<Option<String>, Error> {
    let source = verified(from)?;
    let sql = "SELECT body->>'workspace' FROM journal WHERE kind='workspace_made'
        ORDER BY number LIMIT 1";
    let found = source.query_row(sql, [], |row| row.get(0)).optional();
    found.map(Option::flatten).map_err(|error| fault::not_done(from, &error))
}

fn restore_in(folder: &Path, from: &Path, surroundings: &Surroundings) -> Result<(), Error> {
    trust(folder, surroundings)?;
    let source = verified(from)?;
    let path = database_in(folder);
    let _held = Gate::of(folder).enter(LONG_PATIENCE)?;
    let high_water = HighWater::beside(&path);
    let healthy = healthy(&path)?;
    // Above every epoch ever used, and before anything is replaced: however this ends, the head
    // will be below it, and the next decision raises the epoch.
    let used = [high_water.read()?, epoch_of(&source, from)?, healthy.as_ref().map_or(0, |h| h.1)];
    let above = used.into_iter().max().unwrap_or(0).saturating_add(1);
    high_water.raise(above)?;
    match healthy {
        Some((live, _)) => {
            copy_out(&live, &path, &free_name(&path)?)?;
            replace(&live, &source).map_err(|error| fault::not_done(&path, &error))?;
        }
        None => {
            put_aside(&path)?;
            schema::build(&path, surroundings)?;
            let live = open(&path, OpenFlags::SQLITE_OPEN_READ_WRITE)
                .map_err(|error| fault::not_done(&path, &error))?;
            replace(&live, &source).map_err(|error| fault::not_done(&path, &error))?;
        }
    }
    news::touch(&news::path_in(folder));
    Ok(())
}

fn open(path: &Path, mode: OpenFlags) -> rusqlite::Result<Connection> {
    Connection::open_with_flags(path, mode | OpenFlags::SQLITE_OPEN_NO_MUTEX)
}

/// Opens a backup and reads all of it before anything is replaced by it.
fn verified(from: &Path) -> Result<Connection, Error> {
    super::identity_of(from)?;
    let fault = |error| fault::not_done(from, &error);
    let source = open(from, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(fault)?;
    let application: i32 =
        source.query_row("PRAGMA application_id", [], |row| row.get(0)).map_err(fault)?;
    if application != schema::APPLICATION_ID {
        let detail = "it is not a store of Baton".to_owned();
        return Err(Error::Corrupt { path: from.to_owned(), detail });
    }
    state::check_version(&source, from)?;
    let check = "PRAGMA integrity_check(1)";
    let detail: String = source.query_row(check, [], |row| row.get(0)).map_err(fault)?;
    if detail != "ok" {
        return Err(Error::Corrupt { path: from.to_owned(), detail });
    }
    Ok(source)
}

/// The store in place and its epoch, or `None` when it is too damaged to be written into. One that
/// another Baton wrote, or that cannot be opened now, is not damaged: that is an error.
fn healthy(path: &Path) -> Result<Option<(Connection, u32)>, Error> {
    let look = || {
        let fault = |error| fault::not_done(path, &error);
        super::identity_of(path)?;
        let live = open(path, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(fault)?;
        state::check_version(&live, path)?;
        let check = "PRAGMA integrity_check(1)";
        let check: String = live.query_row(check, [], |row| row.get(0)).map_err(fault)?;
        let epoch = epoch_of(&live, path)?;
        Ok((check == "ok").then_some((live, epoch)))
    };
    match look() {
        Err(Error::Corrupt { .. } | Error::Missing { .. }) => Ok(None),
        other => other,
    }
}

fn epoch_of(connection: &Connection, path: &Path) -> Result<u32, Error> {
    connection
        .query_row("SELECT ifnull(max(epoch), 1) FROM journal", [], |row| row.get(0))
        .map_err(|error| fault::not_done(path, &error))
}

/// Fills `live` with what is in `source`, all of it or nothing.
fn replace(live: &Connection, source: &Connection) -> rusqlite::Result<()> {
    live.execute_batch("PRAGMA synchronous=FULL; BEGIN IMMEDIATE")?;
    for (table, columns) in schema::TABLES {
        live.execute(&format!("DELETE FROM {table}"), [])?;
        let marks = vec!["?"; *columns].join(",");
        let mut insert = live.prepare(&format!("INSERT INTO {table} VALUES({marks})"))?;
        let mut select = source.prepare(&format!("SELECT * FROM {table}"))?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            let values: rusqlite::Result<Vec<Value>> =
                (0..*columns).map(|column| row.get(column)).collect();
            insert.execute(params_from_iter(values?))?;
        }
    }
    live.execute_batch("COMMIT")
}

/// Renames a damaged database with its log; the log's index is rebuilt from it when needed.
fn put_aside(path: &Path) -> Result<(), Error> {
    let aside = free_name(path)?;
    for suffix in ["", "-wal", "-shm"] {
        let (from, to) = (with_suffix(path, suffix), with_suffix(&aside, suffix));
        match schema::rename_new(&from, &to) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(fault::of_file("putting the damaged store aside", &from, error));
            }
            _ => {}
        }
    }
    Ok(())
}

fn free_name(path: &Path) -> Result<PathBuf, Error> {
    let names = (1..=REPLACED_MAX).map(|n| with_suffix(path, &format!(".before-restore-{n}")));
    let last = with_suffix(path, &format!(".before-restore-{REPLACED_MAX}"));
    let free = names.into_iter().find(|name| std::fs::symlink_metadata(name).is_err());
    free.ok_or(Error::Exists { path: last })
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
