//! News for the caller: what happened behind its back, told with its next reply.
//!
//! Owns the sentence of each. What others wrote is quoted data; nothing in it acts on a reader.

use std::fmt::Write as _;

use baton_core::landing::State;
use baton_core::notices::{News, Notice, Was};
use baton_core::task::Move;

use crate::commands::handoff;
use crate::render::{self, Paint, paint, quoted, shown};
use crate::words::changes_words;

/// Files that one sentence names.
const FILES_NAMED_MAX: usize = 5;

/// What the caller must be told, as quoted data.
pub(crate) fn notices_words(notices: &[Notice], colour: bool) -> String {
    let mut text = String::new();
    for notice in notices {
        let told = sentence(&notice.news);
        let _ = writeln!(text, "{}: {told}", paint("news", Paint::Yellow, colour));
    }
    text
}

fn sentence(news: &News) -> String {
    match news {
        News::Asked { by, resources, why } => format!(
            "{} asks you to let go of {}, saying: {}",
            render::holder(by),
            render::resources(resources),
            quoted(why)
        ),
        News::Lost { resources, to, why, .. } => {
            let now = match to {
                Some(to) => format!(" and {} has it now", render::holder(to)),
                None => String::new(),
            };
            let what = render::resources(resources);
            format!("you no longer hold {what}: {}{now}", shown(why))
        }
        News::Offered { handoff, task, title, by, until } => format!(
            "{} offers you {task} {} until {}: baton handoff show {handoff}",
            shown(&by.name),
            quoted(title),
            render::until(*until)
        ),
        News::OfferEnded { handoff, task, title, end, still_open } => {
            let open = if *still_open { "; others may still take it" } else { "" };
            let how = handoff::ended_words(end);
            format!("your offer {handoff} of {task} {} {how}{open}", quoted(title))
        }
        News::TaskMoved { task, title, how, by, why, state, attempt, max_attempts, token } => {
            let by = by.as_ref().map(|by| format!(" by {}", shown(&by.name))).unwrap_or_default();
            let said = match why.is_empty() {
                true => String::new(),
                false => format!(", saying: {}", quoted(why)),
            };
            let now = match token {
                Some(token) => {
                    format!("it is yours again, attempt {attempt} of {max_attempts}, token {token}")
                }
                None => format!("it is {}", state.name()),
            };
            let how = match how {
                Move::Approved => "is approved",
                Move::Rejected => "is rejected",
                Move::Withdrawn => "is withdrawn from review",
                Move::Answered => "goes on",
                _ => "moved",
            };
            format!("{task} {} {how}{by}{said}; {now}", quoted(title))
        }
        News::Suggested { suggestion, by, path, why } => format!(
            "{} suggests a change to {}, saying: {}; baton suggestion show {suggestion}",
            shown(&by.name),
            shown(&path.to_string()),
            quoted(why)
        ),
        News::SuggestionAnswered { suggestion, path, by, applied, why } => {
            let verb = if *applied { "applied" } else { "declined" };
            let why = why.as_deref().map(|why| format!(": {}", quoted(why)));
            let (name, path) = (shown(&by.name), shown(&path.to_string()));
            format!("{name} {verb} {suggestion} for {path}{}", why.unwrap_or_default())
        }
        News::Joined { task, title, why } => format!(
            "{task} {}, which you divided, can go on: {}; baton task results {task}",
            quoted(title),
            shown(why)
        ),
        _ => another(news),
    }
}

fn another(news: &News) -> String {
    match news {
        News::GateDecided { gate, on, outcome, why } => {
            let why = why.as_ref().map(|why| format!(", saying: {}", quoted(why)));
            let (on, why) = (quoted(on), why.unwrap_or_default());
            format!("{gate}, which you asked about {on}, is {}{why}", outcome.name())
        }
        News::LandingOver { landing, branch, target, state, reason } => {
            let why = reason.as_ref().map(|why| format!(": {}", shown(why))).unwrap_or_default();
            let (branch, target) = (shown(branch), shown(target));
            match state {
                State::Landed => format!("{branch} ({landing}) landed on {target}{why}"),
                state => format!("{branch} ({landing}) was {} from {target}{why}", state.name()),
            }
        }
        News::InterfaceChanged { interface, by, files } => {
            let (name, by, what) =
                (shown(interface.as_str()), shown(&by.name), changes_words(files));
            format!("{by} changed the interface {name}: {what}; baton interface show {name}")
        }
        News::InterfaceGiven { interface, by } => {
            let (name, by) = (shown(interface.as_str()), shown(&by.name));
            format!("you keep the interface {name} now: {by} gave it to you")
        }
        News::ReviewOver { task, title, why } => {
            format!("{task} {} need not be reviewed now: {}", quoted(title), shown(why))
        }
        News::Conflict { a, b, files, findings, first } => {
            let named = files.iter().take(FILES_NAMED_MAX).map(|file| shown(file));
            let named = named.collect::<Vec<_>>().join(", ");
            let more = match files.len().saturating_sub(FILES_NAMED_MAX) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let count = render::counted(*findings as u64, "new finding", "new findings");
            let (a, b, first) = (shown(a), shown(b), shown(first));
            format!("{count} between {a} and {b}, in {named}{more}: {first}; baton conflicts")
        }
        News::Overwritten { by, path, was, unsure } => {
            let (by, path) = (render::holder(by), shown(&path.to_string()));
            let was = match was {
                Was::Saved(reference) => {
                    let name = reference.strip_prefix("refs/baton/rescue/").unwrap_or(reference);
                    format!(
                        "your uncommitted text is gone from it, and is safe: baton rescue show {}",
                        shown(name)
                    )
                }
                Was::Committed => "you had nothing uncommitted in it".to_owned(),
                Was::Unknown => "no copy of your text was kept".to_owned(),
            };
            match unsure {
                false => format!(
                    "a command of {by} wrote over {path} while you held it, around the edit door; \
                     {was}. Read it again before you go on"
                ),
                true => format!(
                    "{path}, which you hold, changed while a command of {by} ran; who \
                     wrote it is not known. What was there before is safe: {}",
                    was.rsplit(": ").next().unwrap_or(&was)
                ),
            }
        }
        _ => String::new(),
    }
}
