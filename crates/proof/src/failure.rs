//! Why a proof could not be made: always a fault of the surroundings, never a verdict.
//!
//! A violation of a property is no failure: it is what the checker found, and is reported as such.

use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error("{doing} {}: {source}", path.display())]
    File { doing: &'static str, path: PathBuf, source: std::io::Error },
    #[error("{what} could not be started: {source}")]
    NotStarted { what: String, source: std::io::Error },
    #[error("{what}: {said}")]
    Said { what: String, said: String },
    #[error("Baton could not answer: {0}")]
    Baton(#[from] baton_engine::failure::Failure),
    #[error("line {line} of a history cannot be read: {source}")]
    History { line: usize, source: serde_json::Error },
    #[error("{word:?} is not an option; see --help")]
    Usage { word: String },
}

impl Failure {
    pub fn file(doing: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::File { doing, path: path.to_owned(), source }
    }

    pub fn said(what: impl Into<String>, said: impl Into<String>) -> Self {
        Self::Said { what: what.into(), said: said.into() }
    }
}

impl From<baton_engine::store::Error> for Failure {
    fn from(error: baton_engine::store::Error) -> Self {
        Self::Baton(error.into())
    }
}
