//! Who reviews what: the offer of submitted work, and the reviewer's own attempt at it.
//!
//! Owns the seat of a reviewer: its own token and lease beside the author's work, which it does not
//! change. Invariant: what nobody reviews is offered, in the order of service, to everyone who may
//! review it and has not.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::refused::Refused;
use super::super::taking::{TakenTask, given, has_task, seat};
use super::super::wrong_state;
use super::judging::may_review;
use crate::claim::Holder;
use crate::context::Context;
use crate::event::Event;
use crate::refusal::Refusal;
use crate::scene::Caller;
use crate::task::{State, Task, Verdict};
use crate::time::Moment;
use crate::view::View;

/// How many review one commit at the same time.
const REVIEWERS_MAX: usize = 8;

/// What is to be reviewed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reviewed {
    pub commit: String,
    pub by: Holder,
    pub at: Moment,
    /// What others said about this commit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub verdicts: Vec<Verdict>,
}

/// What this session could review: not its own, and nothing twice.
pub(crate) fn offered(caller: &Caller, stored: &[Task], loose: &[Task], count: usize) -> Vec<Task> {
    let me = &caller.session;
    let free = |task: &&Task| {
        let Some(submission) = task.submission.as_ref() else {
            return false;
        };
        let judged = submission.verdicts.iter().any(|known| known.by.session == me.session);
        task.state() == State::Review
            && submission.reviewers.is_empty()
            && !judged
            && may_review(task, submission, Some(me)).is_ok()
    };
    let stored = stored.iter().filter(|task| loose.iter().all(|one| one.task != task.task));
    let mut reviews: Vec<Task> = stored.chain(loose).filter(free).cloned().collect();
    reviews.sort_by_key(Task::order);
    reviews.truncate(count);
    reviews
}

/// May the caller review this very task? Also beside others, within a limit.
pub(crate) fn may_take(task: &Task, caller: &Caller, context: &Context) -> Result<(), Refusal> {
    let Some(submission) = &task.submission else {
        return Err(wrong_state(task, "take", None));
    };
    let seat = task.seat_of(&caller.session.session);
    if seat.is_some_and(|seat| seat.is_live(context)) {
        return Err(has_task(task));
    }
    if !context.actor.person {
        may_review(task, submission, Some(&caller.session))?;
    }
    if submission.reviewers.len() >= REVIEWERS_MAX {
        let what = "reviewers of one commit";
        return Err(Refused::TooMany { what, max: REVIEWERS_MAX }.into());
    }
    Ok(())
}

/// Gives the review of a task to the caller; the work stays its author's.
pub(crate) fn review(
    view: &dyn View,
    task: &Task,
    caller: &Caller,
    events: &mut Vec<Event>,
    context: &Context,
) -> Result<TakenTask, Refusal> {
    let submission = task.submission.as_ref().ok_or_else(|| wrong_state(task, "take", None))?;
    let reviewer = seat(caller.holder(context), submission.attempt, caller, events, context);
    let event = Event::ReviewTaken { task: task.task.clone(), reviewer: reviewer.clone() };
    events.push(event);
    let review = Reviewed {
        commit: submission.commit.clone(),
        by: submission.by.clone(),
        at: submission.at,
        verdicts: submission.verdicts.clone(),
    };
    given(view, task, &reviewer, Some(review))
}
