//! Where a workspace stands, read in the round trip that opens a transaction.
//!
//! Owns the opening statements, the clock, and when the epoch rises. The clock is read by a
//! statement of its own after the lock is held: in the locking statement it would be the time
//! before the wait. Invariant: the workspace's id is checked hex before it stands in any SQL.

use std::time::{Duration, Instant};

use baton_core::id::Position;
use baton_core::journal::{Hash, Head};
use baton_core::time::Moment;
use tokio_postgres::SimpleQueryRow;

use super::address::Address;
use super::decision::roll_back;
use super::schema::{self, Place};
use super::wire::{self, Wire};
use crate::store::{Error, State};

/// The longest a single statement under the lock may take.
const STATEMENT_MS_MAX: u64 = 30_000;
/// A process that is stopped or cut off under the lock loses it after this.
const IDLE_UNDER_LOCK_MS_MAX: u64 = 10_000;
/// How often a conflict with somebody else's statement is tried again.
const CONFLICT_RETRIES_MAX: u32 = 3;

const PATIENCE_MS_MAX: u128 = 600_000;

const ID_HEX_DIGITS: std::ops::RangeInclusive<usize> = 8..=48;

/// A workspace's id: hex digits only, so it can stand in SQL and in a channel's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Id(String);

impl Id {
    pub(super) fn parse(text: &str) -> Result<Self, Error> {
        let hex = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if hex && ID_HEX_DIGITS.contains(&text.len()) {
            return Ok(Self(text.to_owned()));
        }
        Err(Error::BadAddress { detail: "a workspace's id is 8 to 48 hex digits".to_owned() })
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// The number of the queue in front of the workspace's row. A row's lock goes to whoever asks
    /// at the right moment, so waiters starve; an advisory lock of the transaction goes in turn.
    fn queue(&self) -> i64 {
        let hash = blake3::hash(self.0.as_bytes());
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&hash.as_bytes()[..8]);
        i64::from_le_bytes(bytes)
    }

    pub(super) fn channel(&self) -> String {
        format!("baton_{}", self.0)
    }
}

/// A workspace's row and what follows from it.
#[derive(Clone, Debug)]
pub(super) struct Standing {
    pub(super) workspace: i64,
    pub(super) state: State,
    pub(super) epoch_max: u32,
    pub(super) archived: Option<Head>,
    /// Which server this is, to be stored with the next commit.
    pub(super) server: String,
    pub(super) timeline: i64,
    pub(super) somebody_listens: bool,
}

pub(super) enum Opening {
    /// Locks the workspace, waiting at most this long.
    Decide(Duration),
    /// One unchanging look, without a lock.
    Look,
}

/// Opens a transaction. On an error none is open.
pub(super) fn open(
    wire: &mut Wire,
    address: &Address,
    place: &Place,
    id: &Id,
    opening: &Opening,
) -> Result<Standing, Error> {
    let started = Instant::now();
    let sql = opening_sql(id, opening, "");
    let wait = match opening {
        Opening::Decide(patience) => *patience,
        Opening::Look => Duration::ZERO,
    };
    let mut conflicts = 0;
    loop {
        let error = match wire.open(&sql, wait) {
            Ok(rows) => {
                let standing = read(&rows, address, place);
                if standing.is_err() {
                    roll_back(wire);
                }
                return standing;
            }
            Err(error) => error,
        };
        if wire.is_closed() || wire::is_lost(&error) {
            return Err(wire::failed(address, &error));
        }
        roll_back(wire);
        conflicts += 1;
        if !wire::is_conflict(&error) || conflicts > CONFLICT_RETRIES_MAX {
            return Err(diagnosed(wire, address, id, &error, started));
        }
    }
}

/// Opens a look as the first thing on a connection, together with whose connection it is. Nothing
/// where anything is not as it should be; then no transaction is open.
pub(super) fn open_first(
    wire: &mut Wire,
    address: &Address,
    id: &Id,
) -> Result<Option<(Place, Standing)>, Error> {
    // It waits for its first use, and ends by itself where there is none.
    let idle = format!(
        "SET LOCAL idle_in_transaction_session_timeout = {IDLE_UNDER_LOCK_MS_MAX}; {}",
        schema::PLACE
    );
    let opened = match wire.open(&opening_sql(id, &Opening::Look, &idle), Duration::ZERO) {
        Err(failure) if wire::is_lost(&failure) => return Err(wire::failed(address, &failure)),
        Err(_) => None,
        Ok(rows) => schema::place(&rows)
            .and_then(|place| Some((read(&rows, address, &place).ok()?, place)))
            .map(|(standing, place)| (place, standing)),
    };
    if opened.is_none() {
        roll_back(wire);
    }
    Ok(opened)
}

/// `also` is asked in the same transaction.
fn opening_sql(id: &Id, opening: &Opening, also: &str) -> String {
    let (queue, id) = (id.queue(), id.as_str());
    let begin = match opening {
        // The queue and a busy row are waited for one after the other, each with these limits; the
        // row is free by then unless somebody works on the tables by hand. Zero would mean none.
        Opening::Decide(patience) => {
            let patience = patience.as_millis().clamp(1, PATIENCE_MS_MAX);
            format!(
                "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; \
                 SET LOCAL idle_in_transaction_session_timeout = {IDLE_UNDER_LOCK_MS_MAX}; \
                 SET LOCAL lock_timeout = {patience}; SET LOCAL statement_timeout = {patience}; \
                 SELECT pg_advisory_xact_lock({queue}); \
                 SELECT FROM baton.workspaces WHERE id = '{id}' FOR UPDATE; "
            )
        }
        Opening::Look => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; ".to_owned(),
    };
    format!(
        "{begin}SET LOCAL statement_timeout = {STATEMENT_MS_MAX}; \
         SET LOCAL search_path TO pg_catalog; {also}\
         SELECT l.version, pg_is_in_recovery(), \
         floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint, \
         CASE WHEN pg_is_in_recovery() THEN '0' \
              ELSE substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END, \
         w.tableoid, w.number, w.epoch, w.head_number, w.head_at, w.head_hash, w.epoch_max, \
         w.epoch_floor, w.raised_because, w.failed_over_at, w.server, w.timeline, \
         w.waiting_until, w.archived_epoch, w.archived_number, w.archived_at, w.archived_hash \
         FROM baton.layout l LEFT JOIN baton.workspaces w ON w.id = '{id}'"
    )
}

fn read(rows: &[SimpleQueryRow], address: &Address, place: &Place) -> Result<Standing, Error> {
    let row = rows
        .iter()
        .find(|row| row.len() > schema::PLACE_COLUMNS)
        .ok_or_else(|| Error::Backend { detail: "the layout has no version".to_owned() })?;
    let fields = Fields { row };
    schema::check(fields.number(0)?)?;
    if row.get(1) == Some("t") {
        return Err(schema::is_standby());
    }
    if row.get(5).is_none() {
        return Err(Error::OtherStore { path: address.url().into() });
    }
    let head = Head {
        position: Position { epoch: fields.number(6)?, number: fields.number(7)? },
        at: Moment(fields.number(8)?),
        hash: Hash(fields.text(9)?.to_owned()),
    };
    let now = Moment(fields.number::<u64>(2)?.max(head.at.0));
    let stored = Stored {
        server: fields.text(14)?,
        timeline: fields.number(15)?,
        floor: fields.number(11)?,
        because: row.get(12),
    };
    let timeline = i64::from_str_radix(fields.text(3)?, 16).map_err(|_| fields.odd(3))?;
    let server = place.server(fields.text(4)?);
    let (epoch, raised_because, moved) = raised(head.position.epoch, &stored, &server, timeline);
    let failed_over_at = match (moved, row.get(13)) {
        (true, _) => Some(now),
        (false, Some(_)) => Some(Moment(fields.number(13)?)),
        (false, None) => None,
    };
    let archived = match row.get(18) {
        None => None,
        Some(_) => Some(Head {
            position: Position { epoch: fields.number(17)?, number: fields.number(18)? },
            at: Moment(fields.number(19)?),
            hash: Hash(fields.text(20)?.to_owned()),
        }),
    };
    Ok(Standing {
        workspace: fields.number(5)?,
        somebody_listens: fields.number::<u64>(16)? > now.0,
        state: State { now, head, epoch, raised_because, failed_over_at },
        epoch_max: fields.number(10)?,
        archived,
        server,
        timeline,
    })
}

/// Which server wrote last, and the epoch a restore asked for.
struct Stored<'a> {
    server: &'a str,
    timeline: i64,
    floor: u32,
    because: Option<&'a str>,
}

/// The next entry's epoch, why it is above the head's, and whether the server is another one.
fn raised(
    head: u32,
    stored: &Stored<'_>,
    server: &str,
    timeline: i64,
) -> (u32, Option<String>, bool) {
    let (steps, because) = if stored.server != server {
        (1, Some("the database is a copy, or has moved to another server".to_owned()))
    } else if stored.timeline != timeline {
        // Each timeline that was begun since may have raised the epoch once, in a future that a
        // recovery to an earlier moment has forgotten: its epochs must not be used again.
        let steps = timeline.saturating_sub(stored.timeline).clamp(1, i64::from(u32::MAX));
        let because = format!(
            "the server was promoted or recovered (timeline {} to {timeline})",
            stored.timeline
        );
        (u32::try_from(steps).unwrap_or(1), Some(because))
    } else {
        (0, None)
    };
    let (moved, moved_to) = (because.is_some(), head.saturating_add(steps));
    let epoch = moved_to.max(stored.floor);
    let why = match (epoch > head, epoch > moved_to) {
        (false, _) => None,
        (true, false) => because,
        (true, true) => Some(stored.because.unwrap_or("a restore asked for it").to_owned()),
    };
    (epoch, why, moved)
}

struct Fields<'a> {
    row: &'a SimpleQueryRow,
}

impl Fields<'_> {
    fn text(&self, at: usize) -> Result<&str, Error> {
        self.row.get(at).ok_or_else(|| self.odd(at))
    }

    fn number<N: std::str::FromStr>(&self, at: usize) -> Result<N, Error> {
        self.text(at)?.parse().map_err(|_| self.odd(at))
    }

    fn odd(&self, at: usize) -> Error {
        let name = self.row.columns().get(at).map_or("?", |column| column.name());
        Error::Backend { detail: format!("the workspace's {name} cannot be read") }
    }
}

/// Asks what is behind an error, where the error alone does not tell.
fn diagnosed(
    wire: &mut Wire,
    address: &Address,
    id: &Id,
    error: &wire::Failure,
    started: Instant,
) -> Error {
    if wire::is_timeout(error) || wire::is_conflict(error) {
        let waited_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        return Error::Busy { pid: holder(wire, id), waited_ms };
    }
    let first = |wire: &mut Wire, sql: &str| {
        let rows = wire.batch(sql).ok()?;
        rows.first().and_then(|row| row.get(0)).map(str::to_owned)
    };
    if first(wire, "SELECT pg_is_in_recovery()").as_deref() == Some("t") {
        return schema::is_standby();
    }
    // Another layout may lack what was asked for: then its version is the answer.
    match schema::version(wire, address).and_then(schema::check) {
        Err(other @ (Error::Newer { .. } | Error::Older { .. })) => other,
        _ => wire::failed(address, error),
    }
}

/// The server process that holds the workspace, or 0: its transaction is the row's `xmax`.
fn holder(wire: &mut Wire, id: &Id) -> u32 {
    let sql = format!(
        "SELECT k.pid FROM baton.workspaces w JOIN pg_locks k ON k.locktype = 'transactionid' \
         AND k.granted AND k.mode = 'ExclusiveLock' AND k.transactionid = w.xmax \
         WHERE w.id = '{}'",
        id.as_str()
    );
    let pid = wire.batch(&sql).ok().and_then(|rows| rows.first()?.get(0)?.parse().ok());
    pid.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_epoch_rises_with_the_server_and_past_forgotten_timelines() {
        let stored = |server, timeline, floor| Stored { server, timeline, floor, because: None };
        let raise = |stored: &Stored<'_>| raised(3, stored, "a", 7);
        assert_eq!(raise(&stored("a", 7, 1)), (3, None, false));
        for (stored, epoch, moved) in [
            (stored("a", 6, 1), 4, true),
            (stored("a", 4, 1), 6, true),
            (stored("a", 8, 1), 4, true),
            (stored("b", 7, 1), 4, true),
            (stored("a", 7, 9), 9, false),
            (stored("b", 7, 9), 9, true),
        ] {
            let (raised_to, why, moved_to) = raise(&stored);
            assert_eq!((raised_to, moved_to), (epoch, moved));
            assert!(why.is_some());
        }
    }

    #[test]
    fn only_hex_stands_in_sql() {
        assert!(Id::parse("0123456789abcdef").is_ok());
        for text in ["", "1234567", "0123456G", "0123456'", "0123456\u{0}", "ABCDEF0123"] {
            assert!(Id::parse(text).is_err(), "{text:?}");
        }
        assert!(Id::parse(&"a".repeat(49)).is_err());
    }
}
