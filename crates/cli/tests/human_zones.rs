//! `human` zones at every door: who asks a person, and what the answer allows.

use serde_json::json;

use crate::harness::{Said, Scratch};
use crate::hooks::{Agent, denied, hook_with};

const POLICY: &str = "[[zone]]\npaths = [\"legal/\"]\npolicy = \"human\"\n";

fn ann(scratch: &Scratch) -> Agent<'_> {
    Agent { scratch, client: "claude", id: "ann" }
}

fn bob(scratch: &Scratch) -> Agent<'_> {
    Agent { scratch, client: "gemini", id: "bob" }
}

fn gates(scratch: &Scratch) -> usize {
    let gates = scratch.baton(&["gate", "list", "--json"]).ok().json();
    gates["gates"].as_array().unwrap().len()
}

fn approve(scratch: &Scratch, gate: &str) {
    let token = crate::reviews::person_token(scratch);
    let mut approve = scratch.command(&["gate", "approve", gate, "--why", "the new wording"]);
    approve.env("BATON_PERSON_TOKEN_FILE", &token);
    Said::from(approve.output().unwrap()).ok();
}

/// Ann's `baton commit`, as her shell runs it.
fn commits(scratch: &Scratch, paths: &[&str]) -> Said {
    let mut command = scratch.command(&[&["commit", "-m", "terms"], paths].concat());
    command.env("CLAUDE_CODE_SESSION_ID", "ann").env("CLAUDECODE", "1");
    for of in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{of}_NAME"), "Ann");
        command.env(format!("GIT_{of}_EMAIL"), "ann@example.invalid");
    }
    Said::from(command.output().unwrap())
}

#[test]
fn where_a_client_cannot_ask_a_person_is_asked_by_a_gate() {
    let scratch = Scratch::with_policy(POLICY);
    scratch.write("legal/terms.md", "old\n");
    let (bob, claude) = (bob(&scratch), ann(&scratch));
    let why = denied(&bob.write("legal/terms.md", "new")).expect("a person decides");
    assert!(why.contains("a person is asked about legal/terms.md now (g1)"), "{why}");
    let again = denied(&bob.write("legal/terms.md", "new")).expect("still");
    assert!(again.contains("(g1)"), "one gate: {again}");
    // Claude asks its own user, and no gate is needed.
    let asks = claude.write("legal/terms.md", "new").json();
    assert_eq!(asks["hookSpecificOutput"]["permissionDecision"], "ask", "{asks}");
    assert_eq!(gates(&scratch), 1);
    approve(&scratch, "g1");
    let told = bob.tells(json!({ "hook_event_name": "BeforeAgent", "prompt": "go on" }));
    assert!(told.out.contains("g1") && told.out.contains("is approved"), "{told:?}");
    assert_eq!(denied(&bob.write("legal/terms.md", "new")), None);
    let claims = scratch.baton(&["claims"]).ok().out;
    assert!(claims.contains("legal/terms.md"), "{claims}");
    // It is for this session and this file.
    assert!(denied(&bob.write("legal/other.md", "new")).is_some());
}

#[test]
fn a_client_without_a_user_cannot_ask() {
    let scratch = Scratch::with_policy(POLICY);
    for set in [("CLAUDE_CODE_SESSION_ATTENDED", "0"), ("CLAUDE_CODE_ENTRYPOINT", "sdk-cli")] {
        let write = json!({ "hook_event_name": "PreToolUse", "session_id": "ann",
            "cwd": scratch.root(), "tool_name": "Write", "tool_use_id": "c1",
            "tool_input": { "file_path": scratch.root().join("legal/a.md"), "content": "x" } });
        let said = hook_with(&scratch, "claude", write.to_string().as_bytes(), &[set]);
        let why = denied(&said).expect("nobody sits there");
        assert!(why.contains("a person is asked about legal/a.md now (g1)"), "{why}");
    }
    assert_eq!(gates(&scratch), 1);
}

#[test]
fn a_shell_cannot_ask_either() {
    let scratch = Scratch::with_policy(POLICY);
    scratch.write("legal/a.md", "old\n");
    let ann = ann(&scratch);
    let why = denied(&ann.shell("before", "echo new > legal/a.md")).expect("a person decides");
    assert!(why.contains("a person is asked about legal/a.md now (g1)"), "{why}");
    approve(&scratch, "g1");
    assert_eq!(denied(&ann.shell("before", "echo new > legal/a.md")), None);
}

#[test]
fn what_no_person_approved_is_not_committed_and_stands_in_the_journal() {
    let scratch = Scratch::with_policy(POLICY);
    scratch.write("legal/a.md", "old\n");
    scratch.git(&["add", "-A"]);
    scratch.git(&["commit", "-qm", "base"]);
    let ann = ann(&scratch);
    ann.shell("before", "python3 write.py");
    // The clock of file times runs in steps, and nobody is accused of what may be older.
    std::thread::sleep(std::time::Duration::from_millis(60));
    scratch.write("legal/a.md", "new\n");
    let said = ann.shell("after", "python3 write.py");
    assert!(said.out.contains("changed legal/a.md, which is for a person to approve"), "{said:?}");
    let journal = scratch.baton(&["journal"]).ok().out;
    assert!(
        journal.contains("legal/a.md by its shell, which is for a person to approve"),
        "{journal}"
    );
    let said = commits(&scratch, &["legal/a.md"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains("committing legal/a.md is for a person to decide"), "{said:?}");
}

#[test]
fn a_yes_at_the_client_counts_at_every_later_door() {
    let scratch = Scratch::with_policy(POLICY);
    scratch.write("legal/a.md", "old\n");
    scratch.git(&["add", "-A"]);
    scratch.git(&["commit", "-qm", "base"]);
    let ann = ann(&scratch);
    let asks = ann.write("legal/a.md", "new\n").json();
    assert_eq!(asks["hookSpecificOutput"]["permissionDecision"], "ask", "{asks}");
    // Its user said yes: the tool ran.
    scratch.write("legal/a.md", "new\n");
    let input = json!({ "file_path": ann.file("legal/a.md"), "content": "new\n" });
    ann.tool("after", "Write", &input).ok();
    let claims = scratch.baton(&["claims"]).ok().out;
    assert!(claims.contains("legal/a.md"), "{claims}");
    assert_eq!(denied(&ann.write("legal/a.md", "newer\n")), None, "asked once");
    commits(&scratch, &["legal/a.md"]).ok();
    // A file that nobody asked about is none of it.
    let input = json!({ "file_path": ann.file("legal/b.md"), "content": "new\n" });
    ann.tool("after", "Write", &input).ok();
    assert_eq!(
        ann.write("legal/b.md", "x").json()["hookSpecificOutput"]["permissionDecision"],
        "ask"
    );
}
