//! Offering a task to others: the giver says what only it knows, Baton adds the rest.
//!
//! Owns the offer. Until somebody accepts, the giver owns the task, and its lease and claims last
//! at least as long as the offer. An offer with nothing new since the work last changed hands
//! counts as an attempt, so that two agents cannot pass a task back and forth for ever.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::complete::{Paper, complete};
use super::refused::Refused;
use super::{
    WITHIN_DEFAULT, WITHIN_MAX, WITHIN_MIN, belonging, chain_of, claims_of, ended, known, notice,
    stands,
};
use crate::claim::{Claim, Holder};
use crate::context::Context;
use crate::event::{Event, Renewal};
use crate::handoff::{Artifact, End, Handoff, Known, Said, To};
use crate::id::{HandoffId, TaskId, Token};
use crate::notices::{News, Notice};
use crate::refusal::Refusal;
use crate::roles::giving;
use crate::sessions::{self, Life, Session};
use crate::state::{self, Change, Write, Writer};
use crate::task::{self, Move, Owner, State, Task};
use crate::tasks::refused::Brief;
use crate::tasks::{Table, WORD_BYTES_MAX, let_go, lose, word};
use crate::time::{Moment, Span};
use crate::view::{Query, View, get, scan};

#[derive(Clone, Debug, Serialize)]
pub struct Request {
    pub task: String,
    /// A session, `role:R` or `anyone`, as people write it.
    pub to: Option<String>,
    pub within: Option<Span>,
    pub paper: Paper,
    /// Those of the paper's that were found.
    pub artifacts: Vec<Artifact>,
    pub token: Option<Token>,
}

/// An offer that was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Offered {
    pub handoff: HandoffId,
    pub task: TaskId,
    pub title: String,
    /// `failed` when nothing was new and no attempt was left: then nobody can accept.
    pub state: State,
    pub to: To,
    pub until: Moment,
    /// Something is new since the work last changed hands. Otherwise it counts as an attempt.
    pub progress: bool,
    /// Attempts that are used once somebody has accepted.
    pub attempts_used: u32,
    pub max_attempts: u32,
    /// What Baton added.
    pub known: Known,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<Notice>,
}

/// Offers a task to others.
pub fn offer(
    view: &dyn View,
    request: &Request,
    context: &Context,
) -> Result<(Vec<Event>, Offered), Refusal> {
    let within = request.within.unwrap_or(WITHIN_DEFAULT);
    if !(WITHIN_MIN..=WITHIN_MAX).contains(&within) {
        let (given, allowed) = (within.to_string(), format!("{WITHIN_MIN} to {WITHIN_MAX}"));
        return Err(Refusal::OutOfRange { what: "time", given, allowed });
    }
    let table = Table::read(view, &request.task, context)?;
    let owner = table.own("hand over", request.token, context)?.clone();
    let task = &table.task;
    if task.state() != State::Active {
        return Err(table.wrong_state("hand over"));
    }
    let to = addressee(view, request.to.as_deref(), task, &owner)?;
    let work = context.observed.work.get(&task.task);
    let said = complete(&request.paper, &request.artifacts, work, &Brief::from(task))?;
    values(view, &table, &said, context)?;
    let own = claims_of(view, &owner.session)?;
    let changed = work.map(|work| work.changed.as_slice()).unwrap_or_default();
    let claims = belonging(view, task, changed, &own, context)?;
    let known = known(view, task, &owner, &table.dossier, &claims, context)?;
    let chain = chain_of(view, &table.dossier)?;
    let number = table.dossier.handoffs + 1;
    let mut handoff = Handoff {
        handoff: HandoffId::of(&task.task, number),
        task: task.task.clone(),
        number,
        from: owner.holder(),
        to,
        attempt: owner.attempt,
        token: owner.token,
        offered_at: context.now,
        until: context.now + within,
        progress: is_progress(&said, &known, &chain, &owner),
        said,
        known,
        declined: Vec::new(),
        end: None,
    };
    let used = task.standing.attempts_used + u32::from(!handoff.progress);
    if used >= task.max_attempts && !handoff.progress {
        handoff.end = Some(End::Exhausted { at: context.now });
        return exhaust(view, &table, handoff, context);
    }
    let mut events: Vec<Event> = withdrawn(&chain, task, context).into_iter().collect();
    events.push(Event::HandoffOffered { handoff: handoff.clone() });
    if let To::Session(receiver) = &handoff.to {
        let news = News::Offered {
            handoff: handoff.handoff.clone(),
            task: task.task.clone(),
            title: task.title.clone(),
            by: handoff.from.clone(),
            until: handoff.until,
        };
        events.push(notice(&receiver.session, news, events.len(), context));
    }
    let notices = table.activity(context, &mut events);
    // After what every act renews: an offer never shortens a lease.
    events.extend(kept(task, &owner, &claims, handoff.until, context));
    Ok((events, offered(task, handoff, task.state(), used, notices)))
}

fn offered(
    task: &Task,
    handoff: Handoff,
    state: State,
    attempts_used: u32,
    notices: Vec<Notice>,
) -> Offered {
    Offered {
        handoff: handoff.handoff,
        task: handoff.task,
        title: task.title.clone(),
        state,
        to: handoff.to,
        until: handoff.until,
        progress: handoff.progress,
        attempts_used,
        max_attempts: task.max_attempts,
        known: handoff.known,
        notices,
    }
}

/// To whom? By id, by the name of a session that lives, or any of many.
fn addressee(
    view: &dyn View,
    text: Option<&str>,
    task: &Task,
    owner: &Owner,
) -> Result<To, Refusal> {
    let text = match text {
        None | Some("anyone") => return Ok(To::Anyone),
        Some(text) => text,
    };
    if let Some(role) = text.strip_prefix("role:") {
        word("role", role, WORD_BYTES_MAX)?;
        giving::known(view, Some(role))?;
        return Ok(To::Role(role.to_owned()));
    }
    let found = match get::<Session>(view, text)? {
        Some(session) => Some(session),
        None => scan::<Session>(view, Query::equal(sessions::BY_NAME, text, 1))?.pop(),
    };
    let Some(session) = found else {
        return Err(Refusal::UnknownSession { session: text.chars().take(80).collect() });
    };
    if session.session == owner.session {
        return Err(Refused::ToYourself { task: Brief::from(task) }.into());
    }
    if let Life::Ended { at, .. } = session.life {
        let Session { session, name, .. } = session;
        return Err(Refusal::SessionEnded { session, name, at });
    }
    Ok(To::Session(Holder { session: session.session, name: session.name, agent: None }))
}

/// Could the values be set as things are now? They are set when it is accepted.
fn values(view: &dyn View, table: &Table, said: &Said, context: &Context) -> Result<(), Refusal> {
    let Some(caller) = table.caller.as_ref().filter(|_| !said.set.is_empty()) else {
        return Ok(());
    };
    let writer = Writer::of(caller, context);
    state::write_all(view, &writer, &writes(said), &[], context.next, context).map(|_| ())
}

pub(super) fn writes(said: &Said) -> Vec<Write> {
    let write = |setting: &crate::handoff::Setting| Write {
        key: setting.key.clone(),
        change: Change::Set { value: setting.value.clone() },
        if_version: None,
    };
    said.set.iter().map(write).collect()
}

/// Is anything new since the work last changed hands: a commit, a result, a passed check?
fn is_progress(said: &Said, known: &Known, chain: &[Handoff], owner: &Owner) -> bool {
    let last = chain.iter().rev().find(|one| one.was_accepted());
    let since = last.map_or(owner.taken_at, |last| last.offered_at.max(owner.taken_at));
    let committed = !known.work.commits.is_empty();
    let checked = known.last_check.as_ref().is_some_and(|check| check.passed && check.at >= since);
    let result = said.result.is_some()
        && chain.iter().filter(|one| one.was_accepted()).all(|one| one.said.result != said.result);
    committed || checked || result
}

/// The offer that this one takes the place of.
fn withdrawn(chain: &[Handoff], task: &Task, context: &Context) -> Option<Event> {
    let open = chain.iter().find(|one| stands(one, task, context))?;
    Some(ended(task, &open.handoff, End::Withdrawn { at: context.now }))
}

/// What is offered waits for its receiver: the lease of the attempt outlives the offer by one TTL,
/// so that a giver who comes back finds it, and its claims last as long as the offer.
fn kept(
    task: &Task,
    owner: &Owner,
    claims: &[Claim],
    until: Moment,
    context: &Context,
) -> Vec<Event> {
    let promised = owner.expiry(context.failed_over_at).max(context.now + owner.ttl);
    let expires_at = promised.max(until + owner.ttl);
    let renewal = task::Renewal { task: task.task.clone(), token: owner.token, expires_at };
    let mut events = vec![Event::TasksRenewed { tasks: vec![renewal], at: context.now }];
    let claims: Vec<Renewal> = claims
        .iter()
        .map(|claim| claim.renewal(claim.ttl, context))
        .map(|renewal| Renewal { expires_at: renewal.expires_at.max(until), ..renewal })
        .collect();
    if !claims.is_empty() {
        events.push(Event::ClaimsRenewed { claims, at: context.now });
    }
    events
}

/// It went round without progress once too often.
fn exhaust(
    view: &dyn View,
    table: &Table,
    handoff: Handoff,
    context: &Context,
) -> Result<(Vec<Event>, Offered), Refusal> {
    let mut task = table.task.clone();
    let why = "it was to be handed over again with no new commit, result or passed check";
    let mut events = vec![Event::HandoffOffered { handoff: handoff.clone() }];
    lose(view, &mut task, Move::NoProgress, why, &mut events, context)?;
    events.extend(let_go(view, &table.task, context)?.0);
    let notices = table.activity(context, &mut events);
    let (state, used) = (task.state(), task.standing.attempts_used);
    Ok((events, offered(&task, handoff, state, used, notices)))
}
