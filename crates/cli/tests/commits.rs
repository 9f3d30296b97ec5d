//! `baton commit`: exactly the named paths, whatever others do in the same tree.
//!
//! S18 and LESSONS 19, 34, 35 carry their numbers; git itself judges what became of the repository.

use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use crate::harness::{Said, Scratch};
use crate::landing;

/// A workspace whose repository knows who commits, with everything committed.
fn workspace() -> Scratch {
    let scratch = Scratch::workspace();
    settle(&scratch);
    scratch
}

fn settle(scratch: &Scratch) {
    scratch.git(&["config", "user.name", "Ann"]);
    scratch.git(&["config", "user.email", "ann@example.invalid"]);
    scratch.git(&["add", "-A"]);
    scratch.git(&["commit", "-qm", "setup"]);
}

fn hook(scratch: &Scratch, name: &str, script: &str) {
    let path = scratch.root().join(".git/hooks").join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn read(scratch: &Scratch, file: &str) -> String {
    std::fs::read_to_string(scratch.root().join(file)).unwrap()
}

fn at_head(scratch: &Scratch, file: &str) -> String {
    scratch.git(&["show", &format!("HEAD:{file}")])
}

#[track_caller]
fn refused_as(said: Said, code: &str) -> Said {
    let exit = said.code;
    let said = said.refused(exit);
    assert!(matches!(exit, 1 | 2), "{said:?}");
    assert_eq!(said.json()["refused"]["code"], code, "{said:?}");
    said
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn lesson_19_only_named_paths_are_committed() {
    Scratch::on_each_store("", |scratch| {
        settle(scratch);
        let alice = scratch.session("alice");
        scratch.write("src/a.rs", "fn a() { 1 }\n");
        scratch.write("README.md", "# Staged by another\n");
        scratch.git(&["add", "README.md"]);
        scratch.write("README.md", "# Staged by another, then edited\n");
        scratch.write("untracked.txt", "x\n");
        let before = scratch.git(&["status", "--porcelain", "--", "README.md", "untracked.txt"]);
        scratch.acts(&alice, &["task", "add", "one"]).ok();
        scratch.acts(&alice, &["task", "take", "t1"]).ok();
        let token = scratch.acts(&alice, &["claim", "src/a.rs", "--json"]).ok().json();
        let said = scratch.acts(&alice, &["commit", "-m", "change a", "--json"]).ok().json();
        assert_eq!(said["paths"], serde_json::json!(["src/a.rs"]));
        assert_eq!(said["held"], serde_json::json!(["src/a.rs"]));
        assert_eq!(scratch.git(&["show", "--name-only", "--format=", "HEAD"]), "src/a.rs\n");
        let after = scratch.git(&["status", "--porcelain", "--", "README.md", "untracked.txt"]);
        assert_eq!(before, after);
        assert_eq!(scratch.git(&["status", "--porcelain", "--", "src"]), "");
        let trailers = scratch.git(&["log", "-1", "--format=%(trailers:only,unfold)"]);
        let session = alice.split('.').next().unwrap();
        assert!(trailers.contains(&format!("Baton-Session: {session}\n")), "{trailers}");
        assert!(trailers.contains("Baton-Task: t1\n"), "{trailers}");
        let token = token["token"].as_str().unwrap();
        assert!(trailers.contains(&format!("Baton-Token: {token}\n")), "{trailers}");
        let journal = scratch.baton(&["journal", "--kind", "commit_made"]).ok().out;
        assert!(journal.contains("alice committed src/a.rs as "), "{journal}");
        scratch.baton(&["journal", "verify"]).ok();
    });
}

#[test]
fn lessons_34_and_35_the_next_plain_commit_undoes_nothing() {
    let scratch = workspace();
    let alice = scratch.session("alice");
    scratch.write("src/a.rs", "fn a() { 1 }\n");
    scratch.acts(&alice, &["commit", "-m", "one", "src/a.rs"]).ok();
    scratch.write("README.md", "# More\n");
    scratch.git(&["commit", "-qam", "plain"]);
    assert_eq!(at_head(&scratch, "src/a.rs"), "fn a() { 1 }\n");
    assert_eq!(scratch.git(&["show", "--name-only", "--format=", "HEAD"]), "README.md\n");
    // A removed file, a moved one and a folder where a file was.
    std::fs::remove_file(scratch.root().join("src/a.rs")).unwrap();
    scratch.write("src/a.rs/b.rs", "b\n");
    scratch.acts(&alice, &["commit", "-m", "two", "src"]).ok();
    assert_eq!(scratch.git(&["status", "--porcelain"]), "");
    assert_eq!(scratch.git(&["ls-files", "src"]), "src/a.rs/b.rs\n");
    scratch.git(&["fsck", "--strict"]);
}

#[test]
fn s18_lines_of_another_session_are_refused_unless_asked_for() {
    Scratch::on_each_store("", |scratch| {
        settle(scratch);
        let (alice, bob) = (scratch.session("alice"), scratch.session("bob"));
        scratch.acts(&alice, &["claim", "src/a.rs"]).ok();
        scratch.write("src/a.rs", "fn a() {}\nfn of_alice() {}\n");
        let words = ["commit", "-m", "x", "src/a.rs", "--json"];
        let said = refused_as(scratch.acts(&bob, &words), "foreign_lines");
        assert!(said.err.contains("src/a.rs is held by alice"), "{said:?}");
        // She lets go over uncommitted changes; he takes the file and adds to it.
        scratch.acts(&alice, &["release", "src/a.rs"]).ok();
        scratch.acts(&bob, &["claim", "src/a.rs"]).ok();
        scratch.write("src/a.rs", "fn a() {}\nfn of_alice() {}\nfn of_bob() {}\n");
        let said = refused_as(scratch.acts(&bob, &words), "foreign_lines");
        assert!(said.err.contains("line 2 of src/a.rs is alice's"), "{said:?}");
        assert_eq!(said.json()["refused"]["foreign"][0]["lines"][0]["from"], 2);
        assert_eq!(at_head(scratch, "src/a.rs"), "fn a() {}\n");
        // Without her lines it is his alone.
        scratch.write("src/a.rs", "fn a() {}\nfn of_bob() {}\n");
        scratch.acts(&bob, &words).ok();
        scratch.write("src/a.rs", "fn a() {}\nfn of_alice() {}\nfn of_bob() {}\n");
        let mut all = words.to_vec();
        all.push("--include-foreign");
        let said = scratch.acts(&bob, &all).ok().json();
        assert_eq!(said["foreign"][0]["name"], "alice");
        assert!(at_head(scratch, "src/a.rs").contains("of_alice"));
    });
}

#[test]
fn what_others_edit_and_stage_while_a_hook_runs_is_theirs_byte_for_byte() {
    let scratch = workspace();
    let alice = scratch.session("alice");
    hook(
        &scratch,
        "pre-commit",
        "touch \"$HOME/running\"; while [ ! -e \"$HOME/go\" ]; do sleep 0.02; done",
    );
    scratch.write("src/a.rs", "fn a() { 1 }\n");
    let commit = scratch.begins(&alice, &["commit", "-m", "slow", "src/a.rs", "--json"]);
    until("the hook does not run", || scratch.path("home/running").exists());
    scratch.write("README.md", "# Staged meanwhile\n");
    scratch.git(&["add", "README.md"]);
    scratch.write("README.md", "# Edited meanwhile\n");
    scratch.write("new.txt", "new\n");
    scratch.git(&["add", "new.txt"]);
    scratch.write("src/a.rs", "fn a() { 2 }\n");
    std::fs::write(scratch.path("home/go"), "").unwrap();
    let said = Said::from(commit.wait_with_output().unwrap()).ok().json();
    assert_eq!(said["paths"], serde_json::json!(["src/a.rs"]));
    assert_eq!(at_head(&scratch, "src/a.rs"), "fn a() { 1 }\n");
    assert_eq!(read(&scratch, "src/a.rs"), "fn a() { 2 }\n");
    assert_eq!(scratch.git(&["show", ":README.md"]), "# Staged meanwhile\n");
    assert_eq!(read(&scratch, "README.md"), "# Edited meanwhile\n");
    let status = scratch.git(&["status", "--porcelain"]);
    assert_eq!(status, "MM README.md\nA  new.txt\n M src/a.rs\n");
}

/// Runs its hook only when it is told to, through the framework that many repositories use.
const FRAMEWORK: &str = "repos:
- repo: local
  hooks:
  - id: slow
    name: slow
    entry: sh -c 'touch $HOME/running; while [ ! -e $HOME/go ]; do sleep 0.02; done'
    language: system
    pass_filenames: false
";

#[test]
fn lesson_35_the_real_pre_commit_framework_harms_nobody_who_edits_meanwhile() {
    if std::process::Command::new("pre-commit").arg("--version").output().is_err() {
        assert!(std::env::var_os("CI").is_none(), "pre-commit is missing");
        eprintln!("left out: pre-commit is not installed");
        return;
    }
    let scratch = workspace();
    scratch.write(".pre-commit-config.yaml", FRAMEWORK);
    scratch.git(&["add", "-A"]);
    scratch.git(&["commit", "-qm", "hooks"]);
    let mut install = std::process::Command::new("pre-commit");
    scratch.clean(&mut install);
    let installed = install.arg("install").current_dir(scratch.root()).output().unwrap();
    assert!(installed.status.success(), "{installed:?}");
    let alice = scratch.session("alice");
    scratch.write("src/a.rs", "fn a() { 1 }\n");
    scratch.write("README.md", "# In flight before\n");
    let commit = scratch.begins(&alice, &["commit", "-m", "slow", "src/a.rs", "--json"]);
    until("the hook does not run", || scratch.path("home/running").exists());
    // The framework would have stashed what is not staged; it is where it was, and goes on.
    assert_eq!(read(&scratch, "README.md"), "# In flight before\n");
    scratch.write("README.md", "# In flight during\n");
    scratch.write("new.txt", "new\n");
    scratch.git(&["add", "new.txt"]);
    std::fs::write(scratch.path("home/go"), "").unwrap();
    let said = Said::from(commit.wait_with_output().unwrap()).ok().json();
    assert_eq!(said["paths"], serde_json::json!(["src/a.rs"]));
    assert_eq!(at_head(&scratch, "src/a.rs"), "fn a() { 1 }\n");
    assert_eq!(read(&scratch, "README.md"), "# In flight during\n");
    assert_eq!(scratch.git(&["status", "--porcelain"]), " M README.md\nA  new.txt\n");
}

#[test]
fn a_commit_of_others_during_a_hook_is_built_upon() {
    let scratch = workspace();
    let alice = scratch.session("alice");
    hook(
        &scratch,
        "pre-commit",
        "touch \"$HOME/running\"; while [ ! -e \"$HOME/go\" ]; do sleep 0.02; done",
    );
    scratch.write("src/a.rs", "fn a() { 1 }\n");
    let commit = scratch.begins(&alice, &["commit", "-m", "slow", "src/a.rs"]);
    until("the hook does not run", || scratch.path("home/running").exists());
    scratch.write("README.md", "# Another's\n");
    scratch.git(&["commit", "-qnm", "in between", "README.md"]);
    std::fs::write(scratch.path("home/go"), "").unwrap();
    Said::from(commit.wait_with_output().unwrap()).ok();
    assert_eq!(scratch.git(&["show", "--name-only", "--format=", "HEAD"]), "src/a.rs\n");
    assert_eq!(at_head(&scratch, "README.md"), "# Another's\n");
    assert_eq!(at_head(&scratch, "src/a.rs"), "fn a() { 1 }\n");
}

#[test]
fn a_hook_that_stashes_and_checks_out_everything_harms_nobody() {
    let scratch = workspace();
    let alice = scratch.session("alice");
    scratch.write("README.md", "# In flight\n");
    scratch.git(&["stash", "push", "-q"]);
    scratch.write("README.md", "# In flight again\n");
    scratch.write("src/a.rs", "fn a() { 1 }\n");
    let wild = "git stash -q -u; git checkout -q .; git clean -qfdx; git reset -q --hard; \
                git stash pop -q --index";
    hook(&scratch, "pre-commit", wild);
    scratch.acts(&alice, &["commit", "-m", "one", "src/a.rs"]).ok();
    assert_eq!(read(&scratch, "README.md"), "# In flight again\n");
    assert_eq!(scratch.git(&["stash", "list"]).lines().count(), 1);
    assert_eq!(at_head(&scratch, "src/a.rs"), "fn a() { 1 }\n");
    assert_eq!(scratch.git(&["status", "--porcelain"]), " M README.md\n");
}

#[test]
fn what_a_killed_commit_left_goes_with_the_next() {
    let scratch = workspace();
    let alice = scratch.session("alice");
    let temporary = scratch.path("home/tmp");
    std::fs::create_dir_all(&temporary).unwrap();
    let commit = |text: &str| {
        scratch.write("src/a.rs", text);
        let mut command = scratch.command(&["commit", "-m", "one", "src/a.rs"]);
        command.env("BATON_SESSION", &alice).env("TMPDIR", &temporary);
        Said::from(command.output().unwrap())
    };
    let left = || std::fs::read_dir(&temporary).unwrap().count();
    hook(&scratch, "pre-commit", "kill -9 $PPID");
    assert_ne!(commit("fn a() { 1 }\n").code, 0);
    assert_ne!(left(), 0, "it was killed in the middle");
    hook(&scratch, "pre-commit", "exit 0");
    commit("fn a() { 2 }\n").ok();
    let names: Vec<_> = std::fs::read_dir(&temporary).unwrap().flatten().collect();
    let checkouts = names.iter().filter(|one| one.file_name().to_string_lossy().contains("commit"));
    assert_eq!(checkouts.count(), 0, "{names:?}");
}

#[test]
fn to_a_hook_a_diverted_commit_begins_where_the_target_is() {
    let scratch = landing::workspace(landing::CHECKED);
    let out = scratch.path("seen");
    let look = format!("(git rev-parse HEAD; git diff --cached --name-only HEAD) > {out:?}");
    hook(&scratch, "pre-commit", &look);
    let ann = scratch.session("ann");
    scratch.write("src/b.rs", "fn b() {}\n");
    scratch.acts(&ann, &["claim", "src/b.rs"]).ok();
    let said = scratch.acts(&ann, &["commit", "src/b.rs", "-m", "b"]).ok();
    assert!(said.out.contains("the target is guarded"), "{said:?}");
    assert!(!said.out.contains("though a hook changed it"), "{said:?}");
    let head = scratch.git(&["rev-parse", "HEAD"]);
    let seen = std::fs::read_to_string(out).unwrap();
    assert_eq!(seen, format!("{}\nsrc/b.rs\n", head.trim()));
}

#[test]
fn hooks_see_the_candidate_and_change_only_named_files() {
    let scratch = workspace();
    let alice = scratch.session("alice");
    scratch.write("src/a.rs", "fn a() { 1 }   \n");
    scratch.write("README.md", "# Not named\n");
    let format = "git diff --cached --name-only > \"$HOME/staged\"\n\
                  git symbolic-ref HEAD > \"$HOME/branch\"\n\
                  cat README.md > \"$HOME/readme\"\n\
                  sed -i 's/ *$//' src/a.rs && git add src/a.rs\n\
                  echo changed >> README.md; git add README.md\n";
    hook(&scratch, "pre-commit", format);
    hook(&scratch, "prepare-commit-msg", "[ \"$2\" = message ] && sed -i '1s/^/PRE /' \"$1\"");
    hook(&scratch, "commit-msg", "grep -q '^PRE ' \"$1\"");
    hook(&scratch, "post-commit", "git log -1 --format=%s > \"$HOME/post\"");
    let said = scratch.acts(&alice, &["commit", "-m", "one", "src/a.rs", "--json"]).ok().json();
    assert_eq!(said["changed_by_hooks"], serde_json::json!(["src/a.rs"]));
    assert_eq!(said["not_taken"], serde_json::json!(["README.md"]));
    let home = |name: &str| std::fs::read_to_string(scratch.path("home").join(name)).unwrap();
    assert_eq!(home("staged"), "src/a.rs\n");
    assert_eq!(home("branch"), "refs/heads/main\n");
    assert_eq!(home("readme"), "# Read me\n");
    assert_eq!(home("post"), "PRE one\n");
    assert_eq!(at_head(&scratch, "src/a.rs"), "fn a() { 1 }\n");
    assert_eq!(read(&scratch, "src/a.rs"), "fn a() { 1 }\n");
    assert_eq!(at_head(&scratch, "README.md"), "# Read me\n");
    assert_eq!(scratch.git(&["status", "--porcelain"]), " M README.md\n");
    scratch.git(&["fsck", "--strict"]);
    // One that refuses is told with what it said; what it mended is in the tree.
    hook(&scratch, "pre-commit", "sed -i 's/ *$//' src/a.rs; echo 'trailing blanks'; exit 1");
    scratch.write("src/a.rs", "fn a() { 2 }  \n");
    let head = scratch.git(&["rev-parse", "HEAD"]);
    let said = scratch.acts(&alice, &["commit", "-m", "two", "src/a.rs", "--json"]);
    let said = refused_as(said, "hook");
    assert!(said.err.contains("pre-commit ended with 1: trailing blanks"), "{said:?}");
    assert_eq!(read(&scratch, "src/a.rs"), "fn a() { 2 }\n");
    assert_eq!(scratch.git(&["rev-parse", "HEAD"]), head);
}

#[test]
fn a_death_at_any_step_is_repaired_by_the_next_commit() {
    let steps = [
        "commit-begun",
        "commit-candidate",
        "commit-hooks",
        "commit-locked",
        "commit-written-back",
        "commit-indexed",
        "commit-intended",
        "commit-moved",
        "commit-put",
        "commit-kept",
    ];
    for step in steps {
        let scratch = workspace();
        scratch.allow_test_hooks();
        hook(&scratch, "pre-commit", "sed -i 's/ *$//' src/a.rs; git add src/a.rs");
        let alice = scratch.session("alice");
        let bob = scratch.session("bob");
        scratch.write("src/a.rs", "fn a() { 1 }  \n");
        scratch.write("README.md", "# Staged\n");
        scratch.git(&["add", "README.md"]);
        let before = scratch.git(&["rev-parse", "HEAD"]);
        let words = ["commit", "-m", "one", "src/a.rs", "--op-id", "op1"];
        let mut dies = scratch.command(&words);
        dies.env("BATON_SESSION", &alice).env("BATON_TEST_STOP_AT", step);
        assert_eq!(Said::from(dies.output().unwrap()).code, -1, "{step}");
        scratch.git(&["fsck", "--strict"]);
        // Somebody else's commit puts it in order, before anything else.
        scratch.write("src/b.rs", "b\n");
        scratch.acts(&bob, &["commit", "-m", "two", "src/b.rs"]).ok();
        let moved = ["commit-moved", "commit-put", "commit-kept"].contains(&step);
        let count = scratch.git(&["rev-list", "--count", &format!("{}..HEAD", before.trim())]);
        assert_eq!(count.trim(), if moved { "2" } else { "1" }, "{step}");
        assert!(!scratch.root().join(".git/index.lock").exists(), "{step}");
        // The retry makes it, or gets the answer of the one that was made.
        let made = scratch.acts(&alice, &words).ok();
        assert!(made.out.contains("committed"), "{step}: {made:?}");
        let journal = scratch.baton(&["journal", "--kind", "commit_made"]).ok().out;
        assert_eq!(journal.lines().count(), 2, "{step}: {journal}");
        assert_eq!(scratch.git(&["status", "--porcelain"]), "M  README.md\n", "{step}");
        scratch.git(&["commit", "-qnm", "plain"]);
        assert_eq!(at_head(&scratch, "src/a.rs"), "fn a() { 1 }\n", "{step}");
        assert_eq!(at_head(&scratch, "src/b.rs"), "b\n", "{step}");
        assert_eq!(scratch.git(&["status", "--porcelain"]), "", "{step}");
        scratch.git(&["fsck", "--strict"]);
        scratch.baton(&["journal", "verify"]).ok();
    }
}

#[test]
fn a_lock_that_was_removed_by_hand_does_not_undo_the_commit() {
    let scratch = workspace();
    scratch.allow_test_hooks();
    let alice = scratch.session("alice");
    scratch.write("src/a.rs", "fn a() { 1 }\n");
    let mut dies = scratch.command(&["commit", "-m", "one", "src/a.rs"]);
    dies.env("BATON_SESSION", &alice).env("BATON_TEST_STOP_AT", "commit-moved");
    assert_eq!(Said::from(dies.output().unwrap()).code, -1);
    std::fs::remove_file(scratch.root().join(".git/index.lock")).unwrap();
    scratch.write("README.md", "# Staged\n");
    scratch.git(&["add", "README.md"]);
    scratch.write("src/b.rs", "b\n");
    let said = scratch.acts(&alice, &["commit", "-m", "two", "src/b.rs", "--json"]).ok().json();
    assert_eq!(said["repaired"], true);
    assert_eq!(scratch.git(&["status", "--porcelain"]), "M  README.md\n");
    scratch.git(&["commit", "-qm", "plain"]);
    assert_eq!(at_head(&scratch, "src/a.rs"), "fn a() { 1 }\n");
}

#[test]
fn a_lock_of_gits_own_is_waited_for_and_never_removed() {
    let scratch = workspace();
    let alice = scratch.session("alice");
    scratch.write("src/a.rs", "fn a() { 1 }\n");
    let lock = scratch.root().join(".git/index.lock");
    std::fs::write(&lock, "").unwrap();
    let words = ["commit", "-m", "one", "src/a.rs", "--json"];
    refused_as(scratch.acts(&alice, &words), "index_locked");
    assert!(lock.exists());
    let waits = scratch.begins(&alice, &words);
    std::thread::sleep(Duration::from_millis(300));
    std::fs::remove_file(&lock).unwrap();
    Said::from(waits.wait_with_output().unwrap()).ok();
}

#[test]
fn what_cannot_be_committed_is_refused_in_one_line() {
    let scratch = workspace();
    let alice = scratch.session("alice");
    let commit = |path: &str| scratch.acts(&alice, &["commit", "-m", "x", path, "--json"]);
    scratch.write(".gitignore", "*.log\n");
    scratch.write("x.log", "x\n");
    refused_as(commit("x.log"), "ignored");
    refused_as(commit("no/such"), "missing");
    refused_as(commit("src/a.rs"), "nothing_to_commit");
    refused_as(commit("../outside"), "bad_path");
    refused_as(commit(".git/config"), "bad_path");
    refused_as(scratch.acts(&alice, &["commit", "-m", "x", "--json"]), "nothing_to_commit");
    refused_as(scratch.acts(&alice, &["commit", "-m", " ", "src/a.rs", "--json"]), "no_message");
    scratch.baton(&["commit", "-m", "x", "src/a.rs"]).refused(1);
    scratch.write("SRC/A.rs", "x\n");
    refused_as(commit("SRC/A.rs"), "colliding");
    std::fs::remove_dir_all(scratch.root().join("SRC")).unwrap();
    // Another repository within this one.
    std::fs::create_dir(scratch.root().join("inner")).unwrap();
    scratch.git(&["init", "-q", "inner"]);
    scratch.write("inner/x", "x\n");
    refused_as(commit("inner/x"), "other_repository");
    refused_as(commit("inner"), "other_repository");
    // A filter that the repository itself configures is neither run nor left out.
    scratch.write(".gitattributes", "*.bin filter=evil\n");
    scratch.git(&["config", "filter.evil.clean", "touch \"$HOME/canary\"; cat"]);
    scratch.write("x.bin", "x\n");
    refused_as(commit("x.bin"), "own_filter");
    assert!(!scratch.path("home/canary").exists());
    // Something in progress, and a branch that two trees have.
    std::fs::write(scratch.root().join(".git/MERGE_HEAD"), "x").unwrap();
    scratch.write("src/a.rs", "fn a() { 1 }\n");
    refused_as(commit("src/a.rs"), "in_progress");
    std::fs::remove_file(scratch.root().join(".git/MERGE_HEAD")).unwrap();
    scratch.git(&["worktree", "add", "-q", "--force", "../twin", "main"]);
    refused_as(commit("src/a.rs"), "checked_out_twice");
    scratch.git(&["worktree", "remove", "--force", "../twin"]);
    commit("src/a.rs").ok();
}

#[test]
fn the_first_commit_a_detached_head_and_release_work() {
    let scratch = workspace();
    let alice = scratch.session("alice");
    scratch.git(&["checkout", "-q", "--detach"]);
    scratch.acts(&alice, &["claim", "src/a.rs"]).ok();
    scratch.write("src/a.rs", "fn a() { 1 }\n");
    let said = scratch.acts(&alice, &["commit", "-m", "one", "--release", "--json"]).ok().json();
    assert_eq!(said["released"], serde_json::json!(["src/a.rs"]));
    assert!(said["branch"].is_null());
    assert_eq!(scratch.git(&["rev-parse", "HEAD"]).trim(), said["commit"]);
    assert_ne!(scratch.git(&["rev-parse", "main"]).trim(), said["commit"]);
    assert_eq!(
        scratch.acts(&alice, &["claims", "--mine", "--json"]).ok().json()["claims"],
        serde_json::json!([])
    );
    scratch.git(&["checkout", "-q", "--orphan", "fresh"]);
    scratch.git(&["rm", "-rq", "--cached", "."]);
    let said = scratch.acts(&alice, &["commit", "-m", "first", "README.md", "--json"]).ok().json();
    assert_eq!(said["branch"], "fresh");
    assert_eq!(scratch.git(&["ls-tree", "-r", "--name-only", "fresh"]), "README.md\n");
    scratch.git(&["fsck", "--strict"]);
}

#[test]
fn lesson_31_a_hostile_repository_runs_nothing() {
    let scratch = workspace();
    let alice = scratch.session("alice");
    let canary = scratch.path("home/canary");
    let evil = format!("touch '{}'; cat; false", canary.display());
    let settings = [
        "core.fsmonitor",
        "diff.external",
        "core.pager",
        "core.editor",
        "core.sshCommand",
        "gpg.program",
        "core.alternateRefsCommand",
        "merge.evil.driver",
        "diff.evil.textconv",
        "diff.evil.command",
        "credential.helper",
        "uploadpack.packObjectsHook",
        "remote.origin.uploadpack",
    ];
    for setting in settings {
        scratch.git(&["config", setting, &evil]);
    }
    scratch.git(&["config", "alias.commit-tree", &format!("!{evil}")]);
    scratch.git(&["config", "alias.update-ref", &format!("!{evil}")]);
    scratch.git(&["config", "commit.gpgSign", "true"]);
    let remote = format!("ext::sh -c touch% {}", canary.display());
    scratch.git(&["config", "remote.origin.url", &remote]);
    scratch.write(".gitattributes", "* diff=evil merge=evil\n");
    scratch.write("--output=canary", "x\n");
    scratch.write(":(glob)**", "x\n");
    scratch.write("src/a.rs", "fn a() { 1 }\n");
    let words =
        ["commit", "-m", "x", "--", "src/a.rs", "--output=canary", ":(glob)**", ".gitattributes"];
    let said = scratch.acts(&alice, &words).ok();
    assert!(said.out.contains("committed"), "{said:?}");
    scratch.acts(&alice, &["sync"]).refused(4);
    for name in ["--upload-pack=touch", "--output=x"] {
        scratch.acts(&alice, &["sync", &format!("--branch={name}")]).refused(2);
        scratch.acts(&alice, &["sync", &format!("--remote={name}")]).refused(1);
    }
    assert!(!canary.exists());
    assert!(!scratch.root().join("canary").exists());
    scratch.git(&["-c", "core.fsmonitor=false", "fsck", "--strict"]);
    // The trap is a real one: git itself steps into it.
    scratch.git(&["status", "--porcelain"]);
    assert!(canary.exists());
}
