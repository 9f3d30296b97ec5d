//! How an event is stored: its name and version, how safe it must be, whose records it changes.
//!
//! One table says all of that of every kind, so that none can be forgotten. Readers upcast older
//! versions; a kind or version from a newer Baton is refused, never half understood (S21).

use serde_json::Value;

use super::{EndOfClaim, Event};

/// How safe an event must be before it is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Durability {
    /// Survives any process death; a power cut may take it, and the epoch then rises.
    Process,
    /// Survives a power cut: on disk before it is acknowledged.
    Power,
}

/// In the table: as safe as they are; or as what is in them asks for.
enum Safe {
    Process,
    Power,
    Depends,
}

/// Which noun an event is about: which part of `evolve` applies it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// No record changes.
    Nothing,
    Workspace,
    Session,
    Claim,
    /// What was refused.
    Denial,
    Interface,
    Waiting,
    Task,
    /// What a task shows, and the parts it is divided into.
    Part,
    Handoff,
    Review,
    Gate,
    Suggestion,
    /// Working trees, what is foreseen between them, and numbers that are handed out.
    Tree,
    /// The merge queue.
    Landing,
    Deploy,
    Shared,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unknown {
    #[error("event {kind} version {version} belongs to a newer Baton")]
    Newer { kind: String, version: u32 },
    #[error("event {kind} version {version} cannot be read: {why}")]
    Unreadable { kind: String, version: u32, why: String },
}

macro_rules! kinds {
    ($($variant:ident $kind:literal $room:ident $safe:ident,)*) => {
        /// Every kind of event this Baton understands.
        pub const KINDS: &[&str] = &[$($kind,)*];

        impl Event {
            pub fn kind(&self) -> &'static str {
                match self { $(Self::$variant { .. } => $kind,)* }
            }

            pub fn room(&self) -> Room {
                match self { $(Self::$variant { .. } => Room::$room,)* }
            }

            fn safe(&self) -> Safe {
                match self { $(Self::$variant { .. } => Safe::$safe,)* }
            }
        }
    };
}

kinds! {
    EpochRaised "epoch_raised" Nothing Power,
    WorkspaceMade "workspace_made" Nothing Power,
    PolicySet "policy_set" Workspace Power,
    CommandsTrusted "commands_trusted" Workspace Power,
    PersonTokenAdded "person_token_added" Workspace Power,
    SessionStarted "session_started" Session Process,
    SessionResumed "session_resumed" Session Process,
    SessionRenewed "session_renewed" Session Process,
    SessionEnded "session_ended" Session Process,
    AliasBound "alias_bound" Session Process,
    CallStarted "call_started" Session Process,
    CallsEnded "calls_ended" Session Process,
    RoleGiven "role_given" Session Power,
    RulesSeen "rules_seen" Session Process,
    SubagentStopped "subagent_stopped" Session Process,
    ClaimGranted "claim_granted" Claim Process,
    ClaimsRenewed "claims_renewed" Claim Process,
    ClaimNarrowed "claim_narrowed" Claim Depends,
    ClaimEnded "claim_ended" Claim Depends,
    LeftoversTold "leftovers_told" Claim Process,
    ZoneHeld "zone_held" Claim Power,
    ZoneFreed "zone_freed" Claim Power,
    HoldBreached "hold_breached" Claim Power,
    DeedRefused "deed_refused" Denial Process,
    InterfaceAdded "interface_added" Interface Power,
    InterfaceUsed "interface_used" Interface Power,
    InterfaceChanged "interface_changed" Interface Power,
    InterfaceGiven "interface_given" Interface Power,
    InterfaceRemoved "interface_removed" Interface Power,
    WaitQueued "wait_queued" Waiting Process,
    WaitRenewed "wait_renewed" Waiting Process,
    WaitEnded "wait_ended" Waiting Process,
    NoticeSent "notice_sent" Waiting Power,
    NoticesTold "notices_told" Waiting Process,
    NoticesDropped "notices_dropped" Waiting Process,
    TaskAdded "task_added" Task Power,
    TaskEdited "task_edited" Task Power,
    TaskMoved "task_moved" Task Power,
    TaskReported "task_reported" Task Power,
    TaskTied "task_tied" Task Power,
    TaskFreed "task_freed" Task Power,
    TasksWeighed "tasks_weighed" Task Power,
    TaskSplit "task_split" Part Power,
    TaskPartMoved "task_part_moved" Part Power,
    TaskJoined "task_joined" Part Power,
    TaskChecked "task_checked" Part Power,
    TaskProven "task_proven" Part Power,
    TasksRenewed "tasks_renewed" Task Process,
    TasksForgotten "tasks_forgotten" Task Process,
    TaskCheckpointed "task_checkpointed" Handoff Power,
    HandoffOffered "handoff_offered" Handoff Power,
    HandoffDeclined "handoff_declined" Handoff Power,
    HandoffEnded "handoff_ended" Handoff Power,
    TaskSubmitted "task_submitted" Review Power,
    SubmissionEnded "submission_ended" Review Power,
    ReviewTaken "review_taken" Review Process,
    ReviewsEnded "reviews_ended" Review Process,
    TaskJudged "task_judged" Review Power,
    TaskFeedback "task_feedback" Review Power,
    GateOpened "gate_opened" Gate Power,
    GateDecided "gate_decided" Gate Power,
    GateChecked "gate_checked" Gate Power,
    GateTrusted "gate_trusted" Gate Power,
    GateTold "gate_told" Gate Process,
    VoteCast "vote_cast" Gate Power,
    VotesContested "votes_contested" Gate Power,
    VotesSettled "votes_settled" Gate Power,
    StateChanged "state_changed" Shared Power,
    DraftSet "draft_set" Shared Power,
    DraftsEnded "drafts_ended" Shared Power,
    OnceStarted "once_started" Shared Process,
    OnceRenewed "once_renewed" Shared Process,
    OnceEnded "once_ended" Shared Power,
    SuggestionMade "suggestion_made" Suggestion Power,
    SuggestionAnswered "suggestion_answered" Suggestion Power,
    SuggestionMoved "suggestion_moved" Suggestion Power,
    NoteAdded "note_added" Shared Power,
    TreePlanned "tree_planned" Tree Power,
    TreeMade "tree_made" Tree Power,
    TreeGivenUp "tree_given_up" Tree Power,
    TreeRemoved "tree_removed" Tree Power,
    NumberGiven "number_given" Tree Power,
    ClaimLost "claim_lost" Landing Process,
    LandingQueued "landing_queued" Landing Power,
    LandingsWaiting "landings_waiting" Landing Process,
    LandingsChecking "landings_checking" Landing Process,
    LandingHeld "landing_held" Landing Power,
    LandingReturned "landing_returned" Landing Power,
    LandingRemoved "landing_removed" Landing Power,
    LandingProposed "landing_proposed" Landing Power,
    TreeVerified "tree_verified" Landing Process,
    CheckFlaky "check_flaky" Landing Process,
    TargetMoving "target_moving" Landing Power,
    TargetNotMoved "target_not_moved" Landing Power,
    LandingsLanded "landings_landed" Landing Power,
    QueueRunnerStarted "queue_runner_started" Landing Process,
    QueueRunnerRenewed "queue_runner_renewed" Landing Process,
    QueueRunnerEnded "queue_runner_ended" Landing Process,
    QueuePaused "queue_paused" Landing Power,
    QueueResumed "queue_resumed" Landing Power,
    ConflictPredicted "conflict_predicted" Tree Power,
    ConflictGone "conflict_gone" Tree Power,
    DuplicateFound "duplicate_found" Tree Power,
    CommitMade "commit_made" Nothing Power,
    DeployStarted "deploy_started" Deploy Power,
    DeployRenewed "deploy_renewed" Deploy Process,
    DeployShipped "deploy_shipped" Deploy Power,
    DeployEnded "deploy_ended" Deploy Power,
    RolledBack "rolled_back" Deploy Power,
    OperationAnswered "operation_answered" Workspace Process,
    OperationsForgotten "operations_forgotten" Workspace Process,
    SnapshotTaken "snapshot_taken" Nothing Power,
}

impl Event {
    /// Every event is at version 1 until its shape changes; then `upcast` learns the old one.
    const VERSION: u32 = 1;

    pub fn durability(&self) -> Durability {
        let lasting = match (self.safe(), self) {
            (Safe::Process, _) => false,
            (Safe::Power, _) => true,
            (Safe::Depends, Self::ClaimEnded { why, left, .. }) => {
                let told = matches!(
                    why,
                    EndOfClaim::Released { commit: Some(_) } | EndOfClaim::Revoked { .. }
                );
                told || left.is_some()
            }
            (Safe::Depends, Self::ClaimNarrowed { left, .. }) => left.is_some(),
            (Safe::Depends, _) => true,
        };
        if lasting { Durability::Power } else { Durability::Process }
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
}
