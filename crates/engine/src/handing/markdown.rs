//! A handoff as a Markdown file, in the form that `handoff offer --file` reads.
//!
//! Owns the form, for `handoff show --markdown` and for exports alike. What Baton knows stands
//! under a heading of its own, which is not read back. All text of agents is escaped (S20), and no
//! line of it can pass for a heading. The same handoff always gives the same text.

use std::fmt::Write as _;

use baton_core::handoff::{Artifact, End, Handoff, Known, Said, To};

use super::file::FACTS;
use crate::escape::{json, line, lines, prose};

/// Says in the facts which workspace the handoff is of.
pub(crate) fn mark(workspace: &str) -> String {
    format!("- workspace {workspace}\n")
}

pub fn of(one: &Handoff, title: &str, workspace: &str) -> String {
    let mut text = format!("# {}: {} {}\n", one.handoff, one.task, line(title));
    said(&one.said, &mut text);
    let _ = write!(text, "\n## {FACTS}\n\n");
    let _ = writeln!(
        text,
        "- from {} to {}, attempt {}, {}",
        line(&one.from.name),
        to(&one.to),
        one.attempt,
        one.offered_at
    );
    if let Some(end) = &one.end {
        let _ = writeln!(text, "- {}, {}", ended(end), end.at());
    }
    for declined in &one.declined {
        let (by, why) = (line(&declined.by.name), line(&declined.why));
        let _ = writeln!(text, "- declined by {by}: \"{why}\"");
    }
    known(&one.known, &mut text);
    text.push_str(&mark(workspace));
    text
}

fn said(said: &Said, text: &mut String) {
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
                let _ = writeln!(text, "- {}", lines(&entry, "  "));
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
    let set = said.set.iter().map(|one| format!("{}={}", one.key, json(&one.value, false)));
    list("Set", set.collect());
    if let Some(result) = &said.result {
        let _ = write!(text, "\n## Result\n\n```json\n{}\n```\n", json(result, true));
    }
}

fn to(to: &To) -> String {
    match to {
        To::Anyone => "anyone".to_owned(),
        To::Role(role) => format!("role {}", line(role)),
        To::Session(holder) => line(&holder.name),
    }
}

fn ended(end: &End) -> String {
    match end {
        End::Accepted { by, .. } => format!("accepted by {}", line(&by.name)),
        End::Declined { by, why, .. } => {
            format!("declined by {}, saying: \"{}\"", line(&by.name), line(why))
        }
        End::Withdrawn { .. } => "taken back".to_owned(),
        End::Returned { .. } => "not accepted in time and returned".to_owned(),
        End::Unanswered { .. } => "not accepted in time, and its giver is gone".to_owned(),
        End::Exhausted { .. } => "ended: nothing was new and no attempt was left".to_owned(),
    }
}

fn known(known: &Known, text: &mut String) {
    let work = &known.work;
    if !known.seen {
        text.push_str("- its tree could not be looked at\n");
    }
    for commit in &work.commits {
        let _ = writeln!(text, "- commit {} {}", line(&commit.commit), line(&commit.subject));
    }
    for path in &work.changed {
        let open = if work.uncommitted.contains(path) { ", uncommitted" } else { "" };
        let _ = writeln!(text, "- changed {}{open}", line(path));
    }
    if work.more {
        text.push_str("- more files are changed\n");
    }
    if let Some(check) = &known.last_check {
        let how = if check.passed { "passed" } else { "failed" };
        let _ = writeln!(text, "- check {} {how}, {}", line(&check.name), check.at);
    }
    for claim in &known.claims {
        let _ = writeln!(text, "- claims {}", line(&claim.to_string()));
    }
}
