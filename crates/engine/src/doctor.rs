//! Looking whether everything Baton relies on works here.
//!
//! Owns the looking and gives what it saw as data; which of it is a problem, and the words, belong
//! to the command. Changes nothing. A check that cannot be made says so and never passes for good.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use baton_core::context::Actor;
use baton_core::policy::Standing;
use baton_core::time::Moment;

use crate::failure::Failure;
use crate::filesystem;
use crate::git::{self, Git};
use crate::place::Place;
use crate::policy::{self, Shown};
use crate::process::Machine;
use crate::sessions::{self, Seat, SeatState};
use crate::user_config;
use crate::whoami::{self, Hints};
use crate::wiring::{self, Ground, Inspection};
use crate::workspace::Workspace;

#[derive(Debug)]
pub struct Health {
    pub git: Result<git::Version, git::Error>,
    pub machine: Machine,
    pub workspace: Result<Found, Failure>,
    /// The user's own settings hold a password that others can read.
    pub exposed_settings: Option<PathBuf>,
}

/// A workspace was found.
#[derive(Debug)]
pub struct Found {
    pub place: Place,
    pub filesystem: Result<filesystem::Kind, filesystem::Error>,
    /// Files of the store that other users can read, with their modes.
    pub exposed: Vec<(PathBuf, u32)>,
    /// What is free on the disk of the store.
    pub free_bytes: Option<u64>,
    /// How long SQLite's log is; nothing where there is none.
    pub log_bytes: Option<u64>,
    pub store: Result<Opened, Failure>,
    /// Which doors of which client are guarded.
    pub wiring: Result<Inspection, Failure>,
}

/// Its store could be opened.
#[derive(Debug)]
pub struct Opened {
    pub description: String,
    pub integrity: Result<(), Failure>,
    pub epoch: u32,
    /// Why the next decision raises the epoch.
    pub raised_because: Option<String>,
    pub entries: u64,
    pub store_clock: Moment,
    pub wall_clock: Moment,
    pub policy: Result<Shown, Failure>,
    /// Who asks, as Baton sees it.
    pub actor: Result<(Actor, Standing), Failure>,
    /// Sessions whose process is gone.
    pub dead: Vec<Seat>,
}

/// Looks at everything around a folder.
pub fn look(folder: &Path, hints: &Hints) -> Health {
    Health {
        git: Git::in_tree(folder).and_then(|git| git.version()),
        machine: Machine::here(),
        workspace: Place::find(folder).map_err(Failure::from).map(|place| found(place, hints)),
        exposed_settings: user_config::exposes_password(),
    }
}

fn found(place: Place, hints: &Hints) -> Found {
    let log = std::fs::metadata(place.store.join("store.db-wal"));
    Found {
        filesystem: filesystem::kind(&place.store),
        exposed: exposed(&place.store),
        free_bytes: rustix::fs::statvfs(&place.store)
            .ok()
            .map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize)),
        log_bytes: log.ok().map(|log| log.len()),
        store: open(&place, hints),
        wiring: doors(&place),
        place,
    }
}

/// Which doors there are, and whether each answers.
fn doors(place: &Place) -> Result<Inspection, Failure> {
    wiring::examine(&Ground::of(place), place)
}

fn open(place: &Place, hints: &Hints) -> Result<Opened, Failure> {
    let address = user_config::address_for(place)?;
    let mut workspace = Workspace::open_at(place.clone(), address.as_deref())?;
    let state = workspace.store.snapshot()?.state().clone();
    let actor = whoami::actor(&mut workspace, hints).map(|actor| {
        let standing = whoami::standing(&workspace, &actor);
        (actor, standing)
    });
    let seats = sessions::list(&mut workspace, false)?.sessions;
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Ok(Opened {
        description: workspace.store.describe(),
        integrity: workspace.store.quick_check().map_err(Failure::from),
        epoch: state.epoch,
        raised_because: state.raised_because,
        entries: state.head.position.number,
        store_clock: state.now,
        wall_clock: Moment(since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(0))),
        policy: policy::show(&mut workspace),
        actor,
        dead: seats.into_iter().filter(|seat| seat.state == SeatState::Dead).collect(),
    })
}

/// What in the store's folder, or the folder itself, other users can read or write. A closed folder
/// protects what is in it.
fn exposed(store: &Path) -> Vec<(PathBuf, u32)> {
    let open = |path: &Path| {
        let mode = std::fs::symlink_metadata(path).ok()?.mode() & 0o777;
        (mode & 0o077 != 0).then(|| (path.to_owned(), mode))
    };
    let Some(folder) = open(store) else { return Vec::new() };
    let entries = std::fs::read_dir(store).into_iter().flatten().flatten();
    let files = entries.filter_map(|entry| open(&entry.path()));
    std::iter::once(folder).chain(files).collect()
}
