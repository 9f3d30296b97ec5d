//! Gemini CLI.
//!
//! Owns its JSON, and how it takes a path. It has no id of a tool call and nobody to ask, and an
//! agent that would stop is sent on by a denial.

use std::path::Path;

use serde_json::{Value, json};

use super::{Answer, Client, Event, Payload, Said, Tool, folder, goes_on, limit, owned, text};

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

/// The tool, with the files that Gemini will take for the ones it was given.
fn tool(payload: &Value) -> Tool {
    let folder = folder(payload);
    let name = text(payload, &["tool_name"]).unwrap_or_default();
    match super::tool(payload) {
        Tool::Edit(mut targets) => {
            for target in &mut targets {
                target.path = taken(&folder, &target.path);
            }
            // One that it does not find it looks for, and edits whichever file ends so.
            let found = |path: &str| Path::new(path).is_absolute() || folder.join(path).exists();
            let lost = targets.iter().find(|target| !found(&target.path));
            match lost.filter(|_| name == "replace") {
                Some(lost) => Tool::Unclear(looked_for(&folder, &lost.path)),
                None => Tool::Edit(targets),
            }
        }
        Tool::Read(paths) => Tool::Read(paths.iter().map(|path| taken(&folder, path)).collect()),
        tool => tool,
    }
}

fn looked_for(folder: &Path, path: &str) -> String {
    let shown = crate::render::shown;
    format!(
        "there is no {} in {}, and this tool would look for one elsewhere, which somebody else may \
         hold. Nothing was changed. Name the file by its whole path.",
        shown(path),
        shown(&folder.display().to_string())
    )
}

/// What Gemini 0.61 takes a path for (its `resolveDefensiveToolPath`): without zero bytes, and if
/// there is no such file, without an `@` by which a prompt names files.
fn taken(folder: &Path, path: &str) -> String {
    let clean = path.replace('\0', "");
    let Some(rest) = clean.strip_prefix('@').filter(|_| !folder.join(&clean).exists()) else {
        return clean;
    };
    let stripped = rest.trim_start_matches(['/', '\\']);
    let first = stripped.split(['/', '\\']).next().unwrap_or_default();
    let bare = rest.starts_with(['/', '\\']);
    match first.is_empty() || !bare && folder.join(format!("@{first}")).exists() {
        true => clean,
        false => stripped.to_owned(),
    }
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
