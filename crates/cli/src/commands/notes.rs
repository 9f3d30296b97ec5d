//! `note` and `notes`: what sessions write down for each other.
//!
//! Owns the words. A note is another's text: it is shown escaped and in full (S20).

use std::fmt::Write as _;
use std::process::ExitCode;

use baton_core::notes::{Note, Noted, Notes};
use baton_engine::api::shared;
use baton_engine::notes;

use crate::desk::{Desk, Outcome};
use crate::news::notices_words;
use crate::render::{Paint, ago, paint, shown, shown_lines};

pub(crate) fn add(desk: &mut Desk, wanted: &shared::Note) -> Outcome {
    let Desk { workspace, actor, operation, .. } = desk;
    let noted = notes::add(workspace, actor, wanted, operation.as_deref())?;
    desk.answer(&noted, |noted: &Noted, colour| {
        let task = noted.task.as_deref().map(|task| format!(" for {}", shown(task)));
        format!(
            "{} {}{}, {}\n{}",
            paint("noted", Paint::Green, colour),
            noted.kind.word(),
            task.unwrap_or_default(),
            noted.note,
            notices_words(&noted.notices, colour)
        )
    });
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn list(desk: &mut Desk, wanted: &shared::Notes) -> Outcome {
    let found = notes::list(&mut desk.workspace, wanted)?;
    desk.answer(&found, |found: &Notes, colour| {
        let mut text = String::new();
        if found.notes.is_empty() {
            text.push_str("no notes\n");
        }
        if found.more {
            text.push_str("older notes are left out: --limit shows more\n");
        }
        for note in &found.notes {
            text.push_str(&note_words(note, colour));
        }
        text
    });
    Ok(ExitCode::SUCCESS)
}

/// `1.42  decision  ann, 5m ago, t1: text`.
fn note_words(note: &Note, colour: bool) -> String {
    let mut about = format!("{}, {}", shown(&note.by.name), ago(note.at));
    if let Some(task) = &note.task {
        let _ = write!(about, ", {}", shown(task));
    }
    if let Some(rule) = note.rule {
        let _ = write!(about, ", rule {rule}");
    }
    format!(
        "{}  {:<8}  {about}: {}\n",
        paint(&format!("{:<7}", note.note.to_string()), Paint::Dim, colour),
        note.kind.word(),
        shown_lines(&note.text, "    ")
    )
}
