//! The walk up the folders: what git directories and stores lie around a folder.
//!
//! Owns how git lays out `.git` directories, `.git` files, `commondir` and bare repositories. It
//! refuses to judge which of them counts; `place` does. Invariant: every path it returns is
//! canonical, so that equal stores are equal paths, and it makes two system calls per folder that
//! holds nothing.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Component, Path, PathBuf};

use super::workspace_file::{Mark, WorkspaceFile, is_absent, read_small};
use super::{Error, IgnoreReason, IgnoredStore, STORE_IN_GIT, STORE_IN_PLAIN, WORKSPACE_FILE};

/// The git directories of a working tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitDirs {
    /// The tree's own: HEAD, index.
    pub git_dir: PathBuf,
    /// The repository's, shared by all its trees: objects, refs, config.
    pub common_dir: PathBuf,
}

impl GitDirs {
    /// Whether the repository is kept inside a superproject's git directory.
    pub fn is_submodule(&self) -> bool {
        self.common_dir.ancestors().skip(1).any(|folder| {
            folder.ends_with("modules") && folder.parent().is_some_and(looks_like_git_dir)
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TreeKind {
    /// The main checkout of a repository.
    Main,
    /// A linked worktree, by git's name for it.
    Linked { name: String },
    /// A folder without git.
    Plain,
}

/// A tree around the start, initialised or not.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) root: PathBuf,
    pub(super) git: Option<GitDirs>,
    pub(super) kind: TreeKind,
    pub(super) store: PathBuf,
    pub(super) workspace: Option<WorkspaceFile>,
}

#[derive(Debug, Default)]
pub(super) struct Walk {
    /// Nearest first.
    pub(super) candidates: Vec<Candidate>,
    pub(super) ignored: Option<IgnoredStore>,
    /// A `.git` that was met and is bare: it has trees, but not here.
    pub(super) bare: Option<PathBuf>,
    /// A `.git` that was met and leads nowhere.
    pub(super) broken: Option<Error>,
}

/// The canonical folder of a path; of a file its folder, of a missing path the deepest folder.
pub(super) fn canonical_folder(start: &Path) -> Result<PathBuf, Error> {
    if is_plain_folder(start) {
        return Ok(start.to_path_buf());
    }
    for path in start.ancestors() {
        // The parent of a relative name is the empty path, which means here.
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        match fs::canonicalize(path) {
            Ok(mut found) => {
                if !found.is_dir() {
                    found.pop();
                }
                return Ok(found);
            }
            Err(error) if is_absent(error.kind()) => {}
            Err(error) => return Err(Error::io("find", path, error)),
        }
    }
    Err(Error::io("find", start, ErrorKind::NotFound.into()))
}

/// Whether a path is canonical already and a folder, as what the kernel calls the current one is:
/// every hook comes with that, and the C library's way costs it a heap of its own.
fn is_plain_folder(path: &Path) -> bool {
    if std::env::current_dir().is_ok_and(|here| here.as_os_str() == path.as_os_str()) {
        return true;
    }
    let clean: PathBuf = path.components().collect();
    let no_way_up = path.components().all(|part| part != Component::ParentDir);
    let is_folder = |path: &Path| fs::symlink_metadata(path).is_ok_and(|found| found.is_dir());
    let spelled_so = clean.as_os_str() == path.as_os_str();
    path.is_absolute() && no_way_up && spelled_so && path.ancestors().all(is_folder)
}

pub(super) fn walk(start: &Path) -> Result<Walk, Error> {
    let mut walk = Walk::default();
    let mut plain: Vec<Candidate> = Vec::new();
    let trusted = Trusted::here(start);
    for folder in start.ancestors() {
        let store = folder.join(STORE_IN_PLAIN);
        if let Some(workspace) = walk.mark(&store, &trusted)? {
            let (root, kind) = (folder.to_path_buf(), TreeKind::Plain);
            plain.push(Candidate { root, git: None, kind, store, workspace: Some(workspace) });
        }
        let git = match git_dirs(folder) {
            Ok(Some(git)) => git,
            Ok(None) => continue,
            // Kept for when nothing else is found: a folder with a broken `.git`, such as a
            // fixture or a tree whose repository is gone, still belongs to the workspace around.
            Err(error) => {
                if walk.candidates.is_empty() {
                    walk.broken.get_or_insert(error);
                }
                continue;
            }
        };
        // A plain store at or below a repository may have come with a clone: not believed.
        for refused in plain.drain(..) {
            walk.ignore(refused.store, IgnoreReason::InsideRepository);
        }
        walk.add_git(folder, git, &trusted)?;
    }
    // What is left lies outside every repository, so it is farther out than all of them.
    walk.candidates.append(&mut plain);
    Ok(walk)
}

impl Walk {
    fn ignore(&mut self, store: PathBuf, reason: IgnoreReason) {
        self.ignored.get_or_insert(IgnoredStore { store, reason });
    }

    fn mark(&mut self, store: &Path, trusted: &Trusted) -> Result<Option<WorkspaceFile>, Error> {
        let path = store.join(WORKSPACE_FILE);
        match WorkspaceFile::read(&path, |owner| trusted.accepts(owner))? {
            Mark::Absent => Ok(None),
            Mark::Ours(workspace) => Ok(Some(workspace)),
            Mark::Foreign { owner } => {
                self.ignore(store.to_path_buf(), IgnoreReason::OtherOwner { uid: owner });
                Ok(None)
            }
        }
    }

    fn add_git(&mut self, root: &Path, git: GitDirs, trusted: &Trusted) -> Result<(), Error> {
        let store = git.common_dir.join(STORE_IN_GIT);
        let workspace = self.mark(&store, trusted)?;
        let kind = if git.git_dir == git.common_dir {
            // A named main tree was looked at by `init`; only else is the configuration read.
            let named = workspace.as_ref().is_some_and(|found| found.tree.is_some());
            if !named && is_bare(&git.common_dir) {
                self.bare.get_or_insert(git.common_dir);
                return Ok(());
            }
            TreeKind::Main
        } else {
            let name = git.git_dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
            TreeKind::Linked { name }
        };
        let root = root.to_path_buf();
        self.candidates.push(Candidate { root, git: Some(git), kind, store, workspace });
        Ok(())
    }
}

/// Whose stores are believed: our own and root's. Root itself also believes the owner of the
/// folder it starts in, because containers run as root over a user's files.
struct Trusted {
    user: u32,
    start_owner: Option<u32>,
}

impl Trusted {
    fn here(start: &Path) -> Self {
        let user = rustix::process::geteuid().as_raw();
        let owner = || fs::metadata(start).ok().map(|metadata| metadata.uid());
        Self { user, start_owner: if user == 0 { owner() } else { None } }
    }

    fn accepts(&self, owner: u32) -> bool {
        owner == self.user || owner == 0 || self.start_owner == Some(owner)
    }
}

/// The git directories of a folder that has a `.git`, itself canonical.
pub(crate) fn git_dirs(folder: &Path) -> Result<Option<GitDirs>, Error> {
    let dot_git = folder.join(".git");
    let metadata = match fs::symlink_metadata(&dot_git) {
        Ok(metadata) => metadata,
        Err(error) if is_absent(error.kind()) => return Ok(None),
        Err(error) => return Err(Error::io("look at", &dot_git, error)),
    };
    if metadata.is_dir() {
        // Git walks past a `.git` folder that is not a repository, and so do we.
        let real = looks_like_git_dir(&dot_git);
        return Ok(real.then(|| GitDirs { common_dir: dot_git.clone(), git_dir: dot_git }));
    }
    let broken = || Error::BrokenGitFile { path: dot_git.clone() };
    let git_dir = if metadata.is_symlink() && dot_git.is_dir() {
        canonical(&dot_git, broken)?
    } else {
        let Some(text) = read_small(&dot_git)? else { return Err(broken()) };
        let target = text.trim_end_matches(['\n', '\r']).strip_prefix("gitdir: ");
        canonical(&folder.join(target.ok_or_else(broken)?), broken)?
    };
    if !git_dir.join("HEAD").exists() {
        return Err(broken());
    }
    let common_dir = match read_small(&git_dir.join("commondir"))? {
        Some(text) => canonical(&git_dir.join(text.trim_end_matches(['\n', '\r'])), broken)?,
        None => git_dir.clone(),
    };
    Ok(Some(GitDirs { git_dir, common_dir }))
}

fn canonical(path: &Path, broken: impl Fn() -> Error) -> Result<PathBuf, Error> {
    match fs::canonicalize(path) {
        Ok(found) => Ok(found),
        Err(error) if is_absent(error.kind()) => Err(broken()),
        Err(error) => Err(Error::io("find", path, error)),
    }
}

fn looks_like_git_dir(folder: &Path) -> bool {
    // HEAD may be a dangling symlink in old repositories, hence no following.
    fs::symlink_metadata(folder.join("HEAD")).is_ok()
        && folder.join("objects").is_dir()
        && folder.join("refs").is_dir()
}

/// The bare repository that a folder is or lies in.
pub(super) fn bare_repository_around(start: &Path) -> Option<PathBuf> {
    let found = start.ancestors().find(|folder| looks_like_git_dir(folder))?;
    (!found.ends_with(".git")).then(|| found.to_path_buf())
}

/// Whether the configuration says `core.bare`. Unreadable counts as no: git creates `bare = false`
/// by itself, and a tree too many is refused later by git, a tree too few would be silent.
pub(super) fn is_bare(common_dir: &Path) -> bool {
    let Ok(text) = fs::read_to_string(common_dir.join("config")) else { return false };
    let mut in_core = false;
    let mut bare = false;
    for line in text.lines().map(str::trim) {
        if let Some(section) = line.strip_prefix('[') {
            let name = section.split(']').next().unwrap_or_default();
            in_core = name.trim().eq_ignore_ascii_case("core");
        } else if in_core {
            let (key, value) = line.split_once('=').unwrap_or((line, "true"));
            if key.trim().eq_ignore_ascii_case("bare") {
                let value = value.split(['#', ';']).next().unwrap_or_default().trim();
                bare = ["true", "yes", "on", "1"].iter().any(|yes| value.eq_ignore_ascii_case(yes));
            }
        }
    }
    bare
}

/// The store folder, readable by its owner alone.
pub(super) fn make_private_folder(folder: &Path) -> Result<(), Error> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(|error| Error::io("make", folder, error))
}
