//! The news: a file that every commit touches, and whoever sleeps until it does.
//!
//! A hint and never the truth: a writer that dies between its commit and the touch wakes nobody, so
//! a sleeper also sets a timer. Made before the state is read, it misses nothing after.

use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{AtFlags, CWD, Timestamps, UTIME_NOW, utimensat};
use rustix::io::Errno;

use super::{fault, schema};
use crate::store::{self, Error, Woken};

pub(super) fn path_in(folder: &Path) -> PathBuf {
    folder.join("news")
}

/// Tells all sleepers. What was committed stays committed, so a failure is not an error.
pub(super) fn touch(path: &Path) {
    let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    let times = Timestamps { last_access: now, last_modification: now };
    if utimensat(CWD, path, &times, AtFlags::empty()) == Err(Errno::NOENT) {
        let _ = schema::private_file(path);
        let _ = utimensat(CWD, path, &times, AtFlags::empty());
    }
}

#[derive(Debug)]
pub(super) struct News {
    path: PathBuf,
    watch: watch::Watch,
}

impl News {
    pub(super) fn of(folder: &Path) -> Result<Self, Error> {
        let path = path_in(folder);
        let watch = watch::Watch::start(&path).map_err(|error| broken(&path, error))?;
        Ok(Self { path, watch })
    }
}

fn broken(path: &Path, error: std::io::Error) -> Error {
    fault::of_file("waiting for news", path, error)
}

impl store::News for News {
    fn wait(&mut self, at_most: Duration, also: &[BorrowedFd<'_>]) -> Result<Woken, Error> {
        let start = Instant::now();
        loop {
            let left = at_most.saturating_sub(start.elapsed());
            let woken = self.watch.sleep(&self.path, left, also);
            match woken.map_err(|error| broken(&self.path, error))? {
                Some(woken) => return Ok(woken),
                None if start.elapsed() >= at_most => return Ok(Woken::TimedOut),
                None => {}
            }
        }
    }
}

/// Sleeps on descriptors; which of them are ready. An interrupted sleep has nothing ready.
fn ready(fds: &mut [PollFd<'_>], at_most: Duration) -> std::io::Result<Vec<bool>> {
    let timeout = Timespec {
        tv_sec: i64::try_from(at_most.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: at_most.subsec_nanos().into(),
    };
    match poll(fds, Some(&timeout)) {
        Ok(_) => Ok(fds.iter().map(|fd| !fd.revents().is_empty()).collect()),
        Err(Errno::INTR) => Ok(vec![false; fds.len()]),
        Err(error) => Err(error.into()),
    }
}

#[cfg(target_os = "linux")]
mod watch {
    use std::mem::MaybeUninit;
    use std::os::fd::OwnedFd;

    use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};

    use super::{BorrowedFd, Duration, Errno, Path, PollFd, PollFlags, Woken, ready, schema};

    #[derive(Debug)]
    pub(super) struct Watch {
        inotify: OwnedFd,
    }

    impl Watch {
        pub(super) fn start(path: &Path) -> std::io::Result<Self> {
            let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
            let watch = Self { inotify };
            watch.add(path)?;
            Ok(watch)
        }

        fn add(&self, path: &Path) -> std::io::Result<()> {
            let flags = WatchFlags::ATTRIB | WatchFlags::MOVE_SELF | WatchFlags::DELETE_SELF;
            if inotify::add_watch(&self.inotify, path, flags) == Err(Errno::NOENT) {
                match schema::private_file(path) {
                    Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                        return Err(error);
                    }
                    _ => {}
                }
                inotify::add_watch(&self.inotify, path, flags)?;
            }
            Ok(())
        }

        pub(super) fn sleep(
            &self,
            path: &Path,
            at_most: Duration,
            also: &[BorrowedFd<'_>],
        ) -> std::io::Result<Option<Woken>> {
            let mut fds = vec![PollFd::new(&self.inotify, PollFlags::IN)];
            fds.extend(also.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)));
            let ready = ready(&mut fds, at_most)?;
            if ready[0] {
                self.drain(path)?;
                return Ok(Some(Woken::News));
            }
            Ok(ready.contains(&true).then_some(Woken::Other))
        }

        /// Takes everything that is reported; when the file itself went, watches the new one.
        fn drain(&self, path: &Path) -> std::io::Result<()> {
            let mut buffer = [MaybeUninit::uninit(); 4_096];
            let mut reader = inotify::Reader::new(&self.inotify, &mut buffer);
            let mut gone = false;
            loop {
                match reader.next() {
                    Ok(event) => {
                        let ends =
                            ReadFlags::IGNORED | ReadFlags::DELETE_SELF | ReadFlags::MOVE_SELF;
                        gone |= event.events().intersects(ends);
                    }
                    Err(Errno::WOULDBLOCK) => break,
                    Err(Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            if gone { self.add(path) } else { Ok(()) }
        }
    }
}

/// Without inotify the file's time is looked at five times a second: kqueue would need unsafe code.
#[cfg(not(target_os = "linux"))]
mod watch {
    use std::time::SystemTime;

    use super::{BorrowedFd, Duration, Path, PollFd, PollFlags, Woken, ready};

    const LOOK_EVERY: Duration = Duration::from_millis(200);

    #[derive(Debug)]
    pub(super) struct Watch {
        seen: std::cell::Cell<Option<SystemTime>>,
    }

    fn touched(path: &Path) -> Option<SystemTime> {
        std::fs::metadata(path).and_then(|data| data.modified()).ok()
    }

    impl Watch {
        pub(super) fn start(path: &Path) -> std::io::Result<Self> {
            Ok(Self { seen: touched(path).into() })
        }

        pub(super) fn sleep(
            &self,
            path: &Path,
            at_most: Duration,
            also: &[BorrowedFd<'_>],
        ) -> std::io::Result<Option<Woken>> {
            let now = touched(path);
            if self.seen.replace(now) != now {
                return Ok(Some(Woken::News));
            }
            let mut fds: Vec<PollFd<'_>> =
                also.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
            let ready = ready(&mut fds, at_most.min(LOOK_EVERY))?;
            Ok(ready.contains(&true).then_some(Woken::Other))
        }
    }
}
