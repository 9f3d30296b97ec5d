//! Setting a workspace up: what `init` does.
//!
//! Owns looking before doing ([`plan`]), making the store or joining one ([`make_in`]), and writing
//! `baton.toml`. It is idempotent and never destroys: what is there is kept, what is missing is
//! made, and of two who do it at the same moment both end with the same workspace.

mod files;

use std::path::{Path, PathBuf};

use baton_core::context::{Actor, Observed};
use baton_core::event::Event;
use baton_core::zones::Policy;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config;
use crate::failure::Failure;
use crate::git::Git;
use crate::place::workspace_file::{WorkspaceId, publish};
use crate::place::{Place, STORE_IN_PLAIN, Site, TreeKind, WORKSPACE_FILE};
use crate::store::postgres::Postgres;
use crate::store::sqlite::Sqlite;
use crate::survey::{self, Proposed, ProposedCheck};
use crate::workspace::Workspace;

/// As any file of the project: the user's umask narrows it.
const ORDINARY: u32 = 0o666;

/// What was found before anything is done.
#[derive(Clone, Debug)]
pub struct Plan {
    pub site: Site,
    /// What the `baton.toml` that is there means.
    pub written: Option<Policy>,
    /// The zones to propose when there is none.
    pub proposed: Vec<Proposed>,
    /// The checks to propose with them.
    pub checks: Vec<ProposedCheck>,
    /// Repositories below a plain folder: they belong to its workspace.
    pub repositories_below: usize,
    /// What is there, where zones are to be proposed.
    paths: Vec<String>,
}

impl Plan {
    /// Proposes zones for what is there and what is about to be: the files that wire agents are
    /// as much theirs to leave alone as those that were there before.
    pub fn propose(&mut self, wired: &[String]) {
        if self.written.is_some() {
            return;
        }
        let paths: Vec<String> = self.paths.iter().chain(wired).cloned().collect();
        self.proposed = survey::propose(&paths);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Config {
    Written,
    Kept,
    /// A policy is in force, and this tree has no file of it.
    Absent,
}

/// Which workspace this clone is to be on a shared store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// A new one, unless the store knows this repository: then it is for the caller to say.
    Unsaid,
    New,
    Join(WorkspaceId),
}

/// Looks at the folder and changes nothing. A `baton.toml` that cannot be used is told now.
pub fn plan(folder: &Path) -> Result<Plan, Failure> {
    let site = site_of(folder)?;
    let written = match config::read(&site.root)? {
        None => None,
        Some((path, text)) => Some(config::compile(&path, &text, Default::default())?),
    };
    let (proposed, checks, found) = (Vec::new(), Vec::new(), Vec::new());
    let mut plan = Plan { site, written, proposed, checks, repositories_below: 0, paths: found };
    let paths = match &plan.site.git {
        Some(_) if plan.written.is_some() => return Ok(plan),
        Some(_) => Git::in_tree(&plan.site.root)?.list_files()?,
        None => {
            let walked = files::walk(&plan.site.root);
            plan.repositories_below = walked.repositories;
            walked.paths
        }
    };
    if plan.written.is_none() {
        // What lands is checked; a folder without git has nothing that lands.
        if plan.site.git.is_some() {
            plan.checks = survey::checks(&paths, &texts(&plan.site.root));
        }
        plan.paths = paths;
        plan.propose(&[]);
    }
    Ok(plan)
}

/// The texts that tell whether there is something to test; only plain files are read.
fn texts(root: &Path) -> Vec<(&'static str, String)> {
    let read = |name: &'static str| {
        let path = root.join(name);
        let data = path.symlink_metadata().ok()?;
        let small = data.is_file() && data.len() <= survey::READ_BYTES_MAX;
        Some((name, small.then(|| std::fs::read_to_string(path).ok())??))
    };
    survey::READ.into_iter().filter_map(read).collect()
}

/// The tree that `init` is about: the repository around the folder, or the workspace around a
/// folder without git.
fn site_of(folder: &Path) -> Result<Site, Failure> {
    let site = Site::find(folder)?;
    unless_before_git(&site)?;
    let Some(around) = site.nested_in() else {
        if site.git.is_none() && is_too_wide(&site.root) {
            return Err(Failure::TooWide { folder: site.root });
        }
        return Ok(site);
    };
    if site.git.is_some() {
        return Err(Failure::Nested { root: around.root.clone(), submodule: site.submodule });
    }
    Ok(Site {
        root: around.root.clone(),
        git: around.git.clone(),
        tree_kind: around.tree_kind.clone(),
        store: around.store.clone(),
        submodule: false,
        within: site.within.clone(),
    })
}

/// A folder that became a repository has its workspace where none is looked for then, and a second
/// one would begin without its tasks and claims. What git follows came with a clone, and is none.
fn unless_before_git(site: &Site) -> Result<(), Failure> {
    let from = site.root.join(STORE_IN_PLAIN);
    let is_left = site.git.is_some()
        && site.tree_kind == TreeKind::Main
        && site.within.is_none()
        && from.join(WORKSPACE_FILE).is_file();
    if !is_left {
        return Ok(());
    }
    let tracked = Git::in_tree(&site.root)?.tracked()?;
    if tracked.iter().any(|path| Path::new(path).starts_with(STORE_IN_PLAIN)) {
        return Ok(());
    }
    Err(Failure::BeforeGit { root: site.root.clone(), from, to: site.store.clone() })
}

/// A path belongs to the outermost workspace around it, so one in the home folder or at the root
/// would take every repository of the user.
fn is_too_wide(folder: &Path) -> bool {
    let home =
        std::env::var_os("HOME").map(PathBuf::from).and_then(|home| home.canonicalize().ok());
    folder.parent().is_none() || home.is_some_and(|home| home.starts_with(folder))
}

/// Makes the workspace and its store, or opens what is there. True when it was made now.
pub fn make(folder: &Path, address: Option<&str>) -> Result<(Workspace, bool), Failure> {
    make_in(&site_of(folder)?, address, &Choice::Unsaid)
}

pub fn make_in(
    site: &Site,
    address: Option<&str>,
    choice: &Choice,
) -> Result<(Workspace, bool), Failure> {
    let here = site.within.as_ref().filter(|place| place.store == site.store);
    if let (Some(place), Choice::Join(wanted)) = (here, choice)
        && place.workspace.id != *wanted
    {
        let here = place.workspace.id.to_string();
        return Err(Failure::OtherWorkspace { here, wanted: wanted.to_string() });
    }
    no_link_in(site)?;
    let shared = here.map_or(address.is_some(), |place| place.workspace.shared);
    if !shared && matches!(choice, Choice::Join(_)) {
        return Err(Failure::JoinNeedsStore);
    }
    let place = match (address, here) {
        (Some(address), None) => make_shared(site, address, choice)?,
        (None, _) if !shared => {
            // The store first: where none can be, there must be no mark of a workspace either, or
            // a shared store could not be chosen afterwards.
            Sqlite::create(&site.store)?;
            site.initialise()?.0
        }
        // Opening tells what is missing or contradicts. A mark comes after its workspace on the
        // server, so a database without it is another one: made there anew, the workspace would be
        // two, each with the same tokens.
        (_, Some(place)) => place.clone(),
        (None, None) => site.initialise()?.0,
    };
    if site.tree_kind == TreeKind::Plain && place.store.parent() == Some(&site.root.join(".baton"))
    {
        // Should the folder become a repository, its store is never committed.
        publish(&site.root.join(".baton/.gitignore"), b"*\n", ORDINARY)?;
    }
    begin(place, address)
}

/// A store lies in real folders: a link could lead it out of the repository, to where another
/// clone or another user has one.
fn no_link_in(site: &Site) -> Result<(), Failure> {
    // Without git the folder around the store is ours too.
    let own = if site.git.is_none() { 2 } else { 1 };
    for path in site.store.ancestors().take(own) {
        let why = match std::fs::symlink_metadata(path) {
            Ok(found) if found.is_symlink() => "it is a symbolic link",
            Ok(found) if !found.is_dir() => "it is not a folder",
            _ => continue,
        };
        return Err(Failure::StorePlace { path: path.to_owned(), why });
    }
    Ok(())
}

/// Opens the store and writes its first event, once.
fn begin(place: Place, address: Option<&str>) -> Result<(Workspace, bool), Failure> {
    let mut workspace = Workspace::open_at(place, address)?;
    let id = workspace.place.workspace.id.as_str().to_owned();
    if workspace.store.snapshot()?.state().head.position.number > 0 {
        return Ok((workspace, false));
    }
    let made = workspace.decide(&Actor::default(), Observed::default(), |_, context| {
        // Asked again under the lock: of two who begin, one writes.
        match context.next.number {
            1 => Ok((vec![Event::WorkspaceMade { workspace: id }], true)),
            _ => Ok((Vec::new(), false)),
        }
    })?;
    Ok((workspace, made))
}

fn make_shared(site: &Site, address: &str, choice: &Choice) -> Result<Place, Failure> {
    let mut server = Postgres::connect(address)?;
    if let Choice::Join(wanted) = choice {
        // Looked for before anything is written here.
        let missing = |error| match error {
            crate::store::Error::OtherStore { .. } => {
                Failure::NoSuchWorkspace { wanted: wanted.to_string() }
            }
            other => Failure::Store(other),
        };
        server.open_workspace(wanted.as_str()).map_err(missing)?;
        let (place, _) = site.initialise_as(Some(wanted.clone()), true)?;
        if place.workspace.id != *wanted {
            let here = place.workspace.id.to_string();
            return Err(Failure::OtherWorkspace { here, wanted: wanted.to_string() });
        }
        return Ok(place);
    }
    let (root, remote) = origin(site)?;
    if let (Choice::Unsaid, Some(root)) = (choice, &root) {
        let known = server.find_workspaces(root, remote.as_deref())?;
        if !known.is_empty() {
            let workspaces = known.into_iter().map(|found| found.id).collect();
            return Err(Failure::KnownThere { workspaces });
        }
    }
    let id = WorkspaceId::fresh()?;
    server.create_workspace(id.as_str(), root.as_deref(), remote.as_deref())?;
    let marked = site.initialise_as(Some(id.clone()), true);
    if !matches!(&marked, Ok((place, _)) if place.workspace.id == id) {
        // Somebody else was first, or there can be no mark: then nobody will ever use it.
        server.forget_unused_workspace(id.as_str())?;
    }
    Ok(marked?.0)
}

/// By what another clone of the same repository is known: its first commit and where it is from.
fn origin(site: &Site) -> Result<(Option<String>, Option<String>), Failure> {
    if site.git.is_none() {
        return Ok((None, None));
    }
    let git = Git::in_tree(&site.root)?;
    let root = git.root_commit()?.map(|oid| oid.as_str().to_owned());
    Ok((root, git.remote_url()?))
}

/// Writes `baton.toml` with what is proposed, unless there is one: that one is kept as it is.
pub fn write_config(
    place: &Place,
    zones: &[Proposed],
    checks: &[ProposedCheck],
) -> Result<Config, Failure> {
    let path = place.root.join(config::FILE_NAME);
    match publish(&path, survey::baton_toml(zones, checks).as_bytes(), ORDINARY)? {
        true => Ok(Config::Written),
        false => Ok(Config::Kept),
    }
}

/// The policy that `baton.toml` of this tree would give, if there is one.
pub fn written_policy(place: &Place) -> Result<Option<Policy>, Failure> {
    match config::read(&place.root)? {
        None => Ok(None),
        Some((path, text)) => config::compile(&path, &text, Default::default()).map(Some),
    }
}
