//! Where am I: the working tree and the workspace around a folder.
//!
//! Owns the walk up the folders, the store folder's address and the ids of workspace and tree. It
//! refuses to know what is in the store, and it never spawns git: this runs in every hook.
//! Invariant: a path belongs to the *outermost* initialised workspace around it, and within that
//! workspace to the *nearest* tree that shares the store.
//!
//! `GIT_DIR`, `GIT_COMMON_DIR`, `GIT_WORK_TREE` and the like are ignored on purpose: git exports
//! them into its hooks, where they describe git's errand and not the agent's place, and an agent
//! that sets one would walk away from the claims of everyone else into an empty store.

mod discovery;
pub(crate) mod head;
pub mod identity;
pub mod test_hooks;
#[cfg(test)]
mod tests;
mod trees;
pub mod workspace_file;

use std::path::{Path, PathBuf};

use discovery::Candidate;
pub(crate) use discovery::git_dirs;
pub use discovery::{GitDirs, TreeKind};
use test_hooks::TestHooks;
use workspace_file::{TreeId, WorkspaceFile, WorkspaceId};

/// The file in the store folder whose existence makes a workspace.
pub const WORKSPACE_FILE: &str = "workspace.toml";
/// The file in a tree's own git directory that names a tree which is not the main one.
pub const TREE_FILE: &str = "baton-tree";
/// The store folder inside a git common directory.
pub const STORE_IN_GIT: &str = "baton";
/// The store folder of a workspace without git.
pub const STORE_IN_PLAIN: &str = ".baton/store";

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("no Baton workspace around {}", looked_from.display())]
    NotInitialised {
        looked_from: PathBuf,
        /// A store that was seen but not believed, nearest first.
        ignored: Option<IgnoredStore>,
    },
    #[error("{} is a bare repository; go to one of its worktrees", git_dir.display())]
    BareRepository { git_dir: PathBuf },
    #[error("{} was written by a newer Baton (version {found})", path.display())]
    NewerVersion { path: PathBuf, found: u64 },
    #[error("{}: line {line} is not what Baton writes", path.display())]
    Malformed { path: PathBuf, line: usize },
    #[error("{}: points to a git directory that is not there", path.display())]
    BrokenGitFile { path: PathBuf },
    #[error("{}: larger than the {limit} bytes Baton reads", path.display())]
    TooLarge { path: PathBuf, limit: usize },
    #[error("cannot {deed} {}", path.display())]
    Io {
        deed: &'static str,
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("the system gave no random bytes")]
    NoRandomness,
}

impl Error {
    pub(crate) fn io(deed: &'static str, path: &Path, source: std::io::Error) -> Self {
        Self::Io { deed, path: path.to_path_buf(), source }
    }
}

/// A store folder that must not be believed, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IgnoredStore {
    pub store: PathBuf,
    pub reason: IgnoreReason,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IgnoreReason {
    /// A plain store inside a git repository: it could have come with a clone.
    InsideRepository,
    /// Another user made it, for instance in `/tmp`.
    OtherOwner { uid: u32 },
}

/// One working tree of an initialised workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The canonical root of the working tree.
    pub root: PathBuf,
    pub git: Option<GitDirs>,
    pub tree_kind: TreeKind,
    /// The folder of the store, shared by all trees of the workspace.
    pub store: PathBuf,
    pub workspace: WorkspaceFile,
}

impl Place {
    /// The tree and workspace of a folder or file; a missing tail of `start` is ignored.
    pub fn find(start: &Path) -> Result<Place, Error> {
        let start = discovery::canonical_folder(start)?;
        let mut walk = discovery::walk(&start)?;
        let outermost = walk.candidates.iter().rposition(|found| found.workspace.is_some());
        let Some(outermost) = outermost else {
            return Err(walk.nothing_found(start));
        };
        let store = walk.candidates[outermost].store.clone();
        let nearest = walk.candidates.iter().position(|found| found.store == store);
        let chosen = walk.candidates.swap_remove(nearest.unwrap_or(outermost));
        chosen.into_place(start, walk.ignored)
    }

    /// The id of this tree. A linked worktree is named on first use; everyone who asks at the same
    /// moment gets the same answer.
    pub fn tree_id(&self) -> Result<TreeId, Error> {
        match (&self.tree_kind, &self.workspace.tree, &self.git) {
            (TreeKind::Main | TreeKind::Plain, Some(id), _) => Ok(id.clone()),
            (_, _, Some(git)) => TreeId::at(&git.git_dir.join(TREE_FILE)),
            (_, _, None) => TreeId::at(&self.store.join(TREE_FILE)),
        }
    }

    /// What tests may pretend in this workspace; nothing unless the store says so.
    pub fn test_hooks(&self) -> TestHooks {
        TestHooks::of(&self.store)
    }
}

impl discovery::Walk {
    /// Why there is no workspace: the most telling reason wins.
    fn nothing_found(self, start: PathBuf) -> Error {
        if let Some(broken) = self.broken {
            return broken;
        }
        if self.candidates.is_empty() {
            let around = self.bare.or_else(|| discovery::bare_repository_around(&start));
            if let Some(git_dir) = around {
                return Error::BareRepository { git_dir };
            }
        }
        Error::NotInitialised { looked_from: start, ignored: self.ignored }
    }
}

impl Candidate {
    fn into_place(self, start: PathBuf, ignored: Option<IgnoredStore>) -> Result<Place, Error> {
        let Some(workspace) = self.workspace else {
            return Err(Error::NotInitialised { looked_from: start, ignored });
        };
        Ok(Place {
            root: self.root,
            git: self.git,
            tree_kind: self.kind,
            store: self.store,
            workspace,
        })
    }
}

/// Whether a folder lies in a project that uses Baton, set up here or not: its files say so.
pub fn uses_baton(folder: &Path) -> bool {
    let root = folder.ancestors().find(|folder| folder.join(".git").exists());
    let files = [crate::config::FILE_NAME, baton_core::rules::FILE];
    root.is_some_and(|root| files.iter().any(|file| root.join(file).is_file()))
}

/// What `init` needs to know about a folder before there is a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site {
    /// The root of the nearest repository, or the folder itself when there is none.
    pub root: PathBuf,
    pub git: Option<GitDirs>,
    pub tree_kind: TreeKind,
    /// Where the store would be.
    pub store: PathBuf,
    /// Whether the nearest repository is a submodule of another one.
    pub submodule: bool,
    /// The workspace the folder already belongs to. With another store than `store`, the nearest
    /// repository is nested in it (a submodule if `submodule`), and `init` is to be refused.
    pub within: Option<Place>,
}

impl Site {
    /// Looks around `start`; a bare repository without a worktree is an error.
    pub fn find(start: &Path) -> Result<Site, Error> {
        let within = match Place::find(start) {
            Ok(place) => Some(place),
            Err(Error::NotInitialised { .. }) => None,
            Err(error) => return Err(error),
        };
        let start = discovery::canonical_folder(start)?;
        let walk = discovery::walk(&start)?;
        let nearest = walk.candidates.into_iter().find(|found| found.git.is_some());
        let Some(nearest) = nearest else {
            let store = start.join(STORE_IN_PLAIN);
            let tree_kind = TreeKind::Plain;
            return Ok(Site { root: start, git: None, tree_kind, store, submodule: false, within });
        };
        let submodule = nearest.git.as_ref().is_some_and(GitDirs::is_submodule);
        Ok(Site {
            root: nearest.root,
            git: nearest.git,
            tree_kind: nearest.kind,
            store: nearest.store,
            submodule,
            within,
        })
    }

    /// Whether the folder belongs to a workspace whose store is not this repository's own.
    pub fn nested_in(&self) -> Option<&Place> {
        self.within.as_ref().filter(|place| place.store != self.store)
    }

    /// Makes the workspace, or returns the one that someone else made first. `true` means made.
    pub fn initialise(&self) -> Result<(Place, bool), Error> {
        self.initialise_as(None, false)
    }

    /// As `initialise`, with a given id or on a shared store.
    pub fn initialise_as(
        &self,
        id: Option<WorkspaceId>,
        shared: bool,
    ) -> Result<(Place, bool), Error> {
        let bare = self.git.as_ref().is_some_and(|git| discovery::is_bare(&git.common_dir));
        discovery::make_private_folder(&self.store)?;
        let fresh = WorkspaceFile::fresh(id, !bare, shared)?;
        let (workspace, made) = fresh.publish(&self.store.join(WORKSPACE_FILE))?;
        let place = Place {
            root: self.root.clone(),
            git: self.git.clone(),
            tree_kind: self.tree_kind.clone(),
            store: self.store.clone(),
            workspace,
        };
        Ok((place, made))
    }
}
