//! Where a store runs: which boot, which clocks, which kind of disk.
//!
//! The one seam between a store and the machine. Everything here is a value, so a test can make a
//! reboot, a jump of the wall clock or a foreign time namespace by building another one. Refuses to
//! know what a store does with it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::time::ClockId;

use super::Error;
use crate::filesystem;
use crate::place::test_hooks::TestHooks;
use crate::process::Machine;

/// The machine as a store sees it.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// Changes with every start of the machine, and with nothing else.
    pub boot: String,
    /// Boot-time clocks of two time namespaces cannot be compared.
    pub time_namespace: u64,
    /// The name of the filesystem when its locks cannot be trusted.
    pub distrusted_filesystem: Option<String>,
    pub clock: Clock,
}

/// What the clocks show at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Since the start of the machine, sleep included: nobody can set it.
    pub boottime_ms: u64,
    pub wall_ms: u64,
}

#[derive(Clone, Debug)]
pub enum Clock {
    /// The machine's own; a test may see it ahead of its time.
    Machine { ahead_ms: u64 },
    /// Moved by hand, for tests.
    Hand(Arc<Hand>),
}

#[derive(Debug)]
pub struct Hand {
    boottime_ms: AtomicU64,
    wall_ms: AtomicU64,
}

impl Hand {
    pub fn at(reading: Reading) -> Arc<Self> {
        Arc::new(Self {
            boottime_ms: AtomicU64::new(reading.boottime_ms),
            wall_ms: AtomicU64::new(reading.wall_ms),
        })
    }

    pub fn set(&self, reading: Reading) {
        self.boottime_ms.store(reading.boottime_ms, Ordering::SeqCst);
        self.wall_ms.store(reading.wall_ms, Ordering::SeqCst);
    }
}

impl Clock {
    pub fn read(&self) -> Reading {
        match self {
            Self::Machine { ahead_ms } => Reading {
                boottime_ms: milliseconds(BOOTTIME) + ahead_ms,
                wall_ms: milliseconds(ClockId::Realtime),
            },
            Self::Hand(hand) => Reading {
                boottime_ms: hand.boottime_ms.load(Ordering::SeqCst),
                wall_ms: hand.wall_ms.load(Ordering::SeqCst),
            },
        }
    }
}

#[cfg(target_os = "linux")]
const BOOTTIME: ClockId = ClockId::Boottime;
/// On macOS this clock counts through sleep, as `CLOCK_BOOTTIME` does on Linux.
#[cfg(not(target_os = "linux"))]
const BOOTTIME: ClockId = ClockId::Monotonic;

fn milliseconds(clock: ClockId) -> u64 {
    let time = rustix::time::clock_gettime(clock);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds * 1_000 + u64::try_from(time.tv_nsec).unwrap_or(0) / 1_000_000
}

impl Surroundings {
    /// Looks at the machine and at the disk that `folder` is on.
    pub fn look(folder: &Path) -> Result<Self, Error> {
        Self::of(&Machine::here(), &TestHooks::default(), folder)
    }

    /// The machine as it was seen already, and the disk that `folder` is on.
    pub fn of(machine: &Machine, hooks: &TestHooks, folder: &Path) -> Result<Self, Error> {
        let kind = filesystem::kind(folder).map_err(|error| Error::Io {
            doing: "reading which filesystem this is",
            path: error.path,
            source: error.source,
        })?;
        let distrusted_filesystem = match kind {
            filesystem::Kind::Local => None,
            filesystem::Kind::Network { name } => Some(name.to_owned()),
        };
        Ok(Self {
            boot: machine.boot.clone(),
            time_namespace: machine.time_namespace,
            distrusted_filesystem,
            clock: Clock::Machine { ahead_ms: hooks.clock_advance_ms },
        })
    }
}
