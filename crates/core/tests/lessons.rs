//! What broke elsewhere, as far as it is a matter of rules: one test for each numbered lesson.

use baton_core::check::{Because, Verdict};
use baton_core::claims::{
    self,
    letting_go::{Target, Which},
};
use baton_core::context::Life;
use baton_core::event::Event;
use baton_core::notices::News;
use baton_core::refusal::Refusal;
use baton_core::sessions;
use baton_core::tasks::ending::Class;
use baton_core::tasks::refused::Refused;
use baton_core::time::Span;

use crate::backlog::refused;
use crate::world::{World, granted, resource};

const MINUTE: Span = Span::minutes(1);

#[test]
fn lesson_01_the_same_name_is_not_the_same_caller() {
    let mut world = World::with(["otter"]);
    world.claim("otter", ["a"]).granted();
    let first = world.id("otter");
    // Another agent gets the name while the first is away; then the first comes back.
    world.end("otter", Some(sessions::GRACE)).unwrap();
    let second = world.begin("otter", "main", Some("another client"));
    let back = world.start("otter", "main");
    assert!(back.resumed);
    assert_eq!((&back.name, back.session), (&second.name, first), "two live sessions, one name");
    assert_ne!(second.session, world.id("otter"));
    let request = world.claim("otter", ["a"]).into_request();
    let mut context = world.context(Some("otter"));
    context.actor.session = Some(second.session);
    let mut later = context.clone();
    later.fresh = baton_core::id::Fresh([9; 32]);
    let other = world.decide(context, |view, context| claims::take(view, &request, context));
    assert!(matches!(other, Err(Refusal::Held(_))), "{other:?}");
    let other = world.decide(later, |view, context| {
        let which = Which::Resources(vec![resource("a")]);
        claims::letting_go::release(view, &which, None, None, context)
    });
    assert!(matches!(other, Err(Refusal::NotHeld { .. })), "{other:?}");
    assert_eq!(world.claims_of("otter").len(), 1);
}

#[test]
fn lesson_02_ownership_is_one_record() {
    // A claim is held by whom its record names, and there is one record for it: what a second
    // one asks for is refused before anything is written.
    let mut world = World::with(["ann", "bob"]);
    let won = ["ann", "bob", "ann", "bob"].map(|who| world.claim(who, ["t"]).answer().is_ok());
    assert_eq!(won, [true, false, true, false]);
    assert_eq!(world.claims().len(), 1);
}

/// A way a claim can end, and what happens then.
type Ending = (&'static str, fn(&mut World));

const ENDINGS: &[Ending] = &[
    ("release", |world| drop(world.release("ann", ["src/a"]).unwrap())),
    ("release of all", |world| drop(world.let_go("ann", &Which::All, None).unwrap())),
    ("release of a folder", |world| drop(world.release("ann", ["src/"]).unwrap())),
    ("expiry", |world| world.pass(Span::hours(2))),
    ("session end", |world| drop(world.end("ann", None).unwrap())),
    ("session end with grace", |world| {
        world.end("ann", Some(sessions::GRACE)).unwrap();
        world.pass(Span::minutes(11));
    }),
    ("death", |world| assert!(world.dies("ann"))),
    ("revoke of a claim", |world| {
        let claim = world.claims_of("ann")[0].claim.clone();
        world.revoke(&Target::Claim(claim)).unwrap();
    }),
    ("revoke of a path", |world| {
        world.revoke(&Target::Resources(vec![resource("src/a")])).unwrap();
    }),
    ("revoke of a session", |world| {
        let session = world.id("ann");
        world.revoke(&Target::Session(session)).unwrap();
    }),
    ("settling", |world| {
        let claim = world.claims_of("ann")[0].claim.clone();
        world.settle(&claim);
    }),
];

#[test]
fn lesson_06_every_way_a_claim_ends_lets_the_next_one_in() {
    for (ending, end) in ENDINGS {
        let mut world = World::with(["ann", "bob"]);
        world.claim("ann", ["src/a"]).in_tree().granted();
        world.claim("bob", ["src/a"]).wait(Span::hours(3)).queued();
        end(&mut world);
        let next = granted(world.look("bob"));
        assert_eq!(next.resources, [resource("src/a")], "{ending}");
        assert!(world.waiters().is_empty(), "{ending}");
        world.audit();
    }
}

#[test]
fn lesson_06_letting_go_of_a_part_lets_the_next_one_in() {
    let mut world = World::with(["ann", "bob"]);
    world.claim("ann", ["a", "b"]).granted();
    world.claim("bob", ["a"]).wait(MINUTE).queued();
    world.release("ann", ["b"]).unwrap();
    assert!(matches!(world.look("bob"), Ok(claims::Answer::Queued(_))));
    world.release("ann", ["a"]).unwrap();
    granted(world.look("bob"));
}

#[test]
fn lesson_07_all_or_nothing() {
    let mut world = World::with(["ann", "bob"]);
    world.claim("ann", ["b"]).granted();
    let before = world.store.clone();
    let held = world.claim("bob", ["a", "b", "c"]).held();
    assert_eq!(held.resource, resource("b"));
    assert_eq!(held.holder.name, "ann");
    assert_eq!(world.store, before, "a refusal leaves nothing behind");
    world.release("ann", ["b"]).unwrap();
    let all = world.claim("bob", ["a", "b", "c"]).granted();
    assert_eq!(all.resources.len(), 3);
    assert_eq!(world.claims_of("bob").len(), 1, "one claim, one token");
}

#[test]
fn lesson_08_activity_renews_but_not_at_every_step() {
    let mut world = World::with(["ann", "bob"]);
    world.claim("ann", ["a"]).granted();
    let ttl = claims::TTL_DEFAULT;
    let written = world.journal.len();
    world.pass(Span::minutes(10));
    world.acts("ann");
    assert_eq!(world.journal.len(), written, "a lease that is fresh enough costs no write");
    // Three hours of work, one act every ten minutes: nothing runs out on the way.
    for _ in 0..18 {
        world.pass(Span::minutes(10));
        world.acts("ann");
        assert_eq!(world.claim("bob", ["a"]).held().holder.name, "ann");
    }
    assert!(world.claims_of("ann")[0].expires_at.since(world.now).0 >= ttl.0 / 2);
    // The last millisecond belongs to the holder, and the lock delay follows it.
    let left = world.claims_of("ann")[0].expires_at.since(world.now);
    world.pass(Span(left.0 - 1));
    world.claim("bob", ["a"]).held();
    world.pass(Span(1));
    let held = world.claim("bob", ["a"]).held();
    assert!(held.until.unwrap() > world.now, "held until the lock delay is over: {held:?}");
    world.pass(Span::seconds(10));
    world.claim("bob", ["a"]).granted();
}

#[test]
fn lesson_09_an_expired_claim_cannot_act() {
    let mut world = World::with(["ann", "bob"]);
    let first = world.claim("ann", ["a"]).ttl(MINUTE).granted();
    assert!(world.check("ann", "a", Some(first.token)).is_ok());
    world.pass(MINUTE);
    let stale = |answer: Result<_, Refusal>| match answer {
        Err(Refusal::StaleToken { given, .. }) => assert_eq!(given, first.token),
        other => panic!("{:?}", other.map(|_: ()| ())),
    };
    stale(world.check("ann", "a", Some(first.token)).map(drop));
    world.pass(MINUTE);
    let second = world.claim("bob", ["a"]).granted();
    assert!(second.token > first.token);
    stale(world.check("ann", "a", Some(first.token)).map(drop));
    let all = Which::Resources(vec![resource("a")]);
    stale(world.let_go("ann", &all, Some(first.token)).map(drop));
    // Taken anew after bob is gone, the old token is still worth nothing.
    world.release("bob", ["a"]).unwrap();
    let third = world.claim("ann", ["a"]).granted();
    assert!(third.token > second.token);
    stale(world.check("ann", "a", Some(first.token)).map(drop));
    assert!(world.check("ann", "a", Some(third.token)).is_ok());
}

#[test]
fn lesson_10_a_sleeper_whose_claim_was_taken_is_told_once() {
    let mut world = World::with(["ann", "bob"]);
    let old = world.claim("ann", ["a", "b"]).granted();
    world.pass(Span::hours(8));
    world.claim("bob", ["a"]).granted();
    // Looking tells it, but only an act counts as told.
    let checked = world.check("ann", "a", None).unwrap();
    assert_eq!((checked.verdict, checked.notices.len()), (Verdict::Deny, 1));
    let told = world.acts("ann").notices;
    let News::Lost { claim, to, .. } = &told[0].news else { panic!("{told:?}") };
    assert_eq!((claim, &to.as_ref().unwrap().name[..]), (&old.claim, "bob"));
    assert_eq!(world.acts("ann").notices, []);
    assert_eq!(world.check("ann", "a", None).unwrap().findings[0].because, Because::Held);
}

#[test]
fn lesson_10_a_sleeper_nobody_robbed_gets_a_new_token() {
    let mut world = World::with(["ann", "bob"]);
    let [one, two] = ["a", "b"].map(|path| world.claim("ann", [path]).granted());
    world.pass(Span::hours(8));
    let from = world.journal.len();
    let renewed = world.renew("ann", &Which::All).unwrap();
    let tokens: Vec<_> = renewed.renewed.iter().map(|kept| (kept.token, kept.new_token)).collect();
    assert_eq!(tokens.len(), 2);
    assert!(tokens.iter().all(|(token, new)| *new && *token > one.token.max(two.token)));
    let granted = |event: &Event| matches!(event, Event::ClaimGranted { .. });
    assert_eq!(world.events_since(from).iter().filter(|event| granted(event)).count(), 2);
    assert_eq!(world.claims_of("ann").len(), 2);
    assert_eq!(world.acts("ann").notices, [], "nothing was lost");
    for kept in renewed.renewed {
        let text = kept.resources[0].to_string();
        assert!(world.check("ann", &text, Some(kept.token)).is_ok());
    }
    world.claim("bob", ["a"]).held();
    world.audit();
}

#[test]
fn lesson_10_a_live_process_keeps_its_uncommitted_work() {
    let mut world = World::with(["ann", "bob"]);
    world.claim("ann", ["a"]).granted();
    world.dirty.insert("ann".to_owned(), vec![resource("a")]);
    world.looks.insert("ann".to_owned(), Life::Alive);
    world.pass(Span::hours(5));
    assert!(world.claim("bob", ["a"]).held().idle_dirty);
    world.looks.insert("ann".to_owned(), Life::Dead);
    let left = world.claim("bob", ["a"]).granted().left_behind;
    assert_eq!(left[0].holder.name, "ann");
    assert_eq!(left[0].paths, [resource("a")]);
    assert!(left[0].rescue.as_ref().unwrap().starts_with("refs/baton/rescue/"));
}

#[test]
fn lesson_01_a_task_is_taken_by_a_session_never_by_a_name() {
    let mut world = World::with(["otter"]);
    world.add("first");
    let token = world.takes("otter").unwrap().first.token;
    let first = world.id("otter");
    world.end("otter", Some(sessions::GRACE)).unwrap();
    // Another agent gets the name while the first is away.
    let second = world.begin("otter", "main", Some("another client"));
    assert_ne!(second.session, first);
    assert!(world.takes("otter").is_none(), "the first one still has it");
    let refused = refused(world.finishes("otter", "t1", None));
    assert!(matches!(refused, Refused::Owned { .. }), "{refused:?}");
    assert!(world.finishes("otter", "t1", Some(token)).is_err());
    assert_eq!(world.task("t1").owner().unwrap().session, first);
}

#[test]
fn lesson_02_what_somebody_works_on_is_never_offered() {
    let mut world = World::with(["ann", "bob", "cat"]);
    world.add("first");
    let won: Vec<bool> =
        ["ann", "bob", "cat"].into_iter().map(|who| world.takes(who).is_some()).collect();
    assert_eq!(won, [true, false, false]);
    // Whether it is offered follows from the one record that names its owner.
    let ready = |world: &World| {
        world.store.index().filter(|(index, ..)| *index == baton_core::task::READY).count()
    };
    assert_eq!(ready(&world), 0);
    world.parks("ann", "t1").unwrap();
    assert_eq!(ready(&world), 0);
    world.reopens(Some("ann"), "t1").unwrap();
    assert_eq!(ready(&world), 1);
    assert!(world.takes("bob").is_some());
    assert_eq!(ready(&world), 0);
}

#[test]
fn lesson_08_activity_keeps_a_task_and_silence_loses_it() {
    let mut world = World::with(["ann", "bob"]);
    world.add("first");
    let token = world.takes("ann").unwrap().first.token;
    for _ in 0..36 {
        world.pass(Span::minutes(5));
        world.acts("ann");
        assert!(world.takes("bob").is_none(), "lost at {}", world.now);
    }
    world.pass(Span::minutes(31));
    let taken = world.takes("bob").unwrap().first;
    assert_eq!(taken.attempt, 2);
    let refused = refused(world.finishes("ann", "t1", Some(token)));
    let Refused::Stale { attempt: 2, current, .. } = refused else { panic!("{refused:?}") };
    assert_eq!(current, Some(taken.token), "the loser is told which attempt counts");
}

#[test]
fn lesson_09_an_attempt_that_is_over_ends_nothing() {
    let mut world = World::with(["ann", "bob"]);
    world.add("first");
    let old = world.takes("ann").unwrap().first.token;
    world.pass(Span::hours(1));
    let new = world.takes("bob").unwrap().first.token;
    let store = world.store.clone();
    let late = |answer: Result<_, Refusal>| {
        let refused = refused(answer);
        let Refused::Stale { current, attempt: 2, .. } = refused else { panic!("{refused:?}") };
        assert_eq!(current, Some(new));
    };
    for token in [None, Some(old)] {
        late(world.finishes("ann", "t1", token));
        late(world.fails("ann", "t1", Class::Failed, token));
    }
    late(world.parks("ann", "t1"));
    late(world.blocks("ann", "t1", "words"));
    assert_eq!(world.store, store, "nothing was changed");
    world.finishes("bob", "t1", Some(new)).unwrap();
    let after = refused(world.finishes("ann", "t1", Some(old)));
    assert!(matches!(after, Refused::Stale { current: None, attempt: 2, .. }), "{after:?}");
}

#[test]
fn lesson_22_only_a_failure_is_an_attempt() {
    let mut world = World::with(["ann"]);
    world.add("first");
    for class in [Class::RateLimited, Class::Auth, Class::Killed].into_iter().cycle().take(12) {
        let taken = world.takes("ann").unwrap();
        assert_eq!(taken.first.attempt, 1, "{class:?} is no attempt");
        world.fails("ann", "t1", class, None).unwrap();
        assert!(world.takes("ann").is_none(), "it waits a while");
        world.pass(Span::hours(1));
    }
    for attempt in 1..=3 {
        assert_eq!(world.takes("ann").unwrap().first.attempt, attempt);
        world.fails("ann", "t1", Class::Failed, None).unwrap();
    }
    assert_eq!(world.state("t1"), "waiting", "and failures are bounded: a person decides");
}
