//! Dividing a task into parts that others do.
//!
//! Owns what a split may be. The parts are tasks like any other; the whole waits for them without
//! an owner, so that whoever divided it is free and nothing of it can die meanwhile. What happens
//! when parts end is in `joining`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::adding::{self, made};
use super::ending::leave;
use super::refused::{Brief, Refused};
use super::{Moved, Table, WORD_BYTES_MAX, graph, moved, word, wrong_state};
use crate::context::Context;
use crate::event::Event;
use crate::evolve::evolve;
use crate::id::{TaskId, Token};
use crate::overlay::Overlay;
use crate::refusal::Refusal;
use crate::resource::Resource;
use crate::roles::giving;
use crate::task::split::{Join, OnFailure, Split, Stage};
use crate::task::tally::Tally;
use crate::task::{self, Move, Standing, State, Task};
use crate::view::{Query, View, get, only};

/// The most parts of one split.
pub const PARTS_MAX: usize = 100;
/// How deep splits may stand in each other.
pub const DEPTH_MAX: usize = 8;

/// One part, its paths settled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Part {
    pub title: String,
    pub body: Option<String>,
    pub paths: Vec<Resource>,
    pub role: Option<String>,
    pub priority: Option<u8>,
    pub key: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Request {
    pub task: String,
    pub parts: Vec<Part>,
    pub sequence: bool,
    pub join: Join,
    pub on_failure: OnFailure,
    pub then: Option<String>,
    pub interface: Option<String>,
    pub token: Option<Token>,
}

/// The whole, and what it was divided into.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Divided {
    #[serde(flatten)]
    pub whole: Moved,
    pub parts: Vec<Brief>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub then: Option<Brief>,
    pub join: Join,
}

/// Divides a task: the caller's own, or one that nobody works on.
pub fn split(
    view: &dyn View,
    request: &Request,
    context: &Context,
) -> Result<(Vec<Event>, Divided), Refusal> {
    validate(request)?;
    for part in &request.parts {
        giving::known(view, part.role.as_deref())?;
    }
    let table = Table::read(view, &request.task, context)?;
    let whole = &table.task;
    match whole.state() {
        State::Active => table.own("split", request.token, context).map(|_| ())?,
        State::Open | State::Parked | State::Blocked if !whole.is_held() => {
            table.may_change("split", request.token, context)?;
        }
        _ => return Err(wrong_state(whole, "split", None)),
    }
    refuse_depth(view, whole)?;
    refuse_keys(view, request)?;
    let mut maker = Maker::read(view, &table)?;
    let parts = maker.parts(request, context);
    let then = request.then.as_ref().map(|title| maker.then(title, context));
    let had_it = whole.owner().map(task::Owner::holder);
    let by = had_it.or_else(|| table.caller.as_ref().map(|caller| caller.holder(context)));
    let split = Split {
        parts: parts.iter().map(|part| part.task.clone()).collect(),
        then: then.as_ref().map(|then| then.task.clone()),
        join: request.join,
        on_failure: request.on_failure,
        sequence: request.sequence,
        by,
        at: context.now,
        ended: std::collections::BTreeMap::new(),
        stage: Stage::Parts,
        outcome: None,
    };
    let bodies = request.parts.iter().map(|part| part.body.clone()).chain([None]);
    let filed = parts.iter().chain(&then).zip(bodies);
    let mut events: Vec<Event> =
        filed.map(|(task, body)| Event::TaskAdded { task: Box::new(task.clone()), body }).collect();
    events.push(Event::TaskSplit { task: whole.task.clone(), split });
    let standing = Standing {
        state: State::Blocked,
        since: context.now,
        owner: None,
        not_before: None,
        why: None,
        ..whole.standing.clone()
    };
    events.push(moved(whole, Move::Split, standing));
    events.extend(weigh(view, &whole.pending, &events)?);
    let (events, whole) = leave(view, &table, events, context)?;
    let then = then.as_ref().map(Brief::from);
    let parts = parts.iter().map(Brief::from).collect();
    Ok((events, Divided { whole, parts, then, join: request.join }))
}

/// The refusal to tell results of a task that has no parts.
pub fn not_divided(task: &Task) -> Refusal {
    Refused::NotDivided { task: Brief::from(task) }.into()
}

fn validate(request: &Request) -> Result<(), Refusal> {
    if request.parts.is_empty() {
        return Err(Refused::SaysNothing { what: "split" }.into());
    }
    adding::many("parts", request.parts.len(), PARTS_MAX)?;
    for part in &request.parts {
        adding::validate(&filing(part))?;
    }
    if let Some(then) = &request.then {
        let title = then.clone();
        adding::validate(&adding::Request { title, ..adding::Request::default() })?;
    }
    if let Some(name) = &request.interface {
        word("interface", name, WORD_BYTES_MAX)?;
    }
    let parts = request.parts.len();
    match request.join {
        Join::AtLeast(count) if count == 0 || count as usize > parts => Err(Refusal::OutOfRange {
            what: "join",
            given: count.to_string(),
            allowed: format!("all, any, or 1 to {parts}, the number of parts"),
        }),
        _ => Ok(()),
    }
}

fn filing(part: &Part) -> adding::Request {
    let Part { title, body, paths, role, priority, key } = part.clone();
    adding::Request { title, body, paths, role, priority, key, ..adding::Request::default() }
}

fn refuse_depth(view: &dyn View, whole: &Task) -> Result<(), Refusal> {
    let mut above = whole.parent.clone();
    for _ in 1..DEPTH_MAX {
        let Some(parent) = above else { return Ok(()) };
        above = get::<Task>(view, parent.as_str())?.and_then(|task| task.parent);
    }
    match above {
        None => Ok(()),
        Some(_) => Err(Refused::TooMany { what: "splits in each other", max: DEPTH_MAX }.into()),
    }
}

/// One key is one task: a part is always a new one.
fn refuse_keys(view: &dyn View, request: &Request) -> Result<(), Refusal> {
    let keys: Vec<&String> = request.parts.iter().filter_map(|part| part.key.as_ref()).collect();
    for (place, key) in keys.iter().enumerate() {
        if keys[..place].contains(key) {
            return Err(Refused::KeyTaken { key: (*key).clone(), task: None }.into());
        }
    }
    let queries: Vec<Query> = keys.iter().map(|key| Query::equal(task::BY_KEY, key, 1)).collect();
    if queries.is_empty() {
        return Ok(());
    }
    for (key, rows) in keys.iter().zip(view.read(&queries)?) {
        if let Some(task) = only::<Task>(&rows)?.first().map(Brief::from) {
            return Err(Refused::KeyTaken { key: (*key).clone(), task: Some(task) }.into());
        }
    }
    Ok(())
}

/// What the whole came after now unblocks its parts as well.
fn weigh(view: &dyn View, ids: &[TaskId], events: &[Event]) -> Result<Option<Event>, Refusal> {
    if ids.is_empty() {
        return Ok(None);
    }
    let mut overlay = Overlay::new(view);
    events.iter().try_for_each(|event| evolve(&mut overlay, event))?;
    graph::weigh_anew(&overlay, ids)
}

/// Makes the tasks of a split, numbered one after the other.
struct Maker<'a> {
    table: &'a Table,
    tally: Tally,
    /// What the whole comes after: so do its parts.
    before: Vec<Task>,
}

impl<'a> Maker<'a> {
    fn read(view: &dyn View, table: &'a Table) -> Result<Self, Refusal> {
        let tally = get::<Tally>(view, Tally::KEY)?.unwrap_or_default();
        let before = graph::tasks(view, &table.task.pending)?;
        Ok(Self { table, tally, before })
    }

    fn parts(&mut self, request: &Request, context: &Context) -> Vec<Task> {
        let count = request.parts.len();
        let mut parts: Vec<Task> = Vec::with_capacity(count);
        for (place, part) in request.parts.iter().enumerate() {
            let mut after = self.before.clone();
            if request.sequence {
                after.extend(parts.last().cloned());
            }
            let behind = if request.sequence { count - 1 - place } else { 0 };
            let task = Task {
                unblocks: u32::try_from(behind).unwrap_or(u32::MAX),
                interface: request.interface.clone(),
                ..self.made(filing(part), &after, context)
            };
            parts.push(task);
        }
        parts
    }

    fn then(&mut self, title: &str, context: &Context) -> Task {
        let paths = self.table.task.paths.clone();
        let request =
            adding::Request { title: title.to_owned(), paths, ..adding::Request::default() };
        let then = self.made(request, &[], context);
        Task {
            awaits: Some(self.table.task.task.clone()),
            standing: Standing::new(State::Blocked, context.now),
            ..then
        }
    }

    /// A task that is like the whole in everything that was not said.
    fn made(&mut self, mut request: adding::Request, after: &[Task], context: &Context) -> Task {
        let whole = &self.table.task;
        request.priority = request.priority.or(Some(whole.priority));
        request.role = request.role.or_else(|| whole.role.clone());
        request.phase = whole.phase;
        request.max_attempts = Some(whole.max_attempts);
        let task = made(&request, &self.tally, after, context);
        self.tally.made += 1;
        let by = self.table.caller.as_ref().map(|caller| caller.holder(context));
        Task { created_by: by, parent: Some(whole.task.clone()), ..task }
    }
}
