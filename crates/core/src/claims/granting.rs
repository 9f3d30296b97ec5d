//! What a grant does once nothing is in its way.
//!
//! Owns the order of its events: first what has run out ends, then the claim begins, under the
//! token that is its place in the journal. Used by `take` and, for leases that ran out while their
//! holder slept, by `renew`.

use std::collections::BTreeMap;

use crate::claim::{Claim, Hold, Holder, Leftover, Mode, Scope};
use crate::context::Context;
use crate::event::{EndOfClaim, Event};
use crate::id::{ClaimId, NoticeId};
use crate::landings::claims::Lost;
use crate::notices::{News, Notice};
use crate::resource::Resource;
use crate::scene::Scene;
use crate::time::Span;
use crate::zones::{Policy, Rule, is_serial_zone};

/// What a claim is granted with besides its hold.
pub(super) struct Terms<'a> {
    pub(super) ttl: Span,
    pub(super) reason: &'a Option<String>,
    pub(super) task: &'a Option<String>,
}

/// The hold with what zones add to it: a wider scope, and the names of serial zones. Amounts of
/// one named resource are added up, so that each name stands there once.
pub(super) fn settle(policy: &Policy, hold: Hold) -> Hold {
    let mut scope = hold.scope;
    let mut resources: Vec<Resource> = Vec::with_capacity(hold.resources.len());
    let mut zones = Vec::new();
    for resource in hold.resources {
        if policy.rule(&resource) > Rule::Append || matches!(resource, Resource::Name { .. }) {
            scope = Scope::Workspace;
        }
        zones.extend(policy.serial_zones(&resource));
        add(&mut resources, resource, policy);
    }
    for zone in zones {
        if !resources.iter().any(|held| held.overlaps(&zone)) {
            resources.push(zone);
        }
    }
    Hold { scope, resources, ..hold }
}

fn add(resources: &mut Vec<Resource>, resource: Resource, policy: &Policy) {
    let counted = policy.capacity(&resource).is_some();
    let same = |held: &&mut Resource| match resource {
        Resource::Path(_) => **held == resource,
        Resource::Name { .. } => held.overlaps(&resource),
    };
    match (resources.iter_mut().find(same), &resource) {
        (None, _) => resources.push(resource),
        (Some(Resource::Name { amount, .. }), Resource::Name { amount: more, .. }) => {
            *amount = if counted { amount.saturating_add(*more) } else { (*amount).max(*more) };
        }
        (Some(_), _) => {}
    }
}

/// The claim, with every event that makes room for it.
pub(super) fn grant(
    scene: &Scene,
    hold: Hold,
    terms: &Terms<'_>,
    run_out: &[Claim],
    events: &mut Vec<Event>,
    context: &Context,
) -> Claim {
    for gone in run_out {
        events.push(gone.ends(EndOfClaim::Expired, context));
        events.push(lost_notice(gone, &hold.holder, context, events.len()));
        events.push(Event::ClaimLost { lost: lost(gone, &hold.holder, context) });
    }
    let run_out = |claim: &&Claim| !claim.is_live(context) && same_session(&claim.hold, &hold);
    let mut inherited = Vec::new();
    for own in scene.claims.iter().filter(run_out) {
        inherited.extend(own.inherited.iter().cloned());
        events.extend(replace(own, &hold, context));
    }
    let claim = Claim {
        // The place among the events tells apart what one decision grants.
        claim: ClaimId::fresh(&context.fresh, ordinal(events.len())),
        // The token is the position at which this very event will stand in the journal.
        token: context.next.after(events.len() as u64),
        hold,
        ttl: terms.ttl,
        granted_at: context.now,
        renewed_at: context.now,
        expires_at: context.now + terms.ttl,
        busy_until: scene.caller.as_ref().and_then(|own| own.session.busy_until(context.now)),
        reason: terms.reason.clone(),
        task: terms.task.clone(),
        suggestions: 0,
        inherited,
    };
    events.push(Event::ClaimGranted { claim: claim.clone() });
    claim
}

/// What earlier holders left goes along with the claim: its lines are theirs until committed.
pub(super) fn inherit(events: &mut [Event], id: &ClaimId, left_behind: &[Leftover]) {
    for event in events {
        if let Event::ClaimGranted { claim } = event
            && claim.claim == *id
        {
            claim.inherited.extend(left_behind.iter().cloned());
        }
    }
}

fn same_session(one: &Hold, two: &Hold) -> bool {
    !one.holder.competes_with(&two.holder)
}

/// What becomes of the caller's own claim that had run out when `hold` is granted: what the new
/// one gives is no longer the old one's. The rest stays, to be renewed or taken by somebody.
fn replace(own: &Claim, hold: &Hold, context: &Context) -> Option<Event> {
    let as_good = own.hold.tree == hold.tree
        && own.hold.holder.agent == hold.holder.agent
        && (hold.mode == Mode::Exclusive || own.hold.mode == Mode::Shared)
        && (hold.scope == Scope::Workspace || own.hold.scope == Scope::Tree);
    let taken = |held: &Resource| match held {
        Resource::Path(_) => as_good && hold.covers(std::slice::from_ref(held)),
        // Amounts must never count twice, should the old lease be extended by a failover.
        Resource::Name { .. } => hold.resources.iter().any(|new| new.overlaps(held)),
    };
    let (gone, kept): (Vec<Resource>, Vec<Resource>) =
        own.hold.resources.iter().cloned().partition(taken);
    if kept.is_empty() {
        return Some(own.ends(EndOfClaim::Replaced, context));
    }
    // The name of a serial zone stays with the paths that need it.
    let (zones, gone): (Vec<Resource>, Vec<Resource>) = gone.into_iter().partition(is_serial_zone);
    let kept: Vec<Resource> = kept.into_iter().chain(zones).collect();
    (!gone.is_empty()).then(|| Event::ClaimNarrowed {
        claim: own.claim.clone(),
        resources: kept,
        released: gone,
        left: None,
    })
}

/// The claims that these events end or change.
pub(super) fn changed(events: &[Event]) -> Vec<ClaimId> {
    let claim = |event: &Event| match event {
        Event::ClaimEnded { claim, .. } | Event::ClaimNarrowed { claim, .. } => Some(claim.clone()),
        _ => None,
    };
    events.iter().filter_map(claim).collect()
}

/// Uncommitted changes of earlier holders in this tree and these paths, also of claims that end
/// in this very decision, and the event that they are told. The holder's own are its own again.
pub(super) fn tell_leftovers(
    scene: &Scene,
    hold: &Hold,
    events: &[Event],
) -> (Option<Event>, Vec<Leftover>) {
    let ended = events.iter().filter_map(|event| match event {
        Event::ClaimEnded { left, .. } => left.as_ref(),
        _ => None,
    });
    let mut lying: BTreeMap<ClaimId, Leftover> = BTreeMap::new();
    for left in scene.leftovers.iter().chain(ended).filter(|left| left.tree == hold.tree) {
        let all = match lying.remove(&left.claim) {
            Some(earlier) => earlier.and(left),
            None => left.clone(),
        };
        lying.insert(left.claim.clone(), all);
    }
    let (mut claims, mut remaining, mut told) = (Vec::new(), Vec::new(), Vec::new());
    for (claim, left) in lying {
        let ours = |path: &Resource| hold.resources.iter().any(|held| held.overlaps(path));
        let (here, outside): (Vec<Resource>, Vec<Resource>) =
            left.paths.iter().cloned().partition(ours);
        if here.is_empty() {
            continue;
        }
        claims.push(claim);
        if !outside.is_empty() {
            remaining.push(Leftover { paths: outside, ..left.clone() });
        }
        if left.holder.competes_with(&hold.holder) {
            told.push(Leftover { paths: here, ..left });
        }
    }
    let event = (!claims.is_empty()).then_some(Event::LeftoversTold { claims, remaining });
    (event, told)
}

/// Kept, so that what was done under it does not land over what is done now (S4).
fn lost(gone: &Claim, to: &Holder, context: &Context) -> Lost {
    Lost {
        claim: gone.claim.clone(),
        session: gone.hold.holder.session.clone(),
        resources: gone.hold.resources.clone(),
        to: to.clone(),
        at: context.now,
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
pub(super) fn notice(claim: &Claim, news: News, context: &Context, ordinal: usize) -> Event {
    notice_to(&claim.hold.holder, news, context, ordinal)
}

pub(super) fn notice_to(holder: &Holder, news: News, context: &Context, ordinal: usize) -> Event {
    let notice = Notice {
        notice: NoticeId::fresh(&context.fresh, self::ordinal(ordinal)),
        to: holder.session.clone(),
        agent: holder.agent.clone(),
        at: context.now,
        news,
    };
    Event::NoticeSent { notice }
}

fn ordinal(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}
