//! Random stories about tasks in parts: a join comes once, when it is met and not before.
//!
//! Parts end in any order, by results, failures, deaths and leases that run out; they are divided
//! again, cancelled and reopened. After each step the counts kept by events equal a look at the
//! parts by hand.

use std::collections::BTreeMap;

use baton_core::event::Event;
use baton_core::id::TaskId;
use baton_core::task::split::{Join, OnFailure, Outcome, Split, Stage};
use baton_core::task::{Move, State, Task};
use baton_core::tasks::adding;
use baton_core::tasks::ending::Class;
use baton_core::tasks::splitting::Request;
use baton_core::tasks::taking;
use baton_core::time::Span;
use proptest::prelude::*;
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest, prop_state_machine};

use crate::backlog::{best, dividing, filing, this};
use crate::task_model::{assert_counts, assert_weights};
use crate::world::World;

const SESSIONS: &[&str] = &["ann", "bob", "cat"];
const TITLES: &[&str] = &["one a", "two b", "three c", "four d"];

prop_state_machine! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        max_shrink_iters: 20_000,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_join_comes_exactly_once(sequential 1..100 => Stories);
}

#[derive(Clone, Debug)]
pub(crate) enum Act {
    Add { after: Option<usize> },
    Split { task: usize, parts: usize, join: Join, stop: bool, sequence: bool, then: bool },
    Take { who: &'static str, task: Option<usize> },
    Done { who: &'static str, task: usize },
    Fail { who: &'static str, task: usize },
    Park { who: &'static str, task: usize },
    Block { who: &'static str, task: usize },
    Cancel { task: usize },
    Reopen { task: usize },
    Tie { task: usize, after: usize },
    Pass { minutes: u64 },
    Die { who: &'static str },
    Return { who: &'static str },
}

#[derive(Debug)]
pub(crate) struct Stories;

impl ReferenceStateMachine for Stories {
    type State = ();
    type Transition = Act;

    fn init_state() -> BoxedStrategy<()> {
        Just(()).boxed()
    }

    fn transitions((): &()) -> BoxedStrategy<Act> {
        let who = || prop::sample::select(SESSIONS);
        let task = || 0..12_usize;
        let join = || {
            let some = (1..3_u32).prop_map(Join::AtLeast);
            prop_oneof![2 => Just(Join::All), 1 => Just(Join::Any), 1 => some]
        };
        prop_oneof![
            2 => prop::option::weighted(0.3, task()).prop_map(|after| Act::Add { after }),
            4 => (task(), 1..4_usize, join(), any::<bool>(), any::<bool>(), any::<bool>())
                .prop_map(|(task, parts, join, stop, sequence, then)| {
                    Act::Split { task, parts, join, stop, sequence, then }
                }),
            8 => (who(), prop::option::weighted(0.6, task()))
                .prop_map(|(who, task)| Act::Take { who, task }),
            8 => (who(), task()).prop_map(|(who, task)| Act::Done { who, task }),
            5 => (who(), task()).prop_map(|(who, task)| Act::Fail { who, task }),
            1 => (who(), task()).prop_map(|(who, task)| Act::Park { who, task }),
            1 => (who(), task()).prop_map(|(who, task)| Act::Block { who, task }),
            1 => task().prop_map(|task| Act::Cancel { task }),
            2 => task().prop_map(|task| Act::Reopen { task }),
            1 => (task(), task()).prop_map(|(task, after)| Act::Tie { task, after }),
            2 => (1..40_u64).prop_map(|minutes| Act::Pass { minutes }),
            2 => who().prop_map(|who| Act::Die { who }),
            3 => who().prop_map(|who| Act::Return { who }),
        ]
        .boxed()
    }

    fn apply((): (), _: &Act) {}
}

impl StateMachineTest for Stories {
    type SystemUnderTest = World;
    type Reference = Self;

    fn init_test((): &()) -> World {
        World::with(SESSIONS.iter().copied())
    }

    fn apply(mut world: World, (): &(), act: Act) -> World {
        let before = tasks(&world);
        step(&mut world, &act);
        assert_splits(&before, &tasks(&world), &act);
        assert_counts(&world);
        world
    }

    fn teardown(mut world: World, (): ()) {
        assert_once(&world);
        assert_weights(&world);
        world.audit();
        drain(&mut world);
    }
}

fn id(index: usize) -> String {
    TaskId::numbered(index as u64 + 1).0
}

fn tasks(world: &World) -> BTreeMap<TaskId, Task> {
    world.records::<Task>().into_iter().map(|task| (task.task.clone(), task)).collect()
}

fn step(world: &mut World, act: &Act) {
    match act.clone() {
        Act::Add { after } => {
            let after = after.map(id).into_iter().collect();
            let title = format!("work number{}", world.tally().made);
            let request = adding::Request { after, max_attempts: Some(1), ..filing(&title) };
            drop(world.file(&request));
        }
        Act::Split { task, parts, join, stop, sequence, then } => {
            let on_failure = if stop { OnFailure::Stop } else { OnFailure::Continue };
            let then = then.then(|| "what follows".to_owned());
            let plain = dividing(&id(task), &TITLES[..parts]);
            drop(world.splits(None, &Request { join, on_failure, sequence, then, ..plain }));
        }
        Act::Take { who, task } => {
            let request = taking::Request { task: task.map(id), also: true, ..best() };
            drop(world.taking(who, &request));
        }
        Act::Done { who, task } => drop(world.finishes(who, &id(task), None)),
        Act::Fail { who, task } => drop(world.fails(who, &id(task), Class::Failed, None)),
        Act::Park { who, task } => drop(world.parks(who, &id(task))),
        Act::Block { who, task } => drop(world.blocks(who, &id(task), "the weather")),
        Act::Cancel { task } => drop(world.cancels(None, &id(task))),
        Act::Reopen { task } => drop(world.reopens(None, &id(task))),
        Act::Tie { task, after } => {
            drop(world.updates(None, &id(task), Default::default(), &[&id(after)]));
        }
        Act::Pass { minutes } => world.pass(Span::minutes(minutes)),
        Act::Die { who } => drop(world.dies(who)),
        Act::Return { who } => drop(world.start(who, "main")),
    }
}

/// By hand, from the parts as they are.
fn verdict(split: &Split, parts: &[&Task]) -> Option<Outcome> {
    let with = |state| parts.iter().filter(|part| part.state() == state).count();
    let (done, failed) = (with(State::Done), with(State::Failed));
    let all = done + failed + with(State::Cancelled) == parts.len();
    let enough = match split.join {
        Join::All => all && (failed == 0 || split.on_failure == OnFailure::Continue),
        Join::Any => done > 0,
        Join::AtLeast(count) => done >= count as usize,
    };
    if enough { Some(Outcome::Met) } else { all.then_some(Outcome::Missed) }
}

fn assert_splits(before: &BTreeMap<TaskId, Task>, after: &BTreeMap<TaskId, Task>, act: &Act) {
    for whole in after.values() {
        let Some(split) = &whole.split else { continue };
        let parts: Vec<&Task> = split.parts.iter().map(|id| &after[id]).collect();
        for part in &parts {
            let ended = part.standing.ended();
            assert_eq!(split.ended.get(&part.task).copied(), ended, "{act:?}: {whole:?}");
        }
        let old = before.get(&whole.task).and_then(|task| task.split.as_ref());
        let same = old.filter(|old| old.parts == split.parts);
        match (same.map(|old| old.stage), split.stage) {
            (_, Stage::Parts) => {
                assert_eq!(verdict(split, &parts), None, "{act:?}: {whole:?} is not joined");
                assert!(split.outcome.is_none());
                assert_eq!(whole.state(), State::Blocked, "{act:?}: {whole:?}");
                assert!(whole.owner().is_none());
            }
            (Some(Stage::Parts), _) if split.outcome != Some(Outcome::GivenUp) => {
                assert_eq!(split.outcome, verdict(split, &parts), "{act:?}: {whole:?}");
            }
            (Some(old), new) => {
                assert!(old == new || old == Stage::Then || new == Stage::Over, "only forward");
            }
            (None, stage) => panic!("{stage:?} at once: {whole:?}"),
        }
        let then = split.then.as_ref().map(|id| &after[id]);
        if split.stage == Stage::Then {
            assert_eq!(whole.state(), State::Blocked, "{act:?}: {whole:?}");
            assert!(then.is_some_and(|then| then.standing.ended().is_none()), "{act:?} {then:?}");
        }
        if let Some(then) = then.filter(|_| split.stage == Stage::Parts) {
            let waits = matches!(then.state(), State::Blocked | State::Cancelled);
            assert!(waits, "{act:?}: {then:?} is ready too early");
        }
    }
    let cancelled = |id: &TaskId| after[id].state() == State::Cancelled;
    for task in before.values().filter(|task| task.owner().is_some()) {
        let named = matches!(act, Act::Cancel { task: one } if id(*one) == task.task.0);
        assert!(named || !cancelled(&task.task), "{task:?} was somebody's: {act:?}");
    }
}

/// In the journal: one join for each split, one waking of what follows.
fn assert_once(world: &World) {
    let mut open: BTreeMap<TaskId, (u32, u32)> = BTreeMap::new();
    let mut follower: BTreeMap<TaskId, TaskId> = BTreeMap::new();
    for entry in &world.journal {
        match entry.event().unwrap() {
            Event::TaskSplit { task, split } => {
                follower.extend(split.then.map(|then| (then, task.clone())));
                open.insert(task, (0, 0));
            }
            Event::TaskJoined { task, outcome, stage, then } => {
                let (joined, _) = open.get_mut(&task).unwrap();
                // The end of what followed, and giving the whole up, end the split without a join.
                let given_up = outcome == Outcome::GivenUp;
                *joined += u32::from(!given_up && (stage == Stage::Then || then.is_some()));
                assert!(*joined <= 1, "{task} was joined twice");
            }
            Event::TaskMoved { task, how: Move::Joined, .. } => {
                if let Some(whole) = follower.get(&task).filter(|_| !open.contains_key(&task)) {
                    let (_, woken) = open.get_mut(whole).unwrap();
                    *woken += 1;
                    assert_eq!(*woken, 1, "{task} was woken twice");
                }
            }
            _ => {}
        }
    }
}

/// Whatever happened, somebody with time finishes everything: nothing is stuck.
fn drain(world: &mut World) {
    world.pass(Span::hours(48));
    world.start("ann", "main");
    for task in tasks(world).keys() {
        drop(world.reopens(None, task.as_str()));
    }
    for _ in 0..400 {
        let stuck: Vec<Task> = tasks(world)
            .into_values()
            .filter(|task| task.standing.blocked_on.is_some() || task.state() == State::Parked)
            .collect();
        for task in stuck {
            drop(world.reopens(None, task.task.as_str()));
        }
        let request = taking::Request { also: true, ..best() };
        let answer = world.taking("ann", &request);
        if matches!(&answer, Ok(taking::Answer::Nothing(nothing)) if !nothing.woken.is_empty()) {
            continue;
        }
        let without_attempts = |task: &Task| task.state() == State::Waiting;
        let exhausted = tasks(world).into_values().find(without_attempts);
        if let (Some(task), Ok(taking::Answer::Nothing(_))) = (exhausted, &answer) {
            world.revives(None, task.task.as_str(), None).unwrap();
            continue;
        }
        let Ok(taking::Answer::Taken(taken)) = answer else {
            let left = tasks(world)
                .into_values()
                .find(|task| task.standing.ended().is_none() && task.standing.blocked_on.is_none());
            let held = |task: &Task| !task.pending.is_empty() || task.waits_for_parts();
            let behind_failed = left.as_ref().is_some_and(held)
                && tasks(world).values().any(|task| task.state() == State::Failed);
            assert!(left.is_none() || behind_failed, "stuck: {left:?}");
            return;
        };
        world.finishes("ann", taken.first.task.as_str(), None).unwrap();
    }
}

#[test]
fn named_parts_can_be_taken() {
    let mut world = World::with(["ann"]);
    world.add("whole thing");
    world.splits(None, &dividing("t1", &TITLES[..2])).unwrap();
    assert!(world.takes_as("ann", &this("t3")).is_some());
}
