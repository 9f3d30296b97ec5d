//! Running a command once: waiting for a turn, running, and recording what came of it.
//!
//! Owns the loop around the rules of `baton_core::once`. The command runs outside every lock;
//! while it does, its turn is renewed. A waiter sleeps on news and on the runner's process, so the
//! end of either wakes it at once. There is no polling.

use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

use baton_core::context::{Actor, Life, Observed};
use baton_core::id::Token;
use baton_core::key::Key;
use baton_core::notices::Notice;
use baton_core::once::{
    self, Answer, Command, End, Output, Refused, Request, Runner, Success, Turn, WAIT_MAX,
};
use baton_core::refusal::Refusal;
use baton_core::time::{Moment, Span};
use baton_core::view::get;

use crate::api::shared;
use crate::failure::Failure;
use crate::sighting::{identity_of, life_of};
use crate::store::News;
use crate::whoami::process_of;
use crate::workspace::Workspace;

pub mod child;
mod tail;

/// A waiter looks this often even without news: a writer may die before it tells.
const LOOK_AT_LEAST_EVERY: Span = Span::seconds(30);
/// The same, where the system has no descriptor that tells of a process's end.
const UNWATCHED_LOOK_EVERY: Span = Span::seconds(1);

/// Whoever shows how it goes, and hears when somebody wants it to end.
pub trait Door {
    fn waits_for(&mut self, runner: &Runner);
    fn was_told(&mut self, notices: &[Notice]);
    /// A piece of the command's standard output, as it comes.
    fn wrote(&mut self, bytes: &[u8]);
    /// One of them becomes readable when somebody wants this to end.
    fn end_descriptors(&self) -> [BorrowedFd<'_>; 2];
    fn end_wanted(&mut self) -> Option<Wish>;
}

/// How somebody wants this to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// From the keyboard, which has told the command as well.
    Interrupt,
    /// To this process alone.
    Terminate,
}

/// What came of it.
#[derive(Debug)]
pub enum Outcome {
    Ran(Ran),
    Recorded {
        success: Box<Success>,
        /// It was recorded for the very command that was asked for now.
        same_command: bool,
    },
}

#[derive(Debug)]
pub struct Ran {
    pub token: Token,
    /// The command's exit code, as a shell counts it.
    pub code: u8,
    pub took: Span,
    pub output: Output,
    /// Why the end could not be recorded: the turn was lost, or the store did not answer.
    pub unrecorded: Option<Failure>,
}

pub fn run(
    workspace: &mut Workspace,
    actor: &Actor,
    wanted: &shared::Once,
    door: &mut dyn Door,
) -> Result<Outcome, Failure> {
    if wanted.wait.is_some_and(|wait| wait > WAIT_MAX) {
        let given = wanted.wait.unwrap_or_default().to_string();
        let allowed = format!("at most {WAIT_MAX}");
        return Err(Refusal::OutOfRange { what: "wait", given, allowed }.into());
    }
    let machine = &workspace.machine;
    let request = Request {
        key: wanted.key.clone(),
        command: described(&wanted.command),
        ttl: wanted.ttl,
        process: machine.current().map(|identity| process_of(machine, &identity)),
        errand: false,
    };
    match turn(workspace, actor, &request, wanted.wait, door)? {
        Answer::Recorded(success, notices) => {
            door.was_told(&notices);
            let same_command = success.command.hash == request.command.hash;
            Ok(Outcome::Recorded { success, same_command })
        }
        Answer::Run(Turn { token, notices }) => {
            door.was_told(&notices);
            let mut at = AtWork { workspace, actor, key: &wanted.key, token };
            child::run(&mut at, &wanted.command, door).map(Outcome::Ran)
        }
    }
}

/// The program in words, and a hash that tells one command line from another.
pub(crate) fn described(words: &[OsString]) -> Command {
    let program = words.first().map(|word| word.to_string_lossy().into_owned());
    let mut hasher = blake3::Hasher::new();
    for word in words {
        hasher.update(&(word.len() as u64).to_le_bytes());
        hasher.update(word.as_bytes());
    }
    Command { program: program.unwrap_or_default(), hash: hasher.finalize().to_hex().to_string() }
}

/// Waits for a turn as long as asked to.
fn turn(
    workspace: &mut Workspace,
    actor: &Actor,
    request: &Request,
    wait: Option<Span>,
    door: &mut dyn Door,
) -> Result<Answer, Failure> {
    // Made before the first look at the state, so that no commit in between is missed.
    let mut news = match wait {
        Some(_) => Some(workspace.store.news()?),
        None => None,
    };
    let mut deadline: Option<Moment> = None;
    let mut told = None;
    loop {
        let observed = sighted(workspace, &request.key)?;
        let answer =
            workspace.decide(actor, observed, |view, context| once::begin(view, request, context));
        let (Some(news), Some(wait)) = (&mut news, wait) else {
            return answer;
        };
        let runner = match answer {
            Err(Failure::Refused(Refusal::Once(refused))) => match *refused {
                Refused::Running { runner, .. } => runner,
                other => return Err(Refusal::from(other).into()),
            },
            other => return other,
        };
        let now = workspace.store.snapshot()?.state().now;
        let deadline = *deadline.get_or_insert(now + wait);
        if now >= deadline {
            let key = request.key.clone();
            return Err(Refusal::from(Refused::Running { key, runner, waited: true }).into());
        }
        if told != Some(runner.token) {
            told = Some(runner.token);
            door.waits_for(&runner);
        }
        if sleep(workspace, &mut **news, &runner, deadline, now, door)? {
            let key = request.key.clone();
            return Err(Refusal::from(Refused::Running { key, runner, waited: true }).into());
        }
    }
}

/// Sleeps until something may have changed; true when somebody wants the wait to end.
fn sleep(
    workspace: &Workspace,
    news: &mut dyn News,
    runner: &Runner,
    deadline: Moment,
    now: Moment,
    door: &mut dyn Door,
) -> Result<bool, Failure> {
    let process = runner.process.as_ref();
    let watched: Option<OwnedFd> =
        process.and_then(|process| workspace.machine.watch(&identity_of(process)));
    let mut lasts = deadline.min(now + LOOK_AT_LEAST_EVERY);
    if watched.is_none() {
        // It may have ended since it was looked at, and then nothing would wake us.
        match process.map(|process| life_of(&workspace.machine, process)) {
            Some(Life::Dead) => return Ok(door.end_wanted().is_some()),
            Some(Life::Alive) => lasts = lasts.min(now + UNWATCHED_LOOK_EVERY),
            Some(Life::Unknown) | None => {}
        }
        if runner.lease_until > now {
            lasts = lasts.min(runner.lease_until);
        }
    }
    let mut also: Vec<BorrowedFd<'_>> = door.end_descriptors().to_vec();
    also.extend(watched.iter().map(AsFd::as_fd));
    news.wait(Duration::from_millis(lasts.since(now).0 + 1), &also)?;
    Ok(door.end_wanted().is_some())
}

/// How the one whose turn it is looks from here.
pub(crate) fn sighted(workspace: &mut Workspace, key: &Key) -> Result<Observed, Failure> {
    let known: Option<once::Once> =
        workspace
            .look(&Actor::default(), Observed::default(), |view, _| Ok(get(view, key.as_str())?))?;
    let mut observed = Observed::default();
    if let Some(Runner { token, process: Some(process), .. }) = known.and_then(|once| once.runner) {
        observed.runners.insert(token, life_of(&workspace.machine, &process));
    }
    Ok(observed)
}

/// A turn that is being used.
struct AtWork<'a> {
    workspace: &'a mut Workspace,
    actor: &'a Actor,
    key: &'a Key,
    token: Token,
}

impl AtWork<'_> {
    /// Shows that the command still runs. What cannot be written now is tried again the next time:
    /// the command is not stopped for it, and its end tells whether the turn was lost.
    fn renew(&mut self, door: &mut dyn Door) {
        let (key, token) = (self.key, self.token);
        let renewed = self.workspace.decide(self.actor, Observed::default(), |view, context| {
            once::renew(view, key, token, context)
        });
        if let Ok(notices) = renewed {
            door.was_told(&notices);
        }
    }

    /// Records the end. Twice, when the store did not say whether it was written: the second time
    /// tells the truth.
    fn finish(&mut self, end: &End, door: &mut dyn Door) -> Option<Failure> {
        let (key, token) = (self.key, self.token);
        let mut say = || {
            self.workspace.decide(self.actor, Observed::default(), |view, context| {
                once::finish(view, key, token, end, context)
            })
        };
        let said = match say() {
            Err(Failure::Store(_)) => say(),
            other => other,
        };
        match said {
            Ok(notices) => {
                door.was_told(&notices);
                None
            }
            Err(failure) => Some(failure),
        }
    }
}
