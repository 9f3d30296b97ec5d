//! The doors that agents' clients open: who comes, and what may be done.
//!
//! Owns the way from a client's own session id to a session of ours, and the deeds behind each kind
//! of act: `edit` judges and claims, `reads` remembers what was read, `activity` who wrote when,
//! `after` what a shell command left, `served` who calls through a server. One verdict stands
//! behind all of them (`core::check`). Knows no client's dialect: `cli/src/hooks` reads and answers
//! those.

use baton_core::context::{Actor, Context, Observed, Proof};
use baton_core::event::Event;
use baton_core::notices::Notice;
use baton_core::refusal::Refusal;
use baton_core::roles::{self, Deed};
use baton_core::sessions::{self as rules, Active, Alias, Life, Session, client_alias};
use baton_core::view::{View, get};
use baton_core::{denials, launches};

use crate::api;
use crate::denying;
use crate::failure::Failure;
use crate::handing;
use crate::place::Place;
use crate::process::agents;
use crate::sessions::{self, Credentials};
use crate::whoami::{self, Hints, process_of};
use crate::workspace::Workspace;

mod activity;
pub mod after;
pub mod askers;
pub mod asking;
pub mod callers;
mod calls;
mod changes;
pub(crate) mod committed;
pub mod edit;
pub mod git;
mod held;
pub mod list;
mod middle;
mod overwriting;
pub(crate) mod own_tree;
mod reach;
pub mod reads;
pub mod served;
pub mod shell;
mod staging;
pub mod stop;
mod sweeping;
mod targets;
pub(crate) mod texts;
mod traces;
pub mod turn;
pub mod unjudged;
mod whereabouts;

pub use calls::UNNAMED;
pub use own_tree::fitting;
use traces::Trace;

/// The longest mark of a probe.
const PROBE_MAX: usize = 64;
/// News that comes with a primer: so much always fits, and what is told is not told again.
const PRIMED_NEWS_MAX: usize = 3;

/// Who comes, as its client says.
#[derive(Clone, Debug)]
pub struct Visitor<'a> {
    pub client: &'a str,
    /// The client's own id of the session.
    pub id: &'a str,
    /// A subagent of it.
    pub agent: Option<&'a str>,
    /// The folder it is in lies in this tree, so this is where it works; otherwise only what it
    /// acts on does.
    pub is_here: bool,
    /// The tool call that is over, where it tells of one: whoever began that is who comes.
    pub ended: Option<&'a str>,
    /// It says that it goes on with an earlier talk.
    pub continues: bool,
    /// `BATON_SESSION` of the client's process.
    pub credential: Option<&'a str>,
    /// The role its launcher gave it.
    pub role: Option<&'a str>,
    /// The role of that subagent, where its definition names one.
    pub agent_role: Option<&'a str>,
}

/// Who that is.
#[derive(Clone, Debug)]
pub struct Admitted {
    pub actor: Actor,
    /// A session that was begun or taken up just now.
    pub begun: Option<Credentials>,
    /// It has a role, or its subagent has.
    pub has_role: bool,
}

/// The session of a client. One that is not known yet is begun: an agent is under the protocol from
/// its first act, whether or not its client told us of the start.
pub fn admit(workspace: &mut Workspace, visitor: &Visitor<'_>) -> Result<Admitted, Failure> {
    let mut actor = Actor {
        tree: Some(workspace.tree.clone()),
        agent: visitor.agent.map(str::to_owned),
        role: visitor.agent_role.filter(|_| visitor.agent.is_some()).map(str::to_owned),
        ..Actor::default()
    };
    let of_agent = actor.role.is_some();
    if let Some(agent) = visitor.agent {
        baton_core::subagents::validate(agent)?;
    }
    let key = client_alias(visitor.client, visitor.id);
    if let Some(session) = known(workspace, &key)? {
        let moved = visitor.is_here && session.tree != workspace.tree;
        if let Some(agent) = visitor.agent
            && own_tree::is_alone(workspace, visitor, agent, &session, moved)?
        {
            return admit_alone(workspace, visitor, agent, &session, actor);
        }
        actor.session = Some(session.session);
        actor.proof = Proof::Alias(key);
        // Where a subagent is says nothing of where its parent is.
        if moved && visitor.agent.is_none() {
            // It went to another tree, or its client made one for it after its first word.
            let tree = workspace.tree.clone();
            workspace.decide(&actor, Observed::default(), |view, context| {
                launches::settle(view, &tree, context)
            })?;
        }
        let has_role = of_agent || session.role.is_some();
        return Ok(Admitted { actor, begun: None, has_role });
    }
    let bound = match bind(workspace, visitor)? {
        Some(bound) => Some(bound),
        None => adopt(workspace, visitor)?,
    };
    if let Some(bound) = bound {
        actor.session = bound.session;
        actor.proof = bound.proof;
        let session = known(workspace, &key)?;
        let has_role = of_agent || session.is_some_and(|session| session.role.is_some());
        return Ok(Admitted { actor, begun: None, has_role });
    }
    traces::tidy(&workspace.place);
    let begun = begin(workspace, visitor)?;
    actor.session = Some(begun.session.clone());
    actor.proof = Proof::Alias(key);
    let has_role = of_agent || begun.role.is_some();
    Ok(Admitted { actor, begun: Some(begun), has_role })
}

/// Who comes, if it is known; nobody is begun.
pub fn find(workspace: &mut Workspace, visitor: &Visitor<'_>) -> Result<Option<Admitted>, Failure> {
    let key = client_alias(visitor.client, visitor.id);
    Ok(known(workspace, &key)?.map(|session| Admitted {
        has_role: session.role.is_some(),
        actor: Actor {
            session: Some(session.session),
            proof: Proof::Alias(key),
            tree: Some(workspace.tree.clone()),
            ..Actor::default()
        },
        begun: None,
    }))
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
        return Err(Refusal::NoSession.into());
    };
    let known = known(workspace, &client_alias(visitor.client, visitor.id))?;
    if known.map(|known| known.session) != Some(session) {
        bind(workspace, visitor)?;
    }
    // A sandbox has a role.
    Ok(Admitted { actor, begun: None, has_role: true })
}

/// A subagent in another tree than its parent's: a session of its own, which no process proves,
/// because the client's is its parent's.
fn admit_alone(
    workspace: &mut Workspace,
    visitor: &Visitor<'_>,
    agent: &str,
    parent: &Session,
    mut actor: Actor,
) -> Result<Admitted, Failure> {
    let id = own_tree::id_of(visitor, agent);
    let key = client_alias(visitor.client, &id);
    actor.agent = None;
    let mut begun = None;
    let mut has_role = actor.role.is_some() || parent.role.is_some();
    actor.session = match known(workspace, &key)? {
        Some(session) => {
            has_role |= session.role.is_some();
            Some(session.session)
        }
        None => {
            own_tree::mark(&workspace.place, &parent.session, visitor.client, &id);
            let wanted = api::SessionStart {
                client: Some(visitor.client.to_owned()),
                client_session: Some(id),
                role: visitor.role.map(str::to_owned).or_else(|| parent.role.clone()),
                ..api::SessionStart::default()
            };
            let starter = Actor { tree: Some(workspace.tree.clone()), ..Actor::default() };
            let credentials = sessions::start(workspace, &starter, &wanted, None)?;
            begun.insert(credentials).session.clone().into()
        }
    };
    actor.proof = Proof::Alias(key);
    Ok(Admitted { actor, begun, has_role })
}

/// A subagent has stopped. What it held passes to its parent. The session that it was in a tree of
/// its own ends, and what it held there waits a while.
pub fn subagent_gone(
    workspace: &mut Workspace,
    visitor: &Visitor<'_>,
    actor: &Actor,
) -> Result<(), Failure> {
    let Some(agent) = visitor.agent else { return Ok(()) };
    let of = |session: Session, key| Actor {
        session: Some(session.session),
        proof: Proof::Alias(key),
        ..Actor::default()
    };
    let key = client_alias(visitor.client, &own_tree::id_of(visitor, agent));
    let alone = known(workspace, &key)?.map(|own| of(own, key));
    if let Some(alone) = &alone {
        leave(workspace, alone)?;
    }
    // It may have worked for its parent before it went away.
    let key = client_alias(visitor.client, visitor.id);
    let parent = match alone {
        Some(_) => known(workspace, &key)?.map(|parent| of(parent, key)),
        None => Some(actor.clone()),
    };
    let Some(parent) = parent else { return Ok(()) };
    let wanted = api::AgentStop { agent: agent.to_owned() };
    sessions::agent_stop(workspace, &parent, &wanted, None).map(|_| ())
}

/// The session ends, and what it held waits a while for its return.
pub fn leave(workspace: &mut Workspace, actor: &Actor) -> Result<(), Failure> {
    checkpoint(workspace, actor)?;
    let wanted = api::SessionEnd { grace: Some(rules::GRACE), ..api::SessionEnd::default() };
    sessions::end(workspace, actor, &wanted, None).map(|_| ())
}

/// What is known of the work is saved; without work there is nothing to save.
pub fn checkpoint(workspace: &mut Workspace, actor: &Actor) -> Result<(), Failure> {
    let wanted = api::handoffs::Checkpoint::default();
    match handing::checkpoint(workspace, actor, &wanted, None) {
        Ok(_) | Err(Failure::Refused(_)) => Ok(()),
        Err(other) => Err(other),
    }
}

/// The live session behind an alias. One that ended may be taken up again only by `begin`.
fn known(workspace: &mut Workspace, key: &str) -> Result<Option<Session>, Failure> {
    workspace.look(&Actor::default(), Observed::default(), |view, _| {
        let Some(Alias { session: Some(id), .. }) = get::<Alias>(view, key)? else {
            return Ok(None);
        };
        let session = get::<Session>(view, id.as_str())?;
        Ok(session.filter(|session| session.life == Life::Live))
    })
}

/// The client was started with a credential: its own id now means the same session. A credential
/// that came down from another agent is none of its own.
fn bind(workspace: &mut Workspace, visitor: &Visitor<'_>) -> Result<Option<Actor>, Failure> {
    let Some(credential) = visitor.credential else {
        return Ok(None);
    };
    let hints = Hints { environment: Some(credential.to_owned()), ..Hints::default() };
    let actor = match whoami::actor(workspace, &hints) {
        // What is no credential proves nothing: the client's own id decides.
        Err(Failure::BadCredentialText { .. }) => return Ok(None),
        other => other?,
    };
    let process = process(workspace, visitor.client);
    bind_as(workspace, visitor, actor, process.as_ref())
}

fn bind_as(
    workspace: &mut Workspace,
    visitor: &Visitor<'_>,
    actor: Actor,
    process: Option<&rules::Process>,
) -> Result<Option<Actor>, Failure> {
    let bound = workspace.decide(&actor, Observed::default(), |view, context| {
        rules::bind(view, visitor.client, visitor.id, process, context)
    });
    match bound {
        Ok(true) => Ok(Some(actor)),
        // The proof may be of an earlier life of this store: then it proves nothing.
        Ok(false) | Err(Failure::Refused(_)) => Ok(None),
        Err(other) => Err(other),
    }
}

/// A client may come back in another process, after one that ended without a word: its session is
/// that process's now, or it would count as dead while it works.
pub fn came_back(
    workspace: &mut Workspace,
    visitor: &Visitor<'_>,
    actor: &Actor,
) -> Result<(), Failure> {
    let Some(process) = process(workspace, visitor.client) else { return Ok(()) };
    let key = client_alias(visitor.client, visitor.id);
    let elsewhere = |session: Session| session.process.as_ref() != Some(&process);
    if known(workspace, &key)?.is_some_and(elsewhere) {
        bind_as(workspace, visitor, actor.clone(), Some(&process))?;
    }
    Ok(())
}

/// The client acted through a server of its own before any hook was called: the session of its
/// process, which has no id of the client's yet, is this one.
fn adopt(workspace: &mut Workspace, visitor: &Visitor<'_>) -> Result<Option<Actor>, Failure> {
    let Some(process) = process(workspace, visitor.client) else {
        return Ok(None);
    };
    let key = process.alias_key();
    let Some(session) = known(workspace, &key)? else {
        return Ok(None);
    };
    let tree = Some(workspace.tree.clone());
    let proof = Proof::Alias(key);
    let session = Some(session.session);
    let actor = Actor { session, proof, tree, ..Actor::default() };
    bind_as(workspace, visitor, actor, Some(&process))
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
    begin_as(workspace, &wanted)
}

fn begin_as(workspace: &mut Workspace, wanted: &api::SessionStart) -> Result<Credentials, Failure> {
    let starter = Actor { tree: Some(workspace.tree.clone()), ..Actor::default() };
    sessions::start(workspace, &starter, wanted, None)
}

/// The client's process among our ancestors: when it ends, what it held is free.
fn process(workspace: &Workspace, client: &str) -> Option<rules::Process> {
    let machine = &workspace.machine;
    let (found, ancestor) = agents::agent_among(machine.ancestors())?;
    (found == client).then(|| process_of(machine, &ancestor.identity))
}

/// A sign of life, and what the session must be told. Most of the time that writes nothing.
pub fn alive(workspace: &mut Workspace, actor: &Actor) -> Result<Vec<Notice>, Failure> {
    signs(workspace, actor, rules::active)
}

/// A sign of life of a session that is told everything anew, the rules in this version included.
pub fn primed(
    workspace: &mut Workspace,
    actor: &Actor,
    version: Option<&str>,
) -> Result<Vec<Notice>, Failure> {
    signs(workspace, actor, |view, context| {
        baton_core::rules::told(view, version, PRIMED_NEWS_MAX, context)
    })
}

/// Decides only where the look shows that there is something to write.
fn signs(
    workspace: &mut Workspace,
    actor: &Actor,
    rule: impl Fn(&dyn View, &Context) -> Result<(Vec<Event>, Active), Refusal>,
) -> Result<Vec<Notice>, Failure> {
    let (events, active) = workspace.look(actor, Observed::default(), &rule)?;
    let active = match events.is_empty() {
        true => active,
        false => workspace.decide(actor, Observed::default(), &rule)?,
    };
    Ok(active.notices)
}

/// What keeps the role of whoever acts from this deed; nothing for one without a role.
pub(crate) fn not_by_role(
    workspace: &mut Workspace,
    actor: &Actor,
    deed: Deed<'_>,
) -> Result<Option<Box<roles::Refused>>, Failure> {
    let Some(id) = actor.session.as_ref() else { return Ok(None) };
    let judged = workspace.look(actor, Observed::default(), |view, context| {
        match get::<Session>(view, id.as_str())? {
            Some(session) => roles::admit(view, &session, &[deed], context),
            None => Ok(()),
        }
    });
    match judged {
        Ok(()) => Ok(None),
        Err(Failure::Refused(Refusal::Role(refused))) => Ok(Some(refused)),
        Err(other) => Err(other),
    }
}

/// As `not_by_role`, for the shell: what is refused is written down.
pub fn shell_not_by_role(
    workspace: &mut Workspace,
    actor: &Actor,
    line: &str,
) -> Result<Option<Box<roles::Refused>>, Failure> {
    let mut refused = not_by_role(workspace, actor, Deed::Use(roles::Tool::Shell))?;
    // Git's own hooks know the session, and none of its subagents.
    if refused.is_none() && baton_core::shell::makes_commits(line) {
        refused = not_by_role(workspace, actor, Deed::Commit)?;
    }
    if let Some(refused) = &refused {
        let denied = denials::Refused::by_role(denials::Deed::Shell, refused);
        denying::note(workspace, actor, vec![denied]);
    }
    Ok(refused)
}

/// A probe came through: its mark is left for whoever sent it.
pub fn probed(place: &Place, mark: &str) {
    let plain = mark.len() <= PROBE_MAX && mark.chars().all(|c| c.is_ascii_alphanumeric());
    if plain {
        Trace::named(place, "probes").add(mark);
    }
}

pub(crate) fn was_probed(place: &Place, mark: &str) -> bool {
    Trace::named(place, "probes").lines().iter().any(|line| line == mark)
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
