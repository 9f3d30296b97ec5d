//! Can these histories be true? Holds them against the journal and against each other.
//!
//! Proves S1 (in the journal's order, and in real time by what the workers were told), S4, S5,
//! real-time order and S12. It has its own idea of overlap, so a fault in Baton's would show.
//! Refuses to trust Baton in anything but the bytes of the journal, whose chain it checks too.

use std::collections::HashMap;

use baton_core::event::EndOfClaim;
use baton_core::id::{ClaimId, Position};
use baton_core::journal::Entry;

use crate::history::{Nanos, Operation, Outcome};
use record::{Holding, Record};

mod operations;
mod record;
#[cfg(test)]
mod tests;

/// One thing that must not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// The journal is not the chain it should be.
    Journal { at: Position, what: String },
    /// S1 in the journal's order.
    Conflict { one: ClaimId, two: ClaimId, at: Position },
    /// S1 in real time: two workers were told that they hold what conflicts.
    HeldTogether { one: ClaimId, two: ClaimId, at: Nanos },
    /// S4: a token that was no longer current was accepted.
    StaleAccepted { token: Position, session: String },
    /// S5: a token is not above all before it, or not the place of its own entry.
    TokenOrder { token: Position, at: Position },
    /// An act that was answered before another was asked stands after it in the journal.
    RealTime { earlier: Position, later: Position },
    /// S12: acknowledged, and not in the journal.
    Missing { what: String },
    /// S12: in the journal more than once.
    Twice { what: String },
    /// S12: one operation id got two different answers.
    Answers { operation: String },
    /// Refused, and done all the same.
    RefusedButDone { operation: String },
}

/// What was looked at and what was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub operations: usize,
    pub acknowledged: usize,
    pub refused: usize,
    pub unknown: usize,
    pub entries: usize,
    pub grants: usize,
    pub violations: Vec<Violation>,
}

impl Report {
    /// Adds another part of the same proof.
    pub fn add(&mut self, other: Self) {
        self.operations += other.operations;
        self.acknowledged += other.acknowledged;
        self.refused += other.refused;
        self.unknown += other.unknown;
        self.entries += other.entries;
        self.grants += other.grants;
        self.violations.extend(other.violations);
    }
}

/// Checks all histories of one workspace against its whole journal.
pub fn check(history: &[Operation], journal: &[Entry]) -> Report {
    let mut violations = Vec::new();
    let record = Record::read(journal, &mut violations);
    operations::check(history, &record, &mut violations);
    held_together(history, &record, &mut violations);
    let outcomes = || history.iter().map(|operation| operation.returned.as_ref().map(|r| &r.1));
    let refused = |outcome: &Option<&Outcome>| matches!(outcome, Some(Outcome::Refused { .. }));
    let acknowledged = |outcome: &Option<&Outcome>| outcome.is_some_and(Outcome::acknowledges);
    let unknown = |outcome: &Option<&Outcome>| matches!(outcome, None | Some(Outcome::Unknown));
    Report {
        operations: history.len(),
        acknowledged: outcomes().filter(acknowledged).count(),
        refused: outcomes().filter(refused).count(),
        unknown: outcomes().filter(unknown).count(),
        entries: journal.len(),
        grants: record.holdings.len(),
        violations,
    }
}

/// What a worker was told it holds, from the moment it was told until it asked to let go.
struct Told<'a> {
    holding: &'a Holding,
    from: Nanos,
    until: Nanos,
}

/// S1 by the workers' own clocks. Only claims that their holders themselves released, or that
/// nobody ever ended, are known to have been held all that time.
fn held_together(history: &[Operation], record: &Record, violations: &mut Vec<Violation>) {
    let mut told: HashMap<Position, (Nanos, Option<Nanos>)> = HashMap::new();
    for operation in history {
        let Some((at, outcome)) = &operation.returned else { continue };
        match (outcome, operation.act.token) {
            (Outcome::Granted { token, already_held: false, .. }, _) => {
                let (from, _) = told.entry(*token).or_insert((*at, None));
                *from = (*from).min(*at);
            }
            (Outcome::Done, Some(token)) if operation.act.verb == crate::history::Verb::Release => {
                let (_, until) = told.entry(token).or_insert((Nanos::MAX, None));
                *until = Some(until.map_or(operation.invoked, |old| old.min(operation.invoked)));
            }
            _ => {}
        }
    }
    let mut held: Vec<Told<'_>> = Vec::new();
    for (token, (from, until)) in told {
        let Some(holding) = record.by_token(token) else { continue };
        let until = match (&holding.ended, until) {
            (None, None) => Nanos::MAX,
            (Some((_, EndOfClaim::Released { .. })), Some(until)) => until,
            _ => continue,
        };
        if !holding.narrowed && from < until {
            held.push(Told { holding, from, until });
        }
    }
    held.sort_by_key(|told| told.from);
    let mut now: Vec<&Told<'_>> = Vec::new();
    for next in &held {
        now.retain(|told| told.until > next.from);
        for told in &now {
            if told.holding.conflicts(next.holding) {
                violations.push(Violation::HeldTogether {
                    one: told.holding.claim.clone(),
                    two: next.holding.claim.clone(),
                    at: next.from,
                });
            }
        }
        now.push(next);
    }
}
