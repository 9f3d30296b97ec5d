//! Sealing: moves old entries from the store into an archive that was read back and verified.
//!
//! Owns the order of the steps, which makes every moment a safe one to die in: the store verifies
//! first; the file is written under another name, synced, read back and compared; it is put in
//! place; the snapshot event is committed; only then does the store forget. One that died half-way
//! is simply done again. Refuses a store that does not verify.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use baton_core::context::{Actor, Observed};
use baton_core::event::Event;
use baton_core::evolve::evolve;
use baton_core::id::Position;
use baton_core::journal::{Hash, Head, follows};
use baton_core::memory::Memory;
use baton_core::scene::Caller;
use rustix::fs::{CWD, FlockOperation, RenameFlags, flock, renameat_with};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Error, Examined, FORMAT, Footer, Header, Line, PART_SUFFIX, SUFFIX, examine, file_name,
    folder_of,
};
use crate::api;
use crate::failure::Failure;
use crate::journal::verify::{self, Base, Progress, Verified};
use crate::journal::{PAGE, first_where, since};
use crate::place::test_hooks;
use crate::store::Snapshot;
use crate::workspace::Workspace;

/// How many entries stay in the store when nothing else is said.
pub const KEEP_DEFAULT: u64 = 10_000;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Sealed {
    /// `None` when there was nothing to archive.
    pub archive: Option<Archived>,
    /// How many entries the store has now.
    pub kept: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Archived {
    pub file: PathBuf,
    pub first: Position,
    pub last: Position,
    pub entries: u64,
    pub records: u64,
    pub bytes: u64,
    pub state_hash: Hash,
}

/// What kept a store from being archived.
#[derive(Debug)]
pub enum Outcome {
    Done(Sealed),
    /// The store does not verify: nothing was touched.
    Unsound(Verified),
}

pub fn seal(
    workspace: &mut Workspace,
    actor: &Actor,
    wanted: &api::Archive,
    progress: Progress<'_>,
) -> Result<Outcome, Failure> {
    let folder = folder_of(&workspace.place.store);
    make_folder(&folder)?;
    let _held = one_at_a_time(&folder)?;
    let (found, base) = verify::verify_from(workspace, progress)?;
    let Some(base) = base.filter(|_| found.sound()) else {
        return Ok(Outcome::Unsound(found));
    };
    let snapshot = workspace.store.snapshot()?;
    let newest = snapshot.state().head.position.number;
    let Some(last) = cut(&*snapshot, wanted, &base.head)? else {
        let kept = newest.saturating_sub(base.head.position.number);
        return Ok(Outcome::Done(Sealed { archive: None, kept }));
    };
    let id = workspace.place.workspace.id.as_str().to_owned();
    let written = write(&*snapshot, &folder, &id, base, last, progress)?;
    drop(snapshot);
    stop_here(workspace, "written");
    let (path, made) = put_in_place(&folder, &written)?;
    stop_here(workspace, "placed");
    commit(workspace, actor, &made)?;
    stop_here(workspace, "committed");
    workspace.store.forget_entries(&made.head)?;
    let head = workspace.store.snapshot()?.state().head.position.number;
    Ok(Outcome::Done(Sealed {
        kept: head.saturating_sub(made.head.position.number),
        archive: Some(Archived {
            bytes: std::fs::metadata(&path).map_or(0, |data| data.len()),
            file: path,
            first: made.header.first,
            last: made.header.last,
            entries: made.entries,
            records: made.records.len() as u64,
            state_hash: made.state_hash,
        }),
    }))
}

/// The last entry to seal, if there is any.
fn cut(
    snapshot: &dyn Snapshot,
    wanted: &api::Archive,
    base: &Head,
) -> Result<Option<u64>, Failure> {
    let head = snapshot.state().head.position.number;
    let keep = wanted.keep.or_else(|| wanted.before.is_none().then_some(KEEP_DEFAULT));
    let mut last = head.saturating_sub(keep.unwrap_or(0));
    if let Some(before) = wanted.before.as_deref().and_then(|text| since(text).ok()) {
        let now = snapshot.state().now;
        let first_kept = first_where(snapshot, |entry| before.reached(entry, now))?;
        last = last.min(first_kept.saturating_sub(1));
    }
    Ok((last > base.position.number).then_some(last))
}

fn io(doing: &'static str, path: &Path) -> impl Fn(std::io::Error) -> Failure + use<> {
    let path = path.to_owned();
    move |source| Error::Io { doing, path: path.clone(), source }.into()
}

fn make_folder(folder: &Path) -> Result<(), Failure> {
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(io("make", folder))
}

/// Two archivists in one folder would write the same file.
fn one_at_a_time(folder: &Path) -> Result<File, Failure> {
    let path = folder.join("lock");
    let file = File::options().write(true).create(true).truncate(false).mode(0o600).open(&path);
    let file = file.map_err(io("open", &path))?;
    flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|_| Error::Busy)?;
    Ok(file)
}

/// Everything written goes through the hash.
struct Hashing<W: Write> {
    out: W,
    hasher: blake3::Hasher,
}

impl<W: Write> Hashing<W> {
    fn line(&mut self, line: &Line) -> std::io::Result<()> {
        let mut text = serde_json::to_vec(line)?;
        text.push(b'\n');
        self.hasher.update(&text);
        self.out.write_all(&text)
    }
}

struct Written {
    part: PathBuf,
    name: String,
    head: Head,
    state_hash: Hash,
}

/// Writes the entries after `base` up to number `last`, and the records they lead to.
fn write(
    snapshot: &dyn Snapshot,
    folder: &Path,
    workspace: &str,
    base: Base,
    last: u64,
    progress: Progress<'_>,
) -> Result<Written, Failure> {
    let Base { head: before, records: mut memory } = base;
    let position_of = |number: u64| -> Result<Position, Failure> {
        let entry = snapshot.entries(number - 1, 1)?;
        Ok(entry.first().map(|entry| entry.position).ok_or(Error::Cut)?)
    };
    let (first, last) = (position_of(before.position.number + 1)?, position_of(last)?);
    let name = file_name(first, last);
    let part = folder.join(format!("{}{PART_SUFFIX}", name.trim_end_matches(SUFFIX)));
    let failed = io("write", &part);
    let file = File::options().write(true).create(true).truncate(true).mode(0o600).open(&part);
    let file = file.map_err(&failed)?;
    let mut out =
        Hashing { out: BufWriter::with_capacity(1 << 17, &file), hasher: blake3::Hasher::new() };
    let workspace = workspace.to_owned();
    let header = Header { format: FORMAT, workspace, first, last, before: (&before).into() };
    out.line(&Line::BatonArchive(header)).map_err(&failed)?;
    let mut head = before;
    let mut entries = 0;
    while head.position.number < last.number {
        let page = snapshot.entries(head.position.number, PAGE)?;
        if page.is_empty() {
            return Err(Error::Cut.into());
        }
        for entry in page.into_iter().filter(|entry| entry.position.number <= last.number) {
            follows(&head, &entry).map_err(Error::from)?;
            head = entry.head();
            let event = entry
                .event()
                .map_err(|why| Error::Malformed { line: entries + 2, why: why.to_string() })?;
            evolve(&mut memory, &event).map_err(Error::from)?;
            out.line(&Line::Entry(entry)).map_err(&failed)?;
            entries += 1;
        }
        progress(entries, last.number - first.number + 1);
    }
    let state_hash = finish(&mut out, &memory, entries, &head).map_err(&failed)?;
    drop(out);
    file.sync_all().map_err(&failed)?;
    Ok(Written { part, name, head, state_hash })
}

fn finish(
    out: &mut Hashing<impl Write>,
    memory: &Memory,
    entries: u64,
    head: &Head,
) -> std::io::Result<Hash> {
    for row in memory.rows() {
        let kind = row.kind.to_owned();
        out.line(&Line::Record { kind, key: row.key, version: row.version, body: row.body })?;
    }
    let state_hash = memory.hash();
    let hash = Hash(out.hasher.finalize().to_hex().to_string());
    let records = memory.len() as u64;
    let head = head.into();
    out.line(&Line::End(Footer { entries, records, state_hash: state_hash.clone(), head, hash }))?;
    out.out.flush()?;
    Ok(state_hash)
}

/// Reads the file back, compares, and gives it its name. One that has the name already is taken
/// when it is the same: its maker died before the journal knew of it.
fn put_in_place(folder: &Path, written: &Written) -> Result<(PathBuf, Examined), Failure> {
    let same = |examined: &Examined| {
        examined.head == written.head && examined.state_hash == written.state_hash
    };
    let made = examine(&written.part)?;
    if !same(&made) {
        return Err(Error::Changed.into());
    }
    let path = folder.join(&written.name);
    match renameat_with(CWD, &written.part, CWD, &path, RenameFlags::NOREPLACE) {
        Ok(()) => {}
        Err(rustix::io::Errno::EXIST) => {
            if !examine(&path).is_ok_and(|there| same(&there)) {
                return Err(Error::Taken { path }.into());
            }
            std::fs::remove_file(&written.part).map_err(io("remove", &written.part))?;
        }
        Err(error) => return Err(io("name", &path)(error.into())),
    }
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(io("sync", folder))?;
    Ok((path, made))
}

/// The journal says that the archive is there, before anything is forgotten.
fn commit(workspace: &mut Workspace, actor: &Actor, made: &Examined) -> Result<(), Failure> {
    let event = Event::SnapshotTaken {
        state_hash: made.state_hash.clone(),
        records: made.records.len() as u64,
        archive: file_name(made.header.first, made.header.last),
    };
    workspace.decide(actor, Observed::default(), |view, context| {
        if context.actor.session.is_some() {
            // The entry names who acted, so that must be proven (S19).
            Caller::read(view, context)?;
        }
        Ok((vec![event], ()))
    })
}

/// Dies here when a test wants to see what is left.
fn stop_here(workspace: &Workspace, point: &str) {
    if test_hooks::stops_at(&workspace.place.store, point) {
        std::process::abort();
    }
}
