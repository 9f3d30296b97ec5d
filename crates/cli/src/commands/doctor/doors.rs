//! The part of `doctor` about doors: which client is guarded where, and what it does without Baton.
//!
//! Owns which missing door is a problem: one of a client that is in use, and one that was tried and
//! did not answer.

use baton_engine::wiring::git_hooks::Standing;
use baton_engine::wiring::probe::{Firing, Trust};
use baton_engine::wiring::{Client, DoorState, Doors, Inspection, Mode};

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
    let Doors { client, hooks, server, in_use, .. } = doors;
    let name = client.name();
    let bad = if *in_use { State::Problem } else { State::Warning };
    let next = format!("baton init --agents {name}");
    let check = label(*client, true);
    match hooks {
        DoorState::Installed => report.ok(check, installed(doors)),
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
    answers(report, doors, bad);
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

fn installed(doors: &Doors) -> String {
    let tried = match doors.firing {
        Some(Firing::Answered) => "installed, and a probe came through",
        _ => "installed",
    };
    let trusted = match doors.trust {
        Trust::Given => ", and you let it run them",
        Trust::Missing | Trust::Unknown => "",
    };
    format!("{tried}{trusted}; {}", failing(doors.client))
}

/// Hooks that are written down and guard nothing all the same.
fn answers(report: &mut Report, doors: &Doors, bad: State) {
    let (check, name) = (label(doors.client, true), doors.client.name());
    if let Some(Firing::Unheard { why }) = &doors.firing {
        let detail = match doors.mode {
            Some(Mode::Team) => format!(
                "a probe through the hook of {name} did not reach Baton ({}): `baton` must be \
                 found by PATH",
                shown(why)
            ),
            _ => format!("a probe through the hook of {name} did not reach Baton ({})", shown(why)),
        };
        report.tell(check, bad, detail, "put baton in a folder of PATH, or baton init --personal");
    }
    let wired = matches!(doors.hooks, DoorState::Installed | DoorState::Differs);
    if wired && doors.trust == Trust::Missing {
        let (detail, next) = match doors.client {
            Client::Codex => (
                "codex skips hooks that you have not approved, and says nothing",
                "start codex here, type /hooks, and approve Baton's",
            ),
            _ => (
                "the client runs no hooks here before you trust this folder",
                "start it here once and agree to trust the folder",
            ),
        };
        report.tell(check, bad, detail.to_owned(), next);
    }
}

fn git(report: &mut Report, found: &Inspection) {
    let wired = found.doors.iter().any(|doors| doors.in_use);
    let bad = if wired { State::Problem } else { State::Warning };
    match &found.git {
        None => {
            report.say("git door", State::Warning, "not guarded yet: there is no git here");
        }
        Some(Standing::Installed) if found.git_firing != Some(Firing::Answered) => report.tell(
            "git door",
            bad,
            "installed, but a probe through it did not reach Baton".to_owned(),
            "baton init, with this very program",
        ),
        Some(Standing::Installed) => report.ok(
            "git door",
            "installed, and a probe came through; pre-commit judges what is staged, \
             reference-transaction what a branch would newly have (also with --no-verify), \
             pre-push only passes yours on; fails open, and says so",
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
