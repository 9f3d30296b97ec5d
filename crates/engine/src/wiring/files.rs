//! Reading and writing the files of clients, carefully.
//!
//! Owns where a path really leads, what may be written there, and that a write is whole or not at
//! all. Invariants: nothing outside the base folder is ever read or written, whatever links say; a
//! file that somebody changed since it was looked at is not written; modes are kept.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::OFlags;

use super::Broken;
use crate::place::workspace_file::publish;

/// A client's settings are small; what is larger is not ours to rewrite.
const FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;
const ORDINARY: u32 = 0o666;

/// A path with all links resolved, and the text there.
#[derive(Debug)]
pub(super) struct There {
    pub(super) path: PathBuf,
    pub(super) text: Option<String>,
}

fn broken(why: impl Into<String>) -> Broken {
    Broken(why.into())
}

/// Looks where `relative` leads below `base`, which has no links in itself.
pub(super) fn look(base: &Path, relative: &str) -> Result<There, Broken> {
    let mut path = base.to_owned();
    let mut parts = Path::new(relative).components().peekable();
    while let Some(part) = parts.next() {
        let Component::Normal(name) = part else { return Err(broken("it is no plain path")) };
        path.push(name);
        let found = match fs::symlink_metadata(&path) {
            Ok(found) => found,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                path.extend(parts);
                return Ok(There { path, text: None });
            }
            Err(error) => return Err(broken(format!("it cannot be looked at: {error}"))),
        };
        if found.is_symlink() {
            let name = name.to_string_lossy();
            let real = path.canonicalize();
            let leads = match &real {
                Ok(real) if real.starts_with(base) => None,
                Ok(_) => Some("out of the repository"),
                Err(_) => Some("nowhere"),
            };
            if let Some(leads) = leads {
                return Err(broken(format!("{name} is a symbolic link that leads {leads}")));
            }
            path = real.unwrap_or(path);
        }
        let folder = path.is_dir();
        match (parts.peek().is_some(), folder) {
            (true, false) => {
                return Err(broken(format!("{} is not a folder", name.to_string_lossy())));
            }
            (false, true) => return Err(broken("a folder is in its place")),
            _ => {}
        }
    }
    read(&path).map(|text| There { path, text })
}

fn read(path: &Path) -> Result<Option<String>, Broken> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let failed = |error: std::io::Error| broken(format!("it cannot be read: {error}"));
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(broken("it is not a plain file"));
    }
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(broken("it is too large to be settings"));
    }
    String::from_utf8(bytes).map(Some).map_err(|_| broken("its text is not UTF-8"))
}

/// Puts `after` in the place of `before`. Folders that had to be made are told.
pub(super) fn write(
    path: &Path,
    before: Option<&str>,
    after: &str,
    mode: Option<u32>,
) -> Result<Vec<PathBuf>, Broken> {
    unchanged(path, before)?;
    let failed = |error: std::io::Error| broken(format!("it cannot be written: {error}"));
    let made = make_folders(path.parent().unwrap_or(path)).map_err(failed)?;
    if before.is_none() {
        let new = publish(path, after.as_bytes(), mode.unwrap_or(ORDINARY));
        return match new {
            Ok(true) => Ok(made),
            Ok(false) => Err(broken("somebody made it at the same moment")),
            Err(error) => Err(broken(format!("it cannot be written: {}", said(&error)))),
        };
    }
    let permissions = fs::metadata(path).map_err(failed)?.permissions();
    if permissions.readonly() {
        return Err(broken("it is read-only"));
    }
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}.new", uuid::Uuid::now_v7().simple()));
    let draft = path.with_file_name(name);
    let permissions = mode.map_or(permissions, fs::Permissions::from_mode);
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&draft)
        .and_then(|mut file| {
            file.write_all(after.as_bytes())?;
            file.set_permissions(permissions)?;
            file.sync_all()
        })
        .and_then(|()| fs::rename(&draft, path));
    if written.is_err() {
        let _ = fs::remove_file(&draft);
    }
    written.map(|()| made).map_err(failed)
}

/// An error with what caused it.
fn said(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => source.to_string(),
        None => error.to_string(),
    }
}

fn unchanged(path: &Path, before: Option<&str>) -> Result<(), Broken> {
    match read(path)?.as_deref() == before {
        true => Ok(()),
        false => Err(broken("it was changed while Baton looked")),
    }
}

fn make_folders(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let missing: Vec<&Path> = folder.ancestors().take_while(|one| !one.exists()).collect();
    fs::create_dir_all(folder)?;
    Ok(missing.into_iter().map(Path::to_owned).collect())
}

/// Removes a file that has this text.
pub(super) fn remove(path: &Path, before: &str) -> Result<(), Broken> {
    unchanged(path, Some(before))?;
    let failed = |error: std::io::Error| broken(format!("it cannot be removed: {error}"));
    if fs::metadata(path).map_err(failed)?.permissions().readonly() {
        return Err(broken("it is read-only"));
    }
    fs::remove_file(path).map_err(failed)
}
