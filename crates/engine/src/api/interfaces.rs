//! Requests about interfaces: files that others build on.
//!
//! Owns what a caller may say. Refuses to know what may happen.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Marks files as what others build on.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, clap::Args)]
pub struct Add {
    /// What it is called: letters, digits and -_.:@+~,# with / between the parts
    #[arg(value_name = "NAME")]
    pub name: String,
    /// The files, each by its name
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<String>,
}

/// Hands an interface on.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, clap::Args)]
pub struct Give {
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Who keeps it from now on: a session's id or name
    #[arg(long, value_name = "SESSION")]
    pub to: String,
}
