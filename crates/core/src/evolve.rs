//! Applies one event to the records.
//!
//! The same function applies an event live and when rebuilding from the journal, so both give the
//! same records (S14). It touches only keys that the event names, and decides nothing.

use crate::claim::{Claim, Leftover};
use crate::conflicts::{self, Predicted};
use crate::denials::Denials;
use crate::deploy::Deploy;
use crate::event::{Event, Renewal, Room};
use crate::id::ClaimId;
use crate::interfaces::Interface;
use crate::notices::Notice;
use crate::operations::Operation;
use crate::serial::{self, ZoneHold};
use crate::sessions::{Life, Session};
use crate::suggestions::{Answer, Suggestion};
use crate::time::Moment;
use crate::tree::{Stage, Tree};
use crate::view::{Record, Records, Unreadable, get, put};
use crate::waiting::Waiter;

mod gates;
mod landings;
mod shared;
mod tasks;

pub fn evolve(records: &mut dyn Records, event: &Event) -> Result<(), Unreadable> {
    match event.room() {
        Room::Nothing => Ok(()),
        Room::Workspace => evolve_workspace(records, event),
        Room::Session => evolve_session(records, event),
        Room::Claim => evolve_claim(records, event),
        Room::Denial => evolve_denial(records, event),
        Room::Interface => evolve_interface(records, event),
        Room::Waiting => evolve_waiting(records, event),
        Room::Task => tasks::evolve(records, event),
        Room::Part => tasks::part(records, event),
        Room::Handoff => tasks::handoff(records, event),
        Room::Review => tasks::review(records, event),
        Room::Suggestion => evolve_suggestion(records, event),
        Room::Gate => gates::evolve(records, event),
        Room::Tree => evolve_tree(records, event),
        Room::Landing => landings::evolve(records, event),
        Room::Deploy => evolve_deploy(records, event),
        Room::Shared => shared::evolve(records, event),
    }
}

fn evolve_workspace(records: &mut dyn Records, event: &Event) -> Result<(), Unreadable> {
    match event {
        Event::PolicySet { policy } => put(records, policy),
        Event::CommandsTrusted { trust } => put(records, trust),
        Event::PersonTokenAdded { token } => put(records, token),
        Event::OperationAnswered { operation } => put(records, operation),
        Event::OperationsForgotten { operations } => {
            operations.iter().try_for_each(|id| records.delete(Operation::KIND, id))
        }
        _ => Ok(()),
    }
}

fn evolve_deploy(records: &mut dyn Records, event: &Event) -> Result<(), Unreadable> {
    match event {
        Event::DeployStarted { deploy } => put(records, deploy),
        Event::DeployRenewed { deploy, at, lease_until } => {
            change(records, &deploy.to_string(), |deploy: &mut Deploy| {
                deploy.renewed_at = *at;
                deploy.lease_until = *lease_until;
            })
        }
        Event::DeployShipped { deploy, shipped } => {
            change(records, &deploy.to_string(), |deploy: &mut Deploy| {
                deploy.shipped = Some(*shipped);
            })
        }
        Event::DeployEnded { deploy, end } => {
            change(records, &deploy.to_string(), |deploy: &mut Deploy| deploy.end = Some(*end))
        }
        _ => Ok(()),
    }
}

/// Waiters and notices.
fn evolve_waiting(records: &mut dyn Records, event: &Event) -> Result<(), Unreadable> {
    match event {
        Event::WaitQueued { waiter } => put(records, waiter),
        Event::WaitRenewed { waiter, lease_until } => {
            change(records, waiter.as_str(), |waiter: &mut Waiter| {
                waiter.lease_until = *lease_until;
            })
        }
        Event::WaitEnded { waiter, .. } => records.delete(Waiter::KIND, waiter.as_str()),
        Event::NoticeSent { notice } => put(records, notice),
        Event::NoticesTold { notices } | Event::NoticesDropped { notices } => {
            notices.iter().try_for_each(|notice| records.delete(Notice::KIND, notice.as_str()))
        }
        _ => Ok(()),
    }
}

fn evolve_claim(records: &mut dyn Records, event: &Event) -> Result<(), Unreadable> {
    match event {
        Event::ClaimGranted { claim } => put(records, claim),
        Event::ClaimsRenewed { claims, at } => {
            claims.iter().try_for_each(|renewal| renew(records, renewal, *at))
        }
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
        Event::ZoneHeld { hold } => put(records, hold),
        Event::ZoneFreed { zone, clone, branch, .. } => {
            records.delete(ZoneHold::KIND, &serial::key(zone, clone, branch))
        }
        Event::LeftoversTold { claims, remaining } => {
            claims.iter().try_for_each(|id| records.delete(Leftover::KIND, id.as_str()))?;
            remaining.iter().try_for_each(|left| put(records, left))
        }
        _ => Ok(()),
    }
}

fn evolve_denial(records: &mut dyn Records, event: &Event) -> Result<(), Unreadable> {
    let Event::DeedRefused { denial } = event else { return Ok(()) };
    let session = &denial.by.session;
    let kept = get::<Denials>(records, session.as_str())?;
    let mut kept = kept.unwrap_or_else(|| Denials::of(session.clone()));
    kept.follow(denial);
    put(records, &kept)
}

fn evolve_interface(records: &mut dyn Records, event: &Event) -> Result<(), Unreadable> {
    match event {
        Event::InterfaceAdded { interface } => put(records, interface),
        Event::InterfaceUsed { name, user } => {
            change(records, name.as_str(), |interface: &mut Interface| {
                interface.users.retain(|one| one.session != user.session);
                interface.users.push(user.clone());
            })
        }
        Event::InterfaceChanged { changed } => {
            change(records, changed.name.as_str(), |interface: &mut Interface| {
                interface.follow(changed);
            })
        }
        Event::InterfaceGiven { given } => {
            change(records, given.name.as_str(), |interface: &mut Interface| {
                interface.owner = given.to.clone();
                interface.since = given.at;
            })
        }
        Event::InterfaceRemoved { name, .. } => records.delete(Interface::KIND, name.as_str()),
        _ => Ok(()),
    }
}

fn renew(records: &mut dyn Records, renewal: &Renewal, at: Moment) -> Result<(), Unreadable> {
    change(records, renewal.claim.as_str(), |claim: &mut Claim| {
        claim.renewed_at = at;
        claim.expires_at = renewal.expires_at;
        claim.ttl = renewal.ttl.unwrap_or(claim.ttl);
    })
}

fn evolve_session(records: &mut dyn Records, event: &Event) -> Result<(), Unreadable> {
    match event {
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
                session.calls.clear();
            })?;
            records.delete(Denials::KIND, session.as_str())
        }
        Event::AliasBound { alias } => put(records, alias),
        Event::CallStarted { session, call, busy_until, claims } => {
            change(records, session.as_str(), |session: &mut Session| {
                session.calls.retain(|other| other.call != call.call);
                session.calls.push(call.clone());
            })?;
            keep_busy(records, claims, Some(*busy_until))
        }
        Event::CallsEnded { session, calls, busy_until, claims } => {
            change(records, session.as_str(), |session: &mut Session| {
                session.calls.retain(|call| !calls.contains(&call.call));
            })?;
            keep_busy(records, claims, *busy_until)
        }
        Event::RoleGiven { session, role, .. } => {
            change(records, session.as_str(), |session: &mut Session| {
                session.role = Some(role.clone());
            })
        }
        Event::RulesSeen { session, seen } => {
            change(records, session.as_str(), |session: &mut Session| {
                session.rules = Some(seen.clone());
            })
        }
        Event::SubagentStopped { claims, notices, .. } => {
            claims.iter().try_for_each(|claim| {
                change(records, claim.as_str(), |claim: &mut Claim| claim.hold.holder.agent = None)
            })?;
            notices.iter().try_for_each(|notice| {
                change(records, notice.as_str(), |notice: &mut Notice| notice.agent = None)
            })
        }
        _ => Ok(()),
    }
}

fn evolve_suggestion(records: &mut dyn Records, event: &Event) -> Result<(), Unreadable> {
    match event {
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
        _ => Ok(()),
    }
}

fn evolve_tree(records: &mut dyn Records, event: &Event) -> Result<(), Unreadable> {
    match event {
        Event::TreePlanned { tree } => put(records, tree),
        Event::TreeMade { tree, .. } => {
            change(records, tree.as_str(), |tree: &mut Tree| tree.stage = Stage::Made)
        }
        Event::TreeGivenUp { tree, .. } => records.delete(Tree::KIND, tree.as_str()),
        Event::TreeRemoved { removed } => match &removed.tree {
            Some(tree) => records.delete(Tree::KIND, tree.as_str()),
            None => Ok(()),
        },
        Event::NumberGiven { counter } => put(records, counter),
        Event::ConflictPredicted { predicted } => put(records, predicted),
        Event::ConflictGone { clone, a, b } => {
            records.delete(Predicted::KIND, &conflicts::gone_key(clone, a, b))
        }
        _ => Ok(()),
    }
}

fn keep_busy(
    records: &mut dyn Records,
    claims: &[ClaimId],
    until: Option<Moment>,
) -> Result<(), Unreadable> {
    claims.iter().try_for_each(|claim| {
        change(records, claim.as_str(), |claim: &mut Claim| claim.busy_until = until)
    })
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
