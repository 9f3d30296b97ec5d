//! In which order unfinished tasks can be done: waves of what can run side by side, and the longest
//! chain, which no number of workers shortens.
//!
//! Owns the computation over tasks that were read; refuses to know where they come from. What holds
//! a task is what its records say: tasks it comes after, its parts, earlier phases.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::TaskId;
use crate::task::Task;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// What can run side by side, first what nothing holds.
    pub waves: Vec<Vec<TaskId>>,
    /// The longest chain, in the order of doing.
    pub critical_path: Vec<TaskId>,
    /// What waits for something that is not among the tasks, or in a circle.
    pub held: Vec<TaskId>,
}

/// Plans these tasks; finished ones among them hold nothing.
pub fn plan(tasks: &[Task]) -> Plan {
    let mut open: Vec<&Task> = tasks.iter().filter(|task| !task.state().is_finished()).collect();
    open.sort_by_key(|task| task.order());
    let web = Web::of(&open);
    let depth = web.depths();
    let mut waves: Vec<Vec<TaskId>> = Vec::new();
    let mut held = Vec::new();
    let mut last: Option<(usize, usize)> = None;
    for (place, task) in open.iter().enumerate() {
        let Some((level, _)) = depth[place] else {
            held.push(task.task.clone());
            continue;
        };
        if waves.len() < level {
            waves.resize(level, Vec::new());
        }
        waves[level - 1].push(task.task.clone());
        if last.is_none_or(|(deepest, _)| level > deepest) {
            last = Some((level, place));
        }
    }
    let mut critical_path = Vec::new();
    let mut at = last.map(|(_, place)| place);
    while let Some(place) = at {
        critical_path.extend(open.get(place).map(|task| task.task.clone()));
        at = depth[place].and_then(|(_, before)| before);
    }
    critical_path.reverse();
    Plan { waves, critical_path, held }
}

/// Who waits for whom, by place: the tasks first, then one place for the end of each phase.
struct Web {
    tasks: usize,
    /// What each place waits for.
    before: Vec<Vec<usize>>,
    /// What waits for each place.
    behind: Vec<Vec<usize>>,
}

/// How deep a place lies, and what comes last before it.
type Depth = Option<(usize, Option<usize>)>;

impl Web {
    fn of(open: &[&Task]) -> Self {
        let places: BTreeMap<&TaskId, usize> =
            open.iter().enumerate().map(|(place, task)| (&task.task, place)).collect();
        let phases: BTreeSet<u16> = open.iter().filter_map(|task| task.phase).collect();
        let phases: Vec<u16> = phases.into_iter().collect();
        let count = open.len() + phases.len();
        let mut before: Vec<Vec<usize>> = vec![Vec::new(); count];
        for (place, task) in open.iter().enumerate() {
            // What is not among them has ended.
            let ties = waits(task, |id| places.get(id).map(|place| open[*place]));
            before[place].extend(ties.iter().filter_map(|id| places.get(id)).copied());
            let phase = task.phase.and_then(|phase| phases.binary_search(&phase).ok());
            if let Some(phase) = phase {
                before[open.len() + phase].push(place);
                before[place].extend(phase.checked_sub(1).map(|earlier| open.len() + earlier));
            }
        }
        let mut behind: Vec<Vec<usize>> = vec![Vec::new(); count];
        for (place, ties) in before.iter().enumerate() {
            ties.iter().for_each(|tie| behind[*tie].push(place));
        }
        Self { tasks: open.len(), before, behind }
    }

    /// The depth of each place, from 1; nothing for those in a circle.
    fn depths(&self) -> Vec<Depth> {
        let mut left: Vec<usize> = self.before.iter().map(Vec::len).collect();
        let mut depth: Vec<Depth> = vec![None; left.len()];
        let mut ready: Vec<usize> = (0..left.len()).filter(|place| left[*place] == 0).collect();
        while let Some(place) = ready.pop() {
            let deepest = self.before[place].iter().filter_map(|before| {
                let (level, through) = depth[*before]?;
                // The end of a phase is no task: what came last in it stands in its place.
                Some((level, if *before < self.tasks { Some(*before) } else { through }))
            });
            let last = deepest.max_by_key(|(level, before)| (*level, std::cmp::Reverse(*before)));
            let own = usize::from(place < self.tasks);
            depth[place] = Some(match last {
                Some((level, before)) => (level + own, before),
                None => (own, None),
            });
            for behind in &self.behind[place] {
                left[*behind] -= 1;
                if left[*behind] == 0 {
                    ready.push(*behind);
                }
            }
        }
        depth
    }
}

/// What a task waits for.
fn waits<'a>(task: &Task, known: impl Fn(&TaskId) -> Option<&'a Task>) -> BTreeSet<TaskId> {
    let mut waits: BTreeSet<TaskId> = task.pending.iter().cloned().collect();
    let mut parts_of = |whole: &Task, then: bool| {
        let Some(split) = whole.split.as_ref().filter(|split| split.is_open()) else { return };
        let left = split.parts.iter().filter(|part| !split.ended.contains_key(part));
        waits.extend(left.cloned());
        waits.extend(split.then.iter().filter(|_| then).cloned());
    };
    parts_of(task, true);
    if let Some(whole) = task.awaits.as_ref().and_then(known) {
        parts_of(whole, false);
    }
    waits
}
