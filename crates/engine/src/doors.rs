//! The doors that agents' clients open: who comes, and what may be done.
//!
//! Owns the way from a client's own session id to a session of ours, and the deeds behind each kind
//! of act: `edit` judges and claims, `reads` remembers what was read, `activity` who wrote when,
//! `after` what a shell command left. One verdict stands behind all of them (`core::check`).
//! Knows no client's dialect: `cli/src/hooks` reads and answers those.

use baton_core::context::{Actor, Observed, Proof};
use baton_core::id::SessionId;
use baton_core::notices::Notice;
use baton_core::sessions::{self as rules, Active, Alias, Life, Session, client_alias};
use baton_core::view::{View, get};

use crate::api;
use crate::failure::Failure;
use crate::place::Place;
use crate::process::agents;
use crate::sessions::{self, Credentials};
use crate::whoami::{self, Hints, process_of};
use crate::workspace::Workspace;

mod activity;
pub mod after;
pub mod edit;
pub mod reads;
pub mod shell;
pub mod stop;
mod traces;

use traces::Trace;

/// Who comes, as its client says.
#[derive(Clone, Debug)]
pub struct Visitor<'a> {
    pub client: &'a str,
    /// The client's own id of the session.
    pub id: &'a str,
    /// A subagent of it.
    pub agent: Option<&'a str>,
    /// It says that it goes on with an earlier talk.
    pub continues: bool,
    /// `BATON_SESSION` of the client's process.
    pub credential: Option<&'a str>,
    /// The role its launcher gave it.
    pub role: Option<&'a str>,
}

/// Who that is.
#[derive(Clone, Debug)]
pub struct Admitted {
    pub actor: Actor,
    /// A session that was begun or taken up just now.
    pub begun: Option<Credentials>,
}

/// The session of a client. One that is not known yet is begun: an agent is under the protocol from
/// its first act, whether or not its client told us of the start.
pub fn admit(workspace: &mut Workspace, visitor: &Visitor<'_>) -> Result<Admitted, Failure> {
    let mut actor = Actor {
        tree: Some(workspace.tree.clone()),
        agent: visitor.agent.map(str::to_owned),
        ..Actor::default()
    };
    if let Some(agent) = visitor.agent {
        baton_core::subagents::validate(agent)?;
    }
    let key = client_alias(visitor.client, visitor.id);
    if let Some(session) = known(workspace, &key)? {
        actor.session = Some(session);
        actor.proof = Proof::Alias(key);
        return Ok(Admitted { actor, begun: None });
    }
    if let Some(bound) = bind(workspace, visitor)? {
        actor.session = bound.session;
        actor.proof = bound.proof;
        return Ok(Admitted { actor, begun: None });
    }
    let begun = begin(workspace, visitor)?;
    actor.session = Some(begun.session.clone());
    actor.proof = Proof::Alias(key);
    Ok(Admitted { actor, begun: Some(begun) })
}

/// Who comes out of a sandbox: its session, whatever id its client says. That id becomes an alias
/// where the session has none yet; nobody is begun.
pub fn admit_bound(workspace: &mut Workspace, visitor: &Visitor<'_>) -> Result<Admitted, Failure> {
    let hints = Hints {
        environment: visitor.credential.map(str::to_owned),
        agent: visitor.agent.map(str::to_owned),
        ..Hints::default()
    };
    let actor = whoami::actor(workspace, &hints)?;
    let Some(session) = actor.session.clone() else {
        return Err(baton_core::refusal::Refusal::NoSession.into());
    };
    if known(workspace, &client_alias(visitor.client, visitor.id))? != Some(session) {
        bind(workspace, visitor)?;
    }
    Ok(Admitted { actor, begun: None })
}

/// The live session behind an alias. One that ended may be taken up again only by `begin`.
fn known(workspace: &mut Workspace, key: &str) -> Result<Option<SessionId>, Failure> {
    workspace.look(&Actor::default(), Observed::default(), |view, _| {
        let Some(Alias { session: Some(id), .. }) = get::<Alias>(view, key)? else {
            return Ok(None);
        };
        let session = get::<Session>(view, id.as_str())?;
        Ok(session.filter(|session| session.life == Life::Live).map(|session| session.session))
    })
}

/// The client was started with a credential: its own id now means the same session. A credential
/// that came down from another agent is none of its own.
fn bind(workspace: &mut Workspace, visitor: &Visitor<'_>) -> Result<Option<Actor>, Failure> {
    let Some(credential) = visitor.credential else {
        return Ok(None);
    };
    let hints = Hints { environment: Some(credential.to_owned()), ..Hints::default() };
    let actor = whoami::actor(workspace, &hints)?;
    let process = process(workspace, visitor.client);
    let bound = workspace.decide(&actor, Observed::default(), |view, context| {
        rules::bind(view, visitor.client, visitor.id, process.as_ref(), context)
    });
    match bound {
        Ok(true) => Ok(Some(actor)),
        // The credential may be of an earlier life of this store: then it proves nothing.
        Ok(false) | Err(Failure::Refused(_)) => Ok(None),
        Err(other) => Err(other),
    }
}

/// Begins the session of a client, or takes up the one it had.
pub fn begin(workspace: &mut Workspace, visitor: &Visitor<'_>) -> Result<Credentials, Failure> {
    let wanted = api::SessionStart {
        client: Some(visitor.client.to_owned()),
        client_session: Some(visitor.id.to_owned()),
        continues: visitor.continues,
        role: visitor.role.map(str::to_owned),
        pid: process(workspace, visitor.client).map(|process| process.pid),
        name: None,
    };
    let starter = Actor { tree: Some(workspace.tree.clone()), ..Actor::default() };
    sessions::start(workspace, &starter, &wanted, None)
}

/// The client's process among our ancestors: when it ends, what it held is free.
fn process(workspace: &Workspace, client: &str) -> Option<rules::Process> {
    let machine = &workspace.machine;
    let (found, ancestor) = agents::agent_among(machine.ancestors())?;
    (found == client).then(|| process_of(machine, &ancestor.identity))
}

/// A sign of life, and what the session must be told. Most of the time that writes nothing.
pub fn alive(workspace: &mut Workspace, actor: &Actor) -> Result<Vec<Notice>, Failure> {
    let rule = |view: &dyn View, context: &_| rules::active(view, context);
    let (events, active): (Vec<_>, Active) = workspace.look(actor, Observed::default(), rule)?;
    if events.is_empty() {
        return Ok(active.notices);
    }
    let Active { notices } = workspace.decide(actor, Observed::default(), rule)?;
    Ok(notices)
}

/// Words for a session's model that could not be said when they were due.
pub fn keep_words(place: &Place, actor: &Actor, text: &str) {
    let Some(session) = &actor.session else { return };
    let trace = Trace::of_session(place, session, "words");
    text.lines().for_each(|line| trace.add(line));
}

/// Those words, once.
pub fn kept_words(place: &Place, actor: &Actor) -> String {
    let Some(session) = &actor.session else { return String::new() };
    let lines = Trace::of_session(place, session, "words").take();
    lines.into_iter().map(|line| line + "\n").collect()
}
