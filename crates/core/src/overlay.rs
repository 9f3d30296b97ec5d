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

/// A scan sees what was changed above the store: what follows from an event may be looked for in
/// the same decision.
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

    /// As many rows more as may have been taken away above.
    fn widened(&self, query: &Query) -> Query {
        let mut query = query.clone();
        if let Query::Scan { limit, .. } = &mut query {
            let touched = u32::try_from(self.touched.len()).unwrap_or(u32::MAX);
            *limit = limit.saturating_add(touched);
        }
        query
    }

    /// What the store found, with the touched records where they stand now.
    fn laid_over(&self, query: &Query, rows: Vec<Row>) -> Result<Vec<Row>, Unreadable> {
        let Query::Scan { index, from, until, after, limit } = query else {
            return Ok(rows);
        };
        let is_touched = |row: &Row| self.touched.contains_key(&(row.kind, row.key.clone()));
        let kept = rows.into_iter().filter(|row| !is_touched(row));
        let above = self.touched.values().filter_map(|touched| touched.after.clone());
        let mut found = Vec::new();
        for row in kept.chain(above) {
            for (name, value) in index_entries(row.kind, &row.body)? {
                let place = (value, row.kind.to_owned(), row.key.clone());
                let beyond = after.as_ref().is_none_or(|after| place > *after);
                if name == *index && beyond && place.0 >= *from && place.0 < *until {
                    found.push((place, row.clone()));
                }
            }
        }
        found.sort_by(|one, other| one.0.cmp(&other.0));
        found.truncate(*limit as usize);
        Ok(found.into_iter().map(|(_, row)| row).collect())
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
        let all_open = self.touched.is_empty() && answers.iter().all(Option::is_none);
        let open: Cow<'_, [Query]> = match all_open {
            true => Cow::Borrowed(queries),
            false => {
                let open = queries.iter().zip(&answers).filter(|(_, answer)| answer.is_none());
                Cow::Owned(open.map(|(query, _)| self.widened(query)).collect())
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
            *answer = Some(match query {
                Query::Scan { .. } if !self.touched.is_empty() => self.laid_over(query, rows)?,
                _ => rows,
            });
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
