//! What a handoff must say, and what of it is missing.
//!
//! Owns the paper as it is handed in, from options or from a file, and its limits. Invariant: all
//! that is missing is told at once.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::refused::{Missing, Refused};
use crate::handoff::{Artifact, Decision, Said, Setting, Work};
use crate::key::Key;
use crate::refusal::Refusal;
use crate::state::WRITES_MAX;
use crate::tasks::refused::{Brief, Refused as TaskRefused};
use crate::tasks::{REPORT_BYTES_MAX, RESULT_BYTES_MAX, TEXT_BYTES_MAX, fits};

/// The most entries of one list.
pub const ENTRIES_MAX: usize = 50;

/// Next steps that tell nobody where to begin.
const VAGUE: &[&str] = &[
    "as above",
    "ask",
    "carry on",
    "complete it",
    "complete the task",
    "continue",
    "continue the task",
    "continue the work",
    "continue this",
    "continue work",
    "continue working",
    "do it",
    "do the rest",
    "finish",
    "finish it",
    "finish the rest",
    "finish the task",
    "finish the work",
    "finish up",
    "go on",
    "it",
    "keep going",
    "keep working",
    "more work",
    "n a",
    "na",
    "next",
    "none",
    "nothing",
    "proceed",
    "same",
    "same as above",
    "same as remaining",
    "see above",
    "see below",
    "see remaining",
    "see state",
    "tbd",
    "the rest",
    "todo",
    "unknown",
    "work on it",
];

/// A handoff as its giver wrote it: anything may be missing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Paper {
    pub state: Option<String>,
    pub changed: Option<String>,
    pub remaining: Option<String>,
    pub next: Option<String>,
    pub decisions: Vec<Decided>,
    pub blockers: Vec<String>,
    pub assumptions: Vec<String>,
    pub constraints: Vec<String>,
    pub result: Option<Value>,
    pub artifacts: Vec<String>,
    pub set: BTreeMap<Key, Value>,
}

/// A decision as it is written: `what: why`, or both by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Decided {
    Line(String),
    Parts { what: String, why: String },
}

impl Decided {
    fn parse(&self) -> Result<Decision, Missing> {
        let (text, parsed) = match self {
            Self::Line(line) => (line.clone(), Decision::parse(line)),
            Self::Parts { what, why } => (what.clone(), Decision::parse(&format!("{what}: {why}"))),
        };
        parsed.ok_or(Missing::Why { decision: text.chars().take(200).collect() })
    }
}

/// What the giver said, when it is enough. `work` is what git showed.
pub fn complete(
    paper: &Paper,
    artifacts: &[Artifact],
    work: Option<&Work>,
    task: &Brief,
) -> Result<Said, Refusal> {
    limits(paper)?;
    let mut missing = Vec::new();
    let text = |text: &Option<String>| text.clone().filter(|text| !text.trim().is_empty());
    let mut needed = |given: Option<String>, what: Missing| {
        if given.is_none() {
            missing.push(what);
        }
        given.unwrap_or_default()
    };
    let state = needed(text(&paper.state), Missing::State);
    let remaining = needed(text(&paper.remaining), Missing::Remaining);
    let given = text(&paper.next);
    let concrete = given.clone().filter(|next| is_concrete(next));
    let next = needed(concrete, Missing::Next { given });
    let mut decisions = Vec::new();
    for decided in &paper.decisions {
        match decided.parse() {
            Ok(decision) => decisions.push(decision),
            Err(without) => missing.push(without),
        }
    }
    let changed = text(&paper.changed);
    let files = work.map_or(0, |work| work.changed.len());
    let touched = files > 0
        || work.is_some_and(|work| !work.commits.is_empty())
        || changed.as_deref().is_some_and(says_something);
    if touched && paper.decisions.is_empty() {
        missing.push(Missing::Decisions { files });
    }
    if paper.result.as_ref().is_some_and(|result| !has_status(result)) {
        missing.push(Missing::Status);
    }
    if !missing.is_empty() {
        return Err(Refused::Incomplete { task: task.clone(), missing }.into());
    }
    let set = paper.set.iter().map(|(key, value)| (key.clone(), value.clone()));
    Ok(Said {
        state,
        changed,
        remaining,
        next,
        decisions,
        blockers: paper.blockers.clone(),
        assumptions: paper.assumptions.clone(),
        constraints: paper.constraints.clone(),
        result: paper.result.clone(),
        artifacts: artifacts.to_vec(),
        set: set.map(|(key, value)| Setting { key, value }).collect(),
    })
}

fn limits(paper: &Paper) -> Result<(), Refusal> {
    for (what, text) in [
        ("state", &paper.state),
        ("changed", &paper.changed),
        ("remaining", &paper.remaining),
        ("next step", &paper.next),
    ] {
        let max = if what == "next step" { TEXT_BYTES_MAX } else { REPORT_BYTES_MAX };
        fits(what, text.as_deref(), max)?;
    }
    let result = paper.result.as_ref().map(Value::to_string);
    fits("result", result.as_deref(), RESULT_BYTES_MAX)?;
    for (what, list) in [
        ("blockers", &paper.blockers),
        ("assumptions", &paper.assumptions),
        ("constraints", &paper.constraints),
        ("artifacts", &paper.artifacts),
    ] {
        count(what, list.len(), ENTRIES_MAX)?;
        for entry in list {
            fits(what, Some(entry), TEXT_BYTES_MAX)?;
        }
    }
    count("decisions", paper.decisions.len(), ENTRIES_MAX)?;
    for decided in &paper.decisions {
        let bytes = match decided {
            Decided::Line(line) => line.len(),
            Decided::Parts { what, why } => what.len() + why.len(),
        };
        if bytes > TEXT_BYTES_MAX {
            return Err(Refusal::TooLong { what: "decision", bytes_max: TEXT_BYTES_MAX });
        }
    }
    count("values to set", paper.set.len(), WRITES_MAX)
}

fn count(what: &'static str, given: usize, max: usize) -> Result<(), Refusal> {
    match given > max {
        true => Err(TaskRefused::TooMany { what, max }.into()),
        false => Ok(()),
    }
}

/// Words only, in lower case, one space between.
fn plain(text: &str) -> String {
    let lower = text.to_lowercase();
    let words = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

fn says_something(text: &str) -> bool {
    !matches!(plain(text).as_str(), "" | "nothing" | "none" | "nothing yet" | "n a" | "na")
}

/// A step that names something: two words at least, and not one of the usual empty phrases.
fn is_concrete(next: &str) -> bool {
    let plain = plain(next);
    plain.contains(' ') && !VAGUE.contains(&plain.as_str())
}

fn has_status(result: &Value) -> bool {
    let status = result.get("status");
    status.and_then(Value::as_str).is_some_and(|status| !status.trim().is_empty())
}
