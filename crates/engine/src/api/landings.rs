//! Requests about landing branches.
//!
//! Owns what a caller may say. Refuses to know what may happen.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Lands a branch.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, clap::Args)]
pub struct Land {
    /// The branch [default: the one this tree is on]
    #[arg(value_name = "BRANCH")]
    pub branch: Option<String>,
    /// The task it is for [default: the one its tree was made for]
    #[arg(long, value_name = "ID")]
    pub task: Option<String>,
    /// It takes back what others landed, and is meant to
    #[arg(long)]
    #[serde(default)]
    pub takes_back: bool,
    /// Only put it in line, and come back at once
    #[arg(long)]
    #[serde(default)]
    pub queue: bool,
}

/// What stands in line.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, clap::Args)]
pub struct List {
    /// Also all that are over, not only the last ones
    #[arg(long)]
    #[serde(default)]
    pub all: bool,
}

/// Moves the queue on.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, clap::Args)]
pub struct Run {
    /// Until nothing more can be done now, then end
    #[arg(long)]
    #[serde(default)]
    pub once: bool,
}
