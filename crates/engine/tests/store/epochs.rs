//! Reboots, clock jumps, foreign time namespaces, old copies: time and epoch of the SQLite store.

use std::sync::Arc;

use baton_core::event::Durability;
use baton_core::time::Moment;
use baton_engine::filesystem;
use baton_engine::store::sqlite::{Sqlite, restore};
use baton_engine::store::surroundings::{Clock, Hand, Surroundings};
use baton_engine::store::{Error, State, Store};

use super::sqlite::InFolder;
use super::writing::{PATIENCE, alias, increment, verified_journal, write};

const HOUR: i64 = 3_600_000;
const WALL: i64 = 1_700_000_000_000;

struct Machine {
    folder: tempfile::TempDir,
    hand: Arc<Hand>,
}

impl Machine {
    fn new() -> Self {
        let machine = Self { folder: tempfile::tempdir().unwrap(), hand: Hand::at(HOUR, WALL) };
        Sqlite::create_in(machine.folder.path(), machine.in_boot("one")).unwrap();
        machine
    }

    fn in_boot(&self, boot: &str) -> Surroundings {
        Surroundings {
            boot: boot.to_owned(),
            time_namespace: 1.into(),
            filesystem: filesystem::Kind::Local,
            clock: Clock::Hand(Arc::clone(&self.hand)),
        }
    }

    fn open(&self, boot: &str) -> Sqlite {
        Sqlite::open_in(self.folder.path(), self.in_boot(boot)).unwrap()
    }

    fn state(&self, boot: &str) -> State {
        self.open(boot).snapshot().unwrap().state().clone()
    }
}

#[test]
fn s05_a_reboot_raises_the_epoch_once() {
    let machine = Machine::new();
    let before = write(&mut machine.open("one"), &[alias("a", "1")]).unwrap();
    assert_eq!(before.position.epoch, 1);
    machine.hand.set(5, WALL + HOUR);
    for _ in 0..2 {
        // Looking, or deciding nothing, does not raise it.
        let state = machine.state("two");
        assert_eq!(state.epoch, 2);
        assert!(state.raised_because.unwrap().contains("started again"));
        drop(machine.open("two").begin(PATIENCE).unwrap());
    }
    let after = write(&mut machine.open("two"), &[alias("a", "2")]).unwrap();
    assert!(after.position > before.position);
    assert_eq!(after.position.epoch, 2);
    let state = machine.state("two");
    assert_eq!((state.epoch, state.raised_because), (2, None));
    assert_eq!(std::fs::read_to_string(machine.folder.path().join("epoch")).unwrap(), "2\n");
    let third = write(&mut machine.open("three"), &[alias("a", "3")]).unwrap();
    assert_eq!(third.position.epoch, 3);
    verified_journal(&*machine.open("three").snapshot().unwrap());
}

#[test]
fn s05_a_crash_between_the_mark_and_the_commit_skips_an_epoch() {
    let machine = Machine::new();
    write(&mut machine.open("one"), &[alias("a", "1")]).unwrap();
    std::fs::write(machine.folder.path().join("epoch"), "2\n").unwrap();
    assert_eq!(machine.state("one").epoch, 3);
    let head = write(&mut machine.open("one"), &[alias("a", "1")]).unwrap();
    assert_eq!(head.position.epoch, 3);
}

#[test]
fn s05_a_damaged_mark_is_not_taken_for_none() {
    let machine = Machine::new();
    std::fs::write(machine.folder.path().join("epoch"), "many").unwrap();
    let refused = machine.open("one").snapshot().map(|_| ());
    assert!(matches!(refused, Err(Error::Corrupt { .. })), "{refused:?}");
}

#[test]
fn s08_the_wall_clock_cannot_be_set_against_a_lease() {
    let machine = Machine::new();
    for wall in [WALL + 1_000 * HOUR, 0] {
        machine.hand.set(2 * HOUR, wall);
        assert_eq!(machine.state("one").now, Moment((WALL + HOUR).cast_unsigned()));
    }
}

#[test]
fn lesson_10_sleep_counts_and_a_reboot_never_goes_back() {
    let machine = Machine::new();
    machine.hand.set(10 * HOUR, WALL);
    let head = write(&mut machine.open("one"), &[alias("a", "1")]).unwrap();
    assert_eq!(head.at, Moment((WALL + 9 * HOUR).cast_unsigned()));
    // Started again with a wall clock that is behind the journal.
    machine.hand.set(0, WALL);
    assert_eq!(machine.state("two").now, head.at);
    increment(&mut machine.open("two"), "n", Durability::Process).unwrap();
    machine.hand.set(HOUR, 0);
    assert_eq!(machine.state("two").now, Moment((WALL + 10 * HOUR).cast_unsigned()));
}

#[test]
fn another_time_namespace_is_refused() {
    let machine = Machine::new();
    let mut surroundings = machine.in_boot("one");
    surroundings.time_namespace = 2.into();
    let mut store = Sqlite::open_in(machine.folder.path(), surroundings).unwrap();
    assert!(store.snapshot().is_ok(), "its clock is the same");
    machine.hand.set(3 * HOUR, WALL);
    assert!(matches!(store.snapshot().map(|_| ()), Err(Error::TimeNamespace)));
    assert!(matches!(store.begin(PATIENCE).map(|_| ()), Err(Error::TimeNamespace)));
}

#[test]
fn a_network_filesystem_is_refused() {
    let machine = Machine::new();
    let mut surroundings = machine.in_boot("one");
    surroundings.filesystem = filesystem::Kind::Network { name: "nfs" };
    let folder = machine.folder.path();
    let refused = Sqlite::open_in(folder, surroundings.clone()).map(|_| ());
    assert!(matches!(refused, Err(Error::NetworkFilesystem { .. })), "{refused:?}");
    let refused = Sqlite::create_in(&folder.join("new"), surroundings).map(|_| ());
    assert!(matches!(refused, Err(Error::NetworkFilesystem { .. })), "{refused:?}");
}

#[test]
fn lesson_28_a_restore_keeps_what_it_replaces() {
    let fixture = InFolder::new();
    let mut store = fixture.sqlite();
    write(&mut store, &[alias("a", "1")]).unwrap();
    let copy = fixture.file("copy");
    store.backup(&copy).unwrap();
    write(&mut store, &[alias("a", "2")]).unwrap();
    restore(fixture.path(), &copy).unwrap();
    restore(fixture.path(), &copy).unwrap();
    let aside = tempfile::tempdir().unwrap();
    Sqlite::create(aside.path()).unwrap();
    restore(aside.path(), &fixture.file("store.db.before-restore-1")).unwrap();
    let mut kept = Sqlite::open(aside.path()).unwrap();
    assert_eq!(super::writing::counter(&*kept.snapshot().unwrap(), "a"), 2);
    assert!(fixture.file("store.db.before-restore-2").exists());
}

#[test]
fn lesson_28_restores_are_bounded() {
    let fixture = InFolder::new();
    let copy = fixture.file("copy");
    fixture.sqlite().backup(&copy).unwrap();
    for _ in 0..20 {
        restore(fixture.path(), &copy).unwrap();
    }
    let refused = restore(fixture.path(), &copy);
    assert!(matches!(refused, Err(Error::Exists { .. })), "{refused:?}");
}
