//! Which tree an act concerns: files, dangers and sessions in another working tree than the one
//! that an agent stands in, and outside all of them.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::harness::{Said, Scratch};
use crate::hooks::{denied, hook_with};

/// Zones of which there is no file, and that every pattern reaches into.
const STRICT: &str = "[[zone]]\npaths = [\"**/nothing.sql\"]\npolicy = \"require\"\n\
     [[zone]]\npaths = [\"**/nothing.lock\"]\npolicy = \"serial\"\n";

/// A workspace with a second tree.
fn with_tree() -> (Scratch, PathBuf) {
    with_second(Scratch::workspace())
}

fn with_second(scratch: Scratch) -> (Scratch, PathBuf) {
    let tree = scratch.folder.path().canonicalize().unwrap().join("side");
    scratch.git(&["worktree", "add", "-q", "-b", "side", &shown(&tree)]);
    (scratch, tree)
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// What a session says from a folder.
struct Agent<'a> {
    scratch: &'a Scratch,
    id: &'a str,
    cwd: PathBuf,
    agent: Option<&'a str>,
    project: Option<PathBuf>,
}

impl<'a> Agent<'a> {
    fn new(scratch: &'a Scratch, id: &'a str, cwd: &Path) -> Self {
        Self { scratch, id, cwd: cwd.to_owned(), agent: None, project: None }
    }

    fn tells(&self, mut payload: Value) -> Said {
        payload["session_id"] = json!(self.id);
        payload["cwd"] = json!(self.cwd);
        if let Some(agent) = self.agent {
            payload["agent_id"] = json!(agent);
        }
        let project = self.project.as_deref().map(shown).unwrap_or_default();
        let set = [("CLAUDE_PROJECT_DIR", project.as_str())];
        let set = if project.is_empty() { &set[..0] } else { &set };
        hook_with(self.scratch, "claude", payload.to_string().as_bytes(), set)
    }

    fn event(&self, name: &str) -> Said {
        self.tells(json!({ "hook_event_name": name, "source": "startup" }))
    }

    fn tool(&self, event: &str, name: &str, input: &Value) -> Said {
        self.tells(json!({ "hook_event_name": event, "tool_name": name, "tool_input": input,
            "tool_use_id": "c1", "tool_response": {} }))
    }

    /// Asks for an edit, and does it where it may be.
    fn edit(&self, path: &Path, text: &str) -> Option<String> {
        let input = json!({ "file_path": path, "content": text });
        let why = denied(&self.tool("PreToolUse", "Write", &input));
        if why.is_none() {
            std::fs::write(path, text).unwrap();
            self.tool("PostToolUse", "Write", &input);
        }
        why
    }

    fn line(&self, line: &str) -> Said {
        self.tool("PreToolUse", "Bash", &json!({ "command": line }))
    }

    #[track_caller]
    fn is_refused(&self, line: &str) -> String {
        denied(&self.line(line)).unwrap_or_else(|| panic!("it may run: {line}"))
    }

    #[track_caller]
    fn may_run(&self, line: &str) -> String {
        let said = self.line(line);
        assert_eq!(denied(&said), None, "{line}");
        said.out
    }
}

fn claims(scratch: &Scratch) -> Vec<Value> {
    let claims = scratch.baton(&["claims", "--json"]).ok().json();
    claims["claims"].as_array().unwrap().clone()
}

fn seat_of<'a>(seats: &'a Value, tree_of: &str) -> &'a Value {
    let seats = seats["sessions"].as_array().unwrap();
    seats.iter().find(|seat| seat["name"] == tree_of).map(|seat| &seat["tree"]).unwrap()
}

#[test]
fn a_file_is_judged_and_held_in_the_tree_it_lies_in() {
    let (scratch, side) = with_tree();
    let main = Agent::new(&scratch, "main", &scratch.root());
    let other = Agent::new(&scratch, "side", &side);
    assert_eq!(other.edit(&side.join("src/a.rs"), "fn side() {}\n"), None);
    let why = main.edit(&side.join("src/a.rs"), "fn main() {}\n").expect("it is held there");
    assert!(why.contains("src/a.rs is held by"), "{why}");
    assert!(why.contains(&format!("another working tree, {}", shown(&side))), "{why}");
    // The same name in one's own tree is another file.
    assert_eq!(main.edit(&scratch.root().join("src/a.rs"), "fn main() {}\n"), None);
    // What is free there is claimed there, and kept from those who work there.
    assert_eq!(main.edit(&side.join("README.md"), "main\n"), None);
    let held = claims(&scratch);
    let tree = |name: &str| {
        let named = |claim: &&Value| claim["resources"][0] == name;
        held.iter().filter(named).map(|claim| claim["tree"].clone()).collect::<Vec<_>>()
    };
    let (sources, readme) = (tree("src/a.rs"), tree("README.md"));
    assert_eq!((sources.len(), readme.len()), (2, 1), "{held:?}");
    assert!(sources[0] != sources[1] && sources.contains(&readme[0]), "{held:?}");
    assert!(other.edit(&side.join("README.md"), "side\n").is_some());
    let side = shown(&side);
    for line in [format!("echo x > {side}/src/a.rs"), format!("rm -rf {side}/src")] {
        main.is_refused(&line);
    }
    main.is_refused(&format!("cd {side} && echo x >> src/a.rs"));
    // A command asks in the same way.
    let asked = scratch.baton(&["check", &format!("{side}/src/a.rs")]);
    assert_eq!(asked.code, 1, "{asked:?}");
    scratch.baton(&["journal", "verify"]).ok();
}

#[test]
fn what_a_program_left_in_another_tree_is_laid_at_the_door_of_whoever_ran_it() {
    let (scratch, side) = with_tree();
    let main = Agent::new(&scratch, "main", &scratch.root());
    let other = Agent::new(&scratch, "side", &side);
    assert_eq!(other.edit(&side.join("src/a.rs"), "fn side() {}\n"), None);
    let side = shown(&side);
    for line in [format!("cd {side} && python3 w.py"), format!("python3 w.py {side}/src")] {
        std::thread::sleep(std::time::Duration::from_millis(60));
        main.may_run(&line);
        std::fs::write(format!("{side}/src/a.rs"), format!("// {line}\n")).unwrap();
        let said = main.tool("PostToolUse", "Bash", &json!({ "command": line }));
        assert!(said.out.contains("your command changed src/a.rs"), "{line}: {said:?}");
    }
}

#[test]
fn what_a_pattern_writes_in_another_tree_is_claimed_there() {
    let (scratch, side) = with_tree();
    let main = Agent::new(&scratch, "main", &scratch.root());
    let line = "sed -i s/a/b/ ../side/src/*.rs";
    main.may_run(line);
    std::fs::write(side.join("src/a.rs"), "fn b() {}\n").unwrap();
    main.tool("PostToolUse", "Bash", &json!({ "command": line }));
    let other = Agent::new(&scratch, "side", &side);
    let why = other.edit(&side.join("src/a.rs"), "fn side() {}\n").expect("it is held");
    assert!(why.contains("src/a.rs is held by"), "{why}");
}

#[test]
fn a_line_of_a_subagent_that_goes_to_another_tree_is_its_own_to_the_end() {
    let (scratch, side) = with_tree();
    let seats = || {
        let seats = scratch.baton(&["session", "list", "--json"]).ok().json();
        seats["sessions"].as_array().unwrap().len()
    };
    let mut kid = Agent::new(&scratch, "parent", &scratch.root());
    kid.agent = Some("kid");
    assert_eq!(kid.edit(&scratch.root().join("README.md"), "kid\n"), None);
    let line = format!("cd {} && python3 w.py", shown(&side));
    kid.may_run(&line);
    std::fs::write(side.join("src/a.rs"), "fn kid() {}\n").unwrap();
    // Clients tell where the line went.
    let there =
        Agent { cwd: side.clone(), agent: Some("kid"), ..Agent::new(&scratch, "parent", &side) };
    there.tool("PostToolUse", "Bash", &json!({ "command": line }));
    assert_eq!(seats(), 1);
    let held = claims(&scratch);
    assert_eq!(held.len(), 2, "{held:?}");
    assert!(held.iter().all(|claim| claim["holder"]["agent"] == "kid"), "{held:?}");
    there.event("SubagentStop");
    assert_eq!(seats(), 1);
    let held = claims(&scratch);
    assert!(held.iter().all(|claim| claim["holder"]["agent"].is_null()), "{held:?}");
    // One that goes on there is on its own, and leaves nothing behind when it stops.
    assert_eq!(kid.edit(&scratch.root().join("b.rs"), "kid\n"), None);
    assert_eq!(there.edit(&side.join("c.rs"), "kid\n"), None);
    assert_eq!(seats(), 2);
    there.event("SubagentStop");
    let held = claims(&scratch);
    assert!(held.iter().all(|claim| claim["holder"]["agent"].is_null()), "{held:?}");
}

#[test]
fn a_command_in_the_background_is_looked_after_in_every_tree_it_is_about() {
    let (scratch, side) = with_tree();
    let main = Agent::new(&scratch, "main", &scratch.root());
    let other = Agent::new(&scratch, "side", &side);
    assert_eq!(other.edit(&side.join("src/a.rs"), "fn side() {}\n"), None);
    let line = format!("cd {} && python3 w.py src/a.rs &", shown(&side));
    let pause = || std::thread::sleep(std::time::Duration::from_millis(60));
    pause();
    main.may_run(&line);
    main.tool("PostToolUse", "Bash", &json!({ "command": line }));
    let writes = |text: &str| {
        pause();
        std::fs::write(side.join("src/a.rs"), text).unwrap();
    };
    writes("fn once() {}\n");
    let asked = json!({ "command": "ls" });
    main.may_run("ls");
    let said = main.tool("PostToolUse", "Bash", &asked);
    assert!(said.out.contains("changed src/a.rs"), "{said:?}");
    writes("fn twice() {}\n");
    let said = main.event("UserPromptSubmit");
    assert!(said.out.contains("changed src/a.rs"), "{said:?}");
    let said = main.event("UserPromptSubmit");
    assert!(!said.out.contains("changed src/a.rs"), "{said:?}");
}

#[test]
fn the_last_of_many_places_counts_like_the_first() {
    let (scratch, side) = with_tree();
    let main = Agent::new(&scratch, "main", &scratch.root());
    let other = Agent::new(&scratch, "side", &side);
    assert_eq!(other.edit(&side.join("src/a.rs"), "fn side() {}\n"), None);
    let many: Vec<String> = (0..300).map(|number| format!("build/{number:04}")).collect();
    let (many, side) = (many.join(" "), shown(&side));
    main.is_refused(&format!("rm -rf {many} {side}"));
    main.is_refused(&format!("rm -rf {many} {side}/src"));
    main.is_refused(&format!("rm -rf {many} {side} 'not closed"));
    main.is_refused(&format!("touch {many}; cd {side} && git reset --hard"));
    // From outside it is found too.
    let away = Agent::new(&scratch, "away", &scratch.path("home"));
    away.is_refused(&format!("rm -rf {many} {side}/src"));
    // So often that each for itself would take more than the time there is.
    main.is_refused(&"git stash; ".repeat(4_000));
    let why = main.is_refused(&"x".repeat(2 * 1024 * 1024));
    assert!(why.contains("longer than Baton reads"), "{why}");
}

#[test]
fn a_danger_is_one_where_it_takes_effect_and_nowhere_else() {
    let (scratch, tree) = with_tree();
    let main = Agent::new(&scratch, "main", &scratch.root());
    let other = Agent::new(&scratch, "side", &tree);
    assert_eq!(other.edit(&tree.join("src/a.rs"), "fn side() {}\n"), None);
    let side = shown(&tree);
    let lines = [
        format!("git -C {side} reset --hard"),
        format!("cd {side} && git reset --hard"),
        format!("git -C {side} clean -fdx"),
        format!("git -C {side} checkout -- ."),
        format!("cd {side} && git add -A"),
        format!("git -C {side} checkout -q HEAD~0"),
        format!("git worktree remove --force {side}"),
        format!("cd .. && git -C repo worktree remove -f {side}"),
        format!("rm -rf {side}"),
        "rm -rf ../side".to_owned(),
        format!("mv {side} /tmp/elsewhere"),
    ];
    for line in &lines {
        main.is_refused(line);
    }
    let why = main.is_refused(&lines[0]);
    assert!(why.contains(&format!("in the tree {side}, and uncommitted")), "{why}");
    // With the repository itself everything would go.
    main.is_refused("rm -rf ../repo");
    main.is_refused("rm -rf ..");
    // Alone here, one does as one likes here.
    main.may_run("git reset --hard");
    // And where others work here too, what is done outside is nobody's business.
    let third = Agent::new(&scratch, "third", &scratch.root());
    assert_eq!(third.edit(&scratch.root().join("src/b.rs"), "b\n"), None);
    main.is_refused("git reset --hard");
    for line in [
        "cd /tmp/nowhere && git init && git add -A && git commit -m x",
        "git -C /tmp/nowhere reset --hard",
        "rm -rf /tmp/nowhere/.git",
        "git -C /tmp/nowhere push --force",
    ] {
        main.may_run(line);
    }
    main.is_refused("cd /tmp/nowhere && GIT_DIR=$OLDPWD/.git git reset --hard");
    main.is_refused("cd /tmp/nowhere && baton gate approve g1");
}

#[test]
fn s17_a_tree_within_the_tree_goes_by_no_pattern() {
    let scratch = Scratch::with_policy(STRICT);
    let root = scratch.root();
    scratch.git(&["worktree", "add", "-q", "-b", "t1", "trees/t1"]);
    let main = Agent::new(&scratch, "main", &root);
    let other = Agent::new(&scratch, "other", &root.join("trees/t1"));
    assert_eq!(other.edit(&root.join("trees/t1/src/a.rs"), "fn other() {}\n"), None);
    for line in [
        "rm -rf trees/*",
        "rm -rf trees/t*",
        "rm -rf t*/",
        "rm -rf *",
        "cd trees && rm -rf ./t?",
        &format!("rm -rf {}/tr*", shown(&root)),
        "rm -rf ~/../repo/trees/*",
        "mv trees/* /tmp/nowhere",
        "find trees -mindepth 1 -delete",
        "find trees -name '*' -delete",
        "find . -name 't1' -type d -exec rm -rf {} +",
        "find trees -mtime +7 -delete",
        "git clean -ffdx trees",
        "rsync -a --delete --exclude .git /tmp/nowhere/ ./",
    ] {
        let why = main.is_refused(line);
        assert!(why.contains("in the tree"), "{line}: {why}");
    }
    for line in [
        "rm -rf src/*",
        "rm -rf build* *.log",
        "rm -f trees/*",
        "find . -name __pycache__ -type d -exec rm -rf {} +",
        "git clean -fd",
        "git rm -rfq .",
        "git rm -rf -- :/",
        "git rm -rf trees",
    ] {
        main.may_run(line);
    }
    for line in ["rm -rf .g*", "find . -type f -delete", "find . -mindepth 1 -delete"] {
        let why = main.is_refused(line);
        assert!(why.contains("belongs to git or to Baton"), "{line}: {why}");
    }
    scratch.baton(&["journal", "verify"]).ok();
}

#[test]
fn a_whole_tree_is_rewritten_whatever_is_held_in_others() {
    let (scratch, side) = with_second(Scratch::with_policy(STRICT));
    let other = Agent::new(&scratch, "side", &side);
    assert_eq!(other.edit(&side.join("src/a.rs"), "fn side() {}\n"), None);
    let main = Agent::new(&scratch, "main", &scratch.root());
    for line in ["truncate -s 0 */*", "git restore .", "git rm -rfq ."] {
        main.may_run(line);
    }
    // What another holds in all trees counts here too.
    let holder = scratch.session("holder");
    scratch.acts(&holder, &["claim", "README.md"]).ok();
    main.may_run("truncate -s 0 */*");
    main.is_refused("truncate -s 0 *");
}

#[test]
fn what_is_restored_is_what_differs() {
    let scratch = Scratch::workspace();
    scratch.git(&["add", "-A"]);
    scratch.git(&["commit", "-qm", "policy"]);
    scratch.write("src/a.rs", "fn changed() {}\n");
    let ann = Agent::new(&scratch, "ann", &scratch.root());
    let lines = ["git restore .", "git checkout -- .", "git checkout .", "git restore src *.toml"];
    lines.iter().for_each(|line| drop(ann.may_run(line)));
    for line in ["git checkout HEAD~1 -- .", "git restore -s HEAD~1 .", "git rm -rfq ."] {
        let why = ann.is_refused(line);
        assert!(why.contains("baton.toml is in a zone where a claim comes first"), "{line}: {why}");
    }
    scratch.write("baton.toml", "# changed\n");
    lines.iter().for_each(|line| drop(ann.is_refused(line)));
}

#[test]
fn changes_of_nobody_in_another_tree_are_saved_before_they_are_swept_away() {
    let (scratch, side) = with_tree();
    let main = Agent::new(&scratch, "main", &scratch.root());
    std::fs::write(side.join("src/a.rs"), "fn somebody() {}\n").unwrap();
    let said = main.may_run(&format!("git -C {} reset --hard", shown(&side)));
    assert!(said.contains("were saved first, as refs/baton/rescue/"), "{said}");
    let kept = scratch.git(&["for-each-ref", "--format=%(refname)", "refs/baton/rescue"]);
    let kept = kept.lines().next().expect("a rescue");
    assert_eq!(scratch.git(&["show", &format!("{kept}:src/a.rs")]), "fn somebody() {}\n");
    // What one made there oneself is one's own.
    scratch.git(&["-C", &shown(&side), "reset", "-q", "--hard"]);
    assert_eq!(main.edit(&side.join("src/a.rs"), "fn mine() {}\n"), None);
    let said = main.may_run(&format!("git -C {} reset --hard", shown(&side)));
    assert!(!said.contains("saved"), "{said}");
}

#[test]
fn a_sweep_saves_what_the_dead_left_and_leaves_alone_what_waits_for_a_return() {
    let scratch = Scratch::workspace();
    let ann = Agent::new(&scratch, "ann", &scratch.root());
    ann.event("SessionStart");
    let (gone, mut process) = scratch.session_with_process("gone");
    scratch.acts(&gone, &["claim", "src/a.rs", "--tree"]).ok();
    scratch.write("src/a.rs", "fn gone() {}\n");
    ann.is_refused("git reset --hard");
    process.end();
    let said = ann.may_run("git reset --hard");
    assert!(said.contains("of gone, who is gone, were saved first, as refs/baton/"), "{said}");
    let kept = scratch.git(&["for-each-ref", "--format=%(refname)", "refs/baton/rescue"]);
    let kept = kept.lines().next().expect("a rescue");
    assert_eq!(scratch.git(&["show", &format!("{kept}:src/a.rs")]), "fn gone() {}\n");
    scratch.git(&["reset", "-q", "--hard"]);
    let bob = Agent::new(&scratch, "bob", &scratch.root());
    assert_eq!(bob.edit(&scratch.root().join("src/b.rs"), "fn bob() {}\n"), None);
    bob.event("SessionEnd");
    for line in
        ["git reset --hard", "git checkout -f", "git stash -u", "git add -A", "git clean -f"]
    {
        let why = ann.is_refused(line);
        assert!(why.contains("its claims wait for it"), "{line}: {why}");
    }
    // Files by name are one's own business.
    ann.may_run("git restore README.md");
    scratch.baton(&["journal", "verify"]).ok();
}

#[test]
fn a_session_sits_in_the_tree_it_acts_in() {
    let (scratch, side) = with_tree();
    // A client that makes its tree itself says its first word before.
    let moved = Agent::new(&scratch, "moved", &scratch.root());
    moved.tool("PreToolUse", "Read", &json!({ "file_path": scratch.root().join("README.md") }));
    let before = scratch.baton(&["session", "list", "--json"]).ok().json();
    let name = before["sessions"][0]["name"].as_str().unwrap().to_owned();
    let moved = Agent::new(&scratch, "moved", &side);
    moved.event("SessionStart");
    assert_eq!(moved.edit(&side.join("src/a.rs"), "fn moved() {}\n"), None);
    let after = scratch.baton(&["session", "list", "--json"]).ok().json();
    assert_eq!(after["sessions"].as_array().unwrap().len(), 1, "{after}");
    assert_ne!(seat_of(&before, &name), seat_of(&after, &name));
    let main = Agent::new(&scratch, "main", &scratch.root());
    main.may_run("git reset --hard");
    let beside = Agent::new(&scratch, "beside", &side);
    let why = beside.is_refused("git reset --hard");
    assert!(why.contains(&name), "{why}");
    // A subagent with a tree of its own moves nobody.
    let mut worker = Agent::new(&scratch, "main", &side);
    worker.agent = Some("worker");
    assert_eq!(worker.edit(&side.join("README.md"), "worker\n"), None);
    main.may_run("git status");
    let seats = scratch.baton(&["session", "list", "--json"]).ok().json();
    assert_eq!(seats["sessions"].as_array().unwrap().len(), 4, "{seats}");
    scratch.baton(&["journal", "verify"]).ok();
}

#[test]
fn who_stands_outside_is_judged_where_its_target_or_its_project_is() {
    let (scratch, _) = with_tree();
    let root = scratch.root();
    let holder = Agent::new(&scratch, "holder", &root);
    assert_eq!(holder.edit(&root.join("src/a.rs"), "fn held() {}\n"), None);
    let mut away = Agent::new(&scratch, "away", &root);
    away.event("SessionStart");
    let seats = scratch.baton(&["session", "list", "--json"]).ok().json();
    away.cwd = scratch.path("home");
    assert!(away.edit(&root.join("src/a.rs"), "x\n").is_some(), "its target is in the workspace");
    let at = shown(&root);
    for line in [
        format!("git -C {at} reset --hard"),
        format!("echo x > {at}/src/a.rs"),
        format!("cd {at} && git add -A"),
        format!("rm {at}/src/*.rs"),
        "echo x > ~/../repo/src/a.rs".to_owned(),
        "git -C ../repo reset --hard".to_owned(),
        format!("GIT_DIR={at}/.git git reset --hard"),
    ] {
        away.is_refused(&line);
    }
    assert_eq!(away.line("echo x > /tmp/nowhere/a.rs; git add -A").out, "", "nobody's business");
    away.project = Some(root.clone());
    away.is_refused(&format!("echo x > {}/src/a.rs", shown(&root)));
    away.may_run("git init && git add -A");
    let now = scratch.baton(&["session", "list", "--json"]).ok().json();
    assert_eq!(seats["sessions"].as_array().unwrap().len(), 2);
    assert_eq!(now["sessions"].as_array().unwrap().len(), 2, "{now}");
}

#[test]
fn a_claim_ends_with_the_commit_of_what_was_written_in_the_second_it_was_taken() {
    let scratch = Scratch::workspace();
    scratch.git(&["config", "user.name", "Ann"]);
    scratch.git(&["config", "user.email", "ann@example.invalid"]);
    let root = scratch.root();
    let ann = Agent::new(&scratch, "ann", &root);
    let bob = Agent::new(&scratch, "bob", &root);
    for text in ["fn one() {}\n", "fn two() {}\n", "fn three() {}\n"] {
        for (writer, other) in [(&ann, &bob), (&bob, &ann)] {
            let text = format!("// {}\n{text}", writer.id);
            let input = json!({ "file_path": root.join("src/a.rs"), "content": text });
            writer.tool("PostToolUse", "Read", &json!({ "file_path": root.join("src/a.rs") }));
            assert_eq!(denied(&writer.tool("PreToolUse", "Write", &input)), None, "{text}");
            // A client writes this much after its hook.
            std::thread::sleep(std::time::Duration::from_millis(30));
            scratch.write("src/a.rs", &text);
            writer.tool("PostToolUse", "Write", &input);
            assert!(other.edit(&root.join("src/a.rs"), "x\n").is_some(), "not committed yet");
            scratch.git(&["commit", "-qam", "x"]);
        }
    }
}

#[test]
fn long_ids_of_subagents_are_as_good_as_short_ones() {
    let (scratch, side) = with_tree();
    let parent = "01a1e09f-8541-7993-abfe-ad218c059e71";
    Agent::new(&scratch, parent, &scratch.root()).event("SessionStart");
    let long = format!("01a1e0a0-1111-7993-abfe-ad218c059e72-{}", "x".repeat(60));
    for (at, agent) in ["01a1e0a0-1111-7993-abfe-ad218c059e72", &long].into_iter().enumerate() {
        let mut worker = Agent::new(&scratch, parent, &side);
        worker.agent = Some(agent);
        let file = side.join(format!("{at}.rs"));
        assert_eq!(worker.edit(&file, "x\n"), None, "{agent}");
        assert_eq!(claims(&scratch).len(), 2 * at + 1, "it is claimed");
        let mut here = Agent::new(&scratch, parent, &scratch.root());
        here.agent = Some(agent);
        assert_eq!(here.edit(&scratch.root().join(format!("main{at}.rs")), "x\n"), None);
        assert!(here.edit(&file, "y\n").is_some(), "a session of its own holds it");
        here.event("SubagentStop");
        std::fs::remove_file(&file).unwrap();
    }
}

#[test]
fn siblings_are_told_what_works_among_them() {
    let scratch = Scratch::workspace();
    let file = scratch.root().join("src/a.rs");
    let worker = |agent: &'static str| Agent {
        agent: Some(agent),
        ..Agent::new(&scratch, "parent", &scratch.root())
    };
    assert_eq!(worker("one").edit(&file, "one\n"), None);
    let why = worker("two").edit(&file, "two\n").expect("a sibling is at work on it");
    assert!(why.contains("(subagent one)") && why.contains("Leave the file to it"), "{why}");
    assert!(!why.contains("baton claim") && !why.contains("baton ask"), "{why}");
    let shell = |words: &[&str]| -> Said {
        let mut command = scratch.command(words);
        command.env("CLAUDECODE", "1").env("CLAUDE_CODE_SESSION_ID", "parent");
        command.output().unwrap().into()
    };
    let refused = shell(&["release", "src/a.rs"]).refused(1);
    assert!(refused.err.contains("held by your subagent one"), "{refused:?}");
    shell(&["release", "--all"]).ok();
    assert!(worker("two").edit(&file, "two\n").is_some(), "all of one's own, and no more");
    worker("one").event("SubagentStop");
    shell(&["release", "src/a.rs"]).ok();
    let other = Agent::new(&scratch, "other", &scratch.root());
    assert_eq!(other.edit(&file, "other\n"), None);
}

/// Two projects side by side, each with its own store.
#[test]
fn a_file_of_another_workspace_is_judged_and_held_there() {
    let (here, there) = (Scratch::workspace(), Scratch::workspace());
    let root = there.root().canonicalize().unwrap();
    let visitor = Agent::new(&here, "visitor", &here.root());
    let resident = Agent::new(&there, "resident", &root);
    let (held, free) = (root.join("src/a.rs"), root.join("README.md"));
    assert_eq!(resident.edit(&held, "fn resident() {}\n"), None);
    let why = visitor.edit(&held, "fn visitor() {}\n").expect("it is held there");
    assert!(why.contains(&format!("In another project, {}", shown(&root))), "{why}");
    assert!(why.contains("src/a.rs is held by"), "{why}");
    // The same name here is another file.
    assert_eq!(visitor.edit(&here.root().join("src/a.rs"), "fn visitor() {}\n"), None);
    for line in ["echo x > {}/src/a.rs", "cd {} && rm -rf src", "sed -i s/r/v/ {}/src/a.rs"] {
        visitor.is_refused(&line.replace("{}", &shown(&root)));
    }
    visitor.may_run(&format!("cat {}/src/a.rs", shown(&root)));
    assert_eq!(visitor.edit(&free, "visitor\n"), None);
    assert!(resident.edit(&free, "resident\n").is_some(), "a visitor holds it");
    assert_eq!(claims(&here).len(), 1);
    assert_eq!(claims(&there).len(), 2);
}
