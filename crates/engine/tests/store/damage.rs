//! Stores that cannot be used: every one is told apart, none is taken for an empty store.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;

use baton_engine::store::sqlite::{Sqlite, restore};
use baton_engine::store::{Error, SCHEMA_VERSION, Store};

use super::processes::{command, outcome, whole_run};
use super::sqlite::InFolder;
use super::writing::{PATIENCE, alias, counter, write};

const NOBODY: u32 = 65_534;

#[test]
fn lesson_25_what_is_missing_is_not_made() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(outcome(&folder.path().join("nowhere")), "Missing");
    assert_eq!(outcome(folder.path()), "Missing");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    let fixture = InFolder::new();
    let mut resident = fixture.sqlite();
    fs::remove_file(fixture.file("store.db")).unwrap();
    let refused = resident.begin(PATIENCE).map(|_| ());
    assert!(matches!(refused, Err(Error::Missing { .. })), "{refused:?}");
    assert!(matches!(resident.snapshot().map(|_| ()), Err(Error::Missing { .. })));
}

#[test]
fn a_log_without_its_database_is_not_played_into_a_new_one() {
    let fixture = InFolder::new();
    let mut store = fixture.sqlite();
    write(&mut store, &[alias("a", "1")]).unwrap();
    drop(store);
    fs::remove_file(fixture.file("store.db")).unwrap();
    let refused = Sqlite::create(fixture.path()).map(|_| ());
    assert!(matches!(refused, Err(Error::Corrupt { .. })), "{refused:?}");
}

#[test]
fn lesson_25_garbage_is_damage() {
    let fixture = InFolder::new();
    write(&mut fixture.sqlite(), &[alias("a", "1")]).unwrap();
    let path = fixture.file("store.db");
    let aside = fixture.file("aside");
    let clear_log =
        || ["store.db-wal", "store.db-shm"].map(|name| fs::remove_file(fixture.file(name)));
    let _ = clear_log();
    fs::rename(&path, &aside).unwrap();
    for garbage in ["", "garbage", &"garbage ".repeat(2_000)] {
        fs::write(&path, garbage).unwrap();
        assert_eq!(outcome(fixture.path()), "Corrupt", "{} bytes", garbage.len());
        assert!(matches!(Sqlite::create(fixture.path()), Ok(_) | Err(Error::Corrupt { .. })));
        assert_eq!(fs::read_to_string(&path).unwrap(), garbage, "it is left as it was");
        let _ = clear_log();
    }
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert_eq!(outcome(fixture.path()), "Folder");
    fs::remove_dir(&path).unwrap();
    let mut bytes = fs::read(&aside).unwrap();
    bytes[20..90].fill(0xff);
    fs::write(&path, bytes).unwrap();
    assert_eq!(outcome(fixture.path()), "Corrupt");
    let foreign = rusqlite::Connection::open(fixture.file("foreign")).unwrap();
    foreign.execute_batch("CREATE TABLE t(a)").unwrap();
    drop(foreign);
    fs::rename(fixture.file("foreign"), &path).unwrap();
    assert_eq!(outcome(fixture.path()), "Corrupt");
}

/// Runs as a user whom permissions stop; `None` where that is not possible.
fn outcome_for_nobody(folder: &Path) -> Option<String> {
    let mut child = command(&[], "try", folder);
    if rustix::process::getuid().is_root() {
        child.uid(NOBODY).gid(NOBODY);
    }
    whole_run(child)?.pop()
}

fn give_to_nobody(folder: &Path) {
    if rustix::process::getuid().is_root() {
        std::os::unix::fs::chown(folder, Some(NOBODY), Some(NOBODY)).unwrap();
        for found in fs::read_dir(folder).unwrap() {
            std::os::unix::fs::chown(found.unwrap().path(), Some(NOBODY), Some(NOBODY)).unwrap();
        }
    }
}

#[test]
fn lesson_13_permissions_are_an_error_and_never_an_answer() {
    let fixture = InFolder::new();
    write(&mut fixture.sqlite(), &[alias("a", "1")]).unwrap();
    give_to_nobody(fixture.path());
    let mode = |name: &str, mode| {
        let permissions = fs::Permissions::from_mode(mode);
        fs::set_permissions(fixture.path().join(name), permissions).unwrap();
    };
    let Some(usable) = outcome_for_nobody(fixture.path()) else { return };
    assert_eq!(usable, "done");
    for (name, changed, back, expected) in [
        ("store.db", 0o000, 0o600, "Io:PermissionDenied"),
        ("store.db", 0o400, 0o600, "ReadOnly"),
        ("gate", 0o400, 0o600, "ReadOnly"),
        ("store.db-wal", 0o000, 0o600, "Io:Other"),
        ("store.db-shm", 0o000, 0o600, "Io:Other"),
        ("", 0o000, 0o700, "Io:PermissionDenied"),
    ] {
        mode(name, changed);
        assert_eq!(outcome_for_nobody(fixture.path()).unwrap(), expected, "{name} {changed:o}");
        mode(name, back);
    }
    assert_eq!(outcome_for_nobody(fixture.path()).unwrap(), "done");
}

#[test]
fn lesson_27_s21_another_layout_is_refused_also_by_who_stays() {
    let fixture = InFolder::new();
    let mut resident = fixture.sqlite();
    write(&mut resident, &[alias("a", "1")]).unwrap();
    let set = |version: u32| {
        let shell = rusqlite::Connection::open(fixture.file("store.db")).unwrap();
        shell.execute_batch(&format!("PRAGMA user_version={version}")).unwrap();
    };
    set(SCHEMA_VERSION + 1);
    let refusals = [
        resident.begin(PATIENCE).map(|_| ()),
        resident.snapshot().map(|_| ()),
        resident.trace("a").map(|_| ()),
        resident.set_trace("a", "b"),
        resident.backup(&fixture.file("copy")),
        fixture.sqlite().snapshot().map(|_| ()),
    ];
    for refused in refusals {
        assert!(matches!(refused, Err(Error::Newer { found: 2, known: 1 })), "{refused:?}");
    }
    set(SCHEMA_VERSION);
    let copy = fixture.file("copy");
    resident.backup(&copy).unwrap();
    set(SCHEMA_VERSION + 1);
    let refused = restore(fixture.path(), &copy);
    assert!(matches!(refused, Err(Error::Newer { .. })), "{refused:?}");
    set(SCHEMA_VERSION);
    write(&mut resident, &[alias("a", "2")]).unwrap();
}

#[test]
fn a_restore_replaces_a_damaged_store_under_who_stays() {
    let fixture = InFolder::new();
    let mut resident = fixture.sqlite();
    write(&mut resident, &[alias("a", "7")]).unwrap();
    let copy = fixture.file("copy");
    resident.backup(&copy).unwrap();
    let shell = rusqlite::Connection::open(fixture.file("store.db")).unwrap();
    shell.execute_batch("PRAGMA writable_schema=1; UPDATE sqlite_schema SET rootpage=900").unwrap();
    drop(shell);
    restore(fixture.path(), &copy).unwrap();
    let state = resident.begin(PATIENCE).unwrap().state().clone();
    assert_eq!(state.epoch, 3, "2 marks the restore itself");
    assert_eq!(counter(&*resident.snapshot().unwrap(), "a"), 7);
    write(&mut resident, &[alias("a", "8")]).unwrap();
    assert_eq!(counter(&*fixture.sqlite().snapshot().unwrap(), "a"), 8);
    assert!(fixture.file("store.db.before-restore-1").exists());
}

#[test]
fn only_a_whole_backup_of_baton_is_restored() {
    let fixture = InFolder::new();
    write(&mut fixture.sqlite(), &[alias("a", "1")]).unwrap();
    let file = |name: &str, text: &str| {
        fs::write(fixture.file(name), text).unwrap();
        fixture.file(name)
    };
    let foreign = fixture.file("foreign");
    rusqlite::Connection::open(&foreign).unwrap().execute_batch("CREATE TABLE t(a)").unwrap();
    for from in [file("empty", ""), file("garbage", &"x".repeat(9_000)), foreign] {
        let refused = restore(fixture.path(), &from);
        assert!(matches!(refused, Err(Error::Corrupt { .. })), "{from:?}: {refused:?}");
    }
    let refused = restore(fixture.path(), &fixture.file("nowhere"));
    assert!(matches!(refused, Err(Error::Missing { .. })), "{refused:?}");
    let mut store = fixture.sqlite();
    let state = store.snapshot().unwrap().state().clone();
    assert_eq!((state.epoch, state.raised_because), (1, None), "nothing was touched");
}
