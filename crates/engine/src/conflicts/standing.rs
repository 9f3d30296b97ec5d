//! The snapshots of live trees, read side by side.
//!
//! Owns the way from folders to commits. A tree that is watched and did not change, or has the
//! mark it had, is not read again. Invariant: nothing is written to a tree, and one that cannot be
//! read is said to be unseen, never clean.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Mutex;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::memory::{Memory, Remembered};
use super::unchanged::{Ground, IGNORED_MAX, Settings};
use super::watching::Changed;
use crate::failure::Failure;
use crate::git::{self, Git, Oid, Work};
use crate::trees::carrying::Carried;
use crate::trees::looking::Found as Tree;

/// How a tree stood when it was read: the commit that was made of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
    common: &Path,
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
    let settings = match known.iter().all(Option::is_some) || std::mem::take(&mut memory.first) {
        true => None,
        false => Settings::of(git),
    };
    let looker = Looker { common, settings, memory };
    let mut looks: Vec<(Option<Look>, &Tree)> = trees.iter().map(|tree| (None, tree)).collect();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    // Whoever is free takes the next: most trees are as before, and few take long.
    let queue = Mutex::new(looks.iter_mut().zip(known));
    std::thread::scope(|scope| {
        for _ in 0..threads.min(trees.len()) {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().ok().and_then(|mut queue| queue.next());
                    let Some(((look, tree), known)) = next else { break };
                    *look = Some(match known {
                        Some(stood) => Look::AsBefore(stood),
                        None => looker.look(tree),
                    });
                }
            });
        }
    });
    drop(queue);
    let looks = looks.into_iter().map(|(look, _)| look).collect();
    settle(git, trees, looks, memory)
}

/// What one look at a tree gave.
enum Look {
    AsBefore(Stood),
    /// With the mark the tree has, if it can be known by one.
    Read(Result<Work, git::Error>, Option<String>),
}

struct Looker<'a> {
    common: &'a Path,
    /// Nothing when no mark can be trusted.
    settings: Option<Settings>,
    memory: &'a Memory,
}

impl Looker<'_> {
    fn look(&self, tree: &Tree) -> Look {
        let ground = self.ground(tree);
        if let (Some(ground), Some(before)) = (&ground, self.memory.remembered(&tree.path))
            && ground.mark(&before.ignored).is_some_and(|mark| mark.hash == before.mark)
        {
            return Look::AsBefore(before.stood.clone());
        }
        let began = SystemTime::now();
        let admin = tree.admin.as_deref();
        let carried = admin.map(|admin| Carried::look(&tree.path, admin)).unwrap_or_default();
        let work = Git::in_tree(&tree.path)
            .and_then(|git| git.work(&carried.same, self.settings.is_some()));
        let mark = match (&ground, &work) {
            (Some(ground), Ok(work)) => marked(ground, work, began),
            _ => None,
        };
        Look::Read(work, mark)
    }

    fn ground<'t>(&'t self, tree: &'t Tree) -> Option<Ground<'t>> {
        let linked = tree.linked.as_ref()?;
        Some(Ground {
            root: &tree.path,
            admin: tree.admin.as_deref()?,
            common: self.common,
            head: linked.head.as_ref()?,
            branch: linked.branch.as_deref(),
            settings: self.settings.as_ref()?,
        })
    }
}

/// The mark of what was just read, if nothing can have changed since the reading began.
fn marked(ground: &Ground<'_>, work: &Work, began: SystemTime) -> Option<String> {
    if work.head() != Some(ground.head) || work.ignored().len() > IGNORED_MAX {
        return None;
    }
    // What is ignored and in HEAD still is read, but the mark would pass it by.
    let ignored: BTreeSet<&str> = work.ignored().iter().map(String::as_str).collect();
    let passed = |path: &str| {
        let mut above = path.match_indices('/').map(|(slash, _)| &path[..=slash]);
        ignored.contains(path) || above.any(|folder| ignored.contains(folder))
    };
    if work.paths().any(passed) {
        return None;
    }
    let mark = ground.mark(work.ignored())?;
    mark.is_older_than(began).then_some(mark.hash)
}

/// Makes commits of what was read, in one process.
fn settle(
    git: &Git,
    trees: &[Tree],
    looks: Vec<Option<Look>>,
    memory: &mut Memory,
) -> Result<Vec<Result<Snapshot, git::Error>>, Failure> {
    let works: Vec<&Work> = looks
        .iter()
        .filter_map(|look| match look {
            Some(Look::Read(Ok(work), _)) => Some(work),
            _ => None,
        })
        .collect();
    let mut commits = git.commits_of(&works)?.into_iter();
    let mut all = Vec::with_capacity(looks.len());
    for (tree, look) in trees.iter().zip(looks) {
        let folder = &tree.path;
        let unseen = || git::Error::Unexpected { command: "status".to_owned() };
        all.push(match look.unwrap_or(Look::Read(Err(unseen()), None)) {
            Look::AsBefore(stood) => {
                memory.stands(folder, Some(stood.clone()));
                Ok(Snapshot { commit: Some(stood.commit), dirty: stood.dirty })
            }
            Look::Read(Err(error), _) => {
                memory.stands(folder, None);
                memory.remember(folder, None);
                Err(error)
            }
            Look::Read(Ok(work), mark) => {
                let (commit, dirty) = (commits.next().flatten(), !work.is_empty());
                let stood = commit.clone().map(|commit| Stood { commit, dirty });
                memory.stands(folder, stood.clone());
                let ignored = work.ignored().to_vec();
                let remembered = mark.zip(stood);
                let remembered =
                    remembered.map(|(mark, stood)| Remembered { mark, stood, ignored });
                memory.remember(folder, remembered);
                Ok(Snapshot { commit, dirty })
            }
        });
    }
    Ok(all)
}

#[cfg(test)]
mod tests;
