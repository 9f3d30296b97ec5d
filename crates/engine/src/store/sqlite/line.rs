//! The line before the gate: who waits, in the order of coming.
//!
//! Owns the folder `queue`. A place in line is a kernel lock (`flock`) on a file of its own, so it
//! ends with its owner however that dies; who comes sleeps on the lock of the place before. Nobody
//! else ever wants that lock, so nobody can slip in between, as newcomers do where all sleep on one
//! lock: the kernel wakes the first sleeper but gives a lock to whoever asks first, and under load
//! that is a newcomer. Only fairness is decided here: whoever gets no place goes without.
//!
//! `flock` knows no time limit, so a thread sleeps in it (30 µs, paid only under contention). A
//! process stopped in line delays those behind it and stops nobody: after `LINE_PATIENCE` they go
//! past it, and who comes later does not see it at all.

use std::fs::File;
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::{Errno, retry_on_intr};

/// How long to stand in line before going to the gate directly.
const LINE_PATIENCE: Duration = Duration::from_millis(500);

/// How long one waits for what is held for microseconds only, before it tries again.
const MOMENT: Duration = Duration::from_micros(40);

/// The places; they are taken in turn, so that one is used again only long after it was left.
const PLACES: u32 = 256;

/// How many places are tried: more are taken only when nearly all are.
const PLACES_TRIED: u32 = 8;

/// The waiting thread does one system call.
const STACK_BYTES: usize = 64 * 1024;

#[derive(Debug)]
pub(super) struct Line {
    /// Whoever waits has it shared, so who finds it free may try the gate at once.
    sign: PathBuf,
    folder: PathBuf,
}

/// A place in line. Dropping it lets the next one come up.
#[derive(Debug)]
pub(super) struct Place {
    _sign: Option<File>,
    _mine: Option<File>,
}

impl Line {
    pub(super) fn of(folder: &Path) -> Self {
        Self { sign: folder.join("line"), folder: folder.join("queue") }
    }

    /// For who comes: what it gets when nobody waits, to be dropped as soon as the gate was tried.
    pub(super) fn nobody_waits(&self) -> io::Result<Option<File>> {
        let sign = open(&self.sign)?;
        Ok(lock(&sign, FlockOperation::NonBlockingLockExclusive)?.then_some(sign))
    }

    /// Stands in line until everybody who came before is through, or for as long as is sensible.
    pub(super) fn stand(&self, patience: Duration) -> io::Result<Place> {
        let until = Instant::now() + LINE_PATIENCE.min(patience / 2);
        let sign = open(&self.sign)?;
        let shown = patiently(&sign, FlockOperation::NonBlockingLockShared, until)?;
        // What cannot be had here costs order, not safety.
        let (mine, before) = self.join(until).ok().flatten().unzip();
        if let Some(before) = before {
            sleep_on(before, until);
        }
        Ok(Place { _sign: shown.then_some(sign), _mine: mine })
    }

    /// A place of one's own at the end, and the one before it.
    fn join(&self, until: Instant) -> io::Result<Option<(File, File)>> {
        let end = self.open_end()?;
        if !patiently(&end, FlockOperation::NonBlockingLockExclusive, until)? {
            return Ok(None);
        }
        let mut number = [0; 4];
        let length = end.read_at(&mut number, 0)?;
        let last = if length == number.len() { u32::from_le_bytes(number) } else { 0 };
        for next in (1..=PLACES_TRIED).map(|step| last.wrapping_add(step)) {
            let mine = self.place(next)?;
            if lock(&mine, FlockOperation::NonBlockingLockExclusive)? {
                end.write_all_at(&next.to_le_bytes(), 0)?;
                return Ok(Some((mine, self.place(last)?)));
            }
        }
        Ok(None)
    }

    fn open_end(&self) -> io::Result<File> {
        let path = self.folder.join("end");
        match open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
                open(&path)
            }
            other => other,
        }
    }

    fn place(&self, number: u32) -> io::Result<File> {
        open(&self.folder.join((number % PLACES).to_string()))
    }
}

pub(super) fn open(path: &Path) -> io::Result<File> {
    File::options().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

/// Tries a lock; false means that somebody else has it.
pub(super) fn lock(file: &File, how: FlockOperation) -> io::Result<bool> {
    match retry_on_intr(|| flock(file, how)) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn patiently(file: &File, how: FlockOperation, until: Instant) -> io::Result<bool> {
    while !lock(file, how)? {
        if Instant::now() >= until {
            return Ok(false);
        }
        std::thread::sleep(MOMENT);
    }
    Ok(true)
}

/// Sleeps until the place before is left. A thread that is not waited for any more ends when it is.
fn sleep_on(before: File, until: Instant) {
    if matches!(lock(&before, FlockOperation::NonBlockingLockShared), Ok(true)) {
        return;
    }
    let (left, heard) = mpsc::sync_channel(1);
    let wait = move || {
        let _ = retry_on_intr(|| flock(&before, FlockOperation::LockShared));
        drop(before);
        let _ = left.send(());
    };
    if std::thread::Builder::new().stack_size(STACK_BYTES).spawn(wait).is_ok() {
        let _ = heard.recv_timeout(until.saturating_duration_since(Instant::now()));
    }
}
