//! Suggestions as sentences.
//!
//! Owns what the journal says of each; names and paths are quoted data.

use baton_core::event::Event;
use baton_core::notices::News;
use baton_core::suggestions::Answer;

use super::Naming;
use crate::render::shown;

pub(super) fn sentence(event: &Event, actor: &str, who: Naming<'_>) -> String {
    match event {
        Event::SuggestionMade { suggestion } => format!(
            "{} suggested {} to {} for {}",
            who(&suggestion.by.name),
            suggestion.suggestion,
            who(&suggestion.to.name),
            shown(&suggestion.path.to_string())
        ),
        Event::SuggestionAnswered { suggestion, answer, .. } => match answer {
            Answer::Filed { task, .. } => format!("nobody answered {suggestion}: it became {task}"),
            other => format!("{actor} {} {suggestion}", other.name()),
        },
        Event::SuggestionMoved { suggestion, .. } => {
            format!("{suggestion} waits for the same holder, who claimed anew")
        }
        _ => String::new(),
    }
}

/// A note about one.
pub(super) fn note(news: &News, to: &str, who: Naming<'_>) -> String {
    match news {
        News::Suggested { by, path, .. } => {
            let (by, path) = (who(&by.name), shown(&path.to_string()));
            format!("a note for {to}: {by} suggests a change to {path}")
        }
        News::SuggestionAnswered { path, applied, .. } => {
            let verb = if *applied { "applied" } else { "declined" };
            let path = shown(&path.to_string());
            format!("a note for {to}: its suggestion for {path} was {verb}")
        }
        _ => String::new(),
    }
}

#[cfg(test)]
pub(super) fn samples() -> Vec<(&'static str, serde_json::Value)> {
    use serde_json::{Value, json};

    let at = "2026-01-02T03:04:05Z";
    let holder = json!({ "session": "s1", "name": "otter" });
    let news = |mut news: Value| {
        news["notice"] = json!("n3");
        news["to"] = json!("s1");
        news["at"] = json!(at);
        ("notice_sent", json!({ "notice": news }))
    };
    let answered = |answer: Value| {
        let body = json!({ "suggestion": "p1", "claim": "c1", "answer": answer });
        ("suggestion_answered", body)
    };
    let suggestion = json!({
        "suggestion": "p1", "path": "a", "patch": "x", "strip": 1, "added": 1, "removed": 0,
        "why": "x", "by": holder, "at": at, "to": holder, "tree": "t1", "claim": "c1",
        "state": "open",
    });
    vec![
        news(json!({ "news": "suggested", "suggestion": "p1", "by": holder, "path": "a\u{1b}",
            "why": "x" })),
        news(json!({ "news": "suggestion_answered", "suggestion": "p1", "by": holder,
            "path": "a", "applied": true })),
        news(json!({ "news": "joined", "task": "t1", "title": "x", "why": "all ended" })),
        ("suggestion_made", json!({ "suggestion": suggestion })),
        answered(json!({ "state": "declined", "answered_by": holder, "answered_at": at,
            "because": "no" })),
        answered(json!({ "state": "filed", "task": "t9", "answered_at": at })),
        ("suggestion_moved", json!({ "suggestion": "p1", "from": "c1", "to": "c2" })),
    ]
}
