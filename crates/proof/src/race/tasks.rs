//! The same fault with tasks: one is taken by two, or done twice (LESSONS 1).
//!
//! All racers ask for the best task at once; whoever finds none files the next one. Each task that
//! is taken leaves a mark in the arena that must not be there yet, so a second winner is seen
//! without trusting Baton's journal.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use baton_core::refusal::Refusal;
use baton_core::tasks::refused::Refused;
use baton_engine::api::tasks as api;
use baton_engine::failure::Failure as Answer;
use baton_engine::tasking;

use super::{Score, write};
use crate::failure::Failure;
use crate::worker::Task;
use crate::worker::door::Door;

pub(crate) fn run(task: &Task, arena: &Path, door: &mut Door) -> Result<(), Failure> {
    let mut score = Score::default();
    let time = Duration::from_millis(task.milliseconds);
    let started = Instant::now();
    let Some((workspace, actor, folder)) = door.inside() else {
        return write(&task.history, &score);
    };
    let best = api::Take { count: 1, ..api::Take::default() };
    while started.elapsed() < time {
        match tasking::take(workspace, actor, &best, None) {
            Ok(taken) => {
                let id = taken.first.task.to_string();
                match fs::File::options().write(true).create_new(true).open(arena.join(&id)) {
                    Ok(_) => score.rounds += 1,
                    Err(_) => score.violations += 1,
                }
                let done = api::Done {
                    task: id,
                    report_done: "won".to_owned(),
                    report_not_done: "nothing".to_owned(),
                    token: Some(taken.first.token),
                    ..api::Done::default()
                };
                if tasking::done(workspace, actor, &done, None).is_err() {
                    score.unknown += 1;
                }
            }
            Err(answer) if is_nothing(&answer) => {
                score.refused += 1;
                let title = format!("round {} of {}", score.refused, task.seed);
                let next = api::Add { title, ..api::Add::default() };
                if tasking::add(workspace, actor, folder, &next, None).is_err() {
                    score.unknown += 1;
                }
            }
            Err(_) => score.unknown += 1,
        }
    }
    write(&task.history, &score)
}

fn is_nothing(answer: &Answer) -> bool {
    let Answer::Refused(Refusal::Task(refused)) = answer else {
        return false;
    };
    matches!(**refused, Refused::NothingReady(_))
}
