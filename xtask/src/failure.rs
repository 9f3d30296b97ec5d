//! Why a verb of xtask ended early, in words for the person who started it.
//!
//! One type for all verbs, so that `main` alone decides what the last line and the exit code are.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus};

#[derive(Debug)]
pub(crate) enum Failure {
    /// The words after the verb are not ones it knows.
    Usage { verb: &'static str, word: String },
    /// A program ran and was not content.
    Program { line: String, status: ExitStatus },
    /// A program could not be started at all.
    NotStarted { line: String, source: io::Error },
    /// The machine lacks something we may not, or could not, install.
    Missing { what: &'static str, next: String },
    /// The cluster for the tests did not come up.
    Cluster(baton_testing::cluster::Error),
    /// A file or folder of our own could not be read or written.
    File { doing: &'static str, path: PathBuf, source: io::Error },
    /// The house is not tidy.
    Untidy { findings: usize },
    /// What was built is not what was asked for.
    Unfit { path: PathBuf, what: &'static str },
}

impl Failure {
    pub(crate) fn file(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::File { doing, path: path.to_owned(), source }
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(if matches!(self, Self::Usage { .. }) { 2 } else { 1 })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage { verb, word } => write!(
                formatter,
                "{word:?} is not an option of it; see `cargo xtask {verb} --help`"
            ),
            Self::Program { line, status } => write!(formatter, "`{line}` failed: {status}"),
            Self::NotStarted { line, source } => {
                write!(formatter, "`{line}` could not be started: {source}")
            }
            Self::Missing { what, next } => write!(formatter, "{what} is missing. Next: {next}"),
            Self::Cluster(error) => write!(formatter, "PostgreSQL for the tests: {error}"),
            Self::File { doing, path, source } => {
                write!(formatter, "{doing} {}: {source}", path.display())
            }
            Self::Untidy { findings: 1 } => write!(formatter, "1 finding"),
            Self::Untidy { findings } => write!(formatter, "{findings} findings"),
            Self::Unfit { path, what } => write!(formatter, "{}: {what}", path.display()),
        }
    }
}
