//! Which subagent calls a tool of Baton's own server.
//!
//! A client has one server for a session and all its subagents. Codex says with a call whose it is;
//! Claude Code says it to a hook before, with an id that the call then carries. Owns that trace,
//! and who acts by it. Nobody becomes another session by this (S19): it tells apart those within
//! one, and a subagent with a tree of its own is known by the mark of that tree.

use std::path::PathBuf;

use baton_core::context::Actor;

use super::own_tree::{self, fitting};
use super::traces::Trace;
use crate::place::Place;
use crate::workspace::Workspace;

const PARTED: char = '\t';

/// What a call, or a hook before it, says of who calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    Agent(String),
    /// Its id; whose it is, a hook knows.
    Call(String),
}

/// A subagent that calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asker {
    pub agent: String,
    /// That of its definition, which may be narrower than its session's.
    role: Option<String>,
    /// The tree in which it works, where that is known.
    pub root: Option<PathBuf>,
}

fn trace(place: &Place) -> Trace {
    Trace::named(place, "askers")
}

/// A subagent is about to call a tool of ours.
pub fn asks(workspace: &Workspace, actor: &Actor, agent: &str, call: &str) {
    let place = &workspace.place;
    // A trace is text; who works in a folder that is none is its session where it was started.
    let root = place.root.to_str().filter(|root| !root.contains([PARTED, '\n'])).unwrap_or("");
    let role = actor.role.as_deref().unwrap_or("");
    let line = [&fitting(call), &fitting(agent), role, root].join(&PARTED.to_string());
    trace(place).add(&line);
}

/// Whose call it is; nobody's but the session's, where nothing is known.
pub fn find(place: &Place, said: &Said) -> Option<Asker> {
    let call = match said {
        Said::Agent(agent) => {
            return Some(Asker { agent: fitting(agent).into_owned(), role: None, root: None });
        }
        Said::Call(call) => fitting(call),
    };
    let read = |line: &str| match line.split(PARTED).collect::<Vec<_>>()[..] {
        [told, agent, role, root] if told == call => {
            let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
            let (agent, root) = (agent.to_owned(), some(root).map(PathBuf::from));
            Some(Asker { agent, role: some(role), root })
        }
        _ => None,
    };
    trace(place).tails().find_map(|text| text.lines().rev().find_map(read))
}

/// Who acts, when this one of the actor's session does: the session that it is in its own tree,
/// else a subagent of it.
pub fn acting(workspace: &mut Workspace, actor: &Actor, asker: &Asker) -> Actor {
    let role = asker.role.clone().or_else(|| actor.role.clone());
    let own = own_tree::instead(workspace, actor.clone());
    let agent = (own.session == actor.session).then(|| asker.agent.clone());
    Actor { agent, role, ..own }
}
