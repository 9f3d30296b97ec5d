//! Typed messages for programs that do work: one JSON document a line, in both directions.
//!
//! Owns their shape and the reading of a line. Every message names its type and its version, and
//! nothing else is let in: an unknown field, type or version is refused with the line and the
//! column, because half-understood work is worse than none. Who speaks them is not known here.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value as Json;

use crate::id::Token;
use crate::time::{Moment, Span};

/// The version of all messages written here.
pub const VERSION: u32 = 1;
/// The longest line that is read.
pub const LINE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Every type of message.
pub const TYPES: &[&str] = &["WorkAssignment", "Heartbeat", "WorkComplete", "WorkFailed"];

/// What goes over the line. Each document carries `type` and `version`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Message {
    WorkAssignment(Box<WorkAssignment>),
    Heartbeat(Heartbeat),
    WorkComplete(WorkComplete),
    WorkFailed(WorkFailed),
}

/// A name that can be only this one. A type of its own for each message, so that a document is
/// read in one pass and every mistake in it has a column.
macro_rules! tags {
    ($($tag:ident $name:literal;)*) => {$(
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema,
        )]
        pub enum $tag {
            #[default]
            #[serde(rename = $name)]
            Is,
        }
    )*};
}

tags! {
    AssignmentType "WorkAssignment";
    HeartbeatType "Heartbeat";
    CompleteType "WorkComplete";
    FailedType "WorkFailed";
}

/// Always [`VERSION`]; another one is refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Version;

impl Serialize for Version {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u32(VERSION)
    }
}

impl<'de> Deserialize<'de> for Version {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match u64::deserialize(deserializer)? {
            version if version == u64::from(VERSION) => Ok(Self),
            other => Err(serde::de::Error::invalid_value(
                serde::de::Unexpected::Unsigned(other),
                &"version 1",
            )),
        }
    }
}

impl JsonSchema for Version {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Version".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "const": VERSION })
    }
}

/// An amount of money in US dollars: finite and not below zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize)]
#[serde(transparent)]
pub struct Usd(f64);

impl Usd {
    pub fn new(amount: f64) -> Option<Self> {
        (amount.is_finite() && amount >= 0.0).then_some(Self(amount))
    }

    pub fn amount(self) -> f64 {
        self.0
    }
}

impl<'de> Deserialize<'de> for Usd {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let amount = f64::deserialize(deserializer)?;
        Self::new(amount).ok_or_else(|| {
            serde::de::Error::invalid_value(
                serde::de::Unexpected::Float(amount),
                &"an amount that is not below zero",
            )
        })
    }
}

impl JsonSchema for Usd {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Usd".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "number", "minimum": 0 })
    }
}

/// What a piece of work has used so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd: Option<Usd>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
}

/// What a piece of work may use at the most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd: Option<Usd>,
    /// In milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<Span>,
}

/// Work for a program: do this, and answer with `WorkComplete` or `WorkFailed`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkAssignment {
    #[serde(rename = "type")]
    pub kind: AssignmentType,
    pub version: Version,
    pub task: String,
    pub attempt: u32,
    /// To be shown with everything that is reported: a late report is told apart by it.
    pub token: Token,
    pub title: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// What the work is expected to touch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// Everything earlier attempts were told, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub feedback: Vec<Json>,
    /// Every earlier handoff, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub handoffs: Vec<Json>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Moment>,
}

/// The work goes on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Heartbeat {
    #[serde(rename = "type")]
    pub kind: HeartbeatType,
    pub version: Version,
    pub task: String,
    pub attempt: u32,
    pub token: Token,
    /// Where it stands, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
}

/// The work is done, as far as the program can tell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkComplete {
    #[serde(rename = "type")]
    pub kind: CompleteType,
    pub version: Version,
    pub task: String,
    pub attempt: u32,
    pub token: Token,
    /// What was done.
    pub report_done: String,
    /// What was not; "nothing" must be said.
    pub report_not_done: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Json>,
    /// The commit that holds the work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
}

/// How a program ended. Only a failure counts as an attempt: a rate limit or a login that ran out
/// says nothing about the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExitClass {
    /// By itself, without having done the work.
    Finished,
    Failed,
    RateLimited,
    /// The login is missing or has run out.
    Auth,
    Killed,
}

impl ExitClass {
    pub fn counts_as_attempt(self) -> bool {
        self == Self::Failed
    }
}

/// The work was not done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkFailed {
    #[serde(rename = "type")]
    pub kind: FailedType,
    pub version: Version,
    pub task: String,
    pub attempt: u32,
    pub token: Token,
    pub exit: ExitClass,
    pub why: String,
    /// For a rate limit: not before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<Moment>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
}

/// A line that is no message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {why}")]
pub struct BadLine {
    pub line: u64,
    /// Counted in bytes, from 1.
    pub column: usize,
    pub why: Why,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    #[error("it is empty")]
    Empty,
    #[error("it is longer than {LINE_BYTES_MAX} bytes")]
    TooLong,
    #[error("it is not UTF-8")]
    NotUtf8,
    #[error("there is no message type {given:?}; there are {}", TYPES.join(", "))]
    UnknownType { given: String },
    #[error("version {given} of {kind} is not understood; this is version {VERSION}")]
    OtherVersion { kind: String, given: u64 },
    /// What the reader of JSON says.
    #[error("{detail}")]
    Malformed { detail: String },
}

/// Only what tells which message a line is; everything else is skipped, but must be JSON.
#[derive(Deserialize)]
struct Envelope {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    version: Option<u64>,
}

/// Reads one line, without its line break. `number` is what a refusal calls it.
pub fn parse_line(number: u64, line: &[u8]) -> Result<Message, BadLine> {
    let bad = |column: usize, why: Why| BadLine { line: number, column: column.max(1), why };
    if line.len() > LINE_BYTES_MAX {
        return Err(bad(LINE_BYTES_MAX + 1, Why::TooLong));
    }
    let text =
        std::str::from_utf8(line).map_err(|error| bad(error.valid_up_to() + 1, Why::NotUtf8))?;
    if text.trim().is_empty() {
        return Err(bad(1, Why::Empty));
    }
    let envelope: Envelope = read(number, text)?;
    if !TYPES.contains(&envelope.kind.as_str()) {
        return Err(bad(
            column_of(text, &envelope.kind),
            Why::UnknownType { given: envelope.kind },
        ));
    }
    if let Some(given) = envelope.version.filter(|given| *given != u64::from(VERSION)) {
        let kind = envelope.kind;
        return Err(bad(column_of(text, "version"), Why::OtherVersion { kind, given }));
    }
    match envelope.kind.as_str() {
        "WorkAssignment" => Ok(Message::WorkAssignment(Box::new(read(number, text)?))),
        "Heartbeat" => Ok(Message::Heartbeat(read(number, text)?)),
        "WorkComplete" => Ok(Message::WorkComplete(read(number, text)?)),
        _ => Ok(Message::WorkFailed(read(number, text)?)),
    }
}

fn read<'de, T: Deserialize<'de>>(number: u64, text: &'de str) -> Result<T, BadLine> {
    serde_json::from_str(text).map_err(|error| {
        let whole = error.to_string();
        let detail = whole.rsplit_once(" at line ").map_or(whole.as_str(), |(detail, _)| detail);
        // A carriage return or line feed within the text would start a new line for the reader.
        let before: usize =
            text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
        let why = Why::Malformed { detail: detail.to_owned() };
        BadLine { line: number, column: (before + error.column()).max(1), why }
    })
}

/// Where a word stands in quotes; the beginning when it was written with escapes.
fn column_of(text: &str, word: &str) -> usize {
    text.find(&format!("\"{word}\"")).map_or(1, |at| at + 1)
}

/// One line, with its line break.
pub fn to_line(message: &Message) -> Result<String, serde_json::Error> {
    serde_json::to_string(message).map(|text| text + "\n")
}
