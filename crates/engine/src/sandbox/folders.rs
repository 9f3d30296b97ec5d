//! Which folders a role with a tree may write.
//!
//! Owns the shape of the answer for Landlock, which opens a folder with everything below and can
//! close nothing in it again: around what stays closed, its neighbours are opened one by one. What
//! of a tree is a role's to write is in `parts`. Invariant: the store, the repository's `config`,
//! `hooks`, `info` and `refs` of others, and other working trees are below nothing that is answered
//! here.

use std::fs;
use std::path::{Path, PathBuf};

use baton_core::id::SessionId;
use baton_core::roles;
use baton_core::roles::writing::Writes;

use super::{Limits, parts};
use crate::failure::Failure;
use crate::place::{GitDirs, Place, TreeKind};

/// A folder with more entries is opened no further: its neighbours stay closed.
const ENTRIES_MAX: usize = 4_096;
/// Where most branches are: a folder that nobody has for itself.
const BRANCHES: &str = "refs/heads";

/// The whole tree, and what of git's folder is its own.
pub(super) fn of_tree(place: &Place) -> Limits {
    let mut limits = Limits::default();
    let closed = closed(place);
    open(&place.root, &closed, &mut limits.writable);
    if !limits.writable.contains(&place.root) {
        limits.closed_top = Some(place.root.clone());
    }
    git_parts(place, &mut limits);
    limits
}

/// What of git's folder is the tree's own.
fn git_parts(place: &Place, limits: &mut Limits) {
    let Some(git) = &place.git else { return };
    limits.writable.push(git.common_dir.join("objects"));
    if matches!(place.tree_kind, TreeKind::Linked { .. }) {
        limits.writable.push(git.git_dir.clone());
        if let Some(folders) = own_references(place, git) {
            limits.writable.extend(folders);
            limits.may.move_branch = true;
        }
    }
}

/// Everything of the repository that a commit may touch: what the broker's own calls may write.
pub(super) fn whole_repository(place: &Place, temporary: [PathBuf; 2]) -> Vec<PathBuf> {
    let mut folders = vec![place.root.clone(), place.store.clone()];
    folders.extend(temporary);
    folders.extend(place.git.iter().map(|git| git.common_dir.clone()));
    folders
}

/// What a role may write, as folders and files.
pub(super) fn of_role(
    place: &Place,
    writes: &Writes,
    session: &SessionId,
) -> Result<Limits, Failure> {
    if writes.is_nothing() {
        return Ok(Limits::default());
    }
    if writes.is_own_folder() {
        let own = place.root.join(roles::scratch_folder(session));
        make_own(place, &own)?;
        return Ok(Limits { writable: vec![own.clone()], scratch: Some(own), ..Limits::default() });
    }
    let parts = parts::of(place, writes, &closed(place))?;
    let mut limits = Limits { writable: parts.opened, ..Limits::default() };
    if !parts.whole {
        limits.closed_top = Some(place.root.clone());
        let name = |path: &PathBuf| {
            let slash = if path.is_dir() { "/" } else { "" };
            Some(format!("{}{slash}", path.strip_prefix(&place.root).ok()?.to_str()?))
        };
        if parts.refused {
            limits.parts = limits.writable.iter().filter_map(name).collect();
        }
        limits.left_out = parts.left_out;
        limits.made = parts.made;
    }
    git_parts(place, &mut limits);
    Ok(limits)
}

/// A session's own folder, which git does not see.
fn make_own(place: &Place, folder: &Path) -> Result<(), Failure> {
    let cannot = |source| {
        let (doing, path) = ("cannot make the scratch folder", folder.to_owned());
        Failure::File { doing, path, source }
    };
    fs::create_dir_all(folder).map_err(cannot)?;
    if folder.canonicalize().map_err(cannot)? != folder {
        return Err(cannot(std::io::Error::other("a link leads somewhere else")));
    }
    let ignore = place.root.join(roles::SCRATCH).join(".gitignore");
    if fs::symlink_metadata(&ignore).is_err() {
        fs::write(&ignore, "*\n").map_err(cannot)?;
    }
    Ok(())
}

/// These, as far as they may be opened by anybody.
pub(super) fn besides(place: &Place, folders: &[PathBuf]) -> Vec<PathBuf> {
    let (closed, mut opened) = (closed(place), Vec::new());
    folders.iter().for_each(|folder| open(folder, &closed, &mut opened));
    opened
}

/// What must stay closed, wherever it lies.
fn closed(place: &Place) -> Vec<PathBuf> {
    let mut closed = vec![place.store.clone()];
    if let Some(git) = &place.git {
        closed.push(git.common_dir.clone());
        let trees = fs::read_dir(git.common_dir.join("worktrees"));
        for admin in trees.into_iter().flatten().flatten() {
            let file = fs::read_to_string(admin.path().join("gitdir")).unwrap_or_default();
            let root =
                Path::new(file.trim_end()).parent().and_then(|root| root.canonicalize().ok());
            closed.extend(root.filter(|root| *root != place.root));
        }
    }
    closed
}

/// Opens a folder as far as nothing closed lies in it. Links are left out: what they mean may lie
/// anywhere.
pub(super) fn open(folder: &Path, closed: &[PathBuf], opened: &mut Vec<PathBuf>) {
    if closed.iter().any(|one| folder.starts_with(one)) {
        return;
    }
    if !closed.iter().any(|one| one.starts_with(folder)) {
        opened.push(folder.to_owned());
        return;
    }
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().take(ENTRIES_MAX);
    for entry in entries {
        let link = entry.file_type().map_or(true, |kind| kind.is_symlink());
        // The command is told of its folders as text.
        let named = entry.file_name().to_str().is_some();
        if !link && named {
            open(&entry.path(), closed, opened);
        }
    }
}

/// The folders of the branch's reference and log, if no other branch is in them: git makes a lock
/// beside a reference and renames it, so whoever may move one may move its neighbours.
fn own_references(place: &Place, git: &GitDirs) -> Option<[PathBuf; 2]> {
    let branch = place.stand().0?;
    let folder = branch.rsplit_once('/')?.0;
    let depth = folder.strip_prefix(BRANCHES)?.split('/').filter(|part| !part.is_empty()).count();
    // One folder deep is where everybody's are: `baton/…`, `feature/…`.
    if depth < 2 {
        return None;
    }
    let references = git.common_dir.join(folder);
    let packed = fs::read_to_string(git.common_dir.join("packed-refs")).unwrap_or_default();
    let alone = |name: &str| !name.starts_with(&format!("{folder}/")) || name == branch;
    let packed_alone =
        packed.lines().filter_map(|line| line.split_once(' ')).all(|(_, name)| alone(name.trim()));
    let name = branch.rsplit_once('/')?.1;
    let loose_alone = fs::read_dir(&references)
        .into_iter()
        .flatten()
        .flatten()
        .all(|entry| entry.file_name() == name);
    if !packed_alone || !loose_alone {
        return None;
    }
    let logs = git.common_dir.join("logs").join(folder);
    fs::create_dir_all(&references).ok()?;
    fs::create_dir_all(&logs).ok()?;
    Some([references, logs])
}
