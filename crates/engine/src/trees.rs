//! Working trees: where they stand, how they look, and the deeds around them.
//!
//! Owns the way from a request to a tree and back. Making is in `making` (all of it or nothing),
//! removing in `removing` (nothing before it is safe elsewhere), looking in `looking`. Whether
//! something may be done is decided in `baton_core::trees`.

use std::path::{Path, PathBuf};

use baton_core::context::{Actor, Context, Observed};
use baton_core::operations;
use baton_core::tree::{self, Tree};
use baton_core::view::{View, parse, scan};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::failure::Failure;
use crate::git::Git;
use crate::place::test_hooks;
use crate::place::{GitDirs, TreeKind};
use crate::workspace::{Retry, Workspace};

pub(crate) mod carrying;
pub mod looking;
pub mod making;
mod processes;
pub mod removing;
pub(crate) mod setting_up;
mod undoing;

/// Why a tree cannot be made or removed, apart from what the rules say.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("this workspace has no git repository")]
    NoRepository,
    #[error("the repository has no commit yet")]
    NoCommit,
    #[error("there is no commit {given:?}")]
    NoBase { given: String },
    #[error("{path} is there already")]
    FolderThere { path: PathBuf },
    #[error("{path} cannot be a working tree: {why}")]
    BadFolder { path: PathBuf, why: &'static str },
    #[error("{path} cannot be copied: {why}")]
    NotCopied { path: String, why: String },
    #[error("the setup command failed: {saw}")]
    Setup { saw: String },
    #[error("it was stopped")]
    Stopped,
    #[error("{step} failed: {why}")]
    Step { step: &'static str, why: String },
    /// It failed, and so did clearing up after it.
    #[error("{first}; and clearing up failed too")]
    LeftBehind { first: Box<Failure>, second: Box<Failure> },
    #[error("{path} cannot be used here: {why}")]
    Rescue { path: String, why: String },
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Tree(Box::new(error))
    }
}

/// Whoever shows how it goes, and may want it to end.
pub trait Door {
    /// A step begins.
    fn step(&mut self, what: &str);
    /// A piece of what the setup command writes.
    fn wrote(&mut self, bytes: &[u8]);
    /// Does somebody want it to end?
    fn end_wanted(&mut self) -> bool;
}

/// The clone that trees are made in.
#[derive(Clone, Debug)]
pub(crate) struct Clone {
    pub(crate) dirs: GitDirs,
    pub(crate) host: String,
    pub(crate) git: Git,
    /// The main tree's folder; of a bare repository its own.
    pub(crate) main: PathBuf,
    store: PathBuf,
}

impl Clone {
    pub(crate) fn of(workspace: &Workspace) -> Result<Self, Failure> {
        let place = &workspace.place;
        let Some(dirs) = place.git.clone() else {
            return Err(Error::NoRepository.into());
        };
        let main = match (&place.tree_kind, dirs.common_dir.file_name(), dirs.common_dir.parent()) {
            (TreeKind::Main, ..) => place.root.clone(),
            (_, Some(name), Some(parent)) if name == ".git" => parent.to_owned(),
            _ => dirs.common_dir.clone(),
        };
        let host = workspace.machine.host.clone();
        let git = Git::in_tree(&place.root)?;
        Ok(Self { dirs, host, git, main, store: place.store.clone() })
    }

    pub(crate) fn repository(&self) -> String {
        self.dirs.common_dir.to_string_lossy().into_owned()
    }

    /// The trees that are written down for this clone.
    pub(crate) fn records(&self, workspace: &mut Workspace) -> Result<Vec<Tree>, Failure> {
        let query = tree::of_clone(&self.host, &self.repository());
        workspace.look(&Actor::default(), Observed::default(), |view, _| Ok(scan(view, query)?))
    }

    /// Git's own folder for a tree, found by the tree's folder or by its id.
    pub(crate) fn admin_of(&self, path: &Path, tree: Option<&str>) -> Option<PathBuf> {
        let entries = std::fs::read_dir(self.dirs.common_dir.join("worktrees")).ok()?;
        entries.flatten().map(|entry| entry.path()).find(|admin| {
            let read = |name: &str| std::fs::read_to_string(admin.join(name)).ok();
            let file = read("gitdir").map(|text| PathBuf::from(text.trim_end()));
            let here = file.as_deref().and_then(Path::parent).is_some_and(|root| root == path);
            let id = read(crate::place::TREE_FILE);
            here || tree.is_some_and(|tree| id.is_some_and(|id| id.trim() == tree))
        })
    }

    /// Dies here when a test wants to see what is left.
    pub(crate) fn stop_here(&self, point: &str) {
        if test_hooks::stops_at(&self.store, point) {
            std::process::abort();
        }
    }
}

/// The answer that was kept for this very operation, so that a retry does nothing twice.
pub(crate) fn answered<T: DeserializeOwned>(
    workspace: &mut Workspace,
    actor: &Actor,
    retry: Option<&Retry>,
) -> Result<Option<T>, Failure> {
    let Some(retry) = retry else { return Ok(None) };
    let session = actor.session.as_ref().map(|id| id.0.clone()).unwrap_or_default();
    workspace.look(actor, Observed::default(), |view, _| {
        let kept = operations::answered(view, &retry.operation, &session, &retry.request_hash)?;
        Ok(kept.map(|answer| parse(&answer)).transpose()?)
    })
}

/// Keeps the answer of what was done outside the store, for a retry under the same id.
pub(crate) fn keep_answer<T: Serialize + DeserializeOwned + std::clone::Clone>(
    workspace: &mut Workspace,
    actor: &Actor,
    retry: Option<&Retry>,
    answer: &T,
) -> Result<(), Failure> {
    if retry.is_none() {
        return Ok(());
    }
    let rule = |_: &dyn View, _: &Context| Ok((Vec::new(), answer.clone()));
    workspace.decide_once(actor, Observed::default(), retry, |_| true, rule).map(|_: T| ())
}

/// An error of a step, with the step's name.
fn failed(step: &'static str) -> impl Fn(std::io::Error) -> Failure {
    move |source| Error::Step { step, why: source.to_string() }.into()
}
