//! What an address of a store means.
//!
//! Owns the spelling (`postgres://` or `key=value` words), the defaults Baton adds, and the TLS
//! options that the client library does not know. Invariant: no error and no shown text contains
//! the password, so nothing of an address that cannot be read is ever repeated.

use std::path::PathBuf;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

use crate::store::Error;

/// How long one attempt to reach one host may take, unless the address says otherwise.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// A dead network is noticed within about a minute, also while an answer is awaited.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEPALIVE_RETRIES: u32 = 3;

/// What of the server's certificate is checked; the words of libpq's `sslmode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Check {
    /// `prefer` and `require`: encrypted, to whoever answers.
    Nothing,
    /// `verify-ca`, and `require` with a root certificate.
    Authority,
    /// `verify-full`.
    AuthorityAndName,
}

#[derive(Clone)]
pub(super) struct Address {
    pub(super) config: Config,
    pub(super) check: Check,
    /// The trusted roots; without it those of the machine.
    pub(super) roots: Option<PathBuf>,
}

impl std::fmt::Debug for Address {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.url())
    }
}

impl Address {
    pub(super) fn parse(text: &str) -> Result<Self, Error> {
        let (plain, options) = match text.split_once("://") {
            Some(("postgres" | "postgresql", rest)) => split_url(rest)?,
            Some(_) => return Err(bad("it must begin with postgres:// or be key=value words")),
            None => split_words(text)?,
        };
        let mut config: Config = plain.parse().map_err(|_| {
            bad("it is neither postgres://user@host/database nor key=value words PostgreSQL knows")
        })?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(bad("it names no host"));
        }
        let (check, mode) = sslmode(&options)?;
        config.ssl_mode(mode);
        add_defaults(&mut config, &options);
        let roots = options.get("sslrootcert").filter(|path| path.as_str() != "system");
        Ok(Self { config, check, roots: roots.map(PathBuf::from) })
    }

    /// For people and for errors: everything but the password.
    pub(super) fn url(&self) -> String {
        let user = self.config.get_user().map(|user| format!("{user}@")).unwrap_or_default();
        let database = self.config.get_dbname().unwrap_or_default();
        format!("postgres://{user}{}/{database}", self.hosts())
    }

    pub(super) fn describe(&self) -> String {
        let database = self.config.get_dbname().unwrap_or("(the user's)");
        let user = self.config.get_user().unwrap_or("(whoever runs Baton)");
        format!("PostgreSQL at {}, database {database}, user {user}", self.hosts())
    }

    fn hosts(&self) -> String {
        let ports = self.config.get_ports();
        let port = |at: usize| ports.get(at).or(ports.first()).copied().unwrap_or(5432);
        let named = self.config.get_hosts().iter().enumerate().map(|(at, host)| match host {
            Host::Tcp(name) => format!("{name}:{}", port(at)),
            #[cfg(unix)]
            Host::Unix(folder) => format!("{}:{}", folder.display(), port(at)),
        });
        let mut hosts: Vec<String> = named.collect();
        if hosts.is_empty() {
            let numbers = self.config.get_hostaddrs().iter().enumerate();
            hosts.extend(numbers.map(|(at, number)| format!("{number}:{}", port(at))));
        }
        hosts.join(",")
    }
}

fn bad(detail: &str) -> Error {
    Error::BadAddress { detail: detail.to_owned() }
}

/// The options of an address by name. Those the client library does not know are only here.
type Options = std::collections::BTreeMap<String, String>;

/// Options that Baton itself understands, in place of the client library.
fn is_ours(name: &str) -> bool {
    matches!(name, "sslmode" | "sslrootcert")
}

fn sslmode(options: &Options) -> Result<(Check, SslMode), Error> {
    let rooted = options.contains_key("sslrootcert");
    match options.get("sslmode").map_or("prefer", String::as_str) {
        "disable" => Ok((Check::Nothing, SslMode::Disable)),
        "prefer" | "allow" => Ok((Check::Nothing, SslMode::Prefer)),
        "require" if rooted => Ok((Check::Authority, SslMode::Require)),
        "require" => Ok((Check::Nothing, SslMode::Require)),
        "verify-ca" => Ok((Check::Authority, SslMode::Require)),
        "verify-full" => Ok((Check::AuthorityAndName, SslMode::Require)),
        _ => Err(bad("sslmode is disable, prefer, require, verify-ca or verify-full")),
    }
}

fn add_defaults(config: &mut Config, options: &Options) {
    if !options.contains_key("application_name") {
        config.application_name("baton");
    }
    if !options.contains_key("connect_timeout") {
        config.connect_timeout(CONNECT_TIMEOUT);
    }
    if !options.keys().any(|name| name.starts_with("keepalives")) {
        config.keepalives_idle(KEEPALIVE_IDLE);
        config.keepalives_interval(KEEPALIVE_INTERVAL);
        config.keepalives_retries(KEEPALIVE_RETRIES);
    }
    // Of several hosts the primary is wanted; asking costs a round trip, so one host is not asked.
    let several = config.get_hosts().len().max(config.get_hostaddrs().len()) > 1;
    if several && !options.contains_key("target_session_attrs") {
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
    }
}

/// Takes our options out of a URL's query.
fn split_url(rest: &str) -> Result<(String, Options), Error> {
    // The client library takes everything before the first @ for the credentials, so a question
    // mark in there belongs to the password.
    let credentials = rest.find('@').unwrap_or(0);
    let Some(question) = rest[credentials..].find('?').map(|at| at + credentials) else {
        return Ok((format!("postgres://{rest}"), Options::new()));
    };
    let (mut options, mut kept) = (Options::new(), Vec::new());
    for pair in rest[question + 1..].split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) =
            pair.split_once('=').ok_or_else(|| bad("an option after ? has no value"))?;
        if !is_ours(name) {
            kept.push(pair);
        }
        options.insert(name.to_owned(), percent_decoded(value)?);
    }
    let query = if kept.is_empty() { String::new() } else { format!("?{}", kept.join("&")) };
    Ok((format!("postgres://{}{query}", &rest[..question]), options))
}

fn percent_decoded(text: &str) -> Result<String, Error> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut left = text.bytes();
    while let Some(byte) = left.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16));
        match (digit(left.next()), digit(left.next())) {
            (Some(high), Some(low)) => bytes.push((high * 16 + low) as u8),
            _ => return Err(bad("a % in an option is not followed by two hex digits")),
        }
    }
    String::from_utf8(bytes).map_err(|_| bad("an option is not UTF-8"))
}

/// Takes our options out of `key=value` words, where a value may be quoted.
fn split_words(text: &str) -> Result<(String, Options), Error> {
    let (mut options, mut kept) = (Options::new(), String::new());
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (name, after) =
            rest.split_once('=').ok_or_else(|| bad("a word is not of the form key=value"))?;
        let name = name.trim();
        let (value, after) = word_value(after.trim_start())?;
        if !is_ours(name) {
            let quoted = value.replace('\\', "\\\\").replace('\'', "\\'");
            kept.push_str(&format!("{name}='{quoted}' "));
        }
        options.insert(name.to_owned(), value);
        rest = after.trim_start();
    }
    Ok((kept, options))
}

fn word_value(text: &str) -> Result<(String, &str), Error> {
    let quoted = text.starts_with('\'');
    let mut value = String::new();
    let mut letters = text.char_indices().skip(usize::from(quoted));
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => value.extend(letters.next().map(|(_, escaped)| escaped)),
            '\'' if quoted => return Ok((value, &text[at + 1..])),
            _ if !quoted && letter.is_whitespace() => return Ok((value, &text[at..])),
            _ => value.push(letter),
        }
    }
    if quoted { Err(bad("a quoted value does not end")) } else { Ok((value, "")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_mean_the_same() {
        for text in [
            "postgres://me:s3cret@db:5433/fleet?sslmode=verify-full&sslrootcert=%2Fa%20b.pem",
            r"host=db port=5433 user=me password='s3cret' dbname=fleet sslmode=verify-full
              sslrootcert='/a b.pem'",
        ] {
            let address = Address::parse(text).unwrap();
            assert_eq!(address.url(), "postgres://me@db:5433/fleet", "{text}");
            assert_eq!(address.check, Check::AuthorityAndName);
            assert_eq!(address.roots, Some(PathBuf::from("/a b.pem")));
            assert_eq!(address.config.get_ssl_mode(), SslMode::Require);
            assert_eq!(address.config.get_password(), Some("s3cret".as_bytes()));
            assert_eq!(address.config.get_application_name(), Some("baton"));
            assert_eq!(address.config.get_connect_timeout(), Some(&CONNECT_TIMEOUT));
        }
    }

    #[test]
    fn what_the_address_says_wins_over_the_defaults() {
        let text = "host=a,b user=x application_name=other connect_timeout=2 sslmode=disable";
        let address = Address::parse(text).unwrap();
        assert_eq!(address.config.get_application_name(), Some("other"));
        assert_eq!(address.config.get_connect_timeout(), Some(&Duration::from_secs(2)));
        assert_eq!(address.config.get_ssl_mode(), SslMode::Disable);
        assert_eq!(address.config.get_target_session_attrs(), TargetSessionAttrs::ReadWrite);
    }

    #[test]
    fn require_with_a_root_checks_the_authority() {
        let check = |text: &str| Address::parse(text).unwrap().check;
        assert_eq!(check("postgres://h/d?sslmode=require"), Check::Nothing);
        assert_eq!(check("postgres://h/d?sslmode=require&sslrootcert=system"), Check::Authority);
        assert_eq!(check("postgres://h/d?sslmode=verify-ca"), Check::Authority);
    }

    #[test]
    fn bad_addresses_are_refused_without_being_repeated() {
        for text in [
            "",
            "mysql://me:s3cret@h/d",
            "postgres://me:s3cret@h/d?sslmode=s3cret",
            "postgres://me:s3cret@h/d?s3cret",
            "postgres://me:s3cret@h:s3cret/d",
            "postgres://me:s3cret@h/d?s3cret=1",
            "host=h password='s3cret",
            "user=me password=s3cret",
            "s3cret",
        ] {
            let error = Address::parse(text).unwrap_err();
            assert!(matches!(error, Error::BadAddress { .. }), "{text}: {error:?}");
            assert!(!format!("{error} {error:?}").contains("s3cret"), "{error}");
        }
    }
}
