//! What the runner of the queue may do, and what it must write down.
//!
//! Owns whose turn it is, and the order: written down, moved, looked at, landed. Every step is
//! fenced by the runner's token, so one that slept changes nothing. Invariants: the target is moved
//! only after `move_begins`, which names only trees whose checks passed (S16); a landing is landed
//! only after the target was read back.

use super::{Refused, Why, claims, lander_with, whoever};
use crate::claim::Holder;
use crate::context::Context;
use crate::event::Event;
use crate::gate::{self, Gate, Kind, Outcome};
use crate::gates;
use crate::id::{GateId, LandingId, SessionId, Token};
use crate::landing::{self, Cause, LEASE, Landing, Moving, Queue, Runner, State, Verified};
use crate::notices::News;
use crate::policy;
use crate::refusal::Refusal;
use crate::serial;
use crate::sessions::Process;
use crate::task::dossier::{Dossier, Feedback};
use crate::task::{self, Task};
use crate::tasks::{adding, reviewing};
use crate::trust;
use crate::view::{View, get, scan};
use crate::zones::Policy;

/// How much of a log an author is shown.
pub const DETAIL_BYTES_MAX: usize = 4_000;
const GATES_MAX: u32 = 50;

/// Takes the turn, unless somebody has it who is still there.
pub fn begin(
    view: &dyn View,
    process: Option<&Process>,
    context: &Context,
) -> Result<(Vec<Event>, Runner), Refusal> {
    let (caller, _) = lander_with(view, &[], context)?;
    let queue = get::<Queue>(view, Queue::KEY)?.unwrap_or_default();
    if let Some(runner) = queue.runner.filter(|runner| runner.is_there(context)) {
        return Err(Refused::Running { by: Box::new(runner) }.into());
    }
    let runner = Runner {
        token: context.next,
        holder: whoever(caller.as_ref(), context),
        process: process.cloned(),
        since: context.now,
        lease_until: context.now + LEASE,
    };
    let mut events = vec![Event::QueueRunnerStarted { runner: runner.clone() }];
    events.extend(caller.iter().flat_map(|caller| caller.activity(context, &[])));
    Ok((events, runner))
}

/// The queue, if the turn is still the caller's.
fn own(view: &dyn View, token: Token) -> Result<Queue, Refusal> {
    let queue = get::<Queue>(view, Queue::KEY)?.unwrap_or_default();
    match &queue.runner {
        Some(runner) if runner.token == token => Ok(queue),
        other => {
            let current = other.as_ref().map(|runner| runner.holder.clone());
            Err(Refused::LostTurn { current }.into())
        }
    }
}

pub fn renew(
    view: &dyn View,
    token: Token,
    context: &Context,
) -> Result<(Vec<Event>, ()), Refusal> {
    let queue = own(view, token)?;
    let left = queue.runner.map(|runner| runner.lease_until.since(context.now));
    if left.is_some_and(|left| left.0 > LEASE.0 / 2) {
        return Ok((Vec::new(), ()));
    }
    let lease_until = context.now + LEASE;
    Ok((vec![Event::QueueRunnerRenewed { token, lease_until }], ()))
}

/// The turn is over. Whoever was in a candidate stands in line again.
pub fn end(view: &dyn View, token: Token, context: &Context) -> Result<(Vec<Event>, ()), Refusal> {
    own(view, token)?;
    let mut events = back_in_line(view, context)?;
    events.push(Event::QueueRunnerEnded { token });
    Ok((events, ()))
}

fn back_in_line(view: &dyn View, context: &Context) -> Result<Vec<Event>, Refusal> {
    let open: Vec<Landing> = scan(view, landing::all_of(landing::OPEN, super::OPEN_MAX))?;
    let checking = open.into_iter().filter(|landing| landing.state == State::Checking);
    let landings: Vec<LandingId> = checking.map(|landing| landing.landing).collect();
    Ok(match landings.is_empty() {
        true => Vec::new(),
        false => vec![Event::LandingsWaiting { landings, at: context.now }],
    })
}

/// These are in candidates whose checks begin; all others stand in line.
pub fn checking(
    view: &dyn View,
    token: Token,
    landings: &[LandingId],
    context: &Context,
) -> Result<(Vec<Event>, ()), Refusal> {
    own(view, token)?;
    let open: Vec<Landing> = scan(view, landing::all_of(landing::OPEN, super::OPEN_MAX))?;
    let of = |state: State, inside: bool| -> Vec<LandingId> {
        let fits = |one: &&Landing| one.state == state && landings.contains(&one.landing) == inside;
        open.iter().filter(fits).map(|one| one.landing.clone()).collect()
    };
    let (begin, leave) = (of(State::Queued, true), of(State::Checking, false));
    let mut events = Vec::new();
    if !leave.is_empty() {
        events.push(Event::LandingsWaiting { landings: leave, at: context.now });
    }
    if !begin.is_empty() {
        events.push(Event::LandingsChecking { landings: begin, at: context.now });
    }
    Ok((events, ()))
}

/// Checks passed on a tree. `flaky`: they had failed on it before.
pub fn passed(
    view: &dyn View,
    token: Token,
    verified: &Verified,
    flaky: Option<&LandingId>,
    context: &Context,
) -> Result<(Vec<Event>, ()), Refusal> {
    let queue = own(view, token)?;
    let mut events = Vec::new();
    if !queue.has_verified(&verified.tree, &verified.checks) {
        events.push(Event::TreeVerified { verified: verified.clone(), at: context.now });
    }
    if let Some(landing) = flaky {
        let (landing, tree) = (landing.clone(), verified.tree.clone());
        events.push(Event::CheckFlaky { landing, tree, at: context.now });
    }
    Ok((events, ()))
}

/// One landing as the candidate has it.
#[derive(Clone, Debug)]
pub struct Part {
    pub landing: LandingId,
    /// The tip that was merged, checked and judged.
    pub tip: String,
    /// Under which commit it stands in the candidate.
    pub commit: String,
    /// Landed commits in its history.
    pub contains: Vec<String>,
}

/// The target is about to move to a tree whose checks passed. Refused when one of the landings is
/// not what was checked any more: then nothing moves and the candidate is built anew.
pub fn move_begins(
    view: &dyn View,
    token: Token,
    moving: &Moving,
    parts: &[Part],
    tree: &Verified,
    context: &Context,
) -> Result<(Vec<Event>, ()), Refusal> {
    let queue = own(view, token)?;
    if let Some(paused) = queue.paused.clone() {
        return Err(Refused::Paused { paused }.into());
    }
    let checks = policy::in_force(view)?.unwrap_or_default().evidence.named;
    let known = checks.is_empty() || queue.has_verified(&tree.tree, &tree.checks);
    if !known || moving.checked == checks.is_empty() {
        return Err(Refused::Moved.into());
    }
    for part in parts {
        let landing = get::<Landing>(view, part.landing.as_str())?;
        let Some(landing) = landing.filter(|one| !one.state.is_over() && one.tip == part.tip)
        else {
            return Err(Refused::Moved.into());
        };
        claims::admit(view, &landing, &part.contains, context)?;
    }
    Ok((vec![Event::TargetMoving { moving: moving.clone() }], ()))
}

/// The move did not happen: the target is where it was, or somebody else moved it.
pub fn not_moved(
    view: &dyn View,
    token: Token,
    context: &Context,
) -> Result<(Vec<Event>, ()), Refusal> {
    let queue = own(view, token)?;
    if queue.moving.is_none() {
        return Ok((Vec::new(), ()));
    }
    let mut events = vec![Event::TargetNotMoved { at: context.now }];
    events.extend(back_in_line(view, context)?);
    Ok((events, ()))
}

/// The target was seen to have it. Whoever queued it is told, once. `policy` is what the landed
/// `baton.toml` says, where a person approved that it lands: it counts from now on.
pub fn landed(
    view: &dyn View,
    token: Token,
    policy: Option<&Policy>,
    context: &Context,
) -> Result<(Vec<Event>, Vec<Landing>), Refusal> {
    let queue = own(view, token)?;
    let Some(moving) = queue.moving else {
        return Ok((Vec::new(), Vec::new()));
    };
    let mut events = vec![Event::LandingsLanded { moved: moving.clone(), at: context.now }];
    let mut landings = Vec::new();
    for (id, commit) in &moving.landings {
        let Some(mut landing) = get::<Landing>(view, id.as_str())? else { continue };
        landing.land(commit, moving.checked, context.now);
        events.extend(serial::landed(view, &landing.branch)?);
        tell(&landing, &mut events, context);
        landings.push(landing);
    }
    let after_land = policy::in_force(view)?.unwrap_or_default().queue.after_land;
    if let Some(policy) = policy {
        events.extend(trust::stand_for(view, policy, context)?.0);
    }
    if let Some(title) = &after_land {
        events.extend(integration_task(view, title, &moving, &landings, context)?);
    }
    Ok((events, landings))
}

/// One task for what landed together; the same landing files it once.
fn integration_task(
    view: &dyn View,
    title: &str,
    moving: &Moving,
    landings: &[Landing],
    context: &Context,
) -> Result<Vec<Event>, Refusal> {
    let branches: Vec<&str> = landings.iter().map(|landing| landing.branch.as_str()).collect();
    let body =
        format!("landed on {}: {}\ncommit {}", moving.target, branches.join(", "), moving.to);
    let request = adding::Request {
        title: title.to_owned(),
        body: Some(body),
        key: Some(format!("after-land/{}", moving.to)),
        ..adding::Request::default()
    };
    // Nobody in particular files it: the queue does.
    let nobody = Context { actor: crate::context::Actor::default(), ..context.clone() };
    Ok(adding::add(view, &request, &nobody)?.0)
}

fn tell(landing: &Landing, events: &mut Vec<Event>, context: &Context) {
    let to = &landing.by.session;
    if !landing.by.is_session() || context.actor.session.as_ref() == Some(to) {
        return;
    }
    let news = News::LandingOver {
        landing: landing.landing.clone(),
        branch: landing.branch.clone(),
        target: landing.target.clone(),
        state: landing.state,
        reason: landing.reason.clone(),
    };
    reviewing::tell(to, news, events, context);
}

/// It stays in line and says why; nothing new is nothing told.
pub fn held(
    view: &dyn View,
    token: Token,
    id: &LandingId,
    why: &Why,
    context: &Context,
) -> Result<(Vec<Event>, ()), Refusal> {
    own(view, token)?;
    let Some(landing) = get::<Landing>(view, id.as_str())?.filter(|one| !one.state.is_over())
    else {
        return Ok((Vec::new(), ()));
    };
    if landing.state == State::Queued && landing.reason.as_ref() == Some(&why.reason) {
        return Ok((Vec::new(), ()));
    }
    let (landing, at) = (landing.landing, context.now);
    let (cause, reason, files) = (why.cause, why.reason.clone(), why.files.clone());
    Ok((vec![Event::LandingHeld { landing, cause, reason, files, gate: None, at }], ()))
}

/// What a person is asked before a landing that changes the rules it lands under.
pub fn gated(
    view: &dyn View,
    token: Token,
    id: &LandingId,
    files: &[String],
    context: &Context,
) -> Result<(Vec<Event>, Gated), Refusal> {
    own(view, token)?;
    let Some(landing) = get::<Landing>(view, id.as_str())?.filter(|one| !one.state.is_over())
    else {
        return Ok((Vec::new(), Gated::Over));
    };
    let subject = format!("landing {}", landing.landing);
    let known: Vec<Gate> = scan(view, gate::about(gate::BY_SUBJECT, &subject, GATES_MAX))?;
    let same = known.into_iter().find(|gate| gate.commit.as_ref() == Some(&landing.tip));
    if let Some(gate) = same {
        return Ok(match gate.decision.as_ref().map(|decision| decision.outcome) {
            Some(Outcome::Approved | Outcome::Passed) => (Vec::new(), Gated::Approved),
            Some(Outcome::Denied) => {
                let why = gate.decision.and_then(|decision| decision.why).unwrap_or_default();
                (Vec::new(), Gated::Denied { gate: gate.gate, why })
            }
            Some(Outcome::Moot) | None => (Vec::new(), Gated::Waits { gate: gate.gate }),
        });
    }
    let ask = format!(
        "{} changes what Baton runs or allows ({}): may it land on {}?",
        landing.branch,
        files.join(", "),
        landing.target
    );
    let mut events = Vec::new();
    let draft = Gate {
        commit: Some(landing.tip.clone()),
        opened_by: Some(landing.by.clone()).filter(Holder::is_session),
        ..gates::draft(&subject, Kind::Approval, &ask, context)
    };
    let gate = gates::open(view, draft, &mut events)?.gate;
    events.push(Event::LandingHeld {
        landing: landing.landing,
        cause: Cause::Gate,
        reason: format!("a person must approve it first: {gate}"),
        files: files.to_vec(),
        gate: Some(gate.clone()),
        at: context.now,
    });
    Ok((events, Gated::Waits { gate }))
}

/// How a person's word about a landing stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gated {
    Approved,
    Denied {
        gate: GateId,
        why: String,
    },
    Waits {
        gate: GateId,
    },
    /// It is not in line any more.
    Over,
}

/// It goes back to its author, with everything needed to mend it, and the task with it.
pub fn returned(
    view: &dyn View,
    token: Token,
    id: &LandingId,
    why: &Why,
    context: &Context,
) -> Result<(Vec<Event>, Option<Landing>), Refusal> {
    own(view, token)?;
    let Some(mut landing) = get::<Landing>(view, id.as_str())?.filter(|one| !one.state.is_over())
    else {
        return Ok((Vec::new(), None));
    };
    let mut events = vec![Event::LandingReturned {
        landing: landing.landing.clone(),
        cause: why.cause,
        reason: why.reason.clone(),
        files: why.files.clone(),
        log: why.log.clone(),
        at: context.now,
    }];
    landing.go_back(why.cause, &why.reason, &why.files, why.log.as_deref(), context.now);
    tell(&landing, &mut events, context);
    let counts = matches!(why.cause, Cause::Conflict | Cause::Check | Cause::Undo);
    if let Some(id) = landing.task.as_ref().filter(|_| counts)
        && let Some(task) = get::<Task>(view, id.as_str())?
    {
        task_returned(view, task, &landing, why, &mut events, context)?;
    }
    Ok((events, Some(landing)))
}

/// The task goes back as a rejected review would: bounded, with the words.
fn task_returned(
    view: &dyn View,
    mut task: Task,
    landing: &Landing,
    why: &Why,
    events: &mut Vec<Event>,
    context: &Context,
) -> Result<(), Refusal> {
    let queue = queue_itself();
    let text = feedback(landing, why);
    events.push(Event::TaskFeedback {
        task: task.task.clone(),
        feedback: Feedback {
            by: queue.clone(),
            at: context.now,
            attempt: task.standing.attempt,
            commit: Some(landing.tip.clone()),
            text: text.clone(),
        },
    });
    match task.state() {
        task::State::Active => task.standing.author = task.standing.owner.clone(),
        task::State::Review => {}
        task::State::Done => reviewing::judging::hold_back_again(view, &task, events, context)?,
        // Waiting for a person, or put aside: the words are there when somebody takes it up.
        _ => return Ok(()),
    }
    let dossier = get::<Dossier>(view, task.task.as_str())?;
    let dossier = dossier.unwrap_or_else(|| Dossier::of(task.task.clone()));
    reviewing::rejected(view, &mut task, &dossier, &queue, &text, events, context)
}

fn queue_itself() -> Holder {
    Holder { session: SessionId(String::new()), name: "the merge queue".to_owned(), agent: None }
}

fn feedback(landing: &Landing, why: &Why) -> String {
    let mut text = format!("{} ({}) was returned: {}", landing.branch, landing.landing, why.reason);
    if let Some(log) = &why.log {
        text.push_str(&format!("\nlog: {log}"));
    }
    if let Some(detail) = &why.detail {
        let from = detail.len().saturating_sub(DETAIL_BYTES_MAX);
        let from = (from..detail.len()).find(|at| detail.is_char_boundary(*at)).unwrap_or(0);
        text.push_str(&format!("\n{}", &detail[from..]));
    }
    text
}

/// A request to merge it is open: the target is protected.
pub fn proposed(
    view: &dyn View,
    token: Token,
    id: &LandingId,
    commit: &str,
    context: &Context,
) -> Result<(Vec<Event>, ()), Refusal> {
    own(view, token)?;
    let (landing, commit) = (id.clone(), commit.to_owned());
    Ok((vec![Event::LandingProposed { landing, commit, at: context.now }], ()))
}

/// A proposed landing was seen in the target.
pub fn merged(
    view: &dyn View,
    token: Token,
    id: &LandingId,
    from: &str,
    to: &str,
    context: &Context,
) -> Result<(Vec<Event>, Option<Landing>), Refusal> {
    own(view, token)?;
    let Some(mut landing) = get::<Landing>(view, id.as_str())? else {
        return Ok((Vec::new(), None));
    };
    let commit = landing.commit.clone().unwrap_or_else(|| to.to_owned());
    let moved = Moving {
        target: landing.target.clone(),
        from: from.to_owned(),
        to: to.to_owned(),
        landings: vec![(id.clone(), commit.clone())],
        checked: landing.checked,
    };
    let mut events = vec![Event::LandingsLanded { moved, at: context.now }];
    landing.land(&commit, landing.checked, context.now);
    events.extend(serial::landed(view, &landing.branch)?);
    tell(&landing, &mut events, context);
    Ok((events, Some(landing)))
}

impl Landing {
    /// In the target, under this commit.
    pub fn land(&mut self, commit: &str, checked: bool, at: crate::time::Moment) {
        self.state = State::Landed;
        self.since = at;
        self.commit = Some(commit.to_owned());
        self.checked = checked;
        self.cause = None;
        self.files = Vec::new();
        self.reason = (!checked).then(|| "landed unchecked: no checks are configured".to_owned());
    }

    /// Back to its author.
    pub fn go_back(
        &mut self,
        cause: Cause,
        reason: &str,
        files: &[String],
        log: Option<&str>,
        at: crate::time::Moment,
    ) {
        self.state = State::Returned;
        self.since = at;
        self.cause = Some(cause);
        self.reason = Some(reason.to_owned());
        self.files = files.to_vec();
        self.log = log.map(str::to_owned);
    }
}
