//! Setting a workspace up, and putting a policy in force.
//!
//! Owns `init`. It is idempotent and never destroys: what is there is kept, what is missing is made.

use std::path::Path;

use baton_core::context::{Actor, Observed};
use baton_core::event::Event;
use baton_core::zones::Policy;

use crate::config;
use crate::failure::Failure;
use crate::place::{Place, Site};
use crate::store::sqlite::Sqlite;
use crate::workspace::Workspace;

/// Makes the workspace and its store, or opens what is there. True when it was made now.
pub fn make(folder: &Path, address: Option<&str>) -> Result<(Workspace, bool), Failure> {
    let site = Site::find(folder)?;
    let (place, _) = site.initialise()?;
    if address.is_none() {
        Sqlite::create(&place.store)?;
    }
    let mut workspace = Workspace::open_at(place, address)?;
    let made = workspace.store.snapshot()?.state().head.position.number == 0;
    if made {
        let id = workspace.place.workspace.id.as_str().to_owned();
        workspace.decide(&Actor::default(), Observed::default(), |_, _| {
            Ok((vec![Event::WorkspaceMade { workspace: id }], ()))
        })?;
    }
    Ok((workspace, made))
}

/// The policy that `baton.toml` of this tree would give, if there is one.
pub fn written_policy(place: &Place) -> Result<Option<Policy>, Failure> {
    match config::read(&place.root)? {
        None => Ok(None),
        Some((path, text)) => config::compile(&path, &text, Default::default()).map(Some),
    }
}

/// Puts a policy in force. The caller has made sure that a person wants it.
pub fn put_in_force(
    workspace: &mut Workspace,
    actor: &Actor,
    policy: &Policy,
) -> Result<bool, Failure> {
    workspace.decide(actor, Observed::default(), |view, context| {
        let current = baton_core::scene::policy(view)?;
        if current.source_hash == policy.source_hash {
            return Ok((Vec::new(), false));
        }
        let policy = Policy { approved_at: context.now, ..policy.clone() };
        Ok((vec![Event::PolicySet { policy }], true))
    })
}
