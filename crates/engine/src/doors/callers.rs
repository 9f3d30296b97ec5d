//! Which subagent a command of Baton's is, that somebody runs in a session's shell.
//!
//! Clients tell whose a line is before and after it, and nothing of that reaches the programs the
//! line runs. Owns the trace of lines that run `baton`: by the words of a command it is known again
//! while its line runs. Where two could have said the same, it is the session's own. Nobody becomes
//! another session by this (S19).

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use baton_core::context::Actor;
use baton_core::id::SessionId;
use baton_core::shell::{self, Argument};

use super::activity::now;
use super::own_tree::fitting;
use super::traces::Trace;
use crate::place::Place;

const PROGRAM: &str = "baton";
/// A line whose end nobody told is over after this.
const LINE_MS_MAX: u64 = 60 * 60 * 1_000;
const HASH_CHARS: usize = 16;
/// Words that only running the line would tell.
const UNKNOWN: &str = "?";
const PARTED: char = '\t';

/// A command of a line that runs.
struct Open {
    at: u64,
    agent: String,
    call: String,
    words: String,
    /// That of the subagent's definition.
    role: Option<String>,
}

fn trace(place: &Place, session: &SessionId) -> Trace {
    Trace::of_session(place, session, "callers")
}

fn agent_of(actor: &Actor) -> &str {
    actor.agent.as_deref().unwrap_or_default()
}

/// A line begins to run.
pub fn begins(place: &Place, actor: &Actor, line: &str, call: &str) {
    let Some(session) = actor.session.as_ref().filter(|_| line.contains(PROGRAM)) else { return };
    let deeds = shell::read(line);
    for command in deeds.commands.iter().filter(|command| command.name() == PROGRAM) {
        let words: Option<Vec<&str>> = command.argv[1..].iter().map(Argument::text).collect();
        let words = match words.filter(|_| deeds.unparsed.is_none()) {
            Some(words) => hash(words.iter().map(OsStr::new)),
            None => UNKNOWN.to_owned(),
        };
        let (at, agent, call) = (now().to_string(), agent_of(actor), fitting(call));
        let role = actor.role.as_deref().unwrap_or_default();
        trace(place, session).add(&joined(&["+", &at, agent, &call, &words, role]));
    }
}

/// It is over.
pub fn ended(place: &Place, actor: &Actor, line: &str, call: &str) {
    if let Some(session) = actor.session.as_ref().filter(|_| line.contains(PROGRAM)) {
        trace(place, session).add(&joined(&["-", agent_of(actor), &fitting(call)]));
    }
}

/// No line of this one runs any more.
pub fn rests(place: &Place, actor: &Actor) {
    let Some(session) = &actor.session else { return };
    let trace = trace(place, session);
    if open(&trace).iter().any(|line| line.agent == agent_of(actor)) {
        trace.add(&joined(&["-", agent_of(actor)]));
    }
}

/// The session is over, with all that it ran.
pub fn leaves(place: &Place, actor: &Actor) {
    if let Some(session) = &actor.session {
        trace(place, session).take();
    }
}

/// The subagent that runs a command with these words, and its role; nothing where it is its session
/// itself, or where that cannot be told.
pub(crate) fn running(
    place: &Place,
    session: &SessionId,
    words: &[OsString],
) -> Option<(String, Option<String>)> {
    let lines = open(&trace(place, session));
    let hash = hash(words.iter().map(OsString::as_os_str));
    let who = |words: &str| -> BTreeSet<(String, Option<String>)> {
        let same = lines.iter().filter(|line| line.words == words);
        same.map(|line| (line.agent.clone(), line.role.clone())).collect()
    };
    let known = who(&hash);
    let mut who = if known.is_empty() { who(UNKNOWN) } else { known };
    let first = who.pop_first().filter(|(agent, _)| !agent.is_empty());
    first.filter(|_| who.is_empty())
}

fn open(trace: &Trace) -> Vec<Open> {
    let mut open: Vec<Open> = Vec::new();
    for line in trace.lines() {
        let parts: Vec<&str> = line.split(PARTED).collect();
        match parts[..] {
            ["+", at, agent, call, words, role] => open.push(Open {
                at: at.parse().unwrap_or_default(),
                agent: agent.to_owned(),
                call: call.to_owned(),
                words: words.to_owned(),
                role: Some(role.to_owned()).filter(|role| !role.is_empty()),
            }),
            ["-", agent, call] => open.retain(|one| one.agent != agent || one.call != call),
            ["-", agent] => open.retain(|one| one.agent != agent),
            _ => {}
        }
    }
    let now = now();
    open.retain(|one| now.saturating_sub(one.at) < LINE_MS_MAX);
    open
}

fn joined(parts: &[&str]) -> String {
    parts.join(&PARTED.to_string())
}

fn hash<'a>(words: impl Iterator<Item = &'a OsStr>) -> String {
    let mut hasher = blake3::Hasher::new();
    for word in words {
        hasher.update(word.as_bytes()).update(&[0]);
    }
    hasher.finalize().to_hex()[..HASH_CHARS].to_owned()
}
