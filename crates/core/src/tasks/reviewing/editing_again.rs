//! A further edit withdraws the submission.
//!
//! Owns the hook in the rule that grants claims. What is in review is frozen for its author, in the
//! tree it was made in; whoever has nothing in review pays nothing for it.

use super::withdrawn;
use crate::claim::Hold;
use crate::context::Context;
use crate::event::Event;
use crate::id::NoticeId;
use crate::notices::{News, Notice};
use crate::refusal::Refusal;
use crate::resource::Resource;
use crate::scene::Caller;
use crate::task::{Move, State, Task};
use crate::view::{Query, View, only};

/// The author takes what it handed in. Returns what it is told about that.
pub(crate) fn edited(
    view: &dyn View,
    caller: &Caller,
    hold: &Hold,
    events: &mut Vec<Event>,
    context: &Context,
) -> Result<Vec<Notice>, Refusal> {
    let ids = &caller.session.submissions;
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let queries: Vec<Query> = ids.iter().map(|id| Query::get::<Task>(id.as_str())).collect();
    let mut notices = Vec::new();
    for rows in view.read(&queries)? {
        for mut task in only::<Task>(&rows)? {
            let Some(path) = touched(&task, caller, hold) else {
                continue;
            };
            let words = format!("{path} was taken for a further edit");
            withdrawn(view, &mut task, words.clone(), events, context)?;
            notices.push(told(&task, words, caller, events.len(), context));
        }
    }
    Ok(notices)
}

/// The frozen path that is taken, if any.
fn touched(task: &Task, caller: &Caller, hold: &Hold) -> Option<Resource> {
    let submission = task.submission.as_ref()?;
    let mine = submission.by.session == caller.session.session;
    if task.state() != State::Review || !mine || submission.tree != hold.tree {
        return None;
    }
    let frozen = |path: &&Resource| submission.frozen.iter().any(|one| one.overlaps(path));
    hold.resources.iter().find(frozen).cloned()
}

fn told(task: &Task, why: String, caller: &Caller, ordinal: usize, context: &Context) -> Notice {
    let news = News::TaskMoved {
        task: task.task.clone(),
        title: task.title.clone(),
        how: Move::Withdrawn,
        by: None,
        why,
        state: task.state(),
        attempt: task.standing.attempt,
        max_attempts: task.max_attempts,
        token: task.owner().map(|owner| owner.token),
    };
    let ordinal = u32::try_from(ordinal).unwrap_or(u32::MAX);
    Notice {
        notice: NoticeId::fresh(&context.fresh, ordinal),
        to: caller.session.session.clone(),
        agent: None,
        at: context.now,
        news,
    }
}
