//! Deciding a gate: a person's word, and what follows from it.
//!
//! Owns who may decide and how whatever waited goes on. Invariants: a gate is decided once, so what
//! it held is woken once; an approval of one commit does not hold for another; a denial is an
//! answer: the work goes back as rejected, with the person's words.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::refused::{Brief, Refused};
use super::{by, find};
use crate::claim::Holder;
use crate::context::Context;
use crate::event::Event;
use crate::gate::{Decision, Gate, Origin, Outcome};
use crate::id::{GateId, TaskId};
use crate::notices::{News, Notice};
use crate::refusal::Refusal;
use crate::task::dossier::{Dossier, Feedback};
use crate::task::submission::same_commit;
use crate::task::{Move, Standing, State, Task};
use crate::tasks::reviewing::{self, Return};
use crate::tasks::{TEXT_BYTES_MAX, caller_with, ending, says, shift};
use crate::view::{View, get};
use crate::votes;

/// The options of a gate about a disagreement.
pub(crate) const APPROVE: &str = "approve";
pub(crate) const REJECT: &str = "reject";
/// The options of a gate about a task without attempts.
pub(crate) const REVIVE: &str = "revive";
pub(crate) const CANCEL: &str = "cancel";

#[derive(Clone, Debug, Serialize)]
pub struct Decide {
    pub gate: String,
    pub approves: bool,
    pub why: String,
    pub option: Option<String>,
    /// The commit this word is about.
    pub commit: Option<String>,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Decided {
    pub gate: GateId,
    pub on: String,
    pub decision: Decision,
    /// The task it held, and how that stands now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<State>,
    /// Tasks that are ready now because of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub woken: Vec<TaskId>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<Notice>,
}

/// A person decides.
pub fn decide(
    view: &dyn View,
    request: &Decide,
    context: &Context,
) -> Result<(Vec<Event>, Decided), Refusal> {
    says("reason", &request.why, TEXT_BYTES_MAX)?;
    let (caller, _) = caller_with(view, &[], context)?;
    let gate = find(view, &request.gate)?;
    if !context.actor.person {
        return Err(Refusal::NeedsPerson { what: format!("deciding {}", gate.gate) });
    }
    if let Some(decision) = gate.decision.clone().map(Box::new) {
        return Err(Refused::Decided { gate: Brief::from(&gate), decision }.into());
    }
    if let (Some(current), Some(given)) = (&gate.commit, &request.commit)
        && !same_commit(current, given)
    {
        let (given, current) = (given.clone(), current.clone());
        return Err(Refused::OtherCommit { gate: Brief::from(&gate), given, current }.into());
    }
    choice(&gate, request)?;
    let outcome = if request.approves { Outcome::Approved } else { Outcome::Denied };
    let decision = Decision {
        outcome,
        by: by(caller.as_ref(), context),
        at: context.now,
        why: Some(request.why.clone()),
        option: request.option.clone(),
        commit: gate.commit.clone().or_else(|| request.commit.clone()),
    };
    let mut events = Vec::new();
    let mut decided = conclude(view, &gate, decision, &mut events, context)?;
    if let Some(caller) = &caller {
        events.extend(caller.activity(context, &[]));
        decided.notices = caller.notices.clone();
    }
    Ok((events, decided))
}

/// Whoever asked hears the answer; of a task that it holds the task's owner hears anyway.
fn tell(gate: &Gate, decision: &Decision, events: &mut Vec<Event>, context: &Context) {
    let Some(to) = gate.opened_by.as_ref().filter(|_| gate.task.is_none()) else { return };
    if !to.is_session() || context.actor.session.as_ref() == Some(&to.session) {
        return;
    }
    let news = News::GateDecided {
        gate: gate.gate.clone(),
        on: gate.on.clone(),
        outcome: decision.outcome,
        why: decision.why.clone(),
    };
    reviewing::tell(&to.session, news, events, context);
}

/// Where there are options, an approval names one of them; a denial names none.
fn choice(gate: &Gate, request: &Decide) -> Result<(), Refusal> {
    let good = match (&request.option, request.approves) {
        (Some(given), true) => gate.options.contains(given),
        (Some(_), false) => false,
        (None, true) => gate.options.is_empty(),
        (None, false) => true,
    };
    if good {
        return Ok(());
    }
    let (given, options) = (request.option.clone(), gate.options.clone());
    Err(Refused::WhichOption { gate: Brief::from(gate), given, options }.into())
}

/// The gate is decided, and what it held goes on.
pub(super) fn conclude(
    view: &dyn View,
    gate: &Gate,
    decision: Decision,
    events: &mut Vec<Event>,
    context: &Context,
) -> Result<Decided, Refusal> {
    events.push(Event::GateDecided { gate: gate.gate.clone(), decision: decision.clone() });
    let mut woken = Vec::new();
    let mut state = None;
    if let Some(id) = &gate.task
        && let Some(mut task) = get::<Task>(view, id.as_str())?
        && task.standing.held.contains(&gate.gate)
    {
        woken = go_on(view, &mut task, gate, &decision, events, context)?;
        state = Some(task.state());
    }
    tell(gate, &decision, events, context);
    if gate.origin == Origin::Votes {
        votes::settle(gate, &decision, events);
    }
    Ok(Decided {
        gate: gate.gate.clone(),
        on: gate.on.clone(),
        decision,
        task: gate.task.clone(),
        state,
        woken,
        notices: Vec::new(),
    })
}

/// What becomes of the task that the gate held.
fn go_on(
    view: &dyn View,
    task: &mut Task,
    gate: &Gate,
    decision: &Decision,
    events: &mut Vec<Event>,
    context: &Context,
) -> Result<Vec<TaskId>, Refusal> {
    task.standing.held.retain(|held| *held != gate.gate);
    let by = decision.by.clone().unwrap_or_else(Holder::person);
    let words = decision.why.clone().unwrap_or_default();
    let denied = decision.outcome == Outcome::Denied;
    match gate.origin {
        Origin::Disagreement if task.submission.is_some() => {
            let approves = decision.option.as_deref() == Some(APPROVE);
            reviewing::decided(view, task, approves, &by, &words, events, context)
        }
        Origin::Exhausted => match decision.option.as_deref() {
            Some(REVIVE) => {
                ending::revived(task, None, &words, events, context);
                Ok(Vec::new())
            }
            Some(CANCEL) => ending::cancelled(view, task, &words, events, context),
            _ => {
                let standing = Standing {
                    state: State::Failed,
                    since: context.now,
                    why: Some(words),
                    exhausted: true,
                    ..task.standing.free()
                };
                shift(task, Move::Answered, standing, events);
                Ok(Vec::new())
            }
        },
        Origin::Filed if denied => deny(view, task, gate, &by, &words, events, context),
        _ => {
            let said = match &decision.option {
                Some(option) => format!("{} is decided for {option}", gate.gate),
                None => format!("{} is {}", gate.gate, decision.outcome.name()),
            };
            let words = if words.is_empty() { said } else { format!("{said}: {words}") };
            release(view, task, words, decision.by.as_ref(), events, context)?;
            Ok(Vec::new())
        }
    }
}

/// The answer is no: the work goes back as rejected.
fn deny(
    view: &dyn View,
    task: &mut Task,
    gate: &Gate,
    by: &Holder,
    words: &str,
    events: &mut Vec<Event>,
    context: &Context,
) -> Result<Vec<TaskId>, Refusal> {
    let text = format!("{} (\"{}\") is denied: {words}", gate.gate, gate.ask);
    let feedback = Feedback {
        by: by.clone(),
        at: context.now,
        attempt: task.standing.attempt,
        commit: gate.commit.clone(),
        text: text.clone(),
    };
    let dossier = get::<Dossier>(view, task.task.as_str())?;
    events.push(Event::TaskFeedback { task: task.task.clone(), feedback });
    match (&task.standing.author, task.standing.held.is_empty()) {
        (Some(_), true) => {
            let dossier = dossier.unwrap_or_else(|| Dossier::of(task.task.clone()));
            reviewing::rejected(view, task, &dossier, by, &text, events, context)?;
        }
        // Nobody's attempt: there is none to count, but whoever takes it reads the answer.
        _ => release(view, task, text, Some(by), events, context)?,
    }
    Ok(Vec::new())
}

/// The task goes back to where it stood, unless another gate holds it still.
fn release(
    view: &dyn View,
    task: &mut Task,
    words: String,
    by: Option<&Holder>,
    events: &mut Vec<Event>,
    context: &Context,
) -> Result<(), Refusal> {
    let before = task.standing.clone();
    if let Some(other) = before.held.first() {
        let why = match get::<Gate>(view, other.as_str())? {
            Some(gate) => format!("{other} asks: {}", gate.ask),
            None => words,
        };
        let standing = Standing { why: Some(why), ..before };
        shift(task, Move::Answered, standing, events);
        return Ok(());
    }
    match before.was {
        Some(State::Active) => {
            let next_action = before.next_action;
            let back = Return { how: Move::Answered, words, by, counts: false, next_action };
            reviewing::give_back(view, task, back, events, context)
        }
        Some(State::Review) => {
            let standing = Standing {
                state: State::Review,
                since: context.now,
                was: None,
                why: None,
                ..before
            };
            shift(task, Move::Answered, standing, events);
            Ok(())
        }
        was => {
            let parked = was == Some(State::Parked);
            let standing = Standing {
                state: if parked { State::Parked } else { task.at_rest() },
                since: context.now,
                not_before: before.not_before.filter(|_| parked),
                why: Some(words),
                ..before.free()
            };
            shift(task, Move::Answered, standing, events);
            Ok(())
        }
    }
}

/// What held a task that is over is moot.
pub(crate) fn moot(task: &Task, why: &str, events: &mut Vec<Event>, context: &Context) {
    for gate in &task.standing.held {
        let decision = Decision {
            outcome: Outcome::Moot,
            by: None,
            at: context.now,
            why: Some(why.to_owned()),
            option: None,
            commit: None,
        };
        events.push(Event::GateDecided { gate: gate.clone(), decision });
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Trusted {
    pub gate: GateId,
    pub command: Vec<String>,
}

/// A person says that the command of a gate may be run.
pub fn trust(
    view: &dyn View,
    text: &str,
    context: &Context,
) -> Result<(Vec<Event>, Trusted), Refusal> {
    let (caller, _) = caller_with(view, &[], context)?;
    let gate = find(view, text)?;
    if !context.actor.person {
        let what = format!("saying that the command of {} may be run", gate.gate);
        return Err(Refusal::NeedsPerson { what });
    }
    if let Some(decision) = gate.decision.clone().map(Box::new) {
        return Err(Refused::Decided { gate: Brief::from(&gate), decision }.into());
    }
    let Some(crate::gate::Check::Command { argv }) = &gate.check else {
        return Err(Refused::NotAutomatic { gate: Brief::from(&gate) }.into());
    };
    let by = by(caller.as_ref(), context).unwrap_or_else(Holder::person);
    let mut events = vec![Event::GateTrusted { gate: gate.gate.clone(), by }];
    events.extend(caller.iter().flat_map(|caller| caller.activity(context, &[])));
    Ok((events, Trusted { gate: gate.gate.clone(), command: argv.clone() }))
}
