//! A workspace as a file, and back.
//!
//! Owns the format: one JSON document a line, a heading first and a count last, so that a file cut
//! short is noticed. A backup is one look; it never replaces a file. A restore never deletes: what
//! was there is kept under `<id>.before-restore-<n>`, and the epoch rises above all ever used (S5).

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use baton_core::id::Position;
use baton_core::journal::{Entry, Hash, Head, follows};
use baton_core::overlay::Change;
use baton_core::time::Moment;
use baton_core::view::{index_entries, kind_named};
use serde::{Deserialize, Serialize};
use tokio_postgres::types::Type;

use super::batch::{self, Outcome, Then};
use super::decision::{self, roll_back, told};
use super::look::Look;
use super::state::{Id, Opening};
use super::{PATIENCE, Postgres, Workspace, wire};
use crate::store::{Error, Snapshot};

/// The version of the file's format.
const FORMAT: u32 = 1;
/// Lines read or written at a time.
const PAGE: u32 = 1_000;

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    BatonBackup(Heading),
    Record { kind: String, key: String, version: u64, body: String },
    Entry(Entry),
    End { records: u64, entries: u64 },
}

#[derive(Debug, Serialize, Deserialize)]
struct Heading {
    format: u32,
    workspace: String,
    root_commit: Option<String>,
    remote: Option<String>,
    made_at: Moment,
    head: StoredHead,
    epoch_max: u32,
    archived: Option<StoredHead>,
}

#[derive(Debug, Serialize, Deserialize)]
struct StoredHead {
    position: Position,
    at: Moment,
    hash: Hash,
}

impl From<Head> for StoredHead {
    fn from(Head { position, at, hash }: Head) -> Self {
        Self { position, at, hash }
    }
}

impl From<StoredHead> for Head {
    fn from(StoredHead { position, at, hash }: StoredHead) -> Self {
        Self { position, at, hash }
    }
}

pub(super) fn write(workspace: &mut Workspace, to: &Path) -> Result<(), Error> {
    let id = workspace.id.as_str().to_owned();
    let look = workspace.look()?;
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(to);
    let file = file.map_err(|source| match source.kind() {
        std::io::ErrorKind::AlreadyExists => Error::Exists { path: to.to_owned() },
        _ => Error::Io { doing: "making the backup", path: to.to_owned(), source },
    })?;
    let written = write_lines(&look, id, &file, to);
    if written.is_err() {
        // It is ours and it is not whole: nobody must take it for a backup.
        let _ = std::fs::remove_file(to);
    }
    written
}

fn write_lines(look: &Look<'_>, id: String, file: &File, to: &Path) -> Result<(), Error> {
    let mut out = BufWriter::new(file);
    let mut line = |line: &Line| {
        let written = serde_json::to_writer(&mut out, line).map_err(std::io::Error::from);
        written.and_then(|()| out.write_all(b"\n")).map_err(|source| unwritten(to, source))
    };
    line(&Line::BatonBackup(heading(look, id)?))?;
    let (mut records, mut after) = (0, None::<(String, String)>);
    loop {
        let start = after.as_ref().map(|(kind, key)| (kind.as_str(), key.as_str()));
        let page = look.rows(start, PAGE)?;
        let Some(last) = page.last() else { break };
        after = Some((last.kind.to_owned(), last.key.clone()));
        for row in page {
            records += 1;
            let (kind, key) = (row.kind.to_owned(), row.key);
            line(&Line::Record { kind, key, version: row.version, body: row.body })?;
        }
    }
    let (mut entries, mut after) = (0, 0);
    loop {
        let page = look.entries(after, PAGE)?;
        let Some(last) = page.last() else { break };
        after = last.position.number;
        for entry in page {
            entries += 1;
            line(&Line::Entry(entry))?;
        }
    }
    line(&Line::End { records, entries })?;
    out.flush().and_then(|()| file.sync_all()).map_err(|source| unwritten(to, source))?;
    let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = File::open(folder.unwrap_or(Path::new(".")));
    folder.and_then(|folder| folder.sync_all()).map_err(|source| unwritten(to, source))
}

fn heading(look: &Look<'_>, workspace: String) -> Result<Heading, Error> {
    let origins = look.list(
        "SELECT root_commit, remote FROM baton.workspaces WHERE number = $1",
        &[(&look.standing.workspace, Type::INT8)],
        |row| Ok((row.try_get(0)?, row.try_get(1)?)),
    )?;
    let (root_commit, remote) = origins.into_iter().next().unwrap_or_default();
    let standing = &look.standing;
    Ok(Heading {
        format: FORMAT,
        workspace,
        root_commit,
        remote,
        made_at: standing.state.now,
        head: standing.state.head.clone().into(),
        epoch_max: standing.epoch_max.max(standing.state.epoch),
        archived: standing.archived.clone().map(StoredHead::from),
    })
}

fn unwritten(path: &Path, source: std::io::Error) -> Error {
    match source.kind() {
        std::io::ErrorKind::StorageFull => Error::Full { path: path.to_owned() },
        _ => Error::Io { doing: "writing the backup", path: path.to_owned(), source },
    }
}

/// The workspace that a backup was made of.
pub fn workspace_of(from: &Path) -> Result<String, Error> {
    Ok(Source::open(from)?.heading()?.workspace)
}

/// Gives the id of the workspace that was restored.
pub(super) fn restore(server: &mut Postgres, from: &Path) -> Result<String, Error> {
    let mut source = Source::open(from)?;
    let heading = source.heading()?;
    let id = Id::parse(&heading.workspace)?;
    server.reconnect_if_lost()?;
    let restored = restore_into(server, &mut source, heading, &id);
    if restored.is_err() {
        roll_back(&mut server.wire);
    }
    restored.map(|()| id.as_str().to_owned())
}

fn restore_into(
    server: &mut Postgres,
    source: &mut Source<'_>,
    heading: Heading,
    id: &Id,
) -> Result<(), Error> {
    let epoch_max = set_aside(server, id)?.max(heading.epoch_max);
    let workspace = insert_workspace(server, id, &heading, epoch_max)?;
    let archived = heading.archived.map(Head::from);
    let mut head = archived.unwrap_or_else(Head::start);
    let whole: Head = heading.head.into();
    loop {
        let page = source.page(&mut head)?;
        let last = page.changes.is_empty() && page.entries.is_empty();
        let before = page.before;
        let outcome = Outcome {
            workspace,
            before: &before,
            after: &head,
            // Nobody has written as this server yet: the next decision notices and raises.
            server: "restored",
            timeline: 0,
            failed_over_at: None,
            local: false,
            notify: None,
        };
        let wire = &mut server.wire;
        let written = batch::write(wire, &page.entries, &page.changes, &outcome, Then::GoOn);
        written.map_err(|error| decision::unwritten(server, error))?;
        if last {
            break;
        }
    }
    if head != whole {
        return Err(source.damaged("its journal does not end where its heading says"));
    }
    // Whoever listens reads again, whatever the lease says: it stands in the row set aside.
    let committed = server.wire.batch(&format!("NOTIFY {}; COMMIT", id.channel()));
    committed.map(drop).map_err(|error| {
        let told = wire::failed(&server.address, &error);
        if wire::is_lost(&error) {
            return Error::OutcomeUnknown { detail: told.to_string() };
        }
        told
    })
}

/// Opens the transaction and renames what is there. Gives the highest epoch ever used under `id`.
fn set_aside(server: &mut Postgres, id: &Id) -> Result<u32, Error> {
    let highest = match server.open(id, &Opening::Decide(PATIENCE)) {
        Ok(standing) => standing.epoch_max.max(standing.state.epoch),
        Err(Error::OtherStore { .. }) => {
            let begun = server.wire.batch("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE");
            begun.map_err(|error| wire::failed(&server.address, &error))?;
            0
        }
        Err(error) => return Err(error),
    };
    let rows = server.query(
        "WITH earlier AS (SELECT count(*) AS n, coalesce(max(epoch_max), 0) AS epoch_max \
         FROM baton.workspaces WHERE starts_with(id, $1 || '.before-restore-')), \
         renamed AS (UPDATE baton.workspaces w \
         SET id = $1 || '.before-restore-' || (earlier.n + 1) FROM earlier WHERE w.id = $1) \
         SELECT epoch_max FROM earlier",
        &[(&id.as_str(), Type::TEXT)],
    )?;
    let earlier: i64 = rows
        .first()
        .map_or(Ok(0), |row| row.try_get(0))
        .map_err(|error| told(server, error.into()))?;
    Ok(highest.max(u32::try_from(earlier).unwrap_or(u32::MAX)))
}

/// The row of the restored workspace, before its first entry.
fn insert_workspace(
    server: &mut Postgres,
    id: &Id,
    heading: &Heading,
    epoch_max: u32,
) -> Result<i64, Error> {
    let start = heading.archived.as_ref();
    let natural = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let position = start.map_or(Position::START, |head| head.position);
    let (at, hash) =
        start.map_or((0, String::new()), |head| (natural(head.at.0), head.hash.0.clone()));
    let rows = server.query(
        "INSERT INTO baton.workspaces (id, root_commit, remote, created_at, epoch, head_number, \
         head_at, head_hash, epoch_max, epoch_floor, raised_because, server, timeline, \
         archived_epoch, archived_number, archived_at, archived_hash, waiting_until) \
         VALUES ($1, $2, $3, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint, $4, \
         $5, $6, $7, $8, $8 + 1, 'a backup was restored', 'restored', 0, \
         CASE WHEN $9 THEN $4 END, CASE WHEN $9 THEN $5 END, CASE WHEN $9 THEN $6 END, \
         CASE WHEN $9 THEN $7 END, (SELECT coalesce(max(waiting_until), 0) \
         FROM baton.workspaces WHERE starts_with(id, $1 || '.before-restore-'))) \
         RETURNING number",
        &[
            (&id.as_str(), Type::TEXT),
            (&heading.root_commit, Type::TEXT),
            (&heading.remote, Type::TEXT),
            (&i64::from(position.epoch), Type::INT8),
            (&natural(position.number), Type::INT8),
            (&at, Type::INT8),
            (&hash, Type::TEXT),
            (&i64::from(epoch_max), Type::INT8),
            (&start.is_some(), Type::BOOL),
        ],
    )?;
    let number = rows.first().map(|row| row.try_get(0));
    let number = number.transpose().map_err(|error| told(server, error.into()))?;
    number.ok_or_else(|| Error::Backend { detail: "the workspace was not made".to_owned() })
}

/// A backup being read. Every line is checked before anything is committed.
struct Source<'a> {
    path: &'a Path,
    lines: std::io::Lines<BufReader<File>>,
    records: u64,
    entries: u64,
    ended: bool,
}

struct Page {
    before: Head,
    changes: Vec<Change>,
    entries: Vec<Entry>,
}

impl<'a> Source<'a> {
    fn open(path: &'a Path) -> Result<Self, Error> {
        let file = File::open(path).map_err(|source| match source.kind() {
            std::io::ErrorKind::NotFound => Error::Missing { path: path.to_owned() },
            _ => Error::Io { doing: "reading the backup", path: path.to_owned(), source },
        })?;
        let lines = BufReader::new(file).lines();
        Ok(Self { path, lines, records: 0, entries: 0, ended: false })
    }

    fn damaged(&self, detail: &str) -> Error {
        Error::Corrupt { path: self.path.to_owned(), detail: detail.to_owned() }
    }

    fn next(&mut self) -> Result<Line, Error> {
        let Some(line) = self.lines.next() else {
            return Err(self.damaged("the backup is cut short"));
        };
        let line = line.map_err(|source| Error::Io {
            doing: "reading the backup",
            path: self.path.to_owned(),
            source,
        })?;
        serde_json::from_str(&line).map_err(|error| {
            let at = self.records + self.entries + 2;
            self.damaged(&format!("line {at} is not one of a backup: {error}"))
        })
    }

    fn heading(&mut self) -> Result<Heading, Error> {
        let Line::BatonBackup(heading) = self.next()? else {
            return Err(self.damaged("it does not begin as a backup does"));
        };
        if heading.format != FORMAT {
            return Err(Error::Newer { found: heading.format, known: FORMAT });
        }
        Ok(heading)
    }

    /// The next records or entries, with `head` moved along. Empty at the end.
    fn page(&mut self, head: &mut Head) -> Result<Page, Error> {
        let mut page = Page { before: head.clone(), changes: Vec::new(), entries: Vec::new() };
        while !self.ended && page.changes.len() + page.entries.len() < PAGE as usize {
            match self.next()? {
                Line::BatonBackup(_) => return Err(self.damaged("it has two headings")),
                Line::Record { kind, key, version, body } => {
                    self.records += 1;
                    page.changes.push(self.change(&kind, key, version, body)?);
                }
                Line::Entry(entry) => {
                    follows(head, &entry).map_err(|broken| self.damaged(&broken.to_string()))?;
                    self.entries += 1;
                    *head = entry.head();
                    page.entries.push(entry);
                }
                Line::End { records, entries } => {
                    if (records, entries) != (self.records, self.entries) {
                        return Err(self.damaged("lines are missing"));
                    }
                    self.ended = true;
                }
            }
        }
        Ok(page)
    }

    fn change(&self, kind: &str, key: String, version: u64, body: String) -> Result<Change, Error> {
        let kind = kind_named(kind)
            .ok_or_else(|| self.damaged(&format!("records of kind {kind:?} are unknown")))?;
        let index_added = index_entries(kind, &body)
            .map_err(|_| self.damaged(&format!("the {kind} {key:?} cannot be read")))?;
        let put = Some((version, body));
        Ok(Change { kind, key, put, existed: false, index_removed: Vec::new(), index_added })
    }
}
