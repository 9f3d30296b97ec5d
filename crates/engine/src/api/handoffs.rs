//! Requests about handoffs and checkpoints.
//!
//! Owns what a caller may say. Nothing is required here that a rule asks for: whoever forgets
//! several things is told all of them at once.

use std::path::PathBuf;

use baton_core::handoff::Setting;
use baton_core::id::Token;
use baton_core::time::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::span;
use crate::handing::file::setting;

/// Offers a task to others.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, clap::Args)]
pub struct Offer {
    #[arg(value_name = "TASK")]
    pub task: String,
    /// For whom: a session's name or id, role:R, or anyone [default: anyone]
    #[arg(long, value_name = "WHOM")]
    pub to: Option<String>,
    /// Where the work stands
    // `state` is also the name of a command, but never of a common option.
    #[arg(long, value_name = "TEXT")]
    pub state: Option<String>,
    /// What was changed, in words; files and commits are added by Baton
    #[arg(long, value_name = "TEXT")]
    pub changed: Option<String>,
    /// What is left to do
    #[arg(long, value_name = "TEXT")]
    pub remaining: Option<String>,
    /// The step to begin with
    #[arg(long, value_name = "TEXT")]
    pub next: Option<String>,
    /// A decision and its reason; may be given more than once
    #[arg(long = "decision", value_name = "WHAT: WHY")]
    #[serde(default)]
    pub decisions: Vec<String>,
    /// What stands in the way
    #[arg(long = "blocker", value_name = "TEXT")]
    #[serde(default)]
    pub blockers: Vec<String>,
    /// What was taken for true without being checked
    #[arg(long = "assumption", value_name = "TEXT")]
    #[serde(default)]
    pub assumptions: Vec<String>,
    /// What must stay as it is
    #[arg(long = "constraint", value_name = "TEXT")]
    #[serde(default)]
    pub constraints: Vec<String>,
    /// A result for programs, with a status
    #[arg(long, value_name = "JSON", value_parser = json)]
    pub result: Option<Value>,
    /// Something that was made; may be given more than once
    #[arg(long = "artifact", value_name = "PATH|COMMIT")]
    #[serde(default)]
    pub artifacts: Vec<String>,
    /// A value of the shared state that is set when it is accepted; may be given more than once
    #[arg(long = "set", value_name = "KEY=JSON", value_parser = one_setting)]
    #[serde(default)]
    pub set: Vec<Setting>,
    /// All of this from a file: handoff.md, .json or .toml. Options come on top of it
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    pub file: Option<PathBuf>,
    /// How long it stands before it returns to you [default: 30m]
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub within: Option<Span>,
    /// Refuse (exit 3) unless this is the token of the attempt
    #[arg(long, value_name = "TOKEN")]
    pub token: Option<Token>,
}

/// Takes over what is offered.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, clap::Args)]
pub struct Accept {
    /// The handoff, such as t3-h1, or its task
    #[arg(value_name = "ID")]
    pub handoff: String,
    /// Although this session has an active task
    #[arg(long)]
    #[serde(default)]
    pub also: bool,
}

/// Will not have what is offered; the giver takes its own offer back so.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, clap::Args)]
pub struct Decline {
    /// The handoff, such as t3-h1, or its task
    #[arg(value_name = "ID")]
    pub handoff: String,
    /// Why; the giver is told
    #[arg(long, value_name = "TEXT")]
    pub why: String,
}

/// Lists offers.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, clap::Args)]
pub struct List {
    /// Only what this session may accept
    #[arg(long)]
    #[serde(default)]
    pub mine: bool,
    /// Every handoff of this task, oldest first
    #[arg(long, value_name = "ID")]
    pub task: Option<String>,
    /// Those that are over too, newest first
    #[arg(long)]
    #[serde(default)]
    pub all: bool,
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub limit: usize,
}

/// Saves what is known of the work.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, clap::Args)]
pub struct Checkpoint {
    /// This task; otherwise every active one of this session
    #[arg(value_name = "ID")]
    pub task: Option<String>,
    /// What you want to add
    #[arg(long, value_name = "TEXT")]
    pub note: Option<String>,
    /// Refuse (exit 3) unless this is the token of the attempt
    #[arg(long, value_name = "TOKEN")]
    pub token: Option<Token>,
}

fn json(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("it is not JSON: {error}"))
}

fn one_setting(text: &str) -> Result<Setting, String> {
    setting(text).map(|(key, value)| Setting { key, value })
}
