//! Changes of what another holds that no status of git's, no end of a call and no plain path shows.

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{Said, Scratch};
use crate::hooks::{denied, hook_with};

/// An agent of Claude's, or a subagent of one.
struct Agent<'a> {
    scratch: &'a Scratch,
    id: &'a str,
    agent: Option<&'a str>,
}

impl<'a> Agent<'a> {
    fn new(scratch: &'a Scratch, id: &'a str) -> Self {
        Self { scratch, id, agent: None }
    }

    fn tells(&self, mut payload: Value) -> Said {
        payload["session_id"] = json!(self.id);
        payload["cwd"] = json!(self.scratch.root());
        if let Some(agent) = self.agent {
            payload["agent_id"] = json!(agent);
        }
        hook_with(self.scratch, "claude", payload.to_string().as_bytes(), &[])
    }

    fn tool(&self, event: &str, name: &str, input: &Value, response: &Value) -> Said {
        let call = format!("{}{:?}{name}", self.id, self.agent);
        self.tells(json!({ "hook_event_name": event, "tool_name": name, "tool_input": input,
            "tool_use_id": call, "tool_response": response }))
    }

    #[track_caller]
    fn edits(&self, file: &str, text: &str) {
        let input = json!({ "file_path": self.scratch.root().join(file), "content": text });
        self.tool("PostToolUse", "Read", &input, &json!({}));
        assert_eq!(denied(&self.tool("PreToolUse", "Write", &input, &json!({}))), None);
        // By the clock of files the text is newer than the claim.
        a_moment();
        self.scratch.write(file, text);
        self.tool("PostToolUse", "Write", &input, &json!({}));
        a_moment();
    }

    #[track_caller]
    fn begins(&self, line: &str) {
        let input = json!({ "command": line });
        assert_eq!(denied(&self.tool("PreToolUse", "Bash", &input, &json!({}))), None, "{line}");
    }

    fn ends(&self, line: &str) -> Said {
        self.tool("PostToolUse", "Bash", &json!({ "command": line }), &json!({}))
    }

    fn prompt(&self) -> Said {
        self.tells(json!({ "hook_event_name": "UserPromptSubmit", "prompt": "go on" }))
    }
}

/// Longer than the step of the clock of files.
fn a_moment() {
    std::thread::sleep(Duration::from_millis(60));
}

fn with_file(scratch: &Scratch) {
    scratch.write("held.txt", "one\n");
    scratch.write("y.py", "open('held.txt', 'w').write('other')\n");
    scratch.git(&["add", "-A"]);
    scratch.git(&["commit", "-qm", "files"]);
}

fn journal(scratch: &Scratch) -> String {
    scratch.baton(&["journal"]).ok().out
}

/// The text of the file in the one rescue there is.
#[track_caller]
fn rescued(scratch: &Scratch) -> String {
    let names = scratch.git(&["for-each-ref", "--format=%(refname)", "refs/baton/rescue/"]);
    assert_eq!(names.lines().count(), 1, "{names}");
    scratch.git(&["show", &format!("{}:held.txt", names.trim())])
}

#[test]
fn what_another_held_and_is_back_at_head_is_a_breach() {
    Scratch::on_each_store("", |scratch| {
        with_file(scratch);
        let (ann, bob) = (Agent::new(scratch, "ann"), Agent::new(scratch, "bob"));
        for line in ["git diff | git apply -R", "sh reset.sh"] {
            ann.edits("held.txt", &format!("before {line}\n"));
            bob.begins(line);
            scratch.git(&["checkout", "-q", "--", "held.txt"]);
            let said = bob.ends(line);
            assert!(said.out.contains("your command changed held.txt, and"), "{line}: {said:?}");
            let told = ann.prompt();
            assert!(told.out.contains("wrote over held.txt while you held it"), "{told:?}");
            let name = told.out.split("baton rescue show ").nth(1).expect("it is safe");
            let name = name.split(['.', '"', ' ', '\\']).next().unwrap();
            let shown = scratch.baton(&["rescue", "show", name]).ok().out;
            assert!(shown.contains(&format!("+before {line}")), "{shown}");
        }
        let journal = journal(scratch);
        assert_eq!(journal.matches("around the edit door").count(), 2, "{journal}");
        scratch.baton(&["journal", "verify"]).ok();
    });
}

#[test]
fn what_a_sibling_held_and_is_back_at_head_is_a_breach() {
    let scratch = Scratch::workspace();
    with_file(&scratch);
    let one = Agent { agent: Some("one"), ..Agent::new(&scratch, "ann") };
    let two = Agent { agent: Some("two"), ..Agent::new(&scratch, "ann") };
    one.edits("held.txt", "of one\n");
    two.begins("make reset");
    scratch.git(&["checkout", "-q", "--", "held.txt"]);
    let said = two.ends("make reset");
    assert!(said.out.contains("held.txt"), "{said:?}");
    assert!(journal(&scratch).contains("held.txt, which"), "{}", journal(&scratch));
}

#[test]
fn what_its_holder_put_back_or_committed_is_nobodys_breach() {
    let scratch = Scratch::workspace();
    with_file(&scratch);
    let (ann, bob) = (Agent::new(&scratch, "ann"), Agent::new(&scratch, "bob"));
    ann.edits("held.txt", "two\n");
    bob.begins("make all");
    ann.edits("held.txt", "one\n");
    let said = bob.ends("make all");
    assert!(!said.out.contains("held.txt"), "{said:?}");
    ann.edits("held.txt", "three\n");
    bob.begins("make all");
    scratch.git(&["commit", "-qam", "by ann"]);
    let said = bob.ends("make all");
    assert!(!said.out.contains("held.txt"), "{said:?}");
    assert!(!journal(&scratch).contains("around the edit door"));
}

#[test]
fn a_command_that_its_client_sent_to_the_background_is_looked_after() {
    let scratch = Scratch::workspace();
    with_file(&scratch);
    let (ann, bob) = (Agent::new(&scratch, "ann"), Agent::new(&scratch, "bob"));
    ann.edits("held.txt", "of ann\n");
    bob.begins("python3 y.py");
    let response = json!({ "stdout": "", "stderr": "", "interrupted": false,
        "backgroundTaskId": "b1" });
    let input = json!({ "command": "python3 y.py" });
    bob.tool("PostToolUse", "Bash", &input, &response);
    a_moment();
    scratch.write("held.txt", "other\n");
    let said = bob.prompt();
    assert!(said.out.contains("your command changed held.txt"), "{said:?}");
}

#[test]
fn what_changes_while_its_holder_runs_something_is_noted_and_safe() {
    let scratch = Scratch::workspace();
    with_file(&scratch);
    let (ann, bob) = (Agent::new(&scratch, "ann"), Agent::new(&scratch, "bob"));
    ann.edits("held.txt", "of ann\n");
    bob.begins("python3 y.py");
    ann.begins("make test");
    scratch.write("held.txt", "other\n");
    let said = bob.ends("python3 y.py");
    assert!(said.out.contains("held.txt changed while a command of yours ran"), "{said:?}");
    assert!(journal(&scratch).contains("changed while a command of"), "{}", journal(&scratch));
    assert!(!journal(&scratch).contains("around the edit door"));
    assert_eq!(rescued(&scratch).trim_end(), "of ann");
}

#[test]
fn what_its_holder_itself_names_or_the_command_does_not_is_the_holders() {
    let scratch = Scratch::workspace();
    with_file(&scratch);
    scratch.write("Makefile", "test:\n\techo hi\n");
    let (ann, bob) = (Agent::new(&scratch, "ann"), Agent::new(&scratch, "bob"));
    ann.edits("held.txt", "of ann\n");
    for (hers, his) in [("cargo fmt", "python3 y.py"), ("./gen", "make test")] {
        bob.begins(his);
        ann.begins(hers);
        scratch.write("held.txt", &format!("by {hers}\n"));
        let said = bob.ends(his);
        assert!(!said.out.contains("held.txt"), "{hers}: {said:?}");
        ann.ends(hers);
        a_moment();
    }
}

#[test]
fn a_long_call_that_changes_nothing_keeps_the_leases_too() {
    let scratch = Scratch::workspace();
    scratch.allow_test_hooks();
    with_file(&scratch);
    let ann = scratch.session("ann");
    scratch.acts(&ann, &["claim", "held.txt", "--ttl", "3s"]).ok();
    let id = ann.split('.').next().unwrap();
    for line in ["sleep 60", "curl http://x"] {
        let payload = json!({ "session_id": id, "cwd": scratch.root(), "tool_use_id": line,
            "hook_event_name": "PreToolUse", "tool_name": "Bash",
            "tool_input": { "command": line } });
        let set = [("BATON_SESSION", ann.as_str())];
        let said = hook_with(&scratch, "claude", payload.to_string().as_bytes(), &set);
        assert_eq!(denied(&said), None);
        let bob = scratch.session("bob");
        let said = scratch.acts_later(&bob, 6_000, &["claim", "held.txt"]);
        assert_ne!(said.code, 0, "{line}: {said:?}");
    }
}

#[test]
fn a_commit_of_ones_own_files_is_refused_only_where_it_takes_along_what_is_anothers() {
    let scratch = Scratch::workspace();
    with_file(&scratch);
    let (ann, bob) = (Agent::new(&scratch, "ann"), Agent::new(&scratch, "bob"));
    let refused = |line: &str| {
        let input = json!({ "command": line });
        denied(&bob.tool("PreToolUse", "Bash", &input, &json!({})))
    };
    ann.edits("held.txt", "of ann\n");
    bob.edits("mine.txt", "of bob\n");
    let passing = ["git add mine.txt && git commit -m x", "git commit mine.txt -m x"];
    for line in passing {
        assert_eq!(refused(line), None, "{line}");
    }
    scratch.git(&["add", "mine.txt"]);
    assert_eq!(refused("git commit -m x"), None, "one's own is staged");
    let why = refused("git add held.txt && git commit -m x").expect("ann's");
    assert!(why.contains("held.txt") && why.contains("baton commit -m"), "{why}");
    for line in ["git commit -am x", "git add -A && git commit -m x", "git add $F && git commit"] {
        assert!(refused(line).is_some(), "{line}");
    }
    scratch.git(&["add", "held.txt"]);
    for line in ["git commit -m x", "git add mine.txt && git commit -m x"] {
        let why = refused(line).expect(line);
        assert!(why.contains("held.txt"), "{why}");
    }
}

/// Gemini turns the path of a tool into another one before it uses it.
#[test]
fn a_path_is_what_gemini_makes_of_it() {
    let scratch = Scratch::workspace();
    with_file(&scratch);
    scratch.write("src/held.rs", "one\n");
    let ann = Agent::new(&scratch, "ann");
    ann.edits("held.txt", "of ann\n");
    ann.edits("src/held.rs", "of ann\n");
    let act = |tool: &str, path: &str| {
        let payload = json!({ "session_id": "gem", "cwd": scratch.root(),
            "hook_event_name": "BeforeTool", "tool_name": tool,
            "tool_input": { "file_path": path, "content": "x", "old_string": "one",
                "new_string": "x" } });
        denied(&hook_with(&scratch, "gemini", payload.to_string().as_bytes(), &[]))
    };
    for path in ["@held.txt", "@/held.txt", "@//held.txt", "he\0ld.txt", "@src/held.rs"] {
        for tool in ["write_file", "replace"] {
            let why = act(tool, path).unwrap_or_else(|| panic!("{tool} {path}"));
            assert!(why.contains("is held by"), "{why}");
        }
    }
    let why = act("replace", "held.rs").expect("Gemini looks for it elsewhere");
    assert!(why.contains("there is no held.rs in"), "{why}");
    assert_eq!(act("write_file", "held.rs"), None);
    scratch.write("@src/new.rs", "x\n");
    assert_eq!(act("write_file", "@src/held.rs"), None, "such a folder is there");
}

#[test]
fn what_nobody_names_while_its_holder_runs_something_is_safe_and_told() {
    Scratch::on_each_store("", |scratch| {
        with_file(scratch);
        scratch.write("Makefile", "test:\n\techo hi\n");
        let (ann, bob) = (Agent::new(scratch, "ann"), Agent::new(scratch, "bob"));
        ann.edits("held.txt", "of ann\n");
        bob.begins("make test");
        ann.begins("cargo test");
        scratch.write("held.txt", "typed by somebody\n");
        let said = bob.ends("make test");
        assert!(!said.out.contains("held.txt"), "{said:?}");
        assert_eq!(rescued(scratch).trim_end(), "of ann");
        let told = ann.prompt();
        assert!(told.out.contains("who wrote it is not known"), "{told:?}");
        let name = told.out.split("baton rescue show ").nth(1).expect("it is safe");
        let name = name.split(['.', '"', ' ', '\\']).next().unwrap();
        let shown = scratch.baton(&["rescue", "show", name]).ok().out;
        assert!(shown.contains("+of ann"), "{shown}");
        let list = scratch.baton(&["rescue", "list"]).ok().out;
        assert!(!list.contains("gone after a command of"), "{list}");
        let journal = journal(scratch);
        assert!(journal.contains("an unknown writer changed held.txt"), "{journal}");
        assert!(!journal.contains("around the edit door"), "{journal}");
        scratch.baton(&["journal", "verify"]).ok();
    });
}

#[test]
fn a_command_that_was_interrupted_is_compared_all_the_same() {
    for over in [
        json!({ "hook_event_name": "UserPromptSubmit", "prompt": "go on" }),
        json!({ "hook_event_name": "Stop", "stop_hook_active": false }),
        json!({ "hook_event_name": "SessionEnd", "reason": "exit" }),
    ] {
        let scratch = Scratch::workspace();
        with_file(&scratch);
        let (ann, bob) = (Agent::new(&scratch, "ann"), Agent::new(&scratch, "bob"));
        ann.edits("held.txt", "of ann\n");
        bob.begins("python3 y.py");
        scratch.write("held.txt", "other\n");
        let said = bob.tells(over.clone());
        if over["hook_event_name"] != "SessionEnd" {
            let told = "held.txt changed while a command of yours ran";
            assert!(said.out.contains(told), "{over}: {said:?}");
            assert!(!bob.prompt().out.contains("held.txt"), "once");
        }
        // Its user may not have allowed it: then it never ran.
        let journal = journal(&scratch);
        assert!(journal.contains("changed while a command of"), "{over}: {journal}");
        assert!(!journal.contains("around the edit door"), "{over}: {journal}");
        assert_eq!(rescued(&scratch).trim_end(), "of ann");
    }
}
