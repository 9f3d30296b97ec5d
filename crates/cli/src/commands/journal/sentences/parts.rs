//! The parts of tasks, and what tasks show, as sentences.
//!
//! Owns what the journal says of splits, joins, checks and evidence.

use baton_core::event::Event;
use baton_core::task::split::{Outcome, Stage};

use super::Naming;
use super::tasks::names;
use crate::render::shown;

pub(super) fn sentence(event: &Event, actor: &str, who: Naming<'_>) -> String {
    match event {
        Event::TaskSplit { task, split } => {
            let then = match &split.then {
                Some(then) => format!(", then {then}"),
                None => String::new(),
            };
            format!("{actor} divided {task} into {}{then}", names(&split.parts))
        }
        Event::TaskPartMoved { task, part, ended } => match ended {
            Some(state) => format!("{part}, a part of {task}, is {}", state.name()),
            None => format!("{part}, a part of {task}, is begun anew"),
        },
        Event::TaskJoined { task, outcome, stage, .. } => match (outcome, stage) {
            (Outcome::Met, Stage::Over | Stage::Parts) => format!("{task} waits for no part"),
            (Outcome::Met, Stage::Then) => format!("the parts of {task} are joined"),
            (Outcome::Missed, _) => format!("too few parts of {task} are done"),
            (Outcome::GivenUp, _) => format!("the parts of {task} are given up"),
        },
        Event::TaskChecked { task, run } => {
            let name = shown(&run.name);
            match run.exit {
                0 => format!("check {name} passed for {task}, run by {}", who(&run.by.name)),
                exit => format!("check {name} failed with {exit} for {task}"),
            }
        }
        Event::TaskProven { task, shown: proof } => {
            let required: Vec<&str> = proof.required.iter().map(|one| one.name()).collect();
            let commit = proof.commit.as_deref().map(shown);
            let commit = commit.map(|commit| format!(" with commit {commit}")).unwrap_or_default();
            match required.is_empty() {
                true => format!("{actor} ended {task}{commit}"),
                false => format!("{actor} showed {} for {task}{commit}", required.join(", ")),
            }
        }
        other => other.kind().to_owned(),
    }
}

#[cfg(test)]
pub(super) fn samples() -> Vec<(&'static str, serde_json::Value)> {
    use serde_json::json;

    let at = "2026-01-02T03:04:05Z";
    vec![
        (
            "task_checked",
            json!({ "task": "t3", "run": {
                "name": "test", "argv": ["make"], "exit": 0, "at": at, "took": 5, "attempt": 1,
                "by": { "session": "s1", "name": "otter" },
            } }),
        ),
        (
            "task_checked",
            json!({ "task": "t3", "run": {
                "name": "test", "argv": ["make"], "exit": 2, "at": at, "took": 5, "attempt": 1,
                "by": { "session": "s1", "name": "otter" },
            } }),
        ),
        (
            "task_proven",
            json!({ "task": "t3", "shown": {
                "at": at, "commit": "abc", "required": ["commit", "check"],
            } }),
        ),
        ("task_proven", json!({ "task": "t3", "shown": { "at": at, "commit": "abc" } })),
        (
            "task_split",
            json!({ "task": "t3", "split": {
                "parts": ["t4", "t5"], "then": "t6", "join": "all", "on_failure": "stop",
                "at": at, "stage": "parts",
            } }),
        ),
        ("task_part_moved", json!({ "task": "t3", "part": "t4", "ended": "failed" })),
        ("task_part_moved", json!({ "task": "t3", "part": "t4" })),
        ("task_joined", json!({ "task": "t3", "outcome": "met", "stage": "then", "then": "t6" })),
        ("task_joined", json!({ "task": "t3", "outcome": "met", "stage": "over" })),
        ("task_joined", json!({ "task": "t3", "outcome": "missed", "stage": "over" })),
        ("task_joined", json!({ "task": "t3", "outcome": "given_up", "stage": "over" })),
    ]
}
