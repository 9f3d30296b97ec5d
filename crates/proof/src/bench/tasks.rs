//! What taking a task costs: from a small backlog, from a very large one, with a crowd.
//!
//! The large one has 100,000 open tasks and a million done ones; in a third one the first thousand
//! that are ready all conflict with a claim of somebody else. After each take the task is put back,
//! so that every sample takes the same one.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::time::Instant;

use baton_core::context::{Actor, Observed};
use baton_core::event::Event;
use baton_core::id::TaskId;
use baton_core::task::{Standing, State, Task};
use baton_core::tasks::{ATTEMPTS_DEFAULT, PRIORITY_DEFAULT};
use baton_core::view::Unreadable;
use baton_engine::workspace::Workspace;
use baton_engine::{api, claiming};
use serde_json::json;

use super::fill::{self, EVENTS_AT_ONCE, literal};
use super::page::Line;
use super::samples::{self, Call, Spread};
use super::{Scale, crowd};
use crate::failure::Failure;
use crate::traffic::Ground;

const SMALL: usize = 100;
const CONFLICTING: usize = 1_000;
const DRAINERS: usize = 32;
/// What somebody else has claimed.
const HELD: &str = "held";

pub(super) fn measure(baton: &Path, scale: Scale, lines: &mut Vec<Line>) -> Result<(), Failure> {
    println!("taking tasks: {} open, {} done", scale.open_tasks, scale.done_tasks);
    let grounds = [Ground::make(None)?, Ground::make(None)?, Ground::make(None)?];
    fill_tasks(&grounds[0], SMALL, 0, 0)?;
    fill_tasks(&grounds[1], scale.open_tasks, scale.done_tasks, 0)?;
    fill_tasks(&grounds[2], scale.open_tasks, scale.done_tasks, CONFLICTING)?;
    let mut calls = Vec::new();
    for ground in &grounds {
        calls.push(Call::new(baton, &ground.root(), &fill::session(ground)?));
    }
    let [small, large, conflicting] =
        samples::interleaved(scale.samples / 5, |_, series| take_and_put_back(&calls[series]))?;
    let many = format!("{} open and {} done", scale.open_tasks, scale.done_tasks);
    let name = format!("`task take`, {many}, against {SMALL} tasks");
    lines.push(Line::ratio(name, &large, &small, 1.5));
    let name = format!("`task take`, the first {CONFLICTING} conflict, against {SMALL} tasks");
    lines.push(Line::ratio(name, &conflicting, &small, 1.5));
    drain(baton, scale.drained_tasks, lines)
}

fn take_and_put_back(call: &Call) -> Result<std::time::Duration, Failure> {
    let (time, taken) = call.answer(&["task", "take", "--json"])?;
    let task = taken["task"].as_str().unwrap_or_default();
    call.run(&["task", "park", task, "--next", "again"])?;
    call.run(&["task", "reopen", task])?;
    Ok(time)
}

/// Through the same evolution as everything else, many events to a decision.
pub(super) fn fill_tasks(
    ground: &Ground,
    open: usize,
    done: usize,
    conflicting: usize,
) -> Result<(), Failure> {
    let mut workspace = ground.open()?;
    let total = open + done;
    let mut made = 0;
    while made < total {
        let range = made..(made + EVENTS_AT_ONCE).min(total);
        made = range.end;
        workspace.decide(&Actor::default(), Observed::default(), |_, context| {
            let mut events = Vec::with_capacity(range.len());
            for index in range {
                let finished = index < done;
                let conflicts = !finished && index - done < conflicting;
                let (state, folder) = match (finished, conflicts) {
                    (true, _) => (State::Done, "past"),
                    (false, true) => (State::Open, HELD),
                    (false, false) => (State::Open, "free"),
                };
                let paths = vec![literal(&format!("{folder}/{}/{index}.rs", index % 100))?];
                let task: Box<Task> = serde_json::from_value(json!({
                    "task": TaskId::numbered(index as u64 + 1),
                    "title": format!("w{index:x} v{:x}", index * 7),
                    "priority": PRIORITY_DEFAULT,
                    "paths": paths,
                    "max_attempts": ATTEMPTS_DEFAULT,
                    "created_at": context.now,
                    "standing": Standing::new(state, context.now),
                    "remembered": !finished,
                }))
                .map_err(|error| Unreadable(Box::new(error)))?;
                events.push(Event::TaskAdded { task, body: None });
            }
            Ok((events, ()))
        })?;
    }
    if conflicting > 0 { hold(ground, &mut workspace) } else { Ok(()) }
}

/// Another session's claim on everything below [`HELD`].
fn hold(ground: &Ground, workspace: &mut Workspace) -> Result<(), Failure> {
    let actor = fill::actor(workspace, &fill::another_session(ground)?)?;
    let wanted = api::Claim { resources: vec![format!("{HELD}/")], ..api::Claim::default() };
    claiming::claim(workspace, &actor, &ground.root(), &wanted, None, &mut |_| {})?;
    Ok(())
}

/// Many processes, each of a session of its own, until nothing is left.
fn drain(baton: &Path, tasks: usize, lines: &mut Vec<Line>) -> Result<(), Failure> {
    println!("{DRAINERS} processes draining {tasks} tasks");
    let ground = Ground::make(None)?;
    fill_tasks(&ground, tasks, 0, 0)?;
    let mut callers = Vec::new();
    for _ in 0..DRAINERS {
        callers.push(Call::new(baton, &ground.root(), &fill::another_session(&ground)?));
    }
    let owners: Mutex<BTreeMap<String, usize>> = Mutex::default();
    let started = Instant::now();
    let times = crowd::everybody(DRAINERS, |caller| {
        let call = &callers[caller];
        let mut times = Vec::new();
        loop {
            let (time, code, taken) = call.reply(&["task", "take", "--json"])?;
            let Some(task) = taken["task"].as_str() else {
                let nothing = taken["refused"]["code"].as_str() == Some("nothing_ready");
                return match (code, nothing) {
                    (Some(1), true) => Ok(times),
                    _ => Err(Failure::said("task take", format!("{code:?}: {taken}"))),
                };
            };
            times.push(time);
            let report = ["--report-done", "all", "--report-not-done", "nothing"];
            call.run(&[&["task", "done", task][..], &report].concat())?;
            let mut owners = owners.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            *owners.entry(task.to_owned()).or_default() += 1;
        }
    })?;
    let seconds = started.elapsed().as_secs_f64();
    let owners = owners.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    let once = owners.len() == tasks && owners.values().all(|times| *times == 1);
    let spread = Spread::of(times.into_iter().flatten().collect());
    let name = format!("{DRAINERS} processes draining {tasks} tasks");
    let said = format!("{} of {tasks}", owners.len());
    lines.push(Line::said(format!("{name}: done exactly once"), said, "all".to_owned(), once));
    let rate = format!("{:.0} tasks/s", tasks as f64 / seconds);
    lines.push(Line::said(format!("{name}: throughput"), rate, "–".to_owned(), true));
    lines.push(Line::times(format!("{name}: a take"), &spread));
    Ok(())
}
