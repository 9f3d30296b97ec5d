//! Where a command is served: the open workspace, who acts, and how to answer.
//!
//! Owns output: answers go to standard output, refusals in words to standard error and, with
//! `--json`, as the same document to standard output. A command that is served for somebody else
//! has a [`Counter`] instead: nothing of it is printed, all of it is handed over.

use std::io::{IsTerminal, Write};
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use baton_core::context::Actor;
use baton_engine::failure::Failure;
use baton_engine::place::Place;
use baton_engine::policy::{self, OnDisk};
use baton_engine::whoami::{self, Hints};
use baton_engine::workspace::Workspace;
use baton_engine::{notify, sessions, user_config};
use serde::Serialize;

use crate::arguments::Common;
use crate::counter::{Counter, Lent};
use crate::render::{Paint, colour_wanted, paint, shown};
use crate::words::Problem;

#[derive(Debug)]
pub(crate) struct Desk<'a> {
    pub(crate) workspace: Opened<'a>,
    pub(crate) actor: Actor,
    pub(crate) cwd: PathBuf,
    pub(crate) json: bool,
    pub(crate) operation: Option<String>,
    /// Who is told instead of the terminal.
    pub(crate) counter: Option<&'a Counter>,
}

/// An open workspace: this command's own, or one that outlives it.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one of them in a command")]
pub(crate) enum Opened<'a> {
    /// Never closed: the end of the process does that at no cost, and nothing is lost by it, since
    /// every commit was complete when it was answered.
    Own(ManuallyDrop<Workspace>),
    Lent(Lent<'a>),
}

impl Deref for Opened<'_> {
    type Target = Workspace;

    fn deref(&self) -> &Workspace {
        match self {
            Self::Own(workspace) => workspace,
            Self::Lent(workspace) => workspace,
        }
    }
}

impl DerefMut for Opened<'_> {
    fn deref_mut(&mut self) -> &mut Workspace {
        match self {
            Self::Own(workspace) => workspace,
            Self::Lent(workspace) => workspace,
        }
    }
}

/// What a command says when all went well.
pub(crate) type Outcome = Result<ExitCode, Problem>;

impl<'a> Desk<'a> {
    /// For verbs that only read, which needs no session.
    pub(crate) fn open(common: &'a Common) -> Result<Self, Problem> {
        Self::open_as(common, whoami::reader)
    }

    /// For verbs that act: a person at a terminal gets a session without asking.
    pub(crate) fn open_to_act(common: &'a Common) -> Result<Self, Problem> {
        let mut desk = Self::open_as(common, whoami::actor)?;
        if desk.counter.is_none() {
            sessions::person_at_terminal(&mut desk.workspace, &mut desk.actor)?;
        }
        Ok(desk)
    }

    /// Says when `baton.toml` of this tree is not what is in force. Never stops a command. Only to
    /// a person who looks on: agents call these verbs at every edit, and learn it from `status`.
    pub(crate) fn remark_policy(&mut self) {
        if self.counter.is_some() || !std::io::stderr().is_terminal() {
            return;
        }
        let sentence = match policy::drift(&mut self.workspace) {
            OnDisk::Same => return,
            OnDisk::Differs => "baton.toml here differs from the policy in force",
            OnDisk::Broken => {
                "baton.toml here cannot be used; the last approved policy is in force"
            }
            OnDisk::Missing => "baton.toml is missing here; the last approved policy is in force",
            OnDisk::NothingInForce => "baton.toml is not in force yet",
        };
        let label = paint("note", Paint::Yellow, colour_wanted(&std::io::stderr()));
        remark(&format!("{label}: {sentence} (baton policy show)"));
    }

    /// Runs the user's own `notify` command for gates that nobody was told of. Never stops a
    /// command.
    pub(crate) fn tell_of_gates(&mut self) {
        for untold in notify::tell(&mut self.workspace, shown) {
            let label = paint("note", Paint::Yellow, colour_wanted(&std::io::stderr()));
            let why = shown(&untold.why);
            remark(&format!("{label}: your notify command failed for {}: {why}", untold.gate));
        }
    }

    pub(crate) fn open_as(
        common: &'a Common,
        find: fn(&mut Workspace, &Hints) -> Result<Actor, Failure>,
    ) -> Result<Self, Problem> {
        if let Some(counter) = &common.counter {
            return Self::at(counter);
        }
        let cwd = folder(common)?;
        let mut workspace = open(&cwd)?;
        let actor = find(&mut workspace, &hints(common))?;
        let operation = operation(common)?;
        let workspace = Opened::Own(ManuallyDrop::new(workspace));
        Ok(Self { workspace, actor, cwd, json: common.json, operation, counter: None })
    }

    /// Whoever stands at the counter is known there.
    fn at(counter: &'a Counter) -> Result<Self, Problem> {
        let workspace = Opened::Lent(counter.workspace()?);
        let (actor, cwd) = (counter.actor.clone(), counter.cwd.clone());
        Ok(Self { workspace, actor, cwd, json: false, operation: None, counter: Some(counter) })
    }

    /// The answer, as a document or in words.
    pub(crate) fn answer<T: Serialize>(&self, reply: &T, words: impl FnOnce(&T, bool) -> String) {
        match self.counter {
            Some(counter) => counter.answer(reply, &words(reply, false)),
            None => answer(self.json, reply, words),
        }
    }

    /// Something that belongs to the answer, and that only who reads words needs.
    pub(crate) fn remark(&self, text: &str) {
        match self.counter {
            Some(counter) => counter.remark(text),
            None => remark(text),
        }
    }
}

/// The folder a command acts in.
pub(crate) fn folder(common: &Common) -> Result<PathBuf, Problem> {
    let current = std::env::current_dir().map_err(|source| Failure::File {
        doing: "the current folder cannot be found",
        path: ".".into(),
        source,
    })?;
    match &common.directory {
        None => Ok(current),
        Some(directory) => existing(&current, directory, "-C"),
    }
}

/// A folder that an option names, from the one that is current.
pub(crate) fn existing(current: &Path, named: &Path, option: &str) -> Result<PathBuf, Problem> {
    let full = current.join(named);
    match full.is_dir() {
        true => Ok(full),
        false => Err(Problem::usage(
            format!("{} is not a folder", named.display()),
            format!("give an existing folder to {option}"),
        )),
    }
}

/// The workspace around a folder, on the store it uses.
pub(crate) fn open(folder: &Path) -> Result<Workspace, Failure> {
    let place = Place::find(folder)?;
    let address = user_config::address_for(&place)?;
    Workspace::open_at(place, address.as_deref())
}

pub(crate) fn hints(common: &Common) -> Hints {
    Hints {
        credential: common.session.clone(),
        environment: std::env::var("BATON_SESSION").ok().filter(|value| !value.is_empty()),
        client_session: None,
        person_token: common.person_token.clone(),
        agent: common
            .agent
            .clone()
            .or_else(|| std::env::var("BATON_AGENT").ok().filter(|value| !value.is_empty())),
        words: Some(std::env::args_os().skip(1).collect()),
    }
}

pub(crate) fn operation(common: &Common) -> Result<Option<String>, Problem> {
    use baton_core::operations::ID_BYTES_MAX;
    match &common.op_id {
        Some(id) if id.is_empty() || id.len() > ID_BYTES_MAX || id.contains(char::is_control) => {
            Err(Problem::usage(
                format!("an operation id is 1 to {ID_BYTES_MAX} visible characters"),
                "use a UUID",
            ))
        }
        id => Ok(id.clone()),
    }
}

pub(crate) fn answer<T: Serialize>(json: bool, reply: &T, words: impl FnOnce(&T, bool) -> String) {
    if json {
        let text = serde_json::to_string(reply).unwrap_or_default();
        print(&format!("{text}\n"));
    } else {
        print(&words(reply, colour_wanted(&std::io::stdout())));
    }
}

/// Writes to standard output; a reader that is gone is no error of ours.
pub(crate) fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes());
    let _ = out.flush();
}

/// Whether somebody is there to be asked.
pub(crate) fn can_ask() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// One question on the terminal; an empty answer is yes, no answer at all is no.
pub(crate) fn ask(question: &str) -> bool {
    let mut out = std::io::stderr().lock();
    let _ = write!(out, "{question} [Y/n] ");
    let _ = out.flush();
    let mut answer = String::new();
    match std::io::stdin().read_line(&mut answer) {
        Ok(0) | Err(_) => false,
        Ok(_) => matches!(answer.trim().to_lowercase().as_str(), "" | "y" | "yes"),
    }
}

/// Something a person should know that is not the answer.
pub(crate) fn remark(text: &str) {
    let mut out = std::io::stderr().lock();
    let _ = out.write_all(format!("{text}\n").as_bytes());
}

pub(crate) fn say_problem(problem: &Problem, json: bool) -> ExitCode {
    if json {
        print(&format!("{}\n", problem.document()));
    }
    let colour = colour_wanted(&std::io::stderr());
    let label = problem.label();
    remark(&format!("{}: {}", paint(label, Paint::Red, colour), problem.message));
    remark(&format!("{}: {}", paint("next", Paint::Cyan, colour), problem.next));
    ExitCode::from(problem.exit)
}

/// Rust ignores SIGPIPE and turns it into write errors, which `print` drops.
pub(crate) fn end_quietly_on_broken_pipe() {
    std::panic::set_hook(Box::new(|panic| {
        remark(&format!("baton has a defect: {panic}"));
        remark("next: baton doctor, and report this line with what it prints");
    }));
}
