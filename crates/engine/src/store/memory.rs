//! The store in memory: for tests, simulations and the conformance suite's measure.
//!
//! The same promises as the real ones short of durability: one decision at a time, snapshots that
//! do not move, news. Handles made with `clone` share one store. Never chosen as a fallback (S25).

use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use baton_core::journal::{Entry, Head};
use baton_core::memory;
use baton_core::time::Moment;
use baton_core::view::{Query, Records, Row, Unreadable, View, kind_named};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::{Deserialize, Serialize};

use super::surroundings::Clock;
use super::{Commit, Error, News, Snapshot, State, Store, Transaction, Woken};

#[derive(Clone, Debug)]
pub struct Memory {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    inner: Mutex<Inner>,
    gate_opened: Condvar,
    clock: Clock,
}

#[derive(Debug)]
struct Inner {
    /// Copied on write, so a snapshot is a pointer.
    contents: Arc<Contents>,
    gate_held: bool,
    /// Above the head's after a restore.
    epoch: u32,
    listeners: Vec<Weak<OwnedFd>>,
}

#[derive(Clone, Debug, Default)]
struct Contents {
    records: memory::Memory,
    entries: Vec<Entry>,
    archived: Option<Head>,
    traces: std::collections::BTreeMap<String, String>,
}

impl Contents {
    fn head(&self) -> Head {
        let last = self.entries.last().map(Entry::head);
        last.or_else(|| self.archived.clone()).unwrap_or_else(Head::start)
    }
}

impl Default for Memory {
    fn default() -> Self {
        Self::with_clock(Clock::Machine { ahead_ms: 0 })
    }
}

impl Memory {
    pub fn with_clock(clock: Clock) -> Self {
        let inner = Inner {
            contents: Arc::default(),
            gate_held: false,
            epoch: Head::start().position.epoch,
            listeners: Vec::new(),
        };
        let shared = Shared { inner: Mutex::new(inner), gate_opened: Condvar::new(), clock };
        Self { shared: Arc::new(shared) }
    }

    /// Takes a backup back; the epoch rises.
    pub fn restore(&self, from: &Path) -> Result<(), Error> {
        let io = |source| Error::Io { doing: "reading the backup", path: from.into(), source };
        let text = std::fs::read_to_string(from).map_err(io)?;
        let corrupt = |detail: String| Error::Corrupt { path: from.into(), detail };
        let kept: Kept = serde_json::from_str(&text).map_err(|error| corrupt(error.to_string()))?;
        let mut contents = Contents { entries: kept.entries, ..Contents::default() };
        for (kind, key, version, body) in kept.rows {
            let kind = kind_named(&kind).ok_or_else(|| corrupt(format!("unknown kind {kind}")))?;
            contents.records.restore(Row { kind, key, version, body })?;
        }
        let mut inner = self.shared.lock();
        inner.epoch = inner.epoch.max(contents.head().position.epoch) + 1;
        inner.contents = Arc::new(contents);
        inner.tell();
        Ok(())
    }
}

/// A backup's shape.
#[derive(Serialize, Deserialize)]
struct Kept {
    rows: Vec<(String, String, u64, String)>,
    entries: Vec<Entry>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self, inner: &Inner) -> State {
        let head = inner.contents.head();
        let raised = inner.epoch > head.position.epoch;
        State {
            now: Moment(u64::try_from(self.clock.wall_ms()).unwrap_or(0)).max(head.at),
            epoch: inner.epoch,
            raised_because: raised.then(|| "a backup was restored".to_owned()),
            failed_over_at: None,
            head,
        }
    }
}

impl Inner {
    fn tell(&mut self) {
        self.listeners.retain(|listener| match listener.upgrade() {
            // A full pipe holds news enough.
            Some(pipe) => {
                let _ = rustix::io::write(&pipe, &[1]);
                true
            }
            None => false,
        });
    }
}

impl Store for Memory {
    fn snapshot(&mut self) -> Result<Box<dyn Snapshot + '_>, Error> {
        let inner = self.shared.lock();
        let state = self.shared.state(&inner);
        Ok(Box::new(Look { contents: Arc::clone(&inner.contents), state }))
    }

    fn begin(&mut self, patience: Duration) -> Result<Box<dyn Transaction + '_>, Error> {
        let held = |inner: &mut Inner| inner.gate_held;
        let inner = self.shared.lock();
        let (mut inner, _) = self
            .shared
            .gate_opened
            .wait_timeout_while(inner, patience, held)
            .unwrap_or_else(PoisonError::into_inner);
        if inner.gate_held {
            let waited_ms = u64::try_from(patience.as_millis()).unwrap_or(u64::MAX);
            return Err(Error::Busy { pid: std::process::id(), waited_ms });
        }
        inner.gate_held = true;
        let state = self.shared.state(&inner);
        let contents = Arc::clone(&inner.contents);
        Ok(Box::new(Deciding { shared: &self.shared, contents, state }))
    }

    fn news(&mut self) -> Result<Box<dyn News>, Error> {
        let (read, write) = rustix::pipe::pipe().map_err(news_fault)?;
        for end in [&read, &write] {
            // One by one: macOS has no pipe that is made with flags.
            rustix::io::fcntl_setfd(end, rustix::io::FdFlags::CLOEXEC).map_err(news_fault)?;
            rustix::io::ioctl_fionbio(end, true).map_err(news_fault)?;
        }
        let write = Arc::new(write);
        self.shared.lock().listeners.push(Arc::downgrade(&write));
        Ok(Box::new(Pipe { read, _write: write }))
    }

    fn trace(&mut self, key: &str) -> Result<Option<String>, Error> {
        Ok(self.shared.lock().contents.traces.get(key).cloned())
    }

    fn set_trace(&mut self, key: &str, value: &str) -> Result<(), Error> {
        let mut inner = self.shared.lock();
        Arc::make_mut(&mut inner.contents).traces.insert(key.to_owned(), value.to_owned());
        Ok(())
    }

    fn forget_entries(&mut self, sealed: &Head) -> Result<(), Error> {
        let mut inner = self.shared.lock();
        if !inner.contents.entries.iter().any(|entry| entry.head() == *sealed) {
            let detail =
                format!("the journal has no entry {} like the sealed one", sealed.position);
            return Err(Error::Backend { detail });
        }
        let contents = Arc::make_mut(&mut inner.contents);
        contents.entries.retain(|entry| entry.position.number > sealed.position.number);
        contents.archived = Some(sealed.clone());
        Ok(())
    }

    fn backup(&mut self, to: &Path) -> Result<(), Error> {
        let contents = Arc::clone(&self.shared.lock().contents);
        let of_row = |row: Row| (row.kind.to_owned(), row.key, row.version, row.body);
        let kept = Kept {
            rows: contents.records.rows().map(of_row).collect(),
            entries: contents.entries.clone(),
        };
        let text = serde_json::to_string(&kept)
            .map_err(|error| Error::Backend { detail: error.to_string() })?;
        let file = std::fs::File::create_new(to);
        file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|source| {
            match source.kind() {
                std::io::ErrorKind::AlreadyExists => Error::Exists { path: to.to_owned() },
                _ => Error::Io { doing: "writing the backup", path: to.to_owned(), source },
            }
        })
    }

    fn describe(&self) -> String {
        "memory, gone when this process ends".to_owned()
    }
}

struct Look {
    contents: Arc<Contents>,
    state: State,
}

impl View for Look {
    fn read(&self, queries: &[Query]) -> Result<Vec<Vec<Row>>, Unreadable> {
        self.contents.records.read(queries)
    }
}

impl Snapshot for Look {
    fn state(&self) -> &State {
        &self.state
    }

    fn entries(&self, after: u64, limit: u32) -> Result<Vec<Entry>, Error> {
        let wanted = self.contents.entries.iter().filter(|entry| entry.position.number > after);
        Ok(wanted.take(limit as usize).cloned().collect())
    }

    fn entries_before(&self, before: u64, limit: u32) -> Result<Vec<Entry>, Error> {
        let entries = self.contents.entries.iter().rev();
        let wanted = entries.filter(|entry| entry.position.number < before);
        Ok(wanted.take(limit as usize).cloned().collect())
    }

    fn rows(&self, after: Option<(&str, &str)>, limit: u32) -> Result<Vec<Row>, Error> {
        let later = |row: &Row| after.is_none_or(|after| (row.kind, row.key.as_str()) > after);
        Ok(self.contents.records.rows().filter(later).take(limit as usize).collect())
    }

    fn index_entries(&self) -> Result<Vec<(String, String, String, String)>, Error> {
        let owned = |(index, value, kind, key): &(&str, String, &str, String)| {
            ((*index).to_owned(), value.clone(), (*kind).to_owned(), key.clone())
        };
        Ok(self.contents.records.index().map(owned).collect())
    }

    fn archived(&self) -> Result<Option<Head>, Error> {
        Ok(self.contents.archived.clone())
    }
}

struct Deciding<'a> {
    shared: &'a Shared,
    contents: Arc<Contents>,
    state: State,
}

impl View for Deciding<'_> {
    fn read(&self, queries: &[Query]) -> Result<Vec<Vec<Row>>, Unreadable> {
        self.contents.records.read(queries)
    }
}

impl Transaction for Deciding<'_> {
    fn state(&self) -> &State {
        &self.state
    }

    fn commit(self: Box<Self>, commit: &Commit<'_>) -> Result<(), Error> {
        super::check_order(&self.state, commit.entries)?;
        let mut inner = self.shared.lock();
        // On a copy, so that an error half-way leaves nothing.
        let mut contents = Contents::clone(&inner.contents);
        for change in commit.changes {
            contents.records.delete(change.kind, &change.key)?;
            if let Some((version, body)) = change.put.clone() {
                let row = Row { kind: change.kind, key: change.key.clone(), version, body };
                contents.records.restore(row)?;
            }
        }
        contents.entries.extend_from_slice(commit.entries);
        inner.contents = Arc::new(contents);
        inner.tell();
        Ok(())
    }
}

impl Drop for Deciding<'_> {
    fn drop(&mut self) {
        self.shared.lock().gate_held = false;
        self.shared.gate_opened.notify_one();
    }
}

struct Pipe {
    read: OwnedFd,
    /// Kept so that the store can reach it as long as somebody listens.
    _write: Arc<OwnedFd>,
}

fn news_fault(error: rustix::io::Errno) -> Error {
    Error::Io { doing: "waiting for news", path: "memory".into(), source: error.into() }
}

impl News for Pipe {
    fn wait(&mut self, at_most: Duration, also: &[BorrowedFd<'_>]) -> Result<Woken, Error> {
        let start = Instant::now();
        loop {
            let left = at_most.saturating_sub(start.elapsed());
            let timeout = Timespec {
                tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: left.subsec_nanos().into(),
            };
            let mut fds = vec![PollFd::from_borrowed_fd(self.read.as_fd(), PollFlags::IN)];
            fds.extend(also.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)));
            match poll(&mut fds, Some(&timeout)) {
                Ok(0) => return Ok(Woken::TimedOut),
                Ok(_) if !fds[0].revents().is_empty() => {
                    let _ = rustix::io::read(&self.read, &mut [0; 512]);
                    return Ok(Woken::News);
                }
                Ok(_) => return Ok(Woken::Other),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(news_fault(error)),
            }
        }
    }
}
