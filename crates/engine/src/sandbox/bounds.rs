//! What a call from inside a sandbox is bound to: one tree, its store, its branch and its role.
//!
//! Owns the variable that says so to the call. Who is inside chooses a call's folder and its words,
//! may have a workspace of its own making somewhere, with a policy, trusted commands and a store as
//! it likes, and may write the files by which git finds its way. Invariant: a call acts in the tree
//! that the sandbox was made for and moves no branch but the one it began on, and the git that it
//! runs there is told where everything lies; where that git could be made to run something, it is
//! held like the sandbox's own command.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde::{Deserialize, Serialize};

use super::{Error, Net, PLACE_VARIABLE, Spec, VERB, Wanted, folders};
use crate::failure::Failure;
use crate::git::Git;
use crate::place::head::Head;
use crate::place::{Place, TreeKind};

/// Steps of git that run nothing, whatever the settings say. Every other may go through filters,
/// merge drivers or the like that a tree's settings name, and these can be changed inside between a
/// look at them and the step.
const RUNS_NOTHING: [&str; 15] = [
    "cat-file",
    "check-attr",
    "check-ignore",
    "check-ref-format",
    "commit-tree",
    "config",
    "fast-import",
    "for-each-ref",
    "ls-tree",
    "merge-base",
    "rev-list",
    "rev-parse",
    "symbolic-ref",
    "update-ref",
    "write-tree",
];
/// Those that write in the tree.
const WRITING: [&str; 5] = ["apply", "checkout-index", "clean", "read-tree", "update-index"];

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Bounds {
    spot: Spot,
    /// The tree has settings of its own, in a folder that is open inside.
    linked: bool,
    branch: Option<String>,
    role: String,
    net: Net,
    best_effort: bool,
    /// What git may write in the tree where it changes files of it.
    tree: Vec<PathBuf>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Spot {
    root: PathBuf,
    store: PathBuf,
    git: Option<(PathBuf, PathBuf)>,
}

impl Spot {
    fn of(place: &Place) -> Self {
        let git = place.git.as_ref().map(|git| (git.git_dir.clone(), git.common_dir.clone()));
        Self { root: place.root.clone(), store: place.store.clone(), git }
    }
}

impl Bounds {
    pub(super) fn of(place: &Place, wanted: &Wanted<'_>) -> Result<Self, Failure> {
        let branch = match place.stand() {
            (_, Head::AskGit) => Git::in_tree(&place.root)?.head_branch()?,
            (branch, _) => branch,
        };
        Ok(Self {
            spot: Spot::of(place),
            linked: matches!(place.tree_kind, TreeKind::Linked { .. }),
            branch,
            role: wanted.judge.role().to_owned(),
            net: wanted.net,
            best_effort: wanted.best_effort,
            tree: folders::of_tree(place).writable,
        })
    }

    /// What cannot be read is nowhere.
    fn given() -> Option<Self> {
        let text = std::env::var(PLACE_VARIABLE).ok()?;
        let spot = Spot { root: PathBuf::new(), store: PathBuf::new(), git: None };
        let (branch, role, tree) = (None, String::new(), Vec::new());
        let (linked, net, best_effort) = (true, Net::None, false);
        let nowhere = Self { spot, linked, branch, role, net, best_effort, tree };
        Some(serde_json::from_str(&text).unwrap_or(nowhere))
    }
}

/// The tree that this process acts in, where it is a call from inside a sandbox.
#[must_use]
pub fn bound_root() -> Option<PathBuf> {
    Bounds::given().map(|bounds| bounds.spot.root)
}

/// The role by which it is held, which takes away beside its session's.
pub(crate) fn bound_role() -> Option<String> {
    Bounds::given().map(|bounds| bounds.role)
}

/// A call from inside a sandbox acts in the tree of the sandbox, and in no other.
pub(crate) fn must_be_bound_to(place: &Place) -> Result<(), Error> {
    match Bounds::given() {
        Some(bounds) if bounds.spot != Spot::of(place) => {
            Err(Error::Elsewhere { root: place.root.clone() })
        }
        _ => Ok(()),
    }
}

/// Which branch a tree is on is written in a file that is open inside.
pub(crate) fn must_be_on(branch: Option<&str>) -> Result<(), Error> {
    let short = |name: &str| name.strip_prefix("refs/heads/").unwrap_or(name).to_owned();
    match Bounds::given() {
        Some(bounds) if bounds.branch.as_deref() != branch => Err(Error::OtherBranch {
            began: bounds.branch.as_deref().map(short),
            now: branch.map_or_else(|| "no branch".to_owned(), short),
        }),
        _ => Ok(()),
    }
}

/// Git for a folder of a sandbox's tree, where this process is a call from inside.
pub(crate) fn git_in(program: &Path, folder: &Path, step: &str) -> Option<Command> {
    let bounds = Bounds::given().filter(|bounds| folder.starts_with(&bounds.spot.root))?;
    let (git_dir, common_dir) = bounds.spot.git.as_ref()?;
    let own = folder == bounds.spot.root;
    // The settings of the main tree are closed; those of repositories within a tree are not.
    let open = bounds.linked || !own;
    let mut command = match open && !RUNS_NOTHING.contains(&step) {
        false => Command::new(program),
        true => bounds.held(program, common_dir, step),
    };
    command.env_clear();
    if own {
        command.env("GIT_DIR", git_dir).env("GIT_COMMON_DIR", common_dir);
        command.env("GIT_WORK_TREE", folder);
    }
    Some(command)
}

impl Bounds {
    fn held(&self, program: &Path, common_dir: &Path, step: &str) -> Command {
        let temporary = std::env::temp_dir();
        let mut writable = vec![common_dir.join("objects"), temporary.clone()];
        if WRITING.contains(&step) {
            writable.extend(self.tree.iter().cloned());
        }
        let runner = std::process::id();
        let (net, best_effort) = (self.net, self.best_effort);
        let spec = Spec { writable, temporary, net, best_effort, runner };
        let spec = serde_json::to_string(&spec).unwrap_or_default();
        let mut command = Command::new("/proc/self/exe");
        command.arg(VERB).arg(spec).arg("--").arg(program);
        command
    }
}
