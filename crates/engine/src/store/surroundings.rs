//! Where a store runs: which boot, which clocks, which kind of disk.
//!
//! The one seam between a store and the machine. Everything here is a value, so a test can make a
//! reboot, a jump of the wall clock or a foreign time namespace by building another one. Refuses to
//! know what a store does with it. Invariant: a boot that cannot be told is an error, because two
//! unknown boots would look like the same one and a lost tail would go unnoticed (S5).

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use rustix::time::ClockId;

use super::Error;
use crate::clock::{Reading, TimeNamespace};
use crate::filesystem;
use crate::place::test_hooks::TestHooks;
use crate::process::Boot;

/// The machine as a store sees it.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// Changes with every start of the machine, and with nothing else.
    pub boot: String,
    /// Boot-time clocks of two time namespaces cannot be compared.
    pub time_namespace: TimeNamespace,
    pub filesystem: filesystem::Kind,
    pub clock: Clock,
}

#[derive(Clone, Debug)]
pub enum Clock {
    /// The kernel's, and how far a test has put it ahead.
    Machine { ahead_ms: i64 },
    /// Moved by hand, for tests.
    Hand(Arc<Hand>),
}

#[derive(Debug)]
pub struct Hand {
    boottime_ms: AtomicI64,
    wall_ms: AtomicI64,
}

impl Hand {
    pub fn at(boottime_ms: i64, wall_ms: i64) -> Arc<Self> {
        Arc::new(Self { boottime_ms: boottime_ms.into(), wall_ms: wall_ms.into() })
    }

    pub fn set(&self, boottime_ms: i64, wall_ms: i64) {
        self.boottime_ms.store(boottime_ms, Ordering::SeqCst);
        self.wall_ms.store(wall_ms, Ordering::SeqCst);
    }
}

impl Clock {
    pub fn boottime_ms(&self) -> i64 {
        match self {
            Self::Machine { ahead_ms } => milliseconds(BOOTTIME).saturating_add(*ahead_ms),
            Self::Hand(hand) => hand.boottime_ms.load(Ordering::SeqCst),
        }
    }

    pub fn wall_ms(&self) -> i64 {
        match self {
            Self::Machine { .. } => milliseconds(ClockId::Realtime),
            Self::Hand(hand) => hand.wall_ms.load(Ordering::SeqCst),
        }
    }
}

#[cfg(target_os = "linux")]
const BOOTTIME: ClockId = ClockId::Boottime;
/// On macOS this clock counts through sleep, as the boot-time clock does on Linux.
#[cfg(not(target_os = "linux"))]
const BOOTTIME: ClockId = ClockId::Monotonic;

fn milliseconds(clock: ClockId) -> i64 {
    let time = rustix::time::clock_gettime(clock);
    time.tv_sec.saturating_mul(1_000).saturating_add(time.tv_nsec / 1_000_000)
}

impl Surroundings {
    /// Looks at the machine and at the disk that `folder` is on.
    pub fn look(folder: &Path) -> Result<Self, Error> {
        let hooks = TestHooks::of(folder);
        Self::of(&Boot::here_with(&hooks), &hooks, folder)
    }

    /// The boot as it was seen already, and the disk that `folder` is on.
    pub fn of(boot: &Boot, hooks: &TestHooks, folder: &Path) -> Result<Self, Error> {
        let filesystem = filesystem::kind(folder).map_err(|error| Error::Io {
            doing: "reading which filesystem this is",
            path: error.path,
            source: error.source,
        })?;
        if boot.id.is_empty() {
            return Err(Error::Backend { detail: "this machine does not tell its boot".into() });
        }
        Ok(Self {
            boot: boot.id.clone(),
            time_namespace: TimeNamespace::default(),
            filesystem,
            clock: Clock::Machine {
                ahead_ms: i64::try_from(hooks.clock_advance_ms).unwrap_or(i64::MAX),
            },
        })
    }

    /// Reads the clocks. Take it after the write lock is held.
    pub fn read(&self) -> Reading {
        Reading {
            boot: self.boot.clone(),
            time_namespace: self.time_namespace.clone(),
            wall_ms: self.clock.wall_ms(),
            boottime_ms: self.clock.boottime_ms(),
        }
    }
}
