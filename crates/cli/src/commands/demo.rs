//! `demo`: eight agents on one codebase, once without Baton and once with it; then a backlog that
//! is drained by four workers, one of which is killed.
//!
//! Every agent is a process of its own that reads a file, thinks, and writes the whole file back.
//! What is lost in the first run is lost by that race and by nothing else; it is counted afterwards
//! by looking for each edit's mark in the files. Nothing is set up before and nothing stays behind.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use serde::Serialize;

use crate::arguments::Common;
use crate::desk::{self, Outcome};
use crate::words::Problem;
use backlog::Drained;
use crew::{Crew, Limit};
use scratch::Scratch;
use screen::Screen;

pub(crate) mod agent;
mod backlog;
mod crew;
mod scratch;
mod screen;
pub(crate) mod worker;

const AGENTS_MAX: u8 = 64;
const SECONDS_MAX: u16 = 3_600;
/// Of the time asked for, the first run takes this part. The second makes the same edits, slower
/// by what coordination costs, and ends in any case with the time. The backlog takes the rest.
const FIRST_RUN_PART: f64 = 0.36;
const SECOND_RUN_PART: f64 = 0.46;

#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// How many agents
    #[arg(long, value_name = "N", default_value_t = 8,
        value_parser = clap::value_parser!(u8).range(2..=i64::from(AGENTS_MAX)))]
    agents: u8,
    /// About how long both runs take together
    #[arg(long, value_name = "N", default_value_t = 20,
        value_parser = clap::value_parser!(u16).range(2..=i64::from(SECONDS_MAX)))]
    seconds: u16,
    /// Keep the scratch folder and say where it is
    #[arg(long)]
    keep: bool,
}

/// What one run came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Tally {
    pub(crate) edits_made: usize,
    pub(crate) edits_lost: usize,
    pub(crate) conflicts_refused: usize,
    pub(crate) seconds: f64,
}

#[derive(Debug, Serialize)]
struct Reply {
    agents: u8,
    files: usize,
    without_baton: Tally,
    with_baton: Tally,
    backlog: Drained,
    #[serde(skip_serializing_if = "Option::is_none")]
    kept: Option<String>,
}

pub(crate) fn run(common: &Common, wanted: &Demo) -> Outcome {
    let screen = Screen::new(common.json);
    let scratch = Scratch::make(wanted.keep)?;
    screen.open(wanted.agents, scratch::FILES.len());

    let part = |part: f64| Duration::from_secs_f64(f64::from(wanted.seconds) * part);
    let (first, second) = (part(FIRST_RUN_PART), part(SECOND_RUN_PART));
    let plain = scratch.repository("without-baton")?;
    let crew = Crew::start(&plain, wanted.agents, &Limit { time: first, edits: None })?;
    let without = crew.watch(&plain, &screen, "without Baton")?;

    let guarded = scratch.repository("with-baton")?;
    guarded.set_up()?;
    let limit = Limit { time: second, edits: Some(without.edits.clone()) };
    let crew = Crew::start(&guarded, wanted.agents, &limit)?;
    let with = crew.watch(&guarded, &screen, "with Baton")?;

    screen.second_part();
    let backlog = backlog::drain(&guarded, &screen)?;

    let kept = wanted.keep.then(|| scratch.folder.display().to_string());
    let reply = Reply {
        agents: wanted.agents,
        files: scratch::FILES.len(),
        without_baton: without.tally,
        with_baton: with.tally,
        backlog,
        kept,
    };
    if common.json {
        desk::answer(true, &reply, |_: &Reply, _| String::new());
    } else {
        let runs = (&reply.without_baton, &reply.with_baton);
        screen.close(runs, &reply.backlog, reply.kept.as_deref());
    }
    let Reply { with_baton, backlog, .. } = &reply;
    match (with_baton.edits_lost, backlog.lost + backlog.done_twice) {
        (0, 0) => Ok(ExitCode::SUCCESS),
        (0, _) => Err(defect("tasks", backlog.lost, backlog.done_twice)),
        (lost, _) => Err(defect("edits", lost, 0)),
    }
}

/// The one thing that must never happen.
fn defect(what: &str, lost: usize, twice: usize) -> Problem {
    Problem {
        exit: 1,
        code: "work_lost",
        message: format!("{lost} {what} were lost and {twice} done twice with Baton: a defect"),
        next: "baton doctor, and report what it prints".to_owned(),
        details: serde_json::json!({ "lost": lost, "done_twice": twice }),
    }
}

/// Something of the machine kept the demo from running.
fn unable(what: &str, source: &dyn std::fmt::Display) -> Problem {
    Problem {
        exit: 4,
        code: "demo",
        message: format!("the demo could not go on: {what}: {source}"),
        next: "baton doctor".to_owned(),
        details: serde_json::json!({}),
    }
}
