//! The queue: who waits for what, in which order, and when waiting would never end.
//!
//! Owns fairness: first come, first served, priority first, and nobody overtakes an overlapping
//! waiter. A waiter is a record with a lease, so one that died stops nobody for long.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::claim::{self, Claim, Hold, Holder, resource_entries};
use crate::context::{Actor, Context};
use crate::event::{EndOfWait, Event};
use crate::id::WaiterId;
use crate::refusal::Refusal;
use crate::resource::Resource;
use crate::scene::Scene;
use crate::sessions::Process;
use crate::time::{Moment, Span};
use crate::view::{Index, Kind, Query, Record, View, get, scan};

/// A waiting process that does not renew this often is taken for gone.
pub const LEASE: Span = Span::seconds(30);
/// Waiting this long is worth one step of priority.
pub const AGING: Span = Span::seconds(60);
pub const PRIORITY_MAX: u8 = 9;
/// A longer circle than this is not looked for: the wait's deadline ends it.
const CYCLE_LENGTH_MAX: usize = 32;
const WAITS_PER_SESSION_MAX: u32 = 64;
const CLAIMS_LOOKED_AT_MAX: u32 = 10_000;

pub const BY_RESOURCE: Index = "waiter.resource";
pub const BY_SESSION: Index = "waiter.session";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Waiter {
    pub waiter: WaiterId,
    #[serde(flatten)]
    pub hold: Hold,
    pub priority: u8,
    pub queued_at: Moment,
    pub deadline: Moment,
    /// The waiting process shows by renewing this that it is still there.
    pub lease_until: Moment,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<Process>,
    pub ttl: Span,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Record for Waiter {
    const KIND: Kind = "waiter";

    fn key(&self) -> String {
        self.waiter.0.clone()
    }

    fn index_entries(&self) -> Vec<(Index, String)> {
        let mut entries = resource_entries(BY_RESOURCE, &self.hold.resources);
        entries.push((BY_SESSION, self.hold.holder.session.0.clone()));
        entries
    }
}

impl Waiter {
    /// Does it still wait? One that gave up, ran out or visibly died stops nobody.
    pub fn waits(&self, context: &Context) -> bool {
        context.now < self.deadline
            && context.now < self.lease_until
            && !context.observed.waiters_gone.contains(&self.waiter)
    }

    /// Higher is served first; waiting raises it, so that nobody starves.
    fn rank(&self, now: Moment) -> u64 {
        u64::from(self.priority) + now.since(self.queued_at).0 / AGING.0
    }

    /// Is it served before `other`?
    pub fn goes_before(&self, other: &Self, now: Moment) -> bool {
        let key =
            |waiter: &Self| (u64::MAX - waiter.rank(now), waiter.queued_at, waiter.waiter.clone());
        key(self) < key(other)
    }
}

/// Waiters that are served before `me` and want what clashes with it. One that waits for something
/// I hold does not count: holding it back for me would only lengthen its own wait.
pub fn ahead<'a>(
    view: &dyn View,
    scene: &'a Scene,
    me: &Waiter,
    context: &Context,
) -> Result<Vec<(&'a Waiter, Resource)>, Refusal> {
    let mut ahead = Vec::new();
    let mut mine: Option<Vec<Claim>> = None;
    for waiter in &scene.waiters {
        if waiter.waiter == me.waiter || !waiter.waits(context) {
            continue;
        }
        let Some(resource) = contested(scene, &me.hold, &waiter.hold) else {
            continue;
        };
        if !waiter.goes_before(me, context.now) {
            continue;
        }
        if mine.is_none() {
            let session = &me.hold.holder.session;
            mine = Some(scan(view, claim::of_session(session, CLAIMS_LOOKED_AT_MAX))?);
        }
        let waits_for_me = mine.iter().flatten().any(|claim| {
            !claim.has_run_out(context.now) && contested(scene, &waiter.hold, &claim.hold).is_some()
        });
        if !waits_for_me {
            ahead.push((waiter, resource));
        }
    }
    Ok(ahead)
}

/// What of `hold` the other would also need: a clash, or the same counted resource.
fn contested(scene: &Scene, hold: &Hold, other: &Hold) -> Option<Resource> {
    if let Some((asked, _)) = scene.clash(hold, other) {
        return Some(asked.clone());
    }
    if !hold.holder.competes_with(&other.holder) {
        return None;
    }
    let counted = |resource: &&Resource| scene.policy.capacity(resource).is_some();
    let shared = |asked: &&Resource| other.resources.iter().any(|held| held.overlaps(asked));
    hold.resources.iter().filter(counted).find(shared).cloned()
}

/// If waiting for `blockers` would close a circle, the names along it, ending where it began.
pub fn cycle(
    view: &dyn View,
    me: &Holder,
    blockers: &[Holder],
    context: &Context,
) -> Result<Option<Vec<String>>, Refusal> {
    let mut visited = BTreeSet::new();
    let mut open: Vec<Vec<Holder>> =
        blockers.iter().map(|holder| vec![me.clone(), holder.clone()]).collect();
    while let Some(path) = open.pop() {
        let Some(last) = path.last() else { continue };
        if last.session == me.session {
            return Ok(Some(path.into_iter().map(|holder| holder.name).collect()));
        }
        if path.len() > CYCLE_LENGTH_MAX || !visited.insert(last.session.clone()) {
            continue;
        }
        for next in waited_for(view, last, context)? {
            let mut longer = path.clone();
            longer.push(next);
            open.push(longer);
        }
    }
    Ok(None)
}

/// Whom a session waits for, through every wait it has.
fn waited_for(view: &dyn View, holder: &Holder, context: &Context) -> Result<Vec<Holder>, Refusal> {
    let query = Query::equal(BY_SESSION, holder.session.as_str(), WAITS_PER_SESSION_MAX);
    let mut holders = Vec::new();
    for waiter in scan::<Waiter>(view, query)?.iter().filter(|waiter| waiter.waits(context)) {
        let mut anonymous = context.clone();
        anonymous.actor = Actor::default();
        anonymous.observed.complete = true;
        let scene = Scene::read(view, &waiter.hold.resources, &anonymous)?;
        let judgement = scene.judge(&waiter.hold, &anonymous)?;
        let held = judgement.blockers.into_iter().chain(judgement.shortages);
        holders.extend(held.map(|held| held.holder));
        let before = ahead(view, &scene, waiter, &anonymous)?;
        holders.extend(before.into_iter().map(|(waiter, _)| waiter.hold.holder.clone()));
    }
    Ok(holders)
}

/// Gives up a place in the queue.
pub fn withdraw(
    view: &dyn View,
    waiter: &WaiterId,
    why: EndOfWait,
) -> Result<(Vec<Event>, ()), Refusal> {
    let there = get::<Waiter>(view, waiter.as_str())?.is_some();
    let ended = Event::WaitEnded { waiter: waiter.clone(), why };
    Ok((if there { vec![ended] } else { Vec::new() }, ()))
}
