//! Gemini CLI.
//!
//! Owns its JSON. It has no id of a tool call and nobody to ask, and an agent that would stop is
//! sent on by a denial.

use std::path::{Component, Path, PathBuf};

use serde_json::{Value, json};

use super::{
    Answer, Client, Event, Payload, Said, Tool, folder, goes_on, limit, owned, text, tool, words,
};

pub(super) fn read(payload: &Value) -> Option<Payload> {
    let event_name = owned(payload, &["hook_event_name"])?;
    let event = match event_name.as_str() {
        "SessionStart" => Event::SessionStart {
            continues: !matches!(text(payload, &["source"]), None | Some("startup")),
        },
        "BeforeAgent" => Event::Prompt,
        "BeforeTool" => Event::Before(unless_sought(payload, meant(payload))),
        "AfterTool" => Event::After { tool: meant(payload), failed: failed(payload) },
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

/// The tool with the paths that Gemini makes of those it is given.
fn meant(payload: &Value) -> Tool {
    let cwd = folder(payload);
    let mut tool = tool(payload);
    match &mut tool {
        Tool::Edit(targets) | Tool::Patch { targets, .. } => {
            targets.iter_mut().for_each(|one| one.path = path_of(&cwd, &one.path));
        }
        Tool::Read(paths) => paths.iter_mut().for_each(|path| *path = path_of(&cwd, path)),
        Tool::Shell(_) | Tool::Refused(_) | Tool::Own | Tool::Other => {}
    }
    tool
}

/// As Gemini's `resolveDefensiveToolPath`: zeros go, and so does the `@` by which its users name
/// files, unless there is something of that very name. It reads `..` by the words alone.
fn path_of(cwd: &Path, given: &str) -> String {
    let path = given.replace('\0', "");
    let by_words = |path: &str| match path.split('/').any(|name| name == "..") {
        true => resolved(cwd, path).to_string_lossy().into_owned(),
        false => path.to_owned(),
    };
    let Some(rest) = path.strip_prefix('@').filter(|rest| !rest.is_empty()) else {
        return by_words(&path);
    };
    if resolved(cwd, &path).exists() {
        return by_words(&path);
    }
    let stripped = rest.trim_start_matches(['/', '\\']);
    let first = stripped.split(['/', '\\']).next().unwrap_or_default();
    let is_rooted = rest.starts_with(['/', '\\']);
    match is_rooted || !resolved(cwd, &format!("@{first}")).exists() {
        true if !stripped.is_empty() => by_words(stripped),
        _ => by_words(&path),
    }
}

/// As Node's `path.resolve`: no link is followed.
fn resolved(cwd: &Path, path: &str) -> PathBuf {
    let mut whole = PathBuf::new();
    for part in cwd.join(path).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(whole.pop()),
            part => whole.push(part),
        }
    }
    whole
}

/// `replace` looks through the whole workspace for a file that is not where it is said to be, and
/// may find another's.
fn unless_sought(payload: &Value, tool: Tool) -> Tool {
    let cwd = folder(payload);
    let is_replace = text(payload, &["tool_name"]) == Some("replace");
    let missing = match &tool {
        Tool::Edit(targets) if is_replace => targets
            .iter()
            .find(|one| !Path::new(&one.path).is_absolute() && !resolved(&cwd, &one.path).exists()),
        _ => None,
    };
    match missing {
        Some(one) => Tool::Refused(words::sought(&one.path, &cwd)),
        None => tool,
    }
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
