//! Why a handoff cannot be offered, accepted or declined, as data.
//!
//! Owns the cases; the words are made in the command line. What is missing in a handoff is told all
//! at once, so that nobody mends it piece by piece.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::handoff::{End, To};
use crate::id::{HandoffId, TaskId, TreeId};
use crate::refusal::{Class, Refusal};
use crate::resource::Resource;
use crate::task::State;
use crate::tasks::refused::Brief;
use crate::time::Moment;

/// What the next one would miss.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "missing", rename_all = "snake_case")]
pub enum Missing {
    /// Where the work stands.
    State,
    /// What is left to do.
    Remaining,
    /// A step somebody can begin with. `given` says too little.
    Next { given: Option<String> },
    /// Something changed, and no word about why it is as it is.
    Decisions { files: usize },
    /// A decision without its reason.
    Why { decision: String },
    /// A result that does not say how it ended.
    Status,
}

/// Offered work that lies in a tree where nothing can be started from here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OutOfReach {
    pub handoff: HandoffId,
    pub task: Brief,
    /// Who offers it.
    pub from: String,
    pub tree: TreeId,
    /// The machine of that tree, as far as it is known.
    pub host: Option<String>,
    /// It is this machine: the tree is one of another clone, or gone.
    pub this_machine: bool,
    /// The folder of that tree, where Baton made it.
    pub path: Option<String>,
    /// What of the work is in no commit.
    pub uncommitted: Vec<String>,
    /// The commit with all of the work, where this clone has it.
    pub commit: Option<String>,
    /// What was to be started.
    pub client: String,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("there is no handoff {handoff:?}")]
    Unknown { handoff: String, near: Vec<HandoffId> },
    #[error("the handoff of {} is not complete", task.task)]
    Incomplete { task: Brief, missing: Vec<Missing> },
    #[error("nothing of this name exists: {}", given.join(", "))]
    NoSuchArtifact { given: Vec<String> },
    #[error("a task cannot be handed to oneself")]
    ToYourself { task: Brief },
    #[error("{handoff} is for others")]
    NotForYou { handoff: HandoffId, to: To, yours: Option<String> },
    #[error("{handoff} is over")]
    Over {
        handoff: HandoffId,
        task: Brief,
        /// How the task stands now.
        state: State,
        owner: Option<String>,
        /// Nothing when the giver went on without it, or its time is just over.
        end: Option<End>,
        until: Moment,
    },
    #[error("claims for {task} overlap claims for {with}")]
    Entangled { task: TaskId, with: TaskId, resources: Vec<Resource> },
    #[error("the work of {} is in a tree that is not here", .0.handoff)]
    OutOfReach(Box<OutOfReach>),
    #[error("no task of this session is active")]
    NoTask,
}

impl Refused {
    pub fn class(&self) -> Class {
        match self {
            Self::NoSuchArtifact { .. } => Class::Usage,
            _ => Class::Refused,
        }
    }

    /// The name scripts rely on.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unknown { .. } => "unknown_handoff",
            Self::Incomplete { .. } => "incomplete",
            Self::NoSuchArtifact { .. } => "no_such_artifact",
            Self::ToYourself { .. } => "to_yourself",
            Self::NotForYou { .. } => "not_for_you",
            Self::Over { .. } => "offer_over",
            Self::Entangled { .. } => "entangled",
            Self::OutOfReach(_) => "out_of_reach",
            Self::NoTask => "no_task",
        }
    }
}

impl From<Refused> for Refusal {
    fn from(refused: Refused) -> Self {
        Self::Handoff(Box::new(refused))
    }
}
