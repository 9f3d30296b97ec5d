//! Clearing away what a tree that never came to be has left.
//!
//! Owns the way back from every step of `making`, also after a death: what is there is found by the
//! plan that was written down first. Invariants: a folder is removed only when git's own files in
//! it and about it say that it is this very tree, or when it is empty; a branch only when it has
//! nothing that is not elsewhere.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use baton_core::context::{Actor, Life, Observed};
use baton_core::time::Span;
use baton_core::tree::{Stage, Tree};
use baton_core::trees;

use super::{Clone, removing};
use crate::failure::Failure;
use crate::git::{Git, Oid};
use crate::sighting::life_of;
use crate::workspace::Workspace;

/// A maker that cannot be seen is thought to be gone after this.
const MAKING_MAX: Span = Span::hours(6);
/// How long a git that outlived its Baton is waited for.
const GIT_MAY_TAKE: Duration = Duration::from_secs(10);

/// Ends what deaths left half done, trees that never came to be and removals; before all else.
pub(super) fn repair(workspace: &mut Workspace, clone: &Clone) -> Result<(), Failure> {
    let records = clone.records(workspace)?;
    let now = workspace.store.snapshot()?.state().now;
    for tree in records {
        if tree.stage == Stage::Made {
            removing::resume(workspace, clone, &tree)?;
            continue;
        }
        let life = tree.process.as_ref().map(|process| life_of(&workspace.machine, process));
        let gone = match life {
            Some(Life::Dead) => true,
            Some(Life::Alive) => false,
            Some(Life::Unknown) | None => now > tree.at + MAKING_MAX,
        };
        if gone {
            undo(clone, &tree)?;
            give_up(workspace, &tree, "its maker died")?;
        }
    }
    Ok(())
}

/// Writes down that nothing of it is left.
pub(super) fn give_up(workspace: &mut Workspace, tree: &Tree, why: &str) -> Result<(), Failure> {
    // As nobody: whoever planned it may have ended meanwhile, and the claim must go all the same.
    let nobody = Actor::default();
    workspace.decide(&nobody, Observed::default(), |view, context| {
        trees::give_up(view, &tree.tree, why, context).map(|(events, _)| (events, ()))
    })
}

/// Takes away folder, git's record of it, and branch.
pub(super) fn undo(clone: &Clone, tree: &Tree) -> Result<(), Failure> {
    let path = Path::new(&tree.path);
    // The repository and not a tree: the one around us may be the one that goes.
    let git = Git::in_repository(&clone.dirs.common_dir)?;
    let admin = ours(clone, tree);
    if let Some(admin) = &admin {
        wait_for_git(admin);
    }
    remove_folder(path, admin.as_deref())?;
    if let Some(admin) = &admin
        && fs::symlink_metadata(path).is_err()
        && git.forget_tree(path).is_err()
        && admin.exists()
    {
        // Git was killed before it had written enough to know its own.
        fs::remove_dir_all(admin).map_err(super::failed("clearing up"))?;
    }
    let tip = git.branch(&tree.branch)?;
    if let (Some(tip), Some(base)) = (tip, Oid::parse(&tree.commit)) {
        if tip == base {
            git.delete_branch(&tree.branch, &tip)?;
        } else if admin.is_some() {
            git.keep(&removing::branch_reference(tree.tree.as_str(), &tip), &tip)?;
            git.delete_branch(&tree.branch, &tip)?;
        }
    }
    if let Some(parent) = path.parent().filter(|parent| *parent == default_parent(&clone.main)) {
        // Not when there is another tree in it.
        let _ = fs::remove_dir(parent);
    }
    Ok(())
}

/// `repo.trees`, beside the repository.
pub(super) fn default_parent(main: &Path) -> PathBuf {
    let mut name = main.file_name().unwrap_or_default().to_os_string();
    name.push(".trees");
    main.with_file_name(name)
}

/// Git's own folder for this tree, if it has made one: the branch tells it from another's.
fn ours(clone: &Clone, tree: &Tree) -> Option<PathBuf> {
    let admin = clone.admin_of(Path::new(&tree.path), Some(tree.tree.as_str()))?;
    let head = fs::read_to_string(admin.join("HEAD")).unwrap_or_default();
    let wanted = format!("ref: refs/heads/{}", tree.branch);
    // Before the checkout git writes a HEAD of zeros there.
    let unset = head.trim().bytes().all(|byte| byte == b'0');
    let ours = head.trim() == wanted
        || unset
        || fs::read_to_string(admin.join(crate::place::TREE_FILE))
            .is_ok_and(|id| id.trim() == tree.tree.as_str());
    ours.then_some(admin)
}

/// A git that was started by a Baton that died goes on; it locks the tree until it is done.
fn wait_for_git(admin: &Path) {
    let until = Instant::now() + GIT_MAY_TAKE;
    let busy = || admin.join("index.lock").exists() || admin.join("locked").exists();
    while busy() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn remove_folder(path: &Path, admin: Option<&Path>) -> Result<(), Failure> {
    if fs::symlink_metadata(path).is_err() {
        return Ok(());
    }
    let link = fs::read_to_string(path.join(".git")).unwrap_or_default();
    let leads = link.strip_prefix("gitdir: ").map(|leads| PathBuf::from(leads.trim_end()));
    if let (Some(admin), Some(leads)) = (admin, leads)
        && leads.canonicalize().ok() == admin.canonicalize().ok()
    {
        return fs::remove_dir_all(path).map_err(super::failed("clearing up"));
    }
    // Empty, it was ours or is nobody's loss; with anything in it, it is somebody else's.
    let _ = fs::remove_dir(path);
    Ok(())
}
