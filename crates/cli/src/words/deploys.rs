//! Why nothing is deployed, in words, with the one next step.
//!
//! Owns the sentences. No step ships anything that was refused: it is finished, approved or
//! brought up to date first.

use baton_core::deploys::{Placeholder, Refused};
use serde_json::{Value, json};

use super::word;
use crate::render::{ago, counted, holder, shown};

const COMMIT_SHOWN: usize = 12;

fn short(commit: &str) -> String {
    shown(&commit.chars().take(COMMIT_SHOWN).collect::<String>())
}

pub(super) fn of(refused: &Refused) -> (String, String, Value) {
    match refused {
        Refused::NoTarget { target, known } => {
            let known: Vec<String> = known.iter().map(|one| shown(one)).collect();
            let next = match known.is_empty() {
                true => "write [deploy.TARGET] in baton.toml; a person runs baton trust".to_owned(),
                false => format!("name one of: {}", known.join(", ")),
            };
            let message = format!("baton.toml in force has no target \"{}\"", shown(target));
            (message, next, json!({ "known": known }))
        }
        Refused::Running(deploy) => (
            format!(
                "{} is being deployed by {} since {}: commit {}",
                shown(&deploy.target),
                holder(&deploy.by),
                ago(deploy.started_at),
                short(&deploy.commit)
            ),
            format!("baton deploys {}, and try again when it has ended", word(&deploy.target)),
            json!({ "deploy": deploy }),
        ),
        Refused::Behind { commit, landed, behind } => (
            format!(
                "{} lacks {} of {}: shipping it would undo them",
                short(commit),
                counted(*behind, "commit", "commits"),
                shown(landed)
            ),
            "baton sync --pull, then deploy what comes of it".to_owned(),
            json!({ "commit": commit, "behind": behind, "landed": landed }),
        ),
        Refused::Older { commit, live } => (
            format!(
                "{} is older than what is live: {} by {}, {}; that would be a rollback",
                short(commit),
                short(&live.commit),
                holder(&live.by),
                ago(live.started_at)
            ),
            "deploy a commit that contains what is live".to_owned(),
            json!({ "commit": commit, "live": live }),
        ),
        Refused::NeverLive { target, commit, known } => {
            let known: Vec<String> = known.iter().map(|one| short(one)).collect();
            let next = format!("baton deploys {}, which lists what was live", word(target));
            let before = match known.is_empty() {
                true => "nothing was".to_owned(),
                false => format!("there were {}", known.join(", ")),
            };
            let message =
                format!("{} was never live at {}: {before}", short(commit), shown(target));
            (message, next, json!({ "known": known }))
        }
        Refused::NothingBefore { target } => (
            format!("nothing was live at {} before what is live now", shown(target)),
            format!("baton deploys {}", word(target)),
            json!({}),
        ),
        other => more(other),
    }
}

fn more(refused: &Refused) -> (String, String, Value) {
    match refused {
        Refused::Placeholders { places, more } => {
            let one = |place: &Placeholder| {
                format!("{}:{} {}", shown(&place.path), place.line, shown(&place.word))
            };
            let told: Vec<String> = places.iter().map(one).collect();
            let rest = if *more { " and more" } else { "" };
            (
                format!("unfinished text would ship: {}{rest}", told.join(", ")),
                "finish it and commit, or name what ships in `paths` of the target".to_owned(),
                json!({ "places": places, "more": more }),
            )
        }
        Refused::Gated { gate, target, commit, opened } => {
            let opened = if *opened { "is asked now" } else { "was asked and has not decided" };
            (
                format!("a person {opened} about {} at {}: {gate}", short(commit), shown(target)),
                format!("a person runs baton gate approve {gate} --why '…', then deploy again"),
                json!({ "gate": gate, "commit": commit }),
            )
        }
        Refused::Denied { gate, target, commit, why } => {
            let why = why.as_ref().map(|why| format!(": \"{}\"", shown(why))).unwrap_or_default();
            (
                format!("a person denied {} at {} ({gate}){why}", short(commit), shown(target)),
                "change what was denied and deploy that commit".to_owned(),
                json!({ "gate": gate, "commit": commit }),
            )
        }
        Refused::NoBranch { branch } => (
            format!("there is no branch {} here to compare with", shown(branch)),
            "set [queue] target, or `branch` of the target, in baton.toml".to_owned(),
            json!({ "branch": branch }),
        ),
        Refused::Over { deploy, state } => (
            format!("the deploy {deploy} is over: {state}"),
            "baton deploys".to_owned(),
            json!({ "deploy": deploy, "state": state }),
        ),
        other => (other.to_string(), "try again".to_owned(), json!({})),
    }
}
