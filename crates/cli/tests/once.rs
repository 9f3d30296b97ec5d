//! `once` through the binary: real processes race, fail, are killed, and lose their turn.

use std::process::{Child, Command};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::harness::{Said, Scratch};

fn finish(child: Child) -> Said {
    child.wait_with_output().unwrap().into()
}

/// Waits until a file has this many lines.
fn until_lines(scratch: &Scratch, file: &str, count: usize) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while lines(scratch, file) < count {
        assert!(Instant::now() < deadline, "{file} has not {count} lines");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn lines(scratch: &Scratch, file: &str) -> usize {
    let text = std::fs::read_to_string(scratch.path(file)).unwrap_or_default();
    text.lines().count()
}

/// Gone, or only not yet collected by whoever is its parent now.
#[cfg(target_os = "linux")]
fn is_dead(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.is_empty() || stat.contains(") Z ")
}

#[test]
fn of_sixteen_processes_exactly_one_runs() {
    Scratch::on_each_store("", |scratch| {
        let runners: Vec<String> =
            (0..16).map(|number| scratch.session(&format!("r{number}"))).collect();
        let work = "echo run >> ../runs; sleep 0.2; echo made $BATON_ONCE_KEY";
        let words = ["once", "build", "--wait", "60s", "--", "sh", "-c", work];
        let begun: Vec<Child> = runners.iter().map(|who| scratch.begins(who, &words)).collect();
        for said in begun.into_iter().map(finish) {
            assert_eq!(said.ok().out, "made build\n");
        }
        assert_eq!(lines(scratch, "runs"), 1);
        scratch.baton(&["journal", "verify"]).ok();
    });
}

#[test]
fn a_killed_runner_is_seen_at_once_and_the_next_runs() {
    Scratch::on_each_store("", |scratch| {
        let (alice, bob) = (scratch.session("alice"), scratch.session("bob"));
        let slow = "echo $$ >> ../pids; exec sleep 600";
        let mut first = scratch.begins(&alice, &["once", "build", "--", "sh", "-c", slow]);
        until_lines(scratch, "pids", 1);
        let next = ["once", "build", "--wait", "60s", "--", "echo", "done"];
        let waiting = scratch.begins(&bob, &next);
        let refused = scratch.acts(&bob, &["once", "build", "--json", "--", "true"]).refused(1);
        let refused = &refused.json()["refused"];
        assert_eq!(
            (&refused["code"], &refused["holder"]["name"]),
            (&json!("running"), &json!("alice"))
        );
        let begun = Instant::now();
        first.kill().unwrap();
        first.wait().unwrap();
        assert_eq!(finish(waiting).ok().out, "done\n");
        assert!(begun.elapsed() < Duration::from_secs(10), "the death was not seen at once");
        let pid = std::fs::read_to_string(scratch.path("pids")).unwrap();
        #[cfg(target_os = "linux")]
        assert!(is_dead(pid.trim()), "the command outlived its runner");
        let _ = pid;
        scratch.baton(&["journal", "verify"]).ok();
    });
}

#[test]
fn exit_codes_are_the_commands_and_a_failure_may_be_tried_again() {
    let scratch = Scratch::workspace();
    let alice = scratch.session("alice");
    let run = |words: &[&str]| scratch.acts(&alice, &[&["once", "k", "--"], words].concat());
    for (words, code) in [
        (&["sh", "-c", "echo out; echo err >&2; exit 7"][..], 7),
        (&["sh", "-c", "kill -9 $$"], 137),
        (&["no-such-command"], 127),
        (&["/"], 126),
        (&["false"], 1),
    ] {
        assert_eq!(run(words).code, code, "{words:?}");
    }
    let said = run(&["sh", "-c", "echo out; echo err >&2"]).ok();
    assert_eq!((said.out.as_str(), said.err.as_str()), ("out\n", "err\n"));
    let again = run(&["sh", "-c", "echo out; echo err >&2"]).ok();
    assert_eq!(again.out, "out\n", "recorded");
    assert!(again.err.starts_with("recorded: k succeeded"), "{again:?}");
    let other = run(&["false"]).ok();
    assert!(other.err.contains("another command line"), "{other:?}");
    scratch.baton(&["once", "k", "--", "true"]).refused(1);
    for words in [&["once", "k"][..], &["once", "a b", "--", "true"], &["once"]] {
        scratch.acts(&alice, words).refused(2);
    }
    let journal = scratch.baton(&["journal", "--json"]).ok().out;
    assert!(!journal.contains("echo err"), "arguments may hold secrets");
}

#[test]
fn a_document_says_whether_it_ran() {
    let scratch = Scratch::workspace();
    let alice = scratch.session("alice");
    let words = ["once", "k", "--json", "--", "echo", "hello"];
    let ran = scratch.acts(&alice, &words).ok();
    assert_eq!(ran.err, "hello\n");
    let ran = ran.json();
    assert_eq!(
        (&ran["how"], &ran["exit_code"], &ran["output"]),
        (&json!("ran"), &json!(0), &json!("hello\n"))
    );
    let recorded = scratch.acts(&alice, &words).ok().json();
    assert_eq!((&recorded["how"], &recorded["token"]), (&json!("recorded"), &ran["token"]));
}

#[test]
fn a_success_counts_as_long_as_is_said() {
    let scratch = Scratch::workspace();
    scratch.allow_test_hooks();
    let alice = scratch.session("alice");
    let words = ["once", "k", "--ttl", "1h", "--", "sh", "-c", "echo run >> ../runs"];
    scratch.acts(&alice, &words).ok();
    scratch.acts_later(&alice, 3_590_000, &words).ok();
    assert_eq!(lines(&scratch, "runs"), 1);
    scratch.acts_later(&alice, 3_700_000, &words).ok();
    assert_eq!(lines(&scratch, "runs"), 2);
    let always = ["once", "k", "--ttl", "0s", "--", "sh", "-c", "echo run >> ../runs"];
    scratch.acts(&alice, &always).ok();
    assert_eq!(lines(&scratch, "runs"), 3);
}

#[test]
fn a_long_output_streams_whole_and_its_end_is_kept() {
    let scratch = Scratch::workspace();
    let alice = scratch.session("alice");
    let words = ["once", "k", "--", "sh", "-c", "seq 1 100000; sleep 60 2>/dev/null & echo end"];
    let begun = Instant::now();
    let ran = scratch.acts(&alice, &words).ok();
    assert!(begun.elapsed() < Duration::from_secs(30), "a child of the command was waited for");
    assert!(ran.out.starts_with("1\n2\n") && ran.out.ends_with("100000\nend\n"));
    let recorded = scratch.acts(&alice, &words).ok();
    assert!(ran.out.ends_with(&recorded.out) && recorded.out.len() <= 64 * 1024);
    assert!(recorded.out.len() > 60 * 1024 && recorded.err.contains("only the end"));
}

/// Another boot makes the runner look dead to the second caller, although it lives.
#[test]
fn a_late_success_is_refused_and_said() {
    let Ok(server) = baton_testing::cluster::shared() else {
        return eprintln!("skipped: there is no PostgreSQL here");
    };
    let address = server.address(&server.create_database().unwrap());
    let scratch = Scratch::repository().on_store(&address);
    scratch.baton(&["init", "--yes"]).ok();
    scratch.allow_test_hooks();
    let (alice, bob) = (scratch.session("alice"), scratch.session("bob"));
    let slow = "echo begun >> ../begun; until [ -e ../go ]; do sleep 0.05; done; echo late";
    let first = scratch.begins(&alice, &["once", "k", "--", "sh", "-c", slow]);
    until_lines(&scratch, "begun", 1);
    let mut second = scratch.command(&["once", "k", "--", "echo", "second"]);
    second.env("BATON_SESSION", &bob).env("BATON_TEST_BOOT_ID", "another");
    Said::from(second.output().unwrap()).ok();
    std::fs::write(scratch.path("go"), "").unwrap();
    let late = finish(first);
    assert_eq!((late.code, late.out.as_str()), (3, "late\n"), "{late:?}");
    assert!(late.err.contains("the command succeeded, and that is not recorded"), "{late:?}");
    assert!(late.err.contains("was lost"), "{late:?}");
    let recorded = scratch.acts(&alice, &["once", "k", "--", "true"]).ok();
    assert_eq!(recorded.out, "second\n");
    scratch.baton(&["journal", "verify"]).ok();
}

#[test]
fn whoever_ends_the_runner_ends_the_command() {
    let scratch = Scratch::workspace();
    let alice = scratch.session("alice");
    let work = "trap 'echo stopped; exit 9' TERM; echo begun >> ../begun; \
                while :; do sleep 0.05; done";
    let child = scratch.begins(&alice, &["once", "k", "--", "sh", "-c", work]);
    until_lines(&scratch, "begun", 1);
    Command::new("kill").arg(child.id().to_string()).status().unwrap();
    let said = finish(child);
    assert_eq!((said.code, said.out.as_str()), (9, "stopped\n"));
    assert_eq!(scratch.acts(&alice, &["once", "k", "--", "echo", "again"]).ok().out, "again\n");
}

#[test]
fn a_wait_ends_in_time() {
    let scratch = Scratch::workspace();
    let (alice, bob) = (scratch.session("alice"), scratch.session("bob"));
    let slow = "echo begun >> ../begun; exec sleep 600";
    let mut first = scratch.begins(&alice, &["once", "k", "--", "sh", "-c", slow]);
    until_lines(&scratch, "begun", 1);
    let words = ["once", "k", "--wait", "300ms", "--json", "--", "true"];
    let waited = scratch.acts(&bob, &words);
    assert_eq!((waited.code, &waited.json()["refused"]["code"]), (1, &json!("timed_out")));
    first.kill().unwrap();
    first.wait().unwrap();
}
