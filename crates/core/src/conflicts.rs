//! Conflicts that were foreseen: who was told of what, and when it was over.
//!
//! Owns the record of each pair of trees that has something between them. What there is to find is
//! looked for outside and handed in. Invariants: a finding is told once, and told again only after
//! it was gone; the record goes when the pair is clean or one of the trees is no more.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::context::Context;
use crate::event::Event;
use crate::id::{NoticeId, SessionId};
use crate::notices::{News, Notice};
use crate::refusal::Refusal;
use crate::time::Moment;
use crate::view::{Index, Kind, Query, Record, View, scan};

/// Values are the clone the trees stand in: `HOST␟REPOSITORY`.
pub const BY_CLONE: Index = "conflict.clone";
/// Pairs of one clone that are remembered.
pub const PAIRS_MAX: u32 = 100_000;
/// Findings of one pair that are remembered; more are told once and forgotten.
pub const FINDINGS_MAX: usize = 1_000;
/// Files that an event or a notice names.
pub const FILES_NAMED_MAX: usize = 50;

/// Where the random numbers of these notices begin: nothing else in this decision uses them.
const ORDINALS_FROM: usize = 100;

/// What was foreseen between two trees, or a tree and the target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Predicted {
    pub clone: String,
    /// The trees by name.
    pub a: String,
    pub b: String,
    /// Files that git cannot merge, and files with other findings.
    pub files: Vec<String>,
    /// Every finding by a short hash.
    pub findings: Vec<String>,
    pub at: Moment,
}

impl Record for Predicted {
    const KIND: Kind = "conflict";

    fn key(&self) -> String {
        key(&self.clone, &self.a, &self.b)
    }

    fn index_entries(&self) -> Vec<(Index, String)> {
        vec![(BY_CLONE, self.clone.clone())]
    }
}

fn key(clone: &str, a: &str, b: &str) -> String {
    format!("{clone}\u{1f}{a}\u{1f}{b}")
}

/// Two functions that are nearly the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Duplicate {
    pub symbol: String,
    /// `TREE FILE:LINE`, for either.
    pub places: Vec<String>,
    pub at: Moment,
}

/// A pair as it was seen now.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    pub a: String,
    pub b: String,
    pub files: Vec<String>,
    /// Every finding: a short hash, and the sentence for those concerned.
    pub findings: Vec<(String, String)>,
    /// Those among them that are duplicates: hash, symbol, places.
    pub duplicates: Vec<(String, String, Vec<String>)>,
    /// Whom it concerns.
    pub sessions: Vec<SessionId>,
}

/// What was written down.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// Hashes of findings nobody had been told of.
    pub fresh: BTreeSet<String>,
}

/// Writes down what is new, tells those concerned, and forgets what is over.
pub fn tell(
    view: &dyn View,
    clone: &str,
    pairs: &[Seen],
    context: &Context,
) -> Result<(Vec<Event>, Told), Refusal> {
    let before: Vec<Predicted> = scan(view, Query::equal(BY_CLONE, clone, PAIRS_MAX))?;
    let mut events = Vec::new();
    let mut told = Told::default();
    for seen in pairs.iter().filter(|seen| !seen.findings.is_empty()) {
        let known = before.iter().find(|one| one.a == seen.a && one.b == seen.b);
        let known: &[String] = known.map_or(&[], |one| &one.findings);
        let is_new = |hash: &str| !known.iter().any(|one| one == hash);
        let fresh: Vec<&(String, String)> =
            seen.findings.iter().filter(|(hash, _)| is_new(hash)).collect();
        let shrunk = known.iter().any(|one| !seen.findings.iter().any(|(hash, _)| hash == one));
        if fresh.is_empty() && !shrunk {
            continue;
        }
        let named = |files: &[String]| files.iter().take(FILES_NAMED_MAX).cloned().collect();
        let predicted = Predicted {
            clone: clone.to_owned(),
            a: seen.a.clone(),
            b: seen.b.clone(),
            files: named(&seen.files),
            findings: seen
                .findings
                .iter()
                .take(FINDINGS_MAX)
                .map(|(hash, _)| hash.clone())
                .collect(),
            at: context.now,
        };
        events.push(Event::ConflictPredicted { predicted });
        for (hash, symbol, places) in &seen.duplicates {
            if is_new(hash) {
                let (symbol, places) = (symbol.clone(), places.clone());
                let duplicate = Duplicate { symbol, places, at: context.now };
                events.push(Event::DuplicateFound { duplicate });
            }
        }
        if !fresh.is_empty() {
            events.extend(notices(seen, &fresh, events.len(), context));
        }
        told.fresh.extend(fresh.into_iter().map(|(hash, _)| hash.clone()));
    }
    for one in &before {
        let still = pairs
            .iter()
            .any(|seen| seen.a == one.a && seen.b == one.b && !seen.findings.is_empty());
        if !still {
            let (clone, a, b) = (one.clone.clone(), one.a.clone(), one.b.clone());
            events.push(Event::ConflictGone { clone, a, b });
        }
    }
    Ok((events, told))
}

/// The key of the record that an end is about.
pub fn gone_key(clone: &str, a: &str, b: &str) -> String {
    key(clone, a, b)
}

fn notices(
    seen: &Seen,
    fresh: &[&(String, String)],
    so_far: usize,
    context: &Context,
) -> Vec<Event> {
    let files: Vec<String> = seen.files.iter().take(FILES_NAMED_MAX).cloned().collect();
    let first = fresh.first().map(|(_, sentence)| sentence.clone()).unwrap_or_default();
    let one = |(index, session): (usize, &SessionId)| {
        let ordinal = u32::try_from(ORDINALS_FROM + so_far + index).unwrap_or(u32::MAX);
        let news = News::Conflict {
            a: seen.a.clone(),
            b: seen.b.clone(),
            files: files.clone(),
            findings: fresh.len(),
            first: first.clone(),
        };
        let notice = Notice {
            notice: NoticeId::fresh(&context.fresh, ordinal),
            to: session.clone(),
            agent: None,
            at: context.now,
            news,
        };
        Event::NoticeSent { notice }
    };
    seen.sessions.iter().enumerate().map(one).collect()
}
