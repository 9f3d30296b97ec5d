//! Running a short command for somebody: no shell, bounded time, little output.
//!
//! Owns commands that Baton starts itself: the check of a gate, the user's own `notify`. They never
//! run under the store's lock; one that does not end in time is ended; what proves a session or a
//! person is not handed on.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use crate::sandbox;

/// How much of the end of the output is looked at.
const OUTPUT_BYTES_MAX: usize = 4 * 1024;
const LOOKED_FOR_EVERY: Duration = Duration::from_millis(20);
/// A child of the command may hold its output open; it is not waited for.
const LAST_WORDS: Duration = Duration::from_millis(200);
/// What must not reach a command that acts for nobody in particular.
const SECRETS: [&str; 2] = ["BATON_SESSION", "BATON_PERSON_TOKEN_FILE"];

fn kept_back() -> impl Iterator<Item = &'static str> {
    SECRETS.into_iter().chain(sandbox::OF_CALLS)
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Came {
    pub well: bool,
    /// In words: `exit 1: no such table`, `it took longer than 20s`.
    pub saw: String,
    /// The exit code, as a shell counts it.
    pub code: u8,
}

/// Runs a program with its arguments; whatever goes wrong is what came of it.
pub fn run(
    argv: &[String],
    folder: &Path,
    environment: &[(&str, String)],
    input: &str,
    at_most: Duration,
) -> Came {
    let Some((program, arguments)) = argv.split_first() else {
        return Came { well: false, saw: "there is no command".to_owned(), code: 127 };
    };
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder);
    for name in kept_back() {
        command.env_remove(name);
    }
    command.envs(environment.iter().map(|(name, value)| (name, value)));
    let started = std::io::pipe().and_then(|(reader, writer)| {
        command.stdin(Stdio::piped()).stdout(writer.try_clone()?).stderr(writer);
        Ok((command.spawn()?, reader))
    });
    // The command holds the other end of its output, until it is dropped.
    drop(command);
    let (mut child, reader) = match started {
        Ok(started) => started,
        Err(error) => {
            let code = if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 };
            return Came { well: false, saw: format!("cannot run {program}: {error}"), code };
        }
    };
    let said = listen(reader);
    if let Some(mut stdin) = child.stdin.take() {
        // One that does not read what it is told must not hold us up.
        let input = input.to_owned();
        std::thread::spawn(move || drop(stdin.write_all(input.as_bytes())));
    }
    let Some(status) = attend(&mut child, at_most) else {
        let saw = format!("it took longer than {}s", at_most.as_secs());
        return Came { well: false, saw, code: 124 };
    };
    let last = last_line(&said.recv_timeout(LAST_WORDS).unwrap_or_default());
    let code = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(255);
    let words = match status.code() {
        Some(code) => format!("exit {code}"),
        None => "it was killed".to_owned(),
    };
    let saw = if last.is_empty() { words } else { format!("{words}: {last}") };
    Came { well: status.success(), saw, code }
}

/// Runs a program whose output is what is wanted, into a file. Answers whether it went well.
pub(crate) fn run_into(argv: &[String], folder: &Path, file: File, at_most: Duration) -> bool {
    let Some((program, arguments)) = argv.split_first() else { return false };
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder);
    for name in kept_back() {
        command.env_remove(name);
    }
    command.stdin(Stdio::null()).stdout(file).stderr(Stdio::null());
    let ended = command.spawn().ok().and_then(|mut child| attend(&mut child, at_most));
    ended.is_some_and(|status| status.success())
}

/// Reads all that is written, so that the command never waits for us, and keeps the end of it.
fn listen(mut reader: std::io::PipeReader) -> Receiver<Vec<u8>> {
    let (tell, said) = channel();
    std::thread::spawn(move || {
        let mut kept: Vec<u8> = Vec::new();
        let mut piece = [0; 4 * 1024];
        while let Ok(count) = reader.read(&mut piece)
            && count > 0
        {
            kept.extend(&piece[..count]);
            let surplus = kept.len().saturating_sub(OUTPUT_BYTES_MAX);
            kept.drain(..surplus);
        }
        let _ = tell.send(kept);
    });
    said
}

fn attend(child: &mut Child, at_most: Duration) -> Option<ExitStatus> {
    let begun = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if begun.elapsed() < at_most => std::thread::sleep(LOOKED_FOR_EVERY),
            Ok(None) | Err(_) => {
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
        }
    }
}

/// The last line it wrote that says something.
fn last_line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let said = text.lines().rev().find(|line| !line.trim().is_empty());
    said.unwrap_or_default().trim().chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn came(words: &[&str], at_most: Duration) -> Came {
        let argv: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        run(&argv, Path::new("/"), &[("GATE", "g1".to_owned())], "told\n", at_most)
    }

    #[test]
    fn what_came_of_a_command_is_told_in_few_words() {
        let long = Duration::from_secs(20);
        assert!(came(&["true"], long).well);
        assert_eq!(came(&["sh", "-c", "cat; echo $GATE; exit 3"], long).saw, "exit 3: g1");
        assert_eq!(came(&["no-such-program"], long).code, 127);
        assert_eq!(came(&["sh", "-c", "echo '$(id)' >&2"], long).saw, "exit 0: $(id)");
        // No shell reads the words.
        assert_eq!(came(&["echo", "$(id); *"], long).saw, "exit 0: $(id); *");
        let late = came(&["sleep", "20"], Duration::from_millis(100));
        assert_eq!((late.well, late.code), (false, 124));
    }
}
