//! Sessions: who acts, how a caller proves to be one, and how one begins, goes on and ends.
//!
//! Owns identity. A session is a random public id with a secret; client ids and processes are
//! aliases of it, and names are for people only (never an identity). Refuses to know how a process
//! looks: the engine reports that.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::calls::{self, Call};
use crate::claim::{self, Claim};
use crate::context::{Context, Proof};
use crate::event::{EndOfClaim, EndOfReview, EndOfSession, EndOfWait, Event, Renewal};
use crate::handoffs::{self, checkpoint};
use crate::id::{SessionId, TaskId, TreeId};
use crate::notices::{self, Notice};
use crate::refusal::Refusal;
use crate::resource::Resource;
use crate::roles::giving;
use crate::rules::Seen;
use crate::scene::Caller;
use crate::state::drafts;
use crate::task::{self, Move, Task};
use crate::tasks::{self, reviewing};
use crate::time::{Moment, Span};
use crate::view::{Index, Kind, Query, Record, View, get, only, scan};
use crate::waiting::{self, Waiter};

mod clients;
mod naming;
mod tokens;

pub use clients::client_alias;
use clients::{client_bound, fingerprint, process_alias};
pub use tokens::PersonToken;

/// A session is kept alive by its acts; this long without one and it counts as idle.
pub const TTL_DEFAULT: Span = Span::minutes(30);
/// How long an ended session's client may come back to it.
pub const GRACE: Span = Span::minutes(10);
pub const TEXT_BYTES_MAX: usize = 64;
/// Secrets that prove one session: every return of its client makes one, older ones go.
const SECRETS_MAX: usize = 4;
const CLAIMS_MAX: u32 = 100_000;

pub const BY_LIFE: Index = "session.life";
pub const BY_NAME: Index = "session.name";

/// A process on one machine, in one pid namespace, in one boot. Nothing less is an identity.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Process {
    pub host: String,
    pub boot: String,
    pub namespace: u64,
    pub pid: u32,
    pub start: u64,
}

impl Process {
    /// The key of the alias record of this process.
    pub fn alias_key(&self) -> String {
        format!(
            "process:{}:{}:{}:{}:{}",
            self.host, self.boot, self.namespace, self.pid, self.start
        )
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "life", rename_all = "lowercase")]
pub enum Life {
    Live,
    Ended { at: Moment, grace_until: Option<Moment> },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Session {
    pub session: SessionId,
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The fingerprint of the client's own id of it, the latest it gave. A process that starts with
    /// the credential of a session that has one already is another agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_session: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    pub person: bool,
    pub tree: TreeId,
    pub host: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<Process>,
    /// Hashes of the secrets that prove this session; the secrets themselves are never stored.
    pub secret_hashes: Vec<String>,
    pub started_at: Moment,
    pub renewed_at: Moment,
    pub expires_at: Moment,
    pub ttl: Span,
    /// Its tasks in review: an edit of what they froze withdraws them. Here, so that a claim of
    /// anybody else looks at nothing more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub submissions: Vec<TaskId>,
    /// The rules of the project it was told last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules: Option<Seen>,
    /// Tool calls it is in that its leases alone would not cover.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<Call>,
    #[serde(flatten)]
    pub life: Life,
}

impl Record for Session {
    const KIND: Kind = "session";

    fn key(&self) -> String {
        self.session.0.clone()
    }

    fn index_entries(&self) -> Vec<(Index, String)> {
        match self.life {
            Life::Live => {
                vec![(BY_LIFE, "live".to_owned()), (BY_NAME, self.name.clone())]
            }
            Life::Ended { .. } => vec![(BY_LIFE, "ended".to_owned())],
        }
    }
}

/// Another way to know a session: a client's own session id, or a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Alias {
    pub alias: String,
    /// `None` when the alias fits more than one session and so identifies nobody.
    pub session: Option<SessionId>,
}

impl Record for Alias {
    const KIND: Kind = "alias";

    fn key(&self) -> String {
        self.alias.clone()
    }

    fn index_entries(&self) -> Vec<(Index, String)> {
        Vec::new()
    }
}

/// Is the proof good for this session? What is shown in public never is (S19).
pub fn prove(session: &Session, alias: Option<&Alias>, proof: &Proof) -> Result<(), Refusal> {
    let good = match proof {
        Proof::None => false,
        Proof::Secret(hash) => session.secret_hashes.contains(hash),
        Proof::Alias(key) => alias.is_some_and(|alias| {
            alias.alias == *key && alias.session.as_ref() == Some(&session.session)
        }),
    };
    if good { Ok(()) } else { Err(Refusal::BadCredential { session: session.session.clone() }) }
}

/// A request to begin, its surroundings settled.
#[derive(Clone, Debug, Serialize)]
pub struct Start {
    pub name: Option<String>,
    pub client: Option<String>,
    /// The client's own id of this session, when it has one.
    pub client_session: Option<String>,
    /// It goes on with what its process did before, under another id: `/clear`, a resumed talk.
    pub continues: bool,
    pub role: Option<String>,
    /// The role of the session that starts it: it gets no more than that.
    #[serde(skip)]
    pub starter: Option<String>,
    pub process: Option<Process>,
    pub host: String,
    pub tree: TreeId,
    pub ttl: Span,
    /// Only a hash ever reaches the store; a retry makes another secret, so it is not part of
    /// what makes two requests the same.
    #[serde(skip)]
    pub secret_hash: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Started {
    pub session: SessionId,
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// The same agent came back to the session it had.
    pub resumed: bool,
    pub expires_at: Moment,
}

/// Begins a session, or goes on with the one this client had in this tree.
pub fn start(
    view: &dyn View,
    request: &Start,
    context: &Context,
) -> Result<(Vec<Event>, Started), Refusal> {
    for (what, text) in [
        ("name", &request.name),
        ("client", &request.client),
        ("client session id", &request.client_session),
        ("role", &request.role),
    ] {
        validate_text(what, text.as_deref())?;
    }
    let client = request.client.as_deref().unwrap_or_default();
    let client_alias = request.client_session.as_deref().map(|id| client_alias(client, id));
    let id = SessionId::fresh(&context.fresh, 0);
    let aliases =
        client_alias.clone().into_iter().chain(request.process.as_ref().map(Process::alias_key));
    let by_key = aliases.map(Query::get::<Alias>).chain([Query::get::<Session>(id.as_str())]);
    // Asked at once and remembered, instead of one after the other below.
    view.read(&by_key.collect::<Vec<Query>>())?;
    if let Some(known) = known_session(view, client_alias.as_deref(), request, context)? {
        return back(view, known, request, context);
    }
    let session = Session {
        session: id,
        name: naming::free_name(view, request.name.as_deref(), context)?,
        client: request.client.clone(),
        client_session: request.client_session.as_deref().map(fingerprint),
        role: giving::for_new(view, request.role.as_deref(), request.starter.as_deref())?,
        person: context.actor.person && request.client.is_none(),
        tree: request.tree.clone(),
        host: request.host.clone(),
        process: request.process.clone(),
        secret_hashes: vec![request.secret_hash.clone()],
        started_at: context.now,
        renewed_at: context.now,
        expires_at: context.now + request.ttl,
        ttl: request.ttl,
        submissions: Vec::new(),
        rules: None,
        calls: Vec::new(),
        life: Life::Live,
    };
    let answer = started(&session, false);
    let mut events = vec![Event::SessionStarted { session: session.clone() }];
    events.extend(client_bound(view, client_alias, &session)?);
    events.extend(process_alias(view, &session)?);
    events.extend(notices::sweep(view, context)?);
    Ok((events, answer))
}

/// An agent comes back to the session it had.
pub(crate) fn back(
    view: &dyn View,
    mut known: Session,
    request: &Start,
    context: &Context,
) -> Result<(Vec<Event>, Started), Refusal> {
    let client = request.client.as_deref().unwrap_or_default();
    let client_alias = request.client_session.as_deref().map(|id| client_alias(client, id));
    known.life = Life::Live;
    known.renewed_at = context.now;
    known.expires_at = context.now + known.ttl;
    // A call of the process before this one is nobody's any more.
    let before = known.clone();
    let gone = |call: &Call| request.process.is_some() && call.process != request.process;
    known.calls.retain(|call| !gone(call));
    known.process = request.process.clone().or(known.process);
    known.role = giving::for_known(view, known.role, request.role.as_deref(), context)?;
    let said = request.client_session.as_deref().map(fingerprint);
    known.client_session = said.or(known.client_session);
    known.secret_hashes.push(request.secret_hash.clone());
    let surplus = known.secret_hashes.len().saturating_sub(SECRETS_MAX);
    known.secret_hashes.drain(..surplus);
    let started = started(&known, true);
    let mut events = vec![Event::SessionResumed { session: known.clone() }];
    events.extend(client_bound(view, client_alias, &known)?);
    events.extend(process_alias(view, &known)?);
    events.extend(calls::end_where(view, &before, gone, context)?.map(|(ended, _)| ended));
    events.extend(given_back(view, &known, context)?);
    Ok((events, started))
}

/// What waited for the session's return runs on with its full lease.
fn given_back(
    view: &dyn View,
    session: &Session,
    context: &Context,
) -> Result<Vec<Event>, Refusal> {
    let (claims, tasks) = held_by(view, &session.session)?;
    let live = claims.iter().filter(|claim| claim.is_live(context));
    let claims: Vec<Renewal> = live.map(|claim| claim.renewal(claim.ttl, context)).collect();
    let mut events = Vec::new();
    if !claims.is_empty() {
        events.push(Event::ClaimsRenewed { claims, at: context.now });
    }
    let longest = |seat: &task::Owner| (context.now + seat.ttl).max(seat.expires_at);
    events.extend(until(&tasks, &session.session, longest, context));
    Ok(events)
}

/// Everything a session holds, whether it has run out or not.
fn held_by(view: &dyn View, session: &SessionId) -> Result<(Vec<Claim>, Vec<Task>), Refusal> {
    let rows = view.read(&[claim::of_session(session, CLAIMS_MAX)])?.pop().unwrap_or_default();
    Ok((only(&rows)?, only(&rows)?))
}

/// The live attempts among these go on until then.
fn until(
    tasks: &[Task],
    session: &SessionId,
    end: impl Fn(&task::Owner) -> Moment,
    context: &Context,
) -> Option<Event> {
    let renewal = |task: &Task| {
        let seat = task.seat_of(session).filter(|seat| seat.is_live(context))?;
        let (task, token) = (task.task.clone(), seat.token);
        Some(task::Renewal { task, token, expires_at: end(seat) })
    };
    let tasks: Vec<task::Renewal> = tasks.iter().filter_map(renewal).collect();
    (!tasks.is_empty()).then_some(Event::TasksRenewed { tasks, at: context.now })
}

fn started(session: &Session, resumed: bool) -> Started {
    Started {
        session: session.session.clone(),
        name: session.name.clone(),
        role: session.role.clone(),
        resumed,
        expires_at: session.expires_at,
    }
}

/// The session this client had here, if it still lives or waits for its return.
fn known_session(
    view: &dyn View,
    client_alias: Option<&str>,
    request: &Start,
    context: &Context,
) -> Result<Option<Session>, Refusal> {
    let by_client = match client_alias {
        Some(key) => get::<Alias>(view, key)?,
        None => None,
    };
    let process = request.process.as_ref().filter(|_| by_client.is_none() && request.continues);
    let alias = match process {
        Some(process) => get::<Alias>(view, &process.alias_key())?,
        None => by_client,
    };
    let Some(Alias { session: Some(id), .. }) = alias else {
        return Ok(None);
    };
    let known = get::<Session>(view, id.as_str())?;
    Ok(known.filter(|known| {
        let back_in_time = match known.life {
            Life::Live => true,
            Life::Ended { grace_until, .. } => grace_until.is_some_and(|end| context.now < end),
        };
        back_in_time && known.client == request.client && known.tree == request.tree
    }))
}

/// A client that was started with the credential of this session says its own id: from now on that
/// is the same session. Refused when the session has another id: that is another agent, which only
/// inherited the credential.
pub fn bind(
    view: &dyn View,
    client: &str,
    id: &str,
    process: Option<&Process>,
    context: &Context,
) -> Result<(Vec<Event>, bool), Refusal> {
    validate_text("client session id", Some(id))?;
    let Caller { mut session, .. } = Caller::read(view, context)?;
    let said = fingerprint(id);
    let fits = session.client.as_deref().is_none_or(|known| known == client)
        && session.client_session.as_ref().is_none_or(|known| *known == said);
    if !fits {
        return Ok((Vec::new(), false));
    }
    session.client = Some(client.to_owned());
    session.client_session = Some(said);
    session.process = process.cloned().or(session.process);
    let mut events = vec![Event::SessionResumed { session: session.clone() }];
    events.extend(client_bound(view, Some(client_alias(client, id)), &session)?);
    events.extend(process_alias(view, &session)?);
    Ok((events, true))
}

pub(crate) fn validate_text(what: &'static str, text: Option<&str>) -> Result<(), Refusal> {
    let Some(text) = text else {
        return Ok(());
    };
    if text.is_empty() {
        return Err(Refusal::OutOfRange {
            what,
            given: "nothing".to_owned(),
            allowed: format!("1 to {TEXT_BYTES_MAX} bytes"),
        });
    }
    if text.len() > TEXT_BYTES_MAX {
        return Err(Refusal::TooLong { what, bytes_max: TEXT_BYTES_MAX });
    }
    // Names are shown to other agents and to terminals: nothing in them may act there (S20).
    match text.chars().find(|c| c.is_control() || is_bidi(*c)) {
        Some(character) => Err(Refusal::BadText { what, character }),
        None => Ok(()),
    }
}

/// Characters that change the direction of the text around them, or hide in it.
pub fn is_bidi(character: char) -> bool {
    matches!(character,
        '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2028}' | '\u{2029}'
        | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Active {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<Notice>,
}

/// The session did something that needs no decision, or was refused one: its leases are renewed
/// where they are half used, and it is told what it must know.
pub fn active(view: &dyn View, context: &Context) -> Result<(Vec<Event>, Active), Refusal> {
    let caller = Caller::read(view, context)?;
    let events = caller.activity(context, &[]);
    Ok((events, Active { notices: caller.notices }))
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ended {
    pub session: SessionId,
    pub name: String,
    pub released: Vec<Resource>,
    /// Tasks it offered, which wait for whoever accepts, with what is claimed for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub offered: Vec<TaskId>,
    /// Until then the same client gets this session back, with what it held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace_until: Option<Moment>,
}

/// Ends a session. With a grace its claims wait that long for its return; without, they end now.
pub fn end(
    view: &dyn View,
    target: Option<&SessionId>,
    grace: Option<Span>,
    context: &Context,
) -> Result<(Vec<Event>, Ended), Refusal> {
    let session = match target {
        None => Caller::read(view, context)?.session,
        Some(id) if context.actor.session.as_ref() == Some(id) => {
            Caller::read(view, context)?.session
        }
        Some(_) if !context.actor.person => {
            return Err(Refusal::NeedsPerson { what: "ending another's session".to_owned() });
        }
        Some(id) => get::<Session>(view, id.as_str())?
            .ok_or_else(|| Refusal::UnknownSession { session: id.0.clone() })?,
    };
    if let Life::Ended { at, .. } = session.life {
        let Session { session, name, .. } = session;
        return Err(Refusal::SessionEnded { session, name, at });
    }
    let grace_until = grace.map(|grace| context.now + grace);
    let Finish { events, released, offered } =
        finish(view, &session, EndOfSession::Ended, grace_until, context)?;
    let Session { session, name, .. } = session;
    Ok((events, Ended { session, name, released, offered, grace_until }))
}

/// The engine saw that this very process is gone: the session ends and frees what it held.
pub fn died(
    view: &dyn View,
    id: &SessionId,
    seen: &Process,
    context: &Context,
) -> Result<(Vec<Event>, bool), Refusal> {
    let session = get::<Session>(view, id.as_str())?;
    // Resumed meanwhile by another process, or ended: the sighting says nothing any more.
    let still = session
        .filter(|session| session.process.as_ref() == Some(seen) && session.life == Life::Live);
    match still {
        None => Ok((Vec::new(), false)),
        Some(session) => {
            let finish = finish(view, &session, EndOfSession::Died, None, context)?;
            Ok((finish.events, true))
        }
    }
}

/// What follows when a session ends.
struct Finish {
    events: Vec<Event>,
    released: Vec<Resource>,
    offered: Vec<TaskId>,
}

fn finish(
    view: &dyn View,
    session: &Session,
    why: EndOfSession,
    grace_until: Option<Moment>,
    context: &Context,
) -> Result<Finish, Refusal> {
    let (claims, tasks) = held_by(view, &session.session)?;
    let waiters = Query::equal(waiting::BY_SESSION, session.session.as_str(), CLAIMS_MAX);
    let mut events = Vec::new();
    for waiter in scan::<Waiter>(view, waiters)? {
        events.push(Event::WaitEnded { waiter: waiter.waiter, why: EndOfWait::Gone });
    }
    events.extend(checkpoint::at_end(view, &tasks, &claims, context)?);
    // What is offered waits for its receiver, whatever becomes of the giver.
    let (offered, tasks): (Vec<Task>, Vec<Task>) =
        tasks.into_iter().partition(|task| is_offered(task, context));
    let mut kept = Vec::new();
    for task in &offered {
        let claims = handoffs::kept_for(view, task, &claims, context)?;
        kept.extend(claims.into_iter().map(|claim| claim.claim));
    }
    let claims: Vec<Claim> =
        claims.into_iter().filter(|claim| !kept.contains(&claim.claim)).collect();
    // What waits for its return waits no longer than that, whatever call it was in.
    events.extend(calls::end_where(view, session, |_| true, context)?.map(|(ended, _)| ended));
    let mut released = Vec::new();
    match grace_until {
        // They wait for their holder until the grace is over, no shorter and no longer.
        Some(until) => {
            let live = claims.iter().filter(|claim| claim.is_live(context));
            let claims: Vec<Renewal> = live
                .map(|claim| Renewal { claim: claim.claim.clone(), expires_at: until, ttl: None })
                .collect();
            if !claims.is_empty() {
                events.push(Event::ClaimsRenewed { claims, at: context.now });
            }
            events.extend(self::until(&tasks, &session.session, |_| until, context));
        }
        None => {
            let (how, words) = match why {
                EndOfSession::Died => (Move::SessionDied, "its process ended"),
                EndOfSession::Ended => (Move::SessionEnded, "its session ended"),
            };
            for mut task in tasks {
                let events = &mut events;
                if task.owner().is_some() {
                    tasks::lose(view, &mut task, how, words, events, context)?;
                } else {
                    let (gone, why) = (vec![session.session.clone()], EndOfReview::Gone);
                    reviewing::left(view, &mut task, gone, why, events, context)?;
                }
            }
            events.extend(notices::drop_all(view, &session.session)?);
            events.extend(drafts::end_with_session(view, &session.session)?);
            for claim in &claims {
                released.extend(claim.hold.resources.iter().cloned());
                let end = match why {
                    EndOfSession::Died => EndOfClaim::SessionDied,
                    EndOfSession::Ended => EndOfClaim::SessionEnded,
                };
                events.push(claim.ends(end, context));
            }
        }
    }
    let session = session.session.clone();
    events.push(Event::SessionEnded { session, at: context.now, why, grace_until });
    let offered = offered.into_iter().map(|task| task.task).collect();
    Ok(Finish { events, released, offered })
}

/// Is it offered to others, and its time not over?
fn is_offered(task: &Task, context: &Context) -> bool {
    task.offer().is_some_and(|offer| context.now < offer.until)
}
