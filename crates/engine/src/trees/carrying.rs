//! Uncommitted files that a new tree gets along.
//!
//! Owns the copy and the memory of it: a list in git's own folder of the tree says what was copied
//! and what it was, so that a copy nobody changed is no work to be saved. Invariants: nothing
//! outside the tree is read, no link is followed, and nothing that is there is overwritten.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use rustix::fs::OFlags;

use super::Error;
use crate::config;
use crate::config::worktree::{COPIES_MAX, stays_within};
use crate::failure::Failure;

/// In git's own folder of the tree: a hash and a path a line.
pub(crate) const LIST: &str = "baton-carried";
const FILES_MAX: usize = 10_000;
const BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// Copies what is named and what the policy lists, and the wiring that is not committed yet.
pub(super) fn carry(
    from: &Path,
    to: &Path,
    admin: &Path,
    named: &[String],
    listed: &[String],
) -> Result<Vec<String>, Failure> {
    if named.len() > COPIES_MAX {
        let why = format!("more than {COPIES_MAX} are named");
        return Err(Error::NotCopied { path: named[COPIES_MAX].clone(), why }.into());
    }
    let mut copier = Copier { from, to, left: BYTES_MAX, done: Vec::new() };
    for path in named {
        if !stays_within(path) {
            let why = "it is not a path within the tree".to_owned();
            return Err(Error::NotCopied { path: path.clone(), why }.into());
        }
        copier.copy(path.trim_end_matches('/'), true)?;
    }
    let wiring = [config::FILE_NAME.to_owned()];
    for path in listed.iter().chain(&wiring) {
        let path = path.trim_end_matches('/');
        let there = fs::symlink_metadata(from.join(path)).is_ok();
        if there && fs::symlink_metadata(to.join(path)).is_err() {
            copier.copy(path, false)?;
        }
    }
    let mut list = String::new();
    for (path, hash) in &copier.done {
        list.push_str(&format!("{hash} {path}\n"));
    }
    fs::write(admin.join(LIST), list).map_err(super::failed("noting what was copied"))?;
    Ok(copier.done.into_iter().map(|(path, _)| path).collect())
}

struct Copier<'a> {
    from: &'a Path,
    to: &'a Path,
    left: u64,
    done: Vec<(String, String)>,
}

impl Copier<'_> {
    fn copy(&mut self, path: &str, named: bool) -> Result<(), Failure> {
        let refused = |why: String| Error::NotCopied { path: path.to_owned(), why }.into();
        let failed = |error: std::io::Error| refused(error.to_string());
        self.no_link_above(path).map_err(refused)?;
        let (source, target) = (self.from.join(path), self.to.join(path));
        let metadata = fs::symlink_metadata(&source).map_err(failed)?;
        if metadata.is_dir() {
            let mut names = Vec::new();
            for entry in fs::read_dir(&source).map_err(failed)? {
                let name = entry.map_err(failed)?.file_name();
                let name = name.into_string().map_err(|_| refused("a name is not UTF-8".into()))?;
                names.push(name);
            }
            names.sort_unstable();
            for name in names.iter().filter(|name| !name.eq_ignore_ascii_case(".git")) {
                self.copy(&format!("{path}/{name}"), named)?;
            }
            return Ok(());
        }
        if fs::symlink_metadata(&target).is_ok() {
            return match named {
                true => Err(refused("it is committed, so the tree has it already".into())),
                false => Ok(()),
            };
        }
        if self.done.len() >= FILES_MAX {
            return Err(refused(format!("more than {FILES_MAX} files")));
        }
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent).map_err(failed)?;
        }
        if metadata.is_symlink() {
            let leads = fs::read_link(&source).map_err(failed)?;
            std::os::unix::fs::symlink(leads, &target).map_err(failed)?;
        } else if metadata.is_file() {
            self.copy_file(&source, &target, metadata.permissions().mode()).map_err(failed)?;
        } else {
            return Err(refused("it is neither a file nor a folder".into()));
        }
        let hash = hash_of(&target).unwrap_or_default();
        self.done.push((path.to_owned(), hash));
        Ok(())
    }

    /// A folder on the way that is a link, here or there, would lead out of the tree.
    fn no_link_above(&self, path: &str) -> Result<(), String> {
        for (end, _) in path.match_indices('/') {
            for root in [self.from, self.to] {
                let link = fs::symlink_metadata(root.join(&path[..end]));
                if link.is_ok_and(|found| found.is_symlink()) {
                    return Err(format!("{} is a symbolic link", &path[..end]));
                }
            }
        }
        Ok(())
    }

    fn copy_file(&mut self, source: &Path, target: &Path, mode: u32) -> std::io::Result<()> {
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        let file = fs::OpenOptions::new().read(true).custom_flags(flags).open(source)?;
        let mut content = Vec::new();
        file.take(self.left + 1).read_to_end(&mut content)?;
        self.left = self.left.checked_sub(content.len() as u64).ok_or_else(|| {
            std::io::Error::new(ErrorKind::FileTooLarge, "more than a tree may get along")
        })?;
        let mut options = fs::OpenOptions::new();
        options.write(true).create_new(true).mode(mode & 0o777);
        options.open(target)?.write_all(&content)
    }
}

/// A hash of what is at a path: a file's content, or where a link leads.
fn hash_of(path: &Path) -> Option<String> {
    let metadata = fs::symlink_metadata(path).ok()?;
    let mut hasher = blake3::Hasher::new();
    if metadata.is_symlink() {
        use std::os::unix::ffi::OsStrExt;
        hasher.update(b"link\0");
        hasher.update(fs::read_link(path).ok()?.as_os_str().as_bytes());
    } else {
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        let file = fs::OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
        hasher.update_reader(file).ok()?;
    }
    Some(hasher.finalize().to_hex().to_string())
}

/// What was carried into a tree: what is still as it was, and what is not.
#[derive(Debug, Default)]
pub(crate) struct Carried {
    pub(crate) same: Vec<String>,
    pub(crate) changed: Vec<String>,
}

impl Carried {
    pub(crate) fn look(root: &Path, admin: &Path) -> Self {
        let list = fs::read_to_string(admin.join(LIST)).unwrap_or_default();
        let mut carried = Self::default();
        for (hash, path) in list.lines().filter_map(|line| line.split_once(' ')) {
            match hash_of(&root.join(path)) {
                Some(now) if now == hash => carried.same.push(path.to_owned()),
                Some(_) => carried.changed.push(path.to_owned()),
                // A copy that is gone is no loss: the first one is elsewhere.
                None => {}
            }
        }
        carried
    }
}
