//! The unfinished tasks as a graph: waves of what can run side by side, and the critical path.
//!
//! Owns reading them, by state and up to a limit; the order is worked out in
//! `baton_core::tasks::planning`.

use std::collections::BTreeMap;

use baton_core::context::{Actor, Observed};
use baton_core::id::TaskId;
use baton_core::task::{self, State, Task};
use baton_core::tasks::planning::plan;
use baton_core::tasks::reason_of;
use baton_core::view::scan;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::workspace::Workspace;

/// So many tasks are drawn at the most.
pub const TASKS_MAX: u32 = 5_000;

/// One task of the graph.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Node {
    pub task: TaskId,
    pub title: String,
    pub state: State,
    pub owner: Option<String>,
    pub reason: Option<String>,
    /// Unfinished tasks it waits for.
    pub after: Vec<TaskId>,
    /// The task it is a part of, or whose parts it follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<TaskId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<u16>,
    /// On the longest chain.
    pub critical: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Graph {
    /// What can run side by side, first what nothing holds.
    pub waves: Vec<Vec<Node>>,
    /// The longest chain, in the order of doing: no number of workers is faster.
    pub critical_path: Vec<TaskId>,
    /// There are more tasks than were drawn.
    pub more: bool,
}

pub fn graph(workspace: &mut Workspace) -> Result<Graph, Failure> {
    workspace.look(&Actor::default(), Observed::default(), |view, _| {
        let mut tasks: Vec<Task> = Vec::new();
        for state in State::ALL.into_iter().filter(|state| !state.is_finished()) {
            tasks.extend(scan::<Task>(view, task::in_state(state, TASKS_MAX + 1))?);
        }
        let limit = TASKS_MAX as usize;
        let more = tasks.len() > limit;
        tasks.truncate(limit);
        Ok(Graph { more, ..drawn(&tasks) })
    })
}

fn drawn(tasks: &[Task]) -> Graph {
    let known: BTreeMap<&TaskId, &Task> = tasks.iter().map(|task| (&task.task, task)).collect();
    let plan = plan(tasks);
    let node = |id: &TaskId| {
        let task = known.get(id)?;
        Some(Node {
            task: id.clone(),
            title: task.title.clone(),
            state: task.state(),
            owner: task.owner().map(|owner| owner.name.clone()),
            reason: reason_of(task),
            after: task.pending.clone(),
            parent: task.parent.clone(),
            phase: task.phase,
            critical: plan.critical_path.contains(id),
        })
    };
    let mut waves: Vec<Vec<Node>> =
        plan.waves.iter().map(|wave| wave.iter().filter_map(node).collect()).collect();
    if !plan.held.is_empty() {
        waves.push(plan.held.iter().filter_map(node).collect());
    }
    Graph { waves, critical_path: plan.critical_path.clone(), more: false }
}
