//! The workspaces of this user on this machine, so that one can be meant from any folder.
//!
//! Owns one small file a workspace, named by its id, that says where a tree of it is. It is a
//! help for finding and never an authority: what a file names is looked at before it is believed,
//! and where none can be written, nothing else fails.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use crate::place::workspace_file::WorkspaceId;
use crate::place::{Place, TreeKind};

/// More than anybody works on; the rest is not looked at.
const KNOWN_MAX: usize = 1_000;

fn folder() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    // The standard asks to ignore a relative path here.
    let base = set("XDG_STATE_HOME").filter(|base| base.is_absolute());
    let base = base.or_else(|| set("HOME").map(|home| home.join(".local/state")))?;
    Some(base.join("baton/workspaces"))
}

/// Notes where this workspace is. Writes only when that is not known.
pub fn remember(place: &Place) {
    let Some(folder) = folder() else { return };
    let (file, root) = (folder.join(place.workspace.id.as_str()), place.root.as_os_str());
    if std::fs::read(&file).is_ok_and(|known| known == root.as_bytes()) {
        return;
    }
    // A tree that was made for one task goes before its workspace does.
    let lasting = matches!(place.tree_kind, TreeKind::Main | TreeKind::Plain);
    if !lasting && find(&place.workspace.id).is_some() {
        return;
    }
    // In one step: whoever reads it sees the old place or the new one.
    let fresh = folder.join(format!(".{}.{}", place.workspace.id, std::process::id()));
    let written = std::fs::create_dir_all(&folder)
        .and_then(|()| std::fs::write(&fresh, root.as_bytes()))
        .and_then(|()| std::fs::rename(&fresh, &file));
    if written.is_err() {
        let _ = std::fs::remove_file(&fresh);
    }
}

/// Where a workspace is, if it still is there.
pub fn find(id: &WorkspaceId) -> Option<Place> {
    let root = std::fs::read(folder()?.join(id.as_str())).ok()?;
    let place = Place::find(&PathBuf::from(OsString::from_vec(root))).ok()?;
    (place.workspace.id == *id).then_some(place)
}

/// Every workspace that is known and still there.
pub fn all() -> Vec<Place> {
    let Some(entries) = folder().and_then(|folder| std::fs::read_dir(folder).ok()) else {
        return Vec::new();
    };
    let ids = entries.take(KNOWN_MAX).flatten();
    let ids = ids.filter_map(|entry| WorkspaceId::parse(entry.file_name().to_str()?));
    let mut places: Vec<Place> = ids.filter_map(|id| find(&id)).collect();
    places.sort_by(|one, two| one.root.cmp(&two.root));
    places
}
