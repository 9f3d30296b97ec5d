//! Events about tasks in plain words, one line each.
//!
//! Owns the sentences. All text that came from an agent goes through `shown` (S20).

use baton_core::event::Event;
use baton_core::id::TaskId;
use baton_core::task::{Move, Standing, State};
use baton_core::tasks::editing::Edit;

use super::{Naming, because, time};
use crate::render::{counted, shown};

pub(super) fn sentence(event: &Event, actor: &str, who: Naming<'_>) -> String {
    match event {
        Event::TaskAdded { task, .. } => {
            let after = match task.after.is_empty() {
                true => String::new(),
                false => format!(" after {}", names(&task.after)),
            };
            format!("{actor} filed {} \"{}\"{after}", task.task, shown(&task.title))
        }
        Event::TaskEdited { task, edit } => {
            format!("{actor} changed {} of {task}", changed(edit))
        }
        Event::TaskMoved { task, how, standing } => moved(task, *how, standing, actor, who),
        Event::TaskReported { task, report } => format!(
            "{actor} reported on {task}, done: \"{}\", not done: \"{}\"",
            shown(&report.done),
            shown(&report.not_done)
        ),
        Event::TaskTied { task, after, pending } => {
            let on = if after.is_empty() { pending } else { after };
            format!("{actor} let {task} come after {}", names(on))
        }
        Event::TaskFreed { task, of } => format!("{task} waits no longer for {of}"),
        Event::TasksWeighed { weights } => {
            let count = counted(weights.len() as u64, "task", "tasks");
            format!("{actor} weighed {count} anew")
        }
        Event::TasksRenewed { tasks, .. } => {
            let until = tasks.iter().map(|task| task.expires_at).min();
            let until = until.map(|at| format!(" until {}", time(at))).unwrap_or_default();
            let ids: Vec<TaskId> = tasks.iter().map(|task| task.task.clone()).collect();
            format!("{actor} goes on with {}{until}", names(&ids))
        }
        Event::TasksForgotten { tasks } => {
            let count = counted(tasks.len() as u64, "old title", "old titles");
            format!("{actor} forgot {count}")
        }
        other => other.kind().to_owned(),
    }
}

pub(super) fn names(tasks: &[TaskId]) -> String {
    let names: Vec<&str> = tasks.iter().map(TaskId::as_str).collect();
    names.join(", ")
}

fn changed(edit: &Edit) -> String {
    let parts = [
        (edit.title.is_some(), "title"),
        (edit.body.is_some(), "body"),
        (edit.priority.is_some(), "priority"),
        (edit.phase.is_some(), "phase"),
        (edit.paths.is_some(), "paths"),
        (edit.role.is_some(), "role"),
        (edit.labels.is_some(), "labels"),
        (edit.max_attempts.is_some(), "attempts"),
        (edit.budget_usd.is_some(), "budget"),
        (edit.next_action.is_some(), "next action"),
    ];
    let named: Vec<&str> = parts.iter().filter(|(is, _)| *is).map(|(_, name)| *name).collect();
    named.join(", ")
}

fn moved(task: &TaskId, how: Move, to: &Standing, actor: &str, who: Naming<'_>) -> String {
    let why = because(to.why.as_deref());
    let again = match (to.state, to.not_before) {
        (State::Failed, _) => "; no attempt is left".to_owned(),
        (_, Some(at)) => format!("; offered again at {}", time(at)),
        _ => "; offered again".to_owned(),
    };
    let attempt = to.attempt;
    match how {
        Move::Taken | Move::TakenAnew => {
            let owner = to.owner.as_ref().map_or_else(|| actor.to_owned(), |one| who(&one.name));
            let anew = if how == Move::TakenAnew { " again" } else { "" };
            format!("{owner} took {task}{anew}, attempt {attempt}")
        }
        Move::Done => format!("{actor} finished {task} in attempt {attempt}"),
        Move::Failed => format!("{actor} gave up attempt {attempt} at {task}{why}{again}"),
        Move::RateLimited => format!("{actor} was rate-limited at {task}{why}{again}"),
        Move::Auth => format!("{actor} had no valid login for {task}{why}{again}"),
        Move::Killed => format!("{actor} was killed at {task}{why}{again}"),
        Move::RanOut => format!("attempt {attempt} at {task} is lost: its lease ran out{again}"),
        Move::SessionEnded => {
            format!("attempt {attempt} at {task} is lost: its session ended{again}")
        }
        Move::SessionDied => {
            format!("attempt {attempt} at {task} is lost: its process ended{again}")
        }
        Move::Parked => {
            let next = to.next_action.as_deref().map(shown).unwrap_or_default();
            let back = to.not_before.map(|at| format!(" until {}", time(at))).unwrap_or_default();
            format!("{actor} parked {task}{back}, next: {next}")
        }
        Move::Woken => format!("{task} is back: its time came"),
        Move::Blocked => {
            let on = to.blocked_on.as_deref().map(|on| format!(" on \"{}\"", shown(on)));
            format!("{actor} blocked {task}{}", on.unwrap_or_default())
        }
        Move::Unblocked => format!("{task} is ready: nothing it came after is left"),
        Move::Cancelled => format!("{actor} cancelled {task}{why}"),
        Move::HandedOver => {
            let owner = to.owner.as_ref().map_or_else(|| actor.to_owned(), |one| who(&one.name));
            format!("{owner} took {task} over, attempt {attempt}")
        }
        Move::NoProgress => format!("attempt {attempt} at {task} is lost{why}{again}"),
        Move::Unanswered => format!("nobody took {task} over{why}"),
        Move::Reopened => format!("{actor} reopened {task}{why}"),
        Move::Submitted => format!("{task} is in review"),
        Move::Withdrawn => format!("{task} is withdrawn from review{why}"),
        Move::Approved => format!("{task} is approved and {}", to.state.name()),
        Move::Rejected => match (&to.owner, to.state) {
            (Some(owner), _) => {
                format!("{task} goes back to {} for attempt {attempt}{why}", who(&owner.name))
            }
            (None, state) => format!("{task} is rejected and {}{why}", state.name()),
        },
        Move::Held => format!("{task} waits for a person{why}"),
        Move::Answered => match &to.owner {
            Some(owner) => format!("{task} goes back to {}{why}", who(&owner.name)),
            None => format!("{task} is {} again{why}", to.state.name()),
        },
        Move::Revived => format!("{actor} gave {task} new attempts{why}"),
        Move::Split => format!("{task} waits for its parts"),
        Move::Joined if to.state == State::Done => format!("{task} is done: what followed is"),
        Move::Joined => format!("{task} is ready{why}"),
    }
}

#[cfg(test)]
pub(super) use tests::samples;

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    fn standing(state: &str, more: &[(&str, Value)]) -> Value {
        let mut standing = json!({ "state": state, "since": "2026-01-02T03:04:05Z", "attempt": 2 });
        for (name, value) in more {
            standing[*name] = value.clone();
        }
        standing
    }

    pub(crate) fn samples() -> Vec<(&'static str, Value)> {
        let at = "2026-01-02T03:04:05Z";
        let owner = json!({
            "session": "s1", "name": "otter", "attempt": 2, "token": "1.7", "tree": "t1",
            "taken_at": at, "renewed_at": at, "expires_at": at, "ttl": 1_800_000,
        });
        let task = json!({
            "task": "t3", "title": "fix \u{1b}[2J it", "priority": 2, "max_attempts": 3,
            "created_at": at, "standing": standing("blocked", &[]), "after": ["t1"],
            "pending": ["t1"], "remembered": true,
        });
        let moved = |how: &str, state: &str, more: &[(&str, Value)]| {
            ("task_moved", json!({ "task": "t3", "how": how, "standing": standing(state, more) }))
        };
        let why = ("why", json!("</system>"));
        let later = ("not_before", json!(at));
        vec![
            ("task_added", json!({ "task": task, "body": "long" })),
            ("task_edited", json!({ "task": "t3", "edit": { "priority": 0, "role": "" } })),
            moved("taken", "active", &[("owner", owner.clone())]),
            moved("taken_anew", "active", &[("owner", owner.clone())]),
            moved("done", "done", &[]),
            moved("failed", "open", std::slice::from_ref(&why)),
            moved("failed", "failed", std::slice::from_ref(&why)),
            moved("rate_limited", "parked", &[why.clone(), later.clone()]),
            moved("auth", "parked", &[why.clone(), later.clone()]),
            moved("killed", "parked", &[why.clone(), later.clone()]),
            moved("ran_out", "open", &[]),
            moved("session_ended", "open", &[]),
            moved("session_died", "failed", &[]),
            moved("parked", "parked", &[("next_action", json!("go on")), later]),
            moved("woken", "open", &[]),
            moved("blocked", "blocked", &[("blocked_on", json!("the net"))]),
            moved("unblocked", "open", &[]),
            moved("cancelled", "cancelled", std::slice::from_ref(&why)),
            moved("reopened", "open", &[]),
            moved("handed_over", "active", &[]),
            moved("no_progress", "failed", std::slice::from_ref(&why)),
            moved("unanswered", "waiting", std::slice::from_ref(&why)),
            moved("submitted", "review", &[]),
            moved("withdrawn", "active", std::slice::from_ref(&why)),
            moved("approved", "done", &[]),
            moved("rejected", "active", &[why.clone(), ("owner", owner.clone())]),
            moved("rejected", "failed", std::slice::from_ref(&why)),
            moved("held", "waiting", std::slice::from_ref(&why)),
            moved("answered", "active", &[("owner", owner)]),
            moved("answered", "open", &[]),
            moved("revived", "open", &[]),
            moved("split", "blocked", &[]),
            moved("joined", "open", std::slice::from_ref(&why)),
            moved("joined", "done", &[]),
            (
                "task_reported",
                json!({ "task": "t3", "report": { "done": "all", "not_done": "nothing" } }),
            ),
            ("task_tied", json!({ "task": "t3", "after": ["t1", "t2"], "pending": ["t1"] })),
            ("task_freed", json!({ "task": "t3", "of": "t1" })),
            ("tasks_weighed", json!({ "weights": [{ "task": "t1", "unblocks": 2 }] })),
            (
                "tasks_renewed",
                json!({ "tasks": [{ "task": "t3", "token": "1.7", "expires_at": at }], "at": at }),
            ),
            ("tasks_forgotten", json!({ "tasks": ["t1"] })),
        ]
    }
}
