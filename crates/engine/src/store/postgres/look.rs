//! A look at everything at one moment, which stops nobody.
//!
//! Owns a read-only transaction on the primary: what it sees does not change while it lasts, so
//! what was asked once is not asked again. Whoever stays at its moment keeps it for the next look.

use std::cell::RefCell;

use baton_core::id::Position;
use baton_core::journal::{Entry, Hash, Head};
use baton_core::time::Moment;
use baton_core::view::{Query, Row, Unreadable, View};
use tokio_postgres::types::Type;

use super::batch::{self, Odd};
use super::decision::{read, roll_back, told};
use super::state::Standing;
use super::{Workspace, wire};
use crate::store::{Error, Snapshot, State};

/// An open look that nobody uses just now.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) standing: Standing,
    answers: Answers,
}

impl Kept {
    pub(super) fn new(standing: Standing) -> Self {
        Self { standing, answers: Answers::default() }
    }
}

pub(super) struct Look<'a> {
    workspace: RefCell<&'a mut Workspace>,
    pub(super) standing: Standing,
    answers: RefCell<Answers>,
}

impl<'a> Look<'a> {
    pub(super) fn new(workspace: &'a mut Workspace, kept: Kept) -> Self {
        let Kept { standing, answers } = kept;
        Self { workspace: RefCell::new(workspace), standing, answers: RefCell::new(answers) }
    }

    /// Rows of one statement about this workspace, each read by `read`.
    pub(super) fn list<R>(
        &self,
        sql: &str,
        parameters: wire::Parameters<'_>,
        read: impl Fn(&tokio_postgres::Row) -> Result<R, Odd>,
    ) -> Result<Vec<R>, Error> {
        let server = &mut self.workspace.borrow_mut().server;
        let rows = server.query(sql, parameters)?;
        let rows: Result<Vec<R>, Odd> = rows.iter().map(read).collect();
        rows.map_err(|error| told(server, error))
    }
}

impl View for Look<'_> {
    fn read(&self, queries: &[Query]) -> Result<Vec<Vec<Row>>, Unreadable> {
        let mut answers = self.answers.borrow_mut();
        let open: Vec<Query> =
            queries.iter().filter(|query| answers.of(query).is_none()).cloned().collect();
        if !open.is_empty() {
            let server = &mut self.workspace.borrow_mut().server;
            let found = read(server, self.standing.workspace, &open)?;
            open.into_iter().zip(found).for_each(|(query, rows)| answers.add(query, rows));
        }
        Ok(queries.iter().map(|query| answers.of(query).unwrap_or_default()).collect())
    }
}

/// What the server said at this moment.
#[derive(Debug, Default)]
struct Answers {
    given: Vec<(Query, Vec<Row>)>,
}

impl Answers {
    /// A record is known by itself, and by any list it was found in.
    fn of(&self, query: &Query) -> Option<Vec<Row>> {
        if let Some((_, rows)) = self.given.iter().find(|(given, _)| given == query) {
            return Some(rows.clone());
        }
        let Query::Get { kind, key } = query else { return None };
        let mut rows = self.given.iter().flat_map(|(_, rows)| rows);
        rows.find(|row| row.kind == *kind && row.key == *key).map(|row| vec![row.clone()])
    }

    fn add(&mut self, query: Query, rows: Vec<Row>) {
        self.given.push((query, rows));
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
        let workspace = self.workspace.get_mut();
        match workspace.stays {
            true => {
                let answers = self.answers.take();
                workspace.kept = Some(Kept { standing: self.standing.clone(), answers });
            }
            false => roll_back(&mut workspace.server.wire),
        }
    }
}
