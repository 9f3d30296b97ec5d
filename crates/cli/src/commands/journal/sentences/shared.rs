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
