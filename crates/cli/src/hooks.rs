//! The dialects of agents' clients: what each tells of an act, and how it wants to be answered.
//!
//! Owns reading and answering; what may be done is judged behind `baton_engine::doors`. Invariant:
//! what is not understood passes, with a word on standard error alone, and nothing is printed that
//! a client would take for broken output. Hooks of real clients fail open, so a lost answer must
//! never look like a "yes" that somebody gave.

use std::path::{Path, PathBuf};

use baton_engine::doors::UNNAMED;
use baton_engine::doors::edit::Target;
use baton_engine::escape::for_models;
use serde_json::{Value, json};

mod claude;
mod cursor;
mod gemini;
pub(crate) mod lenient;
pub(crate) mod limit;
mod opencode;
#[cfg(test)]
mod tests;
mod tools;
mod transcript;
pub(crate) mod words;

/// A client whose hooks we answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Client {
    Claude,
    Codex,
    Gemini,
    Cursor,
    Opencode,
}

impl Client {
    pub(crate) const ALL: [Self; 5] =
        [Self::Claude, Self::Codex, Self::Gemini, Self::Cursor, Self::Opencode];

    /// Its name in sessions and aliases.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Cursor => "cursor",
            Self::Opencode => "opencode",
        }
    }

    /// Whether it shows our question to somebody who sits at it. Only Claude asks, and not when it
    /// runs without a user: then its "ask" is a "no" that nobody hears of.
    pub(crate) fn asks_its_user(self) -> bool {
        let says = |name: &str| std::env::var(name).unwrap_or_default();
        self == Self::Claude
            && says("CLAUDE_CODE_SESSION_ATTENDED") != "0"
            && !says("CLAUDE_CODE_ENTRYPOINT").starts_with("sdk")
    }

    /// Whether it tells of each tool call that it is over. Codex does so when the command has
    /// ended, and a shell that it keeps open may not end at all.
    pub(crate) fn tells_each_end(self) -> bool {
        self != Self::Codex
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|client| client.name() == name)
    }
}

/// What a client tells.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Payload {
    /// Who really speaks: Cursor also runs Claude's hooks.
    pub(crate) client: Client,
    /// The client's own name of the event, for its answer.
    pub(crate) event_name: String,
    pub(crate) session: String,
    /// A subagent of it.
    pub(crate) agent: Option<String>,
    /// Which of the client's definitions of agents that subagent follows.
    pub(crate) agent_type: Option<String>,
    pub(crate) cwd: PathBuf,
    /// The client's id of the tool call.
    pub(crate) call: Option<String>,
    /// How long the call may take, in milliseconds, where the client says so.
    pub(crate) limit: Option<u64>,
    /// What the call runs goes on when the call is over.
    pub(crate) behind: bool,
    pub(crate) event: Event,
}

impl Payload {
    /// Clients that give no ids run one call at a time.
    pub(crate) fn call_id(&self) -> &str {
        self.call.as_deref().unwrap_or(UNNAMED)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Event {
    /// Begun, cleared, resumed or compacted: the context holds nothing of ours.
    SessionStart {
        continues: bool,
    },
    Prompt,
    Before(Tool),
    After {
        tool: Tool,
        failed: bool,
    },
    BeforeCompaction,
    /// `again`: it was held back once already, and must be let go.
    Stop {
        again: bool,
    },
    SubagentStop,
    SessionEnd,
    /// A working tree is wanted, with this name.
    TreeWanted(String),
    /// A working tree is to go.
    TreeUnwanted(String),
    /// An entry of the client's own list of tasks.
    Listed {
        id: String,
        title: String,
        text: String,
        /// The agent says that it is done.
        done: bool,
    },
    /// An entry was taken off that list.
    Unlisted {
        id: String,
    },
    /// Nothing of ours.
    Other,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Tool {
    Edit(Vec<Target>),
    /// A patch that cannot be read, and the paths it names all the same.
    Patch {
        why: String,
        targets: Vec<Target>,
    },
    /// What is not done whoever holds it, and why in words.
    Refused(String),
    Shell(String),
    Read(Vec<String>),
    /// One of our own server.
    Own,
    Other,
}

impl Tool {
    /// Whether it may change something, so that it must be judged.
    pub(crate) fn is_act(&self) -> bool {
        !matches!(self, Self::Read(_) | Self::Own | Self::Other)
    }
}

/// What is said to the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Silent,
    /// Words for the model.
    Context(String),
    Deny(String),
    /// A person at the client decides.
    Ask(String),
    /// The agent goes on, because of this.
    GoOn(String),
    /// The folder that was made.
    Made(String),
    /// It is not done, because of this; the exit code is what the client takes for "no" here.
    No {
        why: String,
        exit: u8,
    },
}

impl Answer {
    /// Says where what it says is so.
    pub(crate) fn of_workspace(self, root: &Path) -> Self {
        let told = |text: String| words::elsewhere(root, &text);
        match self {
            Self::Deny(text) => Self::Deny(told(text)),
            Self::Ask(text) => Self::Ask(told(text)),
            Self::Context(text) => Self::Context(told(text)),
            other => other,
        }
    }

    /// With the answer of another workspace that the act reaches into: one "no" is enough.
    pub(crate) fn and(self, other: Self) -> Self {
        match (self, other) {
            (no @ (Self::Deny(_) | Self::No { .. }), _)
            | (_, no @ (Self::Deny(_) | Self::No { .. })) => no,
            (ask @ Self::Ask(_), _) | (_, ask @ Self::Ask(_)) => ask,
            (Self::Context(one), Self::Context(other)) => Self::Context(format!("{one}\n{other}")),
            (Self::Silent, other) => other,
            (one, _) => one,
        }
    }

    /// As data: nothing in it can end the frame that a client puts around it.
    fn framed(&self) -> Self {
        match self {
            Self::Silent | Self::Made(_) => self.clone(),
            Self::Context(text) => Self::Context(for_models(text)),
            Self::Deny(text) => Self::Deny(for_models(text)),
            Self::Ask(text) => Self::Ask(for_models(text)),
            Self::GoOn(text) => Self::GoOn(for_models(text)),
            Self::No { why, exit } => Self::No { why: for_models(why), exit: *exit },
        }
    }
}

/// What is printed, and the exit code that says it was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) exit: u8,
}

impl Said {
    fn nothing() -> Self {
        Self { out: String::new(), err: String::new(), exit: 0 }
    }

    fn json(value: &Value) -> Self {
        Self { out: value.to_string(), ..Self::nothing() }
    }
}

/// Reads a payload; nothing when it tells of no session of ours.
pub(crate) fn read(client: Client, payload: &Value) -> Option<Payload> {
    match client {
        // Cursor runs hooks that were written for Claude, and speaks its own language there too.
        Client::Claude if payload.get("conversation_id").is_some() => cursor::read(payload),
        Client::Claude | Client::Codex => claude::read(client, payload),
        Client::Gemini => gemini::read(payload),
        Client::Cursor => cursor::read(payload),
        Client::Opencode => opencode::read(payload),
    }
}

/// What can be seen of a payload that cannot be read: that a tool is called, or a turn begins.
pub(crate) fn glimpsed(client: Client, text: &[u8]) -> Option<Payload> {
    let seen = |key: &str| lenient::glimpse(text, key);
    let mut told = json!({ "hook_event_name": seen("hook_event_name")?, "session_id": UNNAMED });
    for key in ["conversation_id", "cwd", "tool_name"] {
        if let Some(said) = seen(key) {
            told[key] = said.into();
        }
    }
    let mut payload = read(client, &told)?;
    match &mut payload.event {
        Event::SessionStart { .. } | Event::Prompt => {}
        Event::Before(tool) | Event::After { tool, .. } => {
            let reads = seen("tool_name").is_some_and(|name| name.to_lowercase().contains("read"));
            *tool = if reads { Tool::Other } else { Tool::Shell(String::new()) };
        }
        _ => return None,
    }
    Some(payload)
}

/// The answer in the client's words.
pub(crate) fn say(payload: &Payload, answer: &Answer) -> Said {
    let answer = &answer.framed();
    match payload.client {
        Client::Claude | Client::Codex => claude::say(payload, answer),
        Client::Gemini => gemini::say(payload, answer),
        Client::Cursor => cursor::say(payload, answer),
        Client::Opencode => opencode::say(answer),
    }
}

/// Does what is said at this event reach the model? Else it is kept for the next one that does.
pub(crate) fn is_heard(payload: &Payload) -> bool {
    match &payload.event {
        Event::SessionStart { .. } | Event::Prompt | Event::After { .. } => true,
        Event::Before(_) => payload.client == Client::Claude,
        _ => false,
    }
}

/// Is the agent told here that Baton could not answer? Once for an act: before it where the model
/// hears that, else after it; and after it too where Baton may have answered before. Whoever stops
/// or ends is let go in silence: words there would keep it running, for nothing it can do.
pub(crate) fn is_told(payload: &Payload, perhaps_judged: bool) -> bool {
    let before = matches!(payload.client, Client::Claude | Client::Codex);
    match &payload.event {
        Event::SessionStart { .. } | Event::Prompt => true,
        Event::Before(tool) => before && tool.is_act(),
        Event::After { tool, .. } if before => perhaps_judged && matches!(tool, Tool::Shell(_)),
        Event::After { tool, .. } => tool.is_act(),
        _ => false,
    }
}

fn text<'a>(value: &'a Value, keys: &[&str]) -> Option<&'a str> {
    keys.iter().find_map(|key| value.get(*key)?.as_str())
}

fn owned(value: &Value, keys: &[&str]) -> Option<String> {
    text(value, keys).filter(|text| !text.is_empty()).map(str::to_owned)
}

/// The tool that a payload tells of.
fn tool(payload: &Value) -> Tool {
    let name = text(payload, &["tool_name"]).unwrap_or_default();
    tools::tool(name, payload.get("tool_input").unwrap_or(&Value::Null))
}

/// The time limit of a tool call, as its arguments have it.
fn limit(input: Option<&Value>) -> Option<u64> {
    let input = input?;
    ["timeout", "timeout_ms"].iter().find_map(|key| input.get(*key)?.as_u64())
}

/// Does a command go on behind its tool call? Its arguments say so, a monitor always does, Claude
/// says afterwards which it or its user sent to the background, and Codex of which it did not see
/// the end.
fn goes_on(payload: &Value) -> bool {
    const ASKED: [&str; 2] = ["run_in_background", "is_background"];
    const UNENDED: &str = "Process running with session ID";
    let input = payload.get("tool_input");
    let asked = |key: &&str| input.and_then(|input| input.get(*key)?.as_bool()) == Some(true);
    let response = payload.get("tool_response");
    let sent = response.is_some_and(|said| owned(said, &["backgroundTaskId"]).is_some());
    let said = response.and_then(|said| said.as_str().or_else(|| text(said, &["output"])));
    sent || ASKED.iter().any(asked)
        || text(payload, &["tool_name"]) == Some("Monitor")
        || said.is_some_and(|said| said.contains(UNENDED))
}

fn folder(value: &Value) -> PathBuf {
    let told = text(value, &["cwd"]).filter(|folder| !folder.is_empty());
    told.map_or_else(|| std::env::current_dir().unwrap_or_default(), PathBuf::from)
}
