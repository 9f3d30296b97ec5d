//! `store backup`, `restore`, `info`.

use crate::harness::Scratch;

#[test]
fn s5_a_restore_raises_the_epoch_and_keeps_what_was_there() {
    let scratch = Scratch::workspace();
    let alice = scratch.session("alice");
    let first = scratch.acts(&alice, &["claim", "src/a.rs", "--json"]).ok().json();
    let backup = scratch.path("backup");
    let backup = backup.to_str().unwrap();
    scratch.baton(&["store", "backup", backup]).ok();
    scratch.baton(&["store", "backup", backup]).refused(1);
    scratch.acts(&alice, &["release", "--all"]).ok();
    let lost = scratch.acts(&alice, &["claim", "README.md", "--json"]).ok().json();
    let said = scratch.baton(&["store", "restore", backup, "--yes", "--json"]).ok().json();
    let kept = std::path::PathBuf::from(said["kept"].as_str().unwrap());
    assert!(kept.exists(), "the replaced store is there: {said}");
    let info = scratch.baton(&["store", "info", "--json"]).ok().json();
    assert_eq!(info["epoch"], said["epoch"]);
    assert!(info["epoch"].as_u64() > Some(1));
    let claims = scratch.baton(&["claims", "--json"]).ok().json();
    assert_eq!(claims["claims"][0]["token"], first["token"]);
    let later = scratch.acts(&alice, &["claim", "README.md", "--json"]).ok().json();
    let epoch = |claim: &serde_json::Value| {
        let token = claim["token"].as_str().unwrap().to_owned();
        token.split('.').next().unwrap().parse::<u32>().unwrap()
    };
    assert!(epoch(&later) > epoch(&lost), "no token can be mistaken for a lost one");
    scratch.baton(&["journal", "verify"]).ok();
    // What was replaced can be taken back as any backup.
    scratch.baton(&["store", "restore", kept.to_str().unwrap(), "--yes"]).ok();
    let claims = scratch.baton(&["claims", "--json"]).ok().json();
    assert_eq!(claims["claims"][0]["token"], lost["token"]);
    scratch.baton(&["journal", "verify"]).ok();
}

#[test]
fn lesson_28_a_backup_that_cannot_be_used_changes_nothing() {
    let scratch = Scratch::workspace();
    let alice = scratch.session("alice");
    scratch.acts(&alice, &["claim", "src/a.rs"]).ok();
    let before = scratch.baton(&["journal", "--json"]).ok().out;
    let backup = scratch.path("backup");
    scratch.baton(&["store", "backup", backup.to_str().unwrap()]).ok();
    let whole = std::fs::read(&backup).unwrap();
    let cut = scratch.path("cut");
    std::fs::write(&cut, &whole[..whole.len() / 2]).unwrap();
    let other = Scratch::workspace();
    let foreign = scratch.path("foreign");
    other.baton(&["store", "backup", foreign.to_str().unwrap()]).ok();
    let text = scratch.root().join("README.md");
    for file in [&cut, &foreign, &text, &scratch.path("missing"), &scratch.root()] {
        let said = scratch.baton(&["store", "restore", file.to_str().unwrap(), "--yes"]).refused(1);
        assert!(!said.err.contains("the store"), "{said:?}");
    }
    scratch.baton(&["store", "restore", backup.to_str().unwrap()]).refused(2);
    assert_eq!(scratch.baton(&["journal", "--json"]).ok().out, before);
    let again = ["store", "restore", foreign.to_str().unwrap(), "--yes", "--other-workspace"];
    scratch.baton(&again).ok();
    assert_ne!(scratch.baton(&["journal", "--json"]).ok().out, before);
}

#[test]
fn an_agent_does_not_restore() {
    let scratch = Scratch::workspace();
    let backup = scratch.path("backup");
    scratch.baton(&["store", "backup", backup.to_str().unwrap()]).ok();
    let mut command = scratch.command(&["store", "restore", backup.to_str().unwrap(), "--yes"]);
    let said: crate::harness::Said = command.env("CLAUDECODE", "1").output().unwrap().into();
    said.refused(1);
}

#[test]
fn lesson_25_a_damaged_store_is_restored_and_never_deleted() {
    let scratch = Scratch::workspace();
    let alice = scratch.session("alice");
    scratch.acts(&alice, &["claim", "src/a.rs"]).ok();
    let backup = scratch.path("backup");
    scratch.baton(&["store", "backup", backup.to_str().unwrap()]).ok();
    for name in ["store.db-wal", "store.db-shm"] {
        let _ = std::fs::remove_file(scratch.store().join(name));
    }
    std::fs::write(scratch.store().join("store.db"), "damage").unwrap();
    scratch.baton(&["claims"]).refused(4);
    let said = scratch.baton(&["store", "restore", backup.to_str().unwrap(), "--yes", "--json"]);
    let kept = said.ok().json()["kept"].as_str().unwrap().to_owned();
    assert_eq!(std::fs::read_to_string(kept).unwrap(), "damage");
    assert!(scratch.baton(&["claims"]).ok().out.contains("src/a.rs"));
    scratch.baton(&["journal", "verify"]).ok();
}

#[test]
fn info_tells_what_the_store_is() {
    let scratch = Scratch::workspace();
    let info = scratch.baton(&["store", "info", "--json"]).ok().json();
    assert_eq!(info["kind"], "sqlite");
    assert_eq!(info["schema"], 1);
    assert!(info["bytes"].as_u64() > Some(0));
    let words = scratch.baton(&["store", "info"]).ok().out;
    assert!(words.starts_with("store      SQLite 3."), "{words}");
    scratch.baton(&["store"]).refused(2);
    scratch.baton(&["store", "backup"]).refused(2);
}
