//! A look at everything at one moment, which stops nobody.
//!
//! Owns a read-only transaction on the primary: what it sees does not change while it lasts.

use std::cell::RefCell;

use baton_core::id::Position;
use baton_core::journal::{Entry, Hash, Head};
use baton_core::time::Moment;
use baton_core::view::{Query, Row, Unreadable, View};
use tokio_postgres::types::Type;

use super::batch::{self, Odd};
use super::decision::{read, roll_back, told};
use super::state::Standing;
use super::{Postgres, wire};
use crate::store::{Error, Snapshot, State};

pub(super) struct Look<'a> {
    server: RefCell<&'a mut Postgres>,
    pub(super) standing: Standing,
}

impl<'a> Look<'a> {
    pub(super) fn new(server: &'a mut Postgres, standing: Standing) -> Self {
        Self { server: RefCell::new(server), standing }
    }

    /// Rows of one statement about this workspace, each read by `read`.
    pub(super) fn list<R>(
        &self,
        sql: &str,
        parameters: wire::Parameters<'_>,
        read: impl Fn(&tokio_postgres::Row) -> Result<R, Odd>,
    ) -> Result<Vec<R>, Error> {
        let mut server = self.server.borrow_mut();
        let rows = server.query(sql, parameters)?;
        let rows: Result<Vec<R>, Odd> = rows.iter().map(read).collect();
        rows.map_err(|error| told(&server, error))
    }
}

impl View for Look<'_> {
    fn read(&self, queries: &[Query]) -> Result<Vec<Vec<Row>>, Unreadable> {
        read(&mut self.server.borrow_mut(), self.standing.workspace, queries)
    }
}

impl Snapshot for Look<'_> {
    fn state(&self) -> &State {
        &self.standing.state
    }

    fn entries(&self, after: u64, limit: u32) -> Result<Vec<Entry>, Error> {
        self.list(
            "SELECT epoch, number, at, actor, kind, version, body, hash FROM baton.journal \
             WHERE workspace = $1 AND number > $2 ORDER BY number LIMIT $3",
            &[
                (&self.standing.workspace, Type::INT8),
                (&clamped(after), Type::INT8),
                (&i64::from(limit), Type::INT8),
            ],
            entry,
        )
    }

    fn entries_before(&self, before: u64, limit: u32) -> Result<Vec<Entry>, Error> {
        self.list(
            "SELECT epoch, number, at, actor, kind, version, body, hash FROM baton.journal \
             WHERE workspace = $1 AND number < $2 ORDER BY number DESC LIMIT $3",
            &[
                (&self.standing.workspace, Type::INT8),
                (&clamped(before), Type::INT8),
                (&i64::from(limit), Type::INT8),
            ],
            entry,
        )
    }

    fn rows(&self, after: Option<(&str, &str)>, limit: u32) -> Result<Vec<Row>, Error> {
        // No kind is empty, so this is before the first.
        let (kind, key) = after.unwrap_or_default();
        self.list(
            "SELECT kind, key, version, body FROM baton.records \
             WHERE workspace = $1 AND (kind, key) > ($2, $3) ORDER BY kind, key LIMIT $4",
            &[
                (&self.standing.workspace, Type::INT8),
                (&kind, Type::TEXT),
                (&key, Type::TEXT),
                (&i64::from(limit), Type::INT8),
            ],
            |row| batch::record(row, 0),
        )
    }

    fn index_entries(&self) -> Result<Vec<(String, String, String, String)>, Error> {
        self.list(
            "SELECT index, value, kind, key FROM baton.entries WHERE workspace = $1 \
             ORDER BY index, head, value, kind, key",
            &[(&self.standing.workspace, Type::INT8)],
            |row| Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?, row.try_get(3)?)),
        )
    }

    fn archived(&self) -> Result<Option<Head>, Error> {
        Ok(self.standing.archived.clone())
    }
}

fn clamped(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn entry(row: &tokio_postgres::Row) -> Result<Entry, Odd> {
    let natural = |at: usize| -> Result<u64, Odd> {
        let number: i64 = row.try_get(at)?;
        u64::try_from(number).map_err(|_| Odd::Number { number })
    };
    let small = |number: i64| u32::try_from(number).map_err(|_| Odd::Number { number });
    Ok(Entry {
        position: Position { epoch: small(row.try_get(0)?)?, number: natural(1)? },
        at: Moment(natural(2)?),
        actor: row.try_get(3)?,
        kind: row.try_get(4)?,
        version: small(i64::from(row.try_get::<_, i32>(5)?))?,
        body: row.try_get(6)?,
        hash: Hash(row.try_get(7)?),
    })
}

impl Drop for Look<'_> {
    fn drop(&mut self) {
        roll_back(&mut self.server.get_mut().wire);
    }
}
