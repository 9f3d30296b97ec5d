//! Many workers on one workspace, with faults: kills, stops, a moving clock.
//!
//! Owns the scratch workspace, the workers' processes and the faults. What came of it is judged by
//! the checker from the histories the workers left and the journal the store kept.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use baton_core::journal::Entry;
use baton_engine::place::test_hooks;
use baton_engine::setup;
use baton_engine::workspace::Workspace;
use rustix::process::{Pid, Signal, kill_process};

use crate::checker::{self, Report};
use crate::failure::Failure;
use crate::history;
use crate::race::{self, Score};
use crate::worker::{Arena, Dice, Prize, Task, VARIABLE};

/// How long after its time a worker may still be in its last act.
const LAST_ACT_MAX: Duration = Duration::from_secs(40);
/// One fault in about this time.
const FAULT_EVERY_MS: std::ops::Range<u64> = 80..400;
const STOP_MS: std::ops::Range<u64> = 50..1_500;
const CLOCK_STEP_MS: u64 = 4_000;
const PAGE: u32 = 10_000;

/// What to run.
#[derive(Debug)]
pub struct Plan {
    pub workers: usize,
    pub time: Duration,
    /// The address of a shared store, or none for SQLite.
    pub store: Option<String>,
    pub faults: bool,
    /// Every second worker acts through this binary.
    pub baton: Option<PathBuf>,
    /// The program that becomes a worker when it finds its task in the environment.
    pub program: Program,
}

/// How a worker is started.
#[derive(Clone, Debug)]
pub struct Program {
    pub path: PathBuf,
    pub arguments: Vec<String>,
}

/// What was done to the workers, told as it happens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    pub kills: u64,
    pub stops: u64,
    pub clock_moved_ms: u64,
}

/// A scratch workspace for one proof.
#[derive(Debug)]
pub struct Ground {
    folder: tempfile::TempDir,
    store: Option<String>,
}

impl Ground {
    pub fn make(store: Option<&str>) -> Result<Self, Failure> {
        let folder = tempfile::Builder::new().prefix("baton-proof-").tempdir();
        let folder = folder.map_err(Failure::file("making", &std::env::temp_dir()))?;
        let ground = Self { folder, store: store.map(str::to_owned) };
        let root = ground.root();
        let made = std::fs::create_dir_all(&root)
            .and_then(|()| std::fs::create_dir_all(ground.histories()));
        made.map_err(Failure::file("making", &root))?;
        let git = Command::new("git").args(["init", "--quiet"]).current_dir(&root).status();
        git.map_err(|source| Failure::NotStarted { what: "git".to_owned(), source })?;
        let (workspace, _) = setup::make(&root, store)?;
        let marker = workspace.place.store.join(test_hooks::MARKER);
        let marked = std::fs::create_dir_all(&workspace.place.store)
            .and_then(|()| std::fs::write(&marker, ""));
        marked.map_err(Failure::file("writing", &marker))?;
        Ok(ground)
    }

    /// Leaves everything where it is.
    pub fn keep(self) -> PathBuf {
        self.folder.keep()
    }

    pub fn root(&self) -> PathBuf {
        self.folder.path().join("repository")
    }

    fn histories(&self) -> PathBuf {
        self.folder.path().join("histories")
    }

    pub fn open(&self) -> Result<Workspace, Failure> {
        Ok(Workspace::open(&self.root(), self.store.as_deref())?)
    }

    /// The whole journal.
    pub fn journal(&self) -> Result<Vec<Entry>, Failure> {
        let mut workspace = self.open()?;
        let snapshot = workspace.store.snapshot()?;
        let mut journal: Vec<Entry> = Vec::new();
        loop {
            let after = journal.last().map_or(0, |entry| entry.position.number);
            let page = snapshot.entries(after, PAGE)?;
            if page.is_empty() {
                return Ok(journal);
            }
            journal.extend(page);
        }
    }

    /// Holds every history of this ground against the journal.
    pub fn check(&self) -> Result<Report, Failure> {
        let mut operations = Vec::new();
        for path in files_in(&self.histories())? {
            let text = std::fs::read_to_string(&path).map_err(Failure::file("reading", &path))?;
            operations.extend(history::read(&text)?);
        }
        Ok(checker::check(&operations, &self.journal()?))
    }
}

fn files_in(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let entries = std::fs::read_dir(folder).map_err(Failure::file("reading", folder))?;
    Ok(entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect())
}

/// Runs the traffic and gives what was done to it; `told` hears of the faults as they happen.
pub fn run(
    ground: &Ground,
    plan: &Plan,
    seed: u64,
    told: &mut dyn FnMut(&Faults),
) -> Result<Faults, Failure> {
    let mut traffic = Traffic {
        ground,
        plan,
        dice: Dice::new(seed),
        started: Instant::now(),
        workers: Vec::new(),
        stopped: Vec::new(),
        births: 0,
        faults: Faults::default(),
    };
    for index in 0..plan.workers {
        let worker = traffic.birth(index)?;
        traffic.workers.push(worker);
    }
    while traffic.started.elapsed() < plan.time {
        std::thread::sleep(Duration::from_millis(traffic.dice.within(FAULT_EVERY_MS)));
        traffic.resume(Instant::now());
        if plan.faults {
            traffic.fault()?;
        }
        told(&traffic.faults);
    }
    traffic.end()
}

struct Traffic<'a> {
    ground: &'a Ground,
    plan: &'a Plan,
    dice: Dice,
    started: Instant,
    workers: Vec<Child>,
    /// Who is stopped, and until when.
    stopped: Vec<(usize, Instant)>,
    births: usize,
    faults: Faults,
}

impl Traffic<'_> {
    fn birth(&mut self, index: usize) -> Result<Child, Failure> {
        self.births += 1;
        let rest = self.plan.time.saturating_sub(self.started.elapsed());
        let task = Task {
            folder: self.ground.root(),
            store: self.plan.store.clone(),
            history: self.ground.histories().join(format!("{}.jsonl", self.births)),
            baton: self.plan.baton.clone().filter(|_| index % 2 == 1),
            milliseconds: u64::try_from(rest.as_millis()).unwrap_or(u64::MAX),
            seed: self.dice.throw(),
            arena: None,
        };
        start(&self.plan.program, &task, self.faults.clock_moved_ms)
    }

    fn fault(&mut self) -> Result<(), Failure> {
        let index = self.dice.index(self.workers.len());
        if self.dice.below(100) < 60 {
            // SIGKILL, in whatever it is doing.
            let _ = self.workers[index].kill();
            let _ = self.workers[index].wait();
            self.faults.kills += 1;
            self.faults.clock_moved_ms += self.dice.below(CLOCK_STEP_MS);
            self.workers[index] = self.birth(index)?;
        } else if signal(&self.workers[index], Signal::STOP) {
            let until = Instant::now() + Duration::from_millis(self.dice.within(STOP_MS));
            self.stopped.push((index, until));
            self.faults.stops += 1;
        }
        Ok(())
    }

    /// Lets stopped workers go on when their time has come. One that was killed meanwhile has a
    /// successor that does not mind.
    fn resume(&mut self, now: Instant) {
        let over: Vec<usize> = self
            .stopped
            .iter()
            .filter(|(_, until)| *until <= now)
            .map(|(index, _)| *index)
            .collect();
        self.stopped.retain(|(_, until)| *until > now);
        for index in over {
            signal(&self.workers[index], Signal::CONT);
        }
    }

    fn end(mut self) -> Result<Faults, Failure> {
        let end = Instant::now() + LAST_ACT_MAX;
        while let Some((index, _)) = self.stopped.pop() {
            signal(&self.workers[index], Signal::CONT);
        }
        for worker in &mut self.workers {
            wait_until(worker, end)?;
        }
        Ok(self.faults)
    }
}

impl Drop for Traffic<'_> {
    fn drop(&mut self) {
        for worker in &mut self.workers {
            let _ = worker.kill();
            let _ = worker.wait();
        }
    }
}

fn signal(worker: &Child, signal: Signal) -> bool {
    let pid = i32::try_from(worker.id()).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| kill_process(pid, signal).is_ok())
}

fn start(program: &Program, task: &Task, clock_moved_ms: u64) -> Result<Child, Failure> {
    let mut command = Command::new(&program.path);
    command.args(&program.arguments).stdin(Stdio::null()).stdout(Stdio::null());
    command.env(VARIABLE, serde_json::to_string(task).unwrap_or_default());
    command.env(test_hooks::CLOCK_ADVANCE_MS, clock_moved_ms.to_string());
    // A worker is nobody's agent: whoever started the proof must not shine through.
    command.env_remove("BATON_SESSION").env_remove("BATON_AGENT");
    match &task.store {
        Some(store) => command.env("BATON_STORE", store),
        None => command.env_remove("BATON_STORE"),
    };
    command.spawn().map_err(|source| Failure::NotStarted { what: "a worker".to_owned(), source })
}

/// Waits for a worker to end by itself; one that does not, or fails, is a failure of the proof.
fn wait_until(worker: &mut Child, end: Instant) -> Result<(), Failure> {
    let fault = |source| Failure::NotStarted { what: "a worker".to_owned(), source };
    loop {
        match worker.try_wait().map_err(fault)? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(Failure::said("a worker failed", status.to_string())),
            None if Instant::now() > end => {
                return Err(Failure::said("a worker", "does not come to an end"));
            }
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

/// All racers at once for one path, or for each task; no faults, so whoever is inside is alive.
pub fn race(ground: &Ground, plan: &Plan, prize: Prize, seed: u64) -> Result<Score, Failure> {
    let arena = ground.folder.path().join(match prize {
        Prize::Path => "arena",
        Prize::Task => "arena of tasks",
    });
    std::fs::create_dir_all(&arena).map_err(Failure::file("making", &arena))?;
    let mut dice = Dice::new(seed);
    let mut racers = Vec::new();
    for index in 0..plan.workers {
        let task = Task {
            folder: ground.root(),
            store: plan.store.clone(),
            history: arena.join(format!("score-{index}")),
            baton: plan.baton.clone().filter(|_| index % 2 == 1 && prize == Prize::Path),
            milliseconds: u64::try_from(plan.time.as_millis()).unwrap_or(u64::MAX),
            seed: dice.throw(),
            arena: Some(Arena { folder: arena.clone(), prize }),
        };
        racers.push((task.history.clone(), start(&plan.program, &task, 0)?));
    }
    let end = Instant::now() + plan.time + LAST_ACT_MAX;
    let mut score = Score::default();
    for (path, mut racer) in racers {
        let waited = wait_until(&mut racer, end);
        if waited.is_err() {
            let _ = racer.kill();
        }
        waited?;
        score.add(race::read(&path)?);
    }
    Ok(score)
}
