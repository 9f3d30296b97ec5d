//! What the world looks like to one decision.
//!
//! The engine fills it in after the write lock is held (time, position) and from what it saw just
//! before (processes, files). A rule never looks for itself.

use std::collections::BTreeMap;

use crate::handoff::Work;
use crate::id::{ClaimId, Fresh, Position, SessionId, TaskId, Token, TreeId, WaiterId};
use crate::resource::Resource;
use crate::serial::Whereabouts;
use crate::time::Moment;

#[derive(Clone, Debug)]
pub struct Context {
    /// The store's clock, never below the last journal time.
    pub now: Moment,
    /// The position the first event of this decision will get.
    pub next: Position,
    pub fresh: Fresh,
    pub actor: Actor,
    pub observed: Observed,
    /// Leases granted before this moment count one TTL longer: the store failed over.
    pub failed_over_at: Option<Moment>,
}

/// Who acts, as far as the engine could tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Actor {
    pub session: Option<SessionId>,
    pub proof: Proof,
    /// A subagent of that session.
    pub agent: Option<String>,
    /// The role of that subagent, which takes away beside its session's.
    pub role: Option<String>,
    /// A person: a terminal without an agent above it, or the person token.
    pub person: bool,
    pub tree: Option<TreeId>,
}

/// Why the engine believes that the actor is this session. Checked in the deciding transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Proof {
    #[default]
    None,
    /// The hash of the secret that was shown.
    Secret(String),
    /// The key of an alias record that must point to the session.
    Alias(String),
}

/// What the engine saw outside the store before this decision.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    pub claims: BTreeMap<ClaimId, Sighting>,
    /// The engine has looked as often as it will: what is still unseen is judged by its lease.
    pub complete: bool,
    /// Waiters whose own process is visibly gone.
    pub waiters_gone: Vec<WaiterId>,
    /// How runners of `once` looked, by the token of their turn.
    pub runners: BTreeMap<Token, Life>,
    /// The branch the caller stands on, once that matters.
    pub standing: Whereabouts,
    /// Of serial zones bound to a branch: whether it has changes in them that have not landed.
    pub zones: BTreeMap<String, bool>,
    /// Lock files of other tools beside paths that are asked for.
    pub foreign_locks: Vec<ForeignLock>,
    /// The commit on which the tree of a task that is taken now stands.
    pub head: Option<String>,
    /// What git shows of the work on tasks.
    pub work: BTreeMap<TaskId, Work>,
}

/// How the holder of a claim that has run out looked, and its files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighting {
    pub life: Life,
    /// Held paths with uncommitted changes.
    pub dirty: Vec<Resource>,
    /// Where the dirty paths were saved.
    pub rescue: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    Alive,
    Dead,
    /// It cannot be seen from here. Never taken for dead.
    Unknown,
}

/// `FILE.agent-lock`, made by a tool that is not Baton.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignLock {
    pub resource: Resource,
    pub holder: String,
}
