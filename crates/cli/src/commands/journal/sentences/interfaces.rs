//! Interfaces as sentences.
//!
//! Owns what the journal says of each; names and signatures are quoted data.

use baton_core::event::Event;
use baton_core::notices::News;

use super::Naming;
use crate::render::{resources, shown};
use crate::words::changes_words;

pub(super) fn sentence(event: &Event, who: Naming<'_>) -> String {
    match event {
        Event::InterfaceAdded { interface } => format!(
            "{} keeps the interface {}: {}",
            who(&interface.owner.name),
            shown(interface.name.as_str()),
            resources(&interface.files)
        ),
        Event::InterfaceUsed { name, user } => {
            format!("{} builds on the interface {}", who(&user.name), shown(name.as_str()))
        }
        Event::InterfaceChanged { changed } => format!(
            "{} changed the interface {}: {}",
            who(&changed.change.by.name),
            shown(changed.name.as_str()),
            changes_words(&changed.change.files)
        ),
        Event::InterfaceGiven { given } => {
            let (name, to, from) =
                (shown(given.name.as_str()), who(&given.to.name), who(&given.from.name));
            match &given.by {
                None => format!("{to} keeps the interface {name} now: {from} is gone"),
                Some(by) => format!("{} gave the interface {name} to {to}", who(&by.name)),
            }
        }
        Event::InterfaceRemoved { name, by } => {
            format!("{} removed the interface {}", who(&by.name), shown(name.as_str()))
        }
        _ => String::new(),
    }
}

/// A note about one.
pub(super) fn note(news: &News, to: &str, who: Naming<'_>) -> String {
    match news {
        News::InterfaceChanged { interface, by, .. } => {
            let (name, by) = (shown(interface.as_str()), who(&by.name));
            format!("a note for {to}: {by} changed the interface {name}")
        }
        News::InterfaceGiven { interface, by } => {
            let (name, by) = (shown(interface.as_str()), who(&by.name));
            format!("a note for {to}: {by} gives it the interface {name}")
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
        news["to"] = json!("s2");
        news["at"] = json!(at);
        ("notice_sent", json!({ "notice": news }))
    };
    let many: Vec<String> = (1..=7).map(|at| format!("f{at}()")).collect();
    let files = json!([
        { "path": "src/api.rs", "added": ["a(\u{1b})"], "removed": ["b()"],
            "resigned": [{ "before": "c()", "after": "c(x: \u{202e})" }], "lines": 1 },
        { "path": "src/b.rs", "added": many, "more": 3 },
        { "path": "a.proto", "lines": 2 },
        { "path": "b.proto", "lines": 0 },
        { "path": "c.rs", "deleted": true, "removed": ["c()"] },
    ]);
    let given = |by: Value| {
        let given = json!({ "name": "api", "from": holder, "to": { "session": "s2", "name": "fox" },
            "at": at, "by": by });
        ("interface_given", json!({ "given": given }))
    };
    let interface = json!({
        "name": "api", "files": ["src/api.rs", "a.proto"], "owner": holder, "since": at,
        "added_at": at,
    });
    let change = json!({ "by": holder, "at": at, "files": files });
    vec![
        ("interface_added", json!({ "interface": interface })),
        ("interface_used", json!({ "name": "api", "user": holder })),
        (
            "interface_changed",
            json!({ "changed": { "name": "api", "change": change,
            "known": [{ "path": "src/api.rs", "tree": "t", "mark": "m" }] } }),
        ),
        given(Value::Null),
        given(holder.clone()),
        ("interface_removed", json!({ "name": "api", "by": holder })),
        news(json!({ "news": "interface_changed", "interface": "api", "by": holder,
            "files": files })),
        news(json!({ "news": "interface_given", "interface": "api", "by": holder })),
    ]
}
