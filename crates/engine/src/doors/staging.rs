//! What a commit of the index would take along that is not its maker's.
//!
//! Owns the look at what is staged before a line that commits it, which is rare: git is started for
//! it. What the line itself stages counts as staged. It refuses nothing: `shell` does.

use std::path::Path;

use baton_core::check::Because;
use baton_core::context::Actor;
use baton_core::resource::Resource;
use baton_core::shell::Deeds;
use baton_core::shell::danger;

use super::whereabouts;
use crate::checking;
use crate::failure::Failure;
use crate::git::Git;
use crate::resources::meant_path;
use crate::workspace::Workspace;

/// More is not judged file by file.
const FILES_MAX: usize = 500;

/// Files that the commit of this line would have and the actor does not hold; nothing where that
/// cannot be told.
pub(super) fn taken_along(
    workspace: &mut Workspace,
    actor: &Actor,
    cwd: &Path,
    deeds: &Deeds,
) -> Result<Option<Vec<String>>, Failure> {
    let named = danger::staged(deeds).filter(|_| workspace.place.git.is_some());
    let Some(named) = named else { return Ok(None) };
    let mut files = Vec::new();
    for one in &named {
        let path = whereabouts::path_of(&workspace.place, cwd, one).filter(|path| !path.is_dir());
        let Some(path) = path else { return Ok(None) };
        let meant = meant_path(&workspace.place, cwd, &path.to_string_lossy());
        if meant.here.is_empty() || !meant.elsewhere.is_empty() {
            return Ok(None);
        }
        files.extend(meant.here);
    }
    let staged = Git::in_tree(&workspace.place.root)?.staged(None)?;
    let literal: Result<Vec<Resource>, _> =
        staged.iter().map(|path| Resource::literal(path)).collect();
    let Ok(staged) = literal else { return Ok(None) };
    files.extend(staged.iter().filter(|one| !files.contains(one)).cloned().collect::<Vec<_>>());
    if files.is_empty() {
        return Ok(Some(Vec::new()));
    }
    if files.len() > FILES_MAX {
        return Ok(None);
    }
    let found = checking::judge(workspace, actor, &files, None)?.findings;
    let is_anothers = |because: Because, path: &Resource| match because {
        Because::Mine | Because::Unjudged => false,
        // What nobody holds, somebody else may have staged; what the line names is the actor's.
        Because::Free | Because::HeldElsewhere => staged.contains(path),
        _ => true,
    };
    let taken = found.iter().filter(|one| is_anothers(one.because, &one.resource));
    Ok(Some(taken.map(|one| one.resource.to_string()).collect()))
}
