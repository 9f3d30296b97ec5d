//! The queue: who waits for what, in which order, and when waiting would never end.
//!
//! Owns fairness: first come, first served, priority first, and nobody overtakes an overlapping
//! waiter. A waiter is a record with a lease, so one that died stops nobody for long.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::claim::{self, Claim, Hold, Holder, resource_entries};
use crate::context::{Actor, Context};
use crate::event::{EndOfWait, Event};
use crate::id::{Position, SessionId, WaiterId};
use crate::refusal::Refusal;
use crate::resource::Resource;
use crate::scene::{Scarce, Scene};
use crate::sessions::Process;
use crate::time::{Moment, Span};
use crate::view::{Index, Kind, Query, Record, View, get, scan};

/// A waiting process that does not renew this often is taken for gone.
pub const LEASE: Span = Span::seconds(30);
/// A waiter looks at least this often, and renews its lease when no more than that is left: well
/// before the next look could find it run out.
pub const LOOK_AT_LEAST_EVERY: Span = Span::seconds(10);
pub const LEASE_RENEWED_BELOW: Span = Span::seconds(20);
/// The record of a waiter that stopped waiting is cleared away after this long.
pub const GONE_KEPT: Span = Span::minutes(10);
/// Waiting this long is worth one step of priority.
pub const AGING: Span = Span::seconds(60);
pub const PRIORITY_MAX: u8 = 9;
/// A longer circle than this is not looked for: the wait's deadline ends it.
const CYCLE_LENGTH_MAX: usize = 32;
const WAITS_PER_SESSION_MAX: u32 = 64;
const CLAIMS_LOOKED_AT_MAX: u32 = 10_000;

pub const BY_SESSION: Index = "waiter.session";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Waiter {
    pub waiter: WaiterId,
    #[serde(flatten)]
    pub hold: Hold,
    pub priority: u8,
    /// Its place in the queue: the journal position of the decision that queued it. Two may queue
    /// in the same millisecond, never at the same position.
    pub place: Position,
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
        let mut entries = resource_entries(claim::BY_RESOURCE, &self.hold.resources);
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
        let key = |waiter: &Self| (u64::MAX - waiter.rank(now), waiter.place);
        key(self) < key(other)
    }

    /// Whoever asks now stands behind all who wait with the same priority.
    pub fn newcomer(hold: Hold, context: &Context) -> Self {
        Self {
            waiter: WaiterId::fresh(&context.fresh, 1),
            hold,
            priority: 0,
            place: context.next,
            queued_at: context.now,
            deadline: context.now,
            lease_until: context.now + LEASE,
            process: None,
            ttl: Span::ZERO,
            reason: None,
        }
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
            let mut own = scan(view, claim::of_session(session, CLAIMS_LOOKED_AT_MAX))?;
            own.retain(|claim: &Claim| {
                claim.is_live(context) && !me.hold.holder.competes_with(&claim.hold.holder)
            });
            mine = Some(own);
        }
        if !mine.as_ref().is_some_and(|mine| needs_from(scene, &waiter.hold, mine)) {
            ahead.push((waiter, resource));
        }
    }
    Ok(ahead)
}

/// Is what `wanted` names out of reach as long as these claims stand, whatever others do?
fn needs_from(scene: &Scene, wanted: &Hold, claims: &[Claim]) -> bool {
    let clashes = claims.iter().any(|claim| scene.clash(wanted, &claim.hold).is_some());
    let scarce = wanted.resources.iter().any(|asked| {
        let taken = |claim: &Claim| {
            let held = claim.hold.resources.iter().filter(|held| held.overlaps(asked));
            held.fold(0_u32, |sum, held| sum.saturating_add(held.amount()))
        };
        scene.policy.capacity(asked).is_some_and(|capacity| {
            let used = claims.iter().fold(0_u32, |sum, claim| sum.saturating_add(taken(claim)));
            capacity.saturating_sub(used) < asked.amount()
        })
    });
    clashes || scarce
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

/// Clears away the records of waiters that stopped waiting and did not say so.
pub(crate) fn forget_gone(scene: &Scene, me: &Waiter, context: &Context) -> Vec<Event> {
    let gone = |waiter: &&Waiter| {
        let stopped = waiter.deadline.min(waiter.lease_until);
        context.observed.waiters_gone.contains(&waiter.waiter)
            || context.now.since(stopped) >= GONE_KEPT
    };
    let others = scene.waiters.iter().filter(|waiter| waiter.waiter != me.waiter);
    others
        .filter(gone)
        .map(|waiter| Event::WaitEnded { waiter: waiter.waiter.clone(), why: EndOfWait::Gone })
        .collect()
}

/// What must happen before a waiter is served: each of the holders lets go, and of each scarce
/// resource enough becomes free.
#[derive(Clone, Debug, Default)]
pub struct Needs {
    pub holders: Vec<Holder>,
    pub scarce: Vec<Scarce>,
}

/// If waiting for these would close a circle, the names along it, ending where it began.
pub fn cycle(
    view: &dyn View,
    me: &Holder,
    needs: &Needs,
    context: &Context,
) -> Result<Option<Vec<String>>, Refusal> {
    let mut search = Search { view, me, context, known: BTreeMap::new() };
    let way = search.way_back(needs, 0)?;
    Ok(way.map(|way| std::iter::once(me.name.clone()).chain(way).collect()))
}

/// Names from a holder, who waits for somebody who waits … for me; none if there is no such way.
type WayBack = Option<Vec<String>>;

struct Search<'a> {
    view: &'a dyn View,
    me: &'a Holder,
    context: &'a Context,
    /// Holders already looked at. One that is being looked at has no way yet.
    known: BTreeMap<(SessionId, Option<String>), WayBack>,
}

impl Search<'_> {
    fn way_back(&mut self, needs: &Needs, length: usize) -> Result<WayBack, Refusal> {
        for holder in &needs.holders {
            if let Some(way) = self.through(holder, length)? {
                return Ok(Some(way));
            }
        }
        // Of a counted resource enough may become free without those who wait for me.
        for scarce in &needs.scarce {
            let (mut stuck, mut first) = (0_u32, None);
            for (holder, taken) in &scarce.takers {
                if let Some(way) = self.through(holder, length)? {
                    stuck = stuck.saturating_add(*taken);
                    first = first.or(Some(way));
                }
            }
            if scarce.capacity.saturating_sub(stuck) < scarce.asked && first.is_some() {
                return Ok(first);
            }
        }
        Ok(None)
    }

    fn through(&mut self, holder: &Holder, length: usize) -> Result<WayBack, Refusal> {
        // A subagent goes on while its session waits, but a session that waits for its subagent
        // does not: what the session itself holds is held by whoever of it waits.
        let me = holder.agent.is_none() || holder.agent == self.me.agent;
        if holder.session == self.me.session && me {
            return Ok(Some(vec![holder.name.clone()]));
        }
        let key = (holder.session.clone(), holder.agent.clone());
        if let Some(way) = self.known.get(&key) {
            return Ok(way.clone());
        }
        self.known.insert(key.clone(), None);
        if length >= CYCLE_LENGTH_MAX {
            return Ok(None);
        }
        let needs = self.needs_of(holder)?;
        let way = self.way_back(&needs, length + 1)?;
        let way =
            way.map(|way| std::iter::once(holder.name.clone()).chain(way).collect::<Vec<_>>());
        self.known.insert(key, way.clone());
        Ok(way)
    }

    /// Whom a holder waits for: a session through every wait it has, a subagent through its own.
    fn needs_of(&self, holder: &Holder) -> Result<Needs, Refusal> {
        let query = Query::equal(BY_SESSION, holder.session.as_str(), WAITS_PER_SESSION_MAX);
        let mut context = self.context.clone();
        context.actor = Actor::default();
        context.observed.complete = true;
        let mut needs = Needs::default();
        for waiter in scan::<Waiter>(self.view, query)? {
            let its_own = holder.agent.is_none() || waiter.hold.holder.agent == holder.agent;
            if !its_own || !waiter.waits(&context) {
                continue;
            }
            let mut scene = Scene::read(self.view, &waiter.hold.resources, &context)?;
            scene.claims.retain(|claim| claim.lasts(&context));
            let judgement = scene.judge(&waiter.hold, &context)?;
            needs.holders.extend(judgement.blockers.into_iter().map(|held| held.holder));
            needs.scarce.extend(judgement.scarce);
            let before = ahead(self.view, &scene, &waiter, &context)?;
            needs.holders.extend(before.into_iter().map(|(other, _)| other.hold.holder.clone()));
        }
        Ok(needs)
    }
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
