//! Resources: pages that a client can read without a tool.
//!
//! Owns their addresses. Each is the answer of a command in words; nothing is composed here.

use rmcp::model::{Resource, ResourceTemplate};

use super::floor::Step;
use crate::arguments::Command;
use crate::commands::handoff::Handoff;
use crate::commands::status::Status;
use crate::commands::task::Task;

/// Entries of the journal on its page.
const JOURNAL_ENTRIES: u64 = 50;
const MIME: &str = "text/plain";

pub(super) fn list() -> Vec<Resource> {
    [
        ("baton://status", "status", "Sessions, tasks, claims, queue"),
        ("baton://journal", "journal", "What happened last, oldest first"),
    ]
    .map(|(uri, name, about)| Resource::new(uri, name).with_description(about).with_mime_type(MIME))
    .into()
}

pub(super) fn templates() -> Vec<ResourceTemplate> {
    [
        ("baton://task/{id}", "task", "Everything about one task"),
        ("baton://handoff/{id}", "handoff", "One handoff, with all that came before it"),
    ]
    .map(|(uri, name, about)| {
        ResourceTemplate::new(uri, name).with_description(about).with_mime_type(MIME)
    })
    .into()
}

/// What shows the page at this address.
pub(super) fn step(uri: &str) -> Option<Step> {
    let command = match uri.strip_prefix("baton://")?.split_once('/') {
        Some(("task", id)) if !id.is_empty() => Command::Task(Task::Show { task: id.to_owned() }),
        Some(("handoff", id)) if !id.is_empty() => {
            Command::Handoff(Handoff::Show { handoff: id.to_owned(), markdown: false })
        }
        _ => match uri {
            "baton://status" => Command::Status(Status::default()),
            "baton://journal" => return Some(Step::Journal(JOURNAL_ENTRIES)),
            _ => return None,
        },
    };
    Some(Step::Command(command))
}
