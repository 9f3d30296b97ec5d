//! Removing a working tree: saved first, then moved aside, looked at once more, and only then gone.
//!
//! Owns that order. Invariants (S17, LESSONS 16): nothing is deleted before it is safe under
//! `refs/baton/rescue/`; a change made while it is being removed is noticed, because the folder is
//! out of everyone's way when it is looked at the last time; a death in between is ended by the
//! next `worktree` command, back to where it was or to the end.

use std::fs;
use std::path::{Path, PathBuf};

use baton_core::context::{Actor, Observed};
use baton_core::refusal::Refusal;
use baton_core::time::Moment;
use baton_core::tree::Tree;
use baton_core::trees::refused::{Keep, Refused};
use baton_core::trees::{self, Removed, Wish};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::looking::{Found, Lookout, all, bury_dead, dirt};
use super::undoing::repair;
use super::{Clone, Error, answered, failed, keep_answer};
use crate::api::trees as api;
use crate::failure::Failure;
use crate::git::{Git, Oid, Rescue};
use crate::sighting::RESCUE_PREFIX;
use crate::workspace::{Retry, Workspace};

/// In git's own folder of a tree whose content is safe: it may be deleted whatever happens.
const SAFE_MARK: &str = "baton-removing";

/// Where a branch that goes is kept; by its commit, so that nothing kept is ever replaced.
pub(super) fn branch_reference(tree: &str, tip: &Oid) -> String {
    format!("{RESCUE_PREFIX}/{tree}/branch-{}", &tip.as_str()[..12])
}

pub fn remove(
    workspace: &mut Workspace,
    actor: &Actor,
    cwd: &Path,
    wanted: &api::Remove,
    operation: Option<&str>,
) -> Result<Removed, Failure> {
    let retry = operation.map(|operation| Retry::of(operation, "worktree remove", wanted));
    if let Some(removed) = answered(workspace, actor, retry.as_ref())? {
        return Ok(removed);
    }
    let clone = Clone::of(workspace)?;
    repair(workspace, &clone)?;
    let found = find(workspace, &clone, cwd, &wanted.which)?;
    let lookout = Lookout::new(workspace, &clone)?;
    let wish = Wish::Remove;
    let deed = Deed { clone: &clone, lookout: &lookout, wish, force: wanted.force };
    deed.carry_out(workspace, actor, &found, retry.as_ref())
}

/// The one tree that is meant.
fn find(
    workspace: &mut Workspace,
    clone: &Clone,
    cwd: &Path,
    which: &str,
) -> Result<Found, Failure> {
    let full = cwd.join(which);
    let full = full.canonicalize().unwrap_or(full);
    let meant = |found: &Found| {
        let branch = found.branch();
        let task = found.record.as_ref().and_then(|record| record.task.as_ref());
        found.path == full
            || branch == Some(which)
            || branch.and_then(trees::leaf_of) == Some(which)
            || task.is_some_and(|task| task.as_str() == which)
            || found.id.as_ref().is_some_and(|id| id.as_str() == which)
    };
    let mut matching = all(workspace, clone)?.into_iter().filter(meant);
    match (matching.next(), matching.next()) {
        (Some(found), None) => Ok(found),
        _ => Err(Refusal::from(Refused::Unknown { given: which.to_owned() }).into()),
    }
}

/// What `worktree gc` did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Collected {
    pub dry_run: bool,
    pub removed: Vec<Removed>,
    pub kept: Vec<KeptTree>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KeptTree {
    pub path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    pub because: Keep,
}

/// Removes every tree that is landed, clean and unused.
pub fn collect(
    workspace: &mut Workspace,
    actor: &Actor,
    wanted: &api::Collect,
    operation: Option<&str>,
) -> Result<Collected, Failure> {
    let retry = operation.map(|operation| Retry::of(operation, "worktree gc", wanted));
    if let Some(collected) = answered(workspace, actor, retry.as_ref())? {
        return Ok(collected);
    }
    let clone = Clone::of(workspace)?;
    if !wanted.dry_run {
        repair(workspace, &clone)?;
    }
    let lookout = Lookout::new(workspace, &clone)?;
    let mut collected =
        Collected { dry_run: wanted.dry_run, removed: Vec::new(), kept: Vec::new() };
    let deed = Deed { clone: &clone, lookout: &lookout, wish: Wish::Collect, force: false };
    for found in all(workspace, &clone)?.into_iter().filter(|found| !found.main) {
        let came = match wanted.dry_run {
            true => deed.allowed(workspace, actor, &found).map(|()| deed.would(&found)),
            false => deed.carry_out(workspace, actor, &found, None),
        };
        match came {
            Ok(removed) => collected.removed.push(removed),
            Err(Failure::Refused(Refusal::Tree(refused))) => match *refused {
                Refused::Kept { path, keep } => {
                    let branch = found.branch().map(str::to_owned);
                    collected.kept.push(KeptTree { path, branch, because: keep });
                }
                other => return Err(Refusal::from(other).into()),
            },
            Err(other) => return Err(other),
        }
    }
    keep_answer(workspace, actor, retry.as_ref(), &collected)?;
    Ok(collected)
}

struct Deed<'a> {
    clone: &'a Clone,
    lookout: &'a Lookout,
    wish: Wish,
    force: bool,
}

impl Deed<'_> {
    fn allowed(
        &self,
        workspace: &mut Workspace,
        actor: &Actor,
        found: &Found,
    ) -> Result<(), Failure> {
        if let Some(tree) = &found.id {
            bury_dead(workspace, tree)?;
        }
        let seen = self.lookout.see(self.clone, found)?;
        let path = found.path.to_string_lossy();
        workspace.look(actor, Observed::default(), |view, context| {
            let tree = found.id.as_ref();
            trees::may_go(view, tree, &path, &seen, self.wish, self.force, context)
        })
    }

    fn would(&self, found: &Found) -> Removed {
        Removed {
            tree: found.id.clone(),
            path: found.path.to_string_lossy().into_owned(),
            branch: found.branch().map(str::to_owned),
            branch_removed: false,
            rescued: Vec::new(),
            at: Moment::default(),
        }
    }

    fn carry_out(
        &self,
        workspace: &mut Workspace,
        actor: &Actor,
        found: &Found,
        retry: Option<&Retry>,
    ) -> Result<Removed, Failure> {
        self.allowed(workspace, actor, found)?;
        let mut removed = self.would(found);
        if let (true, Some(admin)) = (found.stands(), &found.admin) {
            self.clear(found, admin, &mut removed)?;
        }
        let git = Git::in_repository(&self.clone.dirs.common_dir)?;
        if found.linked.is_some() {
            if found.stands() {
                return Err(failed("removing the folder")(
                    std::io::ErrorKind::AlreadyExists.into(),
                ));
            }
            git.forget_tree(&found.path)?;
        }
        self.clone.stop_here("removal-forgotten");
        removed.branch_removed = self.remove_branch(&git, found, &mut removed.rescued)?;
        self.clone.stop_here("removal-unbranched");
        workspace.decide_once(
            actor,
            Observed::default(),
            retry,
            |_| true,
            |view, context| trees::gone(view, removed, context),
        )
    }

    /// Saves what is there, moves it out of the way, looks once more, and deletes it.
    fn clear(&self, found: &Found, admin: &Path, removed: &mut Removed) -> Result<(), Failure> {
        removed.rescued.extend(save(found, &found.path, admin)?);
        self.clone.stop_here("removal-saved");
        let aside = aside_of(&found.path, admin);
        // A submodule finds its files by its place: such a tree is looked at before it is moved.
        let stays = !Git::in_tree(&found.path)?.submodules()?.is_empty();
        if !stays {
            fs::rename(&found.path, &aside).map_err(failed("moving the tree aside"))?;
            self.clone.stop_here("removal-aside");
        }
        let folder = if stays { &found.path } else { &aside };
        let late = dirt(folder, Some(admin)).and_then(|(_, dirty)| {
            if let (Some(first), false) = (dirty.first(), self.force) {
                let keep = Keep::Dirty { count: dirty.len(), first: first.clone() };
                let path = found.path.to_string_lossy().into_owned();
                return Err(Refusal::from(Refused::Kept { path, keep }).into());
            }
            save(found, folder, admin)
        });
        match late {
            Ok(rescued) => {
                let new = rescued.into_iter().filter(|one| !removed.rescued.contains(one));
                let new: Vec<String> = new.collect();
                removed.rescued.extend(new);
            }
            Err(failure) if stays => return Err(failure),
            Err(failure) => {
                fs::rename(&aside, &found.path).map_err(failed("moving the tree back"))?;
                return Err(failure);
            }
        }
        if stays {
            fs::rename(&found.path, &aside).map_err(failed("moving the tree aside"))?;
        }
        fs::write(admin.join(SAFE_MARK), "").map_err(failed("marking the tree"))?;
        self.clone.stop_here("removal-marked");
        fs::remove_dir_all(&aside).map_err(failed("removing the folder"))
    }

    /// The branch goes with a tree that Baton made, if nothing is only on it, or if it is kept.
    fn remove_branch(
        &self,
        git: &Git,
        found: &Found,
        rescued: &mut Vec<String>,
    ) -> Result<bool, Failure> {
        let own = found.record.as_ref().map(|record| record.branch.as_str());
        let Some(branch) = own.filter(|own| found.branch() == Some(own)) else {
            return Ok(false);
        };
        let Some(tip) = git.branch(branch)? else { return Ok(false) };
        if git.trees()?.iter().any(|tree| tree.branch.as_deref() == Some(branch)) {
            return Ok(false);
        }
        let id = found.id.as_ref().map(|id| id.as_str()).unwrap_or_default();
        let reference = branch_reference(id, &tip);
        // Somebody committed to it meanwhile, or its tree was removed by other means: it stays.
        let saved = rescued.contains(&reference);
        if !saved && git.commits_nowhere_else(&tip, Some(branch))? > 0 {
            return Ok(false);
        }
        if !saved {
            git.keep(&reference, &tip)?;
            rescued.push(reference);
        }
        git.delete_branch(branch, &tip)?;
        Ok(true)
    }
}

/// The same folder under another name beside it, where nobody looks for it.
fn aside_of(path: &Path, admin: &Path) -> PathBuf {
    let mut name = std::ffi::OsString::from(".baton-removing-");
    name.push(admin.file_name().unwrap_or_default());
    path.with_file_name(name)
}

/// Uncommitted changes and the tip of the branch, under Baton's own references.
fn save(found: &Found, folder: &Path, admin: &Path) -> Result<Vec<String>, Failure> {
    let git = Git::in_tree(folder)?;
    let git_name = admin.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let plain: String = git_name.chars().filter(char::is_ascii_alphanumeric).collect();
    let id = found.id.as_ref().map_or(format!("w{plain}"), ToString::to_string);
    let mut rescued = Vec::new();
    let (mut status, dirty) = dirt(folder, Some(admin))?;
    // Changed copies that git ignores are saved as well.
    for path in dirty {
        if !status.changed.iter().any(|changed| changed.path == path) {
            status.changed.push(crate::git::Changed::unstaged(path));
        }
    }
    if !status.changed.is_empty() {
        let what = found.branch().unwrap_or("no branch");
        let rescue = Rescue {
            changed: status.changed.iter().collect(),
            reference: format!("{RESCUE_PREFIX}/{id}/changes"),
            message: format!("Uncommitted changes in the tree on {what} when it was removed"),
        };
        let reference = rescue.reference.clone();
        git.rescue(&status, &[rescue])?;
        rescued.push(reference);
    }
    if let Some(tip) = git.head()? {
        let reference = branch_reference(&id, &tip);
        git.keep(&reference, &tip)?;
        rescued.push(reference);
    }
    Ok(rescued)
}

/// Ends a removal that a death has interrupted: what was not safe yet goes back to its place.
pub(super) fn resume(workspace: &mut Workspace, clone: &Clone, tree: &Tree) -> Result<(), Failure> {
    let path = Path::new(&tree.path);
    let Some(admin) = clone.admin_of(path, Some(tree.tree.as_str())) else {
        return Ok(());
    };
    let aside = aside_of(path, &admin);
    let (moved, safe) = (aside.exists(), admin.join(SAFE_MARK).exists());
    if moved && !safe {
        if fs::symlink_metadata(path).is_ok() {
            let why = format!("{} is in its place", path.display());
            return Err(Error::Step { step: "moving the tree back", why }.into());
        }
        return fs::rename(&aside, path).map_err(failed("moving the tree back"));
    }
    if !safe {
        return Ok(());
    }
    if moved {
        fs::remove_dir_all(&aside).map_err(failed("removing the folder"))?;
    }
    let git = Git::in_repository(&clone.dirs.common_dir)?;
    git.forget_tree(path)?;
    let rescued: Vec<String> = git
        .kept_below(&format!("{RESCUE_PREFIX}/{}/", tree.tree))?
        .into_iter()
        .map(|kept| kept.name)
        .collect();
    finish(workspace, &git, tree, &rescued)
}

/// The branch and the record of a tree whose folder is gone for good.
fn finish(
    workspace: &mut Workspace,
    git: &Git,
    tree: &Tree,
    rescued: &[String],
) -> Result<(), Failure> {
    let mut removed = Removed {
        tree: Some(tree.tree.clone()),
        path: tree.path.clone(),
        branch: Some(tree.branch.clone()),
        branch_removed: false,
        rescued: rescued.to_vec(),
        at: Moment::default(),
    };
    if let Some(tip) = git.branch(&tree.branch)?
        && rescued.contains(&branch_reference(tree.tree.as_str(), &tip))
    {
        git.delete_branch(&tree.branch, &tip)?;
        removed.branch_removed = true;
    }
    let nobody = Actor::default();
    workspace.decide(&nobody, Observed::default(), |view, context| {
        trees::gone(view, removed, context).map(|(events, _)| (events, ()))
    })
}
