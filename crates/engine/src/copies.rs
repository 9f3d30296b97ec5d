//! Keeping a copy of the store, taking it back, and what there is to know about the store.
//!
//! Owns who may restore: a person, or at least nobody below an agent, because a restore takes
//! everyone's last claims away. Nothing is ever deleted by it (lesson 28).

use std::path::{Path, PathBuf};

use baton_core::id::Position;
use baton_core::refusal::Refusal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::place::Place;
use crate::process::Machine;
use crate::store::{self, SCHEMA_VERSION};
use crate::whoami::{self, Hints};
use crate::workspace::Workspace;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Backup {
    pub file: PathBuf,
    pub bytes: u64,
    pub head: Position,
    /// Entries up to here are in archives, which a backup does not hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archived: Option<Position>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archives: Option<PathBuf>,
}

pub fn backup(workspace: &mut Workspace, to: &Path) -> Result<Backup, Failure> {
    workspace.store.backup(to)?;
    let snapshot = workspace.store.snapshot()?;
    let archived = snapshot.archived()?.map(|head| head.position);
    let folder = crate::archive::folder_of(&workspace.place.store);
    Ok(Backup {
        file: to.to_owned(),
        bytes: std::fs::metadata(to).map_or(0, |data| data.len()),
        head: snapshot.state().head.position,
        archives: archived.map(|_| folder),
        archived,
    })
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Restored {
    pub file: PathBuf,
    pub head: Position,
    /// The epoch of everything from now on: above all that were ever used, so that no token given
    /// out before can be mistaken for a new one (S5).
    pub epoch: u32,
    /// Where what was replaced is: a file, or an id on the shared store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<String>,
}

/// May whoever runs this restore? Asked before the store is opened: it may be damaged.
pub fn may_restore(place: &Place, address: Option<&str>, hints: &Hints) -> Result<(), Failure> {
    let machine = Machine::here_with(&place.test_hooks());
    if !whoami::agent_above(&machine) {
        return Ok(());
    }
    let person = Workspace::open_at(place.clone(), address)
        .and_then(|mut workspace| whoami::reader(&mut workspace, hints))
        .is_ok_and(|actor| actor.person);
    match person {
        true => Ok(()),
        false => Err(Refusal::NeedsPerson { what: "restoring the store".to_owned() }.into()),
    }
}

/// The other workspace that a backup is of, if it is not of this one.
pub fn foreign(place: &Place, from: &Path) -> Result<Option<String>, Failure> {
    let found = store::workspace_of_backup(place, from)?;
    Ok(found.filter(|found| found != place.workspace.id.as_str()))
}

pub fn restore(place: &Place, address: Option<&str>, from: &Path) -> Result<Restored, Failure> {
    store::restore(place, address, from)?;
    let mut workspace = Workspace::open_at(place.clone(), address)?;
    let snapshot = workspace.store.snapshot()?;
    Ok(Restored {
        file: from.to_owned(),
        head: snapshot.state().head.position,
        epoch: snapshot.state().epoch,
        kept: match place.workspace.shared {
            true => Some(format!("workspace {}.before-restore-…", place.workspace.id.as_str())),
            false => newest_kept(&place.store),
        },
    })
}

/// The replaced store with the highest number.
fn newest_kept(folder: &Path) -> Option<String> {
    let number = |name: &str| name.strip_prefix("store.db.before-restore-")?.parse::<u32>().ok();
    let names = std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.file_name());
    let numbers = names.filter_map(|name| number(name.to_str()?));
    let file = |number| folder.join(format!("store.db.before-restore-{number}"));
    numbers.max().map(|number| file(number).display().to_string())
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Info {
    pub kind: StoreKind,
    /// In words: which store this is and where.
    pub place: String,
    pub workspace: String,
    /// The size of its files, where they are here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Entries in the store; archived ones are not counted.
    pub entries: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archived: Option<Position>,
    pub head: Position,
    pub epoch: u32,
    pub schema: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum StoreKind {
    Sqlite,
    Postgresql,
}

pub fn info(workspace: &mut Workspace) -> Result<Info, Failure> {
    let place = workspace.store.describe();
    let own = !workspace.place.workspace.shared;
    let folder = workspace.place.store.clone();
    let snapshot = workspace.store.snapshot()?;
    let state = snapshot.state();
    let archived = snapshot.archived()?.map(|head| head.position);
    let head = state.head.position;
    let sealed = archived.map_or(0, |position| position.number);
    let size = |name: &str| std::fs::metadata(folder.join(name)).map_or(0, |data| data.len());
    Ok(Info {
        kind: if own { StoreKind::Sqlite } else { StoreKind::Postgresql },
        place,
        workspace: workspace.place.workspace.id.as_str().to_owned(),
        bytes: own.then(|| size("store.db") + size("store.db-wal")),
        entries: head.number.saturating_sub(sealed),
        archived,
        head,
        epoch: state.epoch,
        schema: SCHEMA_VERSION,
    })
}
