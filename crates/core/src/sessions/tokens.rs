//! What proves a person to a store: the record of a token.
//!
//! Owns its shape alone; who is a person is told by the engine, and the token itself is never stored.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::time::Moment;
use crate::view::{Index, Kind, Record};

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
