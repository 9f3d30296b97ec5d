//! How tests write: small decisions through the same overlay as the engine's.

use std::time::Duration;

use baton_core::event::{Durability, Event};
use baton_core::id::Position;
use baton_core::journal::{Entry, Head, follows};
use baton_core::overlay::Overlay;
use baton_core::view::{Kind, Query, Records, Row, View};
use baton_engine::store::{Commit, Error, Snapshot, Store, Transaction};

pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) const ALIAS: Kind = "alias";
pub(crate) const NOTICE: Kind = "notice";
pub(crate) const BY_SESSION: &str = baton_core::notices::BY_SESSION;

#[derive(Clone, Debug)]
pub(crate) enum Edit {
    Put(Kind, String, String),
    Delete(Kind, String),
}

/// A record without index entries whose body carries `value`.
pub(crate) fn alias(key: &str, value: &str) -> Edit {
    let body = serde_json::json!({ "alias": key, "session": value }).to_string();
    Edit::Put(ALIAS, key.to_owned(), body)
}

/// A record that the index `notice.session` finds under `to`.
pub(crate) fn notice(key: &str, to: &str) -> Edit {
    let body = serde_json::json!({
        "notice": key, "to": to, "at": "2024-01-01T00:00:00.000Z", "news": "lost",
        "claim": "c1", "resources": [], "to_holder": null, "why": "",
    });
    Edit::Put(NOTICE, key.to_owned(), body.to_string())
}

pub(crate) fn delete(kind: Kind, key: &str) -> Edit {
    Edit::Delete(kind, key.to_owned())
}

/// One decision: a journal entry for each edit (at least one), and the edits.
pub(crate) fn write(store: &mut dyn Store, edits: &[Edit]) -> Result<Head, Error> {
    write_as(store, Durability::Process, edits)
}

pub(crate) fn write_as(
    store: &mut dyn Store,
    durability: Durability,
    edits: &[Edit],
) -> Result<Head, Error> {
    let transaction = store.begin(PATIENCE)?;
    commit(transaction, durability, edits)
}

pub(crate) fn commit(
    transaction: Box<dyn Transaction + '_>,
    durability: Durability,
    edits: &[Edit],
) -> Result<Head, Error> {
    let mut overlay = Overlay::new(&*transaction);
    for edit in edits {
        match edit {
            Edit::Put(kind, key, body) => overlay.put(kind, key, body.clone())?,
            Edit::Delete(kind, key) => overlay.delete(kind, key)?,
        }
    }
    let changes = overlay.into_changes()?;
    let entries = entries_after(&*transaction, edits.len().max(1));
    let head = entries.last().unwrap().head();
    transaction.commit(&Commit { entries: &entries, changes: &changes, durability })?;
    Ok(head)
}

/// Well-formed entries that say nothing much.
pub(crate) fn entries_after(transaction: &dyn Transaction, count: usize) -> Vec<Entry> {
    let state = transaction.state();
    let mut head = state.head.clone();
    let mut entries = Vec::new();
    for _ in 0..count {
        let position = Position { epoch: state.epoch, number: head.position.number + 1 };
        let event = Event::EpochRaised { why: "a test".to_owned() };
        let entry = Entry::next(&head, position, state.now, "s1", &event);
        head = entry.head();
        entries.push(entry);
    }
    entries
}

pub(crate) fn get(view: &(impl View + ?Sized), kind: Kind, key: &str) -> Option<Row> {
    view.read(&[Query::Get { kind, key: key.to_owned() }]).unwrap().remove(0).pop()
}

/// The number in a counter made by [`alias`]; 0 when there is none.
pub(crate) fn counter(view: &(impl View + ?Sized), key: &str) -> u64 {
    let Some(row) = get(view, ALIAS, key) else { return 0 };
    let body: serde_json::Value = serde_json::from_str(&row.body).unwrap();
    body["session"].as_str().unwrap().parse().unwrap()
}

/// Reads a counter and writes one more: a lost update if anybody comes in between.
pub(crate) fn increment(
    store: &mut dyn Store,
    key: &str,
    durability: Durability,
) -> Result<u64, Error> {
    let transaction = store.begin(PATIENCE)?;
    let next = counter(&*transaction, key) + 1;
    commit(transaction, durability, &[alias(key, &next.to_string())])?;
    Ok(next)
}

/// All entries, after a check that they follow one another up to the head.
pub(crate) fn verified_journal(snapshot: &dyn Snapshot) -> Vec<Entry> {
    let mut head = snapshot.archived().unwrap().unwrap_or_else(Head::start);
    let entries = snapshot.entries(head.position.number, u32::MAX).unwrap();
    for entry in &entries {
        follows(&head, entry).unwrap();
        head = entry.head();
    }
    assert_eq!(head, snapshot.state().head);
    entries
}
