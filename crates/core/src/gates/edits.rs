//! Files that only a person may let be changed: the gate that asks, and what its answer allows.
//!
//! Owns the subject of such a gate: one file and one session. An approval is for that session and
//! no other, and lasts as long as it does.

use crate::gate::{self, BY_SUBJECT, Gate, Outcome};
use crate::id::SessionId;
use crate::refusal::Refusal;
use crate::resource::Resource;
use crate::view::{View, scan};

/// What the gate stands before.
pub fn subject(resource: &Resource, session: &SessionId) -> String {
    format!("edit {resource} by {session}")
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
    Ok(decided.is_some_and(|decision| decision.outcome == Outcome::Approved))
}
