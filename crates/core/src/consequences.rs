//! What follows from a decision, whichever rule made it.
//!
//! Owns the list: the join of a task whose last part ended, and what was suggested to a holder
//! whose claim ended. Added to the events of every decision before they are written, so that no
//! rule can forget it. Invariant: a second look adds nothing.

use crate::context::Context;
use crate::event::Event;
use crate::refusal::Refusal;
use crate::view::View;
use crate::{suggestions, tasks};

pub fn add(view: &dyn View, events: &mut Vec<Event>, context: &Context) -> Result<(), Refusal> {
    tasks::follow(view, events, context)?;
    suggestions::follow(view, events, context)
}
