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

use super::traces::Trace;
use crate::failure::Failure;
use crate::listing::{self, What};
use crate::place::Place;
use crate::resources::{literal, path_on_disk};
use crate::workspace::Workspace;

/// Larger files are not read for this.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// What stands for a file that is not there.
const ABSENT: &str = "-";

/// A file that is not as this session read it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stale {
    pub path: Resource,
    /// Who held it last, other than this session; nobody when Baton saw nobody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// The session has read these, or has just written them: it knows them as they are now.
pub fn remember(workspace: &Workspace, actor: &Actor, cwd: &Path, paths: &[String]) {
    let Some(session) = &actor.session else { return };
    let trace = Trace::of_session(&workspace.place, session, "reads");
    for path in paths {
        for (key, mark) in marks(workspace, cwd, path) {
            trace.add(&format!("{mark} {key}"));
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
        for (key, mark) in marks(workspace, cwd, path) {
            let Some(before) = known.get(&key) else { continue };
            if *before == mark {
                continue;
            }
            let Ok(resource) = Resource::literal(&key) else { continue };
            let by = last_other(workspace, &session, &resource)?;
            stale.push(Stale { path: resource, by });
        }
    }
    Ok(stale)
}

/// Path in the tree, and the latest mark of it.
fn known(trace: &Trace) -> BTreeMap<String, String> {
    let split = |line: &String| {
        let (mark, path) = line.split_once(' ')?;
        Some((path.to_owned(), mark.to_owned()))
    };
    trace.lines().iter().filter_map(split).collect()
}

/// What a spelling means here, with a mark of what is there. Only plain files have one.
fn marks(workspace: &Workspace, cwd: &Path, path: &str) -> Vec<(String, String)> {
    let root = &workspace.place.root;
    let resources = literal(&workspace.place, cwd, path.as_ref()).unwrap_or_default();
    let marked = resources.iter().filter_map(|resource| {
        let file = path_on_disk(root, resource)?;
        let Resource::Path(pattern) = resource else { return None };
        let mark = match std::fs::metadata(&file) {
            Ok(metadata) if metadata.is_file() && metadata.len() <= FILE_BYTES_MAX => {
                let bytes = std::fs::read(&file).ok()?;
                blake3::hash(&bytes).to_hex()[..32].to_owned()
            }
            Ok(_) => return None,
            Err(_) => ABSENT.to_owned(),
        };
        let text = pattern.text();
        (!text.contains('\n')).then(|| (text.to_owned(), mark))
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
