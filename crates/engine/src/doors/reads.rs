//! What a session has read, and what others changed since.
//!
//! Owns the marks: path, and a hash of what was there when the session last read or wrote it. They
//! are traces: without one nothing is said, and nothing is ever granted or refused by them alone.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

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
use crate::place::{Place, TreeKind};
use crate::resources::{Meant, meant_path, path_on_disk};
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
            trace.add(&format!("{mark} {path}"));
            if let Some(bytes) = bytes {
                texts.keep(&mark, &bytes);
            }
        }
    }
    all.elsewhere
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
    known: impl Fn(&str) -> Option<String>,
) -> Result<Vec<Stale>, Failure> {
    let mut stale = Vec::new();
    for resource in resources {
        // A file that was never looked at is not read for this.
        let Some(before) = literal_text(resource).and_then(&known) else { continue };
        let Some(Marked { path, mark, bytes }) = marked(&workspace.place.root, resource) else {
            continue;
        };
        if before == mark {
            continue;
        }
        let by = last_other(workspace, session, resource)?;
        let known = Texts::of_sessions(&workspace.place).get(&before);
        let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
        let functions = match (&known, text) {
            (Some(known), Some(text)) => Changes::between(&path, known, &text),
            _ => Changes::default(),
        };
        stale.push(Stale { path: resource.clone(), by, functions, now: mark, known });
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

/// Files that are not as the session read them and of which it was not told yet.
pub(super) fn news(workspace: &mut Workspace, actor: &Actor) -> Result<Vec<Stale>, Failure> {
    let Some(session) = actor.session.clone() else {
        return Ok(Vec::new());
    };
    let told = Trace::of_session(&workspace.place, &session, "told");
    let known = told.lines();
    let read = marks_of(&workspace.place, &session).text();
    let paths = paths(workspace, actor).into_iter().take(LOOKED_AT_MAX);
    let resources: Vec<Resource> = paths.filter_map(|path| Resource::literal(&path).ok()).collect();
    let mark = |path: &str| last_mark(&read, path).map(str::to_owned);
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
    newest_mark(&marks_of(place, session), path)
}

fn newest_mark(trace: &Trace, path: &str) -> Option<String> {
    trace.tails().find_map(|read| last_mark(&read, path).map(str::to_owned))
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
    fn the_newest_mark_of_exactly_this_path() {
        let read = "11 b.rs\n22 a b.rs\n33 b.rs\n44 src/a b.rs\n";
        assert_eq!(last_mark(read, "b.rs"), Some("33"));
        assert_eq!(last_mark(read, "a b.rs"), Some("22"));
        assert_eq!(last_mark(read, "src/a b.rs"), Some("44"));
        assert_eq!(last_mark(read, ".rs"), None);
        assert_eq!(last_mark(read, "b.r"), None);
    }
}
