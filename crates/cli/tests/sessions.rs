//! Sessions through the binary: identity, secrets, processes, people, grace.

use crate::harness::{Process, Said, Scratch};

#[test]
fn lesson_01_a_name_is_no_identity() {
    let scratch = Scratch::workspace();
    let one = scratch.session("worker");
    let two = scratch.session("worker");
    assert_ne!(one, two);
    scratch.acts(&one, &["claim", "x"]).ok();
    scratch.acts(&two, &["claim", "x"]).refused(1);
}

#[test]
fn s19_what_is_public_is_not_enough_to_act() {
    let scratch = Scratch::workspace();
    let alice = scratch.session("alice");
    let (id, secret) = alice.split_once('.').unwrap();
    scratch.acts(id, &["claim", "x"]).refused(2);
    scratch.acts(&format!("{id}.{id}"), &["claim", "x"]).refused(1);
    let other = scratch.session("other");
    let mixed = format!("{}.{secret}", other.split_once('.').unwrap().0);
    scratch.acts(&mixed, &["claim", "x"]).refused(1);
    let record = std::fs::read(scratch.store().join("store.db-wal")).unwrap();
    let needle = secret.as_bytes();
    assert!(!record.windows(needle.len()).any(|part| part == needle), "the secret is stored");
}

#[test]
fn a_process_below_a_sessions_process_is_that_session() {
    let scratch = Scratch::workspace();
    let binary = env!("CARGO_BIN_EXE_baton");
    // The shell is the agent: bound by its pid, its children need no credential.
    let script = format!(
        "{binary} session start --name shell --pid $$ --json >/dev/null && {binary} session whoami"
    );
    let mut command = std::process::Command::new("bash");
    scratch.clean(&mut command);
    let said: Said =
        command.current_dir(scratch.root()).args(["-c", &script]).output().unwrap().into();
    assert!(said.ok().out.starts_with("shell "));
}

#[test]
fn a_process_with_two_sessions_is_no_identity() {
    let scratch = Scratch::workspace();
    let binary = env!("CARGO_BIN_EXE_baton");
    let script = format!(
        "{binary} session start --pid $$ --json >/dev/null; \
         {binary} session start --pid $$ --json >/dev/null; {binary} claim x"
    );
    let mut command = std::process::Command::new("bash");
    scratch.clean(&mut command);
    let said: Said =
        command.current_dir(scratch.root()).args(["-c", &script]).output().unwrap().into();
    let said = said.refused(1);
    assert!(said.err.contains("more than one session"), "{said:?}");
}

#[test]
fn a_client_comes_back_to_its_session_within_the_grace() {
    let scratch = Scratch::workspace();
    scratch.allow_test_hooks();
    let start = ["session", "start", "--client", "claude", "--client-session", "abc", "--json"];
    let first = scratch.baton(&start).ok().json();
    let credential = first["credential"].as_str().unwrap();
    scratch.acts(credential, &["claim", "x"]).ok();
    scratch.acts(credential, &["session", "end", "--grace"]).ok();
    let other = scratch.session("other");
    scratch.acts(&other, &["claim", "x"]).refused(1);
    let back = scratch.baton(&start).ok().json();
    assert_eq!((&back["session"], &back["resumed"]), (&first["session"], &true.into()));
    let credential = back["credential"].as_str().unwrap();
    scratch.acts(credential, &["claim", "x"]).ok();
    // Without a return it is over when the grace is.
    scratch.acts(credential, &["session", "end", "--grace"]).ok();
    scratch.acts_later(&other, 11 * 60_000, &["claim", "x"]).ok();
}

#[test]
fn ending_lets_go_of_everything() {
    let scratch = Scratch::workspace();
    let (alice, bob) = (scratch.session("alice"), scratch.session("bob"));
    scratch.acts(&alice, &["claim", "x", "@deploy/prod"]).ok();
    scratch.acts(&alice, &["session", "end"]).ok();
    scratch.acts(&bob, &["claim", "x", "@deploy/prod"]).ok();
    scratch.acts(&alice, &["claim", "y"]).refused(1);
    scratch.acts(&alice, &["session", "end", "bob"]).refused(1);
}

#[test]
fn revoking_is_a_persons_right() {
    let scratch = Scratch::workspace();
    let (alice, bob) = (scratch.session("alice"), scratch.session("bob"));
    scratch.acts(&alice, &["claim", "x"]).ok();
    scratch.acts(&bob, &["revoke", "x", "--why", "mine now"]).refused(1);
    if !has_script() {
        return;
    }
    // A terminal without an agent above it is a person.
    let said = at_terminal(&scratch, "revoke x --why 'it is late'");
    assert!(said.out.contains("revoked x from alice"), "{said:?}");
    scratch.acts(&bob, &["claim", "x"]).ok();
    let told = scratch.acts(&alice, &["claim", "y"]).ok();
    assert!(told.out.contains("a person took it away: it is late"), "{told:?}");
}

#[test]
fn a_person_at_a_terminal_needs_no_session() {
    if !has_script() {
        return;
    }
    let scratch = Scratch::workspace();
    let said = at_terminal(&scratch, "claim README.md");
    assert!(said.out.contains("claimed README.md"), "{said:?}");
}

#[test]
fn bad_starts_are_refused() {
    let scratch = Scratch::workspace();
    scratch.baton(&["session", "start", "--name", "\u{1b}[31mred"]).refused(2);
    scratch.baton(&["session", "start", "--name", "\u{202e}live"]).refused(2);
    scratch.baton(&["session", "start", "--name", &"x".repeat(1_000)]).refused(2);
    scratch.baton(&["session", "start", "--name", ""]).refused(2);
    scratch.baton(&["session", "start", "--pid", "4194304"]).refused(2);
    let mut gone = Process::start();
    let pid = gone.0.id().to_string();
    gone.end();
    scratch.baton(&["session", "start", "--pid", &pid]).refused(2);
}

fn has_script() -> bool {
    let found = std::process::Command::new("script").arg("--version").output().is_ok();
    if !found {
        eprintln!("skipped: the program `script` is not installed");
    }
    found
}

/// Types one command at a terminal of its own.
fn at_terminal(scratch: &Scratch, words: &str) -> Said {
    let mut command = std::process::Command::new("script");
    scratch.clean(&mut command);
    let line = format!("{} {words}", env!("CARGO_BIN_EXE_baton"));
    command.current_dir(scratch.root()).args(["-qec", &line, "/dev/null"]);
    // A session of its own, or the shell that runs the tests would be an ancestor to reckon with.
    command.stdin(std::process::Stdio::null()).output().unwrap().into()
}
