//! A handoff as a Markdown file, in the form that `handoff offer --file` reads.
//!
//! Owns the form. What Baton knows stands under a heading of its own, which is not read back. All
//! text of agents is escaped (S20), and no line of it can pass for a heading.

use std::fmt::Write as _;

use baton_core::handoff::Artifact;
use baton_engine::handing::ShownHandoff;
use baton_engine::handing::file::FACTS;

use super::{ended_words, known_words, to_words};
use crate::render::{json_shown, shown, shown_lines};

pub(super) fn of(page: &ShownHandoff) -> String {
    let (one, said) = (&page.handoff, &page.handoff.said);
    let mut text = format!("# {}: {} {}\n", one.handoff, one.task, shown(&page.title));
    let mut long = |name: &str, body: &str| {
        let _ = write!(text, "\n## {name}\n\n{}\n", prose(body));
    };
    long("State", &said.state);
    if let Some(changed) = &said.changed {
        long("Changed", changed);
    }
    long("Remaining", &said.remaining);
    long("Next", &said.next);
    let mut list = |name: &str, entries: Vec<String>| {
        if !entries.is_empty() {
            let _ = write!(text, "\n## {name}\n\n");
            for entry in entries {
                let _ = writeln!(text, "- {}", shown_lines(&entry, "  "));
            }
        }
    };
    let decided = said.decisions.iter().map(|one| format!("{}: {}", one.what, one.why));
    list("Decisions", decided.collect());
    list("Blockers", said.blockers.clone());
    list("Assumptions", said.assumptions.clone());
    list("Constraints", said.constraints.clone());
    let named = |artifact: &Artifact| {
        let (Artifact::Path(name) | Artifact::Commit(name)) = artifact;
        name.clone()
    };
    list("Artifacts", said.artifacts.iter().map(named).collect());
    let set = said.set.iter().map(|one| format!("{}={}", one.key, json_shown(&one.value, false)));
    list("Set", set.collect());
    if let Some(result) = &said.result {
        let _ = write!(text, "\n## Result\n\n```json\n{}\n```\n", json_shown(result, true));
    }
    let _ = write!(text, "\n## {FACTS}\n\n");
    let _ = writeln!(
        text,
        "- from {} to {}, attempt {}, {}",
        shown(&one.from.name),
        to_words(&one.to),
        one.attempt,
        one.offered_at
    );
    if let Some(end) = &one.end {
        let _ = writeln!(text, "- {}", ended_words(end));
    }
    let _ = writeln!(text, "- {}", known_words(&one.known));
    for commit in &one.known.work.commits {
        let _ = writeln!(text, "- commit {} {}", shown(&commit.commit), shown(&commit.subject));
    }
    for path in &one.known.work.changed {
        let _ = writeln!(text, "- changed {}", shown(path));
    }
    text
}

/// A line that begins like a heading or a fence is set in by a space, and means the same.
fn prose(text: &str) -> String {
    let safe = shown_lines(text, "");
    let lines = safe.lines().map(|line| match line.starts_with(['#', '`']) {
        true => format!(" {line}"),
        false => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}
