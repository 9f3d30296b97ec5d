//! How working trees look: what is dirty, what is landed, who works there.
//!
//! Owns every question about a tree that is asked of git and of the system, and the list of trees.
//! It changes nothing. What cannot be asked is an error, never "clean".

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use baton_core::context::{Actor, Life, Observed};
use baton_core::id::{TaskId, TreeId};
use baton_core::sessions::{self, Session};
use baton_core::tree::{Stage, Tree};
use baton_core::trees::refused::Keep;
use baton_core::trees::{self, Seen, Wish};
use baton_core::view::{Query, scan};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Clone;
use super::carrying::Carried;
use super::processes::Standing;
use crate::failure::Failure;
use crate::git::{Git, Linked, Oid, Status};
use crate::place::TREE_FILE;
use crate::sighting::{bury, life_of};
use crate::workspace::Workspace;

pub(crate) const SESSIONS_MAX: u32 = 100_000;

/// A tree, as git and the store know it.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) id: Option<TreeId>,
    pub(crate) record: Option<Tree>,
    pub(crate) path: PathBuf,
    /// Git's own folder for it; none when git does not know it (any more).
    pub(crate) admin: Option<PathBuf>,
    pub(crate) linked: Option<Linked>,
    pub(crate) main: bool,
}

impl Found {
    pub(crate) fn branch(&self) -> Option<&str> {
        let now = self.linked.as_ref().and_then(|linked| linked.branch.as_deref());
        match &self.linked {
            Some(_) => now,
            None => self.record.as_ref().map(|record| record.branch.as_str()),
        }
    }

    /// The folder is there.
    pub(crate) fn stands(&self) -> bool {
        self.linked.is_some() && self.path.join(".git").exists()
    }
}

/// Every tree of the clone: those git knows, and those that are only written down.
pub(crate) fn all(workspace: &mut Workspace, clone: &Clone) -> Result<Vec<Found>, Failure> {
    let mut records: BTreeMap<String, Tree> =
        clone.records(workspace)?.into_iter().map(|tree| (tree.tree.0.clone(), tree)).collect();
    let mut found = Vec::new();
    for (index, linked) in clone.git.trees()?.into_iter().enumerate() {
        if linked.bare {
            continue;
        }
        let main = index == 0;
        let admin = match main {
            true => Some(clone.dirs.common_dir.clone()),
            false => clone.admin_of(&linked.path, None),
        };
        let id = match main {
            true => workspace.place.workspace.tree.as_ref().map(|id| id.as_str().to_owned()),
            false => admin.as_ref().and_then(|admin| {
                let text = std::fs::read_to_string(admin.join(TREE_FILE)).ok()?;
                Some(text.trim().to_owned())
            }),
        };
        let record = id.as_ref().and_then(|id| records.remove(id));
        let path = linked.path.clone();
        found.push(Found { id: id.map(TreeId), record, path, admin, linked: Some(linked), main });
    }
    found.extend(records.into_values().map(|record| Found {
        id: Some(record.tree.clone()),
        path: PathBuf::from(&record.path),
        record: Some(record),
        admin: None,
        linked: None,
        main: false,
    }));
    Ok(found)
}

/// What is looked at once for many trees.
pub(super) struct Lookout {
    target: Option<(String, Vec<Oid>)>,
    standing: Standing,
}

impl Lookout {
    pub(super) fn new(workspace: &mut Workspace, clone: &Clone) -> Result<Self, Failure> {
        let named = crate::policy::in_force(workspace)?.and_then(|policy| policy.evidence.target);
        Ok(Self { target: clone.git.target(named.as_deref())?, standing: Standing::look() })
    }

    /// How a tree looks now.
    pub(super) fn see(&self, clone: &Clone, tree: &Found) -> Result<Seen, Failure> {
        let (name, tips) = match &self.target {
            Some((name, tips)) => (Some(name.clone()), tips.as_slice()),
            None => (None, &[][..]),
        };
        let mut seen = Seen { main: tree.main, target: name, ..Seen::default() };
        let Some(linked) = &tree.linked else {
            // Only its branch is left; whether that goes is asked of git then.
            seen.landed = true;
            return Ok(seen);
        };
        seen.locked.clone_from(&linked.locked);
        if let Some(tip) = &linked.head {
            seen.unmerged = clone.git.commits_nowhere_else(tip, linked.branch.as_deref())?;
            for target in tips {
                seen.landed = seen.landed || clone.git.is_ancestor(tip, target)?;
            }
        }
        if tree.stands() {
            seen.dirty = dirt(&tree.path, tree.admin.as_deref())?.1;
            seen.submodules = with_own_commits(&tree.path)?;
            seen.unfinished = tree.admin.as_deref().and_then(unfinished);
            seen.processes = self.standing.below(&tree.path);
        }
        Ok(seen)
    }

    fn base<'a>(&'a self, tree: &'a Found) -> Option<Oid> {
        let own = tree.record.as_ref().and_then(|record| Oid::parse(&record.commit));
        self.target.as_ref().and_then(|(_, tips)| tips.first().cloned()).or(own)
    }
}

/// What differs from HEAD, and which of it is somebody's work: copies that are as they were
/// carried in are not, and changed ones are, also where git ignores them.
pub(super) fn dirt(root: &Path, admin: Option<&Path>) -> Result<(Status, Vec<String>), Failure> {
    let git = Git::in_tree(root)?;
    let mut asked = git.submodules()?;
    asked.push(String::new());
    let mut status = git.status(&asked)?;
    let carried = admin.map(|admin| Carried::look(root, admin)).unwrap_or_default();
    status.changed.retain(|changed| !carried.same.contains(&changed.path));
    let mut dirty: Vec<String> = status.paths().into_iter().map(str::to_owned).collect();
    dirty.extend(carried.changed);
    dirty.sort_unstable();
    dirty.dedup();
    Ok((status, dirty))
}

/// The submodules of a linked tree are repositories of its own, which go with it.
pub(super) fn with_own_commits(root: &Path) -> Result<Vec<String>, Failure> {
    let mut found = Vec::new();
    for path in Git::in_tree(root)?.submodules()? {
        if Git::in_tree(&root.join(&path))?.has_own_commits()? {
            found.push(path);
        }
    }
    Ok(found)
}

/// What git is in the middle of.
fn unfinished(admin: &Path) -> Option<String> {
    let signs = [
        ("rebase-merge", "a rebase"),
        ("rebase-apply", "a rebase"),
        ("MERGE_HEAD", "a merge"),
        ("CHERRY_PICK_HEAD", "a cherry-pick"),
        ("REVERT_HEAD", "a revert"),
        ("BISECT_LOG", "a bisection"),
        ("index.lock", "a git command"),
    ];
    let found = signs.iter().find(|(file, _)| admin.join(file).exists());
    found.map(|(_, what)| (*what).to_owned())
}

/// Sessions that are visibly gone do not use a tree any more.
pub(super) fn bury_dead(workspace: &mut Workspace, tree: &TreeId) -> Result<(), Failure> {
    let live: Vec<Session> =
        workspace.look(&Actor::default(), Observed::default(), |view, _| {
            Ok(scan(view, Query::equal(sessions::BY_LIFE, "live", SESSIONS_MAX))?)
        })?;
    let claimed = workspace.look(&Actor::default(), Observed::default(), |view, context| {
        let kept = trees::reasons(view, Some(tree), &Seen::default(), Wish::Collect, context)?;
        Ok(kept
            .into_iter()
            .filter_map(|keep| match keep {
                Keep::Claimed { holder, .. } => Some(holder.session),
                _ => None,
            })
            .collect::<Vec<_>>())
    })?;
    for session in live {
        let there = session.tree == *tree || claimed.contains(&session.session);
        if let Some(process) = session.process.as_ref().filter(|_| there)
            && life_of(&workspace.machine, process) == Life::Dead
        {
            bury(workspace, &session.session)?;
        }
    }
    Ok(())
}

/// The folder of the tree of this name, for whoever asks for it once more: it stands, and no
/// other session that is alive holds it or works there.
pub fn again(
    workspace: &mut Workspace,
    actor: &Actor,
    name: &str,
) -> Result<Option<String>, Failure> {
    let clone = Clone::of(workspace)?;
    let meant = |found: &Found| {
        let made = found.record.as_ref().is_some_and(|record| record.stage == Stage::Made);
        made && found.stands() && found.branch().and_then(trees::leaf_of) == Some(name)
    };
    let Some(found) = all(workspace, &clone)?.into_iter().find(meant) else { return Ok(None) };
    let Some(tree) = &found.id else { return Ok(None) };
    bury_dead(workspace, tree)?;
    let taken = workspace.look(actor, Observed::default(), |view, context| {
        // One's own hold is none, as for whoever removes it.
        let kept = trees::reasons(view, Some(tree), &Seen::default(), Wish::Remove, context)?;
        let live: Vec<Session> = scan(view, Query::equal(sessions::BY_LIFE, "live", SESSIONS_MAX))?;
        // What waits for the return of a session that has ended is in nobody's hands.
        let lives = |id| live.iter().any(|one| one.session == id && context.now < one.expires_at);
        Ok(kept.into_iter().any(|keep| match keep {
            Keep::InUse { .. } => true,
            Keep::Claimed { holder, .. } => lives(holder.session),
            _ => false,
        }))
    })?;
    Ok((!taken).then(|| found.path.to_string_lossy().into_owned()))
}

/// One line of `worktree list`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ListedTree {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<TreeId>,
    pub path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// Who holds it, else who made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Its owner holds it now.
    pub held: bool,
    /// Commits that the base has not, and commits of the base that it has not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ahead: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behind: Option<u64>,
    /// The folder is there.
    pub there: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<u16>,
    /// Baton made it.
    pub made_here: bool,
    /// It is being made, or was when its maker died.
    pub planned: bool,
    pub seen: Seen,
    /// Why it would not be removed.
    pub keep: Vec<Keep>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TreeList {
    pub trees: Vec<ListedTree>,
}

/// Every tree of this clone.
pub fn list(workspace: &mut Workspace, actor: &Actor) -> Result<TreeList, Failure> {
    let clone = Clone::of(workspace)?;
    let lookout = Lookout::new(workspace, &clone)?;
    let mut trees = Vec::new();
    for found in all(workspace, &clone)? {
        let seen = lookout.see(&clone, &found)?;
        let keep = workspace.look(actor, Observed::default(), |view, context| {
            trees::reasons(view, found.id.as_ref(), &seen, Wish::Collect, context)
        })?;
        let holder = keep.iter().find_map(|keep| match keep {
            Keep::Claimed { holder, .. } => Some(holder.name.clone()),
            _ => None,
        });
        let head = found.linked.as_ref().and_then(|linked| linked.head.clone());
        let apart = match (&head, lookout.base(&found)) {
            (Some(head), Some(base)) => Some(clone.git.ahead_behind(head, &base)?),
            _ => None,
        };
        let record = found.record.as_ref();
        trees.push(ListedTree {
            tree: found.id.clone(),
            path: found.path.to_string_lossy().into_owned(),
            branch: found.branch().map(str::to_owned),
            head: head.map(|head| head.to_string()),
            task: record.and_then(|record| record.task.clone()),
            held: holder.is_some(),
            owner: holder.or_else(|| record.map(|record| record.by.name.clone())),
            ahead: apart.map(|(ahead, _)| ahead),
            behind: apart.map(|(_, behind)| behind),
            there: found.main || found.stands(),
            ports: record.map(|record| record.ports.clone()).unwrap_or_default(),
            made_here: record.is_some(),
            planned: record.is_some_and(|record| record.stage == Stage::Planned),
            seen,
            keep,
        });
    }
    Ok(TreeList { trees })
}
