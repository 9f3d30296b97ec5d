//! Backup and restore.

use baton_engine::store::Error;

use super::super::writing::{PATIENCE, alias, counter, verified_journal, write};
use super::Fixture;

pub(crate) fn s05_a_restore_raises_the_epoch(fixture: &dyn Fixture) {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy");
    // Open throughout: a process that stays must see the restored store, not the replaced one.
    let mut resident = fixture.open();
    write(&mut *resident, &[alias("n", "1")]).unwrap();
    resident.backup(&copy).unwrap();
    let lost = write(&mut *resident, &[alias("n", "2")]).unwrap();
    let mut news = resident.news().unwrap();
    if !fixture.restore(&copy) {
        return;
    }
    assert_eq!(news.wait(PATIENCE, &[]).unwrap(), baton_engine::store::Woken::News);
    let mut epoch = 1;
    for n in 3..6 {
        let state = resident.begin(PATIENCE).unwrap().state().clone();
        assert!(state.epoch > epoch, "{} after {epoch}", state.epoch);
        assert!(state.raised_because.is_some());
        let head = write(&mut *resident, &[alias("n", &n.to_string())]).unwrap();
        assert!(head.position > lost.position, "a token may never come twice");
        epoch = head.position.epoch;
        let state = fixture.open().snapshot().unwrap().state().clone();
        assert_eq!((state.epoch, state.raised_because), (epoch, None), "it rises once");
        verified_journal(&*resident.snapshot().unwrap());
        // The same old copy again: above everything used in between.
        assert!(fixture.restore(&copy));
        assert_eq!(counter(&*resident.snapshot().unwrap(), "n"), 1);
    }
}

pub(crate) fn a_backup_replaces_nothing(fixture: &dyn Fixture) {
    let folder = tempfile::tempdir().unwrap();
    let there = folder.path().join("there");
    std::fs::write(&there, "mine").unwrap();
    let refused = fixture.open().backup(&there);
    assert!(matches!(refused, Err(Error::Exists { .. })), "{refused:?}");
    assert_eq!(std::fs::read_to_string(&there).unwrap(), "mine");
}
