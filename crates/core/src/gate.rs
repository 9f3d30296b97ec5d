//! The gate as a record: a condition that must hold before work goes on.
//!
//! Owns the shape and where scans find it. Invariant: a gate is decided once, by one field of one
//! record, [`Gate::decision`]; whatever waits for it follows from the event that sets it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::claim::Holder;
use crate::id::{GateId, TaskId};
use crate::pattern::fold;
use crate::time::Moment;
use crate::view::{self, Index, Query, Record};

/// Open gates, oldest first.
pub const OPEN: Index = "gate.open";
/// Open gates that Baton checks itself.
pub const AUTOMATIC: Index = "gate.automatic";
/// Open gates for people of which nobody was told yet.
pub const UNTOLD: Index = "gate.untold";
/// All gates of a subject, newest first.
pub const BY_SUBJECT: Index = "gate.on";
/// All gates, newest first.
pub const ALL: Index = "gate.all";

/// Stands between the parts of an index value: no subject holds it.
const BETWEEN: char = '\u{1f}';
const BEYOND: char = ' ';

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Approval,
    Credential,
    Legal,
    Deploy,
    /// One of several ways must be chosen.
    Decision,
    /// A command must succeed.
    Command,
    /// A time must come.
    Time,
    /// A file must be there.
    File,
}

impl Kind {
    pub const ALL: [Self; 8] = [
        Self::Approval,
        Self::Credential,
        Self::Legal,
        Self::Deploy,
        Self::Decision,
        Self::Command,
        Self::Time,
        Self::File,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Approval => "approval",
            Self::Credential => "credential",
            Self::Legal => "legal",
            Self::Deploy => "deploy",
            Self::Decision => "decision",
            Self::Command => "command",
            Self::Time => "time",
            Self::File => "file",
        }
    }

    /// Baton looks itself; the others only a person decides.
    pub fn is_automatic(self) -> bool {
        matches!(self, Self::Command | Self::Time | Self::File)
    }
}

/// What Baton looks at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "looks_at", rename_all = "snake_case")]
pub enum Check {
    Command {
        argv: Vec<String>,
    },
    Time {
        at: Moment,
    },
    /// Relative to the root of the tree that looks.
    File {
        path: String,
    },
}

/// Why there is a gate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    #[default]
    Filed,
    /// Reviewers of one commit contradict each other.
    Disagreement,
    /// Voters on one subject contradict each other.
    Votes,
    /// A task has used up its attempts.
    Exhausted,
}

/// What somebody said, of which one thing must hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reason {
    pub by: Holder,
    /// For what: `approve`, `reject`, or a value.
    pub says: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Approved,
    Denied,
    /// Baton looked, and the condition holds.
    Passed,
    /// What it was about is over.
    Moot,
}

impl Outcome {
    pub fn name(self) -> &'static str {
        match self {
            Self::Approved => "approved",
            Self::Denied => "denied",
            Self::Passed => "passed",
            Self::Moot => "moot",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Decision {
    pub outcome: Outcome,
    /// The person who decided; nobody where Baton looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Holder>,
    pub at: Moment,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub option: Option<String>,
    /// The commit it holds for, and for no other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

impl Decision {
    pub fn approves(&self) -> bool {
        self.outcome == Outcome::Approved
    }
}

/// What Baton saw when it last looked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Checked {
    pub at: Moment,
    pub passed: bool,
    pub saw: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Gate {
    pub gate: GateId,
    /// What it stands before: a task's id, `landing`, `deploy`, or anything that was named.
    pub on: String,
    /// The task it holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    pub kind: Kind,
    pub ask: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// It is about this commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<Check>,
    #[serde(default)]
    pub origin: Origin,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<Reason>,
    pub opened_at: Moment,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opened_by: Option<Holder>,
    /// A person stands for its command.
    #[serde(default)]
    pub trusted: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked: Option<Checked>,
    /// When the person's own `notify` command ran for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told_at: Option<Moment>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
}

impl Gate {
    pub fn is_open(&self) -> bool {
        self.decision.is_none()
    }
}

impl Record for Gate {
    const KIND: view::Kind = "gate";

    fn key(&self) -> String {
        self.gate.0.clone()
    }

    fn index_entries(&self) -> Vec<(Index, String)> {
        let newest_first = format!("{:020}", u64::MAX - self.gate.number());
        let subject = fold(&self.on);
        let mut entries =
            vec![(BY_SUBJECT, format!("{subject}{BETWEEN}{newest_first}")), (ALL, newest_first)];
        if self.is_open() {
            let oldest_first = format!("{:020}", self.gate.number());
            if self.kind.is_automatic() {
                entries.push((AUTOMATIC, format!("{subject}{BETWEEN}{oldest_first}")));
            } else if self.told_at.is_none() {
                entries.push((UNTOLD, oldest_first.clone()));
            }
            entries.push((OPEN, oldest_first));
        }
        entries
    }
}

/// The gates of one index about one subject.
pub fn about(index: Index, subject: &str, limit: u32) -> Query {
    let subject = fold(subject);
    let (from, until) = (format!("{subject}{BETWEEN}"), format!("{subject}{BEYOND}"));
    Query::Scan { index, from, until, after: None, limit }
}

/// All gates of an index, in its order.
pub fn all_of(index: Index, limit: u32) -> Query {
    let until = "\u{10ffff}".to_owned();
    Query::Scan { index, from: String::new(), until, after: None, limit }
}

impl GateId {
    pub fn numbered(number: u64) -> Self {
        Self(format!("g{number}"))
    }

    pub fn number(&self) -> u64 {
        self.0.strip_prefix('g').and_then(|digits| digits.parse().ok()).unwrap_or(0)
    }

    /// As people write it: `g12`, `G12`, `12`.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix(['g', 'G', '#']).unwrap_or(text);
        let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let number: u64 = digits.parse().ok().filter(|_| plain)?;
        Some(Self::numbered(number))
    }
}
