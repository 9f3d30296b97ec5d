//! Requests about working trees, rescued work and numbers.
//!
//! Owns what a caller may say. Refuses to know what may happen.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Makes a working tree with a branch of its own, all of it or nothing.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, clap::Args)]
pub struct New {
    /// What to call it, in lower-case letters, digits and dashes; otherwise by task or session
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// The task it is for
    #[arg(long, value_name = "ID")]
    pub task: Option<String>,
    /// What it starts from; otherwise the branch where work lands, else HEAD
    #[arg(long, value_name = "REF")]
    pub base: Option<String>,
    /// Its folder; otherwise beside the repository, or as [worktree] dir says
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Uncommitted files to copy into it, such as .env
    #[arg(long, value_name = "PATH", value_delimiter = ',')]
    #[serde(default)]
    pub copy: Vec<String>,
    /// So many ports in a row, leased as @port/N
    #[arg(long, value_name = "N", default_value_t = 0)]
    #[serde(default)]
    pub ports: u16,
    /// A command to run in it before it counts as made; everything after this is the command. One
    /// word alone is given to `sh -c`
    #[arg(long, value_name = "CMD", num_args = 1.., allow_hyphen_values = true)]
    #[serde(default)]
    pub setup: Vec<String>,
}

/// Removes a working tree; what is in it is saved first.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, clap::Args)]
pub struct Remove {
    /// Which one: its folder, its branch or its task
    #[arg(value_name = "PATH|BRANCH|TASK")]
    pub which: String,
    /// Even if dirty, unmerged, claimed or in use (a person's right); it is saved all the same
    #[arg(long)]
    #[serde(default)]
    pub force: bool,
}

/// Removes what is landed, clean and unused.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, clap::Args)]
pub struct Collect {
    /// Only tell what would be removed
    #[arg(long)]
    #[serde(default)]
    pub dry_run: bool,
}

/// Brings rescued work back.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, clap::Args)]
pub struct Restore {
    /// As `rescue list` shows it
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Into this working tree, where none of its files is changed; otherwise into this one
    #[arg(long, value_name = "DIR", conflicts_with = "branch")]
    pub to: Option<PathBuf>,
    /// As a new branch
    #[arg(long, value_name = "BRANCH")]
    pub branch: Option<String>,
}

/// Hands out the next number of a folder, once.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, clap::Args)]
pub struct NextNumber {
    /// The folder whose files are numbered, such as migrations
    #[arg(value_name = "DIR")]
    pub dir: String,
    /// In so many digits; otherwise as the files there have them
    #[arg(long, value_name = "N")]
    pub width: Option<usize>,
    /// Also claim the files whose names begin with it
    #[arg(long)]
    #[serde(default)]
    pub claim: bool,
}
