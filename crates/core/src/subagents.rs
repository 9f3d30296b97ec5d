//! Subagents: workers within a session, each known by its client's id for it.
//!
//! Owns what becomes of a subagent's things when it stops: its holds and what it should have been
//! told pass to its session, its waits end. While it works its siblings are kept out of what it
//! holds, and its session never is (`Holder::competes_with`). A subagent with a tree of its own is
//! a session of its own, and none of this concerns it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::claim::{self, Claim};
use crate::context::Context;
use crate::event::{EndOfWait, Event};
use crate::notices::{self, Notice};
use crate::refusal::Refusal;
use crate::resource::Resource;
use crate::scene::Caller;
use crate::sessions;
use crate::view::{Query, View, scan};
use crate::waiting::{self, Waiter};

const CLAIMS_MAX: u32 = 100_000;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stopped {
    pub agent: String,
    /// What its session holds in its place now.
    pub passed: Vec<Resource>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<Notice>,
}

/// May this be the id of a subagent?
pub fn validate(agent: &str) -> Result<(), Refusal> {
    sessions::validate_text("subagent id", Some(agent))
}

/// A subagent of the caller has stopped.
pub fn stop(
    view: &dyn View,
    agent: &str,
    context: &Context,
) -> Result<(Vec<Event>, Stopped), Refusal> {
    validate(agent)?;
    let caller = Caller::read(view, context)?;
    let session = &caller.session.session;
    let mut claims: Vec<Claim> = scan(view, claim::of_session(session, CLAIMS_MAX))?;
    claims.retain(|claim| claim.hold.holder.agent.as_deref() == Some(agent));
    let untold: Vec<Notice> = scan(view, notices::waiting_for(session, Some(agent), CLAIMS_MAX))?;
    let waits = Query::equal(waiting::BY_SESSION, session.as_str(), CLAIMS_MAX);
    let mut waits: Vec<Waiter> = scan(view, waits)?;
    waits.retain(|waiter| waiter.hold.holder.agent.as_deref() == Some(agent));
    let mut events = caller.activity(context, &[]);
    for waiter in waits {
        events.push(Event::WaitEnded { waiter: waiter.waiter, why: EndOfWait::Gone });
    }
    if !claims.is_empty() || !untold.is_empty() {
        events.push(Event::SubagentStopped {
            session: session.clone(),
            agent: agent.to_owned(),
            claims: claims.iter().map(|claim| claim.claim.clone()).collect(),
            notices: untold.into_iter().map(|notice| notice.notice).collect(),
        });
    }
    let passed = claims.into_iter().flat_map(|claim| claim.hold.resources).collect();
    Ok((events, Stopped { agent: agent.to_owned(), passed, notices: caller.notices }))
}
