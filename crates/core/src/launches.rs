//! A session that a launcher began for a client, on its way to the tree it is to work in.
//!
//! Owns two steps. The session is begun first, because a tree is made by somebody, and belongs to
//! the new tree from then on; only the session itself goes. And a client that is launched again
//! where it left work a short while ago goes on as who it was: same client, same tree, same role.

use crate::context::Context;
use crate::event::Event;
use crate::id::{SessionId, TreeId};
use crate::refusal::Refusal;
use crate::roles::giving;
use crate::scene::Caller;
use crate::sessions::{self, Life, Session, Start, Started};
use crate::time::Moment;
use crate::view::{View, get};

/// Since when this session waits for its client, where the client is the one that is asked for.
pub fn waits(session: &Session, client: &str, host: &str, now: Moment) -> Option<Moment> {
    let same = session.client.as_deref() == Some(client) && session.host == host;
    match session.life {
        Life::Ended { at, grace_until: Some(end) } if same && now < end => Some(at),
        _ => None,
    }
}

/// The client goes on with this session, unless it does not wait for it, or would get another role
/// by being started anew.
pub fn again(
    view: &dyn View,
    id: &SessionId,
    request: &Start,
    context: &Context,
) -> Result<(Vec<Event>, Option<Started>), Refusal> {
    let known = get::<Session>(view, id.as_str())?;
    let role = giving::for_new(view, request.role.as_deref(), request.starter.as_deref())?;
    let client = request.client.as_deref().unwrap_or_default();
    let fits = |known: &Session| {
        waits(known, client, &request.host, context.now).is_some()
            && known.tree == request.tree
            && known.role == role
    };
    let Some(mut known) = known.filter(fits) else { return Ok((Vec::new(), None)) };
    // What its client called it then need not be what it calls itself now.
    known.client_session = None;
    let (events, started) = sessions::back(view, known, request, context)?;
    Ok((events, Some(started)))
}

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
