//! The shell door, after: what a command left in the tree, and whose it is.
//!
//! Owns the comparison. Nothing is looked at before a command but the clock: a file that differs
//! from HEAD and was changed since then was changed while it ran. What another's recorded edit or a
//! command of another that ran meanwhile explains is not this agent's; what nobody explains and
//! nobody holds is this agent's only where it is alone. Ignored files are nobody's.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use baton_core::breach::{self, Door};
use baton_core::check::{Because, Finding, Verdict};
use baton_core::context::{Actor, Observed};
use baton_core::denials::{self, Refused};
use baton_core::id::SessionId;
use baton_core::refusal::Held;
use baton_core::resource::Resource;
use baton_core::shell::{self, Deeds};

use super::activity::{self, Activity, Deed, Line};
use super::committed;
use super::edit::{self, Change, Target, edit};
use super::{reads, whereabouts};
use crate::checking;
use crate::denying;
use crate::failure::Failure;
use crate::git::Git;
use crate::interfaces;
use crate::resources::meant_path;
use crate::workspace::Workspace;

/// More changed files than this are a checkout or a build, and are not claimed one by one.
const CLAIMED_MAX: usize = 200;
/// How long after its file an edit is told of.
const EDIT_IS_TOLD: Duration = Duration::from_millis(300);
/// A failed command is laid at an edit of another's when that is not older.
const MIDDLE_MS: u64 = 5 * 60 * 1_000;
/// How often an agent is told to wait for others before it is left to judge by itself.
const WAITS_MAX: usize = 3;

/// What is said of a command that has run.
#[derive(Clone, Debug, Default)]
pub struct Compared {
    /// What others held, and this command changed all the same.
    pub breached: Vec<Held>,
    /// What the command changed and nobody held: claimed now.
    pub taken: Option<edit::Judged>,
    /// What it changed and no edit would have been allowed to: why not.
    pub kept: Option<edit::Judged>,
    /// Changed files that this session did not touch, and whose edits they are: a build may have
    /// failed for them.
    pub in_the_middle: Vec<(String, String)>,
}

/// Compares the trees that a command was about, after it.
pub fn after(
    workspace: &mut Workspace,
    actor: &Actor,
    cwd: &Path,
    line: &str,
    call: &str,
    failed: bool,
) -> Result<Compared, Failure> {
    let deeds = shell::read(line);
    let mut compared = after_here(workspace, actor, cwd, &deeds, call, failed)?;
    for root in whereabouts::other_trees(&workspace.place, cwd, &deeds) {
        let there = workspace.within(&root, actor, |workspace, actor| {
            after_here(workspace, actor, cwd, &deeds, call, failed)
        })?;
        compared.add(there);
    }
    Ok(compared)
}

impl Compared {
    fn add(&mut self, there: Self) {
        self.breached.extend(there.breached);
        for (mine, theirs) in [(&mut self.taken, there.taken), (&mut self.kept, there.kept)] {
            match (mine, theirs) {
                (Some(mine), Some(theirs)) => mine.add(theirs),
                (mine, Some(theirs)) => *mine = Some(theirs),
                (_, None) => {}
            }
        }
        self.in_the_middle.extend(there.in_the_middle);
    }
}

fn after_here(
    workspace: &mut Workspace,
    actor: &Actor,
    cwd: &Path,
    deeds: &Deeds,
    call: &str,
    failed: bool,
) -> Result<Compared, Failure> {
    let mut compared = Compared::default();
    let written: Vec<String> = super::shell::targets(deeds)
        .into_iter()
        .filter(|target| !target.pattern)
        .map(|target| target.path)
        .collect();
    reads::remember(workspace, actor, cwd, &written);
    interfaces::edited(workspace, actor, cwd, &written)?;
    let activity = Activity::here(&workspace.place, &workspace.tree, actor);
    let Some(me) = actor.session.clone().filter(|_| !deeds.harmless) else {
        return Ok(compared);
    };
    let lines = activity.lines();
    activity.ended(call);
    if workspace.place.git.is_none() {
        return Ok(compared);
    }
    if failed {
        compared.in_the_middle = in_the_middle(workspace, &me, &lines)?;
    }
    let Some(since) = activity::window(&lines, &me, call) else {
        return Ok(compared);
    };
    let changed = changed_since(&workspace.place.root, since)?;
    if !changed.is_empty() {
        judge(workspace, actor, &me, &lines, since, &changed, &mut compared)?;
    }
    let committed = committed::since(workspace, &me, call)?;
    if !committed.is_empty() {
        let found = checking::judge(workspace, actor, &committed, None)?.findings;
        let known = |path: &Resource| compared.breached.iter().any(|held| held.resource == *path);
        let foreign: Vec<Resource> = found
            .into_iter()
            .filter(|one| one.because == Because::Held && !known(&one.resource))
            .filter(|one| !holder_ran(one, &lines, since))
            .map(|one| one.resource)
            .collect();
        compared.breached.extend(note(workspace, actor, &foreign)?);
    }
    Ok(compared)
}

/// Its holder was at work meanwhile: who wrote it cannot be told.
fn holder_ran(finding: &Finding, lines: &[Line], since: u64) -> bool {
    let holder = finding.held.first().map(|held| &held.holder.session);
    holder.is_some_and(|who| activity::ran_since(lines, who, since))
}

/// Writes down what others held.
fn note(
    workspace: &mut Workspace,
    actor: &Actor,
    foreign: &[Resource],
) -> Result<Vec<Held>, Failure> {
    if foreign.is_empty() {
        return Ok(Vec::new());
    }
    let observed = Observed { complete: true, ..Observed::default() };
    workspace
        .decide(actor, observed, |view, context| breach::note(view, foreign, Door::Shell, context))
}

/// Files that differ from HEAD and were written since, by the clock of their file system.
fn changed_since(root: &Path, since: u64) -> Result<Vec<String>, Failure> {
    let status = Git::in_tree(root)?.status(&[String::new()])?;
    let recent = |path: &&str| is_written_since(root, path, since);
    Ok(status.paths().into_iter().filter(recent).map(str::to_owned).collect())
}

fn is_written_since(root: &Path, path: &str, since: u64) -> bool {
    let file = root.join(path);
    // A file that is gone: its folder was written when it went.
    let found = std::fs::symlink_metadata(&file)
        .or_else(|_| std::fs::symlink_metadata(file.parent().unwrap_or(root)));
    found.is_ok_and(|found| {
        let changed = found.ctime().saturating_mul(1_000) + found.ctime_nsec() / 1_000_000;
        u64::try_from(changed).unwrap_or(0) >= since
    })
}

/// Whether others' edits explain these files. An edit explains what it left, not what was written
/// over it; its word comes a moment after its file, so a moment is waited for it.
fn not_by_others(
    workspace: &Workspace,
    actor: &Actor,
    me: &SessionId,
    lines: &[Line],
    since: u64,
    changed: &[String],
) -> Vec<Resource> {
    let root = &workspace.place.root;
    let over = |lines: &[Line], path: &String| {
        let last = activity::last_edit_by_others(lines, me, path).filter(|at| *at >= since);
        // Of a file that is gone it cannot be told when it went.
        last.map(|at| {
            root.join(path).exists() && is_written_since(root, path, at + activity::STEP_MS)
        })
    };
    let later;
    let lines = match changed.iter().any(|path| over(lines, path) == Some(true)) {
        false => lines,
        true => {
            std::thread::sleep(EDIT_IS_TOLD);
            later = Activity::here(&workspace.place, &workspace.tree, actor).lines();
            &later
        }
    };
    let mine = changed.iter().filter(|path| over(lines, path) != Some(false));
    mine.filter_map(|path| Resource::literal(path).ok()).collect()
}

/// Whose are they?
fn judge(
    workspace: &mut Workspace,
    actor: &Actor,
    me: &SessionId,
    lines: &[Line],
    since: u64,
    changed: &[String],
    compared: &mut Compared,
) -> Result<(), Failure> {
    let mut others: Vec<&SessionId> =
        lines.iter().map(|line| &line.session).filter(|session| *session != me).collect();
    others.sort_unstable();
    others.dedup();
    let others_ran = others.iter().any(|who| activity::ran_since(lines, who, since));
    let unexplained = not_by_others(workspace, actor, me, lines, since, changed);
    if unexplained.is_empty() {
        return Ok(());
    }
    // Where others ran too, whose it is will be seen when it is committed.
    if !others_ran {
        interfaces::look(workspace, actor, &unexplained)?;
    }
    let checked = checking::judge(workspace, actor, &unexplained, None)?;
    let root = workspace.place.root.clone();
    let (mut foreign, mut free, mut kept) = (Vec::new(), Vec::new(), Vec::new());
    for finding in checked.findings {
        match finding.because {
            Because::Held if holder_ran(&finding, lines, since) => {}
            Because::Held => foreign.push(finding.resource),
            Because::Mine | Because::Unjudged | Because::GitDir => {}
            _ if others_ran => {}
            // For a person, or for whoever claims first. Nobody is accused of what may have been
            // written just before.
            _ if finding.verdict >= Verdict::Ask => {
                let path = finding.resource.to_string();
                if is_written_since(&root, &path, since + activity::STEP_MS) {
                    kept.push(finding.resource);
                }
            }
            _ => free.push(finding.resource),
        }
    }
    compared.breached = note(workspace, actor, &foreign)?;
    let target = |resource: &Resource| Target::file(resource.to_string(), Change::Unknown);
    if !kept.is_empty() {
        let targets: Vec<Target> = kept.iter().map(target).collect();
        let judged = edit::judge(workspace, actor, &root, &targets)?;
        let refused = judged.refused(denials::Deed::Shell).into_iter();
        let done = refused.map(|one| Refused { done: true, ..one }).collect();
        denying::note(workspace, actor, done);
        compared.kept = Some(judged);
    }
    if !free.is_empty() && free.len() <= CLAIMED_MAX {
        let targets: Vec<Target> = free.iter().map(target).collect();
        compared.taken = Some(edit(workspace, actor, &root, &targets)?);
        let paths: Vec<String> = targets.into_iter().map(|target| target.path).collect();
        reads::remember(workspace, actor, &root, &paths);
    }
    Ok(())
}

/// Files that others edited in the last minutes and have not committed, with their names; nothing
/// when this session was told often enough.
fn in_the_middle(
    workspace: &mut Workspace,
    me: &SessionId,
    lines: &[Line],
) -> Result<Vec<(String, String)>, Failure> {
    let told = super::Trace::of_session(&workspace.place, me, "waits");
    let recent = activity::now().saturating_sub(MIDDLE_MS);
    let mut edited: Vec<(String, SessionId)> = lines
        .iter()
        .filter(|line| line.session != *me && line.at >= recent)
        .filter_map(|line| match &line.deed {
            Deed::Edited(path) => Some((path.clone(), line.session.clone())),
            _ => None,
        })
        .collect();
    edited.sort_unstable();
    edited.dedup();
    let since = |line: &String| line.parse().is_ok_and(|at: u64| at >= recent);
    if edited.is_empty() || told.lines().iter().filter(|line| since(line)).count() >= WAITS_MAX {
        return Ok(Vec::new());
    }
    let paths: Vec<String> = edited.iter().map(|(path, _)| path.clone()).collect();
    let dirty = Git::in_tree(&workspace.place.root)?.status(&paths)?;
    let dirty = dirty.paths();
    edited.retain(|(path, _)| dirty.contains(&path.as_str()));
    let mut named = Vec::with_capacity(edited.len());
    for (path, session) in edited {
        let name = crate::sessions::find(workspace, session.as_str()).map(|found| found.name);
        named.push((path, name.unwrap_or_else(|_| session.0.clone())));
    }
    if !named.is_empty() {
        told.add(&activity::now().to_string());
    }
    Ok(named)
}

/// The session has edited these: others can tell whose the change is, and who builds on them is
/// told.
pub fn edited(
    workspace: &mut Workspace,
    actor: &Actor,
    cwd: &Path,
    targets: &[Target],
) -> Result<(), Failure> {
    let paths: Vec<String> = targets.iter().map(|one| one.path.clone()).collect();
    for root in edited_here(workspace, actor, cwd, &paths)? {
        workspace.within(&root, actor, |workspace, actor| {
            edited_here(workspace, actor, cwd, &paths).map(drop)
        })?;
    }
    Ok(())
}

/// What of it lies in this tree; answers with other trees that it lies in.
fn edited_here(
    workspace: &mut Workspace,
    actor: &Actor,
    cwd: &Path,
    paths: &[String],
) -> Result<Vec<PathBuf>, Failure> {
    let elsewhere = reads::remember(workspace, actor, cwd, paths);
    let activity = Activity::here(&workspace.place, &workspace.tree, actor);
    for path in paths {
        for resource in meant_path(&workspace.place, cwd, path).here {
            activity.edited(&resource.to_string());
        }
    }
    interfaces::edited(workspace, actor, cwd, paths)?;
    Ok(elsewhere)
}

/// The session has read these.
pub fn read(
    workspace: &mut Workspace,
    actor: &Actor,
    cwd: &Path,
    paths: &[String],
) -> Result<(), Failure> {
    for root in reads::remember(workspace, actor, cwd, paths) {
        workspace.within(&root, actor, |workspace, actor| {
            reads::remember(workspace, actor, cwd, paths);
            Ok(())
        })?;
    }
    Ok(())
}
