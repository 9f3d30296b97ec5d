//! Which policy is in force: the last one that a person approved.
//!
//! Owns the rule who may change it. The first policy of a workspace is taken as it is, since
//! somebody has to begin; from then on an agent cannot loosen the rules it works under. What the
//! policy means is in `zones`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::context::Context;
use crate::deploy;
use crate::event::Event;
use crate::landing;
use crate::refusal::Refusal;
use crate::roles;
use crate::state;
use crate::tasks::evidence;
use crate::tree;
use crate::view::{View, get};
use crate::zones::{OnExhausted, Policy, Zone};

/// Who wants the change, as far as the engine could tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// A terminal without an agent above it, or the person token.
    Person,
    /// A script without any sign of an agent: a person set it up and is not there.
    Unattended,
    /// An agent, or whoever acts as a session.
    Agent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    InForce,
    Unchanged,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Approved {
    pub policy: Change,
    pub difference: Difference,
}

/// The policy in force; `None` before the first.
pub fn in_force(view: &dyn View) -> Result<Option<Policy>, Refusal> {
    Ok(get::<Policy>(view, Policy::KEY)?)
}

/// Puts a policy in force, or refuses to.
pub fn put_in_force(
    view: &dyn View,
    policy: &Policy,
    standing: Standing,
    context: &Context,
) -> Result<(Vec<Event>, Approved), Refusal> {
    let current = in_force(view)?;
    let difference = Difference::between(&current.clone().unwrap_or_default(), policy);
    let (change, told) = match &current {
        None => (Change::InForce, true),
        Some(current) if current.source_hash == policy.source_hash => (Change::Unchanged, false),
        // Other words for the same rules; noted, but nothing that needs anybody's word.
        Some(_) if difference.is_empty() => (Change::Unchanged, true),
        Some(_) if standing == Standing::Agent => {
            return Err(Refusal::NeedsPerson { what: "a change of the policy".to_owned() });
        }
        Some(_) => (Change::InForce, true),
    };
    let policy = Policy { approved_at: context.now, ..policy.clone() };
    let events = if told { vec![Event::PolicySet { policy }] } else { Vec::new() };
    Ok((events, Approved { policy: change, difference }))
}

/// What changes from one policy to another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    pub added: Vec<Zone>,
    pub removed: Vec<Zone>,
    /// The same zones, or rules of state, in another order: the last match wins, so it may matter.
    pub reordered: bool,
    pub capacities: Vec<CapacityChange>,
    /// Rules of the shared state that come and go.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub state_added: Vec<state::rules::Rule>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub state_removed: Vec<state::rules::Rule>,
    /// What becomes of tasks without attempts, from then on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_exhausted: Option<OnExhausted>,
    /// What must be shown before a task is done, where that changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<EvidenceChange>,
    /// How working trees are made, from then on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trees: Option<tree::Rules>,
    /// How branches land, from then on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<landing::Rules>,
    /// What may be deployed, from then on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deploys: Option<BTreeMap<String, deploy::Rules>>,
    /// What roles may do, from then on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roles: Option<roles::Rules>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EvidenceChange {
    pub from: evidence::Rules,
    pub to: evidence::Rules,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CapacityChange {
    pub resource: String,
    pub from: Option<u32>,
    pub to: Option<u32>,
}

impl Difference {
    pub fn between(old: &Policy, new: &Policy) -> Self {
        let added = without(&new.zones, &old.zones);
        let removed = without(&old.zones, &new.zones);
        let state_added = without(&new.state, &old.state);
        let state_removed = without(&old.state, &new.state);
        let reordered = added.is_empty() && removed.is_empty() && old.zones != new.zones
            || state_added.is_empty() && state_removed.is_empty() && old.state != new.state;
        let names: std::collections::BTreeSet<&String> =
            old.capacities.keys().chain(new.capacities.keys()).collect();
        let capacities = names
            .into_iter()
            .map(|name| CapacityChange {
                resource: format!("@{name}"),
                from: old.capacities.get(name).copied(),
                to: new.capacities.get(name).copied(),
            })
            .filter(|change| change.from != change.to)
            .collect();
        let on_exhausted = new.tasks.on_exhausted.clone();
        let on_exhausted = (on_exhausted != old.tasks.on_exhausted).then_some(on_exhausted);
        let evidence = (old.evidence != new.evidence)
            .then(|| EvidenceChange { from: old.evidence.clone(), to: new.evidence.clone() });
        Self {
            added,
            removed,
            reordered,
            capacities,
            state_added,
            state_removed,
            on_exhausted,
            evidence,
            deploys: (old.deploys != new.deploys).then(|| new.deploys.clone()),
            roles: (old.roles != new.roles).then(|| new.roles.clone()),
            trees: (old.trees != new.trees).then(|| new.trees.clone()),
            queue: (old.queue != new.queue).then(|| new.queue.clone()),
        }
    }

    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

fn without<T: Clone + PartialEq>(all: &[T], known: &[T]) -> Vec<T> {
    all.iter().filter(|one| !known.contains(one)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::{Actor, Observed};
    use crate::evolve::evolve;
    use crate::id::{Fresh, Position};
    use crate::memory::Memory;
    use crate::resource::Resource;
    use crate::time::Moment;
    use crate::zones::Rule;

    fn zone(path: &str, policy: Rule) -> Zone {
        Zone { paths: vec![Resource::parse(path).unwrap()], policy }
    }

    fn policy(zones: &[Zone], gpu: u32) -> Policy {
        let capacities = [("gpu".to_owned(), gpu)].into();
        Policy { zones: zones.to_vec(), capacities, ..Policy::default() }
    }

    #[test]
    fn an_agent_sets_the_first_policy_and_no_other() {
        let mut memory = Memory::default();
        let strict = policy(&[zone("a", Rule::Serial)], 1);
        let loose =
            Policy { source_hash: "other".to_owned(), ..policy(&[zone("a", Rule::Off)], 1) };
        let reworded = Policy { source_hash: "words".to_owned(), ..strict.clone() };
        let ask = |memory: &Memory, policy: &Policy, standing| {
            put_in_force(memory, policy, standing, &context())
        };
        let (events, first) = ask(&memory, &strict, Standing::Agent).unwrap();
        assert_eq!(first.policy, Change::InForce);
        events.iter().for_each(|event| evolve(&mut memory, event).unwrap());
        let refused = ask(&memory, &loose, Standing::Agent);
        assert!(matches!(refused, Err(Refusal::NeedsPerson { .. })), "{refused:?}");
        for standing in [Standing::Person, Standing::Unattended] {
            assert_eq!(ask(&memory, &loose, standing).unwrap().1.policy, Change::InForce);
        }
        let (events, same) = ask(&memory, &strict, Standing::Agent).unwrap();
        assert!(events.is_empty() && same.policy == Change::Unchanged);
        let (events, words) = ask(&memory, &reworded, Standing::Agent).unwrap();
        assert!(events.len() == 1 && words.policy == Change::Unchanged);
    }

    fn context() -> Context {
        Context {
            now: Moment(1),
            next: Position { epoch: 1, number: 1 },
            fresh: Fresh([0; 32]),
            actor: Actor::default(),
            observed: Observed::default(),
            failed_over_at: None,
        }
    }

    #[test]
    fn a_difference_names_what_comes_what_goes_and_the_order() {
        let (one, two) = (zone("a", Rule::Serial), zone("b", Rule::Require));
        let old = policy(&[one.clone(), two.clone()], 1);
        assert!(Difference::between(&old, &old).is_empty());
        let turned = Difference::between(&old, &policy(&[two.clone(), one.clone()], 1));
        assert!(turned.reordered && turned.added.is_empty() && turned.removed.is_empty());
        let changed = Difference::between(&old, &policy(&[one, zone("b", Rule::Off)], 2));
        assert_eq!(changed.added, [zone("b", Rule::Off)]);
        assert_eq!(changed.removed, [two]);
        assert_eq!(changed.capacities[0].from, Some(1));
        assert_eq!(changed.capacities[0].to, Some(2));
    }
}
