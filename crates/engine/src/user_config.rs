//! The user's own settings: `$XDG_CONFIG_HOME/baton/config.toml`.
//!
//! Owns which shared store is used: `BATON_STORE`, else this file, and never a repository, which
//! could lead its visitors to a server of somebody else. Costs one failed `open` where there is no
//! file, because every command passes here.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::failure::Failure;
use crate::place::Place;

pub const STORE_VARIABLE: &str = "BATON_STORE";

/// What was typed. Unknown keys are refused: a mistyped `store` must not mean "the local one".
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UserConfig {
    /// The address of the shared store.
    pub store: Option<String>,
    /// The command that tells the user of a new gate: a program and its arguments, no shell.
    pub notify: Option<Vec<String>>,
}

/// Where the file is, if the user has a home.
pub fn path() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    // The standard asks to ignore a relative path here.
    let base = set("XDG_CONFIG_HOME").filter(|base| base.is_absolute());
    let base = base.or_else(|| set("HOME").map(|home| home.join(".config")))?;
    Some(base.join("baton/config.toml"))
}

pub fn read() -> Result<UserConfig, Failure> {
    match path() {
        Some(path) => read_at(&path),
        None => Ok(UserConfig::default()),
    }
}

fn read_at(path: &Path) -> Result<UserConfig, Failure> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if is_absent(&error) => return Ok(UserConfig::default()),
        Err(source) => {
            return Err(Failure::File { doing: "cannot read", path: path.to_owned(), source });
        }
    };
    toml::from_str(&text).map_err(|error| {
        let before = error.span().and_then(|span| text.get(..span.start));
        let line = before.map(|before| before.matches('\n').count() + 1);
        // The message may quote the line; what it says about a value could show a password.
        let detail = error.message().lines().next().unwrap_or_default().to_owned();
        Failure::Config { path: path.to_owned(), line, detail }
    })
}

fn is_absent(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory)
}

/// The shared store that the user chose, for a new workspace.
pub fn address() -> Result<Option<String>, Failure> {
    match from_environment() {
        Some(address) => Ok(Some(address)),
        None => Ok(read()?.store.filter(|store| !store.is_empty())),
    }
}

/// The shared store for a workspace that is there. One with its own store needs none, and the
/// user's general choice does not take it away from there; `BATON_STORE` is said for this command,
/// so that contradiction is told by the store.
pub fn address_for(place: &Place) -> Result<Option<String>, Failure> {
    match place.workspace.shared {
        true => address(),
        false => Ok(from_environment()),
    }
}

fn from_environment() -> Option<String> {
    std::env::var(STORE_VARIABLE).ok().filter(|value| !value.is_empty())
}

/// Whether others can read a file that holds a password.
pub fn exposes_password() -> Option<PathBuf> {
    let path = path()?;
    let mode = std::fs::metadata(&path).ok()?.mode();
    let store = read_at(&path).ok()?.store?;
    (mode & 0o077 != 0 && has_password(&store)).then_some(path)
}

fn has_password(address: &str) -> bool {
    let authority = address.split_once("://").map(|(_, rest)| rest.split('/').next().unwrap_or(""));
    let in_url = authority
        .and_then(|authority| authority.rsplit_once('@'))
        .is_some_and(|(user, _)| user.contains(':'));
    in_url || address.contains("password=")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_key_is_refused_with_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        assert_eq!(read_at(&path).unwrap(), UserConfig::default());
        std::fs::write(&path, "# mine\nstroe = \"postgres://h/d\"\n").unwrap();
        let refused = read_at(&path);
        assert!(matches!(refused, Err(Failure::Config { line: Some(2), .. })), "{refused:?}");
        std::fs::write(&path, "store = \"postgres://h/d\"\n").unwrap();
        assert_eq!(read_at(&path).unwrap().store.as_deref(), Some("postgres://h/d"));
    }

    #[test]
    fn passwords_are_noticed_in_both_spellings() {
        assert!(has_password("postgres://me:secret@host/db"));
        assert!(has_password("host=h user=me password=secret"));
        assert!(!has_password("postgres://me@host/db:5"));
        assert!(!has_password("host=h user=me"));
    }
}
