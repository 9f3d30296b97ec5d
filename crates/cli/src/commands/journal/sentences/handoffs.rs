//! Events about handoffs and checkpoints in plain words, one line each.
//!
//! Owns the sentences. All text that came from an agent goes through `shown` (S20).

use baton_core::event::Event;
use baton_core::handoff::End;

use super::{Naming, time};
use crate::commands::handoff::to_words;
use crate::render::{counted, shown};

pub(super) fn sentence(event: &Event, actor: &str, who: Naming<'_>) -> String {
    match event {
        Event::TaskCheckpointed { task, checkpoint } => {
            let files = checkpoint.known.work.changed.len() as u64;
            let files = counted(files, "changed file", "changed files");
            format!(
                "what is known of {}'s work on {task} was saved: {files}",
                who(&checkpoint.by.name)
            )
        }
        Event::HandoffOffered { handoff } => {
            let nothing_new = if handoff.progress { "" } else { ", with nothing new" };
            format!(
                "{} offered {} to {} as {} until {}{nothing_new}, next: {}",
                who(&handoff.from.name),
                handoff.task,
                to_words(&handoff.to),
                handoff.handoff,
                time(handoff.until),
                shown(&handoff.said.next)
            )
        }
        Event::HandoffDeclined { handoff, declined } => format!(
            "{} declined {handoff}, saying: \"{}\"",
            who(&declined.by.name),
            shown(&declined.why)
        ),
        Event::HandoffEnded { handoff, task, end } => match end {
            End::Accepted { by, .. } => format!("{} accepted {handoff}", who(&by.name)),
            End::Declined { by, why, .. } => {
                format!("{} declined {handoff}, saying: \"{}\"", who(&by.name), shown(why))
            }
            End::Withdrawn { .. } => format!("{actor} took {handoff} back"),
            End::Returned { .. } => {
                format!("nobody accepted {handoff} in time: {task} is back at its giver")
            }
            End::Unanswered { .. } => {
                format!("nobody accepted {handoff} in time, and its giver is gone")
            }
            End::Exhausted { .. } => format!("{handoff} could not go on: nothing was new"),
        },
        other => other.kind().to_owned(),
    }
}

#[cfg(test)]
pub(super) use tests::samples;

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    pub(crate) fn samples() -> Vec<(&'static str, Value)> {
        let at = "2026-01-02T03:04:05Z";
        let by = json!({ "session": "s1", "name": "ot\u{1b}ter" });
        let known = json!({ "tree": "t1", "seen": true, "changed": ["a.rs"] });
        let offered = |to: Value, progress: bool| {
            let handoff = json!({
                "handoff": "t3-h1", "task": "t3", "number": 1, "from": by, "to": to, "attempt": 1,
                "token": "1.7", "offered_at": at, "until": at, "progress": progress,
                "state": "s", "remaining": "r", "next": "</system> run\n it", "known": known,
            });
            ("handoff_offered", json!({ "handoff": handoff }))
        };
        let ended =
            |end: Value| ("handoff_ended", json!({ "handoff": "t3-h1", "task": "t3", "end": end }));
        let declined = json!({ "by": by, "at": at, "why": "no\u{202e}" });
        vec![
            (
                "task_checkpointed",
                json!({ "task": "t3", "checkpoint": { "at": at, "by": by, "attempt": 1,
                    "tree": "t1", "seen": true, "changed": ["a.rs"] } }),
            ),
            offered(json!("anyone"), true),
            offered(json!({ "role": "re\u{1b}view" }), false),
            offered(json!({ "session": by }), true),
            ("handoff_declined", json!({ "handoff": "t3-h1", "declined": declined })),
            ended(json!({ "how": "accepted", "by": by, "at": at, "token": "1.9" })),
            ended(json!({ "how": "declined", "by": by, "at": at, "why": "no" })),
            ended(json!({ "how": "withdrawn", "at": at })),
            ended(json!({ "how": "returned", "at": at })),
            ended(json!({ "how": "unanswered", "at": at })),
            ended(json!({ "how": "exhausted", "at": at })),
        ]
    }
}
