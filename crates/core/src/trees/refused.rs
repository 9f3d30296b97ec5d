//! Why a tree cannot be made or removed, as data.
//!
//! The words are made in the command line. Whoever is refused learns what of it is worth keeping.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::claim::Holder;
use crate::id::{TaskId, TreeId};
use crate::refusal::{Class, Refusal};
use crate::task;
use crate::time::Moment;
use crate::tree::Tree;

/// One reason to keep a tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "keep", rename_all = "snake_case")]
pub enum Keep {
    /// The main checkout is nobody's to remove.
    Main,
    Dirty {
        count: usize,
        first: String,
    },
    /// Commits of a submodule that are only in this tree, and would not be saved with it.
    Submodule {
        path: String,
    },
    /// A merge or rebase is going on in it.
    Unfinished {
        what: String,
    },
    /// Commits that are on no other branch.
    Unmerged {
        commits: u64,
    },
    /// Its commits are elsewhere, but not yet where work lands.
    NotLanded {
        target: Option<String>,
    },
    Claimed {
        holder: Holder,
        until: Moment,
    },
    InUse {
        session: String,
        since: Moment,
    },
    Process {
        pid: u32,
        name: String,
    },
    /// `git worktree lock`.
    Locked {
        why: String,
    },
    TaskOpen {
        task: TaskId,
        state: task::State,
    },
    /// Somebody is making it just now.
    BeingMade {
        by: Holder,
    },
    /// Baton did not make it.
    NotOurs,
}

impl Keep {
    /// Does the word of a person weigh more?
    pub fn yields_to_a_person(&self) -> bool {
        !matches!(self, Self::Main | Self::BeingMade { .. } | Self::Submodule { .. })
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("{what} {name} is taken")]
    Taken { what: &'static str, name: String, by: Option<Box<Tree>> },
    #[error("{path} is kept")]
    Kept { path: String, keep: Keep },
    #[error("there is no tree {given:?}")]
    Unknown { given: String },
    #[error("tree {tree} was given up meanwhile")]
    GivenUp { tree: TreeId },
    #[error("{task} is {}", state.name())]
    TaskFinished { task: TaskId, state: task::State },
    #[error("{wanted} free ports in a row were not found")]
    NoPorts { wanted: u16 },
    #[error("{given:?} is no name for a branch")]
    BadName { given: String },
}

impl Refused {
    pub fn class(&self) -> Class {
        match self {
            Self::BadName { .. } => Class::Usage,
            Self::GivenUp { .. } => Class::Stale,
            _ => Class::Refused,
        }
    }

    pub fn code(&self) -> &'static str {
        match self {
            Self::Taken { .. } => "taken",
            Self::Kept { keep, .. } => match keep {
                Keep::Main => "main_tree",
                Keep::Dirty { .. } => "dirty",
                Keep::Unfinished { .. } => "unfinished",
                Keep::Unmerged { .. } | Keep::NotLanded { .. } | Keep::Submodule { .. } => {
                    "unmerged"
                }
                Keep::Claimed { .. } => "claimed",
                Keep::InUse { .. } | Keep::Process { .. } => "in_use",
                Keep::Locked { .. } => "locked_tree",
                Keep::TaskOpen { .. } => "task_open",
                Keep::BeingMade { .. } => "being_made",
                Keep::NotOurs => "not_ours",
            },
            Self::Unknown { .. } => "unknown_tree",
            Self::GivenUp { .. } => "given_up",
            Self::TaskFinished { .. } => "task_finished",
            Self::NoPorts { .. } => "no_ports",
            Self::BadName { .. } => "bad_name",
        }
    }
}

impl From<Refused> for Refusal {
    fn from(refused: Refused) -> Self {
        Self::Tree(Box::new(refused))
    }
}
