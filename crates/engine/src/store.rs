//! What every store does: hold records and the journal, and make one decision at a time.
//!
//! A store knows nothing of claims or sessions. It gives out a locked transaction with the time and
//! the journal's head, takes all changes of a decision in one step, and wakes whoever waits for
//! news. SQLite, PostgreSQL and memory pass one conformance suite (`tests/store`).

use std::os::fd::BorrowedFd;
use std::path::Path;
use std::time::Duration;

use baton_core::event::Durability;
use baton_core::journal::{Entry, Head};
use baton_core::overlay::Change;
use baton_core::time::Moment;
use baton_core::view::{Row, View};

use crate::place::Place;
use crate::process::Boot;
use surroundings::Surroundings;

pub use error::Error;

mod error;
pub mod memory;
pub mod postgres;
pub mod sqlite;
pub mod surroundings;

/// The version of the stored layout. Another one is refused, never half understood (S21).
pub const SCHEMA_VERSION: u32 = 1;

/// Where a store stands at the start of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// The store's clock, never below the last journal time.
    pub now: Moment,
    pub head: Head,
    /// The epoch of the entries that come next. Above the head's when entries may have been lost;
    /// the decision then begins with `EpochRaised` and is made durable against power cuts.
    pub epoch: u32,
    /// Why it is above the head's, in words for the journal.
    pub raised_because: Option<String>,
    /// Leases granted before this count one TTL longer: the store failed over.
    pub failed_over_at: Option<Moment>,
}

/// All that one decision writes.
#[derive(Clone, Debug)]
pub struct Commit<'a> {
    pub entries: &'a [Entry],
    pub changes: &'a [Change],
    pub durability: Durability,
}

/// A consistent look at everything, without a lock that stops writers.
pub trait Snapshot: View {
    fn state(&self) -> &State;

    /// Journal entries after `number`, oldest first.
    fn entries(&self, after: u64, limit: u32) -> Result<Vec<Entry>, Error>;

    /// Newest first: entries before `number`.
    fn entries_before(&self, before: u64, limit: u32) -> Result<Vec<Entry>, Error>;

    /// All records in the order (kind, key), after the given one.
    fn rows(&self, after: Option<(&str, &str)>, limit: u32) -> Result<Vec<Row>, Error>;

    /// All index entries (index, value, kind, key) in order: for the check that they are right.
    fn index_entries(&self) -> Result<Vec<(String, String, String, String)>, Error>;

    /// The position of the last archived entry; entries at or below its number are not here.
    fn archived(&self) -> Result<Option<Head>, Error>;
}

/// The one decision under way. Dropped without `commit`, it leaves nothing behind.
pub trait Transaction: View {
    fn state(&self) -> &State;

    /// Writes everything, or nothing. `Error::OutcomeUnknown` when that cannot be told.
    fn commit(self: Box<Self>, commit: &Commit<'_>) -> Result<(), Error>;
}

pub trait Store: std::fmt::Debug + Send {
    fn snapshot(&mut self) -> Result<Box<dyn Snapshot + '_>, Error>;

    /// From here on looks see one and the same moment, until something is begun: for a process that
    /// looks twice, answers and ends. A store may look anew all the same.
    fn stay_at_this_moment(&mut self) {}

    /// The next look sees what is then: for whoever compares the store's clock with another.
    fn leave_this_moment(&mut self) {}

    /// Waits at most `patience` for its turn, then refuses with `Error::Busy`.
    fn begin(&mut self, patience: Duration) -> Result<Box<dyn Transaction + '_>, Error>;

    /// A signal that anything was committed. Made *before* the state is read, so that nothing
    /// committed in between is missed.
    fn news(&mut self) -> Result<Box<dyn News>, Error>;

    /// Something about this session's reading that may be lost: never decides a grant.
    fn trace(&mut self, key: &str) -> Result<Option<String>, Error>;
    fn set_trace(&mut self, key: &str, value: &str) -> Result<(), Error>;

    /// Forgets the entries up to `sealed`, which are safe in an archive behind a snapshot event.
    fn forget_entries(&mut self, sealed: &Head) -> Result<(), Error>;

    /// A copy that `restore` takes back; never replaces an existing file.
    fn backup(&mut self, to: &Path) -> Result<(), Error>;

    /// A quick look at the whole, for `doctor`; deeper checks are the journal's.
    fn quick_check(&mut self) -> Result<(), Error> {
        self.snapshot().map(drop)
    }

    /// In words: which store this is, for `status` and `doctor`.
    fn describe(&self) -> String;
}

/// Opens the store of a workspace: the shared one at `address`, or its own. The workspace knows
/// which of the two it uses; were a forgotten address enough to change that, two halves of a team
/// would each see an empty store and grant themselves everything.
pub fn open(place: &Place, boot: &Boot, address: Option<&str>) -> Result<Box<dyn Store>, Error> {
    match (place.workspace.shared, address) {
        (false, None) => {
            let around = Surroundings::of(boot, &place.test_hooks(), &place.store)?;
            Ok(Box::new(sqlite::Sqlite::open_in(&place.store, around)?))
        }
        (true, Some(address)) => {
            let id = place.workspace.id.as_str();
            Ok(Box::new(postgres::Postgres::connect_to_workspace(address, id)?))
        }
        (true, None) => Err(Error::NoAddress),
        (false, Some(_)) => Err(Error::OwnStore { path: place.store.clone() }),
    }
}

/// Puts a backup in the place of the workspace's store. What was there is kept: as a file beside
/// it, or under another id on the server.
pub fn restore(place: &Place, address: Option<&str>, from: &Path) -> Result<(), Error> {
    match (place.workspace.shared, address) {
        (false, None) => sqlite::restore(&place.store, from),
        (true, Some(address)) => postgres::Postgres::connect(address)?.restore(from).map(|_| ()),
        (true, None) => Err(Error::NoAddress),
        (false, Some(_)) => Err(Error::OwnStore { path: place.store.clone() }),
    }
}

/// The workspace that a backup was made of, where it still tells.
pub fn workspace_of_backup(place: &Place, from: &Path) -> Result<Option<String>, Error> {
    match place.workspace.shared {
        false => sqlite::workspace_of(from),
        true => postgres::workspace_of(from).map(Some),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// Something was committed.
    News,
    /// One of the extra descriptors became ready: a blocker's process ended.
    Other,
    TimedOut,
}

pub trait News {
    /// Sleeps until there is news, one of `also` is ready, or the time is over.
    fn wait(&mut self, at_most: Duration, also: &[BorrowedFd<'_>]) -> Result<Woken, Error>;
}

/// The entries must go on where the journal stands; anything else is a defect of the caller.
fn check_order(state: &State, entries: &[Entry]) -> Result<(), Error> {
    let (epoch, mut number) = (state.epoch, state.head.position.number);
    for entry in entries {
        let at = entry.position;
        if at.number != number + 1 || at.epoch != epoch {
            return Err(Error::Backend {
                detail: format!("{at} does not follow {epoch}.{number}"),
            });
        }
        number += 1;
    }
    Ok(())
}
