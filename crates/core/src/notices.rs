//! What a session must be told at its next act: somebody asks for what it holds, its claim was
//! lost while it slept, a person revoked it.
//!
//! A notice is a record, so that no way of dying between two acts loses it. It goes when the
//! session it is for has been told in a reply that was committed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::claim::Holder;
use crate::context::Context;
use crate::event::Event;
use crate::gate::Outcome;
use crate::handoff::End;
use crate::id::{
    ClaimId, GateId, HandoffId, LandingId, NoticeId, SessionId, SuggestionId, TaskId, Token,
};
use crate::interfaces::FileChange;
use crate::key::Key;
use crate::landing;
use crate::refusal::Refusal;
use crate::resource::Resource;
use crate::sessions::{Life, Session};
use crate::task::{Move, State};
use crate::time::Moment;
use crate::view::{Index, Kind, Query, Record, View, get, only, scan};

/// How many notices one reply carries at the most; the rest come with the next.
pub const TOLD_MAX: u32 = 20;

/// How many notices one sweep looks at.
const SWEPT_MAX: u32 = 32;
const DROPPED_MAX: u32 = 10_000;

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
    /// A task is offered to you.
    Offered { handoff: HandoffId, task: TaskId, title: String, by: Holder, until: Moment },
    /// What became of a task you offered.
    OfferEnded {
        handoff: HandoffId,
        task: TaskId,
        title: String,
        end: End,
        /// Others may still take it.
        still_open: bool,
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
    /// What became of a branch you put in line.
    LandingOver {
        landing: LandingId,
        branch: String,
        target: String,
        state: landing::State,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A person has answered what you asked.
    GateDecided {
        gate: GateId,
        on: String,
        outcome: Outcome,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
    /// Work in your tree will not go together with another's as it is.
    Conflict {
        a: String,
        b: String,
        files: Vec<String>,
        /// How many findings are new.
        findings: usize,
        /// The first of them in words.
        first: String,
    },
    /// What you build on, or have read, is called in another way now.
    InterfaceChanged { interface: Key, by: Holder, files: Vec<FileChange> },
    /// An interface is yours to keep.
    InterfaceGiven { interface: Key, by: Holder },
    /// Somebody wrote over a file that you hold, around every door that would have refused it.
    Overwritten {
        by: Holder,
        path: Resource,
        was: Was,
        /// It changed while commands of both ran, and nobody knows who wrote it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        unsure: bool,
    },
    /// What you divided can go on.
    Joined { task: TaskId, title: String, why: String },
}

/// What became of the text that somebody wrote over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Was {
    /// It was in no commit, and lies under this reference now.
    Saved(String),
    /// It is the committed one: nothing is lost.
    Committed,
    /// Nobody kept a copy: there was no look before the command, or the file is too large for one.
    Unknown,
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

/// All that waits to be told to a session and its subagents: it ends, and nobody will ask for it.
pub(crate) fn drop_all(view: &dyn View, session: &SessionId) -> Result<Option<Event>, Refusal> {
    let subagents = Query::Scan {
        index: BY_SESSION,
        from: format!("{session}/"),
        until: format!("{session}0"),
        after: None,
        limit: DROPPED_MAX,
    };
    let mut notices: Vec<Notice> = scan(view, waiting_for(session, None, DROPPED_MAX))?;
    notices.extend(scan::<Notice>(view, subagents)?);
    Ok(dropped(notices))
}

/// Notices for sessions that ended and whose grace is over. A few at a time, from anywhere among
/// them: what one sweep does not see, a later one will.
pub(crate) fn sweep(view: &dyn View, context: &Context) -> Result<Option<Event>, Refusal> {
    let page = |from: String| Query::Scan {
        index: BY_SESSION,
        from,
        until: "\u{10ffff}".to_owned(),
        after: None,
        limit: SWEPT_MAX,
    };
    // Ids of sessions begin with a letter of their kind and go on in hexadecimal digits.
    let pages = [page(format!("s{}", context.fresh.hex(9, 4))), page(String::new())];
    let answers = view.read(&pages)?;
    let rows = answers.iter().find(|rows| !rows.is_empty());
    let notices: Vec<Notice> = rows.map_or(Ok(Vec::new()), |rows| only(rows))?;
    let mut gone = Vec::new();
    for notice in notices {
        let over = match get::<Session>(view, notice.to.as_str())?.map(|session| session.life) {
            Some(Life::Live) => false,
            Some(Life::Ended { grace_until, .. }) => {
                grace_until.is_none_or(|until| context.now >= until)
            }
            None => true,
        };
        if over {
            gone.push(notice);
        }
    }
    Ok(dropped(gone))
}

fn dropped(notices: Vec<Notice>) -> Option<Event> {
    let notices: Vec<NoticeId> = notices.into_iter().map(|notice| notice.notice).collect();
    (!notices.is_empty()).then_some(Event::NoticesDropped { notices })
}
