//! Notes in an open workspace: writing one down, reading them.
//!
//! Owns what a time in a request means on the store's clock; the rules are in
//! `baton_core::notes`.

use baton_core::context::{Actor, Observed};
use baton_core::notes::{self, Noted, Notes, Request, Wanted};

use crate::api::shared;
use crate::failure::Failure;
use crate::journal::{Since, since};
use crate::workspace::{Retry, Workspace};

pub fn add(
    workspace: &mut Workspace,
    actor: &Actor,
    wanted: &shared::Note,
    operation: Option<&str>,
) -> Result<Noted, Failure> {
    let request = Request {
        kind: wanted.kind,
        text: wanted.text.clone(),
        task: wanted.task.clone(),
        rule: wanted.rule,
    };
    let retry = operation.map(|operation| Retry::of(operation, "note", &request));
    workspace.decide_once(
        actor,
        Observed::default(),
        retry.as_ref(),
        |_| true,
        |view, context| notes::add(view, &request, context),
    )
}

pub fn list(workspace: &mut Workspace, wanted: &shared::Notes) -> Result<Notes, Failure> {
    let from = wanted.since.as_deref().and_then(|text| since(text).ok());
    workspace.look(&Actor::default(), Observed::default(), |view, context| {
        let (since, after) = match from {
            None => (None, None),
            Some(Since::Ago(span)) => (Some(context.now - span), None),
            Some(Since::Time(moment)) => (Some(moment), None),
            Some(Since::After(position)) => (None, Some(position)),
        };
        let (kind, task, limit) = (wanted.kind, wanted.task.clone(), wanted.limit);
        notes::list(view, &Wanted { kind, task, rule: wanted.rule, since, after, limit })
    })
}
