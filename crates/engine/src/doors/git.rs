//! The git door: may what is staged be committed, and may a branch move to commits nobody has seen?
//!
//! Owns which paths git's own hooks have judged, and by whose eyes. It fails open: whatever keeps
//! Baton from answering lets git go on, and the caller is told so. Takes nothing; while git moves a
//! branch it writes nothing either, but for what was refused, which needs no git. Baton's own moves
//! run no hook, so none of them comes here.

use std::ffi::OsStr;
use std::path::Path;

use baton_core::check::{Because, Checked, Finding, Verdict};
use baton_core::context::Actor;
use baton_core::denials::{self, Refused};
use baton_core::resource::Resource;
use baton_core::roles::{self, Deed};

use super::{not_by_role, served};
use crate::checking;
use crate::denying;
use crate::failure::Failure;
use crate::git::{Git, RefMove};
use crate::policy;
use crate::resources;
use crate::workspace::Workspace;

/// More than this in one commit is a merge or an import; it is not judged path by path.
const PATHS_MAX: usize = 5_000;
/// So many new commits at once were made elsewhere; they are not judged one by one.
const COMMITS_MAX: usize = 500;

/// What somebody else holds of what is staged.
#[derive(Debug, Default)]
pub struct Staged {
    pub denied: Vec<Finding>,
    pub warned: Vec<Finding>,
    /// Too much to be judged.
    pub unjudged: Option<TooMany>,
    /// The role of whoever acts does not do this at all.
    pub role: Option<Box<roles::Refused>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TooMany {
    Files(usize),
    /// More than were counted.
    Commits(usize),
}

impl Staged {
    /// Writes down what is refused, and hands it on.
    fn noted(self, workspace: &mut Workspace, actor: &Actor, deed: denials::Deed) -> Self {
        let mut refused = denials::of_findings(deed, &self.denied);
        refused.extend(self.role.iter().map(|role| Refused::by_role(deed, role)));
        if refused.is_empty() {
            return self;
        }
        // Some agents come nowhere but here. Who they are needs no git either.
        let nobody = actor.session.is_none() && !actor.person;
        let agent = nobody.then(|| served::agent_above(workspace).ok().flatten()).flatten();
        denying::note(workspace, agent.as_ref().unwrap_or(actor), refused);
        self
    }
}

/// Judges what the commit that git is making would change.
pub fn staged(
    workspace: &mut Workspace,
    actor: &Actor,
    root: &Path,
    index: Option<&OsStr>,
) -> Result<Staged, Failure> {
    let staged = judge_staged(workspace, actor, root, index)?;
    Ok(staged.noted(workspace, actor, denials::Deed::Commit))
}

fn judge_staged(
    workspace: &mut Workspace,
    actor: &Actor,
    root: &Path,
    index: Option<&OsStr>,
) -> Result<Staged, Failure> {
    if let Some(role) = not_by_role(workspace, actor, Deed::Commit)? {
        return Ok(Staged { role: Some(role), ..Staged::default() });
    }
    let paths = Git::in_tree(root)?.staged(index)?;
    judged(workspace, root, &paths, |workspace, wanted| {
        checking::judge(workspace, actor, wanted, None)
    })
}

/// Judges what branches would newly have that are about to move (git's `reference-transaction`,
/// which `--no-verify` does not keep from running). Commits that some branch, tag or HEAD has
/// already are known, deletions bring nothing, and of a merge only those paths count that no parent
/// has: so gc, fetch, pull, rebase and stash pass.
pub fn moved(
    workspace: &mut Workspace,
    actor: &Actor,
    root: &Path,
    moves: &[RefMove],
) -> Result<Staged, Failure> {
    let moved = judge_moved(workspace, actor, root, moves)?;
    Ok(moved.noted(workspace, actor, denials::Deed::Commit))
}

fn judge_moved(
    workspace: &mut Workspace,
    actor: &Actor,
    root: &Path,
    moves: &[RefMove],
) -> Result<Staged, Failure> {
    let git = Git::in_tree(root)?;
    let commits = git.unknown_commits(moves, COMMITS_MAX + 1)?;
    if commits.len() > COMMITS_MAX {
        let unjudged = Some(TooMany::Commits(COMMITS_MAX));
        return Ok(Staged { unjudged, ..Staged::default() });
    }
    if commits.is_empty() {
        return Ok(Staged::default());
    }
    if let Some(role) = not_by_role(workspace, actor, Deed::Commit)? {
        return Ok(Staged { role: Some(role), ..Staged::default() });
    }
    let paths = git.changed_in(&commits, moves)?;
    judged(workspace, root, &paths, |workspace, wanted| checking::glance(workspace, actor, wanted))
}

/// Judges a push: only who may land pushes to the branch where work lands.
pub fn pushed(
    workspace: &mut Workspace,
    actor: &Actor,
    root: &Path,
    references: &[String],
) -> Result<Staged, Failure> {
    let Some(role) = not_by_role(workspace, actor, Deed::Land)? else {
        return Ok(Staged::default());
    };
    let policy = policy::in_force(workspace)?.unwrap_or_default();
    let target = Git::in_tree(root)?.target(policy.evidence.target.as_deref())?;
    let lands = target.is_some_and(|(name, _)| references.contains(&format!("refs/heads/{name}")));
    let pushed = Staged { role: lands.then_some(role), ..Staged::default() };
    Ok(pushed.noted(workspace, actor, denials::Deed::Land))
}

fn judged(
    workspace: &mut Workspace,
    root: &Path,
    paths: &[String],
    judge: impl FnOnce(&mut Workspace, &[Resource]) -> Result<Checked, Failure>,
) -> Result<Staged, Failure> {
    if paths.len() > PATHS_MAX {
        let unjudged = Some(TooMany::Files(paths.len()));
        return Ok(Staged { unjudged, ..Staged::default() });
    }
    let mut staged = Staged::default();
    let mut wanted = Vec::with_capacity(paths.len());
    let mut unknown = None;
    for path in paths {
        match resources::literal(&workspace.place, root, OsStr::new(path)) {
            Ok(found) => wanted.extend(found),
            Err(failure) => unknown = unknown.or(Some(failure)),
        }
    }
    if wanted.is_empty() {
        return unknown.map_or(Ok(staged), Err);
    }
    for finding in judge(workspace, &wanted)?.findings {
        match (finding.because, finding.verdict) {
            (
                Because::Held | Because::Role | Because::NeedsPerson,
                Verdict::Deny | Verdict::Ask,
            ) => {
                staged.denied.push(finding);
            }
            (Because::Held | Because::Role, _) => staged.warned.push(finding),
            _ => {}
        }
    }
    // What cannot be told of one path takes nothing from "no" to another.
    match unknown.filter(|_| staged.denied.is_empty()) {
        Some(failure) => Err(failure),
        None => Ok(staged),
    }
}
