//! The task as a record: what is to be done, who does it, in which state, under which attempt.
//!
//! Owns the shape and where scans find it. Invariant (S6): ownership is one field of one record,
//! [`Standing::owner`]; whether a task is offered follows from the same record and from nothing
//! else. Long texts are in the [`dossier`], so that choosing among many tasks reads little.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::claim::{self, Holder, resource_entries};
use crate::context::Context;
use crate::handoff::Offer;
use crate::id::{GateId, SessionId, TaskId, Token, TreeId};
use crate::resource::Resource;
use crate::time::{Moment, Span};
use crate::view::{Index, Kind, Query, Record};

pub use split::{Join, Split};
pub use submission::{Submission, Verdict};
pub use usd::Usd;

pub mod dossier;
pub mod split;
pub mod submission;
pub mod tally;
mod usd;

/// Tasks that are offered: (role, phase, priority, how much it unblocks, age).
pub const READY: Index = "task.ready";
/// All tasks by state; unfinished ones in the order of service, finished ones newest first.
pub const BY_STATE: Index = "task.state";
/// Owned tasks by the session that owns them.
pub const BY_OWNER: Index = "task.owner";
/// Owned tasks by the end of their lease.
pub const BY_LEASE: Index = "task.lease";
/// Owned tasks by the paths they are about, where claims are found by theirs.
pub const BY_PATH: Index = "task.path";
/// Parked tasks that come back by themselves, by when.
pub const BY_WAKING: Index = "task.waking";
/// Unfinished tasks by each task they wait for.
pub const BY_DEPENDENCY: Index = "task.after";
/// Unfinished tasks of a phase.
pub const BY_PHASE: Index = "task.phase";
pub const BY_KEY: Index = "task.key";
pub const BY_LABEL: Index = "task.label";
/// Words of titles of unfinished and lately finished tasks.
pub const BY_WORD: Index = "task.word";
/// Finished tasks whose words are still kept, by when they were finished.
pub const BY_FINISH: Index = "task.finish";
/// Tasks that are offered to be handed over, by when that ends.
pub const BY_OFFER: Index = "task.offer";
/// Submitted tasks that nobody reviews yet: (for whom, order of service).
pub const IN_REVIEW: Index = "task.review";
/// Unfinished tasks by each finished task that they come after.
pub const BY_FINISHED: Index = "task.finished";
/// The parts of a split, by their parent.
pub const BY_PARENT: Index = "task.parent";

/// Stands between the parts of an index value: smaller than all that roles and labels may hold.
pub(crate) const BETWEEN: char = '\u{1f}';
/// Stands at the end of a range of index values.
const BEYOND: char = ' ';
/// Where a task without a phase stands among those with one.
const NO_PHASE: &str = "-";
/// Larger weights count as this in the order of service.
const UNBLOCKS_SHOWN_MAX: u32 = 99_999;

#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Offered, or held back only by its phase.
    Open,
    /// Somebody works on it.
    Active,
    /// Submitted; a reviewer decides.
    Review,
    /// Waits for other tasks, or for something that was named.
    Blocked,
    /// Waits for a person.
    Waiting,
    /// Put aside, perhaps until a time.
    Parked,
    Done,
    /// No attempts are left: a person decides.
    Failed,
    Cancelled,
}

impl State {
    pub const ALL: [Self; 9] = [
        Self::Open,
        Self::Active,
        Self::Review,
        Self::Blocked,
        Self::Waiting,
        Self::Parked,
        Self::Done,
        Self::Failed,
        Self::Cancelled,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Active => "active",
            Self::Review => "review",
            Self::Blocked => "blocked",
            Self::Waiting => "waiting",
            Self::Parked => "parked",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whoever waits for it need wait no longer. A failed task is not finished: a person may
    /// revive it, and what was to come after it still needs it.
    pub fn is_finished(self) -> bool {
        matches!(self, Self::Done | Self::Cancelled)
    }
}

/// How a task came to stand where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Move {
    Taken,
    /// The same session took it again after its own lease had run out, under a new token.
    TakenAnew,
    Done,
    Failed,
    /// The owner's service refused it for now: no attempt.
    RateLimited,
    /// The owner's login had expired: no attempt.
    Auth,
    /// The owner was ended from outside: no attempt.
    Killed,
    RanOut,
    SessionEnded,
    SessionDied,
    Parked,
    /// The time came until which it was parked.
    Woken,
    Blocked,
    /// The last task it waited for is finished.
    Unblocked,
    Cancelled,
    Reopened,
    /// Another accepted it, with what was claimed for it.
    HandedOver,
    /// It was to be handed over again without anything new, and no attempt was left.
    NoProgress,
    /// Nobody accepted it in time, and its giver is gone: a person decides.
    Unanswered,
    /// Handed in for review.
    Submitted,
    /// The author took the submission back, or went on editing.
    Withdrawn,
    /// Reviewers approved the commit: it is done, or back at its author.
    Approved,
    /// Reviewers rejected the commit, or a person denied a gate.
    Rejected,
    /// A gate holds it.
    Held,
    /// The last gate that held it is decided.
    Answered,
    /// No attempts were left; a person gave it new ones.
    Revived,
    /// It was divided into parts, and waits for them.
    Split,
    /// Its parts are joined, or those it follows.
    Joined,
}

/// The one attempt that owns a task: who, under which token, and its lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Owner {
    pub session: SessionId,
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    pub attempt: u32,
    /// The journal position of the take.
    pub token: Token,
    pub tree: TreeId,
    pub taken_at: Moment,
    pub renewed_at: Moment,
    pub expires_at: Moment,
    pub ttl: Span,
}

impl Owner {
    pub fn holder(&self) -> Holder {
        let Self { session, name, agent, .. } = self;
        Holder { session: session.clone(), name: name.clone(), agent: agent.clone() }
    }

    /// When the lease ends: one TTL later if the store failed over since it was last renewed.
    pub fn expiry(&self, failed_over_at: Option<Moment>) -> Moment {
        match failed_over_at {
            Some(at) if self.renewed_at < at => self.expires_at + self.ttl,
            _ => self.expires_at,
        }
    }

    /// Does the lease still run? Past it the task is taken anew, by whoever asks first.
    pub fn is_live(&self, context: &Context) -> bool {
        context.now < self.expiry(context.failed_over_at)
    }

    /// When an act of the session renews it: when half of it is used.
    fn due_at(&self) -> Moment {
        self.expires_at - Span(self.ttl.0 / 2)
    }
}

/// A new end of the lease of one attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Renewal {
    pub task: TaskId,
    /// Only the attempt with this token is renewed.
    pub token: Token,
    pub expires_at: Moment,
}

/// Where a task stands: everything about it that moves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Standing {
    pub state: State,
    pub since: Moment,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<Owner>,
    /// The number of the attempt that was begun last; 0 before the first.
    #[serde(default)]
    pub attempt: u32,
    /// Attempts that failed or died. Parking, waiting and rate limits use none.
    #[serde(default)]
    pub attempts_used: u32,
    /// A parked task is offered again from then on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Moment>,
    /// What it waits for besides other tasks, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocked_on: Option<String>,
    /// Why it stands where it stands, in the words of whoever moved it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_action: Option<String>,
    /// How often in a row it ended for a reason that is no attempt: each doubles the back-off.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub held_up: u32,
    /// The commit its tree stood on when the attempt began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// What the owner offers to others. It counts only while the attempt owns the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offer: Option<Offer>,
    /// In review and when waiting: the attempt it came from. It owns nothing; it is told what
    /// becomes of its work, and gets it back under a new token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<Owner>,
    /// The open gates that hold it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<GateId>,
    /// Where it stood before the first of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub was: Option<State>,
    /// Its attempts are used up and nobody has revived it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub exhausted: bool,
    /// It was given to another role when its attempts were used up. That happens once.
    #[serde(default, skip_serializing_if = "is_false")]
    pub passed_on: bool,
}

impl Standing {
    pub fn new(state: State, now: Moment) -> Self {
        Self {
            state,
            since: now,
            owner: None,
            attempt: 0,
            attempts_used: 0,
            not_before: None,
            blocked_on: None,
            why: None,
            next_action: None,
            held_up: 0,
            base: None,
            offer: None,
            author: None,
            held: Vec::new(),
            was: None,
            exhausted: false,
            passed_on: false,
        }
    }

    /// The same, held by nothing and returning to nobody: how every new stand begins.
    pub(crate) fn free(&self) -> Self {
        Self {
            owner: None,
            offer: None,
            author: None,
            held: Vec::new(),
            was: None,
            not_before: None,
            exhausted: false,
            ..self.clone()
        }
    }

    /// Nobody will do more about it unless somebody begins anew: the one place that says whether
    /// a part has its result, and which.
    pub fn ended(&self) -> Option<State> {
        let ended = matches!(self.state, State::Done | State::Cancelled | State::Failed);
        ended.then_some(self.state)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(flag: &bool) -> bool {
    !flag
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
pub(crate) fn is_zero(number: &u32) -> bool {
    *number == 0
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Task {
    pub task: TaskId,
    pub title: String,
    /// 0 is the most urgent.
    pub priority: u8,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<u16>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<Resource>,
    /// Offered to sessions of this role only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    pub max_attempts: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_usd: Option<Usd>,
    /// Filing again under the same key gives this task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    pub created_at: Moment,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<Holder>,
    pub standing: Standing,
    /// Everything it comes after.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<TaskId>,
    /// Those of them that are not finished.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<TaskId>,
    /// How many unfinished tasks wait for it, directly or through others.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unblocks: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<TaskId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<Box<Split>>,
    /// The split task whose parts it waits for: it follows them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub awaits: Option<TaskId>,
    /// What it must keep to so that the parts of a split fit together, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submission: Option<Submission>,
    /// Its title counts when a like one is filed.
    pub remembered: bool,
}

impl Task {
    pub fn state(&self) -> State {
        self.standing.state
    }

    pub fn owner(&self) -> Option<&Owner> {
        self.standing.owner.as_ref()
    }

    /// The open offer of the attempt that owns it.
    pub fn offer(&self) -> Option<&Offer> {
        let owner = self.owner()?;
        self.standing.offer.as_ref().filter(|offer| offer.token == owner.token)
    }

    /// Everyone who has it in hand: the owner, or those who review it.
    pub fn seats(&self) -> impl Iterator<Item = &Owner> {
        self.owner().into_iter().chain(self.reviewers())
    }

    /// What `session` has of it in hand.
    pub fn seat_of(&self, session: &SessionId) -> Option<&Owner> {
        self.seats().find(|seat| seat.session == *session)
    }

    /// Those who review it now.
    pub fn reviewers(&self) -> &[Owner] {
        match (self.state(), &self.submission) {
            (State::Review, Some(submission)) => &submission.reviewers,
            _ => &[],
        }
    }

    /// Where it stands when nobody works on it: offered, unless it waits for something.
    pub fn at_rest(&self) -> State {
        match self.pending.is_empty() && !self.is_held() {
            true => State::Open,
            false => State::Blocked,
        }
    }

    /// Does something hold it besides the tasks it comes after?
    pub fn is_held(&self) -> bool {
        self.standing.blocked_on.is_some() || self.awaits.is_some() || self.waits_for_parts()
    }

    pub fn waits_for_parts(&self) -> bool {
        self.split.as_ref().is_some_and(|split| split.is_open())
    }

    /// Its place in the order of service.
    pub fn order(&self) -> String {
        let unblocks = UNBLOCKS_SHOWN_MAX - self.unblocks.min(UNBLOCKS_SHOWN_MAX);
        format!("{}{unblocks:05}{:012}", self.priority, self.task.number())
    }

    fn ready_entry(&self) -> String {
        format!("{}{}", queue_of(self.role.as_deref(), self.phase), self.order())
    }

    fn state_entry(&self) -> String {
        let newest_first = || format!("{:020}", u64::MAX - self.standing.since.0);
        let finished = self.state().is_finished();
        let order = if finished { newest_first() } else { self.order() };
        format!("{}{BETWEEN}{order}", self.state().name())
    }

    fn word_entries(&self, entries: &mut Vec<(Index, String)>) {
        // Unfinished ones first, then what was finished last.
        let place = match self.state().is_finished() {
            false => "0".to_owned(),
            true => format!("1{:020}", u64::MAX - self.standing.since.0),
        };
        for word in crate::tasks::similar::telling_words(&self.title) {
            entries.push((BY_WORD, format!("{word}{BETWEEN}{place}")));
        }
    }
}

impl Record for Task {
    const KIND: Kind = "task";

    fn key(&self) -> String {
        self.task.0.clone()
    }

    fn index_entries(&self) -> Vec<(Index, String)> {
        let mut entries = vec![(BY_STATE, self.state_entry())];
        entries.extend(self.key.iter().map(|key| (BY_KEY, key.clone())));
        entries.extend(self.parent.iter().map(|parent| (BY_PARENT, parent.0.clone())));
        if self.state() == State::Open {
            entries.push((READY, self.ready_entry()));
        }
        for seat in self.seats() {
            entries.push((BY_OWNER, seat.session.0.clone()));
            // Beside the session's claims: one look finds everything that an act must renew.
            let due = format!("{}/{:020}", seat.session, seat.due_at().0);
            entries.push((claim::BY_SESSION, due));
        }
        // The first that runs out: two seats of one moment would be one entry twice.
        if let Some(first) = self.seats().map(|seat| seat.expires_at).min() {
            entries.push((BY_LEASE, format!("{:020}", first.0)));
        }
        if self.owner().is_some() {
            entries.extend(resource_entries(BY_PATH, &self.paths));
        }
        if let Some(offer) = self.offer() {
            entries.push((BY_OFFER, format!("{:020}", offer.until.0)));
        }
        if let (State::Review, Some(submission)) = (self.state(), &self.submission)
            && submission.reviewers.is_empty()
        {
            let to = submission.to.as_deref().unwrap_or_default();
            entries.push((IN_REVIEW, format!("{to}{BETWEEN}{}", self.order())));
        }
        if let (State::Parked, Some(at)) = (self.state(), self.standing.not_before) {
            entries.push((BY_WAKING, format!("{:020}", at.0)));
        }
        if !self.state().is_finished() {
            let waits = |task: &TaskId| (BY_DEPENDENCY, task.0.clone());
            entries.extend(self.pending.iter().map(waits));
            let over = self.after.iter().filter(|task| !self.pending.contains(task));
            entries.extend(over.map(|task| (BY_FINISHED, task.0.clone())));
            entries.extend(self.phase.map(|phase| (BY_PHASE, phase_value(phase))));
            let label = |label: &String| (BY_LABEL, format!("{label}{BETWEEN}{}", self.order()));
            entries.extend(self.labels.iter().map(label));
        } else if self.remembered {
            entries.push((BY_FINISH, format!("{:020}", self.standing.since.0)));
        }
        if self.remembered {
            self.word_entries(&mut entries);
        }
        entries
    }
}

pub(crate) fn phase_value(phase: u16) -> String {
    format!("{phase:05}")
}

/// The head of the index values of one queue: tasks of a role and a phase.
fn queue_of(role: Option<&str>, phase: Option<u16>) -> String {
    let phase = phase.map_or_else(|| NO_PHASE.to_owned(), phase_value);
    format!("{}{BETWEEN}{phase}{BETWEEN}", role.unwrap_or_default())
}

/// The offered tasks of one role and one phase, in the order of service.
pub fn ready(role: Option<&str>, phase: Option<u16>, limit: u32) -> Query {
    let from = queue_of(role, phase);
    let until = format!("{}{BEYOND}", from.trim_end_matches(BETWEEN));
    Query::Scan { index: READY, from, until, after: None, limit }
}

/// The tasks in one state.
pub fn in_state(state: State, limit: u32) -> Query {
    below(BY_STATE, state.name(), limit)
}

/// Submitted tasks that nobody reviews, for anyone or for those that `to` names.
pub fn to_review(to: &str, limit: u32) -> Query {
    below(IN_REVIEW, to, limit)
}

/// Unfinished tasks with a label.
pub fn with_label(label: &str, limit: u32) -> Query {
    below(BY_LABEL, label, limit)
}

/// Tasks whose title has a word, unfinished ones first.
pub fn with_word(word: &str, limit: u32) -> Query {
    below(BY_WORD, word, limit)
}

fn below(index: Index, head: &str, limit: u32) -> Query {
    let (from, until) = (format!("{head}{BETWEEN}"), format!("{head}{BEYOND}"));
    Query::Scan { index, from, until, after: None, limit }
}

/// Tasks whose time in `index` has come by `now`: leases that ran out, sleepers that wake.
pub fn due(index: Index, now: Moment, limit: u32) -> Query {
    let until = format!("{:020}", now.0.saturating_add(1));
    Query::Scan { index, from: String::new(), until, after: None, limit }
}

/// All tasks of an index, in its order.
pub fn all_of(index: Index, limit: u32) -> Query {
    let until = "\u{10ffff}".to_owned();
    Query::Scan { index, from: String::new(), until, after: None, limit }
}

impl TaskId {
    pub fn numbered(number: u64) -> Self {
        Self(format!("t{number}"))
    }

    pub fn number(&self) -> u64 {
        self.0.strip_prefix('t').and_then(|digits| digits.parse().ok()).unwrap_or(0)
    }

    /// As people write it: `t12`, `T12`, `12`, `#12`.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix(['t', 'T', '#']).unwrap_or(text);
        let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let number: u64 = digits.parse().ok().filter(|_| plain)?;
        Some(Self::numbered(number))
    }
}
