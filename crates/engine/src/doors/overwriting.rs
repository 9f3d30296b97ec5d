//! What a command wrote over: the text that lay there is made safe, and its holder is told.
//!
//! Owns the way from the copy that was made before the command, which is a trace and may be lost,
//! to `refs/baton/rescue/` (S17). Saved first, told then: a word never names what is not there.
//! Idempotent: the same text of the same file is saved once, under a name that follows from both.
//! Git is started only here, after something was broken.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt as _;

use baton_core::breach::{self, Door};
use baton_core::context::{Actor, Observed};
use baton_core::id::SessionId;
use baton_core::notices::Was;
use baton_core::refusal::Held;
use baton_core::resource::Resource;

use super::held::Before;
use crate::failure::Failure;
use crate::git::{Git, Text};
use crate::sighting::RESCUE_PREFIX;
use crate::workspace::Workspace;

/// So much of a mark names a rescue.
const MARK_LETTERS: usize = 16;

/// Writes down that a command changed what others hold, and tells them.
pub(super) fn note(
    workspace: &mut Workspace,
    actor: &Actor,
    foreign: &[Resource],
    before: &Before,
) -> Result<Vec<Held>, Failure> {
    if foreign.is_empty() {
        return Ok(Vec::new());
    }
    let was = save_all(workspace, actor, foreign, before, true)?;
    workspace.decide(actor, looked(), |view, context| {
        breach::note_overwritten(view, foreign, &was, Door::Shell, context)
    })
}

/// Makes safe what lay in files of others that may have written them themselves, and tells them.
pub(super) fn note_unsure(
    workspace: &mut Workspace,
    actor: &Actor,
    changed: &[Resource],
    before: &Before,
) -> Result<(), Failure> {
    let was = save_all(workspace, actor, changed, before, false)?;
    if !was.values().any(|one| matches!(one, Was::Saved(_))) {
        return Ok(());
    }
    workspace
        .decide(actor, looked(), |view, context| breach::tell_unsure(view, changed, &was, context))
}

fn looked() -> Observed {
    Observed { complete: true, ..Observed::default() }
}

/// Makes the texts safe that lay in what others hold of these; answers by path what became of each.
/// `sure` is whether the actor wrote over them.
pub(super) fn save_all(
    workspace: &mut Workspace,
    actor: &Actor,
    changed: &[Resource],
    before: &Before,
    sure: bool,
) -> Result<BTreeMap<String, Was>, Failure> {
    let mut was = BTreeMap::new();
    if changed.is_empty() {
        return Ok(was);
    }
    let told = workspace
        .look(actor, looked(), |view, context| breach::to_be_told(view, changed, context))?;
    let holders: BTreeSet<&SessionId> = told.iter().map(|held| &held.holder.session).collect();
    for holder in holders {
        let of_holder: Vec<&Held> =
            told.iter().filter(|held| held.holder.session == *holder).collect();
        // That it could not be saved keeps nobody from being told.
        let by = actor.session.as_ref().filter(|_| sure);
        was.extend(save(workspace, by, holder, &of_holder, before).unwrap_or_default());
    }
    Ok(was)
}

/// Makes the texts safe that lay in files of one holder, as far as they are in no commit. However
/// many they are, git is started a few times.
fn save(
    workspace: &Workspace,
    by: Option<&SessionId>,
    holder: &SessionId,
    overwritten: &[&Held],
    before: &Before,
) -> Result<BTreeMap<String, Was>, Failure> {
    let texts: Vec<Text<'_>> =
        overwritten.iter().filter_map(|held| text_of(workspace, held, before)).collect();
    let known: Vec<String> = texts.iter().map(|one| one.path.to_owned()).collect();
    let git = Git::in_tree(&workspace.place.root)?;
    let lost = git.uncommitted(texts)?;
    let mut hash = blake3::Hasher::new();
    for one in &lost {
        hash.update(one.path.as_bytes()).update(b"\0").update(&one.text).update(b"\0");
    }
    let mark: String = hash.finalize().to_hex().chars().take(MARK_LETTERS).collect();
    let reference = format!("{RESCUE_PREFIX}/{holder}/overwritten-{mark}");
    let saved: Vec<String> = lost.iter().map(|one| one.path.to_owned()).collect();
    if !lost.is_empty() {
        let name = overwritten.first().map_or("", |held| held.holder.name.as_str());
        let gone = match by {
            Some(by) => format!("was gone after a command of {by}"),
            None => "an unknown writer changed".to_owned(),
        };
        let message = format!("Uncommitted text of {name} that {gone}");
        git.rescue_texts(lost, &reference, message)?;
    }
    let was = |held: &&Held| {
        let Resource::Path(pattern) = &held.resource else { return None };
        let path = pattern.text().to_owned();
        let was = match (saved.contains(&path), known.contains(&path)) {
            (true, _) => Was::Saved(reference.clone()),
            (false, true) => Was::Committed,
            (false, false) => Was::Unknown,
        };
        Some((held.resource.to_string(), was))
    };
    Ok(overwritten.iter().filter_map(was).collect())
}

/// What lay in a file before, if a copy was made. Writing over a file leaves its mode as it was.
fn text_of<'a>(workspace: &Workspace, held: &'a Held, before: &Before) -> Option<Text<'a>> {
    let Resource::Path(pattern) = &held.resource else { return None };
    let path = pattern.text();
    let state = before.files.get(&held.resource.to_string())?;
    let text = std::fs::read(state.copy(&workspace.place)?).ok()?;
    let there = std::fs::symlink_metadata(workspace.place.root.join(path));
    let executable = there.is_ok_and(|there| there.permissions().mode() & 0o100 != 0);
    Some(Text { path, text, executable })
}
