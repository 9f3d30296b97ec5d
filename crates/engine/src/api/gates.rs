//! Requests about gates.
//!
//! Owns what a caller may say. What a path, a time or a commit means is settled by the engine.

use baton_core::gate::Kind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Files a gate.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, clap::Args)]
pub struct Add {
    /// What it stands before: a task, landing, deploy, or any words
    #[arg(long, value_name = "TASK|SUBJECT")]
    pub on: String,
    /// For a person: approval, credential, legal, deploy, decision; checked by Baton: command,
    /// time, file
    #[arg(long, value_name = "KIND", value_parser = kind)]
    pub kind: Kind,
    /// The question
    #[arg(long, value_name = "TEXT")]
    pub ask: String,
    /// What can be chosen
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    #[serde(default)]
    pub options: Vec<String>,
    /// The commit it is about: an answer holds for no other
    #[arg(long, value_name = "COMMIT")]
    pub at: Option<String>,
    /// For --kind time: 2h, or 2026-11-15T10:00:00Z
    #[arg(long, value_name = "TIME")]
    pub when: Option<String>,
    /// For --kind file: the file that must be there
    #[arg(long, value_name = "PATH")]
    pub path: Option<String>,
    /// For --kind command: what must succeed, without a shell
    #[arg(last = true, value_name = "COMMAND")]
    #[serde(default)]
    pub command: Vec<String>,
}

/// Decides a gate (a person's right).
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, clap::Args)]
pub struct Decide {
    #[arg(value_name = "ID")]
    pub gate: String,
    #[arg(long, value_name = "TEXT")]
    pub why: String,
    /// The commit this answer is about: refuse (exit 3) if the gate is about another
    #[arg(long, value_name = "COMMIT")]
    pub at: Option<String>,
    /// Which of the options
    #[arg(long, value_name = "OPTION")]
    pub option: Option<String>,
}

fn kind(text: &str) -> Result<Kind, String> {
    let names: Vec<&str> = Kind::ALL.iter().map(|kind| kind.name()).collect();
    let found = Kind::ALL.into_iter().find(|kind| kind.name() == text);
    found.ok_or_else(|| format!("write one of {}", names.join(", ")))
}
