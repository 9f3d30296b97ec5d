//! An agent is about to stop: what it would leave behind.
//!
//! Owns the look at its claims, its tasks and the checks that `done` will ask for. Each thing is
//! said once: whoever was told and stops all the same is let go.

use baton_core::claim::Mode;
use baton_core::context::Actor;
use baton_core::pattern::Kind;
use baton_core::resource::Resource;
use baton_core::task::State;
use baton_core::tasks::evidence::Proof;

use super::traces::Trace;
use crate::api;
use crate::failure::Failure;
use crate::git::Git;
use crate::listing::{self, ListedClaim};
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
    /// Active, and neither reported nor offered to anybody.
    pub tasks: Vec<ListedTask>,
    /// Checks that must have passed before `done`, and have not.
    pub checks: Vec<String>,
}

impl Left {
    fn is_empty(&self) -> bool {
        self.dirty.is_empty() && self.shared.is_empty() && self.tasks.is_empty()
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
    let of_path = |path: &Resource| {
        let claim = held.iter().find(|claim| claim.resources.iter().any(|one| one.overlaps(path)));
        mark(&format!("{path} {}", claim.map(|claim| claim.token.to_string()).unwrap_or_default()))
    };
    let of_task = |task: &ListedTask| mark(&format!("{} {}", task.task, task.attempt));
    left.dirty.retain(|path| !known.contains(&of_path(path)));
    left.shared.retain(|path| !known.contains(&of_path(path)));
    left.tasks.retain(|task| !known.contains(&of_task(task)));
    if left.is_empty() {
        return Ok(None);
    }
    left.dirty.iter().chain(&left.shared).for_each(|path| said.add(&of_path(path)));
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
    let (dirty, shared) = dirty(workspace, held)?;
    let mut left = Left { dirty, shared, ..Left::default() };
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

/// What the session and its subagents hold in this tree.
fn held(workspace: &mut Workspace, actor: &Actor) -> Result<Vec<ListedClaim>, Failure> {
    if workspace.place.git.is_none() {
        return Ok(Vec::new());
    }
    let root = workspace.place.root.clone();
    let tree = workspace.tree.0.clone();
    let wanted = api::Claims { mine: true, path: None };
    let mut held = listing::claims(workspace, actor, &root, &wanted)?.claims;
    held.retain(|claim| claim.tree == tree);
    Ok(held)
}

/// What is changed of what it holds alone, and of what it holds with others.
fn dirty(
    workspace: &Workspace,
    held: &[ListedClaim],
) -> Result<(Vec<Resource>, Vec<Resource>), Failure> {
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
    let changed = changed(workspace, &paths)?;
    let alone = |path: &Resource| {
        let own = held.iter().filter(|claim| claim.mode == Mode::Exclusive);
        own.flat_map(|claim| &claim.resources).any(|held| held.overlaps(path))
    };
    Ok(changed.into_iter().partition(alone))
}

/// What is changed in this tree at or below these paths, and in no commit.
pub(crate) fn changed(workspace: &Workspace, paths: &[String]) -> Result<Vec<Resource>, Failure> {
    let status = Git::in_tree(&workspace.place.root)?.status(paths)?;
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
