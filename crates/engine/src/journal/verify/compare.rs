//! The store's records and index entries beside the rebuilt ones.
//!
//! Owns the comparison: two sorted walks, so that memory holds the rebuilt records and one page of
//! the stored ones. Names what differs, and never shows a hash of a secret.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use baton_core::memory::Memory;
use baton_core::view::Row;
use serde_json::Value;

use super::{Difference, Fault, Verified};
use crate::failure::Failure;
use crate::store::Snapshot;

const PAGE: u32 = 5_000;
/// So many fields of one record are named.
const FIELDS_MAX: usize = 4;
const VALUE_CHARACTERS_MAX: usize = 60;

pub(super) fn records(
    snapshot: &dyn Snapshot,
    rebuilt: &Memory,
    report: &mut Verified,
) -> Result<(), Failure> {
    let mut stored = Stored { snapshot, page: Vec::new().into_iter(), after: None };
    let mut expected = rebuilt.rows();
    let (mut left, mut right) = (expected.next(), stored.next()?);
    loop {
        let order = match (&left, &right) {
            (None, None) => return Ok(()),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(one), Some(two)) => (one.kind, &one.key).cmp(&(two.kind, &two.key)),
        };
        if order != Ordering::Less {
            report.records += 1;
        }
        match (&left, &right) {
            (Some(row), _) if order == Ordering::Less => {
                let (kind, key) = (row.kind.to_owned(), row.key.clone());
                report.fault(Fault::RecordMissing { kind, key });
            }
            (_, Some(row)) if order == Ordering::Greater => {
                let (kind, key) = (row.kind.to_owned(), row.key.clone());
                report.fault(Fault::RecordExtra { kind, key });
            }
            (Some(one), Some(two)) if one != two => {
                let (kind, key) = (one.kind.to_owned(), one.key.clone());
                let fields = differences(one, two);
                report.fault(Fault::RecordDiffers { kind, key, fields });
            }
            _ => {}
        }
        if order != Ordering::Greater {
            left = expected.next();
        }
        if order != Ordering::Less {
            right = stored.next()?;
        }
    }
}

struct Stored<'a> {
    snapshot: &'a dyn Snapshot,
    page: std::vec::IntoIter<Row>,
    after: Option<(String, String)>,
}

impl Stored<'_> {
    fn next(&mut self) -> Result<Option<Row>, Failure> {
        if let Some(row) = self.page.next() {
            return Ok(Some(row));
        }
        let after = self.after.as_ref().map(|(kind, key)| (kind.as_str(), key.as_str()));
        let page = self.snapshot.rows(after, PAGE)?;
        if let Some(last) = page.last() {
            self.after = Some((last.kind.to_owned(), last.key.clone()));
        }
        self.page = page.into_iter();
        Ok(self.page.next())
    }
}

fn differences(rebuilt: &Row, stored: &Row) -> Vec<Difference> {
    let mut found = Vec::new();
    if rebuilt.version != stored.version {
        found.push(Difference {
            field: "version".to_owned(),
            journal: rebuilt.version.to_string(),
            store: stored.version.to_string(),
        });
    }
    let parsed = |row: &Row| serde_json::from_str::<Value>(&row.body).unwrap_or(Value::Null);
    let (one, two) = (parsed(rebuilt), parsed(stored));
    let fields = |value: &Value| {
        value.as_object().into_iter().flatten().map(|(k, _)| k.clone()).collect::<Vec<_>>()
    };
    let names: BTreeSet<String> = fields(&one).into_iter().chain(fields(&two)).collect();
    for name in names.into_iter().filter(|name| one.get(name) != two.get(name)) {
        let shown = |value: &Value| shown(&name, value.get(&name));
        found.push(Difference { journal: shown(&one), store: shown(&two), field: name });
    }
    if found.is_empty() {
        // The same document in other bytes, or no document at all.
        let field = "body".to_owned();
        found.push(Difference {
            field,
            journal: shown("body", Some(&Value::String(rebuilt.body.clone()))),
            store: shown("body", Some(&Value::String(stored.body.clone()))),
        });
    }
    found.truncate(FIELDS_MAX);
    found
}

fn shown(field: &str, value: Option<&Value>) -> String {
    let hidden = ["secret_hashes", "hash", "answer", "body"].contains(&field);
    match value {
        None => "nothing".to_owned(),
        Some(_) if hidden => "(not shown)".to_owned(),
        Some(value) => value.to_string().chars().take(VALUE_CHARACTERS_MAX).collect(),
    }
}

pub(super) fn index(
    snapshot: &dyn Snapshot,
    rebuilt: &Memory,
    report: &mut Verified,
) -> Result<(), Failure> {
    let mut stored = snapshot.index_entries()?;
    stored.sort_unstable();
    report.index_entries = stored.len() as u64;
    let mut stored = stored.into_iter().peekable();
    let extra = |(index, value, kind, key)| Fault::IndexExtra { index, value, kind, key };
    for (index, value, kind, key) in rebuilt.index() {
        let expected = ((*index).to_owned(), value.clone(), (*kind).to_owned(), key.clone());
        while let Some(early) = stored.next_if(|entry| *entry < expected) {
            report.fault(extra(early));
        }
        if stored.next_if_eq(&expected).is_none() {
            let (index, value, kind, key) = expected;
            report.fault(Fault::IndexMissing { index, value, kind, key });
        }
    }
    stored.for_each(|entry| report.fault(extra(entry)));
    Ok(())
}
