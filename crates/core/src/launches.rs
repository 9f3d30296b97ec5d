//! A session that a launcher began for a client, on its way to the tree it is to work in.
//!
//! Owns that one step: the session is begun first, because a tree is made by somebody, and belongs
//! to the new tree from then on. Only the session itself goes.

use crate::context::Context;
use crate::event::Event;
use crate::id::TreeId;
use crate::refusal::Refusal;
use crate::scene::Caller;
use crate::view::View;

/// The session works in this tree now.
pub fn settle(
    view: &dyn View,
    tree: &TreeId,
    context: &Context,
) -> Result<(Vec<Event>, ()), Refusal> {
    let Caller { mut session, .. } = Caller::read(view, context)?;
    if session.tree == *tree {
        return Ok((Vec::new(), ()));
    }
    session.tree = tree.clone();
    Ok((vec![Event::SessionResumed { session }], ()))
}
