//! Names of things: random ids, journal positions, tokens.
//!
//! Owns their shape and spelling. Refuses to know where randomness comes from: the engine passes a
//! seed in, so the same context always gives the same ids and a simulation can be repeated.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident $prefix:literal;)*) => {$(
        $(#[$doc])*
        #[derive(
            Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
        )]
        #[serde(transparent)]
        pub struct $name(pub String);

        impl $name {
            pub fn fresh(fresh: &Fresh, ordinal: u32) -> Self {
                Self(format!("{}{}", $prefix, fresh.hex(ordinal, 12)))
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(&self.0)
            }
        }
    )*};
}

ids! {
    /// A session's public id. Seeing it is never enough to act as it (S19).
    SessionId "s";
    ClaimId "c";
    WaiterId "w";
    NoticeId "n";
    /// One working tree of the workspace.
    TreeId "t";
    /// A gate: `g1`, `g2` …, numbered in the order of opening.
    GateId "g";
    /// A suggestion: a patch for what another holds.
    SuggestionId "p";
    /// A task: `t1`, `t2` …, numbered in the order of filing, because people say them aloud.
    TaskId "t";
    /// One offer to hand a task over: `t3-h1` is the first of t3.
    HandoffId "h";
    /// One branch's way through the merge queue: `l1`, `l2` …
    LandingId "l";
}

/// Randomness handed in by the engine; every id of one decision is derived from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fresh(pub [u8; 32]);

impl Fresh {
    /// `digits` hex digits that belong to `ordinal`.
    pub fn hex(&self, ordinal: u32, digits: usize) -> String {
        let mut text = blake3::keyed_hash(&self.0, &ordinal.to_le_bytes()).to_hex().to_string();
        text.truncate(digits);
        text
    }

    /// Another seed, for the part of a decision that counts its ids anew.
    pub(crate) fn part(&self, ordinal: u32) -> Self {
        Self(blake3::keyed_hash(&self.0, &[&b"part"[..], &ordinal.to_le_bytes()].concat()).into())
    }

    pub fn number(&self, ordinal: u32) -> u64 {
        let hash = blake3::keyed_hash(&self.0, &ordinal.to_le_bytes());
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&hash.as_bytes()[..8]);
        u64::from_le_bytes(bytes)
    }
}

/// A place in the journal. The epoch rises whenever entries may have been lost (power cut,
/// restore, failover), so positions never repeat and always increase (S5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    pub epoch: u32,
    pub number: u64,
}

/// A fencing token is the position of the journal entry that granted it: nothing else has to
/// count, and a later grant always carries a greater token.
pub type Token = Position;

impl Position {
    pub const START: Self = Self { epoch: 1, number: 0 };

    pub fn after(self, steps: u64) -> Self {
        Self { epoch: self.epoch, number: self.number + steps }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.epoch, self.number)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a token: expected EPOCH.NUMBER, for example 1.42")]
pub struct BadPosition {
    pub text: String,
}

impl FromStr for Position {
    type Err = BadPosition;

    fn from_str(text: &str) -> Result<Self, BadPosition> {
        let parsed = text.split_once('.').and_then(|(epoch, number)| {
            Some(Self { epoch: epoch.parse().ok()?, number: number.parse().ok()? })
        });
        parsed.ok_or_else(|| BadPosition { text: text.to_owned() })
    }
}

impl Serialize for Position {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Position {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Position {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Token".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "pattern": "^[0-9]+\\.[0-9]+$" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_order_by_epoch_then_number() {
        let order: Vec<Position> =
            ["1.2", "1.10", "2.1"].iter().map(|text| text.parse().unwrap()).collect();
        assert!(order.is_sorted());
        assert!("1".parse::<Position>().is_err());
        assert!("1.x".parse::<Position>().is_err());
    }

    #[test]
    fn fresh_ids_differ_by_ordinal_and_repeat_by_seed() {
        let fresh = Fresh([7; 32]);
        assert_ne!(SessionId::fresh(&fresh, 0), SessionId::fresh(&fresh, 1));
        assert_eq!(ClaimId::fresh(&fresh, 3), ClaimId::fresh(&fresh, 3));
    }
}
