//! What a sweep through a working tree would destroy, and saving what nobody minds any more.
//!
//! Owns who is at risk where a command resets, cleans or removes a whole tree: whoever works there,
//! and whoever holds something there over uncommitted changes, wherever it sits now. A subagent
//! counts as itself: its session may edit what it holds, and neither that nor a sibling sweeps it
//! away. What the session itself holds is its subagents' to sweep, as to edit. Invariant:
//! uncommitted work of a holder that is gone is under `refs/baton/rescue/` before the sweep may run
//! (S17).

use std::collections::BTreeSet;
use std::path::Path;

use baton_core::claim::{Claim, Holder};
use baton_core::context::{Actor, Life, Observed, Sighting};
use baton_core::resource::Resource;
use baton_core::scene::Scene;
use baton_core::sessions::{self, Session};
use baton_core::shell::Place as Named;
use baton_core::shell::danger::{Danger, Verb};
use baton_core::tree::Tree;
use baton_core::view::get;

use super::whereabouts;
use crate::failure::Failure;
use crate::git::{Changed, Git, Rescue};
use crate::place::identity::resolve;
use crate::resources::meant_path;
use crate::sessions::SeatState;
use crate::sighting::{RESCUE_PREFIX, bury, files, life_of};
use crate::workspace::Workspace;

/// More files that nobody holds are what a build has left, and not a person's work.
const REST_FILES_MAX: usize = 200;

/// What stands in the way of a sweep through one tree, and what was saved before it.
#[derive(Clone, Debug, Default)]
pub(super) struct Risk {
    /// Sessions that work there, or whose uncommitted work is there.
    pub(super) others: Vec<String>,
    /// Those of them whose uncommitted work is there.
    pub(super) unsaved: Vec<String>,
    /// Sessions that ended and may come back to what they hold there.
    pub(super) away: Vec<String>,
    /// Uncommitted work that is safe now.
    pub(super) saved: Vec<Saved>,
}

/// Uncommitted work that was saved before a command that would destroy it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Saved {
    /// Whose it was; nobody where that is not known.
    pub name: Option<String>,
    pub reference: String,
}

impl Risk {
    pub(super) fn is_none(&self) -> bool {
        self.others.is_empty() && self.away.is_empty()
    }
}

/// Who shares the index of this tree: the other live sessions, and for a subagent its siblings that
/// have uncommitted work.
pub(super) fn others(workspace: &mut Workspace, actor: &Actor) -> Result<Vec<String>, Failure> {
    let mut names = sessions_here(workspace, actor)?;
    if actor.agent.is_some() && workspace.place.git.is_some() {
        let mut held = held_here(workspace)?;
        held.retain(|one| is_of_own_subagent(actor, &one.claim.hold.holder) && !one.is_gone());
        let dirty = dirty(workspace, &held)?;
        names.extend(dirty.iter().map(|(one, _)| name_of(&one.claim.hold.holder)));
        names.sort_unstable();
        names.dedup();
    }
    Ok(names)
}

/// The subagents beside the actor that hold some of what a commit names. What git alone reads, and
/// what is not named, may be any file.
pub(super) fn siblings_with(
    workspace: &mut Workspace,
    actor: &Actor,
    cwd: &Path,
    named: &[Named],
) -> Result<Vec<String>, Failure> {
    if actor.agent.is_none() {
        return Ok(Vec::new());
    }
    let place = &workspace.place;
    let meant = |named: &Named| {
        let path = whereabouts::path_of(place, cwd, named)?;
        Some(meant_path(place, cwd, path.to_str()?).here)
    };
    let files: Option<Vec<Vec<Resource>>> = named.iter().map(meant).collect();
    let Some(files) = files.filter(|_| !named.is_empty()) else {
        return others(workspace, actor);
    };
    let named = |held: &Resource| files.iter().flatten().any(|file| file.overlaps(held));
    let mut held = held_here(workspace)?;
    held.retain(|one| {
        let hold = &one.claim.hold;
        let is_theirs = is_of_own_subagent(actor, &hold.holder) && !one.is_gone();
        is_theirs && hold.resources.iter().any(named)
    });
    let names: BTreeSet<String> = held.iter().map(|one| name_of(&one.claim.hold.holder)).collect();
    Ok(names.into_iter().collect())
}

/// Names of the other live sessions in this tree.
fn sessions_here(workspace: &mut Workspace, actor: &Actor) -> Result<Vec<String>, Failure> {
    let tree = workspace.tree.0.clone();
    let seats = crate::sessions::list(workspace, false)?.sessions;
    let here = seats.into_iter().filter(|seat| {
        seat.tree == tree
            && seat.state == SeatState::Live
            && Some(&seat.session) != actor.session.as_ref()
    });
    Ok(here.map(|seat| seat.name).collect())
}

/// Whoever has this tree as its own and lives, wherever it sits: what is committed there and
/// nowhere else is its work too.
fn keeper(workspace: &mut Workspace, actor: &Actor) -> Result<Option<String>, Failure> {
    let resource = Tree::resource(&workspace.tree);
    let machine = workspace.machine.clone();
    workspace.look(&Actor::default(), Observed::default(), |view, context| {
        for claim in Scene::read(view, &[resource], context)?.claims {
            let holder = &claim.hold.holder;
            if Some(&holder.session) == actor.session.as_ref() {
                continue;
            }
            let session = get::<Session>(view, holder.session.as_str())?;
            let lives =
                |one: &Session| SeatState::of(one, &machine, context.now) == SeatState::Live;
            if session.as_ref().is_some_and(lives) {
                return Ok(Some(name_of(holder)));
            }
        }
        Ok(None)
    })
}

/// Does another subagent of the actor's session have it?
fn is_of_own_subagent(actor: &Actor, holder: &Holder) -> bool {
    actor.session.as_ref() == Some(&holder.session)
        && holder.agent.is_some()
        && holder.agent != actor.agent
}

/// Is it the actor's to sweep away?
fn is_the_actors(actor: &Actor, holder: &Holder) -> bool {
    actor.session.as_ref() == Some(&holder.session) && !is_of_own_subagent(actor, holder)
}

fn name_of(holder: &Holder) -> String {
    match &holder.agent {
        Some(agent) => format!("{} (subagent {agent})", holder.name),
        None => holder.name.clone(),
    }
}

/// Who would lose by a sweep through this tree. Changes that are nobody's are saved as well, where
/// it is not the actor's own and where they would be gone for good: what an agent changes it holds,
/// so these are a person's, of whom no hook tells.
pub(super) fn look(
    workspace: &mut Workspace,
    actor: &Actor,
    verb: Verb,
    elsewhere: bool,
) -> Result<Risk, Failure> {
    let mut risk = Risk { others: sessions_here(workspace, actor)?, ..Risk::default() };
    if elsewhere {
        risk.others.extend(keeper(workspace, actor)?);
    }
    if workspace.place.git.is_none() {
        return Ok(risk);
    }
    let held = held_here(workspace)?;
    let (mine, theirs): (Vec<_>, Vec<_>) =
        held.into_iter().partition(|one| is_the_actors(actor, &one.claim.hold.holder));
    for (one, sighting) in dirty(workspace, &theirs)? {
        let holder = &one.claim.hold.holder;
        match sighting.rescue.filter(|_| one.is_gone()) {
            Some(reference) => {
                risk.saved.push(Saved { name: Some(name_of(holder)), reference });
                // Whoever acts lives, however its process looks.
                if actor.session.as_ref() != Some(&holder.session) {
                    bury(workspace, &holder.session)?;
                }
            }
            None if one.ended => risk.away.push(name_of(holder)),
            None => {
                risk.others.push(name_of(holder));
                risk.unsaved.push(name_of(holder));
            }
        }
    }
    for names in [&mut risk.others, &mut risk.unsaved, &mut risk.away] {
        names.sort_unstable();
        names.dedup();
    }
    if elsewhere && risk.is_none() {
        risk.saved.extend(save_rest(workspace, &mine, &theirs, None)?);
    } else if risk.is_none() && matches!(verb, Verb::ResetHard | Verb::Clean | Verb::DiscardAll) {
        // That it could not be saved stops nobody who is alone in a tree.
        let saved = save_rest(workspace, &mine, &theirs, Some(verb));
        risk.saved.extend(saved.ok().flatten());
    }
    Ok(risk)
}

/// Does a sweep stay in folders of which none is the root of a tree? Then it takes what it names,
/// as any other command: what it writes is judged by name. Only what is cleaned away is not named
/// anywhere, so what others hold there counts.
pub(super) fn spares(
    workspace: &mut Workspace,
    actor: &Actor,
    cwd: &Path,
    danger: &Danger,
) -> Result<bool, Failure> {
    if danger.named.is_empty() || danger.verb == Verb::NamedCommit {
        return Ok(false);
    }
    let place = &workspace.place;
    let within = |named: &Named| {
        let path = whereabouts::path_of(place, cwd, named)?;
        let located = resolve(place, cwd, path.as_os_str()).ok()?.into_iter().next_back()?;
        Some(located.path).filter(|path| !path.is_empty())
    };
    let folders: Option<Vec<String>> = danger.named.iter().map(within).collect();
    let Some(folders) = folders else { return Ok(false) };
    if danger.verb != Verb::Clean {
        return Ok(true);
    }
    let folders = folders.iter().flat_map(|folder| Resource::literal(&format!("{folder}/")));
    let folders: Vec<Resource> = folders.collect();
    let held = held_here(workspace)?
        .into_iter()
        .filter(|one| !is_the_actors(actor, &one.claim.hold.holder));
    let mut held = held.flat_map(|one| one.claim.hold.resources);
    Ok(!held.any(|held| folders.iter().any(|folder| folder.overlaps(&held))))
}

/// Those of them that are over uncommitted changes.
fn dirty<'a>(
    workspace: &mut Workspace,
    held: &'a [Held],
) -> Result<Vec<(&'a Held, Sighting)>, Failure> {
    let looks = held.iter().map(|one| (one.claim.clone(), one.life)).collect();
    let mut sightings = files::sight(workspace, looks)?;
    let seen = held.iter().filter_map(|one| Some((one, sightings.remove(&one.claim.claim)?)));
    Ok(seen.filter(|(_, sighting)| !sighting.dirty.is_empty()).collect())
}

/// A claim in this tree, and how its holder looks.
struct Held {
    claim: Claim,
    life: Life,
    /// Its session has ended; the claim waits for its return.
    ended: bool,
    /// The lease still runs.
    live: bool,
}

impl Held {
    /// Nobody comes back to it: its process is gone, or its time is over and nobody is seen.
    fn is_gone(&self) -> bool {
        self.life == Life::Dead && !self.ended || !self.live && self.life != Life::Alive
    }
}

fn held_here(workspace: &mut Workspace) -> Result<Vec<Held>, Failure> {
    let tree = workspace.tree.clone();
    let machine = workspace.machine.clone();
    let Ok(whole) = Resource::literal("./") else { return Ok(Vec::new()) };
    workspace.look(&Actor::default(), Observed::default(), |view, context| {
        let mut held = Vec::new();
        for claim in Scene::read(view, &[whole], context)?.claims {
            if claim.hold.tree != tree {
                continue;
            }
            let session = get::<Session>(view, claim.hold.holder.session.as_str())?;
            let ended = session.as_ref().is_some_and(|one| one.life != sessions::Life::Live);
            let process = session.and_then(|session| session.process);
            let life = match process {
                _ if ended => Life::Dead,
                Some(process) => life_of(&machine, &process),
                None => Life::Unknown,
            };
            let live = claim.is_live(context);
            held.push(Held { claim, life, ended, live });
        }
        Ok(held)
    })
}

/// Changes that neither the actor holds nor anybody whose work was looked at already: all of them,
/// or those that this sweep takes.
fn save_rest(
    workspace: &Workspace,
    mine: &[Held],
    theirs: &[Held],
    verb: Option<Verb>,
) -> Result<Option<Saved>, Failure> {
    let git = Git::in_tree(&workspace.place.root)?;
    let status = git.status(&[String::new()])?;
    let known = |one: &&Changed| {
        let held = || mine.iter().chain(theirs).flat_map(|one| &one.claim.hold.resources);
        Resource::literal(&one.path).is_ok_and(|path| held().any(|held| held.overlaps(&path)))
    };
    // A clean takes what git does not know, and every other sweep the rest.
    let goes = |one: &&Changed| {
        let is_new = one.indexed == Some(None);
        verb.is_none_or(|verb| is_new == (verb == Verb::Clean))
    };
    let changed = status.changed.iter().filter(goes).filter(|one| !known(one));
    let changed: Vec<&Changed> = changed.collect();
    if changed.is_empty() || verb.is_some() && changed.len() > REST_FILES_MAX {
        return Ok(None);
    }
    let reference = format!("{RESCUE_PREFIX}/{}/changes", workspace.tree.0);
    let message = "Uncommitted changes in a tree before a command that overwrites them".to_owned();
    git.rescue(&status, &[Rescue { changed, reference: reference.clone(), message }])?;
    Ok(Some(Saved { name: None, reference }))
}
