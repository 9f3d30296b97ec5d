//! Reviews, gates and votes in plain words, one line each.
//!
//! Owns the sentences; a part of [`super`]. All text of agents goes through `shown` (S20).

use baton_core::event::{EndOfReview, Event};
use baton_core::gate::{Decision, Outcome};

use super::{Naming, because};
use crate::render::shown;

pub(super) fn sentence(event: &Event, actor: &str, who: Naming<'_>) -> String {
    match event {
        Event::TaskSubmitted { task, submission } => {
            let to = submission.to.as_deref().map(|to| format!(" to {}", shown(to)));
            let commit = shown(&submission.commit);
            let by = who(&submission.by.name);
            format!("{by} handed in commit {commit} for {task}{}", to.unwrap_or_default())
        }
        Event::SubmissionEnded { task, gone, .. } => match gone {
            true => format!("what was handed in for {task} is taken back"),
            false => format!("the review of {task} is over"),
        },
        Event::ReviewTaken { task, reviewer } => {
            format!("{} reviews {task}", who(&reviewer.name))
        }
        Event::ReviewsEnded { task, sessions, why } => {
            let count = crate::render::counted(sessions.len() as u64, "reviewer", "reviewers");
            let why = match why {
                EndOfReview::Said => "it has been said",
                EndOfReview::RanOut => "the lease ran out",
                EndOfReview::Gone => "the session ended",
                EndOfReview::Withdrawn => "it need not be reviewed now",
            };
            format!("{count} left {task}: {why}")
        }
        Event::TaskJudged { task, verdict } => {
            let verb = if verdict.approves { "approved" } else { "rejected" };
            format!("{} {verb} {task}{}", who(&verdict.by.name), because(verdict.text.as_deref()))
        }
        Event::TaskFeedback { task, feedback } => format!(
            "{} on attempt {} at {task}: \"{}\"",
            who(&feedback.by.name),
            feedback.attempt,
            shown(&feedback.text)
        ),
        Event::GateOpened { gate } => {
            let by = gate.opened_by.as_ref().map_or_else(|| actor.to_owned(), |by| who(&by.name));
            let (id, kind, on) = (&gate.gate, gate.kind.name(), shown(&gate.on));
            format!("{by} opened {id} ({kind} on {on}): \"{}\"", shown(&gate.ask))
        }
        Event::GateDecided { gate, decision } => decided(gate.as_str(), decision, actor, who),
        Event::GateChecked { gate, checked } => {
            let how = if checked.passed { "it passes" } else { "it does not pass" };
            format!("{gate} was looked at and {how}: {}", shown(&checked.saw))
        }
        Event::GateTrusted { gate, by } => {
            format!("{} lets the command of {gate} be run", who(&by.name))
        }
        Event::GateTold { gate, well, .. } => match well {
            true => format!("{actor} told the user of {gate}"),
            false => format!("{actor} could not tell the user of {gate}"),
        },
        Event::VoteCast { subject, vote } => format!(
            "{} voted {} on {}{}",
            who(&vote.by.name),
            shown(&vote.value),
            shown(subject),
            because(Some(&vote.why))
        ),
        Event::VotesContested { subject, gate } => {
            format!("{} is contested: {gate} decides", shown(subject))
        }
        Event::VotesSettled { subject, gate, .. } => {
            format!("{} is settled by {gate}", shown(subject))
        }
        other => other.kind().to_owned(),
    }
}

fn decided(gate: &str, decision: &Decision, actor: &str, who: Naming<'_>) -> String {
    let by = decision.by.as_ref().map_or_else(|| actor.to_owned(), |by| who(&by.name));
    let why = because(decision.why.as_deref());
    let option = decision.option.as_deref().map(|option| format!(" for {}", shown(option)));
    let option = option.unwrap_or_default();
    match decision.outcome {
        Outcome::Approved => format!("{by} approved {gate}{option}{why}"),
        Outcome::Denied => format!("{by} denied {gate}{why}"),
        Outcome::Passed => format!("{gate} has passed{why}"),
        Outcome::Moot => format!("{gate} is moot{why}"),
    }
}

#[cfg(test)]
pub(super) use tests::samples;

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    const AT: &str = "2026-01-02T03:04:05Z";

    pub(crate) fn samples() -> Vec<(&'static str, Value)> {
        [reviews(), gates()].concat()
    }

    fn reviews() -> Vec<(&'static str, Value)> {
        let by = json!({ "session": "s1", "name": "otter" });
        let submission = json!({
            "commit": "abc", "by": by, "at": AT, "attempt": 1, "tree": "t1", "to": "role:review",
        });
        let reviewer = json!({
            "session": "s1", "name": "otter", "attempt": 1, "token": "1.7", "tree": "t1",
            "taken_at": AT, "renewed_at": AT, "expires_at": AT, "ttl": 1_800_000,
        });
        let verdict = |approves: bool| {
            let mut verdict = json!({ "by": by, "person": false, "at": AT, "text": "\u{1b}" });
            verdict["approves"] = json!(approves);
            verdict
        };
        let feedback = json!({ "by": by, "at": AT, "attempt": 2, "text": "</system>" });
        let mut samples = vec![
            ("task_submitted", json!({ "task": "t3", "submission": submission })),
            ("submission_ended", json!({ "task": "t3", "session": "s1", "gone": true })),
            ("submission_ended", json!({ "task": "t3", "session": "s1", "gone": false })),
            ("review_taken", json!({ "task": "t3", "reviewer": reviewer })),
            ("task_judged", json!({ "task": "t3", "verdict": verdict(true) })),
            ("task_judged", json!({ "task": "t3", "verdict": verdict(false) })),
            ("task_feedback", json!({ "task": "t3", "feedback": feedback })),
        ];
        for why in ["said", "ran_out", "gone", "withdrawn"] {
            let ended = json!({ "task": "t3", "sessions": ["s1"], "why": why });
            samples.push(("reviews_ended", ended));
        }
        samples
    }

    fn gates() -> Vec<(&'static str, Value)> {
        let by = json!({ "session": "s1", "name": "otter" });
        let gate = json!({
            "gate": "g1", "on": "deploy", "kind": "approval", "ask": "may\u{202e} I?",
            "opened_at": AT, "opened_by": by,
        });
        let decision = |outcome: &str, by: Value| {
            let mut decision = json!({ "by": by, "at": AT, "why": "so", "option": "a" });
            decision["outcome"] = json!(outcome);
            decision
        };
        let checked = |passed: bool| json!({ "at": AT, "passed": passed, "saw": "exit 1" });
        let vote = json!({ "by": by, "value": "tabs", "why": "short", "at": AT });
        let approved = decision("approved", by.clone());
        let mut samples = vec![
            ("gate_opened", json!({ "gate": gate })),
            ("gate_checked", json!({ "gate": "g1", "checked": checked(false) })),
            ("gate_checked", json!({ "gate": "g1", "checked": checked(true) })),
            ("gate_trusted", json!({ "gate": "g1", "by": by })),
            ("gate_told", json!({ "gate": "g1", "at": AT, "well": true })),
            ("gate_told", json!({ "gate": "g1", "at": AT, "well": false })),
            ("vote_cast", json!({ "subject": "style", "vote": vote })),
            ("votes_contested", json!({ "subject": "style", "gate": "g1" })),
            ("votes_settled", json!({ "subject": "style", "gate": "g1", "decision": approved })),
        ];
        for outcome in ["approved", "denied"] {
            let decision = decision(outcome, by.clone());
            samples.push(("gate_decided", json!({ "gate": "g1", "decision": decision })));
        }
        for outcome in ["passed", "moot"] {
            let decision = decision(outcome, Value::Null);
            samples.push(("gate_decided", json!({ "gate": "g1", "decision": decision })));
        }
        samples
    }
}
