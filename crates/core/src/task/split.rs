//! A task in parts: which, in which order, when they count as done, and how far that is.
//!
//! Owns the shape. Invariant: a split is joined once. [`Stage`] only goes forward, so whatever
//! becomes of a part after the join is told in the results and sets nothing off again.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::State;
use crate::claim::Holder;
use crate::id::TaskId;
use crate::time::Moment;

/// When the parts of a split task count as done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Join {
    All,
    Any,
    AtLeast(u32),
}

/// What the failure of one part does to the others that nobody has taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    #[default]
    Continue,
    Stop,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// The parts are not joined.
    Parts,
    /// They are, and the task that was to follow them is not finished.
    Then,
    Over,
}

/// How a split was joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// As many parts as were asked for.
    Met,
    /// All have ended, and too few of them are done.
    Missed,
    /// The whole task was ended before its parts.
    GivenUp,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Split {
    /// In the order in which they were named.
    pub parts: Vec<TaskId>,
    /// What becomes ready when the parts are joined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub then: Option<TaskId>,
    pub join: Join,
    pub on_failure: OnFailure,
    #[serde(default)]
    pub sequence: bool,
    /// Who had it in hand; is told when it can go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Holder>,
    pub at: Moment,
    /// Parts that have ended, and how.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub ended: BTreeMap<TaskId, State>,
    pub stage: Stage,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
}

impl Split {
    pub fn is_open(&self) -> bool {
        self.stage != Stage::Over
    }

    /// Is this what was to come when the parts are joined?
    pub fn follows(&self, task: &TaskId) -> bool {
        self.then.as_ref() == Some(task)
    }

    pub fn count(&self, state: State) -> usize {
        self.ended.values().filter(|ended| **ended == state).count()
    }

    /// Are the parts joined, as far as they have ended? `None` while that is open.
    pub fn verdict(&self) -> Option<Outcome> {
        let all = self.ended.len() >= self.parts.len();
        let done = self.count(State::Done);
        let stopped = self.on_failure == OnFailure::Stop && self.count(State::Failed) > 0;
        let met = match self.join {
            Join::All => all && !stopped,
            Join::Any => done >= 1,
            Join::AtLeast(count) => done >= count as usize,
        };
        match (met, all) {
            (true, _) => Some(Outcome::Met),
            (false, true) => Some(Outcome::Missed),
            (false, false) => None,
        }
    }

    /// `2 of 3 parts have ended (1 failed)`.
    pub fn progress(&self) -> String {
        let (ended, all) = (self.ended.len(), self.parts.len());
        let noun = if all == 1 { "part has" } else { "parts have" };
        let mut ill = Vec::new();
        for state in [State::Failed, State::Cancelled] {
            match self.count(state) {
                0 => {}
                count => ill.push(format!("{count} {}", state.name())),
            }
        }
        match ill.is_empty() {
            true => format!("{ended} of {all} {noun} ended"),
            false => format!("{ended} of {all} {noun} ended ({})", ill.join(", ")),
        }
    }
}
