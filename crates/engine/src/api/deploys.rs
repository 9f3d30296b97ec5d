//! Requests about deploys.
//!
//! Owns what a caller may say. Refuses to know what may happen.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Ships a commit to a target.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, clap::Args)]
pub struct Deploy {
    /// The target, as [deploy.TARGET] in baton.toml names it
    #[arg(value_name = "TARGET")]
    pub target: String,
    /// What to ship; otherwise HEAD, and with --rollback what was live before
    #[arg(long, value_name = "REF")]
    pub commit: Option<String>,
    /// Ship something older again; only what was live before
    #[arg(long)]
    #[serde(default)]
    pub rollback: bool,
}

/// What was shipped.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, clap::Args)]
pub struct Deploys {
    /// Only of this target
    #[arg(value_name = "TARGET")]
    pub target: Option<String>,
}
