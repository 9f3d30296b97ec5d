//! The oldest fault of this field: two workers claim one thing and both win.
//!
//! Racers take one path as fast as they can. Whoever is granted it puts a file in the arena that
//! must not be there, so a second holder is seen at once and without trusting Baton's journal.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::history::{Act, Outcome, Verb};
use crate::worker::Task;
use crate::worker::door::{Door, Terms};

pub mod tasks;

/// What one racer, or all together, came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Score {
    /// Times that exactly one held it.
    pub rounds: u64,
    pub refused: u64,
    pub unknown: u64,
    /// Times that somebody else was inside.
    pub violations: u64,
}

impl Score {
    pub fn add(&mut self, other: Self) {
        self.rounds += other.rounds;
        self.refused += other.refused;
        self.unknown += other.unknown;
        self.violations += other.violations;
    }
}

/// The score a racer left.
pub fn read(path: &Path) -> Result<Score, Failure> {
    let text = fs::read_to_string(path).map_err(Failure::file("reading", path))?;
    serde_json::from_str(&text).map_err(|source| Failure::History { line: 1, source })
}

pub(crate) fn run(task: &Task, arena: &Path, door: &mut Door) -> Result<(), Failure> {
    let act = |verb, token| Act {
        session: door.session().to_owned(),
        verb,
        resources: vec!["the/one/path".to_owned()],
        shared: false,
        token,
        operation: None,
    };
    let (claim, mut release) = (act(Verb::Claim, None), act(Verb::Release, None));
    let terms = Terms { ttl_ms: 600_000, ..Terms::default() };
    let inside = arena.join("inside");
    let mut score = Score::default();
    let started = Instant::now();
    let time = Duration::from_millis(task.milliseconds);
    while started.elapsed() < time {
        match door.ask(&claim, &terms) {
            Outcome::Granted { token, .. } => {
                release.token = Some(token);
                match fs::File::options().write(true).create_new(true).open(&inside) {
                    Ok(_) => score.rounds += 1,
                    Err(_) => score.violations += 1,
                }
                let _ = fs::remove_file(&inside);
                if door.ask(&release, &terms) != Outcome::Done {
                    score.unknown += 1;
                }
            }
            Outcome::Refused { .. } => score.refused += 1,
            Outcome::Done | Outcome::Unknown => score.unknown += 1,
        }
    }
    write(&task.history, &score)
}

fn write(path: &Path, score: &Score) -> Result<(), Failure> {
    let text = serde_json::to_string(score).unwrap_or_default();
    fs::write(path, text).map_err(Failure::file("writing", path))
}
