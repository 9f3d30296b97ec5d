//! The documents that `--json` answers with, a function per noun.
//!
//! One schema a reply: the same document answers `--json`, and later MCP and HTTP.

use schemars::schema_for;
use serde_json::{Map, Value, json};

pub(super) fn all() -> Value {
    let nouns = [claims(), sessions(), tasks(), handoffs(), gates(), shared(), trees()];
    let objects = nouns.into_iter().filter_map(|noun| match noun {
        Value::Object(replies) => Some(replies),
        _ => None,
    });
    Value::Object(objects.flatten().collect::<Map<String, Value>>())
}

fn claims() -> Value {
    use baton_core::claims::Granted;
    use baton_core::claims::letting_go::{Asked, Released, Renewed, Revoked};
    use baton_core::refusal::Held;
    use baton_engine::checking::Verdicts;
    use baton_engine::listing::{ClaimList, Story};

    json!({
        "claim": schema_for!(Granted),
        "claim, refused": schema_for!(Held),
        "release": schema_for!(Released),
        "renew": schema_for!(Renewed),
        "ask": schema_for!(Asked),
        "revoke": schema_for!(Revoked),
        "check": schema_for!(Verdicts),
        "claims": schema_for!(ClaimList),
        "why": schema_for!(Story),
    })
}

fn sessions() -> Value {
    use baton_core::calls::Called;
    use baton_core::sessions::Ended;
    use baton_core::subagents::Stopped;
    use baton_engine::sessions::{Credentials, Seat, Seats};

    json!({
        "session start": schema_for!(Credentials),
        "session end": schema_for!(Ended),
        "session list": schema_for!(Seats),
        "session whoami": schema_for!(Seat),
        "session agent-stop": schema_for!(Stopped),
        "session call": schema_for!(Called),
    })
}

fn tasks() -> Value {
    use baton_core::handoffs::checkpoint::Saved;
    use baton_core::tasks::Moved;
    use baton_core::tasks::adding::Added;
    use baton_core::tasks::refused::Nothing;
    use baton_core::tasks::reviewing::judging::Judged;
    use baton_core::tasks::splitting::Divided;
    use baton_core::tasks::taking::Taken;
    use baton_engine::evidence::Outcomes;
    use baton_engine::tasking::graph::Graph;
    use baton_engine::tasking::showing::{ShownTask, TaskList};
    use baton_engine::tasking::splitting::Results;

    json!({
        "task add": schema_for!(Added),
        "task take": schema_for!(Taken),
        "task take, refused with nothing_ready": schema_for!(Nothing),
        "task checkpoint": schema_for!(Saved),
        "task split": schema_for!(Divided),
        "task results": schema_for!(Results),
        "task graph": schema_for!(Graph),
        "task check": schema_for!(Outcomes),
        "task show": schema_for!(ShownTask),
        "task list, ready, blocked, dead": schema_for!(TaskList),
        "task update, block, park, done, fail, cancel, reopen": schema_for!(Moved),
        "task submit, withdraw, revive": schema_for!(Moved),
        "task approve, reject": schema_for!(Judged),
    })
}

fn handoffs() -> Value {
    use baton_core::handoffs::accepting::Answered;
    use baton_core::handoffs::complete::Paper;
    use baton_core::handoffs::offering::Offered;
    use baton_engine::handing::{HandoffList, Received, ShownHandoff};

    json!({
        "handoff offer": schema_for!(Offered),
        "handoff offer --file": schema_for!(Paper),
        "handoff accept": schema_for!(Received),
        "handoff decline": schema_for!(Answered),
        "handoff list": schema_for!(HandoffList),
        "handoff show": schema_for!(ShownHandoff),
    })
}

fn gates() -> Value {
    use baton_core::gates::Added;
    use baton_core::gates::deciding::{Decided, Trusted};
    use baton_core::votes::{Ballot, Voted};
    use baton_engine::gating::{Checks, GateList, ShownGate};

    json!({
        "gate add": schema_for!(Added),
        "gate list": schema_for!(GateList),
        "gate show": schema_for!(ShownGate),
        "gate approve, deny": schema_for!(Decided),
        "gate check": schema_for!(Checks),
        "gate trust": schema_for!(Trusted),
        "vote": schema_for!(Voted),
        "votes": schema_for!(Ballot),
    })
}

fn shared() -> Value {
    use baton_core::notes::{Noted, Notes};
    use baton_core::state::drafts::{Discarded, Published};
    use baton_core::state::{Got, Names, Written};
    use baton_core::suggestions::{Suggestion, Told};
    use baton_engine::state::{History, Version};
    use baton_engine::suggesting::Suggestions;

    json!({
        "state get": schema_for!(Got),
        "state set, append, merge, delete": schema_for!(Written),
        "state list": schema_for!(Names),
        "state history": schema_for!(History),
        "state watch": schema_for!(Version),
        "state publish": schema_for!(Published),
        "state discard": schema_for!(Discarded),
        "suggest; suggestion apply, decline": schema_for!(Told),
        "suggestions": schema_for!(Suggestions),
        "suggestion show": schema_for!(Suggestion),
        "once": schema_for!(crate::commands::once::Reply),
        "note": schema_for!(Noted),
        "notes": schema_for!(Notes),
    })
}

fn trees() -> Value {
    use baton_core::numbers::Given;
    use baton_core::trees::{Made, Removed};
    use baton_engine::rescuing::{RescueList, Restored, ShownRescue};
    use baton_engine::trees::looking::TreeList;
    use baton_engine::trees::removing::Collected;

    json!({
        "worktree new": schema_for!(Made),
        "worktree list": schema_for!(TreeList),
        "worktree remove": schema_for!(Removed),
        "worktree gc": schema_for!(Collected),
        "rescue list": schema_for!(RescueList),
        "rescue show": schema_for!(ShownRescue),
        "rescue restore": schema_for!(Restored),
        "next-number": schema_for!(Given),
    })
}
