//! Accepting and declining what is offered.
//!
//! Owns the one decision in which everything changes hands (S15): the task under a new token, the
//! claims that belong to it under new tokens, the tree they are about, and the values that were to
//! be set with it. The giver's tokens are dead from then on.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::offering::writes;
use super::refused::Refused;
use super::{belonging, chain_of, claims_of, ended, find, notice, stands};
use crate::claim::{Claim, Hold, Holder, Scope};
use crate::context::Context;
use crate::event::{EndOfClaim, Event};
use crate::handoff::{Declined, End, Handoff, To};
use crate::id::{ClaimId, HandoffId, TaskId, Token, TreeId};
use crate::notices::{News, Notice};
use crate::refusal::{Held, Refusal};
use crate::resource::Resource;
use crate::scene::{Caller, Scene};
use crate::sessions::{Life, Session};
use crate::state::{self, Writer, Written};
use crate::task::dossier::{Checkpoint, Dossier, Feedback};
use crate::task::{self, Move, Owner, Standing, State, Task};
use crate::tasks::refused::{Brief, Refused as TaskRefused};
use crate::tasks::{TEXT_BYTES_MAX, TTL_DEFAULT, moved, says};
use crate::time::Moment;
use crate::view::{Query, View, only};

/// How many of its own tasks a receiver is asked about.
const OWN_MAX: u32 = 16;
/// How many can say that they will not have it.
const DECLINED_MAX: usize = 100;

#[derive(Clone, Debug, Serialize)]
pub struct Accept {
    /// The handoff, or its task.
    pub handoff: String,
    /// Although the session has an active task.
    pub also: bool,
}

/// A task that changed hands, with everything its new owner should know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Accepted {
    pub handoff: HandoffId,
    pub task: TaskId,
    pub attempt: u32,
    pub token: Token,
    pub title: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    pub max_attempts: u32,
    pub expires_at: Moment,
    /// It counted as an attempt, because nothing was new.
    pub counted: bool,
    /// Where the work is.
    pub tree: TreeId,
    /// What is yours now along with it.
    pub claims: Vec<Passed>,
    /// Values that were set with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set: Vec<Written>,
    /// Every handoff of the task, oldest first; the last is this one.
    pub chain: Vec<Handoff>,
    /// Everything reviewers said, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub feedback: Vec<Feedback>,
    /// What was saved last by code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<Checkpoint>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<Notice>,
}

/// A claim that went along.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Passed {
    pub claim: ClaimId,
    pub token: Token,
    pub resources: Vec<Resource>,
    pub scope: Scope,
    pub expires_at: Moment,
}

/// Everything a decision about one handoff looks at.
struct Table {
    caller: Caller,
    handoff: Handoff,
    task: Task,
    dossier: Dossier,
    giver: Option<Session>,
    /// The caller's own tasks.
    own: Vec<Task>,
}

impl Table {
    fn read(view: &dyn View, text: &str, context: &Context) -> Result<Self, Refusal> {
        let me = context.actor.session.as_ref().ok_or(Refusal::NoSession)?;
        let handoff = find(view, text)?;
        let id = handoff.task.as_str();
        let queries = [
            Query::get::<Task>(id),
            Query::get::<Dossier>(id),
            Query::get::<Session>(handoff.from.session.as_str()),
            Query::equal(task::BY_OWNER, me.as_str(), OWN_MAX),
        ];
        let (caller, answers) = Caller::read_with(view, context, &queries)?;
        let Some(task) = only::<Task>(&answers[0])?.pop() else {
            return Err(crate::tasks::near::unknown(view, id)?);
        };
        let dossier = only::<Dossier>(&answers[1])?.pop();
        let dossier = dossier.unwrap_or_else(|| Dossier::of(task.task.clone()));
        let giver = only::<Session>(&answers[2])?.pop();
        Ok(Self { caller, handoff, task, dossier, giver, own: only(&answers[3])? })
    }

    fn over(&self, context: &Context) -> Refusal {
        let owner = self.task.owner().filter(|owner| owner.is_live(context));
        Refused::Over {
            handoff: self.handoff.handoff.clone(),
            task: Brief::from(&self.task),
            state: self.task.state(),
            owner: owner.map(|owner| owner.name.clone()),
            end: self.handoff.end.clone(),
            until: self.handoff.until,
        }
        .into()
    }

    /// May the caller answer this offer? The giver may not accept its own.
    fn may_answer(&self, context: &Context) -> Result<(), Refusal> {
        let session = &self.caller.session;
        if self.handoff.from.session == session.session {
            return Err(Refused::ToYourself { task: Brief::from(&self.task) }.into());
        }
        let role = session.role.as_deref();
        let named = matches!(self.handoff.to, To::Session(_));
        // Named by the giver, one need not have the task's role.
        let fits = named || self.task.role.is_none() || self.task.role.as_deref() == role;
        if self.handoff.is_to(&session.session, role) && fits || context.actor.person {
            return Ok(());
        }
        let to = match (&self.handoff.to, &self.task.role) {
            (To::Anyone, Some(role)) => To::Role(role.clone()),
            (to, _) => to.clone(),
        };
        let (handoff, yours) = (self.handoff.handoff.clone(), session.role.clone());
        Err(Refused::NotForYou { handoff, to, yours }.into())
    }

    fn refuse_a_second_task(&self, context: &Context) -> Result<(), Refusal> {
        let busy = self.own.iter().find(|own| {
            own.state() == State::Active && own.owner().is_some_and(|owner| owner.is_live(context))
        });
        match busy {
            Some(own) => {
                let (task, state, since) = (Brief::from(own), own.state(), own.standing.since);
                Err(TaskRefused::HasTask { task, state, since }.into())
            }
            None => Ok(()),
        }
    }

    fn tells_giver(&self, end: End, still_open: bool, place: usize, context: &Context) -> Event {
        let news = News::OfferEnded {
            handoff: self.handoff.handoff.clone(),
            task: self.task.task.clone(),
            title: self.task.title.clone(),
            end,
            still_open,
        };
        notice(&self.handoff.from.session, news, place, context)
    }

    fn giver_lives(&self) -> bool {
        self.giver.as_ref().is_some_and(|giver| giver.life == Life::Live)
    }
}

/// Takes over what is offered.
pub fn accept(
    view: &dyn View,
    request: &Accept,
    context: &Context,
) -> Result<(Vec<Event>, Accepted), Refusal> {
    let table = Table::read(view, &request.handoff, context)?;
    let Table { handoff, task, caller, dossier, .. } = &table;
    if !stands(handoff, task, context) {
        return Err(table.over(context));
    }
    table.may_answer(context)?;
    if !request.also {
        table.refuse_a_second_task(context)?;
    }
    let giver = task.owner().ok_or_else(|| table.over(context))?;
    let receiver = caller.holder(context);
    let own = claims_of(view, &giver.session)?;
    let going = belonging(view, task, &handoff.known.work.changed, &own, context)?;
    refuse_conflicts(view, &going, &receiver, context)?;
    let standing = standing(&table, giver, &receiver, context);
    let owner = standing.owner.clone().ok_or_else(|| table.over(context))?;
    let (by, at, token) = (receiver.clone(), context.now, owner.token);
    let end = End::Accepted { by, at, token };
    let mut events = vec![ended(task, &handoff.handoff, end.clone())];
    events.push(moved(task, Move::HandedOver, standing));
    let claims = pass(task, &going, &receiver, &mut events, context);
    // What was taken for it and has run out must not come to life again at the giver's.
    let for_it = |claim: &&Claim| claim.task.as_deref() == Some(task.task.as_str());
    for claim in own.iter().filter(for_it).filter(|claim| !claim.is_live(context)) {
        let to = receiver.session.clone();
        events.push(claim.ends(EndOfClaim::HandedOver { to }, context));
    }
    let set = set(view, &table, &mut events, context)?;
    if table.giver_lives() {
        events.push(table.tells_giver(end.clone(), false, events.len(), context));
    }
    events.extend(caller.activity(context, &[]));
    let mut chain = chain_of(view, dossier)?;
    for one in chain.iter_mut().filter(|one| one.handoff == handoff.handoff) {
        one.end = Some(end.clone());
    }
    let accepted = Accepted {
        handoff: handoff.handoff.clone(),
        task: task.task.clone(),
        attempt: owner.attempt,
        token,
        title: task.title.clone(),
        body: dossier.body.clone(),
        max_attempts: task.max_attempts,
        expires_at: owner.expires_at,
        counted: !handoff.progress,
        tree: owner.tree,
        claims,
        set,
        chain,
        feedback: dossier.feedback.clone(),
        checkpoint: dossier.checkpoints.last().cloned(),
        notices: caller.notices.clone(),
    };
    Ok((events, accepted))
}

/// How the task stands in the receiver's hands. Its event is the second one of the decision, and
/// that is its token.
fn standing(table: &Table, giver: &Owner, receiver: &Holder, context: &Context) -> Standing {
    let before = &table.task.standing;
    let attempts_used = before.attempts_used + u32::from(!table.handoff.progress);
    let attempt = attempts_used + 1;
    let owner = Owner {
        session: receiver.session.clone(),
        name: receiver.name.clone(),
        agent: receiver.agent.clone(),
        attempt,
        token: context.next.after(1),
        tree: giver.tree.clone(),
        taken_at: context.now,
        renewed_at: context.now,
        expires_at: context.now + TTL_DEFAULT,
        ttl: TTL_DEFAULT,
    };
    Standing {
        state: State::Active,
        since: context.now,
        owner: Some(owner),
        attempt,
        attempts_used,
        not_before: None,
        why: None,
        next_action: Some(table.handoff.said.next.clone()),
        base: context.observed.head.clone(),
        offer: None,
        ..before.clone()
    }
}

/// Each claim ends for the giver and begins for the receiver, in the tree it was about.
fn pass(
    task: &Task,
    going: &[Claim],
    receiver: &Holder,
    events: &mut Vec<Event>,
    context: &Context,
) -> Vec<Passed> {
    let mut passed = Vec::with_capacity(going.len());
    for claim in going {
        let to = receiver.session.clone();
        events.push(claim.ends(EndOfClaim::HandedOver { to }, context));
        let place = u32::try_from(events.len()).unwrap_or(u32::MAX);
        let new = Claim {
            claim: ClaimId::fresh(&context.fresh, place),
            token: context.next.after(events.len() as u64),
            hold: Hold { holder: receiver.clone(), ..claim.hold.clone() },
            granted_at: context.now,
            renewed_at: context.now,
            expires_at: context.now + claim.ttl,
            // The giver's tool call is not the receiver's.
            busy_until: None,
            task: Some(task.task.0.clone()),
            ..claim.clone()
        };
        passed.push(Passed {
            claim: new.claim.clone(),
            token: new.token,
            resources: new.hold.resources.clone(),
            scope: new.hold.scope,
            expires_at: new.expires_at,
        });
        events.push(Event::ClaimGranted { claim: new });
    }
    passed
}

/// What goes from one to the other was in nobody's way and is in nobody's way afterwards. Should it
/// be, nothing moves.
fn refuse_conflicts(
    view: &dyn View,
    going: &[Claim],
    receiver: &Holder,
    context: &Context,
) -> Result<(), Refusal> {
    if going.is_empty() {
        return Ok(());
    }
    let resources: Vec<Resource> =
        going.iter().flat_map(|claim| claim.hold.resources.iter().cloned()).collect();
    let scene = Scene::read(view, &resources, context)?;
    let stays =
        |claim: &&Claim| claim.is_live(context) && going.iter().all(|one| one.claim != claim.claim);
    for claim in scene.claims.iter().filter(stays) {
        for one in going {
            let hold = Hold { holder: receiver.clone(), ..one.hold.clone() };
            if let Some((asked, held)) = scene.clash(&hold, &claim.hold) {
                return Err(Refusal::Held(Box::new(Held::by_claim(claim, asked, held, false))));
            }
        }
    }
    Ok(())
}

/// The values that were to be set with it, as the giver's own.
fn set(
    view: &dyn View,
    table: &Table,
    events: &mut Vec<Event>,
    context: &Context,
) -> Result<Vec<Written>, Refusal> {
    let writes = writes(&table.handoff.said);
    if writes.is_empty() {
        return Ok(Vec::new());
    }
    let role = table.giver.as_ref().and_then(|giver| giver.role.clone());
    let writer = Writer { holder: table.handoff.from.clone(), role };
    let first = context.next.after(events.len() as u64);
    let (more, written) = state::write_all(view, &writer, &writes, &[], first, context)?;
    events.extend(more);
    Ok(written)
}

#[derive(Clone, Debug, Serialize)]
pub struct Decline {
    pub handoff: String,
    pub why: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Answered {
    pub handoff: HandoffId,
    pub task: TaskId,
    pub title: String,
    /// The giver took its own offer back.
    pub withdrawn: bool,
    /// Others may still accept it.
    pub still_open: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<Notice>,
}

/// Will not have it. One of many leaves it to the others; the giver takes it back.
pub fn decline(
    view: &dyn View,
    request: &Decline,
    context: &Context,
) -> Result<(Vec<Event>, Answered), Refusal> {
    says("reason", &request.why, TEXT_BYTES_MAX)?;
    let table = Table::read(view, &request.handoff, context)?;
    let Table { handoff, task, caller, .. } = &table;
    if !stands(handoff, task, context) {
        return Err(table.over(context));
    }
    let withdrawn = handoff.from.session == caller.session.session;
    if !withdrawn {
        table.may_answer(context)?;
    }
    let (by, at, why) = (caller.holder(context), context.now, request.why.clone());
    let directed = matches!(handoff.to, To::Session(_));
    let still_open = !withdrawn && !directed;
    let mut events = Vec::new();
    if withdrawn {
        events.push(ended(task, &handoff.handoff, End::Withdrawn { at }));
    } else {
        let end = End::Declined { by: by.clone(), at, why: why.clone() };
        let before = handoff.declined.iter().any(|one| one.by.session == by.session);
        if directed {
            events.push(ended(task, &handoff.handoff, end.clone()));
        } else if !before && handoff.declined.len() < DECLINED_MAX {
            let declined = Declined { by, at, why };
            events.push(Event::HandoffDeclined { handoff: handoff.handoff.clone(), declined });
        }
        if !before {
            events.push(table.tells_giver(end, still_open, events.len(), context));
        }
    }
    events.extend(caller.activity(context, &[]));
    let answered = Answered {
        handoff: handoff.handoff.clone(),
        task: task.task.clone(),
        title: task.title.clone(),
        withdrawn,
        still_open,
        notices: caller.notices.clone(),
    };
    Ok((events, answered))
}
