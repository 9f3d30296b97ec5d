//! Applies one event to the records.
//!
//! The same function applies an event live and when rebuilding from the journal, so both give the
//! same records (S14). It touches only keys that the event names, and decides nothing.

use crate::claim::{Claim, Leftover};
use crate::event::{Event, Renewal};
use crate::id::ClaimId;
use crate::notices::Notice;
use crate::operations::Operation;
use crate::sessions::{Life, Session};
use crate::time::Moment;
use crate::view::{Record, Records, Unreadable, get, put};
use crate::waiting::Waiter;

mod gates;
mod shared;
mod tasks;

pub fn evolve(records: &mut dyn Records, event: &Event) -> Result<(), Unreadable> {
    match event {
        Event::EpochRaised { .. } | Event::WorkspaceMade { .. } | Event::SnapshotTaken { .. } => {
            Ok(())
        }
        Event::PolicySet { policy } => put(records, policy),
        Event::PersonTokenAdded { token } => put(records, token),

        Event::SessionStarted { session } | Event::SessionResumed { session } => {
            put(records, session)
        }
        Event::SessionRenewed { session, at, expires_at } => {
            change(records, session.as_str(), |session: &mut Session| {
                session.renewed_at = *at;
                session.expires_at = *expires_at;
            })
        }
        Event::SessionEnded { session, at, grace_until, .. } => {
            change(records, session.as_str(), |session: &mut Session| {
                session.life = Life::Ended { at: *at, grace_until: *grace_until };
            })
        }
        Event::AliasBound { alias } => put(records, alias),

        Event::ClaimGranted { claim } => put(records, claim),
        Event::ClaimsRenewed { claims, at } => renew(records, claims, *at),
        Event::ClaimNarrowed { claim, resources, left, .. } => {
            change(records, claim.as_str(), |claim: &mut Claim| {
                claim.hold.resources.clone_from(resources);
            })?;
            leave(records, left.as_ref())
        }
        Event::ClaimEnded { claim, left, .. } => {
            records.delete(Claim::KIND, claim.as_str())?;
            leave(records, left.as_ref())
        }
        Event::LeftoversTold { claims, remaining } => told(records, claims, remaining),

        Event::WaitQueued { waiter } => put(records, waiter),
        Event::WaitRenewed { waiter, lease_until } => {
            change(records, waiter.as_str(), |waiter: &mut Waiter| {
                waiter.lease_until = *lease_until;
            })
        }
        Event::WaitEnded { waiter, .. } => records.delete(Waiter::KIND, waiter.as_str()),

        Event::NoticeSent { notice } => put(records, notice),
        Event::NoticesTold { notices } => {
            notices.iter().try_for_each(|notice| records.delete(Notice::KIND, notice.as_str()))
        }

        Event::TaskAdded { .. }
        | Event::TaskEdited { .. }
        | Event::TaskMoved { .. }
        | Event::TaskReported { .. }
        | Event::TaskTied { .. }
        | Event::TaskFreed { .. }
        | Event::TasksWeighed { .. }
        | Event::TasksRenewed { .. }
        | Event::TasksForgotten { .. } => tasks::evolve(records, event),
        Event::TaskSubmitted { .. }
        | Event::SubmissionEnded { .. }
        | Event::ReviewTaken { .. }
        | Event::ReviewsEnded { .. }
        | Event::TaskJudged { .. }
        | Event::TaskFeedback { .. } => tasks::review(records, event),

        Event::GateOpened { .. }
        | Event::GateDecided { .. }
        | Event::GateChecked { .. }
        | Event::GateTrusted { .. }
        | Event::GateTold { .. }
        | Event::VoteCast { .. }
        | Event::VotesContested { .. }
        | Event::VotesSettled { .. } => gates::evolve(records, event),

        Event::StateChanged { .. }
        | Event::DraftSet { .. }
        | Event::DraftsEnded { .. }
        | Event::OnceStarted { .. }
        | Event::OnceRenewed { .. }
        | Event::OnceEnded { .. } => shared::evolve(records, event),

        Event::NoteAdded { note } => put(records, note),

        Event::OperationAnswered { operation } => put(records, operation),
        Event::OperationsForgotten { operations } => {
            operations.iter().try_for_each(|id| records.delete(Operation::KIND, id))
        }
    }
}

fn renew(records: &mut dyn Records, claims: &[Renewal], at: Moment) -> Result<(), Unreadable> {
    claims.iter().try_for_each(|renewal| {
        change(records, renewal.claim.as_str(), |claim: &mut Claim| {
            claim.renewed_at = at;
            claim.expires_at = renewal.expires_at;
            claim.ttl = renewal.ttl.unwrap_or(claim.ttl);
        })
    })
}

fn told(
    records: &mut dyn Records,
    claims: &[ClaimId],
    remaining: &[Leftover],
) -> Result<(), Unreadable> {
    for claim in claims {
        records.delete(Leftover::KIND, claim.as_str())?;
    }
    remaining.iter().try_for_each(|left| put(records, left))
}

/// Keeps what a claim left behind, together with what it left when it was narrowed before.
fn leave(records: &mut dyn Records, left: Option<&Leftover>) -> Result<(), Unreadable> {
    let Some(left) = left else {
        return Ok(());
    };
    match get::<Leftover>(records, &left.key())? {
        Some(earlier) => put(records, &earlier.and(left)),
        None => put(records, left),
    }
}

/// Changes a record that is there; an event about one that is gone changes nothing.
fn change<R: Record>(
    records: &mut dyn Records,
    key: &str,
    edit: impl FnOnce(&mut R),
) -> Result<(), Unreadable> {
    let Some(mut record) = get::<R>(records, key)? else {
        return Ok(());
    };
    edit(&mut record);
    put(records, &record)
}
