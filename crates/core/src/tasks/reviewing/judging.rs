//! Approving and rejecting: who may, and when a word counts.
//!
//! Owns the verdict. A word of one reviewer is held back while others still review the same commit;
//! a word that contradicts another's opens a decision gate, also when the first has already taken
//! effect.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::editing::told;
use super::super::refused::{Brief, Refused};
use super::super::{Moved, TEXT_BYTES_MAX, Table, fits, moved, says};
use super::{FEEDBACK_BYTES_MAX, approved, rejected};
use crate::claim::Holder;
use crate::context::Context;
use crate::event::{EndOfReview, Event};
use crate::gate::{self, Decision, Gate, Kind, Origin, Outcome, Reason};
use crate::gates::{self, deciding};
use crate::id::{GateId, TaskId, Token};
use crate::refusal::Refusal;
use crate::task::dossier::Feedback;
use crate::task::{self, Move, Standing, State, Submission, Task, Verdict};
use crate::view::{Query, View, scan};

/// Verdicts on one commit.
const VERDICTS_MAX: usize = 20;
/// Gates of a task that a new commit asks again.
const GATES_MAX: u32 = 100;
/// Followers of a finished task that are held back again when it is contested.
const FOLLOWERS_MAX: u32 = 10_000;

#[derive(Clone, Debug, Serialize)]
pub struct Judge {
    pub task: String,
    /// Refuse unless this commit stands submitted.
    pub commit: Option<String>,
    pub approves: bool,
    pub text: Option<String>,
    pub token: Option<Token>,
}

/// What came of a verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Judged {
    #[serde(flatten)]
    pub moved: Moved,
    pub commit: String,
    pub approves: bool,
    /// Others review the same commit; the word counts when they have said theirs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<Holder>,
    /// The gate that was opened, when reviewers disagree or no attempt is left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<GateId>,
}

/// Approves or rejects what stands submitted.
pub fn judge(
    view: &dyn View,
    request: &Judge,
    context: &Context,
) -> Result<(Vec<Event>, Judged), Refusal> {
    let verb = if request.approves { "approve" } else { "reject" };
    match request.approves {
        true => fits("reason", request.text.as_deref(), TEXT_BYTES_MAX)?,
        false => says("feedback", request.text.as_deref().unwrap_or(""), FEEDBACK_BYTES_MAX)?,
    }
    let table = Table::read(view, &request.task, context)?;
    let Some(submission) = table.task.submission.clone() else {
        return Err(table.wrong_state(verb));
    };
    if let Some(given) = request.commit.as_ref().filter(|given| !submission.is_at(given)) {
        let (task, given) = (Brief::from(&table.task), given.clone());
        return Err(Refused::OtherCommit { task, given, current: submission.commit }.into());
    }
    let by = reviewer(&table, &submission, request.token, context)?;
    let mut task = table.task.clone();
    let mut events = Vec::new();
    let verdict = Verdict {
        by: by.clone(),
        person: context.actor.person,
        at: context.now,
        approves: request.approves,
        text: request.text.clone(),
    };
    let contradicts =
        |known: &Verdict| known.by.session != by.session && known.approves != request.approves;
    let contested = submission.verdicts.iter().any(contradicts);
    let in_review = task.state() == State::Review;
    let mine = |known: &Verdict| known.by.session == by.session;
    let late = contested && !submission.verdicts.iter().any(mine);
    if !in_review && (!late || task.state() == State::Waiting || task.state() == State::Cancelled) {
        return Err(table.wrong_state(verb));
    }
    if submission.verdicts.len() >= VERDICTS_MAX {
        return Err(Refused::TooMany { what: "verdicts on one commit", max: VERDICTS_MAX }.into());
    }
    take_leave(&mut task, &by, &mut events);
    record(&mut task, &verdict, &mut events);
    let mut woken = Vec::new();
    let mut waits_for: Vec<Holder> = Vec::new();
    if contested {
        contest(view, &mut task, &mut events, context)?;
    } else {
        let live = task.reviewers().iter().filter(|seat| seat.is_live(context));
        waits_for = live.map(task::Owner::holder).collect();
        if waits_for.is_empty() {
            let text = request.text.as_deref();
            woken = settle(view, &table, &mut task, &verdict, text, &mut events, context)?;
        }
    }
    let notices = table.activity(context, &mut events);
    let gate = events.iter().find_map(|event| match event {
        Event::GateOpened { gate } => Some(gate.gate.clone()),
        _ => None,
    });
    let moved = Moved { woken, notices, ..told(&task) };
    let (commit, approves) = (submission.commit, request.approves);
    Ok((events, Judged { moved, commit, approves, waits_for, gate }))
}

/// Nobody else reviews it: the word counts.
fn settle(
    view: &dyn View,
    table: &Table,
    task: &mut Task,
    verdict: &Verdict,
    text: Option<&str>,
    events: &mut Vec<Event>,
    context: &Context,
) -> Result<Vec<TaskId>, Refusal> {
    if verdict.approves {
        return approved(view, task, &verdict.by, text, events, context);
    }
    let text = text.unwrap_or_default();
    rejected(view, task, &table.dossier, &verdict.by, text, events, context)?;
    Ok(Vec::new())
}

/// Whoever judges, if they may.
fn reviewer(
    table: &Table,
    submission: &Submission,
    token: Option<Token>,
    context: &Context,
) -> Result<Holder, Refusal> {
    let by = gates::by(table.caller.as_ref(), context).ok_or(Refusal::NoSession)?;
    let seat = table.task.reviewers().iter().find(|seat| seat.session == by.session);
    if let Some(given) = token
        && seat.is_none_or(|seat| seat.token != given)
    {
        let current = seat.map(|seat| seat.token);
        return Err(Refusal::StaleToken { given, current });
    }
    if !context.actor.person {
        may_review(&table.task, submission, table.caller.as_ref().map(|caller| &caller.session))?;
    }
    Ok(by)
}

/// May this session review it? Not its own, and not what is for somebody else.
pub(crate) fn may_review(
    task: &Task,
    submission: &Submission,
    session: Option<&crate::sessions::Session>,
) -> Result<(), Refusal> {
    let session = session.ok_or(Refusal::NoSession)?;
    if session.session == submission.by.session {
        return Err(Refused::OwnWork { task: Brief::from(task) }.into());
    }
    let Some(to) = &submission.to else {
        return Ok(());
    };
    let fits = match to.split_once(':') {
        Some(("role", role)) => session.role.as_deref() == Some(role),
        Some((_, id)) => session.session.as_str() == id,
        None => false,
    };
    if fits {
        return Ok(());
    }
    let (task, to) = (Brief::from(task), to.clone());
    Err(Refused::NotForYou { task, to, yours: session.role.clone() }.into())
}

/// The reviewer has said its word and is free for other work.
fn take_leave(task: &mut Task, by: &Holder, events: &mut Vec<Event>) {
    if !task.reviewers().iter().any(|seat| seat.session == by.session) {
        return;
    }
    let sessions = vec![by.session.clone()];
    if let Some(submission) = &mut task.submission {
        submission.left(&sessions);
    }
    let (task, why) = (task.task.clone(), EndOfReview::Said);
    events.push(Event::ReviewsEnded { task, sessions, why });
}

/// Writes a verdict down; a rejection also where the next attempt reads it.
pub(crate) fn record(task: &mut Task, verdict: &Verdict, events: &mut Vec<Event>) {
    let id = task.task.clone();
    let Some(submission) = &mut task.submission else {
        return;
    };
    submission.judged(verdict);
    events.push(Event::TaskJudged { task: id.clone(), verdict: verdict.clone() });
    if let (false, Some(text)) = (verdict.approves, &verdict.text) {
        let feedback = Feedback {
            by: verdict.by.clone(),
            at: verdict.at,
            attempt: submission.attempt,
            commit: Some(submission.commit.clone()),
            text: text.clone(),
        };
        events.push(Event::TaskFeedback { task: id, feedback });
    }
}

/// Reviewers contradict each other: a person decides, and until then whoever waits is held.
fn contest(
    view: &dyn View,
    task: &mut Task,
    events: &mut Vec<Event>,
    context: &Context,
) -> Result<(), Refusal> {
    let Some(submission) = task.submission.clone() else {
        return Ok(());
    };
    let names = |approves: bool| {
        let said = submission.verdicts.iter().filter(|verdict| verdict.approves == approves);
        said.map(|verdict| verdict.by.name.as_str()).collect::<Vec<_>>().join(", ")
    };
    let ask = format!(
        "{} approved and {} rejected commit {} of {} \"{}\": which holds?",
        names(true),
        names(false),
        submission.commit,
        task.task,
        task.title
    );
    let word = |verdict: &Verdict| match verdict.approves {
        true => deciding::APPROVE.to_owned(),
        false => deciding::REJECT.to_owned(),
    };
    let reason = |verdict: &Verdict| Reason {
        by: verdict.by.clone(),
        says: word(verdict),
        why: verdict.text.clone(),
    };
    let draft = Gate {
        task: Some(task.task.clone()),
        options: vec![deciding::APPROVE.to_owned(), deciding::REJECT.to_owned()],
        commit: Some(submission.commit.clone()),
        origin: Origin::Disagreement,
        reasons: submission.verdicts.iter().map(reason).collect(),
        ..gates::draft(task.task.as_str(), Kind::Decision, &ask, context)
    };
    if task.state().is_finished() {
        hold_back_again(view, task, events, context)?;
        task.standing.author = Some(submission.author());
    }
    let gate = gates::open(view, draft, events)?;
    // Whoever still reviews it need not go on: a person does.
    super::drop_reviewers(task, "reviewers disagree; a person decides", events, context);
    gates::hold(view, task, &gate, events, context)
}

/// What follows a task that was finished waits for it again, unless somebody has begun.
pub(crate) fn hold_back_again(
    view: &dyn View,
    task: &Task,
    events: &mut Vec<Event>,
    context: &Context,
) -> Result<(), Refusal> {
    let query = Query::equal(task::BY_FINISHED, task.task.as_str(), FOLLOWERS_MAX);
    for follower in scan::<Task>(view, query)? {
        if !matches!(follower.state(), State::Open | State::Blocked | State::Parked) {
            continue;
        }
        let pending = vec![task.task.clone()];
        let id = follower.task.clone();
        events.push(Event::TaskTied { task: id, after: Vec::new(), pending });
        if follower.state() == State::Open {
            let standing =
                Standing { state: State::Blocked, since: context.now, ..follower.standing.clone() };
            events.push(moved(&follower, Move::Blocked, standing));
        }
    }
    Ok(())
}

/// What people were asked about another commit of this task is asked again about this one.
pub(super) fn gates_anew(
    view: &dyn View,
    task: &mut Task,
    events: &mut Vec<Event>,
    context: &Context,
) -> Result<(), Refusal> {
    let Some(commit) = task.submission.as_ref().map(|submission| submission.commit.clone()) else {
        return Ok(());
    };
    let query = gate::about(gate::BY_SUBJECT, task.task.as_str(), GATES_MAX);
    let known: Vec<Gate> = scan(view, query)?;
    let mut asked: Vec<(Kind, String)> = Vec::new();
    for gate in known.into_iter().filter(|gate| gate.origin == Origin::Filed) {
        let question = (gate.kind, gate.ask.clone());
        if gate.commit.is_none() || asked.contains(&question) {
            continue;
        }
        asked.push(question);
        if gate.commit.as_ref() == Some(&commit) {
            continue;
        }
        if gate.is_open() {
            let decision = Decision {
                outcome: Outcome::Moot,
                by: None,
                at: context.now,
                why: Some(format!("another commit was handed in: {commit}")),
                option: None,
                commit: gate.commit.clone(),
            };
            events.push(Event::GateDecided { gate: gate.gate.clone(), decision });
        }
        let anew = Gate {
            commit: Some(commit.clone()),
            opened_at: context.now,
            checked: None,
            told_at: None,
            decision: None,
            ..gate
        };
        let opened = gates::open(view, anew, events)?;
        gates::hold(view, task, &opened, events, context)?;
    }
    Ok(())
}
