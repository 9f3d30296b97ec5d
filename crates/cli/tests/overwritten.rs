//! A command wrote over what another held: its holder is told, and what it had is safe.

use serde_json::{Value, json};

use crate::harness::{Said, Scratch};
use crate::hooks::{Agent, denied};

fn ann(scratch: &Scratch) -> Agent<'_> {
    Agent { scratch, client: "claude", id: "ann" }
}

fn bob(scratch: &Scratch) -> Agent<'_> {
    Agent { scratch, client: "codex", id: "bob" }
}

fn with_file() -> Scratch {
    let scratch = Scratch::workspace();
    scratch.write("shared.txt", "line1\nline2\n");
    scratch.git(&["add", "-A"]);
    scratch.git(&["commit", "-qm", "files"]);
    scratch
}

fn edits(agent: &Agent<'_>, text: &str) -> Said {
    let said = agent.write("shared.txt", text);
    assert_eq!(denied(&said), None);
    agent.scratch.write("shared.txt", text);
    let input = json!({ "file_path": agent.file("shared.txt"), "content": text });
    agent.tool("after", "Write", &input);
    said
}

/// A command that does not say what it writes.
fn writes_over(agent: &Agent<'_>, text: &str) -> Said {
    let line = "python3 w.py";
    assert_eq!(denied(&agent.shell("before", line)), None);
    agent.scratch.write("shared.txt", text);
    let said = agent.shell("after", line);
    assert!(said.out.contains("your command changed shared.txt"), "{said:?}");
    said
}

fn event(agent: &Agent<'_>, name: &str) -> Said {
    agent.tells(json!({ "hook_event_name": name, "prompt": "go on", "stop_hook_active": false }))
}

/// The name of the rescue that a holder is told of.
fn rescue_named(said: &Said) -> String {
    let told = &said.out;
    assert!(told.contains("wrote over shared.txt while you held it"), "{said:?}");
    assert!(told.contains("your uncommitted text is gone from it, and is safe"), "{said:?}");
    let name = told.split("baton rescue show ").nth(1).expect("where it is");
    name.split(['.', '"', ' ', '\\']).next().unwrap().to_owned()
}

#[test]
fn s17_the_holder_hears_at_its_next_act_and_its_text_outlives_the_traces() {
    type Act = fn(&Agent<'_>) -> Said;
    let acts: [(&str, Act); 4] = [
        ("prompt", |ann| event(ann, "UserPromptSubmit")),
        ("stop", |ann| event(ann, "Stop")),
        ("edit", |ann| edits(ann, "alice again\n")),
        ("shell", |ann| ann.shell("before", "echo hi")),
    ];
    for (act, tells) in acts {
        let scratch = with_file();
        let (ann, bob) = (ann(&scratch), bob(&scratch));
        edits(&ann, "line1\nalice2\n");
        writes_over(&bob, "py");
        std::fs::remove_dir_all(scratch.store().join("traces")).unwrap();
        let name = rescue_named(&tells(&ann));
        let shown = scratch.baton(&["rescue", "show", &name]).ok().out;
        assert!(shown.contains("+alice2"), "{act}: {shown}");
        let listed = scratch.baton(&["rescue", "list", "--json"]).ok().json();
        let rescue = &listed["rescues"][0];
        assert_eq!(rescue["files"], json!(["shared.txt"]), "{act}: {listed}");
        let again = event(&ann, "UserPromptSubmit");
        assert!(!again.out.contains("wrote over"), "{act}, once: {again:?}");
        scratch.baton(&["journal", "verify"]).ok();
    }
}

#[test]
fn one_word_for_one_text_whatever_the_command_writes_afterwards() {
    let scratch = with_file();
    let (ann, bob) = (ann(&scratch), bob(&scratch));
    edits(&ann, "line1\nalice2\n");
    writes_over(&bob, "py");
    writes_over(&bob, "py again");
    let told = event(&ann, "UserPromptSubmit");
    assert_eq!(told.out.matches("wrote over shared.txt").count(), 1, "{told:?}");
    let name = rescue_named(&told);
    let shown = scratch.baton(&["rescue", "show", &name]).ok().out;
    assert!(shown.contains("+alice2"), "{shown}");
    let journal = scratch.baton(&["journal"]).ok().out;
    assert_eq!(journal.matches("around the edit door").count(), 2, "{journal}");
    assert!(journal.contains("wrote over shared.txt; what was there is saved as"), "{journal}");
}

/// Nobody is accused of what a command that names nothing may have written; the text is safe, and
/// its holder hears where all the same.
#[test]
fn s17_the_holder_hears_where_its_text_is_also_when_nobody_knows_who_wrote() {
    for line in ["tar xf ../work.tar", "npm run lint", "bash -c \"$(cat fix.sh)\""] {
        let scratch = with_file();
        let (ann, bob) = (ann(&scratch), bob(&scratch));
        edits(&ann, "line1\nalice2\n");
        assert_eq!(denied(&bob.shell("before", line)), None);
        scratch.write("shared.txt", "of an archive\n");
        let said = bob.shell("after", line);
        assert!(said.out.contains("whose change it is cannot be seen"), "{line}: {said:?}");
        let told = event(&ann, "UserPromptSubmit");
        assert!(told.out.contains("who wrote it is not known"), "{line}: {told:?}");
        let name = told.out.split("baton rescue show ").nth(1).expect("where it is");
        let name = name.split(['.', '"', ' ', '\\']).next().unwrap();
        let shown = scratch.baton(&["rescue", "show", name]).ok().out;
        assert!(shown.contains("+alice2"), "{line}: {shown}");
    }
}

#[test]
fn what_was_committed_is_not_called_lost() {
    let scratch = with_file();
    let (ann, bob) = (ann(&scratch), bob(&scratch));
    assert_eq!(denied(&ann.write("shared.txt", "soon\n")), None);
    writes_over(&bob, "py");
    let told = event(&ann, "UserPromptSubmit");
    assert!(told.out.contains("you had nothing uncommitted in it"), "{told:?}");
    let listed = scratch.baton(&["rescue", "list", "--json"]).ok().json();
    assert_eq!(listed["rescues"].as_array().map(Vec::len), Some(0), "{listed}");
}

#[test]
fn a_subagent_hears_of_its_sibling() {
    let scratch = with_file();
    let tells = |agent: &str, event: &str, tool: &str, input: &Value| {
        ann(&scratch).tells(json!({ "hook_event_name": event, "agent_id": agent,
            "tool_name": tool, "tool_input": input, "tool_use_id": format!("{agent}{tool}") }))
    };
    let edit = json!({ "file_path": scratch.root().join("shared.txt"), "content": "of one\n" });
    assert_eq!(denied(&tells("one", "PreToolUse", "Write", &edit)), None);
    scratch.write("shared.txt", "of one\n");
    tells("one", "PostToolUse", "Write", &edit);
    let line = json!({ "command": "python3 w.py" });
    tells("two", "PreToolUse", "Bash", &line);
    scratch.write("shared.txt", "of two\n");
    tells("two", "PostToolUse", "Bash", &line);
    let said = tells("one", "PreToolUse", "Write", &edit);
    assert!(said.out.contains("(subagent two) wrote over shared.txt"), "{said:?}");
}

#[test]
fn what_is_saved_already_is_not_saved_again_at_each_try() {
    let scratch = with_file();
    let (eve, bob) = (scratch.session("eve"), bob(&scratch));
    scratch.acts(&eve, &["claim", "shared.txt"]).ok();
    let saved = |text: &str| {
        scratch.write("shared.txt", text);
        for line in ["git reset --hard", "git checkout .", "git clean -fd"] {
            assert!(denied(&bob.shell("before", line)).is_some(), "{line}");
        }
        let names = scratch.git(&["for-each-ref", "--format=%(refname)", "refs/baton/rescue/"]);
        assert_eq!(names.lines().count(), 1, "{names}");
        let kept = scratch.git(&["show", &format!("{}:shared.txt", names.trim())]);
        assert_eq!(kept.trim_end(), text.trim_end());
        scratch.git(&["rev-list", "--count", names.trim(), "^HEAD"]).trim().to_owned()
    };
    assert_eq!(saved("work of eve\n"), "1");
    assert_eq!(saved("more of it\n"), "2", "what was saved before is kept");
}

#[test]
fn everybody_who_shares_it_hears_of_it() {
    let scratch = with_file();
    let sharers = ["xen", "yun"].map(|name| scratch.session(name));
    for sharer in &sharers {
        scratch.acts(sharer, &["claim", "shared.txt", "--shared"]).ok();
    }
    let said = writes_over(&bob(&scratch), "py");
    assert!(said.out.contains("held by xen") && said.out.contains("held by yun"), "{said:?}");
    for (number, sharer) in sharers.iter().enumerate() {
        let said = scratch.acts(sharer, &["claim", &format!("other{number}")]).ok();
        let told = format!("{}{}", said.out, said.err);
        assert!(told.contains("wrote over shared.txt while you held it"), "{told}");
    }
}
