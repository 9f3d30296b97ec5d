//! The part of `doctor` about doors: which client is guarded where, and what it does without Baton.
//!
//! Owns which missing door is a problem: one of a client that is in use, and one that was tried and
//! did not answer.

use baton_engine::wiring::git_hooks::Standing;
use baton_engine::wiring::probe::{Firing, Trust};
use baton_engine::wiring::{Client, DoorState, Doors, Inspection, Lack, Mode};

use super::{Report, State};
use crate::desk;
use crate::render::shown;
use crate::words::word;

/// With `marks`, what a probe leaves behind can be written at all.
pub(super) fn judge(report: &mut Report, found: &Inspection, marks: bool) {
    for doors in &found.doors {
        client(report, doors, marks);
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
    git(report, found, marks);
}

/// What is said of a door while the store cannot be used.
const UNHEARD: &str = "Baton cannot use its store, so it judges nothing, and heard no probe";
/// What counts more than the repository's setting, and is the user's to take out.
const OF_TREE: &str = "git config --worktree --unset core.hooksPath, then baton init";
const STORE_FIRST: &str = "put the store right first, as said above, then baton doctor";

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

fn client(report: &mut Report, doors: &Doors, marks: bool) {
    let Doors { client, hooks, server, in_use, .. } = doors;
    let name = client.name();
    let bad = if *in_use { State::Problem } else { State::Warning };
    // What git follows is nothing that `init` would change for one person alone.
    let team = if doors.shared { " --team" } else { "" };
    let next = format!("baton init --agents {name}{team}");
    let check = label(*client, true);
    match doors.guard() {
        Ok(()) if *hooks == DoorState::Installed => report.ok(check, installed(doors)),
        Ok(()) => {
            let detail = "installed, but not as this Baton would write them".to_owned();
            report.tell(check, State::Warning, detail, "baton init");
        }
        Err(Lack::Door) => report.say(
            check,
            State::Warning,
            format!("{name} has no hooks for edits: only the git door guards it"),
        ),
        Err(Lack::Answer { .. }) if !marks => {
            let detail = format!("{UNHEARD} through the hook of {name}");
            report.tell(check, bad, detail, STORE_FIRST);
        }
        Err(lack) => {
            let (detail, next) = lacking(doors, &lack, next.clone());
            report.tell(check, bad, detail, &next);
        }
    }
    let check = label(*client, false);
    match server {
        DoorState::Installed | DoorState::Unguarded { .. } => report.ok(check, "installed"),
        DoorState::None => {}
        DoorState::Off { file, why } => {
            let detail = format!("switched off in {}: {}", shown(file), shown(why));
            report.tell(check, State::Warning, detail, "take that line out");
        }
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

/// The checkout of a file of Codex's that is not this tree's.
fn main_of(file: &str) -> Option<&str> {
    file.strip_suffix("/.codex/hooks.json").filter(|main| main.starts_with('/'))
}

/// What a door lacks, and what to do about it.
fn lacking(doors: &Doors, lack: &Lack, init: String) -> (String, String) {
    let name = doors.client.name();
    match lack {
        Lack::Door | Lack::Hooks => {
            (format!("not installed: edits and shell of {name} are not guarded"), init)
        }
        Lack::Changed { file, why } => {
            let (file, why) = (shown(file), shown(why));
            let next = match doors.client {
                Client::Opencode => format!("move {file} away, then baton init"),
                // Codex reads the main checkout's, so that is where it is put right.
                Client::Codex if let Some(main) = main_of(&file) => {
                    format!("baton -C {} init", word(main))
                }
                _ => "baton init".to_owned(),
            };
            (format!("edits and shell of {name} are not guarded: in {file}, {why}"), next)
        }
        Lack::Unusable { file, why } => {
            let file = shown(file);
            let next = format!("put {file} right, then baton init");
            (format!("{file} cannot be used: {}", shown(why)), next)
        }
        Lack::Answer { why } => {
            let (by_path, next) = match doors.mode {
                // It may be committed so, and wiring for one person alone leaves such files.
                Some(Mode::Team) => {
                    (": `baton` must be found by PATH", "put baton in a folder of PATH")
                }
                _ => ("", "baton init --personal"),
            };
            let why = shown(why);
            (
                format!("a probe through the hook of {name} did not reach Baton ({why}){by_path}"),
                next.to_owned(),
            )
        }
        Lack::Refused { file } if doors.client == Client::Codex => {
            let file = shown(file);
            (
                format!("codex was told not to trust this project, in {file}: no hook runs"),
                format!(
                    "make its trust_level \"trusted\" in {file}; then start codex here, type \
                     /hooks, and approve Baton's"
                ),
            )
        }
        Lack::Refused { file } => (
            format!("{name} was told not to trust this folder, in {}: no hook runs", shown(file)),
            "start it here, type /permissions, and trust this folder".to_owned(),
        ),
        Lack::Untold { file } => {
            let file = shown(file);
            (
                format!("whether you approved the hooks cannot be told: {file} cannot be read"),
                format!("put {file} right, then baton doctor"),
            )
        }
        Lack::Trust if doors.client == Client::Codex => (
            "codex skips hooks that you have not approved as they are now, and says nothing"
                .to_owned(),
            "start codex here, type /hooks, and approve Baton's".to_owned(),
        ),
        Lack::Trust => (
            "the client runs no hooks here before you trust this folder".to_owned(),
            "start it here once and agree to trust the folder".to_owned(),
        ),
    }
}

fn installed(doors: &Doors) -> String {
    let tried = match doors.firing {
        Some(Firing::Answered) => "installed, and a probe came through",
        _ => "installed",
    };
    let trusted = match doors.trust {
        Trust::Given => ", and you let it run them",
        _ => "",
    };
    format!("{tried}{trusted}; {}", failing(doors.client))
}

/// What brings git's hooks back: for the clients that are wired, else for those in use.
fn wiring_again(found: &Inspection) -> String {
    if found.wired {
        return "baton init".to_owned();
    }
    let used = found.doors.iter().filter(|doors| doors.in_use);
    let names: Vec<&str> = used.map(|doors| doors.client.name()).collect();
    match names.is_empty() {
        true => "baton init --agents claude,codex".to_owned(),
        false => format!("baton init --agents {}", names.join(",")),
    }
}

/// The same where something of Baton's is left over, which is to go if nothing is wired.
fn mended(found: &Inspection) -> String {
    match found.wired {
        true => "baton init".to_owned(),
        false => "baton init --remove".to_owned(),
    }
}

/// The same where nobody may be there to be asked.
fn mended_unasked(found: &Inspection) -> String {
    format!("{}{}", mended(found), if desk::can_ask() { "" } else { " --yes" })
}

fn git(report: &mut Report, found: &Inspection, marks: bool) {
    let wired = found.doors.iter().any(|doors| doors.in_use);
    let bad = if wired { State::Problem } else { State::Warning };
    match &found.git {
        None => {
            report.say("git door", State::Warning, "not guarded yet: there is no git here");
        }
        Some(Standing::Impossible { why }) => report.tell(
            "git door",
            bad,
            format!("not guarded, and cannot be: {why}"),
            "move the repository to a path of plain text",
        ),
        Some(Standing::Installed | Standing::Differs { .. }) if !found.git_guards() && !marks => {
            report.tell("git door", bad, format!("{UNHEARD} through it"), STORE_FIRST);
        }
        Some(Standing::Installed | Standing::Differs { .. }) if !found.git_guards() => report.tell(
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
            &wiring_again(found),
        ),
        Some(Standing::Elsewhere { to, of_tree }) => {
            let to = shown(to);
            let (whose, next) = match of_tree {
                true => (", for this working tree alone", OF_TREE.to_owned()),
                false => ("", wiring_again(found)),
            };
            let detail =
                format!("core.hooksPath was set anew, to {to}{whose}: Baton's hooks do not run");
            report.tell("git door", bad, detail, &next);
        }
        Some(Standing::Moved { from }) => {
            let from = shown(from);
            let detail = format!(
                "core.hooksPath leads to Baton's hooks of another place, {from}, as after a move \
                 or a copy: no hook of this repository runs, nor your own"
            );
            report.tell("git door", State::Problem, detail, &mended_unasked(found));
        }
        Some(Standing::Unguarded { hooks }) => report.tell(
            "git door",
            bad,
            format!("not guarded: these are not Baton's any more: {}", hooks.join(", ")),
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
