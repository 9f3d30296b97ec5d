//! `cargo xtask soak`: the proof for as long as asked, with everything that goes wrong in life.
//!
//! Works in stretches, each on a fresh workspace, so that what is known is checked while the rest
//! still runs, and memory stays bounded. One violation anywhere is the end and exit code 1.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::checker::Report;
use crate::failure::Failure;
use crate::race::Score;
use crate::traffic::{self, Faults, Ground, Plan, Program};
use crate::worker::Prize;

pub const HELP: &str = "\
Usage: cargo xtask soak [--minutes N] [--store sqlite|postgres] [--workers N] [--baton PATH]

Real processes claim, renew, check and release at random, half of them through the binary, while
some are killed with -9, some are stopped for a while, and the clock moves on. Their histories are
held against the journal: S1, S4, S5, S12 and real-time order. Then they race for one path, and
for tasks (S6, S7).

  --minutes N   how long (1)
  --store S     sqlite (the default) or postgres, a cluster of its own
  --workers N   how many processes (8)
";

const STRETCH: Duration = Duration::from_secs(60);
/// The part of each stretch that goes to each of the races.
const RACE_PART: f64 = 0.2;
const SHOWN_MAX: usize = 20;

#[derive(Debug)]
struct Options {
    time: Duration,
    postgres: bool,
    workers: usize,
    baton: Option<PathBuf>,
}

#[derive(Debug, Default)]
struct Totals {
    report: Report,
    faults: Faults,
    race: Score,
    tasks: Score,
}

impl Totals {
    fn violations(&self) -> u64 {
        self.report.violations.len() as u64 + self.race.violations + self.tasks.violations
    }

    fn line(&self, elapsed: Duration) -> String {
        let Self { report, faults, race, tasks } = self;
        format!(
            "{:>5.0} s  {} operations ({} acknowledged, {} refused, {} unknown), {} grants, \
             {} kills, {} stops, clock +{:.0} s, race {} rounds, {} tasks raced for, \
             {} violations",
            elapsed.as_secs_f64(),
            report.operations,
            report.acknowledged,
            report.refused,
            report.unknown,
            report.grants,
            faults.kills,
            faults.stops,
            faults.clock_moved_ms as f64 / 1e3,
            race.rounds,
            tasks.rounds,
            self.violations(),
        )
    }
}

/// True when nothing was violated.
pub fn run(words: &[String]) -> Result<bool, Failure> {
    let options = parse(words)?;
    let program = std::env::current_exe();
    let path = program.map_err(|source| Failure::NotStarted { what: "a worker".into(), source })?;
    let program = Program { path, arguments: vec!["worker".to_owned()] };
    let mut totals = Totals::default();
    let started = Instant::now();
    while started.elapsed() < options.time && totals.violations() == 0 {
        let rest = options.time - started.elapsed();
        let stretch = rest.min(STRETCH);
        one_stretch(&options, &program, stretch, started, &mut totals)?;
        say(&totals.line(started.elapsed()), true);
    }
    for violation in totals.report.violations.iter().take(SHOWN_MAX) {
        say(&format!("VIOLATION {violation:?}"), true);
    }
    Ok(totals.violations() == 0)
}

fn one_stretch(
    options: &Options,
    program: &Program,
    stretch: Duration,
    started: Instant,
    totals: &mut Totals,
) -> Result<(), Failure> {
    let store = match options.postgres {
        false => None,
        true => Some(postgres()?),
    };
    let plan = |time, faults| Plan {
        workers: options.workers,
        time,
        store: store.clone(),
        faults,
        baton: options.baton.clone(),
        program: program.clone(),
    };
    let ground = Ground::make(store.as_deref())?;
    let mut seed = [0; 8];
    getrandom::fill(&mut seed)
        .map_err(|error| Failure::said("no randomness", error.to_string()))?;
    let seed = u64::from_le_bytes(seed);
    let before = totals.faults;
    let show = &mut |faults: &Faults| {
        let line = format!(
            "{:>5.0} s  {} kills, {} stops, so far {} operations, {} violations",
            started.elapsed().as_secs_f64(),
            before.kills + faults.kills,
            before.stops + faults.stops,
            totals.report.operations,
            totals.violations(),
        );
        say(&line, false);
    };
    let faults =
        traffic::run(&ground, &plan(stretch.mul_f64(1.0 - 2.0 * RACE_PART), true), seed, show)?;
    totals.faults.kills += faults.kills;
    totals.faults.stops += faults.stops;
    totals.faults.clock_moved_ms += faults.clock_moved_ms;
    totals.report.add(ground.check()?);
    let racing = plan(stretch.mul_f64(RACE_PART), false);
    totals.race.add(traffic::race(&ground, &racing, Prize::Path, seed)?);
    totals.tasks.add(traffic::race(&ground, &racing, Prize::Task, seed)?);
    if totals.violations() > 0 {
        say(&format!("kept for a look: {}", ground.keep().display()), true);
        return Ok(());
    }
    verify(options, &ground, store.as_deref())
}

/// The binary's own opinion of the journal that came of it.
fn verify(options: &Options, ground: &Ground, store: Option<&str>) -> Result<(), Failure> {
    let Some(baton) = &options.baton else { return Ok(()) };
    let mut command = std::process::Command::new(baton);
    command.args(["journal", "verify"]).current_dir(ground.root());
    if let Some(store) = store {
        command.env("BATON_STORE", store);
    }
    let output = command.output();
    let output = output.map_err(|source| Failure::NotStarted { what: "baton".into(), source })?;
    match output.status.code() {
        Some(0) => Ok(()),
        Some(2) => {
            say("journal verify was left out: this binary does not offer it", true);
            Ok(())
        }
        _ => Err(Failure::said("journal verify", String::from_utf8_lossy(&output.stderr))),
    }
}

/// A new database in a cluster that ends with this process.
pub(crate) fn postgres() -> Result<String, Failure> {
    let cluster = baton_testing::cluster::shared();
    let cluster = cluster.map_err(|error| Failure::said("PostgreSQL", error.to_string()))?;
    let made = cluster.create_database();
    let database = made.map_err(|error| Failure::said("PostgreSQL", error.to_string()))?;
    Ok(cluster.address(&database))
}

/// One line, drawn over on a terminal until it is final; pipes get the final ones.
fn say(line: &str, last: bool) {
    let mut out = std::io::stdout().lock();
    let moving = out.is_terminal();
    if !moving && !last {
        return;
    }
    let (home, clear) = if moving { ("\r", "\u{1b}[K") } else { ("", "") };
    let end = if last { "\n" } else { "" };
    let _ = write!(out, "{home}{line}{clear}{end}").and_then(|()| out.flush());
}

fn parse(words: &[String]) -> Result<Options, Failure> {
    let minute = Duration::from_secs(60);
    let mut options = Options { time: minute, postgres: false, workers: 8, baton: None };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let usage = || Failure::Usage { word: word.clone() };
        let value = words.next().ok_or_else(usage)?;
        match (word.as_str(), value.as_str()) {
            ("--minutes", number) => {
                let minutes: f64 = number.parse().map_err(|_| usage())?;
                options.time = Duration::try_from_secs_f64(minutes * 60.0).map_err(|_| usage())?;
            }
            ("--store", "sqlite") => options.postgres = false,
            ("--store", "postgres") => options.postgres = true,
            ("--workers", number) => options.workers = number.parse().map_err(|_| usage())?,
            ("--baton", path) => options.baton = Some(path.into()),
            _ => return Err(usage()),
        }
    }
    Ok(options)
}
