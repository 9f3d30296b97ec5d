//! The other working trees of this workspace that are on this machine.
//!
//! Owns the reading of git's list of worktrees. Refuses to spawn git: the list is a folder.

use std::path::PathBuf;

use super::{Place, TREE_FILE, TreeKind};

/// A tree's id and the folder it stands in.
pub(crate) type KnownTree = (String, PathBuf);

impl Place {
    /// The roots of all working trees that stand, used with Baton or not.
    pub(crate) fn tree_roots(&self) -> Vec<PathBuf> {
        let mut roots = vec![self.root.clone()];
        let Some(git) = &self.git else { return roots };
        let main = git.common_dir.parent().filter(|root| root.join(".git") == git.common_dir);
        let linked = std::fs::read_dir(git.common_dir.join("worktrees")).into_iter().flatten();
        let linked = linked.flatten().filter_map(|entry| {
            let file = std::fs::read_to_string(entry.path().join("gitdir")).ok()?;
            PathBuf::from(file.trim_end()).parent().map(PathBuf::from)
        });
        for root in main.map(PathBuf::from).into_iter().chain(linked) {
            if let Ok(root) = root.canonicalize()
                && !roots.contains(&root)
            {
                roots.push(root);
            }
        }
        roots
    }

    /// Every tree that has been used with Baton and still stands.
    pub fn trees(&self) -> Vec<KnownTree> {
        let mut trees: Vec<KnownTree> = Vec::new();
        if let Ok(own) = self.tree_id() {
            trees.push((own.as_str().to_owned(), self.root.clone()));
        }
        let Some(git) = &self.git else {
            return trees;
        };
        if self.tree_kind != TreeKind::Main
            && let (Some(main), Some(root)) = (&self.workspace.tree, git.common_dir.parent())
        {
            trees.push((main.as_str().to_owned(), root.to_owned()));
        }
        let Ok(linked) = std::fs::read_dir(git.common_dir.join("worktrees")) else {
            return trees;
        };
        for entry in linked.flatten() {
            let read = |name: &str| std::fs::read_to_string(entry.path().join(name)).ok();
            let (Some(id), Some(file)) = (read(TREE_FILE), read("gitdir")) else { continue };
            let root = PathBuf::from(file.trim_end()).parent().map(PathBuf::from);
            if let Some(root) = root.filter(|root| root.is_dir()) {
                trees.push((id.trim().to_owned(), root));
            }
        }
        trees
    }
}
