//! Opening gates and what they hold.
//!
//! Owns who may file one and how a task is held by it. Invariants: a task that a gate holds is
//! `waiting` and offered to nobody; the same question about the same thing is one gate, however
//! often it is asked. Deciding is in [`deciding`], Baton's own looks are in [`checking`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::claim::Holder;
use crate::context::Context;
use crate::event::Event;
use crate::gate::{self, Check, Gate, Kind, Origin, Reason};
use crate::id::{GateId, TaskId};
use crate::notices::Notice;
use crate::pattern::fold;
use crate::refusal::Refusal;
use crate::scene::Caller;
use crate::task::tally::Tally;
use crate::task::{Move, Standing, State, Task};
use crate::tasks::{self, caller_with, near, says, shift, word};
use crate::time::{Moment, Span};
use crate::view::{Query, View, get, only, scan};

use refused::{Brief, Refused};

pub mod checking;
pub mod deciding;
pub mod edits;
pub mod refused;

pub const ASK_BYTES_MAX: usize = 4_000;
pub const SUBJECT_BYTES_MAX: usize = 200;
pub const OPTIONS_MAX: usize = 10;
pub const OPTION_BYTES_MAX: usize = 64;
pub const ARGUMENTS_MAX: usize = 64;
pub const ARGUMENT_BYTES_MAX: usize = 4_000;
pub const PATH_BYTES_MAX: usize = 1_000;
/// A time gate opens this far ahead at the most.
pub const AHEAD_MAX: Span = Span::days(3_650);
/// Open gates on one subject.
pub const PER_SUBJECT_MAX: u32 = 20;

#[derive(Clone, Debug, Serialize)]
pub struct Add {
    pub on: String,
    pub kind: Kind,
    pub ask: String,
    pub options: Vec<String>,
    /// It is about this commit, in full.
    pub commit: Option<String>,
    pub check: Option<Check>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Added {
    pub gate: GateId,
    pub on: String,
    pub kind: Kind,
    pub ask: String,
    /// The same was asked before and is still open; nothing was changed.
    pub known: bool,
    /// A person must say first that its command may be run.
    pub needs_trust: bool,
    /// The task it holds now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<Notice>,
}

/// Files a gate.
pub fn add(
    view: &dyn View,
    request: &Add,
    context: &Context,
) -> Result<(Vec<Event>, Added), Refusal> {
    validate(request, context)?;
    let named = task_named(&request.on);
    let id = named.as_ref().map(|id| id.0.clone()).unwrap_or_default();
    let subject = named.as_ref().map_or(request.on.as_str(), TaskId::as_str);
    let queries =
        [Query::get::<Task>(id), gate::about(gate::BY_SUBJECT, subject, PER_SUBJECT_MAX * 10)];
    let (caller, answers) = caller_with(view, &queries, context)?;
    let task = only::<Task>(&answers[0])?.pop();
    if named.is_some() && task.is_none() {
        return Err(near::unknown(view, &request.on)?);
    }
    let mut open: Vec<Gate> = only(&answers[1])?;
    open.retain(Gate::is_open);
    let notices = caller.as_ref().map(|caller| caller.notices.clone()).unwrap_or_default();
    let activity = |events: &mut Vec<Event>| {
        let ended = tasks::ended_claims(events);
        let ended: Vec<_> = ended.iter().collect();
        events.extend(caller.iter().flat_map(|caller| caller.activity(context, &ended)));
    };
    let mut events = Vec::new();
    if let Some(known) = open.iter().find(|gate| is_same(gate, request)) {
        activity(&mut events);
        return Ok((events, Added { notices, ..told(known, true) }));
    }
    if open.len() >= PER_SUBJECT_MAX as usize {
        let (on, max) = (subject.to_owned(), PER_SUBJECT_MAX);
        return Err(Refused::TooManyOpen { on, max }.into());
    }
    let gate = Gate {
        options: request.options.clone(),
        commit: request.commit.clone(),
        check: request.check.clone(),
        opened_by: by(caller.as_ref(), context),
        trusted: context.actor.person,
        ..draft(subject, request.kind, &request.ask, context)
    };
    let gate = open_on(view, gate, task, caller.as_ref(), &mut events, context)?;
    activity(&mut events);
    Ok((events, Added { notices, ..told(&gate, false) }))
}

/// `t12` and `#12` mean a task; anything else is a subject of its own.
fn task_named(on: &str) -> Option<TaskId> {
    TaskId::parse(on).filter(|_| on.starts_with(['t', 'T', '#']))
}

fn validate(request: &Add, context: &Context) -> Result<(), Refusal> {
    word("subject", &request.on, SUBJECT_BYTES_MAX)?;
    says("question", &request.ask, ASK_BYTES_MAX)?;
    if request.options.len() > OPTIONS_MAX {
        return Err(Refused::TooMany { what: "options", max: OPTIONS_MAX }.into());
    }
    for option in &request.options {
        word("option", option, OPTION_BYTES_MAX)?;
    }
    match &request.check {
        Some(Check::Command { argv }) => {
            if argv.len() > ARGUMENTS_MAX {
                return Err(Refused::TooMany { what: "arguments", max: ARGUMENTS_MAX }.into());
            }
            says("command", argv.first().map(String::as_str).unwrap_or_default(), PATH_BYTES_MAX)?;
            argv.iter()
                .try_for_each(|one| tasks::fits("argument", Some(one.as_str()), ARGUMENT_BYTES_MAX))
        }
        Some(Check::File { path }) => says("path", path, PATH_BYTES_MAX),
        Some(Check::Time { at }) if at.since(context.now) > AHEAD_MAX => {
            let allowed = format!("at most {AHEAD_MAX} from now");
            Err(Refusal::OutOfRange { what: "time", given: at.to_string(), allowed })
        }
        Some(Check::Time { .. }) | None => Ok(()),
    }
}

fn is_same(gate: &Gate, request: &Add) -> bool {
    gate.kind == request.kind
        && fold(&gate.ask) == fold(&request.ask)
        && gate.commit == request.commit
        && gate.check == request.check
}

fn told(gate: &Gate, known: bool) -> Added {
    Added {
        gate: gate.gate.clone(),
        on: gate.on.clone(),
        kind: gate.kind,
        ask: gate.ask.clone(),
        known,
        needs_trust: gate.kind == Kind::Command && !gate.trusted,
        task: gate.task.clone(),
        notices: Vec::new(),
    }
}

/// Whoever acts: a session, or a person without one.
pub(crate) fn by(caller: Option<&Caller>, context: &Context) -> Option<Holder> {
    let person = || context.actor.person.then(Holder::person);
    caller.map(|caller| caller.holder(context)).or_else(person)
}

/// A gate with nothing said but what it must say. Its number follows when it is opened.
pub(crate) fn draft(on: &str, kind: Kind, ask: &str, context: &Context) -> Gate {
    Gate {
        gate: GateId::numbered(0),
        on: on.to_owned(),
        task: None,
        kind,
        ask: ask.to_owned(),
        options: Vec::new(),
        commit: None,
        check: None,
        origin: Origin::Filed,
        reasons: Vec::<Reason>::new(),
        opened_at: context.now,
        opened_by: None,
        trusted: false,
        checked: None,
        told_at: None,
        decision: None,
    }
}

/// Opens a gate under the next number, counting those that this decision has opened already.
pub(crate) fn open(view: &dyn View, gate: Gate, events: &mut Vec<Event>) -> Result<Gate, Refusal> {
    let made = get::<Tally>(view, Tally::KEY)?.unwrap_or_default().gates;
    let opened = |event: &&Event| matches!(event, Event::GateOpened { .. });
    let before = events.iter().filter(opened).count() as u64;
    let gate = Gate { gate: GateId::numbered(made + before + 1), ..gate };
    events.push(Event::GateOpened { gate: gate.clone() });
    Ok(gate)
}

/// Opens a gate that somebody filed, and lets it hold its task.
fn open_on(
    view: &dyn View,
    gate: Gate,
    task: Option<Task>,
    caller: Option<&Caller>,
    events: &mut Vec<Event>,
    context: &Context,
) -> Result<Gate, Refusal> {
    let Some(mut task) = task else {
        return open(view, gate, events);
    };
    let me = caller.map(|caller| &caller.session.session);
    if let Some(owner) = task.owner().filter(|owner| owner.is_live(context))
        && Some(&owner.session) != me
        && !context.actor.person
    {
        let (task, owner) = (tasks::refused::Brief::from(&task), Box::new(owner.clone()));
        return Err(tasks::refused::Refused::Owned { verb: "gate", task, owner }.into());
    }
    if matches!(task.state(), State::Done | State::Failed | State::Cancelled) {
        return Err(tasks::wrong_state(&task, "be held", None));
    }
    let gate = open(view, Gate { task: Some(task.task.clone()), ..gate }, events)?;
    hold(view, &mut task, &gate, events, context)?;
    Ok(gate)
}

/// The gate holds the task. Whoever worked on it is free for other work and gets it back when the
/// gate is decided; what was claimed for it is free meanwhile.
pub(crate) fn hold(
    view: &dyn View,
    task: &mut Task,
    gate: &Gate,
    events: &mut Vec<Event>,
    context: &Context,
) -> Result<(), Refusal> {
    let (let_go, _) = tasks::let_go(view, task, context)?;
    let waits = task.state() == State::Waiting;
    let before = task.standing.clone();
    let mut held = before.held.clone();
    held.push(gate.gate.clone());
    let standing = Standing {
        state: State::Waiting,
        since: if waits { before.since } else { context.now },
        owner: None,
        author: before.owner.clone().or(before.author.clone()),
        was: if waits { before.was } else { Some(before.state) },
        why: Some(format!("{} asks: {}", gate.gate, gate.ask)),
        held,
        ..before
    };
    shift(task, Move::Held, standing, events);
    events.extend(let_go);
    Ok(())
}

/// The gate of this id.
pub(crate) fn find(view: &dyn View, text: &str) -> Result<Gate, Refusal> {
    let id = GateId::parse(text).map(|id| id.0).unwrap_or_default();
    match get::<Gate>(view, &id)? {
        Some(gate) => Ok(gate),
        None => Err(unknown(view, text)?),
    }
}

/// How many open gates are named when one is not found.
const NEAR_MAX: u32 = 3;

/// The refusal of an unknown id, with what may have been meant: what is open.
pub fn unknown(view: &dyn View, text: &str) -> Result<Refusal, Refusal> {
    let near: Vec<Gate> = scan(view, gate::all_of(gate::OPEN, NEAR_MAX))?;
    let gate = text.chars().take(80).collect();
    Ok(Refused::Unknown { gate, near: near.iter().map(Brief::from).collect() }.into())
}

/// The person's own command was run for it, well or not: it is told once.
pub fn was_told(
    view: &dyn View,
    gate: &GateId,
    well: bool,
    context: &Context,
) -> Result<(Vec<Event>, ()), Refusal> {
    let untold = |gate: &Gate| gate.told_at.is_none();
    let event = get::<Gate>(view, gate.as_str())?.filter(untold);
    let event = event.map(|gate| Event::GateTold { gate: gate.gate, at: context.now, well });
    Ok((event.into_iter().collect(), ()))
}

/// When a gate that is about a moment opens by itself.
pub fn opens_at(gate: &Gate) -> Option<Moment> {
    match gate.check {
        Some(Check::Time { at }) if gate.is_open() => Some(at),
        _ => None,
    }
}
