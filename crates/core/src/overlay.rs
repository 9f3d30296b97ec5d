//! One decision's changes, laid over a store that is only read.
//!
//! Events evolve into an overlay; the store then gets every change at once and writes them in one
//! step of one transaction. It also remembers each record that was read by key, so that evolving an
//! event asks the store nothing the decision has asked already.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::view::{Index, Kind, Query, Records, Row, Unreadable, View, index_entries};

/// The rows of a scan are remembered when they are no more than this.
const REMEMBERED_MAX: usize = 64;

/// What a store must write for one record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub kind: Kind,
    pub key: String,
    /// The new version and body, or `None` when the record goes.
    pub put: Option<(u64, String)>,
    /// True when the store already holds this record.
    pub existed: bool,
    pub index_removed: Vec<(Index, String)>,
    pub index_added: Vec<(Index, String)>,
}

type RecordKey = (Kind, String);

#[derive(Debug)]
struct Touched {
    before: Option<Row>,
    after: Option<Row>,
}

/// Scans answer from the store below: a decision scans before it evolves, never after.
pub struct Overlay<'a> {
    below: &'a dyn View,
    read: RefCell<BTreeMap<RecordKey, Option<Row>>>,
    touched: BTreeMap<RecordKey, Touched>,
}

impl std::fmt::Debug for Overlay<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Overlay").field("touched", &self.touched).finish_non_exhaustive()
    }
}

impl<'a> Overlay<'a> {
    pub fn new(below: &'a dyn View) -> Self {
        Self { below, read: RefCell::default(), touched: BTreeMap::new() }
    }

    /// Everything to write, in the order of kind and key.
    pub fn into_changes(self) -> Result<Vec<Change>, Unreadable> {
        let mut changes = Vec::with_capacity(self.touched.len());
        for ((kind, key), Touched { before, after }) in self.touched {
            let entries = |row: &Option<Row>| match row {
                Some(row) => index_entries(kind, &row.body),
                None => Ok(Vec::new()),
            };
            let (old, new) = (entries(&before)?, entries(&after)?);
            if before.is_none() && after.is_none() {
                continue;
            }
            changes.push(Change {
                kind,
                key,
                existed: before.is_some(),
                put: after.map(|row| (row.version, row.body)),
                index_removed: old.iter().filter(|entry| !new.contains(entry)).cloned().collect(),
                index_added: new.iter().filter(|entry| !old.contains(entry)).cloned().collect(),
            });
        }
        Ok(changes)
    }

    fn current(&self, kind: Kind, key: &str) -> Result<Option<Row>, Unreadable> {
        if let Some(touched) = self.touched.get(&(kind, key.to_owned())) {
            return Ok(touched.after.clone());
        }
        if let Some(row) = self.read.borrow().get(&(kind, key.to_owned())) {
            return Ok(row.clone());
        }
        let answers = self.below.read(&[Query::Get { kind, key: key.to_owned() }])?;
        let row = answers.into_iter().flatten().next();
        self.read.borrow_mut().insert((kind, key.to_owned()), row.clone());
        Ok(row)
    }

    fn touch(&mut self, kind: Kind, key: &str, body: Option<String>) -> Result<(), Unreadable> {
        let current = self.current(kind, key)?;
        let version = current.as_ref().map_or(1, |row| row.version + 1);
        let after = body.map(|body| Row { kind, key: key.to_owned(), version, body });
        match self.touched.get_mut(&(kind, key.to_owned())) {
            Some(touched) => touched.after = after,
            None => {
                let touched = Touched { before: current, after };
                self.touched.insert((kind, key.to_owned()), touched);
            }
        }
        Ok(())
    }
}

impl View for Overlay<'_> {
    fn read(&self, queries: &[Query]) -> Result<Vec<Vec<Row>>, Unreadable> {
        let known = |query: &Query| match query {
            Query::Get { kind, key } => {
                let record = (*kind, key.clone());
                match self.touched.get(&record) {
                    Some(touched) => Some(touched.after.clone()),
                    None => self.read.borrow().get(&record).cloned(),
                }
            }
            Query::Scan { .. } => None,
        };
        let mut answers: Vec<Option<Vec<Row>>> =
            queries.iter().map(|query| known(query).map(|row| row.into_iter().collect())).collect();
        let all_open = answers.iter().all(Option::is_none);
        let open: Cow<'_, [Query]> = match all_open {
            true => Cow::Borrowed(queries),
            false => {
                let open = queries.iter().zip(&answers).filter(|(_, answer)| answer.is_none());
                Cow::Owned(open.map(|(query, _)| query.clone()).collect())
            }
        };
        let mut below = match open.len() {
            0 => Vec::new(),
            _ => self.below.read(&open)?,
        }
        .into_iter();
        let mut read = self.read.borrow_mut();
        for (query, answer) in queries.iter().zip(&mut answers) {
            if answer.is_some() {
                continue;
            }
            let rows = below.next().unwrap_or_default();
            if let Query::Get { kind, key } = query {
                read.insert((*kind, key.clone()), rows.first().cloned());
            }
            // A long list is looked through, and little of it is asked for again.
            for row in rows.iter().filter(|_| rows.len() <= REMEMBERED_MAX) {
                read.insert((row.kind, row.key.clone()), Some(row.clone()));
            }
            *answer = Some(rows);
        }
        Ok(answers.into_iter().map(Option::unwrap_or_default).collect())
    }
}

impl Records for Overlay<'_> {
    fn put(&mut self, kind: Kind, key: &str, body: String) -> Result<(), Unreadable> {
        self.touch(kind, key, Some(body))
    }

    fn delete(&mut self, kind: Kind, key: &str) -> Result<(), Unreadable> {
        self.touch(kind, key, None)
    }
}
