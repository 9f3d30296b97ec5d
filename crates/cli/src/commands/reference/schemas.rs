//! The documents that `--json` answers with, a function per noun.
//!
//! One schema a reply: the same document answers `--json`, and later MCP and HTTP. What several
//! have in common is defined once, under `$defs`.

use schemars::SchemaGenerator;
use serde_json::{Map, Value, json};

pub(super) fn all() -> Value {
    let mut generator = SchemaGenerator::default();
    let nouns = [claims, sessions, tasks, handoffs, gates, shared, trees, landings];
    let objects = nouns.iter().filter_map(|noun| match noun(&mut generator) {
        Value::Object(replies) => Some(replies),
        _ => None,
    });
    let replies: Map<String, Value> = objects.flatten().collect();
    json!({ "replies": replies, "$defs": generator.take_definitions(true) })
}

fn landings(generator: &mut SchemaGenerator) -> Value {
    use baton_core::landings::{Changed, Standing};
    use baton_engine::landing::{Listed, Reply};

    json!({
        "land": generator.subschema_for::<Reply>(),
        "queue list": generator.subschema_for::<Listed>(),
        "queue show": generator.subschema_for::<Reply>(),
        "queue pause": generator.subschema_for::<Standing>(),
        "queue resume": generator.subschema_for::<Standing>(),
        "queue remove": generator.subschema_for::<Changed>(),
        "queue retry": generator.subschema_for::<Reply>(),
        "queue run": generator.subschema_for::<Listed>(),
    })
}

fn claims(generator: &mut SchemaGenerator) -> Value {
    use baton_core::claims::Granted;
    use baton_core::claims::letting_go::{Released, Renewed, Revoked};
    use baton_core::refusal::Held;
    use baton_engine::checking::Verdicts;
    use baton_engine::claiming::Asking;
    use baton_engine::listing::{ClaimList, Story};

    json!({
        "claim": generator.subschema_for::<Granted>(),
        "claim, refused": generator.subschema_for::<Held>(),
        "release": generator.subschema_for::<Released>(),
        "renew": generator.subschema_for::<Renewed>(),
        "ask": generator.subschema_for::<Asking>(),
        "revoke": generator.subschema_for::<Revoked>(),
        "check": generator.subschema_for::<Verdicts>(),
        "claims": generator.subschema_for::<ClaimList>(),
        "why": generator.subschema_for::<Story>(),
    })
}

fn sessions(generator: &mut SchemaGenerator) -> Value {
    use baton_core::calls::Called;
    use baton_core::roles::giving::Given;
    use baton_core::sessions::Ended;
    use baton_core::subagents::Stopped;
    use baton_engine::rules::report::Report;
    use baton_engine::rules::{Checked, Shown};
    use baton_engine::sessions::{Credentials, Seat, Seats};

    json!({
        "start": generator.subschema_for::<baton_engine::starting::Leftovers>(),
        "session start": generator.subschema_for::<Credentials>(),
        "session end": generator.subschema_for::<Ended>(),
        "session list": generator.subschema_for::<Seats>(),
        "session whoami": generator.subschema_for::<Seat>(),
        "session agent-stop": generator.subschema_for::<Stopped>(),
        "session call": generator.subschema_for::<Called>(),
        "session role": generator.subschema_for::<Given>(),
        "roles": generator.subschema_for::<crate::commands::roles::Roles>(),
        "rules show": generator.subschema_for::<Shown>(),
        "rules check": generator.subschema_for::<Checked>(),
        "rules report": generator.subschema_for::<Report>(),
    })
}

fn tasks(generator: &mut SchemaGenerator) -> Value {
    use baton_core::handoffs::checkpoint::Saved;
    use baton_core::tasks::Moved;
    use baton_core::tasks::adding::Added;
    use baton_core::tasks::refused::Nothing;
    use baton_core::tasks::reviewing::judging::Judged;
    use baton_core::tasks::splitting::Divided;
    use baton_core::tasks::taking::Taken;
    use baton_engine::evidence::Outcomes;
    use baton_engine::import::Imported;
    use baton_engine::tasking::graph::Graph;
    use baton_engine::tasking::showing::{ShownTask, TaskList};
    use baton_engine::tasking::splitting::Results;

    json!({
        "task add": generator.subschema_for::<Added>(),
        "import": generator.subschema_for::<Imported>(),
        "task take": generator.subschema_for::<Taken>(),
        "task take, refused with nothing_ready": generator.subschema_for::<Nothing>(),
        "task checkpoint": generator.subschema_for::<Saved>(),
        "task split": generator.subschema_for::<Divided>(),
        "task results": generator.subschema_for::<Results>(),
        "task graph": generator.subschema_for::<Graph>(),
        "task check": generator.subschema_for::<Outcomes>(),
        "task show": generator.subschema_for::<ShownTask>(),
        "task list, ready, blocked, dead": generator.subschema_for::<TaskList>(),
        "task update, block, park, done, fail, cancel, reopen": generator.subschema_for::<Moved>(),
        "task submit, withdraw, revive": generator.subschema_for::<Moved>(),
        "task approve, reject": generator.subschema_for::<Judged>(),
    })
}

fn handoffs(generator: &mut SchemaGenerator) -> Value {
    use baton_core::handoffs::accepting::Answered;
    use baton_core::handoffs::complete::Paper;
    use baton_core::handoffs::offering::Offered;
    use baton_engine::handing::{HandoffList, Received, ShownHandoff};

    json!({
        "handoff offer": generator.subschema_for::<Offered>(),
        "handoff offer --file": generator.subschema_for::<Paper>(),
        "handoff accept": generator.subschema_for::<Received>(),
        "handoff decline": generator.subschema_for::<Answered>(),
        "handoff list": generator.subschema_for::<HandoffList>(),
        "handoff show": generator.subschema_for::<ShownHandoff>(),
    })
}

fn gates(generator: &mut SchemaGenerator) -> Value {
    use baton_core::gates::Added;
    use baton_core::gates::deciding::{Decided, Trusted};
    use baton_core::votes::{Ballot, Voted};
    use baton_engine::gating::{Checks, GateList, ShownGate};

    json!({
        "gate add": generator.subschema_for::<Added>(),
        "gate list": generator.subschema_for::<GateList>(),
        "gate show": generator.subschema_for::<ShownGate>(),
        "gate approve, deny": generator.subschema_for::<Decided>(),
        "gate check": generator.subschema_for::<Checks>(),
        "gate trust": generator.subschema_for::<Trusted>(),
        "deploy": generator.subschema_for::<baton_core::deploy::Deploy>(),
        "deploys": generator.subschema_for::<baton_engine::deploying::DeployList>(),
        "trust": generator.subschema_for::<baton_core::trust::Given>(),
        "vote": generator.subschema_for::<Voted>(),
        "votes": generator.subschema_for::<Ballot>(),
    })
}

fn shared(generator: &mut SchemaGenerator) -> Value {
    use baton_core::notes::{Noted, Notes};
    use baton_core::state::drafts::{Discarded, Published};
    use baton_core::state::{Got, Names, Written};
    use baton_core::suggestions::{Suggestion, Told};
    use baton_engine::state::{History, Version};
    use baton_engine::suggesting::Suggestions;

    json!({
        "state get": generator.subschema_for::<Got>(),
        "state set, append, merge, delete": generator.subschema_for::<Written>(),
        "state list": generator.subschema_for::<Names>(),
        "state history": generator.subschema_for::<History>(),
        "state watch": generator.subschema_for::<Version>(),
        "state publish": generator.subschema_for::<Published>(),
        "state discard": generator.subschema_for::<Discarded>(),
        "suggest; suggestion apply, decline": generator.subschema_for::<Told>(),
        "commit": generator.subschema_for::<baton_engine::committing::Reply>(),
        "conflicts": generator.subschema_for::<baton_engine::conflicts::Conflicts>(),
        "sync": generator.subschema_for::<baton_engine::syncing::Synced>(),
        "suggestions": generator.subschema_for::<Suggestions>(),
        "suggestion show": generator.subschema_for::<Suggestion>(),
        "interface add, use, remove, give":
            generator.subschema_for::<baton_core::interfaces::Told>(),
        "interface list": generator.subschema_for::<baton_engine::interfaces::Interfaces>(),
        "interface show": generator.subschema_for::<baton_engine::interfaces::Shown>(),
        "once": generator.subschema_for::<crate::commands::once::Reply>(),
        "note": generator.subschema_for::<Noted>(),
        "notes": generator.subschema_for::<Notes>(),
    })
}

fn trees(generator: &mut SchemaGenerator) -> Value {
    use baton_core::numbers::Given;
    use baton_core::trees::{Made, Removed};
    use baton_engine::rescuing::{RescueList, Restored, ShownRescue};
    use baton_engine::trees::looking::TreeList;
    use baton_engine::trees::removing::Collected;

    json!({
        "worktree new": generator.subschema_for::<Made>(),
        "worktree list": generator.subschema_for::<TreeList>(),
        "worktree remove": generator.subschema_for::<Removed>(),
        "worktree gc": generator.subschema_for::<Collected>(),
        "rescue list": generator.subschema_for::<RescueList>(),
        "rescue show": generator.subschema_for::<ShownRescue>(),
        "rescue restore": generator.subschema_for::<Restored>(),
        "next-number": generator.subschema_for::<Given>(),
    })
}
