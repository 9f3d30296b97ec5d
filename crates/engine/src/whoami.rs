//! Which session am I, and is a person acting?
//!
//! The order of belief: an explicit credential, `BATON_SESSION`, the client's session id in the
//! environment, the nearest known agent among the ancestors, the terminal's shell. What is found
//! here is only a claim to be someone; the deciding transaction checks the proof again (S19).

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use baton_core::context::{Actor, Proof};
use baton_core::id::SessionId;
use baton_core::policy::Standing;
use baton_core::refusal::Refusal;
use baton_core::sessions::{self, Alias, PersonToken, Process};
use baton_core::subagents;
use baton_core::view::{Query, parse};

use crate::doors::{callers, fitting, own_tree};
use crate::failure::Failure;
use crate::process::{self, Identity, Machine, agents};
use crate::sandbox;
use crate::workspace::{Workspace, secret_hash};

/// What the caller says about itself.
#[derive(Clone, Debug, Default)]
pub struct Hints {
    /// A credential given with `--session`.
    pub credential: Option<String>,
    /// `BATON_SESSION`.
    pub environment: Option<String>,
    /// The client's own session id: from a hook's payload or MCP metadata.
    pub client_session: Option<(String, String)>,
    /// A file with the person token.
    pub person_token: Option<PathBuf>,
    /// A subagent of the session.
    pub agent: Option<String>,
    /// The words of the command, without the program: they may tell the subagent that runs it.
    pub words: Option<Vec<OsString>>,
}

/// The process as the rules know it.
pub fn process_of(machine: &Machine, identity: &Identity) -> Process {
    Process {
        host: machine.host.clone(),
        boot: identity.boot.clone(),
        namespace: identity.namespace,
        pid: identity.pid,
        start: identity.start,
    }
}

/// Someone who acts as no session: to start one, or only to read.
pub fn bystander(workspace: &mut Workspace, hints: &Hints) -> Result<Actor, Failure> {
    hints.agent.as_deref().map_or(Ok(()), subagents::validate)?;
    Ok(Actor {
        tree: Some(workspace.tree.clone()),
        agent: hints.agent.clone(),
        person: is_person(workspace, hints)?,
        ..Actor::default()
    })
}

/// Who starts a session: itself one, perhaps. Whatever keeps that from being known is no obstacle.
pub fn starter(workspace: &mut Workspace, hints: &Hints) -> Result<Actor, Failure> {
    actor(workspace, hints).or_else(|_| bystander(workspace, hints))
}

/// Who reads. A process that fits several sessions is nobody in particular, and may read as such.
pub fn reader(workspace: &mut Workspace, hints: &Hints) -> Result<Actor, Failure> {
    match actor(workspace, hints) {
        Err(Failure::Refused(Refusal::AmbiguousProcess { .. }) | Failure::SeveralAgents { .. }) => {
            bystander(workspace, hints)
        }
        other => other,
    }
}

/// Who acts.
pub fn actor(workspace: &mut Workspace, hints: &Hints) -> Result<Actor, Failure> {
    let mut actor = bystander(workspace, hints)?;
    if let Some(text) = hints.credential.as_ref().or(hints.environment.as_ref()) {
        let (session, proof) = credential(text)?;
        actor.session = Some(session);
        actor.proof = proof;
    } else if let Some((session, key)) = known_alias(workspace, hints)? {
        actor.session = Some(session);
        actor.proof = Proof::Alias(key);
    }
    let mut actor = own_tree::instead(workspace, actor);
    if let (None, Some(session), Some(words)) = (&actor.agent, &actor.session, &hints.words) {
        let running = callers::running(&workspace.place, session, words);
        (actor.agent, actor.role) =
            running.map_or((None, actor.role), |(agent, role)| (Some(agent), role));
    }
    // A sandbox may be of a narrower role than its session.
    actor.role = actor.role.or_else(sandbox::bound_role);
    Ok(actor)
}

/// `<public id>.<secret>`.
pub(crate) fn credential(text: &str) -> Result<(SessionId, Proof), Failure> {
    match text.trim().split_once('.') {
        Some((id, secret)) if !id.is_empty() && !secret.is_empty() => {
            Ok((SessionId(id.to_owned()), Proof::Secret(secret_hash(secret))))
        }
        // What was given may hold a secret: only its public half is repeated.
        _ => Err(Failure::BadCredentialText {
            given: text.split('.').next().unwrap_or_default().chars().take(20).collect(),
        }),
    }
}

/// The first alias that is known to the store, in the order of belief.
fn known_alias(
    workspace: &mut Workspace,
    hints: &Hints,
) -> Result<Option<(SessionId, String)>, Failure> {
    let keys = alias_keys(&workspace.machine, hints)?;
    if keys.is_empty() {
        return Ok(None);
    }
    let queries: Vec<Query> = keys.iter().map(|key| Query::get::<Alias>(key.key.clone())).collect();
    let snapshot = workspace.store.snapshot()?;
    let answers = snapshot.read(&queries).map_err(Refusal::from)?;
    for (key, rows) in keys.iter().zip(&answers) {
        let Some(row) = rows.first() else { continue };
        let alias: Alias = parse(&row.body).map_err(Refusal::from)?;
        return match alias.session {
            Some(session) => Ok(Some((session, key.key.clone()))),
            None => Err(Refusal::AmbiguousProcess { pid: key.pid }.into()),
        };
    }
    Ok(None)
}

struct AliasKey {
    key: String,
    pid: u32,
}

fn alias_keys(machine: &Machine, hints: &Hints) -> Result<Vec<AliasKey>, Failure> {
    let mut keys = Vec::new();
    let mut client = |client: &str, id: &str| {
        keys.push(AliasKey { key: sessions::client_alias(client, &fitting(id)), pid: 0 });
    };
    if let Some((name, id)) = &hints.client_session {
        client(name, id);
    } else if let Some(hint) = agents::agent_environment()
        .map_err(|several| Failure::SeveralAgents { clients: several.clients })?
        && let Some(id) = &hint.client_session
    {
        client(&hint.client, id);
    }
    let process = |identity: &Identity| AliasKey {
        key: process_of(machine, identity).alias_key(),
        pid: identity.pid,
    };
    // Ourselves first: a shell replaces itself with the last command of a script, and then the
    // process that was bound to a session is this very one.
    keys.extend(machine.current().iter().map(process));
    keys.extend(machine.ancestors().map(|ancestor| process(&ancestor.identity)));
    Ok(keys)
}

/// The shell of the terminal, which stands for a person who typed a command.
pub fn terminal_shell(machine: &Machine) -> Option<Process> {
    machine.terminal_shell().map(|shell| process_of(machine, &shell))
}

/// Is an agent anywhere above this process, or named by its environment?
pub fn agent_above(machine: &Machine) -> bool {
    !matches!(agents::agent_environment(), Ok(None))
        || agents::agent_among(machine.ancestors()).is_some()
}

/// Whose word this is when something must not be left to agents. Without a person, whoever acts as
/// a session is taken for an agent, whatever started it.
pub fn standing(workspace: &Workspace, actor: &Actor) -> Standing {
    match (actor.person, actor.session.is_some() || agent_above(&workspace.machine)) {
        (true, _) => Standing::Person,
        (false, true) => Standing::Agent,
        (false, false) => Standing::Unattended,
    }
}

/// A person is a terminal with no agent above it, or whoever shows the person token.
fn is_person(workspace: &mut Workspace, hints: &Hints) -> Result<bool, Failure> {
    if let Some(path) = &hints.person_token {
        return person_token(workspace, path).map(|()| true);
    }
    Ok(process::controlling_terminal().is_some() && !agent_above(&workspace.machine))
}

fn person_token(workspace: &mut Workspace, path: &Path) -> Result<(), Failure> {
    let wrong = |why| Failure::PersonToken { path: path.to_owned(), why };
    let metadata = std::fs::metadata(path).map_err(|_| wrong("it cannot be read"))?;
    {
        use std::os::unix::fs::MetadataExt;
        if metadata.mode() & 0o077 != 0 {
            return Err(wrong("others can read it: it must be mode 0600"));
        }
    }
    let full = path.canonicalize().map_err(|_| wrong("it cannot be read"))?;
    if full.ancestors().skip(1).any(|folder| folder.join(".git").exists())
        || full.starts_with(&workspace.place.root)
    {
        return Err(wrong("it lies inside a repository"));
    }
    let text = std::fs::read_to_string(&full).map_err(|_| wrong("it cannot be read"))?;
    let hash = secret_hash(text.trim());
    let snapshot = workspace.store.snapshot()?;
    let known = snapshot.read(&[Query::get::<PersonToken>(hash)]).map_err(Refusal::from)?;
    match known.first().is_some_and(|rows| !rows.is_empty()) {
        true => Ok(()),
        false => Err(wrong("this workspace does not know it")),
    }
}
