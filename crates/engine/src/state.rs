//! The shared state of an open workspace: writing, reading, its past, and watching a key.
//!
//! Owns what surrounds the rules of `baton_core::state`: a dead owner is found out before a write
//! is refused because of it, and the past of a key is read from the journal entries that its
//! record names, never by searching the journal.

use baton_core::claim::Holder;
use baton_core::context::{Actor, Observed};
use baton_core::event::Event;
use baton_core::id::Position;
use baton_core::key::{Key, KeyPattern};
use baton_core::refusal::Refusal;
use baton_core::state::drafts::{self, Discarded, Published};
use baton_core::state::{self, Change, Changed, Got, Names, Refused, Request, State, Written};
use baton_core::time::Moment;
use baton_core::view::{View, get};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::failure::Failure;
use crate::sighting::bury;
use crate::store::Snapshot;
use crate::workspace::{Retry, Workspace};

pub fn write(
    workspace: &mut Workspace,
    actor: &Actor,
    request: &Request,
    operation: Option<&str>,
) -> Result<Written, Failure> {
    let retry = operation.map(|operation| Retry::of(operation, "state", request));
    let decide = |workspace: &mut Workspace| {
        workspace.decide_once(
            actor,
            Observed::default(),
            retry.as_ref(),
            |_| true,
            |view, context| state::write(view, request, context),
        )
    };
    let first = decide(workspace);
    match dead_owner(workspace, &first)? {
        true => decide(workspace),
        false => first,
    }
}

/// Was a write refused for the sake of a session whose process is gone? Then that session has
/// ended now, and asking again may help.
fn dead_owner<T>(workspace: &mut Workspace, answer: &Result<T, Failure>) -> Result<bool, Failure> {
    let Err(Failure::Refused(Refusal::State(refused))) = answer else {
        return Ok(false);
    };
    match &**refused {
        Refused::NotOwner { by: Some(owner), .. } => bury(workspace, &owner.session),
        _ => Ok(false),
    }
}

pub fn publish(
    workspace: &mut Workspace,
    actor: &Actor,
    keys: &[Key],
    operation: Option<&str>,
) -> Result<Published, Failure> {
    let retry = operation.map(|operation| Retry::of(operation, "state publish", &keys));
    let decide = |workspace: &mut Workspace| {
        workspace.decide_once(
            actor,
            Observed::default(),
            retry.as_ref(),
            |_| true,
            |view, context| drafts::publish(view, keys, context),
        )
    };
    let first = decide(workspace);
    match dead_owner(workspace, &first)? {
        true => decide(workspace),
        false => first,
    }
}

pub fn discard(
    workspace: &mut Workspace,
    actor: &Actor,
    keys: &[Key],
    operation: Option<&str>,
) -> Result<Discarded, Failure> {
    let retry = operation.map(|operation| Retry::of(operation, "state discard", &keys));
    workspace.decide_once(
        actor,
        Observed::default(),
        retry.as_ref(),
        |_| true,
        |view, context| drafts::discard(view, keys, context),
    )
}

pub fn read(
    workspace: &mut Workspace,
    actor: &Actor,
    key: &Key,
    published: bool,
) -> Result<Got, Failure> {
    workspace.look(actor, Observed::default(), |view, context| {
        state::get_value(view, key, published, context)
    })
}

pub fn list(
    workspace: &mut Workspace,
    actor: &Actor,
    pattern: Option<&KeyPattern>,
    limit: u32,
) -> Result<Names, Failure> {
    workspace.look(actor, Observed::default(), |view, context| {
        state::list(view, pattern, limit, context)
    })
}

/// The latest changes of a key, oldest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct History {
    pub key: Key,
    pub version: u64,
    pub changes: Vec<Past>,
    /// There are older changes than are shown.
    pub more: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Past {
    pub version: u64,
    pub position: Position,
    pub by: Holder,
    pub at: Moment,
    #[serde(flatten)]
    pub change: Change,
}

pub fn history(workspace: &mut Workspace, key: &Key, limit: usize) -> Result<History, Failure> {
    let snapshot = workspace.store.snapshot()?;
    let Some(state) = known(&*snapshot, key)? else {
        drop(snapshot);
        // A read of it refuses with near matches; if that finds it, it was made just now.
        read(workspace, &Actor::default(), key, true)?;
        return history(workspace, key, limit);
    };
    let from = state.past.len().saturating_sub(limit);
    let mut changes = Vec::new();
    for position in &state.past[from..] {
        // An archived entry is not here any more, and neither are those before it.
        if let Some(Changed { version, position, by, at, change, .. }) =
            change_at(&*snapshot, *position)?
        {
            changes.push(Past { version, position, by, at, change });
        }
    }
    let more = changes.first().is_none_or(|oldest| oldest.version > 1);
    Ok(History { key: state.key, version: state.version, changes, more })
}

fn known(snapshot: &dyn Snapshot, key: &Key) -> Result<Option<State>, Failure> {
    let view: &dyn View = snapshot;
    Ok(get::<State>(view, key.as_str()).map_err(Refusal::from)?)
}

fn change_at(snapshot: &dyn Snapshot, position: Position) -> Result<Option<Changed>, Failure> {
    let entries = snapshot.entries(position.number.saturating_sub(1), 1)?;
    let entry = entries.first().filter(|entry| entry.position == position);
    Ok(match entry.map(|entry| entry.event()) {
        Some(Ok(Event::StateChanged { changed })) => Some(changed),
        _ => None,
    })
}

/// One version of a key, as a watcher sees it come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Version {
    pub key: Key,
    pub version: u64,
    /// `null` when it was deleted.
    pub value: Json,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deleted: bool,
    pub by: Holder,
    pub at: Moment,
}

impl From<&State> for Version {
    fn from(state: &State) -> Self {
        let State { key, version, value, deleted, by, at, .. } = state.clone();
        Self { key, version, value, deleted, by, at }
    }
}

/// A key being watched: what was last seen of it.
#[derive(Debug)]
pub struct Watching {
    key: Key,
    seen: Option<State>,
}

impl Watching {
    pub fn begin(workspace: &mut Workspace, key: &Key) -> Result<Self, Failure> {
        let snapshot = workspace.store.snapshot()?;
        let seen = known(&*snapshot, key)?;
        Ok(Self { key: key.clone(), seen })
    }

    pub fn version(&self) -> u64 {
        self.seen.as_ref().map_or(0, |state| state.version)
    }

    /// The version that is there now.
    pub fn now(&self) -> Option<Version> {
        self.seen.as_ref().map(Version::from)
    }

    /// Every version that came since the last look, oldest first. Where the journal no longer has
    /// some of them, the one that is there now stands for all.
    pub fn next(&mut self, workspace: &mut Workspace) -> Result<Vec<Version>, Failure> {
        let snapshot = workspace.store.snapshot()?;
        let Some(current) = known(&*snapshot, &self.key)? else {
            self.seen = None;
            return Ok(Vec::new());
        };
        if self.seen.as_ref().map(|seen| &seen.past) == Some(&current.past) {
            return Ok(Vec::new());
        }
        let new = usize::try_from(current.version.saturating_sub(self.version())).unwrap_or(0);
        let from = current.past.len().checked_sub(new).filter(|_| new > 0);
        let mut versions = Vec::new();
        let mut state = self.seen.take();
        for position in from.map_or(&[][..], |from| &current.past[from..]) {
            let Some(changed) = change_at(&*snapshot, *position)? else { break };
            let next = State::after(state.take(), &changed);
            versions.push(Version::from(&next));
            state = Some(next);
        }
        if state.as_ref() != Some(&current) {
            // A restore went back, or entries were archived: what counts is what is there.
            versions = vec![Version::from(&current)];
        }
        self.seen = Some(current);
        Ok(versions)
    }
}
