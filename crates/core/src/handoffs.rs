//! What may happen to handoffs: the parts that all of their rules share.
//!
//! Owns what goes along with a task when it changes hands, and what becomes of an offer that nobody
//! takes. Invariant (S15): task, claims, tree and values move in one decision or not at all, so the
//! owner of a task and the holder of its claims are never two.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::claim::{self, Claim};
use crate::context::Context;
use crate::event::{EndOfClaim, Event};
use crate::handoff::{self, End, Handoff, Known};
use crate::id::{HandoffId, NoticeId, SessionId, TaskId};
use crate::notes::{self, Note};
use crate::notices::{News, Notice};
use crate::refusal::Refusal;
use crate::resource::Resource;
use crate::scene::{self, Scene};
use crate::sessions::{Life, Session};
use crate::task::dossier::Dossier;
use crate::task::{self, Move, Owner, Standing, Task};
use crate::tasks::{escalate, shift};
use crate::time::Span;
use crate::tree::Tree;
use crate::view::{View, get, scan};

use refused::Refused;

pub mod accepting;
pub mod checkpoint;
pub mod complete;
pub mod offering;
pub mod reaching;
pub mod refused;

/// How long an offer stands when nothing else is said.
pub const WITHIN_DEFAULT: Span = Span::minutes(30);
pub const WITHIN_MIN: Span = Span::seconds(1);
pub const WITHIN_MAX: Span = Span::days(7);
/// How many handoffs of one task are shown: the newest.
pub const CHAIN_MAX: u32 = 200;
/// How many offers one look settles.
pub const SETTLED_MAX: u32 = 64;

/// The most claims of one session that are looked at for those that belong to a task.
const CLAIMS_MAX: u32 = 10_000;
/// How many notes are looked through for those of a task or its owner, and how many are kept.
const NOTES_READ_MAX: u32 = 50;
const NOTES_KEPT: usize = 10;

/// A handoff by its id, or the latest one of a task.
pub fn find(view: &dyn View, text: &str) -> Result<Handoff, Refusal> {
    let unknown = |near| Refused::Unknown { handoff: text.chars().take(80).collect(), near };
    if let Some(task) = TaskId::parse(text) {
        let last = chain(view, &task)?.pop();
        return last.ok_or_else(|| unknown(Vec::new()).into());
    }
    let Some(id) = HandoffId::parse(text) else {
        let near = scan::<Task>(view, task::all_of(task::BY_OFFER, 3))?;
        let near = near.iter().filter_map(Task::offer).map(|offer| offer.handoff.clone());
        return Err(unknown(near.collect()).into());
    };
    match get::<Handoff>(view, id.as_str())? {
        Some(handoff) => Ok(handoff),
        None => {
            let task = id.task().unwrap_or_else(|| TaskId(String::new()));
            let near = chain(view, &task)?.into_iter().rev().take(3);
            Err(unknown(near.map(|one| one.handoff).collect()).into())
        }
    }
}

/// Every handoff of a task, oldest first.
pub fn chain(view: &dyn View, task: &TaskId) -> Result<Vec<Handoff>, Refusal> {
    match get::<Dossier>(view, task.as_str())? {
        Some(dossier) => chain_of(view, &dossier),
        None => Ok(Vec::new()),
    }
}

/// As `chain`, and nothing is read for a task that was never offered.
pub fn chain_of(view: &dyn View, dossier: &Dossier) -> Result<Vec<Handoff>, Refusal> {
    match dossier.handoffs {
        0 => Ok(Vec::new()),
        count => {
            let first = count.saturating_sub(CHAIN_MAX) + 1;
            Ok(scan(view, handoff::of_task(&dossier.task, first, CHAIN_MAX))?)
        }
    }
}

/// Does the offer stand: named by its task, whose attempt still owns it, and in time?
pub fn stands(handoff: &Handoff, task: &Task, context: &Context) -> bool {
    let named = task.offer().is_some_and(|offer| offer.handoff == handoff.handoff);
    handoff.end.is_none() && named && context.now < handoff.until
}

/// The live claims that go along with a task: those that were taken for it, those of its owner on
/// files that were changed, and whatever else of the owner's would stand in their way afterwards.
/// A claim for another task that is so entangled cannot go along and cannot stay: it is refused.
pub(crate) fn belonging(
    view: &dyn View,
    task: &Task,
    changed: &[String],
    own: &[Claim],
    context: &Context,
) -> Result<Vec<Claim>, Refusal> {
    let (going, entangled) = part(view, task, changed, own, context)?;
    match entangled {
        Some(claim) => {
            let with = TaskId(claim.task.unwrap_or_default());
            let (task, resources) = (task.task.clone(), claim.hold.resources);
            Err(Refused::Entangled { task, with, resources }.into())
        }
        None => Ok(going),
    }
}

/// The claims that would go along with the task, and the first that holds them back.
pub(crate) fn part(
    view: &dyn View,
    task: &Task,
    changed: &[String],
    own: &[Claim],
    context: &Context,
) -> Result<(Vec<Claim>, Option<Claim>), Refusal> {
    let tree = task.owner().map(|owner| &owner.tree);
    let changed: Vec<Resource> =
        changed.iter().filter_map(|path| Resource::literal(path).ok()).collect();
    let id = Some(task.task.as_str());
    // Who goes on works where the work is.
    let lease = tree.map(Tree::resource);
    let touches = |claim: &Claim| {
        claim.task.is_none()
            && (Some(&claim.hold.tree) == tree || claim.hold.scope == claim::Scope::Workspace)
            && claim.hold.resources.iter().any(|one| {
                lease.as_ref() == Some(one) || changed.iter().any(|path| one.overlaps(path))
            })
    };
    let (mut going, mut staying): (Vec<Claim>, Vec<Claim>) = own
        .iter()
        .filter(|claim| claim.is_live(context))
        .cloned()
        .partition(|claim| claim.task.as_deref() == id || touches(claim));
    if going.is_empty() {
        return Ok((going, None));
    }
    let mut entangled = None;
    let policy = scene::policy(view)?;
    let scene = Scene {
        caller: None,
        policy,
        claims: vec![],
        waiters: vec![],
        leftovers: vec![],
        zones: vec![],
        interfaces: vec![],
    };
    let mut at = 0;
    while at < going.len() {
        // As it will be: held by somebody else.
        let mut hold = going[at].hold.clone();
        hold.holder.session = SessionId(String::new());
        let (more, rest): (Vec<Claim>, Vec<Claim>) =
            staying.into_iter().partition(|claim| scene.clash(&hold, &claim.hold).is_some());
        let (others, more): (Vec<Claim>, Vec<Claim>) =
            more.into_iter().partition(|claim| claim.task.is_some());
        entangled = entangled.or(others.into_iter().next());
        going.extend(more);
        staying = rest;
        at += 1;
    }
    Ok((going, entangled))
}

pub(crate) fn claims_of(view: &dyn View, session: &SessionId) -> Result<Vec<Claim>, Refusal> {
    Ok(scan(view, claim::of_session(session, CLAIMS_MAX))?)
}

/// The claims that wait with an open offer for whoever accepts it.
pub(crate) fn kept_for(
    view: &dyn View,
    task: &Task,
    own: &[Claim],
    context: &Context,
) -> Result<Vec<Claim>, Refusal> {
    let Some(offer) = task.offer() else {
        return Ok(Vec::new());
    };
    let handoff = get::<Handoff>(view, offer.handoff.as_str())?;
    let changed = handoff.map(|handoff| handoff.known.work.changed).unwrap_or_default();
    // What is entangled stays behind: nothing may keep a session from ending.
    Ok(part(view, task, &changed, own, context)?.0)
}

/// Everything about the work on a task that needs nobody's words.
pub(crate) fn known(
    view: &dyn View,
    task: &Task,
    owner: &Owner,
    dossier: &Dossier,
    claims: &[Claim],
    context: &Context,
) -> Result<Known, Refusal> {
    let work = context.observed.work.get(&task.task);
    let mut held: Vec<Resource> = Vec::new();
    for resource in claims.iter().flat_map(|claim| &claim.hold.resources) {
        if !held.contains(resource) {
            held.push(resource.clone());
        }
    }
    Ok(Known {
        tree: owner.tree.clone(),
        seen: work.is_some(),
        work: work.cloned().unwrap_or_default(),
        last_check: dossier.last_check(),
        claims: held,
        notes: recent_notes(view, task, owner)?,
    })
}

fn recent_notes(view: &dyn View, task: &Task, owner: &Owner) -> Result<Vec<Note>, Refusal> {
    let since = Some(owner.taken_at);
    let wanted = notes::Wanted { since, limit: NOTES_READ_MAX, ..notes::Wanted::default() };
    let mut notes = notes::list(view, &wanted)?.notes;
    let about = |note: &Note| note.task.as_deref() == Some(task.task.as_str());
    notes.retain(|note| about(note) || note.by.session == owner.session && note.task.is_none());
    notes.drain(..notes.len().saturating_sub(NOTES_KEPT));
    Ok(notes)
}

pub(crate) fn notice(to: &SessionId, news: News, place: usize, context: &Context) -> Event {
    let ordinal = u32::try_from(place).unwrap_or(u32::MAX);
    let notice = NoticeId::fresh(&context.fresh, ordinal);
    let (to, at) = (to.clone(), context.now);
    Event::NoticeSent { notice: Notice { notice, to, agent: None, at, news } }
}

/// What was settled because its time was over.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Settled {
    /// Back at their givers.
    pub returned: Vec<HandoffId>,
    /// Their givers are gone: a person decides.
    pub waiting: Vec<TaskId>,
}

/// Ends offers that nobody took in time. Whoever looks at offers does this first.
pub fn settle(view: &dyn View, context: &Context) -> Result<(Vec<Event>, Settled), Refusal> {
    let mut events = Vec::new();
    let mut settled = Settled::default();
    for task in scan::<Task>(view, task::due(task::BY_OFFER, context.now, SETTLED_MAX))? {
        let (Some(offer), Some(owner)) = (task.offer(), task.owner()) else { continue };
        let giver = get::<Session>(view, owner.session.as_str())?;
        if giver.is_some_and(|giver| is_there(&giver, context)) && owner.is_live(context) {
            let end = End::Returned { at: context.now };
            events.push(ended(&task, &offer.handoff, end.clone()));
            events.push(tell_giver(&task, owner, offer, end, events.len(), context));
            settled.returned.push(offer.handoff.clone());
        } else {
            events.extend(unanswered(view, &task, context)?);
            settled.waiting.push(task.task.clone());
        }
    }
    Ok((events, settled))
}

/// Lives, or may still come back.
fn is_there(session: &Session, context: &Context) -> bool {
    match session.life {
        Life::Live => true,
        Life::Ended { grace_until, .. } => grace_until.is_some_and(|until| context.now < until),
    }
}

fn ended(task: &Task, handoff: &HandoffId, end: End) -> Event {
    Event::HandoffEnded { handoff: handoff.clone(), task: task.task.clone(), end }
}

fn tell_giver(
    task: &Task,
    owner: &Owner,
    offer: &handoff::Offer,
    end: End,
    place: usize,
    context: &Context,
) -> Event {
    let news = News::OfferEnded {
        handoff: offer.handoff.clone(),
        task: task.task.clone(),
        title: task.title.clone(),
        end,
        still_open: false,
    };
    notice(&owner.session, news, place, context)
}

/// Nobody took it and its giver is gone: what it held for the task is free, and a person decides.
pub(crate) fn unanswered(
    view: &dyn View,
    task: &Task,
    context: &Context,
) -> Result<Vec<Event>, Refusal> {
    let (Some(offer), Some(owner)) = (task.offer(), task.owner()) else {
        return Ok(Vec::new());
    };
    let why = format!(
        "was offered as {}; nobody accepted in time, and {}, who offered it, is gone",
        offer.handoff, owner.name
    );
    let mut events = vec![ended(task, &offer.handoff, End::Unanswered { at: context.now })];
    let own = claims_of(view, &owner.session)?;
    let kept = kept_for(view, task, &own, context)?;
    let for_it = |claim: &Claim| {
        claim.task.as_deref() == Some(task.task.as_str())
            || kept.iter().any(|one| one.claim == claim.claim)
    };
    for claim in own.iter().filter(|claim| for_it(claim)) {
        events.push(claim.ends(EndOfClaim::SessionEnded, context));
    }
    let mut task = task.clone();
    let standing = Standing {
        state: task.at_rest(),
        since: context.now,
        why: Some(why.clone()),
        ..task.standing.free()
    };
    shift(&mut task, Move::Unanswered, standing, &mut events);
    escalate(view, &mut task, &why, &mut events, context)?;
    Ok(events)
}
