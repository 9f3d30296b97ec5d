//! A turn begins: what a session should know before it goes on.
//!
//! Owns what is new and is in no notice: files it has read that are not as it read them, and work
//! that landed on the target under its feet. Each is told once. Looks cost a few calls of git,
//! which a turn of a model bears and a tool call would not.

use baton_core::context::Actor;
use baton_core::notices::Notice;
use baton_core::syncs::Touch;

use super::reads::{self, Stale};
use super::traces::Trace;
use crate::failure::Failure;
use crate::git::Git;
use crate::syncing;
use crate::workspace::Workspace;

/// What is new at the beginning of a turn.
#[derive(Clone, Debug, Default)]
pub struct Turn {
    pub notices: Vec<Notice>,
    pub stale: Vec<Stale>,
    pub behind: Option<Behind>,
}

/// What landed since this tree's branch parted, and touches what the session works with.
#[derive(Clone, Debug)]
pub struct Behind {
    pub target: String,
    pub commits: u64,
    pub touches: Vec<Touch>,
}

pub fn begins(workspace: &mut Workspace, actor: &Actor) -> Result<Turn, Failure> {
    workspace.activity(actor).ends_of_silent_subagents();
    Ok(Turn {
        notices: super::alive(workspace, actor)?,
        stale: reads::news(workspace, actor)?,
        behind: behind(workspace, actor)?,
    })
}

/// Looks only when the target has moved since the last turn.
fn behind(workspace: &mut Workspace, actor: &Actor) -> Result<Option<Behind>, Failure> {
    let Some(session) = actor.session.clone().filter(|_| workspace.place.git.is_some()) else {
        return Ok(None);
    };
    let git = Git::in_tree(&workspace.place.root)?;
    let named = crate::policy::in_force(workspace)?.and_then(|policy| policy.evidence.target);
    let Some((target, tips)) = git.target(named.as_deref())? else {
        return Ok(None);
    };
    let (Some(tip), Some(head)) = (tips.first(), git.head()?) else {
        return Ok(None);
    };
    let seen = Trace::of_session(&workspace.place, &session, "target");
    let mark = tip.to_string();
    if seen.lines().last() == Some(&mark) {
        return Ok(None);
    }
    seen.add(&mark);
    let compared = syncing::compare(workspace, actor, &git, &head, tip)?;
    let touches = compared.touches;
    Ok((!touches.is_empty()).then_some(Behind { target, commits: compared.behind, touches }))
}
