//! Deploys as sentences.
//!
//! Owns what the journal says of each; names of targets and commits are quoted data.

use baton_core::deploy::Outcome;
use baton_core::event::Event;

use super::Naming;
use crate::render::shown;

pub(super) fn sentence(event: &Event, actor: &str, who: Naming<'_>) -> String {
    let short = |commit: &str| shown(&commit.chars().take(12).collect::<String>());
    match event {
        Event::DeployStarted { deploy } => {
            let verb = if deploy.rollback { "rolls" } else { "deploys" };
            let back = if deploy.rollback { " back to " } else { " to " };
            let (target, commit) = (shown(&deploy.target), short(&deploy.commit));
            match deploy.rollback {
                true => format!("{} {verb} {target}{back}{commit}", who(&deploy.by.name)),
                false => format!("{} {verb} {commit}{back}{target}", who(&deploy.by.name)),
            }
        }
        Event::DeployRenewed { deploy, .. } => format!("{actor} is still at the deploy {deploy}"),
        Event::DeployShipped { deploy, shipped } => {
            format!("{actor} shipped the deploy {deploy}: exit {}", shipped.exit)
        }
        Event::DeployEnded { deploy, end } if end.outcome == Outcome::Unknown => {
            format!("{actor} found the deployer of {deploy} gone: what came of it is unknown")
        }
        Event::DeployEnded { deploy, end } => {
            format!("{actor} ended the deploy {deploy}: {}", end.outcome.name())
        }
        Event::RolledBack { target, from, to, .. } => {
            let from = from.as_deref().map(|from| format!(" from {}", short(from)));
            let from = from.unwrap_or_default();
            format!("{actor} rolled {} back{from} to {}", shown(target), short(to))
        }
        _ => String::new(),
    }
}

#[cfg(test)]
pub(super) fn samples() -> Vec<(&'static str, serde_json::Value)> {
    use serde_json::json;

    let at = "2026-01-02T03:04:05Z";
    let commit = "0123456789abcdef0123456789abcdef01234567";
    let deploy = |rollback: bool| {
        json!({ "deploy": {
            "deploy": "1.9", "target": "prod", "commit": commit, "rollback": rollback,
            "by": { "session": "s1", "name": "otter" }, "run": ["make\u{1b}"], "claim": "c1",
            "host": "h", "folder": "/tmp/x", "log": "/tmp/l", "started_at": at, "renewed_at": at,
            "lease_until": at,
        }})
    };
    let ended = |outcome: &str| {
        let end = json!({ "at": at, "outcome": outcome });
        json!({ "deploy": "1.9", "end": end })
    };
    vec![
        ("deploy_started", deploy(false)),
        ("deploy_started", deploy(true)),
        ("deploy_renewed", json!({ "deploy": "1.9", "at": at, "lease_until": at })),
        ("deploy_shipped", json!({ "deploy": "1.9", "shipped": { "at": at, "exit": 0 } })),
        ("deploy_ended", ended("succeeded")),
        ("deploy_ended", ended("unknown")),
        ("rolled_back", json!({ "deploy": "1.9", "target": "prod", "from": commit, "to": commit })),
    ]
}
