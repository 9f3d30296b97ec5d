//! What others had in a tree when a command began.
//!
//! Owns the look before a command that may write anywhere: which files others hold or have left
//! uncommitted, how each of them stood, and a copy of what was in it. Afterwards that alone tells
//! what was taken from them: a file that is back at HEAD, or gone, shows in no status of git's. It
//! starts no process, and looks at few files: those that have not changed since the last look are
//! not read again.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use baton_core::claim::{self, Claim, Holder, Leftover, Scope};
use baton_core::context::{Actor, Observed};
use baton_core::id::{ClaimId, SessionId};
use baton_core::pattern::{Kind, Pattern};
use baton_core::resource::Resource;
use baton_core::view::{Query, only, scan};
use serde::{Deserialize, Serialize};

use super::activity::{self, BACKGROUND_MS_MAX, STEP_MS, Who};
use super::committed;
use super::reads;
use super::texts::{self, Texts};
use super::traces::Trace;
use crate::failure::Failure;
use crate::place::Place;
use crate::sighting;
use crate::workspace::Workspace;

/// Files of others that are looked at before a command.
const FILES_MAX: usize = 500;
/// Names that are looked through below folders and patterns that others hold.
const NAMES_MAX: usize = 2_000;
/// Bytes that are read for copies before one command.
const READ_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// Places of claims in the store that are looked at.
const ROWS_MAX: u32 = 5_000;
/// Commands in the background that one agent is asked about.
const BEHIND_MAX: usize = 8;

/// One look at one tree.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Seen {
    call: String,
    /// Of the tree.
    #[serde(default)]
    root: PathBuf,
    /// In milliseconds of the wall clock.
    at: u64,
    /// When the command began: later looks of one in the background keep it.
    began: u64,
    /// How long git's record of HEAD was.
    #[serde(default)]
    head: Option<u64>,
    /// What others held by.
    claims: BTreeSet<ClaimId>,
    files: BTreeMap<String, State>,
}

/// How a file stood.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct State {
    /// Inode, time of its last change in nanoseconds, size; nothing where there was no file.
    stamp: Option<(u64, i64, u64)>,
    /// The mark of its copy.
    mark: Option<String>,
    /// Nobody holds it, and what is in it was left by this one.
    pub(super) left: Option<Left>,
}

/// Uncommitted work of somebody who holds it no longer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Left {
    pub(super) name: String,
    pub(super) rescue: Option<String>,
}

/// What is known of the time before one or more commands.
#[derive(Debug)]
pub(super) struct Before {
    pub(super) since: u64,
    /// How long git's record of HEAD was.
    pub(super) head: Option<u64>,
    /// The same when the call itself began.
    pub(super) own_head: Option<u64>,
    /// Calls in the background that it is the time before of, too.
    pub(super) behind: Vec<String>,
    /// What others held by; nothing when nobody looked.
    claims: Option<BTreeSet<ClaimId>>,
    pub(super) files: BTreeMap<String, State>,
}

impl Before {
    /// Nothing was seen, because the look went wrong: the time is all that is known.
    pub(super) fn unseen(since: u64) -> Self {
        let (head, own_head, behind) = (None, None, Vec::new());
        Self { since, head, own_head, behind, claims: None, files: BTreeMap::new() }
    }

    /// Was this held already, and not taken meanwhile?
    pub(super) fn was_held(&self, by: Option<&ClaimId>) -> bool {
        match (&self.claims, by) {
            (Some(claims), Some(claim)) => claims.contains(claim),
            _ => true,
        }
    }
}

/// A command begins. What cannot be seen is not written down, and keeps nobody.
pub(super) fn look(workspace: &mut Workspace, actor: &Actor, call: &str, behind: bool) {
    let Some(looks) = Looks::here(workspace, actor) else { return };
    let began = activity::now();
    if let Ok(seen) = looks.see(workspace, actor, call, began) {
        looks.write(&seen, behind);
    }
}

/// What these calls run goes on when they are over.
pub(super) fn go_on(workspace: &Workspace, actor: &Actor, calls: &[String]) {
    let Some(looks) = Looks::here(workspace, actor) else { return };
    let of = |call: &String| looks.newest(false).find(|one| one.call == *call);
    calls.iter().filter_map(of).for_each(|seen| looks.write(&seen, true));
}

/// The looks of one agent at one tree, as they were written down until now. Each is a line: who,
/// the tree, whether the command goes on behind its call, and the rest, which is read when needed.
#[derive(Debug)]
pub(super) struct Looks {
    trace: Trace,
    /// What lines of these looks begin with, and those of all looks of the session at the tree.
    own: String,
    tree: String,
    text: String,
}

impl Looks {
    pub(super) fn here(workspace: &Workspace, actor: &Actor) -> Option<Self> {
        let me = Who::acting(actor)?;
        let trace = Trace::of_session(&workspace.place, &me.session, "before");
        let tree = activity::tree_word(&workspace.tree);
        let text = trace.text();
        Some(Self { trace, own: format!("{} {tree}", me.text()), tree, text })
    }

    /// Those of commands that go on behind their calls, or of others; the newest first.
    fn newest(&self, behind: bool) -> impl Iterator<Item = Seen> + '_ {
        let kind = kind(behind);
        let own = move |line: &str| {
            let rest = line.strip_prefix(&self.own)?.strip_prefix(kind)?;
            serde_json::from_str(rest).ok()
        };
        self.text.lines().rev().filter_map(own)
    }

    fn write(&self, seen: &Seen, behind: bool) {
        if let Ok(text) = serde_json::to_string(seen) {
            self.trace.add(&format!("{}{}{text}", self.own, kind(behind)));
        }
    }

    /// The last look at each command in the background whose time is not over.
    fn open(&self) -> Vec<Seen> {
        let now = activity::now();
        let mut known = BTreeSet::new();
        let newest = self.newest(true).filter(|one| known.insert(one.call.clone()));
        newest.filter(|one| one.began + BACKGROUND_MS_MAX > now).take(BEHIND_MAX).collect()
    }

    /// Does the agent have commands in the background that are still looked after?
    pub(super) fn any_behind(&self) -> bool {
        !self.open().is_empty()
    }

    /// Roots of the other trees in which the agent has such commands.
    pub(super) fn behind_elsewhere(&self) -> BTreeSet<PathBuf> {
        let now = activity::now();
        let who = self.own.strip_suffix(self.tree.as_str()).unwrap_or(&self.own);
        let elsewhere = |line: &str| {
            let (tree, rest) = line.strip_prefix(who)?.split_once(kind(true))?;
            let is_other = tree != self.tree && !tree.contains(' ');
            is_other.then(|| serde_json::from_str::<Seen>(rest).ok())?
        };
        let looks = self.text.lines().filter_map(elsewhere);
        let open = looks.filter(|one| one.began + BACKGROUND_MS_MAX > now && one.root.is_dir());
        open.map(|one| one.root).collect()
    }

    /// How things stood before the call, and before what runs in the background.
    pub(super) fn before(&self, call: Option<&str>) -> Option<Before> {
        let open = self.open();
        let behind = open.iter().map(|one| one.call.clone()).collect();
        let of_call = open.iter().find(|one| call == Some(one.call.as_str()));
        // Clients that give no ids use one for all: what is behind began after what is over.
        let own = call.filter(|_| of_call.is_none());
        let own = own.and_then(|call| self.newest(false).find(|one| one.call == call));
        let own_head = own.as_ref().or(of_call).and_then(|one| one.head);
        let mut looks: Vec<Seen> = open.into_iter().chain(own).collect();
        looks.sort_by_key(|one| one.at);
        let first = looks.first()?;
        let (since, head) = (first.at.saturating_sub(STEP_MS), first.head);
        let claims = looks.iter().flat_map(|one| one.claims.iter().cloned()).collect();
        let mut files = BTreeMap::new();
        for (path, state) in looks.into_iter().flat_map(|one| one.files) {
            files.entry(path).or_insert(state);
        }
        Some(Before { since, head, own_head, behind, claims: Some(claims), files })
    }

    /// Commands in the background are looked after from here on, and this one with them.
    pub(super) fn look_again(&self, workspace: &mut Workspace, actor: &Actor, also: Option<&str>) {
        let mut calls: BTreeMap<String, u64> =
            self.open().into_iter().map(|one| (one.call, one.began)).collect();
        if let Some(call) = also {
            calls.entry(call.to_owned()).or_insert_with(activity::now);
        }
        if calls.is_empty() {
            return;
        }
        let Ok(seen) = self.see(workspace, actor, "", 0) else { return };
        for (call, began) in calls {
            self.write(&Seen { call, began, ..seen.clone() }, true);
        }
    }

    fn see(
        &self,
        workspace: &mut Workspace,
        actor: &Actor,
        call: &str,
        began: u64,
    ) -> Result<Seen, Failure> {
        let (files, claims) = of_others(workspace, actor)?;
        let at = activity::now();
        let place = &workspace.place;
        let head = committed::length(place);
        let known = self.last_states();
        let texts = Texts::of_sessions(place);
        let mut unread = READ_BYTES_MAX;
        let mut states = BTreeMap::new();
        for (path, left) in files {
            let before = known.get(&path);
            if let Some(state) = stood(&place.root, &path, before, left, &texts, &mut unread) {
                states.insert(path, state);
            }
        }
        let (call, root) = (call.to_owned(), place.root.clone());
        Ok(Seen { call, root, at, began, head, claims, files: states })
    }

    /// How files of this tree stood when anybody of the session looked last.
    fn last_states(&self) -> BTreeMap<String, State> {
        let here = |line: &str| {
            let (_, line) = line.split_once(' ')?;
            let rest = line.strip_prefix(self.tree.as_str())?;
            let rest = rest.strip_prefix(kind(true)).or_else(|| rest.strip_prefix(kind(false)))?;
            serde_json::from_str::<Seen>(rest).ok()
        };
        let last = self.text.lines().rev().find_map(here);
        last.map(|one| one.files).unwrap_or_default()
    }
}

/// As activity calls it.
fn kind(behind: bool) -> &'static str {
    if behind { " g " } else { " b " }
}

/// Paths, and who left what is in them where nobody holds them.
type Files = BTreeMap<String, Option<Left>>;

/// The files in this tree that others hold or have left, as far as they are few, and by which
/// claims they do. Whoever is visibly dead is buried first, which saves what it left.
fn of_others(
    workspace: &mut Workspace,
    actor: &Actor,
) -> Result<(Files, BTreeSet<ClaimId>), Failure> {
    let (mut claims, mut leftovers) = standing(workspace)?;
    let holders: BTreeSet<SessionId> = claims
        .iter()
        .map(|claim| claim.hold.holder.session.clone())
        .filter(|session| actor.session.as_ref() != Some(session))
        .collect();
    let mut buried = false;
    for session in &holders {
        buried |= sighting::bury(workspace, session)?;
    }
    if buried {
        (claims, leftovers) = standing(workspace)?;
    }
    let me = Holder {
        session: actor.session.clone().unwrap_or_else(|| SessionId(String::new())),
        name: String::new(),
        agent: actor.agent.clone(),
    };
    let mut names = Names { root: &workspace.place.root, unseen: NAMES_MAX };
    let mut files = BTreeMap::new();
    for left in leftovers.iter().filter(|left| left.holder.competes_with(&me)) {
        for path in patterns(&left.paths) {
            let (name, rescue) = (left.holder.name.clone(), left.rescue.clone());
            files.insert(path.text().to_owned(), Some(Left { name, rescue }));
        }
    }
    claims.retain(|claim| claim.hold.holder.competes_with(&me));
    for claim in &claims {
        for pattern in patterns(&claim.hold.resources) {
            names.of(pattern, &mut |path| {
                files.insert(path, None);
            });
        }
    }
    let claims = claims.into_iter().map(|claim| claim.claim).collect();
    Ok((files.into_iter().take(FILES_MAX).collect(), claims))
}

fn patterns(resources: &[Resource]) -> impl Iterator<Item = &Pattern> {
    resources.iter().filter_map(|resource| match resource {
        Resource::Path(pattern) => Some(pattern),
        Resource::Name { .. } => None,
    })
}

/// The claims and leftovers that concern this tree.
fn standing(workspace: &mut Workspace) -> Result<(Vec<Claim>, Vec<Leftover>), Failure> {
    let tree = workspace.tree.clone();
    workspace.look(&Actor::default(), Observed::default(), |view, _| {
        let mut rows = view.read(&[all_claims()])?.into_iter().flatten().collect::<Vec<_>>();
        rows.sort_by(|one, two| (one.kind, &one.key).cmp(&(two.kind, &two.key)));
        rows.dedup_by(|one, two| (one.kind, &one.key) == (two.kind, &two.key));
        let mut claims: Vec<Claim> = only(&rows)?;
        claims.retain(|claim| claim.hold.tree == tree || claim.hold.scope == Scope::Workspace);
        let mut leftovers: Vec<Leftover> = only(&rows)?;
        leftovers.retain(|left| left.tree == tree);
        Ok((claims, leftovers))
    })
}

/// The other trees in which others hold something.
pub(super) fn trees_of_others(
    workspace: &mut Workspace,
    actor: &Actor,
) -> Result<BTreeSet<String>, Failure> {
    let tree = workspace.tree.clone();
    workspace.look(&Actor::default(), Observed::default(), |view, _| {
        let claims: Vec<Claim> = scan(view, all_claims())?;
        let elsewhere = claims.into_iter().filter(|claim| {
            claim.hold.tree != tree && Some(&claim.hold.holder.session) != actor.session.as_ref()
        });
        Ok(elsewhere.map(|claim| claim.hold.tree.0).collect())
    })
}

fn all_claims() -> Query {
    Query::Scan {
        index: claim::BY_RESOURCE,
        from: String::new(),
        until: "\u{10ffff}".to_owned(),
        after: None,
        limit: ROWS_MAX,
    }
}

/// Looks through folders for the files that a claim stands for.
struct Names<'a> {
    root: &'a Path,
    unseen: usize,
}

impl Names<'_> {
    fn of(&mut self, pattern: &Pattern, found: &mut dyn FnMut(String)) {
        let text = pattern.text();
        let folder = match pattern.kind() {
            Kind::Path => return found(text.to_owned()),
            Kind::Folder => text.trim_end_matches('/'),
            Kind::Glob => {
                let plain = text.find(['*', '?', '[', '{', '\\']).unwrap_or(text.len());
                text[..plain].rsplit_once('/').map_or("", |(folder, _)| folder)
            }
        };
        let folder = if folder == "." { "" } else { folder };
        self.below(folder, &mut |path| {
            if pattern.kind() == Kind::Folder || pattern.matches(&path) {
                found(path);
            }
        });
    }

    fn below(&mut self, folder: &str, found: &mut dyn FnMut(String)) {
        let Ok(entries) = std::fs::read_dir(self.root.join(folder)) else { return };
        for entry in entries.flatten() {
            if self.unseen == 0 {
                return;
            }
            self.unseen -= 1;
            let name = entry.file_name();
            // What is no text cannot be held either.
            let Some(name) = name.to_str().filter(|name| *name != ".git") else { continue };
            let path = if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => self.below(&path, found),
                Ok(_) => found(path),
                Err(_) => {}
            }
        }
    }
}

/// How a file stands now. Nothing for a folder: it changes with everything in it.
fn stood(
    root: &Path,
    path: &str,
    known: Option<&State>,
    left: Option<Left>,
    texts: &Texts,
    unread: &mut u64,
) -> Option<State> {
    let file = root.join(path);
    let Ok(metadata) = std::fs::symlink_metadata(&file) else {
        return Some(State { stamp: None, mark: None, left });
    };
    if metadata.is_dir() {
        return None;
    }
    let stamp = Some(stamp(&metadata));
    if let Some(known) = known.filter(|known| known.stamp == stamp && known.mark.is_some()) {
        return Some(State { left, ..known.clone() });
    }
    let small = metadata.len() <= texts::BYTES_MAX as u64 && metadata.len() <= *unread;
    let bytes = match metadata.is_file() && small {
        true => std::fs::read(&file).ok(),
        false => None,
    };
    let mark = bytes.map(|bytes| {
        *unread = unread.saturating_sub(metadata.len());
        let mark = reads::mark(&bytes);
        texts.keep(&mark, &bytes);
        mark
    });
    Some(State { stamp, mark, left })
}

fn stamp(metadata: &std::fs::Metadata) -> (u64, i64, u64) {
    let changed = metadata.ctime().saturating_mul(1_000_000_000) + metadata.ctime_nsec();
    (metadata.ino(), changed, metadata.len())
}

impl State {
    /// Is there something else in the file now, or nothing?
    pub(super) fn has_changed(&self, root: &Path, path: &str) -> bool {
        let file = root.join(path);
        let found = std::fs::symlink_metadata(&file).ok();
        if found.as_ref().map(stamp) == self.stamp {
            return false;
        }
        let small = found.is_some_and(|found| found.is_file() && Some(found.len()) == self.size());
        let (true, Some(mark)) = (small, &self.mark) else { return true };
        std::fs::read(&file).is_ok_and(|bytes| reads::mark(&bytes) != *mark)
    }

    /// Was this in the file?
    pub(super) fn was(&self, content: Option<&[u8]>) -> bool {
        match (content, &self.mark) {
            (None, _) => self.stamp.is_none(),
            (Some(bytes), Some(mark)) => reads::mark(bytes) == *mark,
            (Some(bytes), None) => self.size() == Some(bytes.len() as u64),
        }
    }

    fn size(&self) -> Option<u64> {
        self.stamp.map(|(_, _, size)| size)
    }

    /// Where the copy of what was there is kept.
    pub(super) fn copy(&self, place: &Place) -> Option<PathBuf> {
        self.mark.as_deref().and_then(|mark| Texts::of_sessions(place).path_of(mark))
    }
}
