//! The command itself: started without a shell, its output passed on as it comes, its end told.
//!
//! Owns that one runner at a time also means one command at a time: on Linux the command is ended
//! by the kernel when its runner is, however that dies ([`become_command`]).

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use baton_core::once::{End, RENEWED_EVERY};
use baton_core::time::Span;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process};

use super::tail::Tail;
use super::{AtWork, Door, Ran, Wish};
use crate::failure::Failure;

/// The hidden verb that a runner starts itself with.
pub const VERB: &str = "once-command";
/// Where the end of a process cannot be slept on, it is looked for this often.
const LOOKED_FOR_EVERY: Duration = Duration::from_millis(100);
/// What was written before the end is still read, but not for ever: others may go on writing.
const PIECES_AFTER_THE_END_MAX: usize = 32;
/// What a shell answers for a command that is not there, and for one that cannot be run.
const NOT_FOUND: u8 = 127;
const NOT_RUNNABLE: u8 = 126;

pub(super) fn run(
    at: &mut AtWork<'_>,
    words: &[OsString],
    door: &mut dyn Door,
) -> Result<Ran, Failure> {
    let begun = Instant::now();
    let mut tail = Tail::default();
    let started = command(words, at).stdout(Stdio::piped()).spawn();
    let code = match started {
        Ok(child) => attend(at, child, &mut tail, door)?,
        Err(error) => {
            let end = End::Failed { code: code_of(&error) };
            at.finish(&end, door);
            let path = words.first().map(OsString::as_os_str).unwrap_or(OsStr::new("")).into();
            return Err(Failure::File { doing: "cannot run", path, source: error });
        }
    };
    let took = Span(u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX));
    let output = tail.into_output();
    let end = match code {
        0 => End::Succeeded { took, output: output.clone() },
        code => End::Failed { code },
    };
    let unrecorded = at.finish(&end, door);
    Ok(Ran { token: at.token, code, took, output, unrecorded })
}

/// The command, through a copy of ourselves that ties its life to ours and then becomes it.
#[cfg(target_os = "linux")]
fn command(words: &[OsString], at: &AtWork<'_>) -> Command {
    // Also right when the file of this program was replaced meanwhile.
    let mut command = Command::new("/proc/self/exe");
    let runner = rustix::process::getpid().as_raw_pid().to_string();
    command.arg(VERB).arg(runner).arg("--").args(words);
    named(command, at)
}

#[cfg(not(target_os = "linux"))]
fn command(words: &[OsString], at: &AtWork<'_>) -> Command {
    let (program, arguments) =
        words.split_first().map_or((OsStr::new(""), words), |(one, rest)| (one.as_os_str(), rest));
    let mut command = Command::new(program);
    command.args(arguments);
    named(command, at)
}

fn named(mut command: Command, at: &AtWork<'_>) -> Command {
    command.env("BATON_ONCE_KEY", at.key.as_str()).env("BATON_ONCE_TOKEN", at.token.to_string());
    command
}

/// Becomes the command; returns only if that cannot be, with what a shell would answer.
#[must_use]
pub fn become_command(runner: u32, words: &[OsString]) -> (u8, Option<std::io::Error>) {
    become_tied(runner, Signal::KILL, words)
}

/// The same with another signal at the runner's end.
pub(crate) fn become_tied(
    runner: u32,
    signal: Signal,
    words: &[OsString],
) -> (u8, Option<std::io::Error>) {
    become_tied_with(runner, signal, words, &[])
}

/// The same with some variables more.
pub(crate) fn become_tied_with(
    runner: u32,
    signal: Signal,
    words: &[OsString],
    variables: &[(&str, &OsStr)],
) -> (u8, Option<std::io::Error>) {
    let Some((program, arguments)) = words.split_first() else {
        return (NOT_FOUND, None);
    };
    #[cfg(target_os = "linux")]
    {
        if let Err(error) = rustix::process::set_parent_process_death_signal(Some(signal)) {
            return (NOT_RUNNABLE, Some(error.into()));
        }
        // The runner may have died before the kernel knew whom to tell.
        let parent = rustix::process::getppid().map(|pid| pid.as_raw_pid().cast_unsigned());
        if parent != Some(runner) {
            return (NOT_RUNNABLE, None);
        }
    }
    let _ = (runner, signal);
    let error = Command::new(program).args(arguments).envs(variables.iter().copied()).exec();
    (code_of(&error), Some(error))
}

fn code_of(error: &std::io::Error) -> u8 {
    match error.kind() {
        std::io::ErrorKind::NotFound => NOT_FOUND,
        _ => NOT_RUNNABLE,
    }
}

/// Passes output on, renews the turn and forwards a wish to end, until the command has ended. Its
/// own children may go on and hold the output open; they are not waited for.
fn attend(
    at: &mut AtWork<'_>,
    mut child: Child,
    tail: &mut Tail,
    door: &mut dyn Door,
) -> Result<u8, Failure> {
    let failed =
        |source| Failure::File { doing: "the command is lost", path: "wait".into(), source };
    let mut output = child.stdout.take();
    let machine = at.workspace.machine.clone();
    let ended = machine.of(child.id()).and_then(|identity| machine.watch(&identity));
    let mut renewed = Instant::now();
    let every = Duration::from_millis(RENEWED_EVERY.0);
    let status = loop {
        if ended.is_none()
            && let Some(status) = child.try_wait().map_err(failed)?
        {
            break status;
        }
        let mut rest = every.saturating_sub(renewed.elapsed());
        if ended.is_none() {
            rest = rest.min(LOOKED_FOR_EVERY);
        }
        let ready = sleep(output.as_ref(), ended.as_ref().map(AsFd::as_fd), door, rest);
        if ready.output {
            pass_on(&mut output, tail, door);
        }
        if ready.end && door.end_wanted() == Some(Wish::Terminate) {
            // It may have ended in this very moment; then there is nobody to tell.
            let _ = kill_process(Pid::from_child(&child), Signal::TERM);
        }
        if ready.ended {
            break child.wait().map_err(failed)?;
        }
        if renewed.elapsed() >= every {
            at.renew(door);
            renewed = Instant::now();
        }
    };
    for _ in 0..PIECES_AFTER_THE_END_MAX {
        if !sleep(output.as_ref(), None, door, Duration::ZERO).output {
            break;
        }
        pass_on(&mut output, tail, door);
    }
    Ok(exit_code(status))
}

/// As a shell counts it.
fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    u8::try_from(code.unwrap_or(i32::from(NOT_RUNNABLE))).unwrap_or(u8::MAX)
}

fn pass_on(output: &mut Option<ChildStdout>, tail: &mut Tail, door: &mut dyn Door) {
    let mut piece = [0; 64 * 1024];
    let read = output.as_mut().map_or(Ok(0), |output| output.read(&mut piece));
    match read {
        Ok(0) => *output = None,
        Ok(count) => {
            tail.push(&piece[..count]);
            door.wrote(&piece[..count]);
        }
        Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
        Err(_) => *output = None,
    }
}

#[derive(Default)]
struct Ready {
    output: bool,
    ended: bool,
    end: bool,
}

fn sleep(
    output: Option<&ChildStdout>,
    ended: Option<BorrowedFd<'_>>,
    door: &dyn Door,
    at_most: Duration,
) -> Ready {
    let watch = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
    let mut watched: Vec<PollFd<'_>> = door.end_descriptors().map(watch).into();
    watched.extend(ended.map(watch));
    watched.extend(output.map(|output| PollFd::new(output, PollFlags::IN)));
    let timeout = Timespec {
        tv_sec: i64::try_from(at_most.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: at_most.subsec_nanos().into(),
    };
    if poll(&mut watched, Some(&timeout)).is_err() {
        return Ready::default();
    }
    let mut ready = watched.iter().map(|fd| !fd.revents().is_empty());
    Ready {
        end: [ready.next(), ready.next()].contains(&Some(true)),
        ended: ended.is_some() && ready.next().unwrap_or(false),
        output: output.is_some() && ready.next().unwrap_or(false),
    }
}
