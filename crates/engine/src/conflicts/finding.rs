//! What `conflicts` answers with: pairs, and what was found in each.
//!
//! Owns the documents. Invariant: a finding names its places in full (tree, sessions, file, line),
//! so that whoever is told of it need not look anything up.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::lines::Span;

/// Every pair of trees, and each against the target.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Conflicts {
    /// The branch where work lands, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    pub trees: Vec<LiveTree>,
    pub pairs: Vec<Pair>,
    /// Trees that could not be looked at: nothing is known of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unseen: Vec<Unseen>,
    /// How many pairs were merged now; the others are as they were.
    pub merged: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LiveTree {
    pub name: String,
    pub path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The names of those who work there, or of who made it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sessions: Vec<String>,
    /// It has changes that are in no commit.
    pub dirty: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Unseen {
    pub name: String,
    pub path: String,
    pub why: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pair {
    pub a: String,
    pub b: String,
    #[serde(flatten)]
    pub found: Found,
}

/// What was found between two sides.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Found {
    /// Files that git cannot merge.
    pub files: Vec<Clashing>,
    /// One side removes or changes what the other newly calls.
    pub broken_calls: Vec<Finding>,
    /// Both sides add different things under one name.
    pub same_name: Vec<Finding>,
    /// Both sides gain nearly the same function.
    pub duplicates: Vec<Finding>,
    /// One side takes back what others landed.
    pub undo: Vec<Finding>,
}

impl Found {
    pub fn is_clean(&self) -> bool {
        self.files.is_empty() && self.others() == 0
    }

    /// How many findings there are that git calls clean.
    pub fn others(&self) -> usize {
        self.findings().count()
    }

    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.broken_calls.iter().chain(&self.same_name).chain(&self.duplicates).chain(&self.undo)
    }

    pub(super) fn findings_mut(&mut self) -> impl Iterator<Item = &mut Finding> {
        let Self { broken_calls, same_name, duplicates, undo, .. } = self;
        broken_calls.iter_mut().chain(same_name).chain(duplicates).chain(undo)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Clashing {
    pub path: String,
    /// In git's word: `contents`, `modify/delete`, `binary` …
    pub kind: String,
    /// The lines, where there are lines.
    pub ranges: Vec<Span>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// It is gone, and newly called.
    Removed,
    /// It takes other parameters, and is newly called.
    Signature,
    Function,
    Route,
    CssClass,
    Migration,
    Dependency,
    Duplicate,
    /// Lines that others landed are taken out.
    Removes,
    /// Lines that others took out are back.
    Restores,
    /// A function is left without its body.
    Empties,
}

/// Something found: what, and where on either side.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    pub kind: Kind,
    /// The function, route, class, number or package it is about; the file where it is lines.
    pub symbol: String,
    pub places: Vec<Place>,
    /// What else there is to say: versions, parameters, a commit.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Place {
    /// The tree's name, or the target's.
    pub tree: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sessions: Vec<String>,
    pub file: String,
    pub line: usize,
}

/// The first or the second of a pair, before the trees are named.
pub(super) const A: &str = "a";
pub(super) const B: &str = "b";

impl Place {
    pub(super) fn on(side: &str, file: &str, line: usize) -> Self {
        let (tree, file) = (side.to_owned(), file.to_owned());
        Self { tree, sessions: Vec::new(), file, line }
    }
}

impl Finding {
    /// The finding in words; names in it are those of the trees.
    pub fn sentence(&self) -> String {
        let at = |index: usize| match self.places.get(index) {
            Some(place) => format!("{} ({}:{})", place.tree, place.file, place.line),
            None => "another".to_owned(),
        };
        let (one, two, symbol) = (at(0), at(1), &self.symbol);
        let detail = match self.detail.is_empty() {
            true => String::new(),
            false => format!(": {}", self.detail),
        };
        match self.kind {
            Kind::Removed => format!("{one} removes {symbol}, and {two} newly calls it"),
            Kind::Signature => {
                format!("{one} changes what {symbol} takes, and {two} newly calls it{detail}")
            }
            Kind::Function => format!("{one} and {two} add different functions {symbol}"),
            Kind::Route => format!("{one} and {two} add different routes {symbol}"),
            Kind::CssClass => format!("{one} and {two} add different classes {symbol}"),
            Kind::Migration => format!("{one} and {two} use the number {symbol}"),
            Kind::Dependency => format!("{one} and {two} add {symbol}{detail}"),
            Kind::Duplicate => format!("{one} and {two} gain nearly the same function{detail}"),
            Kind::Removes => {
                format!("{one} takes out lines of {symbol} that others landed{detail}")
            }
            Kind::Restores => {
                format!("{one} brings back lines of {symbol} that others took out{detail}")
            }
            Kind::Empties => format!("{one} empties {symbol}, outside the paths of its task"),
        }
    }
}
