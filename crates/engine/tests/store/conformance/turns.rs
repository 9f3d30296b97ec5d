//! One decision at a time, snapshots that stand still, news.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use baton_core::event::Durability;
use baton_core::overlay::Change;
use baton_engine::store::{Commit, Error, Woken};

use super::super::writing::{
    ALIAS, PATIENCE, alias, commit, counter, entries_after, get, increment, verified_journal, write,
};
use super::Fixture;

pub(crate) fn a_snapshot_does_not_move(fixture: &dyn Fixture) {
    let (mut reader, mut writer) = (fixture.open(), fixture.open());
    write(&mut *writer, &[alias("a", "1")]).unwrap();
    let snapshot = reader.snapshot().unwrap();
    for n in 2..10 {
        write(&mut *writer, &[alias("a", &n.to_string()), alias("b", "1")]).unwrap();
    }
    assert_eq!(counter(&*snapshot, "a"), 1);
    assert_eq!(get(&*snapshot, ALIAS, "b"), None);
    assert_eq!(snapshot.entries(0, 100).unwrap().len(), 1);
    drop(snapshot);
    assert_eq!(counter(&*reader.snapshot().unwrap(), "a"), 9);
}

pub(crate) fn a_dropped_decision_leaves_nothing(fixture: &dyn Fixture) {
    let (mut one, mut two) = (fixture.open(), fixture.open());
    let transaction = one.begin(PATIENCE).unwrap();
    assert_eq!(counter(&*transaction, "a"), 0);
    drop(transaction);
    write(&mut *two, &[alias("a", "1")]).unwrap();
    assert_eq!(verified_journal(&*one.snapshot().unwrap()).len(), 1);
}

pub(crate) fn a_refused_commit_leaves_nothing(fixture: &dyn Fixture) {
    let (mut one, mut two) = (fixture.open(), fixture.open());
    write(&mut *one, &[alias("a", "1")]).unwrap();
    for durability in [Durability::Process, Durability::Power] {
        let transaction = one.begin(PATIENCE).unwrap();
        let mut entries = entries_after(&*transaction, 2);
        entries[1].position = entries[0].position;
        let change = Change {
            kind: ALIAS,
            key: "b".to_owned(),
            put: Some((1, "{}".to_owned())),
            existed: false,
            index_removed: Vec::new(),
            index_added: Vec::new(),
        };
        let all = Commit { entries: &entries, changes: &[change], durability };
        assert!(transaction.commit(&all).is_err());
        // The other handle's turn comes, and what was refused is nowhere.
        let other = two.begin(PATIENCE).unwrap();
        assert_eq!(get(&*other, ALIAS, "b"), None);
    }
    assert_eq!(verified_journal(&*one.snapshot().unwrap()).len(), 1);
}

pub(crate) fn lesson_03_no_update_is_lost(fixture: &dyn Fixture) {
    const EACH: u64 = 25;
    std::thread::scope(|scope| {
        for thread in 0..8 {
            scope.spawn(move || {
                let mut store = fixture.open();
                for n in 0..EACH {
                    let power = thread == 0 && n % 10 == 0;
                    let durability = if power { Durability::Power } else { Durability::Process };
                    increment(&mut *store, "n", durability).unwrap();
                }
            });
        }
    });
    let mut store = fixture.open();
    let snapshot = store.snapshot().unwrap();
    assert_eq!(counter(&*snapshot, "n"), 8 * EACH);
    assert_eq!(get(&*snapshot, ALIAS, "n").unwrap().version, 8 * EACH);
    assert_eq!(verified_journal(&*snapshot).len() as u64, 8 * EACH);
}

pub(crate) fn patience_is_bounded(fixture: &dyn Fixture) {
    let (mut one, mut two) = (fixture.open(), fixture.open());
    let held = one.begin(PATIENCE).unwrap();
    for _ in 0..3 {
        let start = Instant::now();
        let refused = two.begin(Duration::from_millis(50)).map(|_| ());
        assert!(matches!(refused, Err(Error::Busy { .. })), "{refused:?}");
        assert!(start.elapsed() >= Duration::from_millis(50));
        assert!(start.elapsed() < Duration::from_secs(5));
    }
    assert!(two.snapshot().is_ok(), "readers do not wait");
    commit(held, Durability::Process, &[alias("a", "1")]).unwrap();
    write(&mut *two, &[alias("a", "2")]).unwrap();
    write(&mut *one, &[alias("a", "3")]).unwrap();
}

pub(crate) fn news_wakes_a_waiter(fixture: &dyn Fixture) {
    let (mut one, mut two) = (fixture.open(), fixture.open());
    let mut news = one.news().unwrap();
    let short = Duration::from_millis(30);
    assert_eq!(news.wait(short, &[]).unwrap(), Woken::TimedOut);
    drop(two.begin(PATIENCE).unwrap());
    assert_eq!(news.wait(short, &[]).unwrap(), Woken::TimedOut, "nothing was committed");
    // Committed before the wait: it must not be missed.
    write(&mut *two, &[alias("a", "1")]).unwrap();
    assert_eq!(news.wait(PATIENCE, &[]).unwrap(), Woken::News);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(short);
            write(&mut *fixture.open(), &[alias("a", "2")]).unwrap();
        });
        let start = Instant::now();
        assert_eq!(news.wait(PATIENCE, &[]).unwrap(), Woken::News);
        assert!(start.elapsed() < Duration::from_secs(10));
    });
    // Several commits may be one piece of news; then it is quiet.
    while news.wait(short, &[]).unwrap() == Woken::News {}
    assert_eq!(news.wait(Duration::ZERO, &[]).unwrap(), Woken::TimedOut);
}

pub(crate) fn another_descriptor_wakes_a_waiter(fixture: &dyn Fixture) {
    let mut store = fixture.open();
    let mut news = store.news().unwrap();
    let (read, write) = rustix::pipe::pipe().unwrap();
    let short = Duration::from_millis(20);
    assert_eq!(news.wait(short, &[read.as_fd()]).unwrap(), Woken::TimedOut);
    drop(write);
    assert_eq!(news.wait(PATIENCE, &[read.as_fd()]).unwrap(), Woken::Other);
}
