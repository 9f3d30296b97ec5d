//! Processes where there is no `/proc`.
//!
//! Owns the little that can be said there without unsafe code: whether a number is taken at all.
//! Invariant: nothing else is claimed to be known, so processes are unknown and leases decide.

use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;

use super::{Boot, NoStat, Stat, Terminal};

pub(super) fn boot() -> Boot {
    Boot { id: String::new() }
}

pub(super) fn time_namespace() -> u64 {
    0
}

pub(super) fn namespace() -> u64 {
    0
}

pub(super) fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// This process and its parent are known without asking; their start times are not.
pub(super) fn stat(pid: u32) -> Result<Stat, NoStat> {
    if super::is_gone(pid) {
        return Err(NoStat::Absent);
    }
    let own = rustix::process::getpid().as_raw_pid().cast_unsigned();
    if pid != own {
        return Err(NoStat::Unreadable);
    }
    let parent = rustix::process::getppid().map_or(0, |pid| pid.as_raw_pid().cast_unsigned());
    let terminal = controlling_terminal();
    let session = rustix::process::getsid(None).map_or(0, |pid| pid.as_raw_pid().cast_unsigned());
    let (name, state) = (String::new(), b'R');
    Ok(Stat { pid, name, state, parent, session, terminal, threads: 1, start: 0 })
}

pub(super) fn controlling_terminal() -> Option<Terminal> {
    let terminal = std::fs::File::open("/dev/tty").ok()?;
    Some(Terminal { device: terminal.metadata().ok()?.rdev() })
}

pub(super) fn open_process(_pid: u32) -> Option<OwnedFd> {
    None
}

pub(super) fn arguments(_pid: u32) -> Vec<String> {
    Vec::new()
}
