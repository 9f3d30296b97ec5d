//! The gate: one writer at a time, first come, first served.
//!
//! A kernel lock (`flock`) on a file of its own, so it ends with its holder however that dies, and
//! SQLite's own locks stay untouched. The holder's pid stands in the file, so that a wait that
//! takes too long can name whom it waits for. Refuses to know what is written behind it.
//!
//! Why a thread: `flock` knows no time limit, and trying again after sleeps is a lottery in which
//! some lose 20 times in a row. The kernel keeps blocked callers in a queue, so whoever does not
//! get the lock at once blocks in a thread (30 µs, paid only under contention) while the caller
//! waits for the thread with a limit. A stopped waiter leaves the kernel's queue by itself.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::{Errno, retry_on_intr};

use super::fault;
use crate::store::Error;

/// The waiting thread does one system call.
const STACK_BYTES: usize = 64 * 1024;

#[derive(Debug)]
pub(super) struct Gate {
    path: PathBuf,
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
        Self { path: folder.join("gate"), queue: Arc::default() }
    }

    pub(super) fn enter(&self, patience: Duration) -> Result<Held, Error> {
        // Opened each time: a descriptor of its own for every attempt, so that a given-up thread
        // can never unlock what a later attempt holds, and a replaced file is noticed.
        let file = self.open()?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Held::signed(file)),
            Err(Errno::WOULDBLOCK | Errno::INTR) => self.queue_up(file, patience).map(Held::signed),
            Err(error) => Err(self.fault(error.into())),
        }
    }

    /// For work that can be left to somebody else.
    pub(super) fn enter_if_open(&self) -> Option<Held> {
        let file = self.open().ok()?;
        let taken = flock(&file, FlockOperation::NonBlockingLockExclusive);
        taken.is_ok().then(|| Held::signed(file))
    }

    fn open(&self) -> Result<File, Error> {
        File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&self.path)
            .map_err(|error| self.fault(error))
    }

    fn queue_up(&self, file: File, patience: Duration) -> Result<File, Error> {
        let start = Instant::now();
        let mut place = self.queue.lock();
        match *place {
            Place::GivenUp => *place = Place::Queued,
            _ => {
                self.send_thread(file)?;
                *place = Place::Queued;
            }
        }
        let waiting = |place: &mut Place| matches!(place, Place::Queued);
        let (mut place, _) = self
            .queue
            .moved
            .wait_timeout_while(place, patience, waiting)
            .unwrap_or_else(PoisonError::into_inner);
        match std::mem::take(&mut *place) {
            Place::Arrived(file) => file.map_err(|error| self.fault(error)),
            _ => {
                *place = Place::GivenUp;
                let waited_ms = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
                Err(Error::Busy { pid: self.holder(), waited_ms })
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
                // Nobody wants it any more: `file` closes here, and the gate with it.
                _ => Place::Away,
            };
            queue.moved.notify_all();
        };
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(wait);
        thread.map(|_| ()).map_err(|error| self.fault(error))
    }

    /// The pid in the file, 0 when it cannot be told.
    fn holder(&self) -> u32 {
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
