//! The request about conflicts.
//!
//! Owns what a caller may say. Refuses to know what is found.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Looks at every pair of live trees, and at each against the target.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, clap::Args)]
pub struct Conflicts {
    /// Look again whenever a tree changes, and show what is new, until Ctrl-C
    #[arg(long)]
    #[serde(default)]
    pub watch: bool,
}
