//! Taking a task: one transaction that consumes the offer.
//!
//! Owns the take and everything it notices on the way: attempts whose lease ran out are offered
//! again, sleepers wake. Invariants: N workers, one winner (S6); one session has one active task
//! unless it says otherwise; the token is the journal position of the take.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::choosing::{self, Candidate, Considered, Offer, Verdict, choose};
use super::refused::{Brief, Nothing, Refused};
use super::reviewing;
use super::reviewing::seats::{self, Reviewed};
use super::{TTL_DEFAULT, follow, lose, moved, near, shift, wrong_state};
use crate::claim::Holder;
use crate::claims::{self, Granted};
use crate::context::Context;
use crate::event::{EndOfReview, Event};
use crate::handoff::Handoff;
use crate::handoffs;
use crate::id::{Fresh, TaskId, Token};
use crate::notices::Notice;
use crate::refusal::{Held, Refusal};
use crate::resource::Resource;
use crate::scene::Caller;
use crate::task::dossier::{Checkpoint, Dossier, Feedback, Past};
use crate::task::tally::Tally;
use crate::task::{self, Move, Owner, Standing, State, Task};
use crate::time::Moment;
use crate::view::{Query, View, get, only};

/// How many tasks one take gives at the most.
pub const COUNT_MAX: u32 = 50;
/// How many run-out attempts and sleepers one take sees to.
const NOTICED_MAX: u32 = 64;
/// How many of its own tasks a session is told of.
const OWN_MAX: u32 = 16;
/// How many submitted tasks a take looks at.
const REVIEWS_MAX: u32 = 100;
/// How many candidates are tried when their paths cannot be claimed.
const CLAIMS_TRIED_MAX: usize = 8;

#[derive(Clone, Debug, Serialize)]
pub struct Request {
    /// This very task, or the best there is.
    pub task: Option<String>,
    pub count: u32,
    /// Although the session has an active task.
    pub also: bool,
    /// Claim its paths too, all or nothing with the task.
    pub claim: bool,
    pub explain: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Answer {
    Taken(Box<Taken>),
    Nothing(Nothing),
}

/// A task that was taken, with everything its owner should know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Taken {
    #[serde(flatten)]
    pub first: TakenTask,
    /// Further ones, when several were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<TakenTask>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<Granted>,
    /// The candidates, and why one was chosen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub considered: Vec<Considered>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<Notice>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TakenTask {
    pub task: TaskId,
    pub attempt: u32,
    pub token: Token,
    pub title: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    pub priority: u8,
    pub max_attempts: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<Resource>,
    pub expires_at: Moment,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_action: Option<String>,
    /// The split whose results whoever does this goes on from: `task results`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub results_of: Option<TaskId>,
    /// What earlier attempts left, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<Past>,
    /// Every handoff of it, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub handoffs: Vec<Handoff>,
    /// Everything that was said against it, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub feedback: Vec<Feedback>,
    /// What was saved last by code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<Checkpoint>,
    /// It was taken to be reviewed, not to be worked on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<Reviewed>,
}

/// Takes a task, or says that there is nothing to take.
pub fn take(
    view: &dyn View,
    request: &Request,
    context: &Context,
) -> Result<(Vec<Event>, Answer), Refusal> {
    validate(request)?;
    let counter = Counter::read(view, request, context)?;
    let mut events = Vec::new();
    let loose = counter.notice(view, request, &mut events, context)?;
    // Who asks for one by name is told about that one first.
    let named = request.task.as_ref().map(|text| counter.named(view, text, &loose, context));
    let named = named.transpose()?;
    if let Some(own) = counter.own.iter().find(|own| counter.holds(own, request, context))
        && !request.also
    {
        return Err(has_task(own));
    }
    let (chosen, considered) = match named {
        Some(task) => (vec![task], Vec::new()),
        None => counter.pick(view, &loose, request, context)?,
    };
    if chosen.is_empty() {
        events.extend(counter.caller.activity(context, &[]));
        let woken = follow(view, &mut events, context)?;
        let next_at = next_at(view, context)?;
        let nothing = Nothing { next_at, woken, ..counter.nothing(&loose) };
        return Ok((events, Answer::Nothing(nothing)));
    }
    let mut taken = Vec::new();
    let mut claim = None;
    if request.claim {
        let (task, granted) = claim_first(view, &chosen, request, &mut events, context)?;
        claim = granted;
        taken.push(grant(view, task, &counter.caller, &mut events, context)?);
    } else {
        for task in &chosen {
            taken.push(grant(view, task, &counter.caller, &mut events, context)?);
        }
    }
    if claim.is_none() {
        events.extend(counter.caller.activity(context, &[]));
    }
    let notices = counter.caller.notices.clone();
    let mut taken = taken.into_iter();
    let first = taken.next().ok_or(Refusal::Empty)?;
    let considered = if request.claim { explained(considered, &first.task) } else { considered };
    let answer = Taken { first, also: taken.collect(), claim, considered, notices };
    Ok((events, Answer::Taken(Box::new(answer))))
}

pub(super) fn has_task(own: &Task) -> Refusal {
    let (task, state, since) = (Brief::from(own), own.state(), own.standing.since);
    Refused::HasTask { task, state, since }.into()
}

fn validate(request: &Request) -> Result<(), Refusal> {
    let max = if request.claim || request.task.is_some() { 1 } else { COUNT_MAX };
    if !(1..=max).contains(&request.count) {
        let (given, allowed) = (request.count.to_string(), format!("1 to {max}"));
        return Err(Refusal::OutOfRange { what: "number of tasks", given, allowed });
    }
    Ok(())
}

/// What a take looks at first, in one read.
struct Counter {
    caller: Caller,
    tally: Tally,
    /// Attempts and reviews past their lease.
    run_out: Vec<Task>,
    /// Submitted ones that nobody reviews, for this session among others.
    to_review: Vec<Task>,
    /// Parked ones whose time has come.
    waking: Vec<Task>,
    own: Vec<Task>,
}

impl Counter {
    fn read(view: &dyn View, request: &Request, context: &Context) -> Result<Self, Refusal> {
        let me = context.actor.session.as_ref().ok_or(Refusal::NoSession)?;
        let mut queries = vec![
            Query::get::<Tally>(Tally::KEY),
            task::due(task::BY_LEASE, context.now, NOTICED_MAX),
            task::due(task::BY_WAKING, context.now, NOTICED_MAX),
            Query::equal(task::BY_OWNER, me.as_str(), OWN_MAX),
        ];
        let head = queries.len();
        match request.task.as_deref().and_then(TaskId::parse) {
            Some(id) => {
                queries.push(Query::get::<Task>(id.as_str()));
                queries.push(Query::get::<Dossier>(id.as_str()));
            }
            None => {
                queries.push(task::to_review("", REVIEWS_MAX));
                queries.push(task::to_review(&format!("session:{me}"), REVIEWS_MAX));
            }
        }
        let (caller, answers) = Caller::read_with(view, context, &queries)?;
        let mut to_review = Vec::new();
        if request.task.is_none() && !request.claim {
            for rows in &answers[head..] {
                to_review.extend(only::<Task>(rows)?);
            }
            if let Some(role) = &caller.session.role {
                let query = task::to_review(&format!("role:{role}"), REVIEWS_MAX);
                to_review.extend(crate::view::scan::<Task>(view, query)?);
            }
        }
        let mut run_out: Vec<Task> = only(&answers[1])?;
        run_out.retain(|task| task.seats().any(|seat| !seat.is_live(context)));
        Ok(Self {
            caller,
            tally: only::<Tally>(&answers[0])?.pop().unwrap_or_default(),
            run_out,
            to_review,
            waking: only(&answers[2])?,
            own: only(&answers[3])?,
        })
    }

    fn is_mine(&self, task: &Task) -> bool {
        task.owner().is_some_and(|owner| owner.session == self.caller.session.session)
    }

    /// Is it an active task of the caller, other than the one that is asked for anew?
    fn holds(&self, own: &Task, request: &Request, context: &Context) -> bool {
        let me = &self.caller.session.session;
        own.seat_of(me).is_some_and(|seat| seat.is_live(context))
            && request.task.as_deref().and_then(TaskId::parse).as_ref() != Some(&own.task)
    }

    /// Offers again what ran out and what wakes; returns those tasks as they are now. The caller's
    /// own that it asks for by name is left to it: that is no lost attempt.
    fn notice(
        &self,
        view: &dyn View,
        request: &Request,
        events: &mut Vec<Event>,
        context: &Context,
    ) -> Result<Vec<Task>, Refusal> {
        let named = request.task.as_deref().and_then(TaskId::parse);
        // An offer that nobody took and whose giver is gone waits for a person: no lost attempt.
        let (offered, run_out): (Vec<&Task>, Vec<&Task>) =
            self.run_out.iter().partition(|task| task.offer().is_some());
        for task in offered {
            events.extend(handoffs::unanswered(view, task, context)?);
        }
        let mut loose = Vec::new();
        for task in run_out {
            let mut task = task.clone();
            if task.owner().is_none() {
                let over = task.reviewers().iter().filter(|seat| !seat.is_live(context));
                let gone: Vec<_> = over.map(|seat| seat.session.clone()).collect();
                reviewing::left(view, &mut task, gone, EndOfReview::RanOut, events, context)?;
                loose.push(task);
                continue;
            }
            let anew = self.is_mine(&task) && task.at_rest() == State::Open;
            if !(anew && named.as_ref() == Some(&task.task)) {
                lose(view, &mut task, Move::RanOut, "its lease ran out", events, context)?;
                loose.push(task);
            }
        }
        for task in &self.waking {
            let standing = Standing {
                state: task.at_rest(),
                since: context.now,
                not_before: None,
                ..task.standing.clone()
            };
            let mut task = task.clone();
            shift(&mut task, Move::Woken, standing, events);
            loose.push(task);
        }
        Ok(loose)
    }

    fn may_have(&self, task: &Task) -> bool {
        task.role.is_none() || task.role == self.caller.session.role
    }

    /// The task that was asked for by name, if it can be had.
    fn named(
        &self,
        view: &dyn View,
        text: &str,
        loose: &[Task],
        context: &Context,
    ) -> Result<Task, Refusal> {
        let id = TaskId::parse(text).map(|id| id.0).unwrap_or_default();
        let now = loose.iter().find(|task| task.task.0 == id).cloned();
        let Some(task) = now.map_or_else(|| get::<Task>(view, &id), |task| Ok(Some(task)))? else {
            return Err(near::unknown(view, text)?);
        };
        if task.state() == State::Review {
            seats::may_take(&task, &self.caller, context)?;
            return Ok(task);
        }
        match (task.owner(), task.state()) {
            (Some(owner), _) if self.is_mine(&task) => {
                if owner.is_live(context) {
                    return Err(has_task(&task));
                }
            }
            (Some(owner), _) => {
                let (task, owner) = (Brief::from(&task), Box::new(owner.clone()));
                return Err(Refused::Owned { verb: "take", task, owner }.into());
            }
            (None, State::Open | State::Parked) if task.at_rest() == State::Open => {}
            (None, _) => return Err(wrong_state(&task, "take", None)),
        }
        if !self.may_have(&task) && !context.actor.person {
            let (brief, yours) = (Brief::from(&task), self.caller.session.role.clone());
            let role = task.role.unwrap_or_default();
            return Err(Refused::WrongRole { task: brief, role, yours }.into());
        }
        if self.tally.holds_back(task.phase) {
            let reason = phase_reason(&self.tally, task.phase);
            return Err(wrong_state(&task, "take", reason));
        }
        Ok(task)
    }

    /// The best there are.
    fn pick(
        &self,
        view: &dyn View,
        loose: &[Task],
        request: &Request,
        context: &Context,
    ) -> Result<(Vec<Task>, Vec<Considered>), Refusal> {
        let offered = |task: &&Task| {
            task.state() == State::Open && self.may_have(task) && !self.tally.holds_back(task.phase)
        };
        let offer = Offer {
            role: self.caller.session.role.as_deref(),
            phase: self.tally.phase(),
            loose: loose.iter().filter(offered).map(Candidate::from).collect(),
            me: &self.caller.session.session,
            explain: request.explain,
        };
        // What is nearly finished comes before what is not begun.
        let mut chosen = match request.claim {
            true => Vec::new(),
            false => seats::offered(&self.caller, &self.to_review, loose, request.count as usize),
        };
        let told = chosen.iter().filter(|_| request.explain);
        let mut considered: Vec<Considered> = told.map(Considered::review).collect();
        let wanted = request.count as usize - chosen.len();
        if wanted == 0 {
            return Ok((chosen, considered));
        }
        let tries = if request.claim { CLAIMS_TRIED_MAX } else { wanted };
        let all = choose(view, &offer, tries, context)?;
        if request.explain {
            considered.extend(choosing::considered(&all)?);
        }
        for (candidate, ..) in all.iter().filter(|(.., verdict)| *verdict == Verdict::Chosen) {
            let now = loose.iter().find(|task| task.task == candidate.task).cloned();
            let task = now.map_or_else(
                || get::<Task>(view, candidate.task.as_str()),
                |task| Ok(Some(task)),
            )?;
            chosen.extend(task);
        }
        Ok((chosen, considered))
    }

    fn nothing(&self, loose: &[Task]) -> Nothing {
        let mut tally = self.tally.clone();
        for task in loose {
            let known = self.run_out.iter().chain(&self.waking).find(|one| one.task == task.task);
            tally.moved(known, Some(task));
        }
        Nothing {
            ready: tally.ready(),
            active: tally.count(State::Active),
            review: tally.count(State::Review),
            waiting: tally.count(State::Waiting),
            blocked: tally.count(State::Blocked) + tally.behind_phases(),
            parked: tally.count(State::Parked),
            failed: tally.count(State::Failed),
            next_at: None,
            woken: Vec::new(),
        }
    }
}

/// When something is offered again by itself: a sleeper wakes, or a lease runs out.
fn next_at(view: &dyn View, context: &Context) -> Result<Option<Moment>, Refusal> {
    let mut next = None;
    for index in [task::BY_WAKING, task::BY_LEASE] {
        let from = format!("{:020}", context.now.0);
        let until = "\u{10ffff}".to_owned();
        let query = Query::Scan { index, from, until, after: None, limit: 1 };
        let first: Option<Task> = crate::view::scan(view, query)?.pop();
        let at = first.and_then(|task| {
            let lease = task.seats().map(|seat| seat.expires_at).min();
            lease.or(task.standing.not_before)
        });
        next = next.into_iter().chain(at).min();
    }
    Ok(next)
}

/// Candidates were tried for their paths; only one was taken.
fn explained(mut considered: Vec<Considered>, taken: &TaskId) -> Vec<Considered> {
    for one in considered.iter_mut().filter(|one| one.verdict == Verdict::Chosen) {
        one.verdict = match (one.task == *taken, &one.conflict) {
            (true, _) => Verdict::Chosen,
            (false, Some(_)) => Verdict::Conflicts,
            (false, None) => Verdict::NotNeeded,
        };
    }
    considered
}

/// Why a phase holds a task back.
pub fn phase_reason(tally: &Tally, phase: Option<u16>) -> Option<String> {
    let (phase, open) = (phase?, tally.phase()?);
    let left = tally.phases.get(&open)?.unfinished;
    let noun = if left == 1 { "task" } else { "tasks" };
    Some(format!("phase {phase} opens when phase {open} is finished: {left} {noun} left"))
}

/// The first of these whose paths can be claimed, with the claim.
fn claim_first<'a>(
    view: &dyn View,
    chosen: &'a [Task],
    request: &Request,
    events: &mut Vec<Event>,
    context: &Context,
) -> Result<(&'a Task, Option<Granted>), Refusal> {
    let mut in_the_way: Option<Box<Held>> = None;
    for task in chosen {
        if task.paths.is_empty() {
            return Ok((task, None));
        }
        match claim_paths(view, task, events.len(), context) {
            Ok((more, granted)) => {
                events.extend(more);
                return Ok((task, Some(granted)));
            }
            Err(Refusal::Held(held)) if request.task.is_none() => {
                in_the_way.get_or_insert(held);
            }
            Err(other) => return Err(other),
        }
    }
    Err(in_the_way.map_or(Refusal::Empty, Refusal::Held))
}

/// Claims the paths of a task, by the rule that claims anything.
fn claim_paths(
    view: &dyn View,
    task: &Task,
    events_before: usize,
    context: &Context,
) -> Result<(Vec<Event>, Granted), Refusal> {
    let request = claims::Request {
        reason: Some(task.title.clone()),
        task: Some(task.task.0.clone()),
        ..claims::Request::of(task.paths.clone())
    };
    // Its events come after ours: the token of the claim is its own place in the journal.
    let later = Context {
        next: context.next.after(events_before as u64),
        fresh: Fresh(*blake3::keyed_hash(&context.fresh.0, b"claim of a task").as_bytes()),
        ..context.clone()
    };
    match claims::take(view, &request, &later)? {
        (events, claims::Answer::Granted(granted)) => Ok((events, *granted)),
        (_, claims::Answer::Queued(_)) => Err(Refusal::Empty),
    }
}

/// Gives the task to the caller. The event is the take: its position is the token.
fn grant(
    view: &dyn View,
    task: &Task,
    caller: &Caller,
    events: &mut Vec<Event>,
    context: &Context,
) -> Result<TakenTask, Refusal> {
    if task.state() == State::Review {
        return seats::review(view, task, caller, events, context);
    }
    let anew = task.owner().is_some();
    let attempt = task.standing.attempts_used + 1;
    let holder = caller.holder(context);
    let owner = seat(holder, attempt, caller, events, context);
    let standing = Standing {
        state: State::Active,
        since: context.now,
        owner: Some(owner.clone()),
        attempt,
        blocked_on: None,
        why: None,
        base: context.observed.head.clone(),
        ..task.standing.free()
    };
    events.push(moved(task, if anew { Move::TakenAnew } else { Move::Taken }, standing));
    given(view, task, &owner, None)
}

pub(super) fn seat(
    holder: Holder,
    attempt: u32,
    caller: &Caller,
    events: &[Event],
    context: &Context,
) -> Owner {
    Owner {
        session: holder.session,
        name: holder.name,
        agent: holder.agent,
        attempt,
        token: context.next.after(events.len() as u64),
        tree: context.actor.tree.clone().unwrap_or_else(|| caller.session.tree.clone()),
        taken_at: context.now,
        renewed_at: context.now,
        expires_at: context.now + TTL_DEFAULT,
        ttl: TTL_DEFAULT,
    }
}

/// Everything whoever has it now should know.
pub(super) fn given(
    view: &dyn View,
    task: &Task,
    owner: &Owner,
    review: Option<Reviewed>,
) -> Result<TakenTask, Refusal> {
    let dossier = get::<Dossier>(view, task.task.as_str())?;
    let dossier = dossier.unwrap_or_else(|| Dossier::of(task.task.clone()));
    let handoffs = handoffs::chain_of(view, &dossier)?;
    Ok(TakenTask {
        task: task.task.clone(),
        attempt: owner.attempt,
        token: owner.token,
        title: task.title.clone(),
        body: dossier.body,
        priority: task.priority,
        max_attempts: task.max_attempts,
        paths: task.paths.clone(),
        expires_at: owner.expires_at,
        next_action: task.standing.next_action.clone(),
        results_of: results_of(view, task)?,
        attempts: dossier.attempts,
        handoffs,
        feedback: dossier.feedback,
        checkpoint: dossier.checkpoints.last().cloned(),
        review,
    })
}

/// A task that was divided goes on from its own parts, one that follows parts from theirs.
fn results_of(view: &dyn View, task: &Task) -> Result<Option<TaskId>, Refusal> {
    if task.split.is_some() {
        return Ok(Some(task.task.clone()));
    }
    let Some(parent) = &task.parent else {
        return Ok(None);
    };
    let split = get::<Task>(view, parent.as_str())?.and_then(|parent| parent.split);
    let follows = split.is_some_and(|split| split.follows(&task.task));
    Ok(follows.then(|| parent.clone()))
}
