//! Every kind of event in plain words, one line each.
//!
//! Owns the sentences. All text that came from an agent goes through `shown` (S20).

use baton_core::claim::{Holder, Leftover, Mode, Scope};
use baton_core::event::{EndOfClaim, EndOfSession, Event, Room};
use baton_core::resource::Resource;
use baton_core::serial::EndOfZone;
use baton_core::sessions::Session;
use baton_core::time::Moment;
use baton_engine::journal::Told;

use crate::render::{Paint, counted, paint, quoted, resources, shown};

mod denials;
mod deploys;
mod gates;
mod handoffs;
mod interfaces;
mod landings;
mod notices;
mod parts;
mod shared;
mod suggestions;
mod tasks;
mod trees;

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
    match event.room() {
        Room::Session => of_session(told, event, &who),
        Room::Claim => of_claim(told, event, &actor, &who),
        Room::Denial => denials::sentence(event, &who),
        Room::Interface => interfaces::sentence(event, &who),
        Room::Waiting => notices::sentence(told, event, &actor, &who),
        Room::Task => tasks::sentence(event, &actor, &who),
        Room::Part => parts::sentence(event, &actor, &who),
        Room::Handoff => handoffs::sentence(event, &actor, &who),
        Room::Suggestion => suggestions::sentence(event, &actor, &who),
        Room::Review | Room::Gate => gates::sentence(event, &actor, &who),
        Room::Tree => trees::sentence(event, &actor, &who),
        Room::Landing => landings::sentence(event, &actor, &who),
        Room::Deploy => deploys::sentence(event, &actor, &who),
        Room::Shared => shared::sentence(event, &actor, &who),
        Room::Workspace | Room::Nothing => of_workspace(told, event, &actor),
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
        Event::CallStarted { session, busy_until, .. } => {
            let name = who(told.name(session));
            format!("{name} is in a tool call: nothing runs out before {}", time(*busy_until))
        }
        Event::CallsEnded { session, busy_until, .. } => {
            let name = who(told.name(session));
            match busy_until {
                None => format!("{name} ended its tool call"),
                Some(until) => {
                    format!("{name} ended a tool call and is in others until {}", time(*until))
                }
            }
        }
        Event::RoleGiven { session, role, .. } => {
            format!("{} has the role {}", who(told.name(session)), shown(role))
        }
        Event::RulesSeen { session, seen } => {
            let version = shown(&seen.version);
            format!("{} was told the rules, version {version}", who(told.name(session)))
        }
        Event::SubagentStopped { session, agent, claims, .. } => {
            let count = counted(claims.len() as u64, "claim", "claims");
            let name = who(told.name(session));
            format!("{name} has {count} of its subagent {}, which stopped", shown(agent))
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
        Event::ZoneHeld { hold } => {
            let task = hold.task.as_ref().map(|task| format!(" for {task}")).unwrap_or_default();
            let zone = shown(&hold.zone.to_string());
            let (name, branch) = (who(&hold.holder.name), shown(&hold.branch));
            format!("{name} has {zone}{task} until {branch} has landed")
        }
        Event::ZoneFreed { zone, branch, why, .. } => {
            let (zone, branch) = (shown(&zone.to_string()), shown(branch));
            let why = match why {
                EndOfZone::Landed => "it has landed".to_owned(),
                EndOfZone::NothingLeft => "nothing of it is left to land".to_owned(),
                EndOfZone::Abandoned => "its task was given up".to_owned(),
                EndOfZone::Revoked { why } => format!("a person said so: \"{}\"", shown(why)),
            };
            format!("{zone} waits for {branch} no longer: {why}")
        }
        Event::HoldBreached { breach } => {
            let (by, holder) = (worker(&breach.by, who), worker(&breach.holder, who));
            let what = shown(&breach.resource.to_string());
            match breach.unsure {
                false => format!("{by} wrote to {what}, which {holder} held, around the edit door"),
                true => format!(
                    "{what}, which {holder} held, changed while a command of {by} ran; by whose \
                     hand is not known"
                ),
            }
        }
        Event::LeftoversTold { claims, .. } => {
            let count = counted(claims.len() as u64, "earlier claim", "earlier claims");
            format!("{actor} was told of uncommitted changes from {count}")
        }
        other => other.kind().to_owned(),
    }
}

/// Two subagents of one session have its name: only with their own are they told apart.
fn worker(holder: &Holder, who: Naming<'_>) -> String {
    let agent = holder.agent.as_deref().map(|agent| format!(" (subagent {})", shown(agent)));
    format!("{}{}", who(&holder.name), agent.unwrap_or_default())
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
        EndOfClaim::HandedOver { .. } => format!("handed {what} over with its task"),
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

fn of_workspace(told: &Told, event: &Event, actor: &str) -> String {
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
        Event::CommitMade { made } => {
            let commit: String = made.commit.chars().take(12).collect();
            let task = made.task.as_ref().map(|task| format!(" for {task}")).unwrap_or_default();
            format!("{actor} committed {} as {}{task}", resources(&made.paths), shown(&commit))
        }
        Event::CommandsTrusted { trust } => {
            let count = counted(trust.commands.len() as u64, "command", "commands");
            let names: Vec<String> =
                trust.commands.iter().map(|one| shown(&one.command.what)).collect();
            let names = match names.is_empty() {
                true => String::new(),
                false => format!(": {}", names.join(", ")),
            };
            format!("a person stands for {count} of baton.toml{names}")
        }
        Event::PersonTokenAdded { .. } => format!("{actor} added a token that proves a person"),
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
    reason.map(|reason| format!(", because: {}", quoted(reason))).unwrap_or_default()
}

/// A moment of the past reads the same for ever: no "in 5m".
fn time(moment: Moment) -> String {
    let text = moment.to_string();
    text.get(11..19).map_or(text.clone(), |time| format!("{time}Z"))
}

#[cfg(test)]
mod tests;
