//! Why a branch does not land, in words, with the one next step.
//!
//! Owns the sentences. None of them suggests to force anything.

use baton_core::landings::Refused;
use serde_json::{Value, json};

use crate::render::{ago, shown, until};

pub(super) fn of(refused: &Refused) -> (String, String, Value) {
    match refused {
        Refused::NoRepository => (
            "there is no git repository here".to_owned(),
            "run it inside the repository".to_owned(),
            json!({}),
        ),
        Refused::NoBranch { branch } => (
            format!("there is no branch \"{}\"", shown(branch)),
            "git branch --list".to_owned(),
            json!({ "branch": branch }),
        ),
        Refused::NoBranchHere => {
            ("HEAD stands on no branch".to_owned(), "baton land BRANCH".to_owned(), json!({}))
        }
        Refused::IsTarget { target } => (
            format!("{} is what others land on; name the branch that is to land", shown(target)),
            "baton land BRANCH".to_owned(),
            json!({ "target": target }),
        ),
        Refused::NoTarget { target } => (
            format!("there is no branch {} to land on", shown(target)),
            "set [queue] target in baton.toml, then a person runs baton trust".to_owned(),
            json!({ "target": target }),
        ),
        Refused::NoBase { branch, target, shallow } => no_base(branch, target, *shallow),
        Refused::Nothing { branch, target } => (
            format!("{} has nothing that {} has not", shown(branch), shown(target)),
            "baton commit -m MSG, then baton land".to_owned(),
            json!({ "branch": branch, "target": target }),
        ),
        Refused::Held { .. } | Refused::Lost { .. } => by_claims(refused),
        other => in_line(other),
    }
}

/// What the claims of others keep out.
fn by_claims(refused: &Refused) -> (String, String, Value) {
    match refused {
        Refused::Held { branch, path, by, until: end } => (
            format!(
                "{} changes {}, which {} holds everywhere{}",
                shown(branch),
                shown(path),
                shown(&by.name),
                end.map(|end| format!(" until {}", until(end))).unwrap_or_default()
            ),
            format!("baton ask {} --why \"it is to land\"", shown(path)),
            json!({ "branch": branch, "path": path, "by": by, "until": end }),
        ),
        Refused::Lost { branch, path, to, commit } => (
            format!(
                "{} changes {}, which went over to {}; what {} landed since is not in it",
                shown(branch),
                shown(path),
                shown(&to.name),
                shown(&to.name)
            ),
            "put the branch upon what they landed (baton sync --pull in its tree), then land"
                .into(),
            json!({ "branch": branch, "path": path, "to": to, "commit": commit }),
        ),
        other => (other.to_string(), "baton queue list".to_owned(), json!({})),
    }
}

/// About the line and who moves it on.
fn in_line(refused: &Refused) -> (String, String, Value) {
    match refused {
        Refused::Unknown { landing, near } => (
            format!("there is no landing \"{}\"", shown(landing)),
            "baton queue list --all".to_owned(),
            json!({ "landing": landing, "near": near }),
        ),
        Refused::Over { landing, state } => (
            format!("{landing} is over: it was {}", state.name()),
            format!("baton queue show {landing}"),
            json!({ "landing": landing, "state": state }),
        ),
        Refused::NotOver { landing, state } => (
            format!("{landing} is still in line: {}", state.name()),
            format!("baton queue show {landing}"),
            json!({ "landing": landing, "state": state }),
        ),
        Refused::NotYours { landing, by } => (
            format!(
                "{landing} is {}'s; only it, whoever works on its task, or a person may",
                shown(&by.name)
            ),
            format!("ask a person, or {}", shown(&by.name)),
            json!({ "landing": landing, "by": by }),
        ),
        Refused::Full { max } => (
            format!("{max} landings stand in line, and more are not kept"),
            "baton queue run --once".to_owned(),
            json!({ "max": max }),
        ),
        Refused::LostTurn { current } => (
            match current {
                Some(by) => format!("{} moves the queue on now", shown(&by.name)),
                None => "somebody else ended this turn at the queue".to_owned(),
            },
            "baton queue list".to_owned(),
            json!({ "current": current }),
        ),
        Refused::Running { by } => (
            format!("{} moves the queue on since {}", shown(&by.holder.name), ago(by.since)),
            "baton queue list".to_owned(),
            json!({ "by": by }),
        ),
        Refused::Paused { paused } => (
            format!(
                "{} paused the queue {}{}",
                shown(&paused.by.name),
                ago(paused.at),
                paused.why.as_ref().map(|why| format!(": {}", shown(why))).unwrap_or_default()
            ),
            "ask a person, or whoever paused it, for baton queue resume".to_owned(),
            json!({ "paused": paused }),
        ),
        Refused::Moved => (
            "the target or the line changed meanwhile".to_owned(),
            "baton queue list".to_owned(),
            json!({}),
        ),
        other => (other.to_string(), "baton queue list".to_owned(), json!({})),
    }
}

fn no_base(branch: &str, target: &str, shallow: bool) -> (String, String, Value) {
    let (shown_branch, shown_target) = (shown(branch), shown(target));
    let (why, next) = match shallow {
        true => ("; this clone is shallow, so that may only look so", "git fetch --unshallow"),
        false => ("", "make the branch from the target, and bring the work over"),
    };
    (
        format!("{shown_branch} has no history in common with {shown_target}{why}"),
        next.to_owned(),
        json!({ "branch": branch, "target": target, "shallow": shallow }),
    )
}
