//! The queue: who waits for what, in which order, and when waiting would never end.
//!
//! Owns fairness: first come, first served, priority first, and nobody overtakes an overlapping
//! waiter. A waiter is a record with a lease, so one that died stops nobody for long.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::claim::{Hold, resource_entries};
use crate::id::WaiterId;
use crate::sessions::Process;
use crate::time::{Moment, Span};
use crate::view::{Index, Kind, Record};

pub const BY_RESOURCE: Index = "waiter.resource";
pub const BY_SESSION: Index = "waiter.session";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Waiter {
    pub waiter: WaiterId,
    #[serde(flatten)]
    pub hold: Hold,
    pub priority: u8,
    pub queued_at: Moment,
    pub deadline: Moment,
    /// The waiting process shows by renewing this that it is still there.
    pub lease_until: Moment,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<Process>,
    pub ttl: Span,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl Record for Waiter {
    const KIND: Kind = "waiter";

    fn key(&self) -> String {
        self.waiter.0.clone()
    }

    fn index_entries(&self) -> Vec<(Index, String)> {
        let mut entries = resource_entries(BY_RESOURCE, &self.hold.resources);
        entries.push((BY_SESSION, self.hold.holder.session.0.clone()));
        entries
    }
}
