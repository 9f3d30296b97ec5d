//! An agent is about to stop: what it would leave behind.
//!
//! Owns the look at its claims, its tasks and the checks that `done` will ask for. Each thing is
//! said once: whoever was told and stops all the same is let go.

use std::collections::BTreeMap;
use std::path::Path;

use baton_core::claim::Mode;
use baton_core::context::Actor;
use baton_core::id::TreeId;
use baton_core::pattern::Kind;
use baton_core::resource::Resource;
use baton_core::task::State;
use baton_core::tasks::evidence::Proof;
use schemars::JsonSchema;
use serde::Serialize;

use super::traces::Trace;
use crate::api;
use crate::failure::Failure;
use crate::git::Git;
use crate::listing::{self, ListedClaim};
use crate::sighting::files::tree_root;
use crate::tasking::showing::{self, ListedTask};
use crate::workspace::Workspace;

const TASKS_MAX: usize = 20;

/// What would be left.
#[derive(Clone, Debug, Default)]
pub struct Left {
    /// Held, changed and in no commit.
    pub dirty: Vec<Resource>,
    /// The same, of what others may add to as well.
    pub shared: Vec<Resource>,
    /// Both, in other trees of this machine.
    pub elsewhere: Vec<LeftThere>,
    /// Active, and neither reported nor offered to anybody.
    pub tasks: Vec<ListedTask>,
    /// Checks that must have passed before `done`, and have not.
    pub checks: Vec<String>,
}

/// What would be left in a tree that is not the one around.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LeftThere {
    pub tree: TreeId,
    /// Its folder.
    pub path: String,
    /// Held, changed and in no commit.
    pub dirty: Vec<Resource>,
    /// The same, of what others may add to as well.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shared: Vec<Resource>,
}

impl LeftThere {
    fn is_empty(&self) -> bool {
        self.dirty.is_empty() && self.shared.is_empty()
    }
}

impl Left {
    fn is_empty(&self) -> bool {
        let here = self.dirty.is_empty() && self.shared.is_empty();
        here && self.elsewhere.is_empty() && self.tasks.is_empty()
    }
}

/// What the session leaves and was not yet told of; nothing when there is nothing new. What its
/// subagents hold is theirs until they stop, or are silent for as long as a lease lasts.
pub fn left(workspace: &mut Workspace, actor: &Actor) -> Result<Option<Left>, Failure> {
    let Some(session) = actor.session.clone() else {
        return Ok(None);
    };
    let held = held(workspace, actor)?;
    let held: Vec<ListedClaim> =
        held.into_iter().filter(|claim| claim.holder.agent.is_none() || claim.run_out).collect();
    let mut left = look_at(workspace, actor, &held)?;
    let said = Trace::of_session(&workspace.place, &session, "stops");
    let known = said.lines();
    // What was let go and is changed again is held by another claim, and is something new.
    let here = workspace.tree.clone();
    let of_path = |tree: &TreeId, path: &Resource| {
        let holds = |claim: &&ListedClaim| {
            claim.tree == tree.0 && claim.resources.iter().any(|one| one.overlaps(path))
        };
        let token = held.iter().find(holds).map(|claim| claim.token.to_string());
        mark(&format!("{path} {}", token.unwrap_or_default()))
    };
    let of_task = |task: &ListedTask| mark(&format!("{} {}", task.task, task.attempt));
    left.dirty.retain(|path| !known.contains(&of_path(&here, path)));
    left.shared.retain(|path| !known.contains(&of_path(&here, path)));
    for LeftThere { tree, dirty, shared, .. } in &mut left.elsewhere {
        dirty.retain(|path| !known.contains(&of_path(tree, path)));
        shared.retain(|path| !known.contains(&of_path(tree, path)));
    }
    left.elsewhere.retain(|there| !there.is_empty());
    left.tasks.retain(|task| !known.contains(&of_task(task)));
    if left.is_empty() {
        return Ok(None);
    }
    left.dirty.iter().chain(&left.shared).for_each(|path| said.add(&of_path(&here, path)));
    for LeftThere { tree, dirty, shared, .. } in &left.elsewhere {
        dirty.iter().chain(shared).for_each(|path| said.add(&of_path(tree, path)));
    }
    left.tasks.iter().for_each(|task| said.add(&of_task(task)));
    if left.tasks.is_empty() {
        left.checks.clear();
    }
    Ok(Some(left))
}

/// What the session leaves just now.
pub fn look(workspace: &mut Workspace, actor: &Actor) -> Result<Left, Failure> {
    let held = held(workspace, actor)?;
    look_at(workspace, actor, &held)
}

fn look_at(
    workspace: &mut Workspace,
    actor: &Actor,
    held: &[ListedClaim],
) -> Result<Left, Failure> {
    let mut trees: BTreeMap<&str, Vec<&ListedClaim>> = BTreeMap::new();
    for claim in held {
        trees.entry(&claim.tree).or_default().push(claim);
    }
    let here = trees.remove(workspace.tree.0.as_str()).unwrap_or_default();
    let (dirty, shared) = dirty_in(&workspace.place.root, &here)?;
    let elsewhere = elsewhere(workspace, trees)?;
    let mut left = Left { dirty, shared, elsewhere, ..Left::default() };
    let wanted = api::tasks::List {
        state: vec![State::Active],
        all: false,
        mine: true,
        label: None,
        role: None,
        limit: TASKS_MAX,
    };
    left.tasks = showing::list(workspace, actor, &wanted)?.tasks;
    left.tasks.retain(|task| task.offer.is_none());
    if !left.tasks.is_empty() {
        let policy = crate::policy::in_force(workspace)?.unwrap_or_default();
        if policy.evidence.requires(Proof::Check) {
            let needed: Vec<String> =
                policy.evidence.needed().into_iter().map(str::to_owned).collect();
            left.checks = not_passed(workspace, &left.tasks, &needed)?;
        }
    }
    Ok(left)
}

/// One thing that was said, in few letters.
fn mark(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex()[..32].to_owned()
}

/// What the session and its subagents hold, in whatever tree.
fn held(workspace: &mut Workspace, actor: &Actor) -> Result<Vec<ListedClaim>, Failure> {
    if workspace.place.git.is_none() {
        return Ok(Vec::new());
    }
    let root = workspace.place.root.clone();
    let wanted = api::Claims { mine: true, path: None };
    Ok(listing::claims(workspace, actor, &root, &wanted)?.claims)
}

/// What is changed in other trees, of those that can be seen from here.
fn elsewhere(
    workspace: &Workspace,
    trees: BTreeMap<&str, Vec<&ListedClaim>>,
) -> Result<Vec<LeftThere>, Failure> {
    let mut found = Vec::new();
    for (tree, held) in trees {
        let tree = TreeId(tree.to_owned());
        let Some(root) = tree_root(workspace, &tree) else { continue };
        let (dirty, shared) = dirty_in(&root, &held)?;
        found.push(LeftThere { tree, path: root.display().to_string(), dirty, shared });
    }
    found.retain(|there| !there.is_empty());
    Ok(found)
}

/// What is changed in a tree of what is held there alone, and of what is held with others.
fn dirty_in(root: &Path, held: &[&ListedClaim]) -> Result<(Vec<Resource>, Vec<Resource>), Failure> {
    let paths: Vec<String> = held
        .iter()
        .flat_map(|claim| &claim.resources)
        .filter_map(|resource| match resource {
            Resource::Path(pattern) if pattern.kind() != Kind::Glob => {
                Some(pattern.text().to_owned())
            }
            _ => None,
        })
        .collect();
    if paths.is_empty() {
        return Ok((Vec::new(), Vec::new()));
    }
    let changed = changed_in(root, &paths)?;
    let alone = |path: &Resource| {
        let own = held.iter().filter(|claim| claim.mode == Mode::Exclusive);
        own.flat_map(|claim| &claim.resources).any(|held| held.overlaps(path))
    };
    Ok(changed.into_iter().partition(alone))
}

/// What is changed in this tree at or below these paths, and in no commit.
pub(crate) fn changed(workspace: &Workspace, paths: &[String]) -> Result<Vec<Resource>, Failure> {
    changed_in(&workspace.place.root, paths)
}

fn changed_in(root: &Path, paths: &[String]) -> Result<Vec<Resource>, Failure> {
    let status = Git::in_tree(root)?.status(paths)?;
    Ok(status.paths().into_iter().filter_map(|path| Resource::literal(path).ok()).collect())
}

fn not_passed(
    workspace: &mut Workspace,
    tasks: &[ListedTask],
    required: &[String],
) -> Result<Vec<String>, Failure> {
    let mut missing = Vec::new();
    for task in tasks {
        let ran = showing::show(workspace, task.task.as_str())?.checks;
        let open = |name: &&String| !ran.iter().any(|run| run.exit == 0 && run.name == **name);
        missing.extend(required.iter().filter(open).cloned());
    }
    missing.sort_unstable();
    missing.dedup();
    Ok(missing)
}
