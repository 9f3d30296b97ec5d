//! Dividing a task, and reading what came of its parts.
//!
//! Owns the file of parts (JSON, with line and column of what is wrong in it) and the results as
//! they are told: read from the parts themselves, in order, so that they are never out of step.

use std::path::Path;

use baton_core::context::{Actor, Observed};
use baton_core::id::TaskId;
use baton_core::refusal::Refusal;
use baton_core::task::dossier::Dossier;
use baton_core::task::split::{Join, OnFailure, Outcome, Split};
use baton_core::task::{State, Task};
use baton_core::tasks::splitting::{self, DEPTH_MAX, Divided, Part, Request};
use baton_core::tasks::{near, reason_of};
use baton_core::view::{Query, View, get, only};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{left_by_task, retry_of};
use crate::api::tasks as api;
use crate::failure::Failure;
use crate::resources::named;
use crate::workspace::Workspace;

/// A file of parts is no larger.
pub const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// The parts that a file names.
pub fn parts_of(path: &Path, text: &str) -> Result<Vec<api::Child>, Failure> {
    serde_json::from_str(text).map_err(|error| Failure::Malformed {
        path: path.to_owned(),
        line: error.line(),
        column: error.column(),
        detail: said(&error.to_string()),
    })
}

/// What is wrong, without where: that is told apart.
fn said(error: &str) -> String {
    let what = error.rsplit_once(" at line ").map_or(error, |(what, _)| what);
    what.replace("expected struct Child", "expected a part such as {\"title\": \"…\"}")
}

pub fn split(
    workspace: &mut Workspace,
    actor: &Actor,
    cwd: &Path,
    wanted: &api::Split,
    operation: Option<&str>,
) -> Result<Divided, Failure> {
    let mut parts = Vec::with_capacity(wanted.children.len());
    for child in &wanted.children {
        let api::Child { title, body, paths, role, priority, key } = child.clone();
        let paths = named(&workspace.place, cwd, &paths)?;
        parts.push(Part { title, body, paths, role, priority, key });
    }
    let request = Request {
        task: wanted.task.clone(),
        parts,
        sequence: wanted.sequence,
        join: wanted.join.unwrap_or(Join::All),
        on_failure: wanted.on_failure.unwrap_or(OnFailure::Continue),
        then: wanted.then.clone(),
        interface: wanted.interface.clone(),
        token: wanted.token,
    };
    let retry = retry_of(operation, "task split", wanted);
    let observed = left_by_task(workspace, &wanted.task)?;
    workspace.decide_once(
        actor,
        observed,
        retry.as_ref(),
        |_| true,
        |view, context| splitting::split(view, &request, context),
    )
}

/// What came of one part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PartResult {
    pub task: TaskId,
    pub title: String,
    pub state: State,
    /// It has ended, however.
    pub ended: bool,
    /// Why it stands where it stands.
    pub reason: Option<String>,
    pub attempts_used: u32,
    pub report_done: Option<String>,
    pub report_not_done: Option<String>,
    pub result: Option<Value>,
    /// The name of what the parts must keep to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface: Option<String>,
    /// What came of its own parts, when it was divided itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<PartResult>,
}

/// What came of a divided task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Results {
    pub task: TaskId,
    pub title: String,
    pub state: State,
    pub join: Join,
    pub on_failure: OnFailure,
    pub sequence: bool,
    /// Nothing while the parts are not joined.
    pub outcome: Option<Outcome>,
    pub done: usize,
    pub failed: usize,
    pub cancelled: usize,
    /// Parts that have not ended.
    pub left: usize,
    /// In the order in which they were named.
    pub parts: Vec<PartResult>,
    /// What follows the parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub then: Option<PartResult>,
}

/// The results of a divided task; of the one that follows parts, theirs.
pub fn results(workspace: &mut Workspace, text: &str) -> Result<Results, Failure> {
    workspace.look(&Actor::default(), Observed::default(), |view, _| {
        let id = TaskId::parse(text).map(|id| id.0).unwrap_or_default();
        let Some(task) = get::<Task>(view, &id)? else {
            return Err(near::unknown(view, text)?);
        };
        match of_split(view, &task)? {
            Some(results) => Ok(results),
            None => Err(splitting::not_divided(&task)),
        }
    })
}

/// The results that a task brings along: those of its own parts, or of the parts it follows.
pub(super) fn of_split(view: &dyn View, task: &Task) -> Result<Option<Results>, Refusal> {
    let whole = match (&task.split, &task.parent) {
        (Some(_), _) => Some(task.clone()),
        (None, Some(parent)) => get::<Task>(view, parent.as_str())?
            .filter(|whole| whole.split.as_ref().is_some_and(|one| one.follows(&task.task))),
        (None, None) => None,
    };
    let Some(whole) = whole else { return Ok(None) };
    let Some(split) = whole.split.as_deref() else { return Ok(None) };
    let parts = parts(view, split, DEPTH_MAX)?;
    let then = match &split.then {
        Some(then) => read(view, std::slice::from_ref(then), 0)?.pop(),
        None => None,
    };
    let count = |state| parts.iter().filter(|part| part.ended && part.state == state).count();
    Ok(Some(Results {
        state: whole.state(),
        join: split.join,
        on_failure: split.on_failure,
        sequence: split.sequence,
        outcome: split.outcome,
        done: count(State::Done),
        failed: split.count(State::Failed),
        cancelled: count(State::Cancelled),
        left: parts.iter().filter(|part| !part.ended).count(),
        parts,
        then,
        task: whole.task,
        title: whole.title,
    }))
}

fn parts(view: &dyn View, split: &Split, depth: usize) -> Result<Vec<PartResult>, Refusal> {
    read(view, &split.parts, depth)
}

/// Both records of each task in one batch, then their own parts.
fn read(view: &dyn View, ids: &[TaskId], depth: usize) -> Result<Vec<PartResult>, Refusal> {
    let of = |id: &TaskId| [Query::get::<Task>(id.as_str()), Query::get::<Dossier>(id.as_str())];
    let queries: Vec<Query> = ids.iter().flat_map(of).collect();
    let answers = view.read(&queries)?;
    let mut found = Vec::with_capacity(ids.len());
    for pair in answers.chunks(2) {
        let [task, dossier] = pair else { continue };
        let Some(task) = only::<Task>(task)?.pop() else { continue };
        let report = only::<Dossier>(dossier)?.pop().and_then(|dossier| dossier.report);
        let parts = match task.split.as_deref().filter(|_| depth > 0) {
            Some(split) => parts(view, split, depth - 1)?,
            None => Vec::new(),
        };
        let (report_done, report_not_done, result) = match report {
            Some(report) => (Some(report.done), Some(report.not_done), report.result),
            None => (None, None, None),
        };
        found.push(PartResult {
            state: task.state(),
            ended: task.standing.ended().is_some(),
            reason: reason_of(&task),
            attempts_used: task.standing.attempts_used,
            report_done,
            report_not_done,
            result,
            parts,
            interface: task.interface,
            task: task.task,
            title: task.title,
        });
    }
    Ok(found)
}
