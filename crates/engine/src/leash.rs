//! A command whose life is tied to ours.
//!
//! Owns how Baton starts what it runs for a while: without a shell, in a group of its own, ended by
//! the kernel when we are (on Linux), and slept on rather than looked for. What a shell would
//! answer for one that cannot be run is answered here too.

use std::os::fd::BorrowedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::sandbox;

/// What a shell answers for a command that is not there, that cannot be run, that took too long.
const NOT_FOUND: u8 = 127;
const NOT_RUNNABLE: u8 = 126;
pub(crate) const TOO_LONG: u8 = 124;
/// Where the end of a process cannot be slept on, it is looked for this often.
const LOOKED_FOR_EVERY: Duration = Duration::from_millis(20);

/// Through a copy of ourselves that ties its life to ours and then becomes the command.
#[cfg(target_os = "linux")]
pub(crate) fn command(words: &[String]) -> Command {
    let mut command = Command::new("/proc/self/exe");
    let runner = rustix::process::getpid().as_raw_pid().to_string();
    command.arg(crate::once::child::VERB).arg(runner).arg("--").args(words);
    command
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn command(words: &[String]) -> Command {
    let mut command = Command::new(words.first().map_or("", String::as_str));
    command.args(words.iter().skip(1));
    command
}

/// What proves a session or a person, and must not reach a command that acts for nobody.
const KEPT_BACK: [&str; 3] = ["BATON_SESSION", "BATON_PERSON_TOKEN_FILE", "BATON_AGENT"];

/// The command acts for nobody, and its git for the folder it runs in: the surroundings of a hook
/// would send it into another repository.
pub(crate) fn for_nobody(command: &mut Command) {
    let git = |name: &std::ffi::OsString| name.to_string_lossy().starts_with("GIT_");
    for name in std::env::vars_os().map(|(name, _)| name).filter(git) {
        command.env_remove(name);
    }
    for name in KEPT_BACK.iter().chain(&sandbox::OF_CALLS) {
        command.env_remove(name);
    }
}

/// What came of waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waited {
    /// The exit code, as a shell counts it.
    Ended(u8),
    Late,
    /// The descriptor became readable first.
    Woken,
}

/// Sleeps until the command has ended, the time has come, or `wake` is readable.
pub(crate) fn wait(child: &mut Child, until: Instant, wake: Option<BorrowedFd<'_>>) -> Waited {
    wait_for_any(child, until, wake.as_slice())
}

/// How long a command in the foreground is slept on at a time.
const LONG: Duration = Duration::from_secs(3_600);

/// The same for a command in the foreground, which may take as long as it wants.
pub(crate) fn wait_long(child: &mut Child, wake: &[BorrowedFd<'_>]) -> Waited {
    wait_for_any(child, Instant::now() + LONG, wake)
}

fn wait_for_any(child: &mut Child, until: Instant, wake: &[BorrowedFd<'_>]) -> Waited {
    let watched = watch(child);
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Waited::Ended(exit_code(status)),
            Ok(None) => {}
            Err(_) => return Waited::Ended(NOT_RUNNABLE),
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Waited::Late;
        }
        let left = if watched.is_some() { left } else { left.min(LOOKED_FOR_EVERY) };
        let mut descriptors = Vec::new();
        descriptors.extend(wake.iter().map(|wake| PollFd::from_borrowed_fd(*wake, PollFlags::IN)));
        descriptors.extend(watched.as_ref().map(|child| PollFd::new(child, PollFlags::IN)));
        let timeout = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        };
        // An interrupted sleep only means to look again.
        let _ = poll(&mut descriptors, Some(&timeout));
        if descriptors.iter().take(wake.len()).any(|one| !one.revents().is_empty()) {
            return Waited::Woken;
        }
    }
}

#[cfg(target_os = "linux")]
fn watch(child: &Child) -> Option<std::os::fd::OwnedFd> {
    let flags = rustix::process::PidfdFlags::empty();
    rustix::process::pidfd_open(Pid::from_child(child), flags).ok()
}

#[cfg(not(target_os = "linux"))]
fn watch(_: &Child) -> Option<std::os::fd::OwnedFd> {
    None
}

/// How long a command may take to put its things in order when it is told to end.
const GRACE: Duration = Duration::from_secs(2);

/// Tells a command to end, and ends it if it does not: one that waits leaves the queue first.
pub(crate) fn end_in_order(child: &mut Child) {
    let pid = Pid::from_child(child);
    // It may lead a group or not.
    if kill_process_group(pid, Signal::TERM).is_err() {
        rustix::process::kill_process(pid, Signal::TERM).ok();
    }
    match wait(child, Instant::now() + GRACE, None) {
        Waited::Ended(_) => {}
        Waited::Late | Waited::Woken => end(child),
    }
}

/// Ends a command and everything it has started.
pub(crate) fn end(child: &mut Child) {
    kill_process_group(Pid::from_child(child), Signal::KILL).ok();
    child.kill().ok();
    child.wait().ok();
}

pub(crate) fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    u8::try_from(code.unwrap_or(i32::from(NOT_RUNNABLE))).unwrap_or(u8::MAX)
}

pub(crate) fn code_of(error: &std::io::Error) -> u8 {
    match error.kind() {
        std::io::ErrorKind::NotFound => NOT_FOUND,
        _ => NOT_RUNNABLE,
    }
}
