//! Which hooks of Baton's the user of Codex has approved, as they stand in its file now.
//!
//! Owns Codex's own mark of a hook. Codex runs a hook only while it has the very mark under which
//! its user approved it: whatever changes its line, its matcher or its time limit takes that back,
//! and Codex says nothing. So does its user's switch for that hook. Seen with Codex 0.166.0, which
//! tells these marks itself (`hooks/list` of its app server). Files are only read.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::probe::Trust;
use super::{Ground, command};

/// The door needs both, by the names of the file and of the approvals.
const EVENTS: [(&str, &str); 2] =
    [("PreToolUse", "pre_tool_use"), ("PostToolUse", "post_tool_use")];
/// What counts where a hook names no limit.
const SECONDS_DEFAULT: u64 = 600;

/// Does Codex run them?
pub(super) fn trust(ground: &Ground, home: &Path) -> Trust {
    let folder = std::env::var_os("CODEX_HOME").map_or_else(|| home.join(".codex"), PathBuf::from);
    let settings = folder.join("config.toml");
    let shown = |path: &Path| path.display().to_string();
    match given(ground, &settings) {
        Ok(Given::All) => Trust::Given,
        Ok(Given::Some) => Trust::Missing,
        Ok(Given::Refused) => Trust::Refused { file: shown(&settings) },
        Err(file) => Trust::Untold { file: shown(&file) },
    }
}

/// How far its user let Codex run them.
enum Given {
    All,
    Some,
    /// Nothing of this project is run.
    Refused,
}

/// Where one of its files cannot be read, that file.
fn given(ground: &Ground, settings: &Path) -> Result<Given, PathBuf> {
    let unread = || settings.to_owned();
    // Where there is no such file, nothing was ever approved.
    let text = match std::fs::read_to_string(settings) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        text => text.map_err(|_| unread())?,
    };
    let settings: toml_edit::DocumentMut = text.parse().map_err(|_| unread())?;
    let project = |root: &Path| settings.get("projects")?.get(root.to_str()?)?.get("trust_level");
    // What is said of the tree itself counts more than what is said of the repository.
    let level = project(&ground.root).or_else(|| project(ground.main_root()));
    if level.and_then(|level| level.as_str()) == Some("untrusted") {
        return Ok(Given::Refused);
    }
    let states = settings.get("hooks").and_then(|hooks| hooks.get("state"));
    let file = ground.main_root().join(".codex/hooks.json");
    let text = std::fs::read_to_string(&file).map_err(|_| file.clone())?;
    let hooks: Value = serde_json::from_str(&text).map_err(|_| file.clone())?;
    let runs = |(place, mark): (String, String)| {
        let state = states.and_then(|states| states.get(format!("{}:{place}", file.display())));
        let said = |key: &str| state.and_then(|state| state.get(key));
        said("trusted_hash").and_then(|hash| hash.as_str()) == Some(mark.as_str())
            && said("enabled").and_then(|enabled| enabled.as_bool()) != Some(false)
    };
    let mut ours = EVENTS.iter().flat_map(|(event, label)| ours(&hooks, event, label));
    Ok(if ours.all(runs) { Given::All } else { Given::Some })
}

/// Where each line of Baton's stands, and its mark.
fn ours(hooks: &Value, event: &str, label: &str) -> Vec<(String, String)> {
    let list = |value: &Value, key: &str| value.get(key).and_then(Value::as_array).cloned();
    let groups = hooks.get("hooks").and_then(|hooks| list(hooks, event)).unwrap_or_default();
    let mut found = Vec::new();
    for (at, group) in groups.iter().enumerate() {
        for (within, hook) in list(group, "hooks").unwrap_or_default().iter().enumerate() {
            let line = hook.get("command").and_then(Value::as_str).unwrap_or_default();
            if command::is_hook(line, None, "codex") {
                found.push((format!("{label}:{at}:{within}"), mark(label, group, hook)));
            }
        }
    }
    found
}

/// The hash of what makes the hook what it is, with its keys in order and nothing that is not set.
fn mark(label: &str, group: &Value, hook: &Value) -> String {
    let mut own = json!({
        "async": hook.get("async").and_then(Value::as_bool).unwrap_or(false),
        "command": hook.get("command"),
    });
    if let Some(message) = hook.get("statusMessage") {
        own["statusMessage"] = message.clone();
    }
    own["timeout"] = hook.get("timeout").cloned().unwrap_or_else(|| SECONDS_DEFAULT.into());
    own["type"] = "command".into();
    let mut identity = json!({ "event_name": label, "hooks": [own] });
    if let Some(matcher) = group.get("matcher") {
        identity["matcher"] = matcher.clone();
    }
    let hash = Sha256::digest(identity.to_string());
    let digits: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{digits}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Codex itself has it.
    #[test]
    fn the_mark_is_the_one_that_codex_makes() {
        let line = "command -v baton >/dev/null 2>&1 || exit 0; exec baton hook codex";
        let own = json!({ "type": "command", "command": line, "timeout": 5 });
        let other = json!({ "type": "command", "command": "./own.sh" });
        let tools = "Bash|apply_patch|Edit|Write|spawn_agent";
        let hooks = json!({ "hooks": { "PreToolUse": [
            { "hooks": [other] }, { "matcher": tools, "hooks": [other, own] }
        ] } });
        let mark = "sha256:6ae12000137901c5fdc0a27ff467f484cee8d17fd2ee61a6a488fec51a39d52e";
        let expected = vec![("pre_tool_use:1:1".to_owned(), mark.to_owned())];
        assert_eq!(ours(&hooks, "PreToolUse", "pre_tool_use"), expected);
        assert_eq!(ours(&json!([]), "PreToolUse", "pre_tool_use"), Vec::new());
    }
}
