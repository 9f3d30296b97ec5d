//! Cursor, also where it runs hooks that were written for Claude.
//!
//! Owns its JSON. Broken output of a permission hook blocks there, so every such hook is answered.

use serde_json::{Value, json};

use super::{
    Answer, Client, Event, Payload, Said, Tool, folder, goes_on, limit, owned, text, tool,
};

pub(super) fn read(payload: &Value) -> Option<Payload> {
    let event_name = owned(payload, &["hook_event_name"])?;
    let shell = || text(payload, &["command"]).map_or(Tool::Other, |line| Tool::Shell(line.into()));
    let event = match event_name.as_str() {
        "sessionStart" => Event::SessionStart { continues: false },
        "beforeSubmitPrompt" => Event::Prompt,
        "preToolUse" | "PreToolUse" => Event::Before(tool(payload)),
        "beforeShellExecution" => Event::Before(shell()),
        "postToolUse" | "PostToolUse" => Event::After { tool: tool(payload), failed: false },
        "postToolUseFailure" => Event::After { tool: tool(payload), failed: true },
        "afterShellExecution" => Event::After { tool: shell(), failed: false },
        "preCompact" => Event::BeforeCompaction,
        "stop" => Event::Stop {
            again: payload.get("loop_count").and_then(Value::as_u64).unwrap_or(0) > 0,
        },
        "subagentStop" => Event::SubagentStop,
        "sessionEnd" => Event::SessionEnd,
        _ => Event::Other,
    };
    let roots = payload.get("workspace_roots").and_then(|roots| roots.get(0)?.as_str());
    let cwd = match (text(payload, &["cwd"]), roots) {
        (None | Some(""), Some(root)) => root.into(),
        _ => folder(payload),
    };
    Some(Payload {
        client: Client::Cursor,
        event_name,
        session: owned(payload, &["conversation_id", "session_id"])?,
        agent: owned(payload, &["parent_tool_call_id"]),
        agent_type: None,
        cwd,
        call: owned(payload, &["tool_use_id"]),
        limit: limit(payload.get("tool_input")),
        behind: goes_on(payload),
        event,
    })
}

pub(super) fn say(payload: &Payload, answer: &Answer) -> Said {
    let asks = matches!(payload.event, Event::Before(_));
    match answer {
        Answer::Silent if asks => Said::json(&json!({ "permission": "allow" })),
        Answer::Silent | Answer::Made(_) | Answer::No { .. } => Said::nothing(),
        Answer::Context(words) if asks => {
            Said::json(&json!({ "permission": "allow", "agent_message": words }))
        }
        Answer::Context(words) => Said::json(&json!({ "additional_context": words })),
        Answer::Deny(why) => permission("deny", why),
        Answer::Ask(why) => permission("ask", why),
        Answer::GoOn(why) => Said::json(&json!({ "followup_message": why })),
    }
}

fn permission(permission: &str, why: &str) -> Said {
    Said::json(&json!({ "permission": permission, "user_message": why, "agent_message": why }))
}
