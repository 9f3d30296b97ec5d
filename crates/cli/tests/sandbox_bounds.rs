//! What a call from inside a sandbox acts in: its own tree and store, whatever it says.
//!
//! Whoever is inside can make a repository, a workspace and a person's word of its own in its
//! folders. None of that counts outside.

use serde_json::json;

use crate::gates::as_person;
use crate::mcp::Client;
use crate::sandbox_calls::Room;

/// A workspace of the caller's own making, without the broker's help.
const OWN: &str = "export EVIL=$TMPDIR/evil; git init -q $EVIL && \
    (cd $EVIL && git config user.name e && git config user.email e@example.invalid && \
     env -u BATON_BROKER -u BATON_BROKER_LINE -u BATON_SESSION HOME=$TMPDIR \
     baton init --yes --agents none > /dev/null) && ls $EVIL/.git/baton/store.db && ";

#[test]
fn a_workspace_of_ones_own_making_is_not_acted_in() {
    let Some(room) = Room::new() else { return };
    for role in ["review", "code"] {
        for act in ["status", "gate check", "task list", "claim x", "prime", "journal"] {
            let said = room.sandbox(&[role], &format!("{OWN} baton -C $EVIL {act}"));
            assert_ne!(said.code, 0, "{role} {act}: {said:?}");
            assert!(said.out.contains("store.db"), "it was made: {said:?}");
            assert!(said.err.contains("not the tree of this sandbox"), "{role} {act}: {said:?}");
        }
    }
}

#[test]
fn no_other_tree_is_committed_in() {
    let Some(room) = Room::new() else { return };
    room.scratch.write("src/a.rs", "a person's\n");
    let before = room.scratch.git(&["rev-parse", "HEAD"]);
    let said = room.sandbox(
        &["code"],
        "baton -C $REPO claim src/a.rs; baton -C $REPO commit src/a.rs -m mine",
    );
    assert_eq!(said.err.matches("not the tree of this sandbox").count(), 2, "{said:?}");
    let mut client = Client::of(&mut room.command(&["sandbox", "code", "--", "baton", "mcp"]));
    client.initialize("2025-06-18");
    let root = room.scratch.root();
    let asked = json!({ "dir": root, "paths": ["src/a.rs"], "message": "mine", "land": false });
    let (code, text) = client.refused("commit_and_land", &asked);
    assert_eq!(code, "elsewhere", "{text}");
    assert_eq!(room.scratch.git(&["rev-parse", "HEAD"]), before);
}

#[test]
fn doctor_tries_no_hooks_for_those_inside() {
    let Some(room) = Room::new() else { return };
    let said = room.sandbox(&["review"], "baton doctor");
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains("it is not done inside the sandbox"), "{said:?}");
}

#[test]
fn the_command_of_a_gate_is_held_as_whoever_looks() {
    let Some(room) = Room::new() else { return };
    let ann = room.scratch.session("ann");
    let ready = "echo x > \"$REPO/pwned\"; echo looked >> tests/looked; exit 1\n";
    std::fs::create_dir_all(room.tree.join("tests")).unwrap();
    std::fs::write(room.tree.join("tests/ready.sh"), ready).unwrap();
    room.scratch.acts(&ann, &["task", "add", "one"]).ok();
    let words = ["gate", "add", "--on", "t1", "--kind", "command", "--ask", "?", "--"];
    let words = [&words[..], &["sh", "tests/ready.sh"]].concat();
    room.scratch.acts(&ann, &words).ok();
    let person = room.scratch.path("home/person");
    as_person(&room.scratch, person.to_str().unwrap(), &["gate", "trust", "g1"]).ok();
    let seen = || room.tree.join("tests/looked").exists();
    // Nothing is looked at in passing.
    let said = room.sandbox(&["test"], "baton task show t1; baton task take; baton status");
    assert!(!seen(), "{said:?}");
    let said = room.sandbox(&["test"], "baton gate check g1");
    assert!(seen(), "{said:?}");
    assert!(!room.scratch.root().join("pwned").exists(), "{said:?}");
}

#[test]
fn no_tree_is_removed_from_inside() {
    let Some(room) = Room::new() else { return };
    let mia = room.scratch.session("noa");
    let made = room.scratch.acts(&mia, &["worktree", "new", "spare", "--json"]).ok().json();
    let spare = made["path"].as_str().unwrap();
    room.scratch.acts(&mia, &["release", "--all"]).ok();
    let payload = json!({ "session_id": "z", "hook_event_name": "WorktreeRemove",
        "cwd": room.tree, "worktree_path": spare });
    let said = room.sandbox(&["review"], &format!("echo '{payload}' | baton hook claude"));
    assert!(std::path::Path::new(spare).is_dir(), "{said:?}");
}
