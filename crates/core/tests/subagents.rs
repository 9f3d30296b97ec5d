//! Stories about subagents: siblings exclude each other, their session never does, and what one
//! held passes to its session when it stops.

use baton_core::check::Verdict;
use baton_core::claims::Answer;
use baton_core::context::Life;
use baton_core::notices::News;
use baton_core::refusal::Refusal;
use baton_core::subagents::{self, Stopped};
use baton_core::time::Span;

use crate::world::{World, resource, resources};

fn stop(world: &mut World, session: &str, agent: &str) -> Result<Stopped, Refusal> {
    let context = world.context(Some(session));
    world.decide(context, |view, context| subagents::stop(view, agent, context))
}

#[test]
fn a_siblings_edit_is_denied_by_name_and_the_sessions_never() {
    let mut world = World::with(["ann", "bob"]);
    world.claim("ann/one", ["a"]).in_tree().granted();
    let denied = world.check("ann/two", "a", None).unwrap();
    assert_eq!(denied.verdict, Verdict::Deny);
    let holder = &denied.findings[0].held[0].holder;
    assert_eq!((&holder.name[..], holder.agent.as_deref()), ("ann", Some("one")));
    for free in ["ann", "ann/one"] {
        assert_eq!(world.check(free, "a", None).unwrap().verdict, Verdict::Allow, "{free}");
    }
    // That the session holds it too changes nothing between its subagents.
    world.claim("ann", ["a"]).in_tree().granted();
    assert_eq!(world.claim("ann/two", ["a"]).in_tree().held().holder.agent.as_deref(), Some("one"));
    assert_eq!(world.claim("bob", ["a"]).held().holder.name, "ann");
    world.audit();
}

#[test]
fn what_a_subagent_held_passes_to_its_session() {
    let mut world = World::with(["ann", "bob"]);
    let held = world.claim("ann/one", ["a", "b"]).granted();
    world.claim("ann/two", ["c"]).granted();
    let stopped = stop(&mut world, "ann", "one").unwrap();
    assert_eq!(stopped.passed, resources(["a", "b"]));
    let claims = world.claims_of("ann");
    let passed = claims.iter().find(|claim| claim.claim == held.claim).unwrap();
    assert_eq!((passed.hold.holder.agent.as_deref(), passed.token), (None, held.token));
    assert_eq!(claims.iter().filter(|claim| claim.hold.holder.agent.is_some()).count(), 1);
    // Others are still kept out, siblings no longer.
    world.claim("bob", ["a"]).held();
    world.claim("ann/two", ["a"]).granted();
    assert!(world.check("ann", "b", Some(held.token)).is_ok());
    // Again, or of one that never was: nothing to pass, nothing written.
    let written = world.journal.len();
    assert!(stop(&mut world, "ann", "one").unwrap().passed.is_empty());
    assert_eq!(world.journal.len(), written);
    world.audit();
}

#[test]
fn a_wait_of_a_subagent_ends_with_it() {
    let mut world = World::with(["ann", "bob"]);
    world.claim("ann/one", ["a"]).granted();
    world.claim("ann/two", ["a"]).wait(Span::minutes(5)).queued();
    world.claim("bob", ["a"]).wait(Span::minutes(5)).queued();
    stop(&mut world, "ann", "two").unwrap();
    assert_eq!(world.waiters().len(), 1);
    world.release("ann/one", ["a"]).unwrap();
    assert!(matches!(world.look("bob"), Ok(Answer::Granted(_))));
    world.audit();
}

#[test]
fn a_session_does_not_let_go_of_what_a_subagent_is_at_work_on() {
    let mut world = World::with(["ann"]);
    world.claim("ann/one", ["a"]).granted();
    world.claim("ann", ["b"]).granted();
    let refused = world.release("ann", ["a"]).unwrap_err();
    assert!(matches!(refused, Refusal::OfSubagent { agent, .. } if agent == "one"));
    world.release("ann", ["b"]).unwrap();
    stop(&mut world, "ann", "one").unwrap();
    world.release("ann", ["a"]).unwrap();
    world.audit();
}

#[test]
fn news_reaches_the_subagent_it_is_for_or_its_session_after_it() {
    let mut world = World::with(["ann", "bob"]);
    world.claim("ann/one", ["a"]).granted();
    world.claim("ann/two", ["b"]).granted();
    world.ask("ann/two", "a").unwrap();
    world.ask("bob", "b").unwrap();
    assert_eq!(world.acts("ann").notices, [], "neither is for the session itself");
    let told = world.acts("ann/one").notices;
    let News::Asked { by, .. } = &told[0].news else { panic!("{told:?}") };
    assert_eq!((told.len(), by.agent.as_deref()), (1, Some("two")));
    stop(&mut world, "ann", "two").unwrap();
    let told = world.acts("ann").notices;
    let News::Asked { by, .. } = &told[0].news else { panic!("{told:?}") };
    assert_eq!((told.len(), &by.name[..]), (1, "bob"));
    world.audit();
}

#[test]
fn a_sibling_is_told_whose_changes_lie_there() {
    let mut world = World::with(["ann"]);
    world.claim("ann/one", ["a"]).granted();
    world.dirty.insert("ann".to_owned(), vec![resource("a")]);
    world.looks.insert("ann".to_owned(), Life::Alive);
    world.release("ann/one", ["a"]).unwrap();
    world.dirty.clear();
    let left = world.claim("ann/two", ["a"]).granted().left_behind;
    assert_eq!(left[0].holder.agent.as_deref(), Some("one"));
}

#[test]
fn what_a_crashed_subagent_held_does_not_last_for_ever() {
    let mut world = World::with(["ann", "bob"]);
    let ttl = world.claim("ann/one", ["a"]).in_tree().granted();
    let ttl = ttl.expires_at.since(world.now);
    world.claim("ann/two", ["b"]).in_tree().granted();
    world.dirty.insert("ann".to_owned(), vec![resource("a")]);
    world.looks.insert("ann".to_owned(), Life::Alive);
    // Its session and a sibling go on; nothing is heard of it.
    for _ in 0..4 {
        assert_eq!(world.claim("ann/two", ["a"]).in_tree().held().holder.agent.unwrap(), "one");
        world.pass(Span(ttl.0 / 4));
        world.acts("ann");
        world.acts("ann/two");
    }
    // For others its session has it as long as it lives over uncommitted work.
    assert!(world.claim("bob", ["a"]).in_tree().held().idle_dirty);
    let taken = world.claim("ann/two", ["a"]).in_tree().granted();
    assert_eq!(taken.left_behind[0].holder.agent.as_deref(), Some("one"));
    assert!(
        world
            .claims_of("ann")
            .iter()
            .all(|claim| claim.hold.holder.agent.as_deref() != Some("one"))
    );
    // One that is heard of keeps what it has.
    for _ in 0..8 {
        world.pass(Span(ttl.0 / 4));
        world.acts("ann/two");
        world.claim("ann/three", ["b"]).in_tree().held();
    }
    world.audit();
}

#[test]
fn s8_what_a_call_kept_of_a_silent_subagent_is_not_lost_as_the_call_ends() {
    let mut world = World::with(["ann"]);
    let granted = world.claim("ann/one", ["a"]).in_tree().granted();
    world.call("ann", "long", Span::hours(2)).unwrap();
    world.pass(granted.expires_at.since(world.now));
    world.pass(Span::minutes(1));
    world.call_ends("ann/two", "long");
    assert_eq!(world.claim("ann/two", ["a"]).in_tree().held().holder.agent.unwrap(), "one");
    // It is heard of no more.
    world.pass(Span::minutes(3));
    world.claim("ann/two", ["a"]).in_tree().granted();
    world.audit();
}

#[test]
fn an_id_that_could_act_on_a_reader_is_refused() {
    let mut world = World::with(["ann"]);
    for id in ["", "a\u{1b}[0m", "x\u{202e}y", &"x".repeat(65)] {
        assert!(stop(&mut world, "ann", id).is_err(), "{id:?}");
    }
}
