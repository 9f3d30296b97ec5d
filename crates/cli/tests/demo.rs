//! The demo as a newcomer runs it: nothing set up, nothing left behind, nothing lost with Baton.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

fn demo(folder: &std::path::Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_baton"));
    command.args(["demo", "--json", "--agents", "4", "--seconds", "3"]).current_dir(folder);
    // What the caller has set must not lead it anywhere.
    command.env("TMPDIR", folder).env("BATON_STORE", "postgres://nowhere/x");
    command.env("BATON_SESSION", "s1.secret").stdin(Stdio::null());
    command
}

fn left_in(folder: &std::path::Path) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

#[test]
fn edits_are_lost_without_baton_and_never_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let output = demo(folder.path()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let reply: Value = serde_json::from_slice(&output.stdout).unwrap();
    let number = |run: &str, what: &str| reply[run][what].as_u64().unwrap();
    assert!(number("without_baton", "edits_made") > 10, "{reply}");
    assert!(number("without_baton", "edits_lost") > 0, "{reply}");
    assert!(number("with_baton", "edits_made") > 0, "{reply}");
    assert_eq!(number("with_baton", "edits_lost"), 0, "{reply}");
    let backlog = |what: &str| number("backlog", what);
    assert_eq!(backlog("done"), backlog("tasks"), "{reply}");
    assert_eq!((backlog("lost"), backlog("done_twice")), (0, 0), "{reply}");
    assert_eq!(backlog("taken_over"), 1, "{reply}");
    assert_eq!(left_in(folder.path()), 0);
}

#[test]
fn a_killed_demo_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = demo(folder.path()).stdout(Stdio::null()).spawn().unwrap();
    let started = Instant::now();
    while left_in(folder.path()) == 0 && started.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_millis(600));
    assert_eq!(left_in(folder.path()), 1, "the scratch folder is there while it runs");
    child.kill().unwrap();
    child.wait().unwrap();
    while left_in(folder.path()) > 0 && started.elapsed() < Duration::from_secs(30) {
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(left_in(folder.path()), 0);
}
