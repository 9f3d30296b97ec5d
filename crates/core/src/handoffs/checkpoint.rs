//! Checkpoints: what is known of a task's work, saved by code.
//!
//! Called by hooks before an agent's memory is cut and whenever a session ends, so that an
//! interruption loses nothing even when the agent wrote nothing. Changes no state of the task.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::refused::Refused;
use super::{claims_of, known, part};
use crate::claim::Claim;
use crate::context::Context;
use crate::event::Event;
use crate::id::{TaskId, Token};
use crate::notices::Notice;
use crate::refusal::Refusal;
use crate::scene::Caller;
use crate::task::dossier::{Checkpoint, Dossier};
use crate::task::{self, State, Task};
use crate::tasks::{TEXT_BYTES_MAX, Table, fits};
use crate::time::Moment;
use crate::view::{Query, View, get, only};

/// How many of its active tasks one session saves at once.
const OWN_MAX: u32 = 16;

#[derive(Clone, Debug, Serialize)]
pub struct Request {
    /// This task, or every active one of the session.
    pub task: Option<String>,
    pub note: Option<String>,
    pub token: Option<Token>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Saved {
    pub saved: Vec<SavedTask>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<Notice>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SavedTask {
    pub task: TaskId,
    pub title: String,
    pub at: Moment,
    /// False when the tree could not be looked at.
    pub seen: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    pub changed: Vec<String>,
}

/// Saves what is known of the caller's work.
pub fn save(
    view: &dyn View,
    request: &Request,
    context: &Context,
) -> Result<(Vec<Event>, Saved), Refusal> {
    fits("note", request.note.as_deref(), TEXT_BYTES_MAX)?;
    let (caller, tasks) = match &request.task {
        Some(text) => {
            let table = Table::read(view, text, context)?;
            table.own("checkpoint", request.token, context)?;
            (table.caller.ok_or(Refusal::NoSession)?, vec![table.task])
        }
        None => {
            let me = context.actor.session.as_ref().ok_or(Refusal::NoSession)?;
            let own = Query::equal(task::BY_OWNER, me.as_str(), OWN_MAX);
            let (caller, answers) = Caller::read_with(view, context, &[own])?;
            let mut tasks: Vec<Task> = only(&answers[0])?;
            tasks.retain(|task| is_worked_on(task, context));
            if tasks.is_empty() {
                return Err(Refused::NoTask.into());
            }
            (caller, tasks)
        }
    };
    let own = claims_of(view, &caller.session.session)?;
    let mut events = Vec::new();
    let mut saved = Vec::new();
    for task in &tasks {
        let found = of(view, task, &own, request.note.clone(), context)?;
        let Some(Found { checkpoint, is_new }) = found else { continue };
        saved.push(SavedTask {
            task: task.task.clone(),
            title: task.title.clone(),
            at: checkpoint.at,
            seen: checkpoint.known.seen,
            commit: checkpoint.known.work.commit.clone(),
            changed: checkpoint.known.work.changed.clone(),
        });
        if is_new {
            events.push(Event::TaskCheckpointed { task: task.task.clone(), checkpoint });
        }
    }
    events.extend(caller.activity(context, &[]));
    Ok((events, Saved { saved, notices: caller.notices }))
}

fn is_worked_on(task: &Task, context: &Context) -> bool {
    task.state() == State::Active && task.owner().is_some_and(|owner| owner.is_live(context))
}

/// What is saved when a session ends or is seen to be dead, where its work was looked at.
pub(crate) fn at_end(
    view: &dyn View,
    tasks: &[Task],
    own: &[Claim],
    context: &Context,
) -> Result<Vec<Event>, Refusal> {
    let mut events = Vec::new();
    for task in tasks.iter().filter(|task| task.state() == State::Active) {
        if !context.observed.work.contains_key(&task.task) {
            continue;
        }
        let found = of(view, task, own, None, context)?;
        if let Some(Found { checkpoint, is_new: true }) = found {
            events.push(Event::TaskCheckpointed { task: task.task.clone(), checkpoint });
        }
    }
    Ok(events)
}

/// The last that there is, or is to be.
struct Found {
    checkpoint: Checkpoint,
    is_new: bool,
}

/// One that tells nothing more than the last is not another: a few are kept, and several hooks see
/// the same end.
fn of(
    view: &dyn View,
    task: &Task,
    own: &[Claim],
    note: Option<String>,
    context: &Context,
) -> Result<Option<Found>, Refusal> {
    let Some(owner) = task.owner() else {
        return Ok(None);
    };
    let dossier = get::<Dossier>(view, task.task.as_str())?;
    let dossier = dossier.unwrap_or_else(|| Dossier::of(task.task.clone()));
    let changed = context.observed.work.get(&task.task).map(|work| work.changed.as_slice());
    // Saving is never refused for how claims lie.
    let (claims, _) = part(view, task, changed.unwrap_or_default(), own, context)?;
    let known = known(view, task, owner, &dossier, &claims, context)?;
    let (by, attempt) = (owner.holder(), owner.attempt);
    let tells_nothing_more = |last: &&Checkpoint| {
        note.is_none() && last.by == by && last.attempt == attempt && last.known == known
    };
    let last = dossier.checkpoints.last().filter(tells_nothing_more).cloned();
    let is_new = last.is_none();
    let now = context.now;
    let checkpoint = last.unwrap_or(Checkpoint { at: now, by, attempt, note, known });
    Ok(Some(Found { checkpoint, is_new }))
}
