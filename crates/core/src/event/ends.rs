//! How things end, and the small parts that several events are made of.
//!
//! Owns those shapes; the events that carry them are in the parent.

use serde::{Deserialize, Serialize};

use crate::id::{ClaimId, SessionId, TaskId};
use crate::time::{Moment, Span};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Renewal {
    pub claim: ClaimId,
    pub expires_at: Moment,
    /// The new TTL, when the holder asked for a longer one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<Span>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Weight {
    pub task: TaskId,
    pub unblocks: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndOfSession {
    Ended,
    Died,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum EndOfClaim {
    Released {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        commit: Option<String>,
    },
    Expired,
    SessionEnded,
    SessionDied,
    Revoked {
        why: String,
    },
    /// Its paths were changed and are clean again: committed or reverted.
    Settled,
    /// The same session took the same again after the lease had run out, under a new token.
    Replaced,
    /// It went to another with the task it was taken for.
    HandedOver {
        to: SessionId,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndOfWait {
    Granted,
    TimedOut,
    Withdrawn,
    Gone,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndOfDraft {
    Published,
    Discarded,
    SessionEnded,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndOfReview {
    Said,
    RanOut,
    Gone,
    Withdrawn,
}
