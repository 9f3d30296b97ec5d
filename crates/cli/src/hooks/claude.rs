//! Claude Code and Codex, which took over its hooks.
//!
//! Owns their JSON. They differ in the answer: Codex takes an empty object for "nothing to say",
//! knows no "ask", and shows its model no words before a tool. And Codex says how a command ended
//! in its own record alone.

use serde_json::{Value, json};

use super::{
    Answer, Client, Event, Payload, Said, Tool, folder, goes_on, limit, owned, text, tool,
    transcript,
};

pub(super) fn read(client: Client, payload: &Value) -> Option<Payload> {
    let event_name = owned(payload, &["hook_event_name"])?;
    let event = match event_name.as_str() {
        "SessionStart" => Event::SessionStart {
            continues: !matches!(text(payload, &["source"]), None | Some("startup")),
        },
        "UserPromptSubmit" => Event::Prompt,
        "PreToolUse" => Event::Before(tool(payload)),
        "PostToolUse" => match unlisted(payload) {
            Some(id) => Event::Unlisted { id },
            None => after(client, payload),
        },
        "PostToolUseFailure" => Event::After { tool: tool(payload), failed: true },
        "PreCompact" => Event::BeforeCompaction,
        "Stop" => Event::Stop {
            again: payload.get("stop_hook_active").and_then(Value::as_bool).unwrap_or(false),
        },
        "SubagentStop" => Event::SubagentStop,
        "SessionEnd" => Event::SessionEnd,
        "WorktreeCreate" => Event::TreeWanted(owned(payload, &["name"])?),
        "WorktreeRemove" => Event::TreeUnwanted(owned(payload, &["worktree_path"])?),
        "TaskCreated" | "TaskCompleted" => Event::Listed {
            id: owned(payload, &["task_id"])?,
            title: owned(payload, &["task_subject"])?,
            text: owned(payload, &["task_description"]).unwrap_or_default(),
            done: event_name == "TaskCompleted",
        },
        _ => Event::Other,
    };
    Some(Payload {
        client,
        event_name,
        session: owned(payload, &["session_id"])?,
        agent: owned(payload, &["agent_id"]),
        agent_type: owned(payload, &["agent_type"]),
        cwd: folder(payload),
        call: owned(payload, &["tool_use_id"]),
        limit: limit(payload.get("tool_input")),
        behind: goes_on(payload),
        event,
    })
}

/// The entry that Claude took off its list of tasks: of that it has no event of its own.
fn unlisted(payload: &Value) -> Option<String> {
    let input = payload.get("tool_input")?;
    let deleted = text(payload, &["tool_name"]) == Some("TaskUpdate")
        && text(input, &["status"]) == Some("deleted");
    owned(input, &["taskId"]).filter(|_| deleted)
}

fn after(client: Client, payload: &Value) -> Event {
    let tool = tool(payload);
    let response = payload.get("tool_response");
    let code = response.and_then(|response| response.get("exit_code")?.as_i64());
    let wrong = response.and_then(|response| response.get("is_error")?.as_bool());
    let code = match (client, &tool) {
        (Client::Codex, Tool::Shell(_)) => code.or_else(|| recorded(payload)),
        _ => code,
    };
    Event::After { tool, failed: code.is_some_and(|code| code != 0) || wrong == Some(true) }
}

/// How a command of Codex ended: the response is nothing but what it wrote.
fn recorded(payload: &Value) -> Option<i64> {
    let call = text(payload, &["tool_use_id"])?;
    transcript::exit_code(text(payload, &["transcript_path"])?.as_ref(), call)
}

pub(super) fn say(payload: &Payload, answer: &Answer) -> Said {
    let event = &payload.event_name;
    match answer {
        Answer::Silent if payload.client == Client::Codex => Said::json(&json!({})),
        Answer::Silent => Said::nothing(),
        Answer::Context(words) => Said::json(&json!({
            "hookSpecificOutput": { "hookEventName": event, "additionalContext": words }
        })),
        Answer::Deny(why) => decision(event, "deny", why),
        Answer::Ask(why) if payload.client == Client::Claude => decision(event, "ask", why),
        Answer::Ask(why) => decision(event, "deny", why),
        Answer::Made(folder) => Said { out: folder.clone(), ..Said::nothing() },
        Answer::No { why, exit } => Said { err: why.clone(), exit: *exit, ..Said::nothing() },
        Answer::GoOn(why) => Said::json(&json!({ "decision": "block", "reason": why })),
    }
}

fn decision(event: &str, decision: &str, why: &str) -> Said {
    Said::json(&json!({
        "hookSpecificOutput": {
            "hookEventName": event,
            "permissionDecision": decision,
            "permissionDecisionReason": why,
        }
    }))
}
