//! Whatever is typed and whatever the store looks like: one line, a `next:`, the right exit code.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::harness::{Said, Scratch};
use crate::hooks::{Agent, denied};

#[test]
fn a_folder_that_is_not_there_is_asked_for_by_the_option_that_named_it() {
    let scratch = Scratch::workspace();
    for (option, words) in [
        ("--dir", &["sandbox", "review", "--dir", "/nonexist", "--", "true"][..]),
        ("-C", &["-C", "/nonexist", "sandbox", "review", "--", "true"]),
    ] {
        let said = scratch.baton(words).refused(2);
        let next = format!("next: give an existing folder to {option}\n");
        assert!(said.err.contains("/nonexist is not a folder"), "{said:?}");
        assert!(said.err.ends_with(&next), "{said:?}");
    }
}

#[test]
fn an_edit_whose_path_is_no_text_is_denied_for_its_path() {
    let scratch = Scratch::workspace();
    let agent = Agent { scratch: &scratch, client: "claude", id: "ann" };
    for tool in ["Write", "Edit", "NotebookEdit"] {
        let input = json!({ "file_path": 5, "content": "x" });
        let why = denied(&agent.tool("before", tool, &input)).expect(tool);
        assert!(why.contains("the path of this edit is not a text"), "{tool}: {why}");
        assert!(!why.contains("patch"), "{tool}: {why}");
    }
}

#[test]
fn words_that_cannot_be_claimed() {
    let scratch = Scratch::workspace();
    let alice = scratch.session("alice");
    let many: Vec<String> = (0..10_000).map(|number| format!("f{number}")).collect();
    let many: Vec<&str> = ["claim"].into_iter().chain(many.iter().map(String::as_str)).collect();
    scratch.acts(&alice, &many).refused(2);
    let long = "x".repeat(100_000);
    for (code, words) in [
        (2, &["claim"][..]),
        (2, &["claim", ""]),
        (1, &["claim", "../outside"]),
        (1, &["claim", "/etc/passwd"]),
        (1, &["claim", ".git/config"]),
        (1, &["claim", ".GIT/hooks"]),
        (2, &["claim", "src/[a"]),
        (2, &["claim", "{a"]),
        (2, &["claim", "a\\b"]),
        (2, &["claim", "@"]),
        (2, &["claim", "@a b"]),
        (2, &["claim", "@gpu=0"]),
        (2, &["claim", "x", "--ttl", "soon"]),
        (2, &["claim", "x", "--ttl", "0s"]),
        (2, &["claim", "x", "--ttl", "99d"]),
        (2, &["claim", "x", "--wait", "-1s"]),
        (2, &["claim", "x", "--priority", "77"]),
        (2, &["claim", "x", "--reason", &long]),
        (2, &["claim", "x", "--op-id", ""]),
        (2, &["claim", "x", "--bogus"]),
        (2, &["release"]),
        (1, &["release", "x"]),
        (1, &["renew"]),
        (1, &["ask", "x", "--why", "please"]),
        (2, &["ask", "x"]),
        (2, &["check"]),
        (2, &["check", "x", "--token", "seven"]),
        (3, &["check", "x", "--token", "1.7"]),
        (2, &["nonsense"]),
        (2, &[]),
    ] {
        let said = scratch.acts(&alice, words);
        assert_eq!(said.code, code, "{words:?}: {said:?}");
        said.refused(code);
    }
    let listed = scratch.baton(&["claims", "--json"]).ok().json();
    assert_eq!(listed["claims"].as_array().unwrap().len(), 0, "something was half done");
}

#[test]
fn a_path_that_is_not_utf8() {
    let scratch = Scratch::workspace();
    let alice = scratch.session("alice");
    let mut command = scratch.command(&["claim"]);
    command.arg(std::ffi::OsStr::from_bytes(b"a\xff")).env("BATON_SESSION", &alice);
    let said: Said = command.output().unwrap().into();
    said.refused(2);
}

#[test]
fn a_megabyte_of_reason() {
    // One argument cannot be that long on Linux; the longest that can is refused in words.
    let scratch = Scratch::workspace();
    let alice = scratch.session("alice");
    let reason = "r".repeat(130_000);
    scratch.acts(&alice, &["claim", "x", "--reason", &reason]).refused(2);
}

#[test]
fn no_session_and_no_workspace() {
    let scratch = Scratch::workspace();
    let said = scratch.baton(&["claim", "x"]).refused(1);
    assert!(said.err.contains("baton session start"), "{said:?}");
    let outside = Scratch::repository();
    let said = outside.baton(&["claims"]).refused(4);
    assert!(said.err.contains("next: baton init"), "{said:?}");
    outside.baton(&["-C", "nowhere", "claims"]).refused(2);
}

/// Each spoils the store of a workspace that has one acknowledged claim.
fn spoiled(spoil: impl FnOnce(&Scratch)) -> (Scratch, String) {
    let scratch = Scratch::workspace();
    let alice = scratch.session("alice");
    scratch.acts(&alice, &["claim", "kept"]).ok();
    spoil(&scratch);
    (scratch, alice)
}

fn without_the_log(scratch: &Scratch) {
    for name in ["store.db-wal", "store.db-shm"] {
        let _ = std::fs::remove_file(scratch.store().join(name));
    }
}

#[test]
fn lesson_13_a_store_that_cannot_answer_never_says_free() {
    let database = |scratch: &Scratch| scratch.store().join("store.db");
    let folder = spoiled(|scratch| {
        without_the_log(scratch);
        std::fs::remove_file(database(scratch)).unwrap();
        std::fs::create_dir(database(scratch)).unwrap();
    });
    let garbage = spoiled(|scratch| {
        without_the_log(scratch);
        std::fs::write(database(scratch), vec![b'x'; 100_000]).unwrap();
    });
    let missing = spoiled(|scratch| {
        without_the_log(scratch);
        std::fs::remove_file(database(scratch)).unwrap();
    });
    let newer = spoiled(|scratch| {
        let connection = rusqlite::Connection::open(database(scratch)).unwrap();
        connection.execute_batch("PRAGMA user_version = 99").unwrap();
    });
    for (name, (scratch, alice)) in
        [("folder", folder), ("garbage", garbage), ("missing", missing), ("newer", newer)]
    {
        for words in [&["check", "kept"][..], &["claim", "x"], &["claims"]] {
            let said = scratch.acts(&alice, words);
            assert_eq!(said.code, 4, "{name} {words:?}: {said:?}");
            said.refused(4);
        }
    }
}

#[test]
fn a_network_filesystem_is_refused_with_the_way_out() {
    let (scratch, alice) = spoiled(|_| {});
    let mut command = scratch.command(&["claim", "x"]);
    command.env("BATON_SESSION", &alice).env("BATON_TEST_FILESYSTEM", "nfs");
    let said = Said::from(command.output().unwrap()).refused(4);
    assert!(said.err.contains("PostgreSQL"), "{said:?}");
}

#[test]
fn a_store_that_only_others_may_write() {
    let (scratch, alice) = spoiled(|scratch| {
        let mode = std::fs::Permissions::from_mode(0o500);
        std::fs::set_permissions(scratch.store(), mode).unwrap();
    });
    // The superuser writes anyway; for everyone else it is one line.
    if !rustix::process::geteuid().is_root() {
        scratch.acts(&alice, &["claim", "x"]).refused(4);
    }
    let mode = std::fs::Permissions::from_mode(0o700);
    std::fs::set_permissions(scratch.store(), mode).unwrap();
}

#[test]
fn lesson_15_no_message_suggests_anything_that_destroys() {
    for file in ["src/words.rs", "src/words/tasks.rs", "src/commands/task.rs"] {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
        let words = std::fs::read_to_string(path).unwrap();
        for danger in ["--force", "rm -", "reset --hard", "--no-verify", "delete "] {
            assert!(!words.contains(danger), "{file} suggests {danger}");
        }
    }
}

#[test]
fn another_programs_lock_is_named_and_nothing_is_misread() {
    let scratch = Scratch::workspace();
    let alice = scratch.session("alice");
    let shell = rusqlite::Connection::open(scratch.store().join("store.db")).unwrap();
    shell.execute_batch("BEGIN IMMEDIATE").unwrap();
    // Who only reads is not kept from it.
    scratch.acts(&alice, &["check", "src/a.rs"]).ok();
    let begun = std::time::Instant::now();
    let said = scratch.acts(&alice, &["claim", "src/a.rs"]).refused(4);
    let waited = begun.elapsed().as_millis();
    let pid = std::process::id().to_string();
    assert!(said.err.contains("another program") && said.err.contains(&pid), "{said:?}");
    let told = said.err.split(" ms").next().and_then(|text| text.rsplit(' ').next());
    let told: u128 = told.unwrap().parse().unwrap();
    assert!((5_000..=waited).contains(&told), "told {told} of {waited} ms: {said:?}");
    shell.execute_batch("ROLLBACK").unwrap();
    scratch.acts(&alice, &["claim", "src/a.rs"]).ok();
}

#[test]
fn a_reader_that_is_kept_out_says_how_long_and_by_whom() {
    let scratch = Scratch::workspace();
    let alice = scratch.session("alice");
    // As a process would that was stopped while it rebuilt the index of the log.
    let index = scratch.store().join("store.db-shm");
    let index = std::fs::File::options().read(true).write(true).open(index).unwrap();
    rustix::fs::fcntl_lock(&index, rustix::fs::FlockOperation::NonBlockingLockExclusive).unwrap();
    let said = scratch.acts(&alice, &["check", "src/a.rs", "--json"]);
    assert_eq!(said.code, 4, "{said:?}");
    let failed = &said.json()["failed"];
    assert_eq!(failed["code"], "locked", "{said:?}");
    let message = failed["message"].as_str().unwrap();
    assert!(message.contains(&std::process::id().to_string()), "{message}");
    assert!(!message.contains(" 0 ms"), "{message}");
    drop(index);
    scratch.acts(&alice, &["check", "src/a.rs"]).ok();
}
