//! What a session must be told at its next act: somebody asks for what it holds, its claim was
//! lost while it slept, a person revoked it.
//!
//! A notice is a record, so that no way of dying between two acts loses it. It goes when the
//! session it is for has been told in a reply that was committed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::claim::Holder;
use crate::id::{ClaimId, NoticeId, SessionId, SuggestionId, TaskId};
use crate::resource::Resource;
use crate::time::Moment;
use crate::view::{Index, Kind, Query, Record};

/// How many notices one reply carries at the most; the rest come with the next.
pub const TOLD_MAX: u32 = 20;

pub const BY_SESSION: Index = "notice.session";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Notice {
    pub notice: NoticeId,
    pub to: SessionId,
    pub at: Moment,
    #[serde(flatten)]
    pub news: News,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "news", rename_all = "snake_case")]
pub enum News {
    /// Somebody asks you to let go.
    Asked { by: Holder, resources: Vec<Resource>, why: String },
    /// Your claim ran out and somebody else has it now, or it was taken from you.
    Lost {
        claim: ClaimId,
        resources: Vec<Resource>,
        /// Stored under another name: the notice around it has a `to` as well.
        #[serde(rename = "taken_by")]
        to: Option<Holder>,
        why: String,
    },
    /// Somebody would change what you hold.
    Suggested { suggestion: SuggestionId, by: Holder, path: Resource, why: String },
    /// What you suggested was applied or declined.
    SuggestionAnswered {
        suggestion: SuggestionId,
        path: Resource,
        by: Holder,
        applied: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
    /// What you divided can go on.
    Joined { task: TaskId, title: String, why: String },
}

impl Record for Notice {
    const KIND: Kind = "notice";

    fn key(&self) -> String {
        self.notice.0.clone()
    }

    fn index_entries(&self) -> Vec<(Index, String)> {
        vec![(BY_SESSION, self.to.0.clone())]
    }
}

/// What waits to be told to `session`.
pub fn waiting_for(session: &SessionId) -> Query {
    Query::equal(BY_SESSION, session.as_str(), TOLD_MAX)
}
