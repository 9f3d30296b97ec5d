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
use baton_core::view::{Query, only};
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

/// One look.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Seen {
    call: String,
    who: String,
    /// In milliseconds of the wall clock.
    at: u64,
    /// When the command began: later looks of one in the background keep it.
    began: u64,
    behind: bool,
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
    /// What others held by; nothing when nobody looked.
    claims: Option<BTreeSet<ClaimId>>,
    pub(super) files: BTreeMap<String, State>,
}

impl Before {
    /// Nothing was seen: the time is all that is known.
    pub(super) fn unseen(since: u64) -> Self {
        Self { since, head: None, claims: None, files: BTreeMap::new() }
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
    let Some(me) = Who::acting(actor) else { return };
    let began = activity::now();
    if let Ok(seen) = seen(workspace, actor, &me, call, began, behind) {
        write(&workspace.place, &me.session, &seen);
    }
}

/// Commands in the background are looked after from here on, and this one with them.
pub(super) fn look_again(workspace: &mut Workspace, actor: &Actor, also: Option<&str>) {
    let Some(me) = Who::acting(actor) else { return };
    let mut calls: BTreeMap<String, u64> =
        open(&workspace.place, &me).into_iter().map(|one| (one.call, one.began)).collect();
    if let Some(call) = also {
        calls.entry(call.to_owned()).or_insert_with(activity::now);
    }
    if calls.is_empty() {
        return;
    }
    let Ok(seen) = seen(workspace, actor, &me, "", 0, true) else { return };
    for (call, began) in calls {
        write(&workspace.place, &me.session, &Seen { call, began, ..seen.clone() });
    }
}

/// Does the agent have commands in the background that are still looked after?
pub(super) fn any_behind(place: &Place, me: &Who) -> bool {
    !open(place, me).is_empty()
}

/// How things stood before the call, and before what runs in the background.
pub(super) fn before(place: &Place, me: &Who, call: Option<&str>) -> Option<Before> {
    let own = call.and_then(|call| {
        entries(place, me).into_iter().rev().find(|one| one.call == call && !one.behind)
    });
    let mut looks: Vec<Seen> = open(place, me).into_iter().chain(own).collect();
    looks.sort_by_key(|one| one.at);
    let first = looks.first()?;
    let (since, head) = (first.at.saturating_sub(STEP_MS), first.head);
    let claims = looks.iter().flat_map(|one| one.claims.iter().cloned()).collect();
    let mut files = BTreeMap::new();
    for (path, state) in looks.into_iter().flat_map(|one| one.files) {
        files.entry(path).or_insert(state);
    }
    Some(Before { since, head, claims: Some(claims), files })
}

fn trace(place: &Place, session: &SessionId) -> Trace {
    Trace::of_session(place, session, "before")
}

fn write(place: &Place, session: &SessionId, seen: &Seen) {
    if let Ok(line) = serde_json::to_string(seen) {
        trace(place, session).add(&line);
    }
}

fn entries(place: &Place, me: &Who) -> Vec<Seen> {
    let text = trace(place, &me.session).text();
    let who = me.text();
    let parsed = text.lines().filter_map(|line| serde_json::from_str::<Seen>(line).ok());
    parsed.filter(|one| one.who == who).collect()
}

/// The last look at each command in the background whose time is not over.
fn open(place: &Place, me: &Who) -> Vec<Seen> {
    let now = activity::now();
    let mut known = BTreeSet::new();
    let mut found = entries(place, me);
    found.reverse();
    found.retain(|one| {
        one.behind && one.began + BACKGROUND_MS_MAX > now && known.insert(one.call.clone())
    });
    found.truncate(BEHIND_MAX);
    found
}

fn seen(
    workspace: &mut Workspace,
    actor: &Actor,
    me: &Who,
    call: &str,
    began: u64,
    behind: bool,
) -> Result<Seen, Failure> {
    let (files, claims) = of_others(workspace, actor)?;
    let at = activity::now();
    let place = &workspace.place;
    let head = committed::length(place);
    let known = last_states(place, me);
    let texts = Texts::of_sessions(place);
    let mut unread = READ_BYTES_MAX;
    let mut states = BTreeMap::new();
    for (path, left) in files {
        let before = known.get(&path);
        if let Some(state) = stood(&place.root, &path, before, left, &texts, &mut unread) {
            states.insert(path, state);
        }
    }
    let (call, who) = (call.to_owned(), me.text());
    Ok(Seen { call, who, at, began, behind, head, claims, files: states })
}

fn last_states(place: &Place, me: &Who) -> BTreeMap<String, State> {
    let text = trace(place, &me.session).text();
    let last = text.lines().last().and_then(|line| serde_json::from_str::<Seen>(line).ok());
    last.map(|one| one.files).unwrap_or_default()
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
        let all = Query::Scan {
            index: claim::BY_RESOURCE,
            from: String::new(),
            until: "\u{10ffff}".to_owned(),
            after: None,
            limit: ROWS_MAX,
        };
        let mut rows = view.read(&[all])?.into_iter().flatten().collect::<Vec<_>>();
        rows.sort_by(|one, two| (one.kind, &one.key).cmp(&(two.kind, &two.key)));
        rows.dedup_by(|one, two| (one.kind, &one.key) == (two.kind, &two.key));
        let mut claims: Vec<Claim> = only(&rows)?;
        claims.retain(|claim| claim.hold.tree == tree || claim.hold.scope == Scope::Workspace);
        let mut leftovers: Vec<Leftover> = only(&rows)?;
        leftovers.retain(|left| left.tree == tree);
        Ok((claims, leftovers))
    })
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
