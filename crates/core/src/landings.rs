//! What may happen in the merge queue: the parts that people and agents ask for.
//!
//! Owns joining the line, leaving it, and stopping it. One branch stands in line once; a newer
//! commit of it takes the place of the older. What the runner may do is in [`running`], how
//! candidates are chosen in [`searching`], whether claims allow it in [`claims`], and whether the
//! role of whoever lands does in [`bringing`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::claim::Holder;
use crate::context::Context;
use crate::event::Event;
use crate::id::{LandingId, TaskId, TreeId};
use crate::landing::{self, Cause, Landing, PATHS_MAX, Paused, Queue, State};
use crate::notices::Notice;
use crate::refusal::{Class, Refusal};
use crate::roles::{self, Deed};
use crate::scene::Caller;
use crate::task::Task;
use crate::tasks::{TEXT_BYTES_MAX, caller_with, fits, near};
use crate::view::{Query, Row, View, get, scan};

pub mod bringing;
pub mod claims;
pub mod running;
pub mod searching;

/// Landings in line.
pub const OPEN_MAX: u32 = 1_000;
pub const BRANCH_BYTES_MAX: usize = 200;
/// How many landings are named when one is not found.
const NEAR_MAX: u32 = 3;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("there is no git repository here")]
    NoRepository,
    #[error("there is no branch {branch}")]
    NoBranch { branch: String },
    #[error("HEAD stands on no branch")]
    NoBranchHere,
    #[error("{target} is what others land on")]
    IsTarget { target: String },
    #[error("there is no branch {target} to land on")]
    NoTarget { target: String },
    #[error("{branch} has no history in common with {target}")]
    NoBase { branch: String, target: String, shallow: bool },
    #[error("{branch} has nothing that {target} has not")]
    Nothing { branch: String, target: String },
    #[error("there is no landing {landing}")]
    Unknown { landing: String, near: Vec<LandingId> },
    #[error("{landing} is over: {}", state.name())]
    Over { landing: LandingId, state: State },
    #[error("{landing} is not over: {}", state.name())]
    NotOver { landing: LandingId, state: State },
    #[error("{landing} is {by}'s", by = by.name)]
    NotYours { landing: LandingId, by: Holder },
    #[error("the queue is full: {max} landings")]
    Full { max: u32 },
    #[error("{path} is held by {}", by.name)]
    Held { branch: String, path: String, by: Holder, until: Option<crate::time::Moment> },
    #[error("{path} was lost to {}", to.name)]
    Lost { branch: String, path: String, to: Holder, commit: Option<String> },
    #[error("the turn at the queue is over")]
    LostTurn { current: Option<Holder> },
    #[error("the queue is run by {}", by.holder.name)]
    Running { by: Box<landing::Runner> },
    #[error("the queue is paused")]
    Paused { paused: Paused },
    #[error("the target is not where it was")]
    Moved,
}

impl Refused {
    pub fn class(&self) -> Class {
        match self {
            Self::LostTurn { .. } | Self::Moved => Class::Stale,
            _ => Class::Refused,
        }
    }

    pub fn code(&self) -> &'static str {
        match self {
            Self::NoRepository => "no_repository",
            Self::NoBranch { .. } => "no_branch",
            Self::NoBranchHere => "no_branch_here",
            Self::IsTarget { .. } => "is_target",
            Self::NoTarget { .. } => "no_target",
            Self::NoBase { .. } => "no_base",
            Self::Nothing { .. } => "nothing_to_land",
            Self::Unknown { .. } => "unknown_landing",
            Self::Over { .. } => "landing_over",
            Self::NotOver { .. } => "landing_not_over",
            Self::NotYours { .. } => "not_yours",
            Self::Full { .. } => "queue_full",
            Self::Held { .. } => "held",
            Self::Lost { .. } => "lost",
            Self::LostTurn { .. } => "lost_turn",
            Self::Running { .. } => "running",
            Self::Paused { .. } => "paused",
            Self::Moved => "moved",
        }
    }
}

impl From<Refused> for Refusal {
    fn from(refused: Refused) -> Self {
        Self::Landing(Box::new(refused))
    }
}

/// A branch to be landed, as git showed it.
#[derive(Clone, Debug, Serialize)]
pub struct Enqueue {
    pub branch: String,
    pub target: String,
    pub tip: String,
    pub task: Option<String>,
    pub tree: TreeId,
    pub takes_back: bool,
    /// The files it changes.
    pub paths: Vec<String>,
    /// Landed commits that the branch has in its history.
    pub contains: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Enqueued {
    #[serde(flatten)]
    pub landing: Landing,
    /// Its place in line, from one.
    pub place: u64,
    /// The very same stood in line already.
    pub known: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<Notice>,
}

/// Whoever acts, also where no session does: a script that a person set up.
pub(crate) fn whoever(caller: Option<&Caller>, context: &Context) -> Holder {
    crate::gates::by(caller, context).unwrap_or_else(|| Holder {
        session: crate::id::SessionId(String::new()),
        name: "a script".to_owned(),
        agent: None,
    })
}

/// Whoever acts on the queue, if its role lands, with what is read beside.
pub(crate) fn lander_with(
    view: &dyn View,
    queries: &[Query],
    context: &Context,
) -> Result<(Option<Caller>, Vec<Vec<Row>>), Refusal> {
    let (caller, answers) = caller_with(view, queries, context)?;
    if let Some(caller) = &caller {
        roles::admit(view, &caller.session, &[Deed::Land], context)?;
    }
    Ok((caller, answers))
}

/// Puts a branch in line.
pub fn enqueue(
    view: &dyn View,
    request: &Enqueue,
    context: &Context,
) -> Result<(Vec<Event>, Enqueued), Refusal> {
    let queries = [Query::get::<Queue>(Queue::KEY), landing::all_of(landing::OPEN, OPEN_MAX + 1)];
    let (caller, answers) = lander_with(view, &queries, context)?;
    let queue: Queue = crate::view::only(&answers[0])?.pop().unwrap_or_default();
    let open: Vec<Landing> = crate::view::only(&answers[1])?;
    let task = match &request.task {
        None => None,
        Some(text) => Some(task_named(view, text)?.task),
    };
    let notices = caller.as_ref().map(|caller| caller.notices.clone()).unwrap_or_default();
    let activity = |events: &mut Vec<Event>| {
        events.extend(caller.iter().flat_map(|caller| caller.activity(context, &[])));
    };
    let mut events = Vec::new();
    let same = |other: &&Landing| other.branch == request.branch && other.target == request.target;
    let known = open.iter().position(|other| same(&other));
    if let Some(place) = known
        && open[place].tip == request.tip
        && open[place].takes_back == request.takes_back
    {
        activity(&mut events);
        let (landing, place) = (open[place].clone(), place as u64 + 1);
        return Ok((events, Enqueued { landing, place, known: true, notices }));
    }
    if open.len() >= OPEN_MAX as usize && known.is_none() {
        return Err(Refused::Full { max: OPEN_MAX }.into());
    }
    let id = match known {
        Some(place) => open[place].landing.clone(),
        None => LandingId::numbered(queue.landings + 1),
    };
    let landing = Landing {
        landing: id,
        branch: request.branch.clone(),
        target: request.target.clone(),
        tip: request.tip.clone(),
        task: task.or_else(|| known.and_then(|place| open[place].task.clone())),
        by: whoever(caller.as_ref(), context),
        tree: request.tree.clone(),
        takes_back: request.takes_back,
        paths: kept(&request.paths),
        queued_at: known.map_or(context.now, |place| open[place].queued_at),
        state: State::Queued,
        since: context.now,
        reason: None,
        cause: None,
        files: Vec::new(),
        log: None,
        commit: None,
        checked: false,
        gate: None,
        flaky: 0,
    };
    if let Some(caller) = &caller {
        bringing::admit(view, request, &caller.session, context)?;
    }
    claims::admit(view, &landing, &request.contains, context)?;
    let place = known.unwrap_or(open.len()) as u64 + 1;
    events.push(Event::LandingQueued { landing: Box::new(landing.clone()) });
    activity(&mut events);
    Ok((events, Enqueued { landing, place, known: false, notices }))
}

/// More than so many are not kept; it then overlaps with everything.
fn kept(paths: &[String]) -> Vec<String> {
    if paths.len() > PATHS_MAX { Vec::new() } else { paths.to_vec() }
}

fn task_named(view: &dyn View, text: &str) -> Result<Task, Refusal> {
    let id = TaskId::parse(text).map(|id| id.0).unwrap_or_default();
    match get::<Task>(view, &id)? {
        Some(task) => Ok(task),
        None => Err(near::unknown(view, text)?),
    }
}

pub fn find(view: &dyn View, text: &str) -> Result<Landing, Refusal> {
    let id = LandingId::parse(text).map(|id| id.0).unwrap_or_default();
    if let Some(landing) = get::<Landing>(view, &id)? {
        return Ok(landing);
    }
    // People also know it by its branch.
    if let Some(landing) = scan::<Landing>(view, landing::of_branch(text, 1))?.pop() {
        return Ok(landing);
    }
    let near: Vec<Landing> = scan(view, landing::all_of(landing::ALL, NEAR_MAX))?;
    let near = near.into_iter().map(|landing| landing.landing).collect();
    Err(Refused::Unknown { landing: text.chars().take(80).collect(), near }.into())
}

/// A landing after something was done to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Changed {
    #[serde(flatten)]
    pub landing: Landing,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<Notice>,
}

/// May the caller decide about it? Whoever queued it, whoever works on its task, or a person.
fn may(
    view: &dyn View,
    landing: &Landing,
    caller: Option<&Caller>,
    context: &Context,
) -> Result<(), Refusal> {
    let me = caller.map(|caller| &caller.session.session);
    let mine = Some(&landing.by.session) == me || !landing.by.is_session();
    let task = landing.task.as_ref().map(|id| get::<Task>(view, id.as_str())).transpose()?;
    let owns = task.flatten().is_some_and(|task| {
        task.owner().is_some_and(|owner| Some(&owner.session) == me && me.is_some())
    });
    if mine || owns || context.actor.person {
        return Ok(());
    }
    let (landing, by) = (landing.landing.clone(), landing.by.clone());
    Err(Refused::NotYours { landing, by }.into())
}

/// Takes it out of the line. Its branch stays as it is.
pub fn remove(
    view: &dyn View,
    text: &str,
    why: Option<&str>,
    context: &Context,
) -> Result<(Vec<Event>, Changed), Refusal> {
    fits("reason", why, TEXT_BYTES_MAX)?;
    let (caller, _) = lander_with(view, &[], context)?;
    let mut landing = find(view, text)?;
    if landing.state.is_over() {
        let (landing, state) = (landing.landing, landing.state);
        return Err(Refused::Over { landing, state }.into());
    }
    may(view, &landing, caller.as_ref(), context)?;
    let by = whoever(caller.as_ref(), context);
    let reason = why.map_or_else(|| format!("{} took it out", by.name), str::to_owned);
    landing.state = State::Removed;
    landing.since = context.now;
    landing.reason = Some(reason.clone());
    let mut events = vec![Event::LandingRemoved {
        landing: landing.landing.clone(),
        by,
        at: context.now,
        reason,
    }];
    Ok((activity(caller.as_ref(), &mut events, context), changed(landing, caller)))
}

/// Puts one that was returned or removed in line again, as its branch is now.
pub fn again(
    view: &dyn View,
    text: &str,
    request: &Enqueue,
    context: &Context,
) -> Result<(Vec<Event>, Enqueued), Refusal> {
    let landing = find(view, text)?;
    if !landing.state.is_over() || landing.state == State::Landed {
        let (landing, state) = (landing.landing, landing.state);
        return Err(match state {
            State::Landed => Refused::Over { landing, state },
            _ => Refused::NotOver { landing, state },
        }
        .into());
    }
    enqueue(view, request, context)
}

/// Nothing lands until it is resumed.
pub fn pause(
    view: &dyn View,
    why: Option<&str>,
    context: &Context,
) -> Result<(Vec<Event>, Standing), Refusal> {
    fits("reason", why, TEXT_BYTES_MAX)?;
    let (caller, _) = lander_with(view, &[], context)?;
    let queue = get::<Queue>(view, Queue::KEY)?.unwrap_or_default();
    if let Some(paused) = queue.paused {
        return Ok((Vec::new(), Standing { paused: Some(paused), changed: false }));
    }
    let why = why.map(str::to_owned);
    let paused = Paused { by: whoever(caller.as_ref(), context), at: context.now, why };
    let mut events = vec![Event::QueuePaused { paused: paused.clone() }];
    let events = activity(caller.as_ref(), &mut events, context);
    Ok((events, Standing { paused: Some(paused), changed: true }))
}

pub fn resume(view: &dyn View, context: &Context) -> Result<(Vec<Event>, Standing), Refusal> {
    let (caller, _) = lander_with(view, &[], context)?;
    let queue = get::<Queue>(view, Queue::KEY)?.unwrap_or_default();
    let Some(paused) = queue.paused else {
        return Ok((Vec::new(), Standing { paused: None, changed: false }));
    };
    let by = whoever(caller.as_ref(), context);
    let me = caller.as_ref().map(|caller| &caller.session.session);
    let own = Some(&paused.by.session) == me || !paused.by.is_session();
    if !own && !context.actor.person {
        return Err(Refused::Paused { paused }.into());
    }
    let mut events = vec![Event::QueueResumed { by, at: context.now }];
    let events = activity(caller.as_ref(), &mut events, context);
    Ok((events, Standing { paused: None, changed: true }))
}

/// Whether the queue moves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Standing {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<Paused>,
    /// It was not so before.
    pub changed: bool,
}

fn activity(caller: Option<&Caller>, events: &mut Vec<Event>, context: &Context) -> Vec<Event> {
    events.extend(caller.iter().flat_map(|caller| caller.activity(context, &[])));
    std::mem::take(events)
}

fn changed(landing: Landing, caller: Option<Caller>) -> Changed {
    Changed { landing, notices: caller.map(|caller| caller.notices).unwrap_or_default() }
}

/// Why a landing is held back, in one sentence with its cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Why {
    pub cause: Cause,
    pub reason: String,
    pub files: Vec<String>,
    pub log: Option<String>,
    /// What the author needs to see: the end of the log, the conflict.
    pub detail: Option<String>,
}

impl Why {
    pub fn new(cause: Cause, reason: impl Into<String>) -> Self {
        let (files, log, detail) = (Vec::new(), None, None);
        Self { cause, reason: reason.into(), files, log, detail }
    }
}
