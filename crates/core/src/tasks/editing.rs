//! Changing what a task is: its words, its order, what it comes after.
//!
//! Owns the edit as it is stored. Refuses circles. Who works on a task and in which state it is do
//! not change here.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::refused::Refused;
use super::{
    AFTER_MAX, BODY_BYTES_MAX, Moved, TEXT_BYTES_MAX, TITLE_BYTES_MAX, Table, WORD_BYTES_MAX,
    adding, fits, graph, moved, near, says, word, wrong_state,
};
use crate::context::Context;
use crate::event::Event;
use crate::id::{TaskId, Token};
use crate::refusal::Refusal;
use crate::resource::Resource;
use crate::roles::giving;
use crate::task::{Move, Standing, State, Task, Usd};
use crate::view::View;

/// Whatever is given is changed; an empty role and phase 0 take it away.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Edit {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paths: Option<Vec<Resource>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_usd: Option<Usd>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_action: Option<String>,
}

impl Edit {
    pub(crate) fn apply(&self, task: &mut Task) {
        let edit = self.clone();
        task.title = edit.title.unwrap_or(std::mem::take(&mut task.title));
        task.priority = edit.priority.unwrap_or(task.priority);
        task.max_attempts = edit.max_attempts.unwrap_or(task.max_attempts);
        task.budget_usd = edit.budget_usd.or(task.budget_usd);
        task.paths = edit.paths.unwrap_or(std::mem::take(&mut task.paths));
        task.labels = edit.labels.unwrap_or(std::mem::take(&mut task.labels));
        if let Some(phase) = edit.phase {
            task.phase = Some(phase).filter(|phase| *phase > 0);
        }
        if let Some(role) = edit.role {
            task.role = Some(role).filter(|role| !role.is_empty());
        }
        if let Some(next) = edit.next_action {
            task.standing.next_action = Some(next).filter(|next| !next.is_empty());
        }
    }

    fn validate(&self) -> Result<(), Refusal> {
        if let Some(title) = &self.title {
            says("title", title, TITLE_BYTES_MAX)?;
        }
        fits("body", self.body.as_deref(), BODY_BYTES_MAX)?;
        fits("next action", self.next_action.as_deref(), TEXT_BYTES_MAX)?;
        if let Some(role) = self.role.as_ref().filter(|role| !role.is_empty()) {
            word("role", role, WORD_BYTES_MAX)?;
        }
        adding::shape(self.priority, self.phase.filter(|phase| *phase > 0), self.max_attempts)?;
        let labels = self.labels.as_deref().unwrap_or_default();
        adding::labels_and_paths(labels, self.paths.as_deref().unwrap_or_default())
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct Request {
    pub task: String,
    pub edit: Edit,
    /// It comes after these too.
    pub after: Vec<String>,
    pub token: Option<Token>,
}

/// Changes a task. Another's, only a person may.
pub fn update(
    view: &dyn View,
    request: &Request,
    context: &Context,
) -> Result<(Vec<Event>, Moved), Refusal> {
    request.edit.validate()?;
    giving::known(view, request.edit.role.as_deref().filter(|role| !role.is_empty()))?;
    if request.edit == Edit::default() && request.after.is_empty() {
        return Err(Refused::SaysNothing { what: "change" }.into());
    }
    let table = Table::read(view, &request.task, context)?;
    table.may_change("update", request.token, context)?;
    if table.task.state().is_finished() {
        return Err(table.wrong_state("update"));
    }
    let raises = request.edit.max_attempts.is_some_and(|max| max > table.task.max_attempts);
    if raises && table.task.standing.attempts_used > 0 && !context.actor.person {
        let what = format!("more attempts for {}, which has used some,", table.task.task);
        return Err(Refusal::NeedsPerson { what });
    }
    let mut events = Vec::new();
    let id = table.task.task.clone();
    if request.edit != Edit::default() {
        events.push(Event::TaskEdited { task: id, edit: request.edit.clone() });
    }
    let ties = tie(view, &table.task, &request.after)?;
    let blocks = !ties.pending.is_empty() && table.task.state() == State::Open;
    events.extend(ties.events);
    let mut state = table.task.state();
    if blocks {
        state = State::Blocked;
        let standing = Standing { state, since: context.now, ..table.task.standing.clone() };
        events.push(moved(&table.task, Move::Blocked, standing));
    }
    let notices = table.activity(context, &mut events);
    let mut task = table.task;
    request.edit.apply(&mut task);
    Ok((events, Moved { state, notices, ..told(&task) }))
}

/// A task as it is told after a change.
pub(super) fn told(task: &Task) -> Moved {
    Moved {
        task: task.task.clone(),
        title: task.title.clone(),
        state: task.state(),
        attempt: task.standing.attempt,
        attempts_used: task.standing.attempts_used,
        max_attempts: task.max_attempts,
        not_before: task.standing.not_before,
        woken: Vec::new(),
        released: Vec::new(),
        notices: Vec::new(),
    }
}

/// New dependencies of a task.
pub(super) struct Ties {
    pub(super) events: Vec<Event>,
    /// Those that are not finished.
    pub(super) pending: Vec<TaskId>,
}

/// Lets `task` come after these too.
pub(super) fn tie(view: &dyn View, task: &Task, texts: &[String]) -> Result<Ties, Refusal> {
    let mut after: Vec<TaskId> = Vec::new();
    for text in texts {
        let Some(id) = TaskId::parse(text) else {
            return Err(near::unknown(view, text)?);
        };
        if !task.pending.contains(&id) && !after.contains(&id) {
            after.push(id);
        }
    }
    if task.after.len() + after.len() > AFTER_MAX {
        return Err(Refused::TooMany { what: "tasks to come after", max: AFTER_MAX }.into());
    }
    let found = graph::tasks(view, &after)?;
    if let Some(missing) = after.iter().find(|id| found.iter().all(|task| task.task != **id)) {
        return Err(near::unknown(view, missing.as_str())?);
    }
    graph::refuse_circle(view, &task.task, &after)?;
    let unfinished = found.iter().filter(|task| !task.state().is_finished());
    let pending: Vec<TaskId> = unfinished.map(|task| task.task.clone()).collect();
    let mut events = Vec::new();
    if !after.is_empty() {
        let (id, waits) = (task.task.clone(), pending.clone());
        events.push(Event::TaskTied { task: id, after, pending: waits });
    }
    if !pending.is_empty() {
        events.extend(graph::weigh_tied(view, task, &pending)?);
    }
    Ok(Ties { events, pending })
}

/// The refusal to do something with a task in this state.
pub(super) fn refuse(task: &Task, verb: &'static str) -> Refusal {
    wrong_state(task, verb, None)
}
