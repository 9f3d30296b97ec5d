//! Working trees, rescued work and numbers, with real git: made whole or not at all, and nothing
//! gone before it is safe elsewhere.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::harness::{Said, Scratch};

/// Every step at which `worktree new` may die.
const MAKING: [&str; 8] = [
    "tree-planned",
    "tree-branched",
    "tree-foldered",
    "tree-added",
    "tree-named",
    "tree-signed",
    "tree-carried",
    "tree-set-up",
];

impl Scratch {
    fn tree(&self, leaf: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("repo.trees").join(leaf)
    }

    fn in_tree(&self, leaf: &str, words: &[&str]) -> String {
        let folder = self.tree(leaf);
        let mut all = vec!["-C", folder.to_str().unwrap()];
        all.extend(words);
        self.git(&all)
    }

    /// Works in a tree: one more commit there.
    fn commits(&self, leaf: &str, file: &str) {
        std::fs::write(self.tree(leaf).join(file), "new\n").unwrap();
        self.in_tree(leaf, &["add", file]);
        self.in_tree(leaf, &["commit", "-qm", file]);
    }

    fn person_acts(&self, words: &[&str]) -> Said {
        let token = self.path("home/person");
        if !token.exists() {
            self.baton(&["person", "token", token.to_str().unwrap()]).ok();
        }
        self.command(words).env("BATON_PERSON_TOKEN_FILE", token).output().unwrap().into()
    }

    /// No tree, no branch, no claim: as if it had never been asked for.
    fn nothing_left(&self, why: &str) {
        let branches = self.git(&["branch", "--list", "baton/*"]);
        assert_eq!(branches, "", "{why}");
        assert_eq!(self.git(&["worktree", "list"]).lines().count(), 1, "{why}");
        assert!(!self.tree("x").exists() && !self.path("repo.trees").exists(), "{why}");
        let claims = self.baton(&["claims", "--json"]).ok().json();
        assert_eq!(claims["claims"].as_array().map_or(0, Vec::len), 0, "{why}: {claims}");
        self.baton(&["journal", "verify"]).ok();
        self.git(&["fsck", "--no-dangling"]);
    }
}

fn rescues(scratch: &Scratch) -> Vec<Value> {
    let list = scratch.baton(&["rescue", "list", "--json"]).ok().json();
    list["rescues"].as_array().unwrap().clone()
}

#[test]
fn a_tree_is_made_with_everything_that_was_asked_for() {
    Scratch::on_each_store("", |scratch| {
        scratch.write(".gitignore", ".env\n");
        scratch.git(&["add", ".gitignore"]);
        scratch.git(&["commit", "-qm", "second"]);
        scratch.write(".env", "SECRET=1\n");
        scratch.git(&["config", "user.name", "Ann"]);
        scratch.git(&["config", "user.email", "ann@example.invalid"]);
        let otter = scratch.session("otter");
        scratch.acts(&otter, &["task", "add", "Fix the parser!"]).ok();
        let setup = "echo $PORT > port; echo told";
        let words =
            ["worktree", "new", "--json", "--op-id", "one", "--task", "t1", "--copy", ".env"];
        let words = [&words[..], &["--ports", "3", "--setup", setup]].concat();
        let said = scratch.acts(&otter, &words).ok();
        assert_eq!(said.err, "told\n", "what the setup wrote");
        let made = said.json();
        let leaf = "t1-fix-the-parser";
        assert_eq!(made["branch"], "baton/t1-fix-the-parser");
        assert_eq!(made["path"], scratch.tree(leaf).to_str().unwrap());
        assert_eq!(made["ports"].as_array().unwrap().len(), 3);
        assert_eq!(made["stage"], "made");
        assert_eq!(made["commit"], scratch.git(&["rev-parse", "main"]).trim());
        let read = |file: &str| std::fs::read_to_string(scratch.tree(leaf).join(file)).unwrap();
        assert_eq!(read(".env"), "SECRET=1\n");
        assert_eq!(read("port").trim(), made["ports"][0].to_string());
        assert_eq!(read("baton.toml"), "", "the wiring that is not committed yet");
        assert_eq!(scratch.in_tree(leaf, &["config", "user.name"]).trim(), "otter");
        let beside = scratch.in_tree(leaf, &["config", "baton.coAuthor"]);
        assert_eq!(beside.trim(), "Ann <ann@example.invalid>");
        assert_eq!(scratch.git(&["config", "user.name"]).trim(), "Ann", "here as ever");
        let again = scratch.acts(&otter, &words).ok();
        assert_eq!(again.json()["tree"], made["tree"], "a retry makes nothing twice");
        let list = scratch.baton(&["worktree", "list", "--json"]).ok().json();
        let tree = &list["trees"][1];
        assert_eq!((&tree["task"], &tree["owner"]), (&"t1".into(), &"otter".into()), "{list}");
        assert_eq!(tree["seen"]["dirty"], serde_json::json!(["port"]), "copies are no work");
        // Whoever works there is in the same workspace.
        let mut inside = scratch.command(&["claim", "src/a.rs"]);
        inside.current_dir(scratch.tree(leaf)).env("BATON_SESSION", &otter);
        assert!(inside.status().unwrap().success());
        let other = scratch.session("bob");
        let taken = scratch.acts(&other, &["worktree", "new", "--task", "t1"]).refused(1);
        assert!(taken.err.contains("made by otter"), "{taken:?}");
        let port = format!("@port/{}", made["ports"][0]);
        scratch.acts(&other, &["claim", &port]).refused(1);
        scratch.baton(&["journal", "verify"]).ok();
        assert!(scratch.baton(&["journal"]).ok().out.contains("is making the tree"));
    });
}

#[test]
fn lesson_21_a_step_that_fails_leaves_nothing() {
    Scratch::on_each_store("", |scratch| {
        let otter = scratch.session("otter");
        for (words, code) in [
            (&["--setup", "echo half > half; exit 3"][..], "exit 3"),
            (&["--setup", "no-such-program", "x"], "exit 127"),
            (&["--copy", "missing"], "missing cannot be copied"),
            (&["--copy", "../outside"], "not a path within"),
            (&["--copy", ".git/config"], "not a path within"),
            (&["--copy", "README.md"], "it is committed"),
            (&["--base", "nowhere"], "there is no commit"),
            (&["--base=--output=x"], "there is no commit"),
            (&["--task", "t77"], "t77"),
        ] {
            let words = [&["worktree", "new", "x"][..], words].concat();
            let said = scratch.acts(&otter, &words);
            assert_eq!(said.code, 1, "{words:?}: {said:?}");
            assert!(said.err.contains(code), "{words:?}: {said:?}");
            scratch.nothing_left(code);
        }
        for bad in ["--output=x", "A", "a b", "a\u{1b}[2J"] {
            let said = scratch.acts(&otter, &["worktree", "new", "--", bad]);
            assert_eq!(said.code, 2, "{bad:?}: {said:?}");
            assert!(!said.err.contains('\u{1b}'), "{said:?}");
        }
        scratch.acts(&otter, &["worktree", "new", "x", "--ports", "101"]).refused(2);
        scratch.nothing_left("bad names");
        scratch.acts(&otter, &["worktree", "new", "x"]).ok();
    });
}

#[test]
fn lesson_21_a_maker_killed_at_any_step_is_cleared_up_after() {
    for point in MAKING {
        let scratch = Scratch::with_policy("");
        scratch.allow_test_hooks();
        let otter = scratch.session("otter");
        let words = ["worktree", "new", "x", "--ports", "2"];
        let mut command = scratch.command(&words);
        command.env("BATON_SESSION", &otter).env("BATON_TEST_STOP_AT", point);
        let died = command.output().unwrap();
        assert_eq!(died.status.code(), None, "{point}: it was to die: {died:?}");
        // Collecting clears up, and so does simply asking again.
        if point.len() % 2 == 0 {
            scratch.acts(&otter, &["worktree", "gc"]).ok();
            scratch.nothing_left(point);
        }
        let made = scratch.acts(&otter, &[&words[..], &["--json"]].concat()).ok().json();
        assert_eq!(made["stage"], "made", "{point}");
        let list = scratch.baton(&["worktree", "list", "--json"]).ok().json();
        assert_eq!(list["trees"].as_array().unwrap().len(), 2, "{point}: {list}");
        let claims = scratch.baton(&["claims", "--json"]).ok().json();
        assert_eq!(claims["claims"].as_array().unwrap().len(), 1, "{point}: {claims}");
        scratch.baton(&["journal", "verify"]).ok();
        scratch.git(&["fsck", "--no-dangling"]);
    }
}

#[test]
fn what_somebody_else_put_there_is_left_alone() {
    let scratch = Scratch::with_policy("");
    scratch.allow_test_hooks();
    let otter = scratch.session("otter");
    let new = |words: &[&str]| scratch.acts(&otter, &[&["worktree", "new"][..], words].concat());
    std::fs::create_dir_all(scratch.tree("x")).unwrap();
    std::fs::write(scratch.tree("x").join("theirs"), "1").unwrap();
    assert!(new(&["x"]).refused(1).err.contains("is there already"));
    scratch.git(&["branch", "baton/y"]);
    assert!(new(&["y"]).refused(1).err.contains("branch baton/y is there already"));
    scratch.git(&["branch", "baton/Z"]);
    assert!(new(&["z"]).refused(1).err.contains("branch baton/Z"), "differs only in case");
    assert!(new(&["v", "--dir", ".git/v"]).refused(1).err.contains("git's own folder"));
    // Planned, killed; then somebody else takes the folder: the repair leaves it alone.
    let mut command = scratch.command(&["worktree", "new", "w"]);
    command.env("BATON_SESSION", &otter).env("BATON_TEST_STOP_AT", "tree-branched");
    command.output().unwrap();
    std::fs::create_dir_all(scratch.tree("w")).unwrap();
    std::fs::write(scratch.tree("w").join("theirs"), "1").unwrap();
    scratch.acts(&otter, &["worktree", "gc"]).ok();
    for leaf in ["x", "w"] {
        assert!(scratch.tree(leaf).join("theirs").exists(), "{leaf}");
    }
    assert_eq!(scratch.git(&["branch", "--list", "baton/*"]).lines().count(), 2);
}

#[test]
fn where_there_is_nothing_to_work_on_it_is_said() {
    let plain = Scratch::repository();
    std::fs::remove_dir_all(plain.root().join(".git")).unwrap();
    plain.baton(&["init", "--yes", "--agents", "none"]).ok();
    let otter = plain.session("otter");
    assert!(plain.acts(&otter, &["worktree", "new", "x"]).refused(1).err.contains("no git"));
    plain.acts(&otter, &["rescue", "list"]).refused(1);
    plain.acts(&otter, &["next-number", "db"]).ok();

    let unborn = Scratch::repository();
    std::fs::remove_dir_all(unborn.root().join(".git")).unwrap();
    unborn.git(&["init", "-q", "-b", "main"]);
    unborn.baton(&["init", "--yes", "--agents", "none"]).ok();
    let otter = unborn.session("otter");
    assert!(unborn.acts(&otter, &["worktree", "new", "x"]).refused(1).err.contains("no commit"));
    unborn.nothing_left("unborn");

    let detached = Scratch::repository();
    detached.git(&["checkout", "-q", "--detach"]);
    detached.git(&["branch", "-D", "main"]);
    detached.baton(&["init", "--yes", "--agents", "none"]).ok();
    let otter = detached.session("otter");
    let made = detached.acts(&otter, &["worktree", "new", "x", "--json"]).ok().json();
    assert_eq!(made["base"], "HEAD");

    let bare = Scratch::repository();
    bare.git(&["clone", "-q", "--bare", ".", "../bare.git"]);
    let mut inside = bare.command(&["worktree", "new", "x"]);
    let said: Said = inside.current_dir(bare.path("bare.git")).output().unwrap().into();
    assert_ne!(said.code, 0, "{said:?}");
}

#[test]
fn lesson_16_s17_a_tree_goes_only_when_nothing_is_lost() {
    Scratch::on_each_store("", |scratch| {
        scratch.git(&["add", "-A"]);
        scratch.git(&["commit", "-qm", "wiring"]);
        let (otter, bob) = (scratch.session("otter"), scratch.session("bob"));
        scratch.acts(&otter, &["worktree", "new", "x"]).ok();
        let remove = |who: &str| scratch.acts(who, &["worktree", "remove", "x"]);
        assert!(remove(&bob).refused(1).err.contains("otter holds it"));
        std::fs::write(scratch.tree("x").join("src/a.rs"), "dirty\n").unwrap();
        std::fs::write(scratch.tree("x").join("untracked"), "new\n").unwrap();
        let dirty = remove(&otter).refused(1);
        assert!(dirty.err.contains("uncommitted changes in 2 files"), "{dirty:?}");
        scratch.in_tree("x", &["add", "-A"]);
        scratch.in_tree("x", &["commit", "-qm", "work"]);
        let unmerged = remove(&otter).refused(1);
        assert!(unmerged.err.contains("1 commits on it are on no other branch"), "{unmerged:?}");
        let mut inside = Command::new("sleep");
        let mut worker = inside.arg("60").current_dir(scratch.tree("x")).spawn().unwrap();
        scratch.git(&["merge", "-q", "baton/x"]);
        let used = remove(&otter);
        worker.kill().unwrap();
        worker.wait().unwrap();
        assert!(used.refused(1).err.contains("(sleep) works there"));
        assert!(scratch.tree("x").exists());
        let tip = scratch.git(&["rev-parse", "baton/x"]);
        let words = ["worktree", "remove", "baton/x", "--json", "--op-id", "gone"];
        let removed = scratch.acts(&otter, &words).ok().json();
        assert_eq!(removed["branch_removed"], true);
        assert!(!scratch.tree("x").exists());
        scratch.nothing_left_but_rescues();
        let reference = removed["rescued"][0].as_str().unwrap();
        assert_eq!(scratch.git(&["rev-parse", reference]), tip);
        assert_eq!(scratch.acts(&otter, &words).ok().json(), removed, "a retry says the same");
        remove(&otter).refused(1);
        let main = scratch.root();
        let main = ["worktree", "remove", main.to_str().unwrap()];
        assert!(scratch.acts(&otter, &main).refused(1).err.contains("main checkout"));
        scratch.baton(&["journal", "verify"]).ok();
    });
}

impl Scratch {
    fn nothing_left_but_rescues(&self) {
        assert_eq!(self.git(&["branch", "--list", "baton/*"]), "");
        assert_eq!(self.git(&["worktree", "list"]).lines().count(), 1);
        let claims = self.baton(&["claims", "--json"]).ok().json();
        assert_eq!(claims["claims"].as_array().map_or(0, Vec::len), 0, "{claims}");
    }
}

#[test]
fn s17_force_is_a_persons_and_everything_comes_back() {
    let scratch = Scratch::with_policy("");
    scratch.git(&["add", "-A"]);
    scratch.git(&["commit", "-qm", "wiring"]);
    let otter = scratch.session("otter");
    scratch.acts(&otter, &["worktree", "new", "x"]).ok();
    scratch.commits("x", "committed");
    std::fs::write(scratch.tree("x").join("src/a.rs"), "changed\n").unwrap();
    std::fs::write(scratch.tree("x").join("new file"), b"\xff\x00binary").unwrap();
    let force = ["worktree", "remove", "x", "--force"];
    assert!(scratch.acts(&otter, &force).refused(1).err.contains("a person"));
    scratch.person_acts(&force).ok();
    scratch.nothing_left_but_rescues();
    let kept = rescues(&scratch);
    assert_eq!(kept.len(), 2, "{kept:?}");
    let named = |end: &str| {
        let found = kept.iter().find(|one| one["name"].as_str().unwrap().contains(end)).unwrap();
        found["name"].as_str().unwrap().to_owned()
    };
    let (changes, branch) = (named("/changes"), named("/branch-"));
    let shown = scratch.baton(&["rescue", "show", &changes]).ok().out;
    assert!(shown.contains("+changed") && shown.contains("new file"), "{shown}");
    // A changed file is never overwritten.
    scratch.write("src/a.rs", "mine\n");
    let refused = scratch.acts(&otter, &["rescue", "restore", &changes]).refused(1);
    assert!(refused.err.contains("src/a.rs") && refused.err.contains("not overwritten"));
    assert!(!scratch.root().join("new file").exists(), "all or nothing");
    scratch.git(&["checkout", "-q", "src/a.rs"]);
    // Nor is what another session holds.
    let bob = scratch.session("bob");
    scratch.acts(&bob, &["claim", "src/a.rs"]).ok();
    scratch.acts(&otter, &["rescue", "restore", &changes]).refused(1);
    scratch.acts(&bob, &["release", "--all"]).ok();
    scratch.acts(&otter, &["rescue", "restore", &changes]).ok();
    assert_eq!(std::fs::read(scratch.root().join("new file")).unwrap(), b"\xff\x00binary");
    assert_eq!(std::fs::read(scratch.root().join("src/a.rs")).unwrap(), b"changed\n");
    let to_branch = |name: &str, branch: &str| {
        scratch.acts(&otter, &["rescue", "restore", name, "--branch", branch])
    };
    to_branch(&branch, "back").ok();
    assert!(scratch.git(&["show", "back:committed"]).contains("new"));
    to_branch(&changes, "back").refused(1);
    for bad in ["a..b", "a b", "a\u{1b}", "x.lock"] {
        to_branch(&branch, bad).refused(2);
    }
    scratch.acts(&otter, &["rescue", "restore", "no/such", "--branch", "b"]).refused(1);
    scratch.baton(&["rescue", "show", "../../heads/main"]).refused(1);
    assert_eq!(rescues(&scratch).len(), 2, "restoring takes nothing away");
}

#[test]
fn s17_a_removal_killed_at_any_step_loses_nothing() {
    let points = [
        "removal-saved",
        "removal-aside",
        "removal-marked",
        "removal-forgotten",
        "removal-unbranched",
    ];
    for point in points {
        let scratch = Scratch::with_policy("");
        scratch.allow_test_hooks();
        let otter = scratch.session("otter");
        scratch.acts(&otter, &["worktree", "new", "x"]).ok();
        scratch.commits("x", "work");
        scratch.git(&["branch", "elsewhere", "baton/x"]);
        let mut command = scratch.command(&["worktree", "remove", "x"]);
        command.env("BATON_SESSION", &otter).env("BATON_TEST_STOP_AT", point);
        let died = command.output().unwrap();
        assert_eq!(died.status.code(), None, "{point}: {died:?}");
        scratch.acts(&otter, &["worktree", "gc"]).ok();
        if matches!(point, "removal-saved" | "removal-aside") {
            assert!(scratch.tree("x").join("work").exists(), "{point}: back in its place");
        }
        scratch.acts(&otter, &["worktree", "remove", "x"]);
        scratch.nothing_left_but_rescues();
        let hidden = std::fs::read_dir(scratch.path("repo.trees")).map_or(0, Iterator::count);
        assert_eq!(hidden, 0, "{point}");
        scratch.git(&["fsck", "--no-dangling"]);
        scratch.baton(&["journal", "verify"]).ok();
    }
}

#[test]
fn gc_takes_what_is_landed_and_tells_why_it_keeps_the_rest() {
    let scratch = Scratch::with_policy("");
    scratch.git(&["add", "-A"]);
    scratch.git(&["commit", "-qm", "wiring"]);
    for leaf in ["landed", "unmerged", "dirty", "held"] {
        let session = scratch.session(leaf);
        scratch.acts(&session, &["worktree", "new", leaf]).ok();
        match leaf {
            "dirty" => std::fs::write(scratch.tree(leaf).join("x"), "x").unwrap(),
            _ => scratch.commits(leaf, leaf),
        }
        if leaf != "held" {
            scratch.acts(&session, &["release", "--all"]).ok();
        }
    }
    scratch.git(&["merge", "-q", "baton/landed"]);
    scratch.git(&["merge", "-q", "baton/held", "-m", "m"]);
    scratch.git(&["worktree", "add", "-q", "-b", "own", "../own"]);
    let bob = scratch.session("bob");
    let dry = scratch.acts(&bob, &["worktree", "gc", "--dry-run"]).ok().out;
    assert!(dry.contains("would remove") && scratch.tree("landed").exists(), "{dry}");
    let said = scratch.acts(&bob, &["worktree", "gc"]).ok().out;
    let kept: Vec<&str> = said.lines().filter(|line| line.starts_with("kept ")).collect();
    for (leaf, why) in [
        ("unmerged", "1 commits on it are on no other branch"),
        ("dirty", "uncommitted changes"),
        ("held", "held holds it"),
        ("own", "Baton did not make it"),
    ] {
        let line = kept.iter().find(|line| line.contains(leaf)).unwrap();
        assert!(line.contains(why), "{line}");
    }
    assert!(!scratch.tree("landed").exists() && scratch.path("own").exists(), "{said}");
    assert_eq!(kept.len(), 4, "{said}");
}

#[test]
fn lesson_31_a_hostile_repository_runs_nothing() {
    let scratch = Scratch::with_policy("");
    let canary = scratch.path("canary");
    let fires = format!("touch {}", canary.display());
    let script = scratch.path("evil");
    std::fs::write(&script, format!("#!/bin/sh\n{fires}\ncat\n")).unwrap();
    let mut mode = std::fs::metadata(&script).unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut mode, 0o755);
    std::fs::set_permissions(&script, mode).unwrap();
    let evil = script.to_str().unwrap();
    scratch.write(".gitattributes", "* diff=evil filter=evil\n");
    scratch.git(&["add", "-A"]);
    scratch.git(&["commit", "-qm", "hostile"]);
    for key in [
        "core.fsmonitor",
        "diff.external",
        "diff.evil.command",
        "diff.evil.textconv",
        "filter.evil.smudge",
        "filter.evil.clean",
        "core.pager",
        "core.sshCommand",
        "core.editor",
    ] {
        scratch.git(&["config", key, evil]);
    }
    for hook in ["post-checkout", "reference-transaction", "pre-commit", "post-index-change"] {
        std::fs::copy(&script, scratch.root().join(".git/hooks").join(hook)).unwrap();
    }
    let otter = scratch.session("otter");
    scratch.acts(&otter, &["worktree", "new", "x"]).ok();
    std::fs::write(scratch.tree("x").join("src/a.rs"), "changed\n").unwrap();
    std::fs::write(scratch.tree("x").join("--output=pwned"), "x\n").unwrap();
    scratch.baton(&["worktree", "list"]).ok();
    scratch.person_acts(&["worktree", "remove", "x", "--force"]).ok();
    let kept = rescues(&scratch);
    let mut names = kept.iter().map(|one| one["name"].as_str().unwrap().to_owned());
    let name = names.find(|name| name.ends_with("/changes")).unwrap();
    scratch.baton(&["rescue", "show", &name]).ok();
    scratch.acts(&otter, &["rescue", "restore", &name]).ok();
    assert!(scratch.root().join("--output=pwned").exists());
    assert!(!canary.exists(), "something of the repository was run");
}

#[test]
fn a_tree_with_submodules_is_made_and_removed() {
    let scratch = Scratch::with_policy("");
    scratch.git(&["clone", "-q", ".", "../sub"]);
    let allow = "protocol.file.allow=always";
    scratch.git(&["-c", allow, "submodule", "add", "-q", "../sub", "sub"]);
    scratch.git(&["add", "-A"]);
    scratch.git(&["commit", "-qm", "sub"]);
    let otter = scratch.session("otter");
    scratch.acts(&otter, &["worktree", "new", "x"]).ok();
    let folder = scratch.tree("x");
    let folder = folder.to_str().unwrap();
    scratch.git(&["-C", folder, "-c", allow, "submodule", "update", "-q", "--init"]);
    std::fs::write(scratch.tree("x").join("sub/README.md"), "changed in the submodule\n").unwrap();
    let said = scratch.acts(&otter, &["worktree", "remove", "x"]).refused(1);
    assert!(said.err.contains("uncommitted changes"), "{said:?}");
    scratch.in_tree("x/sub", &["commit", "-qam", "only here"]);
    for said in [
        scratch.acts(&otter, &["worktree", "remove", "x"]),
        scratch.person_acts(&["worktree", "remove", "x", "--force"]),
    ] {
        assert!(said.refused(1).err.contains("the submodule sub has commits"), "even by force");
    }
    scratch.in_tree("x/sub", &["push", "-q", "origin", "HEAD:refs/heads/pushed"]);
    scratch.in_tree("x/sub", &["checkout", "-q", "HEAD~1"]);
    scratch.acts(&otter, &["worktree", "remove", "x"]).ok();
    scratch.nothing_left_but_rescues();
}

#[test]
fn numbers_never_collide_across_trees_and_sessions() {
    Scratch::on_each_store("", |scratch| {
        scratch.write("db/0003_x.sql", "x\n");
        scratch.git(&["add", "-A"]);
        scratch.git(&["commit", "-qm", "db"]);
        let otter = scratch.session("otter");
        scratch.acts(&otter, &["worktree", "new", "x"]).ok();
        std::fs::write(scratch.tree("x").join("db/0007_y.sql"), "y\n").unwrap();
        let next = |words: &[&str]| {
            let words = [&["next-number", "db"][..], words].concat();
            scratch.acts(&otter, &words).ok().out.trim().to_owned()
        };
        assert_eq!(next(&[]), "0008", "the other tree counts");
        assert_eq!(next(&["--op-id", "n"]), "0009", "what was given counts");
        assert_eq!(next(&["--op-id", "n"]), "0009", "a retry gets the same");
        assert_eq!(next(&["--width", "6"]), "000010");
        assert_eq!(next(&["--claim"]), "0011");
        let bob = scratch.session("bob");
        assert_eq!(scratch.acts(&bob, &["check", "db/0011_bob.sql"]).code, 1);
        let racers: Vec<_> =
            (0..8).map(|_| scratch.begins(&bob, &["next-number", "./db/"])).collect();
        let mut given: Vec<String> = racers
            .into_iter()
            .map(|racer| {
                let output = racer.wait_with_output().unwrap();
                String::from_utf8(output.stdout).unwrap().trim().to_owned()
            })
            .collect();
        given.sort();
        let expected: Vec<String> = (12..20).map(|number| format!("{number:04}")).collect();
        assert_eq!(given, expected);
        scratch.acts(&otter, &["next-number", "../out"]).refused(1);
        scratch.acts(&otter, &["next-number", "db", "--width", "0"]).refused(2);
        scratch.baton(&["journal", "verify"]).ok();
    });
}

#[test]
fn the_policys_setup_needs_trust_and_commits_name_who_stands_beside() {
    let policy = "[worktree]\nsetup = [\"touch\", \"ready\"]\n";
    let scratch = Scratch::with_policy(policy);
    scratch.git(&["config", "user.name", "Ann"]);
    scratch.git(&["config", "user.email", "ann@example.invalid"]);
    scratch.git(&["add", "-A"]);
    scratch.git(&["commit", "-qm", "policy"]);
    let otter = scratch.session("otter");
    let said = scratch.acts(&otter, &["worktree", "new", "x"]).refused(1);
    assert!(said.err.contains("no person stands for") && said.err.contains("worktree setup"));
    scratch.nothing_left("nobody stands for the setup command");
    // One's own command needs nobody.
    scratch.acts(&otter, &["worktree", "new", "own", "--setup", "touch", "mine"]).ok();
    assert!(scratch.tree("own").join("mine").exists());
    assert!(!scratch.tree("own").join("ready").exists());
    scratch.person_acts(&["trust", "--yes"]).ok();
    scratch.acts(&otter, &["worktree", "new", "x"]).ok();
    assert!(scratch.tree("x").join("ready").exists());
    let mut command = scratch.command(&["commit", "-m", "ready", "ready"]);
    let said = command.current_dir(scratch.tree("x")).env("BATON_SESSION", &otter).output();
    Said::from(said.unwrap()).ok();
    let message = scratch.in_tree("x", &["log", "-1", "--format=%an%n%B"]);
    assert!(message.starts_with("otter\n"), "{message}");
    assert!(message.contains("\nCo-authored-by: Ann <ann@example.invalid>\n"), "{message}");
}

#[test]
fn a_retry_of_gc_and_of_a_restore_gets_the_first_answer() {
    let scratch = Scratch::workspace();
    let otter = scratch.session("otter");
    scratch.acts(&otter, &["worktree", "new", "x"]).ok();
    std::fs::write(scratch.tree("x").join("lost"), "work\n").unwrap();
    scratch.person_acts(&["worktree", "remove", "baton/x", "--force"]).ok();
    let saved = rescues(&scratch);
    let name = saved.iter().find(|one| one["files"].to_string().contains("lost")).unwrap();
    let name = name["name"].as_str().unwrap();
    let restore = ["rescue", "restore", name, "--op-id", "back", "--json"];
    let first = scratch.acts(&otter, &restore).ok().json();
    assert!(scratch.root().join("lost").exists(), "{first}");
    std::fs::remove_file(scratch.root().join("lost")).unwrap();
    assert_eq!(scratch.acts(&otter, &restore).ok().json(), first);
    assert!(!scratch.root().join("lost").exists(), "it was not done twice");
    let gc = ["worktree", "gc", "--op-id", "gc", "--json"];
    let first = scratch.acts(&otter, &gc).ok().json();
    scratch.acts(&otter, &["worktree", "new", "y"]).ok();
    assert_eq!(scratch.acts(&otter, &gc).ok().json(), first);
    let other = ["rescue", "restore", name, "--branch", "b", "--op-id", "back"];
    scratch.acts(&otter, &other).refused(1);
}
