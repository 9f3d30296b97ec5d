//! A working tree that Baton made, as a record.
//!
//! Owns what is known of it: where it is, on which branch, for which task, and whether it is there
//! yet. It is written down before anything is made (`Stage::Planned`), so that whatever a death
//! half-way leaves behind has a name. Invariant: a tree that is gone has no record.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::claim::Holder;
use crate::id::{TaskId, TreeId};
use crate::resource::Resource;
use crate::sessions::Process;
use crate::time::Moment;
use crate::view::{Index, Kind, Query, Record};

/// Values are `HOST␟REPOSITORY`: the trees of one clone.
pub const BY_PLACE: Index = "tree.place";
/// How many trees of one clone are looked at.
pub const TREES_MAX: u32 = 10_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// Written down; how much of it is there, only a look can tell.
    Planned,
    Made,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tree {
    pub tree: TreeId,
    pub stage: Stage,
    pub host: String,
    /// The git directory that all trees of this clone share.
    pub repository: String,
    /// The tree's own folder.
    pub path: String,
    /// Without `refs/heads/`.
    pub branch: String,
    /// What it was made from, as it was named.
    pub base: String,
    /// The commit of that.
    pub commit: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<u16>,
    pub by: Holder,
    /// Who makes it: when that is gone and the tree is not made, it never will be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<Process>,
    pub at: Moment,
}

/// `[worktree]` in `baton.toml`: how trees are made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rules {
    /// The folder they stand in, from the root of the main tree; beside it when nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dir: Option<String>,
    /// Uncommitted files that are copied into each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub copy: Vec<String>,
    #[serde(default)]
    pub identity: Identity,
    /// Makes a new one ready, once a person stands for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub setup: Vec<String>,
}

impl Rules {
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// As whom commits are made in a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Identity {
    /// The agent is the author, the person beside it.
    #[default]
    Agent,
    /// The person is the author, the agent beside it.
    Person,
    /// As everywhere in the repository.
    Off,
}

impl Tree {
    /// What whoever works in it holds.
    pub fn resource(tree: &TreeId) -> Resource {
        Resource::Name { name: format!("tree/{tree}"), amount: 1 }
    }

    pub fn port(port: u16) -> Resource {
        Resource::Name { name: format!("port/{port}"), amount: 1 }
    }
}

impl Record for Tree {
    const KIND: Kind = "tree";

    fn key(&self) -> String {
        self.tree.0.clone()
    }

    fn index_entries(&self) -> Vec<(Index, String)> {
        vec![(BY_PLACE, place(&self.host, &self.repository))]
    }
}

fn place(host: &str, repository: &str) -> String {
    format!("{host}\u{1f}{repository}")
}

/// The trees of one clone.
pub fn of_clone(host: &str, repository: &str) -> Query {
    Query::equal(BY_PLACE, &place(host, repository), TREES_MAX)
}
