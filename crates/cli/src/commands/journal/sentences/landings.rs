//! The merge queue as sentences.
//!
//! Owns what the journal says of each; branches and reasons are quoted data.

use baton_core::event::Event;
use baton_core::id::LandingId;

use super::Naming;
use crate::render::{counted, resources, shown};

/// How much of a commit's id is shown.
const COMMIT_SHOWN: usize = 12;

fn listed(landings: &[LandingId]) -> String {
    let names: Vec<&str> = landings.iter().map(LandingId::as_str).collect();
    names.join(", ")
}

fn short(commit: &str) -> String {
    shown(commit).chars().take(COMMIT_SHOWN).collect()
}

pub(super) fn sentence(event: &Event, actor: &str, who: Naming<'_>) -> String {
    match event {
        Event::ClaimLost { lost } => {
            let what = resources(&lost.resources);
            format!("{what} went over to {}: its time had run out", who(&lost.to.name))
        }
        Event::LandingQueued { landing } => {
            let task = landing.task.as_ref().map(|task| format!(" for {task}")).unwrap_or_default();
            let (branch, target) = (shown(&landing.branch), shown(&landing.target));
            let name = who(&landing.by.name);
            format!("{name} put {branch} in line for {target}{task} as {}", landing.landing)
        }
        Event::LandingsWaiting { landings, .. } => format!("{} in line again", listed(landings)),
        Event::LandingsChecking { landings, .. } => {
            format!("{actor} is checking {}", listed(landings))
        }
        Event::LandingHeld { landing, reason, .. } => {
            format!("{landing} stays in line: {}", shown(reason))
        }
        Event::LandingReturned { landing, reason, .. } => {
            format!("{landing} was returned: {}", shown(reason))
        }
        Event::LandingRemoved { landing, by, reason, .. } => {
            format!("{} took {landing} out of line: {}", who(&by.name), shown(reason))
        }
        Event::LandingProposed { landing, commit, .. } => {
            format!("{actor} opened a request for {landing} at {}", short(commit))
        }
        Event::TreeVerified { verified, .. } => {
            format!("all checks passed on the tree {}", short(&verified.tree))
        }
        Event::CheckFlaky { landing, .. } => {
            format!("a check of {landing} failed and then passed on the same tree")
        }
        Event::TargetMoving { moving } => {
            let (target, to) = (shown(&moving.target), short(&moving.to));
            format!("{actor} is moving {target} from {} to {to}", short(&moving.from))
        }
        Event::TargetNotMoved { .. } => "the target was not moved".to_owned(),
        Event::LandingsLanded { moved, .. } => {
            let landings: Vec<LandingId> =
                moved.landings.iter().map(|(landing, _)| landing.clone()).collect();
            let checked = if moved.checked { "" } else { ", unchecked" };
            let count = counted(landings.len() as u64, "branch", "branches");
            let (target, to) = (shown(&moved.target), short(&moved.to));
            format!("{count} landed on {target} at {to}{checked}: {}", listed(&landings))
        }
        Event::QueueRunnerStarted { runner } => {
            format!("{} moves the queue on", who(&runner.holder.name))
        }
        Event::QueueRunnerRenewed { .. } => format!("{actor} still moves the queue on"),
        Event::QueueRunnerEnded { .. } => format!("{actor} no longer moves the queue on"),
        Event::QueuePaused { paused } => {
            let why = paused.why.as_ref().map(|why| format!(": {}", shown(why)));
            format!("{} paused the queue{}", who(&paused.by.name), why.unwrap_or_default())
        }
        Event::QueueResumed { by, .. } => format!("{} resumed the queue", who(&by.name)),
        _ => String::new(),
    }
}

#[cfg(test)]
pub(super) fn samples() -> Vec<(&'static str, serde_json::Value)> {
    use serde_json::json;

    let at = "2026-01-02T03:04:05Z";
    let by = json!({ "session": "s1", "name": "otter" });
    let landing = json!({
        "landing": "l1", "branch": "baton/t1-x\u{1b}", "target": "main", "tip": "00", "task": "t1",
        "by": by, "tree": "ab12", "queued_at": at, "state": "queued", "since": at,
    });
    let moving = json!({ "target": "main", "from": "0011", "to": "2233",
        "landings": [["l1", "2233"], ["l2", "2234"]], "checked": true });
    let unchecked = json!({ "target": "main", "from": "0011", "to": "2233",
        "landings": [["l1", "2233"]], "checked": false });
    let lost = json!({ "claim": "c1", "session": "s1", "resources": ["a"], "to": by, "at": at });
    vec![
        ("claim_lost", json!({ "lost": lost })),
        ("landing_queued", json!({ "landing": landing })),
        ("landings_waiting", json!({ "landings": ["l1", "l2"], "at": at })),
        ("landings_checking", json!({ "landings": ["l1", "l2"], "at": at })),
        ("landing_held", json!({ "landing": "l1", "cause": "gate", "reason": "g1", "at": at })),
        (
            "landing_returned",
            json!({ "landing": "l1", "cause": "check", "reason": "no\u{1b}", "at": at }),
        ),
        ("landing_removed", json!({ "landing": "l1", "by": by, "at": at, "reason": "late" })),
        ("landing_proposed", json!({ "landing": "l1", "commit": "2233", "at": at })),
        ("tree_verified", json!({ "verified": { "tree": "44", "checks": "55" }, "at": at })),
        ("check_flaky", json!({ "landing": "l1", "tree": "44", "at": at })),
        ("target_moving", json!({ "moving": moving })),
        ("target_not_moved", json!({ "at": at })),
        ("landings_landed", json!({ "moved": moving, "at": at })),
        ("landings_landed", json!({ "moved": unchecked, "at": at })),
        (
            "queue_runner_started",
            json!({ "runner": { "token": "1.2", "holder": by, "since": at,
            "lease_until": at } }),
        ),
        ("queue_runner_renewed", json!({ "token": "1.2", "lease_until": at })),
        ("queue_runner_ended", json!({ "token": "1.2" })),
        ("queue_paused", json!({ "paused": { "by": by, "at": at, "why": "a\u{1b}" } })),
        ("queue_resumed", json!({ "by": by, "at": at })),
    ]
}
