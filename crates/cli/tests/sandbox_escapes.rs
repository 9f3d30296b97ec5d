//! Ways out of a sandbox that somebody found, each tried again.
//!
//! A tree's own git folder and the objects are open inside, so nothing that lies there is believed
//! outside, and nothing is put back there by way of a link.

use std::fs;
use std::path::Path;

use crate::harness::Said;
use crate::sandbox_calls::Room;

/// Writes a commit of the caller's own, upon HEAD, and says what it is: `$C`.
const FORGED: &str = "G=$(git rev-parse --git-dir); export GIT_INDEX_FILE=$TMPDIR/i; \
    git read-tree HEAD; B=$(echo evil | git hash-object -w --stdin); \
    git update-index --add --cacheinfo 100644,$B,src/evil.rs; \
    C=$(echo evil | git commit-tree $(git write-tree) -p HEAD); unset GIT_INDEX_FILE; ";

#[test]
fn a_forged_intent_moves_no_branch() {
    let Some(room) = Room::new() else { return };
    let before = room.scratch.git(&["rev-parse", "main"]);
    let said = room.sandbox(
        &["code"],
        &format!(
            "{FORGED} for at in $G/baton-commit.json $G/commits/main.json; do mkdir -p \
             $G/commits; printf '{{\"version\":1,\"step\":null,\"folder\":%s,\"pull\":\
             {{\"branch\":\"refs/heads/main\",\"before\":\"%s\",\"after\":\"%s\"}}}}' \
             $(stat -c %i $G) $(git rev-parse main) $C > $at; done; echo q >> src/q.rs; \
             baton claim src/q.rs && baton commit src/q.rs -m q"
        ),
    );
    assert_eq!(said.code, 0, "{said:?}");
    assert!(!said.err.contains("put in order"), "{said:?}");
    assert_eq!(room.scratch.git(&["rev-parse", "main"]), before);
}

#[test]
fn nothing_is_put_back_by_way_of_a_link() {
    let Some(room) = Room::new() else { return };
    let elsewhere = room.scratch.path("elsewhere");
    fs::create_dir_all(&elsewhere).unwrap();
    fs::write(elsewhere.join("alternates"), "theirs\n").unwrap();
    let objects = room.scratch.root().join(".git/objects");
    let said = room.sandbox(
        &["docs"],
        &format!("O={}; mv $O/info $O/i; ln -s {} $O/info", objects.display(), elsewhere.display()),
    );
    assert!(said.err.contains("which is put back"), "{said:?}");
    assert_eq!(fs::read_to_string(elsewhere.join("alternates")).unwrap(), "theirs\n");
    assert!(!fs::symlink_metadata(objects.join("info")).unwrap().is_symlink());
}

#[test]
fn variables_that_were_put_into_a_trees_file_reach_no_client() {
    let Some(room) = Room::new() else { return };
    let said = room.sandbox(
        &["code"],
        "printf \"export BASH_ENV='/x'\\nexport BATON_SESSION='fake'\\n\" >> \
         $(git rev-parse --git-dir)/baton.env",
    );
    assert!(said.err.contains("baton.env, which is put back"), "{said:?}");
    let admin = fs::read_dir(room.scratch.root().join(".git/worktrees")).unwrap();
    for tree in admin.flatten() {
        let file = tree.path().join("baton.env");
        fs::write(&file, "export BASH_ENV='/x'\nexport BATON_SESSION='fake'\n").unwrap();
    }
    crate::start::client(&room.scratch, "aider", "env");
    let mut command = crate::start::command(&room.scratch, &["start", "aider", "--tree", "here"]);
    let said: Said = command.current_dir(&room.tree).output().unwrap().into();
    assert!(said.out.contains("BATON_TREE="), "{said:?}");
    assert!(!said.out.contains("BASH_ENV") && !said.out.contains("=fake"), "{said:?}");
}

#[test]
fn what_it_left_running_ends_before_the_last_look() {
    let Some(room) = Room::new() else { return };
    let left = room.tree.join("src/left");
    let said = room.sandbox(
        &["code"],
        "G=$(git rev-parse --git-dir); setsid sh -c \"trap '' TERM; echo \\$\\$ > src/left; \
         while :; do git config --file $G/config.worktree core.fsmonitor /x; done\" \
         >/dev/null 2>&1 </dev/null & while ! [ -s src/left ]; do :; done",
    );
    assert_eq!(said.code, 0, "{said:?}");
    let pid = fs::read_to_string(&left).unwrap();
    assert!(!Path::new("/proc").join(pid.trim()).exists(), "it goes on: {pid}");
    let settings = room.scratch.git(&["-C", room.tree.to_str().unwrap(), "config", "--list"]);
    assert!(!settings.contains("core.fsmonitor=/x"), "{settings}");
}

/// Gives a tree now the one settings and now the other, until it is ended.
const FLIP: &str = "import os, sys, time
while True:
    for name in (\"evil\", \"clean\"):
        text = open(sys.argv[2] + \"/\" + name).read()
        with open(sys.argv[1] + \"/draft\", \"w\") as draft: draft.write(text)
        os.rename(sys.argv[1] + \"/draft\", sys.argv[1] + \"/config.worktree\")
        time.sleep(0.003)
";

/// The settings change while Baton's own git is at work: what they name runs inside, or not at all.
#[test]
fn a_filter_that_comes_and_goes_runs_nothing_outside() {
    let Some(room) = Room::new() else { return };
    let out = room.scratch.path("ran");
    let said = room.sandbox(
        &["code"],
        &format!(
            "echo k > src/k.rs; baton claim src/k.rs && baton commit src/k.rs -m k; \
             G=$(git rev-parse --git-dir); cp $G/config.worktree $TMPDIR/clean; \
             printf '#!/bin/sh\\necho > {0}\\necho x >> $TMPDIR/ran\\ncat\\n' > src/e.sh; \
             chmod +x src/e.sh; echo '* filter=evil' > src/.gitattributes; \
             cp $TMPDIR/clean $TMPDIR/evil; \
             git config -f $TMPDIR/evil filter.evil.clean $PWD/src/e.sh; \
             python3 -c '{FLIP}' $G $TMPDIR & F=$!; for i in $(seq 60); do \
             touch src/a.rs src/k.rs; baton worktree list > /dev/null 2>&1; \
             [ -e {0} ] && break; done; kill $F",
            out.display()
        ),
    );
    assert!(!out.exists(), "{said:?}");
}

#[test]
fn only_the_branch_it_began_on_is_moved() {
    let Some(room) = Room::new() else { return };
    room.scratch.git(&["branch", "release"]);
    let before = room.scratch.git(&["rev-parse", "release"]);
    let said = room.sandbox(
        &["code"],
        "echo x > src/x.rs; baton claim src/x.rs; \
         echo 'ref: refs/heads/release' > $(git rev-parse --git-dir)/HEAD; \
         baton commit src/x.rs -m e",
    );
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains("and the tree is on release now"), "{said:?}");
    assert!(said.err.contains("next: git switch "), "{said:?}");
    assert_eq!(room.scratch.git(&["rev-parse", "release"]), before);
}

#[test]
fn the_secret_stays_outside() {
    let Some(room) = Room::new() else { return };
    let said = room.sandbox(
        &["verify"],
        "baton task add x; baton task take t1; baton task check t1 -- printenv BATON_SESSION; \
         printenv BATON_SESSION",
    );
    let shown: Vec<&str> = said.out.lines().filter(|line| line.starts_with('s')).collect();
    assert!(shown.iter().any(|line| line.len() > 8 && !line.contains(' ')), "{said:?}");
    assert!(!said.out.contains('.') || !shown.iter().any(|line| line.contains('.')), "{said:?}");
}

#[test]
fn the_role_counts_also_where_its_session_has_none() {
    let Some(room) = Room::new() else { return };
    let ann = room.scratch.session("ann");
    let test = room.tree.join("tests/t.rs");
    fs::create_dir_all(room.tree.join("tests")).unwrap();
    fs::write(&test, "one\n").unwrap();
    let words = ["sandbox", "code", "--", "sh", "-c"];
    let act = "baton claim tests/t.rs; baton commit tests/t.rs -m t";
    let mut command = room.command(&[&words[..], &[act]].concat());
    command.env("BATON_SESSION", &ann);
    let said = command.output().unwrap();
    let err = String::from_utf8_lossy(&said.stderr);
    assert!(!said.status.success(), "{err}");
    assert!(err.contains("your role is code"), "{err}");
}
