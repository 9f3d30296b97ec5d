//! Who may take, keep and lose a claim.
//!
//! Every function reads a [`Scene`], decides, and returns the events that follow with the answer.
//! Invariants: a grant is all or nothing under one token (S3); no two live claims of different
//! sessions clash (S1); a claim never ends before its time by being looked at (S8).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::claim::{self, Claim, Hold, Holder, Leftover, Mode, Scope};
use crate::context::Context;
use crate::event::{EndOfWait, Event, Renewal};
use crate::evolve::evolve;
use crate::gates::edits;
use crate::id::{ClaimId, Token, WaiterId};
use crate::interfaces;
use crate::key::Key;
use crate::notices::Notice;
use crate::overlay::Overlay;
use crate::refusal::{Held, Refusal};
use crate::resource::Resource;
use crate::roles::{self, Deed};
use crate::scene::{Caller, Judgement, Scene};
use crate::serial::{self, EndOfZone, ZoneHold};
use crate::sessions::Process;
use crate::tasks::reviewing::editing_again::edited;
use crate::time::{Moment, Span};
use crate::view::View;
use crate::waiting::{self, Waiter};
use crate::zones::{Rule, is_serial_zone};

use granting::{Terms, grant, tell_leftovers};

mod granting;
pub mod letting_go;

/// The most resources one claim may name.
pub const CLAIM_RESOURCES_MAX: usize = 1_000;
pub const REASON_BYTES_MAX: usize = 2_000;
pub const TTL_MIN: Span = Span::seconds(1);
pub const TTL_MAX: Span = Span::hours(24);
pub const TTL_DEFAULT: Span = Span::minutes(30);
pub const WAIT_MAX: Span = Span::hours(24);

/// A request for a claim, its resources settled.
#[derive(Clone, Debug, Serialize)]
pub struct Request {
    pub resources: Vec<Resource>,
    pub mode: Mode,
    pub scope: Scope,
    pub ttl: Span,
    pub priority: u8,
    pub reason: Option<String>,
    pub task: Option<String>,
    /// Queue for at most this long instead of being refused at once.
    pub wait: Option<Span>,
    /// The place in the queue this request already has. If that is gone meanwhile (its session
    /// ended, or nobody renewed it for long), the request queues anew, behind the others.
    #[serde(skip)]
    pub waiter: Option<WaiterId>,
    /// The process that will wait.
    #[serde(skip)]
    pub process: Option<Process>,
}

impl Request {
    /// These alone, against everybody, for the usual time and without waiting.
    pub fn of(resources: Vec<Resource>) -> Self {
        Self {
            resources,
            mode: Mode::Exclusive,
            scope: Scope::Workspace,
            ttl: TTL_DEFAULT,
            priority: 0,
            reason: None,
            task: None,
            wait: None,
            waiter: None,
            process: None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Answer {
    Granted(Box<Granted>),
    Queued(Box<Queued>),
}

/// A claim that was granted, with everything its holder should know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Granted {
    pub claim: ClaimId,
    pub token: Token,
    pub resources: Vec<Resource>,
    /// Serial zones that are held along with them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub zones: Vec<Resource>,
    pub mode: Mode,
    pub scope: Scope,
    pub expires_at: Moment,
    /// It was held already; nothing new was taken.
    pub already_held: bool,
    /// Sessions in other trees that work on the same paths.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub elsewhere: Vec<Held>,
    /// Whose uncommitted changes lie in these paths.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_behind: Vec<Leftover>,
    /// Interfaces whose owner is gone: they are this session's to keep now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<Key>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<Notice>,
}

/// A place in the queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Queued {
    pub waiter: WaiterId,
    pub deadline: Moment,
    /// Everyone in the way now.
    pub blockers: Vec<Held>,
    /// When to look again at the latest, if nothing else happens.
    pub look_again_at: Moment,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<Notice>,
}

/// Takes a claim, or queues for it, or refuses.
pub fn take(
    view: &dyn View,
    request: &Request,
    context: &Context,
) -> Result<(Vec<Event>, Answer), Refusal> {
    validate(request)?;
    let scene = Scene::read(view, &request.resources, context)?;
    let caller = scene.caller.clone().ok_or(Refusal::NoSession)?;
    let hold = hold_of(view, &scene, &caller, request, context)?;
    let place = place_of(&scene, &hold, request);
    let held = |claim: &&Claim| claim.is_live(context) && gives(&claim.hold, &hold);
    if let Some(own) = scene.claims.iter().find(held) {
        let (mut events, mut granted) = hold_on(&scene, &caller, own, place, request, context);
        let inherited = interfaces::inherit(view, &scene, own, context)?;
        granted.interfaces = interfaces::names_of(&inherited);
        events.extend(inherited);
        if request.mode == Mode::Exclusive {
            granted.notices.extend(edited(view, &caller, &hold, &mut events, context)?);
        }
        return Ok((events, Answer::Granted(Box::new(granted))));
    }
    let judgement = scene.judge(&hold, context)?;
    let me = place.cloned().map_or_else(
        || newcomer(hold.clone(), request, context),
        |place| Waiter { hold: hold.clone(), ..place },
    );
    let obstacles = obstacles(view, &scene, &me, &judgement, context)?;
    if !obstacles.held.is_empty() {
        return wait(view, &scene, &caller, place, me, obstacles, request, context);
    }
    let mut events = Vec::new();
    let terms = Terms { ttl: request.ttl, reason: &request.reason, task: &request.task };
    let claim = grant(&scene, hold, &terms, &judgement.run_out, &mut events, context);
    events.extend(obstacles.over.into_iter().map(|(bound, why)| bound.ends(why)));
    events.extend(serial::bind(view, &scene, &claim, context)?);
    let inherited = interfaces::inherit(view, &scene, &claim, context)?;
    let mut granted = granted(&scene, &claim, &caller, context);
    granted.interfaces = interfaces::names_of(&inherited);
    events.extend(inherited);
    let (told, left_behind) = tell_leftovers(&scene, &claim.hold, &events);
    granting::inherit(&mut events, &claim.claim, &left_behind);
    events.extend(told);
    granted.left_behind = left_behind;
    if let Some(place) = place {
        let waiter = place.waiter.clone();
        events.push(Event::WaitEnded { waiter, why: EndOfWait::Granted });
    }
    events.extend(waiting::forget_gone(&scene, &me, context));
    let changed = granting::changed(&events);
    events.extend(caller.activity(context, &changed.iter().collect::<Vec<_>>()));
    if request.mode == Mode::Exclusive {
        granted.notices.extend(edited(view, &caller, &claim.hold, &mut events, context)?);
    }
    Ok((events, Answer::Granted(Box::new(granted))))
}

/// Takes several claims in one decision: all of them, or none (S3). Who waits for one of them
/// asks for that alone.
pub fn take_together(
    view: &dyn View,
    requests: &[Request],
    context: &Context,
) -> Result<(Vec<Event>, Vec<Granted>), Refusal> {
    let mut overlay = Overlay::new(view);
    let (mut events, mut all) = (Vec::new(), Vec::with_capacity(requests.len()));
    for (place, request) in (0..).zip(requests) {
        let part = Context {
            next: context.next.after(events.len() as u64),
            fresh: context.fresh.part(place),
            ..context.clone()
        };
        let (new, answer) = take(&overlay, &Request { wait: None, ..request.clone() }, &part)?;
        // Without waiting nobody is queued.
        let Answer::Granted(granted) = answer else { return Err(Refusal::Empty) };
        new.iter().try_for_each(|event| evolve(&mut overlay, event))?;
        events.extend(new);
        all.push(*granted);
    }
    Ok((events, all))
}

fn validate(request: &Request) -> Result<(), Refusal> {
    let count = request.resources.len();
    if count == 0 {
        return Err(Refusal::Empty);
    }
    if count > CLAIM_RESOURCES_MAX {
        return Err(Refusal::TooMany { given: count, max: CLAIM_RESOURCES_MAX });
    }
    if request.reason.as_ref().is_some_and(|reason| reason.len() > REASON_BYTES_MAX) {
        return Err(Refusal::TooLong { what: "reason", bytes_max: REASON_BYTES_MAX });
    }
    let range = |what, given: Span, min: Span, max: Span| match given {
        given if given < min || given > max => Err(Refusal::OutOfRange {
            what,
            given: given.to_string(),
            allowed: format!("{min} to {max}"),
        }),
        _ => Ok(()),
    };
    range("ttl", request.ttl, TTL_MIN, TTL_MAX)?;
    range("wait", request.wait.unwrap_or_default(), Span::ZERO, WAIT_MAX)?;
    if request.priority > waiting::PRIORITY_MAX {
        let given = request.priority.to_string();
        let allowed = format!("0 to {}", waiting::PRIORITY_MAX);
        return Err(Refusal::OutOfRange { what: "priority", given, allowed });
    }
    Ok(())
}

/// What the request would hold once zones have had their say.
fn hold_of(
    view: &dyn View,
    scene: &Scene,
    caller: &Caller,
    request: &Request,
    context: &Context,
) -> Result<Hold, Refusal> {
    for resource in &request.resources {
        let human = scene.policy.rule(resource) == Rule::Human && !context.actor.person;
        if human && !edits::are_allowed(view, resource, context.actor.session.as_ref())? {
            return Err(Refusal::NeedsPerson { what: format!("taking {resource}") });
        }
        // Holding something together with others is reading it.
        if request.mode == Mode::Exclusive && !context.actor.person {
            roles::admit_by(&scene.policy.roles, &caller.session, Deed::Hold(resource), context)
                .map_err(Refusal::Role)?;
        }
    }
    let hold = Hold {
        holder: caller.holder(context),
        tree: context.actor.tree.clone().unwrap_or_else(|| caller.session.tree.clone()),
        scope: request.scope,
        mode: request.mode,
        resources: request.resources.clone(),
    };
    let hold = granting::settle(&scene.policy, hold);
    for resource in &hold.resources {
        let Resource::Name { amount, .. } = resource else { continue };
        let capacity = scene.policy.capacity(resource).unwrap_or(1);
        if *amount > capacity {
            return Err(Refusal::OverCapacity { resource: resource.clone(), capacity });
        }
    }
    Ok(hold)
}

/// Does what is held already give all that is asked?
fn gives(held: &Hold, asked: &Hold) -> bool {
    held.holder.session == asked.holder.session
        && held.holder.agent == asked.holder.agent
        && (held.mode == Mode::Exclusive || asked.mode == Mode::Shared)
        && (held.scope == Scope::Workspace || asked.scope == Scope::Tree && held.tree == asked.tree)
        && held.covers(&asked.resources)
}

/// The caller asks for what it holds: the token stays, and the lease is renewed when it is half
/// used or when a longer one is asked for. What is answered is what is stored, never more.
fn hold_on(
    scene: &Scene,
    caller: &Caller,
    own: &Claim,
    place: Option<&Waiter>,
    request: &Request,
    context: &Context,
) -> (Vec<Event>, Granted) {
    let mut own = own.clone();
    let mut events = caller.activity(context, &[&own.claim]);
    let longer = Some(request.ttl).filter(|ttl| *ttl > own.ttl);
    if longer.is_some() || own.is_half_used(context.now) {
        own.ttl = longer.unwrap_or(own.ttl);
        let renewal = Renewal { ttl: longer, ..own.renewal(own.ttl, context) };
        own.expires_at = renewal.expires_at;
        own.renewed_at = context.now;
        events.push(Event::ClaimsRenewed { claims: vec![renewal], at: context.now });
    }
    if let Some(place) = place {
        let waiter = place.waiter.clone();
        events.push(Event::WaitEnded { waiter, why: EndOfWait::Granted });
    }
    let mut granted = granted(scene, &own, caller, context);
    granted.already_held = true;
    (events, granted)
}

fn granted(scene: &Scene, claim: &Claim, caller: &Caller, context: &Context) -> Granted {
    Granted {
        claim: claim.claim.clone(),
        token: claim.token,
        resources: paths_and_names(&claim.hold),
        zones: claim.hold.resources.iter().filter(|held| is_serial_zone(held)).cloned().collect(),
        mode: claim.hold.mode,
        scope: claim.hold.scope,
        expires_at: claim.expiry(context.failed_over_at),
        already_held: false,
        elsewhere: elsewhere(scene, &claim.hold, context),
        left_behind: Vec::new(),
        interfaces: Vec::new(),
        notices: caller.notices.clone(),
    }
}

/// What was asked for, without the names of the zones it brought along.
fn paths_and_names(hold: &Hold) -> Vec<Resource> {
    hold.resources.iter().filter(|held| !is_serial_zone(held)).cloned().collect()
}

/// Claims of other trees on the same paths: no conflict yet, but a merge to come.
pub fn elsewhere(scene: &Scene, hold: &Hold, context: &Context) -> Vec<Held> {
    let mut wide = hold.clone();
    wide.scope = Scope::Workspace;
    let apart =
        scene.claims.iter().filter(|claim| !claim.hold.meets(hold) && claim.is_live(context));
    apart
        .filter_map(|claim| {
            let (asked, held) = scene.clash(&wide, &claim.hold)?;
            Some(Held::by_claim(claim, asked, held, false))
        })
        .collect()
}

/// The caller's place in the queue. Nobody can use another's, and one that is gone is no place.
fn place_of<'a>(scene: &'a Scene, hold: &Hold, request: &Request) -> Option<&'a Waiter> {
    let id = request.waiter.as_ref()?;
    let place = scene.waiters.iter().find(|waiter| waiter.waiter == *id)?;
    Some(place).filter(|place| place.hold.holder.session == hold.holder.session)
}

fn newcomer(hold: Hold, request: &Request, context: &Context) -> Waiter {
    Waiter {
        priority: request.priority,
        deadline: context.now + request.wait.unwrap_or_default(),
        process: request.process.clone(),
        ttl: request.ttl,
        reason: request.reason.clone(),
        ..Waiter::newcomer(hold, context)
    }
}

/// Everything in the way of a hold, and what of it is a matter of amounts.
struct Obstacles {
    held: Vec<Held>,
    needs: waiting::Needs,
    /// Serial zones that are bound to a branch no longer.
    over: Vec<(ZoneHold, EndOfZone)>,
}

fn obstacles(
    view: &dyn View,
    scene: &Scene,
    me: &Waiter,
    judgement: &Judgement,
    context: &Context,
) -> Result<Obstacles, Refusal> {
    let mut held = judgement.blockers.clone();
    held.extend(waiting::ahead(view, scene, me, context)?.into_iter().map(queued_first));
    let ends_by_itself = |held: &&Held| {
        let claim = scene.claims.iter().find(|claim| Some(&claim.claim) == held.claim.as_ref());
        claim.is_some_and(|claim| !claim.lasts(context))
    };
    let lasting = held.iter().filter(|held| !ends_by_itself(held));
    let holders = lasting.map(|held| held.holder.clone()).collect();
    let needs = waiting::Needs { holders, scarce: judgement.scarce.clone() };
    // Those that hold come before those that wait, and other tools before both: nobody here can
    // end what they have.
    let mut all = foreign(&me.hold, context);
    let queued = held.split_off(judgement.blockers.len());
    all.extend(held);
    all.extend(judgement.shortages.iter().cloned());
    all.extend(queued);
    if all.is_empty() && me.hold.mode == Mode::Exclusive {
        all = interfaces::in_the_way(view, scene, &me.hold, context)?;
    }
    let mut over = Vec::new();
    if all.is_empty() {
        let found = serial::judge(view, scene, &me.hold, context)?;
        (all, over) = (found.held, found.over);
    }
    Ok(Obstacles { held: all, needs, over })
}

/// Lock files of other tools count as claims that nobody here can end.
pub(crate) fn foreign(hold: &Hold, context: &Context) -> Vec<Held> {
    let held = context.observed.foreign_locks.iter().filter_map(|lock| {
        let asked = hold.resources.iter().find(|asked| asked.overlaps(&lock.resource))?;
        let nobody = crate::id::SessionId(String::new());
        let holder = Holder { session: nobody, name: lock.holder.clone(), agent: None };
        Some(Held::new(asked.clone(), lock.resource.clone(), holder, context.now))
    });
    held.collect()
}

pub(crate) fn queued_first((waiter, resource): (&Waiter, Resource)) -> Held {
    let holder = waiter.hold.holder.clone();
    Held {
        // Longer only if it still waits then, and says so.
        until: Some(waiter.deadline.min(waiter.lease_until)),
        reason: waiter.reason.clone(),
        queued: true,
        ..Held::new(resource.clone(), resource, holder, waiter.queued_at)
    }
}

/// Queues, or refuses when the caller does not want to wait or never could stop.
#[expect(clippy::too_many_arguments, reason = "the second half of `take`, with all it knows")]
fn wait(
    view: &dyn View,
    scene: &Scene,
    caller: &Caller,
    place: Option<&Waiter>,
    me: Waiter,
    obstacles: Obstacles,
    request: &Request,
    context: &Context,
) -> Result<(Vec<Event>, Answer), Refusal> {
    let Obstacles { held, needs, .. } = obstacles;
    let first = Box::new(held[0].clone());
    if request.wait.unwrap_or_default() == Span::ZERO {
        return Err(Refusal::Held(first));
    }
    if place.is_some() && context.now >= me.deadline {
        return Err(Refusal::WaitedInVain(first));
    }
    // Who holds nothing and waits for nothing else cannot be part of a circle.
    let own = view.read(&[claim::of_session(&caller.session.session, 1)])?;
    if (place.is_some() || own.iter().any(|rows| !rows.is_empty()))
        && let Some(names) = waiting::cycle(view, &me.hold.holder, &needs, context)?
    {
        return Err(Refusal::Cycle { names });
    }
    let mut events = caller.activity(context, &[]);
    if place.is_none() {
        events.push(Event::WaitQueued { waiter: me.clone() });
    } else if me.lease_until.since(context.now) <= waiting::LEASE_RENEWED_BELOW {
        let lease_until = context.now + waiting::LEASE;
        events.push(Event::WaitRenewed { waiter: me.waiter.clone(), lease_until });
    }
    events.extend(waiting::forget_gone(scene, &me, context));
    let ends = held.iter().filter_map(|held| held.until);
    let lease = context.now + waiting::LOOK_AT_LEAST_EVERY;
    let earliest = ends.filter(|end| *end > context.now).min().unwrap_or(lease);
    let answer = Queued {
        waiter: me.waiter,
        deadline: me.deadline,
        blockers: held,
        look_again_at: earliest.min(lease).min(me.deadline),
        notices: caller.notices.clone(),
    };
    Ok((events, Answer::Queued(Box::new(answer))))
}
