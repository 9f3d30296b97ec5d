//! Whether claims allow a branch to land (S4).
//!
//! Owns the judgement. A branch that changes what another session holds everywhere does not land;
//! nor does one that changes what its session lost to another, unless it was put upon what that
//! other has landed since. Invariant: judged in the transaction that puts it in line, and again in
//! the one that moves the target.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Refused;
use crate::claim::{Claim, Hold, Holder, Mode, Scope};
use crate::context::Context;
use crate::id::{ClaimId, SessionId};
use crate::landing::{self, Landing, State};
use crate::refusal::Refusal;
use crate::resource::Resource;
use crate::scene::Scene;
use crate::time::Moment;
use crate::view::{Index, Kind, Query, Record, View, scan};

/// Claims that a session lost to another, by the session.
pub const BY_SESSION: Index = "lost.session";
/// How many lost claims of a session, and landings since, are looked at.
const LOST_MAX: u32 = 1_000;
const LANDINGS_MAX: u32 = 1_000;
/// So many paths are asked about in one read.
const PATHS_AT_ONCE: usize = 200;

/// A claim that ran out and was taken by another session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Lost {
    pub claim: ClaimId,
    pub session: SessionId,
    pub resources: Vec<Resource>,
    pub to: Holder,
    pub at: Moment,
}

impl Record for Lost {
    const KIND: Kind = "lost";

    fn key(&self) -> String {
        self.claim.0.clone()
    }

    fn index_entries(&self) -> Vec<(Index, String)> {
        vec![(BY_SESSION, self.session.0.clone())]
    }
}

pub fn lost_by(session: &SessionId) -> Query {
    Query::equal(BY_SESSION, session.as_str(), LOST_MAX)
}

/// Refuses what claims do not allow. `contains` are the landed commits in the branch's history.
pub fn admit(
    view: &dyn View,
    landing: &Landing,
    contains: &[String],
    context: &Context,
) -> Result<(), Refusal> {
    let resources = resources_of(landing);
    for some in resources.chunks(PATHS_AT_ONCE) {
        held(view, landing, some, context)?;
    }
    if landing.by.is_session() {
        lost(view, landing, &resources, contains)?;
    }
    Ok(())
}

fn resources_of(landing: &Landing) -> Vec<Resource> {
    if landing.paths.is_empty() {
        return Resource::parse("**").into_iter().collect();
    }
    landing.paths.iter().filter_map(|path| Resource::literal(path).ok()).collect()
}

/// Another session holds one of the paths everywhere.
fn held(
    view: &dyn View,
    landing: &Landing,
    resources: &[Resource],
    context: &Context,
) -> Result<(), Refusal> {
    let reader = Context { actor: crate::context::Actor::default(), ..context.clone() };
    let scene = Scene::read(view, resources, &reader)?;
    let hold = Hold {
        holder: landing.by.clone(),
        tree: landing.tree.clone(),
        scope: Scope::Tree,
        mode: Mode::Exclusive,
        resources: resources.to_vec(),
    };
    let same_task = |claim: &Claim| {
        landing.task.is_some()
            && claim.task.as_deref() == landing.task.as_ref().map(|id| id.as_str())
    };
    for claim in scene.claims.iter().filter(|claim| claim.is_live(context)) {
        if claim.hold.scope != Scope::Workspace || same_task(claim) {
            continue;
        }
        if let Some((mine, _)) = scene.clash(&hold, &claim.hold) {
            return Err(Refused::Held {
                branch: landing.branch.clone(),
                path: mine.to_string(),
                by: claim.hold.holder.clone(),
                until: Some(claim.expiry(context.failed_over_at)),
            }
            .into());
        }
    }
    Ok(())
}

/// The session lost one of the paths to another, whose landed work the branch has not.
fn lost(
    view: &dyn View,
    landing: &Landing,
    resources: &[Resource],
    contains: &[String],
) -> Result<(), Refusal> {
    let lost: Vec<Lost> = scan(view, lost_by(&landing.by.session))?;
    let overlapping = |lost: &Lost| {
        let touched = |one: &&Resource| lost.resources.iter().any(|gone| gone.overlaps(one));
        resources.iter().find(touched).cloned()
    };
    let lost: Vec<(Lost, Resource)> =
        lost.into_iter().filter_map(|lost| overlapping(&lost).map(|path| (lost, path))).collect();
    if lost.is_empty() {
        return Ok(());
    }
    let landed: Vec<Landing> = scan(view, landing::all_of(landing::ALL, LANDINGS_MAX))?;
    for (lost, path) in lost {
        let theirs = |other: &&Landing| {
            other.state == State::Landed
                && other.by.session == lost.to.session
                && other.since >= lost.at
                && resources_of(other).iter().any(|one| one.overlaps(&path))
        };
        let has = |other: &&Landing| {
            other.commit.as_ref().is_some_and(|commit| contains.contains(commit))
        };
        if let Some(missing) = landed.iter().filter(theirs).find(|other| !has(other)) {
            return Err(Refused::Lost {
                branch: landing.branch.clone(),
                path: path.to_string(),
                to: lost.to,
                commit: missing.commit.clone(),
            }
            .into());
        }
    }
    Ok(())
}
