//! What may be committed in a tree that several sessions share, and whose lines are foreign (S18).
//!
//! Owns the judgement: first of the tree and the named paths as they were seen ([`Seen::admit`]),
//! then of the claims on them ([`judge`]). Invariant: a path that another session holds, or whose
//! uncommitted lines another session left there, is committed only when that is asked for. How a
//! commit is made is the engine's; that it was made is kept by [`made`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::claim::{self, Claim, Holder, Leftover, Mode};
use crate::claims::letting_go::{self, Which};
use crate::context::Context;
use crate::event::Event;
use crate::gates::edits;
use crate::id::{ClaimId, TaskId, Token, TreeId};
use crate::notices::Notice;
use crate::refusal::{Class, Refusal};
use crate::resource::Resource;
use crate::roles::{self, Deed};
use crate::scene::{Caller, Scene};
use crate::task::Task;
use crate::time::Moment;
use crate::view::{View, only};

pub mod message;

/// The most paths one commit may hold.
pub const PATHS_MAX: usize = 10_000;
pub const MESSAGE_BYTES_MAX: usize = 64 * 1024;
/// How many of its claims and tasks a session's commit looks at.
const HELD_MAX: u32 = 10_000;

/// Lines of a file, both ends included, counted from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Lines {
    pub from: u32,
    pub to: u32,
}

/// Another session's work in a path that is to be committed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Foreign {
    pub path: String,
    #[serde(flatten)]
    pub holder: Holder,
    pub claim: ClaimId,
    /// It holds the path since then; or left its changes there then.
    pub at: Moment,
    /// It does not hold the path any more; where its changes were saved, if they were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<Left>,
    /// Which lines are known to be its own; nothing when that cannot be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<Vec<Lines>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Left {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rescue: Option<String>,
}

/// Why nothing was committed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error("there is no git repository here")]
    NoRepository,
    #[error("a {what} is in progress in this tree")]
    InProgress { what: &'static str },
    #[error("{branch} is checked out in {tree} too")]
    CheckedOutTwice { branch: String, tree: String },
    #[error("nothing to commit")]
    Nothing { named: bool },
    #[error("{path} is ignored by git")]
    Ignored { path: String },
    #[error("{path} is neither in the tree nor known to git")]
    Missing { path: String },
    #[error("{path} is in another repository")]
    OtherRepository { path: String },
    #[error("{path} has conflicts")]
    Unmerged { path: String },
    #[error("{path} and {other} are one file where case does not count")]
    Colliding { path: String, other: String },
    #[error("{path} goes through a filter that the repository itself configures")]
    OwnFilter { path: String, filter: String },
    #[error("a name is not UTF-8")]
    NotUtf8 { lossy: String },
    #[error("{path} would have to go too")]
    NotNamed { path: String },
    #[error("the message is empty")]
    NoMessage,
    #[error("lines of others are in what would be committed")]
    Foreign { foreign: Vec<Foreign> },
    #[error("the hook {hook} refused")]
    Hook { hook: &'static str, exit: Option<i32>, output: String, changed: Vec<String> },
    #[error("git's index is locked")]
    IndexLocked { lock: String, by: Option<String>, age_seconds: u64 },
    #[error("another commit of Baton's is being made in this tree")]
    Busy { by: Option<String> },
    #[error("{reference} was moved by someone else")]
    Moved { reference: String },
    #[error("git does not know who commits")]
    NoIdentity,
}

impl Refused {
    pub fn class(&self) -> Class {
        match self {
            Self::NoMessage => Class::Usage,
            _ => Class::Refused,
        }
    }

    pub fn code(&self) -> &'static str {
        match self {
            Self::NoRepository => "no_repository",
            Self::InProgress { .. } => "in_progress",
            Self::CheckedOutTwice { .. } => "checked_out_twice",
            Self::Nothing { .. } => "nothing_to_commit",
            Self::Ignored { .. } => "ignored",
            Self::Missing { .. } => "missing",
            Self::OtherRepository { .. } => "other_repository",
            Self::Unmerged { .. } => "unmerged",
            Self::Colliding { .. } => "colliding",
            Self::OwnFilter { .. } => "own_filter",
            Self::NotUtf8 { .. } => "not_utf8",
            Self::NotNamed { .. } => "not_named",
            Self::NoMessage => "no_message",
            Self::Foreign { .. } => "foreign_lines",
            Self::Hook { .. } => "hook",
            Self::IndexLocked { .. } => "index_locked",
            Self::Busy { .. } => "busy",
            Self::Moved { .. } => "moved",
            Self::NoIdentity => "no_identity",
        }
    }
}

impl From<Refused> for Refusal {
    fn from(refused: Refused) -> Self {
        Self::Commit(Box::new(refused))
    }
}

/// What was seen of the tree and the named paths.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Paths were named; otherwise they are what the session claimed and changed.
    pub named: bool,
    pub in_progress: Option<&'static str>,
    /// The branch, and another tree that has it checked out.
    pub checked_out: Option<(String, String)>,
    /// The files to be committed.
    pub changed: Vec<String>,
    pub ignored: Vec<String>,
    pub missing: Vec<String>,
    pub elsewhere: Vec<String>,
    pub unmerged: Vec<String>,
    pub colliding: Vec<(String, String)>,
    pub filtered: Vec<(String, String)>,
}

impl Seen {
    /// May this be committed at all, whoever asks? The most telling reason comes first.
    pub fn admit(&self) -> Result<(), Refused> {
        if let Some(what) = self.in_progress {
            return Err(Refused::InProgress { what });
        }
        if let Some((branch, tree)) = self.checked_out.clone() {
            return Err(Refused::CheckedOutTwice { branch, tree });
        }
        if let Some(path) = self.elsewhere.first().cloned() {
            return Err(Refused::OtherRepository { path });
        }
        if let Some(path) = self.unmerged.first().cloned() {
            return Err(Refused::Unmerged { path });
        }
        if let Some(path) = self.missing.first().cloned() {
            return Err(Refused::Missing { path });
        }
        if let Some(path) = self.ignored.first().cloned() {
            return Err(Refused::Ignored { path });
        }
        if let Some((path, other)) = self.colliding.first().cloned() {
            return Err(Refused::Colliding { path, other });
        }
        if let Some((path, filter)) = self.filtered.first().cloned() {
            return Err(Refused::OwnFilter { path, filter });
        }
        if self.changed.is_empty() {
            return Err(Refused::Nothing { named: self.named });
        }
        Ok(())
    }
}

#[derive(Clone, Debug)]
pub struct Request {
    /// The files to be committed, literally.
    pub paths: Vec<String>,
    pub include_foreign: bool,
    /// What lines of each suspect are still there, as far as that could be seen.
    pub lines: Vec<SeenLines>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenLines {
    pub claim: ClaimId,
    pub path: String,
    /// None of them: the path is no longer foreign for what this claim left.
    pub lines: Vec<Lines>,
}

/// What a commit is made with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permit {
    pub holder: Holder,
    pub task: Option<TaskId>,
    /// The highest token of the session's claims on the paths.
    pub token: Option<Token>,
    /// Lines of others that go along because that was asked for.
    pub foreign: Vec<Foreign>,
}

/// Whose work may be in these paths, besides the caller's.
pub fn suspects(
    view: &dyn View,
    paths: &[String],
    context: &Context,
) -> Result<Vec<Foreign>, Refusal> {
    let named = literals(paths)?;
    let scene = Scene::read(view, &all(&named), context)?;
    let caller = scene.caller.as_ref().ok_or(Refusal::NoSession)?;
    let (holder, tree) = (caller.holder(context), tree_of(caller, context));
    let mut found = Vec::new();
    for (path, resource) in &named {
        for claim in &scene.claims {
            found.extend(held(claim, path, resource, &holder, &tree, context));
            let mine = !claim.hold.holder.competes_with(&holder);
            for left in claim.inherited.iter().filter(|_| mine) {
                found.extend(left_in(left, path, resource, &holder, &tree));
            }
        }
        for left in &scene.leftovers {
            found.extend(left_in(left, path, resource, &holder, &tree));
        }
    }
    Ok(found)
}

fn held(
    claim: &Claim,
    path: &str,
    resource: &Resource,
    holder: &Holder,
    tree: &TreeId,
    context: &Context,
) -> Option<Foreign> {
    let here = claim.hold.tree == *tree;
    // One that ran out and that nobody took over has its changes here still.
    let counts = here || claim.hold.scope == claim::Scope::Workspace && claim.is_live(context);
    let theirs = counts
        && claim.hold.mode == Mode::Exclusive
        && claim.hold.holder.competes_with(holder)
        && claim.hold.resources.iter().any(|one| one.overlaps(resource));
    theirs.then(|| Foreign {
        path: path.to_owned(),
        holder: claim.hold.holder.clone(),
        claim: claim.claim.clone(),
        at: claim.granted_at,
        left: None,
        lines: None,
    })
}

fn left_in(
    left: &Leftover,
    path: &str,
    resource: &Resource,
    holder: &Holder,
    tree: &TreeId,
) -> Option<Foreign> {
    let theirs = left.tree == *tree
        && left.holder.competes_with(holder)
        && left.paths.iter().any(|one| one.overlaps(resource));
    theirs.then(|| Foreign {
        path: path.to_owned(),
        holder: left.holder.clone(),
        claim: left.claim.clone(),
        at: left.ended_at,
        left: Some(Left { rescue: left.rescue.clone() }),
        lines: None,
    })
}

/// May the caller commit these paths?
pub fn judge(view: &dyn View, request: &Request, context: &Context) -> Result<Permit, Refusal> {
    if request.paths.len() > PATHS_MAX {
        return Err(Refusal::TooMany { given: request.paths.len(), max: PATHS_MAX });
    }
    let mut foreign = suspects(view, &request.paths, context)?;
    foreign.retain_mut(|one| {
        let seen = request
            .lines
            .iter()
            .find(|seen| one.left.is_some() && seen.claim == one.claim && seen.path == one.path);
        one.lines = seen.map(|seen| seen.lines.clone());
        seen.is_none_or(|seen| !seen.lines.is_empty())
    });
    if !foreign.is_empty() && !request.include_foreign {
        return Err(Refused::Foreign { foreign }.into());
    }
    let own = claim::of_session(session_of(context)?, HELD_MAX);
    let (caller, answers) = Caller::read_with(view, context, &[own])?;
    let rows = answers.first().map(Vec::as_slice).unwrap_or_default();
    let claims: Vec<Claim> = only(rows)?;
    let tasks: Vec<Task> = only(rows)?;
    let named = literals(&request.paths)?;
    let deeds = std::iter::once(Deed::Commit)
        .chain(named.iter().map(|(_, path)| Deed::Write(path)))
        .collect::<Vec<_>>();
    roles::admit(view, &caller.session, &deeds, context)?;
    let paths = named.iter().map(|(_, path)| path);
    if let Some(path) = edits::first_unasked(view, paths, context)? {
        return Err(Refusal::NeedsPerson { what: format!("committing {path}") });
    }
    let (token, task) = credentials(&caller, &claims, &tasks, &named, context);
    Ok(Permit { holder: caller.holder(context), task, token, foreign })
}

/// The highest token of its claims on the paths, and the task they are for: the one a claim names,
/// else the only one the session works on.
fn credentials(
    caller: &Caller,
    claims: &[Claim],
    tasks: &[Task],
    named: &[(String, Resource)],
    context: &Context,
) -> (Option<Token>, Option<TaskId>) {
    let on_them = |claim: &&Claim| {
        let held = &claim.hold.resources;
        claim.is_live(context)
            && named.iter().any(|(_, path)| held.iter().any(|held| held.overlaps(path)))
    };
    let best = claims.iter().filter(on_them).max_by_key(|claim| claim.token);
    let of_claim = best.and_then(|claim| TaskId::parse(claim.task.as_deref()?));
    let owned = |task: &&Task| {
        let session = &caller.session.session;
        task.owner().is_some_and(|owner| owner.session == *session && owner.is_live(context))
    };
    let mut owned = tasks.iter().filter(owned);
    let only = owned.next().filter(|_| owned.next().is_none());
    let task = of_claim.or_else(|| only.map(|task| task.task.clone()));
    (best.map(|claim| claim.token), task)
}

/// A commit, as it is told and kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Made {
    pub commit: String,
    /// The commit before it; nothing when it is the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// The branch that moved; nothing when HEAD stands on no branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    pub paths: Vec<Resource>,
    #[serde(flatten)]
    pub by: Holder,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<Token>,
    pub tree: TreeId,
    /// Whose lines went along.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub foreign: Vec<Foreign>,
}

/// A commit and what its maker should know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Committed {
    #[serde(flatten)]
    pub made: Made,
    /// What the session still holds of these paths.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<Resource>,
    /// What it let go of with this commit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub released: Vec<Resource>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<Notice>,
}

/// Keeps that a commit was made. It is a fact by now: nothing here refuses it, also not when the
/// session has ended meanwhile and somebody else finishes what it began.
pub fn made(
    view: &dyn View,
    made: &Made,
    release: bool,
    context: &Context,
) -> Result<(Vec<Event>, Committed), Refusal> {
    let mut events = vec![Event::CommitMade { made: made.clone() }];
    let mut committed =
        Committed { made: made.clone(), held: vec![], released: vec![], notices: vec![] };
    let resources = &made.paths;
    let scene = Scene::read(view, resources, &unproven(context))?;
    events.extend(settled(&scene.leftovers, &made.tree, resources));
    if context.actor.session.as_ref() != Some(&made.by.session) {
        return Ok((events, committed));
    }
    let touched =
        |claim: &&Claim| claim.is_live(context) && !claim.hold.holder.competes_with(&made.by);
    let held = scene.claims.iter().filter(touched).flat_map(|claim| &claim.hold.resources);
    let mut held: Vec<Resource> =
        held.filter(|one| resources.iter().any(|path| path.overlaps(one))).cloned().collect();
    held.dedup();
    if release && held.iter().any(|one| resources.iter().any(|path| path.covers(one))) {
        let which = Which::Resources(resources.clone());
        let done = letting_go::release(view, &which, Some(&made.commit), None, context)?;
        events.extend(done.0);
        held.retain(|one| !done.1.released.contains(one));
        committed.released = done.1.released;
        committed.notices = done.1.notices;
    } else if let Ok(caller) = Caller::read(view, context) {
        events.extend(caller.activity(context, &[]));
        committed.notices = caller.notices;
    }
    committed.held = held;
    Ok((events, committed))
}

/// Changes that others had left in these paths are committed: nobody need be told of them.
fn settled(leftovers: &[Leftover], tree: &TreeId, paths: &[Resource]) -> Option<Event> {
    let (mut claims, mut remaining) = (Vec::new(), Vec::new());
    for left in leftovers.iter().filter(|left| left.tree == *tree) {
        let outside: Vec<Resource> = left
            .paths
            .iter()
            .filter(|path| !paths.iter().any(|one| one.overlaps(path)))
            .cloned()
            .collect();
        if outside.len() == left.paths.len() {
            continue;
        }
        claims.push(left.claim.clone());
        if !outside.is_empty() {
            remaining.push(Leftover { paths: outside, ..left.clone() });
        }
    }
    (!claims.is_empty()).then_some(Event::LeftoversTold { claims, remaining })
}

fn unproven(context: &Context) -> Context {
    Context { actor: crate::context::Actor::default(), ..context.clone() }
}

fn session_of(context: &Context) -> Result<&crate::id::SessionId, Refusal> {
    context.actor.session.as_ref().ok_or(Refusal::NoSession)
}

fn tree_of(caller: &Caller, context: &Context) -> TreeId {
    context.actor.tree.clone().unwrap_or_else(|| caller.session.tree.clone())
}

fn literals(paths: &[String]) -> Result<Vec<(String, Resource)>, Refusal> {
    let literal = |path: &String| match Resource::literal(path) {
        Ok(resource) => Ok((path.clone(), resource)),
        Err(source) => Err(Refusal::BadResource { text: path.clone(), source }),
    };
    paths.iter().map(literal).collect()
}

fn all(named: &[(String, Resource)]) -> Vec<Resource> {
    named.iter().map(|(_, resource)| resource.clone()).collect()
}
