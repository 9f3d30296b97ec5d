//! Votes in an open workspace.
//!
//! Owns nothing but the way to the rules of `baton_core::votes`: one decision, one look.

use baton_core::context::{Actor, Observed};
use baton_core::gates::refused::Refused;
use baton_core::id::TaskId;
use baton_core::view::get;
use baton_core::votes::{self, Ballot, Request, Voted, key_of};

use crate::api::reviews as api;
use crate::failure::Failure;
use crate::tasking::retry_of;
use crate::workspace::Workspace;

pub fn vote(
    workspace: &mut Workspace,
    actor: &Actor,
    wanted: &api::Vote,
    operation: Option<&str>,
) -> Result<Voted, Failure> {
    let api::Vote { subject, value, why } = wanted.clone();
    let request = Request { subject, value, why };
    let retry = retry_of(operation, "vote", wanted);
    workspace.decide_once(
        actor,
        Observed::default(),
        retry.as_ref(),
        |_| true,
        |view, context| votes::vote(view, &request, context),
    )
}

/// What was said about a subject.
pub fn votes(workspace: &mut Workspace, subject: &str) -> Result<Ballot, Failure> {
    workspace.look(&Actor::default(), Observed::default(), |view, _| {
        let named = TaskId::parse(subject).filter(|_| subject.starts_with(['t', 'T', '#']));
        let key = named.map_or_else(|| key_of(subject), |task| key_of(task.as_str()));
        let subject = || subject.chars().take(80).collect();
        Ok(get::<Ballot>(view, &key)?.ok_or_else(|| Refused::NoVotes { subject: subject() })?)
    })
}
