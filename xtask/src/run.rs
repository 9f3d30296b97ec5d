//! How xtask runs other programs, and keeps the tally of what it did.
//!
//! Every program goes through here: it is shown before it starts, its output streams through
//! unchanged, and its time is told. [`Steps`] is the tally: one line for each step at the end, also
//! when a step failed, so that the last screen of a long run says what happened.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::failure::Failure;

/// The root of the repository: xtask is always run from its own source.
pub(crate) fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}

/// Where cargo builds, which may have been moved by the environment.
pub(crate) fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(folder) => root().join(folder),
        None => root().join("target"),
    }
}

/// The cargo that started us, so that a `+toolchain` holds for what we start.
pub(crate) fn cargo<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.current_dir(root()).args(arguments);
    command
}

/// Runs a program to its end with its output on ours and nothing on its input.
pub(crate) fn stream(command: &mut Command) -> Result<(), Failure> {
    let line = line_of(command);
    println!("$ {line}");
    let started = Instant::now();
    let status = command.stdin(Stdio::null()).status();
    let status = status.map_err(|source| Failure::NotStarted { line: line.clone(), source })?;
    println!("  {}", seconds(started.elapsed()));
    if status.success() { Ok(()) } else { Err(Failure::Program { line, status }) }
}

/// Runs a program and gives what it printed, or nothing if it cannot be had or fails: for asking
/// the machine what it has, where "no such program" is an answer.
pub(crate) fn ask(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// A command as a person would type it: the environment we set, the program's name, the arguments.
fn line_of(command: &Command) -> String {
    let name = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let set = command.get_envs().filter_map(|(key, value)| {
        value.map(|value| format!("{}={}", key.display(), quoted(value)))
    });
    let words = std::iter::once(name).chain(command.get_args()).map(quoted);
    set.chain(words).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.into_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

pub(crate) fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

/// How a step that did not fail ended.
pub(crate) enum Ended {
    Passed,
    /// Not done, and why: told again at the end, so that "all passed" never hides it.
    Skipped(String),
}

/// The tally of a run.
pub(crate) struct Steps {
    planned: usize,
    done: Vec<(&'static str, String, Duration)>,
}

impl Steps {
    pub(crate) fn new(planned: usize) -> Self {
        Self { planned, done: Vec::new() }
    }

    /// Does one step and notes how it ended.
    pub(crate) fn step(
        &mut self,
        name: &'static str,
        work: impl FnOnce() -> Result<Ended, Failure>,
    ) -> Result<(), Failure> {
        println!("\n[{}/{}] {name}", self.done.len() + 1, self.planned);
        let started = Instant::now();
        let ended = work();
        let (how, result) = match ended {
            Ok(Ended::Passed) => ("passed".to_owned(), Ok(())),
            Ok(Ended::Skipped(why)) => {
                println!("  skipped: {why}");
                (format!("skipped: {why}"), Ok(()))
            }
            Err(failure) => ("FAILED".to_owned(), Err(failure)),
        };
        self.done.push((name, how, started.elapsed()));
        result
    }

    /// One line for each step.
    pub(crate) fn table(&self) -> String {
        let width = self.done.iter().map(|(name, ..)| name.len()).max().unwrap_or(0);
        let mut text = String::from("\n");
        for (name, how, time) in &self.done {
            text.push_str(&format!("  {name:<width$}  {:>8}  {how}\n", seconds(*time)));
        }
        let total = self.done.iter().map(|(.., time)| *time).sum();
        text.push_str(&format!("  {:<width$}  {:>8}\n", "all", seconds(total)));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_as_it_would_be_typed() {
        let mut command = Command::new("/usr/bin/cargo");
        command.args(["test", "two words", "it's", ""]).env("A", "b c").env_remove("GONE");
        assert_eq!(line_of(&command), r"A='b c' cargo test 'two words' 'it'\''s' ''");
    }

    #[test]
    fn a_failing_program_is_a_failure_and_a_missing_one_too() {
        let failed = stream(Command::new("sh").args(["-c", "exit 3"]));
        assert!(matches!(failed, Err(Failure::Program { .. })), "{failed:?}");
        let missing = stream(&mut Command::new("no-such-program-here"));
        assert!(matches!(missing, Err(Failure::NotStarted { .. })), "{missing:?}");
        assert_eq!(ask(Command::new("sh").args(["-c", "echo yes; exit 1"])), None);
        assert_eq!(ask(Command::new("sh").args(["-c", "echo yes"])).as_deref(), Some("yes"));
    }

    #[test]
    fn the_tally_tells_each_step_also_the_one_that_failed() {
        let mut steps = Steps::new(3);
        assert!(steps.step("one", || Ok(Ended::Passed)).is_ok());
        assert!(steps.step("two", || Ok(Ended::Skipped("no tool".to_owned()))).is_ok());
        let failed = steps.step("three", || Err(Failure::Untidy { findings: 2 }));
        assert!(failed.is_err());
        let table = steps.table();
        for expected in ["one", "passed", "skipped: no tool", "three", "FAILED", "all"] {
            assert!(table.contains(expected), "{expected:?} in {table}");
        }
    }
}
