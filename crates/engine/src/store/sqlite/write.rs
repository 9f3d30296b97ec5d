//! Writing: all that one decision changes, in one transaction.
//!
//! Owns the statements and their order. A row that should have been there and was not, or the other
//! way round, is an error and the whole commit is not done.

use std::path::Path;

use baton_core::journal::Entry;
use baton_core::overlay::Change;
use baton_core::view::{Index, Kind};
use rusqlite::{Connection, Params};

use super::fault;
use crate::clock::Anchor;
use crate::store::Error;

const INSERT_RECORD: &str = "INSERT INTO records(kind, key, version, body) VALUES(?1, ?2, ?3, ?4)";
const UPDATE_RECORD: &str = "UPDATE records SET version=?3, body=?4 WHERE kind=?1 AND key=?2";
const DELETE_RECORD: &str = "DELETE FROM records WHERE kind=?1 AND key=?2";
const INSERT_INDEX: &str = "INSERT INTO entries VALUES(?1, ?2, ?3, ?4)";
const DELETE_INDEX: &str =
    "DELETE FROM entries WHERE \"index\"=?1 AND value=?2 AND kind=?3 AND key=?4";
const INSERT_ENTRY: &str = "INSERT INTO journal
    (number, epoch, at, actor, kind, version, body, hash) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
const SET_META: &str = "INSERT OR REPLACE INTO meta VALUES(?1, ?2)";

#[derive(Clone, Copy, Debug)]
pub(super) struct Writer<'a> {
    pub(super) connection: &'a Connection,
    pub(super) path: &'a Path,
}

impl Writer<'_> {
    pub(super) fn change(&self, change: &Change) -> Result<(), Error> {
        let Change { kind, key, put, existed, .. } = change;
        match (put, existed) {
            (Some((version, body)), existed) => {
                let sql = if *existed { UPDATE_RECORD } else { INSERT_RECORD };
                self.one(sql, (kind, key, signed(*version)?, body))?;
            }
            (None, true) => self.one(DELETE_RECORD, (kind, key))?,
            (None, false) => {}
        }
        // Removed first: an entry may move within one commit from one record to another.
        self.index(DELETE_INDEX, &change.index_removed, kind, key)?;
        self.index(INSERT_INDEX, &change.index_added, kind, key)
    }

    fn index(
        &self,
        sql: &str,
        entries: &[(Index, String)],
        kind: &Kind,
        key: &str,
    ) -> Result<(), Error> {
        entries.iter().try_for_each(|(index, value)| self.one(sql, (index, value, kind, key)))
    }

    pub(super) fn entry(&self, entry: &Entry) -> Result<(), Error> {
        let Entry { position, at, actor, kind, version, body, hash } = entry;
        let (number, at) = (signed(position.number)?, signed(at.0)?);
        let row = (number, position.epoch, at, actor, kind, version, body, &hash.0);
        self.one(INSERT_ENTRY, row)
    }

    pub(super) fn anchor(&self, anchor: &Anchor) -> Result<(), Error> {
        self.meta("clock", anchor)
    }

    pub(super) fn meta(&self, key: &str, value: &impl serde::Serialize) -> Result<(), Error> {
        let value = serde_json::to_string(value)
            .map_err(|error| Error::Backend { detail: error.to_string() })?;
        self.one(SET_META, (key, value))
    }

    /// Runs a statement that must change exactly one row.
    fn one(&self, sql: &str, parameters: impl Params) -> Result<(), Error> {
        match self.run(sql, parameters)? {
            1 => Ok(()),
            rows => Err(Error::Corrupt {
                path: self.path.to_owned(),
                detail: format!("a write met {rows} rows where there should be one"),
            }),
        }
    }

    pub(super) fn run(&self, sql: &str, parameters: impl Params) -> Result<usize, Error> {
        self.connection
            .prepare_cached(sql)
            .and_then(|mut statement| statement.execute(parameters))
            .map_err(|error| fault::not_done(self.path, &error))
    }
}

fn signed(number: u64) -> Result<i64, Error> {
    let detail = || format!("{number} is beyond what the store can hold");
    i64::try_from(number).map_err(|_| Error::Backend { detail: detail() })
}
