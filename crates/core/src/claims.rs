//! Who may take, keep and lose a claim.
//!
//! Every function reads a [`Scene`], decides, and returns the events that follow with the answer.
//! Invariants: a grant is all or nothing under one token (S3); no two live claims of different
//! sessions clash (S1); a claim never ends before its time by being looked at (S8).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::claim::{self, Claim, Hold, Holder, Leftover, Mode, Scope};
use crate::context::Context;
use crate::event::{EndOfClaim, EndOfWait, Event};
use crate::id::{ClaimId, NoticeId, Token, WaiterId};
use crate::notices::{News, Notice};
use crate::refusal::{Held, Refusal};
use crate::resource::Resource;
use crate::scene::{Caller, Scene};
use crate::sessions::Process;
use crate::time::{Moment, Span};
use crate::view::View;
use crate::waiting::{self, Waiter};
use crate::zones::Rule;

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
    /// The place in the queue this request already has.
    #[serde(skip)]
    pub waiter: Option<WaiterId>,
    /// The process that will wait.
    #[serde(skip)]
    pub process: Option<Process>,
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
    let hold = hold_of(&scene, &caller, request, context)?;
    let judgement = scene.judge(&hold, context)?;
    let own = scene.claims.iter().find(|claim| same_hold(claim, &hold)).cloned();
    if let Some(own) = own.as_ref().filter(|own| !own.has_run_out(context.now)) {
        return Ok(hold_on(&scene, &caller, own, request, context));
    }
    let me = waiter_of(&scene, hold, request, context);
    let mut in_the_way = foreign(&me.hold, context);
    in_the_way.extend(judgement.blockers);
    in_the_way.extend(judgement.shortages);
    in_the_way.extend(waiting::ahead(view, &scene, &me, context)?.into_iter().map(queued_first));
    if !in_the_way.is_empty() {
        return wait(view, &caller, me, in_the_way, request, context);
    }
    let mut events = Vec::new();
    for gone in judgement.run_out.iter().filter(|claim| Some(*claim) != own.as_ref()) {
        events.push(gone.ends(EndOfClaim::Expired, context));
        events.push(lost_notice(gone, &me.hold.holder, context, events.len()));
    }
    if let Some(own) = &own {
        events.push(own.ends(EndOfClaim::Replaced, context));
    }
    Ok(grant(&scene, &caller, &me, request, events, context))
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
    scene: &Scene,
    caller: &Caller,
    request: &Request,
    context: &Context,
) -> Result<Hold, Refusal> {
    let mut resources = Vec::with_capacity(request.resources.len());
    let mut scope = request.scope;
    let mut zones = Vec::new();
    for resource in &request.resources {
        let rule = scene.policy.rule(resource);
        if rule == Rule::Human && !context.actor.person {
            return Err(Refusal::NeedsPerson { what: format!("taking {resource}") });
        }
        if rule > Rule::Append || matches!(resource, Resource::Name { .. }) {
            scope = Scope::Workspace;
        }
        if let Resource::Name { amount, .. } = resource {
            let capacity = scene.policy.capacity(resource).unwrap_or(1);
            if *amount > capacity {
                return Err(Refusal::OverCapacity { resource: resource.clone(), capacity });
            }
        }
        zones.extend(scene.policy.serial_zone(resource));
        if !resources.contains(resource) {
            resources.push(resource.clone());
        }
    }
    for zone in zones {
        if !resources.contains(&zone) {
            resources.push(zone);
        }
    }
    let holder = Holder {
        session: caller.session.session.clone(),
        name: caller.session.name.clone(),
        agent: context.actor.agent.clone(),
    };
    let tree = context.actor.tree.clone().unwrap_or_else(|| caller.session.tree.clone());
    Ok(Hold { holder, tree, scope, mode: request.mode, resources })
}

/// Does the caller's claim already give all that is asked?
fn same_hold(claim: &Claim, hold: &Hold) -> bool {
    let enough_mode = claim.hold.mode == Mode::Exclusive || hold.mode == Mode::Shared;
    let enough_scope = claim.hold.scope == Scope::Workspace || hold.scope == Scope::Tree;
    claim.hold.holder.session == hold.holder.session
        && claim.hold.holder.agent == hold.holder.agent
        && claim.hold.tree == hold.tree
        && enough_mode
        && enough_scope
        && claim.hold.covers(&hold.resources)
}

/// The caller asks for what it holds: the lease is renewed, the token stays.
fn hold_on(
    scene: &Scene,
    caller: &Caller,
    own: &Claim,
    request: &Request,
    context: &Context,
) -> (Vec<Event>, Answer) {
    let mut events = caller.activity(context, &[&own.claim]);
    let expires_at = (context.now + request.ttl).max(own.expires_at);
    if expires_at.since(own.expires_at).0 > own.ttl.0 / 2 || own.ttl < request.ttl {
        let claims = vec![own.renewal(expires_at)];
        events.push(Event::ClaimsRenewed { claims, at: context.now });
    }
    if let Some(waiter) = &request.waiter {
        events.push(Event::WaitEnded { waiter: waiter.clone(), why: EndOfWait::Granted });
    }
    let mut granted = granted(scene, own, caller);
    granted.already_held = true;
    granted.expires_at = expires_at;
    (events, Answer::Granted(Box::new(granted)))
}

fn granted(scene: &Scene, claim: &Claim, caller: &Caller) -> Granted {
    Granted {
        claim: claim.claim.clone(),
        token: claim.token,
        resources: claim.hold.resources.clone(),
        mode: claim.hold.mode,
        scope: claim.hold.scope,
        expires_at: claim.expires_at,
        already_held: false,
        elsewhere: elsewhere(scene, &claim.hold, claim.granted_at),
        left_behind: Vec::new(),
        notices: caller.notices.clone(),
    }
}

/// Claims of other trees on the same paths: no conflict yet, but a merge to come.
pub fn elsewhere(scene: &Scene, hold: &Hold, now: Moment) -> Vec<Held> {
    let mut wide = hold.clone();
    wide.scope = Scope::Workspace;
    let apart =
        scene.claims.iter().filter(|claim| !claim.hold.meets(hold) && !claim.has_run_out(now));
    apart
        .filter_map(|claim| {
            let (asked, held) = scene.clash(&wide, &claim.hold)?;
            Some(Held::by_claim(claim, asked, held, false))
        })
        .collect()
}

fn waiter_of(scene: &Scene, hold: Hold, request: &Request, context: &Context) -> Waiter {
    let queued = request
        .waiter
        .as_ref()
        .and_then(|id| scene.waiters.iter().find(|waiter| waiter.waiter == *id));
    match queued {
        Some(waiter) => Waiter { hold, ..waiter.clone() },
        None => Waiter {
            waiter: WaiterId::fresh(&context.fresh, 1),
            hold,
            priority: request.priority,
            queued_at: context.now,
            deadline: context.now + request.wait.unwrap_or_default(),
            lease_until: context.now + waiting::LEASE,
            process: request.process.clone(),
            ttl: request.ttl,
            reason: request.reason.clone(),
        },
    }
}

/// Lock files of other tools count as claims that nobody here can end.
fn foreign(hold: &Hold, context: &Context) -> Vec<Held> {
    let held = context.observed.foreign_locks.iter().filter_map(|lock| {
        let asked = hold.resources.iter().find(|asked| asked.overlaps(&lock.resource))?;
        Some(Held {
            resource: asked.clone(),
            held: lock.resource.clone(),
            holder: Holder {
                session: crate::id::SessionId(String::new()),
                name: lock.holder.clone(),
                agent: None,
            },
            since: context.now,
            until: None,
            reason: None,
            claim: None,
            queued: false,
            free: None,
            idle_dirty: false,
        })
    });
    held.collect()
}

fn queued_first((waiter, resource): (&Waiter, Resource)) -> Held {
    Held {
        held: resource.clone(),
        resource,
        holder: waiter.hold.holder.clone(),
        since: waiter.queued_at,
        until: Some(waiter.deadline),
        reason: waiter.reason.clone(),
        claim: None,
        queued: true,
        free: None,
        idle_dirty: false,
    }
}

fn lost_notice(gone: &Claim, to: &Holder, context: &Context, ordinal: usize) -> Event {
    let news = News::Lost {
        claim: gone.claim.clone(),
        resources: gone.hold.resources.clone(),
        to: Some(to.clone()),
        why: "its time had run out".to_owned(),
    };
    notice(gone, news, context, ordinal)
}

/// A notice to the holder of `claim`.
fn notice(claim: &Claim, news: News, context: &Context, ordinal: usize) -> Event {
    let ordinal = u32::try_from(ordinal).unwrap_or(u32::MAX - 64) + 64;
    let notice = Notice {
        notice: NoticeId::fresh(&context.fresh, ordinal),
        to: claim.hold.holder.session.clone(),
        at: context.now,
        news,
    };
    Event::NoticeSent { notice }
}

/// Queues, or refuses when the caller does not want to wait or never could stop.
fn wait(
    view: &dyn View,
    caller: &Caller,
    me: Waiter,
    in_the_way: Vec<Held>,
    request: &Request,
    context: &Context,
) -> Result<(Vec<Event>, Answer), Refusal> {
    let first = in_the_way[0].clone();
    let Some(_) = request.wait.filter(|wait| *wait > Span::ZERO) else {
        return Err(Refusal::Held(Box::new(first)));
    };
    let queued = request.waiter.is_some();
    if queued && context.now >= me.deadline {
        return Err(Refusal::WaitedInVain(Box::new(first)));
    }
    // Who holds nothing and waits for nothing else cannot be part of a circle.
    let own = view.read(&[claim::of_session(&caller.session.session, 1)])?;
    if queued || own.iter().any(|rows| !rows.is_empty()) {
        let blockers: Vec<Holder> = in_the_way.iter().map(|held| held.holder.clone()).collect();
        if let Some(names) = waiting::cycle(view, &me.hold.holder, &blockers, context)? {
            return Err(Refusal::Cycle { names });
        }
    }
    let mut events = caller.activity(context, &[]);
    if !queued {
        events.push(Event::WaitQueued { waiter: me.clone() });
    } else if me.lease_until.since(context.now).0 < waiting::LEASE.0 / 2 {
        let lease_until = context.now + waiting::LEASE;
        events.push(Event::WaitRenewed { waiter: me.waiter.clone(), lease_until });
    }
    let ends = in_the_way.iter().filter_map(|held| held.until);
    let lease = context.now + Span(waiting::LEASE.0 / 2);
    let earliest = ends.filter(|end| *end > context.now).min().unwrap_or(lease);
    let answer = Queued {
        waiter: me.waiter,
        deadline: me.deadline,
        blockers: in_the_way,
        look_again_at: earliest.min(lease).min(me.deadline),
    };
    Ok((events, Answer::Queued(Box::new(answer))))
}

fn grant(
    scene: &Scene,
    caller: &Caller,
    me: &Waiter,
    request: &Request,
    mut events: Vec<Event>,
    context: &Context,
) -> (Vec<Event>, Answer) {
    // The token is the position at which this very event will stand in the journal.
    let token = context.next.after(events.len() as u64);
    let claim = Claim {
        claim: ClaimId::fresh(&context.fresh, 0),
        token,
        hold: me.hold.clone(),
        ttl: request.ttl,
        granted_at: context.now,
        renewed_at: context.now,
        expires_at: context.now + request.ttl,
        reason: request.reason.clone(),
        task: request.task.clone(),
    };
    events.push(Event::ClaimGranted { claim: claim.clone() });
    let mut granted = granted(scene, &claim, caller);
    granted.left_behind = left_behind(scene, &claim.hold, &events);
    if !granted.left_behind.is_empty() {
        let claims = granted.left_behind.iter().map(|left| left.claim.clone()).collect();
        events.push(Event::LeftoversTold { claims });
    }
    if let Some(waiter) = &request.waiter {
        events.push(Event::WaitEnded { waiter: waiter.clone(), why: EndOfWait::Granted });
    }
    let replaced: Vec<ClaimId> = events
        .iter()
        .filter_map(|event| match event {
            Event::ClaimEnded { claim, .. } => Some(claim.clone()),
            _ => None,
        })
        .collect();
    let except: Vec<&ClaimId> = replaced.iter().collect();
    events.extend(caller.activity(context, &except));
    (events, Answer::Granted(Box::new(granted)))
}

/// Uncommitted changes of earlier holders in this tree and these paths, also of claims that end
/// in this very decision.
fn left_behind(scene: &Scene, hold: &Hold, events: &[Event]) -> Vec<Leftover> {
    let ended = events.iter().filter_map(|event| match event {
        Event::ClaimEnded { left, .. } => left.as_ref(),
        _ => None,
    });
    let concerns = |left: &&Leftover| {
        left.tree == hold.tree
            && left.holder.session != hold.holder.session
            && left.paths.iter().any(|path| hold.resources.iter().any(|held| held.overlaps(path)))
    };
    scene.leftovers.iter().chain(ended).filter(concerns).cloned().collect()
}
