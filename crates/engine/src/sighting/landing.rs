//! Looks whether branches that have serial zones have landed.
//!
//! Owns what git says of them: changes in the zone that the target does not have, committed or not.
//! What belongs to another clone is not looked at, and says nothing (S11).

use std::collections::BTreeMap;

use baton_core::context::{Actor, Observed};
use baton_core::policy;
use baton_core::resource::Resource;
use baton_core::serial::{self, Standing, Whereabouts, ZoneHold};
use baton_core::view::Record;
use baton_core::zones::Policy;

use super::files::tree_root;
use crate::failure::Failure;
use crate::git::{Git, Oid};
use crate::workspace::Workspace;

/// The branch this tree stands on, read from git's own file: no process is started for it.
pub(super) fn standing(workspace: &Workspace) -> Whereabouts {
    let head = workspace.place.git.as_ref().map(|dirs| dirs.git_dir.join("HEAD"));
    let text = head.and_then(|head| std::fs::read_to_string(head).ok());
    let branch = text.as_deref().and_then(|text| text.trim_end().strip_prefix("ref: refs/heads/"));
    // With references in a table the file says only that.
    match branch.filter(|branch| *branch != ".invalid") {
        Some(branch) => {
            Whereabouts::On(Standing { branch: branch.to_owned(), clone: clone_of(workspace) })
        }
        None => Whereabouts::Nowhere,
    }
}

/// Machine and repository: what is there can be looked at.
fn clone_of(workspace: &Workspace) -> String {
    let common = workspace.place.git.as_ref().map(|dirs| dirs.common_dir.to_string_lossy());
    format!("{} {}", workspace.machine.host, common.unwrap_or_default())
}

/// For every zone that is bound to a branch of this clone: is something of it still to land?
pub(super) fn of_zones(workspace: &mut Workspace) -> Result<BTreeMap<String, bool>, Failure> {
    let (bound, policy) = workspace.look(&Actor::default(), Observed::default(), |view, _| {
        Ok((serial::all(view)?, policy::in_force(view)?.unwrap_or_default()))
    })?;
    let here = clone_of(workspace);
    let mut seen = BTreeMap::new();
    for hold in bound.iter().filter(|hold| hold.clone == here) {
        if let Some(unlanded) = is_unlanded(workspace, hold, &policy)? {
            seen.insert(hold.key(), unlanded);
        }
    }
    Ok(seen)
}

fn is_unlanded(
    workspace: &Workspace,
    hold: &ZoneHold,
    policy: &Policy,
) -> Result<Option<bool>, Failure> {
    let git = Git::in_tree(&workspace.place.root)?;
    let Some((_, targets)) = git.target(policy.evidence.target.as_deref())? else {
        return Ok(None);
    };
    let within = |path: &String| {
        Resource::literal(path).is_ok_and(|path| policy.serial_zones(&path).contains(&hold.zone))
    };
    if let Some(root) = tree_root(workspace, &hold.tree) {
        let there = Git::in_tree(&root)?;
        let on = there.head_branch()?;
        if on.as_deref().and_then(|name| name.strip_prefix("refs/heads/")) == Some(&hold.branch) {
            let status = there.status(&[String::new()])?;
            if status.paths().into_iter().map(str::to_owned).any(|path| within(&path)) {
                return Ok(Some(true));
            }
        }
    }
    let Some(tip) = git.branch(&hold.branch)? else {
        return Ok(Some(false));
    };
    for target in &targets {
        if !differs(&git, &tip, target, within)? {
            return Ok(Some(false));
        }
    }
    Ok(Some(true))
}

/// Has the branch changed files in the zone that the target has otherwise? A landing that made one
/// commit of many has them too.
fn differs(
    git: &Git,
    tip: &Oid,
    target: &Oid,
    within: impl Fn(&String) -> bool,
) -> Result<bool, Failure> {
    let Some(base) = git.merge_base(target, tip)? else {
        return Ok(true);
    };
    let changed = git.changed_between(&base, tip)?;
    let changed: Vec<String> = changed.into_iter().filter(within).collect();
    if changed.is_empty() {
        return Ok(false);
    }
    let otherwise = git.changed_between(target, tip)?;
    Ok(changed.iter().any(|path| otherwise.contains(path)))
}
