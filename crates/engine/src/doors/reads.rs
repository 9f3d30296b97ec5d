//! What a session has read, and what others changed since.
//!
//! Owns the marks: path, and a hash of what was there when the session last read or wrote it. They
//! are traces: without one nothing is said, and nothing is ever granted or refused by them alone.

use std::collections::BTreeMap;
use std::path::Path;

use baton_core::context::Actor;
use baton_core::id::SessionId;
use baton_core::resource::Resource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::texts::Texts;
use super::traces::Trace;
use crate::conflicts::Changes;
use crate::failure::Failure;
use crate::listing::{self, What};
use crate::place::Place;
use crate::resources::{literal, path_on_disk};
use crate::workspace::Workspace;

/// Larger files are not read for this.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Files that are looked at when a turn begins.
const LOOKED_AT_MAX: usize = 500;
/// What stands for a file that is not there.
const ABSENT: &str = "-";

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
}

/// The session has read these, or has just written them: it knows them as they are now.
pub fn remember(workspace: &Workspace, actor: &Actor, cwd: &Path, paths: &[String]) {
    let Some(session) = &actor.session else { return };
    let trace = Trace::of_session(&workspace.place, session, "reads");
    let texts = Texts::of_sessions(&workspace.place);
    for path in paths {
        for Marked { path, mark, bytes } in marks(workspace, cwd, path) {
            trace.add(&format!("{mark} {path}"));
            if let Some(bytes) = bytes {
                texts.keep(&mark, &bytes);
            }
        }
    }
}

/// Which of these have changed since the session knew them.
pub fn changed(
    workspace: &mut Workspace,
    actor: &Actor,
    cwd: &Path,
    paths: &[String],
) -> Result<Vec<Stale>, Failure> {
    let Some(session) = actor.session.clone() else {
        return Ok(Vec::new());
    };
    let known = known(&Trace::of_session(&workspace.place, &session, "reads"));
    if known.is_empty() {
        return Ok(Vec::new());
    }
    let mut stale = Vec::new();
    for path in paths {
        for now in marks(workspace, cwd, path) {
            let Some(before) = known.get(&now.path).filter(|before| **before != now.mark) else {
                continue;
            };
            let Ok(resource) = Resource::literal(&now.path) else { continue };
            let by = last_other(workspace, &session, &resource)?;
            let known = Texts::of_sessions(&workspace.place).get(before);
            let text = now.bytes.and_then(|bytes| String::from_utf8(bytes).ok());
            let functions = match (&known, text) {
                (Some(known), Some(text)) => Changes::between(&now.path, known, &text),
                _ => Changes::default(),
            };
            stale.push(Stale { path: resource, by, functions, now: now.mark, known });
        }
    }
    Ok(stale)
}

/// Every path that the session has read or written, as hooks told.
pub(crate) fn paths(workspace: &Workspace, actor: &Actor) -> Vec<String> {
    let trace = actor.session.as_ref().map(|s| Trace::of_session(&workspace.place, s, "reads"));
    trace.map(|trace| known(&trace).into_keys().collect()).unwrap_or_default()
}

/// Files that are not as the session read them and of which it was not told yet.
pub(super) fn news(workspace: &mut Workspace, actor: &Actor) -> Result<Vec<Stale>, Failure> {
    let Some(session) = actor.session.clone() else {
        return Ok(Vec::new());
    };
    let told = Trace::of_session(&workspace.place, &session, "told");
    let known = told.lines();
    let mut paths = paths(workspace, actor);
    paths.truncate(LOOKED_AT_MAX);
    let root = workspace.place.root.clone();
    let mut fresh = Vec::new();
    for stale in changed(workspace, actor, &root, &paths)? {
        let line = format!("{} {}", stale.now, stale.path);
        if !known.contains(&line) {
            told.add(&line);
            fresh.push(stale);
        }
    }
    Ok(fresh)
}

/// Path in the tree, and the latest mark of it.
fn known(trace: &Trace) -> BTreeMap<String, String> {
    let split = |line: &String| {
        let (mark, path) = line.split_once(' ')?;
        Some((path.to_owned(), mark.to_owned()))
    };
    trace.lines().iter().filter_map(split).collect()
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

/// What a spelling means here, with a mark of what is there. Only plain files have one.
fn marks(workspace: &Workspace, cwd: &Path, path: &str) -> Vec<Marked> {
    let root = &workspace.place.root;
    let resources = literal(&workspace.place, cwd, path.as_ref()).unwrap_or_default();
    let marked = resources.iter().filter_map(|resource| {
        let file = path_on_disk(root, resource)?;
        let Resource::Path(pattern) = resource else { return None };
        let bytes = match std::fs::metadata(&file) {
            Ok(metadata) if metadata.is_file() && metadata.len() <= FILE_BYTES_MAX => {
                Some(std::fs::read(&file).ok()?)
            }
            Ok(_) => return None,
            Err(_) => None,
        };
        let mark = bytes.as_deref().map_or_else(|| ABSENT.to_owned(), mark);
        let path = pattern.text();
        (!path.contains('\n')).then(|| Marked { path: path.to_owned(), mark, bytes })
    });
    marked.collect()
}

/// The last one who claimed the path, if that was somebody else.
fn last_other(
    workspace: &mut Workspace,
    me: &SessionId,
    path: &Resource,
) -> Result<Option<String>, Failure> {
    let chapters = listing::chapters(workspace, std::slice::from_ref(path))?;
    let claimed = chapters
        .into_iter()
        .filter(|one| matches!(one.what, What::Claimed { .. }) && one.session != *me);
    Ok(claimed.max_by_key(|one| one.position).map(|one| one.name))
}

/// What a session last knew of a path in the tree.
pub(crate) fn known_mark(place: &Place, session: &SessionId, path: &str) -> Option<String> {
    known(&Trace::of_session(place, session, "reads")).remove(path)
}
