//! Applies an event about the shared state, `once` and notes to the records.
//!
//! Decides nothing, and touches only the keys that the event names.

use super::change;
use crate::event::Event;
use crate::once::Once;
use crate::state::State;
use crate::state::drafts::{self, Draft};
use crate::view::{Record, Records, Unreadable, get, put};

pub(super) fn evolve(records: &mut dyn Records, event: &Event) -> Result<(), Unreadable> {
    match event {
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
        Event::NoteAdded { note } => put(records, note),
        _ => Ok(()),
    }
}
