//! What was found before, so that only pairs with something new are merged again.
//!
//! Owns one file beside the store, of this machine alone. It is a memory and never the truth: it is
//! keyed by the commits of the snapshots, whose content cannot change, it has a version, and a file
//! that cannot be read is as good as none. Invariant: it holds no more than the last look needed.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::finding::Found;
use super::sides::Kept;
use super::standing::Stood;
use crate::git::Oid;

/// Raised when findings are looked for in another way: older ones are then looked for anew.
const VERSION: u32 = 3;
/// A larger file is not ours.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;
const FOLDER: &str = "conflicts";

/// A tree as it was last read in full.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Remembered {
    pub(super) mark: String,
    pub(super) stood: Stood,
    /// Names that git ignores, which the mark passes by.
    pub(super) ignored: Vec<String>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Memory {
    version: u32,
    /// By `A B`, the commits of both.
    pairs: BTreeMap<String, Found>,
    /// By folder: the snapshot of a tree, and by what it is known to be the same still.
    trees: BTreeMap<String, Remembered>,
    /// By folder: how a tree stood when it was last read. Only as long as somebody watches it.
    #[serde(skip)]
    pub(super) stood: BTreeMap<PathBuf, Stood>,
    /// What the last look read. Only as long as somebody looks again.
    #[serde(skip)]
    pub(super) sides: Kept,
    #[serde(skip)]
    used: BTreeMap<String, Found>,
    #[serde(skip)]
    changed: bool,
}

impl Memory {
    pub(super) fn empty() -> Self {
        Self { version: VERSION, ..Self::default() }
    }

    pub(super) fn load(common_dir: &Path) -> Self {
        let Some(text) = read(&file(common_dir)) else { return Self::empty() };
        match serde_json::from_slice::<Self>(&text) {
            Ok(memory) if memory.version == VERSION => memory,
            _ => Self::empty(),
        }
    }

    /// What is known of two commits, and whatever else the finding depends on.
    pub(super) fn get(&mut self, one: &Oid, two: &Oid, about: &str) -> Option<Found> {
        let key = key(one, two, about);
        let found = self.used.get(&key).or_else(|| self.pairs.get(&key))?.clone();
        self.used.insert(key, found.clone());
        Some(found)
    }

    pub(super) fn put(&mut self, one: &Oid, two: &Oid, about: &str, found: &Found) {
        self.changed = true;
        self.used.insert(key(one, two, about), found.clone());
    }

    pub(super) fn stands(&mut self, folder: &Path, stood: Option<Stood>) {
        match stood {
            Some(stood) => self.stood.insert(folder.to_owned(), stood),
            None => self.stood.remove(folder),
        };
    }

    pub(super) fn remembered(&self, folder: &Path) -> Option<&Remembered> {
        self.trees.get(folder.to_str()?)
    }

    /// Remembers a tree that was read in full; nothing when it has no mark.
    pub(super) fn remember(&mut self, folder: &Path, remembered: Option<Remembered>) {
        let Some(name) = folder.to_str() else { return };
        self.changed |= self.trees.get(name) != remembered.as_ref();
        match remembered {
            Some(remembered) => self.trees.insert(name.to_owned(), remembered),
            None => self.trees.remove(name),
        };
    }

    /// Every tree is to be read again. What was found between two snapshots stays true.
    pub(super) fn forget_trees(&mut self) {
        self.trees.clear();
        self.stood.clear();
        self.changed = true;
    }

    /// Keeps what this look used and forgets the rest. That it cannot be kept costs only time.
    pub(super) fn keep(&mut self, common_dir: &Path) {
        let used = std::mem::take(&mut self.used);
        let (before, stood) = (self.trees.len(), &self.stood);
        self.trees.retain(|folder, _| stood.contains_key(Path::new(folder)));
        self.changed |= self.trees.len() != before;
        if !self.changed && used.len() == self.pairs.len() {
            return;
        }
        (self.pairs, self.changed) = (used, false);
        let file = file(common_dir);
        let Some(folder) = file.parent() else { return };
        let Ok(text) = serde_json::to_vec(self) else { return };
        let draft = folder.join(format!("pairs.{}", std::process::id()));
        let written = fs::create_dir_all(folder).and_then(|()| {
            let mut options = fs::OpenOptions::new();
            options.write(true).create(true).truncate(true).mode(0o600);
            std::io::Write::write_all(&mut options.open(&draft)?, &text)?;
            fs::rename(&draft, &file)
        });
        if written.is_err() {
            fs::remove_file(&draft).ok();
        }
    }
}

fn key(one: &Oid, two: &Oid, about: &str) -> String {
    format!("{one} {two} {about}")
}

fn file(common_dir: &Path) -> PathBuf {
    common_dir.join(crate::place::STORE_IN_GIT).join(FOLDER).join("pairs.json")
}

fn read(path: &Path) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    let file = fs::File::open(path).ok()?;
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut text).ok()?;
    (text.len() as u64 <= FILE_BYTES_MAX).then_some(text)
}
