//! Git's own hooks as `baton init` sets them up: the user's run too, and git works as before.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::harness::{Said, Scratch, path_without_clients};

fn wired() -> Scratch {
    let scratch = Scratch::repository();
    scratch.baton(&["init", "--yes", "--agents", "claude"]).ok();
    scratch
}

fn hook(scratch: &Scratch, folder: &str, name: &str, text: &str) {
    let path = scratch.root().join(folder).join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// Git as somebody who may be refused; `session` is whose shell it is.
fn git(scratch: &Scratch, session: Option<&str>, words: &[&str]) -> Said {
    let mut command = Command::new("git");
    scratch.clean(&mut command);
    command.current_dir(scratch.root()).args(["-c", "user.name=A", "-c", "user.email=a@b.invalid"]);
    if let Some(session) = session {
        command.env("BATON_SESSION", session);
    }
    command.args(words).output().unwrap().into()
}

fn hooks_path(scratch: &Scratch) -> String {
    git(scratch, None, &["config", "--local", "core.hooksPath"]).out.trim().to_owned()
}

/// A setting of one tree counts more than the repository's, and says nothing of it.
#[test]
fn hooks_of_one_tree_alone_are_told_and_the_repositorys_stay_known() {
    let scratch = Scratch::repository();
    git(&scratch, None, &["config", "core.hooksPath", ".husky/_"]).ok();
    scratch.baton(&["init", "--yes", "--agents", "claude"]).ok();
    git(&scratch, None, &["config", "extensions.worktreeConfig", "true"]).ok();
    git(&scratch, None, &["config", "--worktree", "core.hooksPath", "/elsewhere"]).ok();
    let doctor = scratch.baton(&["doctor"]);
    assert!(doctor.out.contains("core.hooksPath was set anew, to /elsewhere"), "{doctor:?}");
    let said = scratch.baton(&["init", "--yes"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains("for this working tree alone core.hooksPath is /els"), "{said:?}");
    git(&scratch, None, &["config", "--worktree", "--unset", "core.hooksPath"]).ok();
    scratch.baton(&["init", "--yes"]).ok();
    scratch.baton(&["init", "--remove", "--yes"]).ok();
    assert_eq!(hooks_path(&scratch), ".husky/_", "what was before is still known");
}

#[test]
fn a_commit_of_what_another_holds_is_refused() {
    Scratch::on_each_store("# plain\n", |scratch| {
        scratch.baton(&["init", "--yes", "--agents", "claude"]).ok();
        refuses_what_another_holds(scratch);
    });
}

fn refuses_what_another_holds(scratch: &Scratch) {
    let (ann, bob) = (scratch.session("ann"), scratch.session("bob"));
    scratch.acts(&ann, &["claim", "src/a.rs", "--reason", "parser"]).ok();
    scratch.write("src/a.rs", "fn b() {}\n");
    scratch.write("free.txt", "x\n");
    git(scratch, None, &["add", "src/a.rs"]).ok();
    let said = git(scratch, Some(&bob), &["commit", "-qm", "mine now"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(
        said.err.contains("src/a.rs is held by ann") && said.err.contains("parser"),
        "{said:?}"
    );
    assert!(said.err.contains("next: baton "), "{said:?}");
    git(scratch, Some(&bob), &["reset", "-q"]).ok();
    git(scratch, Some(&bob), &["add", "free.txt"]).ok();
    git(scratch, Some(&bob), &["commit", "-qm", "free"]).ok();
    // Also where git makes an index of its own for the commit.
    let said = git(scratch, Some(&bob), &["commit", "-qam", "all"]);
    assert_eq!(said.code, 1, "{said:?}");
    let said = git(scratch, Some(&bob), &["commit", "-qm", "one", "src/a.rs"]);
    assert_eq!(said.code, 1, "{said:?}");
    git(scratch, Some(&ann), &["commit", "-qam", "my own"]).ok();
}

#[test]
fn no_verify_is_caught_by_the_branch_that_would_move() {
    Scratch::on_each_store("# plain\n", |scratch| {
        scratch.baton(&["init", "--yes", "--agents", "claude"]).ok();
        catches_no_verify(scratch);
    });
}

fn catches_no_verify(scratch: &Scratch) {
    let (ann, bob) = (scratch.session("ann"), scratch.session("bob"));
    let tip = || git(scratch, None, &["rev-parse", "main"]).ok().out;
    scratch.write("ours.txt", "1\n");
    git(scratch, Some(&bob), &["add", "ours.txt"]).ok();
    git(scratch, Some(&bob), &["commit", "-qm", "ours"]).ok();
    scratch.acts(&ann, &["claim", "src/a.rs", "ours.txt", "--reason", "parser"]).ok();
    scratch.write("src/a.rs", "fn b() {}\n");
    let before = tip();
    let said = git(scratch, Some(&bob), &["commit", "-q", "--no-verify", "-am", "mine now"]);
    assert_ne!(said.code, 0, "{said:?}");
    assert!(said.err.contains("src/a.rs is held by ann"), "{said:?}");
    assert!(said.err.contains("next: baton "), "{said:?}");
    assert_eq!(before, tip());
    // Nor by way of a new branch, or of plumbing that runs no other hook.
    git(scratch, Some(&bob), &["add", "src/a.rs"]).ok();
    let tree = git(scratch, Some(&bob), &["write-tree"]).ok().out;
    let words = ["commit-tree", tree.trim(), "-p", "main", "-m", "x"];
    let commit = git(scratch, Some(&bob), &words).ok().out;
    for reference in ["refs/heads/main", "refs/heads/other"] {
        let said = git(scratch, Some(&bob), &["update-ref", reference, commit.trim()]);
        assert_ne!(said.code, 0, "{reference}: {said:?}");
    }
    // What an amended commit had before was judged when it was made.
    git(scratch, Some(&bob), &["reset", "-q"]).ok();
    git(scratch, Some(&bob), &["commit", "-q", "--amend", "-m", "ours, again"]).ok();
    git(scratch, Some(&ann), &["commit", "-q", "--no-verify", "-am", "my own"]).ok();
}

#[test]
fn lesson_13_the_git_door_fails_open_and_says_so() {
    let scratch = wired();
    std::fs::write(scratch.store().join("store.db"), "no database").unwrap();
    let said = git(&scratch, None, &["commit", "-q", "--allow-empty", "-m", "x"]).ok();
    assert!(said.err.contains("this commit is not judged"), "{said:?}");
}

#[test]
fn lesson_14_hooks_of_the_user_run_too() {
    let scratch = Scratch::repository();
    let own = ".git/hooks";
    hook(&scratch, own, "pre-commit", "echo pre >> ../ran; test ! -e ../fail");
    hook(&scratch, own, "commit-msg", "echo \"msg $1\" >> ../ran");
    hook(&scratch, own, "reference-transaction", "echo \"ref $1 $(wc -l | tr -d ' ')\" >> ../ran");
    let before = std::fs::read(scratch.root().join(own).join("pre-commit")).unwrap();
    scratch.baton(&["init", "--yes", "--agents", "claude"]).ok();
    git(&scratch, None, &["commit", "-q", "--allow-empty", "-m", "x"]).ok();
    let ran = std::fs::read_to_string(scratch.path("ran")).unwrap();
    assert!(ran.starts_with("pre\nmsg .git/COMMIT_EDITMSG\n"), "{ran}");
    assert!(ran.contains("ref prepared 2\n") && ran.contains("ref committed 2\n"), "{ran}");
    std::fs::write(scratch.path("fail"), "").unwrap();
    let said = git(&scratch, None, &["commit", "-q", "--allow-empty", "-m", "x"]);
    assert_eq!(said.code, 1, "theirs may still say no: {said:?}");
    assert_eq!(before, std::fs::read(scratch.root().join(own).join("pre-commit")).unwrap());
    // One that comes later is called without another init.
    hook(&scratch, own, "post-commit", "echo post >> ../ran");
    std::fs::remove_file(scratch.path("fail")).unwrap();
    git(&scratch, None, &["commit", "-q", "--allow-empty", "-m", "x"]).ok();
    assert!(std::fs::read_to_string(scratch.path("ran")).unwrap().contains("post\n"));
    scratch.baton(&["init", "--remove", "--yes"]).ok();
    assert_eq!(hooks_path(&scratch), "");
    assert!(!scratch.store().join("hooks").exists());
    git(&scratch, None, &["commit", "-q", "--allow-empty", "-m", "x"]).ok();
}

#[test]
fn lesson_14_a_hooks_path_of_the_user_is_chained_and_given_back() {
    let scratch = Scratch::repository();
    hook(&scratch, ".husky/_", "pre-commit", "echo husky >> ../ran; . \"$(dirname \"$0\")/h\"");
    scratch.write(".husky/_/h", "echo h >> ../ran\n");
    git(&scratch, None, &["config", "core.hooksPath", ".husky/_"]).ok();
    scratch.baton(&["init", "--yes", "--agents", "claude"]).ok();
    assert!(hooks_path(&scratch).ends_with(".git/baton/hooks"));
    git(&scratch, None, &["commit", "-q", "--allow-empty", "-m", "x"]).ok();
    assert_eq!(std::fs::read_to_string(scratch.path("ran")).unwrap(), "husky\nh\n");
    // Its own install sets the path anew, which would leave the door open without a word.
    git(&scratch, None, &["config", "core.hooksPath", ".husky/_"]).ok();
    let doctor = scratch.baton(&["doctor"]);
    assert_eq!(doctor.code, 1, "{doctor:?}");
    assert!(doctor.out.contains("core.hooksPath was set anew, to .husky/_"), "{doctor:?}");
    scratch.baton(&["init", "--yes"]).ok();
    scratch.baton(&["doctor"]).ok();
    scratch.baton(&["init", "--remove", "--yes"]).ok();
    assert_eq!(hooks_path(&scratch), ".husky/_");
}

#[test]
fn lesson_36_everyday_git_works_under_the_hooks() {
    let scratch = wired();
    let origin = scratch.path("origin.git");
    // Somebody else holds what all of this is about: known commits pass all the same.
    let (ann, bob) = (scratch.session("ann"), scratch.session("bob"));
    let run = |words: &[&str]| git(&scratch, Some(&bob), words).ok();
    run(&["add", "-A"]);
    run(&["commit", "-qm", "wiring"]);
    run(&["clone", "-q", "--bare", ".", origin.to_str().unwrap()]);
    run(&["remote", "add", "origin", origin.to_str().unwrap()]);
    run(&["fetch", "-q"]);
    run(&["switch", "-qc", "topic"]);
    scratch.write("one.txt", "1\n");
    run(&["add", "one.txt"]);
    run(&["commit", "-qm", "one"]);
    run(&["switch", "-q", "main"]);
    scratch.write("two.txt", "2\n");
    run(&["add", "two.txt"]);
    run(&["commit", "-qm", "two"]);
    run(&["push", "-q", "origin", "main"]);
    let other = scratch.path("other");
    run(&["clone", "-q", origin.to_str().unwrap(), other.to_str().unwrap()]);
    let there = other.to_str().unwrap();
    std::fs::write(other.join("two.txt"), "from elsewhere\n").unwrap();
    run(&["-C", there, "commit", "-qam", "elsewhere"]);
    run(&["-C", there, "push", "-q"]);
    let everything = ["one.txt", "two.txt", "src", ".claude", "AGENTS.md", "--reason", "all of it"];
    scratch.acts(&ann, &[&["claim"][..], &everything].concat()).ok();
    run(&["fetch", "-q"]);
    run(&["pull", "-q", "--ff-only", "origin", "main"]);
    run(&["rebase", "-q", "main", "topic"]);
    scratch.write("one.txt", "changed\n");
    run(&["stash", "-q"]);
    run(&["stash", "pop", "-q"]);
    run(&["checkout", "-q", "one.txt"]);
    run(&["commit", "-q", "--amend", "-m", "one again", "--no-verify"]);
    run(&["switch", "-q", "main"]);
    run(&["merge", "-q", "--no-edit", "topic"]);
    run(&["branch", "-D", "topic"]);
    run(&["pull", "-q", "--rebase", "origin", "main"]);
    run(&["tag", "v1"]);
    run(&["gc", "-q"]);
    let tree = scratch.path("linked");
    run(&["worktree", "add", "-q", tree.to_str().unwrap()]);
    run(&["fsck", "--no-dangling"]);
}

#[test]
fn baton_commit_runs_the_hooks_of_the_user_and_not_its_own() {
    let scratch = Scratch::repository();
    let log = scratch.path("ran");
    hook(&scratch, ".git/hooks", "pre-commit", &format!("echo \"$0\" >> '{}'", log.display()));
    scratch.baton(&["init", "--yes", "--agents", "claude"]).ok();
    let ann = scratch.session("ann");
    scratch.git(&["config", "user.name", "Ann"]);
    scratch.git(&["config", "user.email", "ann@example.invalid"]);
    scratch.write("new.txt", "x\n");
    scratch.acts(&ann, &["commit", "-m", "new", "new.txt"]).ok();
    let ran = std::fs::read_to_string(log).unwrap();
    assert!(ran.contains(".git/hooks/pre-commit") && !ran.contains("baton/hooks"), "{ran}");
    assert_eq!(ran.lines().count(), 1, "{ran}");
}

/// A hook where any tool puts it that asks git.
fn hook_in_ours(scratch: &Scratch, name: &str, text: &str) {
    let folder = git(scratch, None, &["rev-parse", "--git-path", "hooks"]).ok().out;
    assert!(folder.trim().ends_with(".git/baton/hooks"), "{folder}");
    hook(scratch, folder.trim(), name, text);
}

#[test]
fn lesson_14_a_hook_of_the_user_in_our_folder_is_brought_home() {
    let scratch = wired();
    let ours = scratch.store().join("hooks");
    hook_in_ours(&scratch, "post-commit", "echo post >> ../ran");
    hook_in_ours(&scratch, "pre-commit", "echo pre >> ../ran");
    hook_in_ours(&scratch, "post-index-change", "echo index >> ../ran");
    let doctor = scratch.baton(&["doctor"]);
    assert_eq!(doctor.code, 1, "nobody judges commits any more: {doctor:?}");
    assert!(doctor.out.contains("not Baton's any more: pre-commit"), "{doctor:?}");
    let said = scratch.baton(&["init", "--yes"]).ok();
    assert!(said.out.contains("moved") && said.out.contains("is called from there"), "{said:?}");
    for name in ["post-commit", "pre-commit", "post-index-change"] {
        let home = scratch.root().join(".git/hooks").join(name);
        assert!(std::fs::read_to_string(home).unwrap().contains("../ran"), "{name}");
        let text = std::fs::read_to_string(ours.join(name)).unwrap();
        assert!(text.contains("theirs="), "{name}: {text}");
    }
    scratch.baton(&["doctor"]).ok();
    scratch.write("new.txt", "x\n");
    git(&scratch, None, &["add", "new.txt"]).ok();
    git(&scratch, None, &["commit", "-qm", "x"]).ok();
    let ran = std::fs::read_to_string(scratch.path("ran")).unwrap();
    assert!(ran.contains("pre\n") && ran.contains("post\n") && ran.contains("index\n"), "{ran}");
    // Taking out takes only ours.
    hook_in_ours(&scratch, "commit-msg", "echo late >> ../ran");
    scratch.baton(&["init", "--remove", "--yes"]).ok();
    assert!(!ours.exists(), "nothing is left there");
    git(&scratch, None, &["commit", "-q", "--allow-empty", "-m", "x"]).ok();
    assert!(std::fs::read_to_string(scratch.path("ran")).unwrap().contains("late\n"));
}

#[test]
fn two_hooks_of_one_name_are_both_kept_and_told() {
    let scratch = Scratch::repository();
    hook(&scratch, ".git/hooks", "post-commit", "echo one >> ../ran");
    scratch.baton(&["init", "--yes", "--agents", "claude"]).ok();
    hook_in_ours(&scratch, "post-commit", "echo two >> ../ran");
    let changed = scratch.store().join("hooks/pre-commit");
    let text = std::fs::read_to_string(&changed).unwrap();
    std::fs::write(&changed, format!("{text}# mine\n")).unwrap();
    for words in [&["init", "--yes"][..], &["init", "--remove", "--yes"]] {
        let said = scratch.baton(words);
        assert_eq!(said.code, 1, "{said:?}");
        assert!(said.err.contains("has another of this name"), "{said:?}");
    }
    let read = |file: &str| std::fs::read_to_string(scratch.root().join(file)).unwrap();
    assert!(read(".git/hooks/post-commit").contains("echo one"));
    assert!(read(".git/baton/hooks/post-commit").contains("echo two"));
    let kept = std::fs::read_dir(scratch.store().join("hooks")).unwrap();
    let kept: Vec<String> =
        kept.map(|one| one.unwrap().file_name().into_string().unwrap()).collect();
    assert!(kept.iter().any(|name| name.starts_with("pre-commit.changed-")), "{kept:?}");
    assert_eq!(kept.len(), 2, "{kept:?}");
}

#[test]
fn many_who_wire_at_once_all_succeed() {
    let scratch = Scratch::repository();
    let words = ["init", "--yes", "--agents", "claude,codex"];
    let all: Vec<_> = (0..5)
        .map(|_| {
            let mut command = scratch.command(&words);
            command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
            command.spawn().unwrap()
        })
        .collect();
    for one in all {
        Said::from(one.wait_with_output().unwrap()).ok();
    }
}

#[test]
fn a_path_that_is_no_text_is_told_and_nothing_is_half_wired() {
    use std::os::unix::ffi::OsStrExt as _;
    let scratch = Scratch::repository();
    let odd = scratch.path("").join(std::ffi::OsStr::from_bytes(b"r\xffpo"));
    std::fs::rename(scratch.root(), &odd).unwrap();
    let run = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_baton"));
        scratch.clean(&mut command);
        Said::from(command.current_dir(&odd).args(words).output().unwrap())
    };
    let said = run(&["init", "--yes", "--agents", "claude"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains("the path of this repository is not UTF-8"), "{said:?}");
    let said = run(&["doctor"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.out.contains("not UTF-8") && !said.err.contains("panicked"), "{said:?}");
    assert_eq!(run(&["init", "--remove", "--yes"]).code, 0);
    let mut command = Command::new("git");
    scratch.clean(&mut command);
    let set = command.current_dir(&odd).args(["config", "core.hooksPath"]).output().unwrap();
    assert!(set.stdout.is_empty(), "{set:?}");
}

#[test]
fn git_goes_on_when_baton_is_gone() {
    let scratch = Scratch::repository();
    let copy = scratch.path("bin/baton");
    std::fs::create_dir(copy.parent().unwrap()).unwrap();
    // Not by ourselves: a test beside this one that starts a process would hold the copy open.
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_baton")).arg(&copy).status().unwrap();
    assert!(copied.success());
    let mut command = Command::new(&copy);
    scratch.clean(&mut command);
    command.current_dir(scratch.root()).args(["init", "--yes", "--agents", "claude"]);
    Said::from(command.output().unwrap()).ok();
    std::fs::remove_file(copy).unwrap();
    let mut command = Command::new("git");
    scratch.clean(&mut command);
    command.env("PATH", path_without_clients()).current_dir(scratch.root());
    command.args(["-c", "user.name=A", "-c", "user.email=a@b.invalid", "commit", "-q"]);
    let said = Said::from(command.args(["--allow-empty", "-m", "x"]).output().unwrap()).ok();
    assert!(said.err.contains("the program is not there any more"), "{said:?}");
}

/// A command in a repository that is not in its usual place.
fn at(scratch: &Scratch, folder: &str, words: &[&str]) -> Said {
    let mut command = match words[0] {
        "git" => {
            let mut git = Command::new("git");
            scratch.clean(&mut git);
            git.args(["-c", "user.name=A", "-c", "user.email=a@b.invalid"]).args(&words[1..]);
            git
        }
        _ => scratch.command(words),
    };
    command.current_dir(scratch.path(folder)).output().unwrap().into()
}

fn ran(scratch: &Scratch) -> String {
    let text = std::fs::read_to_string(scratch.path("ran")).unwrap_or_default();
    let _ = std::fs::remove_file(scratch.path("ran"));
    text
}

const COMMIT: [&str; 6] = ["git", "commit", "-q", "--allow-empty", "-m", "x"];

fn copied(scratch: &Scratch, to: &str) {
    let copied = Command::new("cp").arg("-a").arg(scratch.root()).arg(scratch.path(to)).status();
    assert!(copied.unwrap().success());
}

/// The path that git has is of the old place, where nothing is any more.
#[test]
fn lesson_14_a_repository_that_was_moved_gets_its_hooks_back() {
    for setting in [None, Some("tools/hooks")] {
        let scratch = Scratch::repository();
        let own = setting.unwrap_or(".git/hooks");
        hook(&scratch, own, "pre-commit", "echo \"own $0\" >> ../ran");
        let absolute = scratch.root().join(own).canonicalize().unwrap();
        if setting.is_some() {
            let value = absolute.to_str().unwrap();
            git(&scratch, None, &["config", "core.hooksPath", value]).ok();
        }
        let before = std::fs::read(scratch.root().join(".git/config")).unwrap();
        scratch.baton(&["init", "--yes", "--agents", "claude"]).ok();
        std::fs::rename(scratch.root(), scratch.path("moved")).unwrap();
        let doctor = at(&scratch, "moved", &["doctor"]);
        assert_eq!(doctor.code, 1, "{doctor:?}");
        assert!(doctor.out.contains("as after a move or a copy"), "{doctor:?}");
        at(&scratch, "moved", &["init", "--yes"]).ok();
        at(&scratch, "moved", &["doctor"]).ok();
        at(&scratch, "moved", &COMMIT).ok();
        let said = ran(&scratch);
        assert!(said.starts_with("own ") && said.contains(&format!("moved/{own}/")), "{said}");
        at(&scratch, "moved", &["init", "--remove", "--yes"]).ok();
        let now = std::fs::read_to_string(scratch.path("moved/.git/config")).unwrap();
        let before = String::from_utf8(before).unwrap().replace("/repo/", "/moved/");
        assert_eq!(now, before, "as it was, in the new place");
        assert!(!scratch.path("moved/.claude").exists(), "also files are known again");
        at(&scratch, "moved", &COMMIT).ok();
        assert!(ran(&scratch).starts_with("own "));
    }
}

#[test]
fn lesson_14_taking_out_in_a_moved_repository_leaves_no_dead_path() {
    let scratch = Scratch::repository();
    hook(&scratch, ".git/hooks", "pre-commit", "echo own >> ../ran");
    scratch.baton(&["init", "--yes", "--agents", "claude"]).ok();
    std::fs::rename(scratch.root(), scratch.path("moved")).unwrap();
    at(&scratch, "moved", &["init", "--remove", "--yes"]).ok();
    assert_eq!(at(&scratch, "moved", &["git", "config", "core.hooksPath"]).out, "");
    at(&scratch, "moved", &COMMIT).ok();
    assert_eq!(ran(&scratch), "own\n");
}

/// An older Baton took its own old folder for the user's, and did not say where its store was.
#[test]
fn lesson_14_what_an_older_baton_remembered_wrongly_is_set_right() {
    let scratch = Scratch::repository();
    hook(&scratch, ".git/hooks", "pre-commit", "echo own >> ../ran");
    scratch.baton(&["init", "--yes", "--agents", "claude"]).ok();
    let file = scratch.store().join("wiring.json");
    let text = std::fs::read_to_string(&file).unwrap();
    let mut record: serde_json::Value = serde_json::from_str(&text).unwrap();
    let old = "/gone/away/.git/baton/hooks";
    record["hooks"] = serde_json::json!({ "before": old, "theirs": old });
    record.as_object_mut().unwrap().remove("store");
    std::fs::write(&file, record.to_string()).unwrap();
    scratch.baton(&["init", "--yes"]).ok();
    git(&scratch, None, &COMMIT[1..]).ok();
    assert_eq!(ran(&scratch), "own\n");
    scratch.baton(&["init", "--remove", "--yes"]).ok();
    assert_eq!(hooks_path(&scratch), "");
}

#[test]
fn lesson_14_a_copy_has_hooks_of_its_own() {
    let scratch = Scratch::repository();
    hook(&scratch, ".git/hooks", "pre-commit", "echo \"$0\" >> ../ran");
    scratch.baton(&["init", "--yes", "--agents", "claude"]).ok();
    copied(&scratch, "copy");
    copied(&scratch, "bare");
    assert_eq!(at(&scratch, "copy", &["doctor"]).code, 1);
    at(&scratch, "copy", &["init", "--yes"]).ok();
    at(&scratch, "copy", &["doctor"]).ok();
    at(&scratch, "copy", &COMMIT).ok();
    assert!(ran(&scratch).contains("copy/.git/hooks/pre-commit"));
    at(&scratch, "bare", &["init", "--remove", "--yes"]).ok();
    at(&scratch, "bare", &COMMIT).ok();
    assert_eq!(ran(&scratch), ".git/hooks/pre-commit\n");
    // The first is as it was.
    scratch.baton(&["doctor"]).ok();
    git(&scratch, None, &COMMIT[1..]).ok();
    assert!(ran(&scratch).contains("repo/.git/hooks/pre-commit"));
}

#[test]
fn a_hook_that_a_manager_puts_there_again_is_taken() {
    let scratch = Scratch::repository();
    let own = "#!/bin/sh\nexit 0\n";
    let hooks = scratch.root().join(".git/hooks");
    std::fs::create_dir_all(&hooks).unwrap();
    let put = |folder: &std::path::Path, text: &str| {
        let file = folder.join("pre-commit");
        let _ = std::fs::remove_file(&file);
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    put(&hooks, own);
    scratch.baton(&["init", "--yes", "--agents", "claude"]).ok();
    let batons = scratch.store().join("hooks");
    put(&batons, own);
    scratch.baton(&["init", "--yes"]).ok();
    assert_eq!(std::fs::read_to_string(hooks.join("pre-commit")).unwrap(), own);
    assert_ne!(std::fs::read_to_string(batons.join("pre-commit")).unwrap(), own);
    put(&batons, "#!/bin/sh\nexit 1\n");
    let said = scratch.baton(&["init", "--yes"]).refused(1);
    assert!(said.err.contains("has another of this name"), "{said:?}");
}

#[test]
fn in_a_linked_tree_it_is_said_that_gits_hooks_go_for_all() {
    let scratch = Scratch::repository();
    scratch.baton(&["init", "--yes", "--agents", "claude"]).ok();
    scratch.git(&["worktree", "add", "-q", "../linked"]);
    let linked = scratch.path("linked");
    let linked = linked.to_str().unwrap();
    let said = scratch.baton(&["-C", linked, "init", "--remove", "--yes"]).ok();
    assert!(said.err.contains("no tree of it has Baton's any more"), "{said:?}");
    scratch.baton(&["init", "--yes"]).ok();
    let said = scratch.baton(&["init", "--remove", "--yes"]).ok();
    assert!(!said.err.contains("no tree of it"), "{said:?}");
}

#[test]
fn what_stays_for_one_person_stays_out_of_git() {
    let scratch = Scratch::repository();
    scratch.baton(&["init", "--yes", "--personal", "--agents", "claude,codex,gemini"]).ok();
    let team = ["init", "--yes", "--team", "--agents", "claude"];
    scratch.baton(&team).ok();
    scratch.baton(&team).ok();
    let seen = scratch.git(&["status", "--short", "-uall"]);
    assert!(seen.contains(".claude/settings.json") && seen.contains(".mcp.json"), "{seen}");
    assert!(!seen.contains(".codex") && !seen.contains(".gemini"), "{seen}");
    scratch.baton(&["init", "--yes", "--team", "--agents", "codex,gemini"]).ok();
    let seen = scratch.git(&["status", "--short", "-uall"]);
    assert!(seen.contains(".codex/hooks.json") && seen.contains(".gemini/settings.json"), "{seen}");
    let exclude = std::fs::read_to_string(scratch.root().join(".git/info/exclude")).unwrap();
    assert!(!exclude.contains("baton"), "{exclude}");
}
