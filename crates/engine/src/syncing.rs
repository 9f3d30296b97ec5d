//! How this tree stands to its remote, and bringing it up to date without losing anything.
//!
//! Owns the order of a pull: what is to come is settled first without touching the tree, then files
//! and index move (git refuses where something was changed), then the branch, by compare-and-swap.
//! Invariant: a remote that cannot be reached is never taken for one that has nothing new.

use std::collections::BTreeSet;

use baton_core::commits;
use baton_core::context::{Actor, Observed};
use baton_core::refusal::Refusal;
use baton_core::syncs::{self, Incoming, Known, Refused, Touch};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::commits::Sync;
use crate::committing::lock::{Pull, Turn};
use crate::committing::{self, looking, may_stop, repair};
use crate::doors::reads;
use crate::failure::Failure;
use crate::git::{self, Git, Oid, Replayed};
use crate::interfaces;
use crate::place::GitDirs;
use crate::sandbox;
use crate::workspace::Workspace;

/// How many incoming commits are looked at one by one.
const INCOMING_MAX: usize = 1_000;
const NAME_BYTES_MAX: usize = 200;

/// How the tree stands to the remote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Synced {
    pub remote: String,
    pub branch: String,
    /// What the remote's branch names now.
    pub tip: String,
    pub head: String,
    /// Commits that the remote has and this tree has not, after a pull if one was asked for.
    pub behind: u64,
    /// Commits that this tree has and the remote has not.
    pub ahead: u64,
    /// There is uncommitted work in the tree, whoever's.
    pub dirty: bool,
    /// Incoming commits that touch what this session claims or changed, newest first.
    pub touches: Vec<Touch>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pulled: Option<Pulled>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pulled {
    /// Where the tree stood before. Checks and approvals of that commit do not count for the new.
    pub from: String,
    /// Own commits were put upon what came in, and have new names.
    pub rebased: bool,
    pub files: u64,
}

/// A pull that was made.
struct Done {
    branch: String,
    to: Oid,
    told: Pulled,
}

fn refuse(refused: Refused) -> Failure {
    Failure::Refused(Refusal::from(refused))
}

pub fn sync(workspace: &mut Workspace, actor: &Actor, wanted: &Sync) -> Result<Synced, Failure> {
    let dirs = workspace.place.git.clone();
    let dirs = dirs.ok_or_else(|| committing::refuse(commits::Refused::NoRepository))?;
    let git = Git::in_tree(&workspace.place.root)?;
    let remote = wanted.remote.clone();
    let url = match plain(&remote) {
        true => git.url_of(&remote)?,
        false => None,
    };
    let url = url.ok_or_else(|| refuse(Refused::NoRemote { remote: remote.clone() }))?;
    let branch = branch_of(&git, wanted)?;
    let tip = fetch(&git, &url, &remote, &branch)?;
    let head = git.head()?.ok_or_else(|| refuse(Refused::Unborn))?;
    let mut synced = compare(workspace, actor, &git, &head, &tip)?;
    (synced.remote, synced.branch) = (remote, branch);
    if wanted.pull && synced.behind > 0 {
        let pulled = pull(workspace, &git, &dirs, &head, &tip, synced.ahead)?;
        let moved =
            interfaces::Pull { branch: &pulled.branch, moved: (&head, &pulled.to), tip: &tip };
        // The tree is up to date, whether or not others can be told of it now.
        let _ = interfaces::pulled(workspace, actor, &git, &moved);
        synced.pulled = Some(pulled.told);
        let head = git.head()?.ok_or_else(|| refuse(Refused::Unborn))?;
        (synced.ahead, synced.behind) = git.apart(&head, &tip)?;
        synced.head = head.to_string();
    }
    Ok(synced)
}

/// A name that can be no option, pattern, range or other spelling.
pub(crate) fn plain(name: &str) -> bool {
    let wrong = |c: char| c.is_whitespace() || c.is_control() || ":^~*?[\\@{".contains(c);
    !name.is_empty()
        && name.len() <= NAME_BYTES_MAX
        && !name.starts_with(['-', '/', '.'])
        && !name.ends_with(['/', '.'])
        && !name.contains("..")
        && !name.contains("//")
        && !name.ends_with(".lock")
        && !name.contains(wrong)
}

fn branch_of(git: &Git, wanted: &Sync) -> Result<String, Failure> {
    if let Some(branch) = &wanted.branch {
        let bad = || refuse(Refused::BadBranch { branch: branch.clone() });
        return if plain(branch) { Ok(branch.clone()) } else { Err(bad()) };
    }
    if let Some(branch) = git.default_branch(&wanted.remote)?.filter(|branch| plain(branch)) {
        return Ok(branch);
    }
    let known = git.target(None)?.map(|(name, _)| name);
    Ok(known.unwrap_or_else(|| "main".to_owned()))
}

pub(crate) fn fetch(git: &Git, url: &str, remote: &str, branch: &str) -> Result<Oid, Failure> {
    let missing = || {
        let (remote, branch) = (remote.to_owned(), branch.to_owned());
        refuse(Refused::NoBranch { remote, branch })
    };
    let offline = |why: String| refuse(Refused::Offline { remote: remote.to_owned(), why });
    match git.fetch(url, remote, branch) {
        Ok(true) => {}
        Ok(false) => return Err(missing()),
        Err(git::Error::Failed { message, .. }) => return Err(offline(message)),
        Err(git::Error::TimedOut { seconds, .. }) => {
            return Err(offline(format!("no answer within {seconds} s")));
        }
        Err(error) => return Err(error.into()),
    }
    git.commit_named(&format!("refs/remotes/{remote}/{branch}"))?.ok_or_else(missing)
}

pub(crate) fn compare(
    workspace: &mut Workspace,
    actor: &Actor,
    git: &Git,
    head: &Oid,
    tip: &Oid,
) -> Result<Synced, Failure> {
    let (ahead, behind) = git.apart(head, tip)?;
    let status = git.status(&[String::new()])?;
    let dirty = !status.changed.is_empty();
    let mut touches = Vec::new();
    if behind > 0 {
        let incoming = git.incoming(head, tip, INCOMING_MAX)?;
        let incoming: Vec<Incoming> = incoming
            .into_iter()
            .map(|one| Incoming {
                commit: one.commit.oid.to_string(),
                author: one.commit.author,
                subject: one.commit.subject,
                files: one.files,
            })
            .collect();
        let mut changed: Vec<String> = status.paths().into_iter().map(str::to_owned).collect();
        if ahead > 0 {
            let own = git.incoming(tip, head, INCOMING_MAX)?;
            changed.extend(own.into_iter().flat_map(|one| one.files));
        }
        let read = reads::paths(workspace, actor);
        let known = Known { changed, read };
        touches = workspace.look(actor, Observed::default(), |view, context| {
            syncs::touches(view, &incoming, &known, context)
        })?;
    }
    let (tip, head) = (tip.to_string(), head.to_string());
    let (remote, branch) = (String::new(), String::new());
    Ok(Synced { remote, branch, tip, head, behind, ahead, dirty, touches, pulled: None })
}

fn pull(
    workspace: &mut Workspace,
    git: &Git,
    dirs: &GitDirs,
    head: &Oid,
    tip: &Oid,
    ahead: u64,
) -> Result<Done, Failure> {
    let turn = Turn::take(&workspace.place.store, &dirs.git_dir)?;
    repair::run(workspace, &turn)?;
    if let Some(what) = looking::in_progress(dirs) {
        return Err(committing::refuse(commits::Refused::InProgress { what }));
    }
    let branch = git.head_branch()?.ok_or_else(|| refuse(Refused::NoBranchHere))?;
    sandbox::must_be_on(Some(&branch))?;
    if let Some((branch, tree)) = looking::elsewhere(dirs, &branch) {
        return Err(committing::refuse(commits::Refused::CheckedOutTwice { branch, tree }));
    }
    let new = match ahead {
        0 => tip.clone(),
        _ => match git.replay(head, tip)? {
            Replayed::Tip(new) => new,
            Replayed::Conflict { commit, files: paths } => {
                let commit = commit.to_string();
                return Err(refuse(Refused::Conflict { commit, paths }));
            }
            Replayed::Merge { commit } => {
                return Err(refuse(Refused::Merge { commit: commit.to_string() }));
            }
        },
    };
    let incoming = git.changed_between(head, &new)?;
    syncs::may_move(&incoming, &in_the_way(workspace, git, head, &incoming)?).map_err(refuse)?;
    let pull = Pull { branch: branch.clone(), before: head.clone(), after: new.clone() };
    turn.intend_pull(pull)?;
    may_stop(workspace, "sync-intended");
    if let Err(error) = git.move_files(head, &new) {
        turn.forget()?;
        // Somebody wrote to one of the files after we looked: git saw it, and moved nothing.
        syncs::may_move(&incoming, &in_the_way(workspace, git, head, &incoming)?)
            .map_err(refuse)?;
        return Err(error.into());
    }
    may_stop(workspace, "sync-moved-files");
    git.move_branch(Some(&branch), &new, Some(head), "baton sync")?;
    may_stop(workspace, "sync-moved");
    turn.forget()?;
    let (from, files) = (head.to_string(), incoming.len() as u64);
    Ok(Done { branch, to: new, told: Pulled { from, rebased: ahead > 0, files } })
}

/// Uncommitted work in the tree, and files that git does not keep where one is to come.
fn in_the_way(
    workspace: &Workspace,
    git: &Git,
    head: &Oid,
    incoming: &[String],
) -> Result<Vec<String>, Failure> {
    let status = git.status(&[String::new()])?;
    let mut dirty: Vec<String> = status.paths().into_iter().map(str::to_owned).collect();
    let known: BTreeSet<String> = git.every_file_of(head)?.into_iter().collect();
    let root = &workspace.place.root;
    let unknown = incoming.iter().filter(|path| !known.contains(*path));
    dirty.extend(unknown.filter(|path| root.join(path).symlink_metadata().is_ok()).cloned());
    dirty.sort_unstable();
    dirty.dedup();
    Ok(dirty)
}
