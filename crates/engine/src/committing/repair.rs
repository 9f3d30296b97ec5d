//! What a commit that died had begun: finished when its branch had moved, undone when not.
//!
//! Owns the reading of the intent after a death. Invariant: afterwards git's lock is nobody's (or
//! somebody else's), the index has the committed entries, and the journal knows of the commit.

use baton_core::context::Actor;

use super::lock::{Step, Turn};
use super::{keep, lock};
use crate::failure::Failure;
use crate::git::{Entry, Git, PrivateIndex};
use crate::workspace::Workspace;
use std::path::Path;

/// True when there was anything to repair. The turn is ours, so whoever began it is gone.
pub(crate) fn run(workspace: &mut Workspace, turn: &Turn) -> Result<bool, Failure> {
    let root = workspace.place.root.clone();
    run_in(workspace, &root, turn)
}

/// The same for any tree of the clone, by its root.
pub(crate) fn run_in(workspace: &mut Workspace, root: &Path, turn: &Turn) -> Result<bool, Failure> {
    let Some(intent) = turn.begun()? else {
        let locking = turn.was_locking();
        if locking {
            turn.unlock()?;
            turn.forget()?;
        }
        return Ok(locking);
    };
    if let Some(pull) = intent.pull {
        let git = Git::in_tree(root)?;
        // Moving the files is the same when it was done before. Where it cannot be done any more
        // nothing was moved: then there is nothing to finish.
        if git.commit_named(&pull.branch)?.as_ref() == Some(&pull.before)
            && git.move_files(&pull.before, &pull.after).is_ok()
        {
            git.move_branch(Some(&pull.branch), &pull.after, Some(&pull.before), "baton sync")?;
        }
        turn.forget()?;
        return Ok(true);
    }
    let Some(step) = intent.step else {
        turn.unlock()?;
        turn.forget()?;
        return Ok(true);
    };
    let git = Git::in_tree(root)?;
    if !moved(&git, &step)? {
        turn.unlock()?;
        turn.forget()?;
        return Ok(true);
    }
    if turn.lock_is_ours() && step.ready {
        turn.put_index()?;
    } else if !turn.index_is_ours() {
        put_again(&git, turn, &step)?;
    }
    if let Some((made, retry)) = &step.made {
        // In the name of whoever made it; it is not here to be asked or told anything.
        let actor = Actor { session: Some(made.by.session.clone()), ..Actor::default() };
        keep(workspace, &actor, made, retry, false)?;
    }
    turn.forget()?;
    Ok(true)
}

/// Is the commit in the history of what it was to move?
fn moved(git: &Git, step: &Step) -> Result<bool, Failure> {
    let name = step.branch.as_deref().unwrap_or("HEAD");
    let Some(now) = git.commit_named(name)? else { return Ok(false) };
    if Some(&now) == step.before.as_ref() {
        return Ok(false);
    }
    Ok(now == step.after || git.is_ancestor(&step.after, &now)?)
}

/// Somebody has removed the lock by hand: the entries go into the index as it is now, where that
/// still has what it had then.
fn put_again(git: &Git, turn: &Turn, step: &Step) -> Result<(), Failure> {
    let paths: Vec<String> = step.old.iter().map(|entry| entry.path.clone()).collect();
    let (now, _) = git.entries(None, &paths)?;
    let stale = |entry: &&Entry| step.old.contains(entry);
    let stale: Vec<&str> = now.iter().filter(stale).map(|entry| entry.path.as_str()).collect();
    let new: Vec<Entry> =
        step.new.iter().filter(|entry| stale.contains(&entry.path.as_str())).cloned().collect();
    if new.is_empty() {
        return Ok(());
    }
    turn.unlock()?;
    // What was begun must not be forgotten, should this die as well.
    let again = Step { ready: false, ..step.clone() };
    let mut lock = turn.lock_index(Some(&again))?;
    let index = PrivateIndex::new()?;
    let real = turn.index();
    std::fs::copy(&real, &index.file).map_err(lock::cannot("git's index cannot be read", &real))?;
    git.put_entries(&index.file, &new)?;
    lock.write(&index.file)?;
    lock.put()
}
