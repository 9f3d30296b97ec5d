//! What a tree has to know of its remote, and when it may move to what came from there.
//!
//! Owns the judgement: which incoming commits touch what a session claims or changed, and whether
//! they may come into the tree. Invariant: nothing comes in where it would meet uncommitted work.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::claim::{self, Claim};
use crate::context::Context;
use crate::refusal::{Class, Refusal};
use crate::resource::Resource;
use crate::view::{View, scan};

/// How many of its claims a session's look at the remote counts.
const CLAIMS_MAX: u32 = 10_000;

/// Why the remote could not be compared, or nothing was pulled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("there is no remote {remote}")]
    NoRemote { remote: String },
    #[error("{branch} is no name of a branch")]
    BadBranch { branch: String },
    #[error("{remote} has no branch {branch}")]
    NoBranch { remote: String, branch: String },
    #[error("{remote} cannot be reached")]
    Offline { remote: String, why: String },
    #[error("nothing was committed here yet")]
    Unborn,
    #[error("HEAD stands on no branch")]
    NoBranchHere,
    #[error("uncommitted work is in the way")]
    Overlap { paths: Vec<String> },
    #[error("{commit} conflicts with what came in")]
    Conflict { commit: String, paths: Vec<String> },
    #[error("{commit} is a merge")]
    Merge { commit: String },
}

impl Refused {
    pub fn class(&self) -> Class {
        match self {
            Self::Offline { .. } => Class::Unanswered,
            Self::BadBranch { .. } => Class::Usage,
            _ => Class::Refused,
        }
    }

    pub fn code(&self) -> &'static str {
        match self {
            Self::NoRemote { .. } => "no_remote",
            Self::BadBranch { .. } => "bad_branch",
            Self::NoBranch { .. } => "no_branch",
            Self::Offline { .. } => "offline",
            Self::Unborn => "unborn",
            Self::NoBranchHere => "no_branch_here",
            Self::Overlap { .. } => "overlap",
            Self::Conflict { .. } => "conflict",
            Self::Merge { .. } => "merge",
        }
    }
}

impl From<Refused> for Refusal {
    fn from(refused: Refused) -> Self {
        Self::Sync(Box::new(refused))
    }
}

/// An incoming commit that touches what the session claims or what is changed here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Touch {
    pub commit: String,
    pub author: String,
    pub subject: String,
    /// Paths that this session claims.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claimed: Vec<String>,
    /// Paths with uncommitted changes that nobody else claims, or that own commits changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    /// Paths that this session has read and neither claims nor changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<String>,
}

/// What the caller works with, besides what it claims.
#[derive(Clone, Debug, Default)]
pub struct Known {
    pub changed: Vec<String>,
    pub read: Vec<String>,
}

/// A commit as it came in.
#[derive(Clone, Debug)]
pub struct Incoming {
    pub commit: String,
    pub author: String,
    pub subject: String,
    pub files: Vec<String>,
}

/// Which of the incoming commits touch what the caller claims, changed here or has read.
pub fn touches(
    view: &dyn View,
    incoming: &[Incoming],
    known: &Known,
    context: &Context,
) -> Result<Vec<Touch>, Refusal> {
    let claims: Vec<Claim> = match &context.actor.session {
        Some(session) => scan(view, claim::of_session(session, CLAIMS_MAX))?,
        None => Vec::new(),
    };
    let held: Vec<&Resource> = claims
        .iter()
        .filter(|claim| claim.is_live(context))
        .flat_map(|claim| &claim.hold.resources)
        .collect();
    let is_held = |path: &&String| {
        Resource::literal(path).is_ok_and(|path| held.iter().any(|held| held.overlaps(&path)))
    };
    let is_changed = |path: &&String| known.changed.contains(path);
    let is_read = |path: &&String| known.read.contains(path) && !is_held(path) && !is_changed(path);
    let touch = |one: &Incoming| Touch {
        commit: one.commit.clone(),
        author: one.author.clone(),
        subject: one.subject.clone(),
        claimed: one.files.iter().filter(is_held).cloned().collect(),
        changed: one.files.iter().filter(is_changed).cloned().collect(),
        read: one.files.iter().filter(is_read).cloned().collect(),
    };
    let all = incoming.iter().map(touch);
    let none = |one: &Touch| [&one.claimed, &one.changed, &one.read].iter().all(|p| p.is_empty());
    Ok(all.filter(|one| !none(one)).collect())
}

/// May these files of the tree be moved to what came in? Not where work lies that is in no commit.
pub fn may_move(incoming: &[String], dirty: &[String]) -> Result<(), Refused> {
    let below = |one: &str, two: &str| {
        one == two || one.strip_prefix(two).is_some_and(|rest| rest.starts_with('/'))
    };
    // A file where a folder is to be, or the other way round, is in the way as well.
    let meets = |path: &&String| {
        incoming.iter().any(|incoming| below(incoming, path) || below(path, incoming))
    };
    let paths: Vec<String> = dirty.iter().filter(meets).cloned().collect();
    if paths.is_empty() { Ok(()) } else { Err(Refused::Overlap { paths }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_comes_in_over_uncommitted_work() {
        let names = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        for (incoming, dirty, in_the_way) in [
            ("a b", "c", ""),
            ("a b", "b c", "b"),
            ("a/b", "a", "a"),
            ("a", "a/b ab", "a/b"),
            ("", "a", ""),
        ] {
            let found = may_move(&names(incoming), &names(dirty));
            match in_the_way {
                "" => assert_eq!(found, Ok(())),
                paths => assert_eq!(found, Err(Refused::Overlap { paths: names(paths) })),
            }
        }
    }
}
