//! Moving the target, with every tree that has it checked out (LESSONS 34).
//!
//! Owns the order. With a remote: pushed with a lease, read back, and only then believed; the local
//! branch follows if it can. Without one: the files and the index of each tree that stands on the
//! target move first, then the branch by compare-and-swap, so that at no point a landed line shows
//! as a staged reversal. Invariant: what is uncommitted stays as it is; where it overlaps, nothing
//! moves at all (S17).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use baton_core::landing::Cause;
use baton_core::landings::Why;

use crate::committing::lock::{Pull, Turn};
use crate::committing::{looking, may_stop, repair};
use crate::failure::Failure;
use crate::git::{self, Git, Oid};
use crate::place::GitDirs;
use crate::workspace::Workspace;

/// The branch others land on, and where it is.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) name: String,
    /// The remote and its address, when the branch is a remote's.
    pub(super) remote: Option<(String, String)>,
}

/// What came of a move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Moved {
    Done,
    /// It was not where it was seen: somebody else moved it.
    Elsewhere,
    /// Nothing moved, for this reason.
    Blocked(Why),
}

/// A tree that has the target checked out.
pub(super) struct Standing {
    root: PathBuf,
    dirs: GitDirs,
    git: Git,
}

impl Target {
    pub(super) fn reference(&self) -> String {
        format!("refs/heads/{}", self.name)
    }

    /// Where it is now, asked of the remote when it is a remote's.
    pub(super) fn tip(&self, git: &Git) -> Result<Option<Oid>, Failure> {
        let Some((remote, url)) = &self.remote else {
            return Ok(git.branch(&self.name)?);
        };
        match git.fetch(url, remote, &self.name)? {
            true => Ok(git.commit_named(&format!("refs/remotes/{remote}/{}", self.name))?),
            false => Ok(None),
        }
    }

    /// Moves it from one commit to another that has the first in its history.
    pub(super) fn move_to(
        &self,
        workspace: &mut Workspace,
        git: &Git,
        from: &Oid,
        to: &Oid,
    ) -> Result<Moved, Failure> {
        match &self.remote {
            None => self.move_here(workspace, git, from, to),
            Some((remote, url)) => {
                let pushed = git.push(url, &self.name, to, Some(from));
                may_stop(workspace, "land-pushed");
                // Whatever the push said: what the remote has is the truth.
                if !self.has(git, to)? {
                    return match pushed {
                        Ok(()) => Ok(Moved::Elsewhere),
                        Err(error) => self.refused_push(git, url, from, &error),
                    };
                }
                let _ = remote;
                self.follow(workspace, git, to)?;
                Ok(Moved::Done)
            }
        }
    }

    /// Has the target this commit, as seen now?
    pub(super) fn has(&self, git: &Git, commit: &Oid) -> Result<bool, Failure> {
        let Some(tip) = self.tip(git)? else { return Ok(false) };
        Ok(tip == *commit || git.is_ancestor(commit, &tip)?)
    }

    fn refused_push(
        &self,
        git: &Git,
        url: &str,
        from: &Oid,
        error: &git::Error,
    ) -> Result<Moved, Failure> {
        if git.remote_tip(url, &self.name)?.as_ref() != Some(from) {
            return Ok(Moved::Elsewhere);
        }
        let why = format!("the remote refused the push: {error}");
        Ok(Moved::Blocked(Why::new(Cause::Offline, why)))
    }

    /// The local branch of the same name goes along where it can: it has nothing of its own, and
    /// no uncommitted work lies in the way. Otherwise it stays, and `sync` says how far behind.
    fn follow(&self, workspace: &mut Workspace, git: &Git, to: &Oid) -> Result<(), Failure> {
        let Some(local) = git.branch(&self.name)? else { return Ok(()) };
        if local != *to && git.is_ancestor(&local, to)? {
            self.move_here(workspace, git, &local, to)?;
        }
        Ok(())
    }

    /// The trees that have it checked out, what had died half-way in them put in order.
    pub(super) fn standing(
        &self,
        workspace: &mut Workspace,
        git: &Git,
    ) -> Result<Vec<Standing>, Failure> {
        let mut found = Vec::new();
        for tree in git.trees()? {
            if tree.branch.as_deref() != Some(&self.name) || !tree.path.join(".git").exists() {
                continue;
            }
            let git = Git::in_tree(&tree.path)?;
            let (git_dir, common_dir) = git.directories()?;
            let dirs = GitDirs { git_dir, common_dir };
            let turn = Turn::take(&workspace.place.store, &dirs.git_dir)?;
            repair::run_in(workspace, &tree.path, &turn)?;
            found.push(Standing { root: tree.path, dirs, git });
        }
        Ok(found)
    }

    fn move_here(
        &self,
        workspace: &mut Workspace,
        git: &Git,
        from: &Oid,
        to: &Oid,
    ) -> Result<Moved, Failure> {
        let standing = self.standing(workspace, git)?;
        let store = workspace.place.store.clone();
        let turn = |tree: &Standing| Turn::take(&store, &tree.dirs.git_dir);
        let turns: Vec<Turn> = standing.iter().map(turn).collect::<Result<_, _>>()?;
        if git.branch(&self.name)?.as_ref() != Some(from) {
            return Ok(Moved::Elsewhere);
        }
        for tree in &standing {
            if let Some(why) = tree.in_the_way(&self.name, from, to)? {
                return Ok(Moved::Blocked(why));
            }
        }
        let reference = self.reference();
        for (tree, turn) in standing.iter().zip(&turns) {
            let (branch, before) = (reference.clone(), from.clone());
            turn.intend_pull(Pull { branch, before, after: to.clone() })?;
            may_stop(workspace, "land-intended");
            if let Err(error) = tree.git.move_files(from, to) {
                turn.forget()?;
                // Somebody wrote to one of the files after we looked: git saw it.
                return match tree.in_the_way(&self.name, from, to)? {
                    Some(why) => Ok(Moved::Blocked(why)),
                    None => Err(error.into()),
                };
            }
            may_stop(workspace, "land-moved-files");
        }
        let moved = git.move_branch(Some(&reference), to, Some(from), "baton land");
        may_stop(workspace, "land-moved");
        match moved {
            Ok(()) => {
                turns.iter().try_for_each(Turn::forget)?;
                Ok(Moved::Done)
            }
            Err(git::Error::ReferenceMoved { .. }) => {
                for (tree, turn) in standing.iter().zip(&turns) {
                    tree.give_way(from, to)?;
                    turn.forget()?;
                }
                Ok(Moved::Elsewhere)
            }
            Err(error) => Err(error.into()),
        }
    }
}

impl Standing {
    /// Why this tree cannot go along now.
    fn in_the_way(&self, target: &str, from: &Oid, to: &Oid) -> Result<Option<Why>, Failure> {
        if let Some(what) = looking::in_progress(&self.dirs) {
            let root = self.root.display();
            let why = format!("a {what} is in progress in {root}, which is on {target}");
            return Ok(Some(Why::new(Cause::Overlap, why)));
        }
        let incoming = self.git.changed_between(from, to)?;
        let files = self.overlap(from, to, &incoming)?;
        if files.is_empty() {
            return Ok(None);
        }
        let why = overlap_words(&self.root, target, &files);
        Ok(Some(Why { files, ..Why::new(Cause::Overlap, why) }))
    }

    /// A commit was made between the look and the move, and is what counts. If it was made before
    /// the files moved, they go back; if it already has them, they stay: going back would show
    /// what was committed as a reversal.
    fn give_way(&self, from: &Oid, to: &Oid) -> Result<(), Failure> {
        let incoming = self.git.changed_between(from, to)?;
        let Some(head) = self.git.head()? else { return Ok(()) };
        let apart = self.git.changed_between(&head, to)?;
        if incoming.iter().any(|path| apart.contains(path)) {
            // As far as nobody has changed them since.
            let _ = self.git.move_files(to, from);
        }
        Ok(())
    }

    /// Those of the incoming files that are uncommitted here, or not git's at all. What is staged
    /// here just as it comes in is not in the way: a commit that was diverted to its branch.
    pub(super) fn overlap(
        &self,
        head: &Oid,
        to: &Oid,
        incoming: &[String],
    ) -> Result<Vec<String>, Failure> {
        let status = self.git.status(&[String::new()])?;
        let coming: BTreeSet<&str> = incoming.iter().map(String::as_str).collect();
        let mut dirty: BTreeSet<&str> = BTreeSet::new();
        for changed in status.changed.iter().filter(|one| coming.contains(one.path.as_str())) {
            let staged = changed.staged.as_ref().and_then(Option::as_ref).map(|(_, blob)| blob);
            let same = match staged {
                Some(blob) => {
                    self.git.resolve(&format!("{to}:{}", changed.path))?.as_ref() == Some(blob)
                }
                None => false,
            };
            if !same {
                dirty.insert(&changed.path);
            }
        }
        let mut known: BTreeSet<String> = self.git.every_file_of(head)?.into_iter().collect();
        known.extend(
            status.changed.iter().filter(|one| one.staged.is_some()).map(|one| one.path.clone()),
        );
        let here = |path: &str| self.root.join(path).symlink_metadata().is_ok();
        let blocks =
            |path: &&String| dirty.contains(path.as_str()) || !known.contains(*path) && here(path);
        Ok(incoming.iter().filter(blocks).cloned().collect())
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }
}

/// In one sentence, the first files named.
pub(super) fn overlap_words(root: &Path, target: &str, files: &[String]) -> String {
    let shown: Vec<&str> = files.iter().take(5).map(String::as_str).collect();
    let more = files.len().saturating_sub(shown.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let root = root.display();
    format!("uncommitted work in {root}, which is on {target}: {}{more}", shown.join(", "))
}
