//! Looks at what stands in the way of a claim: does its holder live, are its files changed?
//!
//! Owns every look outside the store that a decision about claims needs, made before the lock is
//! taken. What cannot be seen is reported as unknown, never as dead or clean (S11). Changes that
//! a dead or absent holder left are saved under `refs/baton/rescue/` before anyone may overwrite
//! them.

use std::path::{Path, PathBuf};

use baton_core::claim::{self, Claim, Holder, Scope};
use baton_core::claims::letting_go::Target;
use baton_core::context::{Actor, ForeignLock, Life, Observed, Sighting};
use baton_core::id::{ClaimId, SessionId, TreeId};
use baton_core::refusal::{Held, Refusal};
use baton_core::resource::Resource;
use baton_core::scene::Scene;
use baton_core::sessions::{self, Process, Session};
use baton_core::time::{Moment, Span};
use baton_core::view::{get, scan};

use crate::failure::Failure;
use crate::git::Git;
use crate::locks;
use crate::process::{Identity, Machine, State};
use crate::workspace::Workspace;

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

/// How the holders of run-out claims look.
pub fn of_claims(
    workspace: &mut Workspace,
    claims: &[ClaimId],
    observed: &mut Observed,
) -> Result<(), Failure> {
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
        let sighting = sight(workspace, &claim, life)?;
        observed.claims.insert(id.clone(), sighting);
    }
    Ok(())
}

/// What the holders would leave behind when these claims end; saved before they do. `whose` limits
/// it to the claims of one session.
pub fn left_by(
    workspace: &mut Workspace,
    target: &Target,
    whose: Option<&SessionId>,
) -> Result<Observed, Failure> {
    let claims: Vec<Claim> =
        workspace.look(&Actor::default(), Observed::default(), |view, context| {
            Ok(match target {
                Target::Claim(id) => get(view, id.as_str())?.into_iter().collect(),
                Target::Session(id) => scan(view, claim::of_session(id, CLAIMS_MAX))?,
                Target::Resources(resources) => Scene::read(view, resources, context)?.claims,
            })
        })?;
    let mut observed = Observed::default();
    for claim in claims {
        if whose.is_none_or(|session| claim.hold.holder.session == *session) {
            let sighting = sight(workspace, &claim, Life::Unknown)?;
            observed.claims.insert(claim.claim, sighting);
        }
    }
    Ok(observed)
}

/// What a claim's files look like; saved first when their holder may be gone.
pub fn sight(workspace: &mut Workspace, claim: &Claim, life: Life) -> Result<Sighting, Failure> {
    // Asking git costs a process: not for files that nobody touched while they were held.
    let dirty = match untouched(workspace, claim)? {
        true => Vec::new(),
        false => dirty_paths(workspace, claim)?,
    };
    let mut rescue = None;
    if !dirty.is_empty() && life != Life::Alive {
        rescue = save(workspace, claim, &dirty)?;
    }
    let literal = |path: &String| Resource::literal(path).ok();
    Ok(Sighting { life, dirty: dirty.iter().filter_map(literal).collect(), rescue })
}

fn save(workspace: &Workspace, claim: &Claim, dirty: &[String]) -> Result<Option<String>, Failure> {
    let Some(root) = tree_root(workspace, &claim.hold.tree) else {
        return Ok(None);
    };
    let name = format!("{RESCUE_PREFIX}/{}/{}", claim.hold.holder.session, claim.claim);
    let message = format!("Uncommitted changes of {} when its claim ended", claim.hold.holder.name);
    let saved = Git::in_tree(&root)?.rescue(dirty, &name, &message)?;
    Ok(saved.map(|_| name))
}

/// Paths of the claim with uncommitted changes in its tree, as far as git is there to tell.
fn dirty_paths(workspace: &Workspace, claim: &Claim) -> Result<Vec<String>, Failure> {
    let Some(root) = tree_root(workspace, &claim.hold.tree) else {
        return Ok(Vec::new());
    };
    if workspace.place.git.is_none() {
        return Ok(Vec::new());
    }
    // The literal prefix bounds what git looks at; the pattern then decides.
    let mut prefixes = Vec::new();
    for resource in &claim.hold.resources {
        let Resource::Path(pattern) = resource else { continue };
        match pattern.kind() {
            baton_core::pattern::Kind::Glob => prefixes.push(String::new()),
            // The whole tree is asked for with the empty path.
            _ if pattern.text() == "." => prefixes.push(String::new()),
            _ => prefixes.push(pattern.text().to_owned()),
        }
    }
    if prefixes.is_empty() {
        return Ok(Vec::new());
    }
    let dirty = Git::in_tree(&root)?.status_dirty(&prefixes)?;
    let held = |path: &String| {
        Resource::literal(path)
            .is_ok_and(|path| claim.hold.resources.iter().any(|resource| resource.overlaps(&path)))
    };
    Ok(dirty.into_iter().filter(held).collect())
}

/// The folder of a tree, when it is on this machine.
pub(crate) fn tree_root(workspace: &Workspace, tree: &TreeId) -> Option<PathBuf> {
    if *tree == workspace.tree {
        return Some(workspace.place.root.clone());
    }
    workspace.place.trees().into_iter().find_map(|(id, root)| (id == tree.0).then_some(root))
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
    let mut changed = false;
    let mut seen: Vec<SessionId> = Vec::new();
    for held in in_the_way {
        if held.holder.session.as_str().is_empty() || seen.contains(&held.holder.session) {
            continue;
        }
        changed |= match (&held.claim, held.queued) {
            (_, true) => waiter_gone(workspace, &held.holder, observed)?,
            (Some(claim), false) => {
                bury(workspace, &held.holder.session)? || settle(workspace, claim)?
            }
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
    let Some(process) = record.and_then(|record| record.process) else {
        return Ok(false);
    };
    if life_of(&workspace.machine, &process) != Life::Dead {
        return Ok(false);
    }
    let claims: Vec<Claim> =
        workspace.look(&Actor::default(), Observed::default(), |view, _| {
            Ok(scan(view, claim::of_session(session, CLAIMS_MAX))?)
        })?;
    let mut observed = Observed::default();
    for claim in &claims {
        observed.claims.insert(claim.claim.clone(), sight(workspace, claim, Life::Dead)?);
    }
    workspace.decide(&Actor::default(), observed, |view, context| {
        sessions::died(view, session, &process, context)
    })
}

/// Ends a tree claim whose files were changed under it and are clean again.
fn settle(workspace: &mut Workspace, id: &ClaimId) -> Result<bool, Failure> {
    let Some((claim, _)) = claim_and_session(workspace, id)? else {
        return Ok(true);
    };
    if claim.hold.scope != Scope::Tree || !is_settled(workspace, &claim)? {
        return Ok(false);
    }
    workspace.decide(&Actor::default(), Observed::default(), |view, context| {
        baton_core::claims::letting_go::settled(view, id, context)
    })?;
    Ok(true)
}

/// Every path exists, was written after the grant, and has no uncommitted change. A path that was
/// never written may be about to be: its claim stays.
fn is_settled(workspace: &mut Workspace, claim: &Claim) -> Result<bool, Failure> {
    let Some(root) = tree_root(workspace, &claim.hold.tree) else {
        return Ok(false);
    };
    let clock = FileClock::now(workspace)?;
    let written = |resource: &Resource| {
        let path = crate::resources::path_on_disk(&root, resource)?;
        Some(clock.changed_at(&path)? > claim.granted_at)
    };
    let all_written = claim.hold.resources.iter().all(|resource| written(resource) == Some(true));
    Ok(all_written && workspace.place.git.is_some() && dirty_paths(workspace, claim)?.is_empty())
}

/// Surely nothing was written, made or removed under this claim. Only single files can be judged
/// so; a folder or a pattern is asked of git.
fn untouched(workspace: &mut Workspace, claim: &Claim) -> Result<bool, Failure> {
    let Some(root) = tree_root(workspace, &claim.hold.tree) else {
        return Ok(false);
    };
    let clock = FileClock::now(workspace)?;
    let old = |resource: &Resource| match resource {
        Resource::Name { .. } => true,
        Resource::Path(pattern) if !pattern.is_literal() => false,
        Resource::Path(pattern) => {
            let path = root.join(pattern.text());
            // The nearest thing that exists: a removed file changes the folder it was in.
            let nearest = path.ancestors().find_map(|path| clock.changed_at(path));
            nearest.is_some_and(|changed| changed + FILE_TIME_STEP < claim.granted_at)
        }
    };
    Ok(claim.hold.resources.iter().all(old))
}

/// Times of files on the store's clock, which a jump of the wall clock does not move.
struct FileClock {
    store: Moment,
    wall: Moment,
}

/// File systems count time in steps; what changed within this of a grant counts as after it.
const FILE_TIME_STEP: Span = Span::seconds(2);

impl FileClock {
    fn now(workspace: &mut Workspace) -> Result<Self, Failure> {
        let store = workspace.store.snapshot()?.state().now;
        let wall = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let wall = wall.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX));
        Ok(Self { store, wall: Moment(wall) })
    }

    /// When the file last changed, content or attributes.
    fn changed_at(&self, path: &Path) -> Option<Moment> {
        use std::os::unix::fs::MetadataExt;
        let metadata = path.symlink_metadata().ok()?;
        let seconds = metadata.ctime().max(metadata.mtime());
        let changed = Moment(u64::try_from(seconds).unwrap_or(0) * 1_000);
        Some(self.store - self.wall.since(changed))
    }
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
