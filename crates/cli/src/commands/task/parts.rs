//! `task split` and `task results`: dividing a task, and what came of its parts.
//!
//! Owns their words. All text of agents goes through `shown` (S20).

use std::fmt::Write as _;
use std::process::ExitCode;

use baton_core::task::State;
use baton_core::task::split::{Join, OnFailure, Outcome};
use baton_core::tasks::splitting::Divided;
use baton_engine::api::tasks as api;
use baton_engine::failure::Failure;
use baton_engine::tasking::splitting::{self, FILE_BYTES_MAX, PartResult, Results};

use super::pages::quoted;
use super::text_of;
use crate::desk::{Desk, Outcome as Said};
use crate::news::notices_words;
use crate::render::{self, Paint, paint, shown};
use crate::words::Problem;

pub(super) fn split(desk: &mut Desk, mut wanted: api::Split) -> Said {
    wanted.children = match &wanted.file {
        Some(file) => {
            let read = text_of(desk, file, "the parts", FILE_BYTES_MAX + 1)?;
            let text = read.unwrap_or_default();
            if text.len() as u64 > FILE_BYTES_MAX {
                let message = format!("a file of parts has at most {FILE_BYTES_MAX} bytes");
                return Err(Problem::usage(message, "name fewer parts, or shorter texts"));
            }
            splitting::parts_of(file, &text)?
        }
        // Whoever did not type them has them as they are.
        None if wanted.each.is_empty() => wanted.children,
        None => {
            let child = |title: String| api::Child { title, ..api::Child::default() };
            std::mem::take(&mut wanted.each).into_iter().map(child).collect()
        }
    };
    let Desk { workspace, actor, cwd, operation, .. } = desk;
    let divided: Result<Divided, Failure> =
        splitting::split(workspace, actor, cwd, &wanted, operation.as_deref());
    desk.answer(&divided?, divided_words);
    Ok(ExitCode::SUCCESS)
}

fn divided_words(divided: &Divided, colour: bool) -> String {
    let whole = &divided.whole;
    let mut text = format!(
        "{} {} \"{}\", now {}\n",
        paint("divided", Paint::Green, colour),
        whole.task,
        shown(&whole.title),
        whole.state.name()
    );
    for part in &divided.parts {
        let _ = writeln!(text, "  {} \"{}\"", part.task, shown(&part.title));
    }
    if let Some(then) = &divided.then {
        let when = joined_when(divided.join);
        let _ = writeln!(text, "  then {} \"{}\", {when}", then.task, shown(&then.title));
    }
    if !whole.released.is_empty() {
        let what = render::resources(&whole.released);
        let _ = writeln!(text, "{} {what}", paint("released", Paint::Green, colour));
    }
    let next = format!("baton task results {}", whole.task);
    let _ = writeln!(text, "{}: {next}", paint("next", Paint::Cyan, colour));
    text + &notices_words(&whole.notices, colour)
}

fn joined_when(join: Join) -> String {
    match join {
        Join::All => "when all have ended".to_owned(),
        Join::Any => "when one is done".to_owned(),
        Join::AtLeast(count) => format!("when {count} are done"),
    }
}

pub(super) fn results(desk: &mut Desk, task: &str) -> Said {
    let found = splitting::results(&mut desk.workspace, task)?;
    desk.answer(&found, results_words);
    Ok(ExitCode::SUCCESS)
}

pub(super) fn results_words(results: &Results, colour: bool) -> String {
    let outcome = match results.outcome {
        Some(Outcome::Met) => "joined".to_owned(),
        Some(Outcome::Missed) => "ended, too few are done".to_owned(),
        Some(Outcome::GivenUp) => "given up".to_owned(),
        None => joined_when(results.join),
    };
    let counts = [
        (results.done, "done"),
        (results.failed, "failed"),
        (results.cancelled, "cancelled"),
        (results.left, "to come"),
    ];
    let counts: Vec<String> = counts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    let stop = match results.on_failure {
        OnFailure::Stop => "; a failure stops the rest",
        OnFailure::Continue => "",
    };
    let mut text = format!(
        "{} of {} \"{}\": {}; {outcome}{stop}\n",
        paint("Parts", Paint::Bold, colour),
        results.task,
        shown(&results.title),
        counts.join(", ")
    );
    for (place, part) in results.parts.iter().enumerate() {
        part_words(&mut text, &format!("{}.", place + 1), part, 1, colour);
    }
    if let Some(then) = &results.then {
        part_words(&mut text, "then", then, 1, colour);
    }
    text
}

fn part_words(text: &mut String, mark: &str, part: &PartResult, depth: usize, colour: bool) {
    let tint = match part.state {
        State::Done => Paint::Green,
        State::Failed => Paint::Red,
        _ => Paint::Yellow,
    };
    let why = match (&part.reason, part.state) {
        (Some(why), State::Failed | State::Cancelled | State::Blocked | State::Waiting) => {
            format!(": {}", shown(why))
        }
        _ => String::new(),
    };
    let indent = "  ".repeat(depth);
    let state = paint(part.state.name(), tint, colour);
    let _ = writeln!(text, "{indent}{mark} {} \"{}\", {state}{why}", part.task, shown(&part.title));
    let long = [("done", &part.report_done), ("not done", &part.report_not_done)];
    for (name, words) in long {
        if let Some(words) = words {
            let lines = quoted(words).replace("  | ", &format!("{indent}    | "));
            let _ = write!(text, "{indent}  {name}:\n{lines}");
        }
    }
    if let Some(result) = &part.result {
        let pretty = serde_json::to_string_pretty(result).unwrap_or_default();
        let lines = quoted(&pretty).replace("  | ", &format!("{indent}    | "));
        let _ = write!(text, "{indent}  result:\n{lines}");
    }
    for (place, inner) in part.parts.iter().enumerate() {
        part_words(text, &format!("{}.", place + 1), inner, depth + 1, colour);
    }
}
