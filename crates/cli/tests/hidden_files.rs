//! Files that no status of git's shows: what is ignored, and what git was told not to look at. They
//! are held like all others.

use std::time::Duration;

use serde_json::json;

use crate::harness::Scratch;
use crate::hooks::{Agent, denied};

fn ann(scratch: &Scratch) -> Agent<'_> {
    Agent { scratch, client: "claude", id: "ann" }
}

fn bob(scratch: &Scratch) -> Agent<'_> {
    Agent { scratch, client: "claude", id: "bob" }
}

/// `.env` and `out/` are ignored, `local.txt` by this clone alone; `flag.txt` and `skip.txt` are
/// committed.
fn prepare(scratch: &Scratch) {
    scratch.write(".gitignore", ".env\nout/\n");
    scratch.write("flag.txt", "one\n");
    scratch.write("skip.txt", "one\n");
    scratch.git(&["add", "-A"]);
    scratch.git(&["commit", "-qm", "files"]);
    let exclude = scratch.root().join(".git/info/exclude");
    std::fs::create_dir_all(exclude.parent().unwrap()).unwrap();
    std::fs::write(exclude, "local.txt\n").unwrap();
    scratch.git(&["update-index", "--assume-unchanged", "flag.txt"]);
    scratch.git(&["update-index", "--skip-worktree", "skip.txt"]);
}

#[track_caller]
fn edits(agent: &Agent<'_>, file: &str, text: &str) {
    assert_eq!(denied(&agent.write(file, text)), None, "{file}");
    // By the clock of files the text is newer than the claim.
    std::thread::sleep(Duration::from_millis(60));
    agent.scratch.write(file, text);
    let input = json!({ "file_path": agent.file(file), "content": text });
    agent.tool("after", "Write", &input);
}

#[test]
fn what_git_does_not_look_at_is_never_called_committed() {
    Scratch::on_each_store("", |scratch| {
        prepare(scratch);
        let (ann, bob) = (ann(scratch), bob(scratch));
        for file in [".env", "out/x.txt", "local.txt", "flag.txt", "skip.txt"] {
            edits(&ann, file, "of ann\n");
            let why = denied(&bob.write(file, "of bob\n")).expect(file);
            assert!(why.contains(&format!("{file} is held by")), "{file}: {why}");
        }
        let journal = scratch.baton(&["journal"]).ok().out;
        assert!(!journal.contains("are committed or reverted"), "{journal}");
        // A folder of them is held the same way.
        edits(&ann, "out/deep/y.txt", "of ann\n");
        assert!(denied(&bob.write("out/deep/y.txt", "of bob\n")).is_some());
    });
}

#[test]
fn what_a_dead_holder_left_in_an_ignored_file_is_saved() {
    let scratch = Scratch::workspace();
    prepare(&scratch);
    let (holder, mut process) = scratch.session_with_process("holder");
    let next = scratch.session("next");
    for file in [".env", "skip.txt"] {
        scratch.acts(&holder, &["claim", file]).ok();
        scratch.write(file, "of the holder\n");
    }
    process.end();
    for file in [".env", "skip.txt"] {
        let granted = scratch.acts(&next, &["claim", file, "--json"]).ok().json();
        let left = &granted["left_behind"][0];
        assert_eq!(left["name"], "holder", "{file}: {granted}");
        let saved = format!("{}:{file}", left["rescue"].as_str().unwrap());
        assert_eq!(scratch.git(&["show", &saved]), "of the holder\n");
    }
    // What is saved may be of a claim that goes on.
    let list = scratch.baton(&["rescue", "list"]).ok().out;
    let said = "Uncommitted changes of holder, saved before another could overwrite them";
    assert!(list.contains(said) && !list.contains("claim ended"), "{list}");
}

#[test]
fn a_command_that_changes_a_held_ignored_file_is_told() {
    let scratch = Scratch::workspace();
    prepare(&scratch);
    let (ann, bob) = (ann(&scratch), bob(&scratch));
    edits(&ann, ".env", "KEY=ann\n");
    std::thread::sleep(Duration::from_millis(60));
    assert_eq!(denied(&bob.shell("before", "python3 w.py")), None);
    scratch.write(".env", "KEY=bob\n");
    scratch.write("out/made.txt", "nobody's\n");
    let said = bob.shell("after", "python3 w.py");
    assert!(said.out.contains("your command changed .env, and"), "{said:?}");
    assert!(!said.out.contains("out/made.txt"), "nobody holds it: {said:?}");
    let names = scratch.git(&["for-each-ref", "--format=%(refname)", "refs/baton/rescue/"]);
    let saved = scratch.git(&["show", &format!("{}:.env", names.trim())]);
    assert_eq!(saved, "KEY=ann\n");
}

#[test]
fn who_hides_a_held_file_from_git_writes_it() {
    let scratch = Scratch::workspace();
    scratch.write("a.txt", "one\n");
    scratch.git(&["add", "-A"]);
    scratch.git(&["commit", "-qm", "files"]);
    let (ann, bob) = (ann(&scratch), bob(&scratch));
    edits(&ann, "a.txt", "of ann\n");
    for flag in ["--skip-worktree", "--assume-unchanged"] {
        let line = format!("git update-index {flag} a.txt");
        assert!(denied(&bob.shell("before", &line)).is_some(), "{line}");
    }
}
