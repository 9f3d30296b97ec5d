//! Files that only a person may let be changed: the gate that asks, and what its answer allows.
//!
//! Owns the subject of such a gate: one file and one session. An approval is for that session and
//! no other, and lasts as long as it does. A client may have asked its user itself: then the gate
//! is opened and decided in one step, so that every later door knows of it.

use super::{draft, open};
use crate::claim::Holder;
use crate::context::Context;
use crate::event::Event;
use crate::gate::{self, BY_SUBJECT, Decision, Gate, Kind, Outcome};
use crate::id::SessionId;
use crate::policy;
use crate::refusal::Refusal;
use crate::resource::Resource;
use crate::scene::Caller;
use crate::view::{View, scan};
use crate::zones::Rule;

/// What the gate stands before.
pub fn subject(resource: &Resource, session: &SessionId) -> String {
    format!("edit {resource} by {session}")
}

/// What is asked.
pub fn question(resource: &Resource) -> String {
    format!("May {resource} be changed?")
}

/// The latest gate about it.
pub fn latest(
    view: &dyn View,
    resource: &Resource,
    session: &SessionId,
) -> Result<Option<Gate>, Refusal> {
    let gates: Vec<Gate> = scan(view, gate::about(BY_SUBJECT, &subject(resource, session), 1))?;
    Ok(gates.into_iter().next())
}

/// Has a person let this session change this file?
pub(crate) fn are_allowed(
    view: &dyn View,
    resource: &Resource,
    session: Option<&SessionId>,
) -> Result<bool, Refusal> {
    let Some(session) = session else { return Ok(false) };
    let decided = latest(view, resource, session)?.and_then(|gate| gate.decision);
    Ok(decided.as_ref().is_some_and(Decision::approves))
}

/// The first of these files that a person must let the caller change, and has not.
pub(crate) fn first_unasked<'a>(
    view: &dyn View,
    resources: impl Iterator<Item = &'a Resource>,
    context: &Context,
) -> Result<Option<&'a Resource>, Refusal> {
    let zones = policy::in_force(view)?.unwrap_or_default();
    if context.actor.person || !zones.zones.iter().any(|zone| zone.policy == Rule::Human) {
        return Ok(None);
    }
    for resource in resources.filter(|one| zones.rule(one) == Rule::Human) {
        if !are_allowed(view, resource, context.actor.session.as_ref())? {
            return Ok(Some(resource));
        }
    }
    Ok(None)
}

/// The client asked its user about these, and the edit was made: a person has let it be.
pub fn agreed(
    view: &dyn View,
    resources: &[Resource],
    context: &Context,
) -> Result<(Vec<Event>, ()), Refusal> {
    let (caller, _) = Caller::read_with(view, context, &[])?;
    let mut events = Vec::new();
    for resource in resources {
        let known = latest(view, resource, &caller.session.session)?;
        let gate = match known {
            Some(gate) if gate.decision.is_none() => gate,
            Some(gate) if gate.decision.as_ref().is_some_and(Decision::approves) => continue,
            _ => {
                let on = subject(resource, &caller.session.session);
                let asked = draft(&on, Kind::Approval, &question(resource), context);
                let opened_by = Some(caller.holder(context));
                open(view, Gate { opened_by, ..asked }, &mut events)?
            }
        };
        let decision = Decision {
            outcome: Outcome::Approved,
            by: Some(Holder::person()),
            at: context.now,
            why: Some("said to the client, which asked".to_owned()),
            option: None,
            commit: None,
        };
        events.push(Event::GateDecided { gate: gate.gate, decision });
    }
    Ok((events, ()))
}
