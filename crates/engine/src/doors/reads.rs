//! What a session has read, and what others changed since.
//!
//! Owns the marks: path, and a hash of what was there when the session last read or wrote it. They
//! are traces: without one nothing is said, and nothing is ever granted or refused by them alone.
//! Whoever was told that another changed a file, and changes it without reading it again, knows no
//! more of it than before, but for its own change.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use baton_core::context::Actor;
use baton_core::id::SessionId;
use baton_core::resource::Resource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::activity;
use super::edit::{Change, Target};
use super::texts::Texts;
use super::traces::Trace;
use crate::conflicts::Changes;
use crate::conflicts::undo::lines_taken_back;
use crate::failure::Failure;
use crate::listing::{self, What};
use crate::place::{Place, TreeKind};
use crate::resources::{Meant, meant_path, path_on_disk};
use crate::workspace::Workspace;

/// Larger files are not read for this.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Files that are looked at when a turn begins.
const LOOKED_AT_MAX: usize = 500;
/// What stands for a file that is not there.
const ABSENT: &str = "-";
/// The clock of the journal and that of marks may differ by this.
const CLOCKS_MS: u64 = 2_000;

/// A file that is not as this session read it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stale {
    pub path: Resource,
    /// Who held it last, other than this session; nobody when Baton saw nobody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The functions that differ from what was read.
    #[serde(default, skip_serializing_if = "Changes::is_empty")]
    pub functions: Changes,
    /// The mark of what is there now.
    #[serde(skip)]
    pub now: String,
    /// What this session read, where a copy of it is left.
    #[serde(skip)]
    pub known: Option<String>,
    #[serde(skip)]
    before: Known,
}

/// The session has read these, or has just written them: it knows them as they are now. Answers
/// with the roots of other trees that some of them lie in, where this is to be done too.
pub fn remember(
    workspace: &Workspace,
    actor: &Actor,
    cwd: &Path,
    paths: &[String],
) -> Vec<PathBuf> {
    let Some(session) = &actor.session else { return Vec::new() };
    let trace = marks_of(&workspace.place, session);
    let texts = Texts::of_sessions(&workspace.place);
    let mut all = Meant::default();
    for path in paths {
        let mut meant = meant_path(&workspace.place, cwd, path);
        let resources = std::mem::take(&mut meant.here);
        all.add(meant);
        let marked = resources.iter().filter_map(|one| marked(&workspace.place.root, one));
        for Marked { path, mark, bytes } in marked {
            trace.add(&format!("{} {path}", Known::now(&mark).text()));
            if let Some(bytes) = bytes {
                texts.keep(&mark, &bytes);
            }
        }
    }
    all.elsewhere
}

/// The session was told that others changed these, and goes on.
pub(super) fn warned(workspace: &Workspace, actor: &Actor, stale: &[Stale]) {
    let Some(session) = &actor.session else { return };
    let trace = marks_of(&workspace.place, session);
    for one in stale.iter().filter(|one| one.by.is_some()) {
        let known = Known { there: Some(one.now.clone()), ..one.before.clone() };
        trace.add(&format!("{} {}", known.text(), one.path));
    }
}

/// The session has written these: in how many lines of which it took back what another made of
/// them since it read them.
pub fn wrote(
    workspace: &Workspace,
    actor: &Actor,
    cwd: &Path,
    targets: &[Target],
) -> Vec<(Resource, usize)> {
    let Some(session) = &actor.session else { return Vec::new() };
    let trace = marks_of(&workspace.place, session);
    let mut undone = Vec::new();
    for target in targets {
        let found = meant_path(&workspace.place, cwd, &target.path).here;
        let unread = |resource: &Resource| {
            let known = newest_mark(&trace, literal_text(resource)?)?;
            known.there.is_some().then(|| (resource.clone(), known))
        };
        let unread: Vec<(Resource, Known)> = found.iter().filter_map(unread).collect();
        if unread.is_empty() {
            remember(workspace, actor, cwd, std::slice::from_ref(&target.path));
        }
        for (resource, known) in unread {
            let lines = wrote_unread(workspace, &trace, &resource, &known, &target.change);
            undone.extend((lines > 0).then_some((resource, lines)));
        }
    }
    undone
}

/// A file that another changed was written without being read again.
fn wrote_unread(
    workspace: &Workspace,
    trace: &Trace,
    resource: &Resource,
    known: &Known,
    change: &Change,
) -> usize {
    let Some(Marked { path, mark, bytes }) = marked(&workspace.place.root, resource) else {
        return 0;
    };
    let texts = Texts::of_sessions(&workspace.place);
    if let Some(bytes) = &bytes {
        texts.keep(&mark, bytes);
    }
    let now = bytes.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default();
    let before = known.there.as_deref().and_then(|there| texts.get(there));
    let read = texts.get(&known.mark);
    let lines = match (&read, &before) {
        (Some(read), Some(before)) => lines_taken_back(read, before, &now),
        _ => 0,
    };
    let after = match (change, &read) {
        // What it replaced it must have seen.
        (Change::Replace { old, .. }, Some(read)) if !read.contains(old.as_str()) => Some(now),
        (Change::Replace { .. }, Some(read)) => change.makes(read),
        (Change::Whole(_), _) => Some(now),
        _ => None,
    };
    if let Some(after) = after {
        let after = (self::mark(after.as_bytes()), after);
        texts.keep(&after.0, after.1.as_bytes());
        // Whoever took lines back knows the file as it is, and not what it took: that stays.
        let there = (after.0 != mark || lines > 0).then_some(mark);
        let told = known.first.clone().or_else(|| Some((known.mark.clone(), known.there.clone()?)));
        let first = told.filter(|_| there.is_some());
        let known = Known { mark: after.0, there, first, ..Known::now("") };
        trace.add(&format!("{} {path}", known.text()));
    }
    lines
}

/// Which of these have changed since the session knew them.
pub(super) fn changed(
    workspace: &mut Workspace,
    actor: &Actor,
    resources: &[Resource],
) -> Result<Vec<Stale>, Failure> {
    let Some(session) = &actor.session else {
        return Ok(Vec::new());
    };
    let trace = marks_of(&workspace.place, session);
    stale(workspace, session, resources, |path| newest_mark(&trace, path))
}

/// Those that are not as they were known.
fn stale(
    workspace: &mut Workspace,
    session: &SessionId,
    resources: &[Resource],
    known: impl Fn(&str) -> Option<Known>,
) -> Result<Vec<Stale>, Failure> {
    let mut stale = Vec::new();
    for resource in resources {
        // A file that was never looked at is not read for this.
        let Some(before) = literal_text(resource).and_then(&known) else { continue };
        let Some(Marked { path, mark, bytes }) = marked(&workspace.place.root, resource) else {
            continue;
        };
        if before.mark == mark {
            continue;
        }
        let by = last_other(workspace, session, resource, before.at)?;
        let texts = Texts::of_sessions(&workspace.place);
        let known = texts.get(&before.mark);
        if let Some(bytes) = &bytes {
            texts.keep(&mark, bytes);
        }
        let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
        let functions = match (&known, text) {
            (Some(known), Some(text)) => Changes::between(&path, known, &text),
            _ => Changes::default(),
        };
        stale.push(Stale { path: resource.clone(), by, functions, now: mark, known, before });
    }
    Ok(stale)
}

/// Every path that the session has read or written, as hooks told.
pub(crate) fn paths(workspace: &Workspace, actor: &Actor) -> Vec<String> {
    let read = actor.session.as_ref().map(|session| marks_of(&workspace.place, session).text());
    let read = read.unwrap_or_default();
    let paths: BTreeSet<&str> =
        read.lines().filter_map(|line| line.split_once(' ')).map(|(_, path)| path).collect();
    paths.into_iter().map(str::to_owned).collect()
}

/// The session was told why these are as they are now: that is no news.
pub(super) fn told(workspace: &Workspace, actor: &Actor, resources: &[Resource]) {
    let Some(session) = &actor.session else { return };
    let told = Trace::of_session(&workspace.place, session, "told");
    for one in resources {
        if let Some(Marked { mark, .. }) = marked(&workspace.place.root, one) {
            told.add(&format!("{mark} {one}"));
        }
    }
}

/// Files that are not as the session read them and of which it was not told yet.
pub(crate) fn news(workspace: &mut Workspace, actor: &Actor) -> Result<Vec<Stale>, Failure> {
    let Some(session) = actor.session.clone() else {
        return Ok(Vec::new());
    };
    let told = Trace::of_session(&workspace.place, &session, "told");
    let known = told.lines();
    let read = marks_of(&workspace.place, &session).text();
    let paths = paths(workspace, actor).into_iter().take(LOOKED_AT_MAX);
    let resources: Vec<Resource> = paths.filter_map(|path| Resource::literal(&path).ok()).collect();
    let mark = |path: &str| last_mark(&read, path).map(Known::parsed);
    let mut fresh = Vec::new();
    for stale in stale(workspace, &session, &resources, mark)? {
        let line = format!("{} {}", stale.now, stale.path);
        if !known.contains(&line) {
            told.add(&line);
            fresh.push(stale);
        }
    }
    Ok(fresh)
}

/// The latest mark of a path.
fn last_mark<'a>(read: &'a str, path: &str) -> Option<&'a str> {
    let wanted = format!(" {path}\n");
    let mut rest = read;
    while let Some(at) = rest.rfind(&wanted) {
        let line = rest[..at].rsplit('\n').next().unwrap_or_default();
        // A path may end like another: what stands before is a mark and nothing else.
        if !line.contains(' ') {
            return Some(line);
        }
        rest = &rest[..at];
    }
    None
}

/// The mark of a text.
pub(crate) fn mark(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex()[..32].to_owned()
}

/// A file as it is.
struct Marked {
    path: String,
    mark: String,
    /// None when there is no file.
    bytes: Option<Vec<u8>>,
}

/// A file with a mark of what is there. Only plain files have one.
fn marked(root: &Path, resource: &Resource) -> Option<Marked> {
    let path = literal_text(resource).filter(|path| !path.contains('\n'))?;
    let file = path_on_disk(root, resource)?;
    let bytes = match std::fs::metadata(&file) {
        Ok(metadata) if metadata.is_file() && metadata.len() <= FILE_BYTES_MAX => {
            Some(std::fs::read(&file).ok()?)
        }
        Ok(_) => return None,
        Err(_) => None,
    };
    let mark = bytes.as_deref().map_or_else(|| ABSENT.to_owned(), mark);
    Some(Marked { path: path.to_owned(), mark, bytes })
}

fn literal_text(resource: &Resource) -> Option<&str> {
    match resource {
        Resource::Path(pattern) => Some(pattern.text()),
        _ => None,
    }
}

/// Who may have changed the path since then, other than this session: whoever took it, let go of it
/// or held it all the time.
fn last_other(
    workspace: &mut Workspace,
    me: &SessionId,
    path: &Resource,
    since: u64,
) -> Result<Option<String>, Failure> {
    let mut chapters = listing::chapters(workspace, std::slice::from_ref(path))?;
    chapters.retain(|one| one.session != *me);
    chapters.sort_by_key(|one| std::cmp::Reverse(one.position));
    let mut let_go = BTreeSet::new();
    for one in chapters {
        let recent = one.at.0 + CLOCKS_MS >= since;
        let held = matches!(one.what, What::Claimed { .. }) && !let_go.contains(&one.session);
        if recent || held {
            return Ok(Some(one.name));
        }
        let_go.insert(one.session);
    }
    Ok(None)
}

/// A file that others changed since the session knew it, and that it did not read again though it
/// was told.
pub(crate) struct Unread {
    pub(crate) path: String,
    /// What it knew, and what others had made of that: when it was told first, and when last. What
    /// it wrote itself is in both of a pair or in none, so the difference is what others did.
    pub(crate) told: Vec<(String, String)>,
}

pub(crate) fn unread(place: &Place, session: &SessionId, paths: &[String]) -> Vec<Unread> {
    let trace = marks_of(place, session);
    let texts = Texts::of_sessions(place);
    let unread = paths.iter().filter_map(|path| {
        let Known { mark, there, first, .. } = newest_mark(&trace, path)?;
        let pairs = [first, Some((mark, there?))].into_iter().flatten();
        let told =
            pairs.filter_map(|(known, there)| Some((texts.get(&known)?, texts.get(&there)?)));
        Some(Unread { path: path.clone(), told: told.collect() })
    });
    unread.collect()
}

/// What a session last knew of a path in the tree.
pub(crate) fn known_mark(place: &Place, session: &SessionId, path: &str) -> Option<String> {
    newest_mark(&marks_of(place, session), path).map(|known| known.mark)
}

fn newest_mark(trace: &Trace, path: &str) -> Option<Known> {
    trace.tails().find_map(|read| last_mark(&read, path).map(Known::parsed))
}

/// What is known of a file, as it stands in a trace: `mark@time`, `!mark:there@time`, or with the
/// first of such pairs behind it `!mark:there:mark:there@time`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Known {
    mark: String,
    /// The mark of what another had made of it when this session was told so.
    there: Option<String>,
    /// Both as they were when it was told for the first time, where it has written since then.
    first: Option<(String, String)>,
    /// In milliseconds of the wall clock.
    at: u64,
}

impl Known {
    fn now(mark: &str) -> Self {
        Self { mark: mark.to_owned(), at: activity::now(), ..Self::default() }
    }

    fn parsed(text: &str) -> Self {
        let (marks, at) = text.split_once('@').unwrap_or((text, ""));
        let at = at.parse().unwrap_or(0);
        let Some(marks) = marks.strip_prefix('!') else {
            return Self { mark: marks.to_owned(), at, ..Self::default() };
        };
        let mut marks = marks.split(':').map(str::to_owned);
        let mark = marks.next().unwrap_or_default();
        Self { mark, there: marks.next(), first: marks.next().zip(marks.next()), at }
    }

    fn text(&self) -> String {
        let first = self.first.as_ref().map(|(mark, there)| format!(":{mark}:{there}"));
        let first = first.unwrap_or_default();
        match &self.there {
            Some(there) => format!("!{}:{there}{first}@{}", self.mark, self.at),
            None => format!("{}@{}", self.mark, self.at),
        }
    }
}

/// A file of the same name in another tree is another file: each tree has marks of its own.
fn marks_of(place: &Place, session: &SessionId) -> Trace {
    match &place.tree_kind {
        TreeKind::Main | TreeKind::Plain => Trace::of_session(place, session, "reads"),
        TreeKind::Linked { name } => {
            let tree = mark(name.as_bytes());
            Trace::of_session(place, session, &format!("reads-{tree}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_comes_back_from_its_trace() {
        for text in ["aa@7", "!aa:bb@9", "!aa:bb:cc:dd@9", "-@1"] {
            assert_eq!(Known::parsed(text).text(), text);
        }
        let known = Known::parsed("!aa:bb@9");
        assert_eq!((known.mark.as_str(), known.there.as_deref(), known.at), ("aa", Some("bb"), 9));
        assert_eq!(Known::parsed("rubbish").at, 0);
    }

    #[test]
    fn the_newest_mark_of_exactly_this_path() {
        let read = "11 b.rs\n22 a b.rs\n33 b.rs\n44 src/a b.rs\n";
        assert_eq!(last_mark(read, "b.rs"), Some("33"));
        assert_eq!(last_mark(read, "a b.rs"), Some("22"));
        assert_eq!(last_mark(read, "src/a b.rs"), Some("44"));
        assert_eq!(last_mark(read, ".rs"), None);
        assert_eq!(last_mark(read, "b.r"), None);
    }
}
