//! Everything that can keep a request from being answered with "done".
//!
//! Owns the sum of the error spaces; each door maps it to its own codes and words in one table.

use std::path::PathBuf;

use baton_core::refusal::{Class, Refusal};
use baton_core::resource::Resource;

use crate::{archive, export, git, place, sandbox, store, trees};

#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error(transparent)] // The refusal is the whole answer; nothing is to be added to it.
    Refused(#[from] Refusal),
    #[error("the store could not answer")]
    Store(#[from] store::Error),
    #[error("the folder could not be placed")]
    Place(#[from] place::Error),
    #[error("the path could not be placed")]
    Path(#[from] place::identity::Error),
    #[error("git could not answer")]
    Git(#[from] git::Error),
    #[error("the archive cannot be used")]
    Archive(#[from] archive::Error),
    #[error("the export could not be made")]
    Export(#[from] export::Error),
    #[error("{path} cannot be used")]
    Config { path: PathBuf, line: Option<usize>, detail: String },
    #[error("{path}, which Baton wrote, cannot be read: {detail}")]
    Record { path: PathBuf, detail: String },
    #[error("the workspace of this folder is in {from}, from before it was a repository")]
    BeforeGit { root: PathBuf, from: PathBuf, to: PathBuf },
    #[error("{path} line {line}, column {column}: {detail}")]
    Malformed { path: PathBuf, line: usize, column: usize, detail: String },
    #[error("the patch does not apply: {why}")]
    DoesNotApply { suggestion: String, path: Resource, why: String },
    #[error("there is no such check: {why}")]
    NoSuchCheck { name: Option<String>, known: Vec<String>, why: &'static str },
    #[error("{root} is a workspace already, and this repository lies in it")]
    Nested { root: PathBuf, submodule: bool },
    #[error("{path} cannot hold a store: {why}")]
    StorePlace { path: PathBuf, why: &'static str },
    #[error("{folder} is too wide for a workspace")]
    TooWide { folder: PathBuf },
    #[error("the shared store knows this repository already")]
    KnownThere { workspaces: Vec<String> },
    #[error("this clone belongs to workspace {here} already")]
    OtherWorkspace { here: String, wanted: String },
    #[error("workspace {wanted} is not on the shared store")]
    NoSuchWorkspace { wanted: String },
    #[error("joining needs a shared store")]
    JoinNeedsStore,
    #[error("there is no {path}")]
    NoConfig { path: PathBuf },
    #[error("{path} cannot hold a person token: {why}")]
    TokenPlace { path: PathBuf, why: &'static str },
    #[error("{given:?} is not a credential")]
    BadCredentialText { given: String },
    #[error("process {pid} cannot be seen from here")]
    NoSuchProcess { pid: u32 },
    #[error("the person token cannot be used: {why}")]
    PersonToken { path: PathBuf, why: &'static str },
    #[error("several agents are named by the environment: {}", clients.join(", "))]
    SeveralAgents { clients: Vec<String> },
    #[error(transparent)] // What it says is the whole answer.
    Tree(Box<trees::Error>),
    #[error(transparent)] // What it says is the whole answer.
    Sandbox(Box<sandbox::Error>),
    #[error("{doing}: {path}")]
    File { doing: &'static str, path: PathBuf, source: std::io::Error },
}

impl Failure {
    pub fn class(&self) -> Class {
        match self {
            Self::Refused(refusal) => refusal.class(),
            Self::Tree(error) if matches!(**error, trees::Error::LeftBehind { .. }) => {
                Class::Unanswered
            }
            Self::Tree(_) => Class::Refused,
            Self::Path(place::identity::Error::Outside { .. }) => Class::Refused,
            Self::Path(place::identity::Error::GitDir { .. }) => Class::Refused,
            Self::Path(place::identity::Error::Unreadable { .. }) => Class::Unanswered,
            Self::Path(_) | Self::BadCredentialText { .. } => Class::Usage,
            Self::NoSuchProcess { .. } | Self::Config { .. } => Class::Usage,
            Self::Malformed { .. } | Self::NoSuchCheck { .. } => Class::Usage,
            Self::SeveralAgents { .. } | Self::PersonToken { .. } => Class::Refused,
            Self::Nested { .. } | Self::TooWide { .. } | Self::KnownThere { .. } => Class::Refused,
            Self::DoesNotApply { .. } => Class::Refused,
            Self::OtherWorkspace { .. } | Self::NoSuchWorkspace { .. } => Class::Refused,
            Self::StorePlace { .. } | Self::BeforeGit { .. } => Class::Refused,
            Self::JoinNeedsStore | Self::NoConfig { .. } => Class::Usage,
            Self::TokenPlace { .. } => Class::Refused,
            Self::Place(place::Error::BareRepository { .. }) => Class::Refused,
            Self::Store(store::Error::BadAddress { .. }) => Class::Usage,
            Self::Archive(archive::Error::Busy | archive::Error::Taken { .. }) => Class::Refused,
            Self::Store(store::Error::Exists { .. }) => Class::Refused,
            Self::Export(
                export::Error::InsideGit { .. }
                | export::Error::NotOurs { .. }
                | export::Error::NotAFolder { .. }
                | export::Error::NoRepository
                | export::Error::TooLarge,
            ) => Class::Refused,
            Self::Sandbox(error) if error.is_refusal() => Class::Refused,
            Self::Store(_)
            | Self::Place(_)
            | Self::Git(_)
            | Self::Sandbox(_)
            | Self::Archive(_)
            | Self::Export(export::Error::Io { .. })
            | Self::Record { .. }
            | Self::File { .. } => Class::Unanswered,
        }
    }
}
