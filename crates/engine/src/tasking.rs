//! Filing, taking and ending tasks in an open workspace.
//!
//! Owns what surrounds the rules: paths are settled before, owners whose process is visibly gone
//! are ended before somebody takes, and what claims leave behind is looked at before they end. The
//! rules decide in one transaction each.

use std::collections::BTreeSet;
use std::path::Path;

use baton_core::claim::{self, Claim};
use baton_core::context::{Actor, Context, Life, Observed};
use baton_core::denials::Deed;
use baton_core::event::Event;
use baton_core::id::{SessionId, TaskId};
use baton_core::refusal::Refusal;
use baton_core::resource::Resource;
use baton_core::sessions::{self, Session};
use baton_core::task::{self, Task};
use baton_core::tasks::adding::{self, Added};
use baton_core::tasks::editing::{self, Edit};
use baton_core::tasks::ending;
use baton_core::tasks::refused::Refused;
use baton_core::tasks::taking::{self, Answer, Taken};
use baton_core::tasks::{Moved, adding::Request};
use baton_core::view::{Query, View, get, only, scan};
use serde::Serialize;

use crate::api::tasks as api;
use crate::claiming::LOOKS_MAX;
use crate::denying;
use crate::evidence;
use crate::failure::Failure;
use crate::gating;
use crate::handing::{self, work};
use crate::resources::named;
use crate::sighting::{bury, clear_the_way, files, foreign_locks, in_the_way, life_of, of_claims};
use crate::workspace::{Retry, Workspace};

pub mod graph;
pub mod showing;
pub mod splitting;

/// How many owners are looked at before a take: those who were heard of least lately.
const OWNERS_MAX: u32 = 64;
/// How many when nothing else is there to be taken.
const OWNERS_WIDE_MAX: u32 = 10_000;
const CLAIMS_MAX: u32 = 10_000;

pub fn add(
    workspace: &mut Workspace,
    actor: &Actor,
    cwd: &Path,
    wanted: &api::Add,
    operation: Option<&str>,
) -> Result<Added, Failure> {
    let request = Request {
        title: wanted.title.clone(),
        body: wanted.body.clone(),
        priority: wanted.priority,
        after: wanted.after.clone(),
        phase: wanted.phase,
        paths: named(&workspace.place, cwd, &wanted.paths)?,
        role: wanted.role.clone(),
        labels: wanted.labels.clone(),
        max_attempts: wanted.max_attempts,
        budget_usd: wanted.budget_usd,
        key: wanted.key.clone(),
        unique: wanted.unique,
    };
    let retry = operation.map(|operation| Retry::of(operation, "task add", wanted));
    workspace.decide_once(
        actor,
        Observed::default(),
        retry.as_ref(),
        |_| true,
        |view, context| adding::add(view, &request, context),
    )
}

pub fn update(
    workspace: &mut Workspace,
    actor: &Actor,
    cwd: &Path,
    wanted: &api::Update,
    operation: Option<&str>,
) -> Result<Moved, Failure> {
    let paths = named(&workspace.place, cwd, &wanted.paths)?;
    let edit = Edit {
        title: wanted.title.clone(),
        body: wanted.body.clone(),
        priority: wanted.priority,
        phase: wanted.phase,
        paths: Some(paths).filter(|paths| !paths.is_empty()),
        role: wanted.role.clone(),
        labels: Some(wanted.labels.clone()).filter(|labels| !labels.is_empty()),
        max_attempts: wanted.max_attempts,
        budget_usd: wanted.budget_usd,
        next_action: wanted.next_action.clone(),
    };
    let (task, after, token) = (wanted.task.clone(), wanted.after.clone(), wanted.token);
    let request = editing::Request { task, edit, after, token };
    let retry = operation.map(|operation| Retry::of(operation, "task update", wanted));
    workspace.decide_once(
        actor,
        Observed::default(),
        retry.as_ref(),
        |_| true,
        |view, context| editing::update(view, &request, context),
    )
}

/// Takes a task. Whoever is visibly gone loses theirs first; what is in the way of a claim is
/// looked at before "no" is said.
pub fn take(
    workspace: &mut Workspace,
    actor: &Actor,
    wanted: &api::Take,
    operation: Option<&str>,
) -> Result<Taken, Failure> {
    let request = taking::Request {
        task: wanted.task.clone(),
        count: wanted.count,
        also: wanted.also,
        claim: wanted.claim,
        explain: wanted.explain,
    };
    let retry = operation.map(|operation| Retry::of(operation, "task take", wanted));
    let taken = |answer: &Answer| matches!(answer, Answer::Taken(_));
    if actor.session.is_some() {
        gating::look_by_itself(workspace, None);
        bury_owners(workspace, OWNERS_MAX)?;
    }
    let mut observed = Observed { head: work::head(workspace), ..Observed::default() };
    let mut looked_far = false;
    for look in 1.. {
        observed.complete = look > LOOKS_MAX;
        if request.claim {
            let paths = paths_in_view(workspace, actor, &observed, &request);
            observed.foreign_locks = foreign_locks(workspace, &paths);
        }
        let answer = workspace.decide_once(
            actor,
            observed.clone(),
            retry.as_ref(),
            taken,
            |view, context| taking::take(view, &request, context),
        );
        let again = match &answer {
            Err(Failure::Refused(Refusal::Unobserved { claims })) => {
                of_claims(workspace, claims, &mut observed)?;
                true
            }
            Err(Failure::Refused(Refusal::Task(refused))) => match &**refused {
                Refused::Owned { owner, .. } => bury(workspace, &owner.session.clone())?,
                _ => false,
            },
            Err(failure) => {
                let held = in_the_way(failure);
                !held.is_empty() && clear_the_way(workspace, &held, &mut observed)?
            }
            Ok(Answer::Nothing(nothing)) if !nothing.woken.is_empty() => true,
            Ok(Answer::Nothing(nothing)) if nothing.active > u64::from(OWNERS_MAX) => {
                !std::mem::replace(&mut looked_far, true)
                    && bury_owners(workspace, OWNERS_WIDE_MAX)?
            }
            Ok(_) => false,
        };
        if again && look <= LOOKS_MAX {
            continue;
        }
        return match answer? {
            Answer::Taken(taken) => Ok(*taken),
            Answer::Nothing(nothing) => Err(ending::nothing(nothing).into()),
        };
    }
    Err(Refusal::Empty.into())
}

/// The paths that a take would claim now, to look beside them for other tools' locks.
fn paths_in_view(
    workspace: &mut Workspace,
    actor: &Actor,
    observed: &Observed,
    request: &taking::Request,
) -> Vec<Resource> {
    let preview = taking::Request { claim: false, ..request.clone() };
    let seen = workspace.look(actor, observed.clone(), |view, context| {
        Ok(taking::take(view, &preview, context)?.1)
    });
    match seen {
        Ok(Answer::Taken(taken)) => taken.first.paths,
        // Whatever is wrong, the decision itself will say.
        Ok(Answer::Nothing(_)) | Err(_) => Vec::new(),
    }
}

/// Ends the sessions of owners whose process is visibly gone, so that their tasks are offered
/// again. True when anyone was ended.
fn bury_owners(workspace: &mut Workspace, limit: u32) -> Result<bool, Failure> {
    let (owners, overdue): (Vec<Session>, bool) =
        workspace.look(&Actor::default(), Observed::default(), |view, context| {
            Ok((owners(view, limit)?, is_overdue(view, context)?))
        })?;
    if overdue {
        handing::settle(workspace)?;
    }
    let mut buried = false;
    for session in owners.iter().filter(|session| session.life == sessions::Life::Live) {
        let dead = |process| life_of(&workspace.machine, process) == Life::Dead;
        if session.process.as_ref().is_some_and(dead) {
            buried |= bury(workspace, &session.session)?;
        }
    }
    Ok(buried)
}

/// Is there an offer that nobody took in time?
fn is_overdue(view: &dyn View, context: &Context) -> Result<bool, Refusal> {
    let due: Vec<Task> = scan(view, task::due(task::BY_OFFER, context.now, 1))?;
    Ok(!due.is_empty())
}

fn owners(view: &dyn View, limit: u32) -> Result<Vec<Session>, Refusal> {
    let mut ids: BTreeSet<SessionId> = BTreeSet::new();
    for task in scan::<Task>(view, task::all_of(task::BY_LEASE, limit))? {
        ids.extend(task.seats().map(|seat| seat.session.clone()));
    }
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let queries: Vec<Query> = ids.iter().map(|id| Query::get::<Session>(id.as_str())).collect();
    let mut sessions = Vec::with_capacity(ids.len());
    for rows in view.read(&queries)? {
        sessions.extend(only::<Session>(&rows)?);
    }
    Ok(sessions)
}

/// What the claims that were taken for a task would leave behind when they end with it.
pub(crate) fn left_by_task(workspace: &mut Workspace, text: &str) -> Result<Observed, Failure> {
    let Some(id) = TaskId::parse(text) else {
        return Ok(Observed::default());
    };
    let claims: Vec<Claim> =
        workspace.look(&Actor::default(), Observed::default(), |view, _| {
            let task = get::<Task>(view, id.as_str())?;
            let Some(owner) = task.and_then(|task| task.standing.owner) else {
                return Ok(Vec::new());
            };
            let mut claims: Vec<Claim> = scan(view, claim::of_session(&owner.session, CLAIMS_MAX))?;
            claims.retain(|claim| claim.task.as_deref() == Some(id.as_str()));
            Ok(claims)
        })?;
    let looks = claims.into_iter().map(|claim| (claim, Life::Unknown)).collect();
    Ok(Observed { claims: files::sight(workspace, looks)?, ..Observed::default() })
}

/// One decision about a task that may end what was claimed for it.
fn leave(
    workspace: &mut Workspace,
    actor: &Actor,
    task: &str,
    retry: Option<&Retry>,
    rule: impl FnOnce(&dyn View, &Context) -> Result<(Vec<Event>, Moved), Refusal>,
) -> Result<Moved, Failure> {
    let observed = left_by_task(workspace, task)?;
    workspace.decide_once(actor, observed, retry, |_| true, rule)
}

pub(crate) fn retry_of(
    operation: Option<&str>,
    verb: &str,
    wanted: &impl Serialize,
) -> Option<Retry> {
    operation.map(|operation| Retry::of(operation, verb, wanted))
}

pub fn done(
    workspace: &mut Workspace,
    actor: &Actor,
    wanted: &api::Done,
    operation: Option<&str>,
) -> Result<Moved, Failure> {
    let request = ending::Done {
        task: wanted.task.clone(),
        report_done: wanted.report_done.clone(),
        report_not_done: wanted.report_not_done.clone(),
        result: wanted.result.clone(),
        facts: evidence::gather(workspace, &wanted.task, wanted.commit.as_deref())?,
        token: wanted.token,
    };
    let retry = retry_of(operation, "task done", wanted);
    let came = leave(workspace, actor, &wanted.task, retry.as_ref(), |view, context| {
        ending::done(view, &request, context)
    });
    denying::noted(workspace, actor, (Deed::Done, &wanted.task), came)
}

pub fn fail(
    workspace: &mut Workspace,
    actor: &Actor,
    wanted: &api::Fail,
    operation: Option<&str>,
) -> Result<Moved, Failure> {
    let request = ending::Fail {
        task: wanted.task.clone(),
        why: wanted.why.clone(),
        class: wanted.class.map(Into::into).unwrap_or_default(),
        token: wanted.token,
    };
    let retry = retry_of(operation, "task fail", wanted);
    leave(workspace, actor, &wanted.task, retry.as_ref(), |view, context| {
        ending::fail(view, &request, context)
    })
}

pub fn park(
    workspace: &mut Workspace,
    actor: &Actor,
    wanted: &api::Park,
    operation: Option<&str>,
) -> Result<Moved, Failure> {
    let api::Park { task, next, back_in, token } = wanted.clone();
    let request = ending::Park { task, next, back_in, token };
    let retry = retry_of(operation, "task park", wanted);
    leave(workspace, actor, &wanted.task, retry.as_ref(), |view, context| {
        ending::park(view, &request, context)
    })
}

pub fn block(
    workspace: &mut Workspace,
    actor: &Actor,
    wanted: &api::Block,
    operation: Option<&str>,
) -> Result<Moved, Failure> {
    let api::Block { task, on, token } = wanted.clone();
    let request = ending::Block { task, on, token };
    let retry = retry_of(operation, "task block", wanted);
    leave(workspace, actor, &wanted.task, retry.as_ref(), |view, context| {
        ending::block(view, &request, context)
    })
}

fn change(wanted: &api::Change) -> ending::Change {
    let api::Change { task, why, token } = wanted.clone();
    ending::Change { task, why, token }
}

pub fn cancel(
    workspace: &mut Workspace,
    actor: &Actor,
    wanted: &api::Change,
    operation: Option<&str>,
) -> Result<Moved, Failure> {
    let request = change(wanted);
    let retry = retry_of(operation, "task cancel", wanted);
    leave(workspace, actor, &wanted.task, retry.as_ref(), |view, context| {
        ending::cancel(view, &request, context)
    })
}

pub fn reopen(
    workspace: &mut Workspace,
    actor: &Actor,
    wanted: &api::Change,
    operation: Option<&str>,
) -> Result<Moved, Failure> {
    let request = change(wanted);
    let retry = retry_of(operation, "task reopen", wanted);
    leave(workspace, actor, &wanted.task, retry.as_ref(), |view, context| {
        ending::reopen(view, &request, context)
    })
}
