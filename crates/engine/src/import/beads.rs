//! The JSONL export of beads: one issue a line.
//!
//! Owns what its fields mean here. An epic comes after its children, because it is finished when
//! they are; ties that say nothing about order are passed over; a status or a kind of tie that is
//! not known is refused where it stands.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use super::Format;
use super::found::{At, Found, Identity, Reference, Status, status};
use crate::escape::line as shown;
use crate::failure::Failure;

const STATUSES: &str = "open, in_progress, blocked, deferred, closed, tombstone, pinned, hooked";

/// Ties that say what comes first.
const ORDERS: [&str; 2] = ["blocks", "waits-for"];
const CONTAINS: &str = "parent-child";
/// Ties that say nothing about order.
const LOOSE: [&str; 16] = [
    "related",
    "relates-to",
    "relates_to",
    "discovered-from",
    "replies-to",
    "duplicates",
    "supersedes",
    "tracks",
    "caused-by",
    "validates",
    "authored-by",
    "assigned-to",
    "approved-by",
    "attests",
    "delegated-from",
    "until",
];
/// Kinds of issues that nobody works on.
const NO_WORK: [&str; 6] = ["message", "event", "gate", "molecule", "agent", "role"];

#[derive(Deserialize)]
struct Issue {
    id: String,
    title: String,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    design: Option<String>,
    #[serde(default)]
    acceptance_criteria: Option<String>,
    #[serde(default)]
    notes: Option<String>,
    #[serde(default)]
    status: Option<String>,
    #[serde(default)]
    priority: Option<u8>,
    #[serde(default)]
    issue_type: Option<String>,
    #[serde(default)]
    assignee: Option<String>,
    #[serde(default)]
    labels: Option<Vec<String>>,
    #[serde(default)]
    dependencies: Option<Vec<Dependency>>,
}

#[derive(Deserialize)]
struct Dependency {
    issue_id: String,
    depends_on_id: String,
    #[serde(rename = "type")]
    kind: String,
}

/// Newer exports have other things than issues in them.
#[derive(Deserialize)]
struct Record {
    #[serde(default, rename = "_type")]
    record: Option<String>,
}

pub(super) fn read(file: &Path, text: &str) -> Result<Vec<Found>, Failure> {
    let mut found: Vec<Found> = Vec::new();
    let mut lines: BTreeMap<String, usize> = BTreeMap::new();
    // Which issue is contained in which.
    let mut contained: Vec<(String, usize)> = Vec::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let number = index + 1;
        if is_other_record(line) {
            continue;
        }
        let issue: Issue = serde_json::from_str(line).map_err(|error| {
            let detail = error.to_string();
            let detail = detail.rsplit_once(" at line ").map_or(&*detail, |(detail, _)| detail);
            At::new(file, number, error.column().max(1)).wrong(detail)
        })?;
        let at = |field: &str| At::new(file, number, column_of(line, field));
        if let Some(before) = lines.insert(issue.id.clone(), number) {
            let detail = format!("{} stands in line {before} already", shown(&issue.id));
            return Err(at("id").wrong(detail));
        }
        for tie in issue.dependencies.iter().flatten() {
            if tie.issue_id != issue.id {
                let detail = format!("a dependency of {} stands here", shown(&tie.issue_id));
                return Err(at("dependencies").wrong(detail));
            }
            if tie.kind == CONTAINS {
                contained.push((tie.depends_on_id.clone(), found.len()));
            }
        }
        found.push(one(&issue, &at)?);
    }
    if found.is_empty() {
        return Err(At::new(file, 1, 1).wrong("it has no issue"));
    }
    let places: BTreeMap<String, usize> =
        found.iter().enumerate().filter_map(|(place, one)| Some((id(one)?, place))).collect();
    for (parent, child) in contained {
        if let Some(parent) = places.get(&parent) {
            found[*parent].parts.push(child);
        }
    }
    Ok(found)
}

fn id(found: &Found) -> Option<String> {
    match &found.identity {
        Identity::Id(id) => Some(id.clone()),
        _ => None,
    }
}

fn is_other_record(line: &str) -> bool {
    let record: Option<Record> = serde_json::from_str(line).ok();
    record.and_then(|one| one.record).is_some_and(|record| record != "issue")
}

fn one(issue: &Issue, at: &dyn Fn(&str) -> At) -> Result<Found, Failure> {
    let identity = Identity::Id(issue.id.clone());
    let mut found = Found::new(Format::Beads, at("title"), identity, &issue.title);
    let word = issue.status.as_deref().unwrap_or("open");
    let known = STATUSES.split(", ").any(|status| status == word);
    found.status = status(word).filter(|_| known).ok_or_else(|| {
        at("status").wrong(format!("\"{}\" is no status of beads: {STATUSES}", shown(word)))
    })?;
    found.state_there = Some(word.to_owned());
    let kind = issue.issue_type.as_deref().unwrap_or("task");
    if NO_WORK.contains(&kind) {
        found.status = Status::Other;
        found.state_there = Some(kind.to_owned());
    }
    if issue.priority.is_some_and(|priority| priority > baton_core::tasks::PRIORITY_MAX) {
        return Err(at("priority").wrong("a priority is 0 to 4"));
    }
    found.priority = issue.priority;
    found.assigned_to = issue.assignee.clone().filter(|name| !name.is_empty());
    found.labels = issue.labels.clone().unwrap_or_default();
    if !matches!(kind, "task" | "") && found.labels.iter().all(|label| label != kind) {
        found.labels.push(kind.to_owned());
    }
    found.body = body(issue);
    for tie in issue.dependencies.iter().flatten() {
        let kind = tie.kind.as_str();
        if ORDERS.contains(&kind) {
            found.after.push(Reference { name: tie.depends_on_id.clone(), at: at("dependencies") });
        } else if kind != CONTAINS && !LOOSE.contains(&kind) {
            let detail = format!("\"{}\" is no kind of dependency that is known", shown(kind));
            return Err(at("dependencies").wrong(detail));
        }
    }
    Ok(found)
}

fn body(issue: &Issue) -> Option<String> {
    let mut parts: Vec<String> = Vec::new();
    for (heading, text) in [
        ("", &issue.description),
        ("## Design\n\n", &issue.design),
        ("## Acceptance criteria\n\n", &issue.acceptance_criteria),
        ("## Notes\n\n", &issue.notes),
    ] {
        if let Some(text) = text.as_deref().filter(|text| !text.trim().is_empty()) {
            parts.push(format!("{heading}{}", text.trim_end()));
        }
    }
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}

/// Where a field's name stands in a line; its beginning if that cannot be told.
fn column_of(line: &str, field: &str) -> usize {
    // Within a string the quotes would be escaped.
    let place = line.find(&format!("\"{field}\""));
    place.map_or(1, |place| line[..place].chars().count() + 1)
}
