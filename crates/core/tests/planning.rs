//! Waves and the critical path of tasks in a world.

use baton_core::task::Task;
use baton_core::tasks::adding;
use baton_core::tasks::planning::{Plan, plan};
use baton_core::tasks::splitting::Request;

use crate::backlog::{dividing, filing};
use crate::world::World;

fn planned(world: &World) -> (Vec<Vec<String>>, Vec<String>) {
    let names = |ids: Vec<baton_core::id::TaskId>| ids.into_iter().map(|id| id.0).collect();
    let Plan { waves, critical_path, held } = plan(&world.records::<Task>());
    assert!(held.is_empty(), "{held:?}");
    (waves.into_iter().map(names).collect(), names(critical_path))
}

#[test]
fn waves_follow_from_what_comes_after_what() {
    let mut world = World::with(["ann"]);
    world.add("one");
    world.add("two");
    world.add_after("three", &["t1"]);
    world.add_after("four", &["t2", "t3"]);
    world.add("five");
    let (waves, critical) = planned(&world);
    assert_eq!(waves[0].len(), 3);
    assert_eq!(&waves[1..], [vec!["t3".to_owned()], vec!["t4".to_owned()]]);
    assert_eq!(critical, ["t1", "t3", "t4"]);
    world.takes("ann").unwrap();
    world.finishes("ann", "t1", None).unwrap();
    assert_eq!(planned(&world).1, ["t2", "t4"]);
}

#[test]
fn parts_come_before_their_whole_and_phases_before_later_ones() {
    let mut world = World::with(["ann"]);
    world.add("whole");
    let then = Some("merge".to_owned());
    world.splits(None, &Request { then, ..dividing("t1", &["a a", "b b"]) }).unwrap();
    let (waves, critical) = planned(&world);
    assert_eq!(waves, [vec!["t2", "t3"], vec!["t4"], vec!["t1"]]);
    assert_eq!(critical, ["t2", "t4", "t1"]);
    let phased = |phase| adding::Request { phase: Some(phase), ..filing("phased") };
    for phase in [2, 1, 2] {
        world.file(&phased(phase)).unwrap();
    }
    let (waves, _) = planned(&world);
    assert!(waves[0].contains(&"t6".to_owned()) && waves[1].contains(&"t5".to_owned()));
    assert!(waves[1].contains(&"t7".to_owned()), "{waves:?}");
}

#[test]
fn nothing_is_planned_when_there_is_nothing() {
    assert_eq!(plan(&[]), Plan::default());
}
