//! Git's own hooks: three of Baton's, and one that passes on for every other that git may call.
//!
//! Owns a folder of its own beside the store and `core.hooksPath`, which points there. The user's
//! hooks are in a folder of theirs, `.git/hooks` or what they had set (husky and others do), and
//! are called from ours, with the same arguments and input, after Baton has agreed. A tool that
//! sets the path anew is told by `doctor` and mended by `init`, and so is a path that still leads
//! to where the repository was before it was moved or copied. Invariants: only a "no" of Baton's
//! (exit 1) stops git; every other failure of it passes. A hook of the user's is never written
//! over or deleted: one that a tool put into our folder is brought home, where nothing is in its
//! place.

mod scripts;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use scripts::{Whose, runs, script, whose};

use super::record::{Hooks, Record, hash};
use super::{Broken, Ground, State, Step, files};
use crate::failure::Failure;
use crate::git::{Git, HooksPath};
use crate::place::{STORE_IN_GIT, STORE_IN_PLAIN};

/// In the folder of the store.
const FOLDER: &str = "hooks";
/// The hooks that Baton answers.
const OURS: [&str; 3] = ["pre-commit", "pre-push", "reference-transaction"];
/// Hooks that are passed on whether the user has one now or not.
const PASSED: [&str; 18] = [
    "applypatch-msg",
    "commit-msg",
    "post-applypatch",
    "post-checkout",
    "post-commit",
    "post-merge",
    "post-receive",
    "post-rewrite",
    "post-update",
    "pre-applypatch",
    "pre-auto-gc",
    "pre-merge-commit",
    "pre-rebase",
    "pre-receive",
    "prepare-commit-msg",
    "sendemail-validate",
    "update",
    "p4-pre-submit",
];
/// Passed on only where the user has one: that such a hook is there changes what git does, or git
/// calls it at every turn.
const SELDOM: [&str; 7] = [
    "fsmonitor-watchman",
    "p4-changelist",
    "p4-post-changelist",
    "p4-prepare-changelist",
    "post-index-change",
    "proc-receive",
    "push-to-checkout",
];
const RUNS: u32 = 0o755;

/// What there is, and what there should be.
#[derive(Clone, Debug)]
pub struct Plan {
    folder: PathBuf,
    setting: HooksPath,
    pub(super) theirs: Hooks,
    scripts: BTreeMap<&'static str, String>,
    /// Scripts that are not as they should be.
    changes: Vec<&'static str>,
    /// Scripts for hooks that the user no longer has.
    stale: Vec<&'static str>,
    /// Hooks of Baton's that do not run as some Baton wrote them.
    unguarded: Vec<&'static str>,
    points_here: bool,
    /// The setting leads to Baton's hooks of another place.
    is_foreign: bool,
}

/// How the git door stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    Installed,
    Missing,
    /// The path was set anew by somebody else.
    Elsewhere {
        to: String,
        /// For this working tree alone, which counts more than what `init` sets.
        of_tree: bool,
    },
    /// The path leads to Baton's hooks of another place: the repository was moved or copied.
    Moved {
        from: String,
    },
    /// The scripts are not those of this Baton, or of the hooks the user has now.
    Differs {
        hooks: Vec<&'static str>,
    },
    /// These are not Baton's any more, so nothing is judged there.
    Unguarded {
        hooks: Vec<&'static str>,
    },
    /// There cannot be any.
    Impossible {
        why: &'static str,
    },
}

impl Plan {
    pub fn is_done(&self) -> bool {
        self.points_here && self.changes.is_empty() && self.stale.is_empty()
    }

    /// The user's hooks that are called from ours.
    pub fn chained(&self, ground: &Ground) -> usize {
        let there = ground.root.join(&self.theirs.theirs);
        self.scripts.keys().filter(|name| runs(&there.join(name))).count()
    }

    pub fn standing(&self) -> Standing {
        let changed = || self.changes.iter().chain(&self.stale).copied().collect();
        match (&self.setting.effective, self.points_here) {
            _ if self.is_done() => Standing::Installed,
            (_, true) if !self.unguarded.is_empty() => {
                Standing::Unguarded { hooks: self.unguarded.clone() }
            }
            (_, true) => Standing::Differs { hooks: changed() },
            (Some(from), false) if self.is_foreign && !self.setting.of_tree => {
                Standing::Moved { from: from.clone() }
            }
            (Some(to), false) if self.folder.is_dir() || self.setting.of_tree => {
                Standing::Elsewhere { to: to.clone(), of_tree: self.setting.of_tree }
            }
            _ => Standing::Missing,
        }
    }
}

pub(super) fn folder(store: &Path) -> PathBuf {
    store.join(FOLDER)
}

/// The user's own folder of hooks, where `configured` may be ours.
pub(crate) fn theirs(store: &Path, configured: Option<String>) -> Result<Option<String>, Failure> {
    let Some(configured) = configured else { return Ok(None) };
    let is_ours = Path::new(&configured) == folder(store);
    if !is_ours && !is_foreign(store, &configured) {
        return Ok(Some(configured));
    }
    let known = known_before(&Record::read(store)?, store, &[Some(&*configured)]);
    Ok(known.map(|hooks| hooks.theirs))
}

/// Whether a setting leads to the hooks of a Baton in another place: they are there, or were before
/// the repository was moved from there. What lies in git's own folder here was not left elsewhere.
fn is_foreign(store: &Path, setting: &str) -> bool {
    let there = Path::new(setting);
    let named = [STORE_IN_GIT, STORE_IN_PLAIN];
    let named = named.iter().any(|store| there.ends_with(Path::new(store).join(FOLDER)));
    let around = store.parent().filter(|_| store.ends_with(STORE_IN_GIT));
    let here = there.starts_with(store) || around.is_some_and(|git| there.starts_with(git));
    let gone = || there.symlink_metadata().is_err();
    let batons = |name: &&str| matches!(whose(&there.join(name)), Whose::Batons | Whose::Changed);
    there.is_absolute() && named && !here && (gone() || OURS.iter().any(batons))
}

/// What the user had before, as it was remembered, and in the place where it is now. A folder of
/// Baton's is never it.
fn known_before(record: &Record, store: &Path, settings: &[Option<&str>]) -> Option<Hooks> {
    let mut known = record.hooks.clone()?;
    let old = settings.iter().flatten().find(|setting| is_foreign(store, setting));
    if let Some(old) = old.and_then(|setting| Path::new(setting).parent()) {
        known = known.moved(old, store);
    }
    let batons = |path: &str| Path::new(path) == folder(store) || is_foreign(store, path);
    known.before = known.before.filter(|before| !batons(before));
    (!batons(&known.theirs)).then_some(known)
}

/// What was before, for whoever takes ours out.
pub(super) fn remembered(ground: &Ground, record: &Record) -> Result<Option<Hooks>, Failure> {
    if ground.git.is_none() {
        return Ok(None);
    }
    let setting = Git::in_tree(&ground.root)?.hooks_setting()?;
    Ok(known_before(record, &ground.store, &[setting.local.as_deref()]))
}

pub(super) fn plan(ground: &Ground, record: &Record) -> Result<Option<Plan>, Failure> {
    let Some(dirs) = &ground.git else { return Ok(None) };
    let folder = folder(&ground.store);
    let setting = Git::in_tree(&ground.root)?.hooks_setting()?;
    let points_here = setting.effective.as_deref().map(Path::new) == Some(&*folder);
    let own = || dirs.common_dir.join("hooks").to_string_lossy().into_owned();
    let batons = |value: &str| Path::new(value) == folder || is_foreign(&ground.store, value);
    let (effective, local) = (setting.effective.as_deref(), setting.local.as_deref());
    // One tree may have a setting of its own, which says nothing of the repository's.
    let is_ours = effective.is_some_and(batons) || local.is_some_and(batons);
    let theirs = match is_ours {
        // Ours without a memory of what was before: what git does by itself.
        true => known_before(record, &ground.store, &[effective, local])
            .unwrap_or_else(|| Hooks { before: None, theirs: own() }),
        false => Hooks {
            before: setting.local.clone(),
            theirs: setting.effective.clone().unwrap_or_else(own),
        },
    };
    let is_foreign = effective.is_some_and(|value| is_foreign(&ground.store, value));
    let there = ground.root.join(&theirs.theirs);
    let has = |name: &str| runs(&there.join(name)) || whose(&folder.join(name)) == Whose::Theirs;
    let wanted = known().filter(|name| !SELDOM.contains(name) || has(name));
    let program = ground.program.to_string_lossy();
    let scripts: BTreeMap<&'static str, String> =
        wanted.map(|name| (name, script(&program, &theirs.theirs, name))).collect();
    let differs = |name: &&str| {
        let path = folder.join(name);
        !runs(&path) || fs::read_to_string(path).ok().as_ref() != scripts.get(*name)
    };
    let changes = scripts.keys().copied().filter(|name| differs(name)).collect();
    let gone =
        |name: &&str| !scripts.contains_key(*name) && whose(&folder.join(name)) == Whose::Batons;
    let stale = known().filter(gone).collect();
    let judges = |path: PathBuf| runs(&path) && whose(&path) == Whose::Batons;
    let unguarded = OURS.into_iter().filter(|name| !judges(folder.join(name))).collect();
    Ok(Some(Plan {
        folder,
        setting,
        theirs,
        scripts,
        changes,
        stale,
        unguarded,
        points_here,
        is_foreign,
    }))
}

fn known() -> impl Iterator<Item = &'static str> {
    OURS.into_iter().chain(PASSED).chain(SELDOM)
}

/// What is the user's in Baton's folder of hooks, and where it goes.
pub(super) fn strangers(ground: &Ground, theirs: Option<&Hooks>) -> Vec<Step> {
    let Some(dirs) = &ground.git else { return Vec::new() };
    let folder = folder(&ground.store);
    let home = match theirs {
        Some(hooks) => ground.root.join(&hooks.theirs),
        None => dirs.common_dir.join("hooks"),
    };
    let step = |name: &str| {
        let path = folder.join(name);
        let to = match whose(&path) {
            Whose::Nobodys | Whose::Batons => return None,
            // It would call itself there.
            Whose::Changed => {
                let text = fs::read_to_string(&path).unwrap_or_default();
                let stamp: String = hash(&text).chars().take(8).collect();
                Ok(folder.join(format!("{name}.changed-{stamp}")))
            }
            Whose::Theirs => home_of(ground, dirs.common_dir.as_path(), &home, name),
        };
        let state = match to {
            Ok(to) => State::Moved { to: to.to_string_lossy().into_owned() },
            Err(why) => State::Failed { why },
        };
        let file = path.strip_prefix(&ground.root).unwrap_or(&path).display().to_string();
        Some(Step { file, path, ..Step::git(state) })
    };
    known().filter_map(step).collect()
}

/// Whether a hook is the very one that is in its place already, as a hook manager puts it there
/// again.
fn is_again(path: &Path, there: &Path) -> bool {
    let plain = |path: &Path| fs::symlink_metadata(path).is_ok_and(|found| found.is_file());
    let read = |path: &Path| fs::read(path).ok();
    plain(path)
        && plain(there)
        && (runs(there) || !runs(path))
        && read(path).is_some_and(|text| Some(text) == read(there))
}

fn home_of(ground: &Ground, git: &Path, home: &Path, name: &str) -> Result<PathBuf, String> {
    let (to, from) = (home.join(name), folder(&ground.store));
    let shown = home.display();
    if !home.starts_with(&ground.root) && !home.starts_with(git) {
        return Err(format!(
            "it is yours, and belongs into {shown}, which is not this repository's alone: move it \
             there, or away"
        ));
    }
    match to.symlink_metadata().is_ok() && !is_again(&from.join(name), &to) {
        true => Err(format!(
            "it is yours, and {shown} has another of this name: make them one, \
                             there"
        )),
        false => Ok(to),
    }
}

/// Brings a hook of the user's out of Baton's folder. Nothing but the same is ever in the place it
/// goes to.
pub(super) fn move_out(step: &Step, to: &str) -> Result<(), Broken> {
    let failed = |error: std::io::Error| Broken(format!("it cannot be moved to {to}: {error}"));
    if is_again(&step.path, Path::new(to)) {
        return fs::remove_file(&step.path).map_err(failed);
    }
    if let Some(folder) = Path::new(to).parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    match fs::read_link(&step.path) {
        Ok(target) => {
            let target = step.path.parent().map_or(target.clone(), |base| base.join(&target));
            std::os::unix::fs::symlink(target, to).map_err(failed)?;
        }
        // A new name for the same file fails where something is, which a rename would replace.
        Err(_) => fs::hard_link(&step.path, to).map_err(failed)?,
    }
    fs::remove_file(&step.path).map_err(failed)
}

pub(super) fn apply(ground: &Ground, plan: &Plan, record: &mut Record) -> Result<(), Broken> {
    let mut left = Vec::new();
    for name in &plan.changes {
        if whose(&plan.folder.join(name)) == Whose::Theirs {
            left.push(*name);
            continue;
        }
        let there = files::look(&plan.folder, name)?;
        let text = plan.scripts.get(name).map(String::as_str).unwrap_or_default();
        files::write(&there.path, there.text.as_deref(), text, Some(RUNS))?;
        // A new file's mode passed the user's umask.
        fs::set_permissions(&there.path, fs::Permissions::from_mode(RUNS))
            .map_err(|error| Broken(format!("{name} cannot be made to run: {error}")))?;
    }
    for name in &plan.stale {
        fs::remove_file(plan.folder.join(name))
            .map_err(|error| Broken(format!("{name} cannot be removed: {error}")))?;
    }
    // Remembered before the setting changes: else a death in between would forget the user's.
    record.hooks = Some(plan.theirs.clone());
    record.write(&ground.store).map_err(|error| Broken(said(&error)))?;
    if !plan.points_here {
        let git = Git::in_tree(&ground.root).map_err(|error| Broken(error.to_string()))?;
        let failed = |error: crate::git::Error| Broken(error.to_string());
        git.set_hooks_path(Some(&plan.folder.to_string_lossy())).map_err(failed)?;
        let now = git.hooks_setting().map_err(failed)?.effective.unwrap_or_default();
        if Path::new(&now) != plan.folder {
            return Err(Broken(format!(
                "for this working tree alone core.hooksPath is {now}, which counts more than the \
                 repository's: `git config --worktree core.hooksPath` shows it, and it is yours \
                 to take out"
            )));
        }
    }
    match left.is_empty() {
        true => Ok(()),
        false => Err(Broken(format!("{} of yours are in their place", left.join(", ")))),
    }
}

fn said(failure: &Failure) -> String {
    match failure {
        Failure::Config { detail, .. } => detail.clone(),
        other => other.to_string(),
    }
}

/// Whether there is something of ours to take out.
pub(super) fn is_there(ground: &Ground) -> Result<bool, Failure> {
    if ground.git.is_none() {
        return Ok(false);
    }
    let folder = folder(&ground.store);
    let setting = Git::in_tree(&ground.root)?.hooks_setting()?;
    let scripts = known().any(|name| whose(&folder.join(name)) == Whose::Batons);
    let ours = |value: &str| Path::new(value) == folder || is_foreign(&ground.store, value);
    Ok(scripts || setting.local.as_deref().is_some_and(ours))
}

/// Gives the setting back and takes the scripts out.
pub(super) fn remove(ground: &Ground, record: &mut Record) -> Result<(), Broken> {
    let folder = folder(&ground.store);
    let failed = |error: crate::git::Error| Broken(error.to_string());
    let git = Git::in_tree(&ground.root).map_err(failed)?;
    let setting = git.hooks_setting().map_err(failed)?;
    let ours = |value: &str| Path::new(value) == folder || is_foreign(&ground.store, value);
    if setting.local.as_deref().is_some_and(ours) {
        let known = known_before(record, &ground.store, &[setting.local.as_deref()]);
        let before = known.and_then(|hooks| hooks.before);
        git.set_hooks_path(before.as_deref()).map_err(failed)?;
    }
    for path in known().map(|name| folder.join(name)) {
        if whose(&path) == Whose::Batons {
            let _ = fs::remove_file(path);
        }
    }
    let _ = fs::remove_dir(folder);
    record.hooks = None;
    Ok(())
}
