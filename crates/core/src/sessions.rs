//! Sessions: who acts, how a caller proves to be one, and how one begins, goes on and ends.
//!
//! Owns identity. A session is a random public id with a secret; client ids and processes are
//! aliases of it, and names are for people only (never an identity). Refuses to know how a process
//! looks: the engine reports that.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::{SessionId, TreeId};
use crate::time::{Moment, Span};
use crate::view::{Index, Kind, Record};

pub const BY_LIFE: Index = "session.life";
pub const BY_NAME: Index = "session.name";

/// A process on one machine, in one pid namespace, in one boot. Nothing less is an identity.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub struct Process {
    pub host: String,
    pub boot: String,
    pub namespace: u64,
    pub pid: u32,
    pub start: u64,
}

impl Process {
    /// The key of the alias record of this process.
    pub fn alias_key(&self) -> String {
        format!(
            "process:{}:{}:{}:{}:{}",
            self.host, self.boot, self.namespace, self.pid, self.start
        )
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "life", rename_all = "lowercase")]
pub enum Life {
    Live,
    Ended { at: Moment, grace_until: Option<Moment> },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Session {
    pub session: SessionId,
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    pub person: bool,
    pub tree: TreeId,
    pub host: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<Process>,
    /// Hashes of the secrets that prove this session; the secrets themselves are never stored.
    pub secret_hashes: Vec<String>,
    pub started_at: Moment,
    pub renewed_at: Moment,
    pub expires_at: Moment,
    pub ttl: Span,
    #[serde(flatten)]
    pub life: Life,
}

impl Record for Session {
    const KIND: Kind = "session";

    fn key(&self) -> String {
        self.session.0.clone()
    }

    fn index_entries(&self) -> Vec<(Index, String)> {
        match self.life {
            Life::Live => {
                vec![(BY_LIFE, "live".to_owned()), (BY_NAME, self.name.clone())]
            }
            Life::Ended { .. } => vec![(BY_LIFE, "ended".to_owned())],
        }
    }
}

/// Another way to know a session: a client's own session id, or a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Alias {
    pub alias: String,
    /// `None` when the alias fits more than one session and so identifies nobody.
    pub session: Option<SessionId>,
}

impl Record for Alias {
    const KIND: Kind = "alias";

    fn key(&self) -> String {
        self.alias.clone()
    }

    fn index_entries(&self) -> Vec<(Index, String)> {
        Vec::new()
    }
}

/// Proves a person where there is no terminal. Only the hash is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PersonToken {
    pub hash: String,
    pub made_at: Moment,
}

impl Record for PersonToken {
    const KIND: Kind = "person_token";

    fn key(&self) -> String {
        self.hash.clone()
    }

    fn index_entries(&self) -> Vec<(Index, String)> {
        Vec::new()
    }
}
