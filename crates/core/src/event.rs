//! Everything that can happen: the only way records change.
//!
//! Owns the shape of each; how they are named and stored is in [`stored`]. A shape that changes
//! is a new version, and `stored` learns to read the old one.

use serde::{Deserialize, Serialize};

use crate::claim::{Claim, Holder, Leftover};
use crate::conflicts::{Duplicate, Predicted};
use crate::deploy::{self, Deploy};
use crate::gate::{Checked, Decision, Gate};
use crate::handoff::{self, Declined, Handoff};
use crate::id::{
    ClaimId, GateId, HandoffId, LandingId, NoticeId, SessionId, SuggestionId, TaskId, Token,
    TreeId, WaiterId,
};
use crate::interfaces::{self, Given, Interface};
use crate::landing::{self, Cause, Landing, Moving, Paused, Verified};
use crate::once::{self, Runner};
use crate::serial::{EndOfZone, ZoneHold};
use crate::sessions::{Alias, PersonToken, Session};
use crate::suggestions::{Answer, Suggestion};
use crate::task::dossier::{Checkpoint, Feedback, Report};
use crate::task::split::{Outcome, Split, Stage};
use crate::task::{self, Move, Standing, Submission, Task, Verdict};
use crate::tasks::evidence::{CheckRun, Shown};
use crate::{
    breach::Breach, calls::Call, commits::Made, denials::Denial, journal::Hash, key::Key,
    landings::claims::Lost, notes::Note, notices::Notice, numbers::Counter, operations::Operation,
    resource::Resource, rules::Seen, state::Changed, state::drafts::Draft, tasks::editing::Edit,
    time::Moment, tree::Tree, trees::Removed, trust::Trust, votes::Vote, waiting::Waiter,
    zones::Policy,
};

pub use ends::{EndOfClaim, EndOfDraft, EndOfReview, EndOfSession, EndOfWait, Renewal, Weight};
pub use stored::{Durability, KINDS, Room, Unknown};

mod ends;
mod stored;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "a decision has a handful of them, for a moment")]
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
    /// A person stands for exactly these commands of the policy.
    CommandsTrusted {
        trust: Trust,
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
    /// The session is in a tool call that its leases would not cover: they last as long as it.
    CallStarted {
        session: SessionId,
        call: Call,
        /// When the last of all its calls must have ended.
        busy_until: Moment,
        claims: Vec<ClaimId>,
    },
    CallsEnded {
        session: SessionId,
        calls: Vec<String>,
        /// Calls it is still in last until then.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        busy_until: Option<Moment>,
        claims: Vec<ClaimId>,
    },

    /// What it may do is this from now on.
    RoleGiven {
        session: SessionId,
        role: String,
        at: Moment,
    },
    /// It was told the rules of the project in this version.
    RulesSeen {
        session: SessionId,
        seen: Seen,
    },

    /// A subagent has stopped: its holds and its untold notices are its session's now.
    SubagentStopped {
        session: SessionId,
        agent: String,
        claims: Vec<ClaimId>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        notices: Vec<NoticeId>,
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

    /// A serial zone is bound to a branch until that has landed.
    ZoneHeld {
        hold: ZoneHold,
    },
    ZoneFreed {
        zone: Resource,
        clone: String,
        branch: String,
        why: EndOfZone,
    },

    /// Files were marked as what others build on.
    InterfaceAdded {
        interface: Interface,
    },
    InterfaceUsed {
        name: Key,
        user: Holder,
    },
    /// What others build on is not as they knew it.
    InterfaceChanged {
        changed: interfaces::Changed,
    },
    InterfaceGiven {
        given: Given,
    },
    InterfaceRemoved {
        name: Key,
        by: Holder,
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
    /// Whom they were for does not come back, or a later one says it all.
    NoticesDropped {
        notices: Vec<NoticeId>,
    },

    TaskAdded {
        task: Box<Task>,
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
    /// What is known of the work was saved by code.
    TaskCheckpointed {
        task: TaskId,
        checkpoint: Checkpoint,
    },
    /// Work was handed in for review; its author is told apart by `submission.by`.
    TaskSubmitted {
        task: TaskId,
        submission: Submission,
    },
    /// The author need no longer mind what it edits; `gone` when it took its work back.
    SubmissionEnded {
        task: TaskId,
        session: SessionId,
        gone: bool,
    },
    /// Somebody reviews it. The place of this entry is the reviewer's token.
    ReviewTaken {
        task: TaskId,
        reviewer: task::Owner,
    },
    ReviewsEnded {
        task: TaskId,
        sessions: Vec<SessionId>,
        why: EndOfReview,
    },
    TaskJudged {
        task: TaskId,
        verdict: Verdict,
    },
    /// What the next attempt must read.
    TaskFeedback {
        task: TaskId,
        feedback: Feedback,
    },
    /// Finished so long ago that a like one is no duplicate any more.
    TasksForgotten {
        tasks: Vec<TaskId>,
    },

    HandoffOffered {
        handoff: Handoff,
    },
    /// One of several it is offered to will not have it.
    HandoffDeclined {
        handoff: HandoffId,
        declined: Declined,
    },
    HandoffEnded {
        handoff: HandoffId,
        task: TaskId,
        end: handoff::End,
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

    /// A working tree is about to be made.
    TreePlanned {
        tree: Tree,
    },
    TreeMade {
        tree: TreeId,
        at: Moment,
    },
    /// It could not be made, and nothing of it is left.
    TreeGivenUp {
        tree: TreeId,
        why: String,
    },
    TreeRemoved {
        removed: Removed,
    },
    /// The next number of a folder belongs to somebody.
    NumberGiven {
        counter: Counter,
    },

    /// A claim that ran out was taken by another session.
    ClaimLost {
        lost: Lost,
    },

    LandingQueued {
        landing: Box<Landing>,
    },
    /// Back in line: what they were in is not checked any more.
    LandingsWaiting {
        landings: Vec<LandingId>,
        at: Moment,
    },
    LandingsChecking {
        landings: Vec<LandingId>,
        at: Moment,
    },
    /// It stays in line, and this is why.
    LandingHeld {
        landing: LandingId,
        cause: Cause,
        reason: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        files: Vec<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        gate: Option<GateId>,
        at: Moment,
    },
    LandingReturned {
        landing: LandingId,
        cause: Cause,
        reason: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        files: Vec<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        log: Option<String>,
        at: Moment,
    },
    LandingRemoved {
        landing: LandingId,
        by: Holder,
        at: Moment,
        reason: String,
    },
    /// A request to merge it is open elsewhere.
    LandingProposed {
        landing: LandingId,
        commit: String,
        at: Moment,
    },
    /// All checks passed on a tree.
    TreeVerified {
        verified: Verified,
        at: Moment,
    },
    /// A check failed and then passed on the same tree.
    CheckFlaky {
        landing: LandingId,
        tree: String,
        at: Moment,
    },
    /// The target is about to move.
    TargetMoving {
        moving: Moving,
    },
    /// It did not.
    TargetNotMoved {
        at: Moment,
    },
    /// It did, and was seen there.
    LandingsLanded {
        moved: Moving,
        at: Moment,
    },
    QueueRunnerStarted {
        runner: landing::Runner,
    },
    QueueRunnerRenewed {
        token: Token,
        lease_until: Moment,
    },
    QueueRunnerEnded {
        token: Token,
    },
    QueuePaused {
        paused: Paused,
    },
    QueueResumed {
        by: Holder,
        at: Moment,
    },

    /// Two trees, or a tree and the target, will not go together as they are.
    ConflictPredicted {
        predicted: Predicted,
    },
    /// Nothing is between them any more.
    ConflictGone {
        clone: String,
        a: String,
        b: String,
    },
    /// Nearly the same function was written twice.
    DuplicateFound {
        duplicate: Duplicate,
    },

    /// Somebody wrote what another held.
    HoldBreached {
        breach: Breach,
    },
    /// Somebody was refused something, and told so.
    DeedRefused {
        denial: Denial,
    },

    /// A session committed through Baton.
    CommitMade {
        made: Made,
    },

    GateOpened {
        gate: Gate,
    },
    GateDecided {
        gate: GateId,
        decision: Decision,
    },
    /// Baton looked whether the condition holds.
    GateChecked {
        gate: GateId,
        checked: Checked,
    },
    GateTrusted {
        gate: GateId,
        by: Holder,
    },
    /// The person's own command was run to tell of it.
    GateTold {
        gate: GateId,
        at: Moment,
        /// The command succeeded.
        well: bool,
    },

    VoteCast {
        subject: String,
        vote: Vote,
    },
    VotesContested {
        subject: String,
        gate: GateId,
    },
    VotesSettled {
        subject: String,
        gate: GateId,
        decision: Decision,
    },

    /// Somebody has a target and ships a commit to it.
    DeployStarted {
        deploy: Deploy,
    },
    DeployRenewed {
        deploy: Token,
        at: Moment,
        lease_until: Moment,
    },
    /// The command that ships has ended.
    DeployShipped {
        deploy: Token,
        shipped: deploy::Shipped,
    },
    DeployEnded {
        deploy: Token,
        end: deploy::End,
    },
    /// Something older is live again.
    RolledBack {
        deploy: Token,
        target: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<String>,
        to: String,
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
