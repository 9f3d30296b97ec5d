//! Requests about reviews, dead letters and votes.
//!
//! Owns what a caller may say. Refuses to know what may happen.

use baton_core::id::Token;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Hands in a commit for review.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, clap::Args)]
pub struct Submit {
    #[arg(value_name = "ID")]
    pub task: String,
    /// The commit that holds the work
    #[arg(long, value_name = "SHA")]
    pub commit: String,
    /// Who may review it: role:NAME, or a session; anyone but the author when not given
    #[arg(long, value_name = "WHO")]
    pub to: Option<String>,
    /// What was done
    #[arg(long, value_name = "TEXT", requires = "report_not_done")]
    pub report_done: Option<String>,
    /// What was not done; if that is nothing, say "nothing"
    #[arg(long, value_name = "TEXT", requires = "report_done")]
    pub report_not_done: Option<String>,
    /// Refuse (exit 3) unless this is the token of the attempt
    #[arg(long, value_name = "TOKEN")]
    pub token: Option<Token>,
}

/// Takes back what was handed in.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, clap::Args)]
pub struct Withdraw {
    #[arg(value_name = "ID")]
    pub task: String,
    #[arg(long, value_name = "TEXT")]
    pub why: Option<String>,
    /// Refuse (exit 3) unless this is the token of the attempt
    #[arg(long, value_name = "TOKEN")]
    pub token: Option<Token>,
}

/// Approves what was handed in.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, clap::Args)]
pub struct Approve {
    #[arg(value_name = "ID")]
    pub task: String,
    /// Refuse (exit 3) unless this commit stands submitted
    #[arg(long, value_name = "SHA")]
    pub commit: Option<String>,
    #[arg(long, value_name = "TEXT")]
    pub why: Option<String>,
    /// Refuse (exit 3) unless this is the token of your review
    #[arg(long, value_name = "TOKEN")]
    pub token: Option<Token>,
}

/// Rejects what was handed in.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, clap::Args)]
pub struct Reject {
    #[arg(value_name = "ID")]
    pub task: String,
    /// What must change
    #[arg(long, value_name = "TEXT")]
    pub feedback: String,
    /// Refuse (exit 3) unless this commit stands submitted
    #[arg(long, value_name = "SHA")]
    pub commit: Option<String>,
    /// Refuse (exit 3) unless this is the token of your review
    #[arg(long, value_name = "TOKEN")]
    pub token: Option<Token>,
}

/// Gives a task new attempts (a person's right).
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, clap::Args)]
pub struct Revive {
    #[arg(value_name = "ID")]
    pub task: String,
    /// So many from now on; as many as it had when not given
    #[arg(long, value_name = "N")]
    pub attempts: Option<u32>,
    #[arg(long, value_name = "TEXT")]
    pub why: String,
}

/// Votes on a subject.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, clap::Args)]
pub struct Vote {
    /// What the vote is about: any words
    #[arg(value_name = "SUBJECT")]
    pub subject: String,
    /// approve, reject, or any other word
    #[arg(value_name = "VALUE")]
    pub value: String,
    #[arg(long, value_name = "TEXT")]
    pub why: String,
}
