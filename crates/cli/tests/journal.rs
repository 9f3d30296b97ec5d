//! `journal`: reading, following, running commands, verifying.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::harness::Scratch;

fn kinds(scratch: &Scratch, words: &[&str]) -> Vec<String> {
    let all: Vec<&str> = ["journal", "--json"].iter().chain(words).copied().collect();
    let found = scratch.baton(&all).ok().json();
    let entries = found["entries"].as_array().unwrap().clone();
    entries.iter().map(|entry| entry["kind"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn entries_are_told_in_sentences() {
    let scratch = Scratch::workspace();
    let alice = scratch.session("alice");
    scratch.acts(&alice, &["claim", "src/a.rs", "--reason", "evil \u{1b}[2J\u{202e}"]).ok();
    scratch.acts(&alice, &["release", "--all", "--commit", "abc1234"]).ok();
    let said = scratch.baton(&["journal", "--limit", "2"]).ok();
    let told: Vec<&str> = said.out.lines().map(|line| line[32..].trim_start()).collect();
    assert!(told[0].starts_with("alice claimed src/a.rs until "), "{told:?}");
    assert!(told[0].ends_with("because: \"evil \\u{1b}[2J\\u{202e}\""), "S20: {told:?}");
    assert_eq!(told[1], "alice released src/a.rs with commit abc1234");
}

#[test]
fn filters_choose_entries() {
    let scratch = Scratch::workspace();
    let (alice, bob) = (scratch.session("alice"), scratch.session("bob"));
    scratch.acts(&alice, &["claim", "src/a.rs"]).ok();
    scratch.acts(&bob, &["claim", "README.md"]).ok();
    scratch.acts(&bob, &["release", "--all"]).ok();
    assert_eq!(kinds(&scratch, &["--path", "src/"]), ["claim_granted"]);
    assert_eq!(kinds(&scratch, &["--kind", "claim-granted"]), ["claim_granted"; 2]);
    let both = ["--kind", "claim_granted", "--kind", "claim_ended", "--session", "bob"];
    assert_eq!(kinds(&scratch, &both), ["claim_granted", "claim_ended"]);
    let id = bob.split('.').next().unwrap();
    assert_eq!(kinds(&scratch, &["--session", id, "--limit", "1"]), ["claim_ended"]);
    assert_eq!(kinds(&scratch, &["--session", &bob]).len(), 3, "a credential names its session");
    assert_eq!(kinds(&scratch, &["--since", "0s"]), Vec::<String>::new());
    assert_eq!(kinds(&scratch, &["--since", "2100-01-01"]), Vec::<String>::new());
    let all = kinds(&scratch, &[]);
    assert_eq!(kinds(&scratch, &["--since", "1h"]), all);
    assert_eq!(kinds(&scratch, &["--since", "1.2"]), all[2..], "a position means what came after");
    assert_eq!(kinds(&scratch, &["--limit", "0"]), Vec::<String>::new());
    assert_eq!(kinds(&scratch, &["--limit", "1000000"]), all);
}

#[test]
fn s19_no_hash_of_a_secret_is_shown() {
    let scratch = Scratch::workspace();
    scratch.session("alice");
    for words in [&["journal", "--json"][..], &["journal"], &["export", "out"]] {
        let said = scratch.baton(words).ok();
        assert!(!said.out.contains("secret"), "{said:?}");
    }
    for file in ["journal.jsonl", "sessions.json"] {
        let text = std::fs::read_to_string(scratch.root().join("out").join(file)).unwrap();
        assert!(!text.contains("secret"), "{file}");
    }
}

#[test]
fn bad_words_are_refused_in_one_line() {
    let scratch = Scratch::workspace();
    for (code, words) in [
        (2, &["journal", "--kind", "clam_granted"][..]),
        (2, &["journal", "--since", "yesterday"]),
        (2, &["journal", "--since", ""]),
        (2, &["journal", "--limit", "-1"]),
        (2, &["journal", "--limit", "many"]),
        (2, &["journal", "--exec"]),
        (1, &["journal", "--session", "nobody"]),
        (1, &["journal", "--path", "../outside"]),
        (2, &["journal", "--path", "src/[a"]),
        (2, &["journal", "verify", "now"]),
        (2, &["journal", "archive", "--before", "soon"]),
        (2, &["journal", "archive", "--keep", "x"]),
    ] {
        let said = scratch.baton(words);
        assert_eq!(said.code, code, "{words:?}: {said:?}");
        said.refused(code);
    }
    let near = scratch.baton(&["journal", "--kind", "clam_granted"]).err;
    assert!(near.contains("perhaps claim_granted"), "{near}");
}

/// A follower, and what it has said so far.
struct Follower {
    child: Child,
    lines: std::sync::mpsc::Receiver<String>,
}

impl Follower {
    fn start(scratch: &Scratch, words: &[&str]) -> Self {
        let mut command = scratch.command(words);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let (send, lines) = std::sync::mpsc::channel();
        std::thread::spawn(move || out.lines().map_while(Result::ok).all(|l| send.send(l).is_ok()));
        Self { child, lines }
    }

    fn line(&self) -> String {
        self.lines.recv_timeout(Duration::from_secs(20)).unwrap()
    }

    fn interrupt(&mut self) -> std::process::ExitStatus {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
        self.child.wait().unwrap()
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_follower_is_told_at_once_and_ends_cleanly() {
    let scratch = Scratch::workspace();
    let alice = scratch.session("alice");
    // From the beginning, so that the first line says that it is there.
    let mut follower =
        Follower::start(&scratch, &["journal", "--follow", "--json", "--since", "1.1"]);
    let mut line = follower.line();
    while !line.contains("session_started") {
        line = follower.line();
    }
    let start = Instant::now();
    scratch.acts(&alice, &["claim", "src/a.rs"]).ok();
    let entry: serde_json::Value = serde_json::from_str(&follower.line()).unwrap();
    assert_eq!(entry["kind"], "claim_granted");
    assert_eq!(entry["actor"]["name"], "alice");
    assert!(start.elapsed() < Duration::from_secs(5), "it waits for news, not for a timer");
    assert_eq!(follower.interrupt().code(), Some(0), "Ctrl-C is a clean end");
}

#[test]
fn a_follower_goes_on_after_a_restore() {
    let scratch = Scratch::workspace();
    let alice = scratch.session("alice");
    scratch.baton(&["store", "backup", "../backup"]).ok();
    scratch.acts(&alice, &["claim", "src/a.rs"]).ok();
    scratch.acts(&alice, &["claim", "README.md"]).ok();
    let follower = Follower::start(&scratch, &["journal", "--follow", "--json", "--limit", "1"]);
    assert!(follower.line().contains("README.md"));
    scratch.baton(&["store", "restore", "../backup", "--yes"]).ok();
    scratch.acts(&alice, &["claim", "src/late.rs"]).ok();
    assert!(follower.line().contains("epoch_raised"), "its number is below the last one shown");
    assert!(follower.line().contains("src/late.rs"));
}

#[test]
fn a_follower_whose_reader_is_gone_ends() {
    let scratch = Scratch::workspace();
    let mut command = scratch.command(&["journal", "--follow"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let deadline = Instant::now() + Duration::from_secs(20);
    while child.try_wait().unwrap().is_none() {
        assert!(Instant::now() < deadline, "it still follows for nobody");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_command_runs_for_every_entry_even_after_one_fails() {
    let scratch = Scratch::workspace();
    let alice = scratch.session("alice");
    scratch.acts(&alice, &["claim", "src/a.rs"]).ok();
    scratch.acts(&alice, &["release", "--all"]).ok();
    let script = scratch.path("told.sh");
    let mut file = std::fs::File::create(&script).unwrap();
    writeln!(file, "#!/bin/sh\necho \"$BATON_EVENT_KIND $BATON_EVENT_POSITION $1 $(wc -l)\"")
        .unwrap();
    writeln!(file, "test $BATON_EVENT_KIND != claim_granted").unwrap();
    drop(file);
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let script = script.to_str().unwrap();
    let words = ["journal", "--path", "src/a.rs", "--exec", script, "$(id) --json", "--follow"];
    let said = scratch.baton(&words).ok();
    let told: Vec<Vec<&str>> = said.out.lines().map(|line| line.split(' ').collect()).collect();
    assert_eq!(told.len(), 2, "{said:?}");
    assert_eq!((told[0][0], told[1][0]), ("claim_granted", "claim_ended"));
    assert_eq!(
        told[0][2..4],
        ["$(id)", "--json"],
        "no shell, and all that follows is the command's"
    );
    assert_eq!(told[0].last(), Some(&"1"), "the entry came on standard input");
    assert!(said.err.contains("failed for entry"), "{said:?}");
    let missing = scratch.baton(&["journal", "--limit", "1", "--exec", "/nonexistent"]).ok();
    assert!(missing.err.contains("cannot be run"), "{missing:?}");
    let silent = scratch.baton(&["journal", "--exec", "true"]).ok();
    assert_eq!(silent.out, "", "a command that reads nothing is no failure");
}

/// Runs SQL in the store, as somebody who knows better would.
fn meddle(scratch: &Scratch, sql: &str) {
    let database = rusqlite::Connection::open(scratch.store().join("store.db")).unwrap();
    assert!(database.execute(sql, []).unwrap() > 0, "{sql} changed nothing");
}

#[test]
fn s14_a_sound_journal_verifies() {
    let scratch = Scratch::workspace();
    let alice = scratch.session("alice");
    scratch.acts(&alice, &["claim", "src/", "@gpu"]).ok();
    let said = scratch.baton(&["journal", "verify", "--json"]).ok().json();
    assert_eq!(said["verified"], true);
    let head = scratch.baton(&["journal", "--json", "--limit", "1"]).ok().json();
    assert_eq!(said["head_hash"], head["entries"][0]["hash"]);
    assert_eq!(said["head"], head["entries"][0]["position"]);
    let said = scratch.baton(&["journal", "verify"]).ok();
    assert!(said.out.starts_with("verified: "), "{said:?}");
}

#[test]
fn s14_whatever_is_meddled_with_is_named() {
    let cases: &[(&str, &[&str])] = &[
        // The entry's own hash does not fit, and the record it makes differs.
        (
            "UPDATE journal SET body=replace(body, 'a.rs', 'b.rs') WHERE kind='claim_granted'",
            &["was changed after it was written", "claim c"],
        ),
        ("UPDATE journal SET hash='00' WHERE number=2", &["entry 1.2 was changed", "entry 1.3"]),
        ("UPDATE journal SET at=1 WHERE number=3", &["entry 1.3 is older"]),
        ("UPDATE journal SET actor='s0' WHERE number=3", &["entry 1.3 was changed"]),
        (
            "DELETE FROM journal WHERE number=2",
            &["does not follow", "is there, and no entry makes"],
        ),
        ("UPDATE journal SET kind='moon_landed' WHERE number=3", &["belongs to a newer Baton"]),
        ("UPDATE journal SET body='{' WHERE number=3", &["cannot be read"]),
        (
            "UPDATE records SET body=json_set(body, '$.name', 'mallory') WHERE kind='claim'",
            &["claim c", "name is \"mallory\", the journal says \"alice\""],
        ),
        (
            "UPDATE records SET version=9 WHERE kind='session'",
            &["version is 9, the journal says 1"],
        ),
        ("DELETE FROM records WHERE kind='claim'", &["is missing: the journal makes it"]),
        (
            "INSERT INTO records SELECT kind, 'cfake', version, body FROM records \
             WHERE kind='claim'",
            &["claim cfake is there, and no entry makes it"],
        ),
        (
            "DELETE FROM entries WHERE \"index\"='claim.resource'",
            &["is not in the index claim.resource under /src/a.rs/"],
        ),
        (
            "INSERT INTO entries VALUES('claim.resource', '/x/', 'claim', 'cfake')",
            &["claim cfake is wrongly in the index claim.resource under /x/"],
        ),
    ];
    let scratch = Scratch::workspace();
    let alice = scratch.session("alice");
    scratch.acts(&alice, &["claim", "src/a.rs"]).ok();
    let whole = scratch.path("whole");
    scratch.baton(&["store", "backup", whole.to_str().unwrap()]).ok();
    for (sql, words) in cases {
        // Each begins with a sound store of its own.
        for name in ["store.db", "store.db-wal", "store.db-shm"] {
            let _ = std::fs::remove_file(scratch.store().join(name));
        }
        std::fs::copy(&whole, scratch.store().join("store.db")).unwrap();
        scratch.baton(&["journal", "verify"]).ok();
        meddle(&scratch, sql);
        let said = scratch.baton(&["journal", "verify"]);
        assert_eq!(said.code, 1, "{sql}: {said:?}");
        assert!(said.out.starts_with("does not verify: "), "{sql}: {said:?}");
        for word in *words {
            assert!(said.out.contains(word), "{sql}\nlacks {word:?}:\n{}", said.out);
        }
        assert!(!said.out.contains("secret_hashes is ["), "{said:?}");
        let refused = scratch.baton(&["journal", "archive", "--keep", "0"]);
        assert_eq!(refused.code, 1, "{sql}: a store that does not verify is not archived");
    }
}

#[test]
fn only_the_first_findings_are_named_and_the_rest_counted() {
    let scratch = Scratch::workspace();
    let alice = scratch.session("alice");
    for number in 0..12 {
        scratch.acts(&alice, &["claim", &format!("f{number}")]).ok();
    }
    meddle(&scratch, "DELETE FROM records WHERE kind='claim'");
    let said = scratch.baton(&["journal", "verify"]);
    assert_eq!(said.out.matches("wrong: ").count(), 5, "{said:?}");
    assert!(said.out.contains("and 7 more findings"), "{said:?}");
}
