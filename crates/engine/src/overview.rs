//! Everything at one glance: what waits for a person, who is here, who holds and who waits.
//!
//! Owns the collection: each list is one look at the store, and then files and processes are looked
//! at. Nothing here decides or changes anything, not even what has run out.

use baton_core::claim::Claim;
use baton_core::claim::Holder;
use baton_core::context::{Actor, Context, Life, Observed};
use baton_core::gate::{self, Gate};
use baton_core::id::{ClaimId, SessionId};
use baton_core::landing::{self, Landing};
use baton_core::refusal::Refusal;
use baton_core::resource::Resource;
use baton_core::scene::{self, Scene};
use baton_core::time::Moment;
use baton_core::view::{View, get, scan};
use baton_core::waiting::{self, Waiter};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::copies::{self, Info};
use crate::failure::Failure;
use crate::gating;
use crate::listing::{self, ListedClaim};
use crate::sessions::{self, Seat, SeatState};
use crate::sighting::files::sight;
use crate::tasking::showing::{TasksAtAGlance, at_a_glance};
use crate::workspace::Workspace;
use crate::{api, config};

/// So many open gates are shown.
const GATES_SHOWN_MAX: u32 = 200;
/// So many landings in line are shown.
const LANDINGS_SHOWN_MAX: u32 = 200;
/// So many run-out claims are looked at for uncommitted changes: each costs a call of git.
const DIRTY_LOOKED_AT_MAX: usize = 20;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Overview {
    pub now: Moment,
    /// What waits for a person.
    pub matters: Vec<Matter>,
    pub sessions: Vec<Seat>,
    pub claims: Vec<ListedClaim>,
    pub queue: Vec<InQueue>,
    pub tasks: TasksAtAGlance,
    /// Branches that wait to land, in their order.
    pub landings: Vec<Landing>,
    pub store: Info,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "matter", rename_all = "snake_case")]
pub enum Matter {
    /// A gate that only a person decides.
    Gate { gate: Box<Gate> },
    /// `baton.toml` says something else than what is in force.
    PolicyChanged,
    /// `baton.toml` cannot be understood; what is in force stays so.
    PolicyUnreadable { why: String },
    /// A claim past its time, and its files have uncommitted changes.
    LeftDirty { claim: ClaimId, holder: Holder, paths: Vec<Resource>, since: Moment },
    /// The process of a holder is gone.
    HolderDead { session: SessionId, name: String, claims: usize },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InQueue {
    pub holder: Holder,
    pub resources: Vec<Resource>,
    pub priority: u8,
    pub since: Moment,
    pub deadline: Moment,
    /// Who holds it, or is served before.
    pub behind: Vec<Holder>,
}

pub fn overview(workspace: &mut Workspace) -> Result<Overview, Failure> {
    let everything = api::Claims { mine: false, path: None };
    let root = workspace.place.root.clone();
    let claims = listing::claims(workspace, &Actor::default(), &root, &everything)?.claims;
    let seats = sessions::list(workspace, false)?.sessions;
    let waiters = listing::waiters(workspace)?;
    let (now, queue) =
        workspace.look(&Actor::default(), Observed::default(), |view, context| {
            let queue: Result<Vec<_>, Refusal> =
                waiters.iter().map(|waiter| in_queue(view, waiter, context)).collect();
            Ok((context.now, queue?))
        })?;
    let landings = workspace.look(&Actor::default(), Observed::default(), |view, _| {
        Ok(scan(view, landing::all_of(landing::OPEN, LANDINGS_SHOWN_MAX))?)
    })?;
    let mut matters = gate_matters(workspace)?;
    matters.extend(policy_matters(workspace)?);
    matters.extend(dirty_matters(workspace, &claims)?);
    let dead = |seat: &&Seat| seat.state == SeatState::Dead && seat.claims > 0;
    matters.extend(seats.iter().filter(dead).map(|seat| Matter::HolderDead {
        session: seat.session.clone(),
        name: seat.name.clone(),
        claims: seat.claims,
    }));
    let tasks = at_a_glance(workspace)?;
    let store = copies::info(workspace)?;
    Ok(Overview { now, matters, sessions: seats, claims, queue, tasks, landings, store })
}

fn in_queue(view: &dyn View, waiter: &Waiter, context: &Context) -> Result<InQueue, Refusal> {
    // Nobody asks anything here, so nobody is looked at either.
    let mut bystander = context.clone();
    bystander.observed.complete = true;
    let scene = Scene::read(view, &waiter.hold.resources, &bystander)?;
    let judgement = scene.judge(&waiter.hold, &bystander)?;
    let held = judgement.blockers.into_iter().chain(judgement.shortages).map(|held| held.holder);
    let first = waiting::ahead(view, &scene, waiter, &bystander)?;
    let mut behind: Vec<Holder> = Vec::new();
    for holder in held.chain(first.into_iter().map(|(waiter, _)| waiter.hold.holder.clone())) {
        if !behind.contains(&holder) {
            behind.push(holder);
        }
    }
    Ok(InQueue {
        holder: waiter.hold.holder.clone(),
        resources: waiter.hold.resources.clone(),
        priority: waiter.priority,
        since: waiter.queued_at,
        deadline: waiter.deadline,
        behind,
    })
}

/// What only a person decides, oldest first.
fn gate_matters(workspace: &mut Workspace) -> Result<Vec<Matter>, Failure> {
    let open = gating::open(workspace, GATES_SHOWN_MAX)?;
    let human = open.into_iter().filter(|gate| !gate.kind.is_automatic() || needs_trust(gate));
    Ok(human.map(|gate| Matter::Gate { gate: Box::new(gate) }).collect())
}

/// Nobody stands for its command yet.
fn needs_trust(gate: &Gate) -> bool {
    gate.kind == gate::Kind::Command && !gate.trusted
}

fn policy_matters(workspace: &mut Workspace) -> Result<Vec<Matter>, Failure> {
    let written = match config::read(&workspace.place.root) {
        Ok(Some((path, text))) => (path, text),
        Ok(None) => return Ok(Vec::new()),
        Err(failure) => return Ok(vec![unreadable(&failure)]),
    };
    let policy =
        workspace.look(&Actor::default(), Observed::default(), |view, _| scene::policy(view))?;
    let (path, text) = written;
    if policy.source_hash == config::hash(&text) {
        return Ok(Vec::new());
    }
    Ok(match config::compile(&path, &text, Moment::default()) {
        // Other comments are no change that a person must look at.
        Ok(written) if config::meaning(&written) == config::meaning(&policy) => Vec::new(),
        Ok(_) => vec![Matter::PolicyChanged],
        Err(failure) => vec![unreadable(&failure)],
    })
}

fn unreadable(failure: &Failure) -> Matter {
    let why = match failure {
        Failure::Config { line: Some(line), detail, .. } => format!("line {line}: {detail}"),
        Failure::Config { line: None, detail, .. } => detail.clone(),
        other => other.to_string(),
    };
    Matter::PolicyUnreadable { why }
}

fn dirty_matters(
    workspace: &mut Workspace,
    claims: &[ListedClaim],
) -> Result<Vec<Matter>, Failure> {
    let run_out = claims.iter().filter(|claim| claim.run_out).take(DIRTY_LOOKED_AT_MAX);
    let ids: Vec<&ClaimId> = run_out.map(|listed| &listed.claim).collect();
    let claims: Vec<Claim> =
        workspace.look(&Actor::default(), Observed::default(), |view, _| {
            let claims: Result<Vec<Option<Claim>>, _> =
                ids.iter().map(|id| get(view, id.as_str())).collect();
            Ok(claims?.into_iter().flatten().collect())
        })?;
    // Taken for alive, so that looking saves nothing under refs/baton/rescue.
    let looks = claims.iter().map(|claim| (claim.clone(), Life::Alive)).collect();
    let Ok(mut seen) = sight(workspace, looks) else { return Ok(Vec::new()) };
    let mut matters = Vec::new();
    for claim in claims {
        let paths = seen.remove(&claim.claim).map(|sighting| sighting.dirty).unwrap_or_default();
        if !paths.is_empty() {
            let since = claim.expiry(None);
            let (claim, holder) = (claim.claim, claim.hold.holder);
            matters.push(Matter::LeftDirty { claim, holder, paths, since });
        }
    }
    Ok(matters)
}
