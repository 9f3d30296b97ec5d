//! What clients really sent, read back: the recorded payloads of every client.
//!
//! Owns the comparison of dialects; what is done with a payload is tested through the binary.

use serde_json::{Value, json};

use super::*;

fn recorded(client: Client, lines: &str) -> Vec<Payload> {
    let values = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    values.filter_map(|value| read(client, &value)).collect()
}

fn edited(payloads: &[Payload]) -> Vec<&str> {
    let targets = payloads.iter().filter_map(|payload| match &payload.event {
        Event::Before(Tool::Edit(targets)) => Some(targets),
        _ => None,
    });
    targets.flatten().map(|target| target.path.as_str()).collect()
}

fn commands(payloads: &[Payload]) -> Vec<&str> {
    let shells = payloads.iter().filter_map(|payload| match &payload.event {
        Event::Before(Tool::Shell(line)) => Some(line.as_str()),
        _ => None,
    });
    shells.collect()
}

#[test]
fn every_recorded_client_is_understood() {
    let cases = [
        (Client::Claude, include_str!("../../tests/payloads/claude-2.1.325-hooks.jsonl")),
        (Client::Codex, include_str!("../../tests/payloads/codex-0.166.0-hooks.jsonl")),
        (Client::Codex, include_str!("../../tests/payloads/codex-0.166.0-codemode-hooks.jsonl")),
        (Client::Gemini, include_str!("../../tests/payloads/gemini-0.61.0-hooks.jsonl")),
        (Client::Opencode, include_str!("../../tests/payloads/opencode-1.18.33-plugin.jsonl")),
    ];
    for (client, lines) in cases {
        let payloads = recorded(client, lines);
        let paths = edited(&payloads);
        assert_eq!(paths, ["/repo/allowed.txt", "/repo/locked.txt"], "{client:?}");
        assert_eq!(commands(&payloads)[0], "echo shell-ran > /repo/shell.txt", "{client:?}");
        assert!(payloads.iter().all(|payload| payload.client == client));
        let first = &payloads.first().unwrap().session;
        assert!(payloads.iter().all(|payload| payload.session == *first), "{client:?}");
    }
}

/// From the types of Claude Code 2.1.325; with a socket instead of a command it runs nothing.
#[test]
fn a_monitor_is_a_shell() {
    let monitor = |input: Value| {
        let payload = json!({ "session_id": "a", "cwd": "/repo", "tool_use_id": "t1",
            "hook_event_name": "PreToolUse", "tool_name": "Monitor", "tool_input": input });
        read(Client::Claude, &payload).unwrap().event
    };
    let line = "tail -f log > /repo/a.txt";
    let asked = monitor(json!({ "command": line, "description": "", "timeout_ms": 5 }));
    assert_eq!(asked, Event::Before(Tool::Shell(line.to_owned())));
    let socket = monitor(json!({ "ws": { "url": "ws://localhost" }, "timeout_ms": 5 }));
    assert_eq!(socket, Event::Before(Tool::Other));
}

#[test]
fn a_subagent_is_told_apart_from_its_parent() {
    let lines = include_str!("../../tests/payloads/claude-2.1.325-subagent-task-hooks.jsonl");
    let payloads = recorded(Client::Claude, lines);
    let by_agent = payloads.iter().filter(|payload| payload.agent.is_some());
    assert!(by_agent.clone().any(|one| matches!(one.event, Event::Before(Tool::Edit(_)))));
    assert!(payloads.iter().any(|one| one.event == Event::SubagentStop && one.agent.is_some()));
}

#[test]
fn a_claude_hook_that_cursor_runs_is_answered_as_cursor() {
    let payload = json!({
        "conversation_id": "c1", "hook_event_name": "preToolUse", "tool_name": "Write",
        "tool_input": { "path": "/repo/a", "contents": "x" }, "workspace_roots": ["/repo"],
    });
    let payload = read(Client::Claude, &payload).unwrap();
    assert_eq!((payload.client, payload.cwd.to_str()), (Client::Cursor, Some("/repo")));
    let said = say(&payload, &Answer::Deny("no".to_owned()));
    assert!(said.out.contains(r#""permission":"deny""#), "{}", said.out);
    assert_eq!(say(&payload, &Answer::Silent).out, r#"{"permission":"allow"}"#);
}

#[test]
fn what_is_not_understood_is_nothing() {
    let odd = [
        json!(null),
        json!([]),
        json!("text"),
        json!({}),
        json!({ "hook_event_name": 3, "session_id": "s" }),
        json!({ "hook_event_name": "PreToolUse" }),
        json!({ "hook_event_name": "PreToolUse", "session_id": ["s"] }),
    ];
    for client in Client::ALL {
        for payload in &odd {
            assert_eq!(read(client, payload), None, "{client:?} {payload}");
        }
    }
    let wrong = json!({
        "hook_event_name": "PreToolUse", "session_id": "s", "tool_name": "Edit",
        "tool_input": { "file_path": { "a": 1 }, "old_string": 4 },
    });
    let payload = read(Client::Claude, &wrong).unwrap();
    let unknown = Tool::Refused(words::no_path());
    assert_eq!(payload.event, Event::Before(unknown));
    let news = json!({ "hook_event_name": "SomethingNew", "session_id": "s" });
    assert_eq!(read(Client::Claude, &news).unwrap().event, Event::Other);
}

#[test]
fn answers_are_what_each_client_takes() {
    let payload = |client, name: &str, event| Payload {
        client,
        event_name: name.to_owned(),
        session: "s".to_owned(),
        agent: None,
        agent_type: None,
        cwd: PathBuf::from("/repo"),
        call: None,
        limit: None,
        behind: false,
        event,
    };
    let before = || Event::Before(Tool::Other);
    let codex = payload(Client::Codex, "PreToolUse", before());
    assert_eq!(say(&codex, &Answer::Silent).out, "{}");
    assert!(say(&codex, &Answer::Ask("why".into())).out.contains(r#""permissionDecision":"deny""#));
    let claude = payload(Client::Claude, "PreToolUse", before());
    assert_eq!(say(&claude, &Answer::Silent).out, "");
    assert!(say(&claude, &Answer::Ask("why".into())).out.contains(r#""permissionDecision":"ask""#));
    let gemini = payload(Client::Gemini, "BeforeTool", before());
    assert_eq!(
        say(&gemini, &Answer::Deny("why".into())).out,
        r#"{"decision":"deny","reason":"why"}"#
    );
    assert!(is_heard(&claude) && !is_heard(&codex) && !is_heard(&gemini));
}

/// What clients really sent, spoiled in every way: it is read or it is not, and every answer is one
/// that its client can read.
#[test]
fn fuzz_payloads() {
    let recorded = [
        (Client::Claude, include_str!("../../tests/payloads/claude-2.1.325-hooks.jsonl")),
        (Client::Codex, include_str!("../../tests/payloads/codex-0.166.0-codemode-hooks.jsonl")),
        (Client::Gemini, include_str!("../../tests/payloads/gemini-0.61.0-hooks.jsonl")),
        (Client::Opencode, include_str!("../../tests/payloads/opencode-1.18.33-plugin.jsonl")),
    ];
    let lines = recorded.iter().flat_map(|(_, lines)| lines.lines());
    let known: Vec<&[u8]> = lines.map(str::as_bytes).collect();
    let words = "two\nlines, \"quoted\"".to_owned();
    let answers = [
        Answer::Silent,
        Answer::Context(words.clone()),
        Answer::Deny(words.clone()),
        Answer::Ask(words.clone()),
        Answer::GoOn(words),
    ];
    let tried = baton_testing::fuzz::run("payloads", &known, |input| {
        let value = lenient::parse(input).unwrap_or_default();
        for client in Client::ALL {
            let read = read(client, &value).or_else(|| glimpsed(client, input));
            let Some(payload) = read else { continue };
            for answer in &answers {
                let said = say(&payload, answer);
                let fine = said.out.is_empty() || serde_json::from_str::<Value>(&said.out).is_ok();
                assert!(fine && said.exit == 0 && said.err.is_empty(), "{said:?}");
            }
        }
    });
    assert!(tried > 100, "{tried}");
}

/// From the documentation of Gemini CLI 0.61.0.
#[test]
fn many_files_are_read_at_once() {
    let input = json!({ "include": ["a.rs", "src/**/*.rs", "b.rs"] });
    let payload = json!({ "session_id": "g", "cwd": "/repo", "hook_event_name": "AfterTool",
        "tool_name": "read_many_files", "tool_input": input });
    let tool = Tool::Read(vec!["a.rs".to_owned(), "b.rs".to_owned()]);
    let wanted = Event::After { tool, failed: false };
    assert_eq!(read(Client::Gemini, &payload).unwrap().event, wanted);
}
