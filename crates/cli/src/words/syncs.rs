//! Why the remote could not be compared, or nothing was pulled, in words, with the one next step.
//!
//! Owns the sentences. "Offline" is its own answer and never "in sync".

use baton_core::syncs::Refused;
use serde_json::{Value, json};

use crate::render::shown;

pub(super) fn of(refused: &Refused) -> (String, String, Value) {
    match refused {
        Refused::NoRemote { remote } => (
            format!("there is no remote \"{}\"", shown(remote)),
            "git remote -v, then baton sync --remote NAME".to_owned(),
            json!({ "remote": remote }),
        ),
        Refused::BadBranch { branch } => (
            format!("\"{}\" is no name of a branch", shown(branch)),
            "baton sync --branch main".to_owned(),
            json!({ "branch": branch }),
        ),
        Refused::NoBranch { remote, branch } => (
            format!("{} has no branch {}", shown(remote), shown(branch)),
            format!("baton sync --remote {} --branch NAME", shown(remote)),
            json!({ "remote": remote, "branch": branch }),
        ),
        Refused::Offline { remote, why } => (
            format!("offline: {} cannot be reached: {}", shown(remote), shown(why)),
            "try again when the remote answers".to_owned(),
            json!({ "remote": remote, "why": why }),
        ),
        Refused::Unborn => (
            "nothing was committed here yet".to_owned(),
            "baton commit -m MSG PATH".to_owned(),
            json!({}),
        ),
        Refused::NoBranchHere => (
            "HEAD stands on no branch: there is nothing that could follow the remote".to_owned(),
            "git switch BRANCH".to_owned(),
            json!({}),
        ),
        Refused::Overlap { paths } => (
            format!("uncommitted work lies where commits come in: {}", listed(paths)),
            "baton commit -m MSG PATH, with what is yours of it".to_owned(),
            json!({ "paths": paths }),
        ),
        Refused::Conflict { commit, paths } => (
            format!("commit {} conflicts with what comes in: {}", short(commit), listed(paths)),
            format!("git show {}, and work it in by hand", short(commit)),
            json!({ "commit": commit, "paths": paths }),
        ),
        Refused::Merge { commit } => (
            format!("commit {} is a merge, which is not moved by itself", short(commit)),
            "merge the remote's branch by hand".to_owned(),
            json!({ "commit": commit }),
        ),
    }
}

fn short(commit: &str) -> String {
    shown(commit).chars().take(12).collect()
}

fn listed(paths: &[String]) -> String {
    let paths: Vec<String> = paths.iter().map(|path| shown(path)).collect();
    paths.join(", ")
}
