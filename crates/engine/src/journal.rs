//! Reading the journal: a page at a time, filtered, with the names of those it speaks of.
//!
//! Owns what of an entry is shown. Every page is its own look at the store, so a slow reader holds
//! nothing back, and memory does not grow with the journal. Invariant: no hash of a secret leaves
//! here, although the stored entries have them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use baton_core::context::{Actor, Observed};
use baton_core::event::{self, Event};
use baton_core::handoff::{End, To};
use baton_core::id::{Position, SessionId};
use baton_core::journal::{Entry, Hash, Head};
use baton_core::notices::News;
use baton_core::refusal::Refusal;
use baton_core::resource::Resource;
use baton_core::sessions::{self, Session};
use baton_core::time::Moment;
use baton_core::view::{Query, get, parse, scan};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::api;
use crate::failure::Failure;
use crate::resources::named;
use crate::store::Snapshot;
use crate::workspace::Workspace;

mod since;
pub mod verify;

pub use since::{Since, kind, since};

/// Entries read from the store at a time.
pub(crate) const PAGE: u32 = 1_000;
/// Names are kept for this many sessions; above it they are read anew.
const NAMES_MAX: usize = 10_000;
/// How many ended sessions are searched for a name.
const SESSIONS_LOOKED_AT_MAX: u32 = 100_000;

/// One entry, understood, with the names of the sessions it speaks of.
#[derive(Clone, Debug)]
pub struct Told {
    pub entry: Entry,
    /// An entry of a newer Baton is shown by its kind alone.
    pub event: Result<Event, event::Unknown>,
    pub names: BTreeMap<SessionId, String>,
}

/// An entry as others may see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Document {
    pub position: Position,
    pub at: Moment,
    /// Who acted; nobody when Baton itself did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<Who>,
    pub kind: String,
    pub version: u32,
    /// What happened, without the hashes of secrets.
    pub event: Value,
    pub hash: Hash,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Who {
    pub session: SessionId,
    pub name: String,
}

impl Told {
    /// The name of a session, or its id when it has none any more.
    pub fn name<'a>(&'a self, session: &'a SessionId) -> &'a str {
        self.names.get(session).map_or(session.as_str(), String::as_str)
    }

    pub fn document(&self) -> Document {
        let Entry { position, at, actor, kind, version, hash, .. } = &self.entry;
        let session = SessionId(actor.clone());
        let name = self.name(&session).to_owned();
        Document {
            position: *position,
            at: *at,
            actor: (!actor.is_empty()).then_some(Who { session, name }),
            kind: kind.clone(),
            version: *version,
            event: without_secrets(&self.entry),
            hash: hash.clone(),
        }
    }
}

/// The body of an entry for everybody's eyes. A body that is no JSON is not shown at all.
pub(crate) fn without_secrets(entry: &Entry) -> Value {
    let mut body: Value = serde_json::from_str(&entry.body).unwrap_or(Value::Null);
    strip(&mut body);
    if entry.kind == "draft_set"
        && let Some(draft) = body.get_mut("draft").and_then(Value::as_object_mut)
    {
        // A draft is its writer's alone until it is published.
        draft.remove("value");
    }
    if entry.kind == "person_token_added"
        && let Some(token) = body.get_mut("token").and_then(Value::as_object_mut)
    {
        token.remove("hash");
    }
    body
}

fn strip(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.remove("secret_hashes");
            map.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}

/// A journey through the journal, from a first entry on.
#[derive(Debug)]
pub struct Reading {
    sessions: Option<BTreeSet<SessionId>>,
    kinds: Vec<String>,
    resources: Option<Vec<Resource>>,
    /// The last entry that was looked at.
    cursor: Position,
    /// The last entry to look at; none when following.
    until: Option<u64>,
    names: BTreeMap<SessionId, String>,
    /// Entries up to here are not in the store but in an archive, and would have been asked for.
    pub archived: Option<Position>,
}

impl Reading {
    /// Finds where to begin: `limit` counts back from the newest entry that fits, `since` is the
    /// earliest; a follower that names neither begins with what comes next.
    pub fn begin(
        workspace: &mut Workspace,
        cwd: &Path,
        wanted: &api::Journal,
        follow: bool,
    ) -> Result<Self, Failure> {
        let resources = match &wanted.path {
            None => None,
            Some(path) => Some(named(&workspace.place, cwd, std::slice::from_ref(path))?),
        };
        let sessions = match &wanted.session {
            None => None,
            Some(text) => Some(sessions_like(workspace, text)?),
        };
        let snapshot = workspace.store.snapshot()?;
        let head = snapshot.state().head.position;
        let sealed = snapshot.archived()?;
        let mut reading = Self {
            sessions,
            kinds: wanted.kind.clone(),
            resources,
            cursor: sealed.as_ref().map_or(Position::START, |sealed| sealed.position),
            until: (!follow).then_some(head.number),
            names: BTreeMap::new(),
            archived: None,
        };
        let now = snapshot.state().now;
        let since = wanted.since.as_deref().and_then(|text| since(text).ok());
        if wanted.limit.is_none() && !(follow && since.is_none()) {
            let asked = |sealed: &Head| {
                since.is_none_or(|since| since.reached_at(sealed.position, sealed.at, now))
            };
            reading.archived = sealed.filter(asked).map(|sealed| sealed.position);
        }
        let oldest = match since {
            None if follow && wanted.limit.is_none() => head.number,
            None => reading.cursor.number,
            Some(since) => {
                first_where(&*snapshot, |entry| since.reached(entry, now))?.saturating_sub(1)
            }
        };
        let number = match wanted.limit {
            None => oldest,
            Some(limit) => reading.newest(&*snapshot, limit, oldest)?,
        };
        let last = snapshot.entries(number.saturating_sub(1), 1)?;
        reading.cursor = match last.first() {
            Some(entry) if entry.position.number == number => entry.position,
            _ => Position { number, ..reading.cursor },
        };
        Ok(reading)
    }

    /// The number before the `limit`-th newest entry that fits.
    fn newest(&self, snapshot: &dyn Snapshot, limit: u64, oldest: u64) -> Result<u64, Failure> {
        let mut found = 0;
        let mut before = snapshot.state().head.position.number + 1;
        while found < limit {
            let page = snapshot.entries_before(before, PAGE)?;
            let Some(last) = page.last() else { return Ok(oldest) };
            for entry in &page {
                if entry.position.number <= oldest {
                    return Ok(oldest);
                }
                if self.fits(entry, &entry.event()) {
                    found += 1;
                    if found == limit {
                        return Ok(entry.position.number - 1);
                    }
                }
            }
            before = last.position.number;
        }
        Ok(before.saturating_sub(1))
    }

    /// The entries of the next page that fit; nothing when the end is reached for now.
    pub fn next(&mut self, workspace: &mut Workspace) -> Result<Option<Vec<Told>>, Failure> {
        let snapshot = workspace.store.snapshot()?;
        let number = go_on_after(&*snapshot, self.cursor)?;
        let mut page = snapshot.entries(number, PAGE)?;
        if let Some(until) = self.until {
            page.retain(|entry| entry.position.number <= until);
        }
        let Some(last) = page.last() else { return Ok(None) };
        self.cursor = last.position;
        let mut told = Vec::new();
        for entry in page {
            let event = entry.event();
            if self.fits(&entry, &event) {
                told.push(Told { entry, event, names: BTreeMap::new() });
            }
        }
        self.name(&*snapshot, &mut told)?;
        Ok(Some(told))
    }

    fn fits(&self, entry: &Entry, event: &Result<Event, event::Unknown>) -> bool {
        if !self.kinds.is_empty() && !self.kinds.contains(&entry.kind) {
            return false;
        }
        let concerns = match event {
            Ok(event) => concerns(event),
            Err(_) => Concerns::default(),
        };
        let by_session = self.sessions.as_ref().is_none_or(|wanted| {
            wanted.iter().any(|id| id.as_str() == entry.actor)
                || concerns.sessions.iter().any(|id| wanted.contains(*id))
        });
        let by_path = self.resources.as_ref().is_none_or(|wanted| {
            concerns.resources.iter().any(|held| wanted.iter().any(|one| one.overlaps(held)))
        });
        by_session && by_path
    }

    /// Fills the names in, with one question to the store for all that are not known yet.
    fn name(&mut self, snapshot: &dyn Snapshot, told: &mut [Told]) -> Result<(), Failure> {
        let mentioned: Vec<BTreeSet<SessionId>> = told.iter().map(mentioned).collect();
        if self.names.len() > NAMES_MAX {
            self.names.clear();
        }
        let unknown: BTreeSet<&SessionId> =
            mentioned.iter().flatten().filter(|id| !self.names.contains_key(*id)).collect();
        let queries: Vec<Query> =
            unknown.iter().map(|id| Query::get::<Session>(id.as_str())).collect();
        if !queries.is_empty() {
            let answers = snapshot.read(&queries).map_err(Refusal::from)?;
            for row in answers.iter().flatten() {
                let session: Session = parse(&row.body).map_err(Refusal::from)?;
                self.names.insert(session.session, session.name);
            }
        }
        for (told, mentioned) in told.iter_mut().zip(mentioned) {
            let name = |id: SessionId| self.names.get(&id).cloned().map(|name| (id, name));
            told.names = mentioned.into_iter().filter_map(name).collect();
        }
        Ok(())
    }
}

/// Where to read on. A restore may have taken the last entry away and its number may be another
/// entry's now: then it goes on with the first entry of a later position, wherever that is.
fn go_on_after(snapshot: &dyn Snapshot, cursor: Position) -> Result<u64, Failure> {
    if cursor.number == 0 {
        return Ok(0);
    }
    let there = snapshot.entries(cursor.number - 1, 1)?;
    match there.first() {
        Some(entry) if entry.position.number != cursor.number => Ok(cursor.number),
        Some(entry) if entry.position == cursor => Ok(cursor.number),
        _ => Ok(first_where(snapshot, |entry| entry.position > cursor)?.saturating_sub(1)),
    }
}

/// The number of the first entry with a property that all later ones have too; one above the head
/// when there is none.
pub(crate) fn first_where(
    snapshot: &dyn Snapshot,
    property: impl Fn(&Entry) -> bool,
) -> Result<u64, Failure> {
    let archived = snapshot.archived()?.map_or(0, |head| head.position.number);
    let (mut low, mut high) = (archived + 1, snapshot.state().head.position.number + 1);
    while low < high {
        let middle = low + (high - low) / 2;
        match snapshot.entries(middle - 1, 1)?.first() {
            Some(entry) if !property(entry) => low = middle + 1,
            _ => high = middle,
        }
    }
    Ok(low)
}

/// Sessions by id, credential or name, whether they live or not: names may have been used again.
fn sessions_like(workspace: &mut Workspace, text: &str) -> Result<BTreeSet<SessionId>, Failure> {
    workspace.look(&Actor::default(), Observed::default(), |view, _| {
        for id in [Some(text), text.split_once('.').map(|(id, _)| id)].into_iter().flatten() {
            if let Some(session) = get::<Session>(view, id)? {
                return Ok(BTreeSet::from([session.session]));
            }
        }
        let mut found = BTreeSet::new();
        for life in ["live", "ended"] {
            let query = Query::equal(sessions::BY_LIFE, life, SESSIONS_LOOKED_AT_MAX);
            let named = scan::<Session>(view, query)?.into_iter();
            found.extend(named.filter(|session| session.name == text).map(|found| found.session));
        }
        match found.is_empty() {
            // Only the public half of what may be a credential is repeated.
            true => Err(Refusal::UnknownSession {
                session: text.split('.').next().unwrap_or_default().to_owned(),
            }),
            false => Ok(found),
        }
    })
}

/// Whom and what an event is about, apart from who acted.
#[derive(Default)]
struct Concerns<'a> {
    sessions: Vec<&'a SessionId>,
    resources: Vec<&'a Resource>,
}

fn concerns(event: &Event) -> Concerns<'_> {
    let (sessions, resources): (Vec<&SessionId>, Vec<&Resource>) = match event {
        Event::SessionStarted { session } | Event::SessionResumed { session } => {
            (vec![&session.session], Vec::new())
        }
        Event::SessionRenewed { session, .. }
        | Event::SessionEnded { session, .. }
        | Event::CallStarted { session, .. }
        | Event::CallsEnded { session, .. }
        | Event::RoleGiven { session, .. }
        | Event::RulesSeen { session, .. }
        | Event::SubagentStopped { session, .. } => (vec![session], Vec::new()),
        Event::AliasBound { alias } => (alias.session.iter().collect(), Vec::new()),
        Event::ClaimGranted { claim } => {
            (vec![&claim.hold.holder.session], claim.hold.resources.iter().collect())
        }
        Event::ClaimNarrowed { resources, released, .. } => {
            (Vec::new(), resources.iter().chain(released).collect())
        }
        Event::ClaimEnded { session, resources, .. } => (vec![session], resources.iter().collect()),
        Event::LeftoversTold { remaining, .. } => (
            remaining.iter().map(|left| &left.holder.session).collect(),
            remaining.iter().flat_map(|left| &left.paths).collect(),
        ),
        Event::WaitQueued { waiter } => {
            (vec![&waiter.hold.holder.session], waiter.hold.resources.iter().collect())
        }
        Event::NoticeSent { notice } => {
            let (by, resources) = told_of(&notice.news);
            ([&notice.to].into_iter().chain(by).collect(), resources.iter().collect())
        }
        Event::SuggestionMade { suggestion } => {
            (vec![&suggestion.by.session, &suggestion.to.session], vec![&suggestion.path])
        }
        Event::StateChanged { changed } => (vec![&changed.by.session], Vec::new()),
        Event::DraftSet { draft } => (vec![&draft.session], Vec::new()),
        Event::DraftsEnded { session, .. } => (vec![session], Vec::new()),
        Event::OnceStarted { runner, .. } => (vec![&runner.holder.session], Vec::new()),
        Event::NoteAdded { note } => (vec![&note.by.session], Vec::new()),
        Event::CommitMade { made } => (vec![&made.by.session], made.paths.iter().collect()),
        other => concerns_of_work(other),
    };
    Concerns { sessions, resources }
}

/// The same of tasks and all that is about them.
fn concerns_of_work(event: &Event) -> (Vec<&SessionId>, Vec<&Resource>) {
    match event {
        Event::TaskAdded { task, .. } => {
            let by = task.created_by.iter().map(|by| &by.session).collect();
            (by, task.paths.iter().collect())
        }
        Event::TaskMoved { standing, .. } => {
            (standing.owner.iter().map(|owner| &owner.session).collect(), Vec::new())
        }
        Event::TaskCheckpointed { checkpoint, .. } => (vec![&checkpoint.by.session], Vec::new()),
        Event::HandoffOffered { handoff } => {
            let to = match &handoff.to {
                To::Session(holder) => Some(&holder.session),
                To::Anyone | To::Role(_) => None,
            };
            ([&handoff.from.session].into_iter().chain(to).collect(), Vec::new())
        }
        Event::HandoffDeclined { declined, .. } => (vec![&declined.by.session], Vec::new()),
        Event::HandoffEnded { end, .. } => (ended_by(end), Vec::new()),
        Event::TaskSubmitted { submission, .. } => {
            (vec![&submission.by.session], submission.frozen.iter().collect())
        }
        Event::SubmissionEnded { session, .. } => (vec![session], Vec::new()),
        Event::ReviewTaken { reviewer, .. } => (vec![&reviewer.session], Vec::new()),
        Event::ReviewsEnded { sessions, .. } => (sessions.iter().collect(), Vec::new()),
        Event::TaskJudged { verdict, .. } => (vec![&verdict.by.session], Vec::new()),
        Event::TaskFeedback { feedback, .. } => (vec![&feedback.by.session], Vec::new()),
        Event::GateOpened { gate } => {
            (gate.opened_by.iter().map(|by| &by.session).collect(), Vec::new())
        }
        Event::VoteCast { vote, .. } => (vec![&vote.by.session], Vec::new()),
        Event::InterfaceAdded { interface } => {
            (vec![&interface.owner.session], interface.files.iter().collect())
        }
        Event::InterfaceUsed { user, .. } => (vec![&user.session], Vec::new()),
        Event::InterfaceChanged { changed } => {
            let files = changed.change.files.iter().map(|file| &file.path).collect();
            (vec![&changed.change.by.session], files)
        }
        Event::InterfaceGiven { given } => {
            (vec![&given.from.session, &given.to.session], Vec::new())
        }
        _ => (Vec::new(), Vec::new()),
    }
}

/// Who caused the news, and about what it is.
fn told_of(news: &News) -> (Option<&SessionId>, &[Resource]) {
    match news {
        News::Asked { by, resources, .. } => (Some(&by.session), resources),
        News::Lost { to, resources, .. } => (to.as_ref().map(|to| &to.session), resources),
        News::Offered { by, .. } => (Some(&by.session), &[]),
        News::OfferEnded { end, .. } => (ended_by(end).pop(), &[]),
        News::TaskMoved { by, .. } => (by.as_ref().map(|by| &by.session), &[]),
        News::InterfaceChanged { by, .. } | News::InterfaceGiven { by, .. } => {
            (Some(&by.session), &[])
        }
        News::ReviewOver { .. }
        | News::Joined { .. }
        | News::LandingOver { .. }
        | News::GateDecided { .. }
        | News::Conflict { .. } => (None, &[]),
        News::Suggested { by, path, .. }
        | News::SuggestionAnswered { by, path, .. }
        | News::Overwritten { by, path, .. } => (Some(&by.session), std::slice::from_ref(path)),
    }
}

fn ended_by(end: &End) -> Vec<&SessionId> {
    match end {
        End::Accepted { by, .. } | End::Declined { by, .. } => vec![&by.session],
        End::Withdrawn { .. } | End::Returned { .. } | End::Unanswered { .. } => Vec::new(),
        End::Exhausted { .. } => Vec::new(),
    }
}

fn mentioned(told: &Told) -> BTreeSet<SessionId> {
    let mut ids = BTreeSet::new();
    if !told.entry.actor.is_empty() {
        ids.insert(SessionId(told.entry.actor.clone()));
    }
    if let Ok(event) = &told.event {
        ids.extend(concerns(event).sessions.into_iter().cloned());
    }
    ids
}
