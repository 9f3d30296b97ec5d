//! Checks that run at the same time, and the wait for whichever ends first.
//!
//! Owns their threads. Each runs the checks of one candidate in a tree of the pool; letting go of
//! one ends it. The wait sleeps on results, on a wish to end, and until the runner's turn must be
//! renewed. Invariant: when a bench is dropped nothing of it runs on.

use std::collections::BTreeMap;
use std::io::{PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use baton_core::landing::RENEWED_EVERY;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::Progress;
use super::pool::{Came, Pool, Work};
use super::runner::Run;
use crate::failure::Failure;

/// Something is said of a check that takes long, this often.
const TOLD_EVERY: Duration = Duration::from_secs(10);

/// What came of the candidate with so many landings.
pub(super) struct Result {
    pub(super) prefix: usize,
    pub(super) came: std::result::Result<Came, Failure>,
}

enum Said {
    Begun { prefix: usize, check: String },
    Ended(Result),
}

struct Running {
    /// Dropped, it ends the check.
    leash: PipeWriter,
    thread: JoinHandle<()>,
    check: String,
    since: Instant,
}

pub(super) struct Bench {
    pool: Pool,
    running: BTreeMap<usize, Running>,
    sender: Sender<Said>,
    receiver: Receiver<Said>,
    /// One byte for everything that is said.
    bell: PipeWriter,
    listens: PipeReader,
}

fn no_pipe(source: std::io::Error) -> Failure {
    Failure::File { doing: "a check cannot be watched", path: "pipe".into(), source }
}

impl Bench {
    pub(super) fn new(pool: Pool) -> std::result::Result<Self, Failure> {
        let (sender, receiver) = channel();
        let (listens, bell) = std::io::pipe().map_err(no_pipe)?;
        Ok(Self { pool, running: BTreeMap::new(), sender, receiver, bell, listens })
    }

    /// Begins to check a candidate. One that cannot be begun is told as a result.
    pub(super) fn start(&mut self, prefix: usize, work: Work) {
        let (pool, sender) = (self.pool.clone(), self.sender.clone());
        let pipes = std::io::pipe().and_then(|pipe| Ok((pipe, self.bell.try_clone()?)));
        let ((wake, leash), mut bell) = match pipes {
            Ok(pipes) => pipes,
            Err(error) => {
                let came = Err(no_pipe(error));
                let _ = sender.send(Said::Ended(Result { prefix, came }));
                let _ = self.bell.write_all(b".");
                return;
            }
        };
        let thread = std::thread::spawn(move || {
            let begun = |check: &str| {
                let _ = sender.send(Said::Begun { prefix, check: check.to_owned() });
            };
            let came = pool.run(&work, wake.as_fd(), &begun);
            // Nobody listens any more: then nobody needs to know.
            let _ = sender.send(Said::Ended(Result { prefix, came }));
            let _ = bell.write_all(b".");
        });
        let (check, since) = (String::new(), Instant::now());
        self.running.insert(prefix, Running { leash, thread, check, since });
    }

    pub(super) fn stop(&mut self, prefix: usize) {
        if let Some(Running { leash, thread, .. }) = self.running.remove(&prefix) {
            drop(leash);
            thread.join().ok();
        }
    }

    pub(super) fn stop_all(&mut self) {
        let all: Vec<usize> = self.running.keys().copied().collect();
        all.into_iter().for_each(|prefix| self.stop(prefix));
    }

    /// The next result; nothing when somebody wants this to end. The turn is kept meanwhile.
    pub(super) fn wait(
        &mut self,
        run: &mut Run<'_>,
    ) -> std::result::Result<Option<Result>, Failure> {
        let every = Duration::from_millis(RENEWED_EVERY.0);
        let (mut renewed, mut told) = (Instant::now(), Instant::now());
        loop {
            while let Ok(said) = self.receiver.try_recv() {
                match said {
                    Said::Begun { prefix, check } => {
                        if let Some(running) = self.running.get_mut(&prefix) {
                            running.check = check;
                        }
                    }
                    Said::Ended(result) => {
                        // Of one that was stopped nothing is to be told.
                        let Some(running) = self.running.remove(&result.prefix) else { continue };
                        running.thread.join().ok();
                        return Ok(Some(result));
                    }
                }
            }
            if run.door.end_wanted() {
                return Ok(None);
            }
            let rest = every.saturating_sub(renewed.elapsed());
            self.sleep(run, rest.min(TOLD_EVERY.saturating_sub(told.elapsed())));
            if renewed.elapsed() >= every {
                run.renew()?;
                renewed = Instant::now();
            }
            if told.elapsed() >= TOLD_EVERY {
                self.tell(run);
                told = Instant::now();
            }
        }
    }

    fn tell(&self, run: &mut Run<'_>) {
        for (prefix, running) in &self.running {
            run.door.told(&Progress::StillChecking {
                landings: *prefix,
                check: running.check.clone(),
                seconds: running.since.elapsed().as_secs(),
            });
        }
    }

    fn sleep(&mut self, run: &Run<'_>, at_most: Duration) {
        let end = PollFd::from_borrowed_fd(run.door.end_descriptor(), PollFlags::IN);
        let mut watched = vec![PollFd::new(&self.listens, PollFlags::IN), end];
        let timeout = Timespec {
            tv_sec: i64::try_from(at_most.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: at_most.subsec_nanos().into(),
        };
        let _ = poll(&mut watched, Some(&timeout));
        if watched.first().is_some_and(|bell| bell.revents().contains(PollFlags::IN)) {
            let mut rung = [0; 64];
            let _ = self.listens.read(&mut rung);
        }
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.stop_all();
    }
}
