//! Subagents through the binary: named to their siblings, never in their session's way.

use serde_json::{Value, json};

use crate::harness::{Said, Scratch};
use crate::hooks::{Agent, denied};

fn acts_as(scratch: &Scratch, credential: &str, agent: &str, words: &[&str]) -> Said {
    let mut command = scratch.command(words);
    command.env("BATON_SESSION", credential).env("BATON_AGENT", agent);
    command.output().unwrap().into()
}

#[test]
fn siblings_keep_out_of_each_others_files_and_their_session_goes_on() {
    let scratch = Scratch::workspace();
    let (ann, bob) = (scratch.session("ann"), scratch.session("bob"));
    scratch.acts(&ann, &["claim", "src/a.rs", "--tree", "--agent", "one"]).ok();
    let denied = acts_as(&scratch, &ann, "two", &["check", "src/a.rs"]);
    assert_eq!(denied.code, 1, "{denied:?}");
    assert!(denied.out.contains("is held by ann (subagent one) until"), "{denied:?}");
    let refused = acts_as(&scratch, &ann, "two", &["claim", "src/a.rs", "--json"]);
    let holder = &refused.json()["refused"]["holder"];
    assert_eq!((&holder["name"], &holder["agent"]), (&"ann".into(), &"one".into()), "{refused:?}");
    scratch.acts(&ann, &["check", "src/a.rs"]).ok();
    scratch.acts(&ann, &["claim", "src/a.rs", "--tree"]).ok();
    for (verb, shown) in [("claims", "ann (subagent one)"), ("why", "for its subagent one")] {
        let words: &[&str] = if verb == "why" { &["why", "src/a.rs"] } else { &["claims"] };
        let said = scratch.baton(words).ok();
        assert!(said.out.contains(shown), "{verb}: {said:?}");
    }
    // A subagent lets go of its own, and of nothing else.
    acts_as(&scratch, &ann, "two", &["release", "src/a.rs"]).refused(1);
    acts_as(&scratch, &ann, "one", &["claim", "README.md"]).ok();
    let passed = scratch.acts(&ann, &["session", "agent-stop", "one"]).ok();
    assert!(passed.out.contains("its session holds src/a.rs, README.md now"), "{passed:?}");
    acts_as(&scratch, &ann, "two", &["claim", "README.md"]).ok();
    scratch.acts(&bob, &["claim", "src/a.rs"]).refused(1);
    let again = scratch.acts(&ann, &["session", "agent-stop", "one"]).ok();
    assert!(again.out.contains("it held nothing"), "{again:?}");
    scratch.baton(&["journal", "verify"]).ok();
}

#[test]
fn ids_of_subagents_are_judged_as_all_text() {
    let scratch = Scratch::workspace();
    let ann = scratch.session("ann");
    acts_as(&scratch, &ann, "\u{1b}[31mred", &["claim", "x"]).refused(2);
    scratch.acts(&ann, &["claim", "x", "--agent", &"x".repeat(65)]).refused(2);
    scratch.acts(&ann, &["session", "agent-stop", "\u{202e}x"]).refused(2);
    scratch.baton(&["session", "agent-stop", "one"]).refused(1);
}

/// What a client tells of an act of one of its subagents, or of the agent that started them.
fn tells(scratch: &Scratch, agent: Option<&str>, event: &str, tool: &str, input: &Value) -> Said {
    let parent = Agent { scratch, client: "claude", id: "parent" };
    let mut payload = json!({ "hook_event_name": event, "tool_name": tool, "tool_input": input,
        "tool_use_id": format!("{tool}{}", agent.unwrap_or_default()), "tool_response": {} });
    if let Some(agent) = agent {
        payload["agent_id"] = json!(agent);
    }
    parent.tells(payload)
}

fn edits(scratch: &Scratch, agent: Option<&str>, file: &str, text: &str) {
    let input = json!({ "file_path": scratch.root().join(file), "content": text });
    assert_eq!(denied(&tells(scratch, agent, "PreToolUse", "Write", &input)), None);
    scratch.write(file, text);
    tells(scratch, agent, "PostToolUse", "Write", &input);
}

fn line(scratch: &Scratch, agent: Option<&str>, line: &str) -> Option<String> {
    denied(&tells(scratch, agent, "PreToolUse", "Bash", &json!({ "command": line })))
}

const SWEEPS: [&str; 7] = [
    "git stash",
    "git reset --hard",
    "git clean -fd",
    "git add -A",
    "git commit -am x",
    "git switch -c other",
    "git rebase main",
];

#[test]
fn s17_nobody_sweeps_away_what_a_live_subagent_has_not_committed() {
    let scratch = Scratch::workspace();
    for file in ["a.txt", "b.txt"] {
        scratch.write(file, "1\n");
    }
    scratch.git(&["add", "-A"]);
    scratch.git(&["commit", "-qm", "files"]);
    let each = |who: Option<&str>, lines: &[&str], passes: bool| {
        for one in lines {
            match (line(&scratch, who, one), passes) {
                (None, true) => {}
                (Some(why), false) => assert!(why.contains("(subagent kB)"), "{one}: {why}"),
                (said, _) => panic!("{who:?} {one}: {said:?}"),
            }
        }
    };
    // Nothing to lose: one agent with helpers goes about its tree as it likes.
    each(Some("kA"), &SWEEPS, true);
    edits(&scratch, Some("kB"), "b.txt", "of kB\n");
    for who in [Some("kA"), None] {
        each(who, &SWEEPS, false);
        each(who, &["git checkout .", "git restore .", "git checkout -f"], false);
    }
    // Its index too is shared with a sibling; the parent says what it commits.
    each(Some("kA"), &["git commit -m x"], false);
    each(None, &["git commit -m x"], true);
    // What is one's own, nobody else minds.
    each(Some("kB"), &SWEEPS, true);
    each(Some("kA"), &["git commit -m x -- a.txt", "git add a.txt"], true);
    // By name it is its sibling's all the same, and its parent's to decide.
    let named =
        ["git commit -m x -- b.txt", "git commit -m x a.txt ./b.txt", "git commit -- *.txt"];
    each(Some("kA"), &named, false);
    each(Some("kA"), &["git commit -m x -- '*.txt'"], false);
    each(None, &named, true);
    each(Some("kB"), &named, true);
    // Committed, or passed to the parent when the subagent stopped: no longer in the way.
    let stopped = json!({ "hook_event_name": "SubagentStop", "agent_id": "kB" });
    Agent { scratch: &scratch, client: "claude", id: "parent" }.tells(stopped).ok();
    each(None, &SWEEPS, true);
    edits(&scratch, Some("kC"), "a.txt", "of kC\n");
    scratch.git(&["add", "a.txt"]);
    scratch.git(&["commit", "-qm", "of kC", "--", "a.txt"]);
    each(Some("kA"), &SWEEPS, true);
}

#[test]
fn the_journal_tells_subagents_apart() {
    let scratch = Scratch::workspace();
    scratch.write("b.txt", "1\n");
    scratch.git(&["add", "-A"]);
    scratch.git(&["commit", "-qm", "files"]);
    edits(&scratch, Some("kB"), "b.txt", "of kB\n");
    assert_eq!(line(&scratch, Some("kA"), "python3 w.py"), None);
    scratch.write("b.txt", "of kA\n");
    let ran = json!({ "command": "python3 w.py" });
    tells(&scratch, Some("kA"), "PostToolUse", "Bash", &ran);
    let journal = scratch.baton(&["journal"]).ok().out;
    assert!(journal.contains("(subagent kA) wrote to b.txt, which "), "{journal}");
    assert!(journal.contains("(subagent kB) held, around the edit door"), "{journal}");
    let why = scratch.baton(&["why", "b.txt"]).ok().out;
    assert!(why.contains("(subagent kA) wrote it around the doors while "), "{why}");
    assert!(why.contains("(subagent kB) held it"), "{why}");
}

/// What the parent is held back with when it stops.
fn held_back(scratch: &Scratch) -> String {
    let parent = Agent { scratch, client: "claude", id: "parent" };
    let said = parent.tells(json!({ "hook_event_name": "Stop", "stop_hook_active": false }));
    let said = said.ok().out;
    if said.trim().is_empty() {
        return said;
    }
    let said: Value = serde_json::from_str(&said).unwrap();
    said["reason"].as_str().unwrap_or_default().to_owned()
}

/// Claude Code's subagents go on when their parent's turn is over.
#[test]
fn who_stops_is_not_told_to_put_back_what_its_subagent_is_at_work_on() {
    let scratch = Scratch::workspace();
    edits(&scratch, Some("kA"), "a.txt", "of kA\n");
    edits(&scratch, None, "own.txt", "of the parent\n");
    let said = held_back(&scratch);
    assert!(said.contains("- own.txt is changed") && !said.contains("a.txt"), "{said}");
    assert_eq!(held_back(&scratch), "", "once");
    // When it has stopped, its work is its parent's to end: that alone is new.
    let stopped = json!({ "hook_event_name": "SubagentStop", "agent_id": "kA" });
    Agent { scratch: &scratch, client: "claude", id: "parent" }.tells(stopped).ok();
    let said = held_back(&scratch);
    assert!(said.contains("- a.txt is changed") && !said.contains("own.txt"), "{said}");
    assert_eq!(held_back(&scratch), "", "once");
}
