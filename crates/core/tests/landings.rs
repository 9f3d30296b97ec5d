//! Stories about the merge queue: who stands in line, whose turn it is, what may move.

use baton_core::claim::Holder;
use baton_core::context::Life;
use baton_core::event::Event;
use baton_core::id::{ClaimId, GateId, LandingId, Position, SessionId, TaskId, Token, TreeId};
use baton_core::landing::{Cause, Landing, Moving, Paused, Queue, Runner, State, Verified};
use baton_core::landings::claims::Lost;
use baton_core::landings::running::{self, Part};
use baton_core::landings::{self, Enqueue, Refused, Why};
use baton_core::refusal::Refusal;
use baton_core::time::Span;

use crate::world::{START, World, resources};

const TIP: &str = "1111111111111111111111111111111111111111";
const NEWER: &str = "2222222222222222222222222222222222222222";

fn enqueue(branch: &str, tip: &str) -> Enqueue {
    Enqueue {
        branch: branch.to_owned(),
        target: "main".to_owned(),
        tip: tip.to_owned(),
        task: None,
        tree: TreeId("t1".to_owned()),
        takes_back: false,
        paths: vec![format!("{branch}.rs")],
        contains: Vec::new(),
    }
}

fn queued(world: &mut World, who: &str, request: &Enqueue) -> Landing {
    let context = world.context(Some(who));
    world
        .decide(context, |view, context| landings::enqueue(view, request, context))
        .unwrap()
        .landing
}

fn begins(world: &mut World, seen: &[(Token, Life)]) -> Result<Runner, Refusal> {
    let mut context = world.context(None);
    context.observed.runners.extend(seen.iter().copied());
    world.decide(context, |view, context| running::begin(view, None, context))
}

fn moving(landing: &Landing) -> Moving {
    Moving {
        target: "main".to_owned(),
        from: "00".to_owned(),
        to: "33".to_owned(),
        landings: vec![(landing.landing.clone(), "33".to_owned())],
        checked: false,
    }
}

fn move_begins(
    world: &mut World,
    token: Token,
    landing: &Landing,
    tip: &str,
) -> Result<(), Refusal> {
    let parts = [Part {
        landing: landing.landing.clone(),
        tip: tip.to_owned(),
        commit: "33".to_owned(),
        contains: Vec::new(),
    }];
    let tree = Verified { tree: "44".to_owned(), checks: "55".to_owned() };
    let (moving, context) = (moving(landing), world.context(None));
    world.decide(context, |view, context| {
        running::move_begins(view, token, &moving, &parts, &tree, context)
    })
}

fn refused(answer: Result<(), Refusal>) -> Refused {
    match answer {
        Err(Refusal::Landing(refused)) => *refused,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_branch_stands_in_line_once_and_a_newer_commit_takes_its_place() {
    let (mut world, ann) = (World::with(["ann"]), "ann");
    let one = queued(&mut world, ann, &enqueue("one", TIP));
    let two = queued(&mut world, ann, &enqueue("two", TIP));
    assert_eq!((one.landing.as_str(), two.landing.as_str()), ("l1", "l2"));
    assert_eq!(queued(&mut world, ann, &enqueue("one", TIP)), one, "the very same");
    let newer = queued(&mut world, ann, &enqueue("one", NEWER));
    assert_eq!((newer.landing, newer.tip.as_str()), (one.landing, NEWER));
    assert_eq!(world.records::<Landing>().len(), 2);
    world.audit();
}

#[test]
fn one_runner_at_a_time_and_a_late_one_changes_nothing() {
    let (mut world, ann) = (World::with(["ann"]), "ann");
    let one = queued(&mut world, ann, &enqueue("one", TIP));
    let first = begins(&mut world, &[]).unwrap().token;
    assert!(begins(&mut world, &[]).is_err(), "its lease runs");
    assert!(begins(&mut world, &[(first, Life::Unknown)]).is_err(), "unknown is not dead");
    assert!(begins(&mut world, &[(first, Life::Alive)]).is_err());
    let second = begins(&mut world, &[(first, Life::Dead)]).unwrap().token;
    assert!(matches!(refused(move_begins(&mut world, first, &one, TIP)), Refused::LostTurn { .. }));
    move_begins(&mut world, second, &one, TIP).unwrap();
    let context = world.context(None);
    let late = world.decide(context, |view, context| running::landed(view, first, None, context));
    assert!(late.is_err());
    let context = world.context(None);
    let landed = world
        .decide(context, |view, context| running::landed(view, second, None, context))
        .unwrap();
    assert_eq!(landed[0].state, State::Landed);
    assert!(!landed[0].checked && landed[0].reason.is_some(), "landed unchecked is said");
    let queue = world.records::<Queue>().pop().unwrap();
    assert!(queue.moving.is_none());
    world.audit();
}

#[test]
fn s16_what_moves_is_what_was_checked() {
    let (mut world, ann) = (World::with(["ann"]), "ann");
    let one = queued(&mut world, ann, &enqueue("one", TIP));
    let token = begins(&mut world, &[]).unwrap().token;
    assert!(matches!(refused(move_begins(&mut world, token, &one, NEWER)), Refused::Moved));
    let context = world.context(None);
    world.decide(context, |view, context| landings::pause(view, Some("stop"), context)).unwrap();
    assert!(matches!(refused(move_begins(&mut world, token, &one, TIP)), Refused::Paused { .. }));
    let context = world.context(None);
    world.decide(context, landings::resume).unwrap();
    move_begins(&mut world, token, &one, TIP).unwrap();
    // It did not happen: it stands in line as before.
    let context = world.context(None);
    world.decide(context, |view, context| running::not_moved(view, token, context)).unwrap();
    assert_eq!(world.records::<Landing>()[0].state, State::Queued);
    world.audit();
}

#[test]
fn what_went_back_is_told_once_and_may_come_again() {
    let (mut world, ann) = (World::with(["ann"]), "ann");
    let one = queued(&mut world, ann, &enqueue("one", TIP));
    let token = begins(&mut world, &[]).unwrap().token;
    let why = Why::new(Cause::Conflict, "it conflicts");
    for times in 0..2 {
        let context = world.context(None);
        let gone = world
            .decide(context, |view, context| {
                running::returned(view, token, &one.landing, &why, context)
            })
            .unwrap();
        assert_eq!(gone.is_some(), times == 0);
    }
    let context = world.context(Some(ann));
    let again = world
        .decide(context, |view, context| {
            landings::again(view, "one", &enqueue("one", NEWER), context)
        })
        .unwrap();
    assert_eq!(again.landing.landing.as_str(), "l2");
    assert_eq!(again.notices.len(), 1, "ann hears of it");
    world.audit();
}

#[test]
fn s4_what_was_lost_to_another_lands_only_upon_what_that_one_landed() {
    let (mut world, ann) = (World::with(["ann", "bob"]), "ann");
    world.claim(ann, ["one.rs"]).granted();
    world.pass(Span::hours(5));
    world.acts("bob");
    world.claim("bob", ["one.rs"]).granted();
    let bobs = Enqueue { paths: vec!["one.rs".to_owned()], ..enqueue("bobs", TIP) };
    let bobs = queued(&mut world, "bob", &bobs);
    let anns = enqueue("one", NEWER);
    let tries = |world: &mut World, request: &Enqueue| {
        let context = world.context(Some(ann));
        let tried =
            world.decide(context, |view, context| landings::enqueue(view, request, context));
        tried.map(|_| ())
    };
    assert!(matches!(refused(tries(&mut world, &anns)), Refused::Held { .. }), "bob holds it now");
    let token = begins(&mut world, &[]).unwrap().token;
    move_begins(&mut world, token, &bobs, TIP).unwrap();
    let context = world.context(None);
    world.decide(context, |view, context| running::landed(view, token, None, context)).unwrap();
    world.release("bob", ["one.rs"]).unwrap();
    let lost = refused(tries(&mut world, &anns));
    assert!(matches!(&lost, Refused::Lost { to, .. } if to.name == "bob"), "{lost:?}");
    // Another file was never lost; and upon what bob landed it may land.
    tries(&mut world, &enqueue("other", NEWER)).unwrap();
    tries(&mut world, &Enqueue { contains: vec!["33".to_owned()], ..anns }).unwrap();
    world.audit();
}

/// One event of each kind of the queue.
pub(crate) fn events() -> Vec<Event> {
    let by = Holder { session: SessionId("s1".to_owned()), name: "ann".to_owned(), agent: None };
    let id = LandingId::numbered(1);
    let token = Position { epoch: 1, number: 2 };
    let landing = Landing {
        landing: id,
        branch: "one".to_owned(),
        target: "main".to_owned(),
        tip: TIP.to_owned(),
        task: Some(TaskId::numbered(1)),
        by: by.clone(),
        tree: TreeId("t1".to_owned()),
        takes_back: true,
        paths: vec!["a".to_owned()],
        queued_at: START,
        state: State::Queued,
        since: START,
        reason: Some("because".to_owned()),
        cause: Some(Cause::Gate),
        files: vec!["a".to_owned()],
        log: Some("log".to_owned()),
        commit: Some(NEWER.to_owned()),
        checked: true,
        gate: Some(GateId::numbered(1)),
        flaky: 1,
    };
    let runner = Runner {
        token,
        holder: by.clone(),
        process: Some(crate::world::process("ann")),
        since: START,
        lease_until: START,
    };
    let lost = Lost {
        claim: ClaimId("c1".to_owned()),
        session: by.session.clone(),
        resources: resources(["a"]),
        to: by.clone(),
        at: START,
    };
    let mut events = vec![Event::ClaimLost { lost }];
    events.extend(of_landing(&landing));
    events.extend([
        Event::QueueRunnerStarted { runner },
        Event::QueueRunnerRenewed { token, lease_until: START },
        Event::QueueRunnerEnded { token },
        Event::QueuePaused {
            paused: Paused { by: by.clone(), at: START, why: Some("x".to_owned()) },
        },
        Event::QueueResumed { by, at: START },
    ]);
    events
}

fn of_landing(landing: &Landing) -> Vec<Event> {
    let (id, by) = (landing.landing.clone(), landing.by.clone());
    let (reason, files) = ("because".to_owned(), vec!["a".to_owned()]);
    let landings = vec![id.clone()];
    vec![
        Event::LandingQueued { landing: Box::new(landing.clone()) },
        Event::LandingsWaiting { landings: landings.clone(), at: START },
        Event::LandingsChecking { landings, at: START },
        Event::LandingHeld {
            landing: id.clone(),
            cause: Cause::Gate,
            reason: reason.clone(),
            files: files.clone(),
            gate: Some(GateId::numbered(1)),
            at: START,
        },
        Event::LandingReturned {
            landing: id.clone(),
            cause: Cause::Check,
            reason: reason.clone(),
            files,
            log: Some("log".to_owned()),
            at: START,
        },
        Event::LandingRemoved { landing: id.clone(), by, at: START, reason },
        Event::LandingProposed { landing: id.clone(), commit: TIP.to_owned(), at: START },
        Event::TreeVerified {
            verified: Verified { tree: "44".to_owned(), checks: "55".to_owned() },
            at: START,
        },
        Event::CheckFlaky { landing: id, tree: "44".to_owned(), at: START },
        Event::TargetMoving { moving: moving(landing) },
        Event::TargetNotMoved { at: START },
        Event::LandingsLanded { moved: moving(landing), at: START },
    ]
}
