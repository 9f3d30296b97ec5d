//! Files of a working tree by which git outside would be led to run something.
//!
//! Owns the few that the kernel cannot close, because they lie in folders that must be open: where
//! the tree's git folder is, its own settings and variables, and where else objects are. They are
//! looked at before every call and at the end, and put back as they were. Invariant: no link is
//! followed below a folder that is closed, so that nothing is written or removed anywhere else.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Mutex;

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, fstat, mkdirat, openat, renameat, unlinkat,
};
use rustix::io::Errno;

use crate::place::{Place, TREE_FILE, TreeKind};
use crate::trees::making::ENVIRONMENT_FILE;

const FILE_BYTES_MAX: u64 = 1024 * 1024;
const PRIVATE: Mode = Mode::RWXU;

#[derive(Debug, Default)]
pub(super) struct Guard {
    files: Vec<Guarded>,
    put_back: Mutex<Vec<PathBuf>>,
}

#[derive(Debug)]
struct Guarded {
    spot: Spot,
    /// Nothing if it was not there.
    content: Option<Vec<u8>>,
}

/// A file below a folder that cannot be exchanged inside.
#[derive(Debug)]
struct Spot {
    base: PathBuf,
    /// Folders between them, which can.
    folders: &'static [&'static str],
    name: &'static str,
}

impl Guard {
    pub(super) fn of(place: &Place) -> Self {
        let Some(git) = &place.git else { return Self::default() };
        // By these git would look for objects wherever a command says.
        let alternates = ["alternates", "http-alternates"].map(|name| Spot {
            base: git.common_dir.join("objects"),
            folders: &["info"],
            name,
        });
        let mut spots = Vec::from(alternates);
        let linked = matches!(place.tree_kind, TreeKind::Linked { .. });
        // Also the main tree may have a file there, with git's folder somewhere else.
        if linked || place.root.join(".git").is_file() {
            spots.push(Spot { base: place.root.clone(), folders: &[], name: ".git" });
        }
        if linked {
            let names = ["commondir", "gitdir", "config.worktree", TREE_FILE, ENVIRONMENT_FILE];
            let own = |name| Spot { base: git.git_dir.clone(), folders: &[], name };
            spots.extend(names.map(own));
        }
        let files = spots.into_iter().map(|spot| {
            let content = spot.folder().ok().and_then(|folder| read(&folder, spot.name));
            Guarded { spot, content }
        });
        Self { files: files.collect(), put_back: Mutex::default() }
    }

    /// Puts back what was changed.
    pub(super) fn hold(&self) {
        for Guarded { spot, content } in &self.files {
            if spot.is_as_it_was(content.as_deref()) {
                continue;
            }
            // What cannot be put back is told as well: whoever reads it looks at the file.
            let _ = spot.put_back(content.as_deref());
            let path = spot.path();
            let mut told = self.put_back.lock().unwrap_or_else(|broken| broken.into_inner());
            if !told.contains(&path) {
                told.push(path);
            }
        }
    }

    pub(super) fn put_back(&self) -> Vec<PathBuf> {
        self.put_back.lock().unwrap_or_else(|broken| broken.into_inner()).clone()
    }
}

impl Spot {
    fn path(&self) -> PathBuf {
        let folder = self.folders.iter().fold(self.base.clone(), |path, name| path.join(name));
        folder.join(self.name)
    }

    /// The folder it lies in, by no link.
    fn folder(&self) -> rustix::io::Result<OwnedFd> {
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut folder = openat(CWD, &self.base, flags, Mode::empty())?;
        for name in self.folders {
            folder = openat(&folder, *name, flags | OFlags::NOFOLLOW, Mode::empty())?;
        }
        Ok(folder)
    }

    fn is_as_it_was(&self, content: Option<&[u8]>) -> bool {
        match (self.folder(), content) {
            (Err(error), None) => error == Errno::NOENT,
            (Err(_), Some(_)) => false,
            (Ok(folder), None) => !is_there(&folder, self.name),
            (Ok(folder), content) => read(&folder, self.name).as_deref() == content,
        }
    }

    fn put_back(&self, content: Option<&[u8]>) -> std::io::Result<()> {
        let folder = self.folder_again()?;
        if is_there(&folder, self.name) && (content.is_none() || is_folder(&folder, self.name)) {
            out_of_the_way(&folder, self.name)?;
        }
        content.map_or(Ok(()), |content| replace(&folder, self.name, content))
    }

    /// The folder, where something else may have been put in the place of one on the way.
    fn folder_again(&self) -> std::io::Result<OwnedFd> {
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut folder = openat(CWD, &self.base, flags, Mode::empty())?;
        for name in self.folders {
            let open =
                |folder: &OwnedFd| openat(folder, *name, flags | OFlags::NOFOLLOW, Mode::empty());
            folder = match open(&folder) {
                Ok(found) => found,
                Err(_) => {
                    if is_there(&folder, name) {
                        out_of_the_way(&folder, name)?;
                    }
                    mkdirat(&folder, *name, PRIVATE)?;
                    open(&folder)?
                }
            };
        }
        Ok(folder)
    }
}

/// What a plain file has in it. A pipe in its place is not waited for.
fn read(folder: impl AsFd, name: &str) -> Option<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = openat(folder, name, flags, Mode::empty()).ok()?;
    let found = fstat(&file).ok()?;
    if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
        return None;
    }
    let mut content = Vec::new();
    File::from(file).take(FILE_BYTES_MAX + 1).read_to_end(&mut content).ok()?;
    (content.len() as u64 <= FILE_BYTES_MAX).then_some(content)
}

fn kind(folder: impl AsFd, name: &str) -> Option<FileType> {
    let found = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some(FileType::from_raw_mode(found.st_mode))
}

fn is_there(folder: impl AsFd, name: &str) -> bool {
    kind(folder, name).is_some()
}

fn is_folder(folder: impl AsFd, name: &str) -> bool {
    kind(folder, name) == Some(FileType::Directory)
}

/// A new file in the place of whatever is there.
fn replace(folder: impl AsFd, name: &str, content: &[u8]) -> std::io::Result<()> {
    let fresh = crate::workspace::secret().map_err(std::io::Error::other)?;
    let draft = format!("baton-{fresh}");
    // A file of its own, and not one that somebody has put in its way.
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let file = openat(&folder, draft.as_str(), flags, Mode::from_raw_mode(0o644))?;
    File::from(file).write_all(content)?;
    Ok(renameat(&folder, draft.as_str(), &folder, name)?)
}

/// Nothing of a command's is destroyed but a file or link in the place of one of ours: a folder is
/// kept under another name.
fn out_of_the_way(folder: impl AsFd, name: &str) -> std::io::Result<()> {
    match is_folder(&folder, name) {
        true => {
            let aside = format!("{name}.set-aside-{}", std::process::id());
            Ok(renameat(&folder, name, &folder, aside.as_str())?)
        }
        false => Ok(unlinkat(&folder, name, AtFlags::empty())?),
    }
}
