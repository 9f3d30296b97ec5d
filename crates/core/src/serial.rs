//! Serial zones: who has one from the first edit until the branch has landed.
//!
//! Owns what outlives the claim: a zone that was taken on a branch other than the target stays
//! bound to that branch and its task, whatever becomes of the claim. It is free when the branch has
//! landed, when nothing of it is left that could land, when the work is abandoned, or when a person
//! says so. Invariant: a branch that cannot be seen from here is never taken for landed (S11).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::claim::{self, Claim, Hold, Holder, Mode, resource_entries};
use crate::context::Context;
use crate::event::Event;
use crate::id::{TaskId, TreeId};
use crate::refusal::{Held, Refusal};
use crate::resource::Resource;
use crate::scene::{Places, Scene};
use crate::task::{State, Task};
use crate::time::Moment;
use crate::view::{Index, Kind, Record, View, get, only, scan};
use crate::zones::{Policy, SERIAL_PREFIX, is_serial_zone};

/// How many zones are looked at; there are fewer in a policy.
const ZONES_MAX: u32 = 1_000;
/// How many tasks and claims of a session are looked at to know what it works on.
const WORK_MAX: u32 = 1_000;
/// Where work lands when the policy does not say.
const TARGETS: [&str; 2] = ["main", "master"];

/// Where a caller stands: a branch, in a clone on some machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Without `refs/heads/`.
    pub branch: String,
    /// Machine and repository.
    pub clone: String,
}

/// Whether somebody has looked where the caller stands. Looked at only when a serial zone is
/// concerned: most edits touch none, and need not read git's files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Whereabouts {
    #[default]
    Unseen,
    /// No branch, or no git.
    Nowhere,
    On(Standing),
}

impl Whereabouts {
    /// Where the caller stands, or the request to look.
    fn seen(context: &Context) -> Result<Option<&Standing>, Refusal> {
        match &context.observed.standing {
            Self::On(standing) => Ok(Some(standing)),
            Self::Unseen if !context.observed.complete => {
                Err(Refusal::Unobserved { claims: Vec::new() })
            }
            Self::Unseen | Self::Nowhere => Ok(None),
        }
    }
}

/// A zone that is bound to a branch until that has landed. It may be bound to several: who goes on
/// with the work on a branch of their own does not make the first one land.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ZoneHold {
    /// The zone, by its name.
    pub zone: Resource,
    #[serde(flatten)]
    pub holder: Holder,
    pub tree: TreeId,
    /// Machine and repository: only there it can be seen whether the branch has landed.
    pub clone: String,
    pub branch: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    pub since: Moment,
}

impl Record for ZoneHold {
    const KIND: Kind = "zone_hold";

    fn key(&self) -> String {
        key(&self.zone, &self.clone, &self.branch)
    }

    /// Beside the claims, where every look for a serial zone comes by: no look needs a further one.
    fn index_entries(&self) -> Vec<(Index, String)> {
        resource_entries(claim::BY_RESOURCE, std::slice::from_ref(&self.zone))
    }
}

/// The key of one bond: what is on one branch does not speak for another.
pub(crate) fn key(zone: &Resource, clone: &str, branch: &str) -> String {
    format!("{}\n{clone}\n{branch}", zone.index_value())
}

/// Why a zone is free again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum EndOfZone {
    /// The queue says so.
    Landed,
    /// Nothing of the branch is left that has not landed.
    NothingLeft,
    /// Its task is cancelled, or has failed.
    Abandoned,
    Revoked {
        why: String,
    },
}

/// What a refusal says of a zone that waits for a landing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unlanded {
    pub branch: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
}

/// Every zone that is bound to a branch.
pub fn all(view: &dyn View) -> Result<Vec<ZoneHold>, Refusal> {
    let from = format!("@{SERIAL_PREFIX}");
    Ok(scan(view, Places::below(claim::BY_RESOURCE, &from, ZONES_MAX))?)
}

/// What the zones in a hold find in their way, and which bonds are over.
#[derive(Clone, Debug, Default)]
pub(crate) struct Found {
    pub(crate) held: Vec<Held>,
    pub(crate) over: Vec<(ZoneHold, EndOfZone)>,
}

/// Judges the zones that `hold` reaches into. Nothing is read unless one of them is bound to
/// somebody else's branch.
pub(crate) fn judge(
    view: &dyn View,
    scene: &Scene,
    hold: &Hold,
    context: &Context,
) -> Result<Found, Refusal> {
    let mut found = Found::default();
    let mut unseen = false;
    for bound in &scene.zones {
        let zone =
            hold.resources.iter().find(|one| is_serial_zone(one) && one.overlaps(&bound.zone));
        let Some(zone) = zone else { continue };
        if bound.holder.session == hold.holder.session || bound.is_where(context)? {
            continue;
        }
        let task = match &bound.task {
            Some(task) => get::<Task>(view, task.as_str())?,
            None => None,
        };
        let owner = task.as_ref().and_then(Task::owner);
        if owner.is_some_and(|owner| owner.session == hold.holder.session) {
            continue;
        }
        let abandoned = |task: &Task| matches!(task.state(), State::Cancelled | State::Failed);
        if task.as_ref().is_some_and(abandoned) {
            found.over.push((bound.clone(), EndOfZone::Abandoned));
            continue;
        }
        match context.observed.zones.get(&bound.key()) {
            Some(false) => found.over.push((bound.clone(), EndOfZone::NothingLeft)),
            None if !context.observed.complete => unseen = true,
            Some(true) | None => {
                found.held.push(bound.held(scene.asked_for(hold, zone)));
            }
        }
    }
    match unseen && found.held.is_empty() {
        true => Err(Refusal::Unobserved { claims: Vec::new() }),
        false => Ok(found),
    }
}

impl ZoneHold {
    fn is_where(&self, context: &Context) -> Result<bool, Refusal> {
        let standing = Whereabouts::seen(context)?;
        Ok(standing.is_some_and(|here| here.branch == self.branch && here.clone == self.clone))
    }

    fn held(&self, asked: &Resource) -> Held {
        let unlanded = Unlanded { branch: self.branch.clone(), task: self.task.clone() };
        let (zone, holder) = (self.zone.clone(), self.holder.clone());
        Held { unlanded: Some(unlanded), ..Held::new(asked.clone(), zone, holder, self.since) }
    }

    /// The zone is free.
    pub fn ends(&self, why: EndOfZone) -> Event {
        let (zone, clone, branch) = (self.zone.clone(), self.clone.clone(), self.branch.clone());
        Event::ZoneFreed { zone, clone, branch, why }
    }
}

/// Binds the zones of a claim that was just granted to the branch it was taken on. On the target
/// itself, or without git, a zone is held by its claim alone.
pub(crate) fn bind(
    view: &dyn View,
    scene: &Scene,
    claim: &Claim,
    context: &Context,
) -> Result<Vec<Event>, Refusal> {
    let zones: Vec<&Resource> =
        claim.hold.resources.iter().filter(|one| is_serial_zone(one)).collect();
    if zones.is_empty() || claim.hold.mode == Mode::Shared {
        return Ok(Vec::new());
    }
    let here = Whereabouts::seen(context)?;
    let Some(here) = here.filter(|here| !is_target(&scene.policy, &here.branch)) else {
        return Ok(Vec::new());
    };
    let task = task_of(view, claim, context)?;
    let bound = zones.into_iter().map(|zone| ZoneHold {
        zone: zone.clone(),
        holder: claim.hold.holder.clone(),
        tree: claim.hold.tree.clone(),
        clone: here.clone.clone(),
        branch: here.branch.clone(),
        task: task.clone(),
        since: claim.granted_at,
    });
    Ok(bound.map(|hold| Event::ZoneHeld { hold }).collect())
}

fn is_target(policy: &Policy, branch: &str) -> bool {
    match &policy.evidence.target {
        Some(target) => target == branch,
        None => TARGETS.contains(&branch),
    }
}

/// What the claim is for: what it names, else the one task its holder has.
fn task_of(view: &dyn View, claim: &Claim, context: &Context) -> Result<Option<TaskId>, Refusal> {
    if let Some(named) = claim.task.as_deref().and_then(TaskId::parse) {
        return Ok(Some(named));
    }
    let session = &claim.hold.holder.session;
    let rows = view.read(&[claim::of_session(session, WORK_MAX)])?;
    let tasks: Vec<Task> = only(rows.first().map(Vec::as_slice).unwrap_or_default())?;
    let owned = |task: &&Task| {
        task.owner().is_some_and(|owner| owner.session == *session && owner.is_live(context))
    };
    let mut owned = tasks.iter().filter(owned);
    let first = owned.next().map(|task| task.task.clone());
    Ok(first.filter(|_| owned.next().is_none()))
}

/// A branch has landed: the zones that were bound to it are free. For whoever lands it, in the same
/// decision.
pub fn landed(view: &dyn View, branch: &str) -> Result<Vec<Event>, Refusal> {
    let bound = all(view)?;
    let ours = bound.iter().filter(|hold| hold.branch == branch);
    Ok(ours.map(|hold| hold.ends(EndOfZone::Landed)).collect())
}

/// The bonds of the zones among these resources: they outlive the claim that is let go.
pub(crate) fn bonds(view: &dyn View, gone: &[Resource]) -> Result<Vec<ZoneHold>, Refusal> {
    if !gone.iter().any(is_serial_zone) {
        return Ok(Vec::new());
    }
    let mut bound = all(view)?;
    bound.retain(|bond| gone.contains(&bond.zone));
    Ok(bound)
}

/// The bonds of zones that these resources reach into, for whoever asks for or takes them away.
pub(crate) fn reached(scene: &Scene, resources: &[Resource]) -> Vec<ZoneHold> {
    let zones: Vec<Resource> =
        resources.iter().flat_map(|one| scene.policy.serial_zones(one)).collect();
    let meant = |bound: &&ZoneHold| {
        zones
            .iter()
            .chain(resources)
            .any(|zone| matches!(zone, Resource::Name { .. }) && zone.overlaps(&bound.zone))
    };
    scene.zones.iter().filter(meant).cloned().collect()
}
