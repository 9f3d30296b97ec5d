//! Each act of the histories against the journal: is it there once, in time, with a live token?
//!
//! Attempts under one operation id are one act: asked when first asked, answered when first
//! answered, and always answered the same.

use std::collections::{BTreeMap, HashMap};

use baton_core::event::EndOfClaim;
use baton_core::id::Position;

use super::Violation;
use super::record::Record;
use crate::history::{Nanos, Operation, Outcome, Verb};

/// An acknowledged act with its place in the journal.
struct Placed {
    invoked: Nanos,
    returned: Nanos,
    position: Position,
}

pub(super) fn check(history: &[Operation], record: &Record, violations: &mut Vec<Violation>) {
    let mut placed = Vec::new();
    for attempts in acts(history) {
        answers_agree(&attempts, violations);
        if let Some(one) = place(&attempts, record, violations) {
            placed.push(one);
        }
    }
    real_time(&mut placed, violations);
    stale_checks(history, record, &placed, violations);
}

/// The attempts at each act.
fn acts(history: &[Operation]) -> Vec<Vec<&Operation>> {
    let mut named: BTreeMap<&str, Vec<&Operation>> = BTreeMap::new();
    let mut all = Vec::new();
    for operation in history {
        match &operation.act.operation {
            Some(id) => named.entry(id).or_default().push(operation),
            None => all.push(vec![operation]),
        }
    }
    all.extend(named.into_values());
    all
}

fn acknowledged<'a>(attempts: &[&'a Operation]) -> Vec<(Nanos, &'a Outcome)> {
    let returned = attempts.iter().filter_map(|attempt| attempt.returned.as_ref());
    let answers = returned.filter(|(_, outcome)| outcome.acknowledges());
    answers.map(|(at, outcome)| (*at, outcome)).collect()
}

fn answers_agree(attempts: &[&Operation], violations: &mut Vec<Violation>) {
    let answers = acknowledged(attempts);
    if answers.windows(2).any(|pair| pair[0].1 != pair[1].1) {
        let operation = attempts[0].act.operation.clone().unwrap_or_default();
        violations.push(Violation::Answers { operation });
    }
}

/// Finds the act in the journal, and says if it is not there as it should be.
fn place(
    attempts: &[&Operation],
    record: &Record,
    violations: &mut Vec<Violation>,
) -> Option<Placed> {
    let act = &attempts[0].act;
    let kept = act.operation.as_ref().map(|id| record.answered.get(id).map_or(&[][..], |all| all));
    if let (Some(kept), Some(operation)) = (kept, &act.operation) {
        if kept.len() > 1 {
            violations.push(Violation::Twice { what: format!("operation {operation}") });
        }
        let refused =
            |attempt: &&&Operation| matches!(attempt.returned, Some((_, Outcome::Refused { .. })));
        if !kept.is_empty() && attempts.iter().filter(refused).count() == attempts.len() {
            violations.push(Violation::RefusedButDone { operation: operation.clone() });
        }
    }
    let answers = acknowledged(attempts);
    let (returned, outcome) = answers.iter().min_by_key(|(at, _)| *at).copied()?;
    let invoked = attempts.iter().map(|attempt| attempt.invoked).min()?;
    let mut granted = None;
    if let Outcome::Granted { claim, token, already_held } = outcome {
        match record.by_token(*token) {
            Some(found) if found.claim == *claim && found.session == act.session => {}
            _ => violations.push(Violation::Missing { what: format!("{claim} under {token}") }),
        }
        granted = (!already_held).then_some(*token);
    }
    let position = match kept {
        Some([]) => {
            let operation = act.operation.clone().unwrap_or_default();
            violations.push(Violation::Missing { what: format!("operation {operation}") });
            return None;
        }
        Some(kept) => kept.first().copied(),
        None => granted.or_else(|| end_of(act.verb, act.token, record)),
    }?;
    if matches!(act.verb, Verb::Release | Verb::Renew)
        && let Some(token) = act.token
        && !was_live(token, position, record)
    {
        violations.push(Violation::StaleAccepted { token, session: act.session.clone() });
    }
    Some(Placed { invoked, returned, position })
}

/// A release without an id is found by the end of its claim, unless that was let go in parts: then
/// nobody can tell which part was this one's.
fn end_of(verb: Verb, token: Option<Position>, record: &Record) -> Option<Position> {
    let holding = record.by_token(token?)?;
    match (verb, holding.ended.as_ref()?) {
        (Verb::Release, (at, EndOfClaim::Released { .. })) if !holding.narrowed => Some(*at),
        _ => None,
    }
}

/// S4: was the claim of `token` alive when the commit at `position` began?
fn was_live(token: Position, position: Position, record: &Record) -> bool {
    let Some(holding) = record.by_token(token) else { return false };
    let own_end =
        |why: &EndOfClaim| matches!(why, EndOfClaim::Released { .. } | EndOfClaim::Replaced);
    token < position
        && match &holding.ended {
            None => true,
            Some((end, why)) => {
                *end > position || (own_end(why) && record.one_commit(*end, position))
            }
        }
}

/// What was answered before something else was asked must stand before it.
fn real_time(placed: &mut [Placed], violations: &mut Vec<Violation>) {
    let mut by_return: Vec<(Nanos, Position)> =
        placed.iter().map(|one| (one.returned, one.position)).collect();
    by_return.sort_unstable();
    placed.sort_by_key(|one| one.invoked);
    let mut returned = by_return.iter().peekable();
    let mut greatest: Option<Position> = None;
    for one in placed.iter() {
        while let Some((_, position)) = returned.next_if(|(at, _)| *at < one.invoked) {
            greatest = greatest.max(Some(*position));
        }
        if let Some(earlier) = greatest.filter(|greatest| *greatest >= one.position) {
            violations.push(Violation::RealTime { earlier, later: one.position });
        }
    }
}

/// A check leaves no entry: its token must not have ended before anything that was answered
/// before the check was asked.
fn stale_checks(
    history: &[Operation],
    record: &Record,
    placed: &[Placed],
    violations: &mut Vec<Violation>,
) {
    let mut returned: Vec<(Nanos, Position)> =
        placed.iter().map(|one| (one.returned, one.position)).collect();
    returned.sort_unstable();
    let mut greatest = HashMap::new();
    let mut so_far = Position::START;
    for (index, (_, position)) in returned.iter().enumerate() {
        so_far = so_far.max(*position);
        greatest.insert(index, so_far);
    }
    for operation in history {
        let accepted = matches!(operation.returned, Some((_, Outcome::Done)));
        let (Verb::Check, Some(token), true) = (operation.act.verb, operation.act.token, accepted)
        else {
            continue;
        };
        let before = returned.partition_point(|(at, _)| *at < operation.invoked);
        let seen = before.checked_sub(1).and_then(|index| greatest.get(&index).copied());
        let holding = record.by_token(token);
        let over = match holding.map(|holding| &holding.ended) {
            None => true,
            Some(None) => false,
            Some(Some((end, _))) => seen.is_some_and(|seen| seen >= *end),
        };
        let foreign = holding.is_some_and(|holding| holding.session != operation.act.session);
        if over || foreign {
            let session = operation.act.session.clone();
            violations.push(Violation::StaleAccepted { token, session });
        }
    }
}
