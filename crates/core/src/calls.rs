//! Tool calls: between the start and the end of one, its session's leases do not run out.
//!
//! Owns the calls a session says it is in. An agent is silent while a long command runs, and must
//! not lose what it holds for that (lesson 8). A call has a limit, and a process when one is known:
//! past the limit, or when that process is visibly gone, the leases count alone again. A call that
//! the leases cover anyway is not written down, so that short ones cost no event.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::claim::{self, Claim};
use crate::context::Context;
use crate::event::{Event, Renewal};
use crate::id::{ClaimId, SessionId};
use crate::notices::Notice;
use crate::refusal::Refusal;
use crate::scene::Caller;
use crate::sessions::{self, Process, Session};
use crate::time::{Moment, Span};
use crate::view::{View, get, scan};

/// No call keeps a lease alive for longer than this.
pub const CALL_LIMIT_MAX: Span = Span::hours(6);
pub const CALL_LIMIT_MIN: Span = Span::seconds(1);
/// What a call may take when its client does not say: leases cover that as they are.
pub const CALL_LIMIT_DEFAULT: Span = Span::minutes(10);
/// The most calls one session is in at a time.
pub const CALLS_MAX: usize = 64;
const CLAIMS_MAX: u32 = 100_000;
/// How long a silent subagent keeps what only its session's call kept for it.
const AFTER_CALL: Span = Span::minutes(2);

/// A tool call that its session's leases would not have covered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Call {
    /// The client's id of the call; empty when it has none.
    pub call: String,
    /// It ends before this, or stops counting.
    pub until: Moment,
    /// The process that must live for it to count, when one is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<Process>,
}

impl Session {
    /// When the last of its calls must have ended.
    pub fn busy_until(&self, now: Moment) -> Option<Moment> {
        latest(&self.calls, now)
    }
}

fn latest(calls: &[Call], now: Moment) -> Option<Moment> {
    calls.iter().map(|call| call.until).filter(|until| now < *until).max()
}

/// A call is about to begin.
#[derive(Clone, Debug, Serialize)]
pub struct Start {
    pub call: String,
    pub limit: Span,
    pub process: Option<Process>,
}

/// Which calls are over.
#[derive(Clone, Debug, Serialize)]
pub enum Which {
    All,
    One(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Called {
    /// Leases of this session do not run out before; nothing when they need no help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy_until: Option<Moment>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<Notice>,
}

/// Keeps the caller's leases alive until the call ends, if they would not last that long.
pub fn start(
    view: &dyn View,
    request: &Start,
    context: &Context,
) -> Result<(Vec<Event>, Called), Refusal> {
    if request.limit < CALL_LIMIT_MIN || request.limit > CALL_LIMIT_MAX {
        return Err(Refusal::OutOfRange {
            what: "limit",
            given: request.limit.to_string(),
            allowed: format!("{CALL_LIMIT_MIN} to {CALL_LIMIT_MAX}"),
        });
    }
    let named = (!request.call.is_empty()).then_some(request.call.as_str());
    sessions::validate_text("call id", named)?;
    let caller = Caller::read(view, context)?;
    let mut events = caller.activity(context, &[]);
    let session = &caller.session;
    let until = context.now + request.limit;
    // The index tells when a claim is half used, which is before it ends.
    let short = claim::due_for_renewal(&session.session, until, CLAIMS_MAX);
    let mut claims: Vec<Claim> = scan(view, short)?;
    claims.retain(|claim| claim.is_live(context));
    if covered(session, &claims, &events, until) {
        let busy_until = session.busy_until(context.now);
        return Ok((events, Called { busy_until, notices: caller.notices }));
    }
    let mut others = session.calls.clone();
    others.retain(|call| call.until > context.now && call.call != request.call);
    if others.len() >= CALLS_MAX {
        return Err(Refusal::OutOfRange {
            what: "number of calls at once",
            given: (others.len() + 1).to_string(),
            allowed: format!("1 to {CALLS_MAX}"),
        });
    }
    let same = session.calls.iter().find(|call| call.call == request.call);
    let call = Call {
        call: request.call.clone(),
        // Two calls without an id are one that lasts as long as the longer.
        until: same.map_or(until, |same| same.until.max(until)),
        process: request.process.clone().or_else(|| session.process.clone()),
    };
    let busy_until = latest(&others, context.now).map_or(call.until, |end| end.max(call.until));
    events.push(Event::CallStarted {
        session: session.session.clone(),
        call,
        busy_until,
        claims: claims.into_iter().map(|claim| claim.claim).collect(),
    });
    Ok((events, Called { busy_until: Some(busy_until), notices: caller.notices }))
}

/// Do the leases last until then, with what these events renew? Other calls do not count: they may
/// end before this one.
fn covered(session: &Session, claims: &[Claim], events: &[Event], until: Moment) -> bool {
    let mut session_end = session.expires_at;
    let mut renewed: Vec<&Renewal> = Vec::new();
    for event in events {
        match event {
            Event::SessionRenewed { expires_at, .. } => session_end = *expires_at,
            Event::ClaimsRenewed { claims, .. } => renewed.extend(claims),
            _ => {}
        }
    }
    session_end >= until
        && claims.iter().all(|claim| {
            let renewal = renewed.iter().find(|renewal| renewal.claim == claim.claim);
            renewal.map_or(claim.expires_at, |renewal| renewal.expires_at) >= until
        })
}

/// A call has ended: every lease it kept alive is renewed, so that nothing is lost in that moment.
pub fn end(
    view: &dyn View,
    which: &Which,
    context: &Context,
) -> Result<(Vec<Event>, Called), Refusal> {
    let caller = Caller::read(view, context)?;
    let over = |call: &Call| match which {
        Which::All => true,
        Which::One(id) => call.call == *id,
    };
    let Some((ended, claims)) = end_where(view, &caller.session, over, context)? else {
        let busy_until = caller.session.busy_until(context.now);
        return Ok((caller.activity(context, &[]), Called { busy_until, notices: caller.notices }));
    };
    let renewed: Vec<Renewal> =
        claims.iter().filter_map(|claim| renewal_after(claim, context)).collect();
    let busy_until = match &ended {
        Event::CallsEnded { busy_until, .. } => *busy_until,
        _ => None,
    };
    let mut events = vec![ended];
    let touched: BTreeSet<ClaimId> = renewed.iter().map(|one| one.claim.clone()).collect();
    if !renewed.is_empty() {
        events.push(Event::ClaimsRenewed { claims: renewed, at: context.now });
    }
    events.extend(caller.activity(context, &touched.iter().collect::<Vec<_>>()));
    Ok((events, Called { busy_until, notices: caller.notices }))
}

/// What a claim is renewed to when a call that kept it has ended. Of a subagent that was not heard
/// of it gets a moment, in which that one may act, and no lease: it lives by its own acts.
fn renewal_after(claim: &Claim, context: &Context) -> Option<Renewal> {
    let ttl = match claim.lives_by(&context.actor) {
        true if claim.is_half_used(context.now) => claim.ttl,
        false if claim.kept_by_call(context) => claim.ttl.min(AFTER_CALL),
        _ => return None,
    };
    Some(claim.renewal(ttl, context))
}

/// The process of a call is visibly gone: the call counts no longer, and the leases are what they
/// were without it.
pub fn died(
    view: &dyn View,
    id: &SessionId,
    seen: &Process,
    context: &Context,
) -> Result<(Vec<Event>, bool), Refusal> {
    let Some(session) = get::<Session>(view, id.as_str())? else {
        return Ok((Vec::new(), false));
    };
    let over = |call: &Call| call.process.as_ref() == Some(seen);
    let ended = end_where(view, &session, over, context)?;
    let any = ended.is_some();
    Ok((ended.map(|(event, _)| event).into_iter().collect(), any))
}

/// The event that ends some of a session's calls, and the live claims they kept.
pub(crate) fn end_where(
    view: &dyn View,
    session: &Session,
    over: impl Fn(&Call) -> bool,
    context: &Context,
) -> Result<Option<(Event, Vec<Claim>)>, Refusal> {
    let (ended, rest): (Vec<Call>, Vec<Call>) = session.calls.iter().cloned().partition(over);
    if ended.is_empty() {
        return Ok(None);
    }
    let mut claims: Vec<Claim> = scan(view, claim::of_session(&session.session, CLAIMS_MAX))?;
    claims.retain(|claim| claim.busy_until.is_some());
    let event = Event::CallsEnded {
        session: session.session.clone(),
        calls: ended.into_iter().map(|call| call.call).collect(),
        busy_until: latest(&rest, context.now),
        claims: claims.iter().map(|claim| claim.claim.clone()).collect(),
    };
    claims.retain(|claim| claim.is_live(context));
    Ok(Some((event, claims)))
}
