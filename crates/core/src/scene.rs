//! Everything a decision about a hold must look at, read in one batch.
//!
//! Owns the search for candidates: for a path, claims at each of its ancestors and, for a pattern,
//! below its literal prefix; so the cost follows depth and matches, not the number of claims. Then
//! judges each candidate: in the way, run out, or none of our business.

use crate::claim::{self, Claim, Hold, Leftover, Mode};
use crate::context::{Context, Life, Proof};
use crate::event::{EndOfClaim, Event};
use crate::id::ClaimId;
use crate::notices::{self, Notice};
use crate::refusal::{Held, Refusal};
use crate::resource::Resource;
use crate::sessions::{self, Alias, Session};
use crate::time::{Moment, Span};
use crate::view::{Index, Query, Record, Row, View, get, parse};
use crate::waiting::{self, Waiter};
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
    pub notices: Vec<Notice>,
}

impl Caller {
    const QUERIES: usize = 4;

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
            notices::waiting_for(id),
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
        Ok(Self { session, due: rows(due)?, notices: rows(notices)? })
    }

    /// The caller alone, for acts that look at nothing else.
    pub fn read(view: &dyn View, context: &Context) -> Result<Self, Refusal> {
        let answers = view.read(&Self::queries(context, DUE_MAX)?)?;
        Self::from_answers(&answers, context)
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
        let due = |claim: &&Claim| !claim.has_run_out(now) && !except.contains(&&claim.claim);
        let claims: Vec<_> =
            self.due.iter().filter(due).map(|claim| claim.renewal(now + claim.ttl)).collect();
        if !claims.is_empty() {
            events.push(Event::ClaimsRenewed { claims, at: now });
        }
        if !self.notices.is_empty() {
            let notices = self.notices.iter().map(|notice| notice.notice.clone()).collect();
            events.push(Event::NoticesTold { notices });
        }
        events
    }
}

fn half_used(expires_at: Moment, ttl: Span, now: Moment) -> bool {
    expires_at.since(now).0 < ttl.0 / 2
}

fn rows<R: Record>(rows: &[Row]) -> Result<Vec<R>, Refusal> {
    rows.iter().map(|row| parse(&row.body).map_err(Refusal::from)).collect()
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
        for index in [claim::BY_RESOURCE, waiting::BY_RESOURCE, claim::LEFTOVER_BY_RESOURCE] {
            queries.extend(candidates(index, resources, limit));
        }
        let answers = view.read(&queries)?;
        let complete = answers[head..].iter().all(|rows| rows.len() < limit as usize);
        let caller = match known {
            true => Some(Caller::from_answers(&answers[..Caller::QUERIES], context)?),
            false => None,
        };
        let policy = answers[head - 1].first().map(|row| parse(&row.body)).transpose()?;
        let mut scene = Self {
            caller,
            policy: policy.unwrap_or_default(),
            claims: Vec::new(),
            waiters: Vec::new(),
            leftovers: Vec::new(),
        };
        let mut seen = std::collections::BTreeSet::new();
        for row in answers[head..].iter().flatten() {
            if !seen.insert((row.kind, row.key.as_str())) {
                continue;
            }
            match row.kind {
                Claim::KIND => scene.claims.push(parse(&row.body)?),
                Waiter::KIND => scene.waiters.push(parse(&row.body)?),
                Leftover::KIND => scene.leftovers.push(parse(&row.body)?),
                _ => {}
            }
        }
        Ok((scene, complete))
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
            match standing(claim, context) {
                Standing::Holds { idle_dirty } => {
                    if let Some((asked, held)) = clash {
                        judgement.blockers.push(Held::by_claim(claim, asked, held, idle_dirty));
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
            judgement.shortages = self.shortages(hold, &judgement.counted);
            Ok(judgement)
        } else {
            Err(Refusal::Unobserved { claims: unobserved })
        }
    }

    /// Counted resources of which less is free than `hold` asks for.
    fn shortages(&self, hold: &Hold, counted: &[Claim]) -> Vec<Held> {
        let mut short = Vec::new();
        for resource in &hold.resources {
            let (Some(capacity), Resource::Name { amount, .. }) =
                (self.policy.capacity(resource), resource)
            else {
                continue;
            };
            let takers: Vec<(&Claim, &Resource)> = counted
                .iter()
                .flat_map(|claim| claim.hold.resources.iter().map(move |held| (claim, held)))
                .filter(|(_, held)| held.overlaps(resource))
                .collect();
            let used: u32 = takers
                .iter()
                .map(|(_, held)| match held {
                    Resource::Name { amount, .. } => *amount,
                    Resource::Path(_) => 0,
                })
                .sum();
            let free = capacity.saturating_sub(used);
            let first = takers.iter().min_by_key(|(claim, _)| claim.expires_at);
            if let (true, Some((claim, held))) = (free < *amount, first) {
                let mut blocker = Held::by_claim(claim, resource, held, false);
                blocker.free = Some(free);
                short.push(blocker);
            }
        }
        short
    }
}

/// What a judgement found.
#[derive(Clone, Debug, Default)]
pub struct Judgement {
    pub blockers: Vec<Held>,
    pub shortages: Vec<Held>,
    /// Live claims on counted resources that are asked for.
    counted: Vec<Claim>,
    /// Claims whose time is over: they end in the decision that takes their place.
    pub run_out: Vec<Claim>,
}

enum Standing {
    Holds {
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
        return Standing::Holds { idle_dirty: false };
    }
    let sighting = context.observed.claims.get(&claim.claim);
    match sighting.map(|sighting| (sighting.life, sighting.dirty.is_empty())) {
        None if !context.observed.complete => Standing::Unseen,
        Some((Life::Alive, false)) => Standing::Holds { idle_dirty: true },
        Some((Life::Alive | Life::Dead, _)) => Standing::RunOut,
        Some((Life::Unknown, _)) | None if context.now < expires_at + claim.lock_delay() => {
            Standing::Holds { idle_dirty: false }
        }
        Some((Life::Unknown, _)) | None => Standing::RunOut,
    }
}

impl Claim {
    /// When the lease ends: one TTL later if the store failed over since it was last renewed,
    /// because renewals may have been lost with the old server.
    pub fn expiry(&self, failed_over_at: Option<Moment>) -> Moment {
        match failed_over_at {
            Some(at) if self.renewed_at < at => self.expires_at + self.ttl,
            _ => self.expires_at,
        }
    }

    /// How this claim ends when its time is over, with what it leaves behind.
    pub fn ends(&self, why: EndOfClaim, context: &Context) -> Event {
        let sighting = context.observed.claims.get(&self.claim);
        let left =
            sighting.filter(|sighting| !sighting.dirty.is_empty()).map(|sighting| Leftover {
                claim: self.claim.clone(),
                holder: self.hold.holder.clone(),
                tree: self.hold.tree.clone(),
                paths: sighting.dirty.clone(),
                rescue: sighting.rescue.clone(),
                ended_at: context.now,
            });
        Event::ClaimEnded {
            claim: self.claim.clone(),
            session: self.hold.holder.session.clone(),
            resources: self.hold.resources.clone(),
            why,
            left,
        }
    }
}

impl Held {
    pub fn by_claim(claim: &Claim, asked: &Resource, held: &Resource, idle_dirty: bool) -> Self {
        Self {
            resource: asked.clone(),
            held: held.clone(),
            holder: claim.hold.holder.clone(),
            since: claim.granted_at,
            until: Some(claim.expires_at),
            reason: claim.reason.clone(),
            claim: Some(claim.claim.clone()),
            queued: false,
            free: None,
            idle_dirty,
        }
    }
}

/// Where claims, waiters and leftovers that may overlap `resources` are found.
fn candidates(index: Index, resources: &[Resource], limit: u32) -> Vec<Query> {
    let mut points = std::collections::BTreeSet::new();
    let mut ranges = std::collections::BTreeSet::new();
    // Serial zones are found before the policy is known, all in the same batch: they are few.
    ranges.insert(format!("@{SERIAL_PREFIX}"));
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
    let below = |from: String| {
        // '0' follows '/' in every collation we allow, so this ends the range of everything below.
        let until = format!("{}0", &from[..from.len() - 1]);
        Query::Scan { index, from, until, after: None, limit }
    };
    let points = points.into_iter().map(|value| Query::equal(index, &value, limit));
    points.chain(ranges.into_iter().map(below)).collect()
}

/// The policy in force, alone.
pub fn policy(view: &dyn View) -> Result<Policy, Refusal> {
    Ok(get::<Policy>(view, Policy::KEY)?.unwrap_or_default())
}
