//! What `init` did to whose files, kept beside the store.
//!
//! Owns the memory by which `init --remove` gives every file back byte for byte: what was there
//! before, and the hash of what we wrote. Without it, or when a user has changed a file since, only
//! our own entries are taken out. Invariant: nothing here decides what is ours; it only helps.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};

use super::{Client, Mode, files};
use crate::failure::Failure;
use crate::place::{STORE_IN_GIT, STORE_IN_PLAIN};

/// In the folder of the store, which is the user's alone: old settings may hold secrets.
pub(super) const FILE: &str = "wiring.json";
const VERSION: u32 = 1;
const PRIVATE: u32 = 0o600;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    version: u32,
    /// Whether somebody was asked which clients to wire.
    pub chosen: bool,
    /// Whether somebody said that no client is to be wired.
    #[serde(default)]
    pub none: bool,
    pub clients: BTreeSet<Client>,
    pub mode: Option<Mode>,
    /// Whether roles were to become agents of the clients.
    #[serde(default)]
    pub roles: bool,
    /// By full path, since each tree has files of its own.
    pub(super) files: BTreeMap<String, Written>,
    /// Folders that were made for them.
    pub(super) folders: BTreeSet<String>,
    pub(super) hooks: Option<Hooks>,
    /// The folder of the store when this was written: a repository may be moved or copied since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    store: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Written {
    /// What was there before; nothing where there was no file.
    pub(super) before: Option<String>,
    /// The hash of what we left there.
    pub(super) after: String,
}

/// The user's own hooks of git.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Hooks {
    /// What the repository's configuration said before.
    pub(super) before: Option<String>,
    /// Their folder, as git would look for it.
    pub(super) theirs: String,
}

impl Hooks {
    /// The same, where what was around the store `from` is now around the store `to`.
    pub(super) fn moved(&self, from: &Path, to: &Path) -> Self {
        let Some(bases) = bases(from, to) else { return self.clone() };
        let before = self.before.as_deref().map(|path| rebased(path, &bases));
        Self { before, theirs: rebased(&self.theirs, &bases) }
    }
}

/// What moves together with a store: the repository around it, or git's own folder.
fn base(store: &Path) -> Option<(usize, &Path)> {
    let forms = [Path::new(".git").join(STORE_IN_GIT), STORE_IN_PLAIN.into(), STORE_IN_GIT.into()];
    let form = forms.iter().position(|form| store.ends_with(form))?;
    store.ancestors().nth(forms[form].components().count()).map(|base| (form, base))
}

/// Nothing where it is no mere move.
fn bases<'a>(from: &'a Path, to: &'a Path) -> Option<(&'a Path, &'a Path)> {
    let ((old_form, old), (new_form, new)) = (base(from)?, base(to)?);
    (old_form == new_form && old != new).then_some((old, new))
}

fn rebased(path: &str, (from, to): &(&Path, &Path)) -> String {
    match Path::new(path).strip_prefix(from) {
        Ok(rest) => to.join(rest).to_string_lossy().into_owned(),
        Err(_) => path.to_owned(),
    }
}

/// One at a time: of two who wire at the same moment, the second sees what the first has done.
#[derive(Debug)]
pub(super) struct Turn {
    _lock: File,
}

impl Turn {
    pub(super) fn take(store: &Path) -> Result<Self, Failure> {
        let path = store.join("wiring.lock");
        let failed = |source: std::io::Error| Failure::File {
            doing: "cannot take the turn to wire",
            path: path.clone(),
            source,
        };
        let options =
            OpenOptions::new().write(true).create(true).truncate(false).mode(PRIVATE).open(&path);
        let lock = options.map_err(failed)?;
        rustix::fs::flock(&lock, FlockOperation::LockExclusive)
            .map_err(|error| failed(error.into()))?;
        Ok(Self { _lock: lock })
    }
}

pub(super) fn hash(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

fn unusable(path: PathBuf, detail: String) -> Failure {
    Failure::Config { path, line: None, detail }
}

impl Record {
    pub fn read(store: &Path) -> Result<Self, Failure> {
        let path = store.join(FILE);
        if !store.is_dir() {
            return Ok(Self::default());
        }
        let there = files::look(store, FILE).map_err(|why| unusable(path.clone(), why.0))?;
        let Some(text) = there.text else { return Ok(Self::default()) };
        let record: Self = serde_json::from_str(&text)
            .map_err(|error| Failure::Record { path: path.clone(), detail: error.to_string() })?;
        match record.version <= VERSION {
            true => Ok(record.moved_to(store)),
            false => Err(unusable(path, "it was written by a newer Baton".to_owned())),
        }
    }

    /// Paths that were below the old place are below the new one now.
    fn moved_to(mut self, store: &Path) -> Self {
        let Some(old) = self.store.take() else { return self };
        let Some(bases) = bases(Path::new(&old), store) else { return self };
        let files = std::mem::take(&mut self.files).into_iter();
        self.files = files.map(|(path, written)| (rebased(&path, &bases), written)).collect();
        self.folders = self.folders.iter().map(|path| rebased(path, &bases)).collect();
        self.hooks = self.hooks.map(|hooks| hooks.moved(Path::new(&old), store));
        self
    }

    pub(super) fn write(&mut self, store: &Path) -> Result<(), Failure> {
        self.version = VERSION;
        self.store = store.to_str().map(str::to_owned);
        let path = store.join(FILE);
        let text = serde_json::to_string_pretty(self).unwrap_or_default() + "\n";
        let failed = |why: super::Broken| unusable(path.clone(), why.0);
        let there = files::look(store, FILE).map_err(failed)?;
        if there.text.as_deref() == Some(&*text) {
            return Ok(());
        }
        let written = files::write(&path, there.text.as_deref(), &text, Some(PRIVATE));
        written.map(|_| ()).map_err(failed)
    }

    /// Remembers a write: the first text before ours is what counts.
    pub(super) fn wrote(&mut self, path: &Path, before: Option<String>, after: &str) {
        let name = path.to_string_lossy().into_owned();
        self.files.insert(name, Written { before, after: hash(after) });
    }

    /// What was there before us, if nobody has changed the file since.
    pub(super) fn before(&self, path: &Path, now: &str) -> Option<Option<&str>> {
        let written = self.files.get(&*path.to_string_lossy())?;
        (written.after == hash(now)).then_some(written.before.as_deref())
    }

    pub(super) fn knows(&self, path: &Path) -> bool {
        self.files.contains_key(&*path.to_string_lossy())
    }

    pub(super) fn forget(&mut self, path: &Path) {
        self.files.remove(&*path.to_string_lossy());
    }

    /// Whether the file is there only because of us.
    pub(super) fn made(&self, path: &Path) -> bool {
        self.files.get(&*path.to_string_lossy()).is_some_and(|written| written.before.is_none())
    }

    /// Files that were wired in a tree, as paths within it; git's own are not the tree's.
    pub(crate) fn wired_in(&self, root: &Path) -> Vec<String> {
        let within = self.files.keys().filter_map(|path| Path::new(path).strip_prefix(root).ok());
        let within = within.filter(|path| !path.starts_with(".git"));
        within.filter_map(|path| path.to_str()).map(str::to_owned).collect()
    }
}
