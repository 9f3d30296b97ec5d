//! Whether offered work can be gone on with from where somebody stands.
//!
//! Owns the refusal to start a client beside the work (S15): what is not committed comes along with
//! no task, so a session that is started elsewhere would have the task and none of its files.

use super::refused::{OutOfReach, Refused};
use super::stands;
use crate::context::Context;
use crate::handoff::{Handoff, Known};
use crate::refusal::Refusal;
use crate::sessions::Session;
use crate::task::Task;
use crate::tasks::refused::Brief;
use crate::tree::Tree;
use crate::view::{View, get};

/// Whoever wants to start a client where the tree of the work is not.
#[derive(Clone, Debug)]
pub struct Stranger<'a> {
    /// The machine it is on.
    pub host: &'a str,
    /// What is to be started.
    pub client: &'a str,
    /// The commit with all of the work, where its clone has it.
    pub commit: Option<String>,
}

/// The commit that has all of the work, if there is one.
pub fn all_committed(known: &Known) -> Option<&str> {
    let all = known.seen && known.work.uncommitted.is_empty();
    known.work.commit.as_deref().filter(|_| all)
}

/// Refuses what stands and is not here. An offer that is over is told as such when it is accepted.
pub fn refuse_from_afar(
    view: &dyn View,
    handoff: &Handoff,
    stranger: &Stranger<'_>,
    context: &Context,
) -> Result<(), Refusal> {
    let Some(task) = get::<Task>(view, handoff.task.as_str())? else { return Ok(()) };
    if !stands(handoff, &task, context) {
        return Ok(());
    }
    let tree = &handoff.known.tree;
    let made = get::<Tree>(view, &tree.0)?;
    let giver = get::<Session>(view, handoff.from.session.as_str())?;
    let its_own = giver.filter(|giver| giver.tree == *tree).map(|giver| giver.host);
    let host = made.as_ref().map(|made| made.host.clone()).or(its_own);
    Err(Refused::OutOfReach(Box::new(OutOfReach {
        handoff: handoff.handoff.clone(),
        task: Brief::from(&task),
        from: handoff.from.name.clone(),
        tree: tree.clone(),
        this_machine: host.as_deref() == Some(stranger.host),
        host,
        path: made.map(|made| made.path),
        uncommitted: handoff.known.work.uncommitted.clone(),
        commit: stranger.commit.clone(),
        client: stranger.client.to_owned(),
    }))
    .into())
}
