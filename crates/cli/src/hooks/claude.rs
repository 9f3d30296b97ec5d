//! Claude Code and Codex, which took over its hooks.
//!
//! Owns their JSON. They differ in the answer: Codex takes an empty object for "nothing to say",
//! knows no "ask", and shows its model no words before a tool.

use serde_json::{Value, json};

use super::{Answer, Client, Event, Payload, Said, folder, goes_on, limit, owned, text, tool};

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
            None => Event::After { tool: tool(payload), failed: failed(payload) },
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

/// Codex tells a failed command by its exit code in the response.
fn failed(payload: &Value) -> bool {
    let response = payload.get("tool_response");
    let code = response.and_then(|response| response.get("exit_code")?.as_i64());
    let wrong = response.and_then(|response| response.get("is_error")?.as_bool());
    code.is_some_and(|code| code != 0) || wrong == Some(true)
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
