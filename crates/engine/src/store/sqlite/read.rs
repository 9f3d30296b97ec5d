//! Reading: batches of queries, journal entries, whole tables.
//!
//! Every statement is prepared once per connection. Keys compare as bytes, which for UTF-8 is the
//! order of Rust's strings and so of the memory store. A kind this Baton does not know is an error,
//! never a row left out.

use std::path::Path;

use baton_core::id::Position;
use baton_core::journal::{Entry, Hash};
use baton_core::time::Moment;
use baton_core::view::{Kind, Query, Row, Unreadable, kind_named};
use rusqlite::{CachedStatement, Connection, ToSql};

use super::fault;
use crate::store::Error;

const GET: &str = "SELECT kind, key, version, body FROM records WHERE kind=?1 AND key=?2";

// `+?`, not `?`: the value of a bare parameter may become part of the plan, and then SQLite
// compiles the statement anew at every use (50 µs each, a dozen uses in one check). The index
// serves both.
//
const HITS: &str = "
    SELECT kind, key FROM entries WHERE \"index\"=+?1 AND value>=+?2 AND value<+?3
    ORDER BY value, kind, key LIMIT +?4";

/// More hits than this are read by the join.
const FEW: usize = 16;

// CROSS JOIN fixes the order: the index first, then one record for each hit.
const SCAN: &str = "
    SELECT r.kind, r.key, r.version, r.body FROM entries e
    CROSS JOIN records r ON r.kind=e.kind AND r.key=e.key
    WHERE e.\"index\"=+?1 AND e.value>=+?2 AND e.value<+?3
    ORDER BY e.value, e.kind, e.key LIMIT +?4";

const SCAN_AFTER: &str = "
    SELECT r.kind, r.key, r.version, r.body FROM entries e
    CROSS JOIN records r ON r.kind=e.kind AND r.key=e.key
    WHERE e.\"index\"=+?1 AND e.value>=+?2 AND e.value<+?3
        AND (e.value, e.kind, e.key)>(+?5, +?6, +?7)
    ORDER BY e.value, e.kind, e.key LIMIT +?4";

const ROWS: &str = "
    SELECT kind, key, version, body FROM records WHERE (kind, key)>(+?1, +?2)
    ORDER BY kind, key LIMIT +?3";

const ENTRIES: &str = "
    SELECT epoch, number, at, actor, kind, version, body, hash FROM journal
    WHERE number>+?1 ORDER BY number LIMIT +?2";

const ENTRIES_BEFORE: &str = "
    SELECT epoch, number, at, actor, kind, version, body, hash FROM journal
    WHERE number<+?1 ORDER BY number DESC LIMIT +?2";

const INDEX_ENTRIES: &str = "
    SELECT \"index\", value, kind, key FROM entries ORDER BY \"index\", value, kind, key";

/// A connection with an open transaction, and the path that its errors name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'a> {
    pub(super) connection: &'a Connection,
    pub(super) path: &'a Path,
}

impl Reader<'_> {
    pub(super) fn read(&self, queries: &[Query]) -> Result<Vec<Vec<Row>>, Unreadable> {
        let answer = |query| self.answer(query).map_err(|error| Unreadable(Box::new(error)));
        queries.iter().map(answer).collect()
    }

    fn answer(&self, query: &Query) -> Result<Vec<Row>, Error> {
        match query {
            Query::Get { kind, key } => self.records(GET, &[kind, key]),
            Query::Scan { index, from, until, after: None, limit } => {
                match self.few(&[index, from, until, limit])? {
                    Some(rows) => Ok(rows),
                    None => self.records(SCAN, &[index, from, until, limit]),
                }
            }
            Query::Scan { index, from, until, after: Some((value, kind, key)), limit } => {
                self.records(SCAN_AFTER, &[index, from, until, limit, value, kind, key])
            }
        }
    }

    pub(super) fn rows(&self, after: Option<(&str, &str)>, limit: u32) -> Result<Vec<Row>, Error> {
        let (kind, key) = after.unwrap_or(("", ""));
        self.records(ROWS, &[&kind, &key, &limit])
    }

    pub(super) fn entries(&self, after: u64, limit: u32) -> Result<Vec<Entry>, Error> {
        self.journal(ENTRIES, after, limit)
    }

    pub(super) fn entries_before(&self, before: u64, limit: u32) -> Result<Vec<Entry>, Error> {
        self.journal(ENTRIES_BEFORE, before, limit)
    }

    pub(super) fn index_entries(&self) -> Result<Vec<(String, String, String, String)>, Error> {
        let mut statement = self.prepare(INDEX_ENTRIES)?;
        let rows = statement
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))
            .and_then(Iterator::collect);
        rows.map_err(|error| fault::not_done(self.path, &error))
    }

    /// A scan with few hits, or `None`: the index by itself, then each record. A hook finds next to
    /// nothing, and the join takes longer to prepare than a dozen records to get.
    fn few(&self, parameters: &[&dyn ToSql]) -> Result<Option<Vec<Row>>, Error> {
        let mut statement = self.prepare(HITS)?;
        let fault = |error| fault::not_done(self.path, &error);
        let mut found = statement.query(parameters).map_err(fault)?;
        let mut hits: Vec<(String, String)> = Vec::new();
        while let Some(row) = found.next().map_err(fault)? {
            if hits.len() == FEW {
                return Ok(None);
            }
            hits.push((row.get(0).map_err(fault)?, row.get(1).map_err(fault)?));
        }
        let mut rows = Vec::with_capacity(hits.len());
        if hits.is_empty() {
            return Ok(Some(rows));
        }
        let mut get = self.prepare(GET)?;
        for (kind, key) in &hits {
            self.add(&mut get, &[kind, key], &mut rows)?;
        }
        Ok(Some(rows))
    }

    fn records(&self, sql: &str, parameters: &[&dyn ToSql]) -> Result<Vec<Row>, Error> {
        let mut rows = Vec::new();
        self.add(&mut self.prepare(sql)?, parameters, &mut rows)?;
        Ok(rows)
    }

    fn add(
        &self,
        statement: &mut CachedStatement<'_>,
        parameters: &[&dyn ToSql],
        rows: &mut Vec<Row>,
    ) -> Result<(), Error> {
        let fault = |error| fault::not_done(self.path, &error);
        let mut found = statement.query(parameters).map_err(fault)?;
        while let Some(row) = found.next().map_err(fault)? {
            let kind = row.get_ref(0).map_err(fault)?.as_str().map_err(|_| unknown_kind("?"))?;
            rows.push(Row {
                kind: known(kind)?,
                key: row.get(1).map_err(fault)?,
                version: row.get::<_, i64>(2).map_err(fault)?.cast_unsigned(),
                body: row.get(3).map_err(fault)?,
            });
        }
        Ok(())
    }

    fn journal(&self, sql: &str, number: u64, limit: u32) -> Result<Vec<Entry>, Error> {
        // Numbers above i64 cannot be stored, so the greatest one means the same.
        let number = i64::try_from(number).unwrap_or(i64::MAX);
        let mut statement = self.prepare(sql)?;
        let entries = statement.query_map((number, limit), entry_of).and_then(Iterator::collect);
        entries.map_err(|error| fault::not_done(self.path, &error))
    }

    fn prepare(&self, sql: &str) -> Result<CachedStatement<'_>, Error> {
        self.connection.prepare_cached(sql).map_err(|error| fault::not_done(self.path, &error))
    }
}

fn entry_of(row: &rusqlite::Row<'_>) -> rusqlite::Result<Entry> {
    Ok(Entry {
        position: Position { epoch: row.get(0)?, number: row.get::<_, i64>(1)?.cast_unsigned() },
        at: Moment(row.get::<_, i64>(2)?.cast_unsigned()),
        actor: row.get(3)?,
        kind: row.get(4)?,
        version: row.get(5)?,
        body: row.get(6)?,
        hash: Hash(row.get(7)?),
    })
}

fn known(kind: &str) -> Result<Kind, Error> {
    kind_named(kind).ok_or_else(|| unknown_kind(kind))
}

fn unknown_kind(kind: &str) -> Error {
    Error::Backend { detail: format!("a record of the unknown kind {kind:?}") }
}
