//! Filing many tasks in one decision, as they stand in files.
//!
//! Owns what an import may be: all of it is filed or nothing. Invariants: each item has a key, and
//! one key is one task, so the same file read twice files nothing; an item that names a task of
//! this workspace is that task; items never wait for each other in a circle, because they are filed
//! in an order in which each finds what it comes after.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::adding::{self, made};
use super::refused::{Brief, Refused};
use super::{AFTER_MAX, TEXT_BYTES_MAX, caller_with, fits, graph};
use crate::context::Context;
use crate::event::Event;
use crate::id::TaskId;
use crate::notices::Notice;
use crate::refusal::Refusal;
use crate::roles::giving;
use crate::scene::Caller;
use crate::task::tally::Tally;
use crate::task::{self, Standing, State, Task};
use crate::view::{Query, Row, View, only};

/// The most tasks that one import files: it is one transaction, which others wait for.
pub const FILED_MAX: usize = 2_000;
/// The most items that are looked at, with those that are tasks already.
pub const ITEMS_MAX: usize = 20_000;
/// How many questions the store is asked at once.
const BATCH: usize = 1_000;

/// What an item comes after.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum Tie {
    /// Another item of the same import.
    Item(usize),
    /// What was filed under this key before.
    Key(String),
    /// A task of this workspace.
    Task(String),
}

/// Where an item stands that is not simply open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub enum Hold {
    /// It waits for something that no task stands for.
    Blocked(String),
    /// It was put aside.
    Parked,
}

/// One task to be filed. Its request has a key, and nothing in `after`: that is in `ties`.
#[derive(Clone, Debug, Serialize)]
pub struct Item {
    pub request: adding::Request,
    pub ties: Vec<Tie>,
    pub hold: Option<Hold>,
    /// The task of this workspace that it is, if there is one.
    pub own: Option<String>,
}

/// What became of an item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Settled {
    pub task: TaskId,
    pub state: State,
    /// It was there before; nothing was changed.
    pub known: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Filed {
    /// One for each item, in their order.
    pub items: Vec<Settled>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<Notice>,
}

/// Is this item one that may be filed, whatever is in the store?
pub fn check(item: &Item) -> Result<(), Refusal> {
    adding::validate(&item.request)?;
    if item.request.key.is_none() {
        return Err(Refused::SaysNothing { what: "key" }.into());
    }
    if let Some(Hold::Blocked(on)) = &item.hold {
        fits("reason", Some(on), TEXT_BYTES_MAX)?;
    }
    adding::many("tasks to come after", item.ties.len(), AFTER_MAX)
}

/// An order in which each item finds what it comes after, or the items that wait for each other,
/// each before the one it waits for.
pub fn order(items: &[Item]) -> Result<Vec<usize>, Vec<usize>> {
    let ties = |place: usize| {
        items[place].ties.iter().filter_map(|tie| match tie {
            Tie::Item(other) if *other < items.len() => Some(*other),
            _ => None,
        })
    };
    let mut order = Vec::with_capacity(items.len());
    let mut settled = vec![false; items.len()];
    for start in 0..items.len() {
        // The way down to the item at hand, each with what is left to look at. No recursion: a
        // file may tie thousands of items into one chain.
        let mut way: Vec<(usize, Vec<usize>)> = Vec::new();
        let mut on_way: BTreeSet<usize> = BTreeSet::new();
        if !settled[start] {
            way.push((start, ties(start).collect()));
            on_way.insert(start);
        }
        while let Some((here, left)) = way.last_mut() {
            let here = *here;
            match left.pop() {
                Some(next) if on_way.contains(&next) => {
                    let circle = way.iter().map(|(place, _)| *place);
                    let mut circle: Vec<usize> =
                        circle.skip_while(|place| *place != next).collect();
                    circle.push(next);
                    return Err(circle);
                }
                Some(next) if !settled[next] => {
                    way.push((next, ties(next).collect()));
                    on_way.insert(next);
                }
                Some(_) => {}
                None => {
                    settled[here] = true;
                    on_way.remove(&here);
                    order.push(here);
                    way.pop();
                }
            }
        }
    }
    Ok(order)
}

/// Files every item that is not there yet.
pub fn import(
    view: &dyn View,
    items: &[Item],
    context: &Context,
) -> Result<(Vec<Event>, Filed), Refusal> {
    adding::many("tasks to look at", items.len(), ITEMS_MAX)?;
    items.iter().try_for_each(check)?;
    let order = order(items).map_err(|circle| {
        let keys = circle.iter().map(|place| items[*place].request.key.clone().unwrap_or_default());
        Refusal::from(Refused::Cycle { tasks: keys.map(TaskId).collect() })
    })?;
    refuse_twice(items)?;
    let roles: BTreeSet<&str> =
        items.iter().filter_map(|item| item.request.role.as_deref()).collect();
    roles.into_iter().try_for_each(|role| giving::known(view, Some(role)))?;
    let around = Around::read(view, items, context)?;
    let new = around.known.iter().filter(|known| known.is_none()).count();
    adding::many("tasks to import", new, FILED_MAX)?;
    let mut maker = Maker { around: &around, items, filed: BTreeMap::new() };
    for place in &order {
        maker.file(*place, context)?;
    }
    let Maker { mut filed, .. } = maker;
    let more = weigh(&mut filed);
    let weighed = graph::weigh_more(view, &more)?;
    let mut settled = Vec::with_capacity(items.len());
    for place in 0..items.len() {
        settled.push(match (filed.get(&place), &around.known[place]) {
            (Some(task), _) => {
                let held = around.tally.holds_back(task.phase) && task.state() == State::Open;
                let state = if held { State::Blocked } else { task.state() };
                Settled { task: task.task.clone(), state, known: false }
            }
            (None, Some(task)) => {
                Settled { task: task.task.clone(), state: task.state(), known: true }
            }
            (None, None) => return Err(Refused::SaysNothing { what: "item" }.into()),
        });
    }
    // Numbers are in the order of the file; in the journal each comes after what it waits for.
    let mut events: Vec<Event> = Vec::with_capacity(filed.len() + 2);
    for place in order {
        if let Some(task) = filed.remove(&place) {
            let body = items[place].request.body.clone();
            events.push(Event::TaskAdded { task: Box::new(task), body });
        }
    }
    events.extend(weighed);
    let caller = around.caller.as_ref();
    events.extend(caller.iter().flat_map(|caller| caller.activity(context, &[])));
    let notices = caller.map(|caller| caller.notices.clone()).unwrap_or_default();
    Ok((events, Filed { items: settled, notices }))
}

fn refuse_twice(items: &[Item]) -> Result<(), Refusal> {
    let mut keys = BTreeSet::new();
    for key in items.iter().filter_map(|item| item.request.key.as_ref()) {
        if !keys.insert(key) {
            return Err(Refused::KeyTaken { key: key.clone(), task: None }.into());
        }
    }
    Ok(())
}

/// What an import looks at.
struct Around {
    caller: Option<Caller>,
    tally: Tally,
    /// The task that an item is already, for each item.
    known: Vec<Option<Task>>,
    /// What items come after that is in the store, by the tie.
    before: BTreeMap<String, Option<Task>>,
}

impl Around {
    fn read(view: &dyn View, items: &[Item], context: &Context) -> Result<Self, Refusal> {
        let mut queries = vec![Query::get::<Tally>(Tally::KEY)];
        for item in items {
            let key = item.request.key.clone().unwrap_or_default();
            queries.push(Query::equal(task::BY_KEY, &key, 1));
            let own = item.own.as_deref().and_then(TaskId::parse).map(|id| id.0);
            queries.push(Query::get::<Task>(own.unwrap_or_default()));
        }
        let mut names: BTreeSet<(bool, String)> = BTreeSet::new();
        for tie in items.iter().flat_map(|item| &item.ties) {
            match tie {
                Tie::Item(_) => false,
                Tie::Key(key) => names.insert((true, key.clone())),
                Tie::Task(task) => names.insert((false, task.clone())),
            };
        }
        for (is_key, name) in &names {
            queries.push(match is_key {
                true => Query::equal(task::BY_KEY, name, 1),
                false => Query::get::<Task>(TaskId::parse(name).map(|id| id.0).unwrap_or_default()),
            });
        }
        let (head, rest) = queries.split_at(queries.len().min(BATCH));
        let (caller, mut answers) = caller_with(view, head, context)?;
        for batch in rest.chunks(BATCH) {
            answers.extend(view.read(batch)?);
        }
        let first = |rows: &[Row]| only::<Task>(rows).map(|mut found| found.pop());
        let mut answers = answers.into_iter();
        let tally = answers.next().unwrap_or_default();
        let mut known = Vec::with_capacity(items.len());
        for _ in items {
            let by_key = first(&answers.next().unwrap_or_default())?;
            let by_id = first(&answers.next().unwrap_or_default())?;
            known.push(by_key.or(by_id));
        }
        let mut before = BTreeMap::new();
        for ((_, name), rows) in names.into_iter().zip(answers) {
            before.insert(name, first(&rows)?);
        }
        Ok(Self { caller, tally: only(&tally)?.pop().unwrap_or_default(), known, before })
    }
}

struct Maker<'a> {
    around: &'a Around,
    items: &'a [Item],
    filed: BTreeMap<usize, Task>,
}

impl Maker<'_> {
    fn file(&mut self, place: usize, context: &Context) -> Result<(), Refusal> {
        if self.around.known[place].is_some() {
            return Ok(());
        }
        let item = &self.items[place];
        let mut after: Vec<Task> = Vec::with_capacity(item.ties.len());
        for tie in &item.ties {
            let found = match tie {
                Tie::Item(other) => {
                    self.filed.get(other).or(self.around.known.get(*other).and_then(Option::as_ref))
                }
                Tie::Key(name) | Tie::Task(name) => {
                    self.around.before.get(name).and_then(Option::as_ref)
                }
            };
            let Some(found) = found else {
                let task = match tie {
                    Tie::Item(other) => other.to_string(),
                    Tie::Key(name) | Tie::Task(name) => name.clone(),
                };
                return Err(Refused::Unknown { task, near: Vec::<Brief>::new() }.into());
            };
            if after.iter().all(|one| one.task != found.task) {
                after.push(found.clone());
            }
        }
        let new = self.around.known[..place].iter().filter(|known| known.is_none()).count();
        let made_before = self.around.tally.made.saturating_add(new as u64);
        let tally = Tally { made: made_before, ..Tally::default() };
        let mut task = made(&item.request, &tally, &after, context);
        let caller = self.around.caller.as_ref();
        task.created_by = caller.map(|caller| caller.holder(context));
        match &item.hold {
            Some(Hold::Blocked(on)) => {
                let blocked_on = Some(on.clone());
                let standing = Standing::new(State::Blocked, context.now);
                task.standing = Standing { blocked_on, ..standing };
            }
            Some(Hold::Parked) => task.standing = Standing::new(State::Parked, context.now),
            None => {}
        }
        self.filed.insert(place, task);
        Ok(())
    }
}

/// Says of each new task how many others wait for it, and gives who waits for what is in the store
/// already.
fn weigh(filed: &mut BTreeMap<usize, Task>) -> BTreeMap<TaskId, Vec<TaskId>> {
    let mut waits: BTreeMap<TaskId, Vec<TaskId>> = BTreeMap::new();
    for task in filed.values() {
        for before in &task.pending {
            waits.entry(before.clone()).or_default().push(task.task.clone());
        }
    }
    for task in filed.values_mut() {
        task.unblocks = graph::count_among(&waits, &task.task);
    }
    waits
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(ties: &[&[usize]]) -> Vec<Item> {
        let item = |ties: &&[usize]| Item {
            request: adding::Request { title: "x".to_owned(), ..adding::Request::default() },
            ties: ties.iter().map(|place| Tie::Item(*place)).collect(),
            hold: None,
            own: None,
        };
        ties.iter().map(item).collect()
    }

    #[test]
    fn each_item_finds_what_it_comes_after() {
        let order = order(&items(&[&[2, 1], &[], &[1]])).unwrap();
        assert_eq!(order, [1, 2, 0]);
    }

    #[test]
    fn a_circle_is_told_in_the_direction_of_waiting() {
        assert_eq!(order(&items(&[&[], &[3], &[1], &[2, 0]])), Err(vec![1, 3, 2, 1]));
        assert_eq!(order(&items(&[&[0]])), Err(vec![0, 0]));
    }

    #[test]
    fn a_long_chain_needs_no_deep_stack() {
        let ties: Vec<Vec<usize>> = (0..100_000_usize).map(|place| vec![place + 1]).collect();
        let ties: Vec<&[usize]> = ties.iter().map(Vec::as_slice).collect();
        assert_eq!(order(&items(&ties)).map(|order| order.len()), Ok(100_000));
    }
}
