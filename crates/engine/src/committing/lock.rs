//! Whose turn it is to write a tree's index, and what was begun.
//!
//! Owns git's `index.lock`, the turn among Baton's own commits, and the intent. The lock is a hard
//! link to a file of ours that is there before it: after a death at any point it can be told
//! whether a lock that lies there is ours. Invariants: a lock that is not ours is never removed;
//! turn and intent lie beside the store, because a tree's own git folder is open to sandboxes, and
//! a repair does what an intent says.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use baton_core::commits::{Made, Refused};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::refuse;
use crate::failure::Failure;
use crate::git::{Entry, Oid};
use crate::workspace::Retry;

/// How long a commit waits for git's own lock, and for another commit of Baton's.
const INDEX_PATIENCE: Duration = Duration::from_secs(5);
const TURN_PATIENCE: Duration = Duration::from_secs(30);
const LOOKED_FOR_EVERY: Duration = Duration::from_millis(20);
/// How much of a command line is shown.
const COMMAND_CHARS_SHOWN: usize = 80;

/// Beside the store, with what each tree is about to do.
const FOLDER: &str = "commits";
const TEMPORARY: &str = "baton-index";
const VERSION: u32 = 1;
const NOT_WRITTEN: &str = "the new index cannot be written";

/// What is about to happen, on disk before it does.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Intent {
    pub(super) version: u32,
    /// The branch is about to move; nothing before that was decided.
    pub(super) step: Option<Step>,
    /// The files of the tree are about to move to another commit, and then the branch.
    #[serde(default)]
    pub(super) pull: Option<Pull>,
    /// The tree's git folder by its inode: another tree may have the name by now.
    folder: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Pull {
    pub(crate) branch: String,
    pub(crate) before: Oid,
    pub(crate) after: Oid,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Step {
    /// The lock holds the whole new index.
    pub(super) ready: bool,
    pub(super) branch: Option<String>,
    pub(super) before: Option<Oid>,
    pub(super) after: Oid,
    /// What the index had at the paths, and what it is to have.
    pub(super) old: Vec<Entry>,
    pub(super) new: Vec<Entry>,
    /// What is told of it once it is done; nothing when it is a move to what others committed.
    pub(super) made: Option<(Made, Retry)>,
}

/// The only one of Baton's processes that writes this tree's index. Ends with its holder, however
/// that dies.
#[derive(Debug)]
pub(crate) struct Turn {
    /// The tree's git folder.
    folder: PathBuf,
    intent: PathBuf,
    _lock: File,
}

/// What is begun in a tree is told by its name among the repository's: git keeps those apart.
fn place_of(store: &Path, git_dir: &Path) -> PathBuf {
    let linked = git_dir.parent().is_some_and(|parent| parent.ends_with("worktrees"));
    let name = git_dir.file_name().filter(|_| linked);
    let name = name.map(|name| format!("tree-{}", name.to_string_lossy()));
    store.join(FOLDER).join(name.unwrap_or_else(|| "main".to_owned()))
}

pub(super) fn cannot(doing: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Failure {
    let path = path.to_owned();
    move |source| Failure::File { doing, path, source }
}

/// The name of a tree may have dots in it.
fn beside(place: &Path, ending: &str) -> PathBuf {
    let mut path = place.as_os_str().to_owned();
    path.push(ending);
    path.into()
}

impl Turn {
    pub(crate) fn take(store: &Path, git_dir: &Path) -> Result<Self, Failure> {
        let place = place_of(store, git_dir);
        let (path, intent) = (beside(&place, ".lock"), beside(&place, ".json"));
        let made = fs::create_dir_all(store.join(FOLDER));
        let open = made.and_then(|()| OpenOptions::new().create(true).append(true).open(&path));
        let file = open.map_err(cannot("the turn to commit cannot be taken", &path))?;
        let deadline = Instant::now() + TURN_PATIENCE;
        while flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            if Instant::now() >= deadline {
                return Err(refuse(Refused::Busy { by: holder_of(&path, git_dir) }));
            }
            std::thread::sleep(LOOKED_FOR_EVERY);
        }
        Ok(Self { folder: git_dir.to_owned(), intent, _lock: file })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The tree's own index.
    pub(super) fn index(&self) -> PathBuf {
        self.path("index")
    }

    /// What a process that died had begun.
    pub(super) fn begun(&self) -> Result<Option<Intent>, Failure> {
        let path = self.intent.clone();
        let text = match fs::read(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            read => read.map_err(cannot("what was begun cannot be read", &path))?,
        };
        let intent: Intent = serde_json::from_slice(&text).map_err(|error| {
            cannot("what was begun cannot be understood", &path)(std::io::Error::other(error))
        })?;
        if intent.version > VERSION {
            let newer = std::io::Error::other("a newer Baton wrote it");
            return Err(cannot("what was begun cannot be understood", &path)(newer));
        }
        Ok((intent.folder == self.inode()).then_some(intent))
    }

    fn inode(&self) -> u64 {
        fs::metadata(&self.folder).map_or(0, |folder| folder.ino())
    }

    /// On disk, whole, before anything follows from it.
    pub(super) fn intend(&self, step: Step) -> Result<(), Failure> {
        self.write_intent(Some(step), None)
    }

    pub(crate) fn intend_pull(&self, pull: Pull) -> Result<(), Failure> {
        self.write_intent(None, Some(pull))
    }

    fn write_intent(&self, step: Option<Step>, pull: Option<Pull>) -> Result<(), Failure> {
        let intent = &Intent { version: VERSION, step, pull, folder: self.inode() };
        let (path, new) = (&self.intent, self.intent.with_extension("new"));
        let doing = "what is to happen cannot be written down";
        let text = serde_json::to_vec(intent)
            .map_err(|error| cannot(doing, path)(std::io::Error::other(error)))?;
        let written = File::create(&new).and_then(|mut file| {
            file.write_all(&text)?;
            file.sync_all()?;
            fs::rename(&new, path)?;
            path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
        });
        written.map_err(cannot(doing, path))
    }

    /// Git's own lock, taken as git does: it is made, or somebody else has it. `step` is what is
    /// begun already and must not be forgotten.
    pub(super) fn lock_index(&self, step: Option<&Step>) -> Result<IndexLock<'_>, Failure> {
        let give_up = || if step.is_none() { self.forget() } else { Ok(()) };
        let temporary = self.path(TEMPORARY);
        let lock = self.path("index.lock");
        let doing = "git's index cannot be locked";
        remove(&temporary)?;
        let made = OpenOptions::new().write(true).create_new(true).open(&temporary);
        let file = made.map_err(cannot(doing, &temporary))?;
        // Where nothing is decided yet, the file alone tells whose lock it is.
        if let Some(step) = step {
            self.intend(step.clone())?;
        }
        let deadline = Instant::now() + INDEX_PATIENCE;
        loop {
            match fs::hard_link(&temporary, &lock) {
                Ok(()) => {
                    let (syncing, left) = (None, step.is_some());
                    return Ok(IndexLock { turn: self, file, syncing, left });
                }
                Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                    give_up()?;
                    return Err(cannot(doing, &lock)(error));
                }
                Err(_) if Instant::now() >= deadline => {
                    give_up()?;
                    return Err(refuse(locked(&lock, &self.folder)));
                }
                Err(_) => std::thread::sleep(LOOKED_FOR_EVERY),
            }
        }
    }

    /// Did somebody who is gone come as far as taking git's lock, or nearly?
    pub(super) fn was_locking(&self) -> bool {
        fs::symlink_metadata(self.path(TEMPORARY)).is_ok()
    }

    /// Is the lock that lies there the one that was made for what was begun?
    pub(super) fn lock_is_ours(&self) -> bool {
        let same = |one: &fs::Metadata, two: &fs::Metadata| {
            (one.dev(), one.ino()) == (two.dev(), two.ino())
        };
        let look = |name: &str| fs::symlink_metadata(self.path(name)).ok();
        match (look(TEMPORARY), look("index.lock")) {
            (Some(temporary), Some(lock)) => same(&temporary, &lock),
            _ => false,
        }
    }

    /// Did what was begun get as far as the new index?
    pub(super) fn index_is_ours(&self) -> bool {
        let look = |name: &str| fs::symlink_metadata(self.path(name)).ok();
        match (look(TEMPORARY), look("index")) {
            (Some(temporary), Some(index)) => {
                (temporary.dev(), temporary.ino()) == (index.dev(), index.ino())
            }
            _ => false,
        }
    }

    /// The lock becomes the index.
    pub(super) fn put_index(&self) -> Result<(), Failure> {
        let (lock, index) = (self.path("index.lock"), self.path("index"));
        fs::rename(&lock, &index).map_err(cannot("the new index cannot be put in place", &index))
    }

    pub(super) fn unlock(&self) -> Result<(), Failure> {
        if self.lock_is_ours() { remove(&self.path("index.lock")) } else { Ok(()) }
    }

    /// Nothing is begun any more. The intent goes last: it tells what the rest is.
    pub(crate) fn forget(&self) -> Result<(), Failure> {
        remove(&self.path(TEMPORARY))?;
        remove(&self.intent)
    }
}

/// Git's lock in our hands; let go of when dropped, unless it is left for a repair.
#[derive(Debug)]
pub(super) struct IndexLock<'a> {
    turn: &'a Turn,
    file: File,
    /// What was written goes to disk meanwhile.
    syncing: Option<JoinHandle<std::io::Result<()>>>,
    left: bool,
}

impl IndexLock<'_> {
    /// The index as it is to be, in the lock. It is safe on disk only after `synced`.
    pub(super) fn write(&mut self, index: &Path) -> Result<(), Failure> {
        let content = fs::read(index).map_err(cannot(NOT_WRITTEN, index))?;
        let written = self.file.write_all(&content).and_then(|()| self.file.try_clone());
        let file = written.map_err(cannot(NOT_WRITTEN, &self.turn.path("index.lock")))?;
        self.syncing = Some(std::thread::spawn(move || file.sync_all()));
        Ok(())
    }

    /// Waits until what was written is safe on disk.
    pub(super) fn synced(&mut self) -> Result<(), Failure> {
        let Some(syncing) = self.syncing.take() else { return Ok(()) };
        let ended = syncing.join().unwrap_or_else(|_| self.file.sync_all());
        ended.map_err(cannot(NOT_WRITTEN, &self.turn.path("index.lock")))
    }

    pub(super) fn put(mut self) -> Result<(), Failure> {
        self.synced()?;
        let turn = self.turn;
        self.leave();
        turn.put_index()
    }

    /// It stays until a repair has seen how far things got.
    pub(super) fn leave(mut self) {
        self.left = true;
    }
}

impl Drop for IndexLock<'_> {
    fn drop(&mut self) {
        if !self.left {
            // What fails here is repaired by the next commit: the intent is still there.
            let _ = self.turn.unlock().and_then(|()| self.turn.forget());
        }
    }
}

fn remove(path: &Path) -> Result<(), Failure> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed.map_err(cannot("it cannot be removed", path)),
    }
}

fn locked(lock: &Path, git_dir: &Path) -> Refused {
    let made = fs::symlink_metadata(lock).and_then(|metadata| metadata.modified());
    let age = made.ok().and_then(|made| SystemTime::now().duration_since(made).ok());
    Refused::IndexLocked {
        lock: lock.to_string_lossy().into_owned(),
        by: holder_of(lock, git_dir),
        age_seconds: age.unwrap_or_default().as_secs(),
    }
}

/// Who has a file open; else a git at work in this tree. Only what can be seen is told.
fn holder_of(path: &Path, git_dir: &Path) -> Option<String> {
    let tree = git_dir.parent()?;
    let mut at_work = None;
    for entry in fs::read_dir("/proc").ok()?.flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
        if pid == std::process::id() {
            continue;
        }
        let folder = entry.path();
        let files = fs::read_dir(folder.join("fd")).ok().into_iter().flatten().flatten();
        let mut targets = files.filter_map(|file| fs::read_link(file.path()).ok());
        if targets.any(|target| target == path) {
            return Some(process_words(pid, &folder));
        }
        let name = fs::read_to_string(folder.join("comm")).unwrap_or_default();
        let inside = || fs::read_link(folder.join("cwd")).is_ok_and(|cwd| cwd.starts_with(tree));
        if at_work.is_none() && name.trim() == "git" && inside() {
            at_work = Some(process_words(pid, &folder));
        }
    }
    at_work
}

fn process_words(pid: u32, folder: &Path) -> String {
    let line = fs::read(folder.join("cmdline")).unwrap_or_default();
    let words: Vec<String> = line
        .split(|byte| *byte == 0)
        .filter(|word| !word.is_empty())
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect();
    let words: String = words.join(" ").chars().take(COMMAND_CHARS_SHOWN).collect();
    format!("process {pid} ({words})")
}
