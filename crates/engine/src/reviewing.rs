//! Handing in, judging and reviving tasks in an open workspace.
//!
//! Owns what surrounds the rules of `baton_core::tasks::reviewing`: that a commit exists is seen by
//! git before it is handed in. The rules decide in one transaction each.

use std::ffi::OsStr;

use baton_core::context::{Actor, Observed};
use baton_core::resource::Resource;
use baton_core::tasks::Moved;
use baton_core::tasks::ending;
use baton_core::tasks::reviewing::judging::{self, Judge, Judged};
use baton_core::tasks::reviewing::{self as rules, FROZEN_MAX};

use crate::api::reviews as api;
use crate::failure::Failure;
use crate::gating;
use crate::git::{Git, Oid};
use crate::resources::literal;
use crate::tasking::{left_by_task, retry_of};
use crate::workspace::Workspace;

pub fn submit(
    workspace: &mut Workspace,
    actor: &Actor,
    wanted: &api::Submit,
    operation: Option<&str>,
) -> Result<Moved, Failure> {
    let commit = gating::commit(workspace, &wanted.commit)?;
    let report = match (&wanted.report_done, &wanted.report_not_done) {
        (Some(done), Some(not_done)) => Some((done.clone(), not_done.clone())),
        _ => None,
    };
    let request = rules::Submit {
        task: wanted.task.clone(),
        touched: touched(workspace, &commit)?,
        commit,
        to: wanted.to.clone(),
        report,
        token: wanted.token,
    };
    let observed = left_by_task(workspace, &wanted.task)?;
    let retry = retry_of(operation, "task submit", wanted);
    workspace.decide_once(
        actor,
        observed,
        retry.as_ref(),
        |_| true,
        |view, context| rules::submit(view, &request, context),
    )
}

/// What the commit changed, as resources of this workspace.
fn touched(workspace: &Workspace, commit: &str) -> Result<Vec<Resource>, Failure> {
    let Some(oid) = Oid::parse(commit) else {
        return Ok(Vec::new());
    };
    let place = &workspace.place;
    let names = Git::in_tree(&place.root)?.changed_by(&oid)?;
    let located = |name: &String| literal(place, &place.root, OsStr::new(name)).ok();
    Ok(names.iter().take(FROZEN_MAX).filter_map(located).flatten().collect())
}

pub fn withdraw(
    workspace: &mut Workspace,
    actor: &Actor,
    wanted: &api::Withdraw,
    operation: Option<&str>,
) -> Result<Moved, Failure> {
    let api::Withdraw { task, why, token } = wanted.clone();
    let request = rules::Withdraw { task, why, token };
    let retry = retry_of(operation, "task withdraw", wanted);
    workspace.decide_once(
        actor,
        Observed::default(),
        retry.as_ref(),
        |_| true,
        |view, context| rules::withdraw(view, &request, context),
    )
}

pub fn approve(
    workspace: &mut Workspace,
    actor: &Actor,
    wanted: &api::Approve,
    operation: Option<&str>,
) -> Result<Judged, Failure> {
    let api::Approve { task, commit, why, token } = wanted.clone();
    let request = Judge { task, commit, approves: true, text: why, token };
    judge(workspace, actor, &request, operation)
}

pub fn reject(
    workspace: &mut Workspace,
    actor: &Actor,
    wanted: &api::Reject,
    operation: Option<&str>,
) -> Result<Judged, Failure> {
    let api::Reject { task, feedback, commit, token } = wanted.clone();
    let request = Judge { task, commit, approves: false, text: Some(feedback), token };
    judge(workspace, actor, &request, operation)
}

fn judge(
    workspace: &mut Workspace,
    actor: &Actor,
    request: &Judge,
    operation: Option<&str>,
) -> Result<Judged, Failure> {
    let retry = retry_of(operation, "task judge", request);
    workspace.decide_once(
        actor,
        Observed::default(),
        retry.as_ref(),
        |_| true,
        |view, context| judging::judge(view, request, context),
    )
}

pub fn revive(
    workspace: &mut Workspace,
    actor: &Actor,
    wanted: &api::Revive,
    operation: Option<&str>,
) -> Result<Moved, Failure> {
    let api::Revive { task, attempts, why } = wanted.clone();
    let request = ending::Revive { task, attempts, why };
    let retry = retry_of(operation, "task revive", wanted);
    workspace.decide_once(
        actor,
        Observed::default(),
        retry.as_ref(),
        |_| true,
        |view, context| ending::revive(view, &request, context),
    )
}
