//! A subagent with a working tree of its own is a session of its own.
//!
//! Owns how that is told: the client says whose subagent acts and where, and a mark in git's folder
//! of the tree lets the commands that it runs there be the same session, although they carry the
//! credential of its parent.

use std::borrow::Cow;
use std::path::PathBuf;

use baton_core::claim::{self, Claim, Hold};
use baton_core::context::{Actor, Observed, Proof};
use baton_core::id::SessionId;
use baton_core::sessions::{Session, TEXT_BYTES_MAX, client_alias, is_bidi};
use baton_core::view::scan;

use super::activity::Who;
use super::{Visitor, calls};
use crate::failure::Failure;
use crate::place::Place;
use crate::workspace::Workspace;

const MARK: &str = "baton-agent";
/// What is kept of an id that is too long, for whoever reads it, and how much of its hash.
const START_CHARS: usize = 23;
const HASH_CHARS: usize = 40;
/// So many claims of a parent are looked through.
const CLAIMS_MAX: u32 = 10_000;

/// The id under which a subagent with a tree of its own is known.
pub(super) fn id_of(visitor: &Visitor<'_>, agent: &str) -> String {
    fitting(&format!("{}/{agent}", visitor.id)).into_owned()
}

/// An id as ids may be, no longer and of plain letters: of any other its beginning, and a hash of
/// all of it.
pub fn fitting(id: &str) -> Cow<'_, str> {
    let hidden = |letter: char| letter.is_control() || is_bidi(letter);
    if id.len() <= TEXT_BYTES_MAX && !id.contains(hidden) {
        return Cow::Borrowed(id);
    }
    let hash = blake3::hash(id.as_bytes()).to_hex();
    let plain = |letter: &char| letter.is_ascii() && !letter.is_control();
    let start: String = id.chars().take_while(plain).take(START_CHARS).collect();
    Cow::Owned(format!("{start}~{}", &hash[..HASH_CHARS]))
}

/// Linked trees have a folder of their own; in the main one nobody is a subagent alone.
fn mark_in(place: &Place) -> Option<PathBuf> {
    let dirs = place.git.as_ref()?;
    (dirs.git_dir != dirs.common_dir).then(|| dirs.git_dir.join(MARK))
}

/// Is a subagent a session of its own here? It is in a linked tree to which it went apart from its
/// parent. One that stayed behind while its parent went away is its parent's still, with all that
/// it holds; so is one whose line went here and is over now, as it was when that began.
pub(super) fn is_alone(
    workspace: &mut Workspace,
    visitor: &Visitor<'_>,
    agent: &str,
    parent: &Session,
    apart: bool,
) -> Result<bool, Failure> {
    let Some(path) = mark_in(&workspace.place) else { return Ok(false) };
    if !apart {
        // Its parent may have come after it.
        let text = std::fs::read_to_string(path).unwrap_or_default();
        return Ok(text == mark_of(&parent.session, visitor.client, &id_of(visitor, agent)));
    }
    let me = Actor {
        session: Some(parent.session.clone()),
        agent: Some(agent.to_owned()),
        ..Actor::default()
    };
    let began = |call: &str| calls::find(&workspace.place, &Who::acting(&me)?, call);
    if visitor.ended.and_then(began).is_some() {
        return Ok(false);
    }
    let tree = workspace.tree.clone();
    workspace.look(&Actor::default(), Observed::default(), |view, _| {
        let claims: Vec<Claim> = scan(view, claim::of_session(&parent.session, CLAIMS_MAX))?;
        let its_own = |hold: &Hold| hold.holder.agent.as_deref() == Some(agent);
        Ok(!claims.iter().any(|claim| claim.hold.tree == tree && its_own(&claim.hold)))
    })
}

fn mark_of(parent: &SessionId, client: &str, id: &str) -> String {
    format!("{}\n{client}\n{id}\n", parent.as_str())
}

/// Commands in this tree that come with the parent's credential are the subagent's.
pub(super) fn mark(place: &Place, parent: &SessionId, client: &str, id: &str) {
    if let Some(path) = mark_in(place) {
        // Without it they are the parent's, and a claim of the other stands in their way.
        let _ = std::fs::write(path, mark_of(parent, client, id));
    }
}

/// Who acts here, when the actor is the parent of the subagent that this tree belongs to.
pub(crate) fn instead(workspace: &mut Workspace, actor: Actor) -> Actor {
    let text = mark_in(&workspace.place).and_then(|path| std::fs::read_to_string(path).ok());
    let Some(text) = text else { return actor };
    let mut lines = text.lines();
    let (Some(parent), Some(client), Some(id)) = (lines.next(), lines.next(), lines.next()) else {
        return actor;
    };
    if actor.session.as_ref().map(SessionId::as_str) != Some(parent) {
        return actor;
    }
    let key = client_alias(client, id);
    match super::known(workspace, &key) {
        Ok(Some(session)) => {
            Actor { session: Some(session.session), proof: Proof::Alias(key), ..actor }
        }
        _ => actor,
    }
}
