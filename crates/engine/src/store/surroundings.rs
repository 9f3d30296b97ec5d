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
<<<<<<< HEAD
use crate::filesystem;
use crate::place::test_hooks::TestHooks;
use crate::process::Machine;
=======
use crate::clock::Reading;
use crate::filesystem;
use crate::place::test_hooks::TestHooks;
>>>>>>> sqlite

/// The machine as a store sees it.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// Changes with every start of the machine, and with nothing else.
    pub boot: String,
    /// Boot-time clocks of two time namespaces cannot be compared.
    pub time_namespace: u64,
    pub filesystem: filesystem::Kind,
    pub clock: Clock,
}

#[derive(Clone, Debug)]
pub enum Clock {
<<<<<<< HEAD
    /// The machine's own; a test may see it ahead of its time.
    Machine { ahead_ms: u64 },
=======
    /// The kernel's, and how far a test has put it ahead.
    Machine { ahead_ms: i64 },
>>>>>>> sqlite
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
<<<<<<< HEAD
            Self::Machine { ahead_ms } => Reading {
                boottime_ms: milliseconds(BOOTTIME) + ahead_ms,
                wall_ms: milliseconds(ClockId::Realtime),
            },
            Self::Hand(hand) => Reading {
                boottime_ms: hand.boottime_ms.load(Ordering::SeqCst),
                wall_ms: hand.wall_ms.load(Ordering::SeqCst),
            },
=======
            Self::Machine { ahead_ms } => milliseconds(BOOTTIME).saturating_add(*ahead_ms),
            Self::Hand(hand) => hand.boottime_ms.load(Ordering::SeqCst),
        }
    }

    pub fn wall_ms(&self) -> i64 {
        match self {
            Self::Machine { .. } => milliseconds(ClockId::Realtime),
            Self::Hand(hand) => hand.wall_ms.load(Ordering::SeqCst),
>>>>>>> sqlite
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
<<<<<<< HEAD
        Self::of(&Machine::here(), &TestHooks::default(), folder)
    }

    /// The machine as it was seen already, and the disk that `folder` is on.
    pub fn of(machine: &Machine, hooks: &TestHooks, folder: &Path) -> Result<Self, Error> {
        let kind = filesystem::kind(folder).map_err(|error| Error::Io {
=======
        let hooks = TestHooks::of(folder);
        let filesystem = filesystem::kind(folder).map_err(|error| Error::Io {
>>>>>>> sqlite
            doing: "reading which filesystem this is",
            path: error.path,
            source: error.source,
        })?;
<<<<<<< HEAD
        let distrusted_filesystem = match kind {
            filesystem::Kind::Local => None,
            filesystem::Kind::Network { name } => Some(name.to_owned()),
        };
        Ok(Self {
            boot: machine.boot.clone(),
            time_namespace: machine.time_namespace,
            distrusted_filesystem,
            clock: Clock::Machine { ahead_ms: hooks.clock_advance_ms },
=======
        Ok(Self {
            boot: hooks.boot_id.map_or_else(boot_id, Ok)?,
            time_namespace: time_namespace()?,
            filesystem,
            clock: Clock::Machine {
                ahead_ms: i64::try_from(hooks.clock_advance_ms).unwrap_or(i64::MAX),
            },
>>>>>>> sqlite
        })
    }

    /// Reads the clocks. Take it after the write lock is held.
    pub fn read(&self) -> Reading {
        Reading {
            boot: self.boot.clone(),
            time_namespace: self.time_namespace,
            wall_ms: self.clock.wall_ms(),
            boottime_ms: self.clock.boottime_ms(),
        }
    }
}
<<<<<<< HEAD
=======

#[cfg(target_os = "linux")]
fn boot_id() -> Result<String, Error> {
    use rustix::fs::{Mode, OFlags};
    const PATH: &str = "/proc/sys/kernel/random/boot_id";
    // Plain calls: every hook pays for this, and the file is 37 bytes.
    let read = || -> rustix::io::Result<String> {
        let file = rustix::fs::open(PATH, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        let mut bytes = [0; 64];
        let length = rustix::io::read(&file, &mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes[..length]).trim().to_owned())
    };
    told(PATH, read().map_err(std::io::Error::from))
}

/// macOS has a boot session id too, but only behind `sysctl`.
#[cfg(not(target_os = "linux"))]
fn boot_id() -> Result<String, Error> {
    const PATH: &str = "/usr/sbin/sysctl";
    let output = std::process::Command::new(PATH).args(["-n", "kern.bootsessionuuid"]).output();
    told(PATH, output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()))
}

fn told(path: &str, boot: std::io::Result<String>) -> Result<String, Error> {
    let boot = boot.and_then(|boot| match boot.as_str() {
        "" => Err(std::io::ErrorKind::InvalidData.into()),
        _ => Ok(boot),
    });
    let doing = "reading which boot this is";
    boot.map_err(|source| Error::Io { doing, path: path.into(), source })
}

#[cfg(target_os = "linux")]
fn time_namespace() -> Result<u64, Error> {
    const PATH: &str = "/proc/self/ns/time";
    match rustix::fs::stat(PATH) {
        Ok(stat) => Ok(stat.st_ino),
        // A kernel without time namespaces has one clock for all.
        Err(rustix::io::Errno::NOENT) => Ok(0),
        Err(error) => Err(Error::Io {
            doing: "reading which time namespace this is",
            path: PATH.into(),
            source: error.into(),
        }),
    }
}

#[cfg(not(target_os = "linux"))]
fn time_namespace() -> Result<u64, Error> {
    Ok(0)
}
>>>>>>> sqlite
