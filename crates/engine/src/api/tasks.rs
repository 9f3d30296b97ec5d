//! Requests about tasks.
//!
//! Owns what a caller may say; each becomes a request of the rules in `baton_core::tasks` once its
//! paths are settled. Refuses to know what may happen.

use std::path::PathBuf;

use baton_core::id::Token;
use baton_core::task::Usd;
use baton_core::task::split::{Join, OnFailure};
use baton_core::tasks::ending::Class;
use baton_core::time::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::span;

/// Files a task.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, clap::Args)]
pub struct Add {
    /// What is to be done, in one line
    #[arg(value_name = "TITLE")]
    pub title: String,
    /// Everything else that whoever does it should know
    #[arg(long, value_name = "TEXT")]
    pub body: Option<String>,
    /// The same, from a file; - is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "body")]
    #[serde(skip)]
    pub body_file: Option<PathBuf>,
    /// 0 to 4; 0 is the most urgent [default: 2]
    #[arg(long, value_name = "N")]
    pub priority: Option<u8>,
    /// Not before these tasks are finished
    #[arg(long, value_name = "ID", num_args = 1..)]
    #[serde(default)]
    pub after: Vec<String>,
    /// Not before everything of earlier phases is finished
    #[arg(long, value_name = "N")]
    pub phase: Option<u16>,
    /// What it will touch: it is offered first to those who find that free
    #[arg(long, value_name = "GLOB", num_args = 1..)]
    #[serde(default)]
    pub paths: Vec<String>,
    /// Only for sessions of this role
    #[arg(long, value_name = "ROLE")]
    pub role: Option<String>,
    /// A label; may be given more than once
    #[arg(long = "label", value_name = "LABEL")]
    #[serde(default)]
    pub labels: Vec<String>,
    /// How often it may fail [default: 3]
    #[arg(long, value_name = "N")]
    pub max_attempts: Option<u32>,
    /// What it may cost
    #[arg(long, value_name = "USD", value_parser = usd)]
    pub budget_usd: Option<Usd>,
    /// The same key is one task: filing again gives the one there is
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,
    /// Refuse if one like it is filed already
    #[arg(long)]
    #[serde(default)]
    pub unique: bool,
}

/// Files the tasks that stand in files.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, clap::Args)]
pub struct Import {
    /// A checklist or a task (.md), beads' export (.jsonl), or a folder of task files
    #[arg(value_name = "FILE|DIR")]
    pub from: PathBuf,
    /// Only say what would be filed
    #[arg(long)]
    #[serde(default)]
    pub dry_run: bool,
    /// Tells lists apart that use the same titles or ids [default: checklist, files or beads]
    #[arg(long, value_name = "NAME")]
    pub source: Option<String>,
}

/// Changes a task.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, clap::Args)]
pub struct Update {
    #[arg(value_name = "ID")]
    pub task: String,
    #[arg(long, value_name = "TEXT")]
    pub title: Option<String>,
    #[arg(long, value_name = "TEXT")]
    pub body: Option<String>,
    /// The body from a file; - is standard input
    #[arg(long, value_name = "FILE", conflicts_with = "body")]
    #[serde(skip)]
    pub body_file: Option<PathBuf>,
    /// 0 to 4; 0 is the most urgent
    #[arg(long, value_name = "N")]
    pub priority: Option<u8>,
    /// Not before these are finished either
    #[arg(long, value_name = "ID", num_args = 1..)]
    #[serde(default)]
    pub after: Vec<String>,
    /// Another phase; 0 for none
    #[arg(long, value_name = "N")]
    pub phase: Option<u16>,
    /// What it will touch, instead of what was named before
    #[arg(long, value_name = "GLOB", num_args = 1..)]
    #[serde(default)]
    pub paths: Vec<String>,
    /// Another role; empty for none
    #[arg(long, value_name = "ROLE")]
    pub role: Option<String>,
    /// Its labels, instead of those it had
    #[arg(long = "label", value_name = "LABEL")]
    #[serde(default)]
    pub labels: Vec<String>,
    #[arg(long, value_name = "N")]
    pub max_attempts: Option<u32>,
    #[arg(long, value_name = "USD", value_parser = usd)]
    pub budget_usd: Option<Usd>,
    /// What is to be done next, for whoever looks or goes on
    #[arg(long = "next", value_name = "TEXT")]
    pub next_action: Option<String>,
    /// Refuse (exit 3) unless this is the token of the attempt
    #[arg(long, value_name = "TOKEN")]
    pub token: Option<Token>,
}

/// Takes the best task there is, or a named one.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, clap::Args)]
pub struct Take {
    /// This very one
    #[arg(value_name = "ID")]
    pub task: Option<String>,
    /// So many at once
    #[arg(short = 'n', value_name = "N", default_value_t = 1)]
    pub count: u32,
    /// Although this session has an active task
    #[arg(long)]
    #[serde(default)]
    pub also: bool,
    /// Also claim its paths, all or nothing with the task
    #[arg(long)]
    #[serde(default)]
    pub claim: bool,
    /// Tell the candidates and why one was chosen
    #[arg(long)]
    #[serde(default)]
    pub explain: bool,
}

/// Finishes a task.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, clap::Args)]
pub struct Done {
    #[arg(value_name = "ID")]
    pub task: String,
    /// What was done
    #[arg(long, value_name = "TEXT")]
    pub report_done: String,
    /// What was not done; if that is nothing, say "nothing"
    #[arg(long, value_name = "TEXT")]
    pub report_not_done: String,
    /// A result for programs
    #[arg(long, value_name = "JSON", value_parser = json)]
    pub result: Option<Value>,
    /// The commit that holds the work [default, where the policy asks for one: HEAD]
    #[arg(long, value_name = "SHA")]
    pub commit: Option<String>,
    /// Refuse (exit 3) unless this is the token of the attempt
    #[arg(long, value_name = "TOKEN")]
    pub token: Option<Token>,
}

/// Runs a check for a task and keeps what came of it.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, clap::Args)]
pub struct Check {
    #[arg(value_name = "ID")]
    pub task: String,
    /// The check: one that baton.toml names, or a name for the command. Without it and without a
    /// command, all that done needs
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// The command, where baton.toml does not say how the check is run
    #[arg(last = true, value_name = "CMD")]
    #[serde(default)]
    pub command: Vec<String>,
    /// Refuse (exit 3) unless this is the token of the attempt
    #[arg(long, value_name = "TOKEN")]
    pub token: Option<Token>,
}

/// Gives up an attempt.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, clap::Args)]
pub struct Fail {
    #[arg(value_name = "ID")]
    pub task: String,
    /// What went wrong
    #[arg(long, value_name = "TEXT")]
    pub why: String,
    /// Why it ended, when that was no failure: rate-limited, auth or killed. It then waits a while
    /// and no attempt is used
    #[arg(long, value_name = "CLASS", value_parser = class)]
    pub class: Option<Ended>,
    /// Refuse (exit 3) unless this is the token of the attempt
    #[arg(long, value_name = "TOKEN")]
    pub token: Option<Token>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    Failed,
    RateLimited,
    Auth,
    Killed,
}

impl From<Ended> for Class {
    fn from(ended: Ended) -> Self {
        match ended {
            Ended::Failed => Self::Failed,
            Ended::RateLimited => Self::RateLimited,
            Ended::Auth => Self::Auth,
            Ended::Killed => Self::Killed,
        }
    }
}

/// Puts a task aside.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, clap::Args)]
pub struct Park {
    #[arg(value_name = "ID")]
    pub task: String,
    /// What is to be done next, for whoever goes on
    #[arg(long, value_name = "TEXT")]
    pub next: String,
    /// Offer it again after this long; otherwise it stays aside until it is taken by name
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub back_in: Option<Span>,
    /// Refuse (exit 3) unless this is the token of the attempt
    #[arg(long, value_name = "TOKEN")]
    pub token: Option<Token>,
}

/// Says that a task cannot go on.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, clap::Args)]
pub struct Block {
    #[arg(value_name = "ID")]
    pub task: String,
    /// The task it waits for, or what it waits for in words
    #[arg(long, value_name = "ID|TEXT")]
    pub on: String,
    /// Refuse (exit 3) unless this is the token of the attempt
    #[arg(long, value_name = "TOKEN")]
    pub token: Option<Token>,
}

/// Cancels or reopens a task.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, clap::Args)]
pub struct Change {
    #[arg(value_name = "ID")]
    pub task: String,
    #[arg(long, value_name = "TEXT")]
    pub why: Option<String>,
    /// Refuse (exit 3) unless this is the token of the attempt
    #[arg(long, value_name = "TOKEN")]
    pub token: Option<Token>,
}

/// One part of a split, as a file names it.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Child {
    pub title: String,
    #[serde(default)]
    pub body: Option<String>,
    #[serde(default)]
    pub paths: Vec<String>,
    #[serde(default)]
    pub role: Option<String>,
    #[serde(default)]
    pub priority: Option<u8>,
    #[serde(default)]
    pub key: Option<String>,
}

/// Divides a task into parts.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, clap::Args)]
pub struct Split {
    #[arg(value_name = "ID")]
    pub task: String,
    /// The parts: one title each
    #[arg(long, value_name = "TITLE", num_args = 1.., required_unless_present = "file")]
    #[serde(skip)]
    pub each: Vec<String>,
    /// The parts from a file; - is standard input. An array of objects with title and, where
    /// wanted, body, paths, role, priority and key
    #[arg(long, value_name = "FILE", conflicts_with = "each")]
    #[serde(skip)]
    pub file: Option<PathBuf>,
    #[arg(skip)]
    pub children: Vec<Child>,
    /// One after the other, in the order in which they are named
    #[arg(long)]
    #[serde(default)]
    pub sequence: bool,
    /// When the parts count as done: all have ended, any one is done, or so many are [default: all]
    #[arg(long, value_name = "all|any|N", value_parser = join)]
    pub join: Option<Join>,
    /// What one failure does to parts that nobody has taken: continue, or stop, which cancels
    /// them [default: continue]
    #[arg(long, value_name = "continue|stop", value_parser = on_failure)]
    pub on_failure: Option<OnFailure>,
    /// A task that becomes ready when the parts are joined; its result is then the whole's
    #[arg(long, value_name = "TITLE")]
    pub then: Option<String>,
    /// The name of what the parts must keep to so that they fit together
    #[arg(long, value_name = "NAME")]
    pub interface: Option<String>,
    /// Refuse (exit 3) unless this is the token of the attempt
    #[arg(long, value_name = "TOKEN")]
    pub token: Option<Token>,
}

fn join(text: &str) -> Result<Join, String> {
    match text {
        "all" => Ok(Join::All),
        "any" => Ok(Join::Any),
        number => number
            .parse()
            .map(Join::AtLeast)
            .map_err(|_| "write all, any, or how many parts must be done".to_owned()),
    }
}

fn on_failure(text: &str) -> Result<OnFailure, String> {
    match text {
        "continue" => Ok(OnFailure::Continue),
        "stop" => Ok(OnFailure::Stop),
        _ => Err("write continue or stop".to_owned()),
    }
}

/// Lists tasks.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, clap::Args)]
pub struct List {
    /// Only in this state; may be given more than once. Otherwise everything unfinished
    #[arg(long, value_name = "STATE", value_parser = state)]
    #[serde(default)]
    pub state: Vec<baton_core::task::State>,
    /// Finished ones too
    #[arg(long)]
    #[serde(default)]
    pub all: bool,
    /// Only this session's
    #[arg(long)]
    #[serde(default)]
    pub mine: bool,
    #[arg(long, value_name = "LABEL")]
    pub label: Option<String>,
    #[arg(long, value_name = "ROLE")]
    pub role: Option<String>,
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub limit: usize,
}

fn usd(text: &str) -> Result<Usd, String> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let dollars: Option<f64> = text.parse().ok().filter(|_| plain);
    let wrong = || format!("{text:?} is not an amount: write dollars, for example 2.50");
    dollars.and_then(Usd::of_dollars).ok_or_else(wrong)
}

fn json(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("it is not JSON: {error}"))
}

fn class(text: &str) -> Result<Ended, String> {
    serde_json::from_value(Value::String(text.to_owned()))
        .map_err(|_| "write failed, rate-limited, auth or killed".to_owned())
}

fn state(text: &str) -> Result<baton_core::task::State, String> {
    let known = baton_core::task::State::ALL;
    let names: Vec<&str> = known.iter().map(|state| state.name()).collect();
    let found = known.into_iter().find(|state| state.name() == text);
    found.ok_or_else(|| format!("write one of {}", names.join(", ")))
}
