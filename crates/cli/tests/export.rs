//! `export`: files, git, lock files; deterministic, atomic, never over anything of others.

use std::path::Path;

use crate::harness::Scratch;

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn lesson_26_the_same_state_gives_the_same_bytes_and_a_change_only_its_lines() {
    let scratch = Scratch::workspace();
    let alice = scratch.session("alice");
    scratch.acts(&alice, &["claim", "src/a.rs"]).ok();
    scratch.baton(&["export", "../one"]).ok();
    scratch.baton(&["export", "../two"]).ok();
    for file in ["claims.json", "sessions.json", "journal.jsonl", "baton-export.json"] {
        let (one, two) = (scratch.path("one").join(file), scratch.path("two").join(file));
        assert_eq!(read(&one), read(&two), "{file}");
    }
    let claims: serde_json::Value =
        serde_json::from_str(&read(&scratch.path("one/claims.json"))).unwrap();
    assert_eq!(claims["claims"][0]["resources"][0], "src/a.rs");
    let modified = |file: &str| std::fs::metadata(scratch.path(file)).unwrap().modified().unwrap();
    let before = modified("one/claims.json");
    let said = scratch.baton(&["export", "../one", "--json"]).ok().json();
    assert_eq!(said["folder"]["changed"], serde_json::json!([]));
    assert_eq!(modified("one/claims.json"), before, "nothing changed, nothing is written");
    scratch.acts(&alice, &["claim", "README.md"]).ok();
    let said = scratch.baton(&["export", "../one", "--json"]).ok().json();
    assert_eq!(said["folder"]["changed"], serde_json::json!(["claims.json", "journal.jsonl"]));
    let (old, new) =
        (read(&scratch.path("two/journal.jsonl")), read(&scratch.path("one/journal.jsonl")));
    assert!(new.starts_with(&old), "a journal only grows");
    let left: Vec<_> = std::fs::read_dir(scratch.path("one")).unwrap().collect();
    assert_eq!(left.len(), 7, "no draft stays behind, and no folder for nothing");
}

#[test]
fn nothing_of_others_is_written_over() {
    let scratch = Scratch::workspace();
    scratch.write("mine/claims.json", "mine\n");
    scratch.baton(&["export", "mine"]).refused(1);
    assert_eq!(read(&scratch.root().join("mine/claims.json")), "mine\n");
    scratch.write("foreign/baton-export.json", "{\"made_by\":\"somebody\"}\n");
    scratch.baton(&["export", "foreign"]).refused(1);
    scratch.write("file", "x");
    scratch.baton(&["export", "file"]).refused(1);
    for inside in [".git", ".git/x", "src/../.git/hooks", "sub/.git"] {
        let said = scratch.baton(&["export", inside]).refused(1);
        assert!(said.err.contains("belongs to git"), "{said:?}");
    }
    std::os::unix::fs::symlink(scratch.root().join(".git"), scratch.root().join("link")).unwrap();
    scratch.baton(&["export", "link/x"]).refused(1);
    scratch.baton(&["export"]).refused(2);
    let other = Scratch::workspace();
    other.baton(&["export", "../out"]).ok();
    scratch.baton(&["export", other.path("out").to_str().unwrap()]).refused(1);
}

#[test]
fn the_state_in_git_touches_no_tree() {
    let scratch = Scratch::workspace();
    let alice = scratch.session("alice");
    let before = (scratch.git(&["status", "--porcelain"]), scratch.git(&["rev-parse", "HEAD"]));
    scratch.baton(&["export", "--git"]).ok();
    scratch.acts(&alice, &["claim", "src/a.rs", "--reason", "in git"]).ok();
    let first = scratch.baton(&["export", "--git", "--json"]).ok().json();
    let again = scratch.baton(&["export", "--git", "--json"]).ok().json();
    assert_eq!(first["git"]["commit"], again["git"]["commit"]);
    assert_eq!((&first["git"]["changed"], &again["git"]["changed"]), (&true.into(), &false.into()));
    let log = scratch.git(&["log", "-p", "--format=%s", "refs/baton/state"]);
    assert_eq!(log.matches("State of the workspace at").count(), 2, "{log}");
    assert!(log.lines().any(|line| line.starts_with('+') && line.contains("in git")), "{log}");
    assert!(!log.contains("secret"));
    let after = (scratch.git(&["status", "--porcelain"]), scratch.git(&["rev-parse", "HEAD"]));
    assert_eq!(before, after);
}

#[test]
fn lock_files_follow_the_claims_and_leave_others_alone() {
    let scratch = Scratch::workspace();
    let alice = scratch.session("alice");
    let exclude = scratch.root().join(".git/info/exclude");
    std::fs::write(&exclude, "mine").unwrap();
    scratch.acts(&alice, &["claim", "src/a.rs", "--reason", "parser"]).ok();
    scratch.acts(&alice, &["claim", "README.md", "new.rs", "docs/"]).ok();
    let lock = scratch.root().join("src/a.rs.agent-lock");
    let foreign = scratch.root().join("README.md.agent-lock");
    std::fs::write(&foreign, "another tool\n").unwrap();
    let said = scratch.baton(&["export", "--lock-files", "--json"]).ok().json();
    assert_eq!(said["lock_files"]["written"].as_array().unwrap().len(), 1, "{said}");
    assert_eq!(said["lock_files"]["foreign"].as_array().unwrap().len(), 1, "{said}");
    assert_eq!(said["lock_files"]["without"], 2, "a missing file and a folder: {said}");
    assert_eq!(read(&foreign), "another tool\n");
    let text = read(&lock);
    assert!(text.contains("\"made_by\": \"baton\"") && text.contains("parser"), "{text}");
    assert_eq!(read(&exclude), "mine\n*.agent-lock\n", "the user's line stays");
    assert!(!scratch.git(&["status", "--porcelain"]).contains("agent-lock"));
    scratch.baton(&["export", "--lock-files"]).ok();
    assert_eq!(read(&exclude).matches("agent-lock").count(), 1);
    // Baton's own lock is no obstacle to its holder, and goes with the claim.
    scratch.acts(&alice, &["check", "src/a.rs"]).ok();
    scratch.acts(&alice, &["release", "--all"]).ok();
    let said = scratch.baton(&["export", "--lock-files", "--json"]).ok().json();
    assert_eq!(said["lock_files"]["removed"].as_array().unwrap().len(), 1, "{said}");
    assert!(!lock.exists() && foreign.exists());
    // One that says it is Baton's, but of another workspace, is not ours to remove.
    std::fs::write(&lock, text.replace("\"workspace\": \"", "\"workspace\": \"0")).unwrap();
    scratch.baton(&["export", "--lock-files"]).ok();
    assert!(lock.exists());
}

#[test]
fn a_lock_file_of_another_tool_is_respected_as_a_claim() {
    let scratch = Scratch::workspace();
    let alice = scratch.session("alice");
    scratch.write("src/a.rs.agent-lock", "{\"agent\": \"other-tool\"}\n");
    let said = scratch.acts(&alice, &["claim", "src/a.rs"]).refused(1);
    assert!(said.err.contains("other-tool"), "{said:?}");
    scratch.acts(&alice, &["claim", "src/"]).refused(1);
    let said = scratch.acts(&alice, &["check", "src/a.rs", "--json"]);
    assert_eq!((said.code, said.json()["verdict"].as_str()), (1, Some("deny")), "{said:?}");
    std::fs::remove_file(scratch.root().join("src/a.rs.agent-lock")).unwrap();
    scratch.acts(&alice, &["claim", "src/a.rs"]).ok();
}

#[test]
fn a_link_out_of_the_tree_gets_no_lock_file() {
    let scratch = Scratch::workspace();
    let alice = scratch.session("alice");
    scratch.acts(&alice, &["claim", "src/a.rs"]).ok();
    let outside = scratch.path("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("a.rs"), "x").unwrap();
    std::fs::remove_dir_all(scratch.root().join("src")).unwrap();
    std::os::unix::fs::symlink(&outside, scratch.root().join("src")).unwrap();
    scratch.baton(&["export", "--lock-files"]).ok();
    assert!(!outside.join("a.rs.agent-lock").exists());
}
