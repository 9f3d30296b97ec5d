//! Reading the shared state: one key, or what keys there are.
//!
//! Owns who sees what: everyone the published values, and a writer, once it has proven who it is,
//! its own drafts in their place. Nothing is changed here.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::drafts::{self, DRAFTS_MAX, Draft, record_key};
use super::{BY_KEY, Refused, State};
use crate::claim::Holder;
use crate::context::{Context, Proof};
use crate::id::SessionId;
use crate::key::{Key, KeyPattern};
use crate::refusal::Refusal;
use crate::sessions::{self, Alias, Session};
use crate::time::Moment;
use crate::view::{Query, Record, View, parse, scan};

/// How many keys are looked at for one that was perhaps meant.
const NEAR_LOOKED_AT_MAX: u32 = 200;
const NEAR_MAX: usize = 3;
/// How many keys one list shows at the most.
const LISTED_MAX: u32 = 1_000;
/// Values may be large: this many are in memory at a time.
const PAGE: u32 = 32;
const PREVIEW_CHARACTERS_MAX: usize = 60;

/// A key and its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Got {
    pub key: Key,
    pub value: Json,
    /// For a draft: the published version it is based on.
    pub version: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Holder>,
    pub at: Moment,
    /// The caller's own draft, which nobody else sees.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub draft: bool,
}

/// The session that reads, if it proves to be one. Reading needs none, so a wrong proof is no
/// refusal: it only shows no drafts.
fn proven(session: Option<&Session>, alias: Option<&Alias>, context: &Context) -> bool {
    session.is_some_and(|session| sessions::prove(session, alias, &context.actor.proof).is_ok())
}

fn reader_queries(context: &Context) -> [Query; 2] {
    let session = context.actor.session.as_ref().map(|id| id.0.clone()).unwrap_or_default();
    let alias = match &context.actor.proof {
        Proof::Alias(key) => key.clone(),
        _ => String::new(),
    };
    [Query::get::<Session>(session), Query::get::<Alias>(alias)]
}

/// The value of a key: the caller's draft of it, unless only what is published is wanted.
pub fn get_value(
    view: &dyn View,
    key: &Key,
    published: bool,
    context: &Context,
) -> Result<Got, Refusal> {
    let nobody = SessionId(String::new());
    let reader = context.actor.session.as_ref().unwrap_or(&nobody);
    let [session, alias] = reader_queries(context);
    let draft = Query::get::<Draft>(record_key(reader, key));
    let answers = view.read(&[Query::get::<State>(key.as_str()), session, alias, draft])?;
    let first = |at: usize| answers.get(at).and_then(|rows| rows.first());
    let session: Option<Session> = first(1).map(|row| parse(&row.body)).transpose()?;
    let alias: Option<Alias> = first(2).map(|row| parse(&row.body)).transpose()?;
    let draft: Option<Draft> = first(3).map(|row| parse(&row.body)).transpose()?;
    let state: Option<State> = first(0).map(|row| parse(&row.body)).transpose()?;
    let draft = draft.filter(|_| !published && proven(session.as_ref(), alias.as_ref(), context));
    let version = state.as_ref().map_or(0, |state| state.version);
    match (draft, state) {
        (Some(draft), _) if !draft.deleted => Ok(Got {
            key: draft.key,
            value: draft.value,
            version: draft.based_on,
            by: None,
            at: draft.at,
            draft: true,
        }),
        (None, Some(state)) if !state.deleted => {
            let State { key, value, version, by, at, .. } = state;
            Ok(Got { key, value, version, by: Some(by), at, draft: false })
        }
        _ => {
            let near = near(view, key)?;
            Err(Refused::Unknown { key: key.clone(), version, near }.into())
        }
    }
}

/// Keys that were perhaps meant.
fn near(view: &dyn View, key: &Key) -> Result<Vec<Key>, Refusal> {
    let scans = key.neighbourhood().map(|prefix| keys_from(&prefix, NEAR_LOOKED_AT_MAX));
    let mut known = Vec::new();
    for row in view.read(&scans)?.iter().flatten() {
        known.extend(row.key.parse::<Key>());
    }
    Ok(key.near(&known, NEAR_MAX))
}

/// All keys that begin with this. No key has a character above the last one of Unicode.
fn keys_from(prefix: &str, limit: u32) -> Query {
    let until = format!("{prefix}\u{10ffff}");
    Query::Scan { index: BY_KEY, from: prefix.to_owned(), until, after: None, limit }
}

/// One line of a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Listed {
    pub key: Key,
    pub version: u64,
    /// The beginning of the value, as JSON text.
    pub preview: String,
    pub bytes: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Holder>,
    pub at: Moment,
    /// The caller's own draft, which nobody else sees.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub draft: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Names {
    pub keys: Vec<Listed>,
    /// There are more than one list shows; name a narrower pattern.
    pub more: bool,
}

/// The keys that fit, in order; with the caller's own drafts.
pub fn list(
    view: &dyn View,
    pattern: Option<&KeyPattern>,
    limit: u32,
    context: &Context,
) -> Result<Names, Refusal> {
    let limit = limit.min(LISTED_MAX) as usize;
    let fits = |key: &Key| pattern.is_none_or(|pattern| is_meant(pattern, key));
    let mut query = keys_from(pattern.map_or("", KeyPattern::prefix), PAGE);
    let mut keys = Vec::new();
    loop {
        let page: Vec<State> = scan(view, query.clone())?;
        let last = page.last().map(|state| (Record::key(state), State::KIND, Record::key(state)));
        let full = page.len() >= PAGE as usize;
        keys.extend(page.into_iter().filter(|state| fits(&state.key)).map(line));
        let (Some((value, kind, key)), true, true) = (last, full, keys.len() <= limit) else {
            break;
        };
        if let Query::Scan { after, .. } = &mut query {
            *after = Some((value, kind.to_owned(), key));
        }
    }
    let more = keys.len() > limit;
    keys.truncate(limit);
    for draft in own_drafts(view, context)?.into_iter().filter(|draft| fits(&draft.key)) {
        keys.push(draft_line(draft));
    }
    keys.sort_by(|one, two| (&one.key, one.draft).cmp(&(&two.key, two.draft)));
    Ok(Names { keys, more })
}

/// A pattern without `*` also means everything below it, as a folder does.
fn is_meant(pattern: &KeyPattern, key: &Key) -> bool {
    let below = key.as_str().strip_prefix(pattern.as_str());
    pattern.fits(key) || below.is_some_and(|below| below.starts_with('/'))
}

fn own_drafts(view: &dyn View, context: &Context) -> Result<Vec<Draft>, Refusal> {
    let Some(reader) = &context.actor.session else {
        return Ok(Vec::new());
    };
    let answers = view.read(&reader_queries(context))?;
    let first = |at: usize| answers.get(at).and_then(|rows| rows.first());
    let session: Option<Session> = first(0).map(|row| parse(&row.body)).transpose()?;
    let alias: Option<Alias> = first(1).map(|row| parse(&row.body)).transpose()?;
    match proven(session.as_ref(), alias.as_ref(), context) {
        true => Ok(scan(view, drafts::of_session(reader, DRAFTS_MAX))?),
        false => Ok(Vec::new()),
    }
}

fn line(state: State) -> Listed {
    let text = state.value.to_string();
    Listed {
        preview: preview(&text),
        bytes: text.len(),
        key: state.key,
        version: state.version,
        by: Some(state.by),
        at: state.at,
        draft: false,
    }
}

fn draft_line(draft: Draft) -> Listed {
    let text = match draft.deleted {
        true => String::new(),
        false => draft.value.to_string(),
    };
    Listed {
        preview: preview(&text),
        bytes: text.len(),
        key: draft.key,
        version: draft.based_on,
        by: None,
        at: draft.at,
        draft: true,
    }
}

fn preview(text: &str) -> String {
    match text.char_indices().nth(PREVIEW_CHARACTERS_MAX) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}…", &text[..at]),
    }
}
