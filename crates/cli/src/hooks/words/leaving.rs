//! What a model reads before it stops.
//!
//! Owns the words for what it would leave: here, in other trees, and of its tasks.

use std::fmt::Write as _;

use baton_core::resource::Resource;
use baton_engine::doors::stop::Left;

use crate::render::{self, quoted, shown};
use crate::words::word;

/// What an agent would leave if it stopped now.
pub(crate) fn left(left: &Left) -> String {
    let mut text = String::from("Baton: before you stop, once:\n");
    text.push_str(&changed(None, &left.dirty, true));
    text.push_str(&changed(None, &left.shared, false));
    for there in &left.elsewhere {
        text.push_str(&changed(Some(&there.path), &there.dirty, true));
        text.push_str(&changed(Some(&there.path), &there.shared, false));
    }
    for task in &left.tasks {
        let id = &task.task;
        let _ = writeln!(
            text,
            "- {id} {} is yours and not finished: baton task done {id}, hand it over (baton \
             handoff offer {id}) or park it (baton task park {id}), and say what is not done.",
            quoted(&task.title)
        );
    }
    for check in &left.checks {
        let _ =
            writeln!(text, "- the check {0} has not passed: baton task check {0}.", word(check));
    }
    text.trim_end().to_owned()
}

/// What is changed and in no commit: here, or in the tree in this folder.
fn changed(tree: Option<&str>, paths: &[Resource], alone: bool) -> String {
    let (is, them, stay) = match paths.len() {
        0 => return String::new(),
        1 => ("is", "it", "it stays"),
        _ => ("are", "them", "they stay"),
    };
    let kept = match alone {
        true => format!(", and nobody else can edit {them}"),
        false => String::new(),
    };
    let (place, there) = match tree {
        None => (String::new(), String::new()),
        Some(path) => (format!(" in {}", shown(path)), format!(" -C {}", word(path))),
    };
    format!(
        "- {}{place} {is} changed and in no commit{kept}: baton{there} commit -m \"…\", or say why \
         {stay} so.\n",
        render::resources(paths)
    )
}
