//! Once: a command that must succeed one time under a key, whoever starts it.
//!
//! Owns whose turn it is. One runner at a time, known by the journal position of its start; its
//! turn lasts while its process is seen to live, and where it cannot be seen, while its lease is
//! renewed. A result counts only from the runner whose turn it is, so a late one changes nothing.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::claim::Holder;
use crate::context::{Context, Life};
use crate::event::Event;
use crate::id::{SessionId, Token};
use crate::key::Key;
use crate::notices::Notice;
use crate::refusal::{Class, Refusal};
use crate::scene::Caller;
use crate::sessions::Process;
use crate::time::{Moment, Span};
use crate::view::{Index, Kind, Record, View, get};

/// How long the turn of a runner that cannot be seen lasts without a sign of life.
pub const LEASE: Span = Span::seconds(60);
/// A runner shows this often that it is still there.
pub const RENEWED_EVERY: Span = Span::seconds(20);
/// How much of the end of a command's standard output is kept.
pub const OUTPUT_BYTES_MAX: usize = 64 * 1024;
pub const WAIT_MAX: Span = Span::hours(24);
pub const TTL_MAX: Span = Span::days(3_650);
const PROGRAM_BYTES_MAX: usize = 200;

/// What is known of one key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Once {
    pub key: Key,
    /// Whose turn it is; it may be gone without having said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner: Option<Runner>,
    /// The last success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub success: Option<Success>,
}

impl Record for Once {
    const KIND: Kind = "once";

    fn key(&self) -> String {
        self.key.as_str().to_owned()
    }

    fn index_entries(&self) -> Vec<(Index, String)> {
        Vec::new()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Runner {
    pub token: Token,
    pub holder: Holder,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<Process>,
    pub command: Command,
    pub started_at: Moment,
    pub renewed_at: Moment,
    pub lease_until: Moment,
}

/// What was run. Arguments may hold secrets and the journal is public: of them only a hash is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Command {
    pub program: String,
    pub hash: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Success {
    pub token: Token,
    pub holder: Holder,
    pub command: Command,
    pub at: Moment,
    pub took: Span,
    pub output: Output,
}

/// The end of what a command wrote to its standard output.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Output {
    pub text: String,
    /// There was more before it.
    pub cut: bool,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum End {
    Succeeded {
        took: Span,
        output: Output,
    },
    Failed {
        /// The exit code, as a shell counts it: 128 and the signal for a killed command.
        code: u8,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("{key} is being run by {}", runner.holder.name)]
    Running { key: Key, runner: Box<Runner>, waited: bool },
    #[error("the turn {given} at {key} is over")]
    LostTurn { key: Key, given: Token, current: Option<Box<Runner>> },
}

impl Refused {
    pub fn class(&self) -> Class {
        match self {
            Self::Running { .. } => Class::Refused,
            Self::LostTurn { .. } => Class::Stale,
        }
    }

    pub fn code(&self) -> &'static str {
        match self {
            Self::Running { waited: true, .. } => "timed_out",
            Self::Running { .. } => "running",
            Self::LostTurn { .. } => "lost_turn",
        }
    }
}

impl Runner {
    /// Is it still its turn? A process that is seen decides; else the lease, which counts once
    /// more when the store failed over and renewals may have been lost.
    pub fn is_there(&self, context: &Context) -> bool {
        match context.observed.runners.get(&self.token) {
            Some(Life::Dead) => false,
            Some(Life::Alive) => true,
            Some(Life::Unknown) | None => context.now < self.expiry(context),
        }
    }

    fn expiry(&self, context: &Context) -> Moment {
        match context.failed_over_at {
            Some(at) if self.renewed_at < at => self.lease_until + LEASE,
            _ => self.lease_until,
        }
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct Request {
    pub key: Key,
    pub command: Command,
    /// A success older than this does not count.
    pub ttl: Option<Span>,
    #[serde(skip)]
    pub process: Option<Process>,
    /// Baton's own errand, such as telling of a gate: it needs no session.
    #[serde(skip)]
    pub errand: bool,
}

/// Whether to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is the caller's turn.
    Run(Turn),
    /// It has succeeded already.
    Recorded(Box<Success>, Vec<Notice>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    pub token: Token,
    pub notices: Vec<Notice>,
}

pub fn begin(
    view: &dyn View,
    request: &Request,
    context: &Context,
) -> Result<(Vec<Event>, Answer), Refusal> {
    if let Some(ttl) = request.ttl.filter(|ttl| *ttl > TTL_MAX) {
        let (given, allowed) = (ttl.to_string(), format!("at most {TTL_MAX}"));
        return Err(Refusal::OutOfRange { what: "ttl", given, allowed });
    }
    let caller = match request.errand {
        true => None,
        false => Some(Caller::read(view, context)?),
    };
    let notices = || caller.as_ref().map(|caller| caller.notices.clone()).unwrap_or_default();
    let known = get::<Once>(view, request.key.as_str())?;
    let (runner, success) = known.map_or((None, None), |once| (once.runner, once.success));
    let fresh = |success: &Success| request.ttl.is_none_or(|ttl| context.now < success.at + ttl);
    if let Some(success) = success.filter(fresh) {
        let answer = Answer::Recorded(Box::new(success), notices());
        return Ok((activity(caller.as_ref(), context), answer));
    }
    if let Some(runner) = runner.filter(|runner| runner.is_there(context)) {
        let (key, runner) = (request.key.clone(), Box::new(runner));
        return Err(Refused::Running { key, runner, waited: false }.into());
    }
    let mut command = request.command.clone();
    while command.program.len() > PROGRAM_BYTES_MAX {
        command.program.pop();
    }
    let token = context.next;
    let runner = Runner {
        token,
        holder: caller.as_ref().map_or_else(baton, |caller| caller.holder(context)),
        process: request.process.clone(),
        command,
        started_at: context.now,
        renewed_at: context.now,
        lease_until: context.now + LEASE,
    };
    let mut events = vec![Event::OnceStarted { key: request.key.clone(), runner }];
    events.extend(activity(caller.as_ref(), context));
    Ok((events, Answer::Run(Turn { token, notices: notices() })))
}

/// Baton itself, as the runner of its own errands.
fn baton() -> Holder {
    Holder { session: SessionId(String::new()), name: "baton".to_owned(), agent: None }
}

fn activity(caller: Option<&Caller>, context: &Context) -> Vec<Event> {
    caller.map(|caller| caller.activity(context, &[])).unwrap_or_default()
}

/// The end of Baton's own errand, or `None` when the turn is a session's.
fn errand(
    view: &dyn View,
    key: &Key,
    token: Token,
    end: &End,
    context: &Context,
) -> Result<Option<Vec<Event>>, Refusal> {
    let runner = get::<Once>(view, key.as_str())?.and_then(|once| once.runner);
    let own = runner.is_some_and(|runner| runner.token == token && runner.holder == baton());
    let (key, end) = (key.clone(), end.clone());
    Ok(own.then(|| vec![Event::OnceEnded { key, token, at: context.now, end }]))
}

/// The runner is still there.
pub fn renew(
    view: &dyn View,
    key: &Key,
    token: Token,
    context: &Context,
) -> Result<(Vec<Event>, Vec<Notice>), Refusal> {
    let caller = Caller::read(view, context)?;
    its_turn(view, &caller, key, token)?;
    let lease_until = context.now + LEASE;
    let mut events =
        vec![Event::OnceRenewed { key: key.clone(), token, at: context.now, lease_until }];
    events.extend(caller.activity(context, &[]));
    Ok((events, caller.notices))
}

/// The run has ended. Only the runner whose turn it is may say so.
pub fn finish(
    view: &dyn View,
    key: &Key,
    token: Token,
    end: &End,
    context: &Context,
) -> Result<(Vec<Event>, Vec<Notice>), Refusal> {
    if let Some(events) = errand(view, key, token, end, context)? {
        return Ok((events, Vec::new()));
    }
    let caller = Caller::read(view, context)?;
    let known = get::<Once>(view, key.as_str())?;
    if known.and_then(|once| once.success).is_some_and(|success| success.token == token) {
        // Said already; the first time the answer did not arrive.
        return Ok((Vec::new(), Vec::new()));
    }
    its_turn(view, &caller, key, token)?;
    let (key, end) = (key.clone(), end.clone());
    let mut events = vec![Event::OnceEnded { key, token, at: context.now, end }];
    events.extend(caller.activity(context, &[]));
    Ok((events, caller.notices))
}

fn its_turn(view: &dyn View, caller: &Caller, key: &Key, token: Token) -> Result<(), Refusal> {
    let runner = get::<Once>(view, key.as_str())?.and_then(|once| once.runner);
    let session = &caller.session.session;
    match runner {
        Some(runner) if runner.token == token && runner.holder.session == *session => Ok(()),
        other => {
            let (key, current) = (key.clone(), other.map(Box::new));
            Err(Refused::LostTurn { key, given: token, current }.into())
        }
    }
}

impl Once {
    /// The key once somebody began; whoever's turn it was has lost it.
    #[must_use]
    pub fn started(before: Option<Self>, key: &Key, runner: &Runner) -> Self {
        let success = before.and_then(|once| once.success);
        Self { key: key.clone(), runner: Some(runner.clone()), success }
    }

    /// The key once this turn has ended. An end of another turn changes nothing.
    pub fn end(&mut self, token: Token, at: Moment, end: &End) {
        let Some(runner) = self.runner.take_if(|runner| runner.token == token) else {
            return;
        };
        if let End::Succeeded { took, output } = end {
            let Runner { holder, command, .. } = runner;
            let (took, output) = (*took, output.clone());
            self.success = Some(Success { token, holder, command, at, took, output });
        }
    }
}
