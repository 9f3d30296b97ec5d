//! opencode, through the plugin that `init` writes.
//!
//! Owns the JSON between that plugin and us: both ends are ours. The plugin throws what is denied.

use serde_json::{Value, json};

use super::{Answer, Client, Event, Payload, Said, folder, goes_on, limit, owned, tool};

pub(super) fn read(payload: &Value) -> Option<Payload> {
    let event_name = owned(payload, &["hook_event_name"])?;
    let agent = owned(payload, &["agent"]);
    let event = match event_name.as_str() {
        "session.created" | "event:session.created" => Event::SessionStart {
            continues: payload.get("continues").and_then(Value::as_bool).unwrap_or(false),
        },
        "chat.message" => Event::Prompt,
        "tool.execute.before" => Event::Before(tool(payload)),
        "tool.execute.after" => Event::After {
            tool: tool(payload),
            failed: payload.get("exit").and_then(Value::as_i64).is_some_and(|exit| exit != 0),
        },
        "session.compacting" => Event::BeforeCompaction,
        "session.idle" | "session.deleted" if agent.is_some() => Event::SubagentStop,
        // Nobody can be held back here, and after a stop there may be no later word.
        "session.idle" => Event::Stop { again: true },
        "session.deleted" | "dispose" => Event::SessionEnd,
        _ => Event::Other,
    };
    Some(Payload {
        client: Client::Opencode,
        event_name,
        session: owned(payload, &["sessionID", "session_id"])?,
        agent,
        agent_type: None,
        cwd: folder(payload),
        call: owned(payload, &["callID"]),
        limit: limit(payload.get("tool_input")),
        behind: goes_on(payload),
        event,
    })
}

pub(super) fn say(answer: &Answer) -> Said {
    match answer {
        Answer::Silent | Answer::Made(_) | Answer::No { .. } => Said::nothing(),
        Answer::Context(words) => Said::json(&json!({ "context": words })),
        Answer::Deny(why) | Answer::Ask(why) | Answer::GoOn(why) => {
            Said::json(&json!({ "decision": "deny", "reason": why }))
        }
    }
}
