//! What tasks there are, for people and scripts: lists, one task in full, counts.
//!
//! Owns reading. A task is shown as the next take would see it: an open one of a later phase is
//! shown as blocked, with its reason. Lists are read by index and have a limit.

use baton_core::claim::Holder;
use baton_core::context::{Actor, Context, Observed};
use baton_core::handoff::{Handoff, Offer};
use baton_core::handoffs;
use baton_core::id::{GateId, SessionId, TaskId, Token, TreeId};
use baton_core::refusal::Refusal;
use baton_core::resource::Resource;
use baton_core::task::dossier::{Checkpoint, Dossier, Feedback, Past};
use baton_core::task::tally::Tally;
use baton_core::task::{self, Join, State, Submission, Task, Usd};
use baton_core::tasks::evidence::{CheckRun, Shown};
use baton_core::tasks::taking::phase_reason;
use baton_core::tasks::{near, reason_of};
use baton_core::time::Moment;
use baton_core::view::{Query, View, get, scan, scan_all};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::splitting::{Results, of_split};
use crate::api::tasks as api;
use crate::failure::Failure;
use crate::gating;
use crate::workspace::Workspace;

/// How many records a list reads at the most.
const READ_MAX: u32 = 10_000;
/// How many tasks that somebody works on `status` shows.
const ACTIVE_SHOWN_MAX: u32 = 200;

/// Who works on a task, under which attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Worker {
    pub session: SessionId,
    pub name: String,
    pub attempt: u32,
    pub token: Token,
    /// Where the work is.
    pub tree: TreeId,
    pub since: Moment,
    pub expires_at: Moment,
    /// Its lease is over: the task goes to whoever takes next.
    pub run_out: bool,
}

/// A task at a glance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ListedTask {
    pub task: TaskId,
    pub title: String,
    pub state: State,
    pub reason: Option<String>,
    pub owner: Option<Worker>,
    /// The number of the attempt that was begun last; 0 before the first.
    pub attempt: u32,
    pub attempts_used: u32,
    pub max_attempts: u32,
    pub priority: u8,
    pub since: Moment,
    pub next_action: Option<String>,
    /// In review or waiting: whose work it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// Who reviews it now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reviewers: Vec<String>,
    /// The gates that hold it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<GateId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Moment>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    pub labels: Vec<String>,
    pub paths: Vec<Resource>,
    /// What it comes after.
    pub after: Vec<TaskId>,
    /// Those of them that are not finished.
    pub pending: Vec<TaskId>,
    /// How many unfinished tasks wait for it, directly or through others.
    pub unblocks: u32,
    /// It is offered to be handed over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offer: Option<Offer>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskList {
    pub tasks: Vec<ListedTask>,
    /// There are more than are listed.
    pub more: bool,
}

/// A task in full.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ShownTask {
    #[serde(flatten)]
    pub glance: ListedTask,
    pub body: Option<String>,
    pub report_done: Option<String>,
    pub report_not_done: Option<String>,
    pub result: Option<Value>,
    /// Attempts that ended, oldest first.
    pub attempts: Vec<Past>,
    pub feedback: Vec<Feedback>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submission: Option<Submission>,
    /// Every handoff of it, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub handoffs: Vec<Handoff>,
    /// What was saved by code, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checkpoints: Vec<Checkpoint>,
    /// The last run of each check.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<CheckRun>,
    /// What was shown when it was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proven: Option<Shown>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<TaskId>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<TaskId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub join: Option<Join>,
    /// The name of what it must keep to so that the parts of a split fit together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// What came of its parts, or of those it follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub results: Option<Results>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_usd: Option<Usd>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    pub created_at: Moment,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<Holder>,
    /// The verbs that are possible now.
    pub allowed: Vec<String>,
}

/// The tasks on one screen: how many, and who works on what.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TasksAtAGlance {
    pub ready: u64,
    pub active: u64,
    pub review: u64,
    pub blocked: u64,
    pub waiting: u64,
    pub parked: u64,
    pub done: u64,
    pub failed: u64,
    pub cancelled: u64,
    pub owned: Vec<ListedTask>,
}

fn glance(task: &Task, tally: &Tally, context: &Context) -> ListedTask {
    let held_back = task.state() == State::Open && tally.holds_back(task.phase);
    let (state, reason) = match held_back {
        true => (State::Blocked, phase_reason(tally, task.phase)),
        false => (task.state(), reason_of(task)),
    };
    let owner = task.owner().map(|owner| Worker {
        session: owner.session.clone(),
        name: owner.name.clone(),
        attempt: owner.attempt,
        token: owner.token,
        tree: owner.tree.clone(),
        since: owner.taken_at,
        expires_at: owner.expires_at,
        run_out: !owner.is_live(context),
    });
    ListedTask {
        task: task.task.clone(),
        title: task.title.clone(),
        state,
        reason,
        owner,
        attempt: task.standing.attempt,
        attempts_used: task.standing.attempts_used,
        max_attempts: task.max_attempts,
        priority: task.priority,
        since: task.standing.since,
        next_action: task.standing.next_action.clone(),
        author: task.standing.author.as_ref().map(|author| author.name.clone()),
        reviewers: task.reviewers().iter().map(|seat| seat.name.clone()).collect(),
        gates: task.standing.held.clone(),
        not_before: task.standing.not_before,
        phase: task.phase,
        role: task.role.clone(),
        labels: task.labels.clone(),
        paths: task.paths.clone(),
        after: task.after.clone(),
        pending: task.pending.clone(),
        unblocks: task.unblocks,
        offer: task.offer().cloned(),
    }
}

fn tally(view: &dyn View) -> Result<Tally, Refusal> {
    Ok(get::<Tally>(view, Tally::KEY)?.unwrap_or_default())
}

/// Tasks by state, label, role or owner.
pub fn list(
    workspace: &mut Workspace,
    actor: &Actor,
    wanted: &api::List,
) -> Result<TaskList, Failure> {
    let mine = match wanted.mine {
        true => Some(actor.session.clone().ok_or(Refusal::NoSession)?),
        false => None,
    };
    workspace.look(&Actor::default(), Observed::default(), |view, context| {
        let tally = tally(view)?;
        let states: Vec<State> = match wanted.state.as_slice() {
            [] => State::ALL.into_iter().filter(|one| wanted.all || !one.is_finished()).collect(),
            named => named.to_vec(),
        };
        let queries: Vec<Query> = match (&mine, &wanted.label) {
            (Some(session), _) => vec![Query::equal(task::BY_OWNER, session.as_str(), READ_MAX)],
            // Labels of finished tasks are not in an index.
            (None, Some(label)) if !states.iter().any(|state| state.is_finished()) => {
                vec![task::with_label(label, READ_MAX)]
            }
            _ => stored(&states).iter().map(|state| task::in_state(*state, READ_MAX)).collect(),
        };
        let all: Vec<Task> = scan_all(view, &queries)?;
        let mut found: Vec<ListedTask> =
            all.iter().map(|task| glance(task, &tally, context)).collect();
        found.retain(|task| {
            states.contains(&task.state)
                && wanted.label.as_ref().is_none_or(|label| task.labels.contains(label))
                && wanted.role.as_ref().is_none_or(|role| task.role.as_ref() == Some(role))
        });
        let rank = |state: State| State::ALL.iter().position(|one| *one == state);
        // Who works comes first, then in the order of service.
        let first = |task: &ListedTask| task.owner.is_none();
        found.sort_by_key(|task| (first(task), rank(task.state)));
        Ok(cut(found, wanted.limit))
    })
}

/// The states in which tasks shown as these may be stored.
fn stored(shown: &[State]) -> Vec<State> {
    let mut stored = shown.to_vec();
    if shown.contains(&State::Blocked) && !shown.contains(&State::Open) {
        stored.push(State::Open);
    }
    stored
}

fn cut(mut tasks: Vec<ListedTask>, limit: usize) -> TaskList {
    let more = tasks.len() > limit;
    tasks.truncate(limit);
    TaskList { tasks, more }
}

/// What the next take could have, in the order of service: offered tasks, sleepers whose time has
/// come, and attempts whose lease is over.
pub fn ready(workspace: &mut Workspace, limit: usize) -> Result<TaskList, Failure> {
    workspace.look(&Actor::default(), Observed::default(), |view, context| {
        let tally = tally(view)?;
        let queries = [
            task::all_of(task::READY, READ_MAX),
            task::due(task::BY_WAKING, context.now, READ_MAX),
            task::due(task::BY_LEASE, context.now, READ_MAX),
            task::all_of(task::IN_REVIEW, READ_MAX),
        ];
        let mut found: Vec<Task> = scan_all(view, &queries)?;
        let over = |task: &Task| task.seats().all(|seat| !seat.is_live(context));
        found.retain(|task| {
            over(task) && !tally.holds_back(task.phase) && task.at_rest() == State::Open
        });
        found.sort_by_key(Task::order);
        let listed = found.iter().map(|task| glance(task, &tally, context)).collect();
        Ok(cut(listed, limit))
    })
}

/// Tasks whose attempts are used up: those that wait for a person, and those that failed.
pub fn dead(workspace: &mut Workspace, limit: usize) -> Result<TaskList, Failure> {
    workspace.look(&Actor::default(), Observed::default(), |view, context| {
        let tally = tally(view)?;
        let mut found: Vec<Task> = scan(view, task::in_state(State::Waiting, READ_MAX))?;
        found.retain(|task| task.standing.exhausted);
        found.extend(scan::<Task>(view, task::in_state(State::Failed, READ_MAX))?);
        found.sort_by_key(|task| task.standing.since);
        let listed = found.iter().map(|task| glance(task, &tally, context)).collect();
        Ok(cut(listed, limit))
    })
}

/// What waits for other tasks, for a phase, or for something that was named.
pub fn blocked(workspace: &mut Workspace, limit: usize) -> Result<TaskList, Failure> {
    workspace.look(&Actor::default(), Observed::default(), |view, context| {
        let tally = tally(view)?;
        let mut found: Vec<Task> = scan(view, task::in_state(State::Blocked, READ_MAX))?;
        if tally.behind_phases() > 0 {
            let phased: Vec<Task> = scan(view, task::all_of(task::BY_PHASE, READ_MAX))?;
            let held = |task: &Task| task.state() == State::Open && tally.holds_back(task.phase);
            found.extend(phased.into_iter().filter(held));
        }
        found.sort_by_key(Task::order);
        let listed = found.iter().map(|task| glance(task, &tally, context)).collect();
        Ok(cut(listed, limit))
    })
}

/// Everything about one task.
pub fn show(workspace: &mut Workspace, text: &str) -> Result<ShownTask, Failure> {
    gating::look_by_itself(workspace, TaskId::parse(text).as_ref());
    workspace.look(&Actor::default(), Observed::default(), |view, context| {
        let id = TaskId::parse(text).map(|id| id.0).unwrap_or_default();
        let Some(task) = get::<Task>(view, &id)? else {
            return Err(near::unknown(view, text)?);
        };
        let kept = get::<Dossier>(view, &id)?;
        let dossier = kept.unwrap_or_else(|| Dossier::of(task.task.clone()));
        let children = scan::<Task>(view, Query::equal(task::BY_PARENT, &id, READ_MAX))?;
        let glance = glance(&task, &tally(view)?, context);
        let results = of_split(view, &task)?;
        let allowed = baton_core::tasks::allowed(glance.state);
        let handoffs = handoffs::chain_of(view, &dossier)?;
        let (report_done, report_not_done, result) = match dossier.report {
            Some(report) => (Some(report.done), Some(report.not_done), report.result),
            None => (None, None, None),
        };
        Ok(ShownTask {
            allowed: allowed.iter().map(|verb| (*verb).to_owned()).collect(),
            glance,
            body: dossier.body,
            report_done,
            report_not_done,
            result,
            attempts: dossier.attempts,
            feedback: dossier.feedback,
            submission: task.submission,
            handoffs,
            checkpoints: dossier.checkpoints,
            checks: dossier.checks,
            proven: dossier.proven,
            parent: task.parent,
            children: children.into_iter().map(|child| child.task).collect(),
            join: task.split.as_ref().map(|split| split.join),
            interface: task.interface,
            results,
            budget_usd: task.budget_usd,
            key: task.key,
            created_at: task.created_at,
            created_by: task.created_by,
        })
    })
}

pub fn at_a_glance(workspace: &mut Workspace) -> Result<TasksAtAGlance, Failure> {
    workspace.look(&Actor::default(), Observed::default(), |view, context| {
        let tally = tally(view)?;
        let active: Vec<Task> = match tally.count(State::Active) + tally.count(State::Review) {
            0 => Vec::new(),
            _ => scan(view, task::all_of(task::BY_OWNER, ACTIVE_SHOWN_MAX))?,
        };
        let mut owned: Vec<ListedTask> =
            active.iter().map(|task| glance(task, &tally, context)).collect();
        owned.sort_by_key(|task| task.task.number());
        Ok(TasksAtAGlance {
            ready: tally.ready(),
            active: tally.count(State::Active),
            review: tally.count(State::Review),
            blocked: tally.count(State::Blocked) + tally.behind_phases(),
            waiting: tally.count(State::Waiting),
            parked: tally.count(State::Parked),
            done: tally.count(State::Done),
            failed: tally.count(State::Failed),
            cancelled: tally.count(State::Cancelled),
            owned,
        })
    })
}
