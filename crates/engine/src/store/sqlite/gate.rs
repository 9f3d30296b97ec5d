//! The gate: one writer at a time, first come, first served.
//!
//! A kernel lock (`flock`) on a file of its own, so it ends with its holder however that dies, and
//! SQLite's own locks stay untouched. The holder's pid stands in the file, so that a wait that
//! takes too long can name whom it waits for. Refuses to know what is written behind it.
//!
//! Who finds nobody waiting tries the gate at once; all others stand in line (`line.rs`), and only
//! the first in line tries the gate, in short steps.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::FlockOperation;

use super::line::{self, Line};
use super::{fault, holder};
use crate::store::Error;

/// The steps in which the first in line tries the gate: a commit holds it for 0.1 ms.
const STEP_MIN: Duration = Duration::from_micros(40);
const STEP_MAX: Duration = Duration::from_millis(1);

#[derive(Debug)]
pub(super) struct Gate {
    path: PathBuf,
    line: Line,
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

impl Gate {
    pub(super) fn of(folder: &Path) -> Self {
        Self { path: folder.join("gate"), line: Line::of(folder) }
    }

    /// Files are opened each time, so that every attempt has locks of its own and a replaced file
    /// is noticed.
    pub(super) fn enter(&self, patience: Duration) -> Result<Held, Error> {
        let start = Instant::now();
        let fault = |error| self.fault(error);
        if let Some(_alone) = self.line.nobody_waits().map_err(fault)? {
            let file = line::open(&self.path).map_err(fault)?;
            if try_lock(&file).map_err(fault)? {
                return Ok(Held::signed(file));
            }
        }
        // Kept until the gate is taken.
        let _place = self.line.stand(patience).map_err(fault)?;
        let file = line::open(&self.path).map_err(fault)?;
        let mut step = STEP_MIN;
        while !try_lock(&file).map_err(fault)? {
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
        let file = line::open(&self.path).ok()?;
        try_lock(&file).is_ok_and(|taken| taken).then(|| Held::signed(file))
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
    line::lock(file, FlockOperation::NonBlockingLockExclusive)
}
