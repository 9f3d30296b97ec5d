//! Everything a decision about a hold must look at, read in one batch.
//!
//! Owns the search for candidates: for a path, claims at each of its ancestors and, for a pattern,
//! below its literal prefix; so the cost follows depth and matches, not the number of claims. Then
//! judges each candidate: in the way, run out, or none of our business.

use std::collections::BTreeSet;

use crate::claim::{self, Claim, Hold, Holder, Leftover, Mode};
use crate::context::{Context, Life, Proof, Sighting};
use crate::event::{EndOfClaim, Event};
use crate::id::ClaimId;
use crate::interfaces::Interface;
use crate::notices::{self, Notice};
use crate::refusal::{Held, Refusal};
use crate::resource::Resource;
use crate::serial::ZoneHold;
use crate::sessions::{self, Alias, Session};
use crate::task::{self, Task};
use crate::time::{Moment, Span};
use crate::view::{Index, Query, Record, Row, View, get, only, parse};
use crate::waiting::Waiter;
use crate::zones::{Policy, SERIAL_PREFIX};

/// How many candidates one look reads at first; it looks again for more when all of it was used.
const CANDIDATES_AT_FIRST: u32 = 256;
/// How many claims one act renews at the most; the rest follow with the next.
const DUE_MAX: u32 = 1_000;

/// The session that acts, proven, with what it must renew and be told.
#[derive(Clone, Debug)]
pub struct Caller {
    pub session: Session,
    /// Its claims whose lease is half used.
    pub due: Vec<Claim>,
    /// Its tasks whose lease is half used.
    pub due_tasks: Vec<Task>,
    pub notices: Vec<Notice>,
}

impl Caller {
    const QUERIES: usize = 4;
    /// Where among them the answer stands of what is due.
    const DUE: usize = 2;

    fn queries(context: &Context, limit: u32) -> Result<Vec<Query>, Refusal> {
        let id = context.actor.session.as_ref().ok_or(Refusal::NoSession)?;
        let alias = match &context.actor.proof {
            Proof::Alias(key) => key.clone(),
            _ => String::new(),
        };
        Ok(vec![
            Query::get::<Session>(id.as_str()),
            Query::get::<Alias>(alias),
            claim::due_for_renewal(id, context.now, limit),
            notices::waiting_for(id, context.actor.agent.as_deref(), notices::TOLD_MAX),
        ])
    }

    fn from_answers(answers: &[Vec<Row>], context: &Context) -> Result<Self, Refusal> {
        let id = context.actor.session.clone().ok_or(Refusal::NoSession)?;
        let [session, alias, due, notices] = answers else {
            return Err(Refusal::NoSession);
        };
        let Some(session) = session.first() else {
            return Err(Refusal::UnknownSession { session: id.0 });
        };
        let session: Session = parse(&session.body)?;
        let alias = alias.first().map(|row| parse::<Alias>(&row.body)).transpose()?;
        sessions::prove(&session, alias.as_ref(), &context.actor.proof)?;
        if let sessions::Life::Ended { at, .. } = session.life {
            return Err(Refusal::SessionEnded { session: id, name: session.name, at });
        }
        Ok(Self {
            session,
            due: only(due)?,
            due_tasks: only(due)?,
            notices: notices.iter().map(|row| parse(&row.body)).collect::<Result<_, _>>()?,
        })
    }

    /// The caller as a holder: the session, or the subagent of it that acts.
    pub fn holder(&self, context: &Context) -> Holder {
        Holder {
            session: self.session.session.clone(),
            name: self.session.name.clone(),
            agent: context.actor.agent.clone(),
        }
    }

    /// The caller alone, for acts that look at nothing else.
    pub fn read(view: &dyn View, context: &Context) -> Result<Self, Refusal> {
        Ok(Self::read_with(view, context, &[])?.0)
    }

    /// The caller, and the answers to `more`, in one read.
    pub fn read_with(
        view: &dyn View,
        context: &Context,
        more: &[Query],
    ) -> Result<(Self, Vec<Vec<Row>>), Refusal> {
        let mut queries = Self::queries(context, DUE_MAX)?;
        queries.extend(more.iter().cloned());
        let mut answers = view.read(&queries)?;
        let rest = answers.split_off(Self::QUERIES);
        let mut caller = Self::from_answers(&answers, context)?;
        caller.look_past_run_out(view, &answers[Self::DUE], context)?;
        Ok((caller, rest))
    }

    /// Claims that ran out and that nobody took stand first in the index. They are not renewed,
    /// and however many there are, they must not hide the ones that are due.
    fn look_past_run_out(
        &mut self,
        view: &dyn View,
        page: &[Row],
        context: &Context,
    ) -> Result<(), Refusal> {
        let mut last = page.last().filter(|_| page.len() >= DUE_MAX as usize).cloned();
        while let Some(row) = last.take() {
            if self.due.iter().all(|claim| claim.is_live(context)) {
                break;
            }
            self.due.retain(|claim| claim.is_live(context));
            let entries = crate::view::index_entries(row.kind, &row.body)?;
            let value = entries.into_iter().find(|(index, _)| *index == claim::BY_SESSION);
            let mut query = claim::due_for_renewal(&self.session.session, context.now, DUE_MAX);
            if let (Query::Scan { after, .. }, Some((_, value))) = (&mut query, value) {
                *after = Some((value, row.kind.to_owned(), row.key));
            }
            let page = view.read(&[query])?.pop().unwrap_or_default();
            self.due.extend(only::<Claim>(&page)?);
            self.due_tasks.extend(only::<Task>(&page)?);
            last = page.last().filter(|_| page.len() >= DUE_MAX as usize).cloned();
        }
        self.due.retain(|claim| claim.is_live(context));
        Ok(())
    }

    /// What every act of a session brings along: leases that are half used are renewed, and what
    /// it had to be told counts as told. `except` names claims that end in the same decision.
    pub fn activity(&self, context: &Context, except: &[&ClaimId]) -> Vec<Event> {
        let now = context.now;
        let mut events = Vec::new();
        if half_used(self.session.expires_at, self.session.ttl, now) {
            let expires_at = now + self.session.ttl;
            let session = self.session.session.clone();
            events.push(Event::SessionRenewed { session, at: now, expires_at });
        }
        let due = |claim: &&Claim| {
            claim.is_live(context)
                && claim.lives_by(&context.actor)
                && !except.contains(&&claim.claim)
        };
        let claims: Vec<_> =
            self.due.iter().filter(due).map(|claim| claim.renewal(claim.ttl, context)).collect();
        if !claims.is_empty() {
            events.push(Event::ClaimsRenewed { claims, at: now });
        }
        events.extend(self.renewed_tasks(context));
        if !self.notices.is_empty() {
            let notices = self.notices.iter().map(|notice| notice.notice.clone()).collect();
            events.push(Event::NoticesTold { notices });
        }
        events
    }
}

impl Caller {
    /// An attempt whose lease ran out is not renewed: somebody may be about to take it.
    fn renewed_tasks(&self, context: &Context) -> Option<Event> {
        let renewal = |task: &Task| {
            let seat = task.seat_of(&self.session.session)?;
            let promised = seat.expiry(context.failed_over_at);
            let expires_at = (context.now + seat.ttl).max(promised);
            let renewal = task::Renewal { task: task.task.clone(), token: seat.token, expires_at };
            seat.is_live(context).then_some(renewal)
        };
        let tasks: Vec<_> = self.due_tasks.iter().filter_map(renewal).collect();
        (!tasks.is_empty()).then_some(Event::TasksRenewed { tasks, at: context.now })
    }
}

impl Claim {
    pub(crate) fn is_half_used(&self, now: Moment) -> bool {
        half_used(self.expires_at, self.ttl, now)
    }
}

fn half_used(expires_at: Moment, ttl: Span, now: Moment) -> bool {
    expires_at.since(now).0 < ttl.0 / 2
}

/// What surrounds the resources that are asked for.
#[derive(Clone, Debug)]
pub struct Scene {
    /// `None` when nobody in particular asks: a check without a session.
    pub caller: Option<Caller>,
    pub policy: Policy,
    /// Claims of anyone that may overlap, run out or not.
    pub claims: Vec<Claim>,
    pub waiters: Vec<Waiter>,
    pub leftovers: Vec<Leftover>,
    /// Serial zones that are bound to a branch.
    pub zones: Vec<ZoneHold>,
    /// What others build on among them.
    pub interfaces: Vec<Interface>,
}

impl Scene {
    pub fn read(
        view: &dyn View,
        resources: &[Resource],
        context: &Context,
    ) -> Result<Self, Refusal> {
        let mut limit = CANDIDATES_AT_FIRST;
        loop {
            let (scene, complete) = Self::read_up_to(view, resources, context, limit)?;
            if complete {
                return Ok(scene);
            }
            limit = limit.saturating_mul(16);
        }
    }

    /// The scene, and whether no page was cut off at `limit`.
    fn read_up_to(
        view: &dyn View,
        resources: &[Resource],
        context: &Context,
        limit: u32,
    ) -> Result<(Self, bool), Refusal> {
        let known = context.actor.session.is_some();
        let mut queries = if known { Caller::queries(context, DUE_MAX)? } else { Vec::new() };
        queries.push(Query::get::<Policy>(Policy::KEY));
        let head = queries.len();
        queries.extend(candidates(resources, limit));
        let answers = view.read(&queries)?;
        let complete = answers[head..].iter().all(|rows| rows.len() < limit as usize);
        let mut caller = match known {
            true => Some(Caller::from_answers(&answers[..Caller::QUERIES], context)?),
            false => None,
        };
        if let Some(caller) = &mut caller {
            caller.look_past_run_out(view, &answers[Caller::DUE], context)?;
        }
        let policy = answers[head - 1].first().map(|row| parse(&row.body)).transpose()?;
        let mut scene = Self {
            caller,
            policy: policy.unwrap_or_default(),
            claims: Vec::new(),
            waiters: Vec::new(),
            leftovers: Vec::new(),
            zones: Vec::new(),
            interfaces: Vec::new(),
        };
        let mut seen = BTreeSet::new();
        for row in answers[head..].iter().flatten() {
            if !seen.insert((row.kind, row.key.as_str())) {
                continue;
            }
            match row.kind {
                Claim::KIND => scene.claims.push(parse(&row.body)?),
                Waiter::KIND => scene.waiters.push(parse(&row.body)?),
                ZoneHold::KIND => scene.zones.push(parse(&row.body)?),
                Interface::KIND => scene.interfaces.push(parse(&row.body)?),
                Leftover::KIND => scene.leftovers.push(parse(&row.body)?),
                _ => {}
            }
        }
        Ok((scene, complete))
    }

    /// What the claims look like after these events.
    pub(crate) fn follow(&mut self, events: &[Event]) {
        for event in events {
            match event {
                Event::ClaimGranted { claim } => self.claims.push(claim.clone()),
                Event::ClaimEnded { claim, .. } => self.claims.retain(|one| one.claim != *claim),
                Event::ClaimNarrowed { claim, resources, .. } => {
                    for one in self.claims.iter_mut().filter(|one| one.claim == *claim) {
                        one.hold.resources.clone_from(resources);
                    }
                }
                _ => {}
            }
        }
    }

    /// Does `other` stand in the way of `hold`? Amounts of counted resources are weighed apart.
    pub fn clash<'a>(
        &self,
        hold: &'a Hold,
        other: &'a Hold,
    ) -> Option<(&'a Resource, &'a Resource)> {
        if !hold.holder.competes_with(&other.holder) || !hold.meets(other) {
            return None;
        }
        if hold.mode == Mode::Shared && other.mode == Mode::Shared {
            return None;
        }
        let uncounted = |resource: &&Resource| self.policy.capacity(resource).is_none();
        hold.resources.iter().filter(uncounted).find_map(|mine| {
            let theirs = other.resources.iter().find(|theirs| mine.overlaps(theirs))?;
            Some((mine, theirs))
        })
    }

    /// The path that brought a serial zone into `hold`: people asked for that, not for the zone.
    pub(crate) fn asked_for<'a>(&self, hold: &'a Hold, asked: &'a Resource) -> &'a Resource {
        let brings = |path: &&Resource| self.policy.serial_zones(path).contains(asked);
        hold.resources.iter().find(brings).unwrap_or(asked)
    }

    /// Sorts the claims that matter to `hold` into those in the way and those that have run out.
    pub fn judge(&self, hold: &Hold, context: &Context) -> Result<Judgement, Refusal> {
        let mut judgement = Judgement::default();
        let mut unobserved = Vec::new();
        for claim in &self.claims {
            let clash = self.clash(hold, &claim.hold);
            let counted = hold.resources.iter().any(|resource| {
                self.policy.capacity(resource).is_some()
                    && claim.hold.resources.iter().any(|held| held.overlaps(resource))
            });
            if clash.is_none() && !counted {
                continue;
            }
            // One's own claim that has run out is taken anew: it never stands in one's own way.
            if !hold.holder.competes_with(&claim.hold.holder) && !claim.is_live(context) {
                continue;
            }
            match standing(claim, context) {
                // That its session's process lives says nothing of a subagent.
                Standing::Holds { idle_dirty: true, .. }
                    if claim.hold.holder.session == hold.holder.session =>
                {
                    judgement.run_out.push(claim.clone());
                }
                Standing::Holds { until, idle_dirty } => {
                    if let Some((asked, held)) = clash {
                        let asked = self.asked_for(hold, asked);
                        let mut held = Held::by_claim(claim, asked, held, idle_dirty);
                        held.until = Some(until);
                        judgement.blockers.push(held);
                    }
                    if counted {
                        judgement.counted.push(claim.clone());
                    }
                }
                Standing::Unseen => unobserved.push(claim.claim.clone()),
                Standing::RunOut => judgement.run_out.push(claim.clone()),
            }
        }
        if unobserved.is_empty() {
            self.weigh(hold, &mut judgement);
            Ok(judgement)
        } else {
            Err(Refusal::Unobserved { claims: unobserved })
        }
    }

    /// Finds the counted resources of which less is free than `hold` asks for. What the caller
    /// itself holds of them counts too: amounts are for everyone together.
    fn weigh(&self, hold: &Hold, judgement: &mut Judgement) {
        for resource in &hold.resources {
            let (Some(capacity), Resource::Name { amount, .. }) =
                (self.policy.capacity(resource), resource)
            else {
                continue;
            };
            let mut takers: Vec<(&Claim, &Resource, u32)> = Vec::new();
            for claim in &judgement.counted {
                let held = claim.hold.resources.iter().filter(|held| held.overlaps(resource));
                takers.extend(held.map(|held| (claim, held, held.amount())));
            }
            let used = takers.iter().fold(0_u32, |sum, (_, _, taken)| sum.saturating_add(*taken));
            let free = capacity.saturating_sub(used);
            if free >= *amount {
                continue;
            }
            // The first to run out is named, another session before the caller itself.
            let own = |claim: &Claim| !hold.holder.competes_with(&claim.hold.holder);
            let first = takers.iter().min_by_key(|(claim, ..)| (own(claim), claim.expires_at));
            if let Some((claim, held, _)) = first {
                let mut blocker = Held::by_claim(claim, resource, held, false);
                blocker.free = Some(free);
                judgement.shortages.push(blocker);
            }
            let takers = takers.iter().map(|(claim, _, taken)| (claim.hold.holder.clone(), *taken));
            let takers = takers.collect();
            judgement.scarce.push(Scarce { asked: *amount, capacity, takers });
        }
    }
}

/// What a judgement found.
#[derive(Clone, Debug, Default)]
pub struct Judgement {
    pub blockers: Vec<Held>,
    pub shortages: Vec<Held>,
    /// The same shortages with everyone who takes part of them.
    pub scarce: Vec<Scarce>,
    /// Live claims on counted resources that are asked for.
    counted: Vec<Claim>,
    /// Claims whose time is over: they end in the decision that takes their place.
    pub run_out: Vec<Claim>,
}

/// A counted resource of which too little is free.
#[derive(Clone, Debug)]
pub struct Scarce {
    pub asked: u32,
    pub capacity: u32,
    pub takers: Vec<(Holder, u32)>,
}

enum Standing {
    Holds {
        until: Moment,
        idle_dirty: bool,
    },
    RunOut,
    /// Its time is over, but nobody has looked yet whether its holder lives.
    Unseen,
}

/// Does this claim hold now? Never early (S8); past its time only while its process is seen to
/// live over uncommitted changes, or for the lock delay when it cannot be seen.
fn standing(claim: &Claim, context: &Context) -> Standing {
    let expires_at = claim.expiry(context.failed_over_at);
    if context.now < expires_at {
        return Standing::Holds { until: expires_at, idle_dirty: false };
    }
    let sighting = context.observed.claims.get(&claim.claim);
    let delayed = expires_at + claim.lock_delay();
    match sighting.map(|sighting| (sighting.life, sighting.dirty.is_empty())) {
        None if !context.observed.complete => Standing::Unseen,
        Some((Life::Alive, false)) => Standing::Holds { until: expires_at, idle_dirty: true },
        Some((Life::Alive | Life::Dead, _)) => Standing::RunOut,
        Some((Life::Unknown, _)) | None if context.now < delayed => {
            Standing::Holds { until: delayed, idle_dirty: false }
        }
        Some((Life::Unknown, _)) | None => Standing::RunOut,
    }
}

impl Claim {
    /// How this claim ends, with what it leaves behind.
    pub fn ends(&self, why: EndOfClaim, context: &Context) -> Event {
        // Who takes the same again leaves nothing behind: the changes are still its own. And what
        // is handed over is not left: the next has it.
        let left = match why {
            EndOfClaim::Replaced | EndOfClaim::HandedOver { .. } => None,
            _ => self.leaves(|_| true, context),
        };
        Event::ClaimEnded {
            claim: self.claim.clone(),
            session: self.hold.holder.session.clone(),
            resources: self.hold.resources.clone(),
            why,
            left,
        }
    }

    /// Will it stand until somebody lets go? One in its lock delay ends by itself, soon.
    pub(crate) fn lasts(&self, context: &Context) -> bool {
        let kept = |sighting: &Sighting| sighting.life == Life::Alive && !sighting.dirty.is_empty();
        self.is_live(context) || context.observed.claims.get(&self.claim).is_some_and(kept)
    }

    /// How this claim goes on with the resources in `kept` and without those in `gone`.
    pub fn narrows(&self, kept: Vec<Resource>, gone: Vec<Resource>, context: &Context) -> Event {
        let within = |all: &[Resource], path: &Resource| all.iter().any(|one| one.overlaps(path));
        let left = self.leaves(|path| within(&gone, path) && !within(&kept, path), context);
        Event::ClaimNarrowed { claim: self.claim.clone(), resources: kept, released: gone, left }
    }

    /// Uncommitted changes that were seen in those of its paths that are `meant`.
    fn leaves(&self, meant: impl Fn(&Resource) -> bool, context: &Context) -> Option<Leftover> {
        let sighting = context.observed.claims.get(&self.claim)?;
        let paths: Vec<Resource> =
            sighting.dirty.iter().filter(|path| meant(path)).cloned().collect();
        (!paths.is_empty()).then(|| Leftover {
            claim: self.claim.clone(),
            holder: self.hold.holder.clone(),
            tree: self.hold.tree.clone(),
            paths,
            rescue: sighting.rescue.clone(),
            ended_at: context.now,
        })
    }
}

impl Held {
    pub fn by_claim(claim: &Claim, asked: &Resource, held: &Resource, idle_dirty: bool) -> Self {
        Self {
            resource: asked.clone(),
            held: held.clone(),
            holder: claim.hold.holder.clone(),
            since: claim.granted_at,
            until: Some(claim.expiry(None)),
            reason: claim.reason.clone(),
            claim: Some(claim.claim.clone()),
            queued: false,
            free: None,
            busy: claim.busy_until.is_some_and(|until| until > claim.expires_at),
            idle_dirty,
            unlanded: None,
            interface: None,
        }
    }
}

/// Where claims, waiters and leftovers that may overlap `resources` are found.
fn candidates(resources: &[Resource], limit: u32) -> Vec<Query> {
    let index = claim::BY_RESOURCE;
    let mut places = Places::of(resources);
    // Serial zones are found before the policy is known, all in the same batch: they are few.
    places.ranges.insert(format!("@{SERIAL_PREFIX}"));
    let points = places.points.iter().map(|value| Query::equal(index, value, limit));
    points.chain(places.ranges.iter().map(|from| Places::below(index, from, limit))).collect()
}

/// Where in an index by resources something that overlaps may stand: at each of these points, and
/// within each of these ranges.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places {
    pub(crate) points: BTreeSet<String>,
    pub(crate) ranges: BTreeSet<String>,
}

impl Places {
    pub(crate) fn of(resources: &[Resource]) -> Self {
        let mut points = BTreeSet::new();
        let mut ranges = BTreeSet::new();
        for resource in resources {
            let value = resource.index_value();
            match resource {
                Resource::Name { .. } => {
                    points.insert(value);
                }
                Resource::Path(pattern) => {
                    let ends = value.match_indices('/').map(|(at, _)| value[..=at].to_owned());
                    points.extend(ends);
                    if !pattern.is_literal() {
                        points.remove(&value);
                        ranges.insert(value);
                    }
                }
            }
        }
        Self { points, ranges }
    }

    /// Everything at `from` and below it. '0' follows '/' in every collation we allow, so it ends
    /// the range.
    pub(crate) fn below(index: Index, from: &str, limit: u32) -> Query {
        let until = Self::end_of(from);
        Query::Scan { index, from: from.to_owned(), until, after: None, limit }
    }

    pub(crate) fn end_of(from: &str) -> String {
        format!("{}0", from.strip_suffix('/').unwrap_or(from))
    }
}

/// The policy in force, alone.
pub fn policy(view: &dyn View) -> Result<Policy, Refusal> {
    Ok(get::<Policy>(view, Policy::KEY)?.unwrap_or_default())
}
