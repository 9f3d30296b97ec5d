//! The SQLite store: the suite, its files, its log.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use baton_core::event::Durability;
use baton_engine::store::Store;
use baton_engine::store::sqlite::{Sqlite, restore};

use super::conformance::{self, Fixture};
use super::writing::{alias, counter, increment, notice, write, write_as};

pub(crate) struct InFolder(pub(crate) tempfile::TempDir);

impl InFolder {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Sqlite::create(folder.path()).unwrap();
        Self(folder)
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn file(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn sqlite(&self) -> Sqlite {
        Sqlite::open(self.path()).unwrap()
    }
}

impl Fixture for InFolder {
    fn fresh(&self) -> Box<dyn Fixture> {
        Box::new(Self::new())
    }

    fn open(&self) -> Box<dyn Store> {
        Box::new(self.sqlite())
    }

    fn restore(&self, from: &Path) -> bool {
        restore(self.path(), from).unwrap();
        true
    }
}

#[test]
fn sqlite_conforms() {
    conformance::all(&InFolder::new());
}

#[test]
fn looks_stay_at_one_moment_until_something_is_begun() {
    let folder = InFolder::new();
    let (mut one, mut other) = (folder.sqlite(), folder.sqlite());
    one.stay_at_this_moment();
    let seen = |store: &mut Sqlite| store.snapshot().unwrap().state().head.position.number;
    let first = seen(&mut one);
    write(&mut other, &[alias("a", "1")]).unwrap();
    assert_eq!(seen(&mut one), first, "the moment of the first look");
    assert_eq!(seen(&mut other), first + 1);
    drop(one.begin(Duration::from_secs(5)).unwrap());
    assert_eq!(seen(&mut one), first + 1, "what is new");
    one.stay_at_this_moment();
    assert_eq!(seen(&mut one), first + 1);
    write(&mut other, &[alias("a", "2")]).unwrap();
    write(&mut one, &[alias("a", "3")]).unwrap();
    assert_eq!(seen(&mut one), first + 3, "a decision is made on what is there now");
}

#[test]
fn files_are_private() {
    let outer = tempfile::tempdir().unwrap();
    let folder = outer.path().join("a/store");
    let mut store = Sqlite::create(&folder).unwrap();
    write(&mut store, &[alias("a", "1")]).unwrap();
    let copy = folder.join("copy");
    store.backup(&copy).unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    let mut names = Vec::new();
    for found in std::fs::read_dir(&folder).unwrap() {
        let path = found.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{path:?}");
        names.push(path.file_name().unwrap().to_string_lossy().into_owned());
    }
    names.sort();
    let ours = ["copy", "gate", "line", "news", "views.sql"];
    assert_eq!(
        names,
        [&ours[..4], &["store.db", "store.db-shm", "store.db-wal"], &ours[4..]].concat()
    );
}

#[test]
fn creating_again_changes_nothing() {
    let outer = tempfile::tempdir().unwrap();
    let folder = outer.path().join("store");
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let mut store = Sqlite::create(&folder).unwrap();
                increment(&mut store, "n", Durability::Process).unwrap();
            });
        }
    });
    let mut store = Sqlite::create(&folder).unwrap();
    assert_eq!(counter(&*store.snapshot().unwrap(), "n"), 8);
    assert!(!folder.join("store.db.new").exists());
}

#[test]
fn people_can_look_with_sqlite3() {
    let fixture = InFolder::new();
    write(&mut fixture.sqlite(), &[alias("a", "1")]).unwrap();
    let shell = rusqlite::Connection::open(fixture.file("store.db")).unwrap();
    shell.execute_batch(&std::fs::read_to_string(fixture.file("views.sql")).unwrap()).unwrap();
    for view in ["claims", "sessions", "waiters", "tasks", "journal"] {
        let sql = format!("SELECT count(*) FROM {view}");
        shell.query_row(&sql, [], |row| row.get::<_, i64>(0)).unwrap();
    }
}

#[test]
fn the_log_does_not_grow_without_bound() {
    let fixture = InFolder::new();
    let (mut store, mut other) = (fixture.sqlite(), fixture.sqlite());
    let body = "x".repeat(2_000);
    for n in 0..3_000 {
        let edits = [alias(&format!("a{}", n % 50), &body), notice(&format!("n{}", n % 50), "s1")];
        write(if n % 2 == 0 { &mut store } else { &mut other }, &edits).unwrap();
    }
    let log = || std::fs::metadata(fixture.file("store.db-wal")).unwrap().len();
    assert!(log() < 1_200 * 4_120, "{} bytes", log());
    // A reader that stays on an old look keeps the log from being used again, but not for ever.
    let mut reader = fixture.sqlite();
    let look = reader.snapshot().unwrap();
    for n in 0..500 {
        write(&mut store, &[alias(&format!("a{n}"), &body)]).unwrap();
    }
    drop(look);
    write(&mut store, &[alias("a", "1")]).unwrap();
    let before = log();
    for n in 0..1_000 {
        write(&mut store, &[alias(&format!("a{}", n % 50), &body)]).unwrap();
    }
    assert!(log() <= before.max(1_200 * 4_120), "{} bytes after {before}", log());
}

#[test]
fn a_synced_commit_empties_a_shorter_log() {
    let fixture = InFolder::new();
    let mut store = fixture.sqlite();
    let frames = |store: &str| {
        let shell = rusqlite::Connection::open(store).unwrap();
        let sql = "PRAGMA wal_checkpoint(NOOP)";
        shell.query_row(sql, [], |row| Ok((row.get::<_, i64>(1)?, row.get::<_, i64>(2)?))).unwrap()
    };
    for n in 0..150 {
        write(&mut store, &[alias(&format!("a{n}"), &"x".repeat(3_000))]).unwrap();
    }
    let path = fixture.file("store.db").display().to_string();
    let (log, done) = frames(&path);
    assert!(log > 256 && done == 0, "{log} pages, {done} moved");
    write_as(&mut store, Durability::Power, &[alias("a", "1")]).unwrap();
    let (log, done) = frames(&path);
    assert_eq!(log, done);
    for n in 0..150 {
        write(&mut store, &[alias(&format!("a{n}"), &"x".repeat(3_000))]).unwrap();
    }
    store.checkpoint().unwrap();
    let (log, done) = frames(&path);
    assert_eq!(log, done);
}

/// How far a log was copied is forgotten when nobody has it open, so copying alone would have every
/// process that is alone copy the whole log again.
#[test]
fn processes_that_are_alone_end_the_log() {
    let fixture = InFolder::new();
    let mut ended = 0;
    let mut before = 0;
    for n in 0..700 {
        write(&mut fixture.sqlite(), &[alias(&format!("a{n}"), &"x".repeat(5_000))]).unwrap();
        let now = std::fs::metadata(fixture.file("store.db-wal")).unwrap().len();
        assert!(now < 1_100 * 4_120, "{now} bytes");
        ended += u32::from(now < before);
        before = now;
    }
    assert!((1..12).contains(&ended), "{ended} times");
}
