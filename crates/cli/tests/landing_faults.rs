//! The merge queue under faults: a runner that dies at every step, strange repositories, and
//! generated histories whose outcome plain git knows.
//!
//! After each of them the target is right, nothing is lost, and `git fsck` finds nothing.

use std::process::Stdio;

use serde_json::json;

use crate::harness::{Said, Scratch};
use crate::landing::{CHECKED, at, branch, branch_from, states, workspace};

/// Every step at which a runner may die, in their order.
const STEPS: [&str; 8] = [
    "land-checking",
    "land-checked",
    "land-begun",
    "land-intended",
    "land-moved-files",
    "land-moved",
    "land-seen",
    "land-kept",
];

fn dies_at(scratch: &Scratch, step: &str, words: &[&str]) {
    std::fs::write(scratch.root().join(".git/baton/test-hooks"), "").unwrap();
    let mut command = scratch.command(words);
    command.env("BATON_TEST_STOP_AT", step).stderr(Stdio::null()).stdout(Stdio::null());
    let died = command.status().unwrap();
    assert_eq!(died.code(), None, "it should have died at {step}: {died}");
}

#[test]
fn s16_s17_a_runner_killed_at_any_step_is_followed_by_one_that_finishes() {
    for step in STEPS {
        let scratch = workspace(CHECKED);
        branch(&scratch, "one", &[("a", "one\n"), ("added", "x\n")]);
        branch(&scratch, "two", &[("b", "two\n")]);
        scratch.write("d", "dirt\n");
        scratch.baton(&["land", "one", "--queue"]).ok();
        scratch.baton(&["land", "two", "--queue"]).ok();
        dies_at(&scratch, step, &["queue", "run", "--once"]);
        // Whatever is in the target now, the next plain commit takes nothing of it back.
        let landed = at(&scratch, "main:a") == "one\n";
        scratch.write("c", "plain\n");
        scratch.git(&["commit", "-qm", "plain", "c"]);
        if landed {
            assert_eq!(at(&scratch, "main:a"), "one\n", "{step}");
        }
        let said = scratch.baton(&["queue", "run", "--once"]).ok();
        let all = states(&scratch);
        assert!(all.iter().all(|(_, state)| state == "landed"), "{step}: {all:?} {said:?}");
        let texts = ["a", "added", "b", "c"].map(|file| at(&scratch, &format!("main:{file}")));
        assert_eq!(texts, ["one\n", "x\n", "two\n", "plain\n"], "{step}");
        assert_eq!(scratch.git(&["status", "--porcelain"]), " M d\n", "{step}");
        assert_eq!(std::fs::read_to_string(scratch.root().join("d")).unwrap(), "dirt\n");
        scratch.git(&["fsck", "--strict"]);
        scratch.baton(&["journal", "verify"]).ok();
    }
}

#[test]
fn lesson_17_a_push_whose_pusher_died_is_seen_and_not_made_twice() {
    for step in ["land-begun", "land-pushed", "land-seen"] {
        let scratch = workspace(CHECKED);
        scratch.git(&["init", "-q", "--bare", "-b", "main", "../remote.git"]);
        scratch.git(&["remote", "add", "origin", "../remote.git"]);
        scratch.git(&["push", "-q", "origin", "main"]);
        branch(&scratch, "one", &[("a", "one\n")]);
        dies_at(&scratch, step, &["land", "one"]);
        let said = scratch.baton(&["land", "one"]).ok();
        assert!(said.out.contains("landed"), "{step}: {said:?}");
        let merges =
            scratch.git(&["-C", "../remote.git", "rev-list", "--count", "--merges", "main"]);
        assert_eq!(merges, "1\n", "{step}");
        assert_eq!(scratch.git(&["status", "--porcelain"]), "", "{step}");
    }
}

/// Files that cannot grow are what a full disk looks like to whoever writes them.
#[test]
fn s13_where_nothing_can_be_written_nothing_is_half_landed() {
    let scratch = workspace(CHECKED);
    let large = "x\n".repeat(40_000);
    branch(&scratch, "one", &[("a", "one\n"), ("large", &large)]);
    for blocks in [0, 1, 8, 64, 256] {
        let line = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$@\"");
        let mut command = std::process::Command::new("sh");
        scratch.clean(&mut command);
        command.current_dir(scratch.root()).args(["-c", &line, "sh"]);
        command.arg(env!("CARGO_BIN_EXE_baton")).args(["land", "one"]);
        let said = Said::from(command.output().unwrap());
        let landed = at(&scratch, "main:a") == "one\n";
        assert_eq!(said.code == 0, landed, "{blocks}: {said:?}");
        assert!(!said.err.contains("panicked"), "{said:?}");
        let files = scratch.git(&["ls-tree", "--name-only", "main"]);
        assert_eq!(files.contains("large"), landed, "all of it or nothing: {blocks}");
    }
    scratch.baton(&["land", "one"]).ok();
    assert_eq!(at(&scratch, "main:large"), large);
    assert_eq!(scratch.git(&["status", "--porcelain"]), "");
    scratch.git(&["fsck", "--strict"]);
    scratch.baton(&["journal", "verify"]).ok();
}

#[test]
fn a_runner_that_is_killed_takes_its_checks_with_it_and_the_waiter_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let begun = folder.path().join("begun");
    let check = format!("echo x >> {0}; test $(wc -l < {0}) -gt 1 || sleep 600", begun.display());
    let policy = format!(
        "[queue]\ntarget = \"main\"\n[[queue.check]]\nname = \"unit\"\n\
         run = [\"sh\", \"-c\", {check:?}]\n"
    );
    let scratch = workspace(&policy);
    branch(&scratch, "one", &[("a", "one\n")]);
    branch(&scratch, "two", &[("b", "two\n")]);
    let mut first = scratch.command(&["land", "one"]).stderr(Stdio::null()).spawn().unwrap();
    until("the check begins", || begun.exists());
    let second = scratch.command(&["land", "two"]).stderr(Stdio::null()).spawn().unwrap();
    first.kill().unwrap();
    first.wait().unwrap();
    let second = second.wait_with_output().unwrap();
    assert!(second.status.success(), "{second:?}");
    let all = states(&scratch);
    assert!(all.iter().all(|(_, state)| state == "landed"), "{all:?}");
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while !is_so() {
        assert!(std::time::Instant::now() < deadline, "{what}");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

#[track_caller]
fn refused_as(said: Said, code: &str) -> Said {
    let exit = said.code;
    let said = said.refused(exit);
    assert_eq!(said.json()["refused"]["code"], code, "{said:?}");
    said
}

#[test]
fn what_cannot_land_is_told_with_a_next_step() {
    let scratch = workspace(CHECKED);
    let land = |words: &[&str]| {
        let mut all = vec!["land", "--json"];
        all.extend(words);
        scratch.baton(&all)
    };
    refused_as(land(&["nothing"]), "no_branch");
    refused_as(land(&["--", "--output=x"]), "no_branch");
    refused_as(land(&["a\u{1b}b"]), "no_branch");
    refused_as(land(&["main"]), "is_target");
    refused_as(land(&[]), "is_target");
    scratch.git(&["branch", "same"]);
    refused_as(land(&["same"]), "nothing_to_land");
    branch(&scratch, "one", &[("a", "one\n")]);
    refused_as(land(&["one", "--task", "t99"]), "unknown_task");
    scratch.git(&["checkout", "-q", "--detach"]);
    refused_as(land(&[]), "no_branch_here");
    land(&["one"]).ok();
    scratch.git(&["checkout", "-q", "--orphan", "alone"]);
    scratch.git(&["commit", "-qm", "alone"]);
    scratch.git(&["checkout", "-q", "main"]);
    refused_as(land(&["alone"]), "no_base");
    refused_as(scratch.baton(&["queue", "show", "l99", "--json"]), "unknown_landing");
    // Rubbish is shown escaped, and only once.
    let rubbish = [
        (&["queue", "show", "l\u{1b}[2J"][..], "there is no landing \"l\\u{1b}[2J\""),
        (&["land", "b\u{1b}[2J"], "there is no branch \"b\\u{1b}[2J\""),
        (&["sync", "--remote", "r\u{1b}[2J"], "there is no remote \"r\\u{1b}[2J\""),
    ];
    for (words, shown) in rubbish {
        let said = scratch.baton(words).refused(1);
        assert!(said.err.contains(shown), "{said:?}");
    }
    refused_as(scratch.baton(&["queue", "remove", "one", "--json"]), "landing_over");
    refused_as(scratch.baton(&["queue", "retry", "one", "--json"]), "landing_over");
    // A branch whose commit vanished between the line and the run.
    branch(&scratch, "gone", &[("b", "gone\n")]);
    land(&["gone", "--queue"]).ok();
    scratch.git(&["branch", "-D", "gone"]);
    scratch.git(&["reflog", "expire", "--expire=now", "--all"]);
    scratch.git(&["gc", "-q", "--prune=now"]);
    scratch.baton(&["queue", "run", "--once"]).ok();
    let gone = scratch.baton(&["queue", "show", "gone", "--json"]).ok().json();
    assert_eq!((&gone["state"], &gone["cause"]), (&json!("returned"), &json!("gone")));
}

#[test]
fn lesson_31_a_hostile_repository_runs_nothing() {
    let scratch = workspace(CHECKED);
    let canary = scratch.path("canary");
    let fire = format!("touch {}; false", canary.display());
    for (key, value) in [
        ("core.fsmonitor", fire.as_str()),
        ("diff.external", &fire),
        ("merge.evil.driver", &fire),
        ("filter.evil.smudge", &fire),
        ("filter.evil.clean", &fire),
        ("alias.merge-tree", &format!("!{fire}")),
        ("core.sshCommand", &fire),
        ("credential.helper", &format!("!{fire}")),
        ("gpg.program", &fire),
        ("core.hooksPath", "hooks"),
    ] {
        scratch.git(&["config", key, value]);
    }
    for hook in ["reference-transaction", "post-checkout", "pre-commit", "post-merge", "pre-push"] {
        use std::os::unix::fs::PermissionsExt;
        let path = scratch.root().join("hooks").join(hook);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, format!("#!/bin/sh\n{fire}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let quiet = ["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"];
    let mut git = quiet.to_vec();
    git.extend(["-c", "filter.evil.clean=", "-c", "filter.evil.smudge="]);
    let make = |name: &str, text: &str| {
        for words in [
            vec!["checkout", "-q", "-b", name, "main"],
            vec!["add", "-A"],
            vec!["commit", "-qm", name],
            vec!["checkout", "-q", "main"],
        ] {
            if words[0] == "add" {
                scratch.write("a", text);
                scratch.write(".gitattributes", "* merge=evil filter=evil diff=evil\n");
            }
            let all: Vec<&str> = git.iter().copied().chain(words).collect();
            scratch.git(&all);
        }
    };
    make("one", "one\n2\n3\n4\n5\n");
    make("two", "1\n2\n3\n4\ntwo\n");
    std::fs::remove_file(&canary).ok();
    scratch.baton(&["land", "one"]).ok();
    scratch.baton(&["land", "two"]);
    assert!(!canary.exists(), "something of the repository ran");
}

#[test]
fn strange_names_and_submodules_land_as_they_are() {
    let scratch = workspace(CHECKED);
    branch(
        &scratch,
        "strange",
        &[("A", "upper\n"), ("--output=x", "y\n"), ("a b\tc", "z\n"), ("[id]/é", "e\n")],
    );
    scratch.baton(&["land", "strange"]).ok();
    assert_eq!(scratch.git(&["status", "--porcelain"]), "");
    assert_eq!(at(&scratch, "main:--output=x"), "y\n");
    // A pointer of LFS is landed as a pointer: no filter of the repository's runs.
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n";
    branch(&scratch, "large", &[(".gitattributes", "*.bin filter=lfs\n"), ("x.bin", pointer)]);
    scratch.baton(&["land", "large"]).ok();
    assert_eq!(at(&scratch, "main:x.bin"), pointer);
    // A submodule is a name and a commit.
    scratch.git(&["init", "-q", "../inner"]);
    scratch.git(&[
        "-C",
        "../inner",
        "-c",
        "user.name=I",
        "-c",
        "user.email=i@x",
        "commit",
        "--allow-empty",
        "-qm",
        "inner",
    ]);
    scratch.git(&["checkout", "-q", "-b", "sub"]);
    scratch.git(&["-c", "protocol.file.allow=always", "submodule", "add", "-q", "../inner", "mod"]);
    scratch.git(&["commit", "-qm", "sub"]);
    scratch.git(&["checkout", "-q", "main"]);
    std::fs::remove_dir_all(scratch.root().join("mod")).ok();
    scratch.baton(&["land", "sub"]).ok();
    assert!(scratch.git(&["ls-tree", "main", "mod"]).starts_with("160000 commit "));
}

/// Numbers that look random and are the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// What plain git makes of the branches, one after the other, without those that break.
fn expected(scratch: &Scratch, base: &str, branches: &[(String, bool)]) -> (String, Vec<String>) {
    let tree = scratch.path("model");
    let tree = tree.to_str().unwrap().to_owned();
    scratch.git(&["worktree", "add", "-q", "--detach", &tree, base]);
    let mut landed = Vec::new();
    for (name, good) in branches.iter() {
        let mut merge = std::process::Command::new("git");
        merge.current_dir(&tree).args(["-c", "user.name=M", "-c", "user.email=m@x", "merge", "-q"]);
        let merged = merge.args(["--no-ff", "-m", "m", name]).output().unwrap();
        if !merged.status.success() {
            scratch.git(&["-C", &tree, "merge", "--abort"]);
        } else if *good {
            landed.push(name.clone());
        } else {
            scratch.git(&["-C", &tree, "reset", "-q", "--hard", "HEAD^"]);
        }
    }
    let hash = scratch.git(&["-C", &tree, "rev-parse", "HEAD^{tree}"]);
    scratch.git(&["worktree", "remove", "--force", &tree]);
    landed.sort();
    (hash, landed)
}

#[test]
fn generated_histories_land_as_plain_git_would_merge_them() {
    for seed in 1..=4 {
        let scratch = workspace(CHECKED);
        let mut dice = Dice(seed);
        let lines = |dice: &mut Dice| -> String {
            (1..=5)
                .map(|line| match dice.roll(4) {
                    0 => format!("{line} by {}\n", dice.roll(1_000)),
                    _ => format!("{line}\n"),
                })
                .collect()
        };
        for round in 0..3 {
            // Somebody works on the target by hand, too.
            if dice.roll(2) == 0 {
                scratch.write("d", &format!("round {round}\n"));
                scratch.git(&["commit", "-qam", "by hand"]);
            }
            let base = scratch.git(&["rev-parse", "main"]).trim().to_owned();
            let mut branches = Vec::new();
            for number in 0..6 {
                let name = format!("r{round}-b{number}");
                let good = dice.roll(5) != 0;
                let mut files: Vec<(String, String)> = Vec::new();
                for _ in 0..=dice.roll(2) {
                    let file = ["a", "b", "c", "e", "f"][usize::try_from(dice.roll(5)).unwrap()];
                    files.push((file.to_owned(), lines(&mut dice)));
                }
                if !good {
                    files.push((format!("bad-{name}"), String::new()));
                }
                files.push((format!("own/{name}"), name.clone()));
                let files: Vec<(&str, &str)> =
                    files.iter().map(|(file, text)| (file.as_str(), text.as_str())).collect();
                branch_from(&scratch, &name, &base, &files);
                branches.push((name, good));
            }
            let (tree, landed) = expected(&scratch, &base, &branches);
            for (name, _) in &branches {
                scratch.baton(&["land", name, "--queue"]).ok();
            }
            scratch.baton(&["queue", "run", "--once"]).ok();
            let mut got: Vec<String> = states(&scratch)
                .into_iter()
                .filter(|(name, state)| {
                    name.starts_with(&format!("r{round}-")) && state == "landed"
                })
                .map(|(name, _)| name)
                .collect();
            got.sort();
            assert_eq!(got, landed, "seed {seed}, round {round}");
            assert_eq!(scratch.git(&["rev-parse", "main^{tree}"]), tree, "seed {seed}");
            assert_eq!(scratch.git(&["status", "--porcelain"]), "", "seed {seed}");
        }
        scratch.git(&["fsck", "--strict"]);
        scratch.baton(&["journal", "verify"]).ok();
    }
}
