//! Every kind of event in plain words, one line each.
//!
//! Owns the sentences. All text that came from an agent goes through `shown` (S20).

use baton_core::claim::{Leftover, Mode, Scope};
use baton_core::event::{EndOfClaim, EndOfSession, EndOfWait, Event};
use baton_core::notices::News;
use baton_core::resource::Resource;
use baton_core::sessions::Session;
use baton_core::suggestions::Answer;
use baton_core::time::Moment;
use baton_engine::journal::Told;

use crate::render::{Paint, counted, paint, resources, shown};

mod shared;
mod tasks;

/// `2026-11-15 21:33:40Z  1.42  amber-otter claimed src/a.rs`.
pub(super) fn line(told: &Told, colour: bool) -> String {
    let at = told.entry.at.to_string();
    let time = match (at.get(..10), at.get(11..19)) {
        (Some(date), Some(time)) => format!("{date} {time}Z"),
        _ => at,
    };
    let when =
        paint(&format!("{time}  {:<8}", told.entry.position.to_string()), Paint::Dim, colour);
    format!("{when}  {}\n", sentence(told, colour))
}

fn sentence(told: &Told, colour: bool) -> String {
    let who = |name: &str| paint(&shown(name), Paint::Bold, colour);
    let actor = match told.entry.actor.as_str() {
        "" => who("baton"),
        id => who(told.names.iter().find(|(key, _)| key.as_str() == id).map_or(id, |(_, n)| n)),
    };
    let event = match &told.event {
        Ok(event) => event,
        Err(unknown) => {
            return format!("{actor} did what cannot be read: {}", shown(&unknown.to_string()));
        }
    };
    match event {
        Event::SessionStarted { .. }
        | Event::SessionResumed { .. }
        | Event::SessionRenewed { .. }
        | Event::SessionEnded { .. }
        | Event::AliasBound { .. } => of_session(told, event, &who),
        Event::ClaimGranted { .. }
        | Event::ClaimsRenewed { .. }
        | Event::ClaimNarrowed { .. }
        | Event::ClaimEnded { .. }
        | Event::LeftoversTold { .. } => of_claim(told, event, &actor, &who),
        Event::WaitQueued { .. } | Event::WaitRenewed { .. } | Event::WaitEnded { .. } => {
            of_waiting(event, &actor, &who)
        }
        Event::TaskAdded { .. }
        | Event::TaskEdited { .. }
        | Event::TaskMoved { .. }
        | Event::TaskReported { .. }
        | Event::TaskTied { .. }
        | Event::TaskFreed { .. }
        | Event::TasksWeighed { .. }
        | Event::TaskSplit { .. }
        | Event::TaskPartMoved { .. }
        | Event::TaskJoined { .. }
        | Event::TaskChecked { .. }
        | Event::TaskProven { .. }
        | Event::TasksRenewed { .. }
        | Event::TasksForgotten { .. } => tasks::sentence(event, &actor, &who),
        Event::StateChanged { .. }
        | Event::DraftSet { .. }
        | Event::DraftsEnded { .. }
        | Event::OnceStarted { .. }
        | Event::OnceRenewed { .. }
        | Event::OnceEnded { .. }
        | Event::NoteAdded { .. } => shared::sentence(event, &actor, &who),
        other => of_workspace(told, other, &actor, &who),
    }
}

type Naming<'a> = &'a dyn Fn(&str) -> String;

fn of_session(told: &Told, event: &Event, who: Naming<'_>) -> String {
    match event {
        Event::SessionStarted { session } => {
            format!(
                "{} started a session ({}){}",
                who(&session.name),
                session.session,
                what(session)
            )
        }
        Event::SessionResumed { session } => {
            format!("{} is back ({}){}", who(&session.name), session.session, what(session))
        }
        Event::SessionRenewed { session, expires_at, .. } => {
            format!("{} renewed its session until {}", who(told.name(session)), time(*expires_at))
        }
        Event::SessionEnded { session, why, grace_until, .. } => {
            let how = match why {
                EndOfSession::Ended => "ended its session",
                EndOfSession::Died => "is gone: its process had ended",
            };
            let grace = match grace_until {
                Some(until) => format!("; its claims wait until {}", time(*until)),
                None => String::new(),
            };
            format!("{} {how}{grace}", who(told.name(session)))
        }
        Event::AliasBound { alias } => {
            let known = match alias.alias.split(':').next() {
                Some("client") => "its client",
                Some("process") => "its process",
                _ => "another name",
            };
            match &alias.session {
                Some(session) => format!("{} is now known by {known}", who(told.name(session))),
                None => {
                    format!("{} no longer identifies anyone: several use it", shown(&alias.alias))
                }
            }
        }
        other => other.kind().to_owned(),
    }
}

fn what(session: &Session) -> String {
    let client = session.client.as_deref().map(shown);
    let kind = client.or_else(|| session.person.then(|| "a person".to_owned()));
    let role = session.role.as_deref().map(|role| format!("role {}", shown(role)));
    let parts: Vec<String> = kind.into_iter().chain(role).collect();
    if parts.is_empty() { String::new() } else { format!(", {}", parts.join(", ")) }
}

fn of_claim(told: &Told, event: &Event, actor: &str, who: Naming<'_>) -> String {
    match event {
        Event::ClaimGranted { claim } => {
            let shared = if claim.hold.mode == Mode::Shared { " to share" } else { "" };
            let tree = if claim.hold.scope == Scope::Tree { " in its tree" } else { "" };
            let agent = match &claim.hold.holder.agent {
                Some(agent) => format!(" for its subagent {}", shown(agent)),
                None => String::new(),
            };
            format!(
                "{} claimed {}{shared}{tree}{agent} until {}{}",
                who(&claim.hold.holder.name),
                resources(&claim.hold.resources),
                time(claim.expires_at),
                because(claim.reason.as_deref())
            )
        }
        Event::ClaimsRenewed { claims, .. } => {
            let last = claims.iter().map(|renewal| renewal.expires_at).max();
            let until = last.map(|at| format!(" until {}", time(at))).unwrap_or_default();
            let count = counted(claims.len() as u64, "claim", "claims");
            format!("{actor} renewed {count}{until}")
        }
        Event::ClaimNarrowed { resources: kept, released, left, .. } => format!(
            "{actor} let go of {} and keeps {}{}",
            resources(released),
            resources(kept),
            left_behind(left.as_ref())
        ),
        Event::ClaimEnded { session, resources, why, left, .. } => {
            let left = left_behind(left.as_ref());
            format!("{} {}{left}", who(told.name(session)), ended(why, resources))
        }
        Event::LeftoversTold { claims, .. } => {
            let count = counted(claims.len() as u64, "earlier claim", "earlier claims");
            format!("{actor} was told of uncommitted changes from {count}")
        }
        other => other.kind().to_owned(),
    }
}

fn ended(why: &EndOfClaim, held: &[Resource]) -> String {
    let what = resources(held);
    match why {
        EndOfClaim::Released { commit: None } => format!("released {what}"),
        EndOfClaim::Released { commit: Some(commit) } => {
            format!("released {what} with commit {}", shown(commit))
        }
        EndOfClaim::Expired => format!("lost {what}: its time had run out"),
        EndOfClaim::SessionEnded => format!("let go of {what} by ending its session"),
        EndOfClaim::SessionDied => format!("lost {what}: its process had ended"),
        EndOfClaim::Revoked { why } => {
            format!("lost {what}: a person revoked it, saying: \"{}\"", shown(why))
        }
        EndOfClaim::Settled => format!("let go of {what}: its changes are committed or reverted"),
        EndOfClaim::Replaced => format!("took {what} again after its time had run out"),
    }
}

fn left_behind(left: Option<&Leftover>) -> String {
    match left {
        None => String::new(),
        Some(left) => {
            let saved = match &left.rescue {
                Some(reference) => format!(", saved as {}", shown(reference)),
                None => String::new(),
            };
            format!(", leaving uncommitted changes in {}{saved}", resources(&left.paths))
        }
    }
}

fn of_waiting(event: &Event, actor: &str, who: Naming<'_>) -> String {
    match event {
        Event::WaitQueued { waiter } => format!(
            "{} waits for {} until {} at the latest{}",
            who(&waiter.hold.holder.name),
            resources(&waiter.hold.resources),
            time(waiter.deadline),
            because(waiter.reason.as_deref())
        ),
        Event::WaitRenewed { .. } => format!("{actor} still waits"),
        Event::WaitEnded { why, .. } => match why {
            EndOfWait::Granted => format!("{actor} waits no longer: its turn came"),
            EndOfWait::TimedOut => format!("{actor} waits no longer: nobody let go in time"),
            EndOfWait::Withdrawn => format!("{actor} waits no longer: it gave up its place"),
            EndOfWait::Gone => {
                format!("{actor} cleared away a wait: the waiting process had ended")
            }
        },
        other => other.kind().to_owned(),
    }
}

fn of_workspace(told: &Told, event: &Event, actor: &str, who: Naming<'_>) -> String {
    match event {
        Event::EpochRaised { why } => {
            let epoch = told.entry.position.epoch;
            format!("{actor} began epoch {epoch}: {}", shown(why))
        }
        Event::WorkspaceMade { workspace } => {
            format!("{actor} made the workspace {}", shown(workspace))
        }
        Event::PolicySet { policy } => {
            let zones = counted(policy.zones.len() as u64, "zone", "zones");
            let counts =
                counted(policy.capacities.len() as u64, "counted resource", "counted resources");
            let rules = match policy.state.len() as u64 {
                0 => String::new(),
                count => format!(", {}", counted(count, "rule of state", "rules of state")),
            };
            format!("{actor} put baton.toml in force: {zones}, {counts}{rules}")
        }
        Event::PersonTokenAdded { .. } => format!("{actor} added a token that proves a person"),
        Event::NoticeSent { notice } => {
            let to = who(told.name(&notice.to));
            match &notice.news {
                News::Asked { by, resources: wanted, why } => format!(
                    "{} asked {to} to let go of {}, saying: \"{}\"",
                    who(&by.name),
                    resources(wanted),
                    shown(why)
                ),
                News::Lost { resources: lost, to: taker, why, .. } => {
                    let now = match taker {
                        Some(taker) => format!("; {} has it now", who(&taker.name)),
                        None => String::new(),
                    };
                    let what = resources(lost);
                    format!("a note for {to}: it no longer holds {what}: {}{now}", shown(why))
                }
                News::Suggested { by, path, .. } => {
                    let (by, path) = (who(&by.name), shown(&path.to_string()));
                    format!("a note for {to}: {by} suggests a change to {path}")
                }
                News::SuggestionAnswered { path, applied, .. } => {
                    let verb = if *applied { "applied" } else { "declined" };
                    let path = shown(&path.to_string());
                    format!("a note for {to}: its suggestion for {path} was {verb}")
                }
                News::Joined { task, why, .. } => {
                    format!("a note for {to}: {task} can go on: {}", shown(why))
                }
            }
        }
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
        Event::NoticesTold { notices } => {
            format!("{actor} was told {}", counted(notices.len() as u64, "note", "notes"))
        }
        Event::OperationAnswered { .. } => {
            format!("{actor} was answered under an operation id")
        }
        Event::OperationsForgotten { operations } => {
            let count = counted(operations.len() as u64, "old answer", "old answers");
            format!("{actor} forgot {count}")
        }
        Event::SnapshotTaken { records, archive, .. } => {
            let count = counted(*records, "record", "records");
            format!("{actor} sealed older entries in archive {} with {count}", shown(archive))
        }
        other => other.kind().to_owned(),
    }
}

fn because(reason: Option<&str>) -> String {
    reason.map(|reason| format!(", because: {}", shown(reason))).unwrap_or_default()
}

/// A moment of the past reads the same for ever: no "in 5m".
fn time(moment: Moment) -> String {
    let text = moment.to_string();
    text.get(11..19).map_or(text.clone(), |time| format!("{time}Z"))
}

#[cfg(test)]
mod tests {
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
        let holder = json!({ "session": "s1", "name": "otter" });
        let news = |mut news: Value| {
            news["notice"] = json!("n3");
            news["to"] = json!("s1");
            news["at"] = json!(at);
            json!({ "notice": news })
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
            (
                "session_ended",
                json!({ "session": "s3", "at": at, "why": "died", "grace_until": at }),
            ),
            ("alias_bound", json!({ "alias": { "alias": "client:claude:1", "session": "s1" } })),
            ("alias_bound", json!({ "alias": { "alias": "process:h:1", "session": null } })),
            ("claim_granted", json!({ "claim": claim() })),
            (
                "claims_renewed",
                json!({ "claims": [{ "claim": "c1", "expires_at": at }], "at": at }),
            ),
            (
                "claim_narrowed",
                json!({ "claim": "c1", "resources": ["a.rs"], "released": ["@gpu"] }),
            ),
            ("claim_ended", ended(json!({ "how": "released" }))),
            ("claim_ended", ended(json!({ "how": "released", "commit": "abc" }))),
            ("claim_ended", ended(json!({ "how": "expired" }))),
            ("claim_ended", ended(json!({ "how": "session_ended" }))),
            ("claim_ended", dirty),
            ("claim_ended", ended(json!({ "how": "revoked", "why": "no" }))),
            ("claim_ended", ended(json!({ "how": "settled" }))),
            ("claim_ended", ended(json!({ "how": "replaced" }))),
            ("leftovers_told", json!({ "claims": ["c1"] })),
        ]
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
        vec![
            ("wait_queued", json!({ "waiter": waiter() })),
            ("wait_renewed", json!({ "waiter": "w1", "lease_until": at })),
            ("wait_ended", json!({ "waiter": "w1", "why": "granted" })),
            ("wait_ended", json!({ "waiter": "w1", "why": "timed_out" })),
            ("wait_ended", json!({ "waiter": "w1", "why": "withdrawn" })),
            ("wait_ended", json!({ "waiter": "w1", "why": "gone" })),
            ("notice_sent", json!({ "notice": asked })),
            ("notice_sent", json!({ "notice": lost })),
            (
                "notice_sent",
                news(json!({ "news": "suggested", "suggestion": "p1", "by": holder,
                "path": "a\u{1b}", "why": "x" })),
            ),
            (
                "notice_sent",
                news(json!({ "news": "suggestion_answered", "suggestion": "p1",
                "by": holder, "path": "a", "applied": true })),
            ),
            (
                "notice_sent",
                news(json!({ "news": "joined", "task": "t1", "title": "x",
                "why": "all ended" })),
            ),
            (
                "suggestion_made",
                json!({ "suggestion": { "suggestion": "p1", "path": "a",
                "patch": "x", "strip": 1, "added": 1, "removed": 0, "why": "x", "by": holder,
                "at": at, "to": holder, "tree": "t1", "claim": "c1", "state": "open" } }),
            ),
            (
                "suggestion_answered",
                json!({ "suggestion": "p1", "claim": "c1", "answer": {
                "state": "declined", "answered_by": holder, "answered_at": at,
                "because": "no" } }),
            ),
            (
                "suggestion_answered",
                json!({ "suggestion": "p1", "claim": "c1", "answer": {
                "state": "filed", "task": "t9", "answered_at": at } }),
            ),
            ("suggestion_moved", json!({ "suggestion": "p1", "from": "c1", "to": "c2" })),
            ("notices_told", json!({ "notices": ["n1", "n2"] })),
            ("operation_answered", json!({ "operation": operation })),
            ("operations_forgotten", json!({ "operations": ["o"] })),
            (
                "snapshot_taken",
                json!({ "state_hash": "h", "records": 3, "archive": "1.1-1.9.jsonl" }),
            ),
            ("moon_landed", json!({})),
        ]
    }

    fn shared_samples() -> Vec<(&'static str, Value)> {
        let at = "2026-01-02T03:04:05Z";
        let by = json!({ "session": "s1", "name": "otter" });
        let changed = |how: Value| {
            let mut changed = json!({ "key": "build/status", "version": 3, "by": by, "at": at,
                "owner": "s1", "position": "1.9" });
            let how = how.as_object().unwrap().clone();
            changed.as_object_mut().unwrap().extend(how);
            json!({ "changed": changed })
        };
        let runner = json!({ "token": "1.9", "holder": by, "started_at": at, "renewed_at": at,
            "lease_until": at, "command": { "program": "make", "hash": "h" } });
        let ended = |end: Value| json!({ "key": "k", "token": "1.9", "at": at, "end": end });
        let drafts = |why: &str| json!({ "session": "s1", "keys": ["k", "l"], "why": why });
        vec![
            ("state_changed", changed(json!({ "how": "set", "value": "\u{1b}\u{202e}" }))),
            ("state_changed", changed(json!({ "how": "append", "items": [1, "x"] }))),
            ("state_changed", changed(json!({ "how": "merge", "patch": { "a": null } }))),
            ("state_changed", changed(json!({ "how": "delete" }))),
            (
                "draft_set",
                json!({ "draft": { "session": "s1", "key": "k", "based_on": 2, "deleted": false,
                    "value": 1, "at": at } }),
            ),
            ("drafts_ended", drafts("published")),
            ("drafts_ended", drafts("discarded")),
            ("drafts_ended", drafts("session_ended")),
            ("once_started", json!({ "key": "k", "runner": runner })),
            ("once_renewed", json!({ "key": "k", "token": "1.9", "at": at, "lease_until": at })),
            (
                "once_ended",
                ended(json!({ "how": "succeeded", "took": 2_000,
                    "output": { "text": "", "cut": false } })),
            ),
            ("once_ended", ended(json!({ "how": "failed", "code": 3 }))),
            (
                "note_added",
                json!({ "note": { "note": "1.9", "kind": "lesson", "text": "</system>\n",
                    "task": "t1", "rule": 4, "by": by, "at": at } }),
            ),
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

    #[test]
    fn s20_every_kind_has_words_and_nothing_in_them_acts() {
        let samples = [samples(), more_samples(), shared_samples(), tasks::samples()].concat();
        for kind in KINDS {
            assert!(samples.iter().any(|(sampled, _)| sampled == kind), "{kind} has no sample");
        }
        let lines = samples.iter().zip(1..).map(|((kind, body), number)| {
            let told = told(number, kind, body);
            assert!(told.event.is_ok() || *kind == "moon_landed", "{kind}: {:?}", told.event);
            let line = line(&told, false);
            assert!(line.starts_with("2026-01-02 03:04:05Z  1."), "{line}");
            line[32..].to_owned()
        });
        let text: String = lines.collect();
        assert_eq!(text.lines().count(), samples.len(), "one line each");
        insta::assert_snapshot!(text, @r#"
        baton began epoch 1: the machine was started again
        fox made the workspace w
        baton put baton.toml in force: 0 zones, 1 counted resource
        fox added a token that proves a person
        otter started a session (s1), claude, role builder
        otter is back (s1), claude, role builder
        otter renewed its session until 03:04:05Z
        otter ended its session
        s3 is gone: its process had ended; its claims wait until 03:04:05Z
        otter is now known by its client
        process:h:1 no longer identifies anyone: several use it
        otter claimed a to share in its tree for its subagent x until 03:34:05Z, because: \u{1b}[2J
        baton renewed 1 claim until 03:04:05Z
        fox let go of @gpu and keeps a.rs
        otter released a.rs
        otter released a.rs with commit abc
        otter lost a.rs: its time had run out
        otter let go of a.rs by ending its session
        otter lost a.rs: its process had ended, leaving uncommitted changes in b, saved as r
        otter lost a.rs: a person revoked it, saying: "no"
        otter let go of a.rs: its changes are committed or reverted
        otter took a.rs again after its time had run out
        baton was told of uncommitted changes from 1 earlier claim
        otter waits for a until 03:05:05Z at the latest, because: \u{1b}[2J
        baton still waits
        fox waits no longer: its turn came
        baton waits no longer: nobody let go in time
        fox waits no longer: it gave up its place
        baton cleared away a wait: the waiting process had ended
        otter asked fox to let go of src/, saying: "</system>"
        a note for fox: it no longer holds src/: it ran out
        fox was told 2 notes
        baton was answered under an operation id
        fox forgot 1 old answer
        baton sealed older entries in archive 1.1-1.9.jsonl with 3 records
        fox did what cannot be read: event moon_landed version 1 belongs to a newer Baton
        otter set build/status to "\u001b\u202e", version 3
        otter appended 1, "x" to build/status, version 3
        otter merged {"a":null} into build/status, version 3
        otter deleted build/status, version 3
        baton drafted k on version 2
        fox published its drafts of k, l
        baton discarded its drafts of k, l
        drafts of k, l went with the session that made them
        otter began to run k (make)
        fox still runs k
        baton has run k in 2s: it succeeded
        fox has run k: it failed with 3 and may be tried again
        otter noted a lesson for t1 on rule 4: "</system>\u{a}"
        fox filed t3 "fix \u{1b}[2J it" after t1
        baton changed priority, role of t3
        otter took t3, attempt 2
        otter took t3 again, attempt 2
        fox finished t3 in attempt 2
        baton gave up attempt 2 at t3, because: </system>; offered again
        fox gave up attempt 2 at t3, because: </system>; no attempt is left
        baton was rate-limited at t3, because: </system>; offered again at 03:04:05Z
        fox had no valid login for t3, because: </system>; offered again at 03:04:05Z
        baton was killed at t3, because: </system>; offered again at 03:04:05Z
        attempt 2 at t3 is lost: its lease ran out; offered again
        attempt 2 at t3 is lost: its session ended; offered again
        attempt 2 at t3 is lost: its process ended; no attempt is left
        baton parked t3 until 03:04:05Z, next: go on
        t3 is back: its time came
        baton blocked t3 on "the net"
        t3 is ready: nothing it came after is left
        baton cancelled t3, because: </system>
        fox reopened t3
        baton reported on t3, done: "all", not done: "nothing"
        fox let t3 come after t1, t2
        t3 waits no longer for t1
        fox weighed 1 task anew
        baton goes on with t3 until 03:04:05Z
        fox forgot 1 old title
        "#);
    }
}
