//! What a line of a shell would write, as targets that can be judged.
//!
//! Owns the step from places in a line to files: the home folder, patterns wherever they begin, and
//! what is a folder there. Invariant: a write that no target stands for makes the line one that is
//! compared afterwards; one bad target never keeps the others from being judged. Only files are
//! ever claimed from a shell: of a folder or a pattern it is seen afterwards what was written.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use baton_core::check::{Because, Finding, Verdict};
use baton_core::claim::{Claim, Scope};
use baton_core::claims::CLAIM_RESOURCES_MAX;
use baton_core::context::{Actor, Observed};
use baton_core::id::ClaimId;
use baton_core::refusal::Held;
use baton_core::resource::Resource;
use baton_core::shell::{self, Deeds, How, Seen, Write};
use baton_core::view::get;
use baton_core::zones::Rule;

use super::edit::{self, Change, Target};
use super::whereabouts;
use crate::checking;
use crate::failure::Failure;
use crate::git::Git;
use crate::place::{Place, identity};
use crate::policy;
use crate::resources::named;
use crate::workspace::Workspace;

/// Files of a folder that are named when they stand in the way of writing all of it.
const NAMED_MAX: usize = 20;

/// What a line writes, as far as it can be told before it runs.
#[derive(Debug, Default)]
pub(super) struct Aims {
    /// File by file.
    pub(super) files: Vec<Target>,
    /// Folders and patterns of which all is written.
    pub(super) wide: Vec<Target>,
    /// Those of them that are moved or taken away, as paths.
    pub(super) moved: Vec<String>,
    /// Of them only what differs from what git has, if anything is.
    pub(super) restores: bool,
    /// It may write something else: compared afterwards.
    pub(super) compared: bool,
}

/// What a line would write, seen from `cwd`; its doubts are settled by what is there.
pub(super) fn aims(place: &Place, cwd: &Path, deeds: &mut Deeds) -> Aims {
    let from = From { place, cwd };
    deeds.settle(|place| from.look(place));
    let restores = |write: &Write| write.how == How::Restore || !write.below && !is_pattern(write);
    let restores = deeds.writes.iter().all(restores);
    let mut aims = Aims { compared: !deeds.harmless, restores, ..Aims::default() };
    for write in deeds.writes.iter().filter(|write| write.how != How::Folder) {
        from.aim(write, &mut aims);
    }
    aims.compared |= !aims.wide.is_empty() || aims.files.len() > CLAIM_RESOURCES_MAX;
    aims
}

fn is_pattern(write: &Write) -> bool {
    matches!(write.place, shell::Place::Pattern(_) | shell::Place::Unknown)
}

/// Where words of a line begin.
struct From<'a> {
    place: &'a Place,
    cwd: &'a Path,
}

impl From<'_> {
    fn path(&self, place: &shell::Place) -> Option<PathBuf> {
        whereabouts::path_of(self.place, self.cwd, place)
    }

    fn look(&self, place: &shell::Place) -> Option<Seen> {
        // What only the file system can answer is no reason to leave a target out.
        Some(match std::fs::metadata(self.path(place)?) {
            Ok(found) if found.is_dir() => Seen::Folder,
            Ok(_) => Seen::File,
            Err(_) => Seen::Missing,
        })
    }

    fn aim(&self, write: &Write, aims: &mut Aims) {
        let change = match write.how {
            How::Delete | How::DeleteFiles | How::MoveFrom => Change::Away,
            How::Append => Change::Append,
            How::Create | How::MoveTo | How::Copy if !write.below => Change::Over,
            _ => Change::Unknown,
        };
        let slash = if write.below { "/" } else { "" };
        let target = match &write.place {
            shell::Place::Unknown => None,
            shell::Place::Pattern(pattern) => self.pattern(pattern).map(|pattern| {
                let path = format!("{pattern}{slash}");
                Target { path, pattern: true, change }
            }),
            place => {
                let path = match place {
                    shell::Place::Path(path) if !path.starts_with(shell::TEMPORARY) => {
                        Some(path.clone())
                    }
                    other => self.path(other).and_then(|path| path.to_str().map(str::to_owned)),
                };
                // The device files that every shell line writes to.
                if path.as_ref().is_some_and(|path| path.starts_with("/dev/")) {
                    return;
                }
                path.map(|path| Target::file(format!("{}{slash}", trimmed(&path)), change))
            }
        };
        let Some(target) = target else {
            aims.compared = true;
            return;
        };
        let word = target.word();
        match named(self.place, self.cwd, std::slice::from_ref(&word)) {
            Err(Failure::Path(identity::Error::Outside { .. })) => {
                // It may reach into the workspace, or into another tree of it, from above.
                let wide = target.pattern || write.below;
                aims.compared |= wide && self.leads_to_a_tree(&write.place);
            }
            Err(Failure::Path(identity::Error::GitDir { .. })) => {
                if !self.is_of_another_repository(&target.path) {
                    aims.files.push(target);
                }
            }
            Err(_) => aims.compared = true,
            Ok(_) if write.part => aims.compared = true,
            Ok(_) if target.pattern || write.below => {
                aims.moved.extend(self.moves(write, &target));
                aims.wide.push(target);
            }
            // A folder itself is no file.
            Ok(_) if self.look(&write.place) == Some(Seen::Folder) => {}
            Ok(_) => aims.files.push(target),
        }
    }

    /// The folder that a write moves or takes away. One that is moved into keeps its own files.
    fn moves(&self, write: &Write, target: &Target) -> Option<String> {
        let moves = match write.how {
            How::Delete | How::DeleteFiles | How::MoveFrom => true,
            How::MoveTo => self.look(&write.place) == Some(Seen::Missing),
            _ => false,
        };
        (moves && !target.pattern).then(|| target.path.clone())
    }

    /// The pattern as it would be typed in `cwd`.
    fn pattern(&self, pattern: &str) -> Option<String> {
        match pattern.strip_prefix("~/") {
            None => Some(pattern.to_owned()),
            Some(rest) => {
                let home = whereabouts::home()?.into_os_string().into_string().ok()?;
                Some(format!("{}/{rest}", shell::escaped(trimmed(&home))))
            }
        }
    }

    fn leads_to_a_tree(&self, place: &shell::Place) -> bool {
        let folder = self.path(&place.parted().0).and_then(|folder| folder.canonicalize().ok());
        let Some(folder) = folder else { return false };
        let mut roots = self.place.tree_roots().into_iter();
        roots.any(|root| root.starts_with(&folder) || folder.starts_with(&root))
    }

    /// A `.git` that is a folder of its own within the tree, as in what was cloned to be kept: it
    /// is neither this repository's nor a working tree's.
    fn is_of_another_repository(&self, path: &str) -> bool {
        let path = self.cwd.join(path);
        let dot_git = path.ancestors().find(|folder| folder.file_name() == Some(".git".as_ref()));
        let Some(real) = dot_git.and_then(|folder| folder.canonicalize().ok()) else {
            return false;
        };
        let own = self.place.git.iter().flat_map(|git| [&git.git_dir, &git.common_dir]);
        let own = own.chain([&self.place.store]).any(|own| {
            own.canonicalize().is_ok_and(|own| real.starts_with(&own) || own.starts_with(&real))
        });
        real.is_dir() && !own
    }
}

fn trimmed(path: &str) -> &str {
    match path.trim_end_matches('/') {
        "" => path,
        path => path,
    }
}

/// Judges what a line would write, and claims the files of it.
pub(super) fn judge(
    workspace: &mut Workspace,
    actor: &Actor,
    cwd: &Path,
    aims: &Aims,
) -> Result<edit::Judged, Failure> {
    let all: Vec<Target> = aims.files.iter().chain(&aims.wide).cloned().collect();
    edit::judge_after(workspace, actor, cwd, &all, |workspace, actor, judged| {
        look_into_folders(workspace, actor, aims.restores, judged)?;
        if judged.verdict < Verdict::Ask {
            judged.findings.retain(|one| is_file(&one.resource));
            leave_ignored(workspace, judged)?;
            if judged.findings.len() > CLAIM_RESOURCES_MAX {
                judged.findings.clear();
            }
        }
        Ok(())
    })
}

fn is_file(resource: &Resource) -> bool {
    matches!(resource, Resource::Path(pattern) if pattern.is_literal())
}

/// A zone that a folder only reaches into says nothing of what is there: its files do, and of what
/// is restored those that have changed.
fn look_into_folders(
    workspace: &mut Workspace,
    actor: &Actor,
    restores: bool,
    judged: &mut edit::Judged,
) -> Result<(), Failure> {
    let apart = held_in_other_trees(workspace, &judged.findings)?;
    let by_zone = |one: &Finding| {
        let aside = |held: &Held| {
            matches!(held.held, Resource::Name { .. })
                || held.claim.as_ref().is_some_and(|claim| apart.contains(claim))
        };
        let zone = match one.because {
            Because::ClaimFirst | Because::NeedsPerson => true,
            Because::Held => one.held.iter().all(aside),
            _ => false,
        };
        one.verdict >= Verdict::Ask && zone && !is_file(&one.resource)
    };
    if workspace.place.git.is_none() || !judged.findings.iter().any(by_zone) {
        return Ok(());
    }
    let git = Git::in_tree(&workspace.place.root)?;
    let files = match restores {
        true => git.status(&[String::new()])?.paths().into_iter().map(str::to_owned).collect(),
        false => git.list_files()?,
    };
    let policy = policy::in_force(workspace)?.unwrap_or_default();
    let (wide, rest): (Vec<Finding>, Vec<Finding>) =
        std::mem::take(&mut judged.findings).into_iter().partition(by_zone);
    judged.findings = rest;
    let strict = |path: &Resource| {
        policy.rule(path) >= Rule::Require && wide.iter().any(|one| one.resource.covers(path))
    };
    // What is listed as a folder is another repository or tree, with files of its own.
    let files = files.iter().filter(|path| !path.ends_with('/'));
    let files = files.filter_map(|path| Resource::literal(path).ok()).filter(strict);
    let files: Vec<Resource> = files.take(NAMED_MAX).collect();
    if !files.is_empty() {
        judged.findings.extend(checking::judge(workspace, actor, &files, None)?.findings);
    }
    judged.sum_up();
    Ok(())
}

/// Claims on files of other trees alone. They are in the way of a folder only because a zone that
/// reaches into it is one for all trees.
fn held_in_other_trees(
    workspace: &mut Workspace,
    findings: &[Finding],
) -> Result<BTreeSet<ClaimId>, Failure> {
    let wide = findings.iter().filter(|one| !is_file(&one.resource));
    let claims = wide.flat_map(|one| &one.held).filter_map(|held| held.claim.clone());
    let claims: BTreeSet<ClaimId> = claims.collect();
    if claims.is_empty() {
        return Ok(claims);
    }
    let tree = workspace.tree.clone();
    workspace.look(&Actor::default(), Observed::default(), |view, _| {
        let mut apart = BTreeSet::new();
        for id in &claims {
            let claim = get::<Claim>(view, id.as_str())?;
            if claim.is_some_and(|one| one.hold.scope == Scope::Tree && one.hold.tree != tree) {
                apart.insert(id.clone());
            }
        }
        Ok(apart)
    })
}

/// Nobody waits for a file that git does not keep.
fn leave_ignored(workspace: &Workspace, judged: &mut edit::Judged) -> Result<(), Failure> {
    let free = |one: &Finding| !matches!(one.because, Because::Mine | Because::Unjudged);
    let paths = judged.findings.iter().filter(|one| free(one) && one.zone == Rule::Auto);
    let paths: Vec<String> = paths.map(|one| one.resource.to_string()).collect();
    if workspace.place.git.is_none() || paths.is_empty() {
        return Ok(());
    }
    let ignored = Git::in_tree(&workspace.place.root)?.would_ignore(&paths)?;
    judged.findings.retain(|one| !ignored.contains(&one.resource.to_string()));
    Ok(())
}
