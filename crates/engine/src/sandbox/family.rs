//! The processes of a sandbox: those that we started, and those that fell to us.
//!
//! Owns that nothing of it goes on when it has ended: whoever is left would still write where the
//! sandbox could, after the last look at what it wrote. A process whose parent has ended becomes a
//! child of ours (on Linux), however far it went from its session and group. Invariant: none of
//! ours is waited for by anybody but its owner.

use std::collections::BTreeSet;
use std::process::{Child, Command};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

/// Asked to end, then ended.
const PATIENCE: Duration = Duration::from_secs(1);
/// Even a process that is ended takes its time; one in the kernel may take for ever.
const END_MAX: Duration = Duration::from_secs(10);
/// Orphans that have ended are let go of as often as that.
const REAPED_EVERY: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct Family {
    known: Mutex<Known>,
}

#[derive(Debug)]
struct Known {
    ours: BTreeSet<u32>,
    reaped: Instant,
}

impl Family {
    pub(super) fn begin() -> Self {
        // Where that cannot be, orphans are not found again, and go on as everywhere.
        #[cfg(target_os = "linux")]
        let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
        let (ours, reaped) = (BTreeSet::new(), Instant::now());
        Self { known: Mutex::new(Known { ours, reaped }) }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts one of ours. It is known before anybody looks who has ended.
    pub(super) fn start(&self, command: &mut Command) -> std::io::Result<Child> {
        let mut known = self.known();
        if known.reaped.elapsed() > REAPED_EVERY {
            known.reaped = Instant::now();
            for child in children().filter(|child| child.ended) {
                if !known.ours.contains(&child.pid.as_raw_pid().cast_unsigned()) {
                    let _ = waitpid(Some(child.pid), WaitOptions::NOHANG);
                }
            }
        }
        let child = command.spawn()?;
        known.ours.insert(child.id());
        Ok(child)
    }

    pub(super) fn ended(&self, child: &Child) {
        self.known().ours.remove(&child.id());
    }

    /// Ends all that are left, the children of each after it.
    pub(super) fn end(&self) {
        let begun = Instant::now();
        while begun.elapsed() < END_MAX {
            let left: Vec<Relative> = children().collect();
            if left.is_empty() {
                return;
            }
            let signal = match begun.elapsed() < PATIENCE {
                true => Signal::TERM,
                false => Signal::KILL,
            };
            for child in &left {
                match child.ended {
                    true => drop(waitpid(Some(child.pid), WaitOptions::NOHANG)),
                    false => drop(kill_process(child.pid, signal)),
                }
            }
            if let Some(living) = left.iter().find(|child| !child.ended) {
                sleep_on(living.pid, PATIENCE.saturating_sub(begun.elapsed()));
            }
        }
    }
}

struct Relative {
    pid: Pid,
    ended: bool,
}

/// Who is a child of this process now.
fn children() -> impl Iterator<Item = Relative> {
    let us = std::process::id().to_string();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(move |entry| {
        let pid = Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)?;
        let text = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        // Its name is in brackets, and may have anything in it.
        let mut words = text.rsplit_once(')')?.1.split_whitespace();
        let (state, parent) = (words.next()?, words.next()?);
        (parent == us).then_some(Relative { pid, ended: state == "Z" })
    })
}

/// Until it has ended or the time is over, but never so short that we would only look and look.
#[cfg(target_os = "linux")]
fn sleep_on(pid: Pid, most: Duration) {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let Ok(end) = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()) else {
        return;
    };
    let most = most.max(Duration::from_millis(20));
    let timeout = Timespec {
        tv_sec: i64::try_from(most.as_secs()).unwrap_or(1),
        tv_nsec: most.subsec_nanos().into(),
    };
    let _ = poll(&mut [PollFd::new(&end, PollFlags::IN)], Some(&timeout));
}

#[cfg(not(target_os = "linux"))]
fn sleep_on(_: Pid, most: Duration) {
    std::thread::sleep(most.min(Duration::from_millis(20)));
}
