//! Why something cannot be done with a gate or a vote, as data.
//!
//! The words are made in the command line. Whoever is refused sees what was decided, what can be
//! chosen, or which commit counts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::gate::{Decision, Gate};
use crate::id::GateId;
use crate::refusal::{Class, Refusal};

/// A gate, just enough of it to be recognised.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Brief {
    pub gate: GateId,
    pub on: String,
    pub ask: String,
}

impl From<&Gate> for Brief {
    fn from(gate: &Gate) -> Self {
        Self { gate: gate.gate.clone(), on: gate.on.clone(), ask: gate.ask.clone() }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum Refused {
    #[error("there is no gate {gate:?}")]
    Unknown { gate: String, near: Vec<Brief> },
    #[error("{} is decided", gate.gate)]
    Decided { gate: Brief, decision: Box<Decision> },
    #[error("{} is about another commit", gate.gate)]
    OtherCommit { gate: Brief, given: String, current: String },
    #[error("{} asks for a choice", gate.gate)]
    WhichOption { gate: Brief, given: Option<String>, options: Vec<String> },
    #[error("{} is for a person to decide", gate.gate)]
    NotAutomatic { gate: Brief },
    #[error("nobody stands for the command of {}", gate.gate)]
    Untrusted { gate: Brief },
    #[error("too many gates are open on {on}")]
    TooManyOpen { on: String, max: u32 },
    #[error("there are too many {what}")]
    TooMany { what: &'static str, max: usize },
    #[error("{subject} is decided")]
    Settled { subject: String, gate: GateId, decision: Box<Decision> },
    #[error("nobody voted on {subject}")]
    NoVotes { subject: String },
}

impl Refused {
    pub fn class(&self) -> Class {
        match self {
            Self::OtherCommit { .. } => Class::Stale,
            Self::WhichOption { .. } | Self::TooMany { .. } => Class::Usage,
            _ => Class::Refused,
        }
    }

    /// The name scripts rely on.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unknown { .. } => "unknown_gate",
            Self::Decided { .. } | Self::Settled { .. } => "decided",
            Self::OtherCommit { .. } => "other_commit",
            Self::WhichOption { .. } => "which_option",
            Self::NotAutomatic { .. } => "needs_person",
            Self::Untrusted { .. } => "untrusted",
            Self::TooManyOpen { .. } | Self::TooMany { .. } => "too_many",
            Self::NoVotes { .. } => "no_votes",
        }
    }
}

impl From<Refused> for Refusal {
    fn from(refused: Refused) -> Self {
        Self::Gate(Box::new(refused))
    }
}
