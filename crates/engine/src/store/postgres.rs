//! The fleet's store: one PostgreSQL database for many machines.
//!
//! Owns the connection and the workspace opened on it. A decision locks its workspace's row, so
//! decisions of one workspace come one after the other and those of two never wait for each other.
//! A round trip is what costs here, so there are few: one that connects, looks whether all is as it
//! should be and opens the first look; three for a decision (lock, read, write with its COMMIT).
//! Refuses to know what records mean. Invariant: an error before COMMIT is sent means "not done", a
//! connection lost after it "unknown".

use std::path::Path;
use std::time::Duration;

use tokio_postgres::types::Type;

use self::address::Address;
use self::decision::Decision;
use self::look::{Kept, Look};
use self::schema::Place;
use self::state::{Id, Opening, Standing};
use self::wire::Wire;
use super::{Error, News, Snapshot, Store, Transaction};
use baton_core::journal::Head;

mod address;
mod backup;
mod batch;
mod decision;
mod look;
mod news;
mod schema;
mod state;
mod tls;
mod wire;

pub use backup::workspace_of;
pub use wire::{answer_by, connect_before};

/// How long housekeeping waits for its turn.
const PATIENCE: Duration = Duration::from_secs(10);

/// A server with Baton's tables, no workspace chosen yet.
pub struct Postgres {
    address: Address,
    place: Place,
    wire: Wire,
}

/// A workspace that `init` may join.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub id: String,
    pub root_commit: Option<String>,
    pub remote: Option<String>,
}

impl std::fmt::Debug for Postgres {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Postgres").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Postgres {
    /// Connects and makes the tables if nobody has. The address comes from the environment or the
    /// user's own settings, never from a repository.
    pub fn connect(address: &str) -> Result<Self, Error> {
        Self::connect_to(Address::parse(address)?)
    }

    fn connect_to(address: Address) -> Result<Self, Error> {
        let mut wire = Wire::connect(&address)?;
        let place = schema::prepare(&mut wire, &address)?;
        Ok(Self { address, place, wire })
    }

    /// Makes a workspace; an id that is taken is refused.
    pub fn create_workspace(
        &mut self,
        id: &str,
        root_commit: Option<&str>,
        remote: Option<&str>,
    ) -> Result<(), Error> {
        let id = Id::parse(id)?;
        let rows = self.query(
            "INSERT INTO baton.workspaces (id, root_commit, remote, created_at, epoch, \
             head_number, head_at, head_hash, epoch_max, epoch_floor, server, timeline) \
             SELECT $1, $2, $3, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint, \
             1, 0, 0, '', 1, 1, $4 || 'baton.workspaces'::regclass::oid, \
             ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::bigint \
             FROM baton.layout WHERE version = $5 ON CONFLICT (id) DO NOTHING RETURNING 1",
            &[
                (&id.as_str(), Type::TEXT),
                (&root_commit, Type::TEXT),
                (&remote, Type::TEXT),
                (&self.place.server(""), Type::TEXT),
                (&layout(), Type::INT4),
            ],
        )?;
        if rows.is_empty() {
            schema::check(schema::version(&mut self.wire, &self.address)?)?;
            let path = format!("{}, workspace {}", self.address.url(), id.as_str());
            return Err(Error::Exists { path: path.into() });
        }
        Ok(())
    }

    /// Takes back a workspace that was made in vain. One that has a journal stays.
    pub fn forget_unused_workspace(&mut self, id: &str) -> Result<(), Error> {
        let id = Id::parse(id)?;
        self.query(
            "DELETE FROM baton.workspaces WHERE id = $1 AND head_number = 0",
            &[(&id.as_str(), Type::TEXT)],
        )
        .map(drop)
    }

    /// The workspaces of this repository, oldest first; never one that a restore set aside.
    pub fn find_workspaces(
        &mut self,
        root_commit: &str,
        remote: Option<&str>,
    ) -> Result<Vec<Found>, Error> {
        let rows = self.query(
            "SELECT id, root_commit, remote FROM baton.workspaces WHERE root_commit = $1 \
             AND remote IS NOT DISTINCT FROM $2 AND id !~ '[^0-9a-f]' ORDER BY number",
            &[(&root_commit, Type::TEXT), (&remote, Type::TEXT)],
        )?;
        let found = |row: &tokio_postgres::Row| {
            Ok(Found { id: row.try_get(0)?, root_commit: row.try_get(1)?, remote: row.try_get(2)? })
        };
        let found: Result<Vec<Found>, batch::Odd> = rows.iter().map(found).collect();
        found.map_err(|error| decision::told(self, error))
    }

    pub fn open_workspace(mut self, id: &str) -> Result<Workspace, Error> {
        let id = Id::parse(id)?;
        let standing = self.open(&id, &Opening::Look)?;
        Ok(Workspace::opened(self, id, standing))
    }

    /// Connects and opens a workspace of tables that are there, which is told in one round trip.
    pub fn connect_to_workspace(address: &str, id: &str) -> Result<Workspace, Error> {
        let (address, id) = (Address::parse(address)?, Id::parse(id)?);
        let mut wire = Wire::connect(&address)?;
        let place = match state::open_first(&mut wire, &address, &id)? {
            Some((place, standing)) => {
                return Ok(Workspace::opened(Self { address, place, wire }, id, standing));
            }
            // What is not as it should be is found out step by step.
            None => schema::prepare(&mut wire, &address)?,
        };
        Self { address, place, wire }.open_workspace(id.as_str())
    }

    /// Takes a backup back. What the workspace held before is kept under another id, and the epoch
    /// rises above every one ever used.
    pub fn restore(&mut self, from: &Path) -> Result<String, Error> {
        backup::restore(self, from)
    }

    /// Whether this role may do what decisions do. A statement that touches no row is judged as
    /// one that does.
    fn may_write(&mut self) -> Result<(), Error> {
        let mut sql = "BEGIN; SET LOCAL lock_timeout = 2000; \
             UPDATE baton.workspaces SET epoch = epoch WHERE false"
            .to_owned();
        for (table, column) in
            [("records", "version"), ("entries", "value"), ("journal", "at"), ("traces", "value")]
        {
            sql.push_str(&format!(
                "; INSERT INTO baton.{table} SELECT * FROM baton.{table} WHERE false; \
                 UPDATE baton.{table} SET {column} = {column} WHERE false; \
                 DELETE FROM baton.{table} WHERE false"
            ));
        }
        let tried = self.wire.batch(&sql);
        // Nothing was changed; a transaction that is left open would be.
        let _ = self.wire.batch("ROLLBACK");
        tried.map(drop).map_err(|error| wire::failed(&self.address, &error))
    }

    fn query(
        &mut self,
        sql: &str,
        parameters: wire::Parameters<'_>,
    ) -> Result<Vec<tokio_postgres::Row>, Error> {
        let answer = self.wire.query(sql, parameters);
        answer.map_err(|error| wire::failed(&self.address, &error))
    }

    /// A server that was restarted, or a network that was away, costs one more attempt. Only to be
    /// called where no transaction is open.
    fn reconnect_if_lost(&mut self) -> Result<bool, Error> {
        if !self.wire.is_closed() {
            return Ok(false);
        }
        let Self { wire, place, .. } = Self::connect_to(self.address.clone())?;
        (self.wire, self.place) = (wire, place);
        Ok(true)
    }

    fn open(&mut self, id: &Id, opening: &Opening) -> Result<Standing, Error> {
        self.reconnect_if_lost()?;
        let opened = state::open(&mut self.wire, &self.address, &self.place, id, opening);
        match opened {
            // A connection may be found dead only by using it: nothing was done with it yet.
            Err(Error::Unreachable { .. }) if !self.wire.is_mute && self.reconnect_if_lost()? => {
                state::open(&mut self.wire, &self.address, &self.place, id, opening)
            }
            // A restore may have put a new row in the place of the one we waited for.
            Err(Error::OtherStore { .. }) if matches!(opening, Opening::Decide(_)) => {
                state::open(&mut self.wire, &self.address, &self.place, id, opening)
            }
            opened => opened,
        }
    }
}

fn layout() -> i32 {
    i32::try_from(super::SCHEMA_VERSION).unwrap_or(i32::MAX)
}

/// One workspace on a server.
#[derive(Debug)]
pub struct Workspace {
    id: Id,
    server: Postgres,
    /// Looks see one and the same moment.
    stays: bool,
    /// That moment, while nobody looks.
    kept: Option<Kept>,
}

impl Workspace {
    /// A workspace that is not there was told by the look at its opening, which is still open.
    fn opened(server: Postgres, id: Id, standing: Standing) -> Self {
        Self { id, server, stays: false, kept: Some(Kept::new(standing)) }
    }

    fn look(&mut self) -> Result<Look<'_>, Error> {
        if !self.stays {
            self.let_go();
        }
        let kept = match self.kept.take() {
            Some(kept) => kept,
            None => Kept::new(self.server.open(&self.id, &Opening::Look)?),
        };
        Ok(Look::new(self, kept))
    }

    fn decision(&mut self, patience: Duration) -> Result<Decision<'_>, Error> {
        self.leave_this_moment();
        let standing = self.server.open(&self.id, &Opening::Decide(patience))?;
        Ok(Decision::new(&mut self.server, &self.id, standing))
    }

    /// Ends the look that was kept.
    fn let_go(&mut self) {
        if self.kept.take().is_some() {
            decision::roll_back(&mut self.server.wire);
        }
    }

    pub fn id(&self) -> &str {
        self.id.as_str()
    }

    /// How often the server was asked over this connection.
    pub fn round_trips(&self) -> u64 {
        self.server.wire.round_trips()
    }

    /// A statement outside any transaction, tried again once if the connection had gone stale.
    fn alone(
        &mut self,
        sql: &str,
        parameters: wire::Parameters<'_>,
    ) -> Result<Vec<tokio_postgres::Row>, Error> {
        self.leave_this_moment();
        self.server.reconnect_if_lost()?;
        let answer = self.server.query(sql, parameters);
        match answer {
            Err(Error::Unreachable { .. }) if self.server.reconnect_if_lost()? => {
                self.server.query(sql, parameters)
            }
            answer => answer,
        }
    }
}

impl Store for Workspace {
    fn snapshot(&mut self) -> Result<Box<dyn Snapshot + '_>, Error> {
        Ok(Box::new(self.look()?))
    }

    /// Called right after the opening, the moment is the opening's.
    fn stay_at_this_moment(&mut self) {
        self.stays = true;
    }

    fn leave_this_moment(&mut self) {
        self.stays = false;
        self.let_go();
    }

    fn begin(&mut self, patience: Duration) -> Result<Box<dyn Transaction + '_>, Error> {
        Ok(Box::new(self.decision(patience)?))
    }

    fn news(&mut self) -> Result<Box<dyn News>, Error> {
        self.leave_this_moment();
        Ok(Box::new(news::Listener::start(self.server.address.clone(), self.id.clone())?))
    }

    fn trace(&mut self, key: &str) -> Result<Option<String>, Error> {
        let id = self.id.as_str().to_owned();
        let rows = self.alone(
            "SELECT l.version, t.value FROM baton.layout l LEFT JOIN (baton.traces t \
             JOIN baton.workspaces w ON w.number = t.workspace AND w.id = $1) ON t.key = $2",
            &[(&id, Type::TEXT), (&key, Type::TEXT)],
        )?;
        let unread = |error| decision::told(&self.server, batch::Odd::Column(error));
        let Some(row) = rows.first() else { return Ok(None) };
        let version: i32 = row.try_get(0).map_err(unread)?;
        schema::check(u32::try_from(version).unwrap_or(0))?;
        let value: Option<Vec<u8>> = row.try_get(1).map_err(unread)?;
        // A trace may be lost; one that cannot be read is.
        Ok(value.and_then(|value| String::from_utf8(value).ok()))
    }

    fn set_trace(&mut self, key: &str, value: &str) -> Result<(), Error> {
        let id = self.id.as_str().to_owned();
        // A trace may be lost, so nobody waits for the disk.
        let rows = self.alone(
            "WITH unhurried AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true)) \
             INSERT INTO baton.traces (workspace, key, value) \
             SELECT w.number, $2, $3 FROM baton.workspaces w, baton.layout l, unhurried \
             WHERE w.id = $1 AND l.version = $4 \
             ON CONFLICT (workspace, key) DO UPDATE SET value = excluded.value RETURNING 1",
            &[
                (&id, Type::TEXT),
                (&key, Type::TEXT),
                (&value.as_bytes(), Type::BYTEA),
                (&layout(), Type::INT4),
            ],
        )?;
        if rows.is_empty() {
            schema::check(schema::version(&mut self.server.wire, &self.server.address)?)?;
            return Err(Error::OtherStore { path: self.server.address.url().into() });
        }
        Ok(())
    }

    fn forget_entries(&mut self, sealed: &Head) -> Result<(), Error> {
        self.decision(PATIENCE)?.forget(sealed)
    }

    fn backup(&mut self, to: &Path) -> Result<(), Error> {
        backup::write(self, to)
    }

    fn quick_check(&mut self) -> Result<(), Error> {
        self.look().map(drop)?;
        self.leave_this_moment();
        self.server.may_write()
    }

    fn describe(&self) -> String {
        format!("{}, workspace {}", self.server.address.describe(), self.id.as_str())
    }
}
