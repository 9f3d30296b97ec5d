//! `task graph`: waves and the critical path, as a page for terminals or as Mermaid text.
//!
//! Owns appearance only. All text of agents goes through `shown` (S20).

use std::fmt::Write as _;
use std::process::ExitCode;

use baton_core::task::State;
use baton_engine::tasking::graph::{self, Graph, Node};

use crate::desk::{Desk, Outcome};
use crate::render::{Paint, counted, paint, shown};

/// Titles are cut here in a graph; `show` has all of it.
const TITLE_MAX: usize = 60;
/// So many tasks of one wave are shown in words; the document has all.
const WAVE_MAX: usize = 50;

pub(super) fn run(desk: &mut Desk, mermaid: bool) -> Outcome {
    let found = graph::graph(&mut desk.workspace)?;
    desk.answer(&found, |found: &Graph, colour| match mermaid {
        true => drawing(found),
        false => page(found, colour),
    });
    Ok(ExitCode::SUCCESS)
}

fn title(node: &Node) -> String {
    let title = shown(&node.title);
    match title.chars().count() > TITLE_MAX {
        true => title.chars().take(TITLE_MAX - 1).chain(['…']).collect(),
        false => title,
    }
}

fn page(found: &Graph, colour: bool) -> String {
    if found.waves.is_empty() {
        return "no unfinished tasks\n".to_owned();
    }
    let mut text = String::new();
    for (place, wave) in found.waves.iter().enumerate() {
        let many = counted(wave.len() as u64, "task", "tasks");
        let heading = paint(&format!("Wave {}", place + 1), Paint::Bold, colour);
        let _ =
            writeln!(text, "{heading} · {many}{}", if place == 0 { ", can run now" } else { "" });
        for node in wave.iter().take(WAVE_MAX) {
            text.push_str(&line(node, colour));
        }
        if wave.len() > WAVE_MAX {
            let _ = writeln!(text, "    and {} more: --json", wave.len() - WAVE_MAX);
        }
    }
    let names: Vec<&str> = found.critical_path.iter().map(|task| task.as_str()).collect();
    let steps = counted(names.len() as u64, "step", "steps");
    let heading = paint("Critical path", Paint::Bold, colour);
    let _ = writeln!(text, "{heading} · {steps}: {}", names.join(" → "));
    if found.more {
        text.push_str("there are more tasks than are drawn\n");
    }
    text
}

fn line(node: &Node, colour: bool) -> String {
    let tint = match node.state {
        State::Active | State::Review => Paint::Green,
        State::Failed => Paint::Red,
        State::Open => Paint::Cyan,
        _ => Paint::Yellow,
    };
    let mark = if node.critical { "*" } else { " " };
    let who = node.owner.as_deref().map(|owner| format!(", {}", shown(owner)));
    let why = match (node.state, &node.reason) {
        (State::Open | State::Active, _) | (_, None) => String::new(),
        (_, Some(reason)) => format!(": {}", shown(reason)),
    };
    format!(
        "  {mark} {} \"{}\" {}{}{why}\n",
        node.task,
        title(node),
        paint(node.state.name(), tint, colour),
        who.unwrap_or_default()
    )
}

/// For pages that draw Mermaid. Nothing in a title ends the label it stands in.
fn drawing(found: &Graph) -> String {
    let mut text = "flowchart LR\n".to_owned();
    let nodes = || found.waves.iter().flatten();
    for node in nodes() {
        let label: String = title(node)
            .chars()
            .map(|character| match character {
                '"' | '#' | '`' | '<' | '>' | '[' | ']' | '{' | '}' | '|' => ' ',
                other => other,
            })
            .collect();
        let _ = writeln!(text, "  {0}[\"{0} {label} ({1})\"]", node.task, node.state.name());
    }
    for node in nodes() {
        for before in &node.after {
            let _ = writeln!(text, "  {before} --> {}", node.task);
        }
        if let Some(parent) = &node.parent {
            let _ = writeln!(text, "  {} -.-> {parent}", node.task);
        }
    }
    text
}
