//! Why a tree cannot be made, removed or restored into, in words, with the one next step.
//!
//! Owns the sentences. No step destroys anything: what keeps a tree is saved, landed or asked for.

use baton_core::trees::refused::{Keep, Refused};
use baton_engine::trees::Error;
use serde_json::{Value, json};

use super::{Problem, word};
use crate::render::{ago, counted, holder, shown, until};

pub(super) fn of(refused: &Refused) -> (String, String, Value) {
    match refused {
        Refused::Taken { what, name, by } => {
            let name = shown(name);
            let (message, next) = match by {
                Some(tree) => (
                    format!(
                        "the {what} {name} belongs to the tree {}, made by {} {}",
                        shown(&tree.path),
                        shown(&tree.by.name),
                        ago(tree.at)
                    ),
                    format!("cd {}, or name another", word(&tree.path)),
                ),
                None => (format!("the {what} {name} is there already"), "name another".to_owned()),
            };
            (message, next, json!({ "what": what, "name": name, "tree": by }))
        }
        Refused::Kept { path, keep } => {
            let (why, next) = keep_words(keep);
            let message = format!("{} is kept: {why}", shown(path));
            (message, next.replace("TREE", &word(path)), json!({ "path": path, "because": keep }))
        }
        Refused::Unknown { given } => (
            format!("there is no \"{}\" here, or more than one", shown(given)),
            "baton worktree list, or baton rescue list".to_owned(),
            json!({}),
        ),
        Refused::GivenUp { tree } => (
            format!("the tree {tree} was given up by somebody who thought its maker dead"),
            "try again".to_owned(),
            json!({ "tree": tree }),
        ),
        Refused::TaskFinished { task, state } => (
            format!("{task} is {}: nobody works on it any more", state.name()),
            "baton task ready".to_owned(),
            json!({ "task": task, "state": state }),
        ),
        Refused::NoPorts { wanted } => (
            format!("{wanted} free ports in a row were not found from 20000 on"),
            "ask for fewer, or let go of ports: baton claims".to_owned(),
            json!({}),
        ),
        Refused::BadName { given } => (
            format!("\"{}\" cannot be used as a name", shown(given)),
            "use lower-case letters, digits and dashes".to_owned(),
            json!({}),
        ),
    }
}

/// Why a tree is kept, and what would change that.
pub(crate) fn keep_words(keep: &Keep) -> (String, String) {
    let (why, next) = match keep {
        Keep::Main => ("it is the main checkout".to_owned(), "baton worktree list"),
        Keep::Dirty { count, first } => (
            format!(
                "uncommitted changes in {}, first {}",
                counted(*count as u64, "file", "files"),
                shown(first)
            ),
            "git -C TREE status, then commit them",
        ),
        Keep::Unfinished { what } => {
            (format!("{} is going on in it", shown(what)), "git -C TREE status")
        }
        Keep::Submodule { path } => (
            format!("the submodule {} has commits that are nowhere else", shown(path)),
            "push them from there first",
        ),
        Keep::Unmerged { commits } => {
            (format!("{commits} commits on it are on no other branch"), "merge its branch first")
        }
        Keep::NotLanded { target: Some(target) } => {
            (format!("its commits are not in {} yet", shown(target)), "merge its branch first")
        }
        Keep::NotLanded { target: None } => {
            ("it is not known where work lands".to_owned(), "set [queue] target in baton.toml")
        }
        Keep::Claimed { holder: by, until: end } => (
            format!("{} holds it until {}", holder(by), until(*end)),
            "ask its holder to remove it when it is done",
        ),
        Keep::InUse { session, since } => (
            format!("{} works there since {}", shown(session), ago(*since)),
            "wait until that session has ended: baton session list",
        ),
        Keep::Process { pid, name } => (
            format!("process {pid} ({}) works there", shown(name)),
            "leave that folder with it, or wait until it has ended",
        ),
        Keep::Locked { why } if why.is_empty() => {
            ("it is locked by git".to_owned(), "git worktree list --verbose")
        }
        Keep::Locked { why } => {
            (format!("it is locked by git: {}", shown(why)), "git worktree list --verbose")
        }
        Keep::TaskOpen { task, state } => {
            let next = format!("baton task show {task}");
            return (format!("its task {task} is {}", state.name()), next);
        }
        Keep::BeingMade { by } => {
            (format!("{} is making it", holder(by)), "wait until it is made: baton worktree list")
        }
        Keep::NotOurs => ("Baton did not make it".to_owned(), "baton worktree remove TREE"),
    };
    (why, next.to_owned())
}

pub(super) fn failure(error: &Error) -> (&'static str, String, String, Value) {
    let (code, next) = match error {
        Error::NoRepository => ("no_repository", "git init, then baton init".to_owned()),
        Error::NoCommit => ("no_commit", "make the first commit".to_owned()),
        Error::NoBase { .. } => ("no_base", "git branch --all, to see what there is".to_owned()),
        Error::FolderThere { .. } => ("folder_there", "choose another with --dir".to_owned()),
        Error::BadFolder { .. } => ("bad_folder", "choose another with --dir".to_owned()),
        Error::NotCopied { .. } => ("not_copied", "name files within this tree".to_owned()),
        Error::Setup { .. } => {
            ("setup_failed", "mend what it says; nothing of the tree was left".to_owned())
        }
        Error::Stopped => ("stopped", "nothing of the tree was left; try again".to_owned()),
        Error::Step { .. } => {
            ("not_made", "check that the folder can be written and has room".to_owned())
        }
        Error::Rescue { .. } => {
            ("not_restored", "baton rescue restore NAME --branch BRANCH".to_owned())
        }
        Error::LeftBehind { second, .. } => {
            let why = shown(&second.to_string());
            let message = format!("{}: {why}", shown(&error.to_string()));
            return ("left_behind", message, "baton worktree gc, which goes on".into(), json!({}));
        }
    };
    (code, shown(&error.to_string()), next, json!({}))
}

/// Kept here for the table of refusals.
pub(super) fn problem(error: &Error, exit: u8) -> Problem {
    let (code, message, next, details) = failure(error);
    Problem { exit, code, message, next, details }
}
