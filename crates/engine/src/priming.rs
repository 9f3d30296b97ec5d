//! What an agent must know when its context holds nothing of ours: who it is, its work, its claims,
//! what others do, what was decided.
//!
//! Owns the collection, each list by its index and with a limit. How it is said in few words, and
//! what is left out first, is for whoever says it.

use baton_core::context::Actor;
use baton_core::handoff::Handoff;
use baton_core::id::TreeId;
use baton_core::notes::Note;
use baton_core::notices::Notice;
use baton_core::roles::Tool;
use baton_core::task::State;
use baton_core::task::dossier::Checkpoint;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api;
use crate::doors;
use crate::doors::reads::{self, Stale};
use crate::failure::Failure;
use crate::listing::{self, ListedClaim};
use crate::notes;
use crate::policy;
use crate::rules::{self, InForce};
use crate::sessions::{self, Seat, SeatState};
use crate::sighting::files::tree_root;
use crate::tasking::showing::{self, ListedTask};
use crate::workspace::Workspace;

/// What a primer looks at, of each kind.
const TASKS_MAX: usize = 5;
const CLAIMS_MAX: usize = 500;
const OTHERS_MAX: usize = 500;
const NOTES_MAX: u32 = 100;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Primer {
    pub me: Seat,
    /// What its role may write, in words; nothing where no role takes anything away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub may: Option<String>,
    /// Its role lets it edit, and commit.
    pub edits: bool,
    pub commits: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Active and parked work of this session.
    pub work: Vec<Work>,
    /// The rules of the project, as far as they can be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules: Option<InForce>,
    pub mine: Vec<ListedClaim>,
    pub others: Vec<ListedClaim>,
    /// How many other sessions live.
    pub sessions: usize,
    /// What could be taken now.
    pub ready: Vec<ListedTask>,
    pub notes: Vec<Note>,
    pub notices: Vec<Notice>,
    /// Files that it read and that are not as it read them: told once, here or at a turn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stale: Vec<Stale>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Work {
    pub task: ListedTask,
    /// Where the work is, if not in the tree around.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elsewhere: Option<Elsewhere>,
    /// How it came here, oldest first.
    pub handoffs: Vec<Handoff>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<Checkpoint>,
}

/// A tree that is not the one around.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Elsewhere {
    pub tree: TreeId,
    /// Its folder, when it is a tree of this clone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

pub fn primer(workspace: &mut Workspace, actor: &Actor) -> Result<Primer, Failure> {
    let primer = collected(workspace, actor);
    workspace.store.leave_this_moment();
    primer
}

fn collected(workspace: &mut Workspace, actor: &Actor) -> Result<Primer, Failure> {
    workspace.store.stay_at_this_moment();
    let me = sessions::whoami(workspace, actor)?;
    // Rules that cannot be looked up keep nobody from beginning.
    let rules = rules::in_force(workspace).ok().flatten();
    // What nobody can read was told to nobody.
    let readable = rules.as_ref().filter(|rules| !rules.rules.rules.is_empty());
    let version = readable.map(|rules| rules.version.as_str());
    let notices = doors::primed(workspace, actor, version)?;
    // From here on it only looks, and one moment is enough for all of it; so was it above.
    workspace.store.stay_at_this_moment();
    let root = workspace.place.root.clone();
    let all = listing::claims(workspace, actor, &root, &api::Claims { mine: false, path: None })?;
    let (mut mine, mut others): (Vec<ListedClaim>, Vec<ListedClaim>) =
        all.claims.into_iter().partition(|claim| claim.holder.session == me.session);
    // What is free for whoever asks frightens nobody off.
    others.retain(|claim| claim.holder_state != SeatState::Dead);
    mine.truncate(CLAIMS_MAX);
    others.truncate(OTHERS_MAX);
    let seats = sessions::list(workspace, false)?.sessions;
    let works = |seat: &Seat| matches!(seat.state, SeatState::Live | SeatState::Idle);
    let work = work(workspace, actor, &me)?;
    let ready = showing::ready(workspace, TASKS_MAX)?.tasks;
    let wanted =
        api::shared::Notes { since: None, kind: None, task: None, rule: None, limit: NOTES_MAX };
    let role = match &me.role {
        Some(role) => policy::roles(workspace)?.role(role),
        None => None,
    };
    Ok(Primer {
        edits: role.as_ref().is_none_or(|role| role.tools.contains(&Tool::Edit)),
        commits: role.as_ref().is_none_or(|role| role.commit),
        may: role.map(|role| role.words(&me.session)),
        branch: branch(workspace),
        work,
        rules,
        mine,
        others,
        sessions: seats.iter().filter(|seat| works(seat) && seat.session != me.session).count(),
        ready,
        notes: notes::list(workspace, &wanted)?.notes,
        notices,
        stale: reads::news(workspace, actor)?,
        me,
    })
}

/// What it owns, and the parked tasks of whoever has its name: a new session of the same agent.
fn work(workspace: &mut Workspace, actor: &Actor, me: &Seat) -> Result<Vec<Work>, Failure> {
    let list = |mine, state| api::tasks::List {
        state,
        all: false,
        mine,
        label: None,
        role: None,
        limit: TASKS_MAX,
    };
    let mut own = showing::list(workspace, actor, &list(true, Vec::new()))?.tasks;
    let parked = showing::list(workspace, actor, &list(false, vec![State::Parked]))?.tasks;
    own.extend(parked.into_iter().filter(|task| task.author.as_ref() == Some(&me.name)));
    own.truncate(TASKS_MAX);
    let mut work = Vec::with_capacity(own.len());
    for task in own {
        let shown = showing::show(workspace, task.task.as_str())?;
        let checkpoint = shown.checkpoints.last().cloned();
        let tree = task.owner.as_ref().map(|owner| owner.tree.clone());
        let elsewhere = tree.filter(|tree| *tree != workspace.tree).map(|tree| {
            let path = tree_root(workspace, &tree).map(|root| root.display().to_string());
            Elsewhere { tree, path }
        });
        work.push(Work { task, elsewhere, handoffs: shown.handoffs, checkpoint });
    }
    Ok(work)
}

/// Read from git's own file: a primer starts no process for it.
fn branch(workspace: &Workspace) -> Option<String> {
    let head = workspace.place.git.as_ref()?.git_dir.join("HEAD");
    let text = std::fs::read_to_string(head).ok()?;
    text.trim_end().strip_prefix("ref: refs/heads/").map(str::to_owned)
}
