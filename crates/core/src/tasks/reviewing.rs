//! Review: handing in a commit, judging it, and what becomes of it.
//!
//! Owns the submission and how work goes back to its author. Invariants: a verdict is about the
//! commit that stands submitted and no other; nobody but a person judges their own work; reviewers
//! who contradict each other are never outvoted by whoever came first: a person decides.

use serde::Serialize;

use super::editing::told;
use super::refused::{Brief, Refused};
use super::{
    Moved, REPORT_BYTES_MAX, TEXT_BYTES_MAX, TTL_DEFAULT, Table, WORD_BYTES_MAX, exhausted, finish,
    fits, let_go, says, shift, similar, word,
};
use crate::claim::Holder;
use crate::context::Context;
use crate::event::{EndOfReview, Event};
use crate::id::{NoticeId, SessionId, TaskId, Token};
use crate::notices::{News, Notice};
use crate::refusal::Refusal;
use crate::resource::Resource;
use crate::roles::giving;
use crate::sessions::{self, Session};
use crate::task::dossier::{Dossier, Feedback, Report};
use crate::task::{Move, Owner, Standing, State, Submission, Task, Verdict};
use crate::time::Moment;
use crate::view::{Query, View, get, scan};

pub mod editing_again;
pub mod judging;
pub mod seats;

pub const FEEDBACK_BYTES_MAX: usize = 16 * 1024;
/// At this share of the same words, in hundredths, a rejection says what the last one said.
pub const SAME_FEEDBACK_PERCENT: u32 = 75;
/// Digits of a commit in full: SHA-1 and SHA-256.
const COMMIT_DIGITS: [usize; 2] = [40, 64];
/// Paths that one submission freezes.
pub const FROZEN_MAX: usize = 100;

#[derive(Clone, Debug, Serialize)]
pub struct Submit {
    pub task: String,
    /// In full; that it exists was seen before.
    pub commit: String,
    /// `role:R`, or a session by its id or name; anyone when not given.
    pub to: Option<String>,
    /// What is done and what is not, in the author's words.
    pub report: Option<(String, String)>,
    /// What the commit changed: frozen where the task names no paths.
    #[serde(skip)]
    pub touched: Vec<Resource>,
    pub token: Option<Token>,
}

/// Hands in a commit for review. In review already, it replaces what was handed in before.
pub fn submit(
    view: &dyn View,
    request: &Submit,
    context: &Context,
) -> Result<(Vec<Event>, Moved), Refusal> {
    is_commit(&request.commit)?;
    if let Some((done, not_done)) = &request.report {
        says("report of what is done", done, REPORT_BYTES_MAX)?;
        says("report of what is not done", not_done, REPORT_BYTES_MAX)?;
    }
    let table = Table::read(view, &request.task, context)?;
    let again = table.task.state() == State::Review && table.is_author();
    let author = match again {
        true => table.task.standing.author.clone().ok_or_else(|| table.wrong_state("submit"))?,
        false => table.own("submit", request.token, context)?.clone(),
    };
    if !again && table.task.state() != State::Active {
        return Err(table.wrong_state("submit"));
    }
    let to = reviewers(view, request.to.as_deref(), &author, &table.task)?;
    let mut events = Vec::new();
    let mut task = table.task.clone();
    if task.submission.as_ref().is_some_and(|known| again && known.commit == request.commit) {
        let notices = table.activity(context, &mut events);
        return Ok((events, Moved { notices, ..told(&task) }));
    }
    drop_reviewers(&task, "another commit was handed in", &mut events, context);
    if let Some((done, not_done)) = &request.report {
        let (done, not_done) = (done.clone(), not_done.clone());
        let report = Report { done, not_done, result: None };
        events.push(Event::TaskReported { task: task.task.clone(), report });
    }
    let frozen = if task.paths.is_empty() { request.touched.clone() } else { task.paths.clone() };
    let submission = Submission {
        commit: request.commit.clone(),
        by: author.holder(),
        at: context.now,
        attempt: author.attempt,
        tree: author.tree.clone(),
        to,
        frozen: frozen.into_iter().take(FROZEN_MAX).collect(),
        reported: request.report.is_some(),
        reviewers: Vec::new(),
        verdicts: Vec::new(),
    };
    let (let_go, released) = let_go(view, &task, context)?;
    let id = task.task.clone();
    events.push(Event::TaskSubmitted { task: id, submission: submission.clone() });
    task.submission = Some(submission);
    let standing = Standing {
        state: State::Review,
        since: context.now,
        author: Some(author),
        why: None,
        next_action: None,
        ..task.standing.free()
    };
    shift(&mut task, Move::Submitted, standing, &mut events);
    events.extend(let_go);
    judging::gates_anew(view, &mut task, &mut events, context)?;
    let notices = table.activity(context, &mut events);
    Ok((events, Moved { released, notices, ..told(&task) }))
}

fn is_commit(text: &str) -> Result<(), Refusal> {
    let digits = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    match digits && COMMIT_DIGITS.contains(&text.len()) {
        true => Ok(()),
        false => Err(Refusal::OutOfRange {
            what: "commit",
            given: text.chars().take(80).collect(),
            allowed: "a commit's full name".to_owned(),
        }),
    }
}

/// Whom the submission is for, in the form in which it is stored.
fn reviewers(
    view: &dyn View,
    to: Option<&str>,
    author: &Owner,
    task: &Task,
) -> Result<Option<String>, Refusal> {
    let Some(to) = to.filter(|to| *to != "anyone") else {
        return Ok(None);
    };
    if let Some(role) = to.strip_prefix("role:") {
        word("role", role, WORD_BYTES_MAX)?;
        giving::known(view, Some(role))?;
        return Ok(Some(to.to_owned()));
    }
    let named = to.strip_prefix("session:").unwrap_or(to);
    let session = match get::<Session>(view, named)? {
        Some(session) => Some(session),
        None => scan::<Session>(view, Query::equal(sessions::BY_NAME, named, 1))?.pop(),
    };
    match session {
        None => Err(Refusal::UnknownSession { session: named.chars().take(80).collect() }),
        Some(session) if session.session == author.session => {
            Err(Refused::OwnWork { task: Brief::from(task) }.into())
        }
        Some(session) => Ok(Some(format!("session:{}", session.session))),
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct Withdraw {
    pub task: String,
    pub why: Option<String>,
    pub token: Option<Token>,
}

/// The author takes the submission back and goes on with the work.
pub fn withdraw(
    view: &dyn View,
    request: &Withdraw,
    context: &Context,
) -> Result<(Vec<Event>, Moved), Refusal> {
    fits("reason", request.why.as_deref(), TEXT_BYTES_MAX)?;
    let table = Table::read(view, &request.task, context)?;
    if table.task.state() != State::Review {
        return Err(table.wrong_state("withdraw"));
    }
    if !table.is_author() && !context.actor.person {
        return Err(table.authored("withdraw"));
    }
    let mut events = Vec::new();
    let mut task = table.task.clone();
    let words = request.why.clone().unwrap_or_else(|| "the author took it back".to_owned());
    withdrawn(view, &mut task, words, &mut events, context)?;
    let notices = table.activity(context, &mut events);
    Ok((events, Moved { notices, ..told(&task) }))
}

pub(crate) fn withdrawn(
    view: &dyn View,
    task: &mut Task,
    words: String,
    events: &mut Vec<Event>,
    context: &Context,
) -> Result<(), Refusal> {
    drop_reviewers(task, &words, events, context);
    end_submission(task, true, events);
    let next_action = Some("submit it again when it is ready for review".to_owned());
    let back = Return { how: Move::Withdrawn, words, by: None, counts: false, next_action };
    give_back(view, task, back, events, context)
}

/// Those who review it are told that they need not go on.
fn drop_reviewers(task: &Task, words: &str, events: &mut Vec<Event>, context: &Context) {
    let sessions: Vec<SessionId> =
        task.reviewers().iter().map(|seat| seat.session.clone()).collect();
    if sessions.is_empty() {
        return;
    }
    for to in &sessions {
        let news = News::ReviewOver {
            task: task.task.clone(),
            title: task.title.clone(),
            why: words.to_owned(),
        };
        tell(to, news, events, context);
    }
    let (task, why) = (task.task.clone(), EndOfReview::Withdrawn);
    events.push(Event::ReviewsEnded { task, sessions, why });
}

/// The author need no longer mind what it edits. `gone`: the submission itself goes too.
pub(crate) fn end_submission(task: &mut Task, gone: bool, events: &mut Vec<Event>) {
    let Some(submission) = &task.submission else {
        return;
    };
    let session = submission.by.session.clone();
    events.push(Event::SubmissionEnded { task: task.task.clone(), session, gone });
    if gone {
        task.submission = None;
    }
}

pub(crate) fn tell(to: &SessionId, news: News, events: &mut Vec<Event>, context: &Context) {
    let ordinal = u32::try_from(events.len()).unwrap_or(u32::MAX);
    let notice = NoticeId::fresh(&context.fresh, ordinal);
    let notice = Notice { notice, to: to.clone(), agent: None, at: context.now, news };
    events.push(Event::NoticeSent { notice });
}

/// How a task goes back to whoever worked on it.
#[derive(Debug)]
pub(crate) struct Return<'a> {
    pub(crate) how: Move,
    pub(crate) words: String,
    pub(crate) by: Option<&'a Holder>,
    /// An attempt was used.
    pub(crate) counts: bool,
    pub(crate) next_action: Option<String>,
}

/// Gives a task back to its author under a new token, if that lives; else it is offered.
pub(crate) fn give_back(
    view: &dyn View,
    task: &mut Task,
    back: Return<'_>,
    events: &mut Vec<Event>,
    context: &Context,
) -> Result<(), Refusal> {
    let author = task.standing.author.clone();
    let used = task.standing.attempts_used.saturating_add(u32::from(back.counts));
    let until = match &author {
        Some(author) if task.at_rest() == State::Open => lives(view, &author.session, context)?,
        _ => None,
    };
    let mut standing = Standing {
        state: task.at_rest(),
        since: context.now,
        attempts_used: used,
        why: Some(back.words.clone()),
        next_action: back.next_action,
        held_up: 0,
        ..task.standing.free()
    };
    if let (Some(author), Some(expires_at)) = (&author, until) {
        standing.state = State::Active;
        standing.attempt = used + 1;
        standing.owner = Some(Owner {
            attempt: used + 1,
            token: context.next.after(events.len() as u64),
            taken_at: context.now,
            renewed_at: context.now,
            expires_at,
            ttl: TTL_DEFAULT,
            ..author.clone()
        });
    }
    shift(task, back.how, standing, events);
    if let Some(author) = author {
        tell_author(task, &author, back.how, &back.words, back.by, events, context);
    }
    Ok(())
}

/// The author hears what became of its work, unless it was the one who said so.
pub(crate) fn tell_author(
    task: &Task,
    author: &Owner,
    how: Move,
    words: &str,
    by: Option<&Holder>,
    events: &mut Vec<Event>,
    context: &Context,
) {
    if context.actor.session.as_ref() == Some(&author.session) {
        return;
    }
    let news = News::TaskMoved {
        task: task.task.clone(),
        title: task.title.clone(),
        how,
        by: by.cloned(),
        why: words.to_owned(),
        state: task.state(),
        attempt: task.standing.attempt,
        max_attempts: task.max_attempts,
        token: task.owner().filter(|owner| owner.session == author.session).map(|own| own.token),
    };
    tell(&author.session, news, events, context);
}

/// Until when a session that lives may be given something; nothing when it is gone.
fn lives(
    view: &dyn View,
    session: &SessionId,
    context: &Context,
) -> Result<Option<Moment>, Refusal> {
    let Some(session) = get::<Session>(view, session.as_str())? else {
        return Ok(None);
    };
    let failed_over = context.failed_over_at.is_some_and(|at| session.renewed_at < at);
    let heard_of = session.expires_at + if failed_over { session.ttl } else { Default::default() };
    Ok(match session.life {
        sessions::Life::Live if context.now < heard_of || is_caller(&session, context) => {
            Some(context.now + TTL_DEFAULT)
        }
        sessions::Life::Ended { grace_until, .. } => {
            grace_until.filter(|until| context.now < *until)
        }
        sessions::Life::Live => None,
    })
}

fn is_caller(session: &Session, context: &Context) -> bool {
    context.actor.session.as_ref() == Some(&session.session)
}

/// The reviewers, or a person, approved: the task is done.
pub(crate) fn approved(
    view: &dyn View,
    task: &mut Task,
    by: &Holder,
    words: Option<&str>,
    events: &mut Vec<Event>,
    context: &Context,
) -> Result<Vec<TaskId>, Refusal> {
    let Some(submission) = task.submission.clone() else {
        return Ok(Vec::new());
    };
    if !submission.reported {
        let done = format!("commit {}, approved by {}", submission.commit, by.name);
        let report = Report { done, not_done: "not said".to_owned(), result: None };
        events.push(Event::TaskReported { task: task.task.clone(), report });
    }
    end_submission(task, false, events);
    let author = task.standing.author.clone();
    let said = words.map(|words| format!(": {words}")).unwrap_or_default();
    let standing = Standing {
        state: State::Done,
        since: context.now,
        blocked_on: None,
        why: Some(format!("{} approved {}{said}", by.name, submission.commit)),
        next_action: None,
        ..task.standing.free()
    };
    shift(task, Move::Approved, standing, events);
    let (followed, woken) = finish(view, task, context)?;
    events.extend(followed);
    if let Some(author) = author {
        let words = words.unwrap_or_default();
        tell_author(task, &author, Move::Approved, words, Some(by), events, context);
    }
    Ok(woken)
}

/// Rejected: back to the author with an attempt used, or, when that was the last or the same was
/// said before, to whoever decides about tasks without attempts.
pub(crate) fn rejected(
    view: &dyn View,
    task: &mut Task,
    dossier: &Dossier,
    by: &Holder,
    text: &str,
    events: &mut Vec<Event>,
    context: &Context,
) -> Result<(), Refusal> {
    end_submission(task, false, events);
    let used = task.standing.attempts_used.saturating_add(1);
    let repeated = is_repeated(dossier, task, text);
    if repeated || used >= task.max_attempts {
        let author = task.standing.author.clone();
        exhausted(view, task, Move::Rejected, text, repeated, events, context)?;
        if let Some(author) = author {
            tell_author(task, &author, Move::Rejected, text, Some(by), events, context);
        }
        return Ok(());
    }
    let next_action = Some("see to the feedback and submit again".to_owned());
    let (words, by) = (text.to_owned(), Some(by));
    let back = Return { how: Move::Rejected, words, by, counts: true, next_action };
    give_back(view, task, back, events, context)
}

/// Was the same said about the attempt before?
fn is_repeated(dossier: &Dossier, task: &Task, text: &str) -> bool {
    let earlier = |feedback: &&Feedback| feedback.attempt < task.standing.attempt;
    let Some(last) = dossier.feedback.iter().rev().find(earlier) else {
        return false;
    };
    similar::shared_words(&last.text, text).0 >= SAME_FEEDBACK_PERCENT
}

/// A person decided what reviewers contradicted each other about.
pub(crate) fn decided(
    view: &dyn View,
    task: &mut Task,
    approves: bool,
    by: &Holder,
    words: &str,
    events: &mut Vec<Event>,
    context: &Context,
) -> Result<Vec<TaskId>, Refusal> {
    let verdict = Verdict {
        by: by.clone(),
        person: true,
        at: context.now,
        approves,
        text: Some(words.to_owned()),
    };
    let dossier = get::<Dossier>(view, task.task.as_str())?;
    let dossier = dossier.unwrap_or_else(|| Dossier::of(task.task.clone()));
    judging::record(task, &verdict, events);
    if approves {
        return approved(view, task, by, Some(words), events, context);
    }
    rejected(view, task, &dossier, by, words, events, context)?;
    Ok(Vec::new())
}

/// Reviewers left without a word. What the others said then counts.
pub(crate) fn left(
    view: &dyn View,
    task: &mut Task,
    gone: Vec<SessionId>,
    why: EndOfReview,
    events: &mut Vec<Event>,
    context: &Context,
) -> Result<(), Refusal> {
    let Some(submission) = task.submission.as_mut() else {
        return Ok(());
    };
    submission.left(&gone);
    events.push(Event::ReviewsEnded { task: task.task.clone(), sessions: gone, why });
    let submission = submission.clone();
    let Some(last) = submission.verdicts.last().filter(|_| submission.reviewers.is_empty()) else {
        return Ok(());
    };
    if last.approves {
        approved(view, task, &last.by, last.text.as_deref(), events, context)?;
        return Ok(());
    }
    let dossier = get::<Dossier>(view, task.task.as_str())?;
    let dossier = dossier.unwrap_or_else(|| Dossier::of(task.task.clone()));
    let text = last.text.clone().unwrap_or_default();
    rejected(view, task, &dossier, &last.by, &text, events, context)
}
