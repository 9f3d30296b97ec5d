//! How claims are renewed, released, asked for and taken away.
//!
//! Every way a claim can end goes through `Claim::ends`, so each leaves the same trail and wakes
//! whoever waits (the engine signals news after every commit).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Answer, REASON_BYTES_MAX, Request, notice, take};
use crate::claim::{self, Claim, Holder};
use crate::context::Context;
use crate::event::{EndOfClaim, Event};
use crate::id::{ClaimId, SessionId, Token};
use crate::notices::{News, Notice};
use crate::refusal::Refusal;
use crate::resource::Resource;
use crate::scene::{Caller, Scene};
use crate::time::Moment;
use crate::view::{View, get, scan};

/// The most claims one release or renewal touches.
const CLAIMS_AT_ONCE_MAX: u32 = 10_000;

/// Which of the caller's claims are meant.
#[derive(Clone, Debug, Serialize)]
pub enum Which {
    All,
    Resources(Vec<Resource>),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Released {
    pub released: Vec<Resource>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<Notice>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Renewed {
    pub renewed: Vec<Kept>,
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

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Asked {
    /// Everyone who will be told at their next act.
    pub asked: Vec<Holder>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Revoked {
    pub revoked: Vec<RevokedClaim>,
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
    let (caller, own) = own_claims(view, which, context)?;
    fence(&own, token)?;
    let mut events = Vec::new();
    let mut released = Vec::new();
    for claim in &own {
        let (gone, kept): (Vec<Resource>, Vec<Resource>) =
            claim.hold.resources.iter().cloned().partition(|held| match which {
                Which::All => true,
                Which::Resources(named) => named.iter().any(|name| name.covers(held)),
            });
        // The name of a serial zone goes with the last of its paths.
        let kept_something = kept.iter().any(|held| !is_zone(held));
        if gone.is_empty() {
            continue;
        }
        released.extend(gone.iter().filter(|held| !is_zone(held)).cloned());
        if kept_something {
            let claim = claim.claim.clone();
            events.push(Event::ClaimNarrowed { claim, resources: kept, released: gone });
        } else {
            let commit = commit.map(str::to_owned);
            events.push(claim.ends(EndOfClaim::Released { commit }, context));
        }
    }
    if let (Which::Resources(named), true) = (which, released.is_empty()) {
        let resource = named.first().map(Resource::to_string).unwrap_or_default();
        return Err(Refusal::NotHeld { resource });
    }
    let ended: Vec<&ClaimId> = own.iter().map(|claim| &claim.claim).collect();
    events.extend(caller.activity(context, &ended));
    let commit = commit.map(str::to_owned);
    Ok((events, Released { released, commit, notices: caller.notices }))
}

fn is_zone(resource: &Resource) -> bool {
    matches!(resource, Resource::Name { name, .. } if name.starts_with(crate::zones::SERIAL_PREFIX))
}

/// Renews leases. One that had run out is taken anew, if nobody else has it.
pub fn renew(
    view: &dyn View,
    which: &Which,
    token: Option<Token>,
    context: &Context,
) -> Result<(Vec<Event>, Renewed), Refusal> {
    let (caller, own) = own_claims(view, which, context)?;
    fence(&own, token)?;
    if own.is_empty() {
        let resource = match which {
            Which::Resources(named) => named.first().map(Resource::to_string),
            Which::All => None,
        };
        return Err(Refusal::NotHeld { resource: resource.unwrap_or_else(|| "anything".into()) });
    }
    let now = context.now;
    let mut events = Vec::new();
    let mut renewed = Vec::new();
    let (late, timely): (Vec<&Claim>, Vec<&Claim>) =
        own.iter().partition(|claim| claim.has_run_out(now));
    for claim in late {
        renewed.extend(take_anew(view, claim, &mut events, context)?);
    }
    let claims: Vec<_> = timely.iter().map(|claim| claim.renewal(now + claim.ttl)).collect();
    if !claims.is_empty() {
        events.push(Event::ClaimsRenewed { claims, at: now });
    }
    renewed.extend(timely.iter().map(|claim| Kept {
        claim: claim.claim.clone(),
        token: claim.token,
        resources: claim.hold.resources.clone(),
        expires_at: now + claim.ttl,
        new_token: false,
    }));
    let touched: Vec<&ClaimId> = own.iter().map(|claim| &claim.claim).collect();
    events.extend(caller.activity(context, &touched));
    Ok((events, Renewed { renewed, notices: caller.notices }))
}

/// The claim again under a new token, placed after the events decided so far.
fn take_anew(
    view: &dyn View,
    claim: &Claim,
    events: &mut Vec<Event>,
    context: &Context,
) -> Result<Option<Kept>, Refusal> {
    let request = Request {
        resources: claim.hold.resources.clone(),
        mode: claim.hold.mode,
        scope: claim.hold.scope,
        ttl: claim.ttl,
        priority: 0,
        reason: claim.reason.clone(),
        task: claim.task.clone(),
        wait: None,
        waiter: None,
        process: None,
    };
    let mut later = context.clone();
    later.next = context.next.after(events.len() as u64);
    // Several claims may be taken anew in one decision: each needs ids of its own.
    later.fresh.0[0] = later.fresh.0[0].wrapping_add(u8::try_from(events.len() % 251).unwrap_or(0));
    let (more, answer) = take(view, &request, &later)?;
    let told = |event: &Event| matches!(event, Event::NoticesTold { .. });
    events.extend(more.into_iter().filter(|event| !told(event)));
    Ok(match answer {
        Answer::Queued(_) => None,
        Answer::Granted(granted) => Some(Kept {
            claim: granted.claim,
            token: granted.token,
            resources: granted.resources,
            expires_at: granted.expires_at,
            new_token: true,
        }),
    })
}

/// The caller's own claims that are meant, run out or not.
fn own_claims(
    view: &dyn View,
    which: &Which,
    context: &Context,
) -> Result<(Caller, Vec<Claim>), Refusal> {
    match which {
        Which::All => {
            let caller = Caller::read(view, context)?;
            let query = claim::of_session(&caller.session.session, CLAIMS_AT_ONCE_MAX);
            Ok((caller, scan(view, query)?))
        }
        Which::Resources(named) => {
            if named.is_empty() {
                return Err(Refusal::Empty);
            }
            let scene = Scene::read(view, named, context)?;
            let caller = scene.caller.ok_or(Refusal::NoSession)?;
            let session = &caller.session.session;
            let meant = |claim: &Claim| {
                claim.hold.holder.session == *session
                    && claim
                        .hold
                        .resources
                        .iter()
                        .any(|held| named.iter().any(|name| name.covers(held)))
            };
            let own = scene.claims.into_iter().filter(meant).collect();
            Ok((caller, own))
        }
    }
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
    let by = Holder {
        session: caller.session.session.clone(),
        name: caller.session.name.clone(),
        agent: context.actor.agent.clone(),
    };
    let mut events = Vec::new();
    let mut asked: Vec<Holder> = Vec::new();
    for claim in &scene.claims {
        let wanted = overlapping(claim, resources);
        let holder = &claim.hold.holder;
        if wanted.is_empty() || !by.competes_with(holder) || asked.contains(holder) {
            continue;
        }
        let news = News::Asked { by: by.clone(), resources: wanted, why: why.to_owned() };
        events.push(notice(claim, news, context, events.len()));
        asked.push(holder.clone());
    }
    if asked.is_empty() {
        let resource = resources[0].to_string();
        return Err(Refusal::NotHeld { resource });
    }
    events.extend(caller.activity(context, &[]));
    Ok((events, Asked { asked }))
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
    let claims = targeted(view, target, context)?;
    let mut events = Vec::new();
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
    Ok((events, Revoked { revoked }))
}

fn targeted(view: &dyn View, target: &Target, context: &Context) -> Result<Vec<Claim>, Refusal> {
    match target {
        Target::Claim(id) => match get::<Claim>(view, id.as_str())? {
            Some(claim) => Ok(vec![claim]),
            None => Err(Refusal::UnknownClaim { claim: id.0.clone() }),
        },
        Target::Session(id) => Ok(scan(view, claim::of_session(id, CLAIMS_AT_ONCE_MAX))?),
        Target::Resources(resources) => {
            if resources.is_empty() {
                return Err(Refusal::Empty);
            }
            let mut anonymous = context.clone();
            anonymous.actor.session = None;
            let mut claims = Scene::read(view, resources, &anonymous)?.claims;
            claims.retain(|claim| !overlapping(claim, resources).is_empty());
            match claims.is_empty() {
                true => Err(Refusal::NotHeld { resource: resources[0].to_string() }),
                false => Ok(claims),
            }
        }
    }
}

/// The paths of a tree claim were changed and are clean again: it has done its work.
pub fn settled(
    view: &dyn View,
    claim: &ClaimId,
    context: &Context,
) -> Result<(Vec<Event>, ()), Refusal> {
    let claim = get::<Claim>(view, claim.as_str())?;
    let tree = |claim: &Claim| claim.hold.scope == claim::Scope::Tree;
    let ended = claim.filter(tree).map(|claim| claim.ends(EndOfClaim::Settled, context));
    Ok((ended.into_iter().collect(), ()))
}
