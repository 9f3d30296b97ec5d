//! Filing a task.
//!
//! Owns what a new task may be. Invariants: one key is one task, however often it is filed; a
//! number is given out once, by the event itself; a task never waits for itself, because what it
//! comes after exists before it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::refused::Refused;
use super::similar::{self, Similar};
use super::{
    AFTER_MAX, ATTEMPTS_DEFAULT, ATTEMPTS_MAX, BODY_BYTES_MAX, KEY_BYTES_MAX, LABELS_MAX,
    PATHS_MAX, PHASE_MAX, PRIORITY_DEFAULT, PRIORITY_MAX, TITLE_BYTES_MAX, WORD_BYTES_MAX,
    caller_with, fits, graph, near, says, word,
};
use crate::context::Context;
use crate::event::Event;
use crate::id::TaskId;
use crate::notices::Notice;
use crate::refusal::Refusal;
use crate::resource::Resource;
use crate::roles::giving;
use crate::scene::Caller;
use crate::task::tally::Tally;
use crate::task::{self, Standing, State, Task, Usd};
use crate::view::{Query, Row, View, only};

/// How many old titles one filing forgets.
const FORGOTTEN_MAX: u32 = 16;

/// A task to be filed, its paths settled.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Request {
    pub title: String,
    pub body: Option<String>,
    pub priority: Option<u8>,
    pub after: Vec<String>,
    pub phase: Option<u16>,
    pub paths: Vec<Resource>,
    pub role: Option<String>,
    pub labels: Vec<String>,
    pub max_attempts: Option<u32>,
    pub budget_usd: Option<Usd>,
    pub key: Option<String>,
    /// Refuse when a like one is filed already.
    pub unique: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Added {
    pub task: TaskId,
    pub title: String,
    pub state: State,
    /// It was filed before under the same key; nothing was changed.
    pub known: bool,
    /// Unfinished or lately finished tasks that are close in words.
    pub similar: Vec<Similar>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<Notice>,
}

pub fn add(
    view: &dyn View,
    request: &Request,
    context: &Context,
) -> Result<(Vec<Event>, Added), Refusal> {
    validate(request)?;
    giving::known(view, request.role.as_deref())?;
    let around = Around::read(view, request, context)?;
    let Around { caller, tally, known, after, similar, forgotten } = around;
    let notices = caller.as_ref().map(|caller| caller.notices.clone()).unwrap_or_default();
    let activity = |events: &mut Vec<Event>| {
        events.extend(caller.iter().flat_map(|caller| caller.activity(context, &[])));
    };
    if let Some(known) = known {
        let mut events = Vec::new();
        activity(&mut events);
        let Task { task, title, standing, .. } = known;
        let state = standing.state;
        return Ok((events, Added { task, title, state, known: true, similar, notices }));
    }
    if request.unique && !similar.is_empty() {
        return Err(Refused::Similar { similar }.into());
    }
    let by = caller.as_ref().map(|caller| caller.holder(context));
    let task = Task { created_by: by, ..made(request, &tally, &after, context) };
    let (id, title) = (task.task.clone(), task.title.clone());
    // As the next take will see it: its phase may hold it back.
    let state = if tally.holds_back(task.phase) { State::Blocked } else { task.state() };
    let pending = task.pending.clone();
    let mut events = vec![Event::TaskAdded { task: Box::new(task), body: request.body.clone() }];
    events.extend(graph::weigh_leaf(view, &pending)?);
    if !forgotten.is_empty() {
        events.push(Event::TasksForgotten { tasks: forgotten });
    }
    activity(&mut events);
    Ok((events, Added { task: id, title, state, known: false, similar, notices }))
}

/// What a filing looks at.
struct Around {
    caller: Option<Caller>,
    tally: Tally,
    known: Option<Task>,
    after: Vec<Task>,
    similar: Vec<Similar>,
    forgotten: Vec<TaskId>,
}

impl Around {
    fn read(view: &dyn View, request: &Request, context: &Context) -> Result<Self, Refusal> {
        let key = request.key.clone().unwrap_or_default();
        let mut queries = vec![
            Query::get::<Tally>(Tally::KEY),
            Query::equal(task::BY_KEY, &key, u32::from(request.key.is_some())),
            task::due(task::BY_FINISH, context.now - similar::REMEMBERED, FORGOTTEN_MAX),
        ];
        let head = queries.len();
        for text in &request.after {
            let id = TaskId::parse(text).map(|id| id.0).unwrap_or_default();
            queries.push(Query::get::<Task>(id));
        }
        queries.extend(similar::queries(&request.title));
        let (caller, answers) = caller_with(view, &queries, context)?;
        let mut after: Vec<Task> = Vec::with_capacity(request.after.len());
        for (text, rows) in request.after.iter().zip(&answers[head..]) {
            match only::<Task>(rows)?.pop() {
                None => return Err(near::unknown(view, text)?),
                Some(task) if after.iter().all(|one| one.task != task.task) => after.push(task),
                Some(_) => {}
            }
        }
        let titles: &[Vec<Row>] = &answers[head + request.after.len()..];
        let forgotten = only::<Task>(&answers[2])?.into_iter().map(|task| task.task).collect();
        Ok(Self {
            caller,
            tally: only::<Tally>(&answers[0])?.pop().unwrap_or_default(),
            known: only::<Task>(&answers[1])?.pop(),
            after,
            similar: similar::among(&request.title, titles, context.now)?,
            forgotten,
        })
    }
}

pub(super) fn made(request: &Request, tally: &Tally, after: &[Task], context: &Context) -> Task {
    let waits: Vec<&Task> = after.iter().filter(|task| !task.state().is_finished()).collect();
    let state = if waits.is_empty() { State::Open } else { State::Blocked };
    let mut labels = request.labels.clone();
    labels.sort_unstable();
    labels.dedup();
    Task {
        task: TaskId::numbered(tally.made + 1),
        title: request.title.clone(),
        priority: request.priority.unwrap_or(PRIORITY_DEFAULT),
        phase: request.phase,
        paths: request.paths.clone(),
        role: request.role.clone(),
        labels,
        max_attempts: request.max_attempts.unwrap_or(ATTEMPTS_DEFAULT),
        budget_usd: request.budget_usd,
        key: request.key.clone(),
        created_at: context.now,
        created_by: None,
        standing: Standing::new(state, context.now),
        after: after.iter().map(|task| task.task.clone()).collect(),
        pending: waits.into_iter().map(|task| task.task.clone()).collect(),
        unblocks: 0,
        parent: None,
        split: None,
        awaits: None,
        interface: None,
        submission: None,
        remembered: true,
    }
}

pub(super) fn validate(request: &Request) -> Result<(), Refusal> {
    says("title", &request.title, TITLE_BYTES_MAX)?;
    fits("body", request.body.as_deref(), BODY_BYTES_MAX)?;
    if let Some(key) = &request.key {
        word("key", key, KEY_BYTES_MAX)?;
    }
    if let Some(role) = &request.role {
        word("role", role, WORD_BYTES_MAX)?;
    }
    many("tasks to come after", request.after.len(), AFTER_MAX)?;
    shape(request.priority, request.phase, request.max_attempts)?;
    labels_and_paths(&request.labels, &request.paths)
}

pub(super) fn labels_and_paths(labels: &[String], paths: &[Resource]) -> Result<(), Refusal> {
    labels.iter().try_for_each(|label| word("label", label, WORD_BYTES_MAX))?;
    many("labels", labels.len(), LABELS_MAX)?;
    many("paths", paths.len(), PATHS_MAX)
}

pub(super) fn many(what: &'static str, given: usize, max: usize) -> Result<(), Refusal> {
    match given > max {
        true => Err(Refused::TooMany { what, max }.into()),
        false => Ok(()),
    }
}

/// The numbers of a task are within their ranges.
pub(super) fn shape(
    priority: Option<u8>,
    phase: Option<u16>,
    max_attempts: Option<u32>,
) -> Result<(), Refusal> {
    let range = |what, given: Option<u32>, min: u32, max: u32| match given {
        Some(given) if !(min..=max).contains(&given) => Err(Refusal::OutOfRange {
            what,
            given: given.to_string(),
            allowed: format!("{min} to {max}"),
        }),
        _ => Ok(()),
    };
    range("priority", priority.map(u32::from), 0, u32::from(PRIORITY_MAX))?;
    range("phase", phase.map(u32::from), 1, u32::from(PHASE_MAX))?;
    range("max-attempts", max_attempts, 1, ATTEMPTS_MAX)
}
