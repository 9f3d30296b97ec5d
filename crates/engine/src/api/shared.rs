//! Requests about what sessions share: state, commands that run once, notes.
//!
//! A part of the list of requests; see [`crate::api`].

use std::ffi::OsString;

use baton_core::key::Key;
use baton_core::notes::Kind;
use baton_core::state::Read;
use baton_core::time::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{since_text, span};

/// Conditions of a write, and whether it is a draft.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, clap::Args)]
pub struct Conditions {
    /// Refuse (exit 3) unless the key is at this version; 0: unless it has no value
    #[arg(long, value_name = "N")]
    pub if_version: Option<u64>,
    /// Refuse (exit 3) if this key has changed since it was read at this version
    #[arg(long, value_name = "KEY@V")]
    #[serde(default)]
    pub reads: Vec<Read>,
    /// Keep it to yourself until `baton state publish`
    #[arg(long)]
    #[serde(default)]
    pub draft: bool,
}

/// What is known of a key that is watched.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, clap::Args)]
pub struct Watch {
    #[arg(value_name = "KEY")]
    pub key: Key,
    /// Begin with the value that is there, if its version is above this
    #[arg(long, value_name = "N")]
    pub after: Option<u64>,
    /// End once the key is at this version
    #[arg(long, value_name = "N")]
    pub until_version: Option<u64>,
    /// Give up after this long
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub timeout: Option<Span>,
}

/// Runs a command unless it has succeeded under this key.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, clap::Args)]
pub struct Once {
    /// What names the work: the same key is the same work
    #[arg(value_name = "KEY")]
    pub key: Key,
    /// A success older than this does not count
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub ttl: Option<Span>,
    /// Wait this long for whoever runs it now instead of being refused
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub wait: Option<Span>,
    /// The command and its arguments; no shell is involved
    #[arg(last = true, required = true, value_name = "CMD")]
    #[schemars(with = "Vec<String>")]
    pub command: Vec<OsString>,
}

/// Writes something down for whoever comes next.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, clap::Args)]
pub struct Note {
    /// decision, lesson or progress
    #[arg(value_name = "KIND", value_parser = note_kind)]
    pub kind: Kind,
    #[arg(value_name = "TEXT")]
    pub text: String,
    /// The task it belongs to
    #[arg(long, value_name = "ID")]
    pub task: Option<String>,
    /// The rule of the project it is about
    #[arg(long, value_name = "N")]
    pub rule: Option<u32>,
}

/// Reads notes, newest last.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, clap::Args)]
pub struct Notes {
    /// Only what came later: 2h, 2026-11-15, or after a position such as 1.42
    #[arg(long, value_name = "TIME|POSITION", value_parser = since_text)]
    pub since: Option<String>,
    /// Only this kind
    #[arg(long, value_name = "KIND", value_parser = note_kind)]
    pub kind: Option<Kind>,
    /// Only those of this task
    #[arg(long, value_name = "ID")]
    pub task: Option<String>,
    /// Only those about this rule of the project
    #[arg(long, value_name = "N", conflicts_with_all = ["kind", "task"])]
    pub rule: Option<u32>,
    /// Only the newest so many
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub limit: u32,
}

fn note_kind(text: &str) -> Result<Kind, String> {
    let kinds = [Kind::Decision, Kind::Lesson, Kind::Progress];
    kinds
        .into_iter()
        .find(|kind| kind.word() == text)
        .ok_or_else(|| "there are decision, lesson and progress".to_owned())
}
