//! A refusal is data: what was refused, who stands in the way, until when.
//!
//! One table ([`Refusal::class`], [`Refusal::code`]) says what a refusal means to a caller; the
//! words and the `next:` step are made from it in the command line, in one place.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::claim::Holder;
use crate::gates;
use crate::id::{ClaimId, SessionId, Token};
use crate::interfaces;
use crate::key::Key;
use crate::resource::{self, Resource};
use crate::serial::Unlanded;
use crate::tasks;
use crate::time::Moment;
use crate::trust::Command;
use crate::view::Unreadable;
use crate::{commits, deploys, handoffs, landings, once, roles, state, suggestions, syncs, trees};

/// What stands in the way of a claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Held {
    /// What was asked for.
    pub resource: Resource,
    /// What is held: the same, or what overlaps it.
    pub held: Resource,
    pub holder: Holder,
    pub since: Moment,
    /// When the hold runs out if nothing renews it; unknown for another tool's lock file.
    pub until: Option<Moment>,
    pub reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<ClaimId>,
    /// The one in the way does not hold yet: it was in the queue first.
    #[serde(default)]
    pub queued: bool,
    /// For a resource with a capacity: how much of it is free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free: Option<u32>,
    /// Its holder is in a tool call that may take that long.
    #[serde(default)]
    pub busy: bool,
    /// Past its time, but its process lives and its files have uncommitted changes.
    #[serde(default)]
    pub idle_dirty: bool,
    /// A serial zone that is held until this has landed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unlanded: Option<Unlanded>,
    /// It belongs to this interface: only its owner changes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<Key>,
}

impl Held {
    /// Somebody is in the way of what was asked for; whoever knows more says so.
    pub(crate) fn new(resource: Resource, held: Resource, holder: Holder, since: Moment) -> Self {
        Self {
            resource,
            held,
            holder,
            since,
            until: None,
            reason: None,
            claim: None,
            queued: false,
            free: None,
            busy: false,
            idle_dirty: false,
            unlanded: None,
            interface: None,
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    #[error("{} is held by {}", .0.resource, .0.holder.name)]
    Held(Box<Held>),
    #[error("waiting would never end: {}", names.join(" waits for "))]
    Cycle { names: Vec<String> },
    #[error("nobody let go in time")]
    WaitedInVain(Box<Held>),
    #[error("this decision needs to know how holders look from here")]
    Unobserved { claims: Vec<ClaimId> },

    #[error("no session")]
    NoSession,
    #[error("session {session} is not known")]
    UnknownSession { session: String },
    #[error("the credential does not fit session {session}")]
    BadCredential { session: SessionId },
    #[error("session {name} has ended")]
    SessionEnded { session: SessionId, name: String, at: Moment },
    #[error("this process belongs to more than one session")]
    AmbiguousProcess { pid: u32 },
    #[error("{what} is for a person to decide")]
    NeedsPerson { what: String },
    #[error("nobody stands for the commands")]
    Untrusted { commands: Vec<Command> },

    #[error("token {given} is stale")]
    StaleToken { given: Token, current: Option<Token> },
    #[error("{resource} is not held by this session")]
    NotHeld {
        resource: String,
        /// Whoever has it instead.
        holder: Option<Holder>,
    },
    #[error("{resource} is held by the subagent {agent}")]
    OfSubagent { resource: String, agent: String },
    #[error("claim {claim} is not known")]
    UnknownClaim { claim: String },
    #[error("operation id {operation} belongs to another request")]
    OperationTaken { operation: String, at: Moment },

    #[error("nothing was named")]
    Empty,
    #[error("{given} resources are too many")]
    TooMany { given: usize, max: usize },
    #[error("the {what} is too long")]
    TooLong { what: &'static str, bytes_max: usize },
    #[error("the {what} is out of range")]
    OutOfRange { what: &'static str, given: String, allowed: String },
    #[error("{text:?} cannot be claimed")]
    BadResource { text: String, source: resource::Error },
    #[error("{resource} asks for more than there is")]
    OverCapacity { resource: Resource, capacity: u32 },
    #[error("the {what} contains {character:?}")]
    BadText { what: &'static str, character: char },

    #[error(transparent)] // As below.
    Role(Box<roles::Refused>),
    #[error(transparent)] // As below.
    Commit(Box<commits::Refused>),
    #[error(transparent)] // As below.
    Sync(Box<syncs::Refused>),
    #[error(transparent)]
    Landing(Box<landings::Refused>),
    #[error(transparent)] // As below.
    Suggestion(Box<suggestions::Refused>),
    #[error(transparent)] // The task's refusal is the whole answer.
    Task(Box<tasks::refused::Refused>),
    #[error(transparent)] // As above.
    Handoff(Box<handoffs::refused::Refused>),
    #[error(transparent)] // As above.
    Gate(Box<gates::refused::Refused>),
    #[error(transparent)] // It is the whole answer; nothing is to be added to it.
    State(Box<state::Refused>),
    #[error(transparent)] // As above.
    Tree(Box<trees::refused::Refused>),
    #[error(transparent)] // As above.
    Deploy(Box<deploys::Refused>),
    #[error(transparent)] // As above.
    Once(Box<once::Refused>),
    #[error(transparent)] // As above.
    Interface(Box<interfaces::refused::Refused>),

    #[error("the store could not be read")]
    Unreadable(#[from] Unreadable),
}

impl From<state::Refused> for Refusal {
    fn from(refused: state::Refused) -> Self {
        Self::State(Box::new(refused))
    }
}

impl From<once::Refused> for Refusal {
    fn from(refused: once::Refused) -> Self {
        Self::Once(Box::new(refused))
    }
}

/// What a refusal means to the caller; each door maps it to its own code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Understood and refused.
    Refused,
    /// The request itself is wrong.
    Usage,
    /// A token or version is no longer current.
    Stale,
    /// No answer could be given.
    Unanswered,
}

impl Refusal {
    pub fn class(&self) -> Class {
        match self {
            Self::Empty
            | Self::TooMany { .. }
            | Self::TooLong { .. }
            | Self::OutOfRange { .. }
            | Self::BadResource { .. }
            | Self::BadText { .. } => Class::Usage,
            Self::StaleToken { .. } => Class::Stale,
            Self::Commit(refused) => refused.class(),
            Self::Sync(refused) => refused.class(),
            Self::Landing(refused) => refused.class(),
            Self::Task(refused) => refused.class(),
            Self::Handoff(refused) => refused.class(),
            Self::Gate(refused) => refused.class(),
            Self::Suggestion(refused) if refused.is_usage() => Class::Usage,
            Self::State(refused) => refused.class(),
            Self::Once(refused) => refused.class(),
            Self::Deploy(refused) => refused.class(),
            Self::Tree(refused) => refused.class(),
            Self::Interface(refused) => refused.class(),
            Self::Unreadable(_) | Self::Unobserved { .. } => Class::Unanswered,
            _ => Class::Refused,
        }
    }

    /// The name scripts rely on.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Held(held) if held.queued => "queued_first",
            Self::Held(held) if held.free.is_some() => "no_capacity",
            Self::Held(_) => "held",
            Self::Cycle { .. } => "cycle",
            Self::WaitedInVain(_) => "timed_out",
            Self::Unobserved { .. } => "unobserved",
            Self::NoSession => "no_session",
            Self::UnknownSession { .. } => "unknown_session",
            Self::BadCredential { .. } => "bad_credential",
            Self::SessionEnded { .. } => "session_ended",
            Self::AmbiguousProcess { .. } => "ambiguous_process",
            Self::NeedsPerson { .. } => "needs_person",
            Self::Untrusted { .. } => "untrusted",
            Self::StaleToken { .. } => "stale_token",
            Self::NotHeld { .. } => "not_held",
            Self::OfSubagent { .. } => "of_subagent",
            Self::UnknownClaim { .. } => "unknown_claim",
            Self::OperationTaken { .. } => "operation_taken",
            Self::Empty => "empty",
            Self::TooMany { .. } => "too_many",
            Self::TooLong { .. } => "too_long",
            Self::OutOfRange { .. } => "out_of_range",
            Self::BadResource { .. } => "bad_resource",
            Self::OverCapacity { .. } => "over_capacity",
            Self::BadText { .. } => "bad_text",
            Self::Role(_) => "role",
            Self::Commit(refused) => refused.code(),
            Self::Sync(refused) => refused.code(),
            Self::Landing(refused) => refused.code(),
            Self::Task(refused) => refused.code(),
            Self::Handoff(refused) => refused.code(),
            Self::Gate(refused) => refused.code(),
            Self::Suggestion(refused) => refused.code(),
            Self::State(refused) => refused.code(),
            Self::Once(refused) => refused.code(),
            Self::Deploy(refused) => refused.code(),
            Self::Tree(refused) => refused.code(),
            Self::Interface(refused) => refused.code(),
            Self::Unreadable(_) => "unreadable",
        }
    }
}
