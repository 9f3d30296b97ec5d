//! A command failed while others were in the middle of edits: whose they are.
//!
//! Owns when that is worth a word. A build or a test may fail for what another has half done, and
//! is run again later; what ships something is not, and what Baton or git refused does not fail for
//! anybody's edits.

use baton_core::shell::Deeds;

use super::activity::{self, Deed, Line, Who};
use crate::failure::Failure;
use crate::git::Git;
use crate::sessions::SeatState;
use crate::workspace::Workspace;

/// A failed command is laid at an edit of another's when that is not older.
const MIDDLE_MS: u64 = 5 * 60 * 1_000;
/// How often an agent is told to wait for others before it is left to judge by itself.
const WAITS_MAX: usize = 3;

/// Files that others changed in the last minutes and have not committed, with their names; nothing
/// when this session was told often enough, or where running the line again would not be right.
pub(super) fn edits_of_others(
    workspace: &mut Workspace,
    me: &Who,
    lines: &[Line],
    deeds: &Deeds,
) -> Result<Vec<(String, String)>, Failure> {
    if is_answered_by_us(deeds) || ships(deeds) {
        return Ok(Vec::new());
    }
    let told = super::Trace::of_session(&workspace.place, &me.session, "waits");
    let recent = activity::now().saturating_sub(MIDDLE_MS);
    let mut edited: Vec<(String, Who)> = lines
        .iter()
        .filter(|line| line.who.session != me.session && line.at >= recent)
        .filter_map(|line| match &line.deed {
            Deed::Edited(path) => Some((path.clone(), line.who.clone())),
            _ => None,
        })
        .collect();
    edited.sort_unstable();
    edited.dedup_by(|one, two| (&one.0, &one.1.session) == (&two.0, &two.1.session));
    let since = |line: &String| line.parse().is_ok_and(|at: u64| at >= recent);
    if edited.is_empty() || told.lines().iter().filter(|line| since(line)).count() >= WAITS_MAX {
        return Ok(Vec::new());
    }
    let paths: Vec<String> = edited.iter().map(|(path, _)| path.clone()).collect();
    let dirty = Git::in_tree(&workspace.place.root)?.status(&paths)?;
    let dirty = dirty.paths();
    edited.retain(|(path, _)| dirty.contains(&path.as_str()));
    let mut named = Vec::with_capacity(edited.len());
    for (path, Who { session, .. }) in edited {
        // Whoever is gone ends no edit any more.
        let state = crate::sessions::state_of(workspace, &session)?;
        if matches!(state, Some(SeatState::Live | SeatState::Idle)) {
            let name = crate::sessions::find(workspace, session.as_str()).map(|found| found.name);
            named.push((path, name.unwrap_or_else(|_| session.0.clone())));
        }
    }
    if !named.is_empty() {
        told.add(&activity::now().to_string());
    }
    Ok(named)
}

/// Nothing but commands that fail because Baton or git said no: neither builds or tests anything.
fn is_answered_by_us(deeds: &Deeds) -> bool {
    !deeds.commands.is_empty()
        && deeds.commands.iter().all(|command| {
            let quiet = matches!(command.name(), "cd" | "echo" | "true" | "export" | "set");
            quiet || matches!(command.name(), "baton" | "git")
        })
}

/// Does it send something to others? That is not simply done again.
fn ships(deeds: &Deeds) -> bool {
    let words = deeds.commands.iter().flat_map(|command| command.words());
    words.into_iter().any(|word| {
        let mut parts = word.split(|letter: char| !letter.is_ascii_alphanumeric());
        parts.any(|part| matches!(part, "deploy" | "publish" | "release" | "upload"))
    })
}
