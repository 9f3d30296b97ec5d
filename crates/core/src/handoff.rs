//! The handoff as a record: what the giver says, what Baton knows, to whom, and how it ended.
//!
//! Owns the shape and where scans find it. Whether an offer stands is a matter of the task: it
//! names the one open offer of its owning attempt ([`Offer`]), and that goes with the attempt,
//! however it ends. Invariant: a handoff is never changed after it was offered, except by its end.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::claim::Holder;
use crate::id::{HandoffId, SessionId, TaskId, Token, TreeId};
use crate::key::Key;
use crate::notes::Note;
use crate::resource::Resource;
use crate::task::BETWEEN;
use crate::task::dossier::LastCheck;
use crate::time::Moment;
use crate::view::{Index, Kind, Query, Record};

/// All handoffs of a task, in the order of offering.
pub const BY_TASK: Index = "handoff.task";
/// All handoffs, newest first.
pub const BY_TIME: Index = "handoff.time";

/// Who may accept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum To {
    Anyone,
    Role(String),
    Session(Holder),
}

/// The open offer of an attempt, as its task carries it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Offer {
    pub handoff: HandoffId,
    /// The attempt that offers. Without it there is no offer.
    pub token: Token,
    pub to: To,
    pub until: Moment,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Handoff {
    pub handoff: HandoffId,
    pub task: TaskId,
    /// 1 is the first of its task.
    pub number: u32,
    pub from: Holder,
    pub to: To,
    pub attempt: u32,
    /// The attempt that offered it.
    pub token: Token,
    pub offered_at: Moment,
    pub until: Moment,
    /// A commit, a result or a passed check is new since the work last changed hands. Without, it
    /// counts as an attempt.
    pub progress: bool,
    #[serde(flatten)]
    pub said: Said,
    pub known: Known,
    /// Those who will not have it, while others still may.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub declined: Vec<Declined>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<End>,
}

/// What only the giver knows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Said {
    pub state: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed: Option<String>,
    pub remaining: String,
    pub next: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<Decision>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blockers: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assumptions: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constraints: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Artifact>,
    /// Set in the shared state when it is accepted, in the same step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set: Vec<Setting>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Decision {
    pub what: String,
    pub why: String,
}

impl Decision {
    /// `what: why`. Nothing when one of them is missing.
    pub fn parse(text: &str) -> Option<Self> {
        let (what, why) = text.split_once(':')?;
        let (what, why) = (what.trim().to_owned(), why.trim().to_owned());
        (!what.is_empty() && !why.is_empty()).then_some(Self { what, why })
    }
}

/// Something that was made, seen to exist when it was offered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Artifact {
    Path(String),
    Commit(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Setting {
    pub key: Key,
    pub value: Value,
}

/// A commit that was made since an attempt began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Made {
    pub commit: String,
    pub subject: String,
}

/// What git shows of a task's work, looked at before the decision.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Work {
    /// The commit the tree stands on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Commits since the attempt began, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commits: Vec<Made>,
    /// Files that changed since, committed or not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    /// Those of them that are not committed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uncommitted: Vec<String>,
    /// There were more files or commits than are kept here.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub more: bool,
}

/// What Baton knows about the work without the giver's help.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Known {
    pub tree: TreeId,
    /// False when the tree could not be looked at from where the command ran.
    pub seen: bool,
    #[serde(flatten)]
    pub work: Work,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_check: Option<LastCheck>,
    /// What is claimed for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<Resource>,
    /// The newest notes on the task or by its owner, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Declined {
    pub by: Holder,
    pub at: Moment,
    pub why: String,
}

/// How an offer ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum End {
    /// The task is theirs, under this token.
    Accepted { by: Holder, at: Moment, token: Token },
    /// The one it was for will not have it.
    Declined { by: Holder, at: Moment, why: String },
    /// The giver took it back, or offered anew.
    Withdrawn { at: Moment },
    /// Nobody took it in time: the giver has it.
    Returned { at: Moment },
    /// Nobody took it in time and the giver is gone: a person decides.
    Unanswered { at: Moment },
    /// Nothing was new and no attempt was left: nobody could have it.
    Exhausted { at: Moment },
}

impl End {
    pub fn at(&self) -> Moment {
        match self {
            Self::Accepted { at, .. }
            | Self::Declined { at, .. }
            | Self::Withdrawn { at }
            | Self::Returned { at }
            | Self::Unanswered { at }
            | Self::Exhausted { at } => *at,
        }
    }
}

impl Handoff {
    pub fn is_to(&self, session: &SessionId, role: Option<&str>) -> bool {
        match &self.to {
            To::Anyone => true,
            To::Role(wanted) => role == Some(wanted),
            To::Session(holder) => holder.session == *session,
        }
    }

    pub fn was_accepted(&self) -> bool {
        matches!(self.end, Some(End::Accepted { .. }))
    }
}

impl Record for Handoff {
    const KIND: Kind = "handoff";

    fn key(&self) -> String {
        self.handoff.0.clone()
    }

    fn index_entries(&self) -> Vec<(Index, String)> {
        let newest_first = format!("{:020}", u64::MAX - self.offered_at.0);
        vec![(BY_TASK, place(&self.task, self.number)), (BY_TIME, newest_first)]
    }
}

fn place(task: &TaskId, number: u32) -> String {
    format!("{task}{BETWEEN}{number:010}")
}

/// The handoffs of a task from `number` on, oldest first.
pub fn of_task(task: &TaskId, number: u32, limit: u32) -> Query {
    let (from, until) = (place(task, number), format!("{task} "));
    Query::Scan { index: BY_TASK, from, until, after: None, limit }
}

/// The latest handoffs of all tasks, newest first.
pub fn latest(limit: u32) -> Query {
    let (from, until) = (String::new(), "~".to_owned());
    Query::Scan { index: BY_TIME, from, until, after: None, limit }
}

impl HandoffId {
    /// `t3-h1`: the first handoff of t3.
    pub fn of(task: &TaskId, number: u32) -> Self {
        Self(format!("{task}-h{number}"))
    }

    /// As people write it: `t3-h1`, `T3-H1`.
    pub fn parse(text: &str) -> Option<Self> {
        let (task, number) = text.split_once("-h").or_else(|| text.split_once("-H"))?;
        let plain = number.bytes().all(|byte| byte.is_ascii_digit());
        let number: u32 = number.parse().ok().filter(|_| plain)?;
        Some(Self::of(&TaskId::parse(task)?, number))
    }

    /// The task it is about.
    pub fn task(&self) -> Option<TaskId> {
        TaskId::parse(self.0.split_once("-h")?.0)
    }
}
