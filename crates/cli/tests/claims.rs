//! Claims through the binary: taking, refusing, waiting, ending, on real processes.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::harness::{Said, Scratch};

fn finish(child: Child) -> Said {
    child.wait_with_output().unwrap().into()
}

#[test]
fn the_documents_scripts_rely_on() {
    let scratch = Scratch::workspace();
    let (alice, bob) = (scratch.session("alice"), scratch.session("bob"));
    let granted = scratch.acts(&alice, &["claim", "src/a.rs", "--reason", "why not", "--json"]);
    let granted = granted.ok().json();
    assert_eq!(granted["resources"], serde_json::json!(["src/a.rs"]));
    for key in ["claim", "token", "expires_at"] {
        assert!(granted[key].is_string(), "{granted}");
    }
    let said = scratch.acts(&bob, &["claim", "./src/../src/A.rs", "--json"]).refused(1);
    let refused = &said.json()["refused"];
    assert_eq!(refused["code"], "held");
    assert_eq!(refused["holder"]["name"], "alice");
    assert_eq!(refused["reason"], "why not");
    for key in ["resource", "until", "next"] {
        assert!(refused[key].is_string(), "{refused}");
    }
    let checked = scratch.acts(&bob, &["check", "src/a.rs", "--json"]);
    assert_eq!((checked.code, &checked.json()["verdict"]), (1, &Value::from("deny")));
    let listed = scratch.baton(&["claims", "--json"]).ok().json();
    assert_eq!(listed["claims"].as_array().unwrap().len(), 1);
    let secret = alice.split_once('.').unwrap().1;
    for words in [&["claims"][..], &["session", "list"], &["why", "src/a.rs"]] {
        assert!(!scratch.baton(words).out.contains(secret), "S19: a secret is shown");
    }
}

#[test]
fn lesson_07_a_claim_of_several_is_all_or_nothing() {
    let scratch = Scratch::workspace();
    let (alice, bob) = (scratch.session("alice"), scratch.session("bob"));
    scratch.acts(&alice, &["claim", "b"]).ok();
    scratch.acts(&bob, &["claim", "a", "b", "c"]).refused(1);
    scratch.acts(&alice, &["claim", "a", "c"]).ok();
}

#[test]
fn lesson_05_every_spelling_is_one_file() {
    let scratch = Scratch::workspace();
    std::os::unix::fs::symlink("src", scratch.root().join("link")).unwrap();
    std::os::unix::fs::symlink(scratch.root(), scratch.path("elsewhere")).unwrap();
    let (alice, bob) = (scratch.session("alice"), scratch.session("bob"));
    scratch.acts(&alice, &["claim", "src/a.rs"]).ok();
    let absolute = scratch.path("elsewhere/src/a.rs");
    for spelling in ["src/a.rs", "./src//a.rs", "SRC/a.rs", "link/a.rs", absolute.to_str().unwrap()]
    {
        let said = scratch.acts(&bob, &["check", spelling]);
        assert_eq!(said.code, 1, "{spelling}: {said:?}");
    }
}

/// How a holder lets go.
type Way = fn(&Scratch, &str);

#[test]
fn lesson_06_every_way_a_claim_ends_wakes_the_waiter() {
    let scratch = Scratch::workspace();
    let ways: [Way; 4] = [
        |scratch, holder| {
            scratch.acts(holder, &["release", "x"]).ok();
        },
        |scratch, holder| {
            scratch.acts(holder, &["release", "--all"]).ok();
        },
        |scratch, holder| {
            scratch.acts(holder, &["session", "end"]).ok();
        },
        // Nothing is done: the lease ends by itself.
        |_, _| {},
    ];
    for (number, end) in ways.iter().enumerate() {
        let holder = scratch.session("holder");
        let waiter = scratch.session("waiter");
        let ttl = if number == 3 { "1s" } else { "30m" };
        scratch.acts(&holder, &["claim", "x", "--ttl", ttl]).ok();
        let waiting = scratch.begins(&waiter, &["claim", "x", "--wait", "60s"]);
        scratch.until_waiting(1);
        let begun = Instant::now();
        end(&scratch, &holder);
        finish(waiting).ok();
        assert!(begun.elapsed() < Duration::from_secs(10), "way {number} woke nobody");
        scratch.acts(&waiter, &["release", "--all"]).ok();
    }
}

#[test]
fn a_dead_holder_frees_at_once_and_its_changes_are_saved() {
    let scratch = Scratch::workspace();
    let (holder, mut process) = scratch.session_with_process("holder");
    let next = scratch.session("next");
    scratch.acts(&holder, &["claim", "src/a.rs"]).ok();
    scratch.write("src/a.rs", "fn a() { half_done() }\n");
    let waiting = scratch.begins(&next, &["claim", "src/a.rs", "--wait", "60s", "--json"]);
    scratch.until_waiting(1);
    process.end();
    let granted = finish(waiting).ok().json();
    let left = &granted["left_behind"][0];
    assert_eq!(left["name"], "holder", "{granted}");
    let saved = format!("{}:src/a.rs", left["rescue"].as_str().unwrap());
    assert_eq!(scratch.git(&["show", &saved]), "fn a() { half_done() }\n");
    // Told once.
    scratch.acts(&next, &["release", "--all"]).ok();
    let again = scratch.acts(&next, &["claim", "src/a.rs", "--json"]).ok().json();
    assert!(again.get("left_behind").is_none(), "{again}");
}

#[test]
fn lesson_10_a_sleeper_is_told_or_gets_a_new_token() {
    let scratch = Scratch::workspace();
    scratch.allow_test_hooks();
    let (sleeper, other) = (scratch.session("sleeper"), scratch.session("other"));
    let first = scratch.acts(&sleeper, &["claim", "a", "b", "--json"]).ok().json();
    let hours = 2 * 3_600_000;
    let renewed = scratch.acts_later(&sleeper, hours, &["renew", "--json"]).ok().json();
    let kept = &renewed["renewed"][0];
    assert_eq!(kept["new_token"], true, "{renewed}");
    assert_ne!(kept["token"], first["token"]);
    scratch.acts_later(&other, 2 * hours, &["claim", "a"]).ok();
    let told = scratch.acts_later(&sleeper, 2 * hours, &["claim", "c"]).ok();
    assert!(told.out.contains("you no longer hold"), "{told:?}");
    assert!(told.out.contains("other has it now"), "{told:?}");
    let token = kept["token"].as_str().unwrap();
    scratch.acts_later(&sleeper, 2 * hours, &["check", "a", "--token", token]).refused(3);
}

#[test]
fn a_living_process_keeps_dirty_paths_past_its_time() {
    let scratch = Scratch::workspace();
    scratch.allow_test_hooks();
    let (holder, _process) = scratch.session_with_process("holder");
    let other = scratch.session("other");
    scratch.acts(&holder, &["claim", "src/a.rs", "README.md"]).ok();
    scratch.write("src/a.rs", "fn a() { half_done() }\n");
    let later = 3_600_000;
    let said = scratch.acts_later(&other, later, &["claim", "src/a.rs"]).refused(1);
    assert!(said.err.contains("uncommitted changes"), "{said:?}");
    scratch.git(&["commit", "-qam", "done"]);
    scratch.acts_later(&other, later, &["claim", "src/a.rs"]).ok();
}

#[test]
fn s08_no_claim_ends_early_and_a_reboot_raises_the_epoch() {
    let scratch = Scratch::workspace();
    scratch.allow_test_hooks();
    let (alice, bob) = (scratch.session("alice"), scratch.session("bob"));
    let first = scratch.acts(&alice, &["claim", "x", "--json"]).ok().json();
    scratch.acts_later(&bob, 29 * 60_000, &["claim", "x"]).refused(1);
    let mut command = scratch.command(&["claim", "y", "--json"]);
    command.env("BATON_SESSION", &bob).env("BATON_TEST_BOOT_ID", "another-boot");
    let after: Said = command.output().unwrap().into();
    let token = |value: &Value| -> Vec<u64> {
        let text = value["token"].as_str().unwrap();
        text.split('.').map(|part| part.parse().unwrap()).collect()
    };
    let (before, after) = (token(&first), token(&after.ok().json()));
    assert!(after > before && after[0] > before[0], "{before:?} then {after:?}");
}

#[test]
fn lesson_01_many_processes_one_holder() {
    let scratch = Scratch::workspace();
    for round in 0..6 {
        let path = format!("contested-{round}");
        let sessions: Vec<String> = (0..8).map(|_| scratch.session("same-name")).collect();
        let racing: Vec<Child> =
            sessions.iter().map(|session| scratch.begins(session, &["claim", &path])).collect();
        let won = racing.into_iter().map(finish).filter(|said| said.code == 0);
        assert_eq!(won.count(), 1, "round {round}");
    }
}

#[test]
fn s12_a_retry_with_the_same_id_gets_the_first_answer() {
    let scratch = Scratch::workspace();
    let alice = scratch.session("alice");
    let words = ["claim", "x", "--json", "--op-id", "0190-one"];
    let first = scratch.acts(&alice, &words).ok();
    scratch.acts(&alice, &["release", "x"]).ok();
    assert_eq!(scratch.acts(&alice, &words).ok().out, first.out);
    assert!(!scratch.baton(&["claims"]).out.contains('x'), "the retry took it again");
    scratch.acts(&alice, &["claim", "y", "--op-id", "0190-one"]).refused(1);
    let bob = scratch.session("bob");
    scratch.acts(&bob, &words).refused(1);
}

#[test]
fn counted_resources_and_zones() {
    let scratch = Scratch::with_policy(
        "[[zone]]\npaths = [\"db/**\"]\npolicy = \"serial\"\n\
         [[zone]]\npaths = [\"AGENTS.md\"]\npolicy = \"require\"\n\
         [[zone]]\npaths = [\"keys/**\"]\npolicy = \"human\"\n\
         [resource.\"@gpu\"]\ncapacity = 2\n",
    );
    let (alice, bob) = (scratch.session("alice"), scratch.session("bob"));
    scratch.acts(&alice, &["claim", "@gpu=2"]).ok();
    scratch.acts(&bob, &["claim", "@gpu"]).refused(1);
    scratch.acts(&bob, &["claim", "@gpu=3"]).refused(1);
    scratch.acts(&alice, &["claim", "db/1.sql"]).ok();
    let said = scratch.acts(&bob, &["claim", "db/2.sql", "--json"]).refused(1);
    assert_eq!(said.json()["refused"]["resource"], "db/2.sql", "{said:?}");
    assert_eq!(scratch.acts(&bob, &["check", "AGENTS.md"]).code, 1);
    scratch.acts(&bob, &["claim", "AGENTS.md"]).ok();
    assert_eq!(scratch.acts(&bob, &["check", "AGENTS.md"]).code, 0);
    scratch.acts(&bob, &["claim", "keys/a"]).refused(1);
    assert_eq!(scratch.acts(&bob, &["check", "keys/a", "--json"]).json()["verdict"], "ask");
}

#[test]
fn a_circle_of_waits_is_refused_by_name() {
    let scratch = Scratch::workspace();
    let (alice, bob) = (scratch.session("alice"), scratch.session("bob"));
    scratch.acts(&alice, &["claim", "one"]).ok();
    scratch.acts(&bob, &["claim", "two"]).ok();
    let mut waiting = scratch.begins(&alice, &["claim", "two", "--wait", "60s"]);
    scratch.until_waiting(1);
    let said = scratch.acts(&bob, &["claim", "one", "--wait", "60s"]).refused(1);
    assert!(said.err.contains("bob waits for alice waits for bob"), "{said:?}");
    waiting.kill().unwrap();
    waiting.wait().unwrap();
}

#[test]
fn a_killed_waiter_holds_nobody_up() {
    let scratch = Scratch::workspace();
    let (holder, killed, next) =
        (scratch.session("holder"), scratch.session("killed"), scratch.session("next"));
    scratch.acts(&holder, &["claim", "x"]).ok();
    let mut waiting = scratch.begins(&killed, &["claim", "x", "--wait", "1h"]);
    scratch.until_waiting(1);
    waiting.kill().unwrap();
    waiting.wait().unwrap();
    scratch.acts(&holder, &["release", "x"]).ok();
    scratch.acts(&next, &["claim", "x"]).ok();
}

/// Seen from another machine a process that is gone looks like one that waits.
#[test]
fn a_waiter_that_is_told_to_end_leaves_the_queue_first() {
    use std::os::unix::process::ExitStatusExt as _;
    Scratch::on_each_store("", |scratch| {
        let (holder, second) = (scratch.session("holder"), scratch.session("second"));
        scratch.acts(&holder, &["claim", "x"]).ok();
        // Started in the background, tests ignore the keys, and so does whoever they start.
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        let heard = |number: i32| ignored.unwrap_or(0) & (1 << (number - 1)) == 0;
        let signals = [("INT", 2), ("TERM", 15), ("HUP", 1)];
        for (name, number) in signals.into_iter().filter(|(_, number)| heard(*number)) {
            let mut waiting = scratch.begins(&second, &["claim", "x", "--wait", "2h"]);
            scratch.until_status_shows_waiting(1);
            let pid = waiting.id().to_string();
            let kill = Command::new("kill").args(["-s", name, &pid]).status();
            assert!(kill.unwrap().success());
            assert_eq!(waiting.wait().unwrap().signal(), Some(number), "{name}");
            let journal = scratch.baton(&["journal", "--json"]).ok().out;
            let (queued, ended) = (journal.matches("wait_queued"), journal.matches("wait_ended"));
            assert_eq!(queued.count(), ended.count(), "{name}: {journal}");
        }
    });
}

#[test]
fn what_only_has_a_queue_is_not_called_free_of_everybody() {
    let scratch = Scratch::workspace();
    let (holder, second, third) =
        (scratch.session("holder"), scratch.session("second"), scratch.session("third"));
    scratch.acts(&holder, &["claim", "x", "y"]).ok();
    let mut waiting = scratch.begins(&second, &["claim", "x", "y", "--wait", "2h"]);
    scratch.until_waiting(1);
    scratch.acts(&holder, &["release", "x"]).ok();
    let said = scratch.acts(&third, &["ask", "x", "--why", "soon"]).refused(1);
    assert!(said.err.contains("x has second first in the queue"), "{said:?}");
    assert!(said.err.contains("next: baton claim x --wait 10m"), "{said:?}");
    let said = scratch.acts(&third, &["claim", "y", "--shared"]).refused(1);
    assert!(said.err.contains("next: baton claim y --wait 10m --shared"), "{said:?}");
    waiting.kill().unwrap();
    waiting.wait().unwrap();
    scratch.until_status_shows_waiting(0);
}

#[test]
fn trees_of_one_repository_share_claims() {
    let scratch = Scratch::workspace();
    scratch.git(&["worktree", "add", "-q", "../linked", "-b", "side"]);
    let linked = scratch.path("linked");
    let alice = scratch.session("alice");
    let bob = {
        let mut command = scratch.command(&["session", "start", "--json"]);
        let said: Said = command.current_dir(&linked).output().unwrap().into();
        said.ok().json()["credential"].as_str().unwrap().to_owned()
    };
    let there = |words: &[&str]| -> Said {
        let mut command = scratch.command(words);
        command.current_dir(&linked).env("BATON_SESSION", &bob);
        command.output().unwrap().into()
    };
    scratch.acts(&alice, &["claim", "src/a.rs"]).ok();
    there(&["claim", "src/a.rs"]).refused(1);
    // As hooks take it: each tree its own, and the others are warned.
    scratch.acts(&alice, &["claim", "--tree", "README.md"]).ok();
    let warned = there(&["claim", "--tree", "README.md"]).ok();
    assert!(warned.out.contains("in another tree"), "{warned:?}");
}

#[test]
fn a_stopped_process_in_the_gate_is_named() {
    let scratch = Scratch::workspace();
    let alice = scratch.session("alice");
    let gate = scratch.store().join("gate");
    // Without a fork, or the sleeper would outlive the test and hold its output open.
    let mut holder = Command::new("flock")
        .arg("-F")
        .arg(&gate)
        .args(["sh", "-c", "echo held; exec sleep 600"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(
        &mut std::io::BufReader::new(holder.stdout.take().unwrap()),
        &mut line,
    )
    .unwrap();
    let begun = Instant::now();
    scratch.acts(&alice, &["claim", "x"]).refused(4);
    assert!(begun.elapsed() < Duration::from_secs(20));
    holder.kill().unwrap();
    holder.wait().unwrap();
}

/// A `git` that notes each start before it does what git does.
fn noting_git(scratch: &Scratch) -> std::path::PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let folder = scratch.path("noting");
    std::fs::create_dir_all(&folder).unwrap();
    let real = std::env::split_paths(&std::env::var_os("PATH").unwrap())
        .map(|folder| folder.join("git"))
        .find(|program| program.is_file())
        .unwrap();
    let notes = scratch.path("starts");
    let script = format!(
        "#!/bin/sh\necho start >> '{}'\nexec '{}' \"$@\"\n",
        notes.display(),
        real.display()
    );
    std::fs::write(folder.join("git"), script).unwrap();
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(folder.join("git"), executable).unwrap();
    folder
}

#[test]
fn letting_go_of_changes_saves_them_and_starts_git_twice() {
    let scratch = Scratch::workspace();
    let (alice, bob) = (scratch.session("alice"), scratch.session("bob"));
    scratch.acts(&alice, &["claim", "src/a.rs", "README.md"]).ok();
    scratch.acts(&alice, &["claim", "new.txt"]).ok();
    scratch.write("src/a.rs", "staged\n");
    scratch.git(&["add", "src/a.rs"]);
    for file in ["src/a.rs", "README.md", "new.txt"] {
        scratch.write(file, "unfinished\n");
    }
    let path = format!("{}:{}", noting_git(&scratch).display(), std::env::var("PATH").unwrap());
    let release = |what: &str| {
        std::fs::write(scratch.path("starts"), "").unwrap();
        let mut command = scratch.command(&["release", what]);
        command.env("BATON_SESSION", &alice).env("PATH", &path);
        Said::from(command.output().unwrap()).ok();
        std::fs::read_to_string(scratch.path("starts")).unwrap().lines().count()
    };
    assert_eq!(release("src/"), 2);
    // The rest of the same claim, to be saved under the same name: it keeps what is there.
    release("README.md");
    assert_eq!(release("new.txt"), 2);
    for (file, names) in [("src/a.rs", 1), ("README.md", 1), ("new.txt", 1)] {
        let told = scratch.acts(&bob, &["claim", file, "--json"]).ok().json();
        let left = told["left_behind"].as_array().unwrap();
        assert_eq!((left.len(), &left[0]["name"]), (names, &"alice".into()), "{told}");
        let saved = left[0]["rescue"].as_str().unwrap();
        assert_eq!(scratch.git(&["show", &format!("{saved}:{file}")]), "unfinished\n");
    }
    let staged = scratch.git(&["log", "--all", "--format=%s", "--", "src/a.rs"]);
    assert!(staged.contains("What was staged"), "{staged}");
}

/// Who is not there any more is not spoken of as if it were.
#[test]
fn lists_tell_who_is_gone_and_who_has_ended() {
    Scratch::on_each_store("", |scratch| {
        let (ann, mut process) = scratch.session_with_process("ann");
        let (bob, cat) = (scratch.session("bob"), scratch.session("cat"));
        scratch.acts(&ann, &["claim", "src/a.rs"]).ok();
        scratch.acts(&bob, &["claim", "src/b.rs"]).ok();
        scratch.acts(&bob, &["session", "end", "--grace", "10m"]).ok();
        process.end();
        let claims = scratch.baton(&["claims"]).ok().out;
        assert!(claims.contains("gone: free to take"), "{claims}");
        assert!(claims.contains("; its session has ended"), "{claims}");
        let why = |path: &str| scratch.baton(&["why", path]).ok().out;
        assert!(why("src/a.rs").contains("ann is gone; it is free"), "{}", why("src/a.rs"));
        assert!(why("src/b.rs").contains("kept for bob, whose session has ended, until"));
        let primer = scratch.acts(&cat, &["prime"]).ok().out;
        assert!(
            primer.contains("bob (ended, but its claims wait for it) has src/b.rs")
                && !primer.contains("src/a.rs"),
            "{primer}"
        );
        let asked = |path: &str| scratch.acts(&cat, &["ask", path, "--why", "mine next"]).ok().out;
        assert_eq!(asked("src/a.rs"), "ann is gone\nnext: baton claim src/a.rs\n");
        let told = "asked bob, whose session has ended: it will be told if it comes back";
        assert_eq!(asked("src/b.rs"), format!("{told}\nnext: baton claim src/b.rs --wait 10m\n"));
        scratch.acts(&cat, &["claim", "src/a.rs"]).ok();
    });
}

#[test]
fn who_lets_go_of_what_another_holds_is_told_whose_it_is() {
    let scratch = Scratch::workspace();
    let (ann, bob) = (scratch.session("ann"), scratch.session("bob"));
    scratch.acts(&ann, &["claim", "src/a.rs"]).ok();
    for verb in ["release", "renew"] {
        let said = scratch.acts(&bob, &[verb, "src/a.rs"]).refused(1);
        assert!(said.err.contains("src/a.rs is held by ann, not by you"), "{said:?}");
    }
    let said = scratch.acts(&bob, &["release", "src/b.rs"]).refused(1);
    assert!(said.err.contains("src/b.rs is not held"), "{said:?}");
}
