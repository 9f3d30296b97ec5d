//! The tables, and the check that they are the ones this Baton knows.
//!
//! Owns the stored layout and its version. Whoever connects first makes it; a lock that ends with
//! the transaction keeps two from doing so at once. Scanned text is `COLLATE "C"`, because its
//! order must be that of Rust's bytes. An index row holds at most 2,704 bytes and a path may be
//! longer, so an entry is found by its value's first characters: cut by characters, the order of
//! the heads never contradicts that of the values.

use tokio_postgres::SimpleQueryRow;

use super::address::Address;
use super::wire::{self, Wire};
use crate::store::{Error, SCHEMA_VERSION};

/// The characters of an index value that the database's own index holds: at most 1,024 bytes.
pub(super) const HEAD_CHARACTERS: usize = 256;

const CREATE: &str = r#"
BEGIN;
SET LOCAL lock_timeout = 10000;
SELECT pg_advisory_xact_lock(7022364301936259954);
CREATE SCHEMA IF NOT EXISTS baton;
CREATE TABLE IF NOT EXISTS baton.layout (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    version integer NOT NULL
);
INSERT INTO baton.layout (version) VALUES ({version}) ON CONFLICT DO NOTHING;

-- One row per workspace. Its lock is what makes one decision at a time. The data hang on the
-- number, so that a workspace set aside by a restore is one row renamed.
CREATE TABLE IF NOT EXISTS baton.workspaces (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text COLLATE "C" NOT NULL UNIQUE,
    root_commit text,
    remote text,
    created_at bigint NOT NULL,
    epoch bigint NOT NULL,
    head_number bigint NOT NULL,
    head_at bigint NOT NULL,
    head_hash text NOT NULL,
    -- The highest epoch ever used, and the lowest that may come next.
    epoch_max bigint NOT NULL,
    epoch_floor bigint NOT NULL,
    raised_because text,
    failed_over_at bigint,
    -- Which server wrote last: system identifier, database, table; and its timeline.
    server text NOT NULL,
    timeline bigint NOT NULL,
    archived_epoch bigint,
    archived_number bigint,
    archived_at bigint,
    archived_hash text,
    -- Until then somebody listens, so commits send a notification.
    waiting_until bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

CREATE TABLE IF NOT EXISTS baton.records (
    workspace bigint NOT NULL,
    kind text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    body text NOT NULL,
    PRIMARY KEY (workspace, kind, key)
);

CREATE TABLE IF NOT EXISTS baton.entries (
    workspace bigint NOT NULL,
    index text COLLATE "C" NOT NULL,
    head text COLLATE "C" NOT NULL,
    value text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL
);
CREATE INDEX IF NOT EXISTS entries_by_value
    ON baton.entries (workspace, index, head, kind, key);

CREATE TABLE IF NOT EXISTS baton.journal (
    workspace bigint NOT NULL,
    number bigint NOT NULL,
    epoch bigint NOT NULL,
    at bigint NOT NULL,
    actor text NOT NULL,
    kind text NOT NULL,
    version integer NOT NULL,
    body text NOT NULL,
    hash text NOT NULL,
    PRIMARY KEY (workspace, number)
);

CREATE TABLE IF NOT EXISTS baton.traces (
    workspace bigint NOT NULL,
    key text COLLATE "C" NOT NULL,
    value bytea NOT NULL,
    PRIMARY KEY (workspace, key)
);

CREATE OR REPLACE VIEW baton.claims AS
SELECT w.id AS workspace, r.key AS claim, b.body->>'token' AS token, b.body->>'name' AS holder,
       b.body->>'session' AS session, b.body->>'scope' AS scope, b.body->>'mode' AS mode,
       b.body->'resources' AS resources, b.body->>'reason' AS reason,
       b.body->>'granted_at' AS granted_at, b.body->>'expires_at' AS expires_at
FROM baton.records r
JOIN baton.workspaces w ON w.number = r.workspace
CROSS JOIN LATERAL (SELECT r.body::jsonb AS body) b
WHERE r.kind = 'claim';

CREATE OR REPLACE VIEW baton.sessions AS
SELECT w.id AS workspace, r.key AS session, b.body->>'name' AS name,
       b.body->>'client' AS client, b.body->>'role' AS role, b.body->>'host' AS host,
       b.body->>'life' AS life, b.body->>'started_at' AS started_at,
       b.body->>'expires_at' AS expires_at
FROM baton.records r
JOIN baton.workspaces w ON w.number = r.workspace
CROSS JOIN LATERAL (SELECT r.body::jsonb AS body) b
WHERE r.kind = 'session';

CREATE OR REPLACE VIEW baton.events AS
SELECT w.id AS workspace, j.epoch || '.' || j.number AS position,
       to_timestamp(j.at / 1000.0) AS at, j.actor, j.kind, j.body::jsonb AS body
FROM baton.journal j
JOIN baton.workspaces w ON w.number = j.workspace;
COMMIT;
"#;

/// Where the tables live. Constant for one connection: a connection ends with its server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    system: String,
    database: String,
}

impl Place {
    /// Names this server, database and table. A copy made by dump and restore has other numbers
    /// even in the same cluster; a copy of the files has another timeline once it is written to.
    pub(super) fn server(&self, table: &str) -> String {
        format!("{}/{}/{table}", self.system, self.database)
    }
}

/// Asks for the place, by way of `pg_control_system`: everybody may call it unless somebody took
/// that away.
pub(super) const PLACE: &str = "SELECT (SELECT system_identifier FROM pg_control_system()), \
     (SELECT oid FROM pg_database WHERE datname = current_database()); ";
pub(super) const PLACE_COLUMNS: usize = 2;

/// The answer to it.
pub(super) fn place(rows: &[SimpleQueryRow]) -> Option<Place> {
    let row = rows.iter().find(|row| row.len() == PLACE_COLUMNS)?;
    Some(Place { system: row.get(0)?.to_owned(), database: row.get(1)?.to_owned() })
}

/// Makes the tables if they are missing and checks their version.
pub(super) fn prepare(wire: &mut Wire, address: &Address) -> Result<Place, Error> {
    let failed = |error: wire::Failure| wire::failed(address, &error);
    let (place, there, standby) = look(wire, address)?;
    if standby {
        return Err(is_standby());
    }
    if !there {
        let sql = CREATE.replace("{version}", &SCHEMA_VERSION.to_string());
        if let Err(error) = wire.batch(&sql) {
            // Leaves the failed transaction; the first error is the one to tell.
            let _ = wire.batch("ROLLBACK");
            return Err(failed(error));
        }
    }
    check(version(wire, address)?)?;
    Ok(place)
}

pub(super) fn is_standby() -> Error {
    Error::Unreachable {
        detail: "this server is a standby; decisions are made on the primary".to_owned(),
    }
}

pub(super) fn check(found: u32) -> Result<(), Error> {
    let known = SCHEMA_VERSION;
    match found.cmp(&known) {
        std::cmp::Ordering::Equal => Ok(()),
        std::cmp::Ordering::Greater => Err(Error::Newer { found, known }),
        std::cmp::Ordering::Less => Err(Error::Older { found, known }),
    }
}

pub(super) fn version(wire: &mut Wire, address: &Address) -> Result<u32, Error> {
    let rows = wire
        .batch("SELECT version FROM baton.layout")
        .map_err(|error| wire::failed(address, &error))?;
    let version = rows.first().and_then(|row| row.get(0)).and_then(|text| text.parse().ok());
    version.ok_or_else(|| Error::Backend { detail: "the layout has no version".to_owned() })
}

/// Who answers, whether the tables are there, and whether it is a standby.
fn look(wire: &mut Wire, address: &Address) -> Result<(Place, bool, bool), Error> {
    // Everybody may call pg_control_system unless somebody took it away. Then the numbers of
    // database and table still tell a restored dump, and the timeline a restored copy of files.
    let permitted = "SELECT CASE WHEN has_function_privilege('pg_control_system()', 'execute') \
                     THEN 1 ELSE 0 END, to_regclass('baton.layout') IS NOT NULL, \
                     pg_is_in_recovery(), \
                     (SELECT oid FROM pg_database WHERE datname = current_database())";
    let failed = |error: wire::Failure| wire::failed(address, &error);
    let rows = wire.batch(permitted).map_err(failed)?;
    let row = rows.first();
    let text = |at: usize| row.and_then(|row| row.get(at)).unwrap_or_default().to_owned();
    let system = if text(0) == "1" {
        let rows =
            wire.batch("SELECT system_identifier FROM pg_control_system()").map_err(failed)?;
        rows.first().and_then(|row| row.get(0)).unwrap_or_default().to_owned()
    } else {
        "unknown".to_owned()
    };
    Ok((Place { system, database: text(3) }, text(1) == "t", text(2) == "t"))
}
