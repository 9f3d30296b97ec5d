//! Requests about suggestions: changes that somebody would make to what another holds.
//!
//! Owns what a caller may say. Refuses to know what may happen.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Suggests a change to a path that somebody else holds.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, clap::Args)]
pub struct Suggest {
    /// The file that somebody else holds
    #[arg(value_name = "PATH")]
    pub path: String,
    /// The change, as `git diff` writes it; - is standard input
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    pub patch: PathBuf,
    #[arg(skip)]
    pub patch_text: String,
    /// What it is good for
    #[arg(long, value_name = "TEXT")]
    pub why: String,
}

/// Lists suggestions.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, clap::Args)]
pub struct Suggestions {
    /// Everybody's, answered ones too
    #[arg(long)]
    #[serde(default)]
    pub all: bool,
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub limit: usize,
}
