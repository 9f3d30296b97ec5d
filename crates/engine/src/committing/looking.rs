//! What is to be committed, as it looks: the tree, the named paths, and what is wrong with them.
//!
//! Owns every look at the tree before a commit. Whether it may be committed is decided by
//! `baton_core::commits`. Invariant: what lies in another repository or tree is never taken.

use std::collections::BTreeMap;
use std::path::Path;

use baton_core::claim::{self, Claim, Scope};
use baton_core::commits::{PATHS_MAX, Refused, Seen};
use baton_core::context::Observed;
use baton_core::pattern::{self, fold};
use baton_core::refusal::Refusal;
use baton_core::resource::Resource;
use baton_core::view::scan;

use super::indexed::Indexed;
use super::{Job, refuse};
use crate::failure::Failure;
use crate::git::{self, Changed, Oid, Own, nested_repository};
use crate::place::GitDirs;
use crate::place::identity::{Kind, resolve};

const CLAIMS_MAX: u32 = 10_000;
/// What git keeps in a tree's git directory while something is in progress.
const IN_PROGRESS: &[(&str, &str)] = &[
    ("MERGE_HEAD", "merge"),
    ("rebase-merge", "rebase"),
    ("rebase-apply", "rebase"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
];

/// What is in progress in a tree, so that its HEAD and index are not for others to move.
pub(crate) fn in_progress(dirs: &GitDirs) -> Option<&'static str> {
    let at = |name: &str| dirs.git_dir.join(name).exists();
    IN_PROGRESS.iter().find(|(file, _)| at(file)).map(|(_, what)| *what)
}

/// The tree and the named paths, as they are.
#[derive(Debug)]
pub(super) struct Look {
    pub(super) seen: Seen,
    pub(super) head: Option<Oid>,
    pub(super) indexed: Indexed,
}

impl Job<'_> {
    /// The tree and the named paths, as they are.
    pub(super) fn look(
        &mut self,
        dirs: &GitDirs,
        branch: Option<&str>,
        own: &Own,
    ) -> Result<Look, Failure> {
        let mut indexed = Indexed::begin(&dirs.git_dir);
        let mut seen = Seen { named: !self.wanted.paths.is_empty(), ..Seen::default() };
        seen.in_progress = in_progress(dirs);
        seen.checked_out = branch.and_then(|branch| elsewhere(dirs, branch));
        if seen.in_progress.is_some() || seen.checked_out.is_some() {
            return Ok(Look { seen, head: None, indexed });
        }
        let asked = match seen.named {
            true => self.named(&mut seen)?,
            false => self.claimed()?,
        };
        if !seen.elsewhere.is_empty() || asked.is_empty() {
            return Ok(Look { seen, head: None, indexed });
        }
        let prefixes: Vec<String> = asked.iter().map(|(prefix, _)| prefix.clone()).collect();
        let status = self.git.status_without(&prefixes, &own.filters).map_err(not_utf8)?;
        let root = self.workspace.place.root.clone();
        let named = seen.named;
        // A name is taken letter by letter: what differs in case was not named.
        let meant = |path: &str| match Resource::literal(path) {
            Ok(_) if named => asked.iter().any(|(prefix, _)| is_below(path, prefix)),
            Ok(path) => asked.iter().any(|(_, resource)| resource.overlaps(&path)),
            Err(_) => false,
        };
        let mut changed = status.changed;
        changed.retain(|one| meant(&one.path));
        // A repository within this one has its own commits.
        changed.retain(|one| nested_repository(&root, &one.path).is_none());
        seen.changed = changed.iter().map(|one| one.path.clone()).collect();
        let head = match status.head {
            Some(head) => head,
            None => self.git.head()?,
        };
        self.judge_paths(&mut seen, &prefixes, &changed, own)?;
        indexed.learn(&changed);
        Ok(Look { seen, head, indexed })
    }

    /// What is wrong with single paths.
    fn judge_paths(
        &self,
        seen: &mut Seen,
        prefixes: &[String],
        changed: &[Changed],
        own: &Own,
    ) -> Result<(), Failure> {
        let root = &self.workspace.place.root;
        let quiet = |prefix: &&String| !seen.changed.iter().any(|path| is_below(path, prefix));
        let quiet: Vec<String> = prefixes.iter().filter(quiet).cloned().collect();
        if seen.named && !quiet.is_empty() {
            let ignored = self.git.ignored(&quiet).map_err(not_utf8)?;
            let named = |path: &&String| ignored.iter().any(|one| is_below(path, one));
            seen.ignored = quiet.iter().filter(named).cloned().collect();
            let (known, _) = self.git.entries(None, &quiet)?;
            let unknown = known.iter().filter(|entry| entry.blob.is_none());
            let gone = unknown.filter(|entry| root.join(&entry.path).symlink_metadata().is_err());
            seen.missing = gone.map(|entry| entry.path.clone()).collect();
        }
        if seen.changed.len() > PATHS_MAX {
            return Err(Refusal::TooMany { given: seen.changed.len(), max: PATHS_MAX }.into());
        }
        if seen.changed.is_empty() {
            return Ok(());
        }
        let unmerged = changed.iter().filter(|one| one.unmerged);
        seen.unmerged = unmerged.map(|one| one.path.clone()).collect();
        let added = changed.iter().filter(|one| !matches!(one.indexed, Some(Some(_))));
        let added: Vec<&str> = added.map(|one| one.path.as_str()).collect();
        seen.colliding = self.colliding(&added)?;
        seen.filtered = self.git.own_filtered(&seen.changed, &own.filters)?;
        Ok(())
    }

    /// New names that are another's where case does not count.
    fn colliding(&self, added: &[&str]) -> Result<Vec<(String, String)>, Failure> {
        if added.is_empty() {
            return Ok(Vec::new());
        }
        let wanted: BTreeMap<String, &str> = added.iter().map(|path| (fold(path), *path)).collect();
        let mut found = Vec::new();
        let tracked = self.git.tracked()?;
        for known in tracked.iter().map(String::as_str).chain(added.iter().copied()) {
            if let Some(path) = wanted.get(&fold(known)).filter(|path| **path != known) {
                found.push(((*path).to_owned(), known.to_owned()));
            }
        }
        Ok(found)
    }

    /// The named paths: where to look, and what is meant.
    fn named(&self, seen: &mut Seen) -> Result<Vec<(String, Resource)>, Failure> {
        let place = &self.workspace.place;
        let mut asked = Vec::new();
        for word in &self.wanted.paths {
            // Of a link the link itself is committed, which comes first.
            let found = resolve(place, self.cwd, word.as_ref())?.into_iter().next();
            let Some(found) = found else { continue };
            let other = found.tree_root != place.root;
            if other || nested_repository(&place.root, &found.path).is_some() {
                seen.elsewhere.push(found.path);
                continue;
            }
            let folder = found.kind == Kind::Folder || found.path.is_empty();
            let text = if found.path.is_empty() { "." } else { &found.path };
            let slash = if folder { "/" } else { "" };
            let resource = Resource::literal(&format!("{text}{slash}"))
                .map_err(|source| Refusal::BadResource { text: found.path.clone(), source })?;
            asked.push((found.path, resource));
        }
        Ok(asked)
    }

    /// What this session claimed in this tree.
    fn claimed(&mut self) -> Result<Vec<(String, Resource)>, Failure> {
        let session = self.actor.session.clone().ok_or(Refusal::NoSession)?;
        let tree = self.workspace.tree.clone();
        let agent = self.actor.agent.clone();
        let claims: Vec<Claim> =
            self.workspace.look(self.actor, Observed::default(), |view, _| {
                Ok(scan(view, claim::of_session(&session, CLAIMS_MAX))?)
            })?;
        let here = |claim: &&Claim| {
            (claim.hold.tree == tree || claim.hold.scope == Scope::Workspace)
                && (agent.is_none() || claim.hold.holder.agent == agent)
        };
        let held = claims.iter().filter(here).flat_map(|claim| &claim.hold.resources);
        let asked = held.filter_map(|resource| match resource {
            Resource::Name { .. } => None,
            Resource::Path(path) => {
                let whole = path.kind() == pattern::Kind::Glob;
                let whole = whole || path.text() == ".";
                let prefix = if whole { String::new() } else { path.text().to_owned() };
                Some((prefix, resource.clone()))
            }
        });
        Ok(asked.collect())
    }
}

/// Is it this file, or in this folder? The root holds everything.
fn is_below(path: &str, folder: &str) -> bool {
    let folder = folder.trim_end_matches('/');
    let rest = path.strip_prefix(folder);
    folder.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Another tree of this repository that has the branch checked out.
pub(crate) fn elsewhere(dirs: &GitDirs, branch: &str) -> Option<(String, String)> {
    let linked = std::fs::read_dir(dirs.common_dir.join("worktrees")).ok();
    let linked = linked.into_iter().flatten().flatten().map(|entry| entry.path());
    let all = linked.chain([dirs.common_dir.clone()]);
    for git_dir in all.filter(|git_dir| *git_dir != dirs.git_dir) {
        let head = std::fs::read_to_string(git_dir.join("HEAD")).unwrap_or_default();
        if head.trim().strip_prefix("ref: ") != Some(branch) {
            continue;
        }
        let file = std::fs::read_to_string(git_dir.join("gitdir")).ok();
        let tree = match &file {
            Some(file) => Path::new(file.trim_end()).parent(),
            None => git_dir.parent(),
        };
        // A bare repository has a HEAD and no tree that could be left behind.
        let bare = file.is_none() && git_dir.file_name().is_none_or(|name| name != ".git");
        if let Some(tree) = tree.filter(|tree| !bare && tree.is_dir()) {
            let short = branch.trim_start_matches("refs/heads/").to_owned();
            return Some((short, tree.to_string_lossy().into_owned()));
        }
    }
    None
}

fn not_utf8(error: git::Error) -> Failure {
    match error {
        git::Error::NotUtf8 { lossy } => refuse(Refused::NotUtf8 { lossy }),
        other => other.into(),
    }
}
