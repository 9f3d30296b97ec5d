//! Who calls through `baton mcp`, and in which workspace: real processes that are named as clients.

use std::path::Path;
use std::process::Command;
use std::sync::mpsc::RecvTimeoutError;

use serde_json::{Value, json};

use crate::harness::Scratch;
use crate::hooks::{denied, hook, hook_with};
use crate::mcp::{Client, PATIENCE};
use crate::sandbox_mcp::offers;

/// A client's program: it runs the lines of a script one after the other, as its children.
fn program(scratch: &Scratch, name: &str, lines: &str) -> Command {
    use std::os::unix::fs::PermissionsExt as _;
    let path = scratch.path(name);
    let baton = env!("CARGO_BIN_EXE_baton");
    // Its last line is no program, or the shell would become it.
    let text = format!("#!/bin/sh\nBATON='{baton}'\n{lines}\nexit 0\n");
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = Command::new(path);
    scratch.clean(&mut command);
    command.current_dir(scratch.root());
    command
}

fn sessions(scratch: &Scratch) -> Vec<Value> {
    let list = scratch.baton(&["session", "list", "--json"]).ok().json();
    list["sessions"].as_array().unwrap().clone()
}

#[test]
fn hook_shell_and_server_of_one_agent_are_one_session() {
    for client in ["claude", "codex", "gemini", "opencode", "cursor-agent"] {
        let scratch = Scratch::workspace();
        let hook = client.trim_end_matches("-agent");
        let (id, start, after) = match hook {
            "gemini" => ("session_id", "SessionStart", "AfterTool"),
            "cursor" => ("conversation_id", "sessionStart", "postToolUse"),
            "opencode" => ("sessionID", "session.created", "tool.execute.after"),
            _ => ("session_id", "SessionStart", "PostToolUse"),
        };
        let begin = json!({ "hook_event_name": start, id: "abc", "cwd": scratch.root(),
            "source": "startup" });
        let payload = json!({ "hook_event_name": after, id: "abc", "cwd": scratch.root(),
            "tool_name": "Read", "tool_input": { "file_path": "src/a.rs" } });
        std::fs::write(scratch.path("begin"), begin.to_string()).unwrap();
        std::fs::write(scratch.path("payload"), payload.to_string()).unwrap();
        let lines = format!(
            "$BATON hook {hook} < ../begin > ../begun\n\
             $BATON hook {hook} < ../payload > ../heard\n\
             $BATON mcp\n\
             $BATON claim README.md > ../shell 2>&1\n\
             $BATON claims --mine --json > ../mine"
        );
        let mut agent = Client::of(&mut program(&scratch, client, &lines));
        agent.initialize("2025-06-18");
        agent.good("claim", &json!({ "resources": ["src/a.rs"] }));
        agent.close();
        let mine = std::fs::read_to_string(scratch.path("mine")).unwrap();
        let mine: Value = serde_json::from_str(&mine).unwrap();
        assert_eq!(mine["claims"].as_array().unwrap().len(), 2, "{client}: {mine}");
        let all = sessions(&scratch);
        assert_eq!(all.len(), 1, "{client}: {all:?}");
        assert_eq!(all[0]["client"], hook, "{all:?}");
    }
}

#[test]
fn a_hook_after_the_first_call_goes_on_with_its_session() {
    let scratch = Scratch::workspace();
    let payload = json!({ "hook_event_name": "PreToolUse", "session_id": "abc",
        "cwd": scratch.root(), "tool_name": "Write",
        "tool_input": { "file_path": scratch.root().join("src/b.rs"), "content": "x" } });
    std::fs::write(scratch.path("payload"), payload.to_string()).unwrap();
    let lines = "$BATON mcp\n$BATON hook claude < ../payload > ../heard";
    let mut agent = Client::of(&mut program(&scratch, "claude", lines));
    agent.initialize("2025-06-18");
    agent.good("claim", &json!({ "resources": ["src/a.rs"] }));
    agent.close();
    let all = sessions(&scratch);
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!(all[0]["claims"], 2, "{all:?}");
}

#[test]
fn codex_says_which_of_its_sessions_calls() {
    let scratch = Scratch::workspace();
    let mut agent = Client::of(&mut program(&scratch, "codex", "$BATON mcp"));
    agent.initialize("2025-06-18");
    for (at, id) in ["one", "two", "one"].into_iter().enumerate() {
        agent.meta = json!({ "x-codex-turn-metadata": { "session_id": id, "turn_id": at } });
        agent.good("claim", &json!({ "resources": [format!("src/{id}/{at}.rs")] }));
    }
    let all = sessions(&scratch);
    let claims: Vec<&Value> = all.iter().map(|session| &session["claims"]).collect();
    assert_eq!(claims, [2, 1], "{all:?}");
    // Without it, the process fits both and so is neither.
    agent.meta = json!({});
    let (code, text) = agent.refused("claim", &json!({ "resources": ["x"] }));
    assert_eq!(code, "ambiguous_process", "{text}");
    assert!(text.contains("next: set BATON_SESSION"), "{text}");
    agent.good("status", &json!({}));
    agent.close();
}

/// A hook before the call says whose it is, as Claude Code's does.
fn calls_as(scratch: &Scratch, client: &mut Client, agent: &str, cwd: &Path) {
    let call = format!("toolu_{agent}");
    let payload = json!({ "hook_event_name": "PreToolUse", "session_id": "parent", "cwd": cwd,
        "agent_id": agent, "tool_name": "mcp__baton__claim", "tool_use_id": call,
        "tool_input": {} });
    assert_eq!(denied(&hook(scratch, "claude", &payload)), None);
    client.meta = json!({ "claudecode/toolUseId": call });
}

#[test]
fn a_subagents_calls_are_its_own() {
    Scratch::on_each_store("", |scratch| {
        let words = ["session", "start", "--name", "ann", "--client", "claude", "--json"];
        let known = ["--client-session", "parent"];
        let started = scratch.baton(&[&words[..], &known].concat()).ok().json();
        let mut client = Client::of_session(scratch, started["credential"].as_str().unwrap());
        calls_as(scratch, &mut client, "kA", &scratch.root());
        client.good("claim", &json!({ "resources": ["src/a.rs"] }));
        calls_as(scratch, &mut client, "kB", &scratch.root());
        let (_, text) = client.refused("claim", &json!({ "resources": ["src/a.rs"] }));
        assert!(text.contains("src/a.rs is held by ann (subagent kA)"), "{text}");
        client.good("claim", &json!({ "resources": ["src/b.rs"] }));
        // A call that no hook told of is the session's, and nothing of its subagents is in its way.
        client.meta = json!({ "claudecode/toolUseId": "toolu_of_the_parent" });
        client.good("claim", &json!({ "resources": ["src/a.rs", "src/c.rs"] }));
        let why = scratch.baton(&["why", "src/b.rs"]).ok().out;
        assert!(why.contains("for its subagent kB"), "{why}");
        let why = scratch.baton(&["why", "src/c.rs"]).ok().out;
        assert!(why.contains("ann") && !why.contains("subagent"), "{why}");
        // One in a tree of its own is a session of its own, and means that tree.
        let own = scratch.path("own");
        scratch.git(&["worktree", "add", "-q", "-b", "own", own.to_str().unwrap()]);
        calls_as(scratch, &mut client, "kC", &own);
        client.good("claim", &json!({ "resources": ["src/own.rs"] }));
        client.refused("claim", &json!({ "resources": ["src/c.rs"] }));
        let claims = scratch.baton(&["claims", "--json"]).ok().json();
        let claims = claims["claims"].as_array().unwrap();
        let held = |path: &str| {
            let has = |claim: &&Value| claim["resources"].to_string().contains(path);
            claims.iter().find(has).unwrap()["holder"]["session"].clone()
        };
        assert_ne!(held("src/own.rs"), held("src/c.rs"), "{claims:?}");
        client.close();
    });
}

#[test]
fn codex_says_which_of_its_subagents_calls() {
    let scratch = Scratch::workspace();
    let mut agent = Client::of(&mut program(&scratch, "codex", "$BATON mcp"));
    agent.initialize("2025-06-18");
    let mut says = |thread: &str| {
        let told = json!({ "session_id": "one", "thread_id": thread });
        agent.meta = json!({ "x-codex-turn-metadata": told });
        agent.call("claim", &json!({ "resources": ["src/a.rs"] }))
    };
    assert_eq!(says("two")["isError"], false);
    let refused = says("three")["structuredContent"]["text"].to_string();
    assert!(refused.contains("(subagent two)"), "{refused}");
    assert_eq!(says("one")["isError"], false);
    agent.close();
    assert_eq!(sessions(&scratch).len(), 1);
}

#[test]
fn who_acted_last_is_proven_at_every_act() {
    let scratch = Scratch::workspace();
    let mut agent = Client::of(&mut program(&scratch, "codex", "$BATON mcp"));
    agent.initialize("2025-06-18");
    agent.meta = json!({ "x-codex-turn-metadata": { "session_id": "one", "turn_id": 1 } });
    for path in ["src/a.rs", "src/b.rs"] {
        agent.good("claim", &json!({ "resources": [path] }));
    }
    let end = json!({ "hook_event_name": "SessionEnd", "session_id": "one",
        "cwd": scratch.root(), "reason": "clear" });
    hook_with(&scratch, "codex", end.to_string().as_bytes(), &[]);
    assert!(sessions(&scratch).is_empty());
    // It comes back, and is not told of an end that its client knows about.
    agent.good("claim", &json!({ "resources": ["src/c.rs"] }));
    let all = sessions(&scratch);
    assert_eq!((all.len(), &all[0]["claims"]), (1, &json!(3)), "{all:?}");
    agent.close();
}

#[test]
fn what_other_agents_left_in_the_environment_is_no_identity() {
    let scratch = Scratch::workspace();
    let both = [("CLAUDE_CODE_SESSION_ID", "a"), ("CODEX_THREAD_ID", "b")];
    let mut agent = Client::of(program(&scratch, "gemini", "$BATON mcp").envs(both));
    agent.initialize("2025-06-18");
    let (code, text) = agent.refused("claim", &json!({ "resources": ["x"] }));
    assert_eq!(code, "several_agents", "{text}");
    agent.good("status", &json!({}));
    agent.close();
    assert!(sessions(&scratch).is_empty());

    // Codex inside of Claude: what Claude exported is Claude's.
    let claude = scratch
        .baton(&[
            "session",
            "start",
            "--client",
            "claude",
            "--client-session",
            "a",
            "--name",
            "outer",
            "--json",
        ])
        .ok()
        .json();
    let credential = claude["credential"].as_str().unwrap();
    let set = [("CLAUDE_CODE_SESSION_ID", "a"), ("BATON_SESSION", credential)];
    let mut agent = Client::of(program(&scratch, "codex", "$BATON mcp").envs(set));
    agent.initialize("2025-06-18");
    agent.good("claim", &json!({ "resources": ["src/a.rs"] }));
    let all = sessions(&scratch);
    assert_eq!(all.len(), 2, "{all:?}");
    let outer = all.iter().find(|session| session["name"] == "outer").unwrap();
    assert_eq!(outer["claims"], 0, "{all:?}");
    agent.close();
    // The session of a process that is gone frees what it held.
    let bob = scratch.session("bob");
    scratch.acts(&bob, &["claim", "src/a.rs"]).ok();
}

#[test]
fn agents_without_a_repository_find_their_workspace() {
    let scratch = Scratch::workspace();
    let elsewhere = scratch.path("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let mut client = Client::of(scratch.command(&["mcp"]).current_dir(&elsewhere));
    client.initialize("2025-06-18");
    let told = client.good("claim", &json!({ "resources": ["@browser/shop", "src/a.rs"] }));
    assert!(told.starts_with("claimed @browser/shop, src/a.rs"), "{told}");
    let all = sessions(&scratch);
    assert_eq!(all.len(), 1, "{all:?}");
    let (bob, _process) = scratch.session_with_process("bob");
    scratch.acts(&bob, &["claim", "@browser/shop"]).refused(1);

    // A second workspace of the same user: one must be named.
    let other = scratch.path("other");
    std::fs::create_dir(&other).unwrap();
    let made = scratch
        .command(&["init", "--yes", "--agents", "none", "--json"])
        .current_dir(&other)
        .output()
        .unwrap();
    let made: Value = serde_json::from_slice(&made.stdout).unwrap();
    let mut lost = Client::of(scratch.command(&["mcp"]).current_dir(&elsewhere));
    lost.initialize("2025-06-18");
    let (code, text) = lost.refused("status", &json!({}));
    assert_eq!(code, "several_workspaces", "{text}");
    let id = made["workspace"].as_str().unwrap();
    assert!(text.contains(id) && text.contains("baton mcp --workspace ID"), "{text}");
    let mut named =
        Client::of(scratch.command(&["mcp", "--workspace", id]).current_dir(&elsewhere));
    named.initialize("2025-06-18");
    named.good("claim", &json!({ "resources": ["@browser/shop"] }));
    let nobody = "0".repeat(32);
    let mut none =
        Client::of(scratch.command(&["mcp", "--workspace", &nobody]).current_dir(&elsewhere));
    none.initialize("2025-06-18");
    assert_eq!(none.refused("status", &json!({})).0, "no_such_workspace");
    scratch.baton(&["mcp", "--workspace", "../x"]).refused(2);
}

#[test]
fn a_workspace_that_is_made_later_is_found() {
    let scratch = Scratch::repository();
    let mut client = Client::start(&scratch);
    client.initialize("2025-06-18");
    let (code, text) = client.refused("claim", &json!({ "resources": ["src/a.rs"] }));
    assert_eq!(code, "not_initialised", "{text}");
    scratch.baton(&["init", "--yes", "--agents", "none"]).ok();
    client.good("claim", &json!({ "resources": ["src/a.rs"] }));
}

#[test]
fn nothing_but_protocol_is_on_standard_output() {
    let scratch = Scratch::workspace();
    let mut client = Client::start(&scratch);
    client.initialize("2025-06-18");
    client.good("task_add", &json!({ "title": "one" }));
    client.good("status", &json!({}));
    client.request("resources/read", json!({ "uri": "baton://journal" }));
    client.close();
    match client.lines.recv_timeout(PATIENCE) {
        Err(RecvTimeoutError::Disconnected) => {}
        other => panic!("{other:?}"),
    }
    let mut errors = String::new();
    std::io::Read::read_to_string(&mut client.child.stderr.take().unwrap(), &mut errors).unwrap();
    assert_eq!(errors, "", "and silence on standard error");
}

#[test]
fn who_comes_back_after_a_sudden_end_is_alive() {
    let scratch = Scratch::workspace();
    let payload = |name: &str, payload: Value| {
        let mut payload = payload;
        payload["session_id"] = json!("abc");
        payload["cwd"] = json!(scratch.root());
        std::fs::write(scratch.path(name), payload.to_string()).unwrap();
    };
    payload("start", json!({ "hook_event_name": "SessionStart", "source": "startup" }));
    payload("resume", json!({ "hook_event_name": "SessionStart", "source": "resume" }));
    let write = json!({ "file_path": scratch.root().join("src/a.rs"), "content": "x" });
    payload(
        "edit",
        json!({ "hook_event_name": "BeforeTool", "tool_name": "write_file", "tool_input": write }),
    );
    // It ends without a word.
    let lines = "$BATON hook gemini < ../start > ../begun\n$BATON hook gemini < ../edit";
    assert!(program(&scratch, "gemini", lines).status().unwrap().success());
    // And comes back as another process, which is there while the other looks.
    let eve = scratch.session("eve");
    let lines = format!(
        "$BATON hook gemini < ../resume > ../begun\n\
         $BATON hook gemini < ../edit > ../edited\n\
         $BATON --session {eve} claim src/a.rs > ../taken 2>&1"
    );
    assert!(program(&scratch, "gemini", &lines).status().unwrap().success());
    let taken = std::fs::read_to_string(scratch.path("taken")).unwrap();
    assert!(taken.starts_with("refused: src/a.rs is held by"), "{taken}");
    assert_eq!(sessions(&scratch).len(), 2);
}

#[test]
fn s19_what_everybody_can_read_of_a_clients_session_is_not_enough_to_be_it() {
    let scratch = Scratch::workspace();
    let start = json!({ "hook_event_name": "SessionStart", "source": "startup",
        "session_id": "a-secret-of-the-client", "cwd": scratch.root() });
    hook_with(&scratch, "claude", start.to_string().as_bytes(), &[]).ok();
    for words in [&["journal", "--json"][..], &["session", "list", "--json"], &["status", "--json"]]
    {
        let said = scratch.baton(words).ok().out;
        assert!(!said.contains("a-secret-of-the-client"), "{said}");
    }
}

#[test]
fn a_tool_that_the_role_has_no_use_for_is_absent() {
    Scratch::on_each_store("", |scratch| {
        for (role, there) in [("review", false), ("explore", false), ("debug", true)] {
            let words = ["session", "start", "--role", role, "--json"];
            let started = scratch.baton(&words).ok().json();
            let credential = started["credential"].as_str().unwrap();
            let mut client = Client::of_session(scratch, credential);
            assert_eq!(offers(&mut client, "commit_and_land"), there, "{role}");
            assert!(offers(&mut client, "task_update"));
        }
        // Whoever is not known yet is offered everything.
        let mut client = Client::start(scratch);
        client.initialize("2025-06-18");
        assert!(offers(&mut client, "commit_and_land"));
    });
}
