//! `sync`: how this tree stands to its remote.
//!
//! Owns the words and the exit code: 0 in sync or ahead, 1 behind; that the remote cannot be
//! reached is a failure of its own.

use std::fmt::Write as _;
use std::process::ExitCode;

use baton_core::syncs::Touch;
use baton_engine::api::commits::Sync;
use baton_engine::syncing::{self, Synced};

use crate::arguments::Common;
use crate::desk::{Desk, Outcome};
use crate::render::{Paint, counted, paint, shown};

/// How many incoming commits are told in words.
const TOLD_MAX: usize = 20;
const COMMIT_SHOWN: usize = 12;

pub(crate) fn run(common: &Common, wanted: &Sync) -> Outcome {
    let mut desk = match wanted.pull {
        true => Desk::open_to_act(common)?,
        false => Desk::open(common)?,
    };
    let synced = syncing::sync(&mut desk.workspace, &desk.actor, wanted)?;
    desk.answer(&synced, words);
    Ok(if synced.behind > 0 { ExitCode::from(1) } else { ExitCode::SUCCESS })
}

fn words(synced: &Synced, colour: bool) -> String {
    let name = format!("{}/{}", shown(&synced.remote), shown(&synced.branch));
    let commits = |count: u64| counted(count, "commit", "commits");
    let mut text = String::new();
    if let Some(pulled) = &synced.pulled {
        let how = if pulled.rebased { "own commits put upon it" } else { "fast-forward" };
        let files = counted(pulled.files, "file", "files");
        let pulled = paint("pulled", Paint::Green, colour);
        let _ = writeln!(text, "{pulled} {name}: {how}, {files} changed");
        text.push_str("checks and approvals of the commit before do not count for this one\n");
    }
    let stands = match (synced.behind, synced.ahead) {
        (0, 0) => paint("in sync", Paint::Green, colour),
        (0, ahead) => format!("{} ahead", commits(ahead)),
        (behind, 0) => format!("{} behind", paint(&commits(behind), Paint::Yellow, colour)),
        (behind, ahead) => {
            let behind = paint(&commits(behind), Paint::Yellow, colour);
            format!("{behind} behind, {} ahead", commits(ahead))
        }
    };
    let dirty = if synced.dirty { "; uncommitted work in the tree" } else { "" };
    let _ = writeln!(text, "{name}: {stands}{dirty}");
    for touch in synced.touches.iter().take(TOLD_MAX) {
        text.push_str(&touch_words(touch));
    }
    let more = synced.touches.len().saturating_sub(TOLD_MAX);
    if more > 0 {
        let _ = writeln!(text, "  and {more} more: --json");
    }
    text
}

/// One commit that came in, and what of the caller's it touches.
pub(crate) fn touch_words(touch: &Touch) -> String {
    let short: String = touch.commit.chars().take(COMMIT_SHOWN).collect();
    let listed = |what: &str, paths: &[String]| match paths.is_empty() {
        true => None,
        false => {
            let paths: Vec<String> = paths.iter().map(|path| shown(path)).collect();
            Some(format!("{what} {}", paths.join(", ")))
        }
    };
    let claimed = listed("you claim", &touch.claimed);
    let changed = listed("changed here:", &touch.changed);
    let read = listed("you read", &touch.read);
    let parts: Vec<String> = [claimed, changed, read].into_iter().flatten().collect();
    let (author, subject) = (shown(&touch.author), shown(&touch.subject));
    format!("  {} {author}: {subject} ({})\n", shown(&short), parts.join("; "))
}
