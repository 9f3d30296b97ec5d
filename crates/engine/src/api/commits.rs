//! Requests about commits and the remote.
//!
//! Owns what a caller may say. Refuses to know what may happen.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Fetches and compares.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, clap::Args)]
pub struct Sync {
    /// The remote
    #[arg(long, value_name = "NAME", default_value = "origin")]
    pub remote: String,
    /// Its branch [default: the remote's own default, else main]
    #[arg(long, value_name = "NAME")]
    pub branch: Option<String>,
    /// Move this tree to what came in: fast-forward, or own commits upon it
    #[arg(long)]
    #[serde(default)]
    pub pull: bool,
}

/// Commits exactly the named paths.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, clap::Args)]
pub struct Commit {
    /// The message
    #[arg(short, long, value_name = "MSG")]
    pub message: String,
    /// Files and folders; what this session claimed and changed when nothing is named
    #[arg(value_name = "PATH")]
    #[serde(default)]
    pub paths: Vec<String>,
    /// Also commit lines that another session wrote in them
    #[arg(long)]
    #[serde(default)]
    pub include_foreign: bool,
    /// Let go of the claims on what is committed
    #[arg(long)]
    #[serde(default)]
    pub release: bool,
}
