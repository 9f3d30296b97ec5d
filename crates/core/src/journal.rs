//! The append-only, hash-chained record of every event.
//!
//! Owns the shape of an entry and the chain: each hash covers the hash before it and the stored
//! bytes of its own entry, so a changed, dropped or swapped entry is found. Readers upcast old
//! event versions; entries themselves are never rewritten. Refuses to know where entries are kept.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::event::{self, Event};
use crate::id::Position;
use crate::time::Moment;

/// A BLAKE3 hash in hex.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Hash(pub String);

/// Where the journal stands: the last entry's position, time and hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    pub position: Position,
    pub at: Moment,
    pub hash: Hash,
}

impl Head {
    /// Before the first entry.
    pub fn start() -> Self {
        Self { position: Position::START, at: Moment(0), hash: Hash(String::new()) }
    }
}

/// One entry as it is stored. `body` is kept as the exact bytes that were hashed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    pub position: Position,
    pub at: Moment,
    /// Public id of the session that acted, or the empty string for Baton itself.
    pub actor: String,
    pub kind: String,
    pub version: u32,
    pub body: String,
    pub hash: Hash,
}

impl Entry {
    /// The entry that follows `head`.
    pub fn next(head: &Head, position: Position, at: Moment, actor: &str, event: &Event) -> Self {
        let (kind, version, body) = event.to_stored();
        let mut entry = Self {
            position,
            at,
            actor: actor.to_owned(),
            kind: kind.to_owned(),
            version,
            body,
            hash: Hash::default(),
        };
        entry.hash = entry.chained(&head.hash);
        entry
    }

    /// What the hash must be after `previous`.
    pub fn chained(&self, previous: &Hash) -> Hash {
        let mut hasher = blake3::Hasher::new();
        // Length-prefixed, so that no two different entries give the same bytes.
        let mut field = |bytes: &[u8]| {
            hasher.update(&(bytes.len() as u64).to_le_bytes());
            hasher.update(bytes);
        };
        field(previous.0.as_bytes());
        field(&self.position.epoch.to_le_bytes());
        field(&self.position.number.to_le_bytes());
        field(&self.at.0.to_le_bytes());
        field(self.actor.as_bytes());
        field(self.kind.as_bytes());
        field(&self.version.to_le_bytes());
        field(self.body.as_bytes());
        Hash(hasher.finalize().to_hex().to_string())
    }

    pub fn head(&self) -> Head {
        Head { position: self.position, at: self.at, hash: self.hash.clone() }
    }

    /// The event, brought up to the current version.
    pub fn event(&self) -> Result<Event, event::Unknown> {
        Event::from_stored(&self.kind, self.version, &self.body)
    }
}

/// Why a chain does not hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    #[error("entry {at} does not follow {after}: an entry is missing or out of order")]
    Order { after: Position, at: Position },
    #[error("entry {at} was changed after it was written: its hash does not match")]
    Changed { at: Position },
    #[error("entry {at} is older than the entry before it")]
    Time { at: Position },
}

/// Checks that `entry` follows `head`.
pub fn follows(head: &Head, entry: &Entry) -> Result<(), Broken> {
    let at = entry.position;
    let numbered = at.number == head.position.number + 1;
    // After a power cut the tail may be gone and its numbers used again, but in a higher epoch.
    if !numbered || at.epoch < head.position.epoch {
        return Err(Broken::Order { after: head.position, at });
    }
    if entry.at < head.at {
        return Err(Broken::Time { at });
    }
    if entry.chained(&head.hash) != entry.hash {
        return Err(Broken::Changed { at });
    }
    Ok(())
}
