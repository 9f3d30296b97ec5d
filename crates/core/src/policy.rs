//! Which policy is in force: the last one that a person approved.
//!
//! Owns the rule who may change it. The first policy of a workspace is taken as it is, since
//! somebody has to begin; from then on an agent cannot loosen the rules it works under. What the
//! policy means is in `zones`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::context::Context;
use crate::event::Event;
use crate::refusal::Refusal;
use crate::view::{View, get};
use crate::zones::{Policy, Zone};

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
) -> Result<(Vec<Event>, Change), Refusal> {
    let policy = Policy { approved_at: context.now, ..policy.clone() };
    let set = |change| {
        let policy = policy.clone();
        Ok((vec![Event::PolicySet { policy }], change))
    };
    let Some(current) = in_force(view)? else {
        return set(Change::InForce);
    };
    if current.source_hash == policy.source_hash {
        return Ok((Vec::new(), Change::Unchanged));
    }
    if current.zones == policy.zones && current.capacities == policy.capacities {
        // Other words for the same rules; noted, so that nobody is told of a difference.
        return set(Change::Unchanged);
    }
    if standing == Standing::Agent {
        return Err(Refusal::NeedsPerson { what: "a change of the policy".to_owned() });
    }
    set(Change::InForce)
}

/// What changes from one policy to another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    pub added: Vec<Zone>,
    pub removed: Vec<Zone>,
    /// The same zones in another order: the last match wins, so that may matter.
    pub reordered: bool,
    pub capacities: Vec<CapacityChange>,
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
        let reordered = added.is_empty() && removed.is_empty() && old.zones != new.zones;
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
        Self { added, removed, reordered, capacities }
    }

    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

fn without(all: &[Zone], known: &[Zone]) -> Vec<Zone> {
    all.iter().filter(|zone| !known.contains(zone)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource::Resource;
    use crate::zones::Rule;

    fn zone(path: &str, policy: Rule) -> Zone {
        Zone { paths: vec![Resource::parse(path).unwrap()], policy }
    }

    fn policy(zones: &[Zone], gpu: u32) -> Policy {
        let capacities = [("gpu".to_owned(), gpu)].into();
        Policy { zones: zones.to_vec(), capacities, ..Policy::default() }
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
