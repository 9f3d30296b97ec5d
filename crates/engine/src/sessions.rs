//! Starting, ending and listing sessions in an open workspace.
//!
//! Owns the making of credentials: the secret is made here, shown once, and only its hash goes to
//! the store.

use std::path::Path;

use baton_core::calls::{self, CALL_LIMIT_DEFAULT, Called};
use baton_core::claim::Claim;
use baton_core::claims::letting_go::Target;
use baton_core::context::{Actor, Context, Life as Seen, Observed};
use baton_core::event::Event;
use baton_core::id::SessionId;
use baton_core::launches;
use baton_core::refusal::Refusal;
use baton_core::roles::giving::{self, Given};
use baton_core::roles::{self, Role};
use baton_core::sessions::{self, Ended, GRACE, Life, Session, Start, Started};
use baton_core::subagents::{self, Stopped};
use baton_core::time::Moment;
use baton_core::view::{Query, View, get, only, scan};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api;
use crate::failure::Failure;
use crate::handing::work;
use crate::policy;
use crate::process::Machine;
use crate::sighting::{left_by, life_of};
use crate::whoami::{process_of, terminal_shell};
use crate::workspace::{Retry, Workspace, secret, secret_hash};

/// How many sessions a list shows at the most.
const LISTED_MAX: u32 = 10_000;

/// A session that was started, with the only copy of its secret.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Credentials {
    pub session: SessionId,
    pub name: String,
    /// `BATON_SESSION` takes this. Whoever has it acts as this session.
    pub credential: String,
    /// What it may do is that role's; one that the policy only names takes nothing away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// What the role may write, in words; nothing where the policy only names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub may: Option<String>,
    pub resumed: bool,
    pub expires_at: Moment,
}

pub fn start(
    workspace: &mut Workspace,
    actor: &Actor,
    wanted: &api::SessionStart,
    operation: Option<&str>,
) -> Result<Credentials, Failure> {
    let process = process_with(workspace, wanted.pid)?;
    begin(workspace, actor, wanted, process, operation)
}

fn process_with(
    workspace: &Workspace,
    pid: Option<u32>,
) -> Result<Option<sessions::Process>, Failure> {
    let Some(pid) = pid else {
        return Ok(None);
    };
    let identity = workspace.machine.of(pid).ok_or(Failure::NoSuchProcess { pid })?;
    Ok(Some(process_of(&workspace.machine, &identity)))
}

/// Goes on with a session that waits for its client, as far as it does.
pub(crate) fn again(
    workspace: &mut Workspace,
    actor: &Actor,
    wanted: &api::SessionStart,
    id: &SessionId,
) -> Result<Option<Credentials>, Failure> {
    let process = process_with(workspace, wanted.pid)?;
    let secret = secret()?;
    let request = request(workspace, actor, wanted, process, &secret)?;
    let starter = Actor { session: None, ..actor.clone() };
    let started = workspace.decide(&starter, Observed::default(), |view, context| {
        launches::again(view, id, &request, context)
    })?;
    started.map(|started| credentials(workspace, started, &secret)).transpose()
}

fn request(
    workspace: &mut Workspace,
    actor: &Actor,
    wanted: &api::SessionStart,
    process: Option<sessions::Process>,
    secret: &str,
) -> Result<Start, Failure> {
    Ok(Start {
        name: wanted.name.clone(),
        client: wanted.client.clone(),
        client_session: wanted.client_session.clone(),
        continues: wanted.continues,
        role: wanted.role.clone(),
        starter: starter_role(workspace, actor)?,
        process,
        host: workspace.machine.host.clone(),
        tree: workspace.tree.clone(),
        ttl: sessions::TTL_DEFAULT,
        secret_hash: secret_hash(secret),
    })
}

fn begin(
    workspace: &mut Workspace,
    actor: &Actor,
    wanted: &api::SessionStart,
    process: Option<sessions::Process>,
    operation: Option<&str>,
) -> Result<Credentials, Failure> {
    // A retry must give the same secret back, and the store must not know it: it follows from the
    // operation id, which the caller made and keeps to itself.
    let secret = match operation {
        Some(operation) => secret_hash(&format!("{operation}/{}", workspace.place.root.display())),
        None => secret()?,
    };
    let request = request(workspace, actor, wanted, process, &secret)?;
    let retry = operation.map(|operation| Retry::of(operation, "session start", wanted));
    // A session that starts another is not the one that acts afterwards.
    let starter = Actor { session: None, ..actor.clone() };
    let started: Started = workspace.decide_once(
        &starter,
        Observed::default(),
        retry.as_ref(),
        |_| true,
        |view, context| sessions::start(view, &request, context),
    )?;
    credentials(workspace, started, &secret)
}

fn credentials(
    workspace: &mut Workspace,
    started: Started,
    secret: &str,
) -> Result<Credentials, Failure> {
    let found = match &started.role {
        Some(role) => policy::roles(workspace)?.role(role),
        None => None,
    };
    if found.as_ref().is_some_and(Role::writes_scratch) {
        make_scratch(&workspace.place.root, &started.session);
    }
    Ok(Credentials {
        may: found.map(|role| role.words(&started.session)),
        role: started.role,
        credential: format!("{}.{secret}", started.session),
        session: started.session,
        name: started.name,
        resumed: started.resumed,
        expires_at: started.expires_at,
    })
}

/// The folder that is this session's to write, which git does not see. Whoever cannot have it made
/// here makes it with the first write.
fn make_scratch(root: &Path, session: &SessionId) {
    let all = root.join(roles::SCRATCH);
    let is_link = |path: &Path| path.symlink_metadata().is_ok_and(|found| found.is_symlink());
    if all.ancestors().take(2).any(is_link) {
        return;
    }
    let made = std::fs::create_dir_all(root.join(roles::scratch_folder(session)));
    let ignore = all.join(".gitignore");
    if made.is_ok() && ignore.symlink_metadata().is_err() {
        let _ = std::fs::write(ignore, "*\n");
    }
}

/// The role of whoever starts a session, if that is a session itself. A person may give any.
pub fn starter_role(workspace: &mut Workspace, actor: &Actor) -> Result<Option<String>, Failure> {
    let Some(id) = actor.session.as_ref().filter(|_| !actor.person) else { return Ok(None) };
    workspace.look(&Actor::default(), Observed::default(), |view, _| {
        Ok(get::<Session>(view, id.as_str())?.and_then(|session| session.role))
    })
}

/// Sets the role of the caller's session, or for a person that of any.
pub fn role(
    workspace: &mut Workspace,
    actor: &Actor,
    wanted: &api::SessionRole,
    operation: Option<&str>,
) -> Result<Given, Failure> {
    let of = match &wanted.of {
        None => None,
        Some(text) => Some(find(workspace, text)?.session),
    };
    let retry = operation.map(|operation| Retry::of(operation, "session role", wanted));
    workspace.decide_once(
        actor,
        Observed::default(),
        retry.as_ref(),
        |_| true,
        |view, context| giving::give(view, &wanted.role, of.as_ref(), context),
    )
}

/// Refuses a role that is wider than the one of whoever asks.
pub fn must_be_within(workspace: &mut Workspace, actor: &Actor, role: &str) -> Result<(), Failure> {
    workspace.look(actor, Observed::default(), |view, _| {
        giving::must_be_within(view, role, actor.session.as_ref())
    })
}

/// A person at a terminal needs no `session start`: the first act makes a session that lives as
/// long as the terminal's shell.
pub fn person_at_terminal(workspace: &mut Workspace, actor: &mut Actor) -> Result<(), Failure> {
    if actor.session.is_some() || !actor.person {
        return Ok(());
    }
    let Some(shell) = terminal_shell(&workspace.machine) else {
        return Ok(());
    };
    let wanted = api::SessionStart { name: std::env::var("USER").ok(), ..Default::default() };
    let alias = shell.alias_key();
    let started = begin(workspace, actor, &wanted, Some(shell), None)?;
    actor.session = Some(started.session);
    actor.proof = baton_core::context::Proof::Alias(alias);
    Ok(())
}

pub fn end(
    workspace: &mut Workspace,
    actor: &Actor,
    wanted: &api::SessionEnd,
    operation: Option<&str>,
) -> Result<Ended, Failure> {
    let target = match &wanted.session {
        None => None,
        Some(text) => Some(find(workspace, text)?.session),
    };
    let who = target.clone().or_else(|| actor.session.clone()).ok_or(Refusal::NoSession)?;
    let mut observed = left_by(workspace, &Target::Session(who.clone()), None)?;
    observed.work = work::of_session(workspace, &who)?;
    let retry = operation.map(|operation| Retry::of(operation, "session end", wanted));
    let grace = wanted.grace.map(|grace| grace.min(GRACE));
    workspace.decide_once(
        actor,
        observed,
        retry.as_ref(),
        |_| true,
        |view, context| sessions::end(view, target.as_ref(), grace, context),
    )
}

/// The caller is about to be silent for the length of a tool call.
pub fn call_start(
    workspace: &mut Workspace,
    actor: &Actor,
    wanted: &api::CallStart,
    operation: Option<&str>,
) -> Result<Called, Failure> {
    let request = calls::Start {
        call: wanted.id.clone().unwrap_or_default(),
        limit: wanted.limit.unwrap_or(CALL_LIMIT_DEFAULT),
        process: process_with(workspace, wanted.pid)?,
    };
    let rule = |view: &dyn View, context: &Context| calls::start(view, &request, context);
    let retry = operation.map(|operation| Retry::of(operation, "session call start", wanted));
    unless_idle(workspace, actor, retry.as_ref(), rule)
}

pub fn call_end(
    workspace: &mut Workspace,
    actor: &Actor,
    wanted: &api::CallEnd,
    operation: Option<&str>,
) -> Result<Called, Failure> {
    let which = match wanted.all {
        true => calls::Which::All,
        false => calls::Which::One(wanted.id.clone().unwrap_or_default()),
    };
    let rule = |view: &dyn View, context: &Context| calls::end(view, &which, context);
    let retry = operation.map(|operation| Retry::of(operation, "session call end", wanted));
    unless_idle(workspace, actor, retry.as_ref(), rule)
}

type Decision = Result<(Vec<Event>, Called), Refusal>;

/// Most calls are short and change nothing: that is seen without waiting for a turn to write.
fn unless_idle(
    workspace: &mut Workspace,
    actor: &Actor,
    retry: Option<&Retry>,
    rule: impl Fn(&dyn View, &Context) -> Decision,
) -> Result<Called, Failure> {
    if retry.is_none() {
        let (events, called) = workspace.look(actor, Observed::default(), &rule)?;
        if events.is_empty() {
            return Ok(called);
        }
    }
    workspace.decide_once(actor, Observed::default(), retry, |_| true, rule)
}

pub fn agent_stop(
    workspace: &mut Workspace,
    actor: &Actor,
    wanted: &api::AgentStop,
    operation: Option<&str>,
) -> Result<Stopped, Failure> {
    let retry = operation.map(|operation| Retry::of(operation, "session agent-stop", wanted));
    workspace.decide_once(
        actor,
        Observed::default(),
        retry.as_ref(),
        |_| true,
        |view, context| subagents::stop(view, &wanted.agent, context),
    )
}

/// A session by its id, or by the name of one that lives.
pub fn find(workspace: &mut Workspace, text: &str) -> Result<Session, Failure> {
    workspace.look(&Actor::default(), Observed::default(), |view, _| {
        if let Some(session) = get::<Session>(view, text)? {
            return Ok(session);
        }
        let named: Vec<Session> = scan(view, Query::equal(sessions::BY_NAME, text, 1))?;
        named.into_iter().next().ok_or_else(|| Refusal::UnknownSession { session: text.to_owned() })
    })
}

/// How a session stands; nothing when there is none.
pub(crate) fn state_of(
    workspace: &mut Workspace,
    session: &SessionId,
) -> Result<Option<SeatState>, Failure> {
    let machine = workspace.machine.clone();
    workspace.look(&Actor::default(), Observed::default(), |view, context| {
        let found = get::<Session>(view, session.as_str())?;
        Ok(found.map(|found| SeatState::of(&found, &machine, context.now)))
    })
}

/// A session as others may see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Seat {
    pub session: SessionId,
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    pub person: bool,
    pub tree: String,
    pub host: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    pub state: SeatState,
    pub claims: usize,
    pub started_at: Moment,
    /// Its last act that left a record. Acts that change nothing leave none: it may have acted
    /// since, for as long as half its lease.
    pub last_recorded_at: Moment,
    /// In a tool call, which keeps its leases alive until then at the latest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy_until: Option<Moment>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SeatState {
    Live,
    /// Nothing heard for the length of its lease.
    Idle,
    /// Its process is visibly gone; its claims go to whoever asks next.
    Dead,
    /// Ended, and may come back until its grace is over.
    Ended,
}

impl SeatState {
    /// How a session stands, as far as this machine can see its process.
    pub(crate) fn of(session: &Session, machine: &Machine, now: Moment) -> Self {
        let process = session.process.as_ref();
        let dead = || process.is_some_and(|process| life_of(machine, process) == Seen::Dead);
        match session.life {
            Life::Ended { .. } => Self::Ended,
            Life::Live if dead() => Self::Dead,
            Life::Live if session.busy_until(now).is_some() => Self::Live,
            Life::Live if now >= session.expires_at => Self::Idle,
            Life::Live => Self::Live,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Seats {
    pub sessions: Vec<Seat>,
}

/// Every session that lives, or with `all` also those that ended.
pub fn list(workspace: &mut Workspace, all: bool) -> Result<Seats, Failure> {
    let machine = workspace.machine.clone();
    workspace.look(&Actor::default(), Observed::default(), |view, context| {
        let mut found: Vec<Session> =
            scan(view, Query::equal(sessions::BY_LIFE, "live", LISTED_MAX))?;
        if all {
            found.extend(scan::<Session>(
                view,
                Query::equal(sessions::BY_LIFE, "ended", LISTED_MAX),
            )?);
        }
        found.sort_by(|one, two| {
            (one.started_at, &one.session).cmp(&(two.started_at, &two.session))
        });
        let of_each: Vec<Query> = found.iter().map(|one| claims_of(&one.session)).collect();
        let mut seats = Vec::with_capacity(found.len());
        for (session, rows) in found.into_iter().zip(view.read(&of_each)?) {
            let claims: Vec<Claim> = only(&rows)?;
            let state = SeatState::of(&session, &machine, context.now);
            seats.push(seat(session, state, &claims, context.now));
        }
        Ok(Seats { sessions: seats })
    })
}

fn claims_of(session: &SessionId) -> Query {
    baton_core::claim::of_session(session, LISTED_MAX)
}

fn seat(session: Session, state: SeatState, claims: &[Claim], now: Moment) -> Seat {
    Seat {
        busy_until: session.busy_until(now),
        session: session.session,
        name: session.name,
        client: session.client,
        role: session.role,
        person: session.person,
        tree: session.tree.0,
        host: session.host,
        pid: session.process.map(|process| process.pid),
        state,
        claims: claims.len(),
        started_at: session.started_at,
        last_recorded_at: claims
            .iter()
            .map(|claim| claim.renewed_at)
            .fold(session.renewed_at, Moment::max),
    }
}

/// Who the caller is, proven.
pub fn whoami(workspace: &mut Workspace, actor: &Actor) -> Result<Seat, Failure> {
    let (session, claims, now) = workspace.look(actor, Observed::default(), |view, context| {
        let caller = baton_core::scene::Caller::read(view, context)?;
        let claims: Vec<Claim> = scan(view, claims_of(&caller.session.session))?;
        Ok((caller.session, claims, context.now))
    })?;
    Ok(seat(session, SeatState::Live, &claims, now))
}
