//! What events of the merge queue do to records.
//!
//! Touches only the landings that an event names, the one queue record, and lost claims. An end of
//! a turn that is over already changes nothing.

use super::change;
use crate::event::Event;
use crate::id::LandingId;
use crate::landing::{Landing, Queue, State, VERIFIED_MAX};
use crate::time::Moment;
use crate::view::{Records, Unreadable, get, put};

pub(super) fn evolve(records: &mut dyn Records, event: &Event) -> Result<(), Unreadable> {
    match event {
        Event::ClaimLost { lost } => put(records, lost),
        Event::LandingQueued { landing } => {
            put(records, &**landing)?;
            let number = landing.landing.number();
            queue(records, |queue| queue.landings = queue.landings.max(number))
        }
        Event::LandingsWaiting { landings, at } => all(records, landings, |landing| {
            landing.state = State::Queued;
            landing.since = *at;
        }),
        Event::LandingsChecking { landings, at } => all(records, landings, |landing| {
            landing.state = State::Checking;
            landing.since = *at;
            (landing.cause, landing.reason) = (None, None);
            landing.files.clear();
        }),
        Event::LandingHeld { landing, cause, reason, files, gate, at } => {
            change(records, landing.as_str(), |landing: &mut Landing| {
                landing.state = State::Queued;
                landing.since = *at;
                landing.cause = Some(*cause);
                landing.reason = Some(reason.clone());
                landing.files.clone_from(files);
                landing.gate = gate.clone().or(landing.gate.take());
            })
        }
        Event::LandingReturned { landing, cause, reason, files, log, at } => {
            change(records, landing.as_str(), |landing: &mut Landing| {
                landing.go_back(*cause, reason, files, log.as_deref(), *at);
            })
        }
        Event::LandingRemoved { landing, at, reason, .. } => {
            change(records, landing.as_str(), |landing: &mut Landing| {
                landing.state = State::Removed;
                landing.since = *at;
                landing.reason = Some(reason.clone());
            })
        }
        Event::LandingProposed { landing, commit, at } => {
            change(records, landing.as_str(), |landing: &mut Landing| {
                landing.state = State::Proposed;
                landing.since = *at;
                landing.commit = Some(commit.clone());
                landing.checked = true;
            })
        }
        Event::CheckFlaky { landing, .. } => {
            change(records, landing.as_str(), |landing: &mut Landing| landing.flaky += 1)?;
            queue(records, |queue| queue.flaky += 1)
        }
        Event::LandingsLanded { moved, at } => landed(records, moved, *at),
        _ => of_queue(records, event),
    }
}

fn of_queue(records: &mut dyn Records, event: &Event) -> Result<(), Unreadable> {
    queue(records, |queue| match event {
        Event::TreeVerified { verified, .. } => {
            queue.verified.retain(|known| known != verified);
            queue.verified.push(verified.clone());
            let surplus = queue.verified.len().saturating_sub(VERIFIED_MAX);
            queue.verified.drain(..surplus);
        }
        Event::TargetMoving { moving } => queue.moving = Some(moving.clone()),
        Event::TargetNotMoved { .. } => queue.moving = None,
        Event::QueueRunnerStarted { runner } => queue.runner = Some(runner.clone()),
        Event::QueueRunnerRenewed { token, lease_until } => {
            if let Some(runner) = queue.runner.as_mut().filter(|runner| runner.token == *token) {
                runner.lease_until = *lease_until;
            }
        }
        Event::QueueRunnerEnded { token } => {
            queue.runner.take_if(|runner| runner.token == *token);
        }
        Event::QueuePaused { paused } => queue.paused = Some(paused.clone()),
        Event::QueueResumed { .. } => queue.paused = None,
        _ => {}
    })
}

/// The target has them.
fn landed(
    records: &mut dyn Records,
    moved: &crate::landing::Moving,
    at: Moment,
) -> Result<(), Unreadable> {
    for (id, commit) in &moved.landings {
        change(records, id.as_str(), |landing: &mut Landing| {
            landing.land(commit, moved.checked, at);
        })?;
    }
    queue(records, |queue| queue.moving = None)
}

fn queue(records: &mut dyn Records, edit: impl FnOnce(&mut Queue)) -> Result<(), Unreadable> {
    let mut queue = get::<Queue>(records, Queue::KEY)?.unwrap_or_default();
    edit(&mut queue);
    put(records, &queue)
}

fn all(
    records: &mut dyn Records,
    landings: &[LandingId],
    edit: impl Fn(&mut Landing),
) -> Result<(), Unreadable> {
    landings.iter().try_for_each(|id| change(records, id.as_str(), &edit))
}
