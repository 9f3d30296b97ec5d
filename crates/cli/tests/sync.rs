//! `baton sync`: how a tree stands to its remote, and bringing it up to date without a loss.

use serde_json::json;

use crate::harness::{Said, Scratch};

/// A workspace with a remote beside it, and another clone of that.
fn workspace() -> Scratch {
    let scratch = Scratch::workspace();
    scratch.git(&["config", "user.name", "Ann"]);
    scratch.git(&["config", "user.email", "ann@example.invalid"]);
    scratch.git(&["add", "-A"]);
    scratch.git(&["commit", "-qm", "setup"]);
    scratch.git(&["init", "-q", "--bare", "-b", "main", "../remote.git"]);
    scratch.git(&["remote", "add", "origin", "../remote.git"]);
    scratch.git(&["push", "-q", "origin", "main"]);
    scratch.git(&["clone", "-q", "../remote.git", "../other"]);
    scratch
}

/// Another clone commits a file and pushes.
fn others_push(scratch: &Scratch, file: &str, text: &str) {
    std::fs::write(scratch.path("other").join(file), text).unwrap();
    scratch.git(&["-C", "../other", "add", "-A"]);
    scratch.git(&["-C", "../other", "commit", "-qm", &format!("theirs: {file}")]);
    scratch.git(&["-C", "../other", "push", "-q", "origin", "main"]);
}

fn sync(scratch: &Scratch, who: &str, more: &[&str]) -> Said {
    let mut words = vec!["sync", "--json"];
    words.extend(more);
    scratch.acts(who, &words)
}

#[test]
fn how_far_behind_and_what_it_touches() {
    let scratch = workspace();
    let alice = scratch.session("alice");
    let said = sync(&scratch, &alice, &[]).ok().json();
    assert_eq!(
        (&said["behind"], &said["ahead"], &said["dirty"]),
        (&json!(0), &json!(0), &json!(false))
    );
    others_push(&scratch, "src/a.rs", "fn theirs() {}\n");
    others_push(&scratch, "README.md", "# Theirs\n");
    scratch.acts(&alice, &["claim", "src/a.rs"]).ok();
    let said = sync(&scratch, &alice, &[]);
    assert_eq!(said.code, 1);
    let said = said.json();
    assert_eq!((&said["behind"], &said["ahead"]), (&json!(2), &json!(0)));
    assert_eq!(said["touches"].as_array().unwrap().len(), 1);
    assert_eq!(said["touches"][0]["claimed"], json!(["src/a.rs"]));
    let words = scratch.acts(&alice, &["sync"]);
    assert_eq!(words.code, 1);
    assert!(words.out.contains("origin/main: 2 commits behind"), "{words:?}");
    // Ahead is no reason to worry.
    sync(&scratch, &alice, &["--pull"]).ok();
    scratch.write("src/b.rs", "b\n");
    scratch.acts(&alice, &["commit", "-m", "mine", "src/b.rs"]).ok();
    let said = sync(&scratch, &alice, &[]).ok().json();
    assert_eq!((&said["behind"], &said["ahead"]), (&json!(0), &json!(1)));
}

#[test]
fn offline_is_never_in_sync() {
    let scratch = workspace();
    let alice = scratch.session("alice");
    std::fs::rename(scratch.path("remote.git"), scratch.path("gone.git")).unwrap();
    let said = sync(&scratch, &alice, &[]).refused(4);
    assert_eq!(said.json()["failed"]["code"], "offline");
    std::fs::rename(scratch.path("gone.git"), scratch.path("remote.git")).unwrap();
    let said = sync(&scratch, &alice, &["--branch", "nope"]).refused(1);
    assert_eq!(said.json()["refused"]["code"], "no_branch");
    let said = sync(&scratch, &alice, &["--remote", "nope"]).refused(1);
    assert_eq!(said.json()["refused"]["code"], "no_remote");
}

#[test]
fn a_pull_keeps_all_uncommitted_work_or_moves_nothing() {
    let scratch = workspace();
    let alice = scratch.session("alice");
    others_push(&scratch, "src/a.rs", "fn theirs() {}\n");
    scratch.write("README.md", "# In flight\n");
    scratch.write("new.txt", "staged\n");
    scratch.git(&["add", "new.txt"]);
    let said = sync(&scratch, &alice, &["--pull"]).ok().json();
    assert_eq!(said["pulled"]["rebased"], false);
    assert_eq!(scratch.git(&["status", "--porcelain"]), " M README.md\nA  new.txt\n");
    assert_eq!(scratch.git(&["show", "HEAD:src/a.rs"]), "fn theirs() {}\n");
    // Where they overlap nothing moves, and the paths are named: changed, untracked, ignored.
    others_push(&scratch, "README.md", "# Theirs\n");
    others_push(&scratch, "extra.log", "theirs\n");
    scratch.write(".git/info/exclude", "*.log\n");
    scratch.write("extra.log", "mine\n");
    let before = (scratch.git(&["rev-parse", "HEAD"]), scratch.git(&["status", "--porcelain"]));
    let said = sync(&scratch, &alice, &["--pull"]).refused(1);
    assert_eq!(said.json()["refused"]["paths"], json!(["README.md", "extra.log"]));
    let after = (scratch.git(&["rev-parse", "HEAD"]), scratch.git(&["status", "--porcelain"]));
    assert_eq!(before, after);
}

#[test]
fn own_commits_are_put_upon_what_came_in() {
    let scratch = workspace();
    let alice = scratch.session("alice");
    scratch.write("src/b.rs", "b\n");
    scratch.acts(&alice, &["commit", "-m", "mine", "src/b.rs"]).ok();
    let author = scratch.git(&["log", "-1", "--format=%an %ae %ad %B"]);
    others_push(&scratch, "src/a.rs", "fn theirs() {}\n");
    scratch.write("README.md", "# In flight\n");
    let said = sync(&scratch, &alice, &["--pull"]).ok().json();
    assert_eq!(said["pulled"]["rebased"], true);
    assert_eq!((&said["behind"], &said["ahead"]), (&json!(0), &json!(1)));
    assert_eq!(scratch.git(&["log", "-1", "--format=%an %ae %ad %B"]), author);
    assert_eq!(scratch.git(&["status", "--porcelain"]), " M README.md\n");
    assert_eq!(scratch.git(&["show", "HEAD:src/a.rs"]), "fn theirs() {}\n");
    assert_eq!(scratch.git(&["show", "HEAD:src/b.rs"]), "b\n");
    // A conflict changes nothing.
    scratch.write("src/a.rs", "fn mine() {}\n");
    scratch.acts(&alice, &["commit", "-m", "mine too", "src/a.rs"]).ok();
    others_push(&scratch, "src/a.rs", "fn theirs_again() {}\n");
    let head = scratch.git(&["rev-parse", "HEAD"]);
    let said = sync(&scratch, &alice, &["--pull"]).refused(1);
    assert_eq!(said.json()["refused"]["code"], "conflict");
    assert_eq!(said.json()["refused"]["paths"], json!(["src/a.rs"]));
    assert_eq!(scratch.git(&["rev-parse", "HEAD"]), head);
    assert_eq!(scratch.git(&["status", "--porcelain"]), " M README.md\n");
    scratch.git(&["fsck", "--strict"]);
}

#[test]
fn a_pull_that_died_is_finished_by_the_next_commit() {
    for step in ["sync-intended", "sync-moved-files", "sync-moved"] {
        let scratch = workspace();
        scratch.allow_test_hooks();
        let alice = scratch.session("alice");
        others_push(&scratch, "src/a.rs", "fn theirs() {}\n");
        let mut dies = scratch.command(&["sync", "--pull"]);
        dies.env("BATON_SESSION", &alice).env("BATON_TEST_STOP_AT", step);
        assert_eq!(Said::from(dies.output().unwrap()).code, -1, "{step}");
        scratch.write("src/b.rs", "b\n");
        scratch.acts(&alice, &["commit", "-m", "mine", "src/b.rs"]).ok();
        assert_eq!(scratch.git(&["status", "--porcelain"]), "", "{step}");
        let said = sync(&scratch, &alice, &[]).ok().json();
        assert_eq!((&said["behind"], &said["ahead"]), (&json!(0), &json!(1)), "{step}");
    }
}
