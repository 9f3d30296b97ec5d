//! `state watch`: each new version of a key, as it comes.
//!
//! Owns the waiting: it sleeps on news of the store, Ctrl-C and a reader that goes away, and looks
//! only when one of them wakes it.

use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use baton_engine::api::shared;
use baton_engine::failure::Failure;
use baton_engine::state::{Version, Watching};
use serde_json::json;

use crate::commands::journal::{is_pipe, reader_gone};
use crate::desk::{Desk, Outcome};
use crate::render::{json_shown, shown};
use crate::signals::Signals;
use crate::words::Problem;

/// A watcher looks this often even without news: a writer may die before it tells.
const LOOK_AT_LEAST_EVERY: Duration = Duration::from_secs(60);

pub(super) fn run(desk: &mut Desk, wanted: &shared::Watch) -> Outcome {
    let begun = Instant::now();
    let limit = wanted.timeout.map(|span| Duration::from_millis(span.0));
    let mut end = Signals::to_end()?;
    // Before the first look, so that nothing committed in between is missed.
    let mut news = desk.workspace.store.news().map_err(Failure::from)?;
    let mut watching = Watching::begin(&mut desk.workspace, &wanted.key)?;
    let reached = |version: u64| wanted.until_version.is_some_and(|until| version >= until);
    let mut seen = 0_u64;
    let there = watching.now().filter(|version| {
        wanted.after.is_some_and(|after| version.version > after) || reached(version.version)
    });
    let mut new: Vec<Version> = there.into_iter().collect();
    let out = std::io::stdout();
    loop {
        for version in &new {
            seen += 1;
            if put(version, desk.json).is_err() {
                return Ok(ExitCode::SUCCESS);
            }
        }
        if reached(watching.version()) {
            return Ok(ExitCode::SUCCESS);
        }
        let rest = limit.map_or(LOOK_AT_LEAST_EVERY, |limit| limit.saturating_sub(begun.elapsed()));
        if rest.is_zero() {
            return timed_out(wanted, watching.version(), seen);
        }
        let mut also: Vec<BorrowedFd<'_>> = vec![end.descriptor()];
        if is_pipe(&out) {
            also.push(out.as_fd());
        }
        news.wait(rest.min(LOOK_AT_LEAST_EVERY), &also).map_err(Failure::from)?;
        if end.came() || is_pipe(&out) && reader_gone(&out) {
            return Ok(ExitCode::SUCCESS);
        }
        new = watching.next(&mut desk.workspace)?;
    }
}

fn put(version: &Version, as_json: bool) -> std::io::Result<()> {
    let line = match as_json {
        true => serde_json::to_string(version).unwrap_or_default(),
        false => {
            let value = match version.deleted {
                true => "deleted".to_owned(),
                false => json_shown(&version.value, false),
            };
            let Version { key, version, by, .. } = version;
            format!("{key}  version {version}  by {}  {value}", shown(&by.name))
        }
    };
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush())
}

/// Nothing came of what was waited for; a plain watch that saw something has done its work.
fn timed_out(wanted: &shared::Watch, version: u64, seen: u64) -> Outcome {
    let key = &wanted.key;
    let message = match wanted.until_version {
        Some(until) => format!("{key} did not come to version {until} in time: it is at {version}"),
        None if seen > 0 => return Ok(ExitCode::SUCCESS),
        None => format!("{key} did not change in time: it is at version {version}"),
    };
    Err(Problem {
        exit: 1,
        code: "timed_out",
        message,
        next: format!("baton state history {key}, to see who changes it"),
        details: json!({ "key": key, "version": version }),
    })
}
