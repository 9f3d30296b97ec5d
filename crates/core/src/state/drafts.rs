//! Drafts: changes that only their writer sees until all of them are published at once.
//!
//! A draft remembers the version it is based on and what its writer had read. Publishing checks
//! all of that for all drafts and writes every value in one transaction, or refuses and changes
//! nothing. A draft belongs to a session and goes with it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::{
    Change, READS_MAX, Read, Refused, Request, Scene, State, Write, Writer, Written, is_over,
    value, write_all,
};
use crate::context::Context;
use crate::event::{EndOfDraft, Event};
use crate::id::SessionId;
use crate::key::Key;
use crate::notices::Notice;
use crate::refusal::Refusal;
use crate::scene::Caller;
use crate::sessions::Session;
use crate::time::Moment;
use crate::view::{Index, Kind, Query, Record, View, get, scan};

/// How many drafts one session may have: as many as one publication writes.
pub const DRAFTS_MAX: u32 = 100;

/// How many old drafts one new one looks at, to clear away what sessions that ended have left.
const OLDEST_LOOKED_AT: u32 = 4;

pub const BY_SESSION: Index = "draft.session";
const BY_TIME: Index = "draft.time";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Draft {
    pub session: SessionId,
    pub key: Key,
    /// The published version it was made from; 0 when there was none.
    pub based_on: u64,
    pub deleted: bool,
    pub value: Json,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reads: Vec<Read>,
    pub at: Moment,
}

impl Record for Draft {
    const KIND: Kind = "draft";

    fn key(&self) -> String {
        record_key(&self.session, &self.key)
    }

    fn index_entries(&self) -> Vec<(Index, String)> {
        vec![(BY_SESSION, Record::key(self)), (BY_TIME, format!("{:020}", self.at.0))]
    }
}

/// Session ids have no `/`, so this names one draft.
pub fn record_key(session: &SessionId, key: &Key) -> String {
    format!("{session}/{key}")
}

/// The drafts of a session, by key.
pub fn of_session(session: &SessionId, limit: u32) -> Query {
    let (from, until) = (format!("{session}/"), format!("{session}0"));
    Query::Scan { index: BY_SESSION, from, until, after: None, limit }
}

impl Draft {
    fn value(&self) -> Option<&Json> {
        (!self.deleted).then_some(&self.value)
    }

    /// There was no value, and there is none again.
    fn changes_nothing(&self, view: &dyn View) -> Result<bool, Refusal> {
        if !self.deleted || self.based_on != 0 {
            return Ok(false);
        }
        Ok(get::<State>(view, self.key.as_str())?.is_none_or(|there| there.deleted))
    }

    fn into_write(self) -> Write {
        let change = match self.deleted {
            true => Change::Delete,
            false => Change::Set { value: self.value },
        };
        Write { key: self.key, change, if_version: Some(self.based_on) }
    }
}

/// Drafts one change, on top of the writer's earlier draft of the same key.
pub(super) fn draft(
    view: &dyn View,
    writer: &Writer,
    request: &Request,
    context: &Context,
) -> Result<(Vec<Event>, Vec<Written>), Refusal> {
    let Request { write: Write { key, change, if_version }, reads, .. } = request;
    let session = &writer.holder.session;
    let scene = Scene::read(view, [key].into_iter().chain(reads.iter().map(|read| &read.key)))?;
    if let Some(version) = if_version {
        scene.expect(key, *version, false)?;
    }
    for read in reads {
        scene.expect(&read.key, read.version, true)?;
    }
    scene.owner_after(view, key, writer, context)?;
    let earlier = get::<Draft>(view, &record_key(session, key))?;
    if earlier.is_none() {
        let answers = view.read(&[of_session(session, DRAFTS_MAX)])?;
        let count: usize = answers.iter().map(Vec::len).sum();
        let max = DRAFTS_MAX as usize;
        if count >= max {
            return Err(Refused::TooMany { what: "drafts", given: count + 1, max }.into());
        }
    }
    let published = scene.states.get(key);
    let version = published.map_or(0, |state| state.version);
    let current = match &earlier {
        Some(draft) => draft.value(),
        None => published.and_then(State::value),
    };
    let change = scene.settle(key, current, change)?;
    let based_on = earlier.as_ref().map_or(version, |draft| draft.based_on);
    let written = Written {
        key: key.clone(),
        version: based_on,
        changed: change.is_some(),
        draft: true,
        notices: Vec::new(),
    };
    let Some(change) = change else {
        return Ok((Vec::new(), vec![written]));
    };
    let after = change.apply(current.cloned());
    if after.is_none() && published.and_then(State::value).is_none() {
        // Drafted and deleted before anyone saw it: there is nothing to publish.
        let (session, keys, why) = (session.clone(), vec![key.clone()], EndOfDraft::Discarded);
        return Ok((vec![Event::DraftsEnded { session, keys, why }], vec![written]));
    }
    let draft = Draft {
        session: session.clone(),
        key: key.clone(),
        based_on,
        deleted: after.is_none(),
        value: after.unwrap_or_default(),
        reads: reads_with(earlier.map(|draft| draft.reads).unwrap_or_default(), reads)?,
        at: context.now,
    };
    value::check(key, &draft.value)?;
    let mut events = vec![Event::DraftSet { draft }];
    events.extend(forget_abandoned(view, context)?);
    Ok((events, vec![written]))
}

/// Drafts of sessions that ended with a grace and never came back.
fn forget_abandoned(view: &dyn View, context: &Context) -> Result<Vec<Event>, Refusal> {
    let (from, until) = (String::new(), "~".to_owned());
    let limit = OLDEST_LOOKED_AT;
    let oldest: Vec<Draft> =
        scan(view, Query::Scan { index: BY_TIME, from, until, after: None, limit })?;
    let mut events = Vec::new();
    for Draft { session, key, .. } in oldest {
        let over = get::<Session>(view, session.as_str())?
            .is_none_or(|session| is_over(&session, context));
        if over {
            let (keys, why) = (vec![key], EndOfDraft::SessionEnded);
            events.push(Event::DraftsEnded { session, keys, why });
        }
    }
    Ok(events)
}

/// What was read for the earlier draft and for this one; what was read again counts as of now.
fn reads_with(mut earlier: Vec<Read>, reads: &[Read]) -> Result<Vec<Read>, Refusal> {
    earlier.retain(|old| reads.iter().all(|new| new.key != old.key));
    earlier.extend(reads.iter().cloned());
    match earlier.len() > READS_MAX {
        true => {
            Err(Refused::TooMany { what: "reads", given: earlier.len(), max: READS_MAX }.into())
        }
        false => Ok(earlier),
    }
}

/// What was published or thrown away, all at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Published {
    pub published: Vec<Written>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<Notice>,
}

/// Publishes the caller's drafts of these keys, or all of them: every one or none.
pub fn publish(
    view: &dyn View,
    keys: &[Key],
    context: &Context,
) -> Result<(Vec<Event>, Published), Refusal> {
    let caller = Caller::read(view, context)?;
    let writer = Writer::of(&caller, context);
    let drafts = named(view, &writer.holder.session, keys)?;
    let keys: Vec<Key> = drafts.iter().map(|draft| draft.key.clone()).collect();
    let mut reads: Vec<Read> = Vec::new();
    for read in drafts.iter().flat_map(|draft| &draft.reads) {
        if !reads.contains(read) {
            reads.push(read.clone());
        }
    }
    let mut writes: Vec<Write> = Vec::with_capacity(drafts.len());
    for draft in drafts {
        if !draft.changes_nothing(view)? {
            writes.push(draft.into_write());
        }
    }
    // Each draft may have read as much as one write; all of them together more.
    for some in reads.chunks(READS_MAX) {
        write_all(view, &writer, &[], some, context.next, context)?;
    }
    let (mut events, published) = write_all(view, &writer, &writes, &[], context.next, context)?;
    let session = writer.holder.session;
    events.push(Event::DraftsEnded { session, keys, why: EndOfDraft::Published });
    events.extend(caller.activity(context, &[]));
    Ok((events, Published { published, notices: caller.notices }))
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Discarded {
    pub discarded: Vec<Key>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<Notice>,
}

/// Throws the caller's own drafts away; what others see does not change.
pub fn discard(
    view: &dyn View,
    keys: &[Key],
    context: &Context,
) -> Result<(Vec<Event>, Discarded), Refusal> {
    let caller = Caller::read(view, context)?;
    let session = caller.session.session.clone();
    let drafts = named(view, &session, keys)?;
    let keys: Vec<Key> = drafts.into_iter().map(|draft| draft.key).collect();
    let why = EndOfDraft::Discarded;
    let mut events = vec![Event::DraftsEnded { session, keys: keys.clone(), why }];
    events.extend(caller.activity(context, &[]));
    Ok((events, Discarded { discarded: keys, notices: caller.notices }))
}

fn named(view: &dyn View, session: &SessionId, keys: &[Key]) -> Result<Vec<Draft>, Refusal> {
    if keys.is_empty() {
        let all: Vec<Draft> = scan(view, of_session(session, DRAFTS_MAX))?;
        return match all.is_empty() {
            true => Err(Refused::NoDraft { key: None }.into()),
            false => Ok(all),
        };
    }
    let mut keys = keys.to_vec();
    keys.sort_unstable();
    keys.dedup();
    let draft = |key: &Key| {
        let draft = get::<Draft>(view, &record_key(session, key))?;
        draft.ok_or_else(|| Refused::NoDraft { key: Some(key.clone()) }.into())
    };
    keys.iter().map(draft).collect()
}

/// The end of a session's drafts, when it has any.
pub(crate) fn end_with_session(
    view: &dyn View,
    session: &SessionId,
) -> Result<Option<Event>, Refusal> {
    let drafts: Vec<Draft> = scan(view, of_session(session, DRAFTS_MAX))?;
    let keys: Vec<Key> = drafts.into_iter().map(|draft| draft.key).collect();
    let (session, why) = (session.clone(), EndOfDraft::SessionEnded);
    Ok((!keys.is_empty()).then_some(Event::DraftsEnded { session, keys, why }))
}
