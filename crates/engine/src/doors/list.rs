//! A client's own list of tasks, and the tasks of ours that stand for its entries.
//!
//! Owns the pairing: an entry is one task, by a key of the client's session and the entry's id. It
//! belongs to the session from the start, because the agent that wrote it down will do it: nobody
//! else shall begin the same.

use std::path::Path;

use baton_core::context::{Actor, Observed};
use baton_core::task::{BY_KEY, Task};
use baton_core::view::{Query, scan};

use crate::api::tasks as api;
use crate::failure::Failure;
use crate::tasking;
use crate::workspace::Workspace;

/// An entry of the list.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    pub client: &'a str,
    /// The client's id of its session.
    pub session: &'a str,
    pub id: &'a str,
    pub title: &'a str,
    pub text: &'a str,
}

impl Entry<'_> {
    fn key(&self) -> String {
        format!("{}:{}:{}", self.client, self.session, self.id)
    }
}

/// The agent wrote it down: it is filed, and taken by its session.
pub fn created(
    workspace: &mut Workspace,
    actor: &Actor,
    cwd: &Path,
    entry: Entry<'_>,
) -> Result<(), Failure> {
    let wanted = api::Add {
        title: entry.title.to_owned(),
        body: (!entry.text.is_empty()).then(|| entry.text.to_owned()),
        key: Some(entry.key()),
        ..api::Add::default()
    };
    let added = tasking::add(workspace, actor, cwd, &wanted, None)?;
    if !added.known {
        let task = Some(added.task.to_string());
        let wanted = api::Take { task, count: 1, also: true, ..api::Take::default() };
        tasking::take(workspace, actor, &wanted, None)?;
    }
    Ok(())
}

/// The agent says that it is done. A refusal is the answer that keeps it open.
pub fn completed(
    workspace: &mut Workspace,
    actor: &Actor,
    entry: Entry<'_>,
) -> Result<(), Failure> {
    let Some(task) = owned(workspace, actor, entry)? else { return Ok(()) };
    let wanted = api::Done {
        task: task.task.to_string(),
        report_done: entry.title.to_owned(),
        report_not_done: "not said: finished in the client's own list".to_owned(),
        ..api::Done::default()
    };
    tasking::done(workspace, actor, &wanted, None).map(|_| ())
}

/// The agent took it off its list: nobody does it any more.
pub fn dropped(workspace: &mut Workspace, actor: &Actor, entry: Entry<'_>) -> Result<(), Failure> {
    let Some(task) = owned(workspace, actor, entry)? else { return Ok(()) };
    let why = Some("taken off the client's own list".to_owned());
    let wanted = api::Change { task: task.task.to_string(), why, token: None };
    tasking::cancel(workspace, actor, &wanted, None).map(|_| ())
}

/// The task of an entry. Nothing where the entry was written down before we were there, or its task
/// was finished by other means.
fn owned(
    workspace: &mut Workspace,
    actor: &Actor,
    entry: Entry<'_>,
) -> Result<Option<Task>, Failure> {
    let key = entry.key();
    let found: Vec<Task> = workspace.look(actor, Observed::default(), |view, _| {
        Ok(scan(view, Query::equal(BY_KEY, &key, 1))?)
    })?;
    Ok(found.into_iter().find(|task| task.owner().is_some()))
}
