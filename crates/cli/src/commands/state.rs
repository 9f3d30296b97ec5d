//! `state`: get, set, append, merge, delete, list, history, watch, publish, discard.
//!
//! Owns how values are typed and shown. A value is JSON; a word that is not is refused with the
//! two ways to write it, instead of being guessed at.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use baton_core::key::{Key, KeyPattern};
use baton_core::state::drafts::{Discarded, Published};
use baton_core::state::{
    BadValue, Change, Got, Listed, Names, Request, VALUE_BYTES_MAX, Write, Written, parse_value,
};
use baton_engine::api::shared;
use baton_engine::failure::Failure;
use baton_engine::state::{self, History, Past};
use clap::Subcommand;
use serde_json::Value as Json;

use crate::arguments::Common;
use crate::desk::{Desk, Outcome};
use crate::news::notices_words;
use crate::render::{Paint, ago, json_shown, paint, shown, table};
use crate::words::{Problem, word};

mod watch;

#[derive(Debug, Subcommand)]
pub(crate) enum State {
    /// Show the value of a key
    Get {
        #[arg(value_name = "KEY")]
        key: Key,
        /// What everyone sees, also where you have a draft
        #[arg(long)]
        published: bool,
    },
    /// Set a key to a value
    Set {
        #[arg(value_name = "KEY")]
        key: Key,
        #[command(flatten)]
        value: Typed,
        #[command(flatten)]
        conditions: shared::Conditions,
    },
    /// Add items to the end of an array
    Append {
        #[arg(value_name = "KEY")]
        key: Key,
        #[command(flatten)]
        value: Typed,
        #[command(flatten)]
        conditions: shared::Conditions,
    },
    /// Merge members into an object (JSON merge patch); null takes a member away
    Merge {
        #[arg(value_name = "KEY")]
        key: Key,
        #[command(flatten)]
        value: Typed,
        #[command(flatten)]
        conditions: shared::Conditions,
    },
    /// Take a key's value away; its versions go on counting
    Delete {
        #[arg(value_name = "KEY")]
        key: Key,
        #[command(flatten)]
        conditions: shared::Conditions,
    },
    /// List keys: all, those below a key, or those that fit a pattern such as 'build/*'
    List {
        #[arg(value_name = "PATTERN")]
        pattern: Option<KeyPattern>,
        /// At most so many
        #[arg(long, value_name = "N", default_value_t = 200)]
        limit: u32,
    },
    /// Who changed a key, and how
    History {
        #[arg(value_name = "KEY")]
        key: Key,
        /// Only the newest so many
        #[arg(long, value_name = "N", default_value_t = 20)]
        limit: usize,
    },
    /// Wait for changes of a key and show each new version; Ctrl-C ends it
    Watch(shared::Watch),
    /// Show all your drafts to everyone, in one step: every one or none
    Publish {
        /// Only these
        #[arg(value_name = "KEY")]
        keys: Vec<Key>,
    },
    /// Throw your own drafts away
    Discard {
        /// Only these
        #[arg(value_name = "KEY")]
        keys: Vec<Key>,
    },
}

/// A value as it can be typed.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Typed {
    /// JSON: 5, true, '"word"', '{"a": 1}'; - reads it from standard input
    #[arg(
        value_name = "VALUE",
        allow_negative_numbers = true,
        required_unless_present = "file",
        conflicts_with = "file"
    )]
    value: Option<String>,
    /// Read the value from a file
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Take it as text, not as JSON
    #[arg(long)]
    text: bool,
}

pub(crate) fn run(common: &Common, command: &State) -> Outcome {
    match command {
        State::Get { key, published } => get(&mut Desk::open(common)?, key, *published),
        State::List { pattern, limit } => list(&mut Desk::open(common)?, pattern.as_ref(), *limit),
        State::History { key, limit } => history(&mut Desk::open(common)?, key, *limit),
        State::Watch(wanted) => watch::run(&mut Desk::open(common)?, wanted),
        State::Set { key, value, conditions } => {
            let value = value.read(key, "set")?;
            write(common, key, Change::Set { value }, conditions)
        }
        State::Append { key, value, conditions } => {
            let items = vec![value.read(key, "append")?];
            write(common, key, Change::Append { items }, conditions)
        }
        State::Merge { key, value, conditions } => {
            let patch = value.read(key, "merge")?;
            write(common, key, Change::Merge { patch }, conditions)
        }
        State::Delete { key, conditions } => write(common, key, Change::Delete, conditions),
        State::Publish { keys } => publish(&mut Desk::open_to_act(common)?, keys),
        State::Discard { keys } => discard(&mut Desk::open_to_act(common)?, keys),
    }
}

impl Typed {
    /// JSON that was not typed.
    pub(crate) fn of(value: &Json) -> Self {
        Self { value: Some(value.to_string()), file: None, text: false }
    }

    fn read(&self, key: &Key, verb: &str) -> Result<Json, Problem> {
        let (text, typed) = match (&self.value, &self.file) {
            (Some(value), _) if value != "-" => (value.clone(), true),
            (_, Some(file)) => (bounded(std::fs::File::open(file), file)?, false),
            _ => (bounded(Ok(std::io::stdin().lock()), Path::new("-"))?, false),
        };
        if self.text {
            return Ok(Json::String(text));
        }
        parse_value(&text).map_err(|error| {
            let next = match (&error, typed) {
                (BadValue::NotJson { .. }, true) => {
                    format!("baton state {verb} {key} --text {}", word(&text))
                }
                (BadValue::TooLargeNumber { .. }, _) => "write it as a string, in quotes".into(),
                (BadValue::TooLarge, _) => {
                    "keep large things in a file or a commit, and its name here".to_owned()
                }
                _ => "mend the JSON, or give --text to take it as text".to_owned(),
            };
            let what = if typed { format!("{:?}: ", shown(&text)) } else { String::new() };
            let quoted = serde_json::to_string(&text).unwrap_or_default();
            let hint = match typed && is_bare_word(&text) {
                true => format!(" (JSON text is written {})", word(&quoted)),
                false => String::new(),
            };
            Problem::usage(format!("{what}{error}{hint}"), next)
        })
    }
}

fn is_bare_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || " -_./:".contains(c))
}

/// Reads no more than a value may have, so that a wrong file is not read to its end.
fn bounded(source: std::io::Result<impl std::io::Read>, path: &Path) -> Result<String, Problem> {
    let failed = |source| Failure::File { doing: "cannot read", path: path.to_owned(), source };
    let mut text = Vec::new();
    let limit = VALUE_BYTES_MAX as u64 + 1;
    source.map_err(failed)?.take(limit).read_to_end(&mut text).map_err(failed)?;
    String::from_utf8(text).map_err(|_| {
        let name = shown(&path.display().to_string());
        Problem::usage(format!("{name} is not UTF-8"), "give JSON in UTF-8")
    })
}

fn write(common: &Common, key: &Key, change: Change, wanted: &shared::Conditions) -> Outcome {
    let verb = match change {
        Change::Set { .. } => "set",
        Change::Append { .. } => "appended to",
        Change::Merge { .. } => "merged into",
        Change::Delete => "deleted",
    };
    let request = Request {
        write: Write { key: key.clone(), change, if_version: wanted.if_version },
        reads: wanted.reads.clone(),
        draft: wanted.draft,
    };
    let mut desk = Desk::open_to_act(common)?;
    let Desk { workspace, actor, operation, .. } = &mut desk;
    let written = state::write(workspace, actor, &request, operation.as_deref())?;
    desk.answer(&written, |written: &Written, colour| {
        let line = written_line(written, verb, colour);
        format!("{line}{}", notices_words(&written.notices, colour))
    });
    Ok(ExitCode::SUCCESS)
}

fn written_line(written: &Written, verb: &str, colour: bool) -> String {
    let Written { key, version, .. } = written;
    match (written.changed, written.draft) {
        (false, _) => format!("unchanged {key}, version {version}: its rule keeps what is there\n"),
        (true, true) => format!(
            "{} {key} on version {version}; baton state publish shows it to everyone\n",
            paint("drafted", Paint::Green, colour)
        ),
        (true, false) => {
            format!("{} {key}, version {version}\n", paint(verb, Paint::Green, colour))
        }
    }
}

fn get(desk: &mut Desk, key: &Key, published: bool) -> Outcome {
    let got = state::read(&mut desk.workspace, &desk.actor, key, published)?;
    desk.answer(&got, |got: &Got, _| {
        let narrow = json_shown(&got.value, false);
        let wide = narrow.chars().count() > 100;
        format!("{}\n", if wide { json_shown(&got.value, true) } else { narrow })
    });
    if !desk.json {
        desk.remark(&match &got.by {
            Some(by) => {
                format!("version {}, by {} {}", got.version, shown(&by.name), ago(got.at))
            }
            None => format!("your draft, on version {}", got.version),
        });
    }
    Ok(ExitCode::SUCCESS)
}

fn list(desk: &mut Desk, pattern: Option<&KeyPattern>, limit: u32) -> Outcome {
    let names = state::list(&mut desk.workspace, &desk.actor, pattern, limit)?;
    desk.answer(&names, |names: &Names, colour| {
        if names.keys.is_empty() {
            return "no keys\n".to_owned();
        }
        let rows: Vec<Vec<String>> = names.keys.iter().map(row).collect();
        let mut text = table(&["KEY", "VERSION", "VALUE", "BY", "SINCE"], &rows, colour);
        if names.more {
            text.push_str("there are more: name a narrower pattern, or a higher --limit\n");
        }
        text
    });
    Ok(ExitCode::SUCCESS)
}

fn row(listed: &Listed) -> Vec<String> {
    let by = match &listed.by {
        Some(by) => shown(&by.name),
        None => "your draft".to_owned(),
    };
    let (key, version) = (listed.key.to_string(), listed.version.to_string());
    vec![key, version, shown(&listed.preview), by, ago(listed.at)]
}

fn history(desk: &mut Desk, key: &Key, limit: usize) -> Outcome {
    let history = state::history(&mut desk.workspace, key, limit)?;
    desk.answer(&history, |history: &History, colour| {
        let rows: Vec<Vec<String>> = history.changes.iter().map(past_row).collect();
        let mut text = String::new();
        if history.more {
            text.push_str("older changes are left out\n");
        }
        text + &table(&["VERSION", "CHANGE", "BY", "WHEN", "ENTRY"], &rows, colour)
    });
    Ok(ExitCode::SUCCESS)
}

fn past_row(past: &Past) -> Vec<String> {
    let items = |items: &[Json]| {
        let items: Vec<String> = items.iter().map(|item| json_shown(item, false)).collect();
        items.join(", ")
    };
    let change = match &past.change {
        Change::Set { value } => format!("set {}", json_shown(value, false)),
        Change::Append { items: new } => format!("appended {}", items(new)),
        Change::Merge { patch } => format!("merged {}", json_shown(patch, false)),
        Change::Delete => "deleted".to_owned(),
    };
    let (version, entry) = (past.version.to_string(), past.position.to_string());
    vec![version, shown(&change), shown(&past.by.name), ago(past.at), entry]
}

fn publish(desk: &mut Desk, keys: &[Key]) -> Outcome {
    let Desk { workspace, actor, operation, .. } = desk;
    let published = state::publish(workspace, actor, keys, operation.as_deref())?;
    desk.answer(&published, |published: &Published, colour| {
        let lines = published.published.iter();
        let mut text: String =
            lines.map(|written| written_line(written, "published", colour)).collect();
        text.push_str(&notices_words(&published.notices, colour));
        text
    });
    Ok(ExitCode::SUCCESS)
}

fn discard(desk: &mut Desk, keys: &[Key]) -> Outcome {
    let Desk { workspace, actor, operation, .. } = desk;
    let discarded = state::discard(workspace, actor, keys, operation.as_deref())?;
    desk.answer(&discarded, |discarded: &Discarded, colour| {
        let keys: Vec<&str> = discarded.discarded.iter().map(Key::as_str).collect();
        let what = paint("discarded", Paint::Green, colour);
        let notices = notices_words(&discarded.notices, colour);
        format!("{what} your draft of {}\n{notices}", keys.join(", "))
    });
    Ok(ExitCode::SUCCESS)
}
