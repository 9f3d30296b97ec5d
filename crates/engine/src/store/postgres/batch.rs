//! All of a decision's questions in one statement, and all it writes in another.
//!
//! Owns the SQL of reading and writing records. Both statements take arrays, so their number does
//! not grow with the decision. PostgreSQL's text holds no NUL while a scan may be bounded by one
//! (`Query::equal`); stored text has none, so such a bound is cut there and compared accordingly.

use baton_core::journal::Entry;
use baton_core::overlay::Change;
use baton_core::view::{Query, Row, kind_named};
use tokio_postgres::types::Type;

use super::schema::HEAD_CHARACTERS;
use super::wire::{self, Uncommitted, Wire};

const READ: &str = r#"
SELECT q.n, r.kind, r.key, r.version, r.body, ''::text COLLATE "C" AS value
FROM unnest($2::int8[], $3::text[], $4::text[]) AS q(n, kind, key)
JOIN baton.records r ON r.workspace = $1 AND r.kind = q.kind AND r.key = q.key
UNION ALL
SELECT q.n, f.kind, f.key, f.version, f.body, f.value
FROM unnest($5::int8[], $6::text[], $7::text[], $8::bool[], $9::text[], $10::bool[],
            $11::text[], $12::text[], $13::text[], $14::int8[])
     AS q(n, index, low, low_in, high, high_in, after_value, after_kind, after_key, most)
CROSS JOIN LATERAL (
    SELECT e.head, e.value, r.kind, r.key, r.version, r.body
    FROM baton.entries e
    JOIN baton.records r ON r.workspace = $1 AND r.kind = e.kind AND r.key = e.key
    WHERE e.workspace = $1 AND e.index = q.index
      AND e.head >= left(greatest(q.low COLLATE "C", q.after_value COLLATE "C"), $15)
      AND e.head <= left(q.high, $15)
      AND (e.value > q.low OR q.low_in AND e.value = q.low)
      AND (e.value < q.high OR q.high_in AND e.value = q.high)
      AND (e.value, e.kind, e.key) > (q.after_value, q.after_kind, q.after_key)
    ORDER BY e.head, e.value, e.kind, e.key
    LIMIT q.most
) f
ORDER BY 1, 6, 2, 3
"#;

const WRITE: &str = r#"
WITH put AS (
    INSERT INTO baton.records (workspace, kind, key, version, body)
    SELECT $1, c.kind, c.key, c.version, c.body
    FROM unnest($2::text[], $3::text[], $4::int8[], $5::text[]) AS c(kind, key, version, body)
    ON CONFLICT (workspace, kind, key)
    DO UPDATE SET version = excluded.version, body = excluded.body
    RETURNING 1
), gone AS (
    DELETE FROM baton.records r USING unnest($6::text[], $7::text[]) AS d(kind, key)
    WHERE r.workspace = $1 AND r.kind = d.kind AND r.key = d.key
    RETURNING 1
), unindexed AS (
    DELETE FROM baton.entries e
    USING unnest($8::text[], $9::text[], $10::text[], $11::text[]) AS d(index, value, kind, key)
    WHERE e.workspace = $1 AND e.index = d.index AND e.head = left(d.value, $24)
      AND e.value = d.value AND e.kind = d.kind AND e.key = d.key
    RETURNING 1
), indexed AS (
    INSERT INTO baton.entries (workspace, index, head, value, kind, key)
    SELECT $1, a.index, left(a.value, $24), a.value, a.kind, a.key
    FROM unnest($12::text[], $13::text[], $14::text[], $15::text[]) AS a(index, value, kind, key)
    RETURNING 1
), written AS (
    INSERT INTO baton.journal (workspace, number, epoch, at, actor, kind, version, body, hash)
    SELECT $1, j.number, j.epoch, j.at, j.actor, j.kind, j.version, j.body, j.hash
    FROM unnest($16::int8[], $17::int8[], $18::int8[], $19::text[], $20::text[], $21::int4[],
                $22::text[], $23::text[])
         AS j(number, epoch, at, actor, kind, version, body, hash)
    RETURNING 1
), moved AS (
    UPDATE baton.workspaces
    SET epoch = $25, head_number = $26, head_at = $27, head_hash = $28,
        epoch_max = greatest(epoch_max, $25), server = $29, timeline = $30, failed_over_at = $31
    WHERE number = $1 AND head_number = $32 AND head_hash = $33
    RETURNING 1
), counted AS (
    SELECT ARRAY[(SELECT count(*) FROM put), (SELECT count(*) FROM gone),
                 (SELECT count(*) FROM unindexed), (SELECT count(*) FROM indexed),
                 (SELECT count(*) FROM written), (SELECT count(*) FROM moved)] AS found
)
SELECT CASE WHEN found = $37::int8[] THEN 0 ELSE ('counted ' || found::text)::int END,
       set_config('synchronous_commit', CASE
           WHEN $34 THEN 'local'
           WHEN current_setting('synchronous_commit') = 'off' THEN 'on'
           ELSE current_setting('synchronous_commit') END, true),
       CASE WHEN $35 THEN pg_notify($36, '') END
FROM counted
"#;

/// Above every kind and key there is.
const HIGHEST: &str = "\u{10ffff}";

#[derive(Default)]
struct Questions<'a> {
    gets: (Vec<i64>, Vec<&'a str>, Vec<&'a str>),
    scans: Vec<i64>,
    indexes: Vec<&'a str>,
    lows: Vec<&'a str>,
    lows_in: Vec<bool>,
    highs: Vec<&'a str>,
    highs_in: Vec<bool>,
    after: (Vec<&'a str>, Vec<&'a str>, Vec<&'a str>),
    most: Vec<i64>,
}

impl<'a> Questions<'a> {
    fn add(&mut self, n: i64, query: &'a Query) {
        match query {
            // Nothing stored contains a NUL: there is nothing to find.
            Query::Get { key, .. } if key.contains('\0') => {}
            Query::Get { kind, key } => {
                self.gets.0.push(n);
                self.gets.1.push(kind);
                self.gets.2.push(key);
            }
            Query::Scan { index, from, until, after, limit } => {
                let (low, low_cut) = cut(from);
                let (high, high_cut) = cut(until);
                // Before any row: no kind is empty.
                let (mut value, mut kind, mut key) = ("", "", "");
                if let Some(after) = after {
                    (value, kind, key) = (&after.0, &after.1, &after.2);
                    let (whole, value_cut) = cut(value);
                    if value_cut || kind.contains('\0') || key.contains('\0') {
                        (value, kind, key) = (whole, HIGHEST, HIGHEST);
                    }
                }
                self.scans.push(n);
                self.indexes.push(index);
                self.lows.push(low);
                self.lows_in.push(!low_cut);
                self.highs.push(high);
                self.highs_in.push(high_cut);
                self.after.0.push(value);
                self.after.1.push(kind);
                self.after.2.push(key);
                self.most.push(i64::from(*limit));
            }
        }
    }
}

/// The text before its first NUL, and whether there is one. For a text `t` without NUL,
/// `t < "p\0…"` is `t <= "p"`, and `t >= "p\0…"` is `t > "p"`.
fn cut(text: &str) -> (&str, bool) {
    match text.split_once('\0') {
        Some((before, _)) => (before, true),
        None => (text, false),
    }
}

#[derive(Debug, thiserror::Error)]
pub(super) enum Odd {
    #[error("the server did not answer")]
    Server(#[from] wire::Failure),
    #[error("a column of the answer cannot be read")]
    Column(#[from] tokio_postgres::Error),
    #[error("a record of kind {kind:?} belongs to a newer Baton")]
    Kind { kind: String },
    #[error("a record's number {number} cannot be")]
    Number { number: i64 },
    #[error("text with a NUL cannot be stored in PostgreSQL: {what}")]
    Nul { what: &'static str },
    #[error("the store holds other records than were read: {found}, and {wanted} were wanted")]
    Count { found: String, wanted: String },
}

pub(super) fn read(
    wire: &mut Wire,
    workspace: i64,
    queries: &[Query],
) -> Result<Vec<Vec<Row>>, Odd> {
    let mut answers: Vec<Vec<Row>> = queries.iter().map(|_| Vec::new()).collect();
    let mut asked = Questions::default();
    for (n, query) in (0i64..).zip(queries) {
        asked.add(n, query);
    }
    if asked.gets.0.is_empty() && asked.scans.is_empty() {
        return Ok(answers);
    }
    let head = i32::try_from(HEAD_CHARACTERS).unwrap_or(i32::MAX);
    let rows = wire.query(
        READ,
        &[
            (&workspace, Type::INT8),
            (&asked.gets.0, Type::INT8_ARRAY),
            (&asked.gets.1, Type::TEXT_ARRAY),
            (&asked.gets.2, Type::TEXT_ARRAY),
            (&asked.scans, Type::INT8_ARRAY),
            (&asked.indexes, Type::TEXT_ARRAY),
            (&asked.lows, Type::TEXT_ARRAY),
            (&asked.lows_in, Type::BOOL_ARRAY),
            (&asked.highs, Type::TEXT_ARRAY),
            (&asked.highs_in, Type::BOOL_ARRAY),
            (&asked.after.0, Type::TEXT_ARRAY),
            (&asked.after.1, Type::TEXT_ARRAY),
            (&asked.after.2, Type::TEXT_ARRAY),
            (&asked.most, Type::INT8_ARRAY),
            (&head, Type::INT4),
        ],
    )?;
    for row in rows {
        let n: i64 = row.try_get(0)?;
        let answer = usize::try_from(n).ok().and_then(|n| answers.get_mut(n));
        answer.ok_or(Odd::Number { number: n })?.push(record(&row, 1)?);
    }
    Ok(answers)
}

/// A record from four columns: kind, key, version, body.
pub(super) fn record(row: &tokio_postgres::Row, at: usize) -> Result<Row, Odd> {
    let kind: &str = row.try_get(at)?;
    let version: i64 = row.try_get(at + 2)?;
    Ok(Row {
        kind: kind_named(kind).ok_or_else(|| Odd::Kind { kind: kind.to_owned() })?,
        key: row.try_get(at + 1)?,
        version: u64::try_from(version).map_err(|_| Odd::Number { number: version })?,
        body: row.try_get(at + 3)?,
    })
}

/// What comes after a write.
#[derive(Clone, Copy)]
pub(super) enum Then {
    GoOn,
    /// The transaction ends with it.
    Commit,
}

/// Why nothing was written, as far as that is known.
pub(super) enum Unwritten {
    Refused(Odd),
    /// It may have been, COMMIT and all.
    Unknown(wire::Failure),
}

impl From<Odd> for Unwritten {
    fn from(odd: Odd) -> Self {
        Self::Refused(odd)
    }
}

/// What a write leaves behind in the workspace's row.
pub(super) struct Outcome<'a> {
    pub(super) workspace: i64,
    pub(super) before: &'a baton_core::journal::Head,
    pub(super) after: &'a baton_core::journal::Head,
    pub(super) server: &'a str,
    pub(super) timeline: i64,
    pub(super) failed_over_at: Option<i64>,
    /// Flushed here, but no standby is waited for.
    pub(super) local: bool,
    /// The channel, when somebody listens.
    pub(super) notify: Option<&'a str>,
}

#[derive(Default)]
struct Writes<'a> {
    put: (Vec<&'a str>, Vec<&'a str>, Vec<i64>, Vec<&'a str>),
    gone: (Vec<&'a str>, Vec<&'a str>),
    unindexed: Quads<'a>,
    indexed: Quads<'a>,
}

type Quads<'a> = (Vec<&'a str>, Vec<&'a str>, Vec<&'a str>, Vec<&'a str>);

impl<'a> Writes<'a> {
    fn add(&mut self, change: &'a Change) -> Result<(), Odd> {
        if change.key.contains('\0') {
            return Err(Odd::Nul { what: "a record's key" });
        }
        match &change.put {
            Some((version, body)) => {
                self.put.0.push(change.kind);
                self.put.1.push(&change.key);
                self.put.2.push(number(*version)?);
                self.put.3.push(body);
            }
            None => {
                self.gone.0.push(change.kind);
                self.gone.1.push(&change.key);
            }
        }
        for (entries, into) in
            [(&change.index_removed, &mut self.unindexed), (&change.index_added, &mut self.indexed)]
        {
            for (index, value) in entries {
                if value.contains('\0') {
                    return Err(Odd::Nul { what: "an index value" });
                }
                into.0.push(index);
                into.1.push(value);
                into.2.push(change.kind);
                into.3.push(&change.key);
            }
        }
        Ok(())
    }
}

impl Writes<'_> {
    /// How many rows each part of the statement must touch.
    fn counts(&self, entries: usize) -> Vec<i64> {
        let Self { put, gone, unindexed, indexed } = self;
        let parts = [put.0.len(), gone.0.len(), unindexed.0.len(), indexed.0.len(), entries, 1];
        parts.into_iter().map(|count| i64::try_from(count).unwrap_or(i64::MAX)).collect()
    }
}

fn number(number: u64) -> Result<i64, Odd> {
    i64::try_from(number).map_err(|_| Odd::Number { number: i64::MAX })
}

#[derive(Default)]
struct Lines<'a> {
    numbers: Vec<i64>,
    epochs: Vec<i64>,
    times: Vec<i64>,
    actors: Vec<&'a str>,
    kinds: Vec<&'a str>,
    versions: Vec<i32>,
    bodies: Vec<&'a str>,
    hashes: Vec<&'a str>,
}

impl<'a> Lines<'a> {
    fn add(&mut self, entry: &'a Entry) -> Result<(), Odd> {
        self.numbers.push(number(entry.position.number)?);
        self.epochs.push(i64::from(entry.position.epoch));
        self.times.push(number(entry.at.0)?);
        self.actors.push(&entry.actor);
        self.kinds.push(&entry.kind);
        let version = i64::from(entry.version);
        self.versions.push(i32::try_from(version).map_err(|_| Odd::Number { number: version })?);
        self.bodies.push(&entry.body);
        self.hashes.push(&entry.hash.0);
        Ok(())
    }
}

pub(super) fn write(
    wire: &mut Wire,
    entries: &[Entry],
    changes: &[Change],
    outcome: &Outcome<'_>,
    then: Then,
) -> Result<(), Unwritten> {
    let (mut writes, mut lines) = (Writes::default(), Lines::default());
    changes.iter().try_for_each(|change| writes.add(change))?;
    entries.iter().try_for_each(|entry| lines.add(entry))?;
    let (before, after) = (outcome.before, outcome.after);
    let channel = outcome.notify.unwrap_or_default();
    let wanted = writes.counts(entries.len());
    let parameters: wire::Parameters<'_> = &[
        (&outcome.workspace, Type::INT8),
        (&writes.put.0, Type::TEXT_ARRAY),
        (&writes.put.1, Type::TEXT_ARRAY),
        (&writes.put.2, Type::INT8_ARRAY),
        (&writes.put.3, Type::TEXT_ARRAY),
        (&writes.gone.0, Type::TEXT_ARRAY),
        (&writes.gone.1, Type::TEXT_ARRAY),
        (&writes.unindexed.0, Type::TEXT_ARRAY),
        (&writes.unindexed.1, Type::TEXT_ARRAY),
        (&writes.unindexed.2, Type::TEXT_ARRAY),
        (&writes.unindexed.3, Type::TEXT_ARRAY),
        (&writes.indexed.0, Type::TEXT_ARRAY),
        (&writes.indexed.1, Type::TEXT_ARRAY),
        (&writes.indexed.2, Type::TEXT_ARRAY),
        (&writes.indexed.3, Type::TEXT_ARRAY),
        (&lines.numbers, Type::INT8_ARRAY),
        (&lines.epochs, Type::INT8_ARRAY),
        (&lines.times, Type::INT8_ARRAY),
        (&lines.actors, Type::TEXT_ARRAY),
        (&lines.kinds, Type::TEXT_ARRAY),
        (&lines.versions, Type::INT4_ARRAY),
        (&lines.bodies, Type::TEXT_ARRAY),
        (&lines.hashes, Type::TEXT_ARRAY),
        (&i32::try_from(HEAD_CHARACTERS).unwrap_or(i32::MAX), Type::INT4),
        (&i64::from(after.position.epoch), Type::INT8),
        (&number(after.position.number)?, Type::INT8),
        (&number(after.at.0)?, Type::INT8),
        (&after.hash.0, Type::TEXT),
        (&outcome.server, Type::TEXT),
        (&outcome.timeline, Type::INT8),
        (&outcome.failed_over_at, Type::INT8),
        (&number(before.position.number)?, Type::INT8),
        (&before.hash.0, Type::TEXT),
        (&outcome.local, Type::BOOL),
        (&outcome.notify.is_some(), Type::BOOL),
        (&channel, Type::TEXT),
        (&wanted, Type::INT8_ARRAY),
    ];
    let written = match then {
        Then::GoOn => wire.query(WRITE, parameters).map(drop).map_err(Uncommitted::Refused),
        Then::Commit => wire.query_and_commit(WRITE, parameters),
    };
    written.map_err(|uncommitted| match uncommitted {
        Uncommitted::Refused(failure) => Unwritten::Refused(uncounted(failure, &wanted)),
        Uncommitted::Unknown(failure) => Unwritten::Unknown(failure),
    })
}

/// The store must have found what the decision read: another count is damage or a bug, so the
/// statement fails with what it counted, and the transaction with it.
fn uncounted(failure: wire::Failure, wanted: &[i64]) -> Odd {
    let wire::Failure::Told(error) = &failure else { return Odd::Server(failure) };
    let told = error.as_db_error().filter(|told| told.message().contains("\"counted {"));
    match told {
        Some(told) => {
            let found = told.message().rsplit("counted ").next().unwrap_or_default();
            let found = found.trim_end_matches('"').to_owned();
            Odd::Count { found, wanted: format!("{wanted:?}") }
        }
        None => Odd::Server(failure),
    }
}
