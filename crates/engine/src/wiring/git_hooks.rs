//! Git's own hooks: three of Baton's, and one that passes on for each the user has.
//!
//! Owns a folder of its own beside the store and `core.hooksPath`, which points there. The user's
//! folder, `.git/hooks` or what they had set (husky and others do), is never written to; each hook
//! in it is called from ours, with the same arguments and input, after Baton has agreed. A hook
//! that the user adds later, or a tool that sets the path anew, is told by `doctor` and mended by
//! `init`. Invariant: only a "no" of Baton's (exit 1) stops git; every other failure of it passes.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::command::quoted;
use super::record::{Hooks, Record};
use super::{Broken, Ground, files};
use crate::failure::Failure;
use crate::git::{Git, HooksPath};

/// In the folder of the store.
const FOLDER: &str = "hooks";
/// The hooks that Baton answers.
const OURS: [&str; 3] = ["pre-commit", "pre-push", "reference-transaction"];
/// Every hook that git may call in a repository where people work.
const KNOWN: [&str; 23] = [
    "applypatch-msg",
    "commit-msg",
    "fsmonitor-watchman",
    "post-applypatch",
    "post-checkout",
    "post-commit",
    "post-index-change",
    "post-merge",
    "post-receive",
    "post-rewrite",
    "post-update",
    "pre-applypatch",
    "pre-auto-gc",
    "pre-commit",
    "pre-merge-commit",
    "pre-push",
    "pre-rebase",
    "pre-receive",
    "prepare-commit-msg",
    "push-to-checkout",
    "reference-transaction",
    "sendemail-validate",
    "update",
];
const RUNS: u32 = 0o755;

/// What there is, and what there should be.
#[derive(Clone, Debug)]
pub struct Plan {
    folder: PathBuf,
    setting: HooksPath,
    theirs: Hooks,
    scripts: BTreeMap<&'static str, String>,
    /// Scripts that are not as they should be.
    changes: Vec<&'static str>,
    /// Scripts for hooks that the user no longer has.
    stale: Vec<&'static str>,
    points_here: bool,
}

/// How the git door stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    Installed,
    Missing,
    /// The path was set anew by somebody else.
    Elsewhere {
        to: String,
    },
    /// The scripts are not those of this Baton, or of the hooks the user has now.
    Differs {
        hooks: Vec<&'static str>,
    },
}

impl Plan {
    pub fn is_done(&self) -> bool {
        self.points_here && self.changes.is_empty() && self.stale.is_empty()
    }

    /// The user's hooks that are called from ours.
    pub fn chained(&self) -> usize {
        self.scripts.keys().filter(|name| !OURS.contains(name)).count()
    }

    pub fn standing(&self) -> Standing {
        let changed = || self.changes.iter().chain(&self.stale).copied().collect();
        match (&self.setting.effective, self.points_here) {
            _ if self.is_done() => Standing::Installed,
            (_, true) => Standing::Differs { hooks: changed() },
            (Some(to), false) if self.folder.is_dir() => Standing::Elsewhere { to: to.clone() },
            _ => Standing::Missing,
        }
    }
}

pub(super) fn folder(store: &Path) -> PathBuf {
    store.join(FOLDER)
}

/// The user's own folder of hooks, where `configured` may be ours.
pub(crate) fn theirs(store: &Path, configured: Option<String>) -> Result<Option<String>, Failure> {
    match configured {
        Some(configured) if Path::new(&configured) == folder(store) => {
            Ok(Record::read(store)?.hooks.map(|hooks| hooks.theirs))
        }
        other => Ok(other),
    }
}

pub(super) fn plan(ground: &Ground, record: &Record) -> Result<Option<Plan>, Failure> {
    let Some(dirs) = &ground.git else { return Ok(None) };
    let folder = folder(&ground.store);
    let setting = Git::in_tree(&ground.root)?.hooks_setting()?;
    let points_here = setting.effective.as_deref().map(Path::new) == Some(&*folder);
    let own = || dirs.common_dir.join("hooks").to_string_lossy().into_owned();
    let theirs = match (&record.hooks, points_here) {
        (Some(known), true) => known.clone(),
        // Ours without a memory of what was before: what git does by itself.
        (None, true) => Hooks { before: None, theirs: own() },
        (_, false) => {
            let ours = |value: &String| Path::new(value) == folder;
            let before = setting.local.clone().filter(|value| !ours(value));
            let theirs = setting.effective.clone().filter(|value| !ours(value));
            Hooks { before, theirs: theirs.unwrap_or_else(own) }
        }
    };
    let scripts = scripts(ground, &theirs.theirs);
    let differs = |name: &&str| {
        let path = folder.join(name);
        let runs = fs::metadata(&path).is_ok_and(|found| found.permissions().mode() & 0o111 != 0);
        !runs || fs::read_to_string(path).ok().as_ref() != scripts.get(*name)
    };
    let changes = scripts.keys().copied().filter(|name| differs(name)).collect();
    let gone = |name: &&str| !scripts.contains_key(*name) && folder.join(name).is_file();
    let stale = KNOWN.into_iter().filter(gone).collect();
    Ok(Some(Plan { folder, setting, theirs, scripts, changes, stale, points_here }))
}

fn scripts(ground: &Ground, theirs: &str) -> BTreeMap<&'static str, String> {
    let there = ground.root.join(theirs);
    let runs = |name: &&str| {
        let found = fs::metadata(there.join(name));
        found.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    let wanted = KNOWN.into_iter().filter(|name| OURS.contains(name) || runs(name));
    wanted.map(|name| (name, script(ground, theirs, name))).collect()
}

/// A hook of ours. The user's is called by the very path by which git would call it.
fn script(ground: &Ground, theirs: &str, name: &str) -> String {
    let theirs = quoted(&format!("{}/{name}", theirs.trim_end_matches('/')));
    let head = format!(
        "#!/bin/sh\n# Written by `baton init`: Baton first, then the hook that was here before. It \
         is not\n# to be edited; your own hooks belong where they always were.\ntheirs={theirs}\n"
    );
    let program = quoted(&ground.program.to_string_lossy());
    let find =
        format!("baton={program}\n[ -x \"$baton\" ] || baton=$(command -v baton) || baton=\n");
    let gone =
        "echo 'baton: the program is not there any more, so Baton does not look at this' >&2";
    let pass = "if [ -x \"$theirs\" ]; then exec \"$theirs\" \"$@\"; fi\nexit 0\n";
    // What git tells a hook on its input is for both.
    let keep = "input=$(cat; echo .); input=${input%.}\n";
    let pass_input = "if [ -x \"$theirs\" ]; then\n  printf %s \"$input\" | \"$theirs\" \"$@\"\n  \
                      exit $?\nfi\nexit 0\n";
    match name {
        "pre-commit" => format!(
            "{head}{find}if [ -n \"$baton\" ]; then\n  \"$baton\" git-hook {name} \"$@\"\n  [ $? \
             -eq 1 ] && exit 1\nelse\n  {gone}\nfi\n{pass}"
        ),
        "pre-push" => format!(
            "{head}{find}{keep}if [ -n \"$baton\" ]; then\n  printf %s \"$input\" | \"$baton\" \
             git-hook {name} \"$@\"\n  [ $? -eq 1 ] && exit 1\nelse\n  {gone}\nfi\n{pass_input}"
        ),
        // Git calls it several times a command; only branches that are about to move matter.
        "reference-transaction" => format!(
            "{head}[ \"$1\" = prepared ] || {{\n{pass}}}\n{keep}case $input in\n*' \
             refs/heads/'*)\n{find}  if [ -n \"$baton\" ]; then\n    printf %s \"$input\" | \
             \"$baton\" git-hook {name} \"$@\"\n    [ $? -eq 1 ] && exit 1\n  fi\n  \
             ;;\nesac\n{pass_input}"
        ),
        _ => format!("{head}{pass}"),
    }
}

pub(super) fn apply(ground: &Ground, plan: &Plan, record: &mut Record) -> Result<(), Broken> {
    for name in &plan.changes {
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
        git.set_hooks_path(Some(&plan.folder.to_string_lossy()))
            .map_err(|error| Broken(error.to_string()))?;
    }
    Ok(())
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
    Ok(folder.is_dir() || setting.local.as_deref().map(Path::new) == Some(&*folder))
}

/// Gives the setting back and takes the scripts out.
pub(super) fn remove(ground: &Ground, record: &mut Record) -> Result<(), Broken> {
    let folder = folder(&ground.store);
    let failed = |error: crate::git::Error| Broken(error.to_string());
    let git = Git::in_tree(&ground.root).map_err(failed)?;
    let setting = git.hooks_setting().map_err(failed)?;
    if setting.local.as_deref().map(Path::new) == Some(&*folder) {
        let before = record.hooks.as_ref().and_then(|hooks| hooks.before.as_deref());
        git.set_hooks_path(before).map_err(failed)?;
    }
    for name in KNOWN {
        let _ = fs::remove_file(folder.join(name));
    }
    let _ = fs::remove_dir(folder);
    record.hooks = None;
    Ok(())
}
