//! Starting a program many times and looking at the times.
//!
//! Owns how a sample is taken: spawned with nothing on its input and outputs, timed from before the
//! spawn until its end is known. The floor and Baton are started in exactly the same way.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::failure::Failure;

/// A program with the surroundings it is always started in.
#[derive(Clone, Debug)]
pub(super) struct Call {
    program: PathBuf,
    folder: PathBuf,
    credential: String,
}

impl Call {
    pub(super) fn new(program: &Path, folder: &Path, credential: &str) -> Self {
        let (program, folder) = (program.to_owned(), folder.to_owned());
        Self { program, folder, credential: credential.to_owned() }
    }

    pub(super) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        // A small environment: what the caller's holds would be paid for by everybody.
        command.args(words).current_dir(&self.folder).env_clear();
        command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        if !self.credential.is_empty() {
            command.env("BATON_SESSION", &self.credential);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// One start to its end; anything but success is a failure of the measurement.
    pub(super) fn time(&self, words: &[&str]) -> Result<Duration, Failure> {
        let (time, code) = self.attempt(words)?;
        match code {
            Some(0) => Ok(time),
            other => Err(Failure::said(words.join(" "), format!("ended with {other:?}"))),
        }
    }

    /// Not for timing: what it said comes with a failure.
    pub(super) fn run(&self, words: &[&str]) -> Result<(), Failure> {
        let output = self.command(words).stderr(Stdio::piped()).output();
        let what = || self.program.display().to_string();
        let output = output.map_err(|source| Failure::NotStarted { what: what(), source })?;
        match output.status.success() {
            true => Ok(()),
            false => Err(Failure::said(words.join(" "), String::from_utf8_lossy(&output.stderr))),
        }
    }

    /// The time and the document it answered with; anything but success is a failure.
    pub(super) fn answer(&self, words: &[&str]) -> Result<(Duration, Value), Failure> {
        match self.reply(words)? {
            (time, Some(0), document) => Ok((time, document)),
            (_, code, document) => {
                Err(Failure::said(words.join(" "), format!("ended with {code:?}: {document}")))
            }
        }
    }

    /// As `answer`, whatever the answer is.
    pub(super) fn reply(&self, words: &[&str]) -> Result<(Duration, Option<i32>, Value), Failure> {
        let mut command = self.command(words);
        command.stdout(Stdio::piped());
        let started = Instant::now();
        let output = command.output();
        let time = started.elapsed();
        let what = || self.program.display().to_string();
        let output = output.map_err(|source| Failure::NotStarted { what: what(), source })?;
        let document = serde_json::from_slice(&output.stdout).unwrap_or_default();
        Ok((time, output.status.code(), document))
    }

    pub(super) fn attempt(&self, words: &[&str]) -> Result<(Duration, Option<i32>), Failure> {
        let mut command = self.command(words);
        let started = Instant::now();
        let status = command.status();
        let time = started.elapsed();
        let what = || self.program.display().to_string();
        let status = status.map_err(|source| Failure::NotStarted { what: what(), source })?;
        Ok((time, status.code()))
    }
}

/// Sorted times.
#[derive(Clone, Debug, Default)]
pub(super) struct Spread(Vec<Duration>);

impl Spread {
    pub(super) fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        Self(times)
    }

    /// In milliseconds; `part` from 0 to 1.
    pub(super) fn at(&self, part: f64) -> f64 {
        let last = self.0.len().saturating_sub(1);
        let index = ((last as f64) * part).round() as usize;
        self.0.get(index.min(last)).map_or(0.0, |time| time.as_secs_f64() * 1e3)
    }

    pub(super) fn p50(&self) -> f64 {
        self.at(0.5)
    }

    pub(super) fn p99(&self) -> f64 {
        self.at(0.99)
    }

    pub(super) fn max(&self) -> f64 {
        self.at(1.0)
    }

    pub(super) fn mean(&self) -> f64 {
        let total: Duration = self.0.iter().sum();
        total.as_secs_f64() * 1e3 / self.0.len().max(1) as f64
    }
}

/// Takes `rounds` samples of every series in turn.
pub(super) fn interleaved<const SERIES: usize>(
    rounds: usize,
    mut take: impl FnMut(usize, usize) -> Result<Duration, Failure>,
) -> Result<[Spread; SERIES], Failure> {
    let mut times: [Vec<Duration>; SERIES] = std::array::from_fn(|_| Vec::with_capacity(rounds));
    for round in 0..rounds {
        // Each round begins with another series: none is always the one after the cache was cold.
        for step in 0..SERIES {
            let series = (round + step) % SERIES;
            times[series].push(take(round, series)?);
        }
    }
    Ok(times.map(Spread::of))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_knows_its_middle_its_tail_and_its_mean() {
        let spread = Spread::of((1..=101).rev().map(Duration::from_millis).collect());
        assert_eq!((spread.p50(), spread.p99(), spread.max()), (51.0, 100.0, 101.0));
        assert!((spread.mean() - 51.0).abs() < 0.001);
    }
}
