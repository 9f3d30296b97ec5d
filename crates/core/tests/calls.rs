//! Stories about tool calls: nothing runs out between the start and the end of one.

use baton_core::calls::{self, CALL_LIMIT_DEFAULT, CALL_LIMIT_MAX, CALLS_MAX, Which};
use baton_core::claims;
use baton_core::claims::letting_go;
use baton_core::refusal::Refusal;
use baton_core::sessions::GRACE;
use baton_core::time::Span;

use crate::world::{World, process, resource};

const HOUR: Span = Span::hours(1);

#[test]
fn lesson_08_nothing_runs_out_during_a_long_tool_call() {
    let mut world = World::with(["ann", "bob"]);
    let first = world.claim("ann", ["a"]).granted();
    world.call("ann", "t", Span::hours(3)).unwrap();
    world.pass(Span(Span::hours(3).0 - 1));
    let held = world.claim("bob", ["a"]).held();
    assert_eq!((held.busy, held.until), (true, Some(world.now + Span(1))));
    // It is the same hold under the same token, for the holder as for everyone.
    assert!(world.check("ann", "a", Some(first.token)).is_ok());
    assert_eq!(world.call_ends("ann", "t").busy_until, None);
    let kept = &world.claims_of("ann")[0];
    assert_eq!((kept.token, kept.busy_until), (first.token, None));
    assert_eq!(kept.expires_at, world.now + claims::TTL_DEFAULT);
    assert!(!world.claim("bob", ["a"]).held().busy);
    world.audit();
}

#[test]
fn a_call_that_outlasts_its_limit_keeps_nothing() {
    let mut world = World::with(["ann", "bob"]);
    world.claim("ann", ["a"]).granted();
    world.call("ann", "t", HOUR).unwrap();
    world.pass(Span::minutes(61));
    world.claim("bob", ["a"]).granted();
    assert_eq!(world.acts("ann").notices.len(), 1, "it is told");
    // The end of the call gives nothing back.
    world.call_ends("ann", "t");
    assert!(world.claims_of("ann").is_empty());
    assert!(world.session("ann").calls.is_empty());
    world.audit();
}

#[test]
fn lesson_08_short_calls_write_nothing() {
    let mut world = World::with(["ann"]);
    world.claim("ann", ["a"]).granted();
    let written = world.journal.len();
    for _ in 0..10 {
        world.call("ann", "t", CALL_LIMIT_DEFAULT).unwrap();
        world.pass(Span::minutes(1));
        assert_eq!(world.call_ends("ann", "t").busy_until, None);
    }
    assert_eq!(world.journal.len(), written, "leases cover that");
    // Past the half, the start of a call renews as any act does, and no call is written.
    world.pass(Span::minutes(6));
    world.call("ann", "t", CALL_LIMIT_DEFAULT).unwrap();
    let kinds: Vec<_> = world.events_since(written).iter().map(|event| event.kind()).collect();
    assert_eq!(kinds, ["session_renewed", "claims_renewed"]);
}

#[test]
fn each_of_several_calls_counts_until_its_own_end() {
    let mut world = World::with(["ann", "bob"]);
    world.claim("ann", ["a"]).granted();
    world.call("ann", "long", Span::hours(5)).unwrap();
    // The long one would cover the other, but may end first.
    world.call("ann", "other", Span::hours(2)).unwrap();
    let later = world.claim("ann", ["b"]).granted();
    assert_eq!(later.expires_at, world.now + Span::hours(5), "what is taken during a call as well");
    assert_eq!(world.call_ends("ann", "long").busy_until, Some(world.now + Span::hours(2)));
    world.pass(Span(Span::hours(2).0 - 1));
    for path in ["a", "b"] {
        assert!(world.claim("bob", [path]).held().busy);
    }
    world.call_ends("ann", "other");
    world.audit();
}

#[test]
fn a_claim_that_had_run_out_is_not_brought_back_by_a_call() {
    let mut world = World::with(["ann", "bob"]);
    world.claim("ann", ["a"]).ttl(Span::minutes(1)).granted();
    world.pass(Span::minutes(2));
    world.call("ann", "t", HOUR).unwrap();
    world.claim("bob", ["a"]).granted();
    world.audit();
}

#[test]
fn death_and_the_end_of_a_session_end_its_calls() {
    let mut world = World::with(["ann", "bob"]);
    world.claim("ann", ["a"]).granted();
    world.call("ann", "t", Span::hours(5)).unwrap();
    assert!(world.dies("ann"));
    world.claim("bob", ["a"]).granted();
    world.call("bob", "t", Span::hours(5)).unwrap();
    world.end("bob", Some(GRACE)).unwrap();
    world.pass(Span::minutes(11));
    world.start("ann", "main");
    world.claim("ann", ["a"]).granted();
    world.audit();
}

#[test]
fn a_call_of_a_process_that_is_gone_counts_no_longer() {
    let mut world = World::with(["ann", "bob"]);
    world.claim("ann", ["a"]).granted();
    let tool = process("tool");
    let request = calls::Start { call: "t".to_owned(), limit: HOUR, process: Some(tool.clone()) };
    let context = world.context(Some("ann"));
    world.decide(context, |view, context| calls::start(view, &request, context)).unwrap();
    world.pass(Span::minutes(50));
    world.claim("bob", ["a"]).held();
    let id = world.id("ann");
    for expected in [true, false] {
        let context = world.context(None);
        let died = world.decide(context, |view, context| calls::died(view, &id, &tool, context));
        assert_eq!(died.unwrap(), expected);
    }
    world.claim("bob", ["a"]).granted();
    world.audit();
}

#[test]
fn who_comes_back_as_another_process_is_in_no_call() {
    let mut world = World::with(["ann", "bob"]);
    world.claim("ann", ["a"]).granted();
    world.call("ann", "t", Span::hours(5)).unwrap();
    assert!(world.start("ann", "main").resumed);
    assert_eq!(world.session("ann").calls.len(), 1, "the same process goes on with it");
    world.start_as("ann", "main", process("zoe"));
    assert!(world.session("ann").calls.is_empty());
    world.pass(HOUR);
    world.claim("bob", ["a"]).granted();
    world.audit();
}

#[test]
fn limits_are_kept() {
    let mut world = World::with(["ann"]);
    for limit in [Span::ZERO, Span(CALL_LIMIT_MAX.0 + 1)] {
        let refused = world.call("ann", "t", limit);
        assert!(matches!(refused, Err(Refusal::OutOfRange { what: "limit", .. })), "{refused:?}");
    }
    assert!(matches!(world.call("ann", "\u{1b}[0m", HOUR), Err(Refusal::BadText { .. })));
    for number in 0..CALLS_MAX {
        world.call("ann", &number.to_string(), HOUR).unwrap();
    }
    assert!(matches!(world.call("ann", "more", HOUR), Err(Refusal::OutOfRange { .. })));
    world.call("ann", "7", HOUR).unwrap();
    let context = world.context(Some("ann"));
    world.decide(context, |view, context| calls::end(view, &Which::All, context)).unwrap();
    world.call("ann", "more", HOUR).unwrap();
    world.audit();
}

#[test]
fn letting_go_during_a_call_lets_go() {
    let mut world = World::with(["ann", "bob"]);
    world.claim("ann", ["a", "b"]).granted();
    world.call("ann", "t", HOUR).unwrap();
    let which = letting_go::Which::Resources(vec![resource("a")]);
    world.let_go("ann", &which, None).unwrap();
    world.claim("bob", ["a"]).granted();
    world.pass(Span::minutes(50));
    world.claim("bob", ["b"]).held();
    world.audit();
}
