//! What stands in a file, before anything is decided: tasks as they were found, with their places.
//!
//! Owns the shape that all readers share, and what words of others' states and priorities mean.
//! Invariant: a word that is not known here is refused where it stands, never guessed at.

use std::path::{Path, PathBuf};

use super::Format;
use crate::failure::Failure;

/// Where something stands, for people: lines and columns begin at 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct At {
    pub(super) file: PathBuf,
    pub(super) line: usize,
    pub(super) column: usize,
}

impl At {
    pub(super) fn new(file: &Path, line: usize, column: usize) -> Self {
        Self { file: file.to_owned(), line, column }
    }

    pub(super) fn wrong(&self, detail: impl Into<String>) -> Failure {
        let (line, column) = (self.line, self.column);
        Failure::Malformed { path: self.file.clone(), line, column, detail: detail.into() }
    }
}

/// How an item is known again when it is read once more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Identity {
    /// It has an id of its own.
    Id(String),
    /// Only its title tells it apart, with those it stands below.
    Title(String),
    /// A task of a Baton workspace.
    Baton { workspace: String, task: String },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    Open,
    /// Somebody works on it there; here nobody does.
    Begun,
    Blocked,
    Parked,
    Done,
    Cancelled,
    /// It is something else than a task.
    Other,
}

/// Something that an item comes after, as it is named in the file.
#[derive(Clone, Debug)]
pub(super) struct Reference {
    pub(super) name: String,
    pub(super) at: At,
}

#[derive(Clone, Debug)]
pub(super) struct Found {
    /// The kind of file it stands in.
    pub(super) format: Format,
    pub(super) at: At,
    pub(super) identity: Identity,
    pub(super) title: String,
    pub(super) body: Option<String>,
    pub(super) status: Status,
    /// The state in the file's own word.
    pub(super) state_there: Option<String>,
    pub(super) assigned_to: Option<String>,
    pub(super) priority: Option<u8>,
    pub(super) phase: Option<u16>,
    pub(super) max_attempts: Option<u32>,
    pub(super) role: Option<String>,
    pub(super) labels: Vec<String>,
    pub(super) paths: Vec<Reference>,
    pub(super) after: Vec<Reference>,
    /// Items of the same reading that it comes after, by their place in it.
    pub(super) parts: Vec<usize>,
    /// Perhaps a task of this workspace: so it is if the title is the same.
    pub(super) perhaps: Option<String>,
}

impl Found {
    pub(super) fn new(format: Format, at: At, identity: Identity, title: &str) -> Self {
        Self {
            format,
            at,
            identity,
            title: title.to_owned(),
            body: None,
            status: Status::Open,
            state_there: None,
            assigned_to: None,
            priority: None,
            phase: None,
            max_attempts: None,
            role: None,
            labels: Vec::new(),
            paths: Vec::new(),
            after: Vec::new(),
            parts: Vec::new(),
            perhaps: None,
        }
    }
}

pub(super) const STATES: &str = "open, todo, in_progress, review, blocked, waiting, parked, \
                                 deferred, failed, done, closed, cancelled";

/// What a state is called in many places.
pub(super) fn status(word: &str) -> Option<Status> {
    let plain = word.trim().to_lowercase().replace(['-', ' '], "_");
    Some(match plain.as_str() {
        "open" | "todo" | "to_do" | "new" | "ready" | "backlog" | "pending" | "failed"
        | "reopened" => Status::Open,
        "active" | "in_progress" | "doing" | "started" | "claimed" | "hooked" | "review"
        | "in_review" => Status::Begun,
        "blocked" | "waiting" => Status::Blocked,
        "parked" | "deferred" | "on_hold" | "paused" => Status::Parked,
        "done" | "closed" | "complete" | "completed" | "finished" | "resolved" => Status::Done,
        "cancelled" | "canceled" | "wontfix" | "tombstone" => Status::Cancelled,
        "pinned" => Status::Other,
        _ => return None,
    })
}

pub(super) const PRIORITIES: &str = "0 to 4, P0 to P4, critical, high, medium, low, lowest";

pub(super) fn priority(word: &str) -> Option<u8> {
    let plain = word.trim().to_lowercase();
    let digits = plain.strip_prefix('p').unwrap_or(&plain);
    match digits.parse::<u8>() {
        Ok(number) if number <= baton_core::tasks::PRIORITY_MAX => Some(number),
        Ok(_) => None,
        Err(_) => Some(match plain.as_str() {
            "critical" | "urgent" | "highest" => 0,
            "high" => 1,
            "medium" | "normal" => 2,
            "low" => 3,
            "lowest" | "trivial" => 4,
            _ => return None,
        }),
    }
}
