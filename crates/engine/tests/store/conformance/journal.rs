//! The journal: order, head, archive, time.

use baton_core::event::Durability;
use baton_core::id::Position;
use baton_core::journal::Head;
use baton_engine::store::{Commit, Error};

use super::super::writing::{PATIENCE, alias, entries_after, verified_journal, write, write_as};
use super::Fixture;

pub(crate) fn entries_keep_their_order(fixture: &dyn Fixture) {
    let mut store = fixture.open();
    let start = store.snapshot().unwrap().state().clone();
    assert_eq!(start.head, Head::start());
    assert_eq!((start.epoch, start.raised_because), (1, None));
    let mut last = start.head;
    for n in 0..10 {
        let durability = if n % 3 == 0 { Durability::Power } else { Durability::Process };
        last = write_as(&mut *store, durability, &[alias("a", "1"), alias("b", "2")]).unwrap();
    }
    let mut again = fixture.open();
    let snapshot = again.snapshot().unwrap();
    let entries = verified_journal(&*snapshot);
    assert_eq!(snapshot.state().head, last);
    assert_eq!(entries.len(), 20);
    assert_eq!(snapshot.entries(5, 3).unwrap(), entries[5..8]);
    let backwards = snapshot.entries_before(6, 3).unwrap();
    assert_eq!(backwards.iter().map(|entry| entry.position.number).collect::<Vec<_>>(), [5, 4, 3]);
    assert_eq!(snapshot.entries_before(u64::MAX, 1).unwrap()[0].head(), last);
    assert!(snapshot.entries(20, 10).unwrap().is_empty());
    assert!(snapshot.entries(u64::MAX, 10).unwrap().is_empty());
    assert_eq!(snapshot.archived().unwrap(), None);
}

pub(crate) fn entries_that_do_not_follow_are_refused(fixture: &dyn Fixture) {
    let mut store = fixture.open();
    write(&mut *store, &[alias("a", "1")]).unwrap();
    for wrong in [
        Position { epoch: 1, number: 1 },
        Position { epoch: 1, number: 3 },
        Position { epoch: 9, number: 2 },
    ] {
        let transaction = store.begin(PATIENCE).unwrap();
        let mut entries = entries_after(&*transaction, 1);
        entries[0].position = wrong;
        let commit = Commit { entries: &entries, changes: &[], durability: Durability::Process };
        let refused = transaction.commit(&commit);
        assert!(matches!(refused, Err(Error::Backend { .. })), "{wrong}: {refused:?}");
    }
    assert_eq!(verified_journal(&*store.snapshot().unwrap()).len(), 1);
}

pub(crate) fn forgotten_entries_leave_a_head(fixture: &dyn Fixture) {
    let mut store = fixture.open();
    let mut heads = Vec::new();
    for _ in 0..5 {
        heads.push(write(&mut *store, &[alias("a", "1")]).unwrap());
    }
    let mut wrong = heads[2].clone();
    wrong.hash = heads[3].hash.clone();
    assert!(store.forget_entries(&wrong).is_err(), "what was not sealed is not forgotten");
    store.forget_entries(&heads[2]).unwrap();
    let mut again = fixture.open();
    let snapshot = again.snapshot().unwrap();
    assert_eq!(snapshot.archived().unwrap().as_ref(), Some(&heads[2]));
    assert_eq!(verified_journal(&*snapshot).len(), 2);
    drop(snapshot);
    store.forget_entries(&heads[4]).unwrap();
    let state = again.snapshot().unwrap().state().clone();
    assert_eq!((state.head, state.epoch), (heads[4].clone(), 1), "the head outlives its entry");
    write(&mut *again, &[alias("a", "2")]).unwrap();
    assert_eq!(verified_journal(&*again.snapshot().unwrap()).len(), 1);
}

pub(crate) fn time_never_goes_back(fixture: &dyn Fixture) {
    let mut store = fixture.open();
    let transaction = store.begin(PATIENCE).unwrap();
    let future = baton_core::time::Moment(transaction.state().now.0 + 3_600_000);
    let mut entries = entries_after(&*transaction, 1);
    entries[0].at = future;
    entries[0].hash = entries[0].chained(&Head::start().hash);
    let commit = Commit { entries: &entries, changes: &[], durability: Durability::Process };
    transaction.commit(&commit).unwrap();
    assert!(fixture.open().snapshot().unwrap().state().now >= future);
    assert!(store.begin(PATIENCE).unwrap().state().now >= future);
}
