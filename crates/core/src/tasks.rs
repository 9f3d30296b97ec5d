//! What may happen to tasks: the parts that all of their rules share.
//!
//! Owns who may act on a task (the owning attempt, and nobody with an older token: S7), how an
//! attempt is lost, and what follows when a task is finished. Each verb has its own file below.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::claim::{self, Claim};
use crate::context::Context;
use crate::event::{EndOfClaim, Event};
use crate::gate::{Gate, Kind, Origin};
use crate::gates;
use crate::id::{TaskId, Token};
use crate::notices::Notice;
use crate::refusal::Refusal;
use crate::resource::Resource;
use crate::scene::Caller;
use crate::task::dossier::Dossier;
use crate::task::tally::Tally;
use crate::task::{Move, Owner, Standing, State, Task};
use crate::time::Span;
use crate::view::{Query, Row, View, only, scan};
use crate::zones::OnExhausted;

use refused::{Brief, Refused};

pub mod adding;
pub mod choosing;
pub mod editing;
pub mod ending;
pub mod evidence;
mod graph;
pub mod importing;
mod joining;
pub mod near;
pub mod planning;
pub mod refused;
pub mod reviewing;
pub mod similar;
pub mod splitting;
pub mod taking;

pub const TITLE_BYTES_MAX: usize = 500;
pub const BODY_BYTES_MAX: usize = 64 * 1024;
/// Reasons, next actions.
pub const TEXT_BYTES_MAX: usize = 4_000;
pub const REPORT_BYTES_MAX: usize = 16 * 1024;
pub const RESULT_BYTES_MAX: usize = 256 * 1024;
/// Roles and labels.
pub const WORD_BYTES_MAX: usize = 64;
pub const KEY_BYTES_MAX: usize = 200;
pub const LABELS_MAX: usize = 20;
pub const PATHS_MAX: usize = 100;
pub const AFTER_MAX: usize = 100;
pub const PRIORITY_MAX: u8 = 4;
pub const PRIORITY_DEFAULT: u8 = 2;
pub const PHASE_MAX: u16 = 9_999;
pub const ATTEMPTS_DEFAULT: u32 = 3;
pub const ATTEMPTS_MAX: u32 = 100;
/// An attempt is kept alive by its session's acts; this long without one and it is offered again.
pub const TTL_DEFAULT: Span = Span::minutes(30);

/// The most claims of one session that are looked at for those that belong to a task.
const CLAIMS_MAX: u32 = 10_000;
/// The most tasks that one finished task wakes.
const WOKEN_MAX: u32 = 100_000;

/// What became of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Moved {
    pub task: TaskId,
    pub title: String,
    pub state: State,
    pub attempt: u32,
    pub attempts_used: u32,
    pub max_attempts: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<crate::time::Moment>,
    /// Tasks that are ready now because of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub woken: Vec<TaskId>,
    /// What was claimed for it and is free now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub released: Vec<Resource>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<Notice>,
}

/// A task on the table: everything a rule about one task looks at, read in one batch.
#[derive(Debug)]
pub(crate) struct Table {
    /// Nobody in particular: a script or a person may file and cancel without a session.
    pub(crate) caller: Option<Caller>,
    pub(crate) task: Task,
    pub(crate) dossier: Dossier,
}

impl Table {
    pub(crate) fn read(view: &dyn View, text: &str, context: &Context) -> Result<Self, Refusal> {
        let id = TaskId::parse(text).map(|id| id.0).unwrap_or_default();
        let queries = [
            Query::get::<Task>(id.clone()),
            Query::get::<Dossier>(id),
            Query::get::<Tally>(Tally::KEY),
        ];
        let (caller, answers) = caller_with(view, &queries, context)?;
        let Some(task) = only::<Task>(&answers[0])?.pop() else {
            return Err(near::unknown(view, text)?);
        };
        let dossier = only::<Dossier>(&answers[1])?.pop();
        let dossier = dossier.unwrap_or_else(|| Dossier::of(task.task.clone()));
        Ok(Self { caller, task, dossier })
    }

    /// The owning attempt, when it is the caller's and counts. A late result of an earlier attempt
    /// is told which one counts now, and changes nothing (S7).
    pub(crate) fn own(
        &self,
        verb: &'static str,
        token: Option<Token>,
        context: &Context,
    ) -> Result<&Owner, Refusal> {
        let caller = self.caller.as_ref().ok_or(Refusal::NoSession)?;
        let me = &caller.session.session;
        let owner = match self.task.owner() {
            Some(owner) if owner.session == *me => owner,
            other => {
                let had_it = self.dossier.attempts.iter().any(|past| past.session == *me);
                let ended_it = self.dossier.attempts.last().is_some_and(|last| {
                    last.session == *me && token.is_none_or(|token| token == last.token)
                });
                // Whoever handed it in, or waits for a person, has no attempt that could be late.
                let settled = self.is_author() || self.task.state().is_finished() && ended_it;
                let late = (token.is_some() || had_it) && !settled;
                return Err(match other {
                    _ if late => self.stale(token, context),
                    Some(owner) => self.owned(verb, owner),
                    None => self.wrong_state(verb),
                });
            }
        };
        if token.is_some_and(|token| token != owner.token) || !owner.is_live(context) {
            return Err(self.stale(token, context));
        }
        Ok(owner)
    }

    /// Is it the caller's work that is in review, or waits for a person?
    pub(crate) fn is_author(&self) -> bool {
        let me = self.caller.as_ref().map(|caller| &caller.session.session);
        self.task.standing.author.as_ref().is_some_and(|author| Some(&author.session) == me)
    }

    /// The refusal to somebody who is not the author.
    pub(crate) fn authored(&self, verb: &'static str) -> Refusal {
        match &self.task.standing.author {
            Some(author) => self.owned(verb, author),
            None => self.wrong_state(verb),
        }
    }

    fn owned(&self, verb: &'static str, owner: &Owner) -> Refusal {
        let task = Brief::from(&self.task);
        Refused::Owned { verb, task, owner: Box::new(owner.clone()) }.into()
    }

    fn stale(&self, given: Option<Token>, context: &Context) -> Refusal {
        let owner = self.task.owner().filter(|owner| owner.is_live(context));
        Refused::Stale {
            task: Brief::from(&self.task),
            state: self.task.state(),
            given,
            attempt: self.task.standing.attempt,
            current: owner.map(|owner| owner.token),
            owner: owner.cloned().map(Box::new),
        }
        .into()
    }

    pub(crate) fn wrong_state(&self, verb: &'static str) -> Refusal {
        wrong_state(&self.task, verb, None)
    }

    /// May the caller change a task that it need not own? Another's only as a person. A token that
    /// is shown must be the one that counts.
    pub(crate) fn may_change(
        &self,
        verb: &'static str,
        token: Option<Token>,
        context: &Context,
    ) -> Result<(), Refusal> {
        let me = self.caller.as_ref().map(|caller| &caller.session.session);
        match self.task.owner() {
            Some(owner) if Some(&owner.session) == me => self.own(verb, token, context).map(|_| ()),
            None if self.task.standing.author.is_some() && !self.is_author() => {
                if context.actor.person { Ok(()) } else { Err(self.authored(verb)) }
            }
            _ if token.is_some() => Err(self.stale(token, context)),
            Some(owner) if owner.is_live(context) && !context.actor.person => {
                Err(self.owned(verb, owner))
            }
            _ => Ok(()),
        }
    }

    /// What every act of the caller brings along.
    pub(crate) fn activity(&self, context: &Context, events: &mut Vec<Event>) -> Vec<Notice> {
        let Some(caller) = &self.caller else {
            return Vec::new();
        };
        let ended = ended_claims(events);
        events.extend(caller.activity(context, &ended.iter().collect::<Vec<_>>()));
        caller.notices.clone()
    }
}

/// The caller, if there is one, with the answers to further queries.
pub(crate) fn caller_with(
    view: &dyn View,
    queries: &[Query],
    context: &Context,
) -> Result<(Option<Caller>, Vec<Vec<Row>>), Refusal> {
    match context.actor.session {
        None => Ok((None, view.read(queries)?)),
        Some(_) => {
            let (caller, answers) = Caller::read_with(view, context, queries)?;
            Ok((Some(caller), answers))
        }
    }
}

pub(crate) fn ended_claims(events: &[Event]) -> Vec<crate::id::ClaimId> {
    let ended = |event: &Event| match event {
        Event::ClaimEnded { claim, .. } => Some(claim.clone()),
        _ => None,
    };
    events.iter().filter_map(ended).collect()
}

pub(crate) use joining::follow;

pub(crate) fn wrong_state(task: &Task, verb: &'static str, reason: Option<String>) -> Refusal {
    Refused::WrongState {
        verb,
        task: Brief::from(task),
        state: task.state(),
        since: task.standing.since,
        reason: reason.or_else(|| reason_of(task)),
        allowed: allowed(task.state()),
    }
    .into()
}

/// The verbs that a state allows.
pub fn allowed(state: State) -> &'static [&'static str] {
    match state {
        State::Open => &["take", "split", "update", "block", "park", "cancel"],
        State::Active => &[
            "done",
            "submit",
            "check",
            "fail",
            "split",
            "park",
            "block",
            "hand over",
            "update",
            "cancel",
        ],
        State::Review => &["take", "approve", "reject", "submit", "withdraw", "update", "cancel"],
        State::Waiting => &["update", "revive", "reopen", "cancel"],
        State::Blocked => &["update", "block", "reopen", "cancel"],
        State::Parked => &["take", "split", "update", "reopen", "cancel"],
        State::Done | State::Cancelled => &["reopen"],
        State::Failed => &["revive", "reopen", "cancel"],
    }
}

/// Why a task stands where it stands, in words. What other people wrote is in it as it is.
pub fn reason_of(task: &Task) -> Option<String> {
    let standing = &task.standing;
    let waits = match task.pending.as_slice() {
        [] => None,
        pending => {
            let names: Vec<&str> = pending.iter().map(TaskId::as_str).collect();
            Some(format!("waits for {}", names.join(", ")))
        }
    };
    let waits = joining::waits_for(task).or(waits);
    let used = |why: &str| match standing.attempts_used {
        0 => why.to_owned(),
        used => format!("{why} ({used} of {} attempts used)", task.max_attempts),
    };
    match task.state() {
        State::Blocked => match (&standing.blocked_on, waits) {
            (Some(text), Some(waits)) => Some(format!("{text}; {waits}")),
            (text, waits) => text.clone().or(waits),
        },
        State::Parked if waits.is_some() => waits,
        State::Open | State::Failed => standing.why.as_deref().map(used),
        _ => standing.why.clone(),
    }
}

pub(crate) fn moved(task: &Task, how: Move, standing: Standing) -> Event {
    Event::TaskMoved { task: task.task.clone(), how, standing }
}

/// The task moves, in the journal and in hand.
pub(crate) fn shift(task: &mut Task, how: Move, standing: Standing, events: &mut Vec<Event>) {
    events.push(moved(task, how, standing.clone()));
    task.standing = standing;
}

/// The attempt that owns `task` is over without a result, and counts. It is offered again while
/// attempts are left.
pub(crate) fn lose(
    view: &dyn View,
    task: &mut Task,
    how: Move,
    why: &str,
    events: &mut Vec<Event>,
    context: &Context,
) -> Result<(), Refusal> {
    let attempts_used = task.standing.attempts_used.saturating_add(1);
    if attempts_used >= task.max_attempts {
        return exhausted(view, task, how, why, false, events, context);
    }
    let standing = Standing {
        state: task.at_rest(),
        since: context.now,
        attempts_used,
        why: Some(why.to_owned()),
        held_up: 0,
        ..task.standing.free()
    };
    shift(task, how, standing, events);
    Ok(())
}

/// No attempts are left, or the same was said twice: the one place that says what becomes of such
/// a task. A part of a split ends as failed, which is its result.
pub(crate) fn exhausted(
    view: &dyn View,
    task: &mut Task,
    how: Move,
    why: &str,
    repeated: bool,
    events: &mut Vec<Event>,
    context: &Context,
) -> Result<(), Refusal> {
    let used = task.standing.attempts_used.saturating_add(1);
    let over = Standing {
        state: State::Failed,
        since: context.now,
        attempts_used: used,
        why: Some(why.to_owned()),
        held_up: 0,
        exhausted: true,
        ..task.standing.free()
    };
    let wanted = match task.parent {
        Some(_) => OnExhausted::Abort,
        None => crate::scene::policy(view)?.tasks.on_exhausted,
    };
    match wanted {
        OnExhausted::Abort => shift(task, how, over, events),
        OnExhausted::Role(role) if !over.passed_on && task.role.as_ref() != Some(&role) => {
            let why = format!("{used} of {} attempts used: {why}", task.max_attempts);
            let (exhausted, attempts_used) = (false, 0);
            let state = task.at_rest();
            let why = Some(why);
            let rest = Standing { state, attempts_used, why, exhausted, passed_on: true, ..over };
            shift(task, how, rest, events);
            let edit = editing::Edit { role: Some(role), ..editing::Edit::default() };
            edit.apply(task);
            events.push(Event::TaskEdited { task: task.task.clone(), edit });
        }
        OnExhausted::Role(_) | OnExhausted::Escalate => {
            shift(task, how, over, events);
            let what = match repeated {
                true => "was rejected twice in a row for the same reason".to_owned(),
                false => format!("has used {used} of {} attempts", task.max_attempts),
            };
            escalate(view, task, &format!("{what}; the last: {why}"), events, context)?;
        }
    }
    Ok(())
}

/// To a person, who has the history.
pub(crate) fn escalate(
    view: &dyn View,
    task: &mut Task,
    what: &str,
    events: &mut Vec<Event>,
    context: &Context,
) -> Result<(), Refusal> {
    let ask = format!("{} \"{}\" {what}", task.task, task.title);
    // The whole history is in the dossier; a question stays within its limit.
    let ask = match ask.char_indices().nth(gates::ASK_BYTES_MAX / 4) {
        Some((end, _)) => format!("{}…", &ask[..end]),
        None => ask,
    };
    let options = [gates::deciding::REVIVE, gates::deciding::CANCEL].map(str::to_owned).to_vec();
    let draft = Gate {
        task: Some(task.task.clone()),
        options,
        origin: Origin::Exhausted,
        ..gates::draft(task.task.as_str(), Kind::Decision, &ask, context)
    };
    let gate = gates::open(view, draft, events)?;
    gates::hold(view, task, &gate, events, context)
}

/// What follows when a task is finished: whoever waited for it waits no longer, exactly once, and
/// those it waited for unblock less.
pub(crate) fn finish(
    view: &dyn View,
    task: &Task,
    context: &Context,
) -> Result<(Vec<Event>, Vec<TaskId>), Refusal> {
    let waiting = Query::equal(crate::task::BY_DEPENDENCY, task.task.as_str(), WOKEN_MAX);
    let mut events = Vec::new();
    let mut woken = Vec::new();
    for dependant in scan::<Task>(view, waiting)? {
        let (id, of) = (dependant.task.clone(), task.task.clone());
        events.push(Event::TaskFreed { task: id.clone(), of });
        let last = dependant.pending.iter().all(|one| *one == task.task);
        if last && !dependant.is_held() && dependant.state() == State::Blocked {
            let standing = Standing {
                state: State::Open,
                since: context.now,
                why: None,
                ..dependant.standing.clone()
            };
            events.push(moved(&dependant, Move::Unblocked, standing));
            woken.push(id);
        }
    }
    if !task.pending.is_empty() {
        events.extend(graph::weigh_without(view, task)?);
    }
    Ok((events, woken))
}

/// Ends what was claimed for the task by its owner.
pub(crate) fn let_go(
    view: &dyn View,
    task: &Task,
    context: &Context,
) -> Result<(Vec<Event>, Vec<Resource>), Refusal> {
    let Some(owner) = task.owner() else {
        return Ok((Vec::new(), Vec::new()));
    };
    let claims: Vec<Claim> = scan(view, claim::of_session(&owner.session, CLAIMS_MAX))?;
    let mut events = Vec::new();
    let mut released = Vec::new();
    for claim in claims.iter().filter(|claim| claim.task.as_deref() == Some(task.task.as_str())) {
        released.extend(claim.hold.resources.iter().cloned());
        events.push(claim.ends(EndOfClaim::Released { commit: None }, context));
    }
    Ok((events, released))
}

/// A text within its limit; what is in it does not matter, because it is shown escaped.
pub(crate) fn fits(what: &'static str, text: Option<&str>, max: usize) -> Result<(), Refusal> {
    match text {
        Some(text) if text.len() > max => Err(Refusal::TooLong { what, bytes_max: max }),
        _ => Ok(()),
    }
}

/// As `fits`, and it says something.
pub(crate) fn says(what: &'static str, text: &str, max: usize) -> Result<(), Refusal> {
    if text.trim().is_empty() {
        return Err(Refused::SaysNothing { what }.into());
    }
    fits(what, Some(text), max)
}

/// A word that stands in an index: short, visible, without control characters.
pub(crate) fn word(what: &'static str, text: &str, max: usize) -> Result<(), Refusal> {
    says(what, text, max)?;
    let acts = |c: &char| c.is_control() || crate::sessions::is_bidi(*c);
    match text.chars().find(acts) {
        Some(character) => Err(Refusal::BadText { what, character }),
        None => Ok(()),
    }
}
