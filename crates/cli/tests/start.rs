//! `baton start`: a client from its start to its end, with fake clients that are real processes.
//!
//! Each is a shell script under the name of a client; it calls `baton` as hooks and shells do.

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::harness::{Said, Scratch};

/// A client of this name that runs this script.
pub(crate) fn client(scratch: &Scratch, name: &str, script: &str) {
    let folder = scratch.path("bin");
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join(name);
    std::fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
}

pub(crate) fn command(scratch: &Scratch, words: &[&str]) -> Command {
    let mut command = scratch.command(words);
    let baton = Path::new(env!("CARGO_BIN_EXE_baton")).parent().unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{}:{}:{path}", scratch.path("bin").display(), baton.display()));
    for role in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{role}_NAME"), "Ann");
        command.env(format!("GIT_{role}_EMAIL"), "ann@example.invalid");
    }
    command.env("OUT", scratch.path("out"));
    command
}

pub(crate) fn start(scratch: &Scratch, words: &[&str]) -> Said {
    command(scratch, &[&["start"], words].concat()).output().unwrap().into()
}

fn sessions(scratch: &Scratch) -> Vec<Value> {
    let listed = scratch.baton(&["session", "list", "--json"]).ok().json();
    listed["sessions"].as_array().unwrap().clone()
}

fn until(what: &str, so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !so() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// What Claude Code sends, in three events, around an edit.
const LIKE_CLAUDE: &str = r#"
say() {
  file=$PWD/src/hooked.rs
  printf '{"session_id":"c-1","cwd":"%s","hook_event_name":"%s","source":"startup",' "$PWD" "$1"
  printf '"tool_name":"Write","tool_input":{"file_path":"%s","content":"x"}}' "$file"
}
tell() { say "$1" | baton hook claude; }
tell SessionStart > /dev/null
tell PreToolUse
baton claim src/typed.rs > /dev/null || exit 9
tell SessionEnd
baton session whoami --json
baton claims --mine --json
baton session list --json
"#;

#[test]
fn hooks_and_shell_of_a_started_client_are_one_session() {
    Scratch::on_each_store("", |scratch| {
        client(scratch, "claude", &format!("{LIKE_CLAUDE}\necho args \"$@\""));
        let said = start(scratch, &["claude", "--", "-p", "two words"]);
        assert_eq!(said.code, 0, "{said:?}");
        assert!(said.out.contains("args -p two words"), "{said:?}");
        let lines: Vec<Value> =
            said.out.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let whoami = lines.iter().find(|one| one["client"] == "claude").unwrap();
        let claims =
            lines.iter().find(|one| one.get("claims").is_some_and(Value::is_array)).unwrap();
        assert!(claims.to_string().contains("hooked.rs"), "{said:?}");
        assert!(claims.to_string().contains("typed.rs"), "{said:?}");
        let listed = lines.iter().find(|one| one.get("sessions").is_some()).unwrap();
        assert_eq!(listed["sessions"].as_array().unwrap().len(), 1, "one session: {listed}");
        assert_eq!(listed["sessions"][0]["session"], whoami["session"]);
        assert!(said.err.contains("released"), "{said:?}");
        assert!(sessions(scratch).is_empty(), "it ends with the client");
        assert!(
            scratch.baton(&["claims", "--json"]).ok().json()["claims"]
                .as_array()
                .unwrap()
                .is_empty()
        );
        scratch.baton(&["journal", "verify"]).ok();
    });
}

#[test]
fn what_cannot_be_started_is_said_before_anything_is_begun() {
    let scratch = Scratch::workspace();
    let said = start(&scratch, &["vim"]).refused(2);
    assert!(said.err.contains("claude, codex, gemini, cursor-agent, opencode, aider"), "{said:?}");
    let mut bare = scratch.command(&["start", "codex"]);
    let said = Said::from(bare.env("PATH", "/nonexistent").output().unwrap()).refused(4);
    assert!(said.err.contains("codex is not on your PATH"), "{said:?}");
    client(&scratch, "codex", "touch $OUT");
    let said = start(&scratch, &["codex", "--task", "t9"]).refused(1);
    assert!(said.err.contains("t9"), "{said:?}");
    let ann = scratch.session("ann");
    scratch.acts(&ann, &["task", "add", "Held by ann"]).ok();
    scratch.acts(&ann, &["task", "take", "t1"]).ok();
    for tree in ["new", "here"] {
        let said = start(&scratch, &["codex", "--task", "t1", "--tree", tree]);
        assert_eq!(said.code, 1, "{said:?}");
        assert!(said.err.contains("ann"), "{said:?}");
    }
    assert!(!scratch.path("out").exists(), "the client did not run");
    assert_eq!(sessions(&scratch).len(), 1, "ann alone");
    let trees = scratch.baton(&["worktree", "list", "--json"]).ok().json();
    assert_eq!(trees["trees"].as_array().unwrap().len(), 1, "{trees}");
    assert!(scratch.git(&["branch", "--list", "baton/*"]).is_empty());
}

#[test]
fn a_new_tree_has_the_task_the_ports_and_the_name() {
    let scratch = Scratch::workspace();
    let ann = scratch.session("ann");
    scratch.acts(&ann, &["task", "add", "Parse it"]).ok();
    client(
        &scratch,
        "codex",
        "pwd; env | grep -E '^(BATON|PORT)'; unset GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL; \
         git var GIT_AUTHOR_IDENT; baton task show t1 --json; baton session list --json; exit 3",
    );
    let words = ["codex", "--task", "t1", "--tree", "new", "--ports", "2"];
    let said = start(&scratch, &words);
    assert_eq!(said.code, 3, "the client's own: {said:?}");
    let tree = said.out.lines().next().unwrap().to_owned();
    assert!(tree.ends_with("t1-parse-it"), "{said:?}");
    for name in
        ["BATON_SESSION=s", "BATON_TREE=", "BATON_BRANCH=baton/t1-parse-it", "BATON_TASK=t1"]
    {
        assert!(said.out.contains(name), "{name}: {said:?}");
    }
    assert!(said.out.contains("\nPORT=2") && said.out.contains("BATON_PORTS=2"), "{said:?}");
    assert!(said.out.contains("@baton.invalid"), "{said:?}");
    assert!(said.out.contains("\"state\":\"active\""), "{said:?}");
    let listed = said.out.lines().last().unwrap();
    let listed: Value = serde_json::from_str(listed).unwrap();
    let seats = listed["sessions"].as_array().unwrap();
    let codex = seats.iter().find(|seat| seat["client"] == "codex").unwrap();
    let id = said.out.lines().find_map(|line| line.strip_prefix("BATON_TREE=")).unwrap();
    assert_eq!(codex["tree"], id, "the session belongs to its tree: {listed}");
    assert!(said.err.contains("left: t1 \"Parse it\", not finished"), "{said:?}");
    assert!(said.err.contains(&format!("the tree is kept: {tree}")), "{said:?}");
    assert!(said.err.trim_end().lines().last().unwrap().starts_with("next: "), "{said:?}");
    assert!(Path::new(&tree).exists());
    let task = scratch.baton(&["task", "show", "t1", "--json"]).ok().json();
    assert_eq!(task["checkpoints"].as_array().unwrap().len(), 1, "once, at its end: {task}");
}

#[test]
fn a_tree_that_is_there_already_is_gone_on_with() {
    let scratch = Scratch::workspace();
    scratch.baton(&["task", "add", "Parse it"]).ok();
    client(&scratch, "claude", "pwd");
    let words = ["claude", "--task", "t1", "--tree", "new"];
    let first = start(&scratch, &words);
    let tree = first.out.lines().next().unwrap().to_owned();
    let said = start(&scratch, &words).refused(1);
    let next = format!("next: cd {tree}, then baton start claude --task t1 --tree here");
    assert!(said.err.contains(&next), "{said:?}");
    let mut there = command(&scratch, &["start", "claude", "--task", "t1", "--tree", "here"]);
    let said = Said::from(there.current_dir(&tree).output().unwrap());
    assert!(said.code == 0 && said.out.starts_with(&tree), "{said:?}");
}

#[test]
fn what_its_own_tree_has_and_nobody_claimed_is_told_too() {
    let scratch = Scratch::workspace();
    client(&scratch, "aider", "echo new > loose.txt; mkdir -p sub; echo x > sub/more.txt");
    let said = start(&scratch, &["aider", "--tree", "new"]);
    let left = "left: loose.txt, sub/more.txt, changed and in no commit, claimed by nobody";
    assert!(said.err.contains(left), "{said:?}");
    let last = said.err.trim_end().lines().last().unwrap();
    assert!(last.starts_with("next: git -C ") && last.ends_with(" status"), "{said:?}");
    let here = start(&scratch, &["aider", "--tree", "here"]);
    assert!(!here.err.contains("loose.txt"), "it may be anybody's here: {here:?}");
}

#[test]
fn without_a_word_the_tree_is_new_only_where_others_are_at_work() {
    let scratch = Scratch::workspace();
    client(&scratch, "gemini", "pwd");
    let said = start(&scratch, &["gemini"]);
    assert_eq!(said.out.trim(), scratch.root().canonicalize().unwrap().to_str().unwrap());
    scratch.session("ann");
    let said = start(&scratch, &["gemini"]);
    assert!(said.out.contains("repo.trees/"), "{said:?}");
    let here = scratch.root().canonicalize().unwrap();
    for words in [&["gemini", "--tree", "here"][..], &["gemini", "--role", "review"]] {
        let said = start(&scratch, words);
        assert_eq!(said.out.trim(), here.to_str().unwrap(), "{words:?}: {said:?}");
    }
}

#[test]
fn at_the_end_what_is_clean_is_free_and_what_is_not_waits() {
    let scratch = Scratch::workspace();
    let script = "baton claim src/a.rs README.md @gpu > /dev/null; echo more >> src/a.rs";
    client(&scratch, "aider", script);
    let said = start(&scratch, &["aider", "--json"]);
    let left = said.json();
    assert_eq!(left["dirty"].to_string(), "[\"src/a.rs\"]", "{said:?}");
    let released = left["released"].to_string();
    assert!(released.contains("README.md") && released.contains("@gpu"), "{said:?}");
    assert!(said.err.contains("left: src/a.rs, changed and in no commit"), "{said:?}");
    assert!(said.err.contains("next: git status"), "{said:?}");
    let bob = scratch.session("bob");
    scratch.acts(&bob, &["claim", "README.md", "@gpu"]).ok();
    let held = scratch.acts(&bob, &["claim", "src/a.rs"]).refused(1);
    assert!(held.err.contains(left["name"].as_str().unwrap()), "{held:?}");
}

/// A Claude with this id that writes a file and leaves it.
fn writes(id: &str) -> String {
    let event = format!("{{\"session_id\":\"{id}\",\"cwd\":\"%s\",\"hook_event_name\":\"%s\",");
    format!(
        "say() {{ printf '{event}\"source\":\"resume\",\"tool_name\":\"Write\",\"tool_input\":\
         {{\"file_path\":\"%s\",\"content\":\"x\"}}}}' \"$PWD\" \"$1\" \"$PWD/src/a.rs\"; }}\n\
         say SessionStart | baton hook claude > /dev/null\n\
         say PreToolUse | baton hook claude; echo \"// $$\" >> src/a.rs\n\
         baton session whoami --json"
    )
}

#[test]
fn a_client_that_is_started_again_goes_on_with_what_it_left() {
    Scratch::on_each_store("", |scratch| {
        let who = |said: &Said| -> Value {
            let line = said.out.lines().find(|line| line.contains("\"session\"")).unwrap();
            serde_json::from_str::<Value>(line).unwrap()["session"].clone()
        };
        client(scratch, "claude", &writes("c-1"));
        let first = start(scratch, &["claude", "--tree", "here"]);
        assert!(first.err.contains("left: src/a.rs"), "{first:?}");
        let again = start(scratch, &["claude", "--tree", "here", "--", "--resume"]);
        assert!(!again.out.contains("deny"), "{again:?}");
        assert_eq!(who(&first), who(&again), "{again:?}");
        assert!(again.err.contains("again, with what it left"), "{again:?}");
        // Also in a new talk of the same client.
        client(scratch, "claude", &writes("c-2"));
        let third = start(scratch, &["claude", "--", "-p", "go on"]);
        assert!(!third.out.contains("deny"), "{third:?}");
        assert_eq!(who(&first), who(&third), "{third:?}");
        // Another client is somebody else, and so is one with another role.
        client(scratch, "gemini", "baton session whoami --json; baton claim src/a.rs");
        let other = start(scratch, &["gemini", "--tree", "here"]);
        assert_ne!(who(&first), who(&other), "{other:?}");
        assert_eq!(other.code, 1, "{other:?}");
        scratch.baton(&["journal", "verify"]).ok();
    });
}

#[test]
fn a_client_that_is_started_again_with_its_task_has_it() {
    let scratch = Scratch::workspace();
    scratch.baton(&["task", "add", "Parse it"]).ok();
    scratch.baton(&["task", "add", "Print it"]).ok();
    client(&scratch, "codex", "pwd; baton task show t1 --json; echo \"task $BATON_TASK\"");
    let first = start(&scratch, &["codex", "--task", "t1", "--tree", "new"]);
    assert!(first.out.contains("task t1"), "{first:?}");
    let tree = first.out.lines().next().unwrap().to_owned();
    // From where it was started, it goes on in the tree of the task.
    let again = start(&scratch, &["codex", "--task", "t1"]);
    assert_eq!(again.code, 0, "{again:?}");
    assert_eq!(again.out.lines().next(), Some(&*tree), "{again:?}");
    assert!(again.err.contains("again, with what it left"), "{again:?}");
    assert!(again.out.contains("task t1"), "{again:?}");
    // What cannot be taken leaves what waits as it was.
    let said = start(&scratch, &["codex", "--task", "t9"]);
    assert_eq!(said.code, 1, "{said:?}");
    let again = start(&scratch, &["codex", "--task", "t1"]);
    assert!(again.out.contains("task t1"), "{again:?}");
    // In that tree another client is not said to have the task.
    client(&scratch, "gemini", "echo \"task $BATON_TASK.\"");
    let mut other = command(&scratch, &["start", "gemini", "--tree", "here"]);
    let other = Said::from(other.current_dir(&tree).output().unwrap());
    assert!(other.out.contains("task .") && !other.err.contains("with t1"), "{other:?}");
}

/// The agent's own tree is not the only one that its hooks let it write to.
#[test]
fn what_it_left_in_another_tree_waits_and_is_told_too() {
    Scratch::on_each_store("", |scratch| {
        scratch.write("base.txt", "base\n");
        scratch.write("clean.txt", "clean\n");
        scratch.git(&["add", "base.txt", "clean.txt"]);
        scratch.git(&["-c", "core.hooksPath=/dev/null", "commit", "-qm", "base"]);
        let main = scratch.root().canonicalize().unwrap().display().to_string();
        let say = r#"
say() {
  printf '{"session_id":"c-1","cwd":"%s","hook_event_name":"%s","source":"startup",' "$PWD" "$1"
  printf '"tool_name":"Write","tool_input":{"file_path":"%s","content":"x"}}' "$2"
}
say SessionStart | baton hook claude > /dev/null
say PreToolUse $MAIN/base.txt | baton hook claude
say PreToolUse $MAIN/clean.txt | baton hook claude
echo more >> $MAIN/base.txt
say Stop | baton hook claude > $OUT
say Stop | baton hook claude > $OUT.again"#;
        client(scratch, "claude", &format!("MAIN={main}\n{say}"));
        let said = start(scratch, &["claude", "--tree", "new", "--json"]);
        assert_eq!(said.code, 0, "{said:?}");
        let told = std::fs::read_to_string(scratch.path("out")).unwrap();
        assert!(
            told.contains(&format!("base.txt in {main} is changed and in no commit")),
            "{told}"
        );
        assert!(told.contains(&format!("baton -C {main} commit")), "{told}");
        assert!(!told.contains("clean.txt"), "{told}");
        let again = std::fs::read_to_string(scratch.path("out.again")).unwrap();
        assert!(!again.contains("base.txt"), "once: {again}");
        let left = format!("left: base.txt in {main}, changed and in no commit");
        assert!(said.err.contains(&left), "{said:?}");
        assert!(said.err.contains("what is left waits until"), "{said:?}");
        assert!(said.err.contains(&format!("git -C {main} status")), "{said:?}");
        let document = said.out.lines().last().unwrap();
        let document: Value = serde_json::from_str(document).unwrap();
        assert_eq!(document["elsewhere"][0]["dirty"][0], "base.txt", "{document}");
        let released = document["released"].to_string();
        assert!(released.contains("clean.txt") && !released.contains("base.txt"), "{document}");
        let bob = scratch.session("bob");
        scratch.acts(&bob, &["claim", "clean.txt"]).ok();
        let held = scratch.acts(&bob, &["claim", "base.txt"]).refused(1);
        assert!(held.err.contains(document["name"].as_str().unwrap()), "{held:?}");
    });
}

#[test]
fn a_role_is_held_by_the_kernel_and_the_client_keeps_its_own_folder() {
    let scratch = Scratch::workspace();
    let script = "echo x > ~/.claude/own && echo own; echo x > ~/mine; echo x > src/a.rs; \
                  baton session whoami --json; baton commit src/a.rs -m x";
    client(&scratch, "claude", script);
    let said = start(&scratch, &["claude", "--role", "review"]);
    if said.err.contains("Landlock") {
        return eprintln!("skipped: {said:?}");
    }
    assert!(said.out.contains("own\n"), "{said:?}");
    assert_eq!(said.err.matches("ermission denied").count(), 2, "{said:?}");
    assert!(said.out.contains("\"role\":\"review\""), "{said:?}");
    assert!(said.err.contains("this role does not commit"), "{said:?}");
    assert!(sessions(&scratch).is_empty());
    client(&scratch, "claude", LIKE_CLAUDE);
    let said = start(&scratch, &["claude", "--role", "code", "--tree", "new"]);
    assert_eq!(said.code, 0, "{said:?}");
    let last: Value = serde_json::from_str(said.out.lines().last().unwrap()).unwrap();
    assert_eq!(last["sessions"].as_array().unwrap().len(), 1, "one session inside too: {said:?}");
    assert!(said.out.contains("hooked.rs") && said.out.contains("typed.rs"), "{said:?}");
}

/// Some clients believe the variable rather than the system.
#[test]
fn a_client_in_a_new_tree_is_told_where_it_is() {
    let scratch = Scratch::workspace();
    let python = "import os; print(os.getcwd() == os.environ['PWD'], os.environ.get('OLDPWD'))";
    client(&scratch, "opencode", "");
    // A shell would mend the variable first.
    let program = format!("#!/usr/bin/env python3\n{python}\n");
    std::fs::write(scratch.path("bin/opencode"), program).unwrap();
    let mut started = command(&scratch, &["start", "opencode", "--tree", "new"]);
    started.env("PWD", scratch.root()).env("OLDPWD", "/");
    let said = Said::from(started.output().unwrap());
    assert!(said.out.contains("True None"), "{said:?}");
}

/// The branch of a role's tree has a folder of its own, which the kernel can open alone.
#[test]
fn a_role_in_a_new_tree_commits_with_plain_git() {
    let scratch = Scratch::workspace();
    let script = "echo 'fn b() {}' > src/b.rs && git add src/b.rs && git commit -qm Plain && \
                  git log -1 --format='said %s on %D'; \
                  cd \"$(git rev-parse --git-common-dir)\" && for one in main baton/x; do \
                  (echo x > refs/heads/$one) 2>/dev/null && echo \"moved $one\"; done; true";
    client(&scratch, "claude", script);
    let words = ["claude", "--role", "code", "--tree", "new"];
    let said = start(&scratch, &words);
    if said.err.contains("Landlock") {
        return eprintln!("skipped: {said:?}");
    }
    assert!(said.out.contains("said Plain on HEAD -> baton/"), "{said:?}");
    assert!(!said.out.contains("moved") && !said.err.contains("baton commit"), "{said:?}");
    // It goes by its name, and nothing is made where git could not have both branches.
    let branch = scratch.git(&["branch", "--list", "baton/*", "--format=%(refname:short)"]);
    let name = branch.trim().strip_prefix("baton/").unwrap().strip_suffix("/work").unwrap();
    let bob = scratch.session("bob");
    let taken = scratch.acts(&bob, &["worktree", "new", name, "--dir", "../b"]).refused(1);
    assert!(taken.err.contains(branch.trim()), "{taken:?}");
    scratch.acts(&bob, &["land", branch.trim()]).ok();
    scratch.acts(&bob, &["worktree", "remove", name]).ok();
    assert!(scratch.git(&["branch", "--list", "baton/*"]).is_empty());
}

#[test]
fn a_client_that_is_killed_is_cleared_up_after_and_one_without_baton_ends() {
    let scratch = Scratch::workspace();
    client(&scratch, "codex", "baton claim src/a.rs > /dev/null; kill -9 $$");
    let said = start(&scratch, &["codex"]);
    assert_eq!(said.code, 137, "{said:?}");
    assert!(said.err.contains("released src/a.rs"), "{said:?}");
    assert!(sessions(&scratch).is_empty());

    let script = "baton claim src/a.rs > /dev/null; trap 'echo ended > $OUT; exit' TERM; \
                  touch $OUT.ready; while :; do sleep 0.05; done";
    client(&scratch, "codex", script);
    let mut started = command(&scratch, &["start", "codex"]);
    let mut child = started.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until("it has begun", || scratch.path("out.ready").exists());
    child.kill().unwrap();
    child.wait().unwrap();
    until("the client has ended", || scratch.path("out").exists());
    let bob = scratch.session("bob");
    scratch.acts(&bob, &["claim", "src/a.rs"]).ok();
}

#[test]
fn the_keys_are_the_clients_and_baton_outlives_it() {
    let scratch = Scratch::workspace();
    let script = "baton claim src/a.rs > /dev/null; trap 'exit 5' INT; touch $OUT.ready; \
                  while :; do sleep 0.05; done";
    client(&scratch, "opencode", script);
    let mut started = command(&scratch, &["start", "opencode"]);
    started.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = started.spawn().unwrap();
    until("it has begun", || scratch.path("out.ready").exists());
    let group = format!("-{}", child.id());
    assert!(Command::new("kill").args(["-INT", "--", &group]).status().unwrap().success());
    let said = Said::from(child.wait_with_output().unwrap());
    assert_eq!(said.code, 5, "{said:?}");
    assert!(said.err.contains("released src/a.rs"), "{said:?}");
}

#[test]
fn a_handoff_is_accepted_and_continued_in_one_step() {
    Scratch::on_each_store("", |scratch| {
        let ann = scratch.session("ann");
        scratch.acts(&ann, &["task", "add", "Parse it", "--paths", "src/a.rs"]).ok();
        let made = scratch.acts(&ann, &["worktree", "new", "--task", "t1", "--json"]).ok().json();
        let tree = made["path"].as_str().unwrap().to_owned();
        let there = |words: &[&str]| {
            let mut command = scratch.command(words);
            Said::from(command.current_dir(&tree).env("BATON_SESSION", &ann).output().unwrap())
        };
        there(&["task", "take", "t1", "--claim"]).ok();
        // A copy that came with the tree is no work, whenever it was written.
        let copy = Path::new(&tree).join("baton.toml");
        std::fs::write(&copy, std::fs::read(&copy).unwrap()).unwrap();
        let offer = [
            "handoff",
            "offer",
            "t1",
            "--to",
            "anyone",
            "--state",
            "half",
            "--remaining",
            "the rest",
            "--next",
            "write the lexer tests in src/a.rs",
        ];
        there(&offer).ok();
        client(
            scratch,
            "codex",
            "pwd; echo $BATON_TASK \"$@\"; baton claims --mine --json; \
                                  baton session whoami --json",
        );
        let words = ["handoff", "accept", "t1", "--start", "codex", "--", "resume"];
        let said = Said::from(command(scratch, &words).output().unwrap());
        assert_eq!(said.code, 0, "{said:?}");
        let mut lines = said.out.lines();
        assert_eq!(lines.next(), Some(tree.as_str()), "{said:?}");
        assert_eq!(lines.next(), Some("t1 resume"), "{said:?}");
        assert!(said.out.contains("src/a.rs"), "its claims came along: {said:?}");
        assert!(said.err.contains("left: t1 \"Parse it\", not finished"), "{said:?}");
        // Nothing is offered any more: nothing is started.
        let said = Said::from(command(scratch, &words).output().unwrap());
        assert!(said.code == 1 && said.out.is_empty(), "{said:?}");
    });
}
