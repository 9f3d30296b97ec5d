//! The claim as a record, and the one predicate that says when two claims conflict.
//!
//! Owns the shape of a claim, what it holds and when it has run out. Who may take, keep and lose a
//! claim is in [`crate::claims`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::context::{Actor, Context};
use crate::event::Renewal;
use crate::id::{ClaimId, SessionId, Token, TreeId};
use crate::resource::Resource;
use crate::time::{Moment, Span};
use crate::view::{Index, Kind, Query, Record};

/// How long an unknown holder's claim outlives its TTL, so that an act already under way can end.
pub const LOCK_DELAY_MAX: Span = Span::seconds(10);

/// Everything that stands at a resource: claims, waiters, leftovers, serial zones, interfaces. One
/// index, so that a look at a path asks once for all of them.
pub const BY_RESOURCE: Index = "claim.resource";
pub const BY_SESSION: Index = "claim.session";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    Exclusive,
    Shared,
}

/// How far a claim reaches: the sessions of one working tree, or everyone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    Tree,
    Workspace,
}

/// Who holds or asks: a session, and within it perhaps one of its subagents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Holder {
    pub session: SessionId,
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
}

impl Holder {
    /// A person who acts without a session.
    pub fn person() -> Self {
        Self { session: SessionId(String::new()), name: "a person".to_owned(), agent: None }
    }

    /// Can it be told something later?
    pub fn is_session(&self) -> bool {
        !self.session.0.is_empty()
    }

    /// A session never stands in its own way; two subagents of one session do.
    pub fn competes_with(&self, other: &Self) -> bool {
        match (&self.agent, &other.agent) {
            _ if self.session != other.session => true,
            (Some(one), Some(two)) => one != two,
            _ => false,
        }
    }
}

/// What is held, or asked for: everything the conflict predicate looks at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Hold {
    #[serde(flatten)]
    pub holder: Holder,
    pub tree: TreeId,
    pub scope: Scope,
    pub mode: Mode,
    pub resources: Vec<Resource>,
}

impl Hold {
    /// Can the two be in each other's way at all?
    pub fn meets(&self, other: &Self) -> bool {
        self.tree == other.tree || self.scope == Scope::Workspace || other.scope == Scope::Workspace
    }

    pub fn covers(&self, wanted: &[Resource]) -> bool {
        wanted.iter().all(|wanted| self.resources.iter().any(|held| held.covers(wanted)))
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Claim {
    pub claim: ClaimId,
    pub token: Token,
    #[serde(flatten)]
    pub hold: Hold,
    pub ttl: Span,
    pub granted_at: Moment,
    pub renewed_at: Moment,
    pub expires_at: Moment,
    /// Its session is in a tool call that may last until then: the lease does not run out before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy_until: Option<Moment>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// How many suggestions wait for its holder: only then does its end look for them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub suggestions: u32,
    /// Uncommitted changes of earlier holders that its holder was told of: still theirs (S18).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inherited: Vec<Leftover>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Claim {
    /// One suggestion less waits.
    pub(crate) fn answered(&mut self) {
        self.suggestions = self.suggestions.saturating_sub(1);
    }

    /// A tenth of the TTL, ten seconds at most: what an unseen holder gets on top.
    pub fn lock_delay(&self) -> Span {
        Span((self.ttl.0 / 10).min(LOCK_DELAY_MAX.0))
    }

    /// When the claim runs out: with its lease, or with the tool call its session is in, whichever
    /// is later.
    pub fn expiry(&self, failed_over_at: Option<Moment>) -> Moment {
        let lease = self.lease_end(failed_over_at);
        self.busy_until.map_or(lease, |busy| busy.max(lease))
    }

    /// When the lease ends: one TTL later if the store failed over since it was last renewed,
    /// because renewals may have been lost with the old server.
    fn lease_end(&self, failed_over_at: Option<Moment>) -> Moment {
        match failed_over_at {
            Some(at) if self.renewed_at < at => self.expires_at + self.ttl,
            _ => self.expires_at,
        }
    }

    /// Does it hold only because of the tool call its session is in?
    pub fn kept_by_call(&self, context: &Context) -> bool {
        let lease = self.lease_end(context.failed_over_at);
        context.now >= lease && self.busy_until.is_some_and(|busy| context.now < busy)
    }

    /// Does the lease still run? Past it the holder must take the claim anew, whoever looks on.
    pub fn is_live(&self, context: &Context) -> bool {
        context.now < self.expiry(context.failed_over_at)
    }

    /// Do acts of this one keep it alive? What a subagent holds lives by its own acts: one that
    /// crashed tells nobody, and its session and siblings, who go on, must not keep its holds for
    /// it for ever.
    pub(crate) fn lives_by(&self, actor: &Actor) -> bool {
        let agent = &self.hold.holder.agent;
        agent.is_none() || *agent == actor.agent
    }

    /// A renewal for `ttl` from now. Asking again never shortens what was promised (S8).
    pub fn renewal(&self, ttl: Span, context: &Context) -> Renewal {
        let expires_at = (context.now + ttl).max(self.lease_end(context.failed_over_at));
        Renewal { claim: self.claim.clone(), expires_at, ttl: None }
    }
}

impl Record for Claim {
    const KIND: Kind = "claim";

    fn key(&self) -> String {
        self.claim.0.clone()
    }

    fn index_entries(&self) -> Vec<(Index, String)> {
        let mut entries = resource_entries(BY_RESOURCE, &self.hold.resources);
        entries.push((BY_SESSION, self.due_entry()));
        entries
    }
}

impl Claim {
    /// Sorted by when renewal is due, so that an act reads only what it must renew.
    pub(crate) fn due_entry(&self) -> String {
        let due_at = self.expires_at - Span(self.ttl.0 / 2);
        format!("{}/{:020}", self.hold.holder.session, due_at.0)
    }
}

/// All claims of a session.
pub fn of_session(session: &SessionId, limit: u32) -> Query {
    let (from, until) = (format!("{session}/"), format!("{session}0"));
    Query::Scan { index: BY_SESSION, from, until, after: None, limit }
}

/// The claims of a session whose lease is half used.
pub fn due_for_renewal(session: &SessionId, now: Moment, limit: u32) -> Query {
    let (from, until) = (format!("{session}/"), format!("{session}/{:020}", now.0));
    Query::Scan { index: BY_SESSION, from, until, after: None, limit }
}

/// Uncommitted changes that a claim left behind when it ended: the next editor is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Leftover {
    pub claim: ClaimId,
    #[serde(flatten)]
    pub holder: Holder,
    pub tree: TreeId,
    /// The paths that had changes, as literal resources.
    pub paths: Vec<Resource>,
    /// Where they were saved, for instance `refs/baton/rescue/…`.
    pub rescue: Option<String>,
    pub ended_at: Moment,
}

impl Leftover {
    /// This, and what the same claim left behind later.
    #[must_use]
    pub fn and(mut self, later: &Self) -> Self {
        let new = later.paths.iter().filter(|path| !self.paths.contains(path));
        let new: Vec<Resource> = new.cloned().collect();
        self.paths.extend(new);
        self.rescue = later.rescue.clone().or(self.rescue);
        self.ended_at = later.ended_at;
        self
    }
}

impl Record for Leftover {
    const KIND: Kind = "leftover";

    fn key(&self) -> String {
        self.claim.0.clone()
    }

    fn index_entries(&self) -> Vec<(Index, String)> {
        resource_entries(BY_RESOURCE, &self.paths)
    }
}

/// One entry for each place a resource stands in the index, without repeats.
pub fn resource_entries(index: Index, resources: &[Resource]) -> Vec<(Index, String)> {
    let mut values: Vec<String> = resources.iter().map(Resource::index_value).collect();
    values.sort_unstable();
    values.dedup();
    values.into_iter().map(|value| (index, value)).collect()
}
