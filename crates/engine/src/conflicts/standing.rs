//! The snapshots of live trees, read side by side.
//!
//! Owns the way from folders to commits. A tree that is watched and did not change is not read
//! again. Invariant: nothing is written to a tree, and one that cannot be read is said to be
//! unseen, never clean.

use std::path::PathBuf;

use super::memory::Memory;
use super::watching::Changed;
use crate::failure::Failure;
use crate::git::{self, Git, Oid, Work};
use crate::trees::carrying::Carried;
use crate::trees::looking::Found as Tree;

/// How a tree stood when it was read: the commit that was made of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stood {
    pub(super) commit: Oid,
    pub(super) dirty: bool,
}

/// A tree as it is now.
#[derive(Clone, Debug)]
pub(super) struct Snapshot {
    /// Nothing when there is no commit and no file.
    pub(super) commit: Option<Oid>,
    pub(super) dirty: bool,
}

/// Reads every tree. The answers are in the order of the trees.
pub(super) fn read_all(
    git: &Git,
    trees: &[Tree],
    changed: &Changed,
    memory: &mut Memory,
) -> Result<Vec<Result<Snapshot, git::Error>>, Failure> {
    let as_before = |tree: &Tree| match changed {
        Changed::Anything => None,
        Changed::Nothing => memory.stood.get(&tree.path).cloned(),
        Changed::Trees(paths) => {
            memory.stood.get(&tree.path).filter(|_| !paths.contains(&tree.path)).cloned()
        }
    };
    let known: Vec<Option<Stood>> = trees.iter().map(as_before).collect();
    let folders: Vec<(PathBuf, Option<PathBuf>)> =
        trees.iter().map(|tree| (tree.path.clone(), tree.admin.clone())).collect();
    let mut looks: Vec<Option<Look>> = (0..trees.len()).map(|_| None).collect();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let share = trees.len().div_ceil(threads).max(1);
    std::thread::scope(|scope| {
        let parts = looks.chunks_mut(share).zip(folders.chunks(share)).zip(known.chunks(share));
        for ((looks, folders), known) in parts {
            scope.spawn(move || {
                for ((look, (root, admin)), known) in looks.iter_mut().zip(folders).zip(known) {
                    *look = Some(look_at(root, admin.as_deref(), known.as_ref()));
                }
            });
        }
    });
    settle(git, &folders, looks, memory)
}

/// What one look at a tree gave.
enum Look {
    AsBefore(Stood),
    Read(Result<Work, git::Error>),
}

fn look_at(root: &std::path::Path, admin: Option<&std::path::Path>, known: Option<&Stood>) -> Look {
    if let Some(known) = known {
        return Look::AsBefore(known.clone());
    }
    let carried = admin.map(|admin| Carried::look(root, admin)).unwrap_or_default();
    let work = Git::in_tree(root).and_then(|git| git.work(&carried.same));
    Look::Read(work)
}

/// Makes commits of what was read, in one process.
fn settle(
    git: &Git,
    folders: &[(PathBuf, Option<PathBuf>)],
    looks: Vec<Option<Look>>,
    memory: &mut Memory,
) -> Result<Vec<Result<Snapshot, git::Error>>, Failure> {
    let works: Vec<&Work> = looks
        .iter()
        .filter_map(|look| match look {
            Some(Look::Read(Ok(work))) => Some(work),
            _ => None,
        })
        .collect();
    let mut commits = git.commits_of(&works)?.into_iter();
    let mut all = Vec::with_capacity(looks.len());
    for ((folder, _), look) in folders.iter().zip(looks) {
        let unseen = || git::Error::Unexpected { command: "status".to_owned() };
        all.push(match look.unwrap_or(Look::Read(Err(unseen()))) {
            Look::AsBefore(Stood { commit, dirty }) => Ok(Snapshot { commit: Some(commit), dirty }),
            Look::Read(Err(error)) => {
                memory.stands(folder, None);
                Err(error)
            }
            Look::Read(Ok(work)) => {
                let (commit, dirty) = (commits.next().flatten(), !work.is_empty());
                let stood = commit.clone().map(|commit| Stood { commit, dirty });
                memory.stands(folder, stood);
                Ok(Snapshot { commit, dirty })
            }
        });
    }
    Ok(all)
}
