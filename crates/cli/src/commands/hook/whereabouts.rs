//! The workspace that an act is judged in: where its client stands, or where it acts.
//!
//! Owns finding it, and the others that the act reaches into. What lies below the root of the one
//! that was found first costs no further look.

use std::path::{Component, Path, PathBuf};

use baton_engine::doors::shell;
use baton_engine::failure::Failure;
use baton_engine::place::{self, Place};
use baton_engine::sandbox;
use baton_engine::workspace::Workspace;

use crate::desk;
use crate::hooks::{Answer, Event, Payload, Tool, words};

/// That workspace, and whether the client stands in it; nothing where nobody set one up.
pub(super) fn open(payload: &Payload) -> Result<Option<(Workspace, bool)>, Failure> {
    match desk::open(&payload.cwd) {
        Ok(workspace) => Ok(Some((workspace, true))),
        Err(Failure::Place(place::Error::NotInitialised { .. })) => {
            Ok(open_elsewhere(payload).map(|workspace| (workspace, false)))
        }
        // Inside a sandbox it is judged in that one's tree, wherever the client stands.
        Err(Failure::Sandbox(_)) if let Some(root) = sandbox::bound_root() => {
            Ok(Some((desk::open(&root)?, false)))
        }
        Err(failure) => Err(failure),
    }
}

/// The client stands outside, in a folder its agent went to: what it acts on, or the project it was
/// started in, may be in a workspace all the same.
fn open_elsewhere(payload: &Payload) -> Option<Workspace> {
    let project = std::env::var_os("CLAUDE_PROJECT_DIR").map(PathBuf::from);
    let mut folders = named(payload).into_iter().chain(project.filter(|path| path.is_absolute()));
    folders.find_map(|folder| desk::open(&folder).ok())
}

/// Workspaces other than this one that the act reaches into, by their roots, and what came of
/// opening them.
pub(super) fn others(
    payload: &Payload,
    here: &Place,
) -> Vec<(PathBuf, Result<Workspace, Failure>)> {
    let mut others = Vec::new();
    if sandbox::is_bound() {
        return others;
    }
    let mut known = vec![here.store.clone()];
    for path in named(payload).into_iter().filter(|path| !is_below(path, &here.root)) {
        let Ok(Place { root, store, .. }) = Place::find(&path) else { continue };
        if !known.contains(&store) {
            known.push(store);
            others.push((root, desk::open(&path)));
        }
    }
    others
}

/// By its words alone; a way that leaves the folder again is looked at.
fn is_below(path: &Path, root: &Path) -> bool {
    path.starts_with(root) && !path.components().any(|part| part == Component::ParentDir)
}

/// What the act names, as far as that can be read.
fn named(payload: &Payload) -> Vec<PathBuf> {
    let (Event::Before(tool) | Event::After { tool, .. }) = &payload.event else {
        return Vec::new();
    };
    let named: Vec<PathBuf> = match tool {
        Tool::Edit(targets) | Tool::Patch { targets, .. } => {
            targets.iter().map(|target| PathBuf::from(&target.path)).collect()
        }
        Tool::Read(paths) => paths.iter().map(PathBuf::from).collect(),
        Tool::Shell(line) => shell::places(&payload.cwd, line),
        Tool::Refused(_) | Tool::Own | Tool::Other => Vec::new(),
    };
    let named = named.into_iter().map(|path| payload.cwd.join(path));
    named.filter(|path| path.is_absolute()).collect()
}

/// A folder that nobody set up is none of our business; a clone of a project that uses Baton is,
/// and its agents think that they are guarded.
pub(super) fn not_set_up(payload: &Payload) -> Answer {
    let begins = matches!(payload.event, Event::SessionStart { .. } | Event::Prompt);
    match begins && place::uses_baton(&payload.cwd) {
        true => Answer::Context(words::NOT_SET_UP.to_owned()),
        false => Answer::Silent,
    }
}
