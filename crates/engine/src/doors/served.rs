//! Who calls through a server that its client started (MCP).
//!
//! Owns the way from such a call to a session. The connection is no identity: what the client says
//! of its own session is, then a credential in the environment, then the client's process, which is
//! the nearest known agent above the server, or else whoever started it. Nothing farther up is
//! asked: the shell that a person started the agent from is the person's. Invariant: a call through
//! a server is never a person's word.

use baton_core::context::{Actor, Observed, Proof};
use baton_core::id::SessionId;
use baton_core::refusal::Refusal;
use baton_core::sessions::{Alias, Life, Process, Session, TEXT_BYTES_MAX, client_alias, is_bidi};
use baton_core::view::{Query, get, parse};

use super::{Visitor, admit, begin_as, fitting};
use crate::api;
use crate::failure::Failure;
use crate::process::agents;
use crate::whoami::{credential, process_of};
use crate::workspace::Workspace;

/// What a call says of its caller.
#[derive(Clone, Debug, Default)]
pub struct Call<'a> {
    /// `BATON_SESSION` of the server.
    pub credential: Option<&'a str>,
    /// The client and its own id of the session, from the call itself.
    pub session: Option<(&'a str, &'a str)>,
    /// What the client calls itself.
    pub name: Option<&'a str>,
}

/// The process that started the server, and what is known of it. It stays the same while that
/// process lives, so it is looked up once.
#[derive(Clone, Debug)]
pub struct Parent {
    pid: Option<u32>,
    /// The agent above, if one is known.
    client: Option<&'static str>,
    processes: Vec<Process>,
    /// What the environment says of the agent.
    environment: Result<Option<(String, String)>, Vec<String>>,
}

impl Parent {
    pub fn look(workspace: &Workspace) -> Self {
        let machine = &workspace.machine;
        let found = agents::agent_among(machine.ancestors());
        let client = found.as_ref().map(|(client, _)| *client);
        let agent = found.map(|(_, ancestor)| ancestor.identity);
        let mut processes = Vec::new();
        for ancestor in machine.ancestors() {
            let last = agent.as_ref().is_none_or(|agent| *agent == ancestor.identity);
            processes.push(process_of(machine, &ancestor.identity));
            if last {
                break;
            }
        }
        let environment = match agents::agent_environment() {
            Err(several) => Err(several.clients),
            Ok(hint) => Ok(hint
                .and_then(|hint| Some((hint.client, hint.client_session?)))
                // Handed down by an agent farther up, it is that one's.
                .filter(|(named, _)| client.is_none_or(|client| client == named))),
        };
        Self { pid: pid_of_parent(), client, processes, environment }
    }

    /// Whether this is still who started the server.
    pub fn is_there(&self) -> bool {
        self.pid == pid_of_parent()
    }
}

fn pid_of_parent() -> Option<u32> {
    rustix::process::getppid().map(|pid| pid.as_raw_pid().cast_unsigned())
}

/// The caller's session, if it has one. Reading needs none.
pub fn find(workspace: &mut Workspace, parent: &Parent, call: &Call<'_>) -> Result<Actor, Failure> {
    let mut actor = Actor { tree: Some(workspace.tree.clone()), ..Actor::default() };
    if let Some((session, proof)) = by_credential(workspace, parent, call)? {
        actor.session = Some(session);
        actor.proof = proof;
        return Ok(actor);
    }
    let keys = keys(parent, call)?;
    if let Some((session, key)) = by_alias(workspace, &keys, parent.pid)? {
        actor.session = Some(session);
        actor.proof = Proof::Alias(key);
    }
    Ok(actor)
}

/// Names under which the caller's session may be known, the one that counts most first.
fn keys(parent: &Parent, call: &Call<'_>) -> Result<Vec<String>, Failure> {
    let client = match (call.session, &parent.environment) {
        (Some((client, id)), _) => Some(client_alias(client, &fitting(id))),
        (None, Err(clients)) => return Err(Failure::SeveralAgents { clients: clients.clone() }),
        (None, Ok(Some((client, id)))) => Some(client_alias(client, &fitting(id))),
        (None, Ok(None)) => None,
    };
    // A client that names its session means that one, and no other of the same process.
    let processes = match call.session {
        Some(_) => [].iter(),
        None => parent.processes.iter(),
    };
    Ok(client.into_iter().chain(processes.map(Process::alias_key)).collect())
}

/// Whether the same call is the same session's until a rule says otherwise: it was found under the
/// name that counts most, and every act proves that this name still means it.
pub fn is_certain(actor: &Actor, parent: &Parent, call: &Call<'_>) -> bool {
    let Proof::Alias(found) = &actor.proof else { return false };
    let first = || keys(parent, call).ok()?.into_iter().next();
    call.credential.is_none() && first().as_ref() == Some(found)
}

/// The caller's session, which is begun if it has none: an agent is under the protocol from its
/// first act.
pub fn find_to_act(
    workspace: &mut Workspace,
    parent: &Parent,
    call: &Call<'_>,
) -> Result<Actor, Failure> {
    let actor = find(workspace, parent, call)?;
    if actor.session.is_some() {
        return Ok(actor);
    }
    let named = match (call.session, &parent.environment) {
        (Some(named), _) => Some(named),
        (None, Ok(Some((client, id)))) => Some((client.as_str(), id.as_str())),
        (None, _) => None,
    };
    if let Some((client, id)) = named {
        let visitor = Visitor {
            client,
            id: &fitting(id),
            agent: None,
            // A server stays where it was started, wherever its agent works.
            is_here: false,
            ended: None,
            agent_role: None,
            continues: false,
            credential: None,
            role: None,
        };
        return Ok(admit(workspace, &visitor)?.actor);
    }
    let Some(process) = parent.processes.last() else {
        return Err(Refusal::NoSession.into());
    };
    let client = parent.client.map(str::to_owned).or_else(|| call.name.and_then(name));
    let wanted = api::SessionStart { client, pid: Some(process.pid), ..Default::default() };
    let begun = begin_as(workspace, &wanted)?;
    let proof = Proof::Alias(process.alias_key());
    Ok(Actor { session: Some(begun.session), proof, ..actor })
}

/// The session of the agent above us, which is begun if it has none; nothing without an agent. For
/// doors to which an agent comes without a word of its client's.
pub(super) fn agent_above(workspace: &mut Workspace) -> Result<Option<Actor>, Failure> {
    let parent = Parent::look(workspace);
    match parent.client {
        Some(_) => find_to_act(workspace, &parent, &Call::default()).map(Some),
        None => Ok(None),
    }
}

/// What a client calls itself, if that can be a client's name.
fn name(text: &str) -> Option<String> {
    let plain: String = text.chars().filter(|c| !c.is_control() && !is_bidi(*c)).collect();
    let plain = plain.trim();
    let mut end = plain.len().min(TEXT_BYTES_MAX);
    while !plain.is_char_boundary(end) {
        end -= 1;
    }
    (end > 0).then(|| plain[..end].to_owned())
}

/// The credential in the environment, unless it is that of another agent farther up.
fn by_credential(
    workspace: &mut Workspace,
    parent: &Parent,
    call: &Call<'_>,
) -> Result<Option<(SessionId, Proof)>, Failure> {
    let Some(text) = call.credential else {
        return Ok(None);
    };
    let (session, proof) = credential(text)?;
    let Some(above) = parent.client else {
        return Ok(Some((session, proof)));
    };
    let known = workspace.look(&Actor::default(), Observed::default(), |view, _| {
        Ok(get::<Session>(view, session.as_str())?)
    })?;
    let inherited = known.and_then(|known| known.client).is_some_and(|client| client != above);
    Ok((!inherited).then_some((session, proof)))
}

/// The first of these that is known and means a session that lives.
fn by_alias(
    workspace: &mut Workspace,
    keys: &[String],
    pid: Option<u32>,
) -> Result<Option<(SessionId, String)>, Failure> {
    let queries: Vec<Query> = keys.iter().map(|key| Query::get::<Alias>(key.clone())).collect();
    workspace.look(&Actor::default(), Observed::default(), |view, _| {
        for (key, rows) in keys.iter().zip(view.read(&queries)?) {
            let Some(row) = rows.first() else { continue };
            let Alias { session: Some(id), .. } = parse(&row.body)? else {
                return Err(Refusal::AmbiguousProcess { pid: pid.unwrap_or_default() });
            };
            // One that ended is taken up again by its client's hooks, or a new one is begun.
            let session = get::<Session>(view, id.as_str())?;
            if session.is_some_and(|session| session.life == Life::Live) {
                return Ok(Some((id, key.clone())));
            }
        }
        Ok(None)
    })
}
