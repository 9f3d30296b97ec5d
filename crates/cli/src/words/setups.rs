//! What can keep a workspace from being set up as asked, in words, with the one next step.
//!
//! Owns the sentences of `init`. No step destroys anything: what is in the way is moved aside.

use std::path::Path;

use baton_engine::failure::Failure;
use serde_json::{Value, json};

use super::{chain, shell_word};
use crate::render::shown;

/// What can keep a workspace from being set up as asked.
pub(super) fn of(failure: &Failure) -> (&'static str, String, String, Value) {
    let (code, message, next) = match failure {
        Failure::Nested { root, submodule } => {
            let what =
                if *submodule { "this is a submodule in" } else { "this repository lies in" };
            let root = shown(&root.display().to_string());
            let message = format!("{what} the workspace {root}, which guards its files already");
            ("nested", message, format!("baton -C {} status", shell_word(&root)))
        }
        Failure::Record { .. } | Failure::BeforeGit { .. } => left_words(failure),
        Failure::StorePlace { path, why } => (
            "store_place",
            format!("{} cannot hold a store: {why}", shown(&path.display().to_string())),
            "look what it is for and move it aside, then baton init".to_owned(),
        ),
        Failure::TooWide { folder } => (
            "too_wide",
            format!(
                "{} holds your home folder: every repository in it would become one workspace",
                shown(&folder.display().to_string())
            ),
            "baton init, in the folder of one project".to_owned(),
        ),
        Failure::KnownThere { workspaces } => {
            let first = workspaces.first().cloned().unwrap_or_default();
            let message = match workspaces.len() {
                1 => format!("the shared store knows this repository already: workspace {first}"),
                _ => format!("the shared store knows it already: {}", workspaces.join(", ")),
            };
            let next = format!("baton init --join {first} (or --new for a separate workspace)");
            ("known_there", message, next)
        }
        Failure::OtherWorkspace { here, wanted } => (
            "other_workspace",
            format!("this clone belongs to workspace {here} already, so it cannot join {wanted}"),
            "baton status, to see the workspace of this clone".to_owned(),
        ),
        Failure::NoSuchWorkspace { wanted } => (
            "no_such_workspace",
            format!("the shared store has no workspace {wanted}"),
            "baton init --json in a clone that belongs to it shows its id".to_owned(),
        ),
        Failure::JoinNeedsStore => (
            "no_shared_store",
            "--join is about a workspace on a shared store, and none is chosen".to_owned(),
            "set BATON_STORE=postgres://user@host/database".to_owned(),
        ),
        Failure::NoConfig { path } => (
            "no_config",
            format!("there is no {}", shown(&path.display().to_string())),
            "baton init, which proposes one".to_owned(),
        ),
        Failure::TokenPlace { path, why } => (
            "token_place",
            format!("{} cannot hold a person token: {why}", shown(&path.display().to_string())),
            "name a new file outside every repository, for example ~/.baton-person".to_owned(),
        ),
        other => ("setup", chain(other), "baton doctor".to_owned()),
    };
    let details = match failure {
        Failure::KnownThere { workspaces } => json!({ "workspaces": workspaces }),
        Failure::OtherWorkspace { here, .. } => json!({ "workspace": here }),
        _ => json!({}),
    };
    (code, message, next, details)
}

/// What of Baton's is there already, and cannot be used as it is.
fn left_words(failure: &Failure) -> (&'static str, String, String) {
    match failure {
        Failure::Record { path, detail } => {
            let path = shown(&path.display().to_string());
            let name = shell_word(&path);
            (
                "damaged_record",
                format!("{path}, in which Baton keeps what it wired, cannot be read: {detail}"),
                format!("mv {name} {name}.damaged, then baton init"),
            )
        }
        Failure::BeforeGit { root, from, to } => {
            let path = |path: &Path| shown(&path.display().to_string());
            let word = |name: &Path| shell_word(&path(name));
            (
                "before_git",
                format!(
                    "the workspace of this folder is in {}, from before it was a repository, and a \
                     new one would know nothing of its tasks and claims",
                    path(from)
                ),
                format!(
                    "end the agents that work in {}; then: mv {} {} && rm -f {} && baton init",
                    path(root),
                    word(from),
                    word(to),
                    word(&root.join(".baton/.gitignore")),
                ),
            )
        }
        other => ("setup", chain(other), "baton doctor".to_owned()),
    }
}
