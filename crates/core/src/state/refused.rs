//! Why a write to the shared state, or a look at it, was refused: as data.
//!
//! Owns the cases and their classes; the words are made in the command line.

use serde_json::Value as Json;

use super::rules::{Kind, Owner};
use super::{VALUE_BYTES_MAX, VALUE_DEPTH_MAX};
use crate::claim::Holder;
use crate::key::Key;
use crate::refusal::Class;
use crate::time::Moment;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("{key} has no value")]
    Unknown {
        key: Key,
        /// Above 0 when it had a value once.
        version: u64,
        near: Vec<Key>,
    },
    #[error("{key} is at version {current}, not {given}")]
    Stale {
        key: Key,
        given: u64,
        current: u64,
        exists: bool,
        /// Who changed it last, and when.
        by: Option<(Holder, Moment)>,
        /// It was only read by the one who writes something else.
        read: bool,
    },
    #[error("the rule of {key} does not allow it")]
    Against {
        key: Key,
        rule: Kind,
        why: Against,
        /// Who set what is there.
        set: Option<(Holder, Moment)>,
    },
    #[error("{key} is another's to write")]
    NotOwner { key: Key, owner: Owner, by: Option<Holder> },
    #[error("the value of {key} has {bytes} bytes; {VALUE_BYTES_MAX} at the most")]
    TooLarge { key: Key, bytes: usize },
    #[error("the value of {key} nests deeper than {VALUE_DEPTH_MAX} levels")]
    TooDeep { key: Key },
    #[error("{given} {what} are too many: {max} at the most")]
    TooMany { what: &'static str, given: usize, max: usize },
    #[error("there is no draft to publish")]
    NoDraft { key: Option<Key> },
}

/// What of a rule stands against a change.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Against {
    #[error("it is not an array")]
    NotAnArray,
    #[error("it is not a number")]
    NotANumber,
    #[error("what is there must stay at the front")]
    Shrinks,
    #[error("it was set already")]
    AlreadySet,
    #[error("it is not one of the stages")]
    NoStage { given: Json, stages: Vec<String> },
    #[error("{from} comes after {to}")]
    Backwards { from: String, to: String },
    #[error("it cannot be merged into")]
    NotMerged,
    #[error("it cannot be appended to")]
    NotAppended,
    #[error("it cannot be deleted")]
    NotDeleted,
}

impl Refused {
    pub fn class(&self) -> Class {
        match self {
            Self::TooLarge { .. } | Self::TooDeep { .. } | Self::TooMany { .. } => Class::Usage,
            Self::Stale { .. } => Class::Stale,
            Self::Unknown { .. }
            | Self::Against { .. }
            | Self::NotOwner { .. }
            | Self::NoDraft { .. } => Class::Refused,
        }
    }

    pub fn code(&self) -> &'static str {
        match self {
            Self::Unknown { .. } => "unknown_key",
            Self::Stale { read: true, .. } => "stale_read",
            Self::Stale { .. } => "stale_version",
            Self::Against { .. } => "against_rule",
            Self::NotOwner { .. } => "not_owner",
            Self::TooLarge { .. } => "too_large",
            Self::TooDeep { .. } => "too_deep",
            Self::TooMany { .. } => "too_many",
            Self::NoDraft { .. } => "no_draft",
        }
    }
}
