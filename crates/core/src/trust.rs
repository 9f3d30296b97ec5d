//! Which commands of the policy a person stands for.
//!
//! Owns the one record of it and the rule who may change it. A command is known by the hash of its
//! words, whatever it is called. Invariants: a repository never makes Baton run a command by
//! surprise; trusting and putting the policy in force are one decision, and what is trusted is
//! exactly what that policy would run, nothing that an earlier one said.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::claim::Holder;
use crate::context::Context;
use crate::event::Event;
use crate::policy::{self, Approved, Change, Difference, Standing};
use crate::refusal::Refusal;
use crate::time::Moment;
use crate::view::{Index, Kind, Record, View, get};
use crate::zones::Policy;

/// A command that the policy would let Baton run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Command {
    /// What it is for: `queue check unit`, `deploy prod run`.
    pub what: String,
    pub argv: Vec<String>,
}

impl Command {
    pub fn new(what: impl Into<String>, argv: &[String]) -> Self {
        Self { what: what.into(), argv: argv.to_vec() }
    }

    /// By what it is trusted. Each word goes in with its length, so that no two commands read the
    /// same.
    pub fn hash(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for word in &self.argv {
            hasher.update(&(word.len() as u64).to_le_bytes());
            hasher.update(word.as_bytes());
        }
        hasher.finalize().to_hex().to_string()
    }
}

/// A command as it was when a person said yes to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Trusted {
    #[serde(flatten)]
    pub command: Command,
    pub hash: String,
}

/// What a person stands for: one record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Trust {
    pub commands: Vec<Trusted>,
    pub at: Moment,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Holder>,
}

impl Trust {
    pub const KEY: &str = "current";

    pub fn covers(&self, command: &Command) -> bool {
        let hash = command.hash();
        self.commands.iter().any(|trusted| trusted.hash == hash)
    }
}

impl Record for Trust {
    const KIND: Kind = "trust";

    fn key(&self) -> String {
        Self::KEY.to_owned()
    }

    fn index_entries(&self) -> Vec<(Index, String)> {
        Vec::new()
    }
}

/// Every command that a policy lets Baton run by itself, in the order of the file.
pub fn commands(policy: &Policy) -> Vec<Command> {
    let check = |name: &str| format!("queue check {name}");
    let checks = policy.evidence.named.iter();
    let mut all: Vec<Command> =
        checks.map(|one| Command::new(check(&one.name), &one.run)).collect();
    let queue = &policy.queue;
    for (what, argv) in
        [("queue request", &queue.request), ("queue merge driver", &queue.merge_driver)]
    {
        all.extend((!argv.is_empty()).then(|| Command::new(what, argv)));
    }
    all.extend(policy.deploys.iter().flat_map(|(target, rules)| rules.commands_of(target)));
    all.extend(setup(policy));
    all
}

/// What makes a new working tree ready, where the policy says so.
pub fn setup(policy: &Policy) -> Option<Command> {
    let words = &policy.trees.setup;
    (!words.is_empty()).then(|| Command::new("worktree setup", words))
}

/// Those of these commands that nobody stands for.
pub fn untrusted(view: &dyn View, commands: &[Command]) -> Result<Vec<Command>, Refusal> {
    if commands.is_empty() {
        return Ok(Vec::new());
    }
    let trust = get::<Trust>(view, Trust::KEY)?.unwrap_or_default();
    Ok(commands.iter().filter(|command| !trust.covers(command)).cloned().collect())
}

/// Refuses to go on unless a person stands for all of these.
pub fn demand(view: &dyn View, commands: &[Command]) -> Result<(), Refusal> {
    match untrusted(view, commands)? {
        missing if missing.is_empty() => Ok(()),
        commands => Err(Refusal::Untrusted { commands }),
    }
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Given {
    pub policy: Change,
    pub difference: Difference,
    /// All that is trusted now.
    pub commands: Vec<Command>,
    /// What was not before.
    pub added: Vec<Command>,
    /// What was trusted before and is in the policy no more.
    pub dropped: Vec<Command>,
}

/// Puts a policy in force and stands for its commands, in one decision. A person's right.
pub fn give(
    view: &dyn View,
    policy: &Policy,
    context: &Context,
) -> Result<(Vec<Event>, Given), Refusal> {
    if !context.actor.person {
        return Err(Refusal::NeedsPerson { what: "trusting commands".to_owned() });
    }
    stand_for(view, policy, context)
}

/// The same where a person has said yes before, to exactly this file.
pub(crate) fn stand_for(
    view: &dyn View,
    policy: &Policy,
    context: &Context,
) -> Result<(Vec<Event>, Given), Refusal> {
    let before = get::<Trust>(view, Trust::KEY)?;
    let (mut events, approved) = policy::put_in_force(view, policy, Standing::Person, context)?;
    let commands = commands(policy);
    let trusted = |command: &Command| Trusted { command: command.clone(), hash: command.hash() };
    let trust = Trust {
        commands: commands.iter().map(trusted).collect(),
        at: context.now,
        by: Some(Holder::person()),
    };
    let known = before.unwrap_or_default();
    let added = commands.iter().filter(|one| !known.covers(one)).cloned().collect();
    let dropped = known.commands.iter().filter(|one| !trust.covers(&one.command));
    let dropped = dropped.map(|one| one.command.clone()).collect();
    if known.commands != trust.commands {
        events.push(Event::CommandsTrusted { trust });
    }
    let Approved { policy, difference } = approved;
    Ok((events, Given { policy, difference, commands, added, dropped }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::{Actor, Observed};
    use crate::evolve::evolve;
    use crate::id::{Fresh, Position};
    use crate::memory::Memory;
    use crate::tasks::evidence::NamedCheck;
    use crate::time::Span;

    fn policy(checks: &[(&str, &[&str])]) -> Policy {
        let mut policy = Policy { source_hash: format!("{checks:?}"), ..Policy::default() };
        policy.evidence.named = checks
            .iter()
            .map(|(name, run)| NamedCheck {
                name: (*name).to_owned(),
                run: run.iter().map(|word| (*word).to_owned()).collect(),
                timeout: Span::minutes(1),
            })
            .collect();
        policy
    }

    fn give_as(memory: &mut Memory, policy: &Policy, person: bool) -> Result<Given, Refusal> {
        let context = Context {
            now: Moment(1),
            next: Position { epoch: 1, number: 1 },
            fresh: Fresh([0; 32]),
            actor: Actor { person, ..Actor::default() },
            observed: Observed::default(),
            failed_over_at: None,
        };
        let (events, given) = give(memory, policy, &context)?;
        events.iter().for_each(|event| evolve(memory, event).unwrap());
        Ok(given)
    }

    fn missing(memory: &Memory, policy: &Policy) -> Vec<String> {
        let found = untrusted(memory, &commands(policy)).unwrap();
        found.into_iter().map(|command| command.what).collect()
    }

    #[test]
    fn a_command_is_trusted_by_its_words_whatever_it_is_called() {
        let mut memory = Memory::default();
        let first = policy(&[("unit", &["make", "test"]), ("lint", &["make", "lint"])]);
        assert_eq!(missing(&memory, &first), ["queue check unit", "queue check lint"]);
        let given = give_as(&mut memory, &first, true).unwrap();
        assert_eq!((given.policy, given.added.len()), (Change::InForce, 2));
        assert!(missing(&memory, &first).is_empty());
        let renamed = policy(&[("all", &["make", "test"])]);
        assert!(missing(&memory, &renamed).is_empty());
        let changed = policy(&[("unit", &["make", "test;evil"]), ("joined", &["maketest"])]);
        assert_eq!(missing(&memory, &changed), ["queue check unit", "queue check joined"]);
        assert!(matches!(
            demand(&memory, &commands(&changed)),
            Err(Refusal::Untrusted { commands }) if commands.len() == 2
        ));
        assert!(demand(&memory, &[]).is_ok());
    }

    #[test]
    fn what_left_the_policy_is_trusted_no_more_and_nobody_else_may_trust() {
        let mut memory = Memory::default();
        let first = policy(&[("unit", &["make"]), ("lint", &["lint"])]);
        let refused = give_as(&mut memory, &first, false);
        assert!(matches!(refused, Err(Refusal::NeedsPerson { .. })), "{refused:?}");
        assert_eq!(missing(&memory, &first).len(), 2);
        assert!(policy::in_force(&memory).unwrap().is_none());
        give_as(&mut memory, &first, true).unwrap();
        let fewer = policy(&[("unit", &["make"])]);
        let given = give_as(&mut memory, &fewer, true).unwrap();
        assert_eq!(given.dropped[0].argv, ["lint"]);
        assert!(given.added.is_empty());
        assert_eq!(missing(&memory, &first), ["queue check lint"]);
        assert_eq!(policy::in_force(&memory).unwrap().unwrap().source_hash, fewer.source_hash);
    }
}
