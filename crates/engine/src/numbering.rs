//! The next number of a folder: what is in every tree and branch counts.
//!
//! Owns the look at them, made before the decision. Two who ask at the same moment get two numbers,
//! because the decision counts what was given before, whatever they have seen.

use std::path::Path;

use baton_core::context::{Actor, Observed};
use baton_core::numbers::{self, Given, Request};
use baton_core::pattern::Kind;
use baton_core::refusal::Refusal;
use baton_core::resource::Resource;
use baton_core::trees::BRANCH_PREFIX;

use crate::api::trees as api;
use crate::failure::Failure;
use crate::git::Git;
use crate::resources::literal;
use crate::workspace::{Retry, Workspace};

/// Branches that are looked at besides the one where work lands.
const BRANCHES_MAX: usize = 1_000;

pub fn next(
    workspace: &mut Workspace,
    actor: &Actor,
    cwd: &Path,
    wanted: &api::NextNumber,
    operation: Option<&str>,
) -> Result<Given, Failure> {
    let dir = wanted.dir.trim_end_matches('/');
    let named = literal(&workspace.place, cwd, dir.as_ref())?.pop();
    let folder = match named {
        Some(Resource::Path(pattern)) if pattern.kind() != Kind::Glob => pattern.text().to_owned(),
        _ => return Err(Refusal::Empty.into()),
    };
    let folder = if folder == "." { String::new() } else { folder };
    let seen = highest(workspace, &folder)?;
    let request = Request { folder, width: wanted.width, claim: wanted.claim, seen };
    let retry = operation.map(|operation| Retry::of(operation, "next-number", wanted));
    let mut observed = Observed::default();
    for look in 1.. {
        observed.complete = look > crate::claiming::LOOKS_MAX;
        let given = workspace.decide_once(
            actor,
            observed.clone(),
            retry.as_ref(),
            |_| true,
            |view, context| numbers::next(view, &request, context),
        );
        let blockers = match &given {
            Err(Failure::Refused(Refusal::Unobserved { claims })) => {
                crate::sighting::of_claims(workspace, claims, &mut observed)?;
                continue;
            }
            Err(failure) => crate::sighting::in_the_way(failure),
            Ok(_) => Vec::new(),
        };
        let again = !blockers.is_empty()
            && look <= crate::claiming::LOOKS_MAX
            && crate::sighting::clear_the_way(workspace, &blockers, &mut observed)?;
        if !again {
            return given;
        }
    }
    Err(Refusal::Empty.into())
}

/// The highest number in any tree, in the branch where work lands, and in branches of Baton's.
fn highest(workspace: &mut Workspace, folder: &str) -> Result<Option<(u64, usize)>, Failure> {
    let mut names: Vec<String> = Vec::new();
    let mut roots: Vec<std::path::PathBuf> = vec![workspace.place.root.clone()];
    if workspace.place.git.is_some() {
        let git = Git::in_tree(&workspace.place.root)?;
        let trees = git.trees()?.into_iter().filter(|tree| !tree.bare);
        roots.extend(trees.map(|tree| tree.path));
        let named = crate::policy::in_force(workspace)?.and_then(|policy| policy.evidence.target);
        let mut commits = git.target(named.as_deref())?.map(|(_, tips)| tips).unwrap_or_default();
        for branch in git.branches_below(BRANCH_PREFIX)?.into_iter().take(BRANCHES_MAX) {
            commits.extend(git.branch(&branch)?);
        }
        commits.sort_unstable();
        commits.dedup();
        for commit in commits {
            names.extend(git.names_in(&commit, folder)?);
        }
    }
    roots.sort_unstable();
    roots.dedup();
    for root in roots {
        let Ok(entries) = std::fs::read_dir(root.join(folder)) else { continue };
        names.extend(entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()));
    }
    Ok(names.iter().filter_map(|name| numbers::in_name(name)).max())
}
