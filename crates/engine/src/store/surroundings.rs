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
    Machine,
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
            Self::Machine => Reading {
                boottime_ms: milliseconds(BOOTTIME),
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
        Ok(Self {
            boot: boot_id()?,
            time_namespace: time_namespace()?,
            distrusted_filesystem: distrusted_filesystem(folder)?,
            clock: Clock::Machine,
        })
    }
}

#[cfg(target_os = "linux")]
fn boot_id() -> Result<String, Error> {
    use rustix::fs::{Mode, OFlags};
    const PATH: &str = "/proc/sys/kernel/random/boot_id";
    let io = |error: rustix::io::Errno| Error::Io {
        doing: "reading which boot this is",
        path: PATH.into(),
        source: error.into(),
    };
    // Plain calls: every hook pays for this, and the file is 37 bytes.
    let file =
        rustix::fs::open(PATH, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).map_err(io)?;
    let mut bytes = [0; 64];
    let length = rustix::io::read(&file, &mut bytes).map_err(io)?;
    Ok(String::from_utf8_lossy(&bytes[..length]).trim().to_owned())
}

/// macOS has a boot session id too, but only behind `sysctl`.
#[cfg(not(target_os = "linux"))]
fn boot_id() -> Result<String, Error> {
    const PATH: &str = "/usr/sbin/sysctl";
    let output =
        std::process::Command::new(PATH).args(["-n", "kern.bootsessionuuid"]).output().map_err(
            |source| Error::Io { doing: "reading which boot this is", path: PATH.into(), source },
        )?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
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

/// Filesystems that several machines see at once, or whose server may not pass locks on.
#[cfg(target_os = "linux")]
const DISTRUSTED: &[(u32, &str)] = &[
    (0x6969, "nfs"),
    (0xff53_4d42, "cifs"),
    (0xfe53_4d42, "smb2"),
    (0x517b, "smb"),
    (0x0102_1997, "9p"),
    (0x6573_5546, "fuse or virtiofs"),
    (0x00c3_6400, "ceph"),
    (0x5346_414f, "afs"),
    (0x6b41_4653, "afs"),
    (0x0bd0_0bd0, "lustre"),
    (0x4750_4653, "gpfs"),
    (0x7461_636f, "ocfs2"),
    (0x0116_1970, "gfs2"),
    (0x786f_4256, "vboxsf"),
    (0x7375_7245, "coda"),
];

fn distrusted_filesystem(folder: &Path) -> Result<Option<String>, Error> {
    let stat = rustix::fs::statfs(folder).map_err(|error| match error {
        rustix::io::Errno::NOENT => Error::Missing { path: folder.to_owned() },
        error => Error::Io {
            doing: "reading which filesystem this is",
            path: folder.to_owned(),
            source: error.into(),
        },
    })?;
    Ok(named(&stat))
}

#[cfg(target_os = "linux")]
fn named(stat: &rustix::fs::StatFs) -> Option<String> {
    // The field is wider on some targets; the magic numbers are 32 bits.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a bit pattern")]
    let magic = stat.f_type as u32;
    let found = DISTRUSTED.iter().find(|(number, _)| *number == magic);
    found.map(|(_, name)| (*name).to_owned())
}

#[cfg(not(target_os = "linux"))]
fn named(stat: &rustix::fs::StatFs) -> Option<String> {
    let bytes: Vec<u8> =
        stat.f_fstypename.iter().map(|byte| *byte as u8).take_while(|byte| *byte != 0).collect();
    let name = String::from_utf8_lossy(&bytes).into_owned();
    let trusted = ["apfs", "hfs", "tmpfs", "ufs"].contains(&name.as_str());
    (!trusted).then_some(name)
}
