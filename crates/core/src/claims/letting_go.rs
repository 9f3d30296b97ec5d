//! How claims are renewed, released, asked for and taken away.
//!
//! Every way a claim can end goes through `Claim::ends`, so each leaves the same trail and wakes
//! whoever waits (the engine signals news after every commit).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::granting::{Terms, changed, grant, notice, notice_to, settle};
use super::{REASON_BYTES_MAX, obstacles};
use crate::claim::{self, Claim, Holder};
use crate::context::{Actor, Context};
use crate::event::{EndOfClaim, Event, Renewal};
use crate::id::{ClaimId, SessionId, Token};
use crate::interfaces;
use crate::notices::{News, Notice};
use crate::refusal::{Held, Refusal};
use crate::resource::Resource;
use crate::scene::{Caller, Scene};
use crate::serial::{self, EndOfZone, ZoneHold};
use crate::sessions::{Life, Session};
use crate::time::Moment;
use crate::view::{View, get, scan};
use crate::waiting::Waiter;
use crate::zones::{Policy, is_serial_zone};

/// The most claims one release or renewal touches.
const CLAIMS_AT_ONCE_MAX: u32 = 100_000;

/// Which of the caller's claims are meant.
#[derive(Clone, Debug, Serialize)]
pub enum Which {
    All,
    Resources(Vec<Resource>),
}

impl Which {
    /// Is this resource meant? A name means all of it, whatever the amount.
    fn names(&self, held: &Resource) -> bool {
        match self {
            Self::All => true,
            Self::Resources(named) => named.iter().any(|name| match name {
                Resource::Path(_) => name.covers(held),
                Resource::Name { .. } => name.overlaps(held),
            }),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Released {
    pub released: Vec<Resource>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Serial zones that stay with a branch until that has landed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub zones: Vec<ZoneHold>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<Notice>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Renewed {
    pub renewed: Vec<Kept>,
    /// Leases that had run out and could not be taken anew.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_renewed: Vec<NotKept>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<Notice>,
}

/// A claim after renewal. The token is new when the lease had run out and nobody had taken it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Kept {
    pub claim: ClaimId,
    pub token: Token,
    pub resources: Vec<Resource>,
    pub expires_at: Moment,
    pub new_token: bool,
}

/// A claim that had run out and is not given back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NotKept {
    pub claim: ClaimId,
    pub resources: Vec<Resource>,
    /// What is in the way; nothing when there is simply less of it now than it had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<Held>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Asked {
    /// Everyone who will be told at their next act.
    pub asked: Vec<Holder>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<Notice>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Revoked {
    pub revoked: Vec<RevokedClaim>,
    /// Serial zones that wait for a landing no longer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub zones: Vec<ZoneHold>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RevokedClaim {
    pub claim: ClaimId,
    pub holder: Holder,
    pub resources: Vec<Resource>,
}

/// Lets go of what is named: a named folder or pattern also lets go of everything held within it.
pub fn release(
    view: &dyn View,
    which: &Which,
    commit: Option<&str>,
    token: Option<Token>,
    context: &Context,
) -> Result<(Vec<Event>, Released), Refusal> {
    let Own { caller, policy, mut claims, other } = own_claims(view, which, context)?;
    fence(&claims, token)?;
    let at_work = |claim: &Claim| {
        let agent = claim.hold.holder.agent.as_ref().filter(|_| claim.is_live(context));
        agent.filter(|_| context.actor.agent.is_none()).cloned()
    };
    // A shell does not tell which subagent uses it: a session that lets go of what one of them is
    // at work on would let its siblings in. It has those when they have stopped.
    if let Which::Resources(_) = which
        && let Some((claim, agent)) = claims.iter().find_map(|one| Some((one, at_work(one)?)))
    {
        let resource = claim.hold.resources.iter().find(|held| which.names(held));
        let resource = resource.map(Resource::to_string).unwrap_or_default();
        return Err(Refusal::OfSubagent { resource, agent });
    }
    claims.retain(|claim| at_work(claim).is_none());
    let mut events = Vec::new();
    let (mut released, mut zones) = (Vec::new(), Vec::new());
    for claim in &claims {
        let (gone, kept) = part(claim, which, &policy);
        if gone.is_empty() {
            continue;
        }
        let bonds = serial::bonds(view, &gone)?;
        // Where everything is let go, a zone that stays with its branch is not told as let go.
        let stays = |held: &Resource| {
            matches!(which, Which::All) && bonds.iter().any(|bond| bond.zone.overlaps(held))
        };
        let shown = |held: &&Resource| !is_serial_zone(held) || which.names(held) && !stays(held);
        released.extend(gone.iter().filter(shown).cloned());
        zones.extend(bonds);
        events.push(match kept.is_empty() {
            false => claim.narrows(kept, gone, context),
            true => {
                let commit = commit.map(str::to_owned);
                claim.ends(EndOfClaim::Released { commit }, context)
            }
        });
    }
    if let (Which::Resources(named), true) = (which, released.is_empty()) {
        let resource = named.first().map(Resource::to_string).unwrap_or_default();
        return Err(Refusal::NotHeld { resource, holder: other });
    }
    let changed = changed(&events);
    events.extend(caller.activity(context, &changed.iter().collect::<Vec<_>>()));
    let commit = commit.map(str::to_owned);
    Ok((events, Released { released, commit, zones, notices: caller.notices }))
}

/// What of a claim is let go, and what is kept. The name of a serial zone goes with the last of
/// its paths, and never before: who keeps a path of the zone keeps the zone.
fn part(claim: &Claim, which: &Which, policy: &Policy) -> (Vec<Resource>, Vec<Resource>) {
    let held = claim.hold.resources.iter().cloned();
    let (zones, plain): (Vec<Resource>, Vec<Resource>) = held.partition(is_serial_zone);
    let (mut gone, mut kept): (Vec<Resource>, Vec<Resource>) =
        plain.into_iter().partition(|held| which.names(held));
    let belongs = |zone: &Resource, paths: &[Resource]| {
        let mut zones = paths.iter().flat_map(|path| policy.serial_zones(path));
        zones.any(|one| one.overlaps(zone))
    };
    let nothing_else = kept.is_empty() && !gone.is_empty();
    let (zones_gone, zones_kept): (Vec<Resource>, Vec<Resource>) =
        zones.into_iter().partition(|zone| {
            let all_gone = which.names(zone) || belongs(zone, &gone) || nothing_else;
            all_gone && !belongs(zone, &kept)
        });
    gone.extend(zones_gone);
    kept.extend(zones_kept);
    (gone, kept)
}

/// Renews leases. One that had run out is taken anew, if nobody else has it.
pub fn renew(
    view: &dyn View,
    which: &Which,
    token: Option<Token>,
    context: &Context,
) -> Result<(Vec<Event>, Renewed), Refusal> {
    let Own { caller, claims: own, other, .. } = own_claims(view, which, context)?;
    fence(&own, token)?;
    if own.is_empty() {
        let resource = match which {
            Which::Resources(named) => named.first().map(Resource::to_string),
            Which::All => None,
        };
        let resource = resource.unwrap_or_else(|| "anything".into());
        return Err(Refusal::NotHeld { resource, holder: other });
    }
    let now = context.now;
    let (timely, late): (Vec<&Claim>, Vec<&Claim>) =
        own.iter().partition(|claim| claim.is_live(context));
    let mut events = Vec::new();
    let (mut renewed, not_renewed) = take_anew(view, &late, &mut events, context)?;
    let claims: Vec<Renewal> =
        timely.iter().map(|claim| claim.renewal(claim.ttl, context)).collect();
    renewed.extend(timely.iter().zip(&claims).map(|(claim, renewal)| Kept {
        claim: claim.claim.clone(),
        token: claim.token,
        resources: claim.hold.resources.clone(),
        expires_at: renewal.expires_at,
        new_token: false,
    }));
    if let (true, Some(NotKept { held: Some(held), .. })) =
        (renewed.is_empty(), not_renewed.first())
    {
        return Err(Refusal::Held(Box::new(held.clone())));
    }
    if !claims.is_empty() {
        events.push(Event::ClaimsRenewed { claims, at: now });
    }
    let touched: Vec<&ClaimId> = own.iter().map(|claim| &claim.claim).collect();
    events.extend(caller.activity(context, &touched));
    Ok((events, Renewed { renewed, not_renewed, notices: caller.notices }))
}

/// Claims that had run out, each again under a new token where nothing is in the way. The scene
/// follows along, so that what one of them gets is not given to the next as well.
fn take_anew(
    view: &dyn View,
    late: &[&Claim],
    events: &mut Vec<Event>,
    context: &Context,
) -> Result<(Vec<Kept>, Vec<NotKept>), Refusal> {
    let (mut kept, mut not_kept) = (Vec::new(), Vec::new());
    if late.is_empty() {
        return Ok((kept, not_kept));
    }
    let resources: Vec<Resource> =
        late.iter().flat_map(|claim| claim.hold.resources.iter().cloned()).collect();
    let mut scene = Scene::read(view, &resources, context)?;
    for claim in late {
        // It may have gone into another one that was just taken anew.
        let Some(claim) = scene.claims.iter().find(|one| one.claim == claim.claim).cloned() else {
            continue;
        };
        let hold = settle(&scene.policy, claim.hold.clone());
        let judgement = scene.judge(&hold, context)?;
        let me = Waiter::newcomer(hold.clone(), context);
        let obstacles = obstacles(view, &scene, &me, &judgement, context)?;
        if !obstacles.held.is_empty() || !judgement.scarce.is_empty() {
            not_kept.push(NotKept {
                claim: claim.claim,
                resources: claim.hold.resources,
                held: obstacles.held.into_iter().next(),
            });
            continue;
        }
        let before = events.len();
        let terms = Terms { ttl: claim.ttl, reason: &claim.reason, task: &claim.task };
        let new = grant(&scene, hold, &terms, &judgement.run_out, events, context);
        kept.push(Kept {
            claim: new.claim.clone(),
            token: new.token,
            resources: new.hold.resources.clone(),
            expires_at: new.expires_at,
            new_token: true,
        });
        scene.follow(&events[before..]);
    }
    Ok((kept, not_kept))
}

/// The caller and those of its claims that are meant, run out or not.
struct Own {
    caller: Caller,
    policy: Policy,
    claims: Vec<Claim>,
    /// Who else has what was named.
    other: Option<Holder>,
}

fn own_claims(view: &dyn View, which: &Which, context: &Context) -> Result<Own, Refusal> {
    let (caller, policy, mut claims) = match which {
        Which::All => {
            let caller = Caller::read(view, context)?;
            let query = claim::of_session(&caller.session.session, CLAIMS_AT_ONCE_MAX);
            (caller, Policy::default(), scan(view, query)?)
        }
        Which::Resources(named) => {
            if named.is_empty() {
                return Err(Refusal::Empty);
            }
            let scene = Scene::read(view, named, context)?;
            (scene.caller.ok_or(Refusal::NoSession)?, scene.policy, scene.claims)
        }
    };
    let session = &caller.session.session;
    let agent = &context.actor.agent;
    claims.retain(|claim: &Claim| claim.hold.resources.iter().any(|held| which.names(held)));
    // A subagent lets go of its own only; the session itself, of everything it has.
    let is_own = |claim: &Claim| {
        claim.hold.holder.session == *session
            && (agent.is_none() || claim.hold.holder.agent == *agent)
    };
    let (claims, others): (Vec<Claim>, Vec<Claim>) = claims.into_iter().partition(is_own);
    let other = others.into_iter().find(|claim| claim.is_live(context));
    Ok(Own { caller, policy, claims, other: other.map(|claim| claim.hold.holder) })
}

/// A token that is shown must be the token of a claim that is meant (S4).
fn fence(own: &[Claim], token: Option<Token>) -> Result<(), Refusal> {
    match token {
        Some(given) if !own.iter().any(|claim| claim.token == given) => {
            let current = own.iter().map(|claim| claim.token).max();
            Err(Refusal::StaleToken { given, current })
        }
        _ => Ok(()),
    }
}

/// Tells every holder of `resource` at its next act that somebody asks for it.
pub fn ask(
    view: &dyn View,
    resources: &[Resource],
    why: &str,
    context: &Context,
) -> Result<(Vec<Event>, Asked), Refusal> {
    if resources.is_empty() {
        return Err(Refusal::Empty);
    }
    if why.len() > REASON_BYTES_MAX {
        return Err(Refusal::TooLong { what: "reason", bytes_max: REASON_BYTES_MAX });
    }
    let scene = Scene::read(view, resources, context)?;
    let caller = scene.caller.as_ref().ok_or(Refusal::NoSession)?;
    let by = caller.holder(context);
    let mut events = Vec::new();
    let mut asked: Vec<Holder> = Vec::new();
    for claim in &scene.claims {
        let wanted = overlapping(claim, resources);
        let holder = &claim.hold.holder;
        if wanted.is_empty() || !by.competes_with(holder) {
            continue;
        }
        let news = News::Asked { by: by.clone(), resources: wanted, why: why.to_owned() };
        events.push(notice(claim, news, context, events.len()));
        if !asked.contains(holder) {
            asked.push(holder.clone());
        }
    }
    // A zone that waits for a landing is its holder's, with a claim or without.
    for bound in serial::reached(&scene, resources) {
        if asked.contains(&bound.holder) || !by.competes_with(&bound.holder) {
            continue;
        }
        let (by, why) = (by.clone(), why.to_owned());
        let news = News::Asked { by, resources: vec![bound.zone], why };
        events.push(notice_to(&bound.holder, news, context, events.len()));
        asked.push(bound.holder);
    }
    // So is what others build on.
    for (interface, _, file) in interfaces::reached(&scene, resources) {
        if asked.contains(&interface.owner) || !by.competes_with(&interface.owner) {
            continue;
        }
        let (by, why) = (by.clone(), why.to_owned());
        let news = News::Asked { by, resources: vec![file.clone()], why };
        events.push(notice_to(&interface.owner, news, context, events.len()));
        asked.push(interface.owner.clone());
    }
    if asked.is_empty() {
        // Nobody has it to give away, but somebody is served first.
        let first = |waiter: &&Waiter| {
            waiter.waits(context)
                && by.competes_with(&waiter.hold.holder)
                && waiter.hold.resources.iter().any(|wanted| wanted.overlaps(&resources[0]))
        };
        if let Some(waiter) = scene.waiters.iter().find(first) {
            let queued = super::queued_first((waiter, resources[0].clone()));
            return Err(Refusal::Held(Box::new(queued)));
        }
        let resource = resources[0].to_string();
        return Err(Refusal::NotHeld { resource, holder: None });
    }
    events.extend(caller.activity(context, &[]));
    Ok((events, Asked { asked, notices: caller.notices.clone() }))
}

fn overlapping(claim: &Claim, resources: &[Resource]) -> Vec<Resource> {
    let held = claim.hold.resources.iter();
    held.filter(|held| resources.iter().any(|asked| asked.overlaps(held))).cloned().collect()
}

/// Whose claims a person takes away.
#[derive(Clone, Debug, Serialize)]
pub enum Target {
    Claim(ClaimId),
    Session(SessionId),
    Resources(Vec<Resource>),
}

/// Takes claims away. Only a person may; the holders are told.
pub fn revoke(
    view: &dyn View,
    target: &Target,
    why: &str,
    context: &Context,
) -> Result<(Vec<Event>, Revoked), Refusal> {
    if !context.actor.person {
        return Err(Refusal::NeedsPerson { what: "taking a claim away".to_owned() });
    }
    if why.len() > REASON_BYTES_MAX {
        return Err(Refusal::TooLong { what: "reason", bytes_max: REASON_BYTES_MAX });
    }
    let (claims, zones) = targeted(view, target, context)?;
    let freed = || EndOfZone::Revoked { why: why.to_owned() };
    let mut events: Vec<Event> = zones.iter().map(|bound| bound.ends(freed())).collect();
    let mut revoked = Vec::new();
    for claim in &claims {
        events.push(claim.ends(EndOfClaim::Revoked { why: why.to_owned() }, context));
        let news = News::Lost {
            claim: claim.claim.clone(),
            resources: claim.hold.resources.clone(),
            to: None,
            why: format!("a person took it away: {why}"),
        };
        events.push(notice(claim, news, context, events.len()));
        revoked.push(RevokedClaim {
            claim: claim.claim.clone(),
            holder: claim.hold.holder.clone(),
            resources: claim.hold.resources.clone(),
        });
    }
    Ok((events, Revoked { revoked, zones }))
}

fn targeted(
    view: &dyn View,
    target: &Target,
    context: &Context,
) -> Result<(Vec<Claim>, Vec<ZoneHold>), Refusal> {
    match target {
        Target::Claim(id) => match get::<Claim>(view, id.as_str())? {
            Some(claim) => Ok((vec![claim], Vec::new())),
            None => Err(Refusal::UnknownClaim { claim: id.0.clone() }),
        },
        Target::Session(id) => match get::<Session>(view, id.as_str())? {
            Some(_) => Ok((scan(view, claim::of_session(id, CLAIMS_AT_ONCE_MAX))?, Vec::new())),
            None => Err(Refusal::UnknownSession { session: id.0.clone() }),
        },
        Target::Resources(resources) => {
            if resources.is_empty() {
                return Err(Refusal::Empty);
            }
            let mut anonymous = context.clone();
            anonymous.actor.session = None;
            let scene = Scene::read(view, resources, &anonymous)?;
            let zones = serial::reached(&scene, resources);
            let mut claims = scene.claims;
            claims.retain(|claim| !overlapping(claim, resources).is_empty());
            match claims.is_empty() && zones.is_empty() {
                true => Err(Refusal::NotHeld { resource: resources[0].to_string(), holder: None }),
                false => Ok((claims, zones)),
            }
        }
    }
}

/// The paths of a tree claim were changed and are clean again: it has done its work. It ends only
/// as it was when its files were looked at: who used it meanwhile is not done with it.
pub fn settled(
    view: &dyn View,
    seen: &Claim,
    context: &Context,
) -> Result<(Vec<Event>, bool), Refusal> {
    let now = get::<Claim>(view, seen.claim.as_str())?;
    let same = now.filter(|now| now == seen && now.hold.scope == claim::Scope::Tree);
    let ended = same.map(|claim| claim.ends(EndOfClaim::Settled, context));
    let any = ended.is_some();
    Ok((ended.into_iter().collect(), any))
}

/// The files of a claim that was just settled have changes again: its holder wrote them while it
/// was looked at, and gets it back, unless somebody has it by now. True when it did.
pub fn unsettled(
    view: &dyn View,
    was: &Claim,
    context: &Context,
) -> Result<(Vec<Event>, bool), Refusal> {
    let holder = &was.hold.holder;
    let session = get::<Session>(view, holder.session.as_str())?;
    if session.is_none_or(|session| session.life != Life::Live) {
        return Ok((Vec::new(), false));
    }
    let mut holders_own = context.clone();
    holders_own.actor = Actor::default();
    holders_own.observed.complete = true;
    let scene = Scene::read(view, &was.hold.resources, &holders_own)?;
    let judgement = scene.judge(&was.hold, &holders_own)?;
    if !judgement.blockers.is_empty() || !judgement.scarce.is_empty() {
        return Ok((Vec::new(), false));
    }
    let mut events = Vec::new();
    let terms = Terms { ttl: was.ttl, reason: &was.reason, task: &was.task };
    grant(&scene, was.hold.clone(), &terms, &judgement.run_out, &mut events, &holders_own);
    // The call it was in goes on keeping it.
    if let Some(Event::ClaimGranted { claim }) = events.last_mut() {
        claim.busy_until = was.busy_until;
    }
    Ok((events, true))
}
