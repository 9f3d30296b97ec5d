//! Every kind of event in words: one sample at least, one line each, nothing that acts.
//!
//! The sentences themselves are in `snapshots/`, a file a noun.

use baton_core::event::KINDS;
use baton_core::id::{Position, SessionId};
use baton_core::journal::{Entry, Hash};
use serde_json::{Value, json};

use super::*;

fn claim() -> Value {
    json!({
        "claim": "c1", "token": "1.7", "session": "s1", "name": "otter", "tree": "t1",
        "scope": "tree", "mode": "shared", "resources": ["a"],
        "ttl": 1_800_000, "granted_at": "2026-01-02T03:04:05Z", "agent": "x",
        "renewed_at": "2026-01-02T03:04:05Z", "expires_at": "2026-01-02T03:34:05Z",
        "reason": "\u{1b}[2J",
    })
}

fn session() -> Value {
    json!({
        "session": "s1", "name": "otter", "client": "claude", "role": "builder",
        "person": false, "tree": "t1", "host": "h", "secret_hashes": ["00"],
        "started_at": "2026-01-02T03:04:05Z", "renewed_at": "2026-01-02T03:04:05Z",
        "expires_at": "2026-01-02T03:34:05Z", "ttl": 1_800_000, "life": "live",
    })
}

fn left() -> Value {
    json!({
        "claim": "c1", "session": "s1", "name": "otter", "tree": "t1",
        "paths": ["b"], "rescue": "r",
        "ended_at": "2026-01-02T03:04:05Z",
    })
}

fn waiter() -> Value {
    let mut waiter = claim();
    let more = json!({
        "waiter": "w1", "priority": 0, "place": "1.9", "queued_at": "2026-01-02T03:04:05Z",
        "deadline": "2026-01-02T03:05:05Z", "lease_until": "2026-01-02T03:04:35Z",
    });
    let more = more.as_object().unwrap().clone();
    waiter.as_object_mut().unwrap().extend(more);
    waiter
}

/// One or more bodies of every kind.
fn samples() -> Vec<(&'static str, Value)> {
    let at = "2026-01-02T03:04:05Z";
    let ended = |how: Value| {
        let resources = ["a.rs"];
        json!({ "claim": "c1", "session": "s1", "resources": resources, "why": how })
    };
    let mut dirty = ended(json!({ "how": "session_died" }));
    dirty["left"] = left();
    vec![
        ("epoch_raised", json!({ "why": "the machine was started again" })),
        ("workspace_made", json!({ "workspace": "w" })),
        (
            "policy_set",
            json!({ "policy": { "zones": [], "capacities": { "gpu": 2 }, "source_hash": "h",
                "approved_at": at } }),
        ),
        ("person_token_added", json!({ "token": { "hash": "h", "made_at": at } })),
        ("session_started", json!({ "session": session() })),
        ("session_resumed", json!({ "session": session() })),
        ("session_renewed", json!({ "session": "s1", "at": at, "expires_at": at })),
        ("session_ended", json!({ "session": "s1", "at": at, "why": "ended" })),
        ("session_ended", json!({ "session": "s3", "at": at, "why": "died", "grace_until": at })),
        ("alias_bound", json!({ "alias": { "alias": "client:claude:1", "session": "s1" } })),
        ("alias_bound", json!({ "alias": { "alias": "process:h:1", "session": null } })),
        ("claim_granted", json!({ "claim": claim() })),
        ("claims_renewed", json!({ "claims": [{ "claim": "c1", "expires_at": at }], "at": at })),
        ("claim_narrowed", json!({ "claim": "c1", "resources": ["a.rs"], "released": ["@gpu"] })),
        ("claim_ended", ended(json!({ "how": "released" }))),
        ("claim_ended", ended(json!({ "how": "released", "commit": "abc" }))),
        ("claim_ended", ended(json!({ "how": "expired" }))),
        ("claim_ended", ended(json!({ "how": "session_ended" }))),
        ("claim_ended", dirty),
        ("claim_ended", ended(json!({ "how": "revoked", "why": "no" }))),
        ("claim_ended", ended(json!({ "how": "settled" }))),
        ("claim_ended", ended(json!({ "how": "replaced" }))),
        ("claim_ended", ended(json!({ "how": "handed_over", "to": "s2" }))),
        ("leftovers_told", json!({ "claims": ["c1"] })),
    ]
}

fn overwritten() -> Value {
    json!({
        "notice": "n1", "to": "s2", "at": "2026-01-02T03:04:05Z", "news": "overwritten",
        "path": "a\u{1b}", "by": { "session": "s1", "name": "otter", "agent": "k\u{1b}" },
        "was": { "saved": "refs/baton/rescue/s2/overwritten-1" },
    })
}

fn more_samples() -> Vec<(&'static str, Value)> {
    let at = "2026-01-02T03:04:05Z";
    let asked = json!({
        "notice": "n1", "to": "s2", "at": at, "news": "asked", "why": "</system>",
        "by": { "session": "s1", "name": "otter" }, "resources": ["src/"],
    });
    let lost = json!({
        "notice": "n1", "to": "s2", "at": at, "news": "lost", "why": "it ran out",
        "claim": "c1", "to_": null, "resources": ["src/"],
    });
    let operation = json!({
        "operation": "o", "session": "s1", "request_hash": "h", "answer": "{}", "at": at,
    });
    let trust = json!({ "commands": [
        { "what": "queue check unit\u{1b}", "argv": ["make"], "hash": "h" },
    ], "at": at });
    vec![
        (
            "zone_held",
            json!({ "hold": { "zone": "@zone/db/", "session": "s1", "name": "otter", "tree": "t",
                "clone": "h", "branch": "one\u{1b}", "task": "t1", "since": at } }),
        ),
        (
            "hold_breached",
            json!({ "breach": { "by": { "session": "s1", "name": "otter" }, "resource": "a\u{1b}",
                "holder": { "session": "s2", "name": "fox" }, "door": "shell", "at": at } }),
        ),
        (
            "zone_freed",
            json!({
                "zone": "@zone/db/", "clone": "here", "branch": "one", "why": { "how": "landed" },
            }),
        ),
        ("commands_trusted", json!({ "trust": trust })),
        ("wait_queued", json!({ "waiter": waiter() })),
        ("wait_renewed", json!({ "waiter": "w1", "lease_until": at })),
        ("wait_ended", json!({ "waiter": "w1", "why": "granted" })),
        ("wait_ended", json!({ "waiter": "w1", "why": "timed_out" })),
        ("wait_ended", json!({ "waiter": "w1", "why": "withdrawn" })),
        ("wait_ended", json!({ "waiter": "w1", "why": "gone" })),
        ("notice_sent", json!({ "notice": asked })),
        ("notice_sent", json!({ "notice": lost })),
        ("notice_sent", json!({ "notice": overwritten() })),
        ("notices_dropped", json!({ "notices": ["n1"] })),
        ("notices_told", json!({ "notices": ["n1", "n2"] })),
        ("operation_answered", json!({ "operation": operation })),
        ("operations_forgotten", json!({ "operations": ["o"] })),
        ("snapshot_taken", json!({ "state_hash": "h", "records": 3, "archive": "1.1-1.9.jsonl" })),
        (
            "call_started",
            json!({ "session": "s1", "call": { "call": "t1", "until": at }, "busy_until": at,
                "claims": ["c1"] }),
        ),
        ("calls_ended", json!({ "session": "s1", "calls": ["t1"], "claims": ["c1"] })),
        (
            "calls_ended",
            json!({ "session": "s1", "calls": ["t1"], "busy_until": at, "claims": [] }),
        ),
        ("subagent_stopped", json!({ "session": "s1", "agent": "x", "claims": ["c1"] })),
        ("moon_landed", json!({})),
        (
            "commit_made",
            json!({ "made": {
                "commit": "00112233445566778899aabbccddeeff00112233", "branch": "main",
                "paths": ["a\u{1b}"], "session": "s1", "name": "otter", "task": "t4",
                "token": "1.7", "tree": "t1",
            } }),
        ),
    ]
}

/// What sessions may do and were told.
fn session_samples() -> Vec<(&'static str, Value)> {
    let seen = json!({ "version": "ab12\u{1b}", "at": "2026-01-02T03:04:05Z" });
    let at = "2026-01-02T03:04:05Z";
    vec![
        ("role_given", json!({ "session": "s1", "role": "verify\u{1b}", "at": at })),
        ("rules_seen", json!({ "session": "s1", "seen": seen })),
    ]
}

fn told(number: u64, kind: &str, body: &Value) -> Told {
    let entry = Entry {
        position: Position { epoch: 1, number },
        at: Moment(1_767_323_045_000),
        actor: if number.is_multiple_of(2) { "s2".to_owned() } else { String::new() },
        kind: kind.to_owned(),
        version: 1,
        body: body.to_string(),
        hash: Hash::default(),
    };
    let names = [("s1", "otter"), ("s2", "fox")];
    let names = names.map(|(id, name)| (SessionId(id.to_owned()), name.to_owned()));
    Told { event: entry.event(), entry, names: names.into() }
}

/// The sentences of these, each on a line.
fn told_in_words(samples: &[(&str, Value)]) -> String {
    let lines = samples.iter().zip(1..).map(|((kind, body), number)| {
        let told = told(number, kind, body);
        assert!(told.event.is_ok() || *kind == "moon_landed", "{kind}: {:?}", told.event);
        let line = line(&told, false);
        assert!(line.starts_with("2026-01-02 03:04:05Z  1."), "{line}");
        line[32..].to_owned()
    });
    let text: String = lines.collect();
    assert_eq!(text.lines().count(), samples.len(), "one line each");
    text
}

#[test]
fn s20_every_kind_has_words_and_nothing_in_them_acts() {
    let nouns = [
        ("claims", [samples(), more_samples(), session_samples()].concat()),
        ("shared", shared::samples()),
        ("tasks", tasks::samples()),
        ("parts", parts::samples()),
        ("handoffs", handoffs::samples()),
        ("gates", gates::samples()),
        ("suggestions", suggestions::samples()),
        ("interfaces", interfaces::samples()),
        ("denials", denials::samples()),
        ("trees", trees::samples()),
        ("landings", landings::samples()),
        ("deploys", deploys::samples()),
    ];
    for kind in KINDS {
        let sampled = nouns.iter().any(|(_, all)| all.iter().any(|(name, _)| name == kind));
        assert!(sampled, "{kind} has no sample");
    }
    for (noun, samples) in nouns {
        insta::assert_snapshot!(noun, told_in_words(&samples));
    }
}
