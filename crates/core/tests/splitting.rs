//! Tasks in parts: fan-out, fan-in, one by one.

use baton_core::notices::News;
use baton_core::task::State;
use baton_core::task::split::{Join, OnFailure, Outcome, Stage};
use baton_core::tasks::adding;
use baton_core::tasks::ending::Class;
use baton_core::tasks::refused::Refused;
use baton_core::tasks::splitting::{DEPTH_MAX, PARTS_MAX, Part, Request};
use baton_core::tasks::{reason_of, taking};

use crate::backlog::{best, dividing, filing, refused, this};
use crate::task_model::{assert_counts, assert_weights};
use crate::world::World;

fn whole(world: &mut World) -> String {
    let request = adding::Request { max_attempts: Some(1), ..filing("the whole") };
    world.file(&request).unwrap().task.0
}

fn does(world: &mut World, who: &str, task: &str) {
    world.takes_as(who, &taking::Request { also: true, ..this(task) }).unwrap();
    world.finishes(who, task, None).unwrap();
}

fn breaks(world: &mut World, who: &str, task: &str) {
    world.takes_as(who, &taking::Request { also: true, ..this(task) }).unwrap();
    world.fails(who, task, Class::Failed, None).unwrap();
}

fn sound(world: &mut World) {
    assert_counts(world);
    assert_weights(world);
    world.audit();
}

#[test]
fn parts_run_apart_and_what_follows_is_ready_once() {
    let mut world = World::with(["ann", "bob"]);
    let id = whole(&mut world);
    world.takes("ann").unwrap();
    let then = Some("put together".to_owned());
    let divided = world
        .splits(Some("ann"), &Request { then, ..dividing(&id, &["one a", "two b", "three c"]) })
        .unwrap();
    assert_eq!(divided.parts.len(), 3);
    let last = divided.then.unwrap().task.0;
    assert_eq!((world.state(&id), world.state(&last)), ("blocked", "blocked"));
    assert!(world.task(&id).owner().is_none(), "whoever divided it is free");
    does(&mut world, "bob", "t2");
    breaks(&mut world, "bob", "t3");
    assert_eq!(world.state("t3"), "failed");
    assert_eq!(world.state("t4"), "open", "one failing part does not kill the others");
    let said = reason_of(&world.task(&id)).unwrap();
    assert_eq!(said, "waits for its parts: 2 of 3 parts have ended (1 failed)");
    assert_eq!(world.state(&last), "blocked");
    does(&mut world, "bob", "t4");
    assert_eq!((world.state(&last), world.state(&id)), ("open", "blocked"));
    let taken = world.takes_as("bob", &this(&last)).unwrap();
    assert_eq!(taken.first.results_of.unwrap().0, id);
    let moved = world.finishes("bob", &last, None).unwrap();
    assert_eq!(moved.state, State::Done);
    assert_eq!(world.state(&id), "done", "its result is that of what followed");
    assert_eq!(world.task(&id).standing.attempts_used, 0);
    sound(&mut world);
}

#[test]
fn without_a_follower_the_whole_is_ready_again_and_who_had_it_is_told() {
    let mut world = World::with(["ann", "bob"]);
    let id = whole(&mut world);
    world.takes("ann").unwrap();
    world.splits(Some("ann"), &dividing(&id, &["one a", "two b"])).unwrap();
    refused(world.taking("ann", &this(&id)));
    does(&mut world, "bob", "t2");
    breaks(&mut world, "bob", "t3");
    assert_eq!(world.state(&id), "open");
    let notices: Vec<News> =
        world.records::<baton_core::notices::Notice>().into_iter().map(|one| one.news).collect();
    assert!(matches!(&notices[..], [News::Joined { task, .. }] if task.0 == id), "{notices:?}");
    let taken = world.takes_as("ann", &this(&id)).unwrap();
    assert_eq!((taken.first.attempt, taken.first.results_of.unwrap().0), (1, id.clone()));
    assert_eq!(taken.notices.len(), 1);
    world.finishes("ann", &id, None).unwrap();
    sound(&mut world);
}

#[test]
fn any_and_a_number_join_early_and_only_once() {
    for (join, needed) in [(Join::Any, 1), (Join::AtLeast(2), 2)] {
        let mut world = World::with(["ann"]);
        let id = whole(&mut world);
        let titles = ["one a", "two b", "three c", "four d"];
        world.splits(None, &Request { join, ..dividing(&id, &titles) }).unwrap();
        breaks(&mut world, "ann", "t2");
        for (place, part) in ["t3", "t4"].iter().enumerate() {
            assert_eq!(world.state(&id) == "open", place >= needed);
            does(&mut world, "ann", part);
        }
        assert_eq!(world.state(&id), "open");
        let joined = |world: &World| {
            world.journal.iter().filter(|entry| entry.kind == "task_joined").count()
        };
        assert_eq!(joined(&world), 1);
        does(&mut world, "ann", "t5");
        assert_eq!(joined(&world), 1, "a late part is a result and sets nothing off");
        assert_eq!(world.task(&id).split.unwrap().ended.len(), 4);
        sound(&mut world);
    }
}

#[test]
fn too_few_give_the_whole_back_and_cancel_what_was_to_follow() {
    let mut world = World::with(["ann"]);
    let id = whole(&mut world);
    let (then, join) = (Some("merge".to_owned()), Join::AtLeast(2));
    world.splits(None, &Request { then, join, ..dividing(&id, &["one a", "two b"]) }).unwrap();
    breaks(&mut world, "ann", "t2");
    does(&mut world, "ann", "t3");
    assert_eq!((world.state("t4"), world.state(&id)), ("cancelled", "open"));
    let split = world.task(&id).split.unwrap();
    assert_eq!((split.outcome, split.stage), (Some(Outcome::Missed), Stage::Over));
    sound(&mut world);
}

#[test]
fn stop_cancels_what_nobody_took_and_nothing_else() {
    let mut world = World::with(["ann", "bob"]);
    let id = whole(&mut world);
    let on_failure = OnFailure::Stop;
    let titles = ["one a", "two b", "three c"];
    let then = Some("merge".to_owned());
    world.splits(None, &Request { on_failure, then, ..dividing(&id, &titles) }).unwrap();
    world.takes_as("bob", &this("t3")).unwrap();
    breaks(&mut world, "ann", "t2");
    assert_eq!(["t2", "t3", "t4"].map(|id| world.state(id)), ["failed", "active", "cancelled"]);
    assert_eq!(world.state(&id), "blocked");
    world.finishes("bob", "t3", None).unwrap();
    assert_eq!((world.state(&id), world.state("t5")), ("open", "cancelled"));
    sound(&mut world);
}

#[test]
fn a_sequence_goes_one_after_the_other_also_past_a_failure() {
    let mut world = World::with(["ann"]);
    let id = whole(&mut world);
    let titles = ["one a", "two b", "three c"];
    world.splits(None, &Request { sequence: true, ..dividing(&id, &titles) }).unwrap();
    assert_eq!(["t2", "t3", "t4"].map(|id| world.state(id)), ["open", "blocked", "blocked"]);
    assert_eq!(world.task("t2").unblocks, 2);
    does(&mut world, "ann", "t2");
    assert_eq!(["t3", "t4"].map(|id| world.state(id)), ["open", "blocked"]);
    breaks(&mut world, "ann", "t3");
    assert_eq!(world.state("t4"), "open");
    assert_weights(&world);
    does(&mut world, "ann", "t4");
    assert_eq!(world.state(&id), "open");
    sound(&mut world);
}

#[test]
fn a_part_may_be_divided_and_its_result_is_that_of_its_join() {
    let mut world = World::with(["ann"]);
    let id = whole(&mut world);
    let then = Some("end all".to_owned());
    world.splits(None, &Request { then, ..dividing(&id, &["one a", "two b"]) }).unwrap();
    let inner = Request { then: Some("end two".to_owned()), ..dividing("t3", &["x x", "y y"]) };
    world.splits(None, &inner).unwrap();
    does(&mut world, "ann", "t2");
    for part in ["t5", "t6"] {
        breaks(&mut world, "ann", part);
    }
    assert_eq!((world.state("t3"), world.state(&id)), ("blocked", "blocked"));
    does(&mut world, "ann", "t7");
    assert_eq!((world.state("t3"), world.state("t4")), ("done", "open"));
    does(&mut world, "ann", "t4");
    assert_eq!(world.state(&id), "done");
    sound(&mut world);
}

#[test]
fn deaths_of_owners_are_results_in_the_same_decision() {
    let mut world = World::with(["ann", "bob"]);
    let id = whole(&mut world);
    world.splits(None, &dividing(&id, &["one a", "two b"])).unwrap();
    for part in ["t2", "t3"] {
        world.takes_as("bob", &taking::Request { also: true, ..this(part) }).unwrap();
    }
    world.dies("bob");
    assert_eq!(["t1", "t2", "t3"].map(|id| world.state(id)), ["open", "failed", "failed"]);
    assert_eq!(world.task(&id).standing.attempts_used, 0, "that is not the parent's failure");
    sound(&mut world);
}

#[test]
fn leases_that_run_out_end_parts_too() {
    let mut world = World::with(["ann", "bob"]);
    let id = whole(&mut world);
    world.splits(None, &dividing(&id, &["one a"])).unwrap();
    world.takes_as("bob", &this("t2")).unwrap();
    world.pass(baton_core::time::Span::minutes(31));
    assert!(world.takes("ann").is_none());
    assert_eq!((world.state("t2"), world.state(&id)), ("failed", "open"));
    assert_eq!(world.takes("ann").unwrap().first.task.0, id);
    sound(&mut world);
}

#[test]
fn cancelling_the_whole_cancels_what_nobody_works_on() {
    let mut world = World::with(["ann"]);
    let id = whole(&mut world);
    let then = Some("merge".to_owned());
    world.splits(None, &Request { then, ..dividing(&id, &["one a", "two b", "three c"]) }).unwrap();
    world.splits(None, &dividing("t3", &["deep d"])).unwrap();
    world.takes_as("ann", &this("t2")).unwrap();
    world.cancels(None, &id).unwrap();
    let states = ["t1", "t2", "t3", "t4", "t5", "t6"].map(|id| world.state(id));
    assert_eq!(states, ["cancelled", "active", "cancelled", "cancelled", "cancelled", "cancelled"]);
    world.finishes("ann", "t2", None).unwrap();
    assert_eq!(world.state(&id), "cancelled");
    world.reopens(None, &id).unwrap();
    assert_eq!(world.state(&id), "open", "it is not stuck on parts that are gone");
    sound(&mut world);
}

#[test]
fn what_the_whole_comes_after_holds_its_parts() {
    let mut world = World::with(["ann"]);
    let first = world.add("first thing");
    let id = world.add_after("second thing", &[&first]);
    world.splits(None, &dividing(&id, &["one a", "two b"])).unwrap();
    assert_eq!((world.state("t3"), world.task(&first).unblocks), ("blocked", 3));
    does(&mut world, "ann", &first);
    assert_eq!((world.state("t3"), world.state(&id)), ("open", "blocked"));
    sound(&mut world);
}

#[test]
fn only_the_owner_divides_and_only_what_can_be_divided() {
    let mut world = World::with(["ann", "bob"]);
    let id = whole(&mut world);
    world.takes("ann").unwrap();
    let plain = dividing(&id, &["one a"]);
    assert!(matches!(refused(world.splits(Some("bob"), &plain)), Refused::Owned { .. }));
    world.splits(Some("ann"), &plain).unwrap();
    assert!(matches!(refused(world.splits(None, &plain)), Refused::WrongState { .. }));
    does(&mut world, "bob", "t2");
    assert!(matches!(
        refused(world.splits(None, &dividing("t2", &["x x"]))),
        Refused::WrongState { .. }
    ));
    let again = world.splits(None, &dividing(&id, &["one more"])).unwrap();
    assert_eq!(again.parts[0].task.0, "t3", "what came back may be divided again");
    sound(&mut world);
}

#[test]
fn limits_are_named() {
    let mut world = World::with(["ann"]);
    let id = whole(&mut world);
    let many: Vec<&str> = std::iter::repeat_n("part", PARTS_MAX + 1).collect();
    assert!(matches!(refused(world.splits(None, &dividing(&id, &many))), Refused::TooMany { .. }));
    assert!(matches!(
        refused(world.splits(None, &dividing(&id, &[]))),
        Refused::SaysNothing { .. }
    ));
    let join = Join::AtLeast(3);
    world.splits(None, &Request { join, ..dividing(&id, &["one a", "two b"]) }).unwrap_err();
    let keyed =
        |key: &str| Part { title: "part".to_owned(), key: Some(key.to_owned()), ..Part::default() };
    let twice = Request { parts: vec![keyed("k"), keyed("k")], ..dividing(&id, &[]) };
    assert!(matches!(refused(world.splits(None, &twice)), Refused::KeyTaken { task: None, .. }));
    world.file(&adding::Request { key: Some("k".to_owned()), ..filing("else") }).unwrap();
    let known = Request { parts: vec![keyed("k")], ..dividing(&id, &[]) };
    assert!(matches!(refused(world.splits(None, &known)), Refused::KeyTaken { task: Some(_), .. }));
    let mut at = id;
    for _ in 0..DEPTH_MAX {
        at = world.splits(None, &dividing(&at, &["deeper"])).unwrap().parts[0].task.0.clone();
    }
    assert!(matches!(
        refused(world.splits(None, &dividing(&at, &["deeper"]))),
        Refused::TooMany { .. }
    ));
    assert!(world.takes_as("ann", &best()).is_some());
    sound(&mut world);
}

#[test]
fn a_part_never_waits_for_its_whole() {
    let mut world = World::with(["ann"]);
    let id = whole(&mut world);
    let then = Some("merge".to_owned());
    world.splits(None, &Request { then, ..dividing(&id, &["one a", "two b"]) }).unwrap();
    let beyond = world.add_after("beyond it", &[&id]);
    for on in [&id, "t4", &beyond] {
        let refusal = refused(world.updates(None, "t2", Default::default(), &[on]));
        assert!(matches!(refusal, Refused::Cycle { .. }), "{on}: {refusal:?}");
    }
    sound(&mut world);
}
