//! One scripted worker: takes a task, works on it for a moment, and says that it is done.
//!
//! It runs the same commands a user would, and ends when there is nothing left to take or when its
//! input ends. Killed half-way through a task, it leaves the task to the others.

use std::path::PathBuf;
use std::process::{ExitCode, Output, Stdio};
use std::time::Duration;

use clap::Args;
use serde_json::Value;

use super::agent::{Dice, report, seed, start_session, wait_for_the_signal};
use super::{scratch, unable};
use crate::desk::Outcome;
use crate::words::Problem;

const WORK_MS: std::ops::Range<u64> = 80..320;
/// How long a worker rests while others hold all that is left.
const REST: Duration = Duration::from_millis(100);
/// How often an answer other than yes or no is taken before the worker gives up.
const FAILURES_MAX: u32 = 5;

#[derive(Debug, Args)]
pub(crate) struct DemoWorker {
    /// Its number
    #[arg(long, default_value_t = 0)]
    pub(super) number: u8,
    /// The repository it works in
    #[arg(long, default_value = ".")]
    pub(super) repository: PathBuf,
}

pub(crate) fn run(wanted: &DemoWorker) -> Outcome {
    let name = format!("worker-{}", wanted.number);
    let credential = start_session(&wanted.repository, &name)?;
    let mut worker =
        Worker { repository: wanted.repository.clone(), credential, dice: Dice(seed() | 1) };
    report("ready");
    wait_for_the_signal();
    while worker.work()? {}
    Ok(ExitCode::SUCCESS)
}

struct Worker {
    repository: PathBuf,
    credential: String,
    dice: Dice,
}

impl Worker {
    /// One task, or a rest while others work; false when nothing is left to do.
    fn work(&mut self) -> Result<bool, Problem> {
        let taken = self.baton(&["task", "take", "--json"])?;
        let reply: Value = serde_json::from_slice(&taken.stdout)
            .map_err(|error| unable("an answer cannot be read", &error))?;
        let Some(task) = reply["task"].as_str() else {
            let left = |what: &str| reply["refused"][what].as_u64().unwrap_or(0);
            if left("active") == 0 {
                return Ok(false);
            }
            std::thread::sleep(REST);
            return Ok(true);
        };
        report(&format!("took {task}"));
        std::thread::sleep(Duration::from_millis(self.dice.within(WORK_MS)));
        let token = reply["token"].as_str().unwrap_or_default();
        let words = ["task", "done", task, "--token", token, "--report-done", "the whole of it"];
        let done = self.baton(&[&words[..], &["--report-not-done", "nothing"]].concat())?;
        report(&match done.status.success() {
            true => format!("done {task}"),
            false => format!("late {task}"),
        });
        Ok(true)
    }

    /// Runs the real command, until it is a yes or a no.
    fn baton(&self, words: &[&str]) -> Result<Output, Problem> {
        let mut failures = 0;
        loop {
            let mut command = scratch::baton()?;
            command.args(words).current_dir(&self.repository);
            command.env("BATON_SESSION", &self.credential).stdin(Stdio::null());
            let output = command.output();
            let output = output.map_err(|error| unable("baton cannot be started", &error))?;
            match output.status.code() {
                Some(0 | 1 | 3) => return Ok(output),
                _ if failures < FAILURES_MAX => failures += 1,
                _ => {
                    let said = String::from_utf8_lossy(&output.stderr).replace('\n', " ");
                    return Err(unable(&words.join(" "), &said));
                }
            }
        }
    }
}
