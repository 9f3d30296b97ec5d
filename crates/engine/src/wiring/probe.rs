//! Whether a door really answers: what stands in a client's file is run, as the client would.
//!
//! Owns the probe. It goes the whole way: the line by a shell, Baton found or not found by PATH,
//! the payload read, the store opened, and a mark left that is looked for here. And what a client
//! says of trust in its own files, which are only read. A probe acts for nobody, judges nothing.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::command::Program;
use super::json::Line;
use super::{Client, Ground, Mode, approval, json, switches};
use crate::doors;
use crate::errand;
use crate::place::Place;
use crate::workspace;

/// As long as clients wait for a hook.
const AT_MOST: Duration = Duration::from_secs(5);
/// The variable by which git's hooks are told that they are only tried.
pub const VARIABLE: &str = "BATON_PROBE";

/// What came of a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Firing {
    Answered,
    /// It ran, and Baton heard nothing of it.
    Unheard {
        why: String,
    },
}

/// What a client says of the hooks it was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// It runs them.
    Given,
    /// It runs none before its user has agreed.
    Missing,
    /// It was told to run none in this folder.
    Refused { file: String },
    /// It asks for one, and this file of its own, which would tell, cannot be read.
    Untold { file: String },
    /// It asks for none, or does not say.
    Unknown,
}

/// Sends a probe through each line that stands in the file of a client. Where the file is a program
/// of its own, it is what that program would run.
pub(super) fn hook(
    ground: &Ground,
    place: &Place,
    (client, mode): (Client, Mode),
    lines: &[Line],
) -> Firing {
    let path = ground.program.to_string_lossy();
    let usual = Program { mode, path: &path }.line(client.name(), "PreToolUse");
    let usual = [Line { command: usual, arguments: None }];
    let lines = if lines.is_empty() { &usual[..] } else { lines };
    let unheard = |line: &Line| match one(ground, place, line) {
        Firing::Answered => None,
        unheard => Some(unheard),
    };
    lines.iter().find_map(unheard).unwrap_or(Firing::Answered)
}

fn one(ground: &Ground, place: &Place, line: &Line) -> Firing {
    let Ok(mark) = workspace::secret() else { return Firing::Unheard { why: String::new() } };
    let payload = serde_json::json!({
        "hook_event_name": "BatonProbe", "baton_probe": mark, "session_id": "baton-doctor",
        "conversation_id": "baton-doctor", "sessionID": "baton-doctor",
        "cwd": ground.root.to_string_lossy(),
    });
    let argv = match &line.arguments {
        Some(arguments) => std::iter::once(&line.command).chain(arguments).cloned().collect(),
        None => vec!["sh".to_owned(), "-c".to_owned(), line.command.clone()],
    };
    let came = errand::run(&argv, &ground.root, &[], &payload.to_string(), AT_MOST);
    judged(place, &mark, &came.saw)
}

/// Sends a probe through one of git's hooks. Its answer is "no", so that the user's own hook, which
/// comes after, is not called for nothing.
pub(super) fn git(ground: &Ground, place: &Place) -> Firing {
    let script = super::git_hooks::folder(&ground.store).join("pre-commit");
    let Ok(mark) = workspace::secret() else { return Firing::Unheard { why: String::new() } };
    let argv = [script.to_string_lossy().into_owned()];
    let came = errand::run(&argv, &ground.root, &[(VARIABLE, mark.clone())], "", AT_MOST);
    judged(place, &mark, &came.saw)
}

fn judged(place: &Place, mark: &str, saw: &str) -> Firing {
    match doors::was_probed(place, mark) {
        true => Firing::Answered,
        false => Firing::Unheard { why: saw.to_owned() },
    }
}

/// What the client's own files say.
pub(super) fn trust(ground: &Ground, client: Client) -> Trust {
    let Some(home) = &ground.home else { return Trust::Unknown };
    let shown = |path: &Path| path.display().to_string();
    let said = match client {
        Client::Codex => return approval::trust(ground, home),
        Client::Claude => claude(&ground.root, home),
        Client::Gemini => {
            let home = switches::home_of_gemini(home);
            let file = home.join(".gemini/trustedFolders.json");
            return match gemini(&ground.root, &home, &file) {
                true => Trust::Refused { file: shown(&file) },
                false => Trust::Unknown,
            };
        }
        _ => None,
    };
    match said {
        Some(true) => Trust::Given,
        Some(false) => Trust::Missing,
        None => Trust::Unknown,
    }
}

/// Whether Gemini was told not to trust this folder, by the nearest one around it of which it was
/// told anything. Its user may have switched that off.
fn gemini(root: &Path, home: &Path, file: &Path) -> bool {
    let read = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
    let switch = ["security", "folderTrust", "enabled"];
    let settings = json::value_at(&read(&home.join(".gemini/settings.json")), &switch);
    if settings.and_then(|enabled| enabled.as_bool()) == Some(false) {
        return false;
    }
    let text = read(file);
    let said = |folder: &Path| json::value_at(&text, &[folder.to_str()?]);
    root.ancestors().find_map(said).is_some_and(|said| said == "DO_NOT_TRUST")
}

/// Claude asks once for each folder, and until then runs no hook of it.
fn claude(root: &Path, home: &Path) -> Option<bool> {
    let folder = std::env::var_os("CLAUDE_CONFIG_DIR").map_or_else(|| home.into(), PathBuf::from);
    let text = std::fs::read_to_string(folder.join(".claude.json")).ok()?;
    let settings: Value = serde_json::from_str(&text).ok()?;
    let project = settings.get("projects")?.get(root.to_str()?)?;
    project.get("hasTrustDialogAccepted")?.as_bool()
}
