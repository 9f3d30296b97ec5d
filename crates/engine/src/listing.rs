//! What there is: claims, waiters, and the story of a path.
//!
//! Owns reading for people and scripts. Everything here is one consistent look; nothing decides.

use std::collections::BTreeMap;
use std::path::Path;

use baton_core::claim::{Claim, Holder, Mode, Scope};
use baton_core::context::{Actor, Context, Life, Observed};
use baton_core::event::{EndOfClaim, Event};
use baton_core::id::{ClaimId, Position, SessionId, Token};
use baton_core::refusal::Refusal;
use baton_core::resource::Resource;
use baton_core::scene::Scene;
use baton_core::sessions::{Process, Session};
use baton_core::time::{Moment, Span};
use baton_core::view::{Query, Record, get, scan};
use baton_core::waiting::{self, Waiter};
use baton_core::{claim, view};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api;
use crate::failure::Failure;
use crate::git::Git;
use crate::resources::{literal, named};
use crate::sessions::SeatState;
use crate::sighting::life_of;
use crate::workspace::Workspace;

/// How many records a list reads at the most.
const LISTED_MAX: u32 = 1_000_000;
/// How far back the story of a path goes in the journal.
const ENTRIES_LOOKED_AT_MAX: usize = 100_000;
const CHAPTERS_MAX: usize = 20;
const COMMITS_MAX: usize = 5;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClaimList {
    pub claims: Vec<ListedClaim>,
}

/// A claim as others may see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ListedClaim {
    pub claim: ClaimId,
    pub token: Token,
    pub holder: Holder,
    pub holder_state: SeatState,
    pub resources: Vec<Resource>,
    pub mode: Mode,
    pub scope: Scope,
    pub tree: String,
    pub granted_at: Moment,
    pub expires_at: Moment,
    pub ttl: Span,
    /// Its holder is in a tool call, which keeps it alive until then at the latest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy_until: Option<Moment>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Its time is over; it holds until somebody asks, or its holder renews it.
    pub run_out: bool,
}

pub fn claims(
    workspace: &mut Workspace,
    actor: &Actor,
    cwd: &Path,
    wanted: &api::Claims,
) -> Result<ClaimList, Failure> {
    let resources = match &wanted.path {
        None => None,
        Some(path) => Some(named(&workspace.place, cwd, std::slice::from_ref(path))?),
    };
    let mine = match wanted.mine {
        true => Some(actor.session.clone().ok_or(Refusal::NoSession)?),
        false => None,
    };
    let machine = workspace.machine.clone();
    workspace.look(&Actor::default(), Observed::default(), |view, context| {
        let mut found: Vec<Claim> = match (&resources, &mine) {
            (Some(resources), _) => {
                let mut claims = Scene::read(view, resources, context)?.claims;
                claims.retain(|claim| {
                    claim
                        .hold
                        .resources
                        .iter()
                        .any(|held| resources.iter().any(|r| r.overlaps(held)))
                });
                claims
            }
            (None, Some(session)) => scan(view, claim::of_session(session, LISTED_MAX))?,
            (None, None) => all_claims(view)?,
        };
        if let Some(session) = &mine {
            found.retain(|claim| claim.hold.holder.session == *session);
        }
        found.sort_by_key(|claim| claim.token);
        let mut states: BTreeMap<SessionId, SeatState> = BTreeMap::new();
        let mut claims = Vec::with_capacity(found.len());
        for claim in found {
            let id = &claim.hold.holder.session;
            let state = match states.get(id) {
                Some(state) => *state,
                None => {
                    let session: Option<Session> = get(view, id.as_str())?;
                    let state = |session| SeatState::of(&session, &machine, context.now);
                    *states.entry(id.clone()).or_insert(session.map_or(SeatState::Live, state))
                }
            };
            claims.push(listed(claim, state, context));
        }
        Ok(ClaimList { claims })
    })
}

fn all_claims(view: &dyn view::View) -> Result<Vec<Claim>, Refusal> {
    let query = Query::Scan {
        index: claim::BY_SESSION,
        from: String::new(),
        until: "\u{10ffff}".to_owned(),
        after: None,
        limit: LISTED_MAX,
    };
    Ok(scan(view, query)?)
}

fn listed(claim: Claim, holder_state: SeatState, context: &Context) -> ListedClaim {
    ListedClaim {
        holder_state,
        run_out: !claim.is_live(context),
        expires_at: claim.expiry(context.failed_over_at),
        claim: claim.claim,
        token: claim.token,
        holder: claim.hold.holder,
        resources: claim.hold.resources,
        mode: claim.hold.mode,
        scope: claim.hold.scope,
        tree: claim.hold.tree.0,
        granted_at: claim.granted_at,
        busy_until: claim.busy_until.filter(|until| context.now < *until),
        ttl: claim.ttl,
        reason: claim.reason,
    }
}

/// Everyone in the queue, in no particular order of service.
pub fn waiters(workspace: &mut Workspace) -> Result<Vec<Waiter>, Failure> {
    let mut waiters = in_queue(workspace)?;
    // One whose process is seen to be gone waits for nothing; its record is cleared away by whoever
    // asks next.
    let machine = &workspace.machine;
    let gone = |process: &Process| life_of(machine, process) == Life::Dead;
    waiters.retain(|waiter| !waiter.process.as_ref().is_some_and(gone));
    Ok(waiters)
}

fn in_queue(workspace: &mut Workspace) -> Result<Vec<Waiter>, Failure> {
    workspace.look(&Actor::default(), Observed::default(), |view, context| {
        let query = Query::Scan {
            index: waiting::BY_SESSION,
            from: String::new(),
            until: "\u{10ffff}".to_owned(),
            after: None,
            limit: LISTED_MAX,
        };
        let mut waiters: Vec<Waiter> = scan(view, query)?;
        waiters.retain(|waiter| waiter.waits(context));
        waiters.sort_by_key(|waiter| waiter.queued_at);
        Ok(waiters)
    })
}

/// The story of a path: newest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Story {
    pub path: Resource,
    pub now_held_by: Vec<ListedClaim>,
    pub chapters: Vec<Chapter>,
    pub commits: Vec<StoryCommit>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Chapter {
    pub at: Moment,
    pub position: Position,
    pub session: SessionId,
    pub name: String,
    #[serde(flatten)]
    pub what: What,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum What {
    Claimed {
        resources: Vec<Resource>,
        mode: Mode,
        reason: Option<String>,
        /// The subagent of the session that claimed it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
    },
    Ended {
        resources: Vec<Resource>,
        how: String,
        rescue: Option<String>,
    },
    /// It was written around the doors while another held it.
    Breached {
        resource: Resource,
        holder: String,
        /// The subagent of the session that wrote it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
        /// The subagent that held it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        holder_agent: Option<String>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StoryCommit {
    pub commit: String,
    pub author: String,
    pub subject: String,
    pub at: Moment,
}

pub fn story(workspace: &mut Workspace, cwd: &Path, path: &str) -> Result<Story, Failure> {
    let resources = literal(&workspace.place, cwd, std::ffi::OsStr::new(path))?;
    let resource = resources.first().cloned().ok_or(Refusal::Empty)?;
    let wanted = api::Claims { mine: false, path: Some(path.to_owned()) };
    let now_held_by = claims(workspace, &Actor::default(), cwd, &wanted)?.claims;
    let chapters = chapters(workspace, &resources)?;
    let commits = match (&workspace.place.git, &resource) {
        (Some(_), Resource::Path(pattern)) => {
            let git = Git::in_tree(&workspace.place.root)?;
            let found = git.log_of_path(pattern.text(), COMMITS_MAX)?;
            found
                .into_iter()
                .map(|commit| StoryCommit {
                    commit: commit.oid.as_str().chars().take(12).collect(),
                    author: commit.author,
                    subject: commit.subject,
                    at: Moment(u64::try_from(commit.author_seconds).unwrap_or(0) * 1_000),
                })
                .collect()
        }
        _ => Vec::new(),
    };
    Ok(Story { path: resource, now_held_by, chapters, commits })
}

/// What the journal tells of these, up to a limit; starts no git.
pub(crate) fn chapters(
    workspace: &mut Workspace,
    resources: &[Resource],
) -> Result<Vec<Chapter>, Failure> {
    let snapshot = workspace.store.snapshot()?;
    let mut chapters: Vec<Chapter> = Vec::new();
    let mut before = u64::MAX >> 1;
    let mut looked_at = 0;
    while chapters.len() < CHAPTERS_MAX && looked_at < ENTRIES_LOOKED_AT_MAX {
        let entries = snapshot.entries_before(before, 1_000)?;
        let Some(last) = entries.last() else { break };
        before = last.position.number;
        looked_at += entries.len();
        for entry in &entries {
            // Most entries concern other paths: only claims and breaches are worth parsing.
            if !entry.kind.starts_with("claim_") && entry.kind != "hold_breached" {
                continue;
            }
            let Ok(event) = entry.event() else { continue };
            let touches = |held: &[Resource]| {
                held.iter().any(|held| resources.iter().any(|resource| resource.overlaps(held)))
            };
            let Some((session, what)) = chapter(event, &entry.actor, &touches) else { continue };
            let name = match get::<Session>(&*snapshot, session.as_str()) {
                Ok(Some(session)) => session.name,
                _ => session.0.clone(),
            };
            chapters.push(Chapter { at: entry.at, position: entry.position, session, name, what });
        }
    }
    chapters.truncate(CHAPTERS_MAX);
    Ok(chapters)
}

fn chapter(
    event: Event,
    actor: &str,
    touches: &dyn Fn(&[Resource]) -> bool,
) -> Option<(SessionId, What)> {
    match event {
        // Only its holder lets go of a part of a claim.
        Event::ClaimNarrowed { released, left, .. } if touches(&released) => {
            let (how, rescue) = ("released it".to_owned(), left.and_then(|left| left.rescue));
            Some((SessionId(actor.to_owned()), What::Ended { resources: released, how, rescue }))
        }
        Event::HoldBreached { breach }
            if !breach.unsure && touches(std::slice::from_ref(&breach.resource)) =>
        {
            let what = What::Breached {
                resource: breach.resource,
                holder: breach.holder.name,
                agent: breach.by.agent,
                holder_agent: breach.holder.agent,
            };
            Some((breach.by.session, what))
        }
        Event::ClaimGranted { claim } if touches(&claim.hold.resources) => {
            let what = What::Claimed {
                resources: claim.hold.resources,
                mode: claim.hold.mode,
                reason: claim.reason,
                agent: claim.hold.holder.agent,
            };
            Some((claim.hold.holder.session, what))
        }
        Event::ClaimEnded { session, resources, why, left, .. } if touches(&resources) => {
            let how = match why {
                EndOfClaim::Released { commit: None } => "released it".to_owned(),
                EndOfClaim::Released { commit: Some(commit) } => {
                    format!("released it with commit {commit}")
                }
                EndOfClaim::Expired => "lost it: its time had run out".to_owned(),
                EndOfClaim::SessionEnded => "let go of it by ending its session".to_owned(),
                EndOfClaim::SessionDied => "lost it: its process had ended".to_owned(),
                EndOfClaim::Revoked { why } => format!("lost it: a person revoked it ({why})"),
                EndOfClaim::Settled => "let go of it: its changes are committed".to_owned(),
                EndOfClaim::HandedOver { .. } => "handed it over with its task".to_owned(),
                EndOfClaim::Replaced => "took it again after its time had run out".to_owned(),
            };
            let rescue = left.and_then(|left| left.rescue);
            Some((session, What::Ended { resources, how, rescue }))
        }
        _ => None,
    }
}

/// All records of one kind, for exports.
pub fn all<R: Record>(workspace: &mut Workspace) -> Result<Vec<R>, Failure> {
    let snapshot = workspace.store.snapshot()?;
    let mut found = Vec::new();
    let mut after: Option<(String, String)> = None;
    loop {
        let cursor = after.as_ref().map(|(kind, key)| (kind.as_str(), key.as_str()));
        let rows = snapshot.rows(cursor, 10_000)?;
        let Some(last) = rows.last() else { break };
        after = Some((last.kind.to_owned(), last.key.clone()));
        for row in rows.iter().filter(|row| row.kind == R::KIND) {
            found.push(view::parse(&row.body).map_err(Refusal::from)?);
        }
    }
    Ok(found)
}
