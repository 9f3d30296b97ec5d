//! An edit that is done, of a file that another holds: Baton could not answer before it.
//!
//! Owns finding that out when the edit is told of. Invariant: nobody is accused unless the file
//! holds what the edit makes of it; a client may tell of an edit that it did not do.

use std::path::Path;

use baton_core::check::{Because, Verdict};
use baton_core::context::Actor;
use baton_core::resource::Resource;

use super::after::{Breached, Compared};
use super::edit::{Change, Target};
use super::held::Before;
use super::overwriting;
use crate::checking;
use crate::failure::Failure;
use crate::resources::{meant_path, path_on_disk};
use crate::workspace::Workspace;

/// Larger files are not compared with what an edit makes of them.
const READ_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// What the session changed of what others hold, written down for them.
pub fn edited(
    workspace: &mut Workspace,
    actor: &Actor,
    cwd: &Path,
    targets: &[Target],
) -> Result<Compared, Failure> {
    let mut done: Vec<Resource> = Vec::new();
    for target in targets {
        let here = meant_path(&workspace.place, cwd, &target.path).here.into_iter();
        done.extend(here.filter(|resource| {
            let file = path_on_disk(&workspace.place.root, resource);
            file.is_some_and(|file| holds(&file, &target.change))
        }));
    }
    if done.is_empty() {
        return Ok(Compared::default());
    }
    let found = checking::judge_done(workspace, actor, &done)?.findings.into_iter();
    let foreign: Vec<Resource> = found
        .filter(|one| one.because == Because::Held && one.verdict == Verdict::Deny)
        .map(|one| one.resource)
        .collect();
    let held = overwriting::note(workspace, actor, &foreign, &Before::unseen(0))?;
    let breached = held.into_iter().map(|held| Breached { held, unsure: false, copy: None });
    Ok(Compared { breached: breached.collect(), by_edit: true, ..Compared::default() })
}

/// Is in the file what this change puts there?
fn holds(path: &Path, change: &Change) -> bool {
    let small = |found: std::fs::Metadata| found.is_file() && found.len() <= READ_BYTES_MAX;
    let read = || {
        let is_small = std::fs::metadata(path).is_ok_and(small);
        is_small.then(|| std::fs::read_to_string(path).ok()).flatten()
    };
    match change {
        Change::Whole(text) => read().is_some_and(|now| now.trim_end() == text.trim_end()),
        Change::Replace { new, old, .. } if !new.is_empty() && new != old => {
            read().is_some_and(|now| now.contains(new.as_str()))
        }
        _ => false,
    }
}
