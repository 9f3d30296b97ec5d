//! Work that a command loses where nobody looked: in other trees, in submodules, by an edit that
//! was not judged.

use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::harness::Scratch;
use crate::hooks::{Agent, denied};

const WORK: &str = "fn a() { alice(); }\n";

fn agent<'a>(scratch: &'a Scratch, id: &'static str) -> Agent<'a> {
    Agent { scratch, client: "claude", id }
}

/// Runs the line where it may, and gives what was said of it: before, or afterwards.
fn run(scratch: &Scratch, line: &str) -> Result<String, String> {
    let bob = agent(scratch, "bob");
    if let Some(why) = denied(&bob.shell("before", line)) {
        return Err(why);
    }
    let mut shell = Command::new("bash");
    scratch.clean(&mut shell);
    shell.args(["-c", line]).current_dir(scratch.root()).output().unwrap();
    Ok(bob.shell("after", line).out)
}

/// A second tree that Alice made and works in, from where she sits.
fn with_tree(scratch: &Scratch) -> (String, std::path::PathBuf) {
    let alice = scratch.session("alice");
    scratch.acts(&alice, &["worktree", "new", "side"]).ok();
    (alice, scratch.path("repo.trees/side"))
}

#[test]
fn s17_what_finds_its_way_into_another_tree_is_found_out() {
    for line in [
        "sed -i s/alice/bob/ ../repo.trees/*/src/a.rs",
        "cd ..; rm -rf repo.trees/*/src",
        "find ../repo.trees -name '*.rs' -delete",
        "find .. -name a.rs | grep side | xargs rm",
        "./reach.sh",
    ] {
        let scratch = Scratch::workspace();
        scratch.write("reach.sh", "#!/bin/sh\necho z >> ../repo.trees/side/src/a.rs\n");
        run(&scratch, "chmod +x reach.sh").unwrap();
        let (alice, tree) = with_tree(&scratch);
        let side = tree.display().to_string();
        scratch.acts(&alice, &["-C", &side, "claim", "src/a.rs"]).ok();
        std::fs::write(tree.join("src/a.rs"), WORK).unwrap();
        let told = run(&scratch, line).unwrap();
        assert!(told.contains("src/a.rs is held by alice"), "{line}: {told}");
        assert_ne!(std::fs::read_to_string(tree.join("src/a.rs")).unwrap_or_default(), WORK);
        let saved = scratch.baton(&["rescue", "list"]).ok().out;
        assert!(saved.contains("alice") && saved.contains("src/a.rs"), "{line}: {saved}");
    }
}

#[test]
fn what_stays_in_its_own_tree_is_no_business_of_another() {
    let scratch = Scratch::workspace();
    let (alice, tree) = with_tree(&scratch);
    let side = tree.display().to_string();
    scratch.acts(&alice, &["-C", &side, "claim", "src/a.rs"]).ok();
    // Alice writes meanwhile, with an editor that tells nobody.
    let write = |text: &str| std::fs::write(tree.join("src/a.rs"), text).unwrap();
    write(WORK);
    let bob = agent(&scratch, "bob");
    for line in ["cargo test", "make all", "python3 -c 'print(1)'", "npm run build"] {
        bob.shell("before", line);
        write(&format!("{WORK}// {line}\n"));
        let told = bob.shell("after", line);
        assert_eq!(told.out, "", "{line}");
    }
}

#[test]
fn a_tree_of_one_who_lives_is_not_swept_away_from_outside() {
    let scratch = Scratch::workspace();
    let (alice, tree) = with_tree(&scratch);
    let side = tree.display().to_string();
    std::fs::write(tree.join("src/a.rs"), WORK).unwrap();
    scratch.acts(&alice, &["-C", &side, "claim", "src/a.rs"]).ok();
    scratch.acts(&alice, &["-C", &side, "commit", "src/a.rs", "-m", "not landed"]).ok();
    for line in [
        "git -C ../repo.trees/side reset --hard HEAD~1",
        "git worktree remove --force ../repo.trees/side",
        "rm -rf ../repo.trees/side",
    ] {
        let why = run(&scratch, line).expect_err(line);
        assert!(why.contains("alice"), "{line}: {why}");
    }
    assert_eq!(std::fs::read_to_string(tree.join("src/a.rs")).unwrap(), WORK);
}

/// A submodule `part` with one file.
fn with_submodule() -> Scratch {
    let scratch = Scratch::workspace();
    let part = scratch.path("part");
    std::fs::create_dir(&part).unwrap();
    let git = |folder: &Path, words: &[&str]| {
        let mut git = Command::new("git");
        scratch.clean(&mut git);
        git.args(["-c", "protocol.file.allow=always", "-c", "user.name=a", "-c", "user.email=a@b"]);
        let said = git.args(words).current_dir(folder).output().unwrap();
        assert!(said.status.success(), "{said:?}");
    };
    std::fs::write(part.join("s.rs"), "fn s() {}\n").unwrap();
    git(&part, &["init", "-q"]);
    git(&part, &["add", "-A"]);
    git(&part, &["commit", "-qm", "part"]);
    git(&scratch.root(), &["submodule", "add", "-q", part.to_str().unwrap(), "part"]);
    git(&scratch.root(), &["commit", "-qm", "with a part"]);
    scratch
}

#[test]
fn s17_work_in_a_submodule_is_found_missing() {
    for line in [
        "git submodule update --force",
        "git submodule foreach git checkout .",
        "for f in part/*; do echo z >> $f; done",
    ] {
        let scratch = with_submodule();
        let alice = agent(&scratch, "alice");
        assert_eq!(denied(&alice.write("part/s.rs", WORK)), None);
        scratch.write("part/s.rs", WORK);
        match run(&scratch, line) {
            Err(why) => assert!(why.contains("is held by"), "{line}: {why}"),
            Ok(told) => {
                assert!(told.contains("part/s.rs is held by"), "{line}: {told}");
                let saved = scratch.baton(&["rescue", "list"]).ok().out;
                assert!(saved.contains("part"), "{line}: {saved}");
            }
        }
    }
}

#[test]
fn the_whole_tree_is_no_leave_to_throw_away_what_others_have_in_it() {
    Scratch::on_each_store("", |scratch| {
        let alice = agent(scratch, "alice");
        assert_eq!(denied(&alice.write("src/a.rs", WORK)), None);
        scratch.write("src/a.rs", WORK);
        let why = run(scratch, "git switch -c other").unwrap_err();
        assert!(!why.contains("@git/tree") && why.contains("uncommitted"), "{why}");
        let mut command = scratch.command(&["claim", "@git/tree"]);
        command.env("CLAUDECODE", "1").env("CLAUDE_CODE_SESSION_ID", "bob");
        assert!(command.output().unwrap().status.success());
        for line in ["git reset --hard", "git checkout -f main", "git clean -fd", "git switch -"] {
            let why = run(scratch, line).expect_err(line);
            assert!(why.contains("was not run"), "{line}: {why}");
        }
        // With nothing to lose, the whole tree is whoever took it.
        scratch.write("src/a.rs", "fn a() {}\n");
        assert!(run(scratch, "git switch -c other").is_ok());
    });
}

#[test]
fn an_edit_that_nobody_judged_is_judged_when_it_is_told() {
    Scratch::on_each_store("", |scratch| {
        let (alice, bob) = (agent(scratch, "alice"), agent(scratch, "bob"));
        let told = |agent: &Agent<'_>, text: &str| {
            let input = json!({ "file_path": agent.file("src/a.rs"), "content": text });
            agent.tool("after", "Write", &input).out
        };
        assert_eq!(denied(&alice.write("src/a.rs", WORK)), None);
        scratch.write("src/a.rs", WORK);
        assert_eq!(told(&alice, WORK), "");
        // What it did not do is not laid at its door.
        assert_eq!(told(&bob, "fn b() {}\n"), "");
        scratch.write("src/a.rs", "fn b() {}\n");
        let said = told(&bob, "fn b() {}\n");
        assert!(said.contains("your edit changed src/a.rs"), "{said}");
        let journal = scratch.baton(&["journal"]).ok().out;
        assert!(journal.contains("wrote to src/a.rs, which"), "{journal}");
        let news = alice.tells(json!({ "hook_event_name": "UserPromptSubmit" })).out;
        assert!(news.contains("src/a.rs"), "{news}");
    });
}

/// Two clones on one machine, of which each is a tree of the one workspace.
#[test]
fn a_file_of_another_clone_is_judged_and_held_there() {
    let Some(address) = crate::shared_store::address() else { return };
    let scratch = Scratch::repository().on_store(&address);
    let made = scratch.baton(&["init", "--yes", "--agents", "none", "--json"]).ok().json();
    let copy = scratch.path("copy");
    let folder = copy.to_str().unwrap();
    scratch.git(&["clone", "-q", ".", folder]);
    let join = made["workspace"].as_str().unwrap();
    scratch.baton(&["-C", folder, "init", "--yes", "--agents", "none", "--join", join]).ok();
    let carol = Agent { scratch: &scratch, client: "claude", id: "carol" };
    let file = copy.join("src/a.rs");
    let input = json!({ "file_path": file, "content": WORK });
    let there = json!({ "hook_event_name": "PreToolUse", "tool_name": "Write",
        "session_id": "carol", "cwd": copy, "tool_input": input });
    let said = crate::hooks::hook_with(&scratch, "claude", there.to_string().as_bytes(), &[]);
    assert_eq!(denied(&said), None);
    std::fs::write(&file, WORK).unwrap();
    let bob = agent(&scratch, "bob");
    let why = denied(&bob.tool("before", "Write", &input)).expect("it is held there");
    assert!(why.contains("is held by"), "{why}");
    for line in ["echo x > {}/src/a.rs", "git -C {} reset --hard", "rm -rf {}/src"] {
        run(&scratch, &line.replace("{}", folder)).expect_err(line);
    }
    assert_eq!(denied(&carol.tool("before", "Write", &input)), None, "its own, wherever it stands");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), WORK);
}
