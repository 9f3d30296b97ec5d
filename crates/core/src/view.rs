//! What a rule may read and what an event may write.
//!
//! Two small traits stand between the rules and every store. `View` has one method that answers
//! many questions at once, because on PostgreSQL each call is a round trip under the workspace
//! lock. Records are JSON documents with a kind, a key and a version; the index entries of a record
//! follow from its body alone ([`index_entries`]), so every store keeps the same ones.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::handoff::Handoff;
use crate::landings::claims::Lost;
use crate::state::State;
use crate::state::drafts::Draft;
use crate::{
    claim, deploy, gate, landing, notes, notices, numbers, once, operations, sessions, suggestions,
    task, tree, votes, waiting,
};

/// The kind of a record: one per noun.
pub type Kind = &'static str;

/// The name of an index over records.
pub type Index = &'static str;

/// Every kind of record there is; a stored kind that is not here belongs to a newer Baton.
pub const KINDS: &[Kind] = &[
    claim::Claim::KIND,
    claim::Leftover::KIND,
    deploy::Deploy::KIND,
    crate::conflicts::Predicted::KIND,
    crate::denials::Denials::KIND,
    Handoff::KIND,
    gate::Gate::KIND,
    votes::Ballot::KIND,
    notes::Note::KIND,
    notices::Notice::KIND,
    once::Once::KIND,
    operations::Operation::KIND,
    sessions::Alias::KIND,
    sessions::PersonToken::KIND,
    sessions::Session::KIND,
    suggestions::Suggestion::KIND,
    task::Task::KIND,
    task::dossier::Dossier::KIND,
    task::tally::Tally::KIND,
    State::KIND,
    Draft::KIND,
    numbers::Counter::KIND,
    tree::Tree::KIND,
    landing::Landing::KIND,
    landing::Queue::KIND,
    Lost::KIND,
    crate::trust::Trust::KIND,
    waiting::Waiter::KIND,
    crate::serial::ZoneHold::KIND,
    crate::interfaces::Interface::KIND,
    crate::zones::Policy::KIND,
];

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub kind: Kind,
    pub key: String,
    /// 1 when the record was made, one more with every change.
    pub version: u64,
    /// The JSON document.
    pub body: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Query {
    Get {
        kind: Kind,
        key: String,
    },
    /// Records by index value, `from` ≤ value < `until`, in the order (value, kind, key).
    /// `after` skips everything up to and including that (value, kind, key): the next page.
    Scan {
        index: Index,
        from: String,
        until: String,
        after: Option<(String, String, String)>,
        limit: u32,
    },
}

impl Query {
    pub fn get<R: Record>(key: impl Into<String>) -> Self {
        Self::Get { kind: R::KIND, key: key.into() }
    }

    /// All records whose index value is exactly `value`.
    pub fn equal(index: Index, value: &str, limit: u32) -> Self {
        // NUL is the smallest character, and no value contains it.
        Self::Scan {
            index,
            from: value.to_owned(),
            until: format!("{value}\0"),
            after: None,
            limit,
        }
    }
}

/// The store could not answer. A rule passes it on and never takes it for "nothing there" (S11).
#[derive(Debug, thiserror::Error)]
#[error("the store could not be read")]
pub struct Unreadable(#[source] pub Box<dyn std::error::Error + Send + Sync>);

pub trait View {
    /// One answer for each query, in order. A `Get` answers with no row or one.
    fn read(&self, queries: &[Query]) -> Result<Vec<Vec<Row>>, Unreadable>;
}

pub trait Records: View {
    fn put(&mut self, kind: Kind, key: &str, body: String) -> Result<(), Unreadable>;
    fn delete(&mut self, kind: Kind, key: &str) -> Result<(), Unreadable>;
}

/// A typed record: a noun that is stored.
pub trait Record: Serialize + DeserializeOwned {
    const KIND: Kind;

    fn key(&self) -> String;

    /// Where scans find it. A pure function of the body.
    fn index_entries(&self) -> Vec<(Index, String)>;
}

/// The index entries of a stored body, whatever its kind.
pub fn index_entries(kind: Kind, body: &str) -> Result<Vec<(Index, String)>, Unreadable> {
    fn of<R: Record>(body: &str) -> Result<Vec<(Index, String)>, Unreadable> {
        Ok(parse::<R>(body)?.index_entries())
    }
    match kind {
        claim::Claim::KIND => of::<claim::Claim>(body),
        claim::Leftover::KIND => of::<claim::Leftover>(body),
        deploy::Deploy::KIND => of::<deploy::Deploy>(body),
        crate::conflicts::Predicted::KIND => of::<crate::conflicts::Predicted>(body),
        Handoff::KIND => of::<Handoff>(body),
        gate::Gate::KIND => of::<gate::Gate>(body),
        notes::Note::KIND => of::<notes::Note>(body),
        notices::Notice::KIND => of::<notices::Notice>(body),
        operations::Operation::KIND => of::<operations::Operation>(body),
        sessions::Session::KIND => of::<sessions::Session>(body),
        suggestions::Suggestion::KIND => of::<suggestions::Suggestion>(body),
        task::Task::KIND => of::<task::Task>(body),
        State::KIND => of::<State>(body),
        Draft::KIND => of::<Draft>(body),
        tree::Tree::KIND => of::<tree::Tree>(body),
        landing::Landing::KIND => of::<landing::Landing>(body),
        Lost::KIND => of::<Lost>(body),
        crate::serial::ZoneHold::KIND => of::<crate::serial::ZoneHold>(body),
        crate::interfaces::Interface::KIND => of::<crate::interfaces::Interface>(body),
        waiting::Waiter::KIND => of::<waiting::Waiter>(body),
        _ => Ok(Vec::new()),
    }
}

pub fn parse<R: DeserializeOwned>(body: &str) -> Result<R, Unreadable> {
    serde_json::from_str(body).map_err(|error| Unreadable(Box::new(error)))
}

/// The static name of a stored kind.
pub fn kind_named(name: &str) -> Option<Kind> {
    KINDS.iter().copied().find(|kind| *kind == name)
}

/// Reads of one record at a time, for rules that need no batch.
pub fn get<R: Record>(view: &dyn View, key: &str) -> Result<Option<R>, Unreadable> {
    let answers = view.read(&[Query::get::<R>(key)])?;
    answers.first().and_then(|rows| rows.first()).map(|row| parse(&row.body)).transpose()
}

pub fn scan<R: Record>(view: &dyn View, query: Query) -> Result<Vec<R>, Unreadable> {
    scan_all(view, &[query])
}

/// The same of many queries, asked at once.
pub fn scan_all<R: Record>(view: &dyn View, queries: &[Query]) -> Result<Vec<R>, Unreadable> {
    let answers = view.read(queries)?;
    answers.iter().flatten().filter(|row| row.kind == R::KIND).map(|row| parse(&row.body)).collect()
}

/// The records of one kind among rows: two kinds may stand in one index.
pub fn only<R: Record>(rows: &[Row]) -> Result<Vec<R>, Unreadable> {
    rows.iter().filter(|row| row.kind == R::KIND).map(|row| parse(&row.body)).collect()
}

pub fn put<R: Record>(records: &mut dyn Records, record: &R) -> Result<(), Unreadable> {
    let body = serde_json::to_string(record).map_err(|error| Unreadable(Box::new(error)))?;
    records.put(R::KIND, &record.key(), body)
}
