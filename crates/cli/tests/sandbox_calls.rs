//! Calls of Baton from inside a sandbox: by which way they come, and what they run there.
//!
//! Whatever a call runs of the caller's or the tree's is held as the sandbox's own command is;
//! checks of a landing are the person's who trusted them, and run as they always do.

use std::path::PathBuf;
use std::process::Command;

use crate::harness::{Said, Scratch};
use crate::landing;

/// A workspace with a check that passes, and a tree beside it.
pub(crate) struct Room {
    pub(crate) scratch: Scratch,
    pub(crate) tree: PathBuf,
}

impl Room {
    pub(crate) fn new() -> Option<Self> {
        let scratch = landing::workspace(landing::CHECKED);
        let said = scratch.baton(&["sandbox", "verify", "--", "true"]);
        if said.err.contains("Landlock") {
            eprintln!("skipped: {}", said.err);
            return None;
        }
        let mia = scratch.session("mia");
        let made = scratch.acts(&mia, &["worktree", "new", "one", "--json"]).ok().json();
        let tree = PathBuf::from(made["path"].as_str().unwrap());
        Some(Self { scratch, tree })
    }

    pub(crate) fn sandbox(&self, options: &[&str], script: &str) -> Said {
        let words = [&["sandbox"], options, &["--", "bash", "-c", script]].concat();
        self.command(&words).output().unwrap().into()
    }

    /// The command in the tree, with `baton` on its path.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = self.scratch.command(words);
        let folder = std::path::Path::new(env!("CARGO_BIN_EXE_baton")).parent().unwrap();
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", folder.display()));
        command.env("REPO", self.scratch.root()).current_dir(&self.tree);
        command
    }

    pub(crate) fn read(&self, file: &str) -> String {
        std::fs::read_to_string(self.scratch.root().join(file)).unwrap_or_default()
    }
}

#[test]
fn a_check_is_held_as_its_caller_is() {
    let Some(room) = Room::new() else { return };
    let begin = "baton task add one > /dev/null; baton task take t1 > /dev/null; \
                 baton task check t1 -- ";
    let said = room.sandbox(&["review"], &format!("{begin} sh -c 'touch $TMPDIR/x && ls src'"));
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.out.contains("a.rs") || said.err.contains("a.rs"), "it ran: {said:?}");
    let acts = ["src/a.rs", "$REPO/.git/config", "$REPO/src/a.rs", "$REPO/.git/baton/x"];
    let check = |file| format!("baton task check t1 -- sh -c 'echo x > {file}'; echo code $?; ");
    let script = format!("{begin} true; {}", acts.map(check).concat());
    let said = room.sandbox(&["review"], &script);
    assert_eq!(said.out.matches("code 1\n").count(), acts.len(), "{said:?}");
    assert_eq!(said.err.matches("Permission denied").count(), acts.len(), "{said:?}");
    assert_eq!(std::fs::read_to_string(room.tree.join("src/a.rs")).unwrap(), "fn a() {}\n");
    assert_eq!(room.read("src/a.rs"), "fn a() {}\n");
    let network = "import socket; socket.create_connection((\"127.0.0.1\", 9))";
    let script = format!("{begin} python3 -c '{network}'");
    let said = room.sandbox(&["review", "--net", "none"], &script);
    assert!(said.err.contains("unreachable") || said.out.contains("unreachable"), "{said:?}");
}

#[test]
fn hooks_of_a_commit_are_held_as_the_sandbox_is() {
    let Some(room) = Room::new() else { return };
    room.scratch.git(&["config", "core.hooksPath", ".husky"]);
    let script = r#"
        mkdir -p .husky src
        printf '#!/bin/sh\ntouch "$TMPDIR/x" || exit 3\ngit config -f "$REPO/.git/config" a.b c\n' \
            > .husky/pre-commit
        echo 'echo x > "$REPO/.git/baton/x"; echo x >> "$REPO/a"; exit 0' >> .husky/pre-commit
        chmod +x .husky/pre-commit
        echo more > src/b.rs
        baton claim src/b.rs .husky/pre-commit && baton commit src/b.rs .husky/pre-commit -m more
    "#;
    let said = room.sandbox(&["code"], script);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.out.contains("committed"), "{said:?}");
    assert!(!room.read(".git/config").contains("[a]"), "{}", room.read(".git/config"));
    assert!(!room.scratch.store().join("x").exists());
    assert_eq!(room.read("a"), "1\n2\n3\n4\n5\n");
}

#[test]
fn a_landing_from_inside_is_checked_as_any_other() {
    let Some(room) = Room::new() else { return };
    let script = "echo more > src/b.rs; baton claim src/b.rs && baton commit src/b.rs -m more && \
                  baton land";
    let said = room.sandbox(&["code"], script);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(room.scratch.git(&["ls-tree", "--name-only", "main", "src/"]).contains("b.rs"));
}

#[test]
fn a_call_comes_over_the_inherited_line_first_and_else_by_the_path() {
    let Some(room) = Room::new() else { return };
    let said = room.sandbox(&["review"], "unset BATON_BROKER; baton session whoami");
    assert_eq!(said.code, 0, "over the line alone: {said:?}");
    // Closed, or something else under its number: by the path.
    let closed = "fd=${BATON_BROKER_LINE%%:*}; eval \"exec $fd>&-\"; ";
    let other = "fd=${BATON_BROKER_LINE%%:*}; eval \"exec $fd< /dev/null\"; ";
    for way in [closed, other] {
        let said = room.sandbox(&["review"], &format!("{way} baton session whoami"));
        assert_eq!(said.code, 0, "{way}: {said:?}");
        let script = format!("{way} unset BATON_BROKER; baton session whoami");
        let said = room.sandbox(&["review"], &script);
        assert_eq!(said.code, 4, "{way}: {said:?}");
        assert!(said.err.contains("does not answer"), "{way}: {said:?}");
    }
    let many = "for i in $(seq 30); do (unset BATON_BROKER; baton session whoami) & done; wait";
    let said = room.sandbox(&["review"], many);
    assert_eq!(said.out.lines().filter(|line| line.contains("holds 0")).count(), 30, "{said:?}");
}

#[test]
fn nobody_is_served_without_the_line_or_the_secret() {
    let Some(room) = Room::new() else { return };
    let script = "unset BATON_BROKER_LINE; BATON_BROKER=${BATON_BROKER%:*}:00 baton claims";
    let said = room.sandbox(&["review"], script);
    assert_eq!(said.code, 4, "{said:?}");
    // A line of one's own does not begin without it either.
    let script = r#"python3 -c '
import os, socket, struct
path, secret = os.environ["BATON_BROKER"].rsplit(":", 1)
for said in (b"00", b"", secret[:-1].encode()):
    line = socket.socket(socket.AF_UNIX)
    line.connect(path)
    line.sendall(struct.pack(">I", len(said) + 1) + said + b"\0")
    assert line.recv(1) == b"", said
print("closed")
'"#;
    let said = room.sandbox(&["review"], script);
    assert_eq!((said.code, said.out.as_str()), (0, "closed\n"), "{said:?}");
}
