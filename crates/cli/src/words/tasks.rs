//! The words of refusals about tasks.
//!
//! Each names the task, who has it or how it stands, and one step that is safe and helps. The
//! documents carry the same as data.

use baton_core::task::{Owner, State};
use baton_core::tasks::refused::{Brief, Nothing, Refused};
use baton_core::tasks::similar::Similar;
use baton_core::time::Moment;
use serde_json::{Value, json};

use super::evidence;
use crate::render::{self, counted, shown};

/// The sentence, the next step and the document of a refusal.
pub(super) fn of(refused: &Refused) -> (String, String, Value) {
    match refused {
        Refused::Unknown { task, near } => unknown(task, near),
        Refused::NothingReady(nothing) => nothing_ready(nothing),
        Refused::HasTask { task, state, since } => has_task(task, *state, *since),
        Refused::OwnWork { .. } | Refused::NotForYou { .. } | Refused::OtherCommit { .. } => {
            review(refused)
        }
        Refused::NoCommit { commit } => (
            format!("there is no commit \"{}\" here", shown(commit)),
            "git log --oneline, to see what there is".to_owned(),
            json!({ "commit": commit }),
        ),
        Refused::WrongState { .. } => wrong_state(refused),
        Refused::Owned { verb, task, owner } => {
            let message = format!("{} is {}", named(task), owned_by(owner));
            let next = match *verb {
                "take" => "baton task take, which finds another".to_owned(),
                _ => format!("baton task show {}", task.task),
            };
            (message, next, json!({ "task": task, "owner": owner }))
        }
        Refused::Stale { .. } => stale(refused),
        Refused::WrongRole { task, role, yours } => {
            let yours_words = match yours {
                Some(yours) => format!("yours is {}", shown(yours)),
                None => "you have none".to_owned(),
            };
            let message = format!("{} is for role {}; {yours_words}", named(task), shown(role));
            let next = "baton task take, which finds one for you".to_owned();
            (message, next, json!({ "task": task, "role": role, "yours": yours }))
        }
        Refused::Cycle { tasks } => {
            let names: Vec<&str> = tasks.iter().map(|task| task.as_str()).collect();
            let message = format!("tasks would wait for ever: {}", names.join(" waits for "));
            let first = names.first().copied().unwrap_or("ID");
            (message, format!("baton task show {first}"), json!({ "cycle": tasks }))
        }
        Refused::Similar { similar } => alike(similar),
        Refused::TooMany { what, max } => (
            format!("there are too many {what}: {max} at the most"),
            with_fewer(what).to_owned(),
            json!({}),
        ),
        Refused::KeyTaken { key, task } => {
            let (whose, next) = match task {
                Some(task) => (named(task), format!("baton task show {}", task.task)),
                None => ("two of the parts".to_owned(), "give each part its own key".to_owned()),
            };
            let message = format!("\"{}\" is the key of {whose}: one key is one task", shown(key));
            (message, next, json!({ "key": key, "task": task }))
        }
        Refused::Unproven { task, missing } => evidence::unproven(task, missing),
        Refused::NotDivided { task } => (
            format!("{} was not divided, so it has no results of parts", named(task)),
            format!("baton task show {}", task.task),
            json!({ "task": task }),
        ),
        Refused::SaysNothing { what } => (
            format!("the {what} says nothing"),
            "say it in a few words; \"nothing\" is an answer where there is none".to_owned(),
            json!({}),
        ),
    }
}

fn alike(similar: &[Similar]) -> (String, String, Value) {
    let names: Vec<String> = similar
        .iter()
        .map(|one| format!("{} \"{}\" ({})", one.task, shown(&one.title), one.state.name()))
        .collect();
    let first = similar.first().map(|one| one.task.0.as_str()).unwrap_or("ID");
    let message = format!("a task like this is filed already: {}", names.join(", "));
    (message, format!("baton task show {first}"), json!({ "similar": similar }))
}

fn with_fewer(what: &str) -> &'static str {
    match what {
        "tasks to import" => "divide the file, and import one part after the other",
        _ => "name fewer, or split the task",
    }
}

fn has_task(task: &Brief, state: State, since: Moment) -> (String, String, Value) {
    let (does, next) = match state {
        State::Review => ("review", format!("baton task approve {0}, or reject {0}", task.task)),
        _ => (
            "work on",
            format!(
                "baton task done {0}, baton task park {0} --next '…', or baton handoff offer {0}",
                task.task
            ),
        ),
    };
    let message = format!("you {does} {} since {}", named(task), render::until(since));
    (message, next, json!({ "task": task, "state": state, "since": since }))
}

/// Who may judge what.
fn review(refused: &Refused) -> (String, String, Value) {
    match refused {
        Refused::OwnWork { task } => (
            format!("{} is your own work: another session reviews it, or a person", named(task)),
            "baton task take, which finds other work".to_owned(),
            json!({ "task": task }),
        ),
        Refused::NotForYou { task, to, yours } => {
            let yours_words = match yours {
                Some(yours) => format!("your role is {}", shown(yours)),
                None => "you have no role".to_owned(),
            };
            let message =
                format!("{} is to be reviewed by {}; {yours_words}", named(task), shown(to));
            let next = "baton task take, which finds one for you".to_owned();
            (message, next, json!({ "task": task, "to": to, "yours": yours }))
        }
        Refused::OtherCommit { task, given, current } => (
            format!(
                "commit {} of {} is not what stands submitted: that is {current}",
                shown(given),
                named(task)
            ),
            format!("baton task show {}", task.task),
            json!({ "task": task, "given": given, "current": current }),
        ),
        other => (other.to_string(), "baton task list".to_owned(), json!({})),
    }
}

fn wrong_state(refused: &Refused) -> (String, String, Value) {
    let Refused::WrongState { verb, task, state, since, reason, allowed } = refused else {
        return (refused.to_string(), "baton task list".to_owned(), json!({}));
    };
    let why = reason.as_deref().map(|why| format!(": {}", shown(why))).unwrap_or_default();
    let message = format!(
        "{} cannot {}: it is {} since {}{why}; allowed: {}",
        named(task),
        passive(verb),
        state.name(),
        render::until(*since),
        allowed.join(", ")
    );
    let details = json!({
        "task": task, "state": state, "since": since, "reason": reason, "allowed": allowed,
    });
    let next = match (*verb, state) {
        // A person decides; there may be other work meanwhile.
        ("take", State::Waiting) => "baton task take, which finds another".to_owned(),
        _ => format!("baton task show {}", task.task),
    };
    (message, next, details)
}

fn stale(refused: &Refused) -> (String, String, Value) {
    let Refused::Stale { task, state, given, attempt, current, owner } = refused else {
        return (refused.to_string(), "baton task list".to_owned(), json!({}));
    };
    let now = match owner {
        Some(owner) => format!("it is {} now", owned_by(owner)),
        None => format!("it is {} now, after attempt {attempt}", state.name()),
    };
    let message = format!("this attempt at {} is over: {now}", named(task));
    let details = json!({
        "task": task, "state": state, "given": given, "attempt": attempt,
        "current": current, "owner": owner,
    });
    let next = match (owner, state) {
        // It may be active by name, and its time is over.
        (None, State::Open | State::Active | State::Parked | State::Review) => {
            format!("baton task take {}, which begins anew", task.task)
        }
        (None, State::Blocked) => format!(
            "baton task reopen {}, if it waits for words and need not; baton task show {} says",
            task.task, task.task
        ),
        _ => format!("baton task show {}", task.task),
    };
    (message, next, details)
}

pub(super) fn named(task: &Brief) -> String {
    format!("{} \"{}\"", task.task, shown(&task.title))
}

/// `bob's (attempt 2, token 1.44, until 12:05:00Z, in 28m)`.
fn owned_by(owner: &Owner) -> String {
    format!(
        "{}'s (attempt {}, token {}, until {})",
        shown(&owner.name),
        owner.attempt,
        owner.token,
        render::until(owner.expires_at)
    )
}

/// Most verbs are done to a task.
fn passive(verb: &str) -> &str {
    match verb {
        "take" => "be taken",
        "done" => "be done",
        "park" => "be parked",
        "block" => "be blocked",
        "cancel" => "be cancelled",
        "reopen" => "be reopened",
        "update" => "be changed",
        "hand over" => "be handed over",
        "checkpoint" => "be saved",
        "submit" => "be submitted",
        "approve" => "be approved",
        "reject" => "be rejected",
        "withdraw" => "be withdrawn",
        "revive" => "be revived",
        "split" => "be divided",
        "check" => "be checked",
        other => other,
    }
}

fn unknown(task: &str, near: &[Brief]) -> (String, String, Value) {
    let names: Vec<String> = near.iter().map(named).collect();
    let meant = match names.is_empty() {
        true => String::new(),
        false => format!("; near it: {}", names.join(", ")),
    };
    let next = match near.first() {
        Some(first) => format!("baton task show {}", first.task),
        None => "baton task list".to_owned(),
    };
    (format!("there is no task \"{}\"{meant}", shown(task)), next, json!({ "near": near }))
}

fn nothing_ready(nothing: &Nothing) -> (String, String, Value) {
    let mut parts = Vec::new();
    for (count, what) in [
        (nothing.ready, "ready for other roles"),
        (nothing.active, "active"),
        (nothing.review, "in review"),
        (nothing.waiting, "waiting for a person"),
        (nothing.blocked, "blocked"),
        (nothing.parked, "parked"),
        (nothing.failed, "failed"),
    ] {
        if count > 0 {
            parts.push(counted(count, what, what));
        }
    }
    let there = match parts.is_empty() {
        true => ": everything is finished".to_owned(),
        false => format!(": {}", parts.join(", ")),
    };
    let when = match nothing.next_at {
        Some(at) => format!("; something may come up at {}", render::until(at)),
        None => String::new(),
    };
    let next = match (nothing.blocked, parts.is_empty()) {
        (_, true) => "baton task add 'what is to be done'",
        (0, false) => "baton task list",
        (_, false) => "baton task blocked, to see what holds them",
    };
    let details = serde_json::to_value(nothing).unwrap_or_else(|_| json!({}));
    (format!("no task is ready{there}{when}"), next.to_owned(), details)
}
