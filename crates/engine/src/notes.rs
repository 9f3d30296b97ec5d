//! Notes in an open workspace: writing one down, reading them.
//!
//! Owns what a time in a request means on the store's clock; the rules are in
//! `baton_core::notes`.

use baton_core::context::{Actor, Observed};
use baton_core::notes::{self, Noted, Notes, Request, Wanted};
use baton_core::refusal::Refusal;

use crate::api::shared;
use crate::failure::Failure;
use crate::journal::{Since, since};
use crate::rules;
use crate::workspace::{Retry, Workspace};

pub fn add(
    workspace: &mut Workspace,
    actor: &Actor,
    wanted: &shared::Note,
    operation: Option<&str>,
) -> Result<Noted, Failure> {
    if let Some(rule) = wanted.rule {
        known_rule(workspace, rule)?;
    }
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

/// A lesson about a rule that is not there would never be read. Where rules cannot be looked up it
/// is kept all the same.
fn known_rule(workspace: &mut Workspace, rule: u32) -> Result<(), Failure> {
    let rules = rules::in_force(workspace).ok().flatten().map(|found| found.rules.rules);
    let numbers: Vec<u32> = rules.unwrap_or_default().iter().map(|one| one.number).collect();
    if numbers.is_empty() || numbers.contains(&rule) {
        return Ok(());
    }
    let allowed: Vec<String> = numbers.iter().map(u32::to_string).collect();
    let (given, allowed) = (rule.to_string(), allowed.join(", "));
    Err(Refusal::OutOfRange { what: "rule", given, allowed }.into())
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
