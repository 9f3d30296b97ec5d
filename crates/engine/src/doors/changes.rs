//! What changed in a tree while commands ran, and to whose account it goes.
//!
//! Owns the finding and the sorting; what follows from it is done in `after`. How sure a change is
//! depends on its evidence: a state that was written down before is sure, the time of a file is
//! good, and that of a folder only tells that something in it came or went.
//!
//! That a file changed while a command ran does not say that the command changed it: people and
//! their editors, formatters and hooks write too, and tell nobody. So a change of what another
//! holds is laid at an agent's door only
//! - where its command names the file, or a text that the command runs does (`reach`), and not
//!   only to look at it, or
//! - where what it runs cannot be read, and nobody else is known to have done anything meanwhile:
//!   then it is the only writer that anybody knows of.
//!
//! All else has an unknown writer: it is noted, the agent is told, and nobody is accused. A free
//! file becomes the agent's own unless others are at work in the tree and its command, which could
//! be read, does not name it.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use baton_core::check::{Because, Finding, Verdict};
use baton_core::context::{Actor, Observed};
use baton_core::id::SessionId;
use baton_core::resource::Resource;
use baton_core::sessions::{self, Session};
use baton_core::view::{Query, scan};
use baton_core::zones::Rule;

use super::activity::{self, Busy, Line, STEP_MS, Who};
use super::calls;
use super::committed;
use super::edit;
use super::held::Before;
use super::reach::{Reach, Says};
use crate::failure::Failure;
use crate::git::Git;
use crate::place::Place;
use crate::sessions::SeatState;
use crate::workspace::Workspace;

const SESSIONS_MAX: u32 = 1_000;

/// How it is known that a file has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Evidence {
    /// It is not as it was written down before the command.
    State,
    /// It was written since.
    Time,
    /// It is gone, and its folder was written since.
    Folder,
}

#[derive(Clone, Debug)]
pub(super) struct Changed {
    pub(super) resource: Resource,
    pub(super) path: String,
    pub(super) evidence: Evidence,
    /// It is as HEAD has it, or git does not know it.
    clean: bool,
    /// Git ignores it: it counts only where somebody holds it.
    ignored: bool,
}

impl Changed {
    fn new(path: &str, evidence: Evidence, clean: bool) -> Option<Self> {
        let resource = Resource::literal(path).ok()?;
        Some(Self { resource, path: path.to_owned(), evidence, clean, ignored: false })
    }
}

/// The time in which commands of one agent ran in a tree, and what is known of it.
#[derive(Debug)]
pub(super) struct Window {
    pub(super) me: Who,
    /// What hooks saw.
    pub(super) lines: Vec<Line>,
    pub(super) before: Before,
    pub(super) reach: Reach,
    /// Folders that its line moved or took away: the clock of a file does not go with its folder.
    pub(super) moved: Vec<Resource>,
    /// Nobody told the end of its command: its client may not have let it run at all.
    pub(super) unended: bool,
}

/// Everything that has changed since.
fn since(
    workspace: &Workspace,
    before: &Before,
    moved: &[Resource],
) -> Result<Vec<Changed>, Failure> {
    let is_moved = |path: &str| {
        Resource::literal(path).is_ok_and(|path| moved.iter().any(|folder| folder.covers(&path)))
    };
    let root = &workspace.place.root;
    let git = Git::in_tree(root)?;
    let status = git.status(&[String::new()])?;
    let dirty: BTreeSet<&str> = status.paths().into_iter().collect();
    let mut changed = Vec::new();
    for path in dirty.iter().filter(|path| !before.files.contains_key(**path)) {
        let evidence = match written_since(&root.join(path), before.since) {
            Some(true) => Evidence::Time,
            Some(false) if is_moved(path) => Evidence::Time,
            Some(false) => continue,
            None if is_moved(path) || folder_written_since(root, path, before.since) => {
                Evidence::Folder
            }
            None => continue,
        };
        changed.extend(Changed::new(path, evidence, false));
    }
    let other = before.files.iter().filter(|(path, state)| state.has_changed(root, path));
    let (differing, clean): (Vec<_>, Vec<_>) =
        other.partition(|(path, _)| dirty.contains(path.as_str()));
    changed.extend(
        differing.iter().filter_map(|(path, _)| Changed::new(path, Evidence::State, false)),
    );
    if clean.is_empty() {
        return Ok(changed);
    }
    let names: Vec<String> = clean.iter().map(|(path, _)| (*path).clone()).collect();
    let ignored = git.would_ignore(&names)?;
    let is_ignored = |path: &str| {
        ignored.iter().any(|one| *one == path || one.ends_with('/') && path.starts_with(one))
    };
    // Where HEAD has moved, a file that was as the old one had it came along with it.
    let old = committed::head_at(&workspace.place, before.head);
    for (path, state) in clean {
        if is_ignored(path) {
            let found = Changed::new(path, Evidence::State, true);
            changed.extend(found.map(|one| Changed { ignored: true, ..one }));
            continue;
        }
        let moved = match &old {
            Some(old) => state.was(git.content(old.as_str(), path)?.as_deref()),
            None => false,
        };
        if !moved {
            changed.extend(Changed::new(path, Evidence::State, true));
        }
    }
    Ok(changed)
}

/// By the clock of its file system; nothing for a file that is not there.
fn written_since(file: &Path, since: u64) -> Option<bool> {
    let found = std::fs::symlink_metadata(file).ok()?;
    let changed = found.ctime().saturating_mul(1_000) + found.ctime_nsec() / 1_000_000;
    Some(u64::try_from(changed).unwrap_or(0) >= since)
}

fn folder_written_since(root: &Path, path: &str, since: u64) -> bool {
    let file = root.join(path);
    written_since(file.parent().unwrap_or(root), since) == Some(true)
}

/// Who else is at work in this tree.
#[derive(Debug, Default)]
pub(super) struct Unseen {
    /// Nobody hears when these write.
    persons: Vec<SessionId>,
    /// Persons or agents.
    anybody: bool,
}

impl Unseen {
    pub(super) fn look(workspace: &mut Workspace, actor: &Actor) -> Result<Self, Failure> {
        let (machine, tree) = (workspace.machine.clone(), workspace.tree.clone());
        workspace.look(&Actor::default(), Observed::default(), |view, context| {
            let live = Query::equal(sessions::BY_LIFE, "live", SESSIONS_MAX);
            let mut found: Vec<Session> = scan(view, live)?;
            found.retain(|one| {
                one.tree == tree
                    && actor.session.as_ref() != Some(&one.session)
                    && SeatState::of(one, &machine, context.now) == SeatState::Live
            });
            let persons = found.iter().filter(|one| one.person);
            let persons = persons.map(|one| one.session.clone()).collect();
            Ok(Self { persons, anybody: !found.is_empty() })
        })
    }
}

/// To whose account the changes go.
#[derive(Debug, Default)]
pub(super) struct Sorted {
    /// Others held them.
    pub(super) foreign: Vec<Resource>,
    /// Others held them and ran something too, which did not name them either.
    pub(super) holders: Vec<Resource>,
    /// Others held them, and may have written them, or somebody else.
    pub(super) unsure: Vec<Resource>,
    /// The same of persons, whose editors write all the time.
    pub(super) persons: Vec<Resource>,
    /// Left uncommitted by somebody who is gone, and gone now.
    pub(super) lost: Vec<String>,
    pub(super) mine: Vec<Resource>,
    pub(super) free: Vec<Resource>,
    /// Free too, and lines came at their end.
    pub(super) appended: Vec<Resource>,
    /// Free too, and nothing in the command names them while others are at work here.
    pub(super) unclaimed: Vec<Resource>,
    /// For a person, or for whoever claims first.
    pub(super) kept: Vec<Resource>,
    /// Commands of others ran meanwhile.
    pub(super) others_ran: bool,
}

impl Window {
    /// Everything that has changed in it.
    pub(super) fn changed(&self, workspace: &Workspace) -> Result<Vec<Changed>, Failure> {
        since(workspace, &self.before, &self.moved)
    }

    /// When somebody else edited it, as far as that was told.
    pub(super) fn edited_by_others(&self, path: &str) -> Option<u64> {
        self.edit_since(path, self.before.since)
    }

    fn edit_since(&self, path: &str, since: u64) -> Option<u64> {
        activity::last_edit_by_others(&self.lines, &self.me, path).filter(|at| *at >= since)
    }

    /// What others' edits do not explain. An edit explains what it left, not what was written over
    /// it; of a file that is gone it cannot be told when it went.
    pub(super) fn unexplained<'a>(&self, root: &Path, changed: &'a [Changed]) -> Vec<&'a Changed> {
        let written_over = |one: &&Changed| {
            // What was told before the look was in what the look saw; the clock of files is
            // coarser.
            let later = if one.evidence == Evidence::State { STEP_MS } else { 0 };
            self.edit_since(&one.path, self.before.since + later)
                .is_none_or(|at| written_since(&root.join(&one.path), at + STEP_MS) == Some(true))
        };
        changed.iter().filter(written_over).collect()
    }

    /// Did whoever holds it run anything meanwhile?
    pub(super) fn holder_busy(&self, finding: &Finding) -> Busy {
        let Some(held) = finding.held.first() else { return Busy::No };
        let holds = |who: &Who| who.acts_for(&held.holder, &self.me);
        activity::busy_since(&self.lines, holds, self.before.since)
    }

    /// Is nobody else known to have done anything meanwhile?
    pub(super) fn is_alone(&self, unseen: &Unseen) -> bool {
        let since = self.before.since + STEP_MS;
        unseen.persons.is_empty() && !activity::anybody_since(&self.lines, &self.me, since)
    }

    /// Does what its holder ran meanwhile name the file?
    fn is_named_by_holder(&self, place: &Place, finding: &Finding, path: &str) -> bool {
        let Some(held) = finding.held.first() else { return false };
        let holds = |who: &Who| who.acts_for(&held.holder, &self.me);
        let running = activity::calls_since(&self.lines, holds, self.before.since);
        running.iter().any(|(who, call)| {
            let begun = calls::find(place, who, call);
            let line = begun.and_then(|begun| Some((begun.line?, begun.cwd)));
            line.is_some_and(|(line, cwd)| {
                Reach::of(&line, &cwd).says(&place.root, path) == Says::Named
            })
        })
    }

    /// To whose account each of these goes.
    pub(super) fn sort(
        &self,
        place: &Place,
        changed: &[&Changed],
        findings: Vec<Finding>,
        unseen: &Unseen,
    ) -> Result<Sorted, Failure> {
        let root = &place.root;
        let busy = activity::busy_since(&self.lines, |who| *who != self.me, self.before.since);
        let others_ran = busy == Busy::Yes;
        let alone = self.is_alone(unseen);
        let is_its_own = |path: &str| match self.reach.says(root, path) {
            _ if self.unended => false,
            Says::Named => true,
            Says::Unread => alone,
            Says::Nothing => false,
        };
        let mut sorted = Sorted { others_ran, ..Sorted::default() };
        for finding in findings {
            let Some(one) = changed.iter().find(|one| one.resource == finding.resource) else {
                continue;
            };
            let resource = finding.resource.clone();
            let held = finding.held.first().and_then(|held| held.claim.as_ref());
            match finding.because {
                // Whoever holds it now took it meanwhile, or it went nobody knows when.
                Because::Held if !self.before.was_held(held) => {}
                Because::Held if one.evidence == Evidence::Folder => {}
                Because::Held => match self.holder_busy(&finding) {
                    Busy::Yes if self.is_named_by_holder(place, &finding, &one.path) => {}
                    // Its holder's commands may have written it, and nobody can tell.
                    Busy::Yes if self.reach.says(root, &one.path) == Says::Nothing => {
                        sorted.holders.push(resource);
                    }
                    Busy::No if !is_unseen(&finding, unseen) && is_its_own(&one.path) => {
                        sorted.foreign.push(resource);
                    }
                    _ if is_unseen(&finding, unseen) => sorted.persons.push(resource),
                    _ => sorted.unsure.push(resource),
                },
                _ if one.ignored => {}
                // Also of what it holds itself: others add to it at the same time.
                _ if !others_ran
                    && finding.zone == Rule::Append
                    && is_rewritten(root, &one.path)? =>
                {
                    sorted.kept.push(resource);
                }
                Because::Mine => sorted.mine.push(resource),
                Because::Unjudged | Because::GitDir => {}
                _ if others_ran => {}
                _ if one.clean => sorted.lost.push(one.path.clone()),
                // Nobody is accused of what may have been written just before, or by a person; but
                // the clock of files lags behind by a tick, and a script may be quick.
                _ if finding.verdict >= Verdict::Ask => {
                    let file = root.join(&one.path);
                    let since = self.before.since + STEP_MS / 2;
                    if written_since(&file, since) == Some(true) && is_its_own(&one.path) {
                        sorted.kept.push(resource);
                    }
                }
                _ if unseen.anybody && self.reach.says(root, &one.path) == Says::Nothing => {
                    sorted.unclaimed.push(resource);
                }
                _ if finding.zone == Rule::Append => sorted.appended.push(resource),
                _ => sorted.free.push(resource),
            }
        }
        Ok(sorted)
    }
}

/// Did lines change that are committed? What others added since is not known here.
fn is_rewritten(root: &Path, path: &str) -> Result<bool, Failure> {
    let Some(before) = Git::in_tree(root)?.content("HEAD", path)? else { return Ok(false) };
    let after = std::fs::read(root.join(path)).unwrap_or_default();
    let (before, after) = (String::from_utf8_lossy(&before), String::from_utf8_lossy(&after));
    Ok(!edit::keeps(&before, &after))
}

fn is_unseen(finding: &Finding, unseen: &Unseen) -> bool {
    finding.held.first().is_some_and(|held| unseen.persons.contains(&held.holder.session))
}
