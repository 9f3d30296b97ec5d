//! Stories about sessions: proof, aliases, grace and return, death.

use baton_core::claims::letting_go::Which;
use baton_core::context::Proof;
use baton_core::refusal::Refusal;
use baton_core::sessions::{self, GRACE, Life};
use baton_core::time::Span;
use baton_core::view::Record;

use crate::world::{World, process};

#[test]
fn s19_what_is_shown_in_public_is_never_enough() {
    let mut world = World::with(["ann", "bob"]);
    let ann = world.id("ann");
    for proof in [
        Proof::None,
        Proof::Secret("secret of bob".to_owned()),
        Proof::Secret(String::new()),
        Proof::Secret(ann.0),
        Proof::Alias(process("bob").alias_key()),
        Proof::Alias(String::new()),
    ] {
        let mut context = world.context(Some("ann"));
        context.actor.proof = proof.clone();
        let refused = world.decide(context, sessions::active);
        assert!(matches!(refused, Err(Refusal::BadCredential { .. })), "{proof:?}");
    }
    let mut context = world.context(Some("ann"));
    context.actor.proof = Proof::Alias(process("ann").alias_key());
    world.decide(context, sessions::active).unwrap();
}

#[test]
fn claims_wait_for_their_session_as_long_as_the_grace() {
    let mut world = World::with(["ann", "bob"]);
    world.claim("ann", ["long"]).ttl(Span::hours(5)).granted();
    world.claim("ann", ["short"]).ttl(Span::minutes(1)).granted();
    let ended = world.end("ann", Some(GRACE)).unwrap();
    assert!(ended.released.is_empty());
    world.pass(Span(GRACE.0 - 1));
    world.claim("bob", ["long"]).held();
    world.claim("bob", ["short"]).held();
    assert!(world.start("ann", "main").resumed);
    // Back in the last moment, and everything is there with its full time.
    world.pass(Span::seconds(59));
    world.claim("bob", ["short"]).held();
    world.pass(Span::hours(4));
    world.claim("bob", ["long"]).held();
    world.audit();
}

#[test]
fn after_the_grace_a_client_gets_a_new_session() {
    let mut world = World::with(["ann", "bob"]);
    world.claim("ann", ["a"]).ttl(Span::hours(5)).granted();
    let old = world.id("ann");
    world.end("ann", Some(GRACE)).unwrap();
    assert!(matches!(world.end("ann", None), Err(Refusal::SessionEnded { .. })));
    world.pass(GRACE);
    let new = world.start("ann", "main");
    assert!(!new.resumed && new.session != old);
    // Nobody has looked at the old holder yet: the lock delay, then it is free.
    world.pass(Span::seconds(10));
    world.claim("bob", ["a"]).granted();
}

#[test]
fn another_tree_is_another_session() {
    let mut world = World::with(["ann"]);
    let old = world.id("ann");
    assert_ne!(world.start("ann", "side").session, old);
}

#[test]
fn a_death_counts_only_for_the_process_that_was_seen() {
    let mut world = World::with(["ann"]);
    world.claim("ann", ["a"]).granted();
    let (id, mut seen) = (world.id("ann"), process("ann"));
    seen.start += 1;
    let context = world.context(None);
    let died =
        world.decide(context, |view, context| sessions::died(view, &id, &seen, context)).unwrap();
    assert!(!died, "another process with the same number");
    assert!(world.dies("ann"));
    assert_eq!(world.claims(), []);
    assert!(matches!(world.session("ann").life, Life::Ended { grace_until: None, .. }));
    assert!(!world.dies("ann"), "once");
}

#[test]
fn ending_anothers_session_is_for_a_person() {
    let mut world = World::with(["ann", "bob"]);
    let ann = world.id("ann");
    let end = |view: &dyn baton_core::view::View, context: &_| {
        sessions::end(view, Some(&ann), None, context)
    };
    let context = world.context(Some("bob"));
    assert!(matches!(world.decide(context, end), Err(Refusal::NeedsPerson { .. })));
    let context = world.person();
    world.decide(context, end).unwrap();
    assert!(matches!(world.let_go("ann", &Which::All, None), Err(Refusal::SessionEnded { .. })));
}

#[test]
fn a_process_of_two_sessions_is_nobody() {
    let mut world = World::with(["ann"]);
    let first = world.id("ann");
    world.begin("ann", "main", Some("another client"));
    let mut context = world.context(Some("ann"));
    context.actor.session = Some(first);
    context.actor.proof = Proof::Alias(process("ann").alias_key());
    let refused = world.decide(context, sessions::active);
    assert!(matches!(refused, Err(Refusal::BadCredential { .. })));
}

#[test]
fn texts_that_could_act_on_a_reader_are_refused() {
    let mut world = World::new();
    for name in ["", "a\u{1b}[0m", "x\u{202e}y", "n\nl", &"x".repeat(65)] {
        let request = sessions::Start {
            name: Some((*name).to_owned()),
            client: None,
            client_session: None,
            continues: false,
            role: None,
            starter: None,
            process: None,
            host: "here".to_owned(),
            tree: baton_core::id::TreeId("main".to_owned()),
            ttl: sessions::TTL_DEFAULT,
            secret_hash: String::new(),
        };
        let context = world.context(None);
        let answer =
            world.decide(context, |view, context| sessions::start(view, &request, context));
        assert!(answer.is_err(), "{name:?}");
    }
}

#[test]
fn what_nobody_will_read_is_dropped() {
    let mut world = World::with(["ann", "bob", "cat"]);
    let notices = |world: &World| {
        world.store.rows().filter(|row| row.kind == baton_core::notices::Notice::KIND).count()
    };
    for who in ["ann", "ann/helper", "bob"] {
        world.claim(who, [&*who.replace('/', "-")]).granted();
    }
    for path in ["ann", "ann-helper", "bob"] {
        world.ask("cat", path).unwrap();
    }
    assert_eq!(notices(&world), 3);
    assert!(world.dies("ann"));
    assert_eq!(notices(&world), 1, "those of its subagents go with it");
    // While it may come back its note waits for it; then whoever starts next clears it away.
    world.end("bob", Some(GRACE)).unwrap();
    world.start("dan", "main");
    assert_eq!(notices(&world), 1);
    world.pass(GRACE);
    world.start("eve", "main");
    assert_eq!(notices(&world), 0);
    world.audit();
}
