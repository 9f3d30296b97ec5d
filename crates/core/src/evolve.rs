//! Applies one event to the records.
//!
//! The same function applies an event live and when rebuilding from the journal, so both give the
//! same records (S14). It touches only keys that the event names, and decides nothing.

use crate::claim::{Claim, Leftover};
use crate::event::Event;
use crate::notices::Notice;
use crate::once::Once;
use crate::operations::Operation;
use crate::sessions::{Life, Session};
use crate::state::State;
use crate::state::drafts::{self, Draft};
use crate::suggestions::{Answer, Suggestion};
use crate::view::{Record, Records, Unreadable, get, put};
use crate::waiting::Waiter;

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
        Event::ClaimsRenewed { claims, at } => claims.iter().try_for_each(|renewal| {
            change(records, renewal.claim.as_str(), |claim: &mut Claim| {
                claim.renewed_at = *at;
                claim.expires_at = renewal.expires_at;
                claim.ttl = renewal.ttl.unwrap_or(claim.ttl);
            })
        }),
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
        Event::LeftoversTold { claims, remaining } => {
            for claim in claims {
                records.delete(Leftover::KIND, claim.as_str())?;
            }
            remaining.iter().try_for_each(|left| put(records, left))
        }

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
        | Event::TaskSplit { .. }
        | Event::TaskPartMoved { .. }
        | Event::TaskJoined { .. }
        | Event::TaskChecked { .. }
        | Event::TaskProven { .. }
        | Event::TasksRenewed { .. }
        | Event::TasksForgotten { .. } => tasks::evolve(records, event),
        Event::StateChanged { changed } => {
            let before = get::<State>(records, changed.key.as_str())?;
            put(records, &State::after(before, changed))
        }
        Event::DraftSet { draft } => put(records, draft),
        Event::DraftsEnded { session, keys, .. } => keys
            .iter()
            .try_for_each(|key| records.delete(Draft::KIND, &drafts::record_key(session, key))),

        Event::OnceStarted { key, runner } => {
            let before = get::<Once>(records, key.as_str())?;
            put(records, &Once::started(before, key, runner))
        }
        Event::OnceRenewed { key, token, at, lease_until } => {
            change(records, key.as_str(), |once: &mut Once| {
                let runner = once.runner.as_mut().filter(|runner| runner.token == *token);
                if let Some(runner) = runner {
                    runner.renewed_at = *at;
                    runner.lease_until = *lease_until;
                }
            })
        }
        Event::OnceEnded { key, token, at, end } => {
            change(records, key.as_str(), |once: &mut Once| once.end(*token, *at, end))
        }

        Event::SuggestionMade { suggestion } => {
            put(records, suggestion)?;
            change(records, suggestion.claim.as_str(), |claim: &mut Claim| claim.suggestions += 1)
        }
        Event::SuggestionAnswered { suggestion, claim, answer } => {
            let open = get::<Suggestion>(records, suggestion.as_str())?
                .is_some_and(|suggestion| suggestion.answer == Answer::Open);
            change(records, suggestion.as_str(), |suggestion: &mut Suggestion| {
                suggestion.answer = answer.clone();
            })?;
            match open {
                true => change(records, claim.as_str(), Claim::answered),
                false => Ok(()),
            }
        }
        Event::SuggestionMoved { suggestion, from, to } => {
            change(records, suggestion.as_str(), |suggestion: &mut Suggestion| {
                suggestion.claim = to.clone();
            })?;
            change(records, from.as_str(), Claim::answered)?;
            change(records, to.as_str(), |claim: &mut Claim| claim.suggestions += 1)
        }

        Event::NoteAdded { note } => put(records, note),

        Event::OperationAnswered { operation } => put(records, operation),
        Event::OperationsForgotten { operations } => {
            operations.iter().try_for_each(|id| records.delete(Operation::KIND, id))
        }
    }
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
