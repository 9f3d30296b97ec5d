//! Who is accused of a change, and who is not: lines that go elsewhere, other trees, writers that
//! nobody knows.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{Said, Scratch};
use crate::hooks::{denied, hook_with};

/// An agent in a client that tells where it stands.
struct Agent<'a> {
    scratch: &'a Scratch,
    id: &'a str,
    cwd: PathBuf,
    agent: Option<&'a str>,
}

impl<'a> Agent<'a> {
    fn new(scratch: &'a Scratch, id: &'a str) -> Self {
        Self { scratch, id, cwd: scratch.root(), agent: None }
    }

    /// The same, somewhere else.
    fn at(&self, cwd: &Path) -> Self {
        Self { cwd: cwd.to_owned(), ..*self }
    }

    fn tells(&self, mut payload: Value) -> Said {
        payload["session_id"] = json!(self.id);
        payload["cwd"] = json!(self.cwd);
        if let Some(agent) = self.agent {
            payload["agent_id"] = json!(agent);
        }
        hook_with(self.scratch, "claude", payload.to_string().as_bytes(), &[])
    }

    fn tool(&self, event: &str, call: &str, name: &str, input: &Value) -> Said {
        self.tells(json!({ "hook_event_name": event, "tool_name": name, "tool_input": input,
            "tool_use_id": call, "tool_response": {} }))
    }

    fn edits(&self, path: &Path, text: &str) -> Option<String> {
        let input = json!({ "file_path": path, "content": text });
        let why = denied(&self.tool("PreToolUse", "edit", "Write", &input));
        if why.is_none() {
            std::fs::write(path, text).unwrap();
            self.tool("PostToolUse", "edit", "Write", &input);
        }
        why
    }

    #[track_caller]
    fn begins(&self, call: &str, line: &str) {
        let said = self.tool("PreToolUse", call, "Bash", &json!({ "command": line }));
        assert_eq!(denied(&said), None, "{line}");
    }

    fn ends(&self, call: &str, line: &str) -> Said {
        self.tool("PostToolUse", call, "Bash", &json!({ "command": line }))
    }
}

/// Longer than the step of the clock of files.
fn a_moment() {
    std::thread::sleep(Duration::from_millis(60));
}

/// A workspace with these files committed.
fn with_files(files: &[&str]) -> Scratch {
    let scratch = Scratch::workspace();
    files.iter().for_each(|file| scratch.write(file, "one\n"));
    scratch.git(&["add", "-A"]);
    scratch.git(&["commit", "-qm", "files"]);
    scratch
}

fn add_tree(scratch: &Scratch) -> PathBuf {
    let tree = scratch.folder.path().canonicalize().unwrap().join("side");
    scratch.git(&["worktree", "add", "-q", "-b", "side", tree.to_str().unwrap()]);
    tree
}

#[track_caller]
fn accused(said: &Said, file: &str) {
    assert!(said.out.contains(&format!("Baton: your command changed {file}")), "{said:?}");
}

/// Said to have changed, and laid at nobody's door.
#[track_caller]
fn noted(scratch: &Scratch, said: &Said, file: &str) {
    assert!(!said.out.contains("Baton: your command changed"), "{said:?}");
    assert!(said.out.contains(&format!("{file} changed while a command of yours ran")), "{said:?}");
    let journal = scratch.baton(&["journal"]).ok().out;
    assert!(journal.contains("changed while a command of"), "{journal}");
    assert!(!journal.contains("around the edit door"), "{journal}");
}

#[test]
fn a_line_that_goes_to_a_folder_is_read_from_where_it_began() {
    let scratch = with_files(&["sub/a.rs"]);
    let (ann, bob) = (Agent::new(&scratch, "ann"), Agent::new(&scratch, "bob"));
    let (root, sub) = (scratch.root(), scratch.root().join("sub"));
    let file = sub.join("a.rs");
    assert_eq!(ann.edits(&file, "two\n"), None);
    bob.begins("m", "make");
    let line = "cd sub && sed -i s/two/TWO/ a.rs";
    ann.begins("k", line);
    std::fs::write(&file, "TWO\n").unwrap();
    // Its client has gone along.
    ann.at(&sub).ends("k", line);
    let said = bob.ends("m", "make");
    assert!(!said.out.contains("a.rs"), "it was ann's own line: {said:?}");
    // And what it wrote itself it knows.
    let input = json!({ "file_path": file, "content": "all new\n" });
    let said = ann.at(&sub).tool("PreToolUse", "w", "Write", &input);
    assert_eq!(denied(&said), None);
    // Reading goes the same way.
    scratch.write("sub/b.rs", "one\n");
    ann.begins("r", "cd sub && cat b.rs");
    ann.at(&sub).ends("r", "cd sub && cat b.rs");
    scratch.write("sub/b.rs", "other\n");
    let input = json!({ "file_path": sub.join("b.rs"), "content": "new\n" });
    let why = denied(&ann.at(&root).tool("PreToolUse", "w", "Write", &input)).expect("stale");
    assert!(why.contains("sub/b.rs"), "{why}");
}

#[test]
fn a_line_that_goes_to_another_tree_ends_where_it_began() {
    let scratch = with_files(&["a.rs"]);
    let side = add_tree(&scratch);
    let (ann, bob) = (Agent::new(&scratch, "ann"), Agent::new(&scratch, "bob"));
    assert_eq!(ann.edits(&scratch.root().join("a.rs"), "ann's\n"), None);
    let line = format!("cd {} && make", side.display());
    ann.begins("k", &line);
    ann.at(&side).ends("k", &line);
    a_moment();
    bob.begins("g", "./gen.sh");
    scratch.write("a.rs", "bob's\n");
    accused(&bob.ends("g", "./gen.sh"), "a.rs");
    // One that was interrupted there ends with the turn.
    assert_eq!(ann.edits(&side.join("a.rs"), "ann's\n"), None);
    ann.begins("l", &line);
    ann.tells(json!({ "hook_event_name": "UserPromptSubmit", "prompt": "go on" })).ok();
    a_moment();
    let there = Agent::new(&scratch, "carl").at(&side);
    there.begins("g", "./gen.sh");
    std::fs::write(side.join("a.rs"), "carl's\n").unwrap();
    accused(&there.ends("g", "./gen.sh"), "a.rs");
}

#[test]
fn old_commits_of_another_tree_are_nobodys_breach() {
    let scratch = with_files(&["a.rs"]);
    for number in 0..6 {
        scratch.write("a.rs", &format!("{number}\n"));
        scratch.git(&["commit", "-qam", "more"]);
    }
    let side = add_tree(&scratch);
    // What was committed there makes its record of HEAD the longer one.
    for number in 0..9 {
        std::fs::write(side.join("a.rs"), format!("side {number}\n")).unwrap();
        scratch.git(&["-C", side.to_str().unwrap(), "commit", "-qam", "there"]);
    }
    let (ann, bob) = (scratch.session("ann"), Agent::new(&scratch, "bob"));
    scratch.acts(&ann, &["claim", "a.rs"]).ok();
    let line = format!("cd {} && make all", side.display());
    for cwd in [side, scratch.root()] {
        bob.begins("k", &line);
        let said = bob.at(&cwd).ends("k", &line);
        assert!(!said.out.contains("a.rs"), "{said:?}");
    }
}

#[test]
fn a_look_at_one_tree_says_nothing_of_another() {
    let scratch = with_files(&["a.rs"]);
    let side = add_tree(&scratch);
    let (ann, bob) = (scratch.session("ann"), Agent::new(&scratch, "bob"));
    scratch.acts(&ann, &["claim", "a.rs"]).ok();
    scratch.write("a.rs", "by ann\n");
    let line = format!("cd {} && ./gen.sh", side.display());
    bob.begins("k", &line);
    let said = bob.at(&side).ends("k", &line);
    assert!(!said.out.contains("a.rs"), "{said:?}");
    // There it was looked at, too: what goes back to HEAD is seen, and a copy is left.
    std::fs::write(side.join("a.rs"), "work of ann\n").unwrap();
    a_moment();
    bob.at(&scratch.root()).begins("l", &line);
    scratch.git(&["-C", side.to_str().unwrap(), "checkout", "-q", "--", "a.rs"]);
    let said = bob.at(&side).ends("l", &line);
    accused(&said, "a.rs");
    assert!(said.out.contains("is kept in "), "{said:?}");
}

#[test]
fn a_line_whose_writes_are_known_runs_too() {
    let scratch = with_files(&["a.rs"]);
    let (ann, bob) = (Agent::new(&scratch, "ann"), Agent::new(&scratch, "bob"));
    assert_eq!(ann.edits(&scratch.root().join("a.rs"), "ann's\n"), None);
    bob.begins("m", "./all.sh");
    ann.begins("e", "echo x >> a.rs; sleep 5");
    scratch.write("a.rs", "ann's\nx\n");
    let said = bob.ends("m", "./all.sh");
    assert!(!said.out.contains("a.rs"), "ann's line still runs: {said:?}");
    ann.ends("e", "echo x >> a.rs; sleep 5");
    // One that was refused does not.
    a_moment();
    let refused = json!({ "command": "echo x > a.rs" });
    assert!(denied(&bob.tool("PreToolUse", "n", "Bash", &refused)).is_some());
    assert_eq!(bob.edits(&scratch.root().join("b.rs"), "bob's\n"), None);
    a_moment();
    ann.begins("o", "./all.sh");
    scratch.write("b.rs", "ann's\n");
    accused(&ann.ends("o", "./all.sh"), "b.rs");
}

#[test]
fn an_unknown_writer_is_noted_and_nobody_is_accused() {
    let scratch = with_files(&["a.rs", "c.rs"]);
    let (ann, bob) = (Agent::new(&scratch, "ann"), Agent::new(&scratch, "bob"));
    assert_eq!(ann.edits(&scratch.root().join("a.rs"), "ann's\n"), None);
    assert_eq!(ann.edits(&scratch.root().join("c.rs"), "ann's\n"), None);
    a_moment();
    // The holder's own formatter, after its own edit.
    bob.begins("m", "./all.sh");
    assert_eq!(ann.edits(&scratch.root().join("a.rs"), "ann's again\n"), None);
    std::thread::sleep(Duration::from_millis(200));
    scratch.write("a.rs", "ann's again, in good form\n");
    noted(&scratch, &bob.ends("m", "./all.sh"), "a.rs");
    a_moment();
    // An editor of somebody who has no session.
    bob.begins("t", "cargo test");
    scratch.write("c.rs", "typed\n");
    noted(&scratch, &bob.ends("t", "cargo test"), "c.rs");
}

#[test]
fn who_names_a_file_or_runs_what_names_it_is_accused() {
    let scratch = with_files(&["src/a.rs"]);
    scratch.write("gen.sh", "printf x > src/a.rs\n");
    scratch.write("Makefile", "all:\n\tsh gen.sh\n");
    let (ann, bob) = (Agent::new(&scratch, "ann"), Agent::new(&scratch, "bob"));
    let file = scratch.root().join("src/a.rs");
    for line in [
        "python3 -c \"import tool; tool.make('src/a.rs')\"",
        "cd src && python3 -c \"import tool; tool.make('a.rs')\"",
        "sh gen.sh",
        "make",
        "python3 gone.py",
    ] {
        ann.tool("PostToolUse", "r", "Read", &json!({ "file_path": file }));
        assert_eq!(ann.edits(&file, &format!("before {line}\n")), None);
        a_moment();
        bob.begins("k", line);
        scratch.write("src/a.rs", &format!("after {line}\n"));
        accused(&bob.ends("k", line), "src/a.rs");
    }
    let breaches = scratch.baton(&["journal"]).ok().out.matches("around the edit door").count();
    assert_eq!(breaches, 5);
}

#[test]
fn who_makes_up_the_names_it_writes_is_accused_where_nobody_else_did_anything() {
    let scratch = with_files(&["a.rs"]);
    let all = "import glob\nfor f in glob.glob('*.r' + 's'):\n    open(f, 'w').write('x')\n";
    scratch.write("all.py", all);
    scratch.write("each.sh", "for f in *; do echo x > $f; done\n");
    scratch.write("one.py", "open('out.txt', 'w').write('x')\n");
    let (ann, bob) = (Agent::new(&scratch, "ann"), Agent::new(&scratch, "bob"));
    let file = scratch.root().join("a.rs");
    let inline = "python3 -c \"open('a' + '.r' + 's', 'w')\"";
    for line in ["python3 all.py", "sh each.sh", inline] {
        ann.tool("PostToolUse", "r", "Read", &json!({ "file_path": file }));
        assert_eq!(ann.edits(&file, &format!("before {line}\n")), None);
        a_moment();
        bob.begins("k", line);
        scratch.write("a.rs", &format!("after {line}\n"));
        accused(&bob.ends("k", line), "a.rs");
    }
    let said = scratch.baton(&["journal"]).ok().out;
    assert_eq!(said.matches("around the edit door").count(), 3, "{said}");
}

#[test]
fn nobody_is_accused_by_a_script_whose_names_stand_in_it_or_while_others_are_at_work() {
    let scratch = with_files(&["a.rs", "b.rs"]);
    scratch.write("all.py", "for f in glob.glob('*.r' + 's'):\n    open(f, 'w')\n");
    scratch.write("one.py", "open('out.txt', 'w').write('x')\n");
    let (ann, bob) = (Agent::new(&scratch, "ann"), Agent::new(&scratch, "bob"));
    let carl = Agent::new(&scratch, "carl");
    assert_eq!(ann.edits(&scratch.root().join("a.rs"), "ann's\n"), None);
    a_moment();
    bob.begins("k", "python3 one.py");
    scratch.write("a.rs", "typed\n");
    noted(&scratch, &bob.ends("k", "python3 one.py"), "a.rs");
    a_moment();
    carl.begins("c", "make");
    bob.begins("l", "python3 all.py");
    scratch.write("a.rs", "by one of two\n");
    noted(&scratch, &bob.ends("l", "python3 all.py"), "a.rs");
}

#[test]
fn a_subagent_that_was_interrupted_hides_nothing() {
    let scratch = with_files(&["b.rs"]);
    let (ann, bob) = (Agent::new(&scratch, "ann"), Agent::new(&scratch, "bob"));
    assert_eq!(bob.edits(&scratch.root().join("b.rs"), "bob's\n"), None);
    let worker = Agent { agent: Some("worker"), ..bob.at(&scratch.root()) };
    worker.begins("q", "make");
    let prompt = json!({ "hook_event_name": "UserPromptSubmit", "prompt": "go on" });
    bob.tells(prompt.clone()).ok();
    a_moment();
    ann.begins("z", "./gen.sh");
    scratch.write("b.rs", "ann's\n");
    // It may still run, and have written that.
    noted(&scratch, &ann.ends("z", "./gen.sh"), "b.rs");
    long_ago(&scratch);
    bob.tells(prompt).ok();
    a_moment();
    ann.begins("z", "./gen.sh");
    scratch.write("b.rs", "ann's again\n");
    accused(&ann.ends("z", "./gen.sh"), "b.rs");
}

#[test]
fn who_only_looks_at_a_file_is_not_accused_of_its_change() {
    let scratch = with_files(&["src/x.py", "b.txt"]);
    scratch.write("package.json", r#"{"scripts": {"test": "eslint src/ && jest src/x.py"}}"#);
    scratch.write("show.sh", "#!/bin/sh\ncat src/x.py | grep -c before\n");
    let (ann, bob) = (Agent::new(&scratch, "ann"), Agent::new(&scratch, "bob"));
    let file = scratch.root().join("src/x.py");
    for line in [
        "mypy src",
        "pytest src",
        "pytest -k fix",
        "npx eslint src",
        "ruff check src",
        "cargo test format",
        "python3 -m py_compile src/x.py",
        "npm test",
        "git commit -m \"fix src/x.py\" -- b.txt",
        "python3 -c \"print(open('src/x.py').read())\"",
        "cat src/x.py && make -n",
        "gcc -c src/x.py -o /dev/null",
        "./show.sh",
        "bash show.sh",
    ] {
        ann.tool("PostToolUse", "r", "Read", &json!({ "file_path": file }));
        assert_eq!(ann.edits(&file, &format!("before {line}\n")), None);
        a_moment();
        bob.begins("k", line);
        scratch.write("src/x.py", &format!("saved in an editor during {line}\n"));
        let said = bob.ends("k", line);
        assert!(!said.out.contains("Baton: your command changed"), "{line}: {said:?}");
        assert!(said.out.contains("src/x.py changed while a command of yours"), "{line}: {said:?}");
    }
    for line in ["npx eslint --fix src", "ruff format src", "cargo fmt", "black src"] {
        ann.tool("PostToolUse", "r", "Read", &json!({ "file_path": file }));
        assert_eq!(ann.edits(&file, &format!("before {line}\n")), None);
        a_moment();
        let input = json!({ "command": line });
        if denied(&bob.tool("PreToolUse", "k", "Bash", &input)).is_some() {
            continue;
        }
        scratch.write("src/x.py", &format!("written by {line}\n"));
        accused(&bob.ends("k", line), "src/x.py");
    }
}

fn held(scratch: &Scratch) -> String {
    scratch.baton(&["claims"]).ok().out
}

#[test]
fn what_no_word_of_a_command_names_is_claimed_only_for_who_is_alone_and_told() {
    let scratch = with_files(&["a.rs", "b.rs"]);
    let bob = Agent::new(&scratch, "bob");
    bob.begins("k", "cargo test");
    scratch.write("a.rs", "made\n");
    let said = bob.ends("k", "cargo test");
    assert!(said.out.contains("claimed for you: a.rs"), "{said:?}");
    assert!(held(&scratch).contains("a.rs"));
    // With somebody else in the tree it may be anybody's.
    let ann = Agent::new(&scratch, "ann");
    assert_eq!(ann.edits(&scratch.root().join("c.rs"), "ann's\n"), None);
    a_moment();
    bob.begins("l", "cargo test");
    scratch.write("b.rs", "typed by a person\n");
    let said = bob.ends("l", "cargo test");
    assert!(said.out.contains("is not claimed for you"), "{said:?}");
    assert!(said.out.contains("baton claim b.rs"), "{said:?}");
    assert!(!held(&scratch).contains("b.rs"));
    // What cannot be read may have made it.
    bob.begins("m", "./gen.sh");
    scratch.write("d.rs", "made\n");
    let said = bob.ends("m", "./gen.sh");
    assert!(said.out.contains("claimed for you: d.rs"), "{said:?}");
    assert!(held(&scratch).contains("d.rs"));
}

#[test]
fn folders_that_are_moved_or_removed_are_claimed_file_by_file() {
    for (line, gone, made) in [
        ("mv doc docs", true, true),
        ("git mv doc docs", true, true),
        ("rm -rf doc", true, false),
        ("git rm -rq doc", true, false),
    ] {
        let scratch = with_files(&["doc/a.md", "doc/deep/b.md"]);
        a_moment();
        let bob = Agent::new(&scratch, "bob");
        // Somebody else works here as well.
        let ann = Agent::new(&scratch, "ann");
        assert_eq!(ann.edits(&scratch.root().join("c.rs"), "ann's\n"), None);
        a_moment();
        bob.begins("k", line);
        let mut words = line.split(' ');
        let mut command = std::process::Command::new(words.next().unwrap());
        let done = command.args(words).current_dir(scratch.root()).status().unwrap();
        assert!(done.success(), "{line}");
        bob.ends("k", line);
        let held = held(&scratch);
        for file in ["doc/a.md", "doc/deep/b.md"] {
            assert_eq!(held.contains(file), gone, "{line}: {held}");
        }
        for file in ["docs/a.md", "docs/deep/b.md"] {
            assert_eq!(held.contains(file), made, "{line}: {held}");
        }
    }
}

/// All that hooks saw until now was seen an hour before.
fn long_ago(scratch: &Scratch) {
    for entry in std::fs::read_dir(scratch.store().join("traces")).unwrap() {
        let path = entry.unwrap().path();
        if !path.file_name().unwrap().to_str().unwrap().starts_with("tree-") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let earlier = text.lines().map(|line| {
            let (at, rest) = line.split_once(' ').unwrap();
            format!("{} {rest}\n", at.parse::<u64>().unwrap() - 3_600_000)
        });
        std::fs::write(&path, earlier.collect::<String>()).unwrap();
    }
}
