//! `import`: tasks from files.
//!
//! Owns the words: what was filed, what was there already, what was passed over and why. Titles
//! came out of a file and are shown as data (S20).

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::ExitCode;

use baton_engine::api::tasks as api;
use baton_engine::import::{self, FiledItem, Imported};

use crate::desk::{Desk, Outcome};
use crate::news::notices_words;
use crate::render::{Paint, counted, paint, shown};

/// How many tasks are named one by one; `--json` has them all.
const NAMED_MAX: usize = 50;

pub(crate) fn run(desk: &mut Desk, wanted: &api::Import) -> Outcome {
    let Desk { workspace, actor, cwd, operation, .. } = desk;
    let imported = import::import(workspace, actor, cwd, wanted, operation.as_deref())?;
    desk.answer(&imported, words);
    Ok(ExitCode::SUCCESS)
}

fn words(imported: &Imported, colour: bool) -> String {
    let Imported { filed, known, skipped, dry_run, .. } = imported;
    let mut text = String::new();
    let verb = if *dry_run { "would file" } else { "filed" };
    let count = match filed.len() {
        0 => "nothing".to_owned(),
        count => counted(count as u64, "task", "tasks"),
    };
    let from = shown(&imported.from.to_string_lossy());
    let _ = writeln!(text, "{} {count} from {from}", paint(verb, Paint::Green, colour));
    for item in filed.iter().take(NAMED_MAX) {
        text.push_str(&filed_words(item, colour));
    }
    if filed.len() > NAMED_MAX {
        let _ = writeln!(text, "  and {} more", filed.len() - NAMED_MAX);
    }
    if !known.is_empty() {
        let ids: Vec<&str> = known.iter().take(NAMED_MAX).map(|one| one.task.as_str()).collect();
        let more = if known.len() > NAMED_MAX { ", …" } else { "" };
        let count = counted(known.len() as u64, "item is a task", "items are tasks");
        let _ = writeln!(text, "{count} already: {}{more}", ids.join(", "));
    }
    let mut reasons: BTreeMap<&str, u64> = BTreeMap::new();
    for one in skipped {
        *reasons.entry(&one.why).or_default() += 1;
    }
    for (why, count) in reasons {
        let _ = writeln!(text, "skipped {}: {}", counted(count, "item", "items"), shown(why));
    }
    text + &notices_words(&imported.notices, colour)
}

/// `  t5 "write the parser", open (there: in_progress, ann)`.
fn filed_words(item: &FiledItem, colour: bool) -> String {
    let there = item.there.as_deref().map(|there| format!(" (there: {})", shown(there)));
    let id = match &item.task {
        Some(task) => format!("{} ", paint(task.as_str(), Paint::Bold, colour)),
        None => String::new(),
    };
    let (title, state) = (shown(&item.title), item.state.name());
    format!("  {id}\"{title}\", {state}{}\n", there.unwrap_or_default())
}
