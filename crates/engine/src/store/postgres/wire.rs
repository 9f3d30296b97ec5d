//! The connection, and what its failures mean.
//!
//! Every statement of a decision goes through here, so this is where round trips are counted and
//! where a server's error becomes one of ours. Invariant: an error's text is one line and carries
//! no password. Refuses to know what the statements are for.

use std::path::PathBuf;

use postgres::error::SqlState;
use postgres::types::{ToSql, Type};
use postgres::{Client, Row, SimpleQueryMessage, SimpleQueryRow};

use super::address::Address;
use super::tls;
use crate::store::Error;

pub(super) type Parameters<'a> = &'a [(&'a (dyn ToSql + Sync), Type)];

/// One connection to the server.
pub(super) struct Wire {
    client: Client,
    round_trips: u64,
}

impl Wire {
    pub(super) fn connect(address: &Address) -> Result<Self, Error> {
        let config = postgres::Config::from(address.config.clone());
        let client =
            config.connect(tls::connector(address)?).map_err(|error| refused(address, &error))?;
        Ok(Self { client, round_trips: 0 })
    }

    /// Several statements without parameters, in one round trip. Gives the rows of all.
    pub(super) fn batch(&mut self, sql: &str) -> Result<Vec<SimpleQueryRow>, postgres::Error> {
        self.round_trips += 1;
        let rows = self.client.simple_query(sql)?.into_iter().filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some(row),
            _ => None,
        });
        Ok(rows.collect())
    }

    /// One statement with parameters, in one round trip: it is not prepared by name, so a pooler
    /// between us and the server does no harm either.
    pub(super) fn query(
        &mut self,
        sql: &str,
        parameters: Parameters<'_>,
    ) -> Result<Vec<Row>, postgres::Error> {
        self.round_trips += 1;
        self.client.query_typed(sql, parameters)
    }

    pub(super) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    pub(super) fn round_trips(&self) -> u64 {
        self.round_trips
    }
}

/// Is the connection gone, so that nobody will hear about what was under way?
pub(super) fn is_lost(error: &postgres::Error) -> bool {
    let Some(told) = error.as_db_error() else { return true };
    matches!(told.severity(), "FATAL" | "PANIC")
        || told.code().code().starts_with("08")
        || told.code().code().starts_with("57P")
}

/// Could somebody else have been in the way, so that trying again helps?
pub(super) fn is_conflict(error: &postgres::Error) -> bool {
    error.code().is_some_and(|code| {
        *code == SqlState::T_R_SERIALIZATION_FAILURE || *code == SqlState::T_R_DEADLOCK_DETECTED
    })
}

pub(super) fn is_timeout(error: &postgres::Error) -> bool {
    error.code().is_some_and(|code| {
        *code == SqlState::LOCK_NOT_AVAILABLE || *code == SqlState::QUERY_CANCELED
    })
}

/// Why the server did not let us in.
pub(super) fn refused(address: &Address, error: &postgres::Error) -> Error {
    if error.code() == Some(&SqlState::UNDEFINED_DATABASE) {
        return Error::Missing { path: PathBuf::from(address.url()) };
    }
    let detail = match error.as_db_error() {
        Some(told) => told.message().to_owned(),
        None => {
            let mut detail = error.to_string();
            let mut source = std::error::Error::source(error);
            while let Some(cause) = source {
                detail = format!("{detail}: {cause}");
                source = cause.source();
            }
            detail
        }
    };
    Error::Unreachable { detail: line(address, &format!("{}: {detail}", address.url())) }
}

/// What an error in the middle of our work means. Nothing was done.
pub(super) fn failed(address: &Address, error: &postgres::Error) -> Error {
    let path = || PathBuf::from(address.url());
    let Some(told) = error.as_db_error() else { return refused(address, error) };
    let code = told.code();
    let detail = line(address, &format!("{} ({})", told.message(), code.code()));
    match code.code() {
        "53100" => Error::Full { path: path() },
        "25006" | "42501" => Error::ReadOnly { path: path() },
        "3F000" | "42P01" => Error::Missing { path: path() },
        "XX001" | "XX002" => Error::Corrupt { path: path(), detail },
        "57014" => Error::Unreachable { detail: format!("it took too long to answer: {detail}") },
        _ if is_conflict(error) || is_timeout(error) => Error::Busy { pid: 0, waited_ms: 0 },
        _ if is_lost(error) => Error::Unreachable { detail },
        _ => Error::Backend { detail },
    }
}

/// One line without the password, whatever a server or a system call put into it.
fn line(address: &Address, text: &str) -> String {
    let mut line: String =
        text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    if let Some(Ok(password)) = address.config.get_password().map(std::str::from_utf8)
        && !password.is_empty()
    {
        line = line.replace(password, "…");
    }
    line
}
