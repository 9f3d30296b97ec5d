//! What a session must be told at its next act: somebody asks for what it holds, its claim was
//! lost while it slept, a person revoked it.
//!
//! A notice is a record, so that no way of dying between two acts loses it. It goes when the
//! session it is for has been told in a reply that was committed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::claim::Holder;
use crate::id::{ClaimId, NoticeId, SessionId, TaskId, Token};
use crate::resource::Resource;
use crate::task::{Move, State};
use crate::time::Moment;
use crate::view::{Index, Kind, Query, Record};

/// How many notices one reply carries at the most; the rest come with the next.
pub const TOLD_MAX: u32 = 20;

pub const BY_SESSION: Index = "notice.session";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Notice {
    pub notice: NoticeId,
    pub to: SessionId,
    /// The subagent of that session it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
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
    /// What became of a task you worked on.
    TaskMoved {
        task: TaskId,
        title: String,
        how: Move,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<Holder>,
        why: String,
        state: State,
        attempt: u32,
        max_attempts: u32,
        /// Under which it is yours again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token: Option<Token>,
    },
    /// What you review need not be reviewed any more.
    ReviewOver { task: TaskId, title: String, why: String },
}

impl Record for Notice {
    const KIND: Kind = "notice";

    fn key(&self) -> String {
        self.notice.0.clone()
    }

    fn index_entries(&self) -> Vec<(Index, String)> {
        vec![(BY_SESSION, addressee(&self.to, self.agent.as_deref()))]
    }
}

/// What waits to be told to a session, or to a subagent of it.
pub fn waiting_for(session: &SessionId, agent: Option<&str>, limit: u32) -> Query {
    Query::equal(BY_SESSION, &addressee(session, agent), limit)
}

fn addressee(session: &SessionId, agent: Option<&str>) -> String {
    agent.map_or_else(|| session.0.clone(), |agent| format!("{session}/{agent}"))
}
