//! What a worker did and saw: one line when it asks, one when it is answered.
//!
//! Times are of the monotonic clock, which all processes of one machine share. A line is written
//! before the act it announces, so a worker killed in between leaves an act whose outcome nobody
//! knows, and the checker treats it so.

use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::path::Path;

use baton_core::id::{ClaimId, Token};
use serde::{Deserialize, Serialize};

use crate::failure::Failure;

/// Nanoseconds of the monotonic clock.
pub type Nanos = u64;

pub fn now() -> Nanos {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verb {
    Claim,
    Release,
    Renew,
    Check,
}

/// What was asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Act {
    pub session: String,
    pub verb: Verb,
    pub resources: Vec<String>,
    #[serde(default)]
    pub shared: bool,
    #[serde(default)]
    pub token: Option<Token>,
    /// The operation id as it stands in the journal, where one was given.
    #[serde(default)]
    pub operation: Option<String>,
}

/// What was answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Granted {
        claim: ClaimId,
        token: Token,
        already_held: bool,
    },
    Done,
    Refused {
        code: String,
    },
    /// No answer, or one that says it cannot tell.
    Unknown,
}

impl Outcome {
    pub fn acknowledges(&self) -> bool {
        matches!(self, Self::Granted { .. } | Self::Done)
    }
}

/// One act with both its ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    pub act: Act,
    pub invoked: Nanos,
    /// When and what was answered; nothing if the worker was killed first.
    pub returned: Option<(Nanos, Outcome)>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Invoke { id: u64, at: Nanos, act: Act },
    Return { id: u64, at: Nanos, outcome: Outcome },
}

/// The history a worker is writing.
#[derive(Debug)]
pub struct Recorder {
    file: File,
    next: u64,
}

impl Recorder {
    pub fn create(path: &Path) -> std::io::Result<Self> {
        let file = File::options().create(true).append(true).open(path)?;
        Ok(Self { file, next: 0 })
    }

    /// Notes the question, asks it, notes the answer.
    pub fn record(
        &mut self,
        act: &Act,
        ask: impl FnOnce(&Act) -> Outcome,
    ) -> std::io::Result<Outcome> {
        let id = self.next;
        self.next += 1;
        self.write(&Line::Invoke { id, at: now(), act: act.clone() })?;
        let outcome = ask(act);
        self.write(&Line::Return { id, at: now(), outcome: outcome.clone() })?;
        Ok(outcome)
    }

    /// One write for each line: what a killed worker had said stays said.
    fn write(&mut self, line: &Line) -> std::io::Result<()> {
        let mut text = serde_json::to_string(line)?;
        text.push('\n');
        self.file.write_all(text.as_bytes())
    }
}

/// Reads a worker's history. A last line that was cut off by a kill is left out.
pub fn read(text: &str) -> Result<Vec<Operation>, Failure> {
    let mut operations: Vec<Operation> = Vec::new();
    let mut open: HashMap<u64, usize> = HashMap::new();
    let lines: Vec<&str> = text.split('\n').collect();
    for (number, line) in lines.iter().enumerate() {
        let last = number + 1 == lines.len();
        if line.is_empty() || last {
            continue;
        }
        let parsed = serde_json::from_str(line);
        match parsed.map_err(|source| Failure::History { line: number + 1, source })? {
            Line::Invoke { id, at, act } => {
                open.insert(id, operations.len());
                operations.push(Operation { act, invoked: at, returned: None });
            }
            Line::Return { id, at, outcome } => {
                if let Some(index) = open.remove(&id) {
                    operations[index].returned = Some((at, outcome));
                }
            }
        }
    }
    Ok(operations)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_killed_worker_leaves_an_act_without_an_answer() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("history");
        let act = Act {
            session: "s1".into(),
            verb: Verb::Check,
            resources: vec!["a".into()],
            shared: false,
            token: None,
            operation: None,
        };
        let mut recorder = Recorder::create(&path).unwrap();
        recorder.record(&act, |_| Outcome::Done).unwrap();
        recorder.write(&Line::Invoke { id: 1, at: 5, act }).unwrap();
        let mut text = std::fs::read_to_string(&path).unwrap();
        text.push_str("{\"return\":{\"id\":1,\"at");
        let read = read(&text).unwrap();
        assert_eq!(read.len(), 2);
        assert!(matches!(read[0].returned, Some((_, Outcome::Done))));
        assert_eq!(read[1].returned, None);
    }
}
