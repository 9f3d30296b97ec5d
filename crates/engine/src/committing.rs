//! A commit of exactly the named paths in a tree that others use at the same time.
//!
//! Owns the order of its steps. Everything is prepared apart: the candidate in a private index, the
//! hooks in a private checkout. Then, under git's own `index.lock`, the branch moves by
//! compare-and-swap and the lock, which holds the committed entries of these paths and else what
//! the index had, becomes the index. Invariants: no other path's entry or file is ever written; a
//! death at any point is repaired by the next commit, or left nothing to repair (LESSONS 19, 35).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use baton_core::commits::{
    self, Committed, MESSAGE_BYTES_MAX, Made, Permit, Refused, Request, message,
};
use baton_core::context::{Actor, Observed};
use baton_core::denials::Deed;
use baton_core::id::LandingId;
use baton_core::operations;
use baton_core::refusal::Refusal;
use baton_core::resource::Resource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::commits as api;
use crate::conflicts::undo::lines_taken_back;
use crate::denying;
use crate::doors::reads::{self, Unread};
use crate::failure::Failure;
use crate::git::{self, Entry, Git, Oid, Own};
use crate::interfaces;
use crate::landing;
use crate::place::GitDirs;
use crate::place::head::Head;
use crate::place::test_hooks;
use crate::sandbox;
use crate::workspace::{Retry, Workspace};

use diverting::Spot;
use hooks::{Checkout, Hooks, Outcome, Rewritten, refused_with};
use indexed::Indexed;
use lock::{Step, Turn};
use looking::Look;

mod diverting;
mod foreign;
mod hooks;
mod indexed;
pub(crate) mod lock;
pub(crate) mod looking;
pub(crate) mod repair;

/// How often a commit is prepared anew because someone committed the same paths meanwhile.
const ROUNDS_MAX: usize = 3;

/// A commit that was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reply {
    #[serde(flatten)]
    pub committed: Committed,
    /// Named files that a hook changed: the tree has the new content.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed_by_hooks: Vec<String>,
    /// Files that a hook changed and that were left as they are: not named, or changed meanwhile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_taken: Vec<String>,
    /// Files in which it takes back what another changed since the session last read them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undone: Vec<String>,
    /// The target is guarded: it was committed on this branch of its own, which stands in line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub landing: Option<LandingId>,
    /// Something that an earlier commit had begun when it died was finished or undone first.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repaired: bool,
}

/// What is to be committed, and upon what.
#[derive(Debug)]
struct Candidate {
    branch: Option<String>,
    head: Option<Oid>,
    /// Where the branch is now: it moves from there.
    before: Option<Oid>,
    diverted: bool,
    tree: Oid,
    entries: Vec<Entry>,
    /// What the named files had before they were taken; only where hooks may change them.
    contents: Vec<(String, Vec<u8>)>,
    /// The commit and the tree that were seen to differ.
    differ: (Option<Oid>, Oid),
    /// What the tree's own index had.
    indexed: Indexed,
}

pub(crate) fn refuse(refused: Refused) -> Failure {
    Failure::Refused(Refusal::from(refused))
}

/// Dies here when a test asks for it.
pub(crate) fn may_stop(workspace: &Workspace, step: &str) {
    if test_hooks::stops_at(&workspace.place.store, step) {
        std::process::abort();
    }
}

pub fn commit(
    workspace: &mut Workspace,
    actor: &Actor,
    cwd: &Path,
    wanted: &api::Commit,
    operation: Option<&str>,
) -> Result<Reply, Failure> {
    let came = commit_once(workspace, actor, cwd, wanted, operation);
    denying::noted(workspace, actor, (Deed::Commit, ""), came)
}

fn commit_once(
    workspace: &mut Workspace,
    actor: &Actor,
    cwd: &Path,
    wanted: &api::Commit,
    operation: Option<&str>,
) -> Result<Reply, Failure> {
    let dirs = workspace.place.git.clone().ok_or_else(|| refuse(Refused::NoRepository))?;
    if wanted.message.len() > MESSAGE_BYTES_MAX {
        let bytes_max = MESSAGE_BYTES_MAX;
        return Err(Refusal::TooLong { what: "message", bytes_max }.into());
    }
    if message::tidied(&wanted.message).is_empty() {
        return Err(refuse(Refused::NoMessage));
    }
    let repaired = mend(workspace, &dirs)?;
    let retry = match operation {
        Some(operation) => Retry::of(operation, "commit", wanted),
        // Also without an id of the caller's one finishes what another began only once.
        None => Retry::of(&crate::workspace::secret()?, "commit", wanted),
    };
    if let Some(kept) = answered(workspace, actor, &retry)? {
        let (changed_by_hooks, not_taken, undone) = (Vec::new(), Vec::new(), Vec::new());
        let (committed, landing) = (kept, None);
        return Ok(Reply { committed, changed_by_hooks, not_taken, undone, landing, repaired });
    }
    let mut job = Job { git: Git::in_tree(&workspace.place.root)?, workspace, actor, cwd, wanted };
    for _ in 0..ROUNDS_MAX {
        if let Some(mut reply) = job.round(&dirs, &retry)? {
            reply.repaired = repaired;
            // The commit stands, whether or not others can be told of it now.
            let _ = interfaces::look(job.workspace, actor, &reply.committed.made.paths);
            return Ok(reply);
        }
    }
    let reference = job.git.head_branch()?.unwrap_or_else(|| "HEAD".to_owned());
    Err(refuse(Refused::Moved { reference }))
}

/// Finishes or undoes what a process that died had begun. True when there was anything.
pub fn mend(workspace: &mut Workspace, dirs: &GitDirs) -> Result<bool, Failure> {
    let turn = Turn::take(&workspace.place.store, &dirs.git_dir)?;
    repair::run(workspace, &turn)
}

fn answered(
    workspace: &mut Workspace,
    actor: &Actor,
    retry: &Retry,
) -> Result<Option<Committed>, Failure> {
    let session = actor.session.as_ref().map(|id| id.0.clone()).unwrap_or_default();
    workspace.look(actor, Observed::default(), |view, _| {
        let kept = operations::answered(view, &retry.operation, &session, &retry.request_hash)?;
        Ok(kept.map(|text| baton_core::view::parse(&text)).transpose()?)
    })
}

/// Who stands beside the author in this tree, as `worktree new` wrote it down. A tree without
/// settings of its own has nobody, and git is not asked.
fn co_author(git: &Git, dirs: &GitDirs) -> Result<Option<String>, Failure> {
    if !dirs.git_dir.join("config.worktree").exists() {
        return Ok(None);
    }
    let named = git.setting("baton.coAuthor")?;
    // It becomes one line of the message.
    Ok(named.filter(|name| !name.contains(char::is_control) && name.ends_with('>')))
}

/// One request at work.
struct Job<'a> {
    git: Git,
    workspace: &'a mut Workspace,
    actor: &'a Actor,
    cwd: &'a Path,
    wanted: &'a api::Commit,
}

impl Job<'_> {
    /// One attempt; nothing when others committed the same paths while it was prepared.
    fn round(&mut self, dirs: &GitDirs, retry: &Retry) -> Result<Option<Reply>, Failure> {
        let (branch, _) = self.stand()?;
        let own = self.git.own_settings()?;
        let Look { seen, head, indexed } = self.look(dirs, branch.as_deref(), &own)?;
        seen.admit().map_err(refuse)?;
        let paths = seen.changed;
        let undone = self.undone(&paths, head.as_ref())?;
        let request = self.request(&paths, head.as_ref())?;
        let permit = self.permit(&request)?;
        let beside = co_author(&self.git, dirs)?;
        let text = message::with_trailers(&self.wanted.message, &permit, beside.as_deref());
        let hooks = Hooks::find(&self.git, &self.workspace.place.root, dirs, &own)?;
        may_stop(self.workspace, "commit-begun");
        let spot = self.spot(branch, head)?;
        let mut candidate = self.candidate(spot, &paths, !hooks.are_none(), (own, indexed))?;
        let diverted = candidate.diverted;
        may_stop(self.workspace, "commit-candidate");
        let (checkout, outcome) = match hooks.are_none() {
            true => (None, Outcome { message: text, ..Outcome::default() }),
            false => {
                let root = self.workspace.place.root.clone();
                let checkout = Checkout::make(&self.git, &root, dirs, &candidate)?;
                let outcome = self.run_hooks(&checkout, &hooks, &text, &candidate)?;
                checkout.bring(&self.git, &candidate.entries, &outcome.entries)?;
                candidate.entries.clone_from(&outcome.entries);
                candidate.tree = self.tree(candidate.head.as_ref(), &candidate.entries)?;
                (Some(checkout), outcome)
            }
        };
        may_stop(self.workspace, "commit-hooks");
        if message::tidied(&outcome.message).is_empty() {
            return Err(refuse(Refused::NoMessage));
        }
        let turn = Turn::take(&self.workspace.place.store, &dirs.git_dir)?;
        repair::run(self.workspace, &turn)?;
        let Some(reply) = self.finish(&turn, dirs, candidate, &request, outcome, retry)? else {
            return Ok(None);
        };
        drop(turn);
        let mut reply = reply;
        reply.undone = undone;
        if diverted && let Some(branch) = &reply.committed.made.branch {
            reply.landing = landing::divert(self.workspace, self.actor, branch)?;
        }
        if let (Some(checkout), Some(commit)) =
            (&checkout, Oid::parse(&reply.committed.made.commit))
        {
            checkout.after(&hooks, &commit);
        }
        Ok(Some(reply))
    }

    fn run_hooks(
        &self,
        checkout: &Checkout,
        hooks: &Hooks,
        text: &str,
        candidate: &Candidate,
    ) -> Result<Outcome, Failure> {
        match checkout.before(hooks, text, candidate)? {
            Ok(outcome) => Ok(outcome),
            // What a hook mended is in the tree also when it refuses, as with git.
            Err((refused, outcome)) => {
                let (changed, _) = self.write_back(candidate, &outcome.changed)?;
                Err(refused_with(refused, changed))
            }
        }
    }

    /// The files in which lines of others are taken back, by one who was told of them and did not
    /// read them. Nobody else pays for looking.
    fn undone(&self, paths: &[String], head: Option<&Oid>) -> Result<Vec<String>, Failure> {
        let (Some(session), Some(head)) = (&self.actor.session, head) else {
            return Ok(Vec::new());
        };
        let mut undone = Vec::new();
        for Unread { path, told } in reads::unread(&self.workspace.place, session, paths) {
            let landed = self.git.content(head.as_str(), &path)?;
            let Some(landed) = landed.and_then(|bytes| String::from_utf8(bytes).ok()) else {
                continue;
            };
            let now = std::fs::read_to_string(self.workspace.place.root.join(&path));
            let now = now.unwrap_or_default();
            // Of what they committed, and not of what only this session has written.
            let taken_back = |(known, there): &(String, String)| {
                lines_taken_back(known, &landed, &now) > 0
                    && lines_taken_back(known, there, &now) > 0
            };
            if told.iter().any(taken_back) {
                undone.push(path);
            }
        }
        Ok(undone)
    }

    /// Who may, for what, under which token.
    fn permit(&mut self, request: &Request) -> Result<Permit, Failure> {
        self.workspace.look(self.actor, Observed::default(), |view, context| {
            commits::judge(view, request, context)
        })
    }

    fn request(&mut self, paths: &[String], head: Option<&Oid>) -> Result<Request, Failure> {
        let suspects = self.workspace.look(self.actor, Observed::default(), |view, context| {
            commits::suspects(view, paths, context)
        })?;
        let root = &self.workspace.place.root;
        let lines = foreign::lines(&self.git, root, head, &suspects)?;
        let include_foreign = self.wanted.include_foreign;
        Ok(Request { paths: paths.to_vec(), include_foreign, lines })
    }
}

impl Job<'_> {
    /// The last commit with the named files as they are now, in a private index.
    fn candidate(
        &self,
        spot: Spot,
        paths: &[String],
        keep_contents: bool,
        (own, indexed): (Own, Indexed),
    ) -> Result<Candidate, Failure> {
        let Spot { branch, head, before, diverted } = spot;
        let root = &self.workspace.place.root;
        // Read before git reads them: what is written in between is then seen as a change.
        let contents = paths
            .iter()
            .filter(|_| keep_contents)
            .filter_map(|path| Some((path.clone(), hooks::read_file(&root.join(path)).ok()?)));
        let contents = contents.collect();
        let index = self.git.index_of(head.as_ref())?;
        self.git.take_files(&index, paths, &own)?;
        let tree = self.git.tree_in(&index)?;
        let named: BTreeSet<&str> = paths.iter().map(String::as_str).collect();
        let entries = self.git.differs(head.as_ref(), &tree)?;
        if let Some(other) = entries.iter().find(|one| !named.contains(one.path.as_str())) {
            return Err(refuse(Refused::NotNamed { path: other.path.clone() }));
        }
        if entries.is_empty() {
            return Err(refuse(Refused::Nothing { named: true }));
        }
        let differ = (head.clone(), tree.clone());
        Ok(Candidate { branch, head, before, diverted, tree, entries, contents, differ, indexed })
    }

    fn tree(&self, head: Option<&Oid>, entries: &[Entry]) -> Result<Oid, Failure> {
        let index = self.git.index_of(head)?;
        self.git.put_entries(&index.file, entries)?;
        Ok(self.git.tree_in(&index)?)
    }

    /// Everything that others can see, under git's own lock.
    fn finish(
        &mut self,
        turn: &Turn,
        dirs: &GitDirs,
        mut candidate: Candidate,
        request: &Request,
        outcome: Outcome,
        retry: &Retry,
    ) -> Result<Option<Reply>, Failure> {
        let mut lock = turn.lock_index(None)?;
        may_stop(self.workspace, "commit-locked");
        if !self.still_fits(&mut candidate)? {
            return Ok(None);
        }
        let head = candidate.head.as_ref();
        let (base, tree) = &candidate.differ;
        let known = base.as_ref() == head && *tree == candidate.tree;
        if !known && self.git.differs(head, &candidate.tree)?.is_empty() {
            return Err(refuse(Refused::Nothing { named: true }));
        }
        // Whoever claimed a path while the hooks ran is asked first.
        let permit = self.permit(request)?;
        let (changed_by_hooks, mut not_taken) = self.write_back(&candidate, &outcome.changed)?;
        not_taken.extend(outcome.not_taken);
        may_stop(self.workspace, "commit-written-back");
        let paths: Vec<String> = candidate.entries.iter().map(|one| one.path.clone()).collect();
        let old = match candidate.indexed.still(&paths) {
            Some(old) => old,
            None => self.git.entries(None, &paths)?.0,
        };
        lock.write(&self.new_index(dirs, &candidate.entries)?.file)?;
        may_stop(self.workspace, "commit-indexed");
        let text = message::tidied(&outcome.message);
        let commit = self.git.make_commit(&candidate.tree, &Vec::from_iter(head), &text, &[]);
        let commit = commit.map_err(no_identity)?;
        let made = self.made(&candidate, &commit, permit)?;
        let Candidate { branch, before, entries: new, .. } = candidate;
        let why = format!("commit: {}", text.lines().next().unwrap_or_default());
        // Went on while the commit was made; the intent says that the lock holds all of it.
        lock.synced()?;
        turn.intend(Step {
            ready: true,
            branch: branch.clone(),
            before: before.clone(),
            after: commit.clone(),
            old,
            new,
            made: Some((made.clone(), retry.clone())),
        })?;
        may_stop(self.workspace, "commit-intended");
        match self.git.move_branch(branch.as_deref(), &commit, before.as_ref(), &why) {
            Ok(()) => {}
            Err(git::Error::ReferenceMoved { .. }) => return Ok(None),
            Err(error) => {
                // It may have moved all the same: the lock stays until that is known.
                lock.leave();
                repair::run(self.workspace, turn)?;
                return Err(error.into());
            }
        }
        may_stop(self.workspace, "commit-moved");
        lock.put()?;
        may_stop(self.workspace, "commit-put");
        let committed = keep(self.workspace, self.actor, &made, retry, self.wanted.release)?;
        may_stop(self.workspace, "commit-kept");
        turn.forget()?;
        let (landing, repaired) = (None, false);
        let undone = Vec::new();
        Ok(Some(Reply { committed, changed_by_hooks, not_taken, undone, landing, repaired }))
    }

    /// What HEAD stands for and names. Git is asked only where files do not tell.
    fn stand(&self) -> Result<(Option<String>, Option<Oid>), Failure> {
        let (branch, head) = match self.workspace.place.stand() {
            (branch, Head::Nothing) => (branch, None),
            (branch, Head::Commit(oid)) => (branch, Oid::parse(&oid)),
            (_, Head::AskGit) => (self.git.head_branch()?, self.git.head()?),
        };
        sandbox::must_be_on(branch.as_deref())?;
        Ok((branch, head))
    }

    /// Is the candidate still upon what HEAD names? When others committed other paths meanwhile,
    /// it is put upon theirs; when they committed the same, all is to be done anew.
    fn still_fits(&mut self, candidate: &mut Candidate) -> Result<bool, Failure> {
        let (branch, head) = self.stand()?;
        if candidate.diverted {
            let Spot { branch, head, before, .. } = self.spot(branch, head)?;
            return Ok(branch == candidate.branch
                && head == candidate.head
                && before == candidate.before);
        }
        if branch == candidate.branch && head == candidate.head {
            return Ok(true);
        }
        let (Some(old), Some(new)) = (&candidate.head, &head) else { return Ok(false) };
        let theirs = self.git.changed_between(old, new)?;
        let named = |path: &String| candidate.entries.iter().any(|entry| entry.path == *path);
        if branch != candidate.branch || theirs.iter().any(named) {
            return Ok(false);
        }
        candidate.tree = self.tree(head.as_ref(), &candidate.entries)?;
        candidate.before = head.clone();
        candidate.head = head;
        Ok(true)
    }

    /// The tree's own index with the committed entries, in a file of ours.
    fn new_index(&self, dirs: &GitDirs, entries: &[Entry]) -> Result<git::PrivateIndex, Failure> {
        let index = git::PrivateIndex::new()?;
        let real = dirs.git_dir.join("index");
        match std::fs::copy(&real, &index.file) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            copied => {
                copied.map_err(lock::cannot("git's index cannot be read", &real))?;
            }
        }
        self.git.put_entries(&index.file, entries)?;
        Ok(index)
    }

    fn made(&self, candidate: &Candidate, commit: &Oid, permit: Permit) -> Result<Made, Failure> {
        let branch = candidate.branch.as_ref();
        let branch = branch.map(|name| name.trim_start_matches("refs/heads/").to_owned());
        let mut paths = Vec::with_capacity(candidate.entries.len());
        for Entry { path, .. } in &candidate.entries {
            let source = |source| Refusal::BadResource { text: path.clone(), source };
            paths.push(Resource::literal(path).map_err(source)?);
        }
        let Permit { holder, task, token, foreign } = permit;
        Ok(Made {
            commit: commit.to_string(),
            parent: candidate.head.as_ref().map(Oid::to_string),
            branch,
            paths,
            by: holder,
            task,
            token,
            tree: self.workspace.tree.clone(),
            foreign,
        })
    }

    /// What hooks made of named files comes into the tree, where the file is still the one they
    /// were given. What it had is saved first. Which were written, and which were not.
    fn write_back(
        &self,
        candidate: &Candidate,
        changed: &[Rewritten],
    ) -> Result<(Vec<String>, Vec<String>), Failure> {
        let (mut written, mut left) = (Vec::new(), Vec::new());
        if changed.is_empty() {
            return Ok((written, left));
        }
        let before: Vec<(String, Vec<u8>)> =
            changed.iter().map(|one| (one.path.clone(), one.before.clone())).collect();
        let reference = format!("{}/hooks/{}", crate::sighting::RESCUE_PREFIX, candidate.tree);
        let words = "What named files had before a commit hook changed them";
        self.git.commit_files(&reference, &before, words, &git::Author::baton())?;
        for one in changed {
            let path = self.workspace.place.root.join(&one.path);
            let list = if replace(&path, one)? { &mut written } else { &mut left };
            list.push(one.path.clone());
        }
        Ok((written, left))
    }
}

/// Puts new content in a file's place, all at once, if it still has the old one.
fn replace(path: &PathBuf, one: &Rewritten) -> Result<bool, Failure> {
    let doing = "what a hook changed cannot be written";
    if !hooks::read_file(path).is_ok_and(|now| now == one.before) {
        return Ok(false);
    }
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".baton-new");
    let new = path.with_file_name(name);
    let swap = || -> std::io::Result<bool> {
        std::fs::write(&new, &one.after)?;
        std::fs::set_permissions(&new, std::fs::metadata(path)?.permissions())?;
        #[cfg(target_os = "linux")]
        {
            use rustix::fs::{CWD, RenameFlags, renameat_with};
            let exchange = || renameat_with(CWD, &new, CWD, path, RenameFlags::EXCHANGE);
            if exchange().is_ok() {
                // What lies there now was the file: written to at the last moment, it goes back.
                let same = std::fs::read(&new)? == one.before;
                if !same {
                    exchange()?;
                }
                std::fs::remove_file(&new)?;
                return Ok(same);
            }
        }
        std::fs::rename(&new, path).map(|()| true)
    };
    swap().map_err(lock::cannot(doing, path))
}

/// The journal knows of it, once.
fn keep(
    workspace: &mut Workspace,
    actor: &Actor,
    made: &Made,
    retry: &Retry,
    release: bool,
) -> Result<Committed, Failure> {
    workspace.decide_once(
        actor,
        Observed::default(),
        Some(retry),
        |_| true,
        |view, context| commits::made(view, made, release, context),
    )
}

fn no_identity(error: git::Error) -> Failure {
    match error {
        git::Error::Failed { message, .. } if message.contains("identity") => {
            refuse(Refused::NoIdentity)
        }
        other => other.into(),
    }
}
