//! Why something cannot be done with an interface.
//!
//! Owns the list and what each means to a caller; the words are made in the command line.

use crate::claim::Holder;
use crate::key::{BadKey, Key};
use crate::refusal::{Class, Refusal};
use crate::resource::Resource;

/// Of what there are too many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    Files,
    Users,
    Interfaces,
}

impl What {
    pub fn name(self) -> &'static str {
        match self {
            Self::Files => "files in one interface",
            Self::Users => "users of one interface",
            Self::Interfaces => "interfaces",
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum Refused {
    #[error("{given:?} cannot be the name of an interface")]
    BadName { given: String, source: BadKey },
    #[error("there is an interface {} already", name.as_str())]
    Taken { name: Key, owner: Holder },
    #[error("{path} belongs to the interface {}", name.as_str())]
    FileTaken { path: Resource, name: Key, owner: Holder },
    #[error("there is no interface {given:?}")]
    Unknown { given: String, near: Vec<Key> },
    #[error("{path} is not one file")]
    NotAFile { path: Resource },
    #[error("there is no file {path}")]
    Missing { path: Resource },
    #[error("too many {}", what.name())]
    TooMany { what: What, max: usize },
    #[error("the interface {} is kept by {}", name.as_str(), owner.name)]
    NotYours { name: Key, owner: Holder },
}

impl Refused {
    pub fn code(&self) -> &'static str {
        match self {
            Self::BadName { .. } => "bad_name",
            Self::Taken { .. } => "name_taken",
            Self::FileTaken { .. } => "file_taken",
            Self::Unknown { .. } => "unknown_interface",
            Self::NotAFile { .. } => "not_a_file",
            Self::Missing { .. } => "no_such_file",
            Self::TooMany { .. } => "too_many",
            Self::NotYours { .. } => "not_yours",
        }
    }

    pub fn class(&self) -> Class {
        match self {
            Self::BadName { .. } | Self::NotAFile { .. } | Self::Missing { .. } => Class::Usage,
            Self::TooMany { what: What::Files, .. } => Class::Usage,
            _ => Class::Refused,
        }
    }
}

impl From<Refused> for Refusal {
    fn from(refused: Refused) -> Self {
        Self::Interface(Box::new(refused))
    }
}
