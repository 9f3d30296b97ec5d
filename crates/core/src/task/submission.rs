//! Work handed in for review: one commit, who may judge it, and what was said about it.
//!
//! Owns the shape. Invariant: a verdict is about exactly one commit, the one it stands beside; a
//! new commit is a new submission, and nothing that was said about another holds for it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Owner;
use crate::claim::Holder;
use crate::id::{SessionId, Token, TreeId};
use crate::resource::Resource;
use crate::time::{Moment, Span};

/// A commit may be named by so many of its first digits.
pub const ABBREVIATED_MIN: usize = 7;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Submission {
    /// In full.
    pub commit: String,
    pub by: Holder,
    pub at: Moment,
    pub attempt: u32,
    /// The tree it was made in.
    pub tree: TreeId,
    /// Who may review it: `role:R` or `session:ID`; anyone else than the author when not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// What the author may not touch there without taking the submission back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub frozen: Vec<Resource>,
    /// The author said with it what is done and what is not.
    #[serde(default)]
    pub reported: bool,
    /// Those who review it now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reviewers: Vec<Owner>,
    /// What was said about this commit, oldest first, one of each reviewer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub verdicts: Vec<Verdict>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    pub by: Holder,
    pub person: bool,
    pub at: Moment,
    pub approves: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

impl Submission {
    /// Does `given` name the commit, in full or by its first digits?
    pub fn is_at(&self, given: &str) -> bool {
        same_commit(&self.commit, given)
    }

    /// The attempt it came from, to which it goes back. Its old token opens nothing.
    pub(crate) fn author(&self) -> Owner {
        Owner {
            session: self.by.session.clone(),
            name: self.by.name.clone(),
            agent: self.by.agent.clone(),
            attempt: self.attempt,
            token: Token::default(),
            tree: self.tree.clone(),
            taken_at: self.at,
            renewed_at: self.at,
            expires_at: self.at,
            ttl: Span::ZERO,
        }
    }

    /// Has somebody approved it, and nobody rejected it?
    pub fn is_approved(&self) -> bool {
        !self.verdicts.is_empty() && self.verdicts.iter().all(|verdict| verdict.approves)
    }

    /// A later word of the same reviewer stands for the earlier one.
    pub(crate) fn judged(&mut self, verdict: &Verdict) {
        self.verdicts.retain(|known| known.by.session != verdict.by.session);
        self.verdicts.push(verdict.clone());
    }

    pub(crate) fn left(&mut self, sessions: &[SessionId]) {
        self.reviewers.retain(|seat| !sessions.contains(&seat.session));
    }
}

/// Is `given` the commit `full`, or enough of its beginning?
pub fn same_commit(full: &str, given: &str) -> bool {
    let given = given.to_ascii_lowercase();
    full == given || given.len() >= ABBREVIATED_MIN && full.starts_with(&given)
}
