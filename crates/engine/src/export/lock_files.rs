//! `FILE.agent-lock` beside claimed files, for tools without hooks.
//!
//! Owns Baton's own lock files in this tree: writes one for each claimed file that exists, and
//! takes away those whose claim is gone. Invariant: a file is touched only when its content says
//! that Baton made it for this workspace; another tool's lock is never written, moved or removed.

use std::collections::BTreeMap;
use std::fs::{DirEntry, File};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use baton_core::claim::{Claim, Scope};
use baton_core::pattern::Kind;
use baton_core::resource::Resource;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Error, io};
use crate::failure::Failure;
use crate::listing;
use crate::locks::{LockFile, MADE_BY, SUFFIX, path_of};
use crate::workspace::Workspace;

/// How many folder entries are looked at for locks whose claim is gone.
const ENTRIES_MAX: usize = 1_000_000;
/// Our own lock files are smaller; a larger one is somebody else's.
const OWN_BYTES_MAX: u64 = 64 * 1024;
const EXCLUDED: &str = "*.agent-lock";

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Locked {
    pub written: Vec<PathBuf>,
    pub removed: Vec<PathBuf>,
    /// How many were right already.
    pub unchanged: usize,
    /// Locks of other tools where ours would be; left alone.
    pub foreign: Vec<PathBuf>,
    /// Claims on folders, patterns, names and missing files, which no lock file can stand for.
    pub without: usize,
    /// The tree has too many files to look for old lock files everywhere.
    pub incomplete: bool,
}

pub fn write(workspace: &mut Workspace) -> Result<Locked, Failure> {
    let claims: Vec<Claim> = listing::all(workspace)?;
    let place = &workspace.place;
    let id = place.workspace.id.as_str();
    let mut locked = Locked::default();
    let mut wanted: BTreeMap<PathBuf, LockFile> = BTreeMap::new();
    let here =
        |claim: &&Claim| claim.hold.scope == Scope::Workspace || claim.hold.tree == workspace.tree;
    for claim in claims.iter().filter(here) {
        for resource in &claim.hold.resources {
            match file_of(&place.root, resource) {
                Some(file) => {
                    // Of several who share a file, the one that came first is named.
                    wanted.entry(path_of(&file)).or_insert_with(|| lock(claim, id));
                }
                None => locked.without += 1,
            }
        }
    }
    remove_stale(&place.root, id, &wanted, &mut locked)?;
    for (path, lock) in wanted {
        write_one(&path, &lock, &mut locked)?;
    }
    if let Some(git) = &place.git {
        exclude(&git.common_dir)?;
    }
    Ok(locked)
}

fn lock(claim: &Claim, workspace: &str) -> LockFile {
    LockFile {
        made_by: MADE_BY.to_owned(),
        workspace: workspace.to_owned(),
        claim: claim.claim.0.clone(),
        session: claim.hold.holder.session.0.clone(),
        name: claim.hold.holder.name.clone(),
        until: claim.expiry(None).to_string(),
        reason: claim.reason.clone(),
    }
}

/// The claimed file, when it is one and its folder really lies in this tree.
fn file_of(root: &Path, resource: &Resource) -> Option<PathBuf> {
    let Resource::Path(pattern) = resource else { return None };
    if pattern.kind() != Kind::Path {
        return None;
    }
    let file = root.join(pattern.text());
    let folder = file.parent()?.canonicalize().ok()?;
    let there = file.symlink_metadata().is_ok_and(|data| !data.is_dir());
    (there && folder.starts_with(root)).then_some(file)
}

/// What is at the place of a lock.
enum There {
    Nothing,
    Ours(LockFile),
    Foreign,
}

fn look(path: &Path, workspace: &str) -> There {
    let Ok(data) = path.symlink_metadata() else { return There::Nothing };
    if !data.is_file() || data.len() > OWN_BYTES_MAX {
        return There::Foreign;
    }
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(OWN_BYTES_MAX).read_to_string(&mut text));
    match serde_json::from_str::<LockFile>(&text) {
        Ok(own) if read.is_ok() && own.made_by == MADE_BY && own.workspace == workspace => {
            There::Ours(own)
        }
        _ => There::Foreign,
    }
}

fn write_one(path: &Path, lock: &LockFile, locked: &mut Locked) -> Result<(), Failure> {
    let flags = match look(path, &lock.workspace) {
        There::Foreign => {
            locked.foreign.push(path.to_owned());
            return Ok(());
        }
        There::Ours(own) if own == *lock => {
            locked.unchanged += 1;
            return Ok(());
        }
        There::Ours(_) => RenameFlags::empty(),
        There::Nothing => RenameFlags::NOREPLACE,
    };
    let failed = io("write", path);
    let draft = path.with_added_extension("baton-new");
    match std::fs::remove_file(&draft) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    let mut text = serde_json::to_vec_pretty(lock).unwrap_or_default();
    text.push(b'\n');
    let file = File::options().write(true).create_new(true).mode(0o644).open(&draft);
    file.and_then(|mut file| file.write_all(&text)).map_err(&failed)?;
    match renameat_with(CWD, &draft, CWD, path, flags) {
        Ok(()) => locked.written.push(path.to_owned()),
        Err(error) => {
            let _ = std::fs::remove_file(&draft);
            match error {
                // Another tool was quicker: its lock counts.
                rustix::io::Errno::EXIST => locked.foreign.push(path.to_owned()),
                error => return Err(failed(error.into())),
            }
        }
    }
    Ok(())
}

/// Takes away our own locks that no claim wants any more. Links are not followed.
fn remove_stale(
    root: &Path,
    workspace: &str,
    wanted: &BTreeMap<PathBuf, LockFile>,
    locked: &mut Locked,
) -> Result<(), Failure> {
    let mut open = vec![root.to_owned()];
    let mut looked_at = 0;
    while let Some(folder) = open.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            looked_at += 1;
            if looked_at > ENTRIES_MAX {
                locked.incomplete = true;
                return Ok(());
            }
            if is_open_folder(&entry) {
                open.push(entry.path());
                continue;
            }
            let ours = entry.file_name().to_str().is_some_and(|name| name.ends_with(SUFFIX));
            let path = entry.path();
            if !ours || wanted.contains_key(&path) {
                continue;
            }
            if let There::Ours(_) = look(&path, workspace) {
                std::fs::remove_file(&path).map_err(io("remove", &path))?;
                locked.removed.push(path);
            }
        }
    }
    locked.removed.sort_unstable();
    Ok(())
}

fn is_open_folder(entry: &DirEntry) -> bool {
    entry.file_type().is_ok_and(|kind| kind.is_dir()) && entry.file_name() != ".git"
}

/// Lock files are nobody's work: git must not see them. The user's own lines stay as they are.
fn exclude(common_dir: &Path) -> Result<(), Failure> {
    let path = common_dir.join("info").join("exclude");
    let failed = io("add a line to", &path);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(source) => return Err(Error::Io { doing: "read", path, source }.into()),
    };
    if text.lines().any(|line| line.trim() == EXCLUDED) {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(&failed)?;
    }
    let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    let file = File::options().append(true).create(true).open(&path);
    let line = format!("{gap}{EXCLUDED}\n");
    file.and_then(|mut file| file.write_all(line.as_bytes())).map_err(failed)
}
