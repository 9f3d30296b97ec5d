//! The user's commit hooks, run in a private checkout of what is to be committed.
//!
//! Owns that checkout: a repository of its own that borrows the objects of the real one, so that a
//! hook which stashes, resets or checks out whole trees harms nobody. Its branch, references and
//! settings look like the real ones. What a hook changes is looked at afterwards and comes back
//! only for the named paths. Invariant: nothing here writes into the shared tree, its index, its
//! references or its stash.

use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use baton_core::commits::Refused;

use super::lock::cannot;
use super::{Candidate, refuse};
use crate::failure::Failure;
use crate::git::{Entry, Git, Oid, Own};
use crate::place::{GitDirs, STORE_IN_GIT};
use crate::sandbox;
use crate::temporary::Temporary;
use crate::wiring::git_hooks;

/// How long one hook may take.
const HOOK_SECONDS_MAX: u64 = 30 * 60;
/// How much of the end of its output is shown.
const OUTPUT_BYTES_MAX: usize = 16 * 1024;
const LOOKED_FOR_EVERY: Duration = Duration::from_millis(5);
/// A child of the hook may hold its output open; it is not waited for.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// Installed things that hooks need and git does not keep: lent by a link where they exist.
const LENT: &[&str] = &["node_modules", ".venv", "venv"];
/// Those hooks of git that belong to a commit.
const HOOKS: [&str; 4] = ["pre-commit", "prepare-commit-msg", "commit-msg", "post-commit"];
/// What must not reach a hook: it acts for git, not for the session.
const KEPT_BACK: [&str; 2] = ["BATON_SESSION", "BATON_PERSON_TOKEN_FILE"];

/// The hooks that are there.
#[derive(Debug)]
pub(super) struct Hooks {
    found: Vec<(&'static str, PathBuf)>,
}

impl Hooks {
    pub(super) fn find(git: &Git, root: &Path, dirs: &GitDirs, own: &Own) -> Result<Self, Failure> {
        let configured = if own.has_hooks_path { git.hooks_path()? } else { None };
        // Baton's own hooks only pass on to these, and what they judge is judged here already.
        let store = dirs.common_dir.join(STORE_IN_GIT);
        let folder = match git_hooks::theirs(&store, configured)? {
            Some(configured) => root.join(configured),
            None => dirs.common_dir.join("hooks"),
        };
        let found = HOOKS.iter().filter_map(|name| {
            let path = folder.join(name);
            let metadata = fs::metadata(&path).ok()?;
            let runs = metadata.is_file() && metadata.permissions().mode() & 0o111 != 0;
            runs.then_some((*name, path))
        });
        Ok(Self { found: found.collect() })
    }

    pub(super) fn are_none(&self) -> bool {
        self.found.is_empty()
    }

    fn path(&self, name: &str) -> Option<&Path> {
        self.found.iter().find(|(known, _)| *known == name).map(|(_, path)| path.as_path())
    }
}

/// A checkout of our own, removed when done.
#[derive(Debug)]
pub(super) struct Checkout {
    /// Goes with it.
    _temporary: Temporary,
    folder: PathBuf,
    git: Git,
    branch: Option<String>,
    /// What the named files had here before any hook ran: line ends and large files may look
    /// otherwise than in the shared tree.
    given: Vec<Option<Vec<u8>>>,
}

/// What hooks made of the candidate.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) entries: Vec<Entry>,
    pub(super) message: String,
    /// Named files that a hook changed: their new content and mode, for the shared tree.
    pub(super) changed: Vec<Rewritten>,
    /// Other files that a hook changed: they stay as they are.
    pub(super) not_taken: Vec<String>,
}

#[derive(Debug)]
pub(super) struct Rewritten {
    pub(super) path: String,
    /// What the shared tree had when the candidate was made.
    pub(super) before: Vec<u8>,
    pub(super) after: Vec<u8>,
}

impl Checkout {
    pub(super) fn make(
        git: &Git,
        root: &Path,
        dirs: &GitDirs,
        candidate: &Candidate,
    ) -> Result<Self, Failure> {
        let temporary = Temporary::make(&std::env::temp_dir(), "baton-commit-")?;
        let folder = temporary.subfolder("tree")?;
        let own = folder.join(".git");
        let doing = "the checkout for hooks cannot be made";
        let made = || -> std::io::Result<()> {
            for name in ["objects/info", "refs/heads"] {
                fs::create_dir_all(own.join(name))?;
            }
            let objects = dirs.common_dir.join("objects");
            fs::write(own.join("objects/info/alternates"), line(&objects.to_string_lossy()))?;
            let shallow = dirs.common_dir.join("shallow");
            if shallow.exists() {
                fs::copy(shallow, own.join("shallow"))?;
            }
            fs::write(own.join("config"), configuration(&dirs.common_dir, candidate))?;
            let head = match (&candidate.branch, &candidate.head) {
                (Some(branch), _) => format!("ref: {branch}"),
                (None, Some(head)) => head.to_string(),
                (None, None) => "ref: refs/heads/main".to_owned(),
            };
            fs::write(own.join("HEAD"), line(&head))
        };
        made().map_err(cannot(doing, &folder))?;
        let references = git.packed_references()?;
        fs::write(own.join("packed-refs"), references).map_err(cannot(doing, &folder))?;
        // A commit that is diverted goes to a branch that is not there yet: to a hook, as to the
        // commit, it begins where the candidate does.
        if let (Some(branch), Some(head)) = (&candidate.branch, &candidate.head) {
            point(&own.join(branch), head).map_err(cannot(doing, &folder))?;
        }
        let (own, branch) = (Git::in_tree(&folder)?, candidate.branch.clone());
        let mut checkout =
            Self { _temporary: temporary, git: own, folder, branch, given: Vec::new() };
        checkout.git.fill_checkout(&candidate.tree)?;
        let named = candidate.contents.iter();
        let given = named.map(|(path, _)| read_file(&checkout.folder.join(path)).ok());
        checkout.given = given.collect();
        for name in LENT {
            let (real, lent) = (root.join(name), checkout.folder.join(name));
            if real.is_dir() && fs::symlink_metadata(&lent).is_err() {
                let _ = std::os::unix::fs::symlink(&real, &lent);
            }
        }
        Ok(checkout)
    }

    /// Runs the hooks before a commit, as git would, and looks what they made of it.
    pub(super) fn before(
        &self,
        hooks: &Hooks,
        message: &str,
        candidate: &Candidate,
    ) -> Result<Result<Outcome, (Refused, Outcome)>, Failure> {
        let file = self.folder.join(".git/COMMIT_EDITMSG");
        fs::write(&file, message).map_err(cannot("the message cannot be written", &file))?;
        let file = file.to_string_lossy().into_owned();
        let calls: [(&'static str, Vec<&str>); 3] = [
            ("pre-commit", vec![]),
            ("prepare-commit-msg", vec![&file, "message"]),
            ("commit-msg", vec![&file]),
        ];
        let mut refused = None;
        for (name, arguments) in calls {
            let Some(hook) = hooks.path(name) else { continue };
            if let Some((exit, output)) = self.run(name, hook, &arguments) {
                refused = Some(Refused::Hook { hook: name, exit, output, changed: vec![] });
                break;
            }
        }
        let mut outcome = self.look(candidate)?;
        outcome.message = fs::read_to_string(&file).unwrap_or_default();
        Ok(match refused {
            Some(refused) => Err((refused, outcome)),
            None => Ok(outcome),
        })
    }

    /// Runs the hook after a commit; what it says is not asked for, as with git.
    pub(super) fn after(&self, hooks: &Hooks, commit: &Oid) {
        let Some(hook) = hooks.path("post-commit") else { return };
        let own = self.folder.join(".git");
        let name = self.branch.clone().unwrap_or_else(|| "HEAD".to_owned());
        if point(&own.join(name), commit).is_ok() {
            let _ = self.run("post-commit", hook, &[]);
        }
    }

    /// Nothing when it went well; else its exit code and the end of what it said.
    fn run(&self, name: &str, hook: &Path, arguments: &[&str]) -> Option<(Option<i32>, String)> {
        let words: Vec<&OsStr> =
            std::iter::once(hook.as_os_str()).chain(arguments.iter().map(OsStr::new)).collect();
        let mut command = sandbox::held(&words).unwrap_or_else(|| {
            let mut command = Command::new(hook);
            command.args(arguments);
            command
        });
        command.current_dir(&self.folder);
        for (variable, _) in std::env::vars_os() {
            let text = variable.to_string_lossy();
            let identity = text.starts_with("GIT_AUTHOR_") || text.starts_with("GIT_COMMITTER_");
            if text.starts_with("GIT_") && !identity || KEPT_BACK.contains(&&*text) {
                command.env_remove(&variable);
            }
        }
        command.env("GIT_EDITOR", ":").env("GIT_PREFIX", "");
        command.env("GIT_INDEX_FILE", self.folder.join(".git/index"));
        // A group of its own, so that the deadline also ends what the hook has started.
        command.process_group(0).stdin(Stdio::null());
        let started = std::io::pipe().and_then(|(reader, writer)| {
            command.stdout(writer.try_clone()?).stderr(writer);
            Ok((command.spawn()?, reader))
        });
        drop(command);
        let (mut child, reader) = match started {
            Ok(started) => started,
            Err(error) => return Some((None, format!("{name} cannot be run: {error}"))),
        };
        let said = listen(reader);
        let deadline = Instant::now() + Duration::from_secs(HOOK_SECONDS_MAX);
        let status = loop {
            match child.try_wait() {
                Ok(Some(status)) => break status,
                Ok(None) if Instant::now() < deadline => std::thread::sleep(LOOKED_FOR_EVERY),
                Ok(None) | Err(_) => {
                    let group = rustix::process::Pid::from_child(&child);
                    let kill = rustix::process::Signal::KILL;
                    let _ = rustix::process::kill_process_group(group, kill);
                    let _ = child.wait();
                    return Some((None, format!("it took longer than {HOOK_SECONDS_MAX} s")));
                }
            }
        };
        if status.success() {
            return None;
        }
        let output = said.recv_timeout(LAST_WORDS).unwrap_or_default();
        Some((status.code(), String::from_utf8_lossy(&output).into_owned()))
    }

    /// What is committed is what the hooks left in the index, as with git; what they left in the
    /// files is for the shared tree.
    fn look(&self, candidate: &Candidate) -> Result<Outcome, Failure> {
        let paths: Vec<String> = candidate.entries.iter().map(|one| one.path.clone()).collect();
        let (entries, _) = self.git.entries(None, &paths)?;
        let mut outcome = Outcome { entries, ..Outcome::default() };
        for ((path, before), given) in candidate.contents.iter().zip(&self.given) {
            let Ok(after) = read_file(&self.folder.join(path)) else { continue };
            if Some(&after) != given.as_ref() {
                let (path, before) = (path.clone(), before.clone());
                outcome.changed.push(Rewritten { path, before, after });
            }
        }
        let named = |path: &str| paths.iter().any(|named| named == path);
        let lent = |path: &str| LENT.iter().any(|lent| path.split('/').next() == Some(lent));
        let status = self.git.status(&[String::new()])?;
        let others = status.paths().into_iter().filter(|path| !named(path) && !lent(path));
        outcome.not_taken = others.map(str::to_owned).collect();
        Ok(outcome)
    }

    /// Brings objects that hooks made into the real repository.
    pub(super) fn bring(&self, git: &Git, old: &[Entry], new: &[Entry]) -> Result<(), Failure> {
        for entry in new.iter().filter(|entry| !old.contains(entry)) {
            if let Some(blob) = &entry.blob {
                git.bring(&self.git, &blob.oid)?;
            }
        }
        Ok(())
    }
}

/// The content of a plain file. A link is none: its target is not ours to rewrite.
pub(super) fn read_file(path: &Path) -> std::io::Result<Vec<u8>> {
    match fs::symlink_metadata(path)?.is_file() {
        true => fs::read(path),
        false => Err(std::io::ErrorKind::InvalidInput.into()),
    }
}

/// Lets a reference of the checkout point there.
fn point(reference: &Path, commit: &Oid) -> std::io::Result<()> {
    if let Some(folder) = reference.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(reference, line(commit.as_str()))
}

fn line(text: &str) -> String {
    format!("{text}\n")
}

/// The real settings, and over them what makes this a repository of its own.
fn configuration(common_dir: &Path, candidate: &Candidate) -> String {
    let real = common_dir.join("config").to_string_lossy().replace('\\', "\\\\");
    let real = real.replace('"', "\\\"");
    let wide = candidate.tree.as_str().len() == 64;
    let (version, format) = match wide {
        true => (1, "[extensions]\n\tobjectFormat = sha256\n"),
        false => (0, ""),
    };
    format!(
        "[include]\n\tpath = \"{real}\"\n[core]\n\trepositoryFormatVersion = {version}\n\tbare = \
         false\n\tworktree = \"..\"\n\tfsmonitor = false\n\tlogAllRefUpdates = false\n[gc]\n\tauto \
         = 0\n{format}"
    )
}

/// Reads all that is written, so that the hook never waits for us, and keeps the end of it.
fn listen(mut reader: std::io::PipeReader) -> std::sync::mpsc::Receiver<Vec<u8>> {
    let (tell, said) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut kept: Vec<u8> = Vec::new();
        let mut piece = [0; 4 * 1024];
        while let Ok(count) = reader.read(&mut piece)
            && count > 0
        {
            kept.extend(&piece[..count]);
            let surplus = kept.len().saturating_sub(OUTPUT_BYTES_MAX);
            kept.drain(..surplus);
        }
        let _ = tell.send(kept);
    });
    said
}

/// Makes a failing hook's refusal tell what came back to the tree.
pub(super) fn refused_with(refused: Refused, changed: Vec<String>) -> Failure {
    match refused {
        Refused::Hook { hook, exit, output, .. } => {
            refuse(Refused::Hook { hook, exit, output, changed })
        }
        other => refuse(other),
    }
}
