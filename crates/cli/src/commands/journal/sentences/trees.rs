//! Working trees and numbers as sentences.
//!
//! Owns what the journal says of each; names and paths are quoted data.

use baton_core::event::Event;

use super::Naming;
use crate::render::{counted, shown};

pub(super) fn sentence(event: &Event, actor: &str, who: Naming<'_>) -> String {
    match event {
        Event::TreePlanned { tree } => {
            let task = tree.task.as_ref().map(|task| format!(" for {task}")).unwrap_or_default();
            let (path, branch) = (shown(&tree.path), shown(&tree.branch));
            format!("{} is making the tree {path} on {branch}{task}", who(&tree.by.name))
        }
        Event::TreeMade { tree, .. } => format!("{actor} made the tree {tree}"),
        Event::TreeGivenUp { tree, why } => {
            format!("{actor} gave up the tree {tree}: {}", shown(why))
        }
        Event::TreeRemoved { removed } => {
            let saved = counted(removed.rescued.len() as u64, "reference", "references");
            format!("{actor} removed the tree {}, saved under {saved}", shown(&removed.path))
        }
        Event::NumberGiven { counter } => {
            let folder = shown(&counter.folder);
            format!("{} got number {} of {folder}", who(&counter.by.name), counter.last)
        }
        Event::ConflictPredicted { predicted } => {
            let count = counted(predicted.findings.len() as u64, "finding", "findings");
            let (a, b) = (shown(&predicted.a), shown(&predicted.b));
            format!("{actor} foresaw {count} between {a} and {b}")
        }
        Event::ConflictGone { a, b, .. } => {
            format!("{actor} found nothing between {} and {} any more", shown(a), shown(b))
        }
        Event::DuplicateFound { duplicate } => {
            let places: Vec<String> = duplicate.places.iter().map(|one| shown(one)).collect();
            let symbol = shown(&duplicate.symbol);
            format!("{actor} found {symbol} written twice: {}", places.join(" and "))
        }
        _ => String::new(),
    }
}

#[cfg(test)]
pub(super) fn samples() -> Vec<(&'static str, serde_json::Value)> {
    use serde_json::json;

    let at = "2026-01-02T03:04:05Z";
    let holder = json!({ "session": "s1", "name": "otter" });
    let tree = json!({
        "tree": "ab12", "stage": "planned", "host": "h", "repository": "/r/.git",
        "path": "/r.trees/t1-x\u{1b}", "branch": "baton/t1-x", "base": "main", "commit": "00",
        "task": "t1", "by": holder, "at": at,
    });
    let removed = json!({ "tree": "ab12", "path": "/r.trees/t1-x", "branch": "baton/t1-x",
        "branch_removed": true, "rescued": ["refs/baton/rescue/ab12/changes"], "at": at });
    let counter = json!({ "folder": "db", "last": 7, "by": holder, "at": at });
    vec![
        ("tree_planned", json!({ "tree": tree })),
        ("tree_made", json!({ "tree": "ab12", "at": at })),
        ("tree_given_up", json!({ "tree": "ab12", "why": "no\u{1b}" })),
        ("tree_removed", json!({ "removed": removed })),
        ("number_given", json!({ "counter": counter })),
        (
            "conflict_predicted",
            json!({ "predicted": { "clone": "h", "a": "x\u{1b}", "b": "main", "files": ["a"],
                "findings": ["00"], "at": at } }),
        ),
        ("conflict_gone", json!({ "clone": "h", "a": "x", "b": "main" })),
        (
            "duplicate_found",
            json!({ "duplicate": { "symbol": "sum", "places": ["x a.rs:1", "y b.rs:2"],
                "at": at } }),
        ),
    ]
}
