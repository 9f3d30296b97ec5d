//! What is missing before a task is done, in words: all of it, and the one next step.
//!
//! Owns the sentences. The next step is the one for what is mended first.

use baton_core::tasks::evidence::{Missing, Unchecked};
use baton_core::tasks::refused::Brief;
use serde_json::{Value, json};

use super::tasks::named;
use crate::render::shown;

pub(super) fn unproven(task: &Brief, missing: &[Missing]) -> (String, String, Value) {
    let parts: Vec<String> = missing.iter().map(sentence).collect();
    let message = format!("{} cannot be done yet: {}", named(task), parts.join("; "));
    let next = missing.first().map_or_else(String::new, |first| step(task, first));
    (message, next, json!({ "task": task, "missing": missing }))
}

fn sentence(missing: &Missing) -> String {
    match missing {
        Missing::Commit { named: Some(named) } => {
            format!("there is no commit \"{}\"", shown(named))
        }
        Missing::Commit { named: None } => "there is no commit".to_owned(),
        Missing::Uncommitted { paths } => format!("not committed: {}", listed(paths)),
        Missing::Elsewhere { commit } => {
            format!("commit {} changes none of its paths", short(commit))
        }
        Missing::Superseded { commit, paths } => {
            format!("changed after commit {}: {}", short(commit), listed(paths))
        }
        Missing::Check { name, why } => {
            let name = shown(name);
            match why {
                Unchecked::NeverRun => format!("check {name} was not run"),
                Unchecked::Failed { exit } => format!("check {name} failed with {exit}"),
                Unchecked::ChangedSince => format!("the tree was changed after check {name}"),
                Unchecked::ChangedMeanwhile => format!("the tree was changed while {name} ran"),
            }
        }
        Missing::Review { commit: Some(commit) } => {
            format!("commit {} is not approved", short(commit))
        }
        Missing::Review { commit: None } => "no commit is approved".to_owned(),
        Missing::Landed { commit, target } => {
            let what = commit.as_deref().map_or_else(|| "nothing".to_owned(), short);
            match target {
                Some(target) => format!("{what} is not in {}", shown(target)),
                None => "there is no branch to land in".to_owned(),
            }
        }
    }
}

fn step(task: &Brief, missing: &Missing) -> String {
    let id = &task.task;
    match missing {
        Missing::Commit { .. } | Missing::Uncommitted { .. } => {
            "git commit, with everything that belongs to the task".to_owned()
        }
        Missing::Elsewhere { .. } | Missing::Superseded { .. } => {
            format!("baton task done {id} --commit SHA, with the commit that holds the work")
        }
        Missing::Check { name, .. } => format!("baton task check {id} {}", shown(name)),
        Missing::Review { commit } => {
            let commit = commit.as_deref().unwrap_or("SHA");
            format!("baton task submit {id} --commit {}", shown(commit))
        }
        Missing::Landed { target: Some(target), .. } => {
            format!("bring it into {}, then baton task done {id}", shown(target))
        }
        Missing::Landed { target: None, .. } => {
            "name the branch as target under [queue] in baton.toml".to_owned()
        }
    }
}

fn short(commit: &str) -> String {
    shown(commit).chars().take(12).collect()
}

fn listed(paths: &[String]) -> String {
    let paths: Vec<String> = paths.iter().map(|path| shown(path)).collect();
    paths.join(", ")
}
