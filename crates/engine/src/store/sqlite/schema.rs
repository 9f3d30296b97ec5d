//! The tables, and how a store comes into being.
//!
//! A store is built under another name and put in place by one rename, so a database that can be
//! seen is complete. Refuses to touch one that is there.

use std::fs::File;
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use super::fault;
use super::state::sync_folder;
use crate::clock::{Anchor, Millis};
use crate::store::surroundings::Surroundings;
use crate::store::{Error, SCHEMA_VERSION};

/// Marks the file as Baton's for `file` and for `restore`: "Batn".
pub(super) const APPLICATION_ID: i32 = 0x4261_746e;

/// Every table with its columns: what a restore copies.
pub(super) const TABLES: &[(&str, usize)] =
    &[("records", 4), ("entries", 4), ("journal", 8), ("meta", 2)];

/// Every open parses all of it, and every hook opens: as few tables as there can be, and no view.
const TABLES_SQL: &str = "
CREATE TABLE records(kind TEXT NOT NULL, key TEXT NOT NULL, version INTEGER NOT NULL,
    body TEXT NOT NULL, PRIMARY KEY(kind, key)) WITHOUT ROWID;
CREATE TABLE entries(\"index\" TEXT NOT NULL, value TEXT NOT NULL, kind TEXT NOT NULL,
    key TEXT NOT NULL, PRIMARY KEY(\"index\", value, kind, key)) WITHOUT ROWID;
CREATE TABLE journal(number INTEGER PRIMARY KEY, epoch INTEGER NOT NULL, at INTEGER NOT NULL,
    actor TEXT NOT NULL, kind TEXT NOT NULL, version INTEGER NOT NULL, body TEXT NOT NULL,
    hash TEXT NOT NULL);
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
";

/// For people with `sqlite3`, in a file beside the store: views in the store itself were a tenth of
/// what a `check` computes.
const VIEWS_SQL: &str = "\
-- Views for people: sqlite3 -readonly -init views.sql store.db
CREATE TEMP VIEW claims AS SELECT body->>'token' token, body->>'name' name,
    body->>'resources' resources, body->>'expires_at' expires_at FROM records WHERE kind='claim';
CREATE TEMP VIEW sessions AS SELECT body->>'name' name, body->>'life' life,
    body->>'expires_at' expires_at FROM records WHERE kind='session';
CREATE TEMP VIEW waiters AS SELECT body->>'name' name, body->>'resources' resources
    FROM records WHERE kind='waiter';
CREATE TEMP VIEW tasks AS SELECT key task, body->>'title' title, body->'standing'->>'state' state,
    body->>'priority' priority FROM records WHERE kind='task';
";

/// Builds a new store at `path`. The gate is held.
pub(super) fn build(path: &Path, surroundings: &Surroundings) -> Result<(), Error> {
    if let Some(error) = fault::gone_from_its_log(path) {
        return Err(error);
    }
    let draft = path.with_file_name("store.db.new");
    let doing = "making the store";
    // What a maker that died has left; nobody else builds while we hold the gate.
    match std::fs::remove_file(&draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(fault::of_file(doing, &draft, error));
        }
        _ => {}
    }
    private_file(&draft).map_err(|error| fault::of_file(doing, &draft, error))?;
    fill(&draft, surroundings).map_err(|error| fault::not_done(&draft, &error))?;
    let placed = rename_new(&draft, path).and_then(|()| sync_folder(path));
    placed.map_err(|error| fault::of_file(doing, path, error))?;
    write_views(path);
    Ok(())
}

/// A convenience for people; the store is whole without it.
fn write_views(path: &Path) {
    let views = path.with_file_name("views.sql");
    if private_file(&views).is_ok() {
        let _ = std::fs::write(&views, VIEWS_SQL);
    }
}

/// A new empty file that only its owner may read.
pub(super) fn private_file(path: &Path) -> io::Result<()> {
    File::options().write(true).create_new(true).mode(0o600).open(path).map(|_| ())
}

pub(super) fn private_folder(folder: &Path) -> Result<(), Error> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(|error| fault::of_file("making the folder of the store", folder, error))
}

fn fill(draft: &Path, surroundings: &Surroundings) -> rusqlite::Result<()> {
    let connection = Connection::open_with_flags(
        draft,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    let anchor = Anchor::set(&surroundings.read(), Millis(0));
    let anchor = serde_json::to_string(&anchor)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
    connection.execute_batch(&format!(
        "PRAGMA synchronous=FULL; BEGIN; {TABLES_SQL}
         PRAGMA application_id={APPLICATION_ID}; PRAGMA user_version={SCHEMA_VERSION};"
    ))?;
    connection.execute("INSERT INTO meta VALUES('clock', ?1)", [anchor])?;
    connection.execute_batch("COMMIT")?;
    // Last, so that the draft closes without a log of its own; the mode stays in the header.
    connection.query_row("PRAGMA journal_mode=WAL", [], |_| Ok(()))?;
    connection.close().map_err(|(_, error)| error)
}

/// Renames, and never over a file that is there.
pub(super) fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE).map_err(io::Error::from)
}
