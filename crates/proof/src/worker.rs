//! A worker: a process that claims, renews, checks and releases at random and writes down what it
//! was told.
//!
//! It also tries what must not work: tokens of claims it no longer has. Owns the choice of acts;
//! how they reach Baton is the door's business.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use baton_core::id::Token;
use baton_engine::workspace::Retry;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::history::{Act, Outcome, Recorder, Verb};
use crate::race;
use door::{Door, Terms};

pub mod door;

/// The variable that tells a process to be a worker, and which.
pub const VARIABLE: &str = "BATON_PROOF_WORKER";

const FOLDERS: u64 = 3;
const FILES: u64 = 4;
const HOLDS_MAX: usize = 4;
const OLD_TOKENS_MAX: usize = 8;
const TTL_MS: std::ops::Range<u64> = 1_000..6_000;
const WAIT_MS: std::ops::Range<u64> = 20..400;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Task {
    /// The workspace.
    pub folder: PathBuf,
    /// The shared store, or none for the workspace's own.
    pub store: Option<String>,
    /// Where its history goes.
    pub history: PathBuf,
    /// Act through this binary instead of the library.
    pub baton: Option<PathBuf>,
    pub milliseconds: u64,
    pub seed: u64,
    /// Race instead; this folder shows who is inside.
    pub arena: Option<Arena>,
}

/// Where racers meet, and what for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Arena {
    pub folder: PathBuf,
    pub prize: Prize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Prize {
    Path,
    Task,
}

impl Task {
    /// The task this process was started for, if it was.
    pub fn from_environment() -> Option<Self> {
        serde_json::from_str(&std::env::var(VARIABLE).ok()?).ok()
    }
}

/// Works until its time is over.
pub fn run(task: &Task) -> Result<(), Failure> {
    let mut door = Door::open(task)?;
    if let Some(arena) = &task.arena {
        return match arena.prize {
            Prize::Path => race::run(task, &arena.folder, &mut door),
            Prize::Task => race::tasks::run(task, &arena.folder, &mut door),
        };
    }
    let recorder = Recorder::create(&task.history);
    let mut worker = Worker {
        recorder: recorder.map_err(Failure::file("writing", &task.history))?,
        dice: Dice::new(task.seed),
        holds: Vec::new(),
        old: Vec::new(),
    };
    let started = Instant::now();
    let time = Duration::from_millis(task.milliseconds);
    while started.elapsed() < time {
        worker.act(&mut door).map_err(Failure::file("writing", &task.history))?;
    }
    Ok(())
}

#[derive(Clone, Debug)]
struct Hold {
    token: Token,
    resources: Vec<String>,
}

struct Worker {
    recorder: Recorder,
    dice: Dice,
    holds: Vec<Hold>,
    /// Holds it had: their tokens must not work any more.
    old: Vec<Hold>,
}

impl Worker {
    fn act(&mut self, door: &mut Door) -> std::io::Result<()> {
        let choice = self.dice.below(100);
        let full = self.holds.len() >= HOLDS_MAX;
        match choice {
            _ if self.holds.is_empty() => self.claim(door),
            0..40 if !full => self.claim(door),
            0..65 => self.let_go(door),
            65..75 => self.with_token(door, Verb::Renew),
            75..85 => self.with_token(door, Verb::Check),
            _ => self.with_old_token(door),
        }
    }

    fn claim(&mut self, door: &mut Door) -> std::io::Result<()> {
        let count = 1 + self.dice.below(3);
        let mut resources: Vec<String> = (0..count).map(|_| self.dice.resource()).collect();
        resources.sort();
        resources.dedup();
        let act = self.act_of(door, Verb::Claim, resources, None);
        let wait = self.dice.below(100) < 30;
        let terms = Terms {
            ttl_ms: self.dice.within(TTL_MS),
            wait_ms: wait.then(|| self.dice.within(WAIT_MS)),
            operation: self.named(&act),
        };
        let act = Act { shared: self.dice.below(100) < 30, ..with_operation(act, &terms) };
        let outcome = self.ask(door, &act, &terms)?;
        if let Outcome::Granted { token, .. } = outcome {
            self.holds.push(Hold { token, resources: act.resources });
        }
        Ok(())
    }

    fn let_go(&mut self, door: &mut Door) -> std::io::Result<()> {
        let index = self.dice.index(self.holds.len());
        let hold = self.holds.swap_remove(index);
        let act = self.act_of(door, Verb::Release, hold.resources.clone(), Some(hold.token));
        self.old.push(hold);
        if self.old.len() > OLD_TOKENS_MAX {
            self.old.remove(0);
        }
        let terms = Terms { operation: self.named(&act), ..Terms::default() };
        self.ask(door, &with_operation(act, &terms), &terms).map(|_| ())
    }

    fn with_token(&mut self, door: &mut Door, verb: Verb) -> std::io::Result<()> {
        let index = self.dice.index(self.holds.len());
        let hold = self.holds[index].clone();
        let act = self.act_of(door, verb, hold.resources, Some(hold.token));
        let named = if verb == Verb::Renew { self.named(&act) } else { None };
        let terms = Terms { operation: named, ..Terms::default() };
        let outcome = self.ask(door, &with_operation(act, &terms), &terms)?;
        if matches!(outcome, Outcome::Refused { .. }) {
            self.old.push(self.holds.swap_remove(index));
        }
        Ok(())
    }

    /// What a sleeper does that wakes up too late.
    fn with_old_token(&mut self, door: &mut Door) -> std::io::Result<()> {
        if self.old.is_empty() {
            return Ok(());
        }
        let index = self.dice.index(self.old.len());
        let hold = self.old[index].clone();
        let verb = [Verb::Check, Verb::Renew, Verb::Release][self.dice.index(3)];
        let act = self.act_of(door, verb, hold.resources, Some(hold.token));
        let named = if verb == Verb::Check { None } else { self.named(&act) };
        let terms = Terms { operation: named, ..Terms::default() };
        self.ask(door, &with_operation(act, &terms), &terms).map(|_| ())
    }

    fn act_of(&self, door: &Door, verb: Verb, resources: Vec<String>, token: Option<Token>) -> Act {
        let session = door.session().to_owned();
        Act { session, verb, resources, shared: false, token, operation: None }
    }

    /// An operation id for most acts; a claim can also be found by its token.
    fn named(&mut self, act: &Act) -> Option<String> {
        let always = act.verb == Verb::Renew;
        (always || self.dice.below(100) < 80)
            .then(|| format!("{:016x}{:016x}", self.dice.throw(), self.dice.throw()))
    }

    /// Asks, and asks again under the same id when the answer is not known, or now and then just
    /// to see that it is the same.
    fn ask(&mut self, door: &mut Door, act: &Act, terms: &Terms) -> std::io::Result<Outcome> {
        let mut outcome = self.recorder.record(act, |act| door.ask(act, terms))?;
        let again = outcome == Outcome::Unknown || self.dice.below(100) < 5;
        if terms.operation.is_some() && again && !matches!(outcome, Outcome::Refused { .. }) {
            outcome = self.recorder.record(act, |act| door.ask(act, terms))?;
        }
        Ok(outcome)
    }
}

/// The act with its operation id as the journal spells it.
fn with_operation(act: Act, terms: &Terms) -> Act {
    let spelled = |id: &String| Retry::of(id, "", &()).operation;
    Act { operation: terms.operation.as_ref().map(spelled), ..act }
}

/// Xorshift, good enough to choose.
#[derive(Debug)]
pub struct Dice(u64);

impl Dice {
    /// Mixed (splitmix64), so that dice seeded by other dice do not throw the same numbers later.
    pub fn new(seed: u64) -> Self {
        let mut mixed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Self((mixed ^ (mixed >> 31)) | 1)
    }

    pub fn throw(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.throw() % limit.max(1)
    }

    pub fn within(&mut self, range: std::ops::Range<u64>) -> u64 {
        range.start + self.below(range.end - range.start)
    }

    pub fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap_or(0)
    }

    /// Few enough that workers meet all the time: files, whole folders, a named thing.
    fn resource(&mut self) -> String {
        let folder = self.below(FOLDERS);
        match self.below(20) {
            0..2 => format!("d{folder}/"),
            2 => "@deploy/prod".to_owned(),
            _ => format!("d{folder}/f{}", self.below(FILES)),
        }
    }
}
