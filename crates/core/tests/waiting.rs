//! Stories about the queue: order, priority, deadlines, circles.

use baton_core::claims::Answer;
use baton_core::context::Context;
use baton_core::event::{EndOfWait, Event};
use baton_core::refusal::Refusal;
use baton_core::time::Span;

use crate::world::{World, granted};

const HOUR: Span = Span::hours(1);

fn waits(answer: &Result<Answer, Refusal>) -> bool {
    matches!(answer, Ok(Answer::Queued(_)))
}

fn circle(refusal: Refusal) -> Vec<String> {
    match refusal {
        Refusal::Cycle { names } => names,
        other => panic!("should be a circle: {other:?}"),
    }
}

#[test]
fn first_come_first_served_also_in_one_millisecond() {
    let names = ["bob", "cat", "dan", "eve", "fay"];
    let mut world = World::with(names);
    world.start("ann", "main");
    world.claim("ann", ["a"]).granted();
    for name in names {
        world.claim(name, ["a"]).wait(HOUR).queued();
    }
    world.release("ann", ["a"]).unwrap();
    assert!(world.claim("ann", ["a"]).held().queued, "no overtaking by a newcomer");
    for (index, name) in names.iter().enumerate() {
        for behind in &names[index + 1..] {
            assert!(waits(&world.look(behind)), "{behind} before {name}");
        }
        granted(world.look(name));
        world.release(name, ["a"]).unwrap();
    }
    assert!(world.waiters().is_empty());
}

#[test]
fn priority_goes_first_and_waiting_raises_it() {
    let mut world = World::with(["ann", "bob", "cat", "dan"]);
    world.claim("ann", ["a"]).ttl(HOUR).granted();
    world.claim("bob", ["a"]).wait(HOUR).queued();
    for _ in 0..13 {
        world.pass(Span::seconds(10));
        world.look("bob").unwrap();
    }
    // Two minutes of waiting are worth two steps.
    world.claim("cat", ["a"]).wait(HOUR).priority(2).queued();
    world.claim("dan", ["a"]).wait(HOUR).priority(3).queued();
    world.release("ann", ["a"]).unwrap();
    assert!(waits(&world.look("bob")));
    assert!(waits(&world.look("cat")));
    granted(world.look("dan"));
    world.release("dan", ["a"]).unwrap();
    assert!(waits(&world.look("cat")));
    granted(world.look("bob"));
}

#[test]
fn who_does_not_overlap_or_only_shares_is_not_held_up() {
    let mut world = World::with(["ann", "bob", "cat"]);
    world.claim("ann", ["a"]).shared().granted();
    world.claim("bob", ["a", "b"]).wait(HOUR).queued();
    world.claim("cat", ["c"]).granted();
    assert!(world.claim("cat", ["b"]).held().queued);
    assert!(world.claim("cat", ["a"]).shared().held().queued, "bob would starve");
}

#[test]
fn a_wait_ends_at_its_deadline() {
    let mut world = World::with(["ann", "bob"]);
    world.claim("ann", ["a"]).granted();
    let queued = world.claim("bob", ["a"]).wait(Span::seconds(15)).queued();
    assert_eq!(queued.deadline, world.now + Span::seconds(15));
    assert!(queued.look_again_at <= queued.deadline);
    world.pass(Span::seconds(14));
    assert!(waits(&world.look("bob")));
    world.pass(Span::seconds(1));
    assert!(matches!(world.look("bob"), Err(Refusal::WaitedInVain(_))));
    assert!(world.waiters().is_empty());
}

#[test]
fn who_looks_when_told_never_loses_its_place() {
    let mut world = World::with(["ann", "bob", "cat"]);
    world.claim("ann", ["a"]).ttl(HOUR).granted();
    let mut next = world.claim("bob", ["a"]).wait(HOUR).queued().look_again_at;
    for _ in 0..100 {
        world.now = next;
        assert!(world.waiters()[0].lease_until > world.now, "a newcomer could slip in");
        let Ok(Answer::Queued(queued)) = world.look("bob") else { panic!() };
        next = queued.look_again_at;
    }
}

#[test]
fn a_waiter_that_is_gone_stops_nobody_and_is_cleared_away() {
    let mut world = World::with(["ann", "bob", "cat"]);
    world.claim("ann", ["a"]).ttl(HOUR).granted();
    let gone = world.claim("bob", ["a"]).wait(HOUR).queued().waiter;
    world.release("ann", ["a"]).unwrap();
    let request = |world: &mut World| world.claim("cat", ["a"]).answer();
    assert!(request(&mut world).is_err());
    // Seen to be gone, at once.
    let mut context: Context = world.context(Some("cat"));
    context.observed.waiters_gone.push(gone.clone());
    let wanted = world.pending["bob"].clone();
    let free = baton_core::claims::Request { waiter: None, wait: None, ..wanted };
    let from = world.journal.len();
    let answer =
        world.decide(context, |view, context| baton_core::claims::take(view, &free, context));
    granted(answer);
    let ended = Event::WaitEnded { waiter: gone, why: EndOfWait::Gone };
    assert!(world.events_since(from).contains(&ended));
    world.release("cat", ["a"]).unwrap();
    // Not seen, after its lease.
    world.claim("ann", ["a"]).ttl(HOUR).granted();
    world.pending.clear();
    world.claim("bob", ["a"]).wait(HOUR).queued();
    world.release("ann", ["a"]).unwrap();
    world.pass(Span::seconds(29));
    assert!(request(&mut world).is_err());
    world.pass(Span::seconds(1));
    assert!(request(&mut world).is_ok());
}

#[test]
fn a_place_that_vanished_is_a_new_place_at_the_end() {
    let mut world = World::with(["ann", "bob", "cat"]);
    world.claim("ann", ["a"]).granted();
    let old = world.claim("bob", ["a"]).wait(HOUR).queued().waiter;
    world.claim("cat", ["a"]).wait(HOUR).queued();
    world.end("bob", Some(Span::minutes(10))).unwrap();
    world.start("bob", "main");
    let Ok(Answer::Queued(queued)) = world.look("bob") else { panic!() };
    assert_ne!(queued.waiter, old);
    assert_eq!(world.waiters().len(), 2, "it is in the queue");
    world.release("ann", ["a"]).unwrap();
    assert!(waits(&world.look("bob")));
    granted(world.look("cat"));
}

#[test]
fn nobody_uses_anothers_place() {
    let mut world = World::with(["ann", "bob", "cat"]);
    world.claim("ann", ["a"]).granted();
    world.claim("bob", ["a"]).wait(HOUR).queued();
    let stolen = world.pending["bob"].clone();
    world.release("ann", ["a"]).unwrap();
    let answer = world.take("cat", &stolen);
    assert!(waits(&answer), "{answer:?}");
    granted(world.look("bob"));
}

#[test]
fn a_wait_that_closes_a_circle_is_refused_with_the_circle_named() {
    let mut world = World::with(["ann", "bob", "cat"]);
    world.claim("ann", ["a"]).granted();
    world.claim("bob", ["b"]).granted();
    world.claim("cat", ["c"]).granted();
    world.claim("ann", ["b"]).wait(HOUR).queued();
    world.claim("bob", ["c"]).wait(HOUR).queued();
    let names = circle(world.claim("cat", ["a"]).wait(HOUR).refused());
    assert_eq!(names, ["cat", "ann", "bob", "cat"]);
    // Two that share and both want more.
    let mut world = World::with(["ann", "bob"]);
    world.claim("ann", ["a"]).shared().granted();
    world.claim("bob", ["a"]).shared().granted();
    world.claim("ann", ["a"]).wait(HOUR).queued();
    assert_eq!(circle(world.claim("bob", ["a"]).wait(HOUR).refused()), ["bob", "ann", "bob"]);
}

#[test]
fn who_is_waited_for_is_not_sent_behind_the_one_who_waits() {
    let mut world = World::with(["ann", "bob"]);
    world.claim("ann", ["a"]).granted();
    world.claim("bob", ["a", "b"]).wait(HOUR).queued();
    // Ann waiting for bob would never end; bob cannot go on before ann anyway.
    world.claim("ann", ["b"]).granted();
}

#[test]
fn amounts_close_a_circle_only_when_nobody_else_could_free_enough() {
    let mut world = World::with(["ann", "bob", "cat"]);
    world.policy(&[], &[("gpu", 4)]);
    world.claim("ann", ["@gpu", "a"]).granted();
    world.claim("bob", ["@gpu=2"]).granted();
    world.claim("cat", ["@gpu"]).granted();
    // Ann has a share herself; bob's would do.
    world.claim("ann", ["@gpu=2"]).wait(HOUR).queued();
    world.withdraw("ann");
    // Four are never free while ann keeps her one.
    assert_eq!(circle(world.claim("ann", ["@gpu=4"]).wait(HOUR).refused()), ["ann", "ann"]);
    // Bob waits for ann: then only cat's is left, and that is not enough.
    world.claim("bob", ["a"]).wait(HOUR).queued();
    assert_eq!(circle(world.claim("ann", ["@gpu=2"]).wait(HOUR).refused()), ["ann", "bob", "ann"]);
}

#[test]
fn who_holds_a_share_does_not_overtake_those_who_wait_for_one() {
    let mut world = World::with(["ann", "bob", "cat"]);
    world.policy(&[], &[("gpu", 4)]);
    world.claim("ann", ["@gpu"]).granted();
    world.claim("bob", ["@gpu=3"]).granted();
    world.claim("cat", ["@gpu=2"]).wait(HOUR).queued();
    world.release("bob", ["@gpu"]).unwrap();
    assert!(world.claim("ann", ["@gpu=2"]).held().queued);
    granted(world.look("cat"));
}

#[test]
fn subagents_wait_for_each_other_without_a_circle() {
    let mut world = World::with(["ann"]);
    world.claim("ann/one", ["a"]).granted();
    world.claim("ann/two", ["b"]).granted();
    world.claim("ann/two", ["a"]).wait(HOUR).queued();
    assert_eq!(circle(world.claim("ann/one", ["b"]).wait(HOUR).refused()).len(), 3);
    world.release("ann/one", ["a"]).unwrap();
    granted(world.look("ann/two"));
}
