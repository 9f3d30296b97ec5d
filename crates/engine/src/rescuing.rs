//! Rescued work: what is under `refs/baton/rescue/`, how it differs, and bringing it back.
//!
//! Owns the reading of rescues, whoever made them (`sighting` before another acts, `trees` when a
//! tree goes). Nothing here deletes one. Invariant: restoring never writes over a changed file and
//! never moves a branch.

use std::path::Path;

use baton_core::check::Verdict;
use baton_core::context::{Actor, Observed};
use baton_core::refusal::Refusal;
use baton_core::resource::Resource;
use baton_core::sessions::Session;
use baton_core::time::Moment;
use baton_core::trees::refused::Refused;
use baton_core::view::get;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::trees as api;
use crate::checking::judge;
use crate::failure::Failure;
use crate::git::{Git, Kept, Oid};
use crate::place::Place;
use crate::sighting::RESCUE_PREFIX;
use crate::trees::{Error, answered, keep_answer};
use crate::workspace::{Retry, Workspace};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rescued {
    /// What follows `refs/baton/rescue/`.
    pub name: String,
    pub commit: String,
    pub at: Moment,
    /// Whose work it was, as far as that is known.
    pub who: String,
    pub what: String,
    pub files: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RescueList {
    /// Oldest first.
    pub rescues: Vec<Rescued>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ShownRescue {
    #[serde(flatten)]
    pub rescued: Rescued,
    /// As `git diff` writes it; what is not UTF-8 is replaced here.
    pub patch: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Restored {
    pub name: String,
    pub commit: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
}

fn git_of(workspace: &Workspace) -> Result<Git, Failure> {
    match &workspace.place.git {
        Some(dirs) => Ok(Git::in_repository(&dirs.common_dir)?),
        None => Err(Error::NoRepository.into()),
    }
}

pub fn list(workspace: &mut Workspace) -> Result<RescueList, Failure> {
    let git = git_of(workspace)?;
    let mut rescues = Vec::new();
    for kept in git.kept_below(&format!("{RESCUE_PREFIX}/"))? {
        rescues.push(described(workspace, &git, &kept)?);
    }
    Ok(RescueList { rescues })
}

pub fn show(workspace: &mut Workspace, name: &str) -> Result<ShownRescue, Failure> {
    let git = git_of(workspace)?;
    let kept = find(&git, name)?;
    let rescued = described(workspace, &git, &kept)?;
    let patch = git.patch_between(below(workspace, &git, &kept)?.as_ref(), &kept.commit)?;
    Ok(ShownRescue { rescued, patch: String::from_utf8_lossy(&patch).into_owned() })
}

fn find(git: &Git, name: &str) -> Result<Kept, Failure> {
    let short = name.strip_prefix("refs/baton/rescue/").unwrap_or(name);
    let full = format!("{RESCUE_PREFIX}/{short}");
    let all = git.kept_below(&format!("{RESCUE_PREFIX}/"))?;
    let found = all.into_iter().find(|kept| kept.name == full);
    found.ok_or_else(|| Refusal::from(Refused::Unknown { given: name.to_owned() }).into())
}

/// The commit that a rescue is seen against: of saved changes the one below them, of a branch
/// where it left the branch that work lands in.
fn below(workspace: &mut Workspace, git: &Git, kept: &Kept) -> Result<Option<Oid>, Failure> {
    if !is_branch(kept) {
        return Ok(git.below_rescue(&kept.commit)?);
    }
    let named = crate::policy::in_force(workspace)?.and_then(|policy| policy.evidence.target);
    let target = git.target(named.as_deref())?.and_then(|(_, tips)| tips.into_iter().next());
    match target {
        Some(target) => Ok(git.merge_base(&kept.commit, &target)?),
        None => Ok(None),
    }
}

fn is_branch(kept: &Kept) -> bool {
    kept.name.rsplit('/').next().is_some_and(|last| last.starts_with("branch-"))
}

fn described(workspace: &mut Workspace, git: &Git, kept: &Kept) -> Result<Rescued, Failure> {
    let name = kept.name.strip_prefix("refs/baton/rescue/").unwrap_or(&kept.name).to_owned();
    let owner = name.split('/').next().unwrap_or_default().to_owned();
    let session: Option<Session> =
        workspace.look(&Actor::default(), Observed::default(), |view, _| Ok(get(view, &owner)?))?;
    let from = below(workspace, git, kept)?;
    let files = match &from {
        Some(from) => git.changed_between(from, &kept.commit)?,
        None => git.changed_by(&kept.commit)?,
    };
    Ok(Rescued {
        name,
        commit: kept.commit.to_string(),
        at: Moment(u64::try_from(kept.seconds).unwrap_or(0) * 1_000),
        who: session.map_or_else(|| kept.author.clone(), |session| session.name),
        what: kept.subject.clone(),
        files,
    })
}

pub fn restore(
    workspace: &mut Workspace,
    actor: &Actor,
    cwd: &Path,
    wanted: &api::Restore,
    operation: Option<&str>,
) -> Result<Restored, Failure> {
    let retry = operation.map(|operation| Retry::of(operation, "rescue restore", wanted));
    if let Some(restored) = answered(workspace, actor, retry.as_ref())? {
        return Ok(restored);
    }
    let restored = bring_back(workspace, actor, cwd, wanted)?;
    keep_answer(workspace, actor, retry.as_ref(), &restored)?;
    Ok(restored)
}

fn bring_back(
    workspace: &mut Workspace,
    actor: &Actor,
    cwd: &Path,
    wanted: &api::Restore,
) -> Result<Restored, Failure> {
    let git = git_of(workspace)?;
    let kept = find(&git, &wanted.name)?;
    let (name, commit) = (wanted.name.clone(), kept.commit.to_string());
    if let Some(branch) = &wanted.branch {
        if !git.is_branch_name(branch)? {
            return Err(Refusal::from(Refused::BadName { given: branch.clone() }).into());
        }
        match git.branch(branch)? {
            // A retry of what was done.
            Some(there) if there == kept.commit => {}
            Some(_) => {
                let what = "branch";
                let taken = Refused::Taken { what, name: branch.clone(), by: None };
                return Err(Refusal::from(taken).into());
            }
            None => git.make_branch(branch, &kept.commit, "baton: rescued")?,
        }
        let branch = Some(branch.clone());
        return Ok(Restored { name, commit, branch, tree: None, files: Vec::new() });
    }
    let to = wanted.to.as_ref().map_or_else(|| cwd.to_owned(), |to| cwd.join(to));
    let place = Place::find(&to)?;
    if place.store != workspace.place.store {
        let why = "it is not a tree of this workspace".to_owned();
        return Err(Error::Rescue { path: to.to_string_lossy().into_owned(), why }.into());
    }
    let from = below(workspace, &git, &kept)?;
    let files = match &from {
        Some(from) => git.changed_between(from, &kept.commit)?,
        None => git.changed_by(&kept.commit)?,
    };
    free_to_change(workspace, actor, &place, &files)?;
    let patch = git.patch_between(from.as_ref(), &kept.commit)?;
    if !patch.is_empty()
        && let Err(why) = Git::in_tree(&place.root)?.apply_bytes(&patch)?
    {
        let path = place.root.to_string_lossy().into_owned();
        return Err(Error::Rescue { path, why }.into());
    }
    let tree = Some(place.root.to_string_lossy().into_owned());
    Ok(Restored { name, commit, branch: None, tree, files })
}

/// Nobody else holds these files there, and none of them has changes.
fn free_to_change(
    workspace: &mut Workspace,
    actor: &Actor,
    place: &Place,
    files: &[String],
) -> Result<(), Failure> {
    if files.is_empty() {
        return Ok(());
    }
    let mut there = actor.clone();
    there.tree = Some(baton_core::id::TreeId(place.tree_id()?.as_str().to_owned()));
    let resources: Vec<Resource> =
        files.iter().filter_map(|file| Resource::literal(file).ok()).collect();
    if !resources.is_empty() {
        let checked = judge(workspace, &there, &resources, None)?;
        let held = checked.findings.iter().find(|finding| finding.verdict == Verdict::Deny);
        if let Some(held) = held.and_then(|finding| finding.held.first()) {
            return Err(Refusal::Held(Box::new(held.clone())).into());
        }
    }
    let status = Git::in_tree(&place.root)?.status(files)?;
    match status.changed.first() {
        Some(changed) => {
            let why = "it has changes there, which are not overwritten".to_owned();
            Err(Error::Rescue { path: changed.path.clone(), why }.into())
        }
        None => Ok(()),
    }
}
