//! The time that a hook may take.
//!
//! Owns the answer when it is over: the act goes on unjudged, which is what every door here does
//! when Baton cannot answer, and the agent is told so where it acts. Invariant: exactly one answer
//! is printed. A plain edit or read has no watch of its own until it calls git, which it does only
//! where somebody is in its way, or a server: before that its wait for the store is bounded.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use baton_engine::slow;
use baton_engine::store::postgres;

use super::{Answer, Event, Payload, Tool, is_told, say, words};
use crate::desk;

/// Clients wait longer, and would take silence for their own fault.
pub(crate) const LIMIT: Duration = Duration::from_secs(2);

/// Who may answer: the one that says so first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Limit {
    answered: Arc<AtomicBool>,
}

impl Limit {
    /// Watches over what may take long.
    pub(crate) fn watch(payload: &Payload, begun: Instant) -> Self {
        let limit = Self::default();
        if !is_answered(&payload.event) {
            return limit;
        }
        // So that a server without a free connection is told of by its name, and not as slow.
        postgres::connect_before(begun + LIMIT);
        let (mine, told) = (limit.clone(), payload.clone());
        match may_take_long(&payload.event) {
            true => mine.start(told, begun),
            false => slow::before_the_first(move || mine.start(told, begun)),
        }
        limit
    }

    fn start(self, payload: Payload, begun: Instant) {
        let name = "limit".to_owned();
        // Without a watch the hook answers as late as it does.
        let _ = std::thread::Builder::new().name(name).spawn(move || {
            std::thread::sleep(LIMIT.saturating_sub(begun.elapsed()));
            if self.is_first() {
                let answer = match is_told(&payload, true) {
                    true => Answer::Context(words::too_slow(LIMIT)),
                    false => Answer::Silent,
                };
                let said = say(&payload, &answer).out;
                if !said.is_empty() {
                    desk::print(&format!("{said}\n"));
                }
                std::process::exit(0);
            }
        });
    }

    /// True for the first who asks, who then answers.
    fn is_first(&self) -> bool {
        !self.answered.swap(true, Ordering::SeqCst)
    }

    /// The hook's own answer is there. When it comes too late, the process is about to end.
    pub(crate) fn answer(&self) {
        while !self.is_first() {
            std::thread::park();
        }
    }
}

fn may_take_long(event: &Event) -> bool {
    let plain =
        |tool: &Tool| matches!(tool, Tool::Edit(_) | Tool::Read(_) | Tool::Own | Tool::Other);
    match event {
        Event::Before(tool) | Event::After { tool, .. } => !plain(tool),
        _ => true,
    }
}

/// A tree takes the time it takes: its client waits for it.
fn is_answered(event: &Event) -> bool {
    !matches!(event, Event::Other | Event::TreeWanted(_) | Event::TreeUnwanted(_))
}
