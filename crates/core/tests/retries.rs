//! Retries are bounded: no order of takes, failures, rejections, deaths and revisions gives a task
//! more attempts than it has, unless a person says so.

use baton_core::task::State;
use baton_core::tasks::ATTEMPTS_DEFAULT;
use baton_core::tasks::editing::Edit;
use baton_core::tasks::ending::Class;
use baton_core::time::Span;
use baton_core::view::Records;
use baton_core::zones::{OnExhausted, Policy, TaskRules};
use proptest::prelude::*;

use crate::backlog::{best, filing, this};
use crate::gates::asking;
use crate::reviews::word;
use crate::world::{World, process};

fn with_policy(names: &[&str], on_exhausted: OnExhausted) -> World {
    let mut world = World::with(names.iter().copied());
    let tasks = TaskRules { on_exhausted };
    let policy = Policy { tasks, ..Policy::default() };
    let context = world.context(None);
    let event = baton_core::event::Event::PolicySet { policy };
    world.decide(context, |_, _| Ok((vec![event.clone()], ()))).unwrap();
    world
}

/// Three attempts, each handed in and rejected in other words.
fn rejected_thrice(world: &mut World) {
    let said = ["tests are missing", "the name is wrong", "it is far too slow now"];
    world.takes_as("ann", &this("t1")).unwrap();
    for (text, digit) in said.iter().zip(['a', 'b', 'c']) {
        world.submits("ann", "t1", digit);
        world.rejects("bob", "t1", text).unwrap();
    }
}

#[test]
fn over_the_maximum_a_person_decides_with_the_history() {
    let mut world = World::with(["ann", "bob"]);
    world.add("hard");
    rejected_thrice(&mut world);
    assert_eq!((world.state("t1"), world.dossier("t1").feedback.len()), ("waiting", 3));
    let gate = world.gate("g1");
    assert!(gate.ask.contains("3 of 3 attempts") && gate.ask.contains("far too slow"), "{gate:?}");
    assert!(world.takes("ann").is_none() && world.takes("bob").is_none());
    world.decides("g1", true, Some("revive")).unwrap();
    let taken = world.takes("bob").unwrap().first;
    assert_eq!((taken.attempt, taken.feedback.len()), (1, 3), "with everything that was said");
    world.audit();
}

#[test]
fn a_person_cancels_or_leaves_it_as_a_dead_letter() {
    for (option, state) in [(Some("cancel"), "cancelled"), (None, "failed")] {
        let mut world = World::with(["ann", "bob"]);
        world.add("hard");
        world.add_after("later", &["t1"]);
        rejected_thrice(&mut world);
        world.decides("g1", option.is_some(), option).unwrap();
        assert_eq!(world.state("t1"), state);
        let expected = if option.is_some() { "open" } else { "blocked" };
        assert_eq!(world.state("t2"), expected);
        if option.is_none() {
            world.revives(None, "t1", Some(1)).unwrap();
            assert_eq!((world.state("t1"), world.task("t1").max_attempts), ("open", 1));
        }
        world.audit();
    }
}

#[test]
fn the_same_feedback_twice_in_a_row_goes_to_a_person() {
    let mut world = World::with(["ann", "bob"]);
    world.add("hard");
    world.takes("ann").unwrap();
    world.submits("ann", "t1", 'a');
    world.rejects("bob", "t1", "The tests for the parser are missing!").unwrap();
    world.submits("ann", "t1", 'b');
    world.rejects("bob", "t1", "tests for parser missing").unwrap();
    assert_eq!((world.state("t1"), world.task("t1").standing.attempts_used), ("waiting", 2));
    assert!(world.gate("g1").ask.contains("twice in a row"), "{:?}", world.gate("g1"));
    world.audit();
}

#[test]
fn what_becomes_of_it_is_written_in_the_policy() {
    let mut world = with_policy(&["ann", "bob"], OnExhausted::Abort);
    world.add("hard");
    rejected_thrice(&mut world);
    assert_eq!(world.state("t1"), "failed");

    let mut world = with_policy(&["ann", "bob"], OnExhausted::Role("senior".to_owned()));
    world.begin_as("sue", "main", Some("client of sue"), (Some("senior"), process("sue")));
    world.add("hard");
    rejected_thrice(&mut world);
    assert_eq!((world.state("t1"), world.task("t1").role.as_deref()), ("open", Some("senior")));
    assert!(world.takes("ann").is_none());
    for attempt in 1..=3 {
        assert_eq!(world.takes("sue").unwrap().first.attempt, attempt);
        world.fails("sue", "t1", Class::Failed, None).unwrap();
    }
    assert_eq!(world.state("t1"), "waiting", "passed on once, then to a person");
    world.audit();
}

#[test]
fn a_part_of_a_split_fails_instead_of_waiting() {
    let mut world = World::with(["ann", "bob"]);
    world.add("whole");
    let request = filing("part");
    world.file(&request).unwrap();
    // Splitting is another rule; here only the link to the parent counts.
    let mut part = world.task("t2");
    part.parent = Some(world.task("t1").task);
    world.store.put("task", "t2", serde_json::to_string(&part).unwrap()).unwrap();
    for _ in 0..3 {
        world.takes_as("ann", &this("t2")).unwrap();
        world.fails("ann", "t2", Class::Failed, None).unwrap();
    }
    assert_eq!(world.state("t2"), "failed");
}

#[derive(Clone, Debug)]
enum Act {
    Take(usize),
    Fail(usize),
    Submit(usize),
    Judge(usize, bool),
    Withdraw(usize),
    Edit(usize),
    Gate(usize),
    Die(usize),
    Cancel(usize),
    Reopen(usize),
    More(usize),
    Vote(usize, bool),
    Pass,
}

const NAMES: [&str; 3] = ["ann", "bob", "cid"];

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let who = || 0..NAMES.len();
    let act = prop_oneof![
        6 => who().prop_map(Act::Take),
        3 => who().prop_map(Act::Fail),
        5 => who().prop_map(Act::Submit),
        6 => (who(), any::<bool>()).prop_map(|(who, yes)| Act::Judge(who, yes)),
        1 => who().prop_map(Act::Withdraw),
        2 => who().prop_map(Act::Edit),
        1 => who().prop_map(Act::Gate),
        1 => who().prop_map(Act::Die),
        1 => who().prop_map(Act::Cancel),
        1 => who().prop_map(Act::Reopen),
        1 => who().prop_map(Act::More),
        1 => (who(), any::<bool>()).prop_map(|(who, yes)| Act::Vote(who, yes)),
        2 => Just(Act::Pass),
    ];
    prop::collection::vec(act, 1..60)
}

/// Does it, whatever comes of it: only agents act here.
fn perform(world: &mut World, act: &Act, step: usize) {
    let digit = char::from(b'a' + u8::try_from(step % 6).unwrap());
    match act {
        Act::Take(who) => drop(world.taking(NAMES[*who], &best())),
        Act::Fail(who) => drop(world.fails(NAMES[*who], "t1", Class::Failed, None)),
        Act::Submit(who) => drop(world.submitting(NAMES[*who], "t1", digit, None)),
        Act::Judge(who, yes) => {
            let text = format!("words{step} that{step} differ{step}");
            drop(world.judging(Some(NAMES[*who]), &word("t1", *yes, Some(&text))));
        }
        Act::Withdraw(who) => drop(world.withdraws(NAMES[*who], "t1")),
        Act::Edit(who) => drop(world.claim(NAMES[*who], ["src/a.rs"]).answer()),
        Act::Gate(who) => {
            let kind = baton_core::gate::Kind::Approval;
            drop(world.gates(Some(NAMES[*who]), &asking("t1", kind)));
        }
        Act::Die(who) => {
            world.dies(NAMES[*who]);
            world.start(NAMES[*who], "main");
        }
        Act::Cancel(who) => drop(world.cancels(Some(NAMES[*who]), "t1")),
        Act::Reopen(who) => drop(world.reopens(Some(NAMES[*who]), "t1")),
        Act::More(who) => {
            let edit = Edit { max_attempts: Some(50), ..Edit::default() };
            drop(world.updates(Some(NAMES[*who]), "t1", edit, &[]));
        }
        Act::Vote(who, yes) => {
            let value = if *yes { "approve" } else { "reject" };
            let request = baton_core::votes::Request {
                subject: "t1".to_owned(),
                value: value.to_owned(),
                why: "so".to_owned(),
            };
            let context = world.context(Some(NAMES[*who]));
            drop(
                world.decide(context, |view, context| {
                    baton_core::votes::vote(view, &request, context)
                }),
            );
        }
        Act::Pass => world.pass(Span::minutes(17)),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn no_order_of_acts_gives_more_attempts_without_a_person(acts in acts()) {
        let mut world = World::with(NAMES);
        world.add_on("hard", &["src/"]);
        let mut used = 0;
        let mut lost: u32 = 0;
        for (step, act) in acts.iter().enumerate() {
            let before = world.task("t1");
            perform(&mut world, act, step);
            let task = world.task("t1");
            let now = task.standing.attempts_used;
            // A finished task may be begun anew; that is no retry of what failed.
            let anew = before.state() == State::Done && task.state() == State::Open;
            prop_assert!(now >= used || anew, "attempts were given back by {act:?}");
            if anew {
                lost = 0;
            } else if now > used {
                lost += now - used;
            }
            used = now;
            let max = task.max_attempts;
            prop_assert!(max == ATTEMPTS_DEFAULT || used == 0 || max == 50);
            prop_assert!(lost <= max, "{lost} lost attempts of {max}");
            if lost >= max {
                prop_assert!(
                    matches!(task.state(), State::Waiting | State::Failed | State::Cancelled),
                    "{:?} after {} attempts", task.state(), lost
                );
            }
            let seats = task.seats().count();
            prop_assert!(task.owner().is_none() || seats == 1, "an owner and reviewers at once");
            prop_assert_eq!(task.owner().is_some(), task.state() == State::Active);
            prop_assert_eq!(!task.standing.held.is_empty(), task.state() == State::Waiting);
        }
        world.audit();
    }
}
