//! Zones: paths with a policy, and the capacities of named resources.
//!
//! Owns what `baton.toml` means once a person approved it: one record, compiled, so that a hook
//! reads only that. The last zone that matches a path wins; a path in no zone is `auto`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::deploy;
use crate::landing;
use crate::pattern::fold;
use crate::resource::{NAME_BYTES_MAX, Resource, name_character};
use crate::roles;
use crate::state;
use crate::tasks::evidence;
use crate::time::Moment;
use crate::tree;
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
    /// How much there is of each named resource, by its folded name without the `@`; one that is
    /// not here has one holder.
    pub capacities: BTreeMap<String, u32>,
    /// How keys of the shared state may change; the last one that fits a key wins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub state: Vec<state::rules::Rule>,
    /// What holds for tasks.
    #[serde(default, skip_serializing_if = "TaskRules::is_default")]
    pub tasks: TaskRules,
    /// What must be shown before a task is done.
    #[serde(default, skip_serializing_if = "evidence::Rules::is_empty")]
    pub evidence: evidence::Rules,
    /// How working trees are made.
    #[serde(default, skip_serializing_if = "tree::Rules::is_default")]
    pub trees: tree::Rules,
    /// How branches land.
    #[serde(default, skip_serializing_if = "landing::Rules::is_default")]
    pub queue: landing::Rules,
    /// What may be deployed, by the name of the target.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub deploys: BTreeMap<String, deploy::Rules>,
    /// What sessions of which role may do.
    #[serde(default, skip_serializing_if = "roles::Rules::is_empty")]
    pub roles: roles::Rules,
    /// The hash of the `baton.toml` this was compiled from.
    pub source_hash: String,
    pub approved_at: Moment,
}

/// What holds for tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskRules {
    #[serde(default)]
    pub on_exhausted: OnExhausted,
}

impl TaskRules {
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// What becomes of a task whose attempts are used up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnExhausted {
    /// A person decides.
    #[default]
    Escalate,
    /// It has failed.
    Abort,
    /// It is offered to this role with new attempts, once; then a person decides.
    Role(String),
}

impl std::fmt::Display for OnExhausted {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Escalate => formatter.write_str("escalate"),
            Self::Abort => formatter.write_str("abort"),
            Self::Role(role) => write!(formatter, "role:{role}"),
        }
    }
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
    /// reach into several and gets the strictest, because it must satisfy all of them. Only a
    /// pattern that lies wholly in `off` zones is off: the rest of it is `auto`.
    pub fn rule(&self, resource: &Resource) -> Rule {
        let mut reached = self.zones.iter().filter(|zone| zone.reaches(resource));
        match resource {
            Resource::Name { .. } => Rule::Auto,
            Resource::Path(pattern) if pattern.is_literal() => {
                reached.next_back().map_or(Rule::Auto, |zone| zone.policy)
            }
            Resource::Path(_) => {
                let strictest = reached.map(|zone| zone.policy).max();
                match strictest.unwrap_or(Rule::Auto) {
                    Rule::Off if !self.zones.iter().any(|zone| zone.covers(resource)) => Rule::Auto,
                    rule => rule,
                }
            }
        }
    }

    /// Holding a path of a `serial` zone is holding the zone: its name as a resource. A pattern
    /// holds every serial zone it reaches into.
    pub fn serial_zones(&self, resource: &Resource) -> Vec<Resource> {
        let Resource::Path(pattern) = resource else {
            return Vec::new();
        };
        let mut reached = self.zones.iter().filter(|zone| zone.reaches(resource));
        let meant: Vec<&Zone> = if pattern.is_literal() {
            reached.next_back().into_iter().collect()
        } else {
            reached.collect()
        };
        let serial = meant.into_iter().filter(|zone| zone.policy == Rule::Serial);
        serial.filter_map(Zone::name).collect()
    }

    /// How much there is of a named resource; `None` when it simply has one holder.
    pub fn capacity(&self, resource: &Resource) -> Option<u32> {
        let Resource::Name { name, .. } = resource else {
            return None;
        };
        self.capacities.get(&fold(name)).copied()
    }
}

impl Zone {
    fn reaches(&self, resource: &Resource) -> bool {
        self.paths.iter().any(|path| path.overlaps(resource))
    }

    fn covers(&self, resource: &Resource) -> bool {
        self.paths.iter().any(|path| path.covers(resource))
    }

    /// The zone as a named resource, after its first path.
    fn name(&self) -> Option<Resource> {
        let text = self.paths.first()?.to_string();
        let name: String = text.chars().map(|c| if name_character(c) { c } else { '-' }).collect();
        // A name that could not be read back would make every record with it unreadable.
        let name = match SERIAL_PREFIX.len() + name.len() > NAME_BYTES_MAX {
            true => blake3::hash(text.as_bytes()).to_hex().to_string(),
            false => name,
        };
        Some(Resource::Name { name: format!("{SERIAL_PREFIX}{name}"), amount: 1 })
    }
}

/// Is this the name of a serial zone?
pub fn is_serial_zone(resource: &Resource) -> bool {
    matches!(resource, Resource::Name { name, .. } if fold(name).starts_with(SERIAL_PREFIX))
}
