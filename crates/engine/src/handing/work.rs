//! What git shows of the work on a task: commits and changed files since its attempt began.
//!
//! Looked at before a decision, never under the lock. Where several sessions share a tree, only
//! what belongs to the task counts: its paths, and what its owner has claimed. What cannot be seen
//! is left out and said to be unseen; it never keeps anybody from handing over.

use std::collections::BTreeMap;

use baton_core::claim::{self, Claim};
use baton_core::context::{Actor, Observed};
use baton_core::handoff::{Made, Work};
use baton_core::id::{SessionId, TaskId, TreeId};
use baton_core::resource::Resource;
use baton_core::sessions::{self, Session};
use baton_core::task::{self, Owner, State, Task};
use baton_core::view::{Query, get, scan};

use crate::failure::Failure;
use crate::git::{self, Git};
use crate::place::git_dirs;
use crate::place::head::Head;
use crate::sighting::files::{FileClock, tree_root};
use crate::trees::carrying::Carried;
use crate::workspace::Workspace;

/// So many files and commits are kept; more are only said to be there.
const FILES_MAX: usize = 200;
const COMMITS_MAX: usize = 50;
const CLAIMS_MAX: u32 = 10_000;
const SESSIONS_MAX: u32 = 1_000;
/// How many tasks of one session are looked at.
const TASKS_MAX: u32 = 16;

/// The commit this tree stands on.
pub(crate) fn head(workspace: &Workspace) -> Option<String> {
    match workspace.place.head() {
        Head::Commit(commit) => Some(commit),
        Head::Nothing => None,
        Head::AskGit => head_of(workspace, &workspace.tree),
    }
}

/// The commit some tree of this machine stands on.
pub(crate) fn head_of(workspace: &Workspace, tree: &TreeId) -> Option<String> {
    let root = tree_root(workspace, tree).filter(|_| workspace.place.git.is_some())?;
    Git::in_tree(&root).and_then(|git| git.head()).ok()?.map(|oid| oid.as_str().to_owned())
}

/// The work on one task by its id; nothing when nobody works on it or its tree is not here.
pub(crate) fn of_task(workspace: &mut Workspace, text: &str) -> Result<Observed, Failure> {
    let Some(id) = TaskId::parse(text) else {
        return Ok(Observed::default());
    };
    let task: Option<Task> =
        workspace
            .look(&Actor::default(), Observed::default(), |view, _| Ok(get(view, id.as_str())?))?;
    let work = of(workspace, task.as_slice())?;
    Ok(Observed { work, ..Observed::default() })
}

/// The work on everything a session has in hand.
pub(crate) fn of_session(
    workspace: &mut Workspace,
    session: &SessionId,
) -> Result<BTreeMap<TaskId, Work>, Failure> {
    let own = Query::equal(task::BY_OWNER, session.as_str(), TASKS_MAX);
    let tasks: Vec<Task> =
        workspace.look(&Actor::default(), Observed::default(), |view, _| Ok(scan(view, own)?))?;
    of(workspace, &tasks)
}

fn of(workspace: &mut Workspace, tasks: &[Task]) -> Result<BTreeMap<TaskId, Work>, Failure> {
    let mut all = BTreeMap::new();
    for task in tasks.iter().filter(|task| task.state() == State::Active) {
        let Some(owner) = task.owner() else { continue };
        let surroundings = Surroundings::read(workspace, task, owner)?;
        let clock = FileClock::now(workspace)?;
        if let Some(work) = gather(workspace, task, owner, &surroundings, &clock) {
            all.insert(task.task.clone(), work);
        }
    }
    Ok(all)
}

/// Whose is what in the tree of a task.
struct Surroundings {
    /// Others work in the same tree.
    shared: bool,
    /// The task's paths, and what its owner claimed.
    own: Vec<Resource>,
}

impl Surroundings {
    fn read(workspace: &mut Workspace, task: &Task, owner: &Owner) -> Result<Self, Failure> {
        workspace.look(&Actor::default(), Observed::default(), |view, _| {
            let live = Query::equal(sessions::BY_LIFE, "live", SESSIONS_MAX);
            let sessions: Vec<Session> = scan(view, live)?;
            let beside = |one: &Session| one.tree == owner.tree && one.session != owner.session;
            let claims: Vec<Claim> = scan(view, claim::of_session(&owner.session, CLAIMS_MAX))?;
            let claimed = claims.iter().flat_map(|claim| &claim.hold.resources);
            let own = task.paths.iter().chain(claimed);
            let path = |one: &&Resource| matches!(one, Resource::Path(_));
            Ok(Self {
                shared: sessions.iter().any(beside),
                own: own.filter(path).cloned().collect(),
            })
        })
    }

    /// Where to look when others work here too; nothing means everywhere.
    fn bounds(&self) -> &[Resource] {
        if self.shared { &self.own } else { &[] }
    }

    fn has(&self, path: &str) -> bool {
        let bounds = self.bounds();
        bounds.is_empty()
            || Resource::literal(path)
                .is_ok_and(|path| bounds.iter().any(|bound| bound.overlaps(&path)))
    }
}

fn gather(
    workspace: &Workspace,
    task: &Task,
    owner: &Owner,
    surroundings: &Surroundings,
    clock: &FileClock,
) -> Option<Work> {
    workspace.place.git.as_ref()?;
    let root = tree_root(workspace, &owner.tree)?;
    let git = Git::in_tree(&root).ok()?;
    let commit = git.head().ok()?.map(|oid| oid.as_str().to_owned());
    let base = task.standing.base.as_deref();
    let (mut commits, committed) = since(&git, base, surroundings).unwrap_or_default();
    let status = git.status(&[String::new()]).ok()?;
    let mut uncommitted: Vec<String> = status.paths().into_iter().map(str::to_owned).collect();
    // What was lying there before the attempt began is not its work, nor what came with the tree.
    let carried = git_dirs(&root).ok().flatten().map(|own| Carried::look(&root, &own.git_dir));
    let carried = carried.unwrap_or_default().same;
    uncommitted.retain(|path| {
        surroundings.has(path)
            && !carried.contains(path)
            && clock.touched_since(&root.join(path), owner.taken_at)
    });
    let mut changed: Vec<String> =
        committed.into_iter().filter(|path| surroundings.has(path)).collect();
    changed.extend(uncommitted.iter().cloned());
    changed.sort_unstable();
    changed.dedup();
    let more = changed.len() > FILES_MAX || commits.len() > COMMITS_MAX;
    changed.truncate(FILES_MAX);
    uncommitted.truncate(FILES_MAX);
    commits.drain(..commits.len().saturating_sub(COMMITS_MAX));
    Some(Work { commit, commits, changed, uncommitted, more })
}

/// The commits since `base`, oldest first, and the files they changed.
fn since(
    git: &Git,
    base: Option<&str>,
    surroundings: &Surroundings,
) -> Result<(Vec<Made>, Vec<String>), git::Error> {
    let commits = git.commits_since(base, COMMITS_MAX + 1)?;
    let files = match commits.is_empty() {
        true => Vec::new(),
        false => git.changed_since(base)?,
    };
    let mut made: Vec<Made> = Vec::new();
    for commit in commits.into_iter().rev() {
        let bounded = !surroundings.bounds().is_empty();
        if bounded && !git.files_of(&commit.oid)?.iter().any(|path| surroundings.has(path)) {
            continue;
        }
        made.push(Made { commit: commit.oid.as_str().to_owned(), subject: commit.subject });
    }
    Ok((made, files))
}
