//! Looks at what stands in the way of a claim: does its holder live, are its files changed?
//!
//! Owns every look outside the store that a decision about claims needs, made before the lock is
//! taken. What cannot be seen is reported as unknown, never as dead or clean (S11). How files look
//! is in `files`.

use baton_core::calls;
use baton_core::claim::{self, Claim, Holder, Scope};
use baton_core::claims::letting_go::{self, Target};
use baton_core::context::{Actor, ForeignLock, Life, Observed};
use baton_core::id::{ClaimId, SessionId};
use baton_core::refusal::{Held, Refusal};
use baton_core::resource::Resource;
use baton_core::scene::Scene;
use baton_core::sessions::{self, Process, Session};
use baton_core::view::{get, scan};

use crate::failure::Failure;
use crate::handing::work;
use crate::locks;
use crate::process::{Identity, Machine, State};
use crate::workspace::Workspace;

pub mod files;
mod landing;
#[cfg(test)]
mod tests;

/// Saved changes of dead or absent holders live under this.
pub const RESCUE_PREFIX: &str = "refs/baton/rescue";
/// How many claims of one session are looked at.
const CLAIMS_MAX: u32 = 10_000;

pub fn life_of(machine: &Machine, process: &Process) -> Life {
    match machine.state(&identity_of(process), &process.host) {
        State::Alive => Life::Alive,
        State::Dead => Life::Dead,
        State::Unknown => Life::Unknown,
    }
}

pub fn identity_of(process: &Process) -> Identity {
    Identity {
        boot: process.boot.clone(),
        namespace: process.namespace,
        pid: process.pid,
        start: process.start,
    }
}

/// How the holders of run-out claims look; without any, whether branches that have serial zones
/// have landed.
pub fn of_claims(
    workspace: &mut Workspace,
    claims: &[ClaimId],
    observed: &mut Observed,
) -> Result<(), Failure> {
    let mut looks = Vec::with_capacity(claims.len());
    for id in claims {
        let Some((claim, session)) = claim_and_session(workspace, id)? else {
            continue;
        };
        let life = match &session {
            // Nobody acts for it any more: there is nothing to wait for once its time is over.
            Some(session) if session.life != sessions::Life::Live => Life::Dead,
            Some(Session { process: Some(process), .. }) => life_of(&workspace.machine, process),
            _ => Life::Unknown,
        };
        looks.push((claim, life));
    }
    observed.claims.extend(files::sight(workspace, looks)?);
    if claims.is_empty() {
        observed.standing = landing::standing(workspace);
        observed.zones = landing::of_zones(workspace)?;
    }
    Ok(())
}

/// What the holders would leave behind when these claims end; saved before they do. `whose` limits
/// it to the claims of one session, or of one of its subagents.
pub fn left_by(
    workspace: &mut Workspace,
    target: &Target,
    whose: Option<&Actor>,
) -> Result<Observed, Failure> {
    let mut claims: Vec<Claim> =
        workspace.look(&Actor::default(), Observed::default(), |view, context| {
            Ok(match target {
                Target::Claim(id) => get(view, id.as_str())?.into_iter().collect(),
                Target::Session(id) => scan(view, claim::of_session(id, CLAIMS_MAX))?,
                Target::Resources(resources) => Scene::read(view, resources, context)?.claims,
            })
        })?;
    let its_own = |holder: &Holder, actor: &Actor| {
        actor.session.as_ref() == Some(&holder.session)
            && (actor.agent.is_none() || actor.agent == holder.agent)
    };
    claims.retain(|claim| {
        let meant = match target {
            Target::Resources(named) => {
                let mut held = claim.hold.resources.iter();
                held.any(|held| named.iter().any(|named| named.overlaps(held)))
            }
            _ => true,
        };
        meant && whose.is_none_or(|actor| its_own(&claim.hold.holder, actor))
    });
    let looks = claims.into_iter().map(|claim| (claim, Life::Unknown)).collect();
    Ok(Observed { claims: files::sight(workspace, looks)?, ..Observed::default() })
}

fn claim_and_session(
    workspace: &mut Workspace,
    id: &ClaimId,
) -> Result<Option<(Claim, Option<Session>)>, Failure> {
    workspace.look(&Actor::default(), Observed::default(), |view, _| {
        let Some(claim) = get::<Claim>(view, id.as_str())? else {
            return Ok(None);
        };
        let session = get(view, claim.hold.holder.session.as_str())?;
        Ok(Some((claim, session)))
    })
}

/// Looks at those in the way. Whoever is visibly dead is ended, a claim whose work is committed is
/// settled, a waiter that is gone is noted. True when anything changed and asking again may help.
pub fn clear_the_way(
    workspace: &mut Workspace,
    in_the_way: &[Held],
    observed: &mut Observed,
) -> Result<bool, Failure> {
    clear(workspace, in_the_way, observed, settle)
}

/// The same, but a claim whose files are clean stays: whether its holder made them so is asked yet.
pub fn clear_of_the_gone(
    workspace: &mut Workspace,
    in_the_way: &[Held],
    observed: &mut Observed,
) -> Result<bool, Failure> {
    clear(workspace, in_the_way, observed, |_, _| Ok(false))
}

fn clear(
    workspace: &mut Workspace,
    in_the_way: &[Held],
    observed: &mut Observed,
    settle: fn(&mut Workspace, &ClaimId) -> Result<bool, Failure>,
) -> Result<bool, Failure> {
    let mut changed = false;
    let mut seen: Vec<SessionId> = Vec::new();
    for held in in_the_way {
        if held.holder.session.as_str().is_empty() || seen.contains(&held.holder.session) {
            continue;
        }
        changed |= match (&held.claim, held.queued) {
            (_, true) => waiter_gone(workspace, &held.holder, observed)?,
            (Some(claim), false) => {
                let holder = &held.holder.session;
                bury(workspace, holder)? || hang_up(workspace, holder)? || settle(workspace, claim)?
            }
            // Who keeps an interface keeps it while it lives.
            (None, false) if held.interface.is_some() => bury(workspace, &held.holder.session)?,
            (None, false) => false,
        };
        seen.push(held.holder.session.clone());
    }
    Ok(changed)
}

fn waiter_gone(
    workspace: &mut Workspace,
    holder: &Holder,
    observed: &mut Observed,
) -> Result<bool, Failure> {
    use baton_core::view::Query;
    use baton_core::waiting::{self, Waiter};

    let query = Query::equal(waiting::BY_SESSION, holder.session.as_str(), 64);
    let waiters: Vec<Waiter> =
        workspace.look(&Actor::default(), Observed::default(), |view, _| Ok(scan(view, query)?))?;
    let mut changed = false;
    for waiter in waiters {
        let dead = waiter
            .process
            .as_ref()
            .is_some_and(|process| life_of(&workspace.machine, process) == Life::Dead);
        if dead && !observed.waiters_gone.contains(&waiter.waiter) {
            observed.waiters_gone.push(waiter.waiter);
            changed = true;
        }
    }
    Ok(changed)
}

/// Ends a session whose process is visibly gone. True when it was ended.
pub fn bury(workspace: &mut Workspace, session: &SessionId) -> Result<bool, Failure> {
    let record: Option<Session> =
        workspace.look(&Actor::default(), Observed::default(), |view, _| {
            Ok(get(view, session.as_str())?)
        })?;
    let live = record.filter(|record| record.life == sessions::Life::Live);
    let Some(process) = live.and_then(|record| record.process) else {
        return Ok(false);
    };
    if life_of(&workspace.machine, &process) != Life::Dead {
        return Ok(false);
    }
    let claims: Vec<Claim> =
        workspace.look(&Actor::default(), Observed::default(), |view, _| {
            Ok(scan(view, claim::of_session(session, CLAIMS_MAX))?)
        })?;
    let looks = claims.into_iter().map(|claim| (claim, Life::Dead)).collect();
    // What it was working on is saved for whoever comes next, though it said nothing.
    let work = work::of_session(workspace, session)?;
    let claims = files::sight(workspace, looks)?;
    let observed = Observed { claims, work, ..Observed::default() };
    workspace.decide(&Actor::default(), observed, |view, context| {
        sessions::died(view, session, &process, context)
    })
}

/// Ends the tool calls of a session whose own process is visibly gone. True when one was ended.
fn hang_up(workspace: &mut Workspace, session: &SessionId) -> Result<bool, Failure> {
    let record: Option<Session> =
        workspace.look(&Actor::default(), Observed::default(), |view, _| {
            Ok(get(view, session.as_str())?)
        })?;
    let calls = record.map(|record| record.calls).unwrap_or_default();
    let mut ended = false;
    for process in calls.into_iter().filter_map(|call| call.process) {
        if life_of(&workspace.machine, &process) == Life::Dead {
            ended |=
                workspace.decide(&Actor::default(), Observed::default(), |view, context| {
                    calls::died(view, session, &process, context)
                })?;
        }
    }
    Ok(ended)
}

/// Ends a tree claim whose files were changed under it and are clean again.
fn settle(workspace: &mut Workspace, id: &ClaimId) -> Result<bool, Failure> {
    let Some((claim, _)) = claim_and_session(workspace, id)? else {
        return Ok(true);
    };
    if claim.hold.scope != Scope::Tree {
        return Ok(false);
    }
    let tree = claim.hold.tree.clone();
    let settled = files::settled(workspace, &tree, vec![claim], &[])?;
    Ok(end_settled(workspace, &settled)? > 0)
}

/// Ends what this session holds of these files, which it has just committed. Nobody may ask for
/// them for long, and what nobody asks for would pile up.
pub fn settle_own(
    workspace: &mut Workspace,
    session: &SessionId,
    committed: &[Resource],
) -> Result<(), Failure> {
    let tree = workspace.tree.clone();
    let mut claims: Vec<Claim> =
        workspace.look(&Actor::default(), Observed::default(), |view, _| {
            Ok(scan(view, claim::of_session(session, CLAIMS_MAX))?)
        })?;
    let is_committed = |held: &Resource| committed.iter().any(|one| one.overlaps(held));
    claims.retain(|claim| {
        let hold = &claim.hold;
        hold.scope == Scope::Tree && hold.tree == tree && hold.resources.iter().any(is_committed)
    });
    if claims.is_empty() {
        return Ok(());
    }
    let settled = files::settled(workspace, &tree, claims, committed)?;
    end_settled(workspace, &settled).map(drop)
}

/// Ends claims as they were seen, and says how many ended. A holder may have written again after
/// the look and before the end: then it gets its claim back before anyone else is let in.
fn end_settled(workspace: &mut Workspace, seen: &[Claim]) -> Result<usize, Failure> {
    let mut ended = Vec::with_capacity(seen.len());
    for claim in seen {
        let has_ended =
            workspace.decide(&Actor::default(), Observed::default(), |view, context| {
                letting_go::settled(view, claim, context)
            })?;
        if has_ended {
            ended.push(claim);
        }
    }
    let looks = ended.iter().map(|claim| ((*claim).clone(), Life::Alive)).collect();
    let found = files::sight(workspace, looks)?;
    let is_dirty =
        |claim: &&&Claim| found.get(&claim.claim).is_some_and(|one| !one.dirty.is_empty());
    let mut count = ended.len();
    for claim in ended.iter().filter(is_dirty) {
        let back = workspace.decide(&Actor::default(), Observed::default(), |view, context| {
            letting_go::unsettled(view, claim, context)
        })?;
        count -= usize::from(back);
    }
    Ok(count)
}

/// Lock files of other tools beside what is asked for.
pub fn foreign_locks(workspace: &Workspace, resources: &[Resource]) -> Vec<ForeignLock> {
    locks::foreign(&workspace.place.root, resources)
}

/// A refusal that a look around might lift, and whom to look at.
pub fn in_the_way(failure: &Failure) -> Vec<Held> {
    match failure {
        Failure::Refused(Refusal::Held(held)) => vec![(**held).clone()],
        _ => Vec::new(),
    }
}
