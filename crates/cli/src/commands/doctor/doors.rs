//! The part of `doctor` about doors: which client is guarded where, and what it does without Baton.
//!
//! Owns which missing door is a problem: one of a client that is in use. Whether a hook really
//! fires is not seen in a file, and is not claimed here.

use baton_engine::wiring::git_hooks::Standing;
use baton_engine::wiring::{Client, DoorState, Doors, Inspection};

use super::{Report, State};
use crate::render::shown;

pub(super) fn judge(report: &mut Report, found: &Inspection) {
    for doors in &found.doors {
        client(report, doors);
    }
    if found.doors.is_empty() {
        for (check, what) in [
            ("edit door", "edits by agents' tools"),
            ("shell door", "writes and git verbs in agents' shells"),
        ] {
            let detail = format!("not guarded yet: {what} are not stopped; no client is wired");
            report.tell(check, State::Warning, detail, "baton init --agents claude,codex");
        }
    }
    git(report, found);
}

fn label(client: Client, hooks: bool) -> &'static str {
    match (client, hooks) {
        (Client::Claude, true) => "claude hooks",
        (Client::Claude, false) => "claude mcp",
        (Client::Codex, true) => "codex hooks",
        (Client::Codex, false) => "codex mcp",
        (Client::Gemini, true) => "gemini hooks",
        (Client::Gemini, false) => "gemini mcp",
        (Client::Cursor, true) => "cursor hooks",
        (Client::Cursor, false) => "cursor mcp",
        (Client::Opencode, true) => "opencode hooks",
        (Client::Opencode, false) => "opencode mcp",
        (Client::Aider, true) => "aider hooks",
        (Client::Aider, false) => "aider mcp",
    }
}

/// What happens at the door when Baton does not answer.
fn failing(client: Client) -> &'static str {
    match client {
        Client::Claude => "fails open: without an answer the edit lands",
        Client::Codex => {
            "fails open, and codex runs only hooks that you approved: /hooks in codex shows it"
        }
        Client::Gemini => {
            "fails open on errors and time; a missing script would block, ours passes. Gemini CLI \
             switches git's hooks off in its shell: a commit around the doors is seen afterwards"
        }
        Client::Cursor => "fails open (failClosed is false)",
        Client::Opencode => "fails open: without an answer the tool runs",
        Client::Aider => "no such door",
    }
}

fn client(report: &mut Report, doors: &Doors) {
    let Doors { client, hooks, server, in_use } = doors;
    let name = client.name();
    let bad = if *in_use { State::Problem } else { State::Warning };
    let next = format!("baton init --agents {name}");
    let check = label(*client, true);
    match hooks {
        DoorState::Installed => report.ok(check, format!("installed; {}", failing(*client))),
        DoorState::Missing => {
            let detail = format!("not installed: edits and shell of {name} are not guarded");
            report.tell(check, bad, detail, &next);
        }
        DoorState::Differs => {
            let detail = "installed, but not as this Baton would write them".to_owned();
            report.tell(check, State::Warning, detail, "baton init");
        }
        DoorState::Broken { file, why } => {
            let file = shown(file);
            let detail = format!("{file} cannot be used: {}", shown(why));
            report.tell(check, bad, detail, &format!("put {file} right, then baton init"));
        }
        DoorState::None => report.say(
            check,
            State::Warning,
            format!("{name} has no hooks for edits: only the git door guards it"),
        ),
    }
    let check = label(*client, false);
    match server {
        DoorState::Installed => report.ok(check, "installed"),
        DoorState::None => {}
        DoorState::Broken { file, why } => {
            let detail = format!("{} cannot be used: {}", shown(file), shown(why));
            report.tell(check, State::Warning, detail, "put it right, then baton init");
        }
        DoorState::Missing | DoorState::Differs => {
            let detail = "not installed, or not as this Baton would write it".to_owned();
            report.tell(check, State::Warning, detail, &next);
        }
    }
}

fn git(report: &mut Report, found: &Inspection) {
    let wired = found.doors.iter().any(|doors| doors.in_use);
    let bad = if wired { State::Problem } else { State::Warning };
    match &found.git {
        None => {
            report.say("git door", State::Warning, "not guarded yet: there is no git here");
        }
        Some(Standing::Installed) => report.ok(
            "git door",
            "installed; pre-commit judges what is staged, reference-transaction what a branch \
             would newly have (also with --no-verify), pre-push only passes yours on; fails open, \
             and says so",
        ),
        Some(Standing::Missing) => report.tell(
            "git door",
            bad,
            "not guarded yet: commits and pushes are not stopped".to_owned(),
            "baton init --agents claude,codex",
        ),
        Some(Standing::Elsewhere { to }) => report.tell(
            "git door",
            bad,
            format!("core.hooksPath was set anew, to {}: Baton's hooks do not run", shown(to)),
            "baton init",
        ),
        Some(Standing::Differs { hooks }) => report.tell(
            "git door",
            State::Warning,
            format!(
                "hooks have changed, so these are not called as they should: {}",
                hooks.join(", ")
            ),
            "baton init",
        ),
    }
}
