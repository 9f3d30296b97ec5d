//! Conflicts before they are met: real trees, uncommitted work, what git calls clean, and
//! repositories that mean harm.

use std::io::{BufRead, BufReader};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::harness::{Said, Scratch};
use crate::landing;

fn tree_of(scratch: &Scratch, leaf: &str) -> PathBuf {
    scratch.folder.path().canonicalize().unwrap().join("repo.trees").join(leaf)
}

fn put(scratch: &Scratch, leaf: &str, file: &str, text: &str) {
    let path = tree_of(scratch, leaf).join(file);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn git_in(scratch: &Scratch, leaf: &str, words: &[&str]) -> String {
    let folder = tree_of(scratch, leaf);
    scratch.git(&[&["-C", folder.to_str().unwrap()], words].concat())
}

fn commit_in(scratch: &Scratch, leaf: &str, what: &str) {
    git_in(scratch, leaf, &["add", "-A"]);
    git_in(scratch, leaf, &["commit", "-qm", what]);
}

fn land(scratch: &Scratch, what: &str) {
    scratch.git(&["add", "-A"]);
    scratch.git(&["commit", "-qm", what]);
}

/// Two trees, made by two sessions.
fn two_trees(scratch: &Scratch) -> (String, String) {
    let (one, two) = (scratch.session("otter"), scratch.session("fox"));
    scratch.acts(&one, &["worktree", "new", "one"]).ok();
    scratch.acts(&two, &["worktree", "new", "two"]).ok();
    (one, two)
}

fn look(scratch: &Scratch, code: i32) -> Value {
    let said = scratch.baton(&["conflicts", "--json"]);
    assert_eq!(said.code, code, "{said:?}");
    said.json()
}

fn pair<'v>(found: &'v Value, a: &str, b: &str) -> &'v Value {
    let pairs = found["pairs"].as_array().unwrap();
    let is = |pair: &&Value| pair["a"] == a && pair["b"] == b;
    pairs.iter().find(is).unwrap_or_else(|| panic!("no {a} and {b}: {found}"))
}

const TEN: &str = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n";

#[test]
fn uncommitted_work_that_conflicts_is_found_told_once_and_over_when_it_is() {
    Scratch::on_each_store("", |scratch| {
        scratch.write("ten", TEN);
        land(scratch, "ten");
        let (one, _two) = two_trees(scratch);
        assert!(scratch.baton(&["conflicts"]).ok().out.contains("1  one"), "all clean");
        put(scratch, "one", "ten", &TEN.replace("5\n", "five\n"));
        put(scratch, "two", "ten", &TEN.replace("5\n", "FIVE\nand more\n"));
        put(scratch, "two", "new", "untracked\n");
        let index = || std::fs::read(scratch.root().join(".git/worktrees/one/index")).unwrap();
        let before = (index(), git_in(scratch, "two", &["status", "--short"]));
        let found = look(scratch, 1);
        let clash = pair(&found, "one", "two");
        let expected = json!([{ "path": "ten", "kind": "contents",
            "ranges": [{ "a": [5, 5], "b": [5, 6] }] }]);
        assert_eq!(clash["files"], expected);
        assert_eq!(pair(&found, "one", "main")["files"], json!([]));
        assert_eq!(before, (index(), git_in(scratch, "two", &["status", "--short"])));
        assert_eq!(scratch.git(&["for-each-ref", "refs/baton"]), "", "nothing refers to snapshots");
        let said = scratch.baton(&["conflicts"]);
        assert_eq!(said.code, 1);
        let line = "ten conflicts, contents: line 5 of one with lines 5 to 6 of two";
        assert!(said.out.contains(line), "{said:?}");
        // Nothing changed: nothing is merged, and nothing is told again.
        assert_eq!(look(scratch, 1)["merged"], 0);
        let journal = || scratch.baton(&["journal"]).ok().out;
        assert_eq!(journal().matches("foresaw 1 finding between one and two").count(), 1);
        let news = scratch.acts(&one, &["claim", "elsewhere"]).ok();
        assert!(news.out.contains("1 new finding between one and two"), "{news:?}");
        let again = scratch.acts(&one, &["claim", "elsewhere-too"]).ok();
        assert!(!again.out.contains("finding"), "{again:?}");
        // One tree changes: only its pairs are merged again.
        put(scratch, "one", "ten", &TEN.replace("9\n", "nine\n"));
        assert_eq!(look(scratch, 0)["merged"], 2);
        assert!(journal().contains("found nothing between one and two any more"));
        scratch.baton(&["journal", "verify"]).ok();
    });
}

#[test]
fn what_git_calls_clean_is_found_between_trees_and_with_the_target() {
    let scratch = Scratch::workspace();
    scratch.write("src/lib.rs", "pub mod shop;\n");
    scratch.write("src/shop.rs", "pub fn price(of: u32) -> u32 {\n    of\n}\n");
    scratch.write("Cargo.toml", "[dependencies]\n\n\n[features]\n");
    land(&scratch, "shop");
    two_trees(&scratch);
    put(
        &scratch,
        "one",
        "src/shop.rs",
        "pub fn price(of: u32, tax: u32) -> u32 {\n    of + tax\n}\n",
    );
    put(&scratch, "one", "db/0002_a.sql", "a\n");
    put(&scratch, "one", "Cargo.toml", "[dependencies]\nserde = \"1\"\n\n\n[features]\n");
    put(
        &scratch,
        "two",
        "src/cart.rs",
        "use crate::shop::price;\n\nfn sum() -> u32 {\n    price(1)\n}\n",
    );
    put(&scratch, "two", "db/0002_b.sql", "b\n");
    put(&scratch, "two", "x/Cargo.toml", "[dependencies]\nserde = \"2\"\n");
    commit_in(&scratch, "two", "cart");
    let found = look(&scratch, 1);
    let both = pair(&found, "one", "two");
    assert_eq!(both["files"], json!([]), "git sees nothing");
    let broken = &both["broken_calls"][0];
    assert_eq!((&broken["kind"], &broken["symbol"]), (&"signature".into(), &"price".into()));
    let caller = json!({ "tree": "two", "sessions": ["fox"], "file": "src/cart.rs", "line": 4 });
    assert_eq!(broken["places"][1], caller);
    assert_eq!(broken["places"][0]["tree"], "one");
    assert_eq!(both["same_name"].as_array().unwrap().len(), 1, "{both}");
    assert_eq!(both["same_name"][0]["symbol"], "2 of db");
    // The same function in a tree and on the target.
    let copy = |name: &str, v: &str| {
        format!(
            "pub fn {name}({v}: &[u32]) -> u32 {{
    let mut sum{v} = 0;
    for one in {v} {{
        if *one > 10 {{ sum{v} += one * 2; }} else {{ sum{v} -= one.min(3); }}
    }}
    log(\"done\", sum{v});
    sum{v}.max(1)
}}
"
        )
    };
    scratch.write("src/sums.rs", &copy("sum", "a"));
    land(&scratch, "sums");
    put(&scratch, "two", "src/totals.rs", &copy("total", "values"));
    let found = look(&scratch, 1);
    let duplicates = &pair(&found, "two", "main")["duplicates"];
    assert_eq!(duplicates[0]["places"][1]["file"], "src/sums.rs", "{found}");
    assert_eq!(duplicates[0]["places"][1]["tree"], "main");
    let said = scratch.baton(&["conflicts"]);
    for words in [
        "one (src/shop.rs:1) changes what price takes, and two (src/cart.rs:4) newly calls it",
        "one (db/0002_a.sql:1) and two (db/0002_b.sql:1) use the number 2 of db",
        "gain nearly the same function: total and sum, 100 % alike",
        "do: call it as it will be",
    ] {
        assert!(said.out.contains(words), "{words}: {}", said.out);
    }
    let journal = scratch.baton(&["journal"]).ok().out;
    assert!(
        journal.contains("found total and sum written twice: two src/totals.rs:1"),
        "{journal}"
    );
}

#[test]
fn a_tree_that_takes_back_what_others_landed_is_found() {
    let scratch = Scratch::workspace();
    scratch.write("ten", TEN);
    land(&scratch, "ten");
    let (one, _) = two_trees(&scratch);
    let id = one.split('.').next().unwrap().to_owned();
    // Others land lines; the tree takes them in and then throws them out.
    scratch.write("ten", &TEN.replace("5\n", "5\nlanded a\nlanded b\n").replace("9\n", "nine\n"));
    land(&scratch, "theirs");
    git_in(&scratch, "one", &["merge", "-q", "main"]);
    assert_eq!(pair(&look(&scratch, 0), "one", "main")["undo"], json!([]), "only taken in");
    put(&scratch, "one", "ten", &TEN.replace("1\n2", "one\n2"));
    let found = look(&scratch, 1);
    let undo = pair(&found, "one", "main")["undo"].as_array().unwrap();
    let kinds: Vec<&Value> = undo.iter().map(|one| &one["kind"]).collect();
    assert_eq!(kinds, ["removes", "restores"], "{found}");
    assert!(undo[0]["detail"].as_str().unwrap().contains("2 lines, commit"), "{found}");
    assert_eq!(undo[0]["places"][0]["tree"], "one");
    let said = scratch.baton(&["conflicts"]);
    assert!(said.out.contains("takes out lines of ten that others landed: 2 lines"), "{said:?}");
    // What it landed itself is its own to take back.
    put(&scratch, "one", "ten", &std::fs::read_to_string(scratch.root().join("ten")).unwrap());
    look(&scratch, 0);
    scratch.write("own", "own 1\nown 2\n");
    land(&scratch, &format!("own\n\nBaton-Session: {id}"));
    git_in(&scratch, "one", &["merge", "-q", "main"]);
    put(&scratch, "one", "own", "other\n");
    assert_eq!(pair(&look(&scratch, 0), "one", "main")["undo"], json!([]));
    // Another who does the same is not.
    git_in(&scratch, "two", &["merge", "-q", "main"]);
    put(&scratch, "two", "own", "other\n");
    assert_eq!(pair(&look(&scratch, 1), "two", "main")["undo"][0]["kind"], "removes");
}

#[test]
fn a_function_emptied_outside_the_task_is_found() {
    let scratch = Scratch::workspace();
    scratch.write("src/shop.rs", "pub fn price(of: u32) -> u32 {\n    of * 2\n}\n");
    land(&scratch, "shop");
    let otter = scratch.session("otter");
    scratch.acts(&otter, &["task", "add", "docs", "--paths", "docs/"]).ok();
    scratch.acts(&otter, &["worktree", "new", "--task", "t1"]).ok();
    put(&scratch, "t1-docs", "src/shop.rs", "pub fn price(of: u32) -> u32 {\n    todo!()\n}\n");
    let found = look(&scratch, 1);
    let undo = &pair(&found, "t1-docs", "main")["undo"][0];
    assert_eq!((&undo["kind"], &undo["symbol"]), (&"empties".into(), &"price".into()), "{found}");
}

#[test]
fn kinds_of_conflicts_that_have_no_lines_are_named() {
    let scratch = Scratch::workspace();
    scratch.write("gone", TEN);
    scratch.write("renamed", &format!("a\n{TEN}"));
    scratch.write("picture", "a\u{0}b");
    scratch.write("thing", "t\n");
    scratch.write("latin", "x\n");
    land(&scratch, "base");
    two_trees(&scratch);
    let one = tree_of(&scratch, "one");
    std::fs::remove_file(one.join("gone")).unwrap();
    put(&scratch, "two", "gone", &TEN.replace('5', "five"));
    std::fs::rename(one.join("renamed"), one.join("here")).unwrap();
    let two = tree_of(&scratch, "two");
    std::fs::rename(two.join("renamed"), two.join("there")).unwrap();
    put(&scratch, "one", "picture", "a\u{0}c");
    put(&scratch, "two", "picture", "a\u{0}d");
    std::fs::remove_file(one.join("thing")).unwrap();
    put(&scratch, "one", "thing/inside", "x\n");
    put(&scratch, "two", "thing", "changed\n");
    std::fs::write(one.join("latin"), b"\xe9\n").unwrap();
    std::fs::write(two.join("latin"), b"\xe8\n").unwrap();
    put(&scratch, "one", "Readme.md", "one\n");
    put(&scratch, "two", "readme.MD", "two\n");
    commit_in(&scratch, "one", "committed, so that renames are seen");
    let found = look(&scratch, 1);
    let files = pair(&found, "one", "two")["files"].as_array().unwrap();
    let kinds: Vec<(&str, &str)> = files
        .iter()
        .map(|file| (file["path"].as_str().unwrap(), file["kind"].as_str().unwrap()))
        .collect();
    for expected in [("gone", "modify/delete"), ("latin", "contents"), ("renamed", "rename/rename")]
    {
        assert!(kinds.contains(&expected), "{expected:?}: {kinds:?}");
    }
    assert!(kinds.iter().any(|(path, _)| *path == "picture"), "{kinds:?}");
    assert!(kinds.iter().any(|(path, _)| path.starts_with("thing")), "{kinds:?}");
    let latin = files.iter().find(|file| file["path"] == "latin").unwrap();
    assert_eq!(latin["ranges"][0]["a"], json!([1, 1]));
}

#[test]
fn places_where_there_is_little_to_compare() {
    // Before the first commit.
    let scratch = Scratch::workspace();
    scratch.git(&["update-ref", "-d", "HEAD"]);
    let said = scratch.baton(&["conflicts"]).ok();
    assert!(said.out.starts_with("clean: there is no other tree"), "{said:?}");
    // One tree, and nothing in it.
    let scratch = Scratch::workspace();
    scratch.git(&["add", "-A"]);
    scratch.git(&["commit", "-qm", "all"]);
    assert!(scratch.baton(&["conflicts"]).ok().out.contains("no tree has anything of its own"));
    // No branch of the name where work lands; then HEAD on no branch.
    let scratch = Scratch::with_policy("[queue]\ntarget = \"nowhere\"\n");
    two_trees(&scratch);
    put(&scratch, "one", "README.md", "one\n");
    put(&scratch, "two", "README.md", "two\n");
    let found = look(&scratch, 1);
    assert!(found.get("target").is_none(), "{found}");
    git_in(&scratch, "two", &["checkout", "-q", "--detach"]);
    assert_eq!(pair(&look(&scratch, 1), "one", "two")["files"][0]["path"], "README.md");
    // The folder of a tree is gone.
    std::fs::remove_dir_all(tree_of(&scratch, "two")).unwrap();
    let names: Vec<Value> = look(&scratch, 0)["trees"].as_array().unwrap().clone();
    assert!(!names.iter().any(|tree| tree["name"] == "two"), "{names:?}");
    // No repository at all.
    let plain = tempfile::TempDir::new().unwrap();
    let run = |words: &[&str]| -> Said {
        scratch.command(words).current_dir(plain.path()).output().unwrap().into()
    };
    run(&["init", "--yes", "--agents", "none"]).ok();
    let said = run(&["conflicts"]).refused(1);
    assert!(said.err.contains("no git repository"), "{said:?}");
}

#[test]
fn a_name_that_cannot_be_shown_makes_a_tree_unseen_and_not_clean() {
    let scratch = Scratch::workspace();
    two_trees(&scratch);
    let name = std::ffi::OsString::from_vec(b"\xff.rs".to_vec());
    std::fs::write(tree_of(&scratch, "one").join(name), "x\n").unwrap();
    let found = look(&scratch, 1);
    assert_eq!(found["unseen"][0]["name"], "one");
    let said = scratch.baton(&["conflicts"]);
    assert!(said.out.contains("unseen: one"), "{said:?}");
    // Committed, it is like any other.
    commit_in(&scratch, "one", "odd");
    look(&scratch, 0);
}

#[test]
fn a_shallow_clone_and_a_submodule_are_looked_at() {
    let scratch = Scratch::workspace();
    let inner = scratch.path("inner");
    std::fs::create_dir(&inner).unwrap();
    let inner = inner.to_str().unwrap();
    scratch.git(&["-C", inner, "init", "-q", "-b", "main"]);
    scratch.git(&["-C", inner, "commit", "-q", "--allow-empty", "-m", "inner"]);
    let add = ["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", inner, "sub"];
    scratch.git(&add);
    land(&scratch, "sub");
    two_trees(&scratch);
    for leaf in ["one", "two"] {
        git_in(
            &scratch,
            leaf,
            &["-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init"],
        );
        let sub = tree_of(&scratch, leaf).join("sub");
        let words = ["commit", "-q", "--allow-empty", "-m", leaf];
        scratch.git(&[&["-C", sub.to_str().unwrap()][..], &words].concat());
    }
    let found = look(&scratch, 1);
    assert_eq!(pair(&found, "one", "two")["files"][0]["path"], "sub", "{found}");
    assert!(git_in(&scratch, "one", &["ls-files", "sub"]).contains("sub"));
    // Histories that are cut off.
    std::fs::write(scratch.root().join(".git/shallow"), scratch.git(&["rev-parse", "main"]))
        .unwrap();
    look(&scratch, 1);
}

/// A clone without its history, as machines that only build have it: the commit that it begins with
/// is where all its trees part, and its parents are not there.
#[test]
fn a_clone_of_depth_1_is_looked_at() {
    let scratch = Scratch::repository();
    let origin = scratch.path("origin");
    std::fs::create_dir(&origin).unwrap();
    let at = origin.to_str().unwrap();
    scratch.git(&["-C", at, "init", "-q", "-b", "main"]);
    for text in ["old\n", TEN] {
        std::fs::write(origin.join("ten"), text).unwrap();
        scratch.git(&["-C", at, "add", "-A"]);
        scratch.git(&["-C", at, "commit", "-qm", "x"]);
    }
    let (from, to) = (format!("file://{at}"), scratch.path("clone"));
    scratch.git(&["clone", "-q", "--depth", "1", &from, to.to_str().unwrap()]);
    std::fs::remove_dir_all(scratch.root()).unwrap();
    std::fs::rename(to, scratch.root()).unwrap();
    assert_eq!(scratch.git(&["rev-list", "--count", "HEAD"]).trim(), "1");
    assert_eq!(scratch.git(&["rev-parse", "--is-shallow-repository"]).trim(), "true");
    scratch.baton(&["init", "--yes", "--agents", "none"]).ok();
    two_trees(&scratch);
    put(&scratch, "one", "ten", &TEN.replace("5\n", "five\n"));
    put(&scratch, "two", "ten", &TEN.replace("5\n", "FIVE\n"));
    commit_in(&scratch, "two", "five");
    let found = look(&scratch, 1);
    assert_eq!(pair(&found, "one", "two")["files"][0]["path"], "ten", "{found}");
    assert_eq!(pair(&found, "two", "main")["files"], json!([]), "{found}");
    // What came since, again without what was before.
    std::fs::write(origin.join("ten"), TEN.replace("5\n", "fünf\n")).unwrap();
    scratch.git(&["-C", at, "commit", "-qam", "y"]);
    let fetch = ["-c", "protocol.file.allow=always", "fetch", "-q", "--depth", "1", "origin"];
    scratch.git(&[&fetch[..], &["+main:refs/heads/later"]].concat());
    scratch.git(&["checkout", "-q", "later"]);
    let found = look(&scratch, 1);
    assert_eq!(pair(&found, "repo", "one")["files"][0]["path"], "ten", "{found}");
}

#[test]
fn lesson_31_a_hostile_repository_runs_nothing() {
    let scratch = Scratch::workspace();
    scratch.write("a.txt", TEN);
    scratch.write("b.rs", "fn f() { g(); }\n");
    land(&scratch, "base");
    two_trees(&scratch);
    let canary = scratch.path("canary");
    let program = scratch.path("evil");
    std::fs::write(&program, format!("#!/bin/sh\ntouch {}\ncat\n", canary.display())).unwrap();
    scratch.git(&["config", "core.fileMode", "true"]);
    let evil = program.to_str().unwrap();
    assert!(std::process::Command::new("chmod").args(["+x", evil]).status().unwrap().success());
    for key in [
        "core.fsmonitor",
        "diff.external",
        "diff.evil.textconv",
        "diff.evil.command",
        "filter.evil.clean",
        "filter.evil.smudge",
        "filter.evil.process",
        "merge.evil.driver",
        "core.pager",
        "core.hooksPath",
        "gpg.program",
        "core.alternateRefsCommand",
    ] {
        scratch.git(&["config", key, evil]);
    }
    let attributes = "* diff=evil merge=evil filter=evil\n";
    std::fs::write(scratch.root().join(".git/info/attributes"), attributes).unwrap();
    let write = |leaf: &str, word: &str| {
        put(&scratch, leaf, "a.txt", &TEN.replace('5', word));
        put(&scratch, leaf, "b.rs", &format!("fn f() {{ {word}(); }}\n"));
        put(&scratch, leaf, ".gitattributes", attributes);
        put(&scratch, leaf, "--output=x.rs", "fn x() {}\n");
    };
    write("one", "five");
    write("two", "FIVE");
    std::fs::remove_file(&canary).ok();
    scratch.baton(&["conflicts", "--json"]);
    assert!(!canary.exists(), "a program of the repository ran");
    let found = look(&scratch, 1);
    assert!(!pair(&found, "one", "two")["files"].as_array().unwrap().is_empty());
    assert!(!tree_of(&scratch, "one").join("x.rs").exists());
}

#[test]
fn a_memory_that_cannot_be_used_is_forgotten() {
    let scratch = Scratch::workspace();
    land(&scratch, "setup");
    two_trees(&scratch);
    put(&scratch, "one", "README.md", "one\n");
    put(&scratch, "two", "README.md", "two\n");
    let first = look(&scratch, 1);
    let memory = scratch.store().join("conflicts/pairs.json");
    for text in ["", "{", "{\"version\":99,\"pairs\":{}}", "\u{0}\u{1}"] {
        std::fs::write(&memory, text).unwrap();
        let again = look(&scratch, 1);
        assert_eq!(again["pairs"], first["pairs"]);
        assert_eq!(again["merged"], first["merged"], "{text:?}");
    }
    // Snapshots that git has thrown away are made again.
    scratch.git(&["gc", "-q", "--prune=now"]);
    assert_eq!(look(&scratch, 1)["pairs"], first["pairs"]);
    put(&scratch, "one", "README.md", "other\n");
    assert_eq!(look(&scratch, 1)["merged"], 2);
}

#[test]
fn a_watch_shows_what_is_new_and_only_that() {
    let scratch = Scratch::workspace();
    scratch.write("ten", TEN);
    scratch.write("ten2", TEN);
    land(&scratch, "ten");
    two_trees(&scratch);
    put(&scratch, "one", "ten", &TEN.replace('5', "five"));
    put(&scratch, "two", "ten", &TEN.replace('5', "FIVE"));
    let mut command = scratch.command(&["conflicts", "--watch", "--json"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    let first = next();
    assert_eq!(pair(&first, "one", "two")["files"].as_array().unwrap().len(), 1);
    put(&scratch, "one", "deep/new", "no conflict\n");
    put(&scratch, "one", "ten2", &TEN.replace('7', "seven"));
    put(&scratch, "two", "ten2", &TEN.replace('7', "SEVEN"));
    let second = next();
    let pairs = second["pairs"].as_array().unwrap();
    assert_eq!(pairs.len(), 1, "{second}");
    assert_eq!(pairs[0]["files"].as_array().unwrap().len(), 2);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn after_a_landing_whoever_is_concerned_is_told_without_asking() {
    Scratch::on_each_store(landing::CHECKED, |scratch| {
        landing::settle(scratch);
        let (one, two) = two_trees(scratch);
        put(scratch, "one", "a", "mine\n2\n3\n4\n5\n");
        landing::branch(scratch, "side", &[("a", "theirs\n2\n3\n4\n5\n")]);
        scratch.baton(&["land", "side"]).ok();
        let news = scratch.acts(&one, &["claim", "elsewhere"]).ok();
        assert!(news.out.contains("1 new finding between one and main"), "{news:?}");
        let other = scratch.acts(&two, &["claim", "elsewhere-too"]).ok();
        assert!(!other.out.contains("finding"), "{other:?}");
        let journal = scratch.baton(&["journal"]).ok().out;
        assert_eq!(journal.matches("foresaw 1 finding between one and main").count(), 1);
        let found = look(scratch, 1);
        assert_eq!(pair(&found, "one", "main")["files"][0]["path"], "a");
        assert_eq!(found["merged"], 0, "it was looked at when it landed: {found}");
    });
}

#[test]
fn pointers_of_lfs_and_large_files_are_told_by_name() {
    let scratch = Scratch::workspace();
    let pointer = |letter: &str| {
        let oid = letter.repeat(64);
        format!("version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize 9\n")
    };
    let large = |first: &str| format!("fn {first}() {{}}\n{}", "// a long line\n".repeat(90_000));
    assert!(large("a").len() > 1024 * 1024);
    scratch.write(".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n");
    scratch.write("x.bin", &pointer("0"));
    scratch.write("large.rs", &large("base"));
    land(&scratch, "base");
    two_trees(&scratch);
    // As `git lfs install --local` sets it, but it would leave a trace.
    let canary = scratch.path("canary");
    let program = format!("touch {}; cat", canary.display());
    for key in ["filter.lfs.clean", "filter.lfs.smudge", "merge.lfs.driver"] {
        scratch.git(&["config", key, &program]);
    }
    for (leaf, letter, name) in [("one", "1", "ours"), ("two", "2", "theirs")] {
        put(&scratch, leaf, "x.bin", &pointer(letter));
        put(&scratch, leaf, "large.rs", &large(name));
    }
    scratch.baton(&["conflicts"]);
    assert!(!canary.exists(), "a program of the repository ran");
    let found = look(&scratch, 1);
    let both = pair(&found, "one", "two");
    let files: Vec<(&Value, &Value)> = both["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| (&file["path"], &file["kind"]))
        .collect();
    let contents = json!("contents");
    let expected = [(&json!("large.rs"), &contents), (&json!("x.bin"), &contents)];
    assert_eq!(files, expected, "{both}");
    assert_eq!(both["files"][0].get("ranges").unwrap_or(&json!([])), &json!([]), "not read");
    assert!(both.get("broken_calls").is_none_or(|calls| calls == &json!([])), "{both}");
    let kept = std::fs::read_to_string(tree_of(&scratch, "one").join("x.bin")).unwrap();
    assert_eq!(kept, pointer("1"));
}
