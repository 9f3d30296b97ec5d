//! Files of a working tree by which git outside would be led to run something.
//!
//! Owns the few that the kernel cannot close, because they lie in folders that must be open: where
//! the tree's git folder is, its own settings, and where else objects are. They are looked at
//! before every call and at the end, and put back as they were. Invariant: no git of ours runs for
//! a sandbox on others than it began with.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::place::{Place, TREE_FILE, TreeKind};

const FILE_BYTES_MAX: u64 = 1024 * 1024;

#[derive(Debug, Default)]
pub(super) struct Guard {
    /// Each with what was in it, or nothing if it was not there.
    files: Vec<(PathBuf, Option<Vec<u8>>)>,
    put_back: Mutex<Vec<PathBuf>>,
}

impl Guard {
    pub(super) fn of(place: &Place) -> Self {
        let Some(git) = &place.git else { return Self::default() };
        // By these git would look for objects wherever a command says.
        let alternates = ["objects/info/alternates", "objects/info/http-alternates"];
        let mut paths: Vec<PathBuf> =
            alternates.iter().map(|name| git.common_dir.join(name)).collect();
        if matches!(place.tree_kind, TreeKind::Linked { .. }) {
            paths.push(place.root.join(".git"));
            for name in ["commondir", "gitdir", "config.worktree", TREE_FILE] {
                paths.push(git.git_dir.join(name));
            }
        }
        let files = paths.into_iter().map(|path| {
            let content = read(&path);
            (path, content)
        });
        Self { files: files.collect(), put_back: Mutex::default() }
    }

    /// Puts back what was changed.
    pub(super) fn hold(&self) {
        for (path, content) in &self.files {
            if same(path, content.as_deref()) {
                continue;
            }
            let restored = match content {
                Some(content) => replace(path, content),
                None => remove(path),
            };
            // What cannot be put back is told as well: whoever reads it looks at the file.
            let _ = restored;
            let mut told = self.put_back.lock().unwrap_or_else(|broken| broken.into_inner());
            if !told.contains(path) {
                told.push(path.clone());
            }
        }
    }

    pub(super) fn put_back(&self) -> Vec<PathBuf> {
        self.put_back.lock().unwrap_or_else(|broken| broken.into_inner()).clone()
    }
}

fn read(path: &Path) -> Option<Vec<u8>> {
    let plain = fs::symlink_metadata(path).ok()?;
    (plain.is_file() && plain.len() <= FILE_BYTES_MAX).then(|| fs::read(path).ok())?
}

fn same(path: &Path, content: Option<&[u8]>) -> bool {
    match content {
        None => fs::symlink_metadata(path).is_err(),
        Some(_) => read(path).as_deref() == content,
    }
}

/// A new file in the place of whatever is there.
fn replace(path: &Path, content: &[u8]) -> std::io::Result<()> {
    let name = crate::workspace::secret().map_err(std::io::Error::other)?;
    let draft = path.with_file_name(format!("baton-{name}"));
    // A file of its own, and not one that somebody has put in its way.
    let mut file = fs::OpenOptions::new().write(true).create_new(true).open(&draft)?;
    file.write_all(content)?;
    if fs::symlink_metadata(path).is_ok_and(|found| found.is_dir()) {
        set_aside(path)?;
    }
    fs::rename(&draft, path)
}

fn remove(path: &Path) -> std::io::Result<()> {
    match fs::symlink_metadata(path)?.is_dir() {
        true => set_aside(path),
        false => fs::remove_file(path),
    }
}

/// Nothing of a command's is destroyed: a folder in the place of a file is kept under another name.
fn set_aside(path: &Path) -> std::io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".set-aside-{}", std::process::id()));
    fs::rename(path, path.with_file_name(name))
}
