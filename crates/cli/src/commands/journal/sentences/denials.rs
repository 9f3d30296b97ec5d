//! What was refused, as sentences.
//!
//! Owns what the journal says of each; files, targets and names are quoted data.

use baton_core::event::Event;
use baton_engine::denying;

use super::{Naming, worker};
use crate::render::shown;

pub(super) fn sentence(event: &Event, who: Naming<'_>) -> String {
    match event {
        Event::DeedRefused { denial } => {
            format!("{} {}", worker(&denial.by, who), shown(&denying::in_words(denial)))
        }
        _ => String::new(),
    }
}

#[cfg(test)]
pub(super) fn samples() -> Vec<(&'static str, serde_json::Value)> {
    use serde_json::{Value, json};

    let at = "2026-01-02T03:04:05Z";
    let refused = |deed: &str, why: &str, things: Value| {
        json!({ "denial": {
            "by": { "session": "s1", "name": "otter" }, "deed": deed, "why": why,
            "things": things, "at": at, "quiet_until": at,
        }})
    };
    let held =
        json!([{ "what": "a\u{1b}.rs", "holder": { "session": "s2", "name": "fox\u{1b}" } }]);
    let mut by_role = refused("commit", "role", json!([]));
    by_role["denial"]["role"] = json!("verify\u{1b}");
    by_role["denial"]["by"]["agent"] = json!("x\u{1b}");
    let mut claim = refused("claim", "role", json!([{ "what": "a.rs" }]));
    claim["denial"]["role"] = json!("docs");
    let mut many = refused("shell", "held", json!([{ "what": "a" }, { "what": "b" }]));
    many["denial"]["more"] = json!(3);
    let mut done = refused("shell", "role", json!([{ "what": "a" }]));
    done["denial"]["done"] = json!(true);
    done["denial"]["role"] = json!("docs");
    let about = |what: &str| json!([{ "what": what }]);
    let bodies = [
        refused("edit", "held", held.clone()),
        refused("edit", "stale", about("a.rs")),
        refused("edit", "claim_first", about("a.rs")),
        refused("commit", "needs_person", about("a.rs")),
        refused("edit", "append_only", about("a.rs")),
        refused("edit", "git_dir", about(".git/config")),
        many,
        done,
        refused("shell", "danger", about("git stash")),
        refused("shell", "by_hand", about("prod")),
        refused("commit", "held", held.clone()),
        by_role,
        claim,
        refused("land", "held", held),
        refused("deploy", "behind", about("prod")),
        refused("deploy", "older", about("prod")),
        refused("deploy", "unfinished", about("prod")),
        refused("done", "unproven", about("t1")),
    ];
    bodies.into_iter().map(|body| ("deed_refused", body)).collect()
}
