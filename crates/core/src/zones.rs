//! Zones: paths with a policy, and the capacities of named resources.
//!
//! Owns what `baton.toml` means once a person approved it: one record, compiled, so that a hook
//! reads only that. The last zone that matches a path wins; a path in no zone is `auto`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::resource::Resource;
use crate::time::Moment;
use crate::view::{Index, Kind, Record};

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
