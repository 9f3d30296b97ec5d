//! Answers kept so that a retry is harmless (S12).
//!
//! Owns the rule that an operation id is bound to one session and one request, and that its first
//! answer is the only one ever given. Refuses to know what the request means.

use serde::{Deserialize, Serialize};

use crate::event::Event;
use crate::refusal::Refusal;
use crate::time::{Moment, Span};
use crate::view::{Index, Kind, Query, Record, View, scan};

/// How long an answer is kept.
pub const KEPT: Span = Span::days(7);
/// How many outdated answers one decision forgets at the most.
pub const FORGOTTEN_MAX: u32 = 16;
pub const ID_BYTES_MAX: usize = 64;

pub const BY_TIME: Index = "operation.time";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    pub operation: String,
    /// The session that asked; empty for an act without one.
    pub session: String,
    pub request_hash: String,
    /// The JSON document that was answered.
    pub answer: String,
    pub at: Moment,
}

impl Record for Operation {
    const KIND: Kind = "operation";

    fn key(&self) -> String {
        self.operation.clone()
    }

    fn index_entries(&self) -> Vec<(Index, String)> {
        vec![(BY_TIME, format!("{:020}", self.at.0))]
    }
}

/// The kept answer of `id`, when it belongs to this very request.
pub fn answered(
    view: &dyn View,
    id: &str,
    session: &str,
    request_hash: &str,
) -> Result<Option<String>, Refusal> {
    if id.is_empty() {
        return Err(Refusal::Empty);
    }
    if id.len() > ID_BYTES_MAX {
        return Err(Refusal::TooLong { what: "operation id", bytes_max: ID_BYTES_MAX });
    }
    if let Some(character) = id.chars().find(|c| c.is_control()) {
        return Err(Refusal::BadText { what: "operation id", character });
    }
    let kept: Option<Operation> = crate::view::get(view, id)?;
    match kept {
        None => Ok(None),
        Some(kept) if kept.session == session && kept.request_hash == request_hash => {
            Ok(Some(kept.answer))
        }
        Some(kept) => Err(Refusal::OperationTaken { operation: kept.operation, at: kept.at }),
    }
}

/// Keeps an answer, and forgets a few that are past their time.
pub fn keep(view: &dyn View, kept: Operation) -> Result<Vec<Event>, Refusal> {
    let until = format!("{:020}", (kept.at - KEPT).0);
    let old: Vec<Operation> = scan(
        view,
        Query::Scan {
            index: BY_TIME,
            from: String::new(),
            until,
            after: None,
            limit: FORGOTTEN_MAX,
        },
    )?;
    let mut events = vec![Event::OperationAnswered { operation: kept }];
    if !old.is_empty() {
        let operations = old.into_iter().map(|operation| operation.operation).collect();
        events.push(Event::OperationsForgotten { operations });
    }
    Ok(events)
}
