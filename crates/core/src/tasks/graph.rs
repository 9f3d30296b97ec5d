//! What comes after what: circles, and how much a task unblocks.
//!
//! Owns walking along dependencies, level by level, each level in one read. A circle is looked for
//! to the end; weights are an order of preference, so they stop at a depth and a number of tasks.

use std::collections::{BTreeMap, BTreeSet};

use super::refused::Refused;
use crate::event::{Event, Weight};
use crate::id::TaskId;
use crate::refusal::Refusal;
use crate::task::{BY_DEPENDENCY, Task};
use crate::view::{Query, View, only};

/// How far weights reach.
const DEPTH_MAX: usize = 32;
/// More unfinished tasks than this behind one are not searched for circles: refused instead.
const SEARCHED_MAX: usize = 20_000;
/// How many tasks one change weighs anew, and how many each of them counts.
const WEIGHED_MAX: usize = 1_000;
const COUNTED_MAX: usize = 5_000;

/// The tasks with these ids; unknown ones are left out.
pub(super) fn tasks(view: &dyn View, ids: &[TaskId]) -> Result<Vec<Task>, Refusal> {
    let queries: Vec<Query> = ids.iter().map(|id| Query::get::<Task>(id.as_str())).collect();
    if queries.is_empty() {
        return Ok(Vec::new());
    }
    let mut found = Vec::with_capacity(ids.len());
    for rows in view.read(&queries)? {
        found.extend(only::<Task>(&rows)?);
    }
    Ok(found)
}

/// Refuses when `task` would come after one that comes, through others, after `task`.
pub(super) fn refuse_circle(
    view: &dyn View,
    task: &TaskId,
    after: &[TaskId],
) -> Result<(), Refusal> {
    // Who brought us to each task, to tell the way back.
    let mut from: BTreeMap<TaskId, TaskId> = BTreeMap::new();
    let mut level: Vec<TaskId> = Vec::new();
    for id in after {
        if from.insert(id.clone(), task.clone()).is_none() {
            level.push(id.clone());
        }
    }
    while !level.is_empty() {
        if level.contains(task) {
            return Err(circle(task, &from).into());
        }
        let mut next = Vec::new();
        for (waiting, pending) in waits(view, &tasks(view, &level)?)? {
            if !from.contains_key(&pending) {
                from.insert(pending.clone(), waiting);
                next.push(pending);
            }
        }
        if from.len() > SEARCHED_MAX {
            return Err(Refused::TooMany { what: "tasks behind it", max: SEARCHED_MAX }.into());
        }
        level = next;
    }
    Ok(())
}

/// Who of these waits for whom: for what they come after, for their own parts and what follows
/// them, or for the parts that they follow themselves.
fn waits(view: &dyn View, found: &[Task]) -> Result<Vec<(TaskId, TaskId)>, Refusal> {
    let mut pairs = Vec::new();
    let mut tie = |waiting: &Task, on: &[TaskId]| {
        pairs.extend(on.iter().map(|on| (waiting.task.clone(), on.clone())));
    };
    let followed: Vec<TaskId> = found.iter().filter_map(|task| task.awaits.clone()).collect();
    let wholes = tasks(view, &followed)?;
    for task in found {
        tie(task, &task.pending);
        if let Some(split) = task.split.as_ref().filter(|split| split.is_open()) {
            tie(task, &split.parts);
            tie(task, split.then.as_slice());
        }
        let whole = wholes.iter().find(|whole| task.awaits.as_ref() == Some(&whole.task));
        if let Some(split) = whole.and_then(|whole| whole.split.as_ref()) {
            tie(task, &split.parts);
        }
    }
    Ok(pairs)
}

/// The way from `task` back to itself, in the direction of waiting.
fn circle(task: &TaskId, from: &BTreeMap<TaskId, TaskId>) -> Refused {
    let mut way = vec![task.clone()];
    let mut at = from.get(task);
    while let Some(before) = at.filter(|_| way.len() <= from.len() + 1) {
        way.push(before.clone());
        if before == task {
            break;
        }
        at = from.get(before);
    }
    way.reverse();
    Refused::Cycle { tasks: way }
}

/// Everything unfinished that comes before these, nearest first.
fn before(view: &dyn View, ids: &[TaskId]) -> Result<Vec<Task>, Refusal> {
    let mut seen: BTreeSet<TaskId> = ids.iter().cloned().collect();
    let mut level: Vec<TaskId> = seen.iter().cloned().collect();
    let mut found = Vec::new();
    for _ in 0..DEPTH_MAX {
        if level.is_empty() || found.len() >= WEIGHED_MAX {
            break;
        }
        let here = tasks(view, &level)?;
        level = Vec::new();
        for task in here {
            let fresh = task.pending.iter().filter(|id| seen.insert((*id).clone()));
            level.extend(fresh.cloned());
            found.push(task);
        }
    }
    found.truncate(WEIGHED_MAX);
    Ok(found)
}

/// A new task that nothing waits for yet: everything before it unblocks one more.
pub(super) fn weigh_leaf(view: &dyn View, pending: &[TaskId]) -> Result<Option<Event>, Refusal> {
    let weights = before(view, pending)?
        .into_iter()
        .map(|task| Weight { unblocks: task.unblocks.saturating_add(1), task: task.task });
    Ok(event(weights.collect()))
}

/// `task` is finished, and no longer counts for what was before it, nor what it led to.
pub(super) fn weigh_without(view: &dyn View, task: &Task) -> Result<Option<Event>, Refusal> {
    let gone = BTreeSet::from([task.task.clone()]);
    weigh(view, &task.pending, &gone, &BTreeMap::new())
}

/// `task` now also comes after `pending`.
pub(super) fn weigh_tied(
    view: &dyn View,
    task: &Task,
    pending: &[TaskId],
) -> Result<Option<Event>, Refusal> {
    let tied = |id: &TaskId| (id.clone(), vec![task.task.clone()]);
    let more: BTreeMap<TaskId, Vec<TaskId>> = pending.iter().map(tied).collect();
    weigh(view, pending, &BTreeSet::new(), &more)
}

/// New tasks come after these, and after each other: `waits` has everyone who waits for each.
pub(super) fn weigh_more(
    view: &dyn View,
    waits: &BTreeMap<TaskId, Vec<TaskId>>,
) -> Result<Option<Event>, Refusal> {
    let ids: Vec<TaskId> = waits.keys().cloned().collect();
    weigh(view, &ids, &BTreeSet::new(), waits)
}

/// How many wait for `task`, directly or through others, as far as `waits` tells.
pub(super) fn count_among(waits: &BTreeMap<TaskId, Vec<TaskId>>, task: &TaskId) -> u32 {
    let mut seen = BTreeSet::from([task]);
    let mut level = vec![task];
    for _ in 0..DEPTH_MAX {
        let waiting = level.iter().filter_map(|id| waits.get(*id)).flatten();
        level = waiting.filter(|one| seen.insert(*one)).collect();
        if level.is_empty() || seen.len() > COUNTED_MAX {
            break;
        }
    }
    u32::try_from(seen.len() - 1).unwrap_or(u32::MAX)
}

/// The ties behind these tasks were changed.
pub(super) fn weigh_anew(view: &dyn View, ids: &[TaskId]) -> Result<Option<Event>, Refusal> {
    weigh(view, ids, &BTreeSet::new(), &BTreeMap::new())
}

fn event(weights: Vec<Weight>) -> Option<Event> {
    (!weights.is_empty()).then_some(Event::TasksWeighed { weights })
}

/// Counts anew what each task before `ids` unblocks, without `gone` and with the ties in `more`.
fn weigh(
    view: &dyn View,
    ids: &[TaskId],
    gone: &BTreeSet<TaskId>,
    more: &BTreeMap<TaskId, Vec<TaskId>>,
) -> Result<Option<Event>, Refusal> {
    let mut below = Below { gone, more, known: BTreeMap::new() };
    let mut weights = Vec::new();
    for task in before(view, ids)? {
        let unblocks = below.count(view, &task.task)?;
        if unblocks != task.unblocks {
            weights.push(Weight { task: task.task, unblocks });
        }
    }
    Ok(event(weights))
}

/// Who waits for whom, as far as it was read.
struct Below<'a> {
    gone: &'a BTreeSet<TaskId>,
    more: &'a BTreeMap<TaskId, Vec<TaskId>>,
    known: BTreeMap<TaskId, Vec<TaskId>>,
}

impl Below<'_> {
    fn count(&mut self, view: &dyn View, task: &TaskId) -> Result<u32, Refusal> {
        let mut seen = BTreeSet::from([task.clone()]);
        let mut level = vec![task.clone()];
        for _ in 0..DEPTH_MAX {
            self.learn(view, &level)?;
            let mut next = Vec::new();
            for id in &level {
                let waiting = self.known.get(id).into_iter().chain(self.more.get(id)).flatten();
                let fresh =
                    waiting.filter(|one| !self.gone.contains(one) && seen.insert((*one).clone()));
                next.extend(fresh.cloned());
            }
            if next.is_empty() || seen.len() > COUNTED_MAX {
                break;
            }
            level = next;
        }
        Ok(u32::try_from(seen.len() - 1).unwrap_or(u32::MAX))
    }

    fn learn(&mut self, view: &dyn View, level: &[TaskId]) -> Result<(), Refusal> {
        let unknown: Vec<&TaskId> =
            level.iter().filter(|id| !self.known.contains_key(*id)).collect();
        let limit = u32::try_from(COUNTED_MAX).unwrap_or(u32::MAX);
        let queries: Vec<Query> =
            unknown.iter().map(|id| Query::equal(BY_DEPENDENCY, id.as_str(), limit)).collect();
        if queries.is_empty() {
            return Ok(());
        }
        for (id, rows) in unknown.into_iter().zip(view.read(&queries)?) {
            let waiting = rows.into_iter().map(|row| TaskId(row.key)).collect();
            self.known.insert(id.clone(), waiting);
        }
        Ok(())
    }
}
