//! Backup, restore, archive.

use super::*;

#[test]
fn a_backup_comes_back_with_a_higher_epoch_and_nothing_is_deleted() {
    let scratch = Scratch::new();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("backup.jsonl");
    let mut store = scratch.open();
    write(&mut store, &session("a", "amber")).unwrap();
    let backed_up = state(&mut store).head;
    store.backup(&file).unwrap();
    assert!(matches!(store.backup(&file), Err(Error::Exists { .. })));
    let mode = std::os::unix::fs::PermissionsExt::mode(&file.metadata().unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    // A future the backup knows nothing of, in higher epochs.
    for id in ["b", "c"] {
        scratch.sql("update baton.workspaces set timeline = timeline - 1");
        write(&mut store, &session(id, "birch")).unwrap();
    }
    let highest = state(&mut store).epoch;
    assert_eq!(highest, 3);
    for n in 1..=2 {
        assert_eq!(scratch.connect().restore(&file).unwrap(), ID);
        let restored = state(&mut store);
        assert_eq!(restored.head, backed_up);
        assert!(restored.epoch > highest, "{restored:?}");
        let why = restored.raised_because.unwrap();
        assert!(why.contains("restored"), "{why}");
        let written = write(&mut store, &session("d", "dune")).unwrap();
        assert_eq!(written.epoch, highest + n);
        assert!(written.failed_over_at.is_some());
        let snapshot = store.snapshot().unwrap();
        assert!(get::<Session>(&*snapshot, "a").unwrap().is_some());
        assert!(get::<Session>(&*snapshot, "b").unwrap().is_none());
        assert_eq!(snapshot.index_entries().unwrap().len(), 4);
    }
    let kept =
        scratch.sql("select id from baton.workspaces where id <> '0123456789abcdef' order by 1");
    assert_eq!(kept, format!("{ID}.before-restore-1\n{ID}.before-restore-2"));
    assert_eq!(scratch.sql("select count(*) from baton.sessions where session = 'b'"), "1");
}

#[test]
fn a_damaged_backup_changes_nothing() {
    let scratch = Scratch::new();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("backup.jsonl");
    let mut store = scratch.open();
    for id in ["a", "b"] {
        write(&mut store, &session(id, "amber")).unwrap();
    }
    store.backup(&file).unwrap();
    let whole = std::fs::read_to_string(&file).unwrap();
    let lines: Vec<&str> = whole.lines().collect();
    let damages = [
        lines[..lines.len() - 1].join("\n"),
        [&lines[..1], &lines[2..]].concat().join("\n"),
        [&lines[..lines.len() - 2], &lines[lines.len() - 1..]].concat().join("\n"),
        whole.replace("session_started", "session_stopped"),
        whole.replace("amber", "umber"),
        "not a backup".to_owned(),
        String::new(),
    ];
    for (n, damage) in damages.iter().enumerate() {
        std::fs::write(&file, damage).unwrap();
        let error = scratch.connect().restore(&file).unwrap_err();
        assert!(matches!(error, Error::Corrupt { .. }), "{n}: {error:?}");
        assert_eq!(scratch.sql("select id from baton.workspaces"), ID);
    }
    write(&mut store, &session("c", "cedar")).unwrap();
}

#[test]
fn forgotten_entries_are_gone_and_the_chain_goes_on() {
    let scratch = Scratch::new();
    let mut store = scratch.open();
    for id in ["a", "b", "c"] {
        write(&mut store, &session(id, "amber")).unwrap();
    }
    let entries = store.snapshot().unwrap().entries(0, 10).unwrap();
    let mut wrong = entries[1].head();
    wrong.hash.0.push('0');
    assert!(store.forget_entries(&wrong).is_err());
    store.forget_entries(&entries[1].head()).unwrap();
    store.forget_entries(&entries[1].head()).unwrap();
    write(&mut store, &session("d", "dune")).unwrap();
    let snapshot = store.snapshot().unwrap();
    assert_eq!(snapshot.archived().unwrap(), Some(entries[1].head()));
    let left = snapshot.entries(0, 10).unwrap();
    assert_eq!(left[0], entries[2]);
    follows(&entries[1].head(), &left[0]).unwrap();
    drop(snapshot);
    // An archived workspace can be backed up and restored as well.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("backup");
    store.backup(&file).unwrap();
    scratch.connect().restore(&file).unwrap();
    assert_eq!(store.snapshot().unwrap().archived().unwrap(), Some(entries[1].head()));
}
