//! Gemini CLI.
//!
//! Owns its JSON. It has no id of a tool call and nobody to ask, and an agent that would stop is
//! sent on by a denial.

use serde_json::{Value, json};

use super::{Answer, Client, Event, Payload, Said, folder, goes_on, limit, owned, text, tool};

pub(super) fn read(payload: &Value) -> Option<Payload> {
    let event_name = owned(payload, &["hook_event_name"])?;
    let event = match event_name.as_str() {
        "SessionStart" => Event::SessionStart {
            continues: !matches!(text(payload, &["source"]), None | Some("startup")),
        },
        "BeforeAgent" => Event::Prompt,
        "BeforeTool" => Event::Before(tool(payload)),
        "AfterTool" => Event::After { tool: tool(payload), failed: failed(payload) },
        // PreCompress comes before every call of the model: a checkpoint each time would be noise.
        "AfterAgent" => Event::Stop {
            again: payload.get("stop_hook_active").and_then(Value::as_bool).unwrap_or(false),
        },
        "SessionEnd" => Event::SessionEnd,
        _ => Event::Other,
    };
    Some(Payload {
        client: Client::Gemini,
        event_name,
        session: owned(payload, &["session_id"])?,
        agent: None,
        agent_type: None,
        cwd: folder(payload),
        call: None,
        limit: limit(payload.get("tool_input")),
        behind: goes_on(payload),
        event,
    })
}

/// Gemini's own lines about a command come after what that wrote, and one has its exit code when
/// it is not 0; there is no field for it.
fn failed(payload: &Value) -> bool {
    const CODE: &str = "Exit Code: ";
    const AFTER_IT: [&str; 4] =
        ["Signal: ", "Background PIDs: ", "Process Group PGID: ", "</untrusted_context>"];
    let Some(response) = payload.get("tool_response") else { return false };
    let told = text(response, &["llmContent"]).unwrap_or_default();
    let after = |line: &&str| AFTER_IT.iter().any(|own| line.starts_with(own));
    let code = told.lines().rev().find(|line| !after(line)).and_then(|line| {
        let code = line.strip_prefix(CODE)?;
        code.trim().parse::<i64>().ok()
    });
    code.is_some_and(|code| code != 0)
        || response.get("error").is_some_and(|error| !error.is_null())
}

pub(super) fn say(payload: &Payload, answer: &Answer) -> Said {
    match answer {
        Answer::Silent | Answer::Made(_) | Answer::No { .. } => Said::nothing(),
        Answer::Context(words) => Said::json(&json!({
            "hookSpecificOutput": {
                "hookEventName": payload.event_name, "additionalContext": words
            }
        })),
        Answer::Deny(why) | Answer::Ask(why) | Answer::GoOn(why) => {
            Said::json(&json!({ "decision": "deny", "reason": why }))
        }
    }
}
