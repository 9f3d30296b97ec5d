//! Shared state: JSON values by key, each with a version.
//!
//! Owns writing: who may, under which conditions, and by which rule of `baton.toml` a value may
//! change. Every change of a key is one version more, also a deletion, so a version never names
//! two values. Other decisions set values in their own transaction through [`write_all`]; drafts
//! are in [`drafts`], the rules a value obeys in [`rules`].

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::claim::Holder;
use crate::context::Context;
use crate::event::Event;
use crate::id::{Position, SessionId};
use crate::key::{BadKey, Key};
use crate::notices::Notice;
use crate::refusal::Refusal;
use crate::scene::Caller;
use crate::sessions::{Life, Session};
use crate::time::Moment;
use crate::view::{Index, Kind, Query, Record, View, get, parse};
use crate::zones::Policy;

pub use refused::{Against, Refused};
pub use value::{BadValue, parse_value};

pub mod drafts;
mod reading;
mod refused;
pub mod rules;
mod value;

pub use reading::{Got, Listed, Names, get_value, list};

/// The largest value, as JSON text.
pub const VALUE_BYTES_MAX: usize = 256 * 1024;
/// How deep a value may nest: the journal's reader stops at 128, and wraps it in a few levels.
pub const VALUE_DEPTH_MAX: usize = 64;
/// How many keys one write may rely on.
pub const READS_MAX: usize = 100;
/// How many values one decision writes at the most.
pub const WRITES_MAX: usize = 100;
/// How many changes of a key can be looked up; older ones are only in the journal.
pub const HISTORY_MAX: usize = 100;

/// Keys that have a value, in order.
pub const BY_KEY: Index = "state.key";

/// One key of the shared state. A deleted one is kept, because its versions go on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    pub key: Key,
    pub version: u64,
    /// Kept apart from the value: `null` is a value.
    pub deleted: bool,
    pub value: Json,
    pub by: Holder,
    pub at: Moment,
    /// The first writer since the key was last without a value.
    pub owner: SessionId,
    /// Where the journal has the latest changes, oldest first; the last one made this version.
    pub past: Vec<Position>,
}

impl Record for State {
    const KIND: Kind = "state";

    fn key(&self) -> String {
        self.key.as_str().to_owned()
    }

    fn index_entries(&self) -> Vec<(Index, String)> {
        match self.deleted {
            true => Vec::new(),
            false => vec![(BY_KEY, self.key())],
        }
    }
}

impl State {
    pub fn value(&self) -> Option<&Json> {
        (!self.deleted).then_some(&self.value)
    }

    /// The key after one more change. The same function applies an event live, when the journal
    /// is replayed, and for whoever watches a key.
    #[must_use]
    pub fn after(before: Option<Self>, changed: &Changed) -> Self {
        let (value, mut past) = match before {
            None => (None, Vec::new()),
            Some(before) => ((!before.deleted).then_some(before.value), before.past),
        };
        past.push(changed.position);
        past.drain(..past.len().saturating_sub(HISTORY_MAX));
        let value = changed.change.apply(value);
        Self {
            key: changed.key.clone(),
            version: changed.version,
            deleted: value.is_none(),
            value: value.unwrap_or_default(),
            by: changed.by.clone(),
            at: changed.at,
            owner: changed.owner.clone(),
            past,
        }
    }
}

/// What is done to a value, as it is asked for and as the journal keeps it: an append of one item
/// to a long list is one item there, not the list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum Change {
    Set {
        value: Json,
    },
    Append {
        items: Vec<Json>,
    },
    /// A JSON merge patch (RFC 7386).
    Merge {
        patch: Json,
    },
    Delete,
}

impl Change {
    /// The value afterwards; `None` when there is none.
    pub fn apply(&self, value: Option<Json>) -> Option<Json> {
        match self {
            Self::Set { value } => Some(value.clone()),
            Self::Append { items } => {
                let mut all = match value {
                    Some(Json::Array(all)) => all,
                    _ => Vec::new(),
                };
                all.extend(items.iter().cloned());
                Some(Json::Array(all))
            }
            Self::Merge { patch } => {
                let mut value = value.unwrap_or_default();
                value::merge(&mut value, patch);
                Some(value)
            }
            Self::Delete => None,
        }
    }
}

/// One change of one key, as it happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changed {
    pub key: Key,
    pub version: u64,
    #[serde(flatten)]
    pub change: Change,
    pub by: Holder,
    pub at: Moment,
    pub owner: SessionId,
    /// Its own place in the journal.
    pub position: Position,
}

/// Something that was read, and must not have changed since.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Read {
    pub key: Key,
    /// 0: it had no value.
    pub version: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not KEY@VERSION, for example build/status@3")]
pub struct BadRead {
    pub text: String,
}

impl std::str::FromStr for Read {
    type Err = BadRead;

    fn from_str(text: &str) -> Result<Self, BadRead> {
        let parsed = text.rsplit_once('@').and_then(|(key, version)| {
            Some(Self { key: key.parse().ok()?, version: version.parse().ok()? })
        });
        parsed.ok_or_else(|| BadRead { text: text.to_owned() })
    }
}

/// One change that is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Write {
    pub key: Key,
    pub change: Change,
    /// Refuse unless the key is at this version; 0: unless it has no value.
    pub if_version: Option<u64>,
}

/// Why a text is not `KEY=JSON`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadSet {
    #[error("{text:?} is not KEY=JSON, for example build/status='\"ready\"'")]
    NoValue { text: String },
    #[error("{text:?} is not a key: {why}")]
    Key { text: String, why: BadKey },
    #[error("the value of {key} cannot be used: {why}")]
    Value { key: Key, why: BadValue },
}

/// `KEY=JSON`, for verbs that set values along with what they do.
impl std::str::FromStr for Write {
    type Err = BadSet;

    fn from_str(text: &str) -> Result<Self, BadSet> {
        let (key, value) =
            text.split_once('=').ok_or_else(|| BadSet::NoValue { text: text.to_owned() })?;
        let key: Key = key.parse().map_err(|why| BadSet::Key { text: key.to_owned(), why })?;
        match parse_value(value) {
            Ok(value) => Ok(Self { key, change: Change::Set { value }, if_version: None }),
            Err(why) => Err(BadSet::Value { key, why }),
        }
    }
}

/// Who writes, as far as rules of state care.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Writer {
    pub holder: Holder,
    pub role: Option<String>,
}

impl Writer {
    pub fn of(caller: &Caller, context: &Context) -> Self {
        Self { holder: caller.holder(context), role: caller.session.role.clone() }
    }
}

/// What came of one write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Written {
    pub key: Key,
    pub version: u64,
    /// False when the key's rule kept what was there: the greater number, a set that has it all.
    pub changed: bool,
    /// It is a draft: others see it after `state publish`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub draft: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<Notice>,
}

/// A request to change one key.
#[derive(Clone, Debug, Serialize)]
pub struct Request {
    pub write: Write,
    pub reads: Vec<Read>,
    pub draft: bool,
}

/// Changes one key, or drafts the change.
pub fn write(
    view: &dyn View,
    request: &Request,
    context: &Context,
) -> Result<(Vec<Event>, Written), Refusal> {
    let caller = Caller::read(view, context)?;
    let writer = Writer::of(&caller, context);
    let (mut events, written) = match request.draft {
        true => drafts::draft(view, &writer, request, context)?,
        false => {
            let writes = std::slice::from_ref(&request.write);
            write_all(view, &writer, writes, &request.reads, context.next, context)?
        }
    };
    events.extend(caller.activity(context, &[]));
    let written = written.into_iter().next().ok_or(Refusal::Empty)?;
    Ok((events, Written { notices: caller.notices, ..written }))
}

/// The events that make these changes, all or none: for any decision that sets values along with
/// what it decides. `first` is the journal position of the first of these events, so a caller that
/// puts its own events before them passes `context.next.after(how many)`.
pub fn write_all(
    view: &dyn View,
    writer: &Writer,
    writes: &[Write],
    reads: &[Read],
    first: Position,
    context: &Context,
) -> Result<(Vec<Event>, Vec<Written>), Refusal> {
    for (what, given, max) in
        [("keys", writes.len(), WRITES_MAX), ("reads", reads.len(), READS_MAX)]
    {
        if given > max {
            return Err(Refused::TooMany { what, given, max }.into());
        }
    }
    let keys = writes.iter().map(|write| &write.key).chain(reads.iter().map(|read| &read.key));
    let mut scene = Scene::read(view, keys)?;
    for read in reads {
        scene.expect(&read.key, read.version, true)?;
    }
    let mut events = Vec::new();
    let mut written = Vec::new();
    for write in writes {
        if let Some(version) = write.if_version {
            scene.expect(&write.key, version, false)?;
        }
        let owner = scene.owner_after(view, &write.key, writer, context)?;
        let current = scene.states.get(&write.key);
        let change = scene.settle(&write.key, current.and_then(State::value), &write.change)?;
        let version = current.map_or(0, |state| state.version);
        let changed = change.is_some();
        if let Some(change) = change {
            let changed = Changed {
                key: write.key.clone(),
                version: version + 1,
                change,
                by: writer.holder.clone(),
                at: context.now,
                owner,
                position: first.after(events.len() as u64),
            };
            let state = State::after(scene.states.remove(&write.key), &changed);
            value::check(&state.key, &state.value)?;
            scene.states.insert(write.key.clone(), state);
            events.push(Event::StateChanged { changed });
        }
        let version = version + u64::from(changed);
        let key = write.key.clone();
        written.push(Written { key, version, changed, draft: false, notices: Vec::new() });
    }
    Ok((events, written))
}

/// Everything a write looks at, read in one batch.
struct Scene {
    policy: Policy,
    states: BTreeMap<Key, State>,
}

impl Scene {
    fn read<'a>(view: &dyn View, keys: impl Iterator<Item = &'a Key>) -> Result<Self, Refusal> {
        let mut queries = vec![Query::get::<Policy>(Policy::KEY)];
        queries.extend(keys.map(|key| Query::get::<State>(key.as_str())));
        let answers = view.read(&queries)?;
        let policy = answers[0].first().map(|row| parse(&row.body)).transpose()?;
        let mut states = BTreeMap::new();
        for row in answers[1..].iter().flatten() {
            let state: State = parse(&row.body)?;
            states.insert(state.key.clone(), state);
        }
        Ok(Self { policy: policy.unwrap_or_default(), states })
    }

    /// Is the key still at this version?
    fn expect(&self, key: &Key, version: u64, read: bool) -> Result<(), Refusal> {
        let state = self.states.get(key);
        let current = state.map_or(0, |state| state.version);
        let exists = state.is_some_and(|state| !state.deleted);
        if current == version || version == 0 && !exists {
            return Ok(());
        }
        let by = state.map(|state| (state.by.clone(), state.at));
        Err(Refused::Stale { key: key.clone(), given: version, current, exists, by, read }.into())
    }

    fn settle(
        &self,
        key: &Key,
        current: Option<&Json>,
        asked: &Change,
    ) -> Result<Option<Change>, Refusal> {
        if current.is_none() && *asked == Change::Delete {
            let version = self.states.get(key).map_or(0, |state| state.version);
            return Err(Refused::Unknown { key: key.clone(), version, near: Vec::new() }.into());
        }
        let rule = rules::of(&self.policy.state, key);
        rules::settle(rule, current, asked).map_err(|why| {
            let set = self.states.get(key).map(|state| (state.by.clone(), state.at));
            let rule = rule.map_or(rules::Kind::Replace, |rule| rule.rule);
            Refused::Against { key: key.clone(), rule, why, set }.into()
        })
    }

    /// Whose key it is after this writer's change; a refusal when it is somebody else's.
    fn owner_after(
        &self,
        view: &dyn View,
        key: &Key,
        writer: &Writer,
        context: &Context,
    ) -> Result<SessionId, Refusal> {
        let state = self.states.get(key).filter(|state| !state.deleted);
        let mine = writer.holder.session.clone();
        let refused = |owner: &rules::Owner, by| {
            let (key, owner) = (key.clone(), owner.clone());
            Err(Refused::NotOwner { key, owner, by }.into())
        };
        let rule = rules::of(&self.policy.state, key).and_then(|rule| rule.owner.as_ref());
        match (rule, state) {
            (Some(owner @ rules::Owner::Role(role)), _) if writer.role.as_ref() != Some(role) => {
                refused(owner, None)
            }
            (Some(owner @ rules::Owner::Session), Some(state)) if state.owner != mine => {
                match get::<Session>(view, state.owner.as_str())? {
                    Some(session) if !is_over(&session, context) => {
                        let holder =
                            Holder { session: session.session, name: session.name, agent: None };
                        refused(owner, Some(holder))
                    }
                    _ => Ok(mine),
                }
            }
            (_, Some(state)) => Ok(state.owner.clone()),
            (_, None) => Ok(mine),
        }
    }
}

/// Ended, and not to come back: its keys pass to whoever writes next.
fn is_over(session: &Session, context: &Context) -> bool {
    match session.life {
        Life::Live => false,
        Life::Ended { grace_until, .. } => grace_until.is_none_or(|until| context.now >= until),
    }
}
