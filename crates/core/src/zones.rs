//! Zones: paths with a policy, and the capacities of named resources.
//!
//! Owns what `baton.toml` means once a person approved it: one record, compiled, so that a hook
//! reads only that. The last zone that matches a path wins; a path in no zone is `auto`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::resource::{Resource, name_character};
use crate::time::Moment;
use crate::view::{Index, Kind, Record};

/// Names of serial zones begin with this.
pub const SERIAL_PREFIX: &str = "zone/";

#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Rule {
    /// Nothing is judged.
    Off,
    /// The first edit claims.
    Auto,
    /// Many may add at the end.
    Append,
    /// Claim first.
    Require,
    /// One holder for the whole zone.
    Serial,
    /// A person approves.
    Human,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Zone {
    pub paths: Vec<Resource>,
    pub policy: Rule,
}

/// The policy in force.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Policy {
    pub zones: Vec<Zone>,
    /// How much there is of each named resource; one that is not here has one holder.
    pub capacities: BTreeMap<String, u32>,
    /// The hash of the `baton.toml` this was compiled from.
    pub source_hash: String,
    pub approved_at: Moment,
}

impl Policy {
    pub const KEY: &str = "current";
}

impl Record for Policy {
    const KIND: Kind = "policy";

    fn key(&self) -> String {
        Self::KEY.to_owned()
    }

    fn index_entries(&self) -> Vec<(Index, String)> {
        Vec::new()
    }
}

impl Policy {
    /// The rule for one resource. A literal path gets the last zone that matches; a pattern may
    /// reach into several and gets the strictest, because it must satisfy all of them.
    pub fn rule(&self, resource: &Resource) -> Rule {
        self.zone(resource).map_or(Rule::Auto, |zone| zone.policy)
    }

    fn zone(&self, resource: &Resource) -> Option<&Zone> {
        let Resource::Path(pattern) = resource else {
            return None;
        };
        let mut reached = self.zones.iter().filter(|zone| zone.reaches(resource));
        if pattern.is_literal() {
            reached.next_back()
        } else {
            reached.max_by_key(|zone| zone.policy)
        }
    }

    /// Holding a path of a `serial` zone is holding the zone: its name as a resource.
    pub fn serial_zone(&self, resource: &Resource) -> Option<Resource> {
        let zone = self.zone(resource).filter(|zone| zone.policy == Rule::Serial)?;
        let text = zone.paths.first()?.to_string();
        let name = text.chars().map(|c| if name_character(c) { c } else { '-' });
        Some(Resource::Name {
            name: format!("{SERIAL_PREFIX}{}", name.collect::<String>()),
            amount: 1,
        })
    }

    /// How much there is of a named resource; `None` when it simply has one holder.
    pub fn capacity(&self, resource: &Resource) -> Option<u32> {
        let Resource::Name { name, .. } = resource else {
            return None;
        };
        self.capacities.get(&crate::pattern::fold(name)).copied()
    }
}

impl Zone {
    fn reaches(&self, resource: &Resource) -> bool {
        self.paths.iter().any(|path| path.overlaps(resource))
    }
}
