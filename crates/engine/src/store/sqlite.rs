//! The default store: one SQLite file per workspace, no server.
//!
//! Writers take the gate first and SQLite's locks second, so they are served in turn; readers take
//! neither and never wait. Checkpoints are planned and never happen by surprise. The database file
//! is opened and closed by SQLite only: any other `close` of it would drop the locks of this
//! process. If the store cannot be used, every call says why; there is no other place to fall back
//! to (S11, S25).

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use baton_core::event::Durability;
use baton_core::journal::{Entry, Head};
use baton_core::view::{Query, Row, Unreadable, View};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, OptionalExtension};

use super::surroundings::Surroundings;
use super::{Commit, Error, News, Snapshot, State, Store, Transaction};
use crate::filesystem;
use gate::{Gate, Held};
use read::Reader;
use state::{HighWater, Sealed, Standing};
use write::Writer;

mod backup;
mod fault;
mod gate;
#[cfg(target_env = "musl")]
mod heap;
mod holder;
mod line;
mod news;
mod read;
mod recovery;
mod schema;
mod state;
mod write;

pub use backup::{restore, workspace_of};

/// A commit that syncs anyway also empties a log above this.
const CHECKPOINT_PAGES_SYNCED: u32 = 256;
/// Who was alone with the store and had to read more than this empties the log after its commit:
/// reading a page costs 1.7 µs each time, emptying 20 ms once, so a shorter log would not pay.
const CHECKPOINT_PAGES_ALONE: u32 = 512;
/// Any commit empties a log above this, after it has opened the gate.
const CHECKPOINT_PAGES_ANY: u32 = 1_024;
/// Above this it does so before it opens the gate: nobody can append meanwhile, so the log ends.
const CHECKPOINT_PAGES_GATED: u32 = 4_096;

/// How long SQLite itself waits: for another's recovery of the log, or a shell that writes.
const SQLITE_PATIENCE: Duration = Duration::from_secs(5);

/// How long a trace waits for the gate: it may be lost, and a hook waits behind it.
const TRACE_PATIENCE: Duration = Duration::from_millis(1_500);

/// How long rare, large work waits: making, restoring, forgetting.
const LONG_PATIENCE: Duration = Duration::from_secs(10);

const STATEMENTS_MAX: usize = 32;

#[derive(Debug)]
pub struct Sqlite {
    /// The database file; gate, news and epoch are beside it.
    path: PathBuf,
    news: PathBuf,
    connection: Connection,
    /// Device and inode of the file the connection is on.
    identity: (u64, u64),
    gate: Gate,
    surroundings: Surroundings,
    /// How safe commits of this connection are just now; `None` is SQLite's default.
    syncs: Option<Durability>,
    /// Pages in the log after the last commit of this connection.
    log_pages: Arc<AtomicU32>,
    /// Whether looks leave their transaction open for the next one.
    stays: bool,
    /// How the store stands in a transaction that was left open.
    standing: Option<State>,
}

impl Sqlite {
    /// Opens the store in `folder`, as the machine is.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        Self::open_in(folder, Surroundings::look(folder)?)
    }

    /// Opens the store in `folder` as if the machine were like `surroundings`.
    pub fn open_in(folder: &Path, surroundings: Surroundings) -> Result<Self, Error> {
        trust(folder, &surroundings)?;
        let path = database_in(folder);
        let log_pages = Arc::default();
        let (connection, identity) = connect(&path, &log_pages)?;
        Ok(Self {
            news: news::path_in(folder),
            gate: Gate::of(folder),
            path,
            connection,
            identity,
            surroundings,
            syncs: None,
            log_pages,
            stays: false,
            standing: None,
        })
    }

    /// Makes the store in `folder` unless it is there, and opens it. Whoever comes at the same time
    /// gets the same store; one that is there is never changed.
    pub fn create(folder: &Path) -> Result<Self, Error> {
        schema::private_folder(folder)?;
        Self::create_in(folder, Surroundings::look(folder)?)
    }

    pub fn create_in(folder: &Path, surroundings: Surroundings) -> Result<Self, Error> {
        schema::private_folder(folder)?;
        trust(folder, &surroundings)?;
        let path = database_in(folder);
        if std::fs::symlink_metadata(&path).is_err() {
            let _held = Gate::of(folder).enter(LONG_PATIENCE)?;
            if std::fs::symlink_metadata(&path).is_err() {
                schema::build(&path, &surroundings)?;
            }
        }
        Self::open_in(folder, surroundings)
    }

    /// Moves the log into the database when it has more than 256 pages: at the start and end of a
    /// session, and now and then in processes that stay. Never waits for anybody.
    pub fn checkpoint(&mut self) -> Result<(), Error> {
        self.go_on();
        self.follow_file()?;
        let log = self.path.with_file_name("store.db-wal");
        let bytes = std::fs::metadata(log).map_or(0, |data| data.len());
        if bytes > u64::from(CHECKPOINT_PAGES_SYNCED) * 4_096 {
            self.empty_log();
        }
        Ok(())
    }

    /// Copies what it can while others write, then ends the log if nobody is at the gate. A failure
    /// is no error: the log is as good a place for commits as the database, only slower to open.
    fn empty_log(&self) {
        let passive = "PRAGMA wal_checkpoint(PASSIVE)";
        let copied = self.connection.query_row(passive, [], |_| Ok(()));
        if let (Ok(()), Some(_held)) = (copied, self.gate.enter_if_open()) {
            self.end_log();
        }
    }

    /// Cuts the log to nothing. Copying alone is not enough: how far the log was copied stands in
    /// shared memory, which ends with its last user, and the next one would copy it all again. The
    /// gate is held, because a writer would meet SQLite's lock and fail. No reader is waited for.
    fn end_log(&self) {
        let _ = self.connection.busy_timeout(Duration::ZERO);
        let truncate = "PRAGMA wal_checkpoint(TRUNCATE)";
        let _ = self.connection.query_row(truncate, [], |_| Ok(()));
        let _ = self.connection.busy_timeout(SQLITE_PATIENCE);
    }

    fn reader(&self) -> Reader<'_> {
        Reader { connection: &self.connection, path: &self.path }
    }

    fn writer(&self) -> Writer<'_> {
        Writer { connection: &self.connection, path: &self.path }
    }

    /// Takes up the file that now has the name: a damaged database may have been put aside.
    fn follow_file(&mut self) -> Result<(), Error> {
        if identity_of(&self.path)? != self.identity {
            (self.connection, self.identity) = connect(&self.path, &self.log_pages)?;
            (self.syncs, self.standing) = (None, None);
        }
        Ok(())
    }

    /// Opens a transaction on what is committed now and reads where the store stands.
    fn look(&mut self, begin: &str) -> Result<Standing, Error> {
        let begun = Instant::now();
        let read = || state::read(&self.connection, &self.path, &self.surroundings);
        let standing = self.execute(begin).and_then(|()| read());
        standing.map_err(|error| {
            self.roll_back();
            fault::after(begun, error)
        })
    }

    /// What stands in the gate's protection: one writer's turn.
    fn turn(&mut self, patience: Duration) -> Result<(Held, Standing), Error> {
        let begun = Instant::now();
        self.go_on();
        self.prepare();
        let held = self.gate.enter(patience)?;
        self.follow_file()?;
        self.sync_for(Durability::Process)?;
        // At once for writing: SQLite waits for a stranger's lock here, and not where a look
        // becomes a write. What the gate took is not waited for again.
        let left = patience.saturating_sub(begun.elapsed());
        let _ = self.connection.busy_timeout(left);
        let standing = self.look("BEGIN IMMEDIATE");
        let _ = self.connection.busy_timeout(SQLITE_PATIENCE);
        Ok((held, standing?))
    }

    /// The first statement of a connection reads the schema, which takes longer than all that a
    /// claim writes: before the gate, so that nobody waits for it. A failure is met again there.
    fn prepare(&mut self) {
        if self.syncs.is_none() {
            let _ = self.connection.busy_timeout(Duration::ZERO);
            let _ = self.sync_for(Durability::Process);
            let _ = self.connection.busy_timeout(SQLITE_PATIENCE);
        }
    }

    /// SQLite lets this be changed between transactions only.
    fn sync_for(&mut self, durability: Durability) -> Result<(), Error> {
        if self.syncs != Some(durability) {
            self.execute(match durability {
                Durability::Process => "PRAGMA synchronous=NORMAL",
                Durability::Power => "PRAGMA synchronous=FULL",
            })?;
            self.syncs = Some(durability);
        }
        Ok(())
    }

    fn execute(&self, sql: &str) -> Result<(), Error> {
        self.writer().run(sql, []).map(|_| ())
    }

    fn end_commit(&self) -> Result<(), Error> {
        self.connection
            .prepare_cached("COMMIT")
            .and_then(|mut statement| statement.execute([]))
            .map(|_| ())
            .map_err(|error| {
                self.roll_back();
                fault::of_commit(&self.path, &error)
            })
    }

    /// Looks see what is new again.
    fn go_on(&mut self) {
        self.stays = false;
        if self.standing.take().is_some() {
            self.roll_back();
        }
    }

    fn roll_back(&self) {
        // SQLite may have rolled back by itself; then there is nothing left to end.
        if !self.connection.is_autocommit() {
            let _ = self.execute("ROLLBACK");
        }
    }

    /// After a commit: opens the gate, empties a long log. The commit stands whatever happens here.
    fn leave(&self, held: Held, durability: Durability) {
        let pages = self.log_pages.load(Ordering::Relaxed);
        if pages > CHECKPOINT_PAGES_GATED {
            self.end_log();
        }
        drop(held);
        let was_alone = recovery::pages_read() > CHECKPOINT_PAGES_ALONE;
        let limit = match durability {
            Durability::Process if was_alone => CHECKPOINT_PAGES_ALONE,
            Durability::Process => CHECKPOINT_PAGES_ANY,
            Durability::Power => CHECKPOINT_PAGES_SYNCED,
        };
        if pages > limit && pages <= CHECKPOINT_PAGES_GATED {
            self.empty_log();
        }
    }
}

fn database_in(folder: &Path) -> PathBuf {
    folder.join("store.db")
}

/// Traces are rows of `meta`: a table of their own would be read at every open.
fn trace_key(key: &str) -> String {
    format!("trace:{key}")
}

fn trust(folder: &Path, surroundings: &Surroundings) -> Result<(), Error> {
    match surroundings.filesystem {
        filesystem::Kind::Local => Ok(()),
        filesystem::Kind::Network { name } => {
            Err(Error::NetworkFilesystem { path: folder.to_owned(), filesystem: name.to_owned() })
        }
    }
}

/// Asks for the file's name only: opening the file would be the trap that this module avoids.
fn identity_of(path: &Path) -> Result<(u64, u64), Error> {
    use std::os::unix::fs::MetadataExt;
    let found = std::fs::metadata(path)
        .map_err(|error| fault::of_file("looking for the store", path, error))?;
    match found.is_dir() {
        true => Err(Error::Folder { path: path.to_owned() }),
        false => Ok((found.dev(), found.ino())),
    }
}

fn connect(path: &Path, pages: &Arc<AtomicU32>) -> Result<(Connection, (u64, u64)), Error> {
    // Before it is opened: were it replaced in between, the next look would tell.
    let identity = identity_of(path)?;
    let fault = |error| fault::not_done(path, &error);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    #[cfg(target_env = "musl")]
    heap::install();
    recovery::listen();
    let mut connection = Connection::open_with_flags(path, flags).map_err(fault)?;
    // SQLite opens a file it may not write for reading and says nothing.
    if connection.is_readonly("main").map_err(fault)? {
        return Err(Error::ReadOnly { path: path.to_owned() });
    }
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map_err(fault)?;
    connection.busy_timeout(SQLITE_PATIENCE).map_err(fault)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    // Takes the place of SQLite's automatic checkpoint, and costs no statement.
    let pages = Arc::clone(pages);
    let hook = move |_: &mut rusqlite::hooks::Wal, now: i32| {
        pages.store(now.unsigned_abs(), Ordering::Relaxed);
        Ok(())
    };
    connection.wal_hook(Some(hook)).map_err(fault)?;
    Ok((connection, identity))
}

impl Store for Sqlite {
    fn snapshot(&mut self) -> Result<Box<dyn Snapshot + '_>, Error> {
        let state = match self.standing.take() {
            Some(state) => state,
            None => {
                self.follow_file()?;
                self.look("BEGIN")?.state
            }
        };
        Ok(Box::new(Look { store: self, state }))
    }

    fn stay_at_this_moment(&mut self) {
        self.stays = true;
    }

    fn leave_this_moment(&mut self) {
        self.go_on();
    }

    fn begin(&mut self, patience: Duration) -> Result<Box<dyn Transaction + '_>, Error> {
        let (held, standing) = self.turn(patience)?;
        Ok(Box::new(Deciding { store: self, held: Some(held), standing }))
    }

    fn news(&mut self) -> Result<Box<dyn News>, Error> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        Ok(Box::new(news::News::of(folder)?))
    }

    fn trace(&mut self, key: &str) -> Result<Option<String>, Error> {
        self.follow_file()?;
        state::check_version(&self.connection, &self.path)?;
        self.connection
            .prepare_cached("SELECT value FROM meta WHERE key=?1")
            .and_then(|mut statement| {
                statement.query_row([trace_key(key)], |row| row.get(0)).optional()
            })
            .map_err(|error| fault::not_done(&self.path, &error))
    }

    fn set_trace(&mut self, key: &str, value: &str) -> Result<(), Error> {
        if self.trace(key)?.as_deref() == Some(value) {
            return Ok(());
        }
        let (held, _) = self.turn(TRACE_PATIENCE)?;
        let set = "INSERT OR REPLACE INTO meta VALUES(?1, ?2)";
        if let Err(error) = self.writer().run(set, [&trace_key(key), value]) {
            self.roll_back();
            return Err(error);
        }
        self.end_commit()?;
        self.leave(held, Durability::Process);
        Ok(())
    }

    fn forget_entries(&mut self, sealed: &Head) -> Result<(), Error> {
        let (held, _) = self.turn(LONG_PATIENCE)?;
        let forgotten = self.forget(sealed);
        if forgotten.is_err() {
            self.roll_back();
        }
        forgotten?;
        self.end_commit()?;
        self.leave(held, Durability::Power);
        Ok(())
    }

    fn backup(&mut self, to: &Path) -> Result<(), Error> {
        self.follow_file()?;
        state::check_version(&self.connection, &self.path)?;
        backup::copy_out(&self.connection, &self.path, to)
    }

    fn quick_check(&mut self) -> Result<(), Error> {
        self.follow_file()?;
        let found: String = self
            .connection
            .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
            .map_err(|error| fault::not_done(&self.path, &error))?;
        match found.as_str() {
            "ok" => self.snapshot().map(drop),
            _ => Err(Error::Corrupt { path: self.path.clone(), detail: found }),
        }
    }

    fn describe(&self) -> String {
        format!("SQLite {} in {}", rusqlite::version(), self.path.display())
    }
}

impl Sqlite {
    fn forget(&self, sealed: &Head) -> Result<(), Error> {
        let before = self.reader().entries_before(sealed.position.number.saturating_add(1), 1)?;
        if before.first().map(Entry::head).as_ref() != Some(sealed) {
            let detail =
                format!("the journal has no entry {} like the sealed one", sealed.position);
            return Err(Error::Backend { detail });
        }
        let number = i64::try_from(sealed.position.number).unwrap_or(i64::MAX);
        self.writer().run("DELETE FROM journal WHERE number<=?1", [number])?;
        self.writer().meta("archived", &Sealed::from(sealed))
    }
}

/// A look at one moment, without the gate.
struct Look<'a> {
    store: &'a mut Sqlite,
    state: State,
}

impl View for Look<'_> {
    fn read(&self, queries: &[Query]) -> Result<Vec<Vec<Row>>, Unreadable> {
        self.store.reader().read(queries)
    }
}

impl Snapshot for Look<'_> {
    fn state(&self) -> &State {
        &self.state
    }

    fn entries(&self, after: u64, limit: u32) -> Result<Vec<Entry>, Error> {
        self.store.reader().entries(after, limit)
    }

    fn entries_before(&self, before: u64, limit: u32) -> Result<Vec<Entry>, Error> {
        self.store.reader().entries_before(before, limit)
    }

    fn rows(&self, after: Option<(&str, &str)>, limit: u32) -> Result<Vec<Row>, Error> {
        self.store.reader().rows(after, limit)
    }

    fn index_entries(&self) -> Result<Vec<(String, String, String, String)>, Error> {
        self.store.reader().index_entries()
    }

    fn archived(&self) -> Result<Option<Head>, Error> {
        state::archived(&self.store.connection, &self.store.path)
    }
}

impl Drop for Look<'_> {
    fn drop(&mut self) {
        match self.store.stays {
            true => self.store.standing = Some(self.state.clone()),
            false => self.store.roll_back(),
        }
    }
}

/// One decision: the gate is held, the state cannot change under it.
struct Deciding<'a> {
    store: &'a mut Sqlite,
    held: Option<Held>,
    standing: Standing,
}

impl View for Deciding<'_> {
    fn read(&self, queries: &[Query]) -> Result<Vec<Vec<Row>>, Unreadable> {
        self.store.reader().read(queries)
    }
}

impl Transaction for Deciding<'_> {
    fn state(&self) -> &State {
        &self.standing.state
    }

    fn commit(mut self: Box<Self>, commit: &Commit<'_>) -> Result<(), Error> {
        let raises = self.raises(commit);
        let durability = if raises { Durability::Power } else { commit.durability };
        super::check_order(&self.standing.state, commit.entries)?;
        if raises {
            HighWater::beside(&self.store.path).raise(self.standing.state.epoch)?;
        }
        if durability == Durability::Power {
            self.begin_synced()?;
        }
        self.write(commit, raises)?;
        self.store.end_commit()?;
        news::touch(&self.store.news);
        if let Some(held) = self.held.take() {
            self.store.leave(held, durability);
        }
        Ok(())
    }
}

impl Deciding<'_> {
    fn raises(&self, commit: &Commit<'_>) -> bool {
        let State { epoch, head, .. } = &self.standing.state;
        *epoch > head.position.epoch && !commit.entries.is_empty()
    }

    /// Begins again with syncing on. The gate is held throughout, so only a stranger can have
    /// written in between, and then this decision is not done.
    fn begin_synced(&mut self) -> Result<(), Error> {
        self.store.roll_back();
        self.store.sync_for(Durability::Power)?;
        let begun = Instant::now();
        let began = self.store.execute("BEGIN IMMEDIATE");
        began.map_err(|error| fault::after(begun, error))?;
        let now = state::read(&self.store.connection, &self.store.path, &self.store.surroundings)?;
        if now.state.head != self.standing.state.head {
            return Err(Error::Disturbed);
        }
        Ok(())
    }

    fn write(&self, commit: &Commit<'_>, raises: bool) -> Result<(), Error> {
        let writer = self.store.writer();
        if let Some(anchor) = self.standing.new_anchor.as_ref().filter(|_| raises) {
            writer.anchor(anchor)?;
        }
        commit.entries.iter().try_for_each(|entry| writer.entry(entry))?;
        commit.changes.iter().try_for_each(|change| writer.change(change))
    }
}

impl Drop for Deciding<'_> {
    fn drop(&mut self) {
        self.store.roll_back();
    }
}
