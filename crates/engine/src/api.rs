//! The list of requests: each defined once for the command line, and later for MCP and HTTP.
//!
//! A request is what a caller may say; the reply types are those of the rules in `baton_core`, so
//! `--json`, structured MCP output and an HTTP body are the same document. `--op-id` stands beside
//! the requests, not in them: the same request may be sent under any id.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use baton_core::id::Token;
use baton_core::time::Span;

pub mod commits;
pub mod conflicts;
pub mod deploys;
pub mod gates;
pub mod handoffs;
pub mod interfaces;
pub mod landings;
pub mod reviews;
pub mod shared;
pub mod suggestions;
pub mod tasks;
pub mod trees;

/// Takes a claim on paths and named resources, all or nothing.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, clap::Args)]
pub struct Claim {
    /// Paths, folders (`src/`), patterns (`src/*.rs`), names (`@deploy/prod`, `@gpu=2`)
    #[arg(required = true, value_name = "RES")]
    pub resources: Vec<String>,
    /// Hold together with others who only share
    #[arg(long)]
    #[serde(default)]
    pub shared: bool,
    /// Hold only against sessions in this working tree, as an edit hook does
    #[arg(long)]
    #[serde(default)]
    pub tree: bool,
    /// How long it lasts without a sign of life, for example 30m
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub ttl: Option<Span>,
    /// Queue for at most this long instead of being refused
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub wait: Option<Span>,
    /// 0 to 9; higher is served first
    #[arg(long, value_name = "N", default_value_t = 0)]
    #[serde(default)]
    pub priority: u8,
    /// Why, for whoever is refused because of it
    #[arg(long, alias = "why", value_name = "TEXT")]
    pub reason: Option<String>,
}

/// Lets go of claims.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, clap::Args)]
pub struct Release {
    /// What to let go of; a folder lets go of everything held within it
    #[arg(required_unless_present = "all", value_name = "RES")]
    pub resources: Vec<String>,
    /// Everything this session holds
    #[arg(long, conflicts_with = "resources")]
    #[serde(default)]
    pub all: bool,
    /// The commit that holds the work, for the record
    #[arg(long, value_name = "SHA")]
    pub commit: Option<String>,
    /// Refuse (exit 3) unless this is the claim's token
    #[arg(long, value_name = "TOKEN")]
    pub token: Option<Token>,
}

/// Renews claims before they run out.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, clap::Args)]
pub struct Renew {
    /// What to renew; everything this session holds when nothing is named
    #[arg(value_name = "RES")]
    pub resources: Vec<String>,
    /// Refuse (exit 3) unless this is the claim's token
    #[arg(long, value_name = "TOKEN")]
    pub token: Option<Token>,
}

/// Lists live claims.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, clap::Args)]
pub struct Claims {
    /// Only this session's
    #[arg(long)]
    #[serde(default)]
    pub mine: bool,
    /// Only those that overlap this path
    #[arg(long, value_name = "PATH")]
    pub path: Option<String>,
}

/// Asks whoever holds something to let go; they are told at their next act.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, clap::Args)]
pub struct Ask {
    #[arg(required = true, value_name = "RES")]
    pub resources: Vec<String>,
    /// What you need it for
    #[arg(long, value_name = "TEXT")]
    pub why: String,
}

/// Takes claims away from their holders (a person's right).
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, clap::Args)]
pub struct Revoke {
    /// What is taken away, or a claim's id
    #[arg(required_unless_present = "of_session", value_name = "RES|CLAIM")]
    pub resources: Vec<String>,
    /// Everything this session holds
    // `session` is the name of the common `--session`.
    #[arg(id = "of_session", long = "of-session", value_name = "ID", conflicts_with = "resources")]
    pub session: Option<String>,
    /// Why; the holder is told
    #[arg(long, value_name = "TEXT")]
    pub why: String,
}

/// May this session edit these paths? Takes nothing.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, clap::Args)]
pub struct Check {
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<String>,
    /// Refuse (exit 3) unless this is the token of a live claim on them
    #[arg(long, value_name = "TOKEN")]
    pub token: Option<Token>,
}

/// Starts a session, or goes on with the one this client had.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, clap::Args)]
pub struct SessionStart {
    /// A readable name; two words when not given
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// The client: claude, codex, gemini, cursor, opencode, aider …
    #[arg(long, value_name = "CLIENT")]
    pub client: Option<String>,
    /// The client's own id of the session: the same id comes back to the same session
    #[arg(long, value_name = "ID")]
    pub client_session: Option<String>,
    /// The client goes on under another id of its own, in the same process
    #[arg(long, requires = "client_session")]
    #[serde(default)]
    pub continues: bool,
    /// The role it plays
    #[arg(long, value_name = "ROLE")]
    pub role: Option<String>,
    /// Its process: when that ends, everything it holds is free at once
    #[arg(long, value_name = "PID")]
    pub pid: Option<u32>,
}

/// Narrows what this session may do.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, clap::Args)]
pub struct SessionRole {
    #[arg(value_name = "ROLE")]
    pub role: String,
    /// Another's session, by id or name (a person's right); this one when not given
    #[arg(value_name = "SESSION")]
    pub of: Option<String>,
}

/// Ends a session and lets go of everything it holds.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, clap::Args)]
pub struct SessionEnd {
    /// Another's session (a person's right); this one when not given
    #[arg(id = "ended", value_name = "ID")]
    pub session: Option<String>,
    /// Keep its claims this long for its return (10m when no time is given)
    #[arg(long, value_name = "TIME", num_args = 0..=1, default_missing_value = "10m",
        value_parser = span)]
    pub grace: Option<Span>,
}

/// A tool call begins: until it ends, what this session holds does not run out.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, clap::Args)]
pub struct CallStart {
    /// How long the call may take, 6h at the most [default: 10m]
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub limit: Option<Span>,
    /// The client's id of the call; needed where calls run side by side
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,
    /// The process of the call, if it is not the session's: when that is gone, the call is over
    #[arg(long, value_name = "PID")]
    pub pid: Option<u32>,
}

/// A tool call has ended.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, clap::Args)]
pub struct CallEnd {
    /// The id it was started with
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,
    /// Every call of this session
    #[arg(long, conflicts_with = "id")]
    #[serde(default)]
    pub all: bool,
}

/// A subagent of this session has stopped: what it held is the session's now.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, clap::Args)]
pub struct AgentStop {
    /// The id it claimed under: BATON_AGENT or --agent
    // `agent` is the name of the common `--agent`.
    #[arg(id = "stopped", value_name = "ID")]
    pub agent: String,
}

/// Reads the journal, oldest entry first.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, clap::Args)]
pub struct Journal {
    /// Only what came later: 10m, 2026-11-15, 2026-11-15T10:00:00Z, or after a position: 1.42
    #[arg(long, value_name = "TIME|POSITION", value_parser = since_text)]
    pub since: Option<String>,
    /// Only this kind of event; may be given more than once
    #[arg(long, value_name = "KIND", value_parser = crate::journal::kind)]
    #[serde(default)]
    pub kind: Vec<String>,
    /// Only what concerns this path, pattern or name
    #[arg(long, value_name = "PATH")]
    pub path: Option<String>,
    /// Only the newest so many
    #[arg(long, value_name = "N")]
    pub limit: Option<u64>,
    /// Only what this session did or what was done to it: its id or name.
    // On the command line `--session` is common to all commands, and means this one here.
    #[arg(skip)]
    pub session: Option<String>,
}

/// What sessions know of the rules, and what was done against them.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, clap::Args)]
pub struct RulesReport {
    /// What was done since: 7d, 2026-11-15, or after a position such as 1.42
    #[arg(long, value_name = "TIME|POSITION", default_value = "30d", value_parser = since_text)]
    pub since: String,
}

/// Seals old entries into a file and takes them out of the store.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, clap::Args)]
pub struct Archive {
    /// Only entries from before: 30d, 2026-11-15, or up to a position such as 1.42
    #[arg(long, value_name = "TIME", value_parser = since_text)]
    pub before: Option<String>,
    /// Leave at least so many entries in the store [default: 10000 unless --before is given]
    #[arg(long, value_name = "N")]
    pub keep: Option<u64>,
}

pub(crate) fn since_text(text: &str) -> Result<String, String> {
    crate::journal::since(text).map(|_| text.to_owned())
}

/// Reads a time as people write it: `90s`, `30m`, `2h`, `1h30m`, `500ms`; a bare number is seconds.
pub fn span(text: &str) -> Result<Span, String> {
    let wrong = || format!("{text:?} is not a time: write 90s, 30m, 2h or 1d");
    if let Ok(seconds) = text.parse::<u64>() {
        return seconds.checked_mul(1_000).map(Span).ok_or_else(wrong);
    }
    let mut total: u64 = 0;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
        let number: u64 = rest[..digits].parse().map_err(|_| wrong())?;
        rest = &rest[digits..];
        let letters = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let unit = match &rest[..letters] {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return Err(wrong()),
        };
        rest = &rest[letters..];
        total = number.checked_mul(unit).and_then(|n| total.checked_add(n)).ok_or_else(wrong)?;
    }
    if text.is_empty() { Err(wrong()) } else { Ok(Span(total)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_read_as_people_write_them() {
        for (text, millis) in
            [("90", 90_000), ("90s", 90_000), ("30m", 1_800_000), ("1h30m", 5_400_000), ("5ms", 5)]
        {
            assert_eq!(span(text), Ok(Span(millis)), "{text}");
        }
        for text in ["", "m", "10x", "1 h", "-1s", "99999999999999999999s", "1.5h"] {
            assert!(span(text).is_err(), "{text}");
        }
    }
}
