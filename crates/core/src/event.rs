//! Everything that can happen: the only way records change.
//!
//! An event is stored as (kind, version, JSON). Readers upcast older versions to the one written
//! here; a kind or version from a newer Baton is refused, never half understood (S21).

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::claim::{Claim, Leftover};
use crate::id::{ClaimId, NoticeId, SessionId, SuggestionId, TaskId, Token, WaiterId};
use crate::journal::Hash;
use crate::key::Key;
use crate::notes::Note;
use crate::notices::Notice;
use crate::once::{self, Runner};
use crate::operations::Operation;
use crate::resource::Resource;
use crate::sessions::{Alias, PersonToken, Session};
use crate::state::Changed;
use crate::state::drafts::Draft;
use crate::suggestions::{Answer, Suggestion};
use crate::task::dossier::Report;
use crate::task::split::{Outcome, Split, Stage};
use crate::task::{self, Move, Standing, Task};
use crate::tasks::editing::Edit;
use crate::tasks::evidence::{CheckRun, Shown};
use crate::time::{Moment, Span};
use crate::waiting::Waiter;
use crate::zones::Policy;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// Entries may have been lost before this one: power cut, restore, failover.
    EpochRaised {
        why: String,
    },
    WorkspaceMade {
        workspace: String,
    },
    PolicySet {
        policy: Policy,
    },
    PersonTokenAdded {
        token: PersonToken,
    },

    SessionStarted {
        session: Session,
    },
    /// The same agent is back: after /clear, a reconnect, or within its grace.
    SessionResumed {
        session: Session,
    },
    SessionRenewed {
        session: SessionId,
        at: Moment,
        expires_at: Moment,
    },
    SessionEnded {
        session: SessionId,
        at: Moment,
        why: EndOfSession,
        grace_until: Option<Moment>,
    },
    AliasBound {
        alias: Alias,
    },

    ClaimGranted {
        claim: Claim,
    },
    ClaimsRenewed {
        claims: Vec<Renewal>,
        at: Moment,
    },
    /// Some resources of a claim were let go; the rest stays under the same token.
    ClaimNarrowed {
        claim: ClaimId,
        resources: Vec<Resource>,
        released: Vec<Resource>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        left: Option<Leftover>,
    },
    ClaimEnded {
        claim: ClaimId,
        session: SessionId,
        resources: Vec<Resource>,
        why: EndOfClaim,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        left: Option<Leftover>,
    },
    /// The next editor was told whose uncommitted changes these are.
    LeftoversTold {
        claims: Vec<ClaimId>,
        /// What lies outside the editor's paths and is still to be told to somebody else.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        remaining: Vec<Leftover>,
    },

    WaitQueued {
        waiter: Waiter,
    },
    WaitRenewed {
        waiter: WaiterId,
        lease_until: Moment,
    },
    WaitEnded {
        waiter: WaiterId,
        why: EndOfWait,
    },

    NoticeSent {
        notice: Notice,
    },
    NoticesTold {
        notices: Vec<NoticeId>,
    },

    TaskAdded {
        task: Task,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        body: Option<String>,
    },
    TaskEdited {
        task: TaskId,
        edit: Edit,
    },
    /// A task moved: it was taken, finished, lost, put aside …
    TaskMoved {
        task: TaskId,
        how: Move,
        standing: Standing,
    },
    TaskReported {
        task: TaskId,
        report: Report,
    },
    /// It now comes after these too. Those in `pending` are not finished yet.
    TaskTied {
        task: TaskId,
        after: Vec<TaskId>,
        pending: Vec<TaskId>,
    },
    /// A task it waited for is finished.
    TaskFreed {
        task: TaskId,
        of: TaskId,
    },
    /// How much these unblock now.
    TasksWeighed {
        weights: Vec<Weight>,
    },
    /// It was divided: the parts were filed just before.
    TaskSplit {
        task: TaskId,
        split: Split,
    },
    /// A part has ended, or was begun anew after that.
    TaskPartMoved {
        task: TaskId,
        part: TaskId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ended: Option<task::State>,
    },
    /// The parts are joined, once and for all. `then` need not wait for them any longer.
    TaskJoined {
        task: TaskId,
        outcome: Outcome,
        stage: Stage,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        then: Option<TaskId>,
    },
    /// Its owner ran a check.
    TaskChecked {
        task: TaskId,
        run: CheckRun,
    },
    /// What was shown when it was done.
    TaskProven {
        task: TaskId,
        shown: Shown,
    },
    TasksRenewed {
        tasks: Vec<task::Renewal>,
        at: Moment,
    },
    /// Finished so long ago that a like one is no duplicate any more.
    TasksForgotten {
        tasks: Vec<TaskId>,
    },

    StateChanged {
        changed: Changed,
    },
    DraftSet {
        draft: Draft,
    },
    DraftsEnded {
        session: SessionId,
        keys: Vec<Key>,
        why: EndOfDraft,
    },

    /// Somebody's turn at a command began; whoever had it before is gone.
    OnceStarted {
        key: Key,
        runner: Runner,
    },
    OnceRenewed {
        key: Key,
        token: Token,
        at: Moment,
        lease_until: Moment,
    },
    OnceEnded {
        key: Key,
        token: Token,
        at: Moment,
        end: once::End,
    },

    SuggestionMade {
        suggestion: Suggestion,
    },
    SuggestionAnswered {
        suggestion: SuggestionId,
        claim: ClaimId,
        answer: Answer,
    },
    /// The same session took the path anew: it waits at that claim now.
    SuggestionMoved {
        suggestion: SuggestionId,
        from: ClaimId,
        to: ClaimId,
    },

    NoteAdded {
        note: Note,
    },

    OperationAnswered {
        operation: Operation,
    },
    OperationsForgotten {
        operations: Vec<String>,
    },

    /// Entries up to here were sealed into an archive; the hash is that of all records.
    SnapshotTaken {
        state_hash: Hash,
        records: u64,
        archive: String,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Renewal {
    pub claim: ClaimId,
    pub expires_at: Moment,
    /// The new TTL, when the holder asked for a longer one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<Span>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Weight {
    pub task: TaskId,
    pub unblocks: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndOfSession {
    Ended,
    Died,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum EndOfClaim {
    Released {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        commit: Option<String>,
    },
    Expired,
    SessionEnded,
    SessionDied,
    Revoked {
        why: String,
    },
    /// Its paths were changed and are clean again: committed or reverted.
    Settled,
    /// The same session took the same again after the lease had run out, under a new token.
    Replaced,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndOfWait {
    Granted,
    TimedOut,
    Withdrawn,
    Gone,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndOfDraft {
    Published,
    Discarded,
    SessionEnded,
}

/// How safe an event must be before it is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Durability {
    /// Survives any process death; a power cut may take it, and the epoch then rises.
    Process,
    /// Survives a power cut: on disk before it is acknowledged.
    Power,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unknown {
    #[error("event {kind} version {version} belongs to a newer Baton")]
    Newer { kind: String, version: u32 },
    #[error("event {kind} version {version} cannot be read: {why}")]
    Unreadable { kind: String, version: u32, why: String },
}

impl Event {
    /// Every event is at version 1 until its shape changes; then `upcast` learns the old one.
    const VERSION: u32 = 1;

    pub fn durability(&self) -> Durability {
        match self {
            Self::SessionStarted { .. }
            | Self::SessionResumed { .. }
            | Self::SessionRenewed { .. }
            | Self::SessionEnded { .. }
            | Self::AliasBound { .. }
            | Self::ClaimGranted { .. }
            | Self::ClaimsRenewed { .. }
            | Self::WaitQueued { .. }
            | Self::WaitRenewed { .. }
            | Self::WaitEnded { .. }
            | Self::NoticesTold { .. }
            | Self::LeftoversTold { .. }
            | Self::TasksRenewed { .. }
            | Self::TasksForgotten { .. }
            | Self::OnceStarted { .. }
            | Self::OnceRenewed { .. }
            | Self::OperationAnswered { .. }
            | Self::OperationsForgotten { .. } => Durability::Process,
            Self::ClaimEnded { why, left, .. } => match why {
                EndOfClaim::Released { commit: Some(_) } | EndOfClaim::Revoked { .. } => {
                    Durability::Power
                }
                _ if left.is_some() => Durability::Power,
                _ => Durability::Process,
            },
            Self::ClaimNarrowed { left, .. } => match left {
                Some(_) => Durability::Power,
                None => Durability::Process,
            },
            Self::EpochRaised { .. }
            | Self::WorkspaceMade { .. }
            | Self::PolicySet { .. }
            | Self::PersonTokenAdded { .. }
            | Self::NoticeSent { .. }
            | Self::TaskAdded { .. }
            | Self::TaskEdited { .. }
            | Self::TaskMoved { .. }
            | Self::TaskReported { .. }
            | Self::TaskTied { .. }
            | Self::TaskFreed { .. }
            | Self::TasksWeighed { .. }
            | Self::TaskSplit { .. }
            | Self::TaskPartMoved { .. }
            | Self::TaskJoined { .. }
            | Self::TaskChecked { .. }
            | Self::TaskProven { .. }
            | Self::StateChanged { .. }
            | Self::DraftSet { .. }
            | Self::DraftsEnded { .. }
            | Self::OnceEnded { .. }
            | Self::SuggestionMade { .. }
            | Self::SuggestionAnswered { .. }
            | Self::SuggestionMoved { .. }
            | Self::NoteAdded { .. }
            | Self::SnapshotTaken { .. } => Durability::Power,
        }
    }

    /// Kind, version and body as they go into the journal.
    pub fn to_stored(&self) -> (&'static str, u32, String) {
        let mut value = serde_json::to_value(self).unwrap_or(Value::Null);
        if let Some(object) = value.as_object_mut() {
            object.remove("event");
        }
        (self.kind(), Self::VERSION, value.to_string())
    }

    pub fn from_stored(kind: &str, version: u32, body: &str) -> Result<Self, Unknown> {
        if version > Self::VERSION || !KINDS.contains(&kind) {
            return Err(Unknown::Newer { kind: kind.to_owned(), version });
        }
        let unreadable = |why: serde_json::Error| Unknown::Unreadable {
            kind: kind.to_owned(),
            version,
            why: why.to_string(),
        };
        let mut value: Value = serde_json::from_str(body).map_err(unreadable)?;
        if let Some(object) = value.as_object_mut() {
            object.insert("event".to_owned(), Value::String(kind.to_owned()));
        }
        serde_json::from_value(value).map_err(unreadable)
    }

    pub fn kind(&self) -> &'static str {
        match self {
            Self::EpochRaised { .. } => "epoch_raised",
            Self::WorkspaceMade { .. } => "workspace_made",
            Self::PolicySet { .. } => "policy_set",
            Self::PersonTokenAdded { .. } => "person_token_added",
            Self::SessionStarted { .. } => "session_started",
            Self::SessionResumed { .. } => "session_resumed",
            Self::SessionRenewed { .. } => "session_renewed",
            Self::SessionEnded { .. } => "session_ended",
            Self::AliasBound { .. } => "alias_bound",
            Self::ClaimGranted { .. } => "claim_granted",
            Self::ClaimsRenewed { .. } => "claims_renewed",
            Self::ClaimNarrowed { .. } => "claim_narrowed",
            Self::ClaimEnded { .. } => "claim_ended",
            Self::LeftoversTold { .. } => "leftovers_told",
            Self::WaitQueued { .. } => "wait_queued",
            Self::WaitRenewed { .. } => "wait_renewed",
            Self::WaitEnded { .. } => "wait_ended",
            Self::NoticeSent { .. } => "notice_sent",
            Self::NoticesTold { .. } => "notices_told",
            Self::TaskAdded { .. } => "task_added",
            Self::TaskEdited { .. } => "task_edited",
            Self::TaskMoved { .. } => "task_moved",
            Self::TaskReported { .. } => "task_reported",
            Self::TaskTied { .. } => "task_tied",
            Self::TaskFreed { .. } => "task_freed",
            Self::TasksWeighed { .. } => "tasks_weighed",
            Self::TaskSplit { .. } => "task_split",
            Self::TaskPartMoved { .. } => "task_part_moved",
            Self::TaskJoined { .. } => "task_joined",
            Self::TaskChecked { .. } => "task_checked",
            Self::TaskProven { .. } => "task_proven",
            Self::TasksRenewed { .. } => "tasks_renewed",
            Self::TasksForgotten { .. } => "tasks_forgotten",
            Self::StateChanged { .. } => "state_changed",
            Self::DraftSet { .. } => "draft_set",
            Self::DraftsEnded { .. } => "drafts_ended",
            Self::OnceStarted { .. } => "once_started",
            Self::OnceRenewed { .. } => "once_renewed",
            Self::OnceEnded { .. } => "once_ended",
            Self::SuggestionMade { .. } => "suggestion_made",
            Self::SuggestionAnswered { .. } => "suggestion_answered",
            Self::SuggestionMoved { .. } => "suggestion_moved",
            Self::NoteAdded { .. } => "note_added",
            Self::OperationAnswered { .. } => "operation_answered",
            Self::OperationsForgotten { .. } => "operations_forgotten",
            Self::SnapshotTaken { .. } => "snapshot_taken",
        }
    }
}

/// Every kind of event this Baton understands.
pub const KINDS: &[&str] = &[
    "epoch_raised",
    "workspace_made",
    "policy_set",
    "person_token_added",
    "session_started",
    "session_resumed",
    "session_renewed",
    "session_ended",
    "alias_bound",
    "claim_granted",
    "claims_renewed",
    "claim_narrowed",
    "claim_ended",
    "leftovers_told",
    "wait_queued",
    "wait_renewed",
    "wait_ended",
    "notice_sent",
    "notices_told",
    "task_added",
    "task_edited",
    "task_moved",
    "task_reported",
    "task_tied",
    "task_freed",
    "tasks_weighed",
    "task_split",
    "task_part_moved",
    "task_joined",
    "task_checked",
    "task_proven",
    "tasks_renewed",
    "tasks_forgotten",
    "state_changed",
    "draft_set",
    "drafts_ended",
    "once_started",
    "once_renewed",
    "once_ended",
    "suggestion_made",
    "suggestion_answered",
    "suggestion_moved",
    "note_added",
    "operation_answered",
    "operations_forgotten",
    "snapshot_taken",
];
