//! Handing tasks over, and saving what is known of them, in an open workspace.
//!
//! Owns what surrounds the rules: git is asked before the lock, offers whose time is over are
//! settled before anybody looks at offers, and artifacts are found. The rules decide in one
//! transaction each.

use std::path::{Path, PathBuf};

use baton_core::claim::Holder;
use baton_core::context::{Actor, Observed};
use baton_core::handoff::{self, Artifact, End, Handoff, To};
use baton_core::handoffs::accepting::{self, Accept, Accepted, Answered, Decline};
use baton_core::handoffs::checkpoint::{self, Saved};
use baton_core::handoffs::complete::{Decided, Paper};
use baton_core::handoffs::offering::{self, Offered, Request};
use baton_core::handoffs::reaching::{self, Stranger};
use baton_core::handoffs::refused::Refused;
use baton_core::handoffs::{self, stands};
use baton_core::id::{HandoffId, TaskId};
use baton_core::refusal::Refusal;
use baton_core::task::dossier::{Checkpoint, Dossier, Feedback};
use baton_core::task::{self, State, Task};
use baton_core::time::Moment;
use baton_core::view::{View, get, scan};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::handoffs as api;
use crate::failure::Failure;
use crate::git::Git;
use crate::resources::named;
use crate::sighting::files::tree_root;
use crate::tasking::left_by_task;
use crate::workspace::{Retry, Workspace};

pub mod file;
pub mod markdown;
pub(crate) mod work;

/// How many handoffs a list reads at the most.
const READ_MAX: u32 = 10_000;

/// Offers a task to others.
pub fn offer(
    workspace: &mut Workspace,
    actor: &Actor,
    cwd: &Path,
    wanted: &api::Offer,
    operation: Option<&str>,
) -> Result<Offered, Failure> {
    let paper = paper(cwd, wanted)?;
    let request = Request {
        task: wanted.task.clone(),
        to: wanted.to.clone(),
        within: wanted.within,
        artifacts: artifacts(workspace, cwd, &paper.artifacts)?,
        paper,
        token: wanted.token,
    };
    settle(workspace)?;
    let retry = operation.map(|operation| Retry::of(operation, "handoff offer", &request));
    let mut observed = work::of_task(workspace, &wanted.task)?;
    let preview = workspace.look(actor, observed.clone(), |view, context| {
        Ok(offering::offer(view, &request, context)?.1)
    });
    // If nothing is new and no attempt is left, its claims end with it.
    if preview.is_ok_and(|offered| offered.state != State::Active) {
        observed.claims = left_by_task(workspace, &wanted.task)?.claims;
    }
    workspace.decide_once(
        actor,
        observed,
        retry.as_ref(),
        |_| true,
        |view, context| offering::offer(view, &request, context),
    )
}

/// What the options say, on top of what the file says.
fn paper(cwd: &Path, wanted: &api::Offer) -> Result<Paper, Failure> {
    let mut paper = match &wanted.file {
        None => Paper::default(),
        Some(path) => {
            let full = cwd.join(path);
            let cannot = |source| Failure::File {
                doing: "the handoff cannot be read",
                path: path.clone(),
                source,
            };
            let open = std::fs::File::open(full).map_err(cannot)?;
            let mut text = String::new();
            let limit = file::FILE_BYTES_MAX as u64 + 1;
            std::io::Read::read_to_string(&mut std::io::Read::take(open, limit), &mut text)
                .map_err(cannot)?;
            if text.len() > file::FILE_BYTES_MAX {
                let bytes_max = file::FILE_BYTES_MAX;
                return Err(Refusal::TooLong { what: "handoff", bytes_max }.into());
            }
            file::read(path, &text)?
        }
    };
    for (given, kept) in [
        (&wanted.state, &mut paper.state),
        (&wanted.changed, &mut paper.changed),
        (&wanted.remaining, &mut paper.remaining),
        (&wanted.next, &mut paper.next),
    ] {
        *kept = given.clone().or(kept.take());
    }
    paper.decisions.extend(wanted.decisions.iter().cloned().map(Decided::Line));
    paper.blockers.extend(wanted.blockers.iter().cloned());
    paper.assumptions.extend(wanted.assumptions.iter().cloned());
    paper.constraints.extend(wanted.constraints.iter().cloned());
    paper.artifacts.extend(wanted.artifacts.iter().cloned());
    paper.set.extend(wanted.set.iter().map(|one| (one.key.clone(), one.value.clone())));
    paper.result = wanted.result.clone().or(paper.result);
    Ok(paper)
}

/// Each artifact as the file or the commit that it is; all that is neither is told at once.
fn artifacts(
    workspace: &Workspace,
    cwd: &Path,
    texts: &[String],
) -> Result<Vec<Artifact>, Failure> {
    let mut found = Vec::new();
    let mut unknown = Vec::new();
    for text in texts {
        if cwd.join(text).symlink_metadata().is_ok() {
            let words = [format!("path:{text}")];
            let paths = named(&workspace.place, cwd, &words)?;
            found.extend(paths.first().map(|path| Artifact::Path(path.to_string())));
        } else if let Some(commit) = commit(workspace, text) {
            found.push(Artifact::Commit(commit));
        } else {
            unknown.push(text.clone());
        }
    }
    match unknown.is_empty() {
        true => Ok(found),
        false => Err(Refusal::from(Refused::NoSuchArtifact { given: unknown }).into()),
    }
}

fn commit(workspace: &Workspace, text: &str) -> Option<String> {
    workspace.place.git.as_ref()?;
    let git = Git::in_tree(&workspace.place.root).ok()?;
    let found = git.resolve(&format!("{text}^{{commit}}")).ok()??;
    Some(found.as_str().to_owned())
}

/// A task that was accepted, and where to go for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Received {
    #[serde(flatten)]
    pub accepted: Accepted,
    /// The folder of its tree, when it is on this machine.
    pub tree_path: Option<String>,
    /// The work is in another tree than the one this was said in.
    pub elsewhere: bool,
}

/// Takes over what is offered.
pub fn accept(
    workspace: &mut Workspace,
    actor: &Actor,
    wanted: &api::Accept,
    operation: Option<&str>,
) -> Result<Received, Failure> {
    settle(workspace)?;
    let request = Accept { handoff: wanted.handoff.clone(), also: wanted.also };
    let handoff = found(workspace, &wanted.handoff)?;
    let head = handoff.and_then(|handoff| work::head_of(workspace, &handoff.known.tree));
    let observed = Observed { head, ..Observed::default() };
    let retry = operation.map(|operation| Retry::of(operation, "handoff accept", wanted));
    let accepted: Accepted = workspace.decide_once(
        actor,
        observed,
        retry.as_ref(),
        |_| true,
        |view, context| accepting::accept(view, &request, context),
    )?;
    let root = tree_root(workspace, &accepted.tree);
    Ok(Received {
        tree_path: root.map(|root| root.display().to_string()),
        elsewhere: accepted.tree != workspace.tree,
        accepted,
    })
}

/// The folder of the work, for a client that is to go on with it there. Refused where that cannot
/// be reached from here; of an offer that is none, the caller's own.
pub(crate) fn folder_of(
    workspace: &mut Workspace,
    text: &str,
    client: &str,
) -> Result<PathBuf, Failure> {
    let Some(handoff) = found(workspace, text)? else { return Ok(workspace.place.root.clone()) };
    if let Some(root) = tree_root(workspace, &handoff.known.tree) {
        return Ok(root);
    }
    let all = reaching::all_committed(&handoff.known);
    let commit = all.and_then(|all| commit(workspace, all));
    let host = workspace.machine.host.clone();
    let stranger = Stranger { host: &host, client, commit };
    workspace.look(&Actor::default(), Observed::default(), |view, context| {
        reaching::refuse_from_afar(view, &handoff, &stranger, context)
    })?;
    Ok(workspace.place.root.clone())
}

fn found(workspace: &mut Workspace, text: &str) -> Result<Option<Handoff>, Failure> {
    workspace
        .look(&Actor::default(), Observed::default(), |view, _| Ok(handoffs::find(view, text).ok()))
}

/// Will not have what is offered.
pub fn decline(
    workspace: &mut Workspace,
    actor: &Actor,
    wanted: &api::Decline,
    operation: Option<&str>,
) -> Result<Answered, Failure> {
    settle(workspace)?;
    let request = Decline { handoff: wanted.handoff.clone(), why: wanted.why.clone() };
    let retry = operation.map(|operation| Retry::of(operation, "handoff decline", wanted));
    workspace.decide_once(
        actor,
        Observed::default(),
        retry.as_ref(),
        |_| true,
        |view, context| accepting::decline(view, &request, context),
    )
}

/// Ends offers whose time is over. Most often there are none, and nothing is written.
pub(crate) fn settle(workspace: &mut Workspace) -> Result<(), Failure> {
    let overdue: Vec<Task> =
        workspace.look(&Actor::default(), Observed::default(), |view, context| {
            Ok(scan(view, task::due(task::BY_OFFER, context.now, handoffs::SETTLED_MAX))?)
        })?;
    if overdue.is_empty() {
        return Ok(());
    }
    let mut observed = Observed::default();
    for task in &overdue {
        observed.claims.extend(left_by_task(workspace, task.task.as_str())?.claims);
    }
    workspace.decide(&Actor::default(), observed, handoffs::settle).map(|_| ())
}

/// A handoff at a glance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ListedHandoff {
    pub handoff: HandoffId,
    pub task: TaskId,
    pub title: String,
    pub from: Holder,
    pub to: To,
    /// It can be accepted now.
    pub open: bool,
    pub offered_at: Moment,
    pub until: Moment,
    pub next: String,
    pub progress: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<End>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HandoffList {
    pub handoffs: Vec<ListedHandoff>,
    /// There are more than are listed.
    pub more: bool,
}

/// Open offers, the ones that end first first; with `all` every handoff, newest first.
pub fn list(
    workspace: &mut Workspace,
    actor: &Actor,
    wanted: &api::List,
) -> Result<HandoffList, Failure> {
    settle(workspace)?;
    let mine = match wanted.mine {
        true => Some(crate::sessions::whoami(workspace, actor)?),
        false => None,
    };
    workspace.look(&Actor::default(), Observed::default(), |view, context| {
        let found: Vec<Handoff> = match (&wanted.task, wanted.all) {
            (Some(task), _) => {
                let Some(id) = TaskId::parse(task) else {
                    return Err(baton_core::tasks::near::unknown(view, task)?);
                };
                handoffs::chain(view, &id)?
            }
            (None, true) => scan(view, handoff::latest(READ_MAX))?,
            (None, false) => open(view)?,
        };
        let mut listed = Vec::new();
        for one in found {
            let to_me = |me: &crate::sessions::Seat| {
                one.is_to(&me.session, me.role.as_deref()) && one.from.session != me.session
            };
            if mine.as_ref().is_some_and(|me| !to_me(me)) {
                continue;
            }
            let Some(task) = get::<Task>(view, one.task.as_str())? else { continue };
            listed.push(ListedHandoff {
                open: stands(&one, &task, context),
                handoff: one.handoff,
                task: one.task,
                title: task.title,
                from: one.from,
                to: one.to,
                offered_at: one.offered_at,
                until: one.until,
                next: one.said.next,
                progress: one.progress,
                end: one.end,
            });
            if listed.len() > wanted.limit {
                break;
            }
        }
        let more = listed.len() > wanted.limit;
        listed.truncate(wanted.limit);
        Ok(HandoffList { handoffs: listed, more })
    })
}

fn open(view: &dyn View) -> Result<Vec<Handoff>, Refusal> {
    let mut found = Vec::new();
    for task in scan::<Task>(view, task::all_of(task::BY_OFFER, READ_MAX))? {
        if let Some(offer) = task.offer() {
            found.extend(get::<Handoff>(view, offer.handoff.as_str())?);
        }
    }
    Ok(found)
}

/// A handoff in full, with everything that came before it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ShownHandoff {
    #[serde(flatten)]
    pub handoff: Handoff,
    pub title: String,
    /// It can be accepted now.
    pub open: bool,
    /// The earlier ones of the task, oldest first.
    pub earlier: Vec<Handoff>,
    /// Everything reviewers said, oldest first.
    pub feedback: Vec<Feedback>,
    /// What was saved last by code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<Checkpoint>,
}

pub fn show(workspace: &mut Workspace, text: &str) -> Result<ShownHandoff, Failure> {
    settle(workspace)?;
    workspace.look(&Actor::default(), Observed::default(), |view, context| {
        let handoff = handoffs::find(view, text)?;
        let Some(task) = get::<Task>(view, handoff.task.as_str())? else {
            return Err(baton_core::tasks::near::unknown(view, handoff.task.as_str())?);
        };
        let dossier = get::<Dossier>(view, handoff.task.as_str())?;
        let dossier = dossier.unwrap_or_else(|| Dossier::of(handoff.task.clone()));
        let mut earlier = handoffs::chain_of(view, &dossier)?;
        earlier.retain(|one| one.number < handoff.number);
        Ok(ShownHandoff {
            open: stands(&handoff, &task, context),
            handoff,
            title: task.title,
            earlier,
            feedback: dossier.feedback,
            checkpoint: dossier.checkpoints.last().cloned(),
        })
    })
}

/// Saves what is known of the caller's work.
pub fn checkpoint(
    workspace: &mut Workspace,
    actor: &Actor,
    wanted: &api::Checkpoint,
    operation: Option<&str>,
) -> Result<Saved, Failure> {
    let session = actor.session.clone().ok_or(Refusal::NoSession)?;
    let observed = match &wanted.task {
        Some(task) => work::of_task(workspace, task)?,
        None => {
            let work = work::of_session(workspace, &session)?;
            Observed { work, ..Observed::default() }
        }
    };
    let api::Checkpoint { task, note, token } = wanted.clone();
    let request = checkpoint::Request { task, note, token };
    let retry = operation.map(|operation| Retry::of(operation, "task checkpoint", wanted));
    workspace.decide_once(
        actor,
        observed,
        retry.as_ref(),
        |_| true,
        |view, context| checkpoint::save(view, &request, context),
    )
}
