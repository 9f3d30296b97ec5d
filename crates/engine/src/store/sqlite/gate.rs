//! The gate: one writer at a time, first come, first served.
//!
//! A kernel lock (`flock`) on a file of its own, so it ends with its holder however that dies, and
//! SQLite's own locks stay untouched. The holder's pid stands in the file, so that a wait that
//! takes too long can name whom it waits for. Refuses to know what is written behind it.
//!
//! Before the gate there is a line, a second lock. Whoever has it is next and tries the gate in
//! short steps; all others sleep in the kernel's queue for the line. One lock is not enough: the
//! kernel wakes the first sleeper but gives the lock to whoever asks first, and under load that is
//! always a newcomer. `flock` knows no time limit, so a thread sleeps in it (30 µs, paid only under
//! contention). A process stopped at the head of the line delays the others and stops nobody: after
//! `LINE_PATIENCE` they go past it.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::{Errno, retry_on_intr};

use super::{fault, holder};
use crate::store::Error;

/// How long to stand in line before going to the gate directly.
const LINE_PATIENCE: Duration = Duration::from_millis(500);

/// The steps in which the first in line tries the gate: a commit holds it for 0.1 ms.
const STEP_MIN: Duration = Duration::from_micros(40);
const STEP_MAX: Duration = Duration::from_millis(5);

/// The waiting thread does one system call.
const STACK_BYTES: usize = 64 * 1024;

#[derive(Debug)]
pub(super) struct Gate {
    path: PathBuf,
    line: PathBuf,
    queue: Arc<Queue>,
}

/// Dropping it opens the gate for the next one.
#[derive(Debug)]
pub(super) struct Held {
    _file: File,
}

impl Held {
    fn signed(file: File) -> Self {
        // A hint for people; that it could not be written must not stop the work.
        let _ = file.write_all_at(format!("{:<10}\n", std::process::id()).as_bytes(), 0);
        Self { _file: file }
    }
}

#[derive(Debug, Default)]
struct Queue {
    place: Mutex<Place>,
    moved: Condvar,
}

/// Where this handle stands. At most one thread per handle: one that was given up keeps its place
/// in the kernel's queue and is taken up again by the next attempt.
#[derive(Debug, Default)]
enum Place {
    #[default]
    Away,
    Queued,
    GivenUp,
    Arrived(io::Result<File>),
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Place> {
        self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Gate {
    pub(super) fn of(folder: &Path) -> Self {
        Self { path: folder.join("gate"), line: folder.join("line"), queue: Arc::default() }
    }

    pub(super) fn enter(&self, patience: Duration) -> Result<Held, Error> {
        let start = Instant::now();
        // Kept until the gate is taken. Files are opened each time, so that every attempt has locks
        // of its own and a replaced file is noticed.
        let _next = self.stand_in_line(patience)?;
        let file = self.open(&self.path)?;
        let mut step = STEP_MIN;
        while !try_lock(&file).map_err(|error| self.fault(error))? {
            let waited = start.elapsed();
            if waited >= patience {
                let waited_ms = u64::try_from(waited.as_millis()).unwrap_or(u64::MAX);
                return Err(Error::Busy { pid: self.holder(), waited_ms });
            }
            std::thread::sleep(step.min(patience - waited));
            step = (step * 3 / 2).min(STEP_MAX);
        }
        Ok(Held::signed(file))
    }

    /// For work that can be left to somebody else.
    pub(super) fn enter_if_open(&self) -> Option<Held> {
        let file = self.open(&self.path).ok()?;
        try_lock(&file).is_ok_and(|taken| taken).then(|| Held::signed(file))
    }

    fn open(&self, path: &Path) -> Result<File, Error> {
        File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)
            .map_err(|error| self.fault(error))
    }

    /// The lock of who is next, or `None` when that took too long.
    fn stand_in_line(&self, patience: Duration) -> Result<Option<File>, Error> {
        let file = self.open(&self.line)?;
        if try_lock(&file).map_err(|error| self.fault(error))? {
            return Ok(Some(file));
        }
        let mut place = self.queue.lock();
        if !matches!(*place, Place::GivenUp) {
            self.send_thread(file)?;
        }
        *place = Place::Queued;
        let waiting = |place: &mut Place| matches!(place, Place::Queued);
        let (mut place, _) = self
            .queue
            .moved
            .wait_timeout_while(place, LINE_PATIENCE.min(patience / 2), waiting)
            .unwrap_or_else(PoisonError::into_inner);
        match std::mem::take(&mut *place) {
            Place::Arrived(file) => file.map(Some).map_err(|error| self.fault(error)),
            _ => {
                *place = Place::GivenUp;
                Ok(None)
            }
        }
    }

    fn send_thread(&self, file: File) -> Result<(), Error> {
        let queue = Arc::clone(&self.queue);
        let wait = move || {
            let taken = retry_on_intr(|| flock(&file, FlockOperation::LockExclusive));
            let mut place = queue.lock();
            *place = match *place {
                Place::Queued => Place::Arrived(taken.map(|()| file).map_err(io::Error::from)),
                // Nobody wants it any more: `file` closes here, and the next one moves up.
                _ => Place::Away,
            };
            queue.moved.notify_all();
        };
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(wait);
        thread.map(|_| ()).map_err(|error| self.fault(error))
    }

    /// Who has the gate, 0 when it cannot be told. The kernel knows best; the file may still name
    /// the one before, but also names a holder whom the kernel does not show from here.
    fn holder(&self) -> u32 {
        if let Some(pid) = holder::of_gate(&self.path) {
            return pid;
        }
        let mut text = String::new();
        let read = File::open(&self.path).and_then(|file| file.take(32).read_to_string(&mut text));
        read.ok().and_then(|_| text.trim().parse().ok()).unwrap_or(0)
    }

    fn fault(&self, error: io::Error) -> Error {
        match error.kind() {
            // Nobody can decide anything without the gate.
            io::ErrorKind::PermissionDenied => Error::ReadOnly { path: self.path.clone() },
            _ => fault::of_file("taking the gate", &self.path, error),
        }
    }
}

fn try_lock(file: &File) -> io::Result<bool> {
    match retry_on_intr(|| flock(file, FlockOperation::NonBlockingLockExclusive)) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
