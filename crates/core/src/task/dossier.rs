//! What was written about a task: its body, reports, and what each attempt left behind.
//!
//! Owns the long texts, which no choice among tasks reads. Invariant: an attempt that ended stands
//! here with how it ended, so that the next owner sees everything the last one left.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Move, Owner, Standing, is_zero};
use crate::claim::Holder;
use crate::handoff::Known;
use crate::id::{SessionId, TaskId, Token};
use crate::tasks::evidence::{CheckRun, KEPT_MAX, Shown};
use crate::time::Moment;
use crate::view::{Index, Kind, Record};

/// Older attempts are in the journal only.
pub const ATTEMPTS_KEPT: usize = 50;
/// Older checkpoints are in the journal only.
pub const CHECKPOINTS_KEPT: usize = 5;
/// Older feedback is in the journal only.
pub const FEEDBACK_KEPT: usize = 50;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Dossier {
    pub task: TaskId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// The last report of an attempt that ended well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<Report>,
    /// Attempts that ended, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<Past>,
    /// What reviewers said, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub feedback: Vec<Feedback>,
    /// What was saved by code, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checkpoints: Vec<Checkpoint>,
    /// How often it was offered to be handed over.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub handoffs: u32,
    /// What was shown when it was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proven: Option<Shown>,
    /// The last run of each check, the latest at the end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<CheckRun>,
}

/// What came of it, in the words of whoever did it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    pub done: String,
    pub not_done: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
}

/// An attempt that ended, and how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Past {
    pub attempt: u32,
    pub token: Token,
    pub session: SessionId,
    pub name: String,
    pub from: Moment,
    pub until: Moment,
    pub how: Move,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_action: Option<String>,
}

/// A rejection, bound to what was rejected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Feedback {
    pub by: Holder,
    pub at: Moment,
    pub attempt: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    pub text: String,
}

/// What was known of the work when it was last saved by code, without the agent's help.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Checkpoint {
    pub at: Moment,
    pub by: Holder,
    pub attempt: u32,
    /// What the agent had to say, if anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    #[serde(flatten)]
    pub known: Known,
}

/// A check that ran, and how it ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LastCheck {
    pub name: String,
    pub passed: bool,
    pub at: Moment,
}

impl Dossier {
    pub fn of(task: TaskId) -> Self {
        Self {
            task,
            body: None,
            report: None,
            attempts: Vec::new(),
            feedback: Vec::new(),
            checkpoints: Vec::new(),
            handoffs: 0,
            checks: Vec::new(),
            proven: None,
        }
    }

    /// The check that ran last, if one was recorded.
    pub fn last_check(&self) -> Option<LastCheck> {
        let run = self.checks.last()?;
        Some(LastCheck { name: run.name.clone(), passed: run.exit == 0, at: run.at })
    }

    pub(crate) fn save(&mut self, checkpoint: &Checkpoint) {
        let surplus = (self.checkpoints.len() + 1).saturating_sub(CHECKPOINTS_KEPT);
        self.checkpoints.drain(..surplus);
        self.checkpoints.push(checkpoint.clone());
    }

    pub(crate) fn said(&mut self, feedback: &Feedback) {
        let surplus = (self.feedback.len() + 1).saturating_sub(FEEDBACK_KEPT);
        self.feedback.drain(..surplus);
        self.feedback.push(feedback.clone());
    }

    /// A later run of a check stands for the earlier one.
    pub(crate) fn checked(&mut self, run: &CheckRun) {
        self.checks.retain(|known| known.name != run.name);
        let surplus = (self.checks.len() + 1).saturating_sub(KEPT_MAX);
        self.checks.drain(..surplus);
        self.checks.push(run.clone());
    }

    /// The attempt of `owner` ended, and the task moved to `standing`.
    pub(crate) fn close(&mut self, owner: &Owner, how: Move, standing: &Standing) {
        let surplus = (self.attempts.len() + 1).saturating_sub(ATTEMPTS_KEPT);
        self.attempts.drain(..surplus);
        self.attempts.push(Past {
            attempt: owner.attempt,
            token: owner.token,
            session: owner.session.clone(),
            name: owner.name.clone(),
            from: owner.taken_at,
            until: standing.since,
            how,
            why: standing.why.clone(),
            next_action: standing.next_action.clone(),
        });
    }
}

impl Record for Dossier {
    const KIND: Kind = "dossier";

    fn key(&self) -> String {
        self.task.0.clone()
    }

    fn index_entries(&self) -> Vec<(Index, String)> {
        Vec::new()
    }
}
