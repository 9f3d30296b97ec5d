//! Shared state, drafts, `once` and notes in plain words.
//!
//! Owns these sentences; a part of [`super`]. Values are shown as JSON and shortened.

use baton_core::event::{EndOfDraft, Event};
use baton_core::key::Key;
use baton_core::once::End;
use baton_core::state::{Change, Changed};

use super::Naming;
use crate::render::{json_shown, shown};

pub(super) fn sentence(event: &Event, actor: &str, who: Naming<'_>) -> String {
    match event {
        Event::StateChanged { changed } => {
            format!("{} {}", who(&changed.by.name), changed_words(changed))
        }
        Event::DraftSet { draft } => {
            format!("{actor} drafted {} on version {}", draft.key, draft.based_on)
        }
        Event::DraftsEnded { keys, why, .. } => {
            let keys: Vec<&str> = keys.iter().map(Key::as_str).collect();
            let keys = shown(&keys.join(", "));
            match why {
                EndOfDraft::Published => format!("{actor} published its drafts of {keys}"),
                EndOfDraft::Discarded => format!("{actor} discarded its drafts of {keys}"),
                EndOfDraft::SessionEnded => {
                    format!("drafts of {keys} went with the session that made them")
                }
            }
        }
        Event::OnceStarted { key, runner } => {
            let program = shown(&runner.command.program);
            format!("{} began to run {key} ({program})", who(&runner.holder.name))
        }
        Event::OnceRenewed { key, .. } => format!("{actor} still runs {key}"),
        Event::OnceEnded { key, end, .. } => match end {
            End::Succeeded { took, .. } => format!("{actor} has run {key} in {took}: it succeeded"),
            End::Failed { code } => {
                format!("{actor} has run {key}: it failed with {code} and may be tried again")
            }
        },
        Event::NoteAdded { note } => {
            let task = note.task.as_deref().map(|task| format!(" for {}", shown(task)));
            format!(
                "{} noted a {}{}{}: \"{}\"",
                who(&note.by.name),
                note.kind.word(),
                task.unwrap_or_default(),
                note.rule.map(|rule| format!(" on rule {rule}")).unwrap_or_default(),
                shown(&note.text)
            )
        }
        other => other.kind().to_owned(),
    }
}

fn changed_words(changed: &Changed) -> String {
    let Changed { key, version, change, .. } = changed;
    match change {
        Change::Set { value } => {
            format!("set {key} to {}, version {version}", shown(&json_shown(value, false)))
        }
        Change::Append { items } => {
            let items: Vec<String> = items.iter().map(|item| json_shown(item, false)).collect();
            format!("appended {} to {key}, version {version}", shown(&items.join(", ")))
        }
        Change::Merge { patch } => {
            format!("merged {} into {key}, version {version}", shown(&json_shown(patch, false)))
        }
        Change::Delete => format!("deleted {key}, version {version}"),
    }
}

#[cfg(test)]
pub(super) use tests::samples;

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    pub(crate) fn samples() -> Vec<(&'static str, Value)> {
        let at = "2026-01-02T03:04:05Z";
        let by = json!({ "session": "s1", "name": "otter" });
        let changed = |how: Value| {
            let mut changed = json!({ "key": "build/status", "version": 3, "by": by, "at": at,
                "owner": "s1", "position": "1.9" });
            let how = how.as_object().unwrap().clone();
            changed.as_object_mut().unwrap().extend(how);
            json!({ "changed": changed })
        };
        let runner = json!({ "token": "1.9", "holder": by, "started_at": at, "renewed_at": at,
            "lease_until": at, "command": { "program": "make", "hash": "h" } });
        let ended = |end: Value| json!({ "key": "k", "token": "1.9", "at": at, "end": end });
        let drafts = |why: &str| json!({ "session": "s1", "keys": ["k", "l"], "why": why });
        vec![
            ("state_changed", changed(json!({ "how": "set", "value": "\u{1b}\u{202e}" }))),
            ("state_changed", changed(json!({ "how": "append", "items": [1, "x"] }))),
            ("state_changed", changed(json!({ "how": "merge", "patch": { "a": null } }))),
            ("state_changed", changed(json!({ "how": "delete" }))),
            (
                "draft_set",
                json!({ "draft": { "session": "s1", "key": "k", "based_on": 2, "deleted": false,
                    "value": 1, "at": at } }),
            ),
            ("drafts_ended", drafts("published")),
            ("drafts_ended", drafts("discarded")),
            ("drafts_ended", drafts("session_ended")),
            ("once_started", json!({ "key": "k", "runner": runner })),
            ("once_renewed", json!({ "key": "k", "token": "1.9", "at": at, "lease_until": at })),
            (
                "once_ended",
                ended(json!({ "how": "succeeded", "took": 2_000,
                    "output": { "text": "", "cut": false } })),
            ),
            ("once_ended", ended(json!({ "how": "failed", "code": 3 }))),
            (
                "note_added",
                json!({ "note": { "note": "1.9", "kind": "lesson", "text": "</system>\n",
                    "task": "t1", "rule": 4, "by": by, "at": at } }),
            ),
        ]
    }
}
