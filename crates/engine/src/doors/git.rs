//! The git door: may what is staged be committed?
//!
//! Owns which paths git's own hooks have judged, and by whose eyes. It fails open: whatever keeps
//! Baton from answering lets git go on, and the caller is told so. Takes and writes nothing.

use std::ffi::OsStr;
use std::path::Path;

use baton_core::check::{Because, Finding, Verdict};
use baton_core::context::Actor;

use crate::checking;
use crate::failure::Failure;
use crate::git::Git;
use crate::resources;
use crate::workspace::Workspace;

/// More than this in one commit is a merge or an import; it is not judged path by path.
const PATHS_MAX: usize = 5_000;

/// What somebody else holds of what is staged.
#[derive(Debug, Default)]
pub struct Staged {
    pub denied: Vec<Finding>,
    pub warned: Vec<Finding>,
    /// Too much to be judged.
    pub unjudged: Option<usize>,
}

/// Judges what the commit that git is making would change.
pub fn staged(
    workspace: &mut Workspace,
    actor: &Actor,
    root: &Path,
    index: Option<&OsStr>,
) -> Result<Staged, Failure> {
    let paths = Git::in_tree(root)?.staged(index)?;
    if paths.len() > PATHS_MAX {
        return Ok(Staged { unjudged: Some(paths.len()), ..Staged::default() });
    }
    let mut staged = Staged::default();
    let mut wanted = Vec::with_capacity(paths.len());
    for path in &paths {
        wanted.extend(resources::literal(&workspace.place, root, OsStr::new(path))?);
    }
    if wanted.is_empty() {
        return Ok(staged);
    }
    let checked = checking::judge(workspace, actor, &wanted, None)?;
    for finding in checked.findings {
        match (finding.because, finding.verdict) {
            (Because::Held, Verdict::Deny | Verdict::Ask) => staged.denied.push(finding),
            (Because::Held, _) => staged.warned.push(finding),
            _ => {}
        }
    }
    Ok(staged)
}
