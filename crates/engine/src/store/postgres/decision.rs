//! The one decision under way, from the lock to the commit.
//!
//! Owns the open transaction: dropped without a commit it is rolled back. Invariant: only a
//! connection lost during COMMIT leaves the outcome unknown; anything before it was not done.

use std::cell::RefCell;

use baton_core::event::Durability;
use baton_core::journal::Head;
use baton_core::view::{Query, Row, Unreadable, View};
use tokio_postgres::types::Type;

use super::Postgres;
use super::batch::{self, Odd, Outcome, Then, Unwritten};
use super::state::{Id, Standing};
use super::wire::{self, Wire};
use crate::store::{Commit, Error, State, Transaction, check_order};

pub(super) struct Decision<'a> {
    server: RefCell<&'a mut Postgres>,
    id: &'a Id,
    standing: Standing,
    open: bool,
}

impl<'a> Decision<'a> {
    pub(super) fn new(server: &'a mut Postgres, id: &'a Id, standing: Standing) -> Self {
        Self { server: RefCell::new(server), id, standing, open: true }
    }

    /// Writes everything and ends the transaction, in one round trip.
    fn write(&mut self, commit: &Commit<'_>) -> Result<(), Error> {
        let State { head, epoch, failed_over_at, .. } = &self.standing.state;
        check_order(&self.standing.state, commit.entries)?;
        let after = commit.entries.last().map_or_else(|| head.clone(), |entry| entry.head());
        // Whoever wrote the server's name without raising the epoch would hide the failover.
        if after.position.epoch < *epoch {
            let detail = format!("a commit without entries cannot begin epoch {epoch}");
            return Err(Error::Backend { detail });
        }
        let channel = self.id.channel();
        let outcome = Outcome {
            workspace: self.standing.workspace,
            before: head,
            after: &after,
            server: &self.standing.server,
            timeline: self.standing.timeline,
            failed_over_at: failed_over_at.and_then(|at| i64::try_from(at.0).ok()),
            local: commit.durability == Durability::Process,
            notify: self.standing.somebody_listens.then_some(channel.as_str()),
        };
        let server = self.server.get_mut();
        let (entries, changes) = (commit.entries, commit.changes);
        let written = batch::write(&mut server.wire, entries, changes, &outcome, Then::Commit);
        // Where it failed, what may be left of the transaction is undone yet.
        self.open = written.is_err();
        written.map_err(|error| unwritten(server, error))
    }

    /// Ends the transaction for good; the answer to COMMIT is the only proof that it is done.
    pub(super) fn finish(mut self) -> Result<(), Error> {
        self.open = false;
        let server = self.server.get_mut();
        let Err(error) = server.wire.batch("COMMIT") else { return Ok(()) };
        if wire::is_lost(&error) {
            let lost = wire::failed(&server.address, &error);
            return Err(Error::OutcomeUnknown { detail: lost.to_string() });
        }
        Err(wire::failed(&server.address, &error))
    }

    pub(super) fn forget(self, sealed: &Head) -> Result<(), Error> {
        let number = i64::try_from(sealed.position.number).unwrap_or(i64::MAX);
        let mut server = self.server.borrow_mut();
        let rows = server.query(
            "WITH sealed AS (SELECT 1 FROM baton.journal \
             WHERE workspace = $1 AND number = $2 AND epoch = $3 AND hash = $5), \
             noted AS (UPDATE baton.workspaces SET archived_epoch = $3, archived_number = $2, \
             archived_at = $4, archived_hash = $5 FROM sealed WHERE number = $1 RETURNING 1), \
             gone AS (DELETE FROM baton.journal j USING noted \
             WHERE j.workspace = $1 AND j.number <= $2) \
             SELECT 1 FROM noted",
            &[
                (&self.standing.workspace, Type::INT8),
                (&number, Type::INT8),
                (&i64::from(sealed.position.epoch), Type::INT8),
                (&i64::try_from(sealed.at.0).unwrap_or(i64::MAX), Type::INT8),
                (&sealed.hash.0, Type::TEXT),
            ],
        )?;
        drop(server);
        let already = self.standing.archived.as_ref();
        if rows.is_empty() && already.is_none_or(|head| head != sealed) {
            let detail = format!("entry {} is not in the journal as sealed", sealed.position);
            return Err(Error::Backend { detail });
        }
        self.finish()
    }
}

/// What a failed write means: not done, unless nobody knows.
pub(super) fn unwritten(server: &Postgres, error: Unwritten) -> Error {
    match error {
        Unwritten::Refused(odd) => told(server, odd),
        Unwritten::Unknown(failure) => {
            let lost = wire::failed(&server.address, &failure);
            Error::OutcomeUnknown { detail: lost.to_string() }
        }
    }
}

/// What a failed read means.
pub(super) fn told(server: &Postgres, error: Odd) -> Error {
    match error {
        Odd::Server(error) => wire::failed(&server.address, &error),
        Odd::Column(_) | Odd::Kind { .. } | Odd::Nul { .. } => {
            Error::Backend { detail: error.to_string() }
        }
        Odd::Number { .. } | Odd::Count { .. } => {
            Error::Corrupt { path: server.address.url().into(), detail: error.to_string() }
        }
    }
}

pub(super) fn read(
    server: &mut Postgres,
    workspace: i64,
    queries: &[Query],
) -> Result<Vec<Vec<Row>>, Unreadable> {
    let answers = batch::read(&mut server.wire, workspace, queries);
    answers.map_err(|error| Unreadable(Box::new(told(server, error))))
}

impl View for Decision<'_> {
    fn read(&self, queries: &[Query]) -> Result<Vec<Vec<Row>>, Unreadable> {
        read(&mut self.server.borrow_mut(), self.standing.workspace, queries)
    }
}

impl Transaction for Decision<'_> {
    fn state(&self) -> &State {
        &self.standing.state
    }

    fn commit(mut self: Box<Self>, commit: &Commit<'_>) -> Result<(), Error> {
        self.write(commit)
    }
}

impl Drop for Decision<'_> {
    fn drop(&mut self) {
        if self.open {
            roll_back(&mut self.server.get_mut().wire);
        }
    }
}

/// Nobody waits for it: what is asked next comes after it, and where the connection is gone the
/// server rolls back by itself.
pub(super) fn roll_back(wire: &mut Wire) {
    if !wire.is_closed() {
        wire.send("ROLLBACK");
    }
}
