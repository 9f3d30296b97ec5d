//! Applies an event about gates and votes to the records.
//!
//! Decides nothing. The number of a gate is counted where tasks are, so that none is given twice.

use super::change;
use crate::event::Event;
use crate::gate::Gate;
use crate::task::tally::Tally;
use crate::view::{Records, Unreadable, get, put};
use crate::votes::{self, Ballot};

pub(super) fn evolve(records: &mut dyn Records, event: &Event) -> Result<(), Unreadable> {
    match event {
        Event::GateOpened { gate } => {
            let mut tally = get::<Tally>(records, Tally::KEY)?.unwrap_or_default();
            tally.gates = tally.gates.max(gate.gate.number());
            put(records, &tally)?;
            put(records, gate)
        }
        Event::GateDecided { gate, decision } => {
            change(records, gate.as_str(), |gate: &mut Gate| gate.decision = Some(decision.clone()))
        }
        Event::GateChecked { gate, checked } => {
            change(records, gate.as_str(), |gate: &mut Gate| gate.checked = Some(checked.clone()))
        }
        Event::GateTrusted { gate, .. } => {
            change(records, gate.as_str(), |gate: &mut Gate| gate.trusted = true)
        }
        Event::GateTold { gate, at, .. } => {
            change(records, gate.as_str(), |gate: &mut Gate| gate.told_at = Some(*at))
        }
        Event::VoteCast { subject, vote } => {
            let known = get::<Ballot>(records, &votes::key_of(subject))?;
            let mut ballot = known.unwrap_or_else(|| Ballot::of(subject));
            ballot.cast(vote);
            put(records, &ballot)
        }
        Event::VotesContested { subject, gate } => {
            change(records, &votes::key_of(subject), |ballot: &mut Ballot| {
                ballot.gate = Some(gate.clone());
            })
        }
        Event::VotesSettled { subject, decision, .. } => {
            change(records, &votes::key_of(subject), |ballot: &mut Ballot| {
                ballot.settled(decision);
            })
        }
        _ => Ok(()),
    }
}
