//! Working trees: who may make one, and what must be true before one may go.
//!
//! Owns names of branches, the order of plan and deed, and the reasons to keep a tree. Refuses to
//! know git: what git and the system show is handed in as [`Seen`]. Invariants: a tree is written
//! down before anything is made, its claim is granted in the same decision, and only a person's
//! word removes what is not safe elsewhere (LESSONS 16, 21).

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::claim::{self, Claim};
use crate::claims::{self, TTL_MAX, take};
use crate::context::Context;
use crate::event::{EndOfClaim, Event};
use crate::id::{SessionId, TaskId, Token, TreeId};
use crate::notices::Notice;
use crate::pattern::fold;
use crate::refusal::Refusal;
use crate::resource::Resource;
use crate::scene::{Caller, Places};
use crate::sessions::{self, Process, Session};
use crate::task::Task;
use crate::tasks::near;
use crate::time::Moment;
use crate::tree::{self, Stage, Tree};
use crate::view::{Query, View, get, scan};

use refused::{Keep, Refused};

pub mod refused;

/// The branches Baton makes begin with this.
pub const BRANCH_PREFIX: &str = "baton/";
/// What ends the branch of a session with a role.
const OWN_FOLDER: &str = "/work";
pub const NAME_CHARACTERS_MAX: usize = 48;
pub const PORTS_MAX: u16 = 100;
/// How many leased ports and sessions are looked at.
const LOOKED_AT_MAX: u32 = 100_000;

/// A text as a piece of a branch and of a folder: `Fix the parser!` is `fix-the-parser`.
pub fn slug(text: &str) -> String {
    let mut slug = String::new();
    for character in text.chars() {
        if slug.len() >= NAME_CHARACTERS_MAX {
            break;
        }
        match character {
            c if c.is_ascii_alphanumeric() => slug.push(c.to_ascii_lowercase()),
            _ if slug.is_empty() || slug.ends_with('-') => {}
            _ => slug.push('-'),
        }
    }
    slug.trim_matches('-').to_owned()
}

/// What a tree is to be called, and for which task it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Naming {
    /// The last part of its folder and of its branch.
    pub leaf: String,
    pub branch: String,
    pub task: Option<TaskId>,
}

/// The name of a tree for a task, or of one that is called `name`, or after its session.
pub fn name(
    view: &dyn View,
    task: Option<&str>,
    name: Option<&str>,
    context: &Context,
) -> Result<Naming, Refusal> {
    let caller = Caller::read(view, context)?;
    let task = match task {
        None => None,
        Some(text) => {
            let id = TaskId::parse(text);
            let found = id.map(|id| get::<Task>(view, id.as_str())).transpose()?.flatten();
            let Some(task) = found else { return Err(near::unknown(view, text)?) };
            if task.standing.state.is_finished() {
                let (task, state) = (task.task, task.standing.state);
                return Err(Refused::TaskFinished { task, state }.into());
            }
            Some(task)
        }
    };
    if let Some(given) = name.filter(|given| slug(given) != **given) {
        return Err(Refused::BadName { given: given.to_owned() }.into());
    }
    let leaf = match (&task, name) {
        (None, Some(name)) => name.to_owned(),
        (None, None) => slug(&caller.session.name),
        (Some(task), name) => {
            let rest = name.map_or_else(|| slug(&task.title), str::to_owned);
            format!("{}-{rest}", task.task).trim_end_matches('-').to_owned()
        }
    };
    if leaf.is_empty() {
        return Err(Refused::BadName { given: caller.session.name }.into());
    }
    // The kernel opens folders: a role commits with plain git where its branch has one to itself.
    let own_folder = if caller.session.role.is_some() { OWN_FOLDER } else { "" };
    let branch = format!("{BRANCH_PREFIX}{leaf}{own_folder}");
    Ok(Naming { leaf, branch, task: task.map(|task| task.task) })
}

/// What the tree of this branch is called, if the branch was made for one.
pub fn leaf_of(branch: &str) -> Option<&str> {
    let leaf = branch.strip_prefix(BRANCH_PREFIX)?;
    Some(leaf.strip_suffix(OWN_FOLDER).unwrap_or(leaf))
}

/// Whether git cannot have both: one name would be the other's folder.
pub fn exclude_each_other(one: &str, two: &str) -> bool {
    let (one, two) = (fold(one), fold(two));
    let is_above = |above: &str, below: &str| {
        below.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    is_above(&one, &two) || is_above(&two, &one)
}

/// A tree that is to be made. What it says of git was looked up just before.
#[derive(Clone, Debug)]
pub struct Plan {
    pub tree: TreeId,
    pub host: String,
    pub repository: String,
    pub path: String,
    pub branch: String,
    pub base: String,
    pub commit: String,
    pub task: Option<TaskId>,
    /// So many ports in a row.
    pub ports: u16,
    /// Ports that nobody listens on, in order.
    pub free_ports: Vec<u16>,
    pub process: Option<Process>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    pub tree: Tree,
    pub token: Token,
    pub notices: Vec<Notice>,
}

/// Writes the tree down and claims it with its ports, before anything is made.
pub fn plan(
    view: &dyn View,
    plan: &Plan,
    context: &Context,
) -> Result<(Vec<Event>, Planned), Refusal> {
    let caller = Caller::read(view, context)?;
    let known: Vec<Tree> = scan(view, tree::of_clone(&plan.host, &plan.repository))?;
    for (what, name, of) in [
        ("branch", &plan.branch, (|tree: &Tree| &tree.branch) as fn(&Tree) -> &String),
        ("folder", &plan.path, |tree: &Tree| &tree.path),
    ] {
        // On some file systems two names that differ in case are one.
        if let Some(other) = known.iter().find(|other| fold(of(other)) == fold(name)) {
            let by = Some(Box::new(other.clone()));
            return Err(Refused::Taken { what, name: name.clone(), by }.into());
        }
    }
    let ports = choose_ports(view, plan)?;
    let mut resources = vec![Tree::resource(&plan.tree)];
    resources.extend(ports.iter().map(|port| Tree::port(*port)));
    let request = claims::Request {
        ttl: TTL_MAX,
        reason: Some(format!("the tree {}", plan.branch)),
        task: plan.task.as_ref().map(|task| task.0.clone()),
        ..claims::Request::of(resources)
    };
    let tree = Tree {
        tree: plan.tree.clone(),
        stage: Stage::Planned,
        host: plan.host.clone(),
        repository: plan.repository.clone(),
        path: plan.path.clone(),
        branch: plan.branch.clone(),
        base: plan.base.clone(),
        commit: plan.commit.clone(),
        task: plan.task.clone(),
        ports,
        by: caller.holder(context),
        process: plan.process.clone(),
        at: context.now,
    };
    let (mut events, granted) = match take(view, &request, context)? {
        (events, claims::Answer::Granted(granted)) => (events, granted),
        (_, claims::Answer::Queued(_)) => return Err(Refusal::Empty),
    };
    events.push(Event::TreePlanned { tree: tree.clone() });
    Ok((events, Planned { tree, token: granted.token, notices: granted.notices }))
}

/// The first ports in a row that nobody listens on and nobody has leased.
fn choose_ports(view: &dyn View, plan: &Plan) -> Result<Vec<u16>, Refusal> {
    if plan.ports > PORTS_MAX {
        let (given, allowed) = (plan.ports.to_string(), format!("0 to {PORTS_MAX} ports"));
        return Err(Refusal::OutOfRange { what: "number of ports", given, allowed });
    }
    if plan.ports == 0 {
        return Ok(Vec::new());
    }
    let leases: Vec<Claim> =
        scan(view, Places::below(claim::BY_RESOURCE, "@port/", LOOKED_AT_MAX))?;
    let leased: BTreeSet<u16> = leases
        .iter()
        .flat_map(|claim| &claim.hold.resources)
        .filter_map(|resource| match resource {
            Resource::Name { name, .. } => name.strip_prefix("port/")?.parse().ok(),
            Resource::Path(_) => None,
        })
        .collect();
    let free: Vec<u16> =
        plan.free_ports.iter().copied().filter(|port| !leased.contains(port)).collect();
    let in_a_row =
        |ports: &&[u16]| ports.windows(2).all(|pair| pair[0].checked_add(1) == Some(pair[1]));
    let found = free.windows(usize::from(plan.ports)).find(in_a_row);
    found.map(<[u16]>::to_vec).ok_or_else(|| Refused::NoPorts { wanted: plan.ports }.into())
}

/// A tree that is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Made {
    #[serde(flatten)]
    pub tree: Tree,
    /// The token of the claim on it.
    pub token: Token,
    /// A file with its variables that a shell can read.
    pub environment: String,
    /// Files that were carried along without being committed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub carried: Vec<String>,
    /// As whom commits are made there, when not as everywhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// What could not be done as one would expect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<Notice>,
}

/// All of it is there.
pub fn finish(
    view: &dyn View,
    mut made: Made,
    context: &Context,
) -> Result<(Vec<Event>, Made), Refusal> {
    let tree = made.tree.tree.clone();
    let planned = get::<Tree>(view, tree.as_str())?.filter(|tree| tree.stage == Stage::Planned);
    let Some(planned) = planned else {
        return Err(Refused::GivenUp { tree }.into());
    };
    made.tree = Tree { stage: Stage::Made, ..planned };
    Ok((vec![Event::TreeMade { tree, at: context.now }], made))
}

/// Nothing of a planned tree is there any more, and its claim ends.
pub fn give_up(
    view: &dyn View,
    tree: &TreeId,
    why: &str,
    context: &Context,
) -> Result<(Vec<Event>, bool), Refusal> {
    let planned = get::<Tree>(view, tree.as_str())?.filter(|tree| tree.stage == Stage::Planned);
    if planned.is_none() {
        return Ok((Vec::new(), false));
    }
    let mut events = vec![Event::TreeGivenUp { tree: tree.clone(), why: why.to_owned() }];
    for claim in claims_on(view, tree)? {
        events.push(claim.ends(EndOfClaim::Released { commit: None }, context));
    }
    Ok((events, true))
}

/// The claims that hold a tree; there is one at the most.
fn claims_on(view: &dyn View, tree: &TreeId) -> Result<Vec<Claim>, Refusal> {
    let value = Tree::resource(tree).index_value();
    Ok(scan(view, Query::equal(claim::BY_RESOURCE, &value, LOOKED_AT_MAX))?)
}

/// How a tree looks from outside the store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Seen {
    pub main: bool,
    /// Files with uncommitted changes.
    pub dirty: Vec<String>,
    /// What is going on in it: `a rebase`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfinished: Option<String>,
    /// Commits that no other branch has.
    pub unmerged: u64,
    /// Its last commit is in the branch where work lands.
    pub landed: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locked: Option<String>,
    /// Submodules with commits that are nowhere else; they would go with the tree.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub submodules: Vec<String>,
    /// Processes that work there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<Working>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Working {
    pub pid: u32,
    pub name: String,
}

/// What is wanted of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// This very tree is to go.
    Remove,
    /// Whatever nobody needs any more is to go.
    Collect,
}

/// Every reason to keep the tree, the weightiest first.
pub fn reasons(
    view: &dyn View,
    tree: Option<&TreeId>,
    seen: &Seen,
    wish: Wish,
    context: &Context,
) -> Result<Vec<Keep>, Refusal> {
    let mut reasons = Vec::new();
    if seen.main {
        return Ok(vec![Keep::Main]);
    }
    let record = tree.map(|tree| get::<Tree>(view, tree.as_str())).transpose()?.flatten();
    if let Some(Tree { stage: Stage::Planned, by, .. }) = &record {
        return Ok(vec![Keep::BeingMade { by: by.clone() }]);
    }
    if record.is_none() && wish == Wish::Collect {
        reasons.push(Keep::NotOurs);
    }
    reasons.extend(seen.locked.clone().map(|why| Keep::Locked { why }));
    reasons.extend(seen.submodules.iter().cloned().map(|path| Keep::Submodule { path }));
    if let Some(first) = seen.dirty.first().cloned() {
        reasons.push(Keep::Dirty { count: seen.dirty.len(), first });
    }
    reasons.extend(seen.unfinished.clone().map(|what| Keep::Unfinished { what }));
    if seen.unmerged > 0 && !seen.landed {
        reasons.push(Keep::Unmerged { commits: seen.unmerged });
    } else if !seen.landed && wish == Wish::Collect {
        reasons.push(Keep::NotLanded { target: seen.target.clone() });
    }
    if let Some(tree) = tree {
        reasons.extend(holders(view, tree, wish, context)?);
    }
    let working = seen.processes.iter().cloned();
    reasons.extend(working.map(|Working { pid, name }| Keep::Process { pid, name }));
    let task = record.and_then(|record| record.task).filter(|_| wish == Wish::Collect);
    if let Some(task) = task.map(|task| get::<Task>(view, task.as_str())).transpose()?.flatten()
        && !task.standing.state.is_finished()
    {
        reasons.push(Keep::TaskOpen { task: task.task, state: task.standing.state });
    }
    Ok(reasons)
}

/// Who holds the tree and who works in it. To remove it, one's own hold is none.
fn holders(
    view: &dyn View,
    tree: &TreeId,
    wish: Wish,
    context: &Context,
) -> Result<Vec<Keep>, Refusal> {
    let own = |session: &SessionId| {
        wish == Wish::Remove && context.actor.session.as_ref() == Some(session)
    };
    let mut reasons = Vec::new();
    for claim in claims_on(view, tree)? {
        if claim.is_live(context) && !own(&claim.hold.holder.session) {
            let until = claim.expiry(context.failed_over_at);
            reasons.push(Keep::Claimed { holder: claim.hold.holder, until });
        }
    }
    let live: Vec<Session> = scan(view, Query::equal(sessions::BY_LIFE, "live", LOOKED_AT_MAX))?;
    let there = live.into_iter().filter(|session| session.tree == *tree);
    for session in there.filter(|session| context.now < session.expires_at) {
        if !own(&session.session) {
            reasons.push(Keep::InUse { session: session.name, since: session.started_at });
        }
    }
    Ok(reasons)
}

/// May it go? `force` is a person's.
pub fn may_go(
    view: &dyn View,
    tree: Option<&TreeId>,
    path: &str,
    seen: &Seen,
    wish: Wish,
    force: bool,
    context: &Context,
) -> Result<(), Refusal> {
    if !context.actor.person {
        Caller::read(view, context)?;
    }
    if force && !context.actor.person {
        return Err(Refusal::NeedsPerson { what: "removing a tree by force".to_owned() });
    }
    let reasons = reasons(view, tree, seen, wish, context)?;
    let stays = reasons.into_iter().find(|keep| !force || !keep.yields_to_a_person());
    match stays {
        Some(keep) => Err(Refused::Kept { path: path.to_owned(), keep }.into()),
        None => Ok(()),
    }
}

/// A tree that is gone, and where what was in it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Removed {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<TreeId>,
    pub path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The branch is gone too.
    pub branch_removed: bool,
    /// References under `refs/baton/rescue/`.
    pub rescued: Vec<String>,
    pub at: Moment,
}

/// It is gone; whoever held it holds it no more.
pub fn gone(
    view: &dyn View,
    mut removed: Removed,
    context: &Context,
) -> Result<(Vec<Event>, Removed), Refusal> {
    removed.at = context.now;
    let mut events = vec![Event::TreeRemoved { removed: removed.clone() }];
    if let Some(tree) = &removed.tree {
        for claim in claims_on(view, tree)? {
            let own = context.actor.session.as_ref() == Some(&claim.hold.holder.session);
            let why = match own || !claim.is_live(context) {
                true => EndOfClaim::Released { commit: None },
                false => EndOfClaim::Revoked { why: "its tree was removed".to_owned() },
            };
            events.push(claim.ends(why, context));
        }
    }
    Ok((events, removed))
}
