//! The snapshots of live trees, read side by side.
//!
//! Owns the way from folders to commits. A tree that is watched and did not change, or has the
//! mark it had, is not read again; of others git is asked only what its index does not tell.
//! Invariant: nothing is written to a tree, and one that cannot be read is said to be unseen, never
//! clean.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Mutex, OnceLock};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::Scene;
use super::differing::{Differing, folders};
use super::listing::{Listing, Rule};
use super::memory::{Memory, Remembered};
use super::unchanged::{self, Ground, IGNORED_MAX, Mark, Settings};
use super::watching::Changed;
use crate::failure::Failure;
use crate::git::{self, Asked, Git, Index, Oid, Work};
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
    scene: &Scene,
    changed: &Changed,
    memory: &mut Memory,
) -> Result<Vec<Result<Snapshot, git::Error>>, Failure> {
    let trees = &scene.trees;
    let as_before = |tree: &Tree| match changed {
        Changed::Anything => None,
        Changed::Nothing => memory.stood.get(&tree.path).cloned(),
        Changed::Trees(paths) => {
            memory.stood.get(&tree.path).filter(|_| !paths.contains(&tree.path)).cloned()
        }
    };
    let known: Vec<Option<Stood>> = trees.iter().map(as_before).collect();
    let open = trees.iter().zip(&known).filter(|(_, known)| known.is_none());
    let heads = Heads::of(git, &open.map(|(tree, _)| tree).collect::<Vec<_>>());
    let (common, settings) = (scene.common.as_path(), scene.settings.as_ref());
    let looker = Looker { common, settings, memory, heads };
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
    settings: Option<&'a Settings>,
    memory: &'a Memory,
    heads: Heads<'a>,
}

/// The commits that the trees stand at. Their files are asked of git when somebody has to know.
struct Heads<'a> {
    git: &'a Git,
    heads: Vec<&'a Oid>,
    trees: OnceLock<BTreeMap<Oid, Oid>>,
}

impl<'a> Heads<'a> {
    fn of(git: &'a Git, trees: &[&'a Tree]) -> Self {
        let head = |tree: &&'a Tree| tree.linked.as_ref()?.head.as_ref();
        Self { git, heads: trees.iter().filter_map(head).collect(), trees: OnceLock::new() }
    }

    /// The tree of files that a commit has.
    fn tree_of(&self, commit: &Oid) -> Option<&Oid> {
        let ask = || {
            let found = self.git.trees_of(&self.heads).unwrap_or_default();
            let pairs = self.heads.iter().zip(found);
            pairs.filter_map(|(head, tree)| Some(((*head).clone(), tree?))).collect()
        };
        self.trees.get_or_init(ask).get(commit)
    }
}

impl Looker<'_> {
    fn look(&self, tree: &Tree) -> Look {
        let ground = self.ground(tree);
        let began = SystemTime::now();
        if let Some(ground) = &ground
            && let Some(look) = self.look_without_git(tree, ground, began)
        {
            return look;
        }
        let carried = carried(tree);
        let work = Git::in_tree(&tree.path).and_then(|git| git.work(&carried, ground.is_some()));
        let mark = match (&ground, &work) {
            (Some(ground), Ok(work)) => {
                let mark = || ground.mark(work.ignored());
                marked(ground, work, began, mark)
            }
            _ => None,
        };
        Look::Read(work, mark)
    }

    /// One pass over the files tells whether the tree is as it was, and if not, what git has to be
    /// asked about: in most trees nothing. Nothing if the whole tree must be asked of git.
    fn look_without_git(
        &self,
        tree: &Tree,
        ground: &Ground<'_>,
        began: SystemTime,
    ) -> Option<Look> {
        let marker = ground.surroundings()?;
        let index_file = ground.admin.join("index");
        let (index, mut listing) = match self.memory.remembered(&tree.path) {
            Some(before) => {
                let rule = Rule::Without(&unchanged::names(&before.ignored));
                let listing = Listing::of(ground.root, rule)?;
                if marker.clone().mark(&listing).hash == before.mark {
                    return Some(Look::AsBefore(before.stood.clone()));
                }
                (Index::read(&index_file, ground.head)?, listing)
            }
            None if !ground.settings.plain => return None,
            None => {
                let index = Index::read(&index_file, ground.head)?;
                let listing = Listing::of(ground.root, Rule::Within(&folders(&index)))?;
                (index, listing)
            }
        };
        // What is staged is for git to tell.
        if !ground.settings.plain || index.tree.as_ref() != self.heads.tree_of(ground.head) {
            return None;
        }
        let Differing { mut files, mut names, .. } = Differing::between(&listing, &index)?;
        if listing.has_attributes || ground.settings.has_attributes(ground.common) {
            names.append(&mut files);
        }
        let filters = &ground.settings.filters;
        let asked = Asked { head: ground.head, files, names, filters };
        let git = Git::in_tree(&tree.path).ok()?;
        let work = git.work_of(asked, &carried(tree)).ok()?;
        let complete = || {
            listing.complete(ground.root, &unchanged::names(work.ignored()))?;
            Some(marker.mark(&listing))
        };
        let mark = marked(ground, &work, began, complete);
        Some(Look::Read(Ok(work), mark))
    }

    fn ground<'t>(&'t self, tree: &'t Tree) -> Option<Ground<'t>> {
        let linked = tree.linked.as_ref()?;
        Some(Ground {
            root: &tree.path,
            admin: tree.admin.as_deref()?,
            common: self.common,
            head: linked.head.as_ref()?,
            branch: linked.branch.as_deref(),
            settings: self.settings?.of_tree(&tree.path)?,
        })
    }
}

/// Copies that are as they were carried in.
fn carried(tree: &Tree) -> Vec<String> {
    let admin = tree.admin.as_deref();
    admin.map(|admin| Carried::look(&tree.path, admin)).unwrap_or_default().same
}

/// The mark of what was just read, if nothing can have changed since the reading began.
fn marked(
    ground: &Ground<'_>,
    work: &Work,
    began: SystemTime,
    mark: impl FnOnce() -> Option<Mark>,
) -> Option<String> {
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
    let mark = mark()?;
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
                let commit = commits.next().flatten();
                let dirty = commit.as_ref() != work.head();
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
