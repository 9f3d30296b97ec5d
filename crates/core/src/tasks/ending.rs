//! How an attempt ends: done, failed, put aside, blocked; and how a task ends or begins anew.
//!
//! Every verb of an owner checks its token in the deciding transaction, so that an attempt that is
//! over changes nothing. Invariant (S7): a task that is done is not done again; only `reopen`
//! makes it open, and that is another event.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::editing::{Edit, refuse, tie, told};
use super::evidence::{self, Facts};
use super::refused::Refused;
use super::reviewing;
use super::{
    Moved, REPORT_BYTES_MAX, RESULT_BYTES_MAX, TEXT_BYTES_MAX, Table, finish, fits, follow, graph,
    let_go, lose, moved, says, shift,
};
use crate::context::Context;
use crate::event::Event;
use crate::gates::deciding;
use crate::id::{TaskId, Token};
use crate::refusal::Refusal;
use crate::task::dossier::Report;
use crate::task::{Move, Standing, State, Task};
use crate::time::{Moment, Span};
use crate::view::View;

/// The first back-off after a rate limit or an expired login; each further one is twice as long.
pub const BACK_OFF_FIRST: Span = Span::minutes(1);
pub const BACK_OFF_MAX: Span = Span::hours(1);
/// A task can be parked for so long at the most.
pub const PARKED_MAX: Span = Span::days(365);

#[derive(Clone, Debug, Serialize)]
pub struct Done {
    pub task: String,
    pub report_done: String,
    pub report_not_done: String,
    pub result: Option<Value>,
    /// What git and the tree say, where the policy asks for evidence.
    pub facts: Facts,
    pub token: Option<Token>,
}

/// The owner finished the task.
pub fn done(
    view: &dyn View,
    request: &Done,
    context: &Context,
) -> Result<(Vec<Event>, Moved), Refusal> {
    says("report of what is done", &request.report_done, REPORT_BYTES_MAX)?;
    says("report of what is not done", &request.report_not_done, REPORT_BYTES_MAX)?;
    let result = request.result.as_ref().map(Value::to_string);
    fits("result", result.as_deref(), RESULT_BYTES_MAX)?;
    let table = Table::read(view, &request.task, context)?;
    table.own("done", request.token, context)?;
    if table.task.state() != State::Active {
        return Err(table.wrong_state("done"));
    }
    let report = Report {
        done: request.report_done.clone(),
        not_done: request.report_not_done.clone(),
        result: request.result.clone(),
    };
    let mut events = vec![Event::TaskReported { task: table.task.task.clone(), report }];
    events.extend(evidence::shown(view, &table, &request.facts, context)?);
    conclude(view, &table, Move::Done, State::Done, None, events, context)
}

/// Ends a task for good: what follows is the same however it ends.
fn conclude(
    view: &dyn View,
    table: &Table,
    how: Move,
    state: State,
    why: Option<String>,
    mut events: Vec<Event>,
    context: &Context,
) -> Result<(Vec<Event>, Moved), Refusal> {
    let task = &table.task;
    let mut over = task.clone();
    let standing = Standing {
        state,
        since: context.now,
        blocked_on: None,
        why,
        next_action: None,
        ..task.standing.free()
    };
    deciding::moot(task, &format!("{} is {}", task.task, state.name()), &mut events, context);
    if matches!(task.state(), State::Review | State::Waiting) {
        reviewing::end_submission(&mut over, false, &mut events);
    }
    shift(&mut over, how, standing, &mut events);
    let (let_go, released) = let_go(view, task, context)?;
    events.extend(let_go);
    let (followed, mut woken) = finish(view, task, context)?;
    events.extend(followed);
    let notices = table.activity(context, &mut events);
    woken.extend(follow(view, &mut events, context)?);
    Ok((events, Moved { state, woken, released, notices, ..told(task) }))
}

/// Why an attempt ended without a result. Only a failure counts as an attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    #[default]
    Failed,
    RateLimited,
    Auth,
    Killed,
}

#[derive(Clone, Debug, Serialize)]
pub struct Fail {
    pub task: String,
    pub why: String,
    pub class: Class,
    pub token: Option<Token>,
}

/// The owner gives up this attempt.
pub fn fail(
    view: &dyn View,
    request: &Fail,
    context: &Context,
) -> Result<(Vec<Event>, Moved), Refusal> {
    says("reason", &request.why, TEXT_BYTES_MAX)?;
    let table = Table::read(view, &request.task, context)?;
    table.own("fail", request.token, context)?;
    if table.task.state() != State::Active {
        return Err(table.wrong_state("fail"));
    }
    let mut task = table.task.clone();
    let mut events = Vec::new();
    let how = match request.class {
        Class::Failed => {
            lose(view, &mut task, Move::Failed, &request.why, &mut events, context)?;
            return leave(view, &table, events, context);
        }
        Class::RateLimited => Move::RateLimited,
        Class::Auth => Move::Auth,
        Class::Killed => Move::Killed,
    };
    events.push(hold_up(&task, how, &request.why, context));
    leave(view, &table, events, context)
}

/// No attempt: it is offered again after a while that doubles each time.
fn hold_up(task: &Task, how: Move, why: &str, context: &Context) -> Event {
    let doubled = BACK_OFF_FIRST.0.saturating_mul(1 << task.standing.held_up.min(16));
    let standing = Standing {
        state: State::Parked,
        since: context.now,
        not_before: Some(context.now + Span(doubled.min(BACK_OFF_MAX.0))),
        why: Some(why.to_owned()),
        held_up: task.standing.held_up.saturating_add(1),
        ..task.standing.free()
    };
    moved(task, how, standing)
}

/// The owner lets go of a task that goes on: what it claimed for it is free.
pub(super) fn leave(
    view: &dyn View,
    table: &Table,
    mut events: Vec<Event>,
    context: &Context,
) -> Result<(Vec<Event>, Moved), Refusal> {
    let (let_go, released) = let_go(view, &table.task, context)?;
    events.extend(let_go);
    let mut task = table.task.clone();
    for event in &events {
        if let Event::TaskMoved { task: id, standing, .. } = event
            && *id == task.task
        {
            task.standing = standing.clone();
        }
    }
    let notices = table.activity(context, &mut events);
    let woken = follow(view, &mut events, context)?;
    Ok((events, Moved { woken, released, notices, ..told(&task) }))
}

#[derive(Clone, Debug, Serialize)]
pub struct Park {
    pub task: String,
    /// What is to be done next, for whoever goes on.
    pub next: String,
    /// It comes back by itself after this long.
    pub back_in: Option<Span>,
    pub token: Option<Token>,
}

/// Puts a task aside: its own, or one that nobody works on.
pub fn park(
    view: &dyn View,
    request: &Park,
    context: &Context,
) -> Result<(Vec<Event>, Moved), Refusal> {
    says("next action", &request.next, TEXT_BYTES_MAX)?;
    if let Some(given) = request.back_in.filter(|given| *given > PARKED_MAX) {
        let (given, allowed) = (given.to_string(), format!("at most {PARKED_MAX}"));
        return Err(Refusal::OutOfRange { what: "time", given, allowed });
    }
    let table = Table::read(view, &request.task, context)?;
    let task = &table.task;
    match task.state() {
        State::Open | State::Parked if task.owner().is_none() => {
            table.may_change("park", request.token, context)?;
        }
        _ => {
            table.own("park", request.token, context)?;
            if task.state() != State::Active {
                return Err(table.wrong_state("park"));
            }
        }
    }
    let standing = Standing {
        state: State::Parked,
        since: context.now,
        not_before: request.back_in.map(|span| context.now + span),
        why: None,
        next_action: Some(request.next.clone()),
        ..task.standing.free()
    };
    let event = moved(task, Move::Parked, standing);
    leave(view, &table, vec![event], context)
}

#[derive(Clone, Debug, Serialize)]
pub struct Block {
    pub task: String,
    /// A task it waits for, or what it waits for in words.
    pub on: String,
    pub token: Option<Token>,
}

/// A task cannot go on: its own, or one that nobody works on.
pub fn block(
    view: &dyn View,
    request: &Block,
    context: &Context,
) -> Result<(Vec<Event>, Moved), Refusal> {
    says("reason", &request.on, TEXT_BYTES_MAX)?;
    let table = Table::read(view, &request.task, context)?;
    let task = &table.task;
    match task.state() {
        State::Active => table.own("block", request.token, context).map(|_| ())?,
        State::Open | State::Blocked | State::Parked => {
            table.may_change("block", request.token, context)?;
        }
        _ => return Err(refuse(task, "block")),
    }
    let mut standing =
        Standing { state: State::Blocked, since: context.now, why: None, ..task.standing.free() };
    let mut events = Vec::new();
    if let Some(on) = TaskId::parse(&request.on) {
        let ties = tie(view, task, std::slice::from_ref(&request.on))?;
        if ties.pending.is_empty() && !task.pending.contains(&on) {
            // It is finished: there is nothing to wait for.
            let finished = graph::tasks(view, &[on])?;
            return Err(finished.first().map_or(Refusal::Empty, |on| refuse(on, "be waited for")));
        }
        events.extend(ties.events);
    } else {
        standing.blocked_on = Some(request.on.clone());
    }
    events.push(moved(task, Move::Blocked, standing));
    leave(view, &table, events, context)
}

#[derive(Clone, Debug, Serialize)]
pub struct Change {
    pub task: String,
    pub why: Option<String>,
    pub token: Option<Token>,
}

/// The task will not be done. Another's, only a person may cancel.
pub fn cancel(
    view: &dyn View,
    request: &Change,
    context: &Context,
) -> Result<(Vec<Event>, Moved), Refusal> {
    fits("reason", request.why.as_deref(), TEXT_BYTES_MAX)?;
    let table = Table::read(view, &request.task, context)?;
    table.may_change("cancel", request.token, context)?;
    if table.task.state().is_finished() {
        return Err(table.wrong_state("cancel"));
    }
    if table.task.state() == State::Waiting && !context.actor.person {
        let what = format!("cancelling {}, which waits for a person,", table.task.task);
        return Err(Refusal::NeedsPerson { what });
    }
    let why = request.why.clone();
    conclude(view, &table, Move::Cancelled, State::Cancelled, why, Vec::new(), context)
}

/// Makes a task open again that was finished, parked or blocked by words. What was woken by its
/// end stays awake. Reviving one that failed is a person's.
pub fn reopen(
    view: &dyn View,
    request: &Change,
    context: &Context,
) -> Result<(Vec<Event>, Moved), Refusal> {
    fits("reason", request.why.as_deref(), TEXT_BYTES_MAX)?;
    let table = Table::read(view, &request.task, context)?;
    table.may_change("reopen", request.token, context)?;
    let task = &table.task;
    match task.state() {
        State::Failed | State::Cancelled if spent(task) && !context.actor.person => {
            return Err(revive_needs_person(task));
        }
        State::Waiting if !context.actor.person => {
            let what = format!("going on with {}, which waits for a person,", task.task);
            return Err(Refusal::NeedsPerson { what });
        }
        State::Done | State::Cancelled | State::Failed | State::Parked | State::Waiting => {}
        State::Blocked if task.standing.blocked_on.is_some() => {}
        _ => return Err(table.wrong_state("reopen")),
    }
    let mut events = Vec::new();
    deciding::moot(task, "a person reopened it", &mut events, context);
    let pending = waits_again(view, task, &mut events)?;
    // Cancelling and reopening must not be a way around the number of attempts.
    let again = match task.state() {
        State::Done | State::Failed => true,
        State::Cancelled => context.actor.person,
        _ => false,
    };
    let still = task.awaits.is_some() || task.waits_for_parts();
    let standing = Standing {
        state: if pending.is_empty() && !still { State::Open } else { State::Blocked },
        attempts_used: if again { 0 } else { task.standing.attempts_used },
        blocked_on: None,
        since: context.now,
        why: request.why.clone(),
        ..task.standing.free()
    };
    let mut after = task.clone();
    after.standing = standing.clone();
    events.push(moved(task, Move::Reopened, standing));
    let notices = table.activity(context, &mut events);
    Ok((events, Moved { notices, ..told(&after) }))
}

fn spent(task: &Task) -> bool {
    task.state() == State::Failed || task.standing.attempts_used >= task.max_attempts
}

fn revive_needs_person(task: &Task) -> Refusal {
    let what = format!("reviving {}, whose attempts are used up,", task.task);
    Refusal::NeedsPerson { what }
}

#[derive(Clone, Debug, Serialize)]
pub struct Revive {
    pub task: String,
    /// So many attempts from now on; as many as it had when not given.
    pub attempts: Option<u32>,
    pub why: String,
}

/// A person gives a task new attempts that had used up its own.
pub fn revive(
    view: &dyn View,
    request: &Revive,
    context: &Context,
) -> Result<(Vec<Event>, Moved), Refusal> {
    says("reason", &request.why, TEXT_BYTES_MAX)?;
    super::adding::shape(None, None, request.attempts)?;
    let table = Table::read(view, &request.task, context)?;
    if !context.actor.person {
        return Err(revive_needs_person(&table.task));
    }
    if table.task.state() != State::Failed && !table.task.standing.exhausted {
        return Err(table.wrong_state("revive"));
    }
    let mut events = Vec::new();
    let mut task = table.task.clone();
    deciding::moot(&task, "a person revived it", &mut events, context);
    revived(&mut task, request.attempts, &request.why, &mut events, context);
    let notices = table.activity(context, &mut events);
    Ok((events, Moved { notices, ..told(&task) }))
}

/// It begins anew, with everything that was said about it.
pub(crate) fn revived(
    task: &mut Task,
    attempts: Option<u32>,
    why: &str,
    events: &mut Vec<Event>,
    context: &Context,
) {
    if let Some(max_attempts) = attempts {
        let edit = Edit { max_attempts: Some(max_attempts), ..Edit::default() };
        edit.apply(task);
        events.push(Event::TaskEdited { task: task.task.clone(), edit });
    }
    let standing = Standing {
        state: task.at_rest(),
        since: context.now,
        attempts_used: 0,
        held_up: 0,
        passed_on: false,
        why: Some(why.to_owned()),
        ..task.standing.free()
    };
    shift(task, Move::Revived, standing, events);
}

/// A person decided that it will not be done.
pub(crate) fn cancelled(
    view: &dyn View,
    task: &mut Task,
    why: &str,
    events: &mut Vec<Event>,
    context: &Context,
) -> Result<Vec<TaskId>, Refusal> {
    deciding::moot(task, "it is cancelled", events, context);
    let standing = Standing {
        state: State::Cancelled,
        since: context.now,
        blocked_on: None,
        why: Some(why.to_owned()),
        next_action: None,
        ..task.standing.free()
    };
    shift(task, Move::Cancelled, standing, events);
    let (followed, woken) = finish(view, task, context)?;
    events.extend(followed);
    Ok(woken)
}

/// What a task that was finished must wait for now: some of it was finished meanwhile, and what
/// came before it may have been reopened.
fn waits_again(
    view: &dyn View,
    task: &Task,
    events: &mut Vec<Event>,
) -> Result<Vec<TaskId>, Refusal> {
    if !task.state().is_finished() {
        return Ok(task.pending.clone());
    }
    let before = graph::tasks(view, &task.after)?;
    let unfinished = before.iter().filter(|one| !one.state().is_finished());
    let pending: Vec<TaskId> = unfinished.map(|one| one.task.clone()).collect();
    for of in task.pending.iter().filter(|one| !pending.contains(one)) {
        events.push(Event::TaskFreed { task: task.task.clone(), of: of.clone() });
    }
    if !pending.is_empty() {
        graph::refuse_circle(view, &task.task, &pending)?;
        let (task, after) = (task.task.clone(), Vec::new());
        events.push(Event::TaskTied { task, after, pending: pending.clone() });
        events.extend(graph::weigh_leaf(view, &pending)?);
    }
    events.push(Event::TasksWeighed {
        weights: vec![crate::event::Weight { task: task.task.clone(), unblocks: 0 }],
    });
    Ok(pending)
}

/// When a parked task comes back, if it does by itself.
pub fn comes_back_at(task: &Task) -> Option<Moment> {
    task.standing.not_before.filter(|_| task.state() == State::Parked)
}

/// The refusal when nothing is offered.
pub fn nothing(nothing: super::refused::Nothing) -> Refusal {
    Refused::NothingReady(nothing).into()
}
