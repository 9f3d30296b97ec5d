//! Where the checks of candidates run: a few trees that are kept, with what was built in them.
//!
//! Owns those trees and the running of checks in them. Each is locked by a file that everything a
//! check starts inherits: what outlives a killed runner keeps its tree, and the next runner takes
//! another. Invariants: a check never sees the tree of a person or an agent; it learns nothing that
//! proves a session; all it writes is in its log.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use baton_core::tasks::evidence::NamedCheck;
use rustix::fs::{FlockOperation, flock};
use rustix::io::{FdFlags, fcntl_setfd};

use crate::failure::Failure;
use crate::git::{Git, Oid, POOL};
use crate::leash::{self, Waited};

/// The most trees of the pool, also when dead runners' leftovers keep some.
const TREES_MAX: usize = 200;
/// So many logs are kept.
const LOGS_MAX: usize = 200;
/// How much of the end of a log is shown.
pub(super) const TAIL_BYTES_MAX: u64 = 4_000;

/// How a candidate's checks ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Came {
    Passed,
    Failed {
        check: String,
        exit: u8,
        log: PathBuf,
        tail: String,
    },
    /// Nobody wants to know any more.
    Stopped,
}

/// What is checked, and where that is written down.
#[derive(Clone, Debug)]
pub(super) struct Work {
    pub(super) commit: Oid,
    pub(super) checks: Vec<NamedCheck>,
    pub(super) landings: String,
    pub(super) target: String,
    pub(super) log: PathBuf,
}

#[derive(Clone, Debug)]
pub(super) struct Pool {
    repository: PathBuf,
    folder: PathBuf,
    logs: PathBuf,
}

fn cannot(doing: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Failure {
    let path = path.to_owned();
    move |source| Failure::File { doing, path, source }
}

impl Pool {
    pub(super) fn new(common_dir: &Path) -> Result<Self, Failure> {
        let folder = common_dir.join(POOL[0]).join(POOL[1]);
        let logs = common_dir.join(POOL[0]).join("logs");
        for folder in [&folder, &logs] {
            fs::create_dir_all(folder).map_err(cannot("it cannot be made", folder))?;
        }
        Ok(Self { repository: common_dir.to_owned(), folder, logs })
    }

    /// A new log; the oldest ones go.
    pub(super) fn log(&self, name: &str) -> Result<PathBuf, Failure> {
        let failed = || cannot("logs cannot be listed", &self.logs);
        let listed = fs::read_dir(&self.logs).map_err(failed())?;
        let mut known: Vec<(std::time::SystemTime, PathBuf)> = listed
            .flatten()
            .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
            .collect();
        known.sort();
        let surplus = (known.len() + 1).saturating_sub(LOGS_MAX);
        for (_, path) in known.into_iter().take(surplus) {
            fs::remove_file(path).ok();
        }
        for number in 1..u32::MAX {
            let path = self.logs.join(format!("{name}-{number}.log"));
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(_) => return Ok(path),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(cannot("a log cannot be made", &path)(error)),
            }
        }
        Ok(self.logs.join(name))
    }

    /// A tree that nobody uses.
    fn slot(&self, commit: &Oid) -> Result<Slot, Failure> {
        for number in 1..=TREES_MAX {
            let path = self.folder.join(format!("{number}.lock"));
            let open = OpenOptions::new().create(true).append(true).open(&path);
            let lock = open.map_err(cannot("a tree for checks cannot be taken", &path))?;
            if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
                continue;
            }
            let root = self.folder.join(number.to_string());
            self.make(&root, commit)?;
            return Ok(Slot { root, lock });
        }
        let busy = std::io::Error::other("leftovers of killed checks use them all");
        Err(cannot("no tree is free for a check", &self.folder)(busy))
    }

    /// The tree exactly at the commit, caches kept. One that cannot be used is made anew.
    fn make(&self, root: &Path, commit: &Oid) -> Result<(), Failure> {
        let slow = Duration::from_secs(10 * 60);
        if root.join(".git").exists() {
            let git = Git::in_tree(root)?.with_timeout(slow);
            if git.reset_pool_tree(commit).is_ok() {
                return Ok(());
            }
        }
        let _turn = self.turn()?;
        let repository = Git::in_repository(&self.repository)?.with_timeout(slow);
        // Everything in it is ours: it was made by this very function.
        fs::remove_dir_all(root).or_else(gone).map_err(cannot("it cannot be removed", root))?;
        repository.add_pool_tree(root, commit)?;
        Ok(Git::in_tree(root)?.with_timeout(slow).reset_pool_tree(commit)?)
    }

    /// Git lists all trees when it adds one, and fails at another that is half made.
    fn turn(&self) -> Result<File, Failure> {
        let path = self.folder.join("making.lock");
        let open = OpenOptions::new().create(true).append(true).open(&path);
        let lock = open.map_err(cannot("a tree for checks cannot be made", &path))?;
        let waited = flock(&lock, FlockOperation::LockExclusive).map_err(std::io::Error::from);
        waited.map_err(cannot("a tree for checks cannot be made", &path))?;
        Ok(lock)
    }

    /// Runs the checks one after the other, up to the first that fails. `wake` ends them.
    pub(super) fn run(
        &self,
        work: &Work,
        wake: BorrowedFd<'_>,
        begun: &dyn Fn(&str),
    ) -> Result<Came, Failure> {
        let slot = self.slot(&work.commit)?;
        for check in &work.checks {
            begun(&check.name);
            match slot.check(work, check, wake)? {
                Some(0) => {}
                Some(exit) => {
                    let (check, log) = (check.name.clone(), work.log.clone());
                    let tail = tail_of(&log);
                    return Ok(Came::Failed { check, exit, log, tail });
                }
                None => return Ok(Came::Stopped),
            }
        }
        Ok(Came::Passed)
    }
}

fn gone(error: std::io::Error) -> std::io::Result<()> {
    if error.kind() == std::io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}

struct Slot {
    root: PathBuf,
    lock: File,
}

impl Slot {
    /// The exit code; nothing when it was stopped.
    fn check(
        &self,
        work: &Work,
        check: &NamedCheck,
        wake: BorrowedFd<'_>,
    ) -> Result<Option<u8>, Failure> {
        let failed = || cannot("a log cannot be written", &work.log);
        let mut log = OpenOptions::new().append(true).open(&work.log).map_err(failed())?;
        let line = format!("$ {}\n", check.run.join(" "));
        log.write_all(line.as_bytes()).map_err(failed())?;
        let mut command = leash::command(&check.run);
        command.current_dir(&self.root).stdin(Stdio::null()).process_group(0);
        command.stdout(log.try_clone().map_err(failed())?);
        command.stderr(log.try_clone().map_err(failed())?);
        leash::for_nobody(&mut command);
        command.env("BATON_LANDING", &work.landings).env("BATON_TARGET", &work.target);
        // Inherited: whatever the check starts keeps the tree for as long as it lives.
        fcntl_setfd(self.lock.as_fd(), FdFlags::empty()).ok();
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) => {
                let _ = writeln!(log, "cannot run it: {error}");
                return Ok(Some(leash::code_of(&error)));
            }
        };
        let timeout = Duration::from_millis(check.timeout.0);
        let code = match leash::wait(&mut child, Instant::now() + timeout, Some(wake)) {
            Waited::Ended(code) => Some(code),
            Waited::Late => Some(leash::TOO_LONG),
            Waited::Woken => None,
        };
        // Also what a check that ended has left running.
        leash::end(&mut child);
        if code == Some(leash::TOO_LONG) {
            let _ = writeln!(log, "it took longer than {} and was ended", check.timeout);
        }
        Ok(code)
    }
}

/// The end of a log as text.
fn tail_of(log: &Path) -> String {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut file = File::open(log)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES_MAX)))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    String::from_utf8_lossy(&read().unwrap_or_default()).trim().to_owned()
}
