//! Records in memory: the model store.
//!
//! The same `View` and `Records` as a real store, over sorted maps. Tests and simulations run on
//! it, and `journal verify` rebuilds into it to compare with what a real store holds.

use std::collections::{BTreeMap, BTreeSet};

use crate::journal::Hash;
use crate::view::{Index, Kind, Query, Records, Row, Unreadable, View, index_entries};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    records: BTreeMap<(Kind, String), (u64, String)>,
    index: BTreeSet<(Index, String, Kind, String)>,
}

impl Memory {
    pub fn rows(&self) -> impl Iterator<Item = Row> {
        self.records.iter().map(|((kind, key), (version, body))| Row {
            kind,
            key: key.clone(),
            version: *version,
            body: body.clone(),
        })
    }

    pub fn index(&self) -> impl Iterator<Item = &(Index, String, Kind, String)> {
        self.index.iter()
    }

    pub fn len(&self) -> usize {
        self.records.len()
    }

    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Puts a row back as it was stored: from a snapshot, with its version.
    pub fn restore(&mut self, row: Row) -> Result<(), Unreadable> {
        self.delete(row.kind, &row.key)?;
        for (index, value) in index_entries(row.kind, &row.body)? {
            self.index.insert((index, value, row.kind, row.key.clone()));
        }
        self.records.insert((row.kind, row.key), (row.version, row.body));
        Ok(())
    }

    /// One hash over all records, in order: what a snapshot event carries.
    pub fn hash(&self) -> Hash {
        let mut hasher = blake3::Hasher::new();
        for ((kind, key), (version, body)) in &self.records {
            for field in [kind.as_bytes(), key.as_bytes(), &version.to_le_bytes(), body.as_bytes()]
            {
                hasher.update(&(field.len() as u64).to_le_bytes());
                hasher.update(field);
            }
        }
        Hash(hasher.finalize().to_hex().to_string())
    }

    fn answer(&self, query: &Query) -> Vec<Row> {
        let row = |kind: Kind, key: &str| {
            self.records.get(&(kind, key.to_owned())).map(|(version, body)| Row {
                kind,
                key: key.to_owned(),
                version: *version,
                body: body.clone(),
            })
        };
        match query {
            Query::Get { kind, key } => row(kind, key).into_iter().collect(),
            Query::Scan { index, from, until, after, limit } => self
                .index
                .range((*index, from.clone(), "", String::new())..)
                .take_while(|(name, value, _, _)| name == index && value < until)
                .filter(|(_, value, kind, key)| match after {
                    Some((v, k, y)) => {
                        (value.as_str(), *kind, key.as_str()) > (v.as_str(), k.as_str(), y.as_str())
                    }
                    None => true,
                })
                .filter_map(|(_, _, kind, key)| row(kind, key))
                .take(*limit as usize)
                .collect(),
        }
    }
}

impl View for Memory {
    fn read(&self, queries: &[Query]) -> Result<Vec<Vec<Row>>, Unreadable> {
        Ok(queries.iter().map(|query| self.answer(query)).collect())
    }
}

impl Records for Memory {
    fn put(&mut self, kind: Kind, key: &str, body: String) -> Result<(), Unreadable> {
        let version = match self.records.get(&(kind, key.to_owned())) {
            Some((version, _)) => version + 1,
            None => 1,
        };
        self.restore(Row { kind, key: key.to_owned(), version, body })
    }

    fn delete(&mut self, kind: Kind, key: &str) -> Result<(), Unreadable> {
        if let Some((_, body)) = self.records.remove(&(kind, key.to_owned())) {
            for (index, value) in index_entries(kind, &body)? {
                self.index.remove(&(index, value, kind, key.to_owned()));
            }
        }
        Ok(())
    }
}
