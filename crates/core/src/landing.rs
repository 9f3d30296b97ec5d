//! The landing and the merge queue as records.
//!
//! Owns the shape of one branch's way to the target, and of what there is one of: the runner, the
//! pause, the move that is under way, the trees that passed. What may happen to them is in
//! [`crate::landings`]. Invariant: a landing is `landed` only by an event that follows a look at
//! the target itself (LESSONS 17).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::claim::Holder;
use crate::context::{Context, Life};
use crate::id::{GateId, LandingId, TaskId, Token, TreeId};
use crate::sessions::Process;
use crate::time::{Moment, Span};
use crate::view::{Index, Kind, Query, Record};

/// Landings that are not over, in the order of arrival.
pub const OPEN: Index = "landing.open";
/// All landings, newest first.
pub const ALL: Index = "landing.all";
/// All landings of a branch, newest first.
pub const BY_BRANCH: Index = "landing.branch";
/// What is known of a landing's files: more are not kept, and it then overlaps with everything.
pub const PATHS_MAX: usize = 2_000;
/// How many trees that passed are remembered.
pub const VERIFIED_MAX: usize = 200;
/// How long a runner that cannot be seen keeps its turn without a sign of life.
pub const LEASE: Span = Span::seconds(60);
pub const RENEWED_EVERY: Span = Span::seconds(20);

const BETWEEN: char = '\u{1f}';

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// In line.
    Queued,
    /// It is in a candidate whose checks run.
    Checking,
    /// A request to merge it is open where the target is protected.
    Proposed,
    /// The target has it, seen there.
    Landed,
    /// It goes back to its author.
    Returned,
    /// Somebody took it out.
    Removed,
}

impl State {
    pub const ALL: [Self; 6] =
        [Self::Queued, Self::Checking, Self::Proposed, Self::Landed, Self::Returned, Self::Removed];

    pub fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Checking => "checking",
            Self::Proposed => "proposed",
            Self::Landed => "landed",
            Self::Returned => "returned",
            Self::Removed => "removed",
        }
    }

    pub fn is_over(self) -> bool {
        matches!(self, Self::Landed | Self::Returned | Self::Removed)
    }
}

/// Why a landing waits, or went back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// It does not merge with the target.
    Conflict,
    /// A check failed with it, and not without it.
    Check,
    /// It takes back what others landed.
    Undo,
    /// Paths it changes were lost to, or are held by, another session (S4).
    Claims,
    /// The branch is not there any more.
    Gone,
    /// A person must approve first.
    Gate,
    /// A person said no.
    Denied,
    /// Uncommitted work lies where it would land.
    Overlap,
    /// The checks are not trusted yet.
    Untrusted,
    /// The remote does not answer.
    Offline,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Landing {
    pub landing: LandingId,
    /// Without `refs/heads/`.
    pub branch: String,
    pub target: String,
    /// What is to land: this commit, whatever becomes of the branch.
    pub tip: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    pub by: Holder,
    pub tree: TreeId,
    /// Its author knows that it takes back what others landed, and means to.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub takes_back: bool,
    /// The files it changes, folded as paths are compared; none when there are too many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    pub queued_at: Moment,
    pub state: State,
    /// When it came into this state.
    pub since: Moment,
    /// In one sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// The files that conflict.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// What the failed check wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
    /// Under which it stands in the target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Its checks passed; no when none are configured.
    #[serde(default)]
    pub checked: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<GateId>,
    /// How often a check failed and then passed on the same tree.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub flaky: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Record for Landing {
    const KIND: Kind = "landing";

    fn key(&self) -> String {
        self.landing.0.clone()
    }

    fn index_entries(&self) -> Vec<(Index, String)> {
        let number = self.landing.number();
        let newest_first = format!("{:020}", u64::MAX - number);
        let branch = format!("{}{BETWEEN}{newest_first}", self.branch);
        let mut entries = vec![(ALL, newest_first), (BY_BRANCH, branch)];
        if !self.state.is_over() {
            entries.push((OPEN, format!("{number:020}")));
        }
        entries
    }
}

/// Everything of an index, in its order.
pub fn all_of(index: Index, limit: u32) -> Query {
    let until = "\u{10ffff}".to_owned();
    Query::Scan { index, from: String::new(), until, after: None, limit }
}

pub fn of_branch(branch: &str, limit: u32) -> Query {
    let (from, until) = (format!("{branch}{BETWEEN}"), format!("{branch} "));
    Query::Scan { index: BY_BRANCH, from, until, after: None, limit }
}

impl LandingId {
    pub fn numbered(number: u64) -> Self {
        Self(format!("l{number}"))
    }

    pub fn number(&self) -> u64 {
        self.0.strip_prefix('l').and_then(|digits| digits.parse().ok()).unwrap_or(0)
    }

    /// As people write it: `l12`, `L12`, `12`.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix(['l', 'L', '#']).unwrap_or(text);
        let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let number: u64 = digits.parse().ok().filter(|_| plain)?;
        Some(Self::numbered(number))
    }
}

/// The one who moves the queue on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Runner {
    pub token: Token,
    pub holder: Holder,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<Process>,
    pub since: Moment,
    pub lease_until: Moment,
}

impl Runner {
    /// A process that is seen decides; else the lease. What cannot be seen is never dead (S11).
    pub fn is_there(&self, context: &Context) -> bool {
        match context.observed.runners.get(&self.token) {
            Some(Life::Dead) => false,
            Some(Life::Alive) => true,
            Some(Life::Unknown) | None => {
                let failed_over = context.failed_over_at.is_some_and(|at| self.since < at);
                let more = if failed_over { LEASE } else { Span(0) };
                context.now < self.lease_until + more
            }
        }
    }
}

/// The target is about to move: written down before it does, so that whoever comes after a death
/// can tell what to look for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Moving {
    pub target: String,
    pub from: String,
    pub to: String,
    /// Which landings, and under which commit each of them stands in the target then.
    pub landings: Vec<(LandingId, String)>,
    /// The checks of that very tree passed; no when there are none.
    pub checked: bool,
}

/// A tree on which the checks passed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Verified {
    pub tree: String,
    /// The hash of the checks.
    pub checks: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Paused {
    pub by: Holder,
    pub at: Moment,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// What there is one of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queue {
    /// How many landings there have been.
    pub landings: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner: Option<Runner>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<Paused>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moving: Option<Moving>,
    /// Newest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub verified: Vec<Verified>,
    /// How often a check failed and then passed on the same tree.
    #[serde(default)]
    pub flaky: u64,
}

impl Queue {
    pub const KEY: &str = "queue";

    pub fn has_verified(&self, tree: &str, checks: &str) -> bool {
        self.verified.iter().any(|known| known.tree == tree && known.checks == checks)
    }
}

impl Record for Queue {
    const KIND: Kind = "queue";

    fn key(&self) -> String {
        Self::KEY.to_owned()
    }

    fn index_entries(&self) -> Vec<(Index, String)> {
        Vec::new()
    }
}

/// How a branch becomes part of the target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Strategy {
    #[default]
    Merge,
    Squash,
    Rebase,
}

/// Whose own commits are kept off the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Guard {
    Agents,
    All,
    Off,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// The queue moves the target.
    #[default]
    Direct,
    /// The target is protected: the queue pushes the tested branch and opens a request.
    Pr,
}

/// `[queue]` in `baton.toml`, without what tasks show as evidence too (target and checks).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rules {
    #[serde(default = "jobs_default")]
    pub jobs: u32,
    #[serde(default)]
    pub strategy: Strategy,
    /// Agents, where there are checks; else nobody's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard: Option<Guard>,
    #[serde(default)]
    pub mode: Mode,
    /// The remote whose branch the target is; `origin` if there is one, none when it is empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<String>,
    /// Opens or updates the request; `gh` when nothing is said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub request: Vec<String>,
    /// Merges one file in which git found a conflict: `%O %A %B %P`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub merge_driver: Vec<String>,
    /// One task of this title is filed for every landed batch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_land: Option<String>,
}

pub const JOBS_DEFAULT: u32 = 2;
pub const JOBS_MAX: u32 = 64;

fn jobs_default() -> u32 {
    JOBS_DEFAULT
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            jobs: JOBS_DEFAULT,
            strategy: Strategy::default(),
            guard: None,
            mode: Mode::default(),
            remote: None,
            request: Vec::new(),
            merge_driver: Vec::new(),
            after_land: None,
        }
    }
}

impl Rules {
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
