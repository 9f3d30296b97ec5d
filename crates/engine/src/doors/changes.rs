//! What changed in a tree while commands ran, and to whose account it goes.
//!
//! Owns the finding and the sorting; what follows from it is done in `after`. How sure a change is
//! depends on its evidence: a state that was written down before is sure, the time of a file is
//! good, and that of a folder only tells that something in it came or went.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use baton_core::check::{Because, Finding, Verdict};
use baton_core::context::{Actor, Observed};
use baton_core::id::SessionId;
use baton_core::resource::Resource;
use baton_core::sessions::{self, Session};
use baton_core::view::{Query, scan};
use baton_core::zones::Rule;

use super::activity::{self, Busy, Line, STEP_MS, Who};
use super::committed;
use super::edit;
use super::held::Before;
use crate::failure::Failure;
use crate::git::Git;
use crate::sessions::SeatState;
use crate::workspace::Workspace;

const SESSIONS_MAX: u32 = 1_000;

/// How it is known that a file has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Evidence {
    /// It is not as it was written down before the command.
    State,
    /// It was written since.
    Time,
    /// It is gone, and its folder was written since.
    Folder,
}

#[derive(Clone, Debug)]
pub(super) struct Changed {
    pub(super) resource: Resource,
    pub(super) path: String,
    pub(super) evidence: Evidence,
    /// It is as HEAD has it, or git does not know it.
    clean: bool,
}

impl Changed {
    fn new(path: &str, evidence: Evidence, clean: bool) -> Option<Self> {
        let resource = Resource::literal(path).ok()?;
        Some(Self { resource, path: path.to_owned(), evidence, clean })
    }
}

/// Everything that has changed since.
pub(super) fn since(workspace: &Workspace, before: &Before) -> Result<Vec<Changed>, Failure> {
    let root = &workspace.place.root;
    let git = Git::in_tree(root)?;
    let status = git.status(&[String::new()])?;
    let dirty: BTreeSet<&str> = status.paths().into_iter().collect();
    let mut changed = Vec::new();
    for path in dirty.iter().filter(|path| !before.files.contains_key(**path)) {
        let evidence = match written_since(&root.join(path), before.since) {
            Some(true) => Evidence::Time,
            Some(false) => continue,
            None if folder_written_since(root, path, before.since) => Evidence::Folder,
            None => continue,
        };
        changed.extend(Changed::new(path, evidence, false));
    }
    let other = before.files.iter().filter(|(path, state)| state.has_changed(root, path));
    let (differing, clean): (Vec<_>, Vec<_>) =
        other.partition(|(path, _)| dirty.contains(path.as_str()));
    changed.extend(
        differing.iter().filter_map(|(path, _)| Changed::new(path, Evidence::State, false)),
    );
    if clean.is_empty() {
        return Ok(changed);
    }
    let names: Vec<String> = clean.iter().map(|(path, _)| (*path).clone()).collect();
    let ignored = git.ignored(&names)?;
    let is_ignored = |path: &str| {
        ignored.iter().any(|one| *one == path || one.ends_with('/') && path.starts_with(one))
    };
    // Where HEAD has moved, a file that was as the old one had it came along with it.
    let old = committed::head_at(&workspace.place, before.head);
    for (path, state) in clean.into_iter().filter(|(path, _)| !is_ignored(path)) {
        let moved = match &old {
            Some(old) => state.was(git.content(old.as_str(), path)?.as_deref()),
            None => false,
        };
        if !moved {
            changed.extend(Changed::new(path, Evidence::State, true));
        }
    }
    Ok(changed)
}

/// By the clock of its file system; nothing for a file that is not there.
fn written_since(file: &Path, since: u64) -> Option<bool> {
    let found = std::fs::symlink_metadata(file).ok()?;
    let changed = found.ctime().saturating_mul(1_000) + found.ctime_nsec() / 1_000_000;
    Some(u64::try_from(changed).unwrap_or(0) >= since)
}

fn folder_written_since(root: &Path, path: &str, since: u64) -> bool {
    let file = root.join(path);
    written_since(file.parent().unwrap_or(root), since) == Some(true)
}

/// When somebody else edited it since, as far as that was told.
pub(super) fn edited_since(lines: &[Line], me: &Who, path: &str, since: u64) -> Option<u64> {
    activity::last_edit_by_others(lines, me, path).filter(|at| *at >= since)
}

/// What others' edits do not explain. An edit explains what it left, not what was written over it;
/// of a file that is gone it cannot be told when it went.
pub(super) fn not_by_others<'a>(
    root: &Path,
    changed: &'a [Changed],
    me: &Who,
    lines: &[Line],
    since: u64,
) -> Vec<&'a Changed> {
    let written_over = |one: &Changed| {
        // What was told before the look was in what the look saw; the clock of files is coarser.
        let since = since + if one.evidence == Evidence::State { STEP_MS } else { 0 };
        edited_since(lines, me, &one.path, since)
            .is_none_or(|at| written_since(&root.join(&one.path), at + STEP_MS) == Some(true))
    };
    changed.iter().filter(|one| written_over(one)).collect()
}

/// Did whoever holds it run anything meanwhile?
pub(super) fn holder_busy(finding: &Finding, lines: &[Line], me: &Who, since: u64) -> Busy {
    let Some(held) = finding.held.first() else { return Busy::No };
    activity::busy_since(lines, |who| who.acts_for(&held.holder, me), since)
}

/// Persons at work in this tree: nobody hears when they write.
#[derive(Debug, Default)]
pub(super) struct Unseen(Vec<SessionId>);

impl Unseen {
    pub(super) fn look(workspace: &mut Workspace, actor: &Actor) -> Result<Self, Failure> {
        let (machine, tree) = (workspace.machine.clone(), workspace.tree.clone());
        workspace.look(&Actor::default(), Observed::default(), |view, context| {
            let live = Query::equal(sessions::BY_LIFE, "live", SESSIONS_MAX);
            let mut found: Vec<Session> = scan(view, live)?;
            found.retain(|one| {
                one.tree == tree
                    && one.person
                    && actor.session.as_ref() != Some(&one.session)
                    && SeatState::of(one, &machine, context.now) == SeatState::Live
            });
            Ok(Self(found.into_iter().map(|one| one.session).collect()))
        })
    }
}

/// To whose account the changes go.
#[derive(Debug, Default)]
pub(super) struct Sorted {
    /// Others held them.
    pub(super) foreign: Vec<Resource>,
    /// Others held them, and may have written them.
    pub(super) unsure: Vec<Resource>,
    /// Left uncommitted by somebody who is gone, and gone now.
    pub(super) lost: Vec<String>,
    pub(super) mine: Vec<Resource>,
    pub(super) free: Vec<Resource>,
    /// Free too, and lines came at their end.
    pub(super) appended: Vec<Resource>,
    /// For a person, or for whoever claims first.
    pub(super) kept: Vec<Resource>,
    /// Commands of others ran meanwhile.
    pub(super) others_ran: bool,
}

pub(super) fn sort(
    root: &Path,
    changed: &[&Changed],
    findings: Vec<Finding>,
    lines: &[Line],
    me: &Who,
    before: &Before,
    unseen: &Unseen,
) -> Result<Sorted, Failure> {
    let others_ran = activity::busy_since(lines, |who| who != me, before.since) == Busy::Yes;
    let mut sorted = Sorted { others_ran, ..Sorted::default() };
    for finding in findings {
        let Some(one) = changed.iter().find(|one| one.resource == finding.resource) else {
            continue;
        };
        let resource = finding.resource.clone();
        let held = finding.held.first().and_then(|held| held.claim.as_ref());
        match finding.because {
            // Whoever holds it now took it meanwhile, or it went nobody knows when.
            Because::Held if !before.was_held(held) || one.evidence == Evidence::Folder => {}
            Because::Held => match holder_busy(&finding, lines, me, before.since) {
                Busy::Yes => {}
                Busy::Behind => sorted.unsure.push(resource),
                Busy::No if is_unseen(&finding, unseen) => sorted.unsure.push(resource),
                Busy::No => sorted.foreign.push(resource),
            },
            // Also of what it holds itself: others add to it at the same time.
            _ if !others_ran && finding.zone == Rule::Append && is_rewritten(root, &one.path)? => {
                sorted.kept.push(resource);
            }
            Because::Mine => sorted.mine.push(resource),
            Because::Unjudged | Because::GitDir => {}
            _ if others_ran => {}
            _ if one.clean => sorted.lost.push(one.path.clone()),
            // Nobody is accused of what may have been written just before.
            _ if finding.verdict >= Verdict::Ask => {
                let file = root.join(&one.path);
                if written_since(&file, before.since + STEP_MS) == Some(true) {
                    sorted.kept.push(resource);
                }
            }
            _ if finding.zone == Rule::Append => sorted.appended.push(resource),
            _ => sorted.free.push(resource),
        }
    }
    Ok(sorted)
}

/// Did lines change that are committed? What others added since is not known here.
fn is_rewritten(root: &Path, path: &str) -> Result<bool, Failure> {
    let Some(before) = Git::in_tree(root)?.content("HEAD", path)? else { return Ok(false) };
    let after = std::fs::read(root.join(path)).unwrap_or_default();
    let (before, after) = (String::from_utf8_lossy(&before), String::from_utf8_lossy(&after));
    Ok(!edit::keeps(&before, &after))
}

fn is_unseen(finding: &Finding, unseen: &Unseen) -> bool {
    finding.held.first().is_some_and(|held| unseen.0.contains(&held.holder.session))
}
