//! Applies an event about tasks to the records.
//!
//! Decides nothing. Keeps two things true with every change of a task, so that no rule can forget
//! them: the tally counts it, and an attempt that ended stands in the dossier.

use super::change;
use crate::event::Event;
use crate::handoff::{Handoff, Offer};
use crate::id::TaskId;
use crate::sessions::Session;
use crate::task::dossier::Dossier;
use crate::task::tally::Tally;
use crate::task::{Move, Split, Standing, Submission, Task};
use crate::view::{Record, Records, Unreadable, get, put};

pub(super) fn evolve(records: &mut dyn Records, event: &Event) -> Result<(), Unreadable> {
    match event {
        Event::TaskAdded { task, body } => {
            count(records, None, task, true)?;
            if let Some(body) = body {
                let dossier =
                    Dossier { body: Some(body.clone()), ..Dossier::of(task.task.clone()) };
                put(records, &dossier)?;
            }
            put(records, &**task)
        }
        Event::TaskEdited { task, edit } => {
            if let Some(body) = &edit.body {
                write(records, task, |dossier| dossier.body = Some(body.clone()))?;
            }
            turn(records, task, |task| edit.apply(task))
        }
        Event::TaskMoved { task, how, standing } => moved(records, task, *how, standing),
        Event::TaskReported { task, report } => {
            write(records, task, |dossier| dossier.report = Some(report.clone()))
        }
        Event::TaskTied { task, after, pending } => turn(records, task, |task| {
            let new = |known: &[TaskId], more: &[TaskId]| -> Vec<TaskId> {
                more.iter().filter(|one| !known.contains(one)).cloned().collect()
            };
            let (after, pending) = (new(&task.after, after), new(&task.pending, pending));
            task.after.extend(after);
            task.pending.extend(pending);
        }),
        Event::TaskFreed { task, of } => {
            turn(records, task, |task| task.pending.retain(|one| one != of))
        }
        Event::TasksWeighed { weights } => weights.iter().try_for_each(|weight| {
            change(records, weight.task.as_str(), |task: &mut Task| {
                task.unblocks = weight.unblocks;
            })
        }),
        Event::TasksRenewed { tasks, at } => tasks.iter().try_for_each(|renewal| {
            change(records, renewal.task.as_str(), |task: &mut Task| {
                let reviewers = task.submission.as_mut().map(|one| &mut one.reviewers);
                let seats = task.standing.owner.iter_mut();
                let mut seats = seats.chain(reviewers.into_iter().flatten());
                if let Some(seat) = seats.find(|seat| seat.token == renewal.token) {
                    seat.renewed_at = *at;
                    seat.expires_at = renewal.expires_at;
                }
            })
        }),
        Event::TasksForgotten { tasks } => tasks.iter().try_for_each(|task| {
            change(records, task.as_str(), |task: &mut Task| task.remembered = false)
        }),
        _ => Ok(()),
    }
}

/// What is shown of a task, and what becomes of its parts.
pub(super) fn part(records: &mut dyn Records, event: &Event) -> Result<(), Unreadable> {
    match event {
        Event::TaskSplit { task, split } => change(records, task.as_str(), |task: &mut Task| {
            task.split = Some(Box::new(split.clone()));
        }),
        Event::TaskPartMoved { task, part, ended } => with_split(records, task, |split| {
            match ended {
                Some(state) => split.ended.insert(part.clone(), *state),
                None => split.ended.remove(part),
            };
        }),
        Event::TaskJoined { task, outcome, stage, then } => {
            with_split(records, task, |split| {
                split.stage = *stage;
                split.outcome = split.outcome.or(Some(*outcome));
            })?;
            let Some(then) = then else { return Ok(()) };
            change(records, then.as_str(), |then: &mut Task| then.awaits = None)
        }
        Event::TaskChecked { task, run } => write(records, task, |dossier| dossier.checked(run)),
        Event::TaskProven { task, shown } => {
            write(records, task, |dossier| dossier.proven = Some(shown.clone()))
        }
        _ => Ok(()),
    }
}

pub(super) fn handoff(records: &mut dyn Records, event: &Event) -> Result<(), Unreadable> {
    match event {
        Event::TaskCheckpointed { task, checkpoint } => {
            write(records, task, |dossier| dossier.save(checkpoint))
        }
        Event::HandoffOffered { handoff } => {
            write(records, &handoff.task, |dossier| dossier.handoffs = handoff.number)?;
            let open = handoff.end.is_none().then(|| Offer {
                handoff: handoff.handoff.clone(),
                token: handoff.token,
                to: handoff.to.clone(),
                until: handoff.until,
            });
            if open.is_some() {
                change(records, handoff.task.as_str(), |task: &mut Task| {
                    task.standing.offer = open;
                })?;
            }
            put(records, handoff)
        }
        Event::HandoffDeclined { handoff, declined } => {
            change(records, handoff.as_str(), |handoff: &mut Handoff| {
                handoff.declined.push(declined.clone());
            })
        }
        Event::HandoffEnded { handoff, task, end } => {
            change(records, handoff.as_str(), |handoff: &mut Handoff| {
                handoff.end = Some(end.clone());
            })?;
            change(records, task.as_str(), |task: &mut Task| {
                let this = |offer: &Offer| offer.handoff == *handoff;
                task.standing.offer = task.standing.offer.take().filter(|offer| !this(offer));
            })
        }
        _ => Ok(()),
    }
}

fn with_split(
    records: &mut dyn Records,
    task: &TaskId,
    edit: impl FnOnce(&mut Split),
) -> Result<(), Unreadable> {
    change(records, task.as_str(), |task: &mut Task| {
        if let Some(split) = task.split.as_deref_mut() {
            edit(split);
        }
    })
}

/// What happens to a submission. The author's session knows of it, so that a claim of anybody else
/// need not look.
pub(super) fn review(records: &mut dyn Records, event: &Event) -> Result<(), Unreadable> {
    match event {
        Event::TaskSubmitted { task, submission } => {
            change(records, submission.by.session.as_str(), |session: &mut Session| {
                session.submissions.retain(|known| known != task);
                session.submissions.push(task.clone());
            })?;
            turn(records, task, |task| task.submission = Some(submission.clone()))
        }
        Event::SubmissionEnded { task, session, gone } => {
            change(records, session.as_str(), |session: &mut Session| {
                session.submissions.retain(|known| known != task);
            })?;
            turn(records, task, |task| task.submission = task.submission.take().filter(|_| !gone))
        }
        Event::ReviewTaken { task, reviewer } => submission(records, task, |submission| {
            submission.left(std::slice::from_ref(&reviewer.session));
            submission.reviewers.push(reviewer.clone());
        }),
        Event::ReviewsEnded { task, sessions, .. } => {
            submission(records, task, |submission| submission.left(sessions))
        }
        Event::TaskJudged { task, verdict } => {
            submission(records, task, |submission| submission.judged(verdict))
        }
        Event::TaskFeedback { task, feedback } => {
            write(records, task, |dossier| dossier.said(feedback))
        }
        _ => Ok(()),
    }
}

fn submission(
    records: &mut dyn Records,
    id: &TaskId,
    edit: impl FnOnce(&mut Submission),
) -> Result<(), Unreadable> {
    turn(records, id, |task| {
        if let Some(submission) = &mut task.submission {
            edit(submission);
        }
    })
}

fn moved(
    records: &mut dyn Records,
    id: &TaskId,
    how: Move,
    standing: &Standing,
) -> Result<(), Unreadable> {
    let Some(task) = get::<Task>(records, id.as_str())? else {
        return Ok(());
    };
    let token = |standing: &Standing| standing.owner.as_ref().map(|owner| owner.token);
    let before = task.standing;
    if let Some(owner) = before.owner.as_ref().filter(|_| token(&before) != token(standing)) {
        write(records, id, |dossier| dossier.close(owner, how, standing))?;
    }
    turn(records, id, |task| task.standing = standing.clone())
}

/// Changes a task, and what counts it.
fn turn(
    records: &mut dyn Records,
    id: &TaskId,
    edit: impl FnOnce(&mut Task),
) -> Result<(), Unreadable> {
    let Some(before) = get::<Task>(records, id.as_str())? else {
        return Ok(());
    };
    let mut after = before.clone();
    edit(&mut after);
    if (before.state(), before.phase) != (after.state(), after.phase) {
        count(records, Some(&before), &after, false)?;
    }
    put(records, &after)
}

fn count(
    records: &mut dyn Records,
    before: Option<&Task>,
    after: &Task,
    made: bool,
) -> Result<(), Unreadable> {
    let mut tally = get::<Tally>(records, Tally::KEY)?.unwrap_or_default();
    let known = get::<Task>(records, &after.key())?;
    if made {
        tally.made = tally.made.max(after.task.number());
    }
    // Adding what is there already replaces it, and then it is not one more.
    tally.moved(before.or(known.as_ref().filter(|_| made)), Some(after));
    put(records, &tally)
}

fn write(
    records: &mut dyn Records,
    id: &TaskId,
    edit: impl FnOnce(&mut Dossier),
) -> Result<(), Unreadable> {
    let kept = get::<Dossier>(records, id.as_str())?;
    let mut dossier = kept.unwrap_or_else(|| Dossier::of(id.clone()));
    edit(&mut dossier);
    put(records, &dossier)
}
