//! Why something cannot be done with a task, as data: who owns it, how it stands, what is allowed.
//!
//! The words are made in the command line. Whoever is refused sees enough to go on: the current
//! attempt, the owner, the allowed moves.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::evidence::Missing;
use super::similar::Similar;
use crate::id::{TaskId, Token};
use crate::refusal::{Class, Refusal};
use crate::task::{Owner, State, Task};
use crate::time::Moment;

/// A task, just enough of it to be recognised.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Brief {
    pub task: TaskId,
    pub title: String,
}

impl From<&Task> for Brief {
    fn from(task: &Task) -> Self {
        Self { task: task.task.clone(), title: task.title.clone() }
    }
}

/// Nothing is offered to this session now, and what there is instead.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Nothing {
    /// Offered, but to sessions of other roles.
    pub ready: u64,
    pub active: u64,
    /// Submitted: by this very session, for others, or being reviewed.
    #[serde(default)]
    pub review: u64,
    pub blocked: u64,
    /// Waiting for a person.
    #[serde(default)]
    pub waiting: u64,
    pub parked: u64,
    pub failed: u64,
    /// When a parked task or a lease comes up next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_at: Option<Moment>,
    /// Ready since this very look: attempts it found run out were the last that others waited for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub woken: Vec<TaskId>,
}

#[derive(Debug, thiserror::Error)]
pub enum Refused {
    #[error("there is no task {task:?}")]
    Unknown { task: String, near: Vec<Brief> },
    #[error("no task is ready")]
    NothingReady(Nothing),
    #[error("{} is not finished", task.task)]
    HasTask { task: Brief, state: State, since: Moment },
    #[error("{} is {}", task.task, state.name())]
    WrongState {
        verb: &'static str,
        task: Brief,
        state: State,
        since: Moment,
        reason: Option<String>,
        allowed: &'static [&'static str],
    },
    #[error("{} is {}'s", task.task, owner.name)]
    Owned { verb: &'static str, task: Brief, owner: Box<Owner> },
    #[error("this attempt at {} is over", task.task)]
    Stale {
        task: Brief,
        state: State,
        given: Option<Token>,
        /// The attempt that counts now: the owner's, or the last one.
        attempt: u32,
        current: Option<Token>,
        owner: Option<Box<Owner>>,
    },
    #[error("{} is for role {role}", task.task)]
    WrongRole { task: Brief, role: String, yours: Option<String> },
    #[error("{} is your own work", task.task)]
    OwnWork { task: Brief },
    #[error("{} is for other reviewers", task.task)]
    NotForYou { task: Brief, to: String, yours: Option<String> },
    #[error("another commit of {} stands submitted", task.task)]
    OtherCommit { task: Brief, given: String, current: String },
    #[error("there is no commit {commit:?}")]
    NoCommit { commit: String },
    #[error("tasks would wait for each other: {}", join(tasks))]
    Cycle { tasks: Vec<TaskId> },
    #[error("a task like this is filed already")]
    Similar { similar: Vec<Similar> },
    #[error("there are too many {what}")]
    TooMany { what: &'static str, max: usize },
    #[error("{key:?} is the key of a task already")]
    KeyTaken { key: String, task: Option<Brief> },
    #[error("{} was not divided", task.task)]
    NotDivided { task: Brief },
    #[error("{} cannot be shown to be done", task.task)]
    Unproven { task: Brief, missing: Vec<Missing> },
    #[error("the {what} says nothing")]
    SaysNothing { what: &'static str },
}

fn join(tasks: &[TaskId]) -> String {
    let names: Vec<&str> = tasks.iter().map(TaskId::as_str).collect();
    names.join(" waits for ")
}

impl Refused {
    pub fn class(&self) -> Class {
        match self {
            Self::Stale { .. } | Self::OtherCommit { .. } => Class::Stale,
            Self::TooMany { .. } | Self::SaysNothing { .. } => Class::Usage,
            _ => Class::Refused,
        }
    }

    /// The name scripts rely on.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unknown { .. } => "unknown_task",
            Self::NothingReady(_) => "nothing_ready",
            Self::HasTask { .. } => "has_task",
            Self::WrongState { .. } => "wrong_state",
            Self::Owned { .. } => "owned",
            Self::Stale { .. } => "stale_attempt",
            Self::WrongRole { .. } | Self::NotForYou { .. } => "wrong_role",
            Self::OwnWork { .. } => "own_work",
            Self::NoCommit { .. } => "unknown_commit",
            Self::OtherCommit { .. } => "other_commit",
            Self::Cycle { .. } => "cycle",
            Self::Similar { .. } => "similar",
            Self::TooMany { .. } => "too_many",
            Self::KeyTaken { .. } => "key_taken",
            Self::Unproven { .. } => "missing_evidence",
            Self::NotDivided { .. } => "not_divided",
            Self::SaysNothing { .. } => "says_nothing",
        }
    }
}

impl From<Refused> for Refusal {
    fn from(refused: Refused) -> Self {
        Self::Task(Box::new(refused))
    }
}
