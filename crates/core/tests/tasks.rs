//! The rules of tasks, one by one.

use baton_core::event::Event;
use baton_core::id::TaskId;
use baton_core::refusal::Refusal;
use baton_core::sessions;
use baton_core::task::dossier::Past;
use baton_core::task::{Move, State};
use baton_core::tasks::choosing::Verdict;
use baton_core::tasks::editing::Edit;
use baton_core::tasks::ending::{BACK_OFF_FIRST, BACK_OFF_MAX, Class};
use baton_core::tasks::refused::Refused;
use baton_core::tasks::taking::{self, Answer};
use baton_core::tasks::{TITLE_BYTES_MAX, TTL_DEFAULT, adding};
use baton_core::time::Span;

use crate::backlog::{best, filing, refused, this};
use crate::world::{World, process, resources};

#[test]
fn tasks_are_numbered_in_the_order_of_filing() {
    let mut world = World::with(["ann"]);
    assert_eq!(["a1", "b2", "c3"].map(|title| world.add(title)), ["t1", "t2", "t3"]);
    assert_eq!(world.tally().made, 3);
    assert_eq!(world.tally().ready(), 3);
    world.audit();
}

#[test]
fn one_key_is_one_task_however_often_it_is_filed() {
    let mut world = World::with(["ann"]);
    let request = adding::Request { key: Some("disk/full".to_owned()), ..filing("disk full") };
    let first = world.file(&request).unwrap();
    assert!(!first.known);
    let entries = world.journal.len();
    let again = world.file(&request).unwrap();
    assert_eq!((&again.task, again.known), (&first.task, true));
    assert_eq!(world.journal.len(), entries, "nothing was written");
    world.takes("ann").unwrap();
    world.finishes("ann", "t1", None).unwrap();
    let done = world.file(&request).unwrap();
    assert_eq!((done.task.0.as_str(), done.state), ("t1", State::Done));
    assert_eq!(world.tally().made, 1);
}

#[test]
fn urgent_first_then_what_unblocks_most_then_the_oldest() {
    let mut world = World::with(["ann"]);
    let plain = world.add("one plain");
    let root = world.add("two root");
    let middle = world.add_after("three middle", &[&root]);
    world.add_after("four leaf", &[&middle]);
    let urgent =
        world.file(&adding::Request { priority: Some(0), ..filing("five urgent") }).unwrap().task.0;
    let also = taking::Request { also: true, ..best() };
    let order: Vec<String> =
        std::iter::from_fn(|| world.takes_as("ann", &also).map(|taken| taken.first.task.0))
            .collect();
    assert_eq!(order, [urgent, root, plain]);
    assert_eq!(world.task("t2").unblocks, 2);
}

#[test]
fn several_are_taken_at_once_and_the_order_is_kept() {
    let mut world = World::with(["ann"]);
    for number in 0..5 {
        world.add(&format!("work number{number}"));
    }
    let taken = world.takes_as("ann", &taking::Request { count: 3, ..best() }).unwrap();
    let ids: Vec<&str> = taken.also.iter().map(|task| task.task.as_str()).collect();
    assert_eq!((taken.first.task.as_str(), ids), ("t1", vec!["t2", "t3"]));
    let tokens: std::collections::BTreeSet<_> =
        taken.also.iter().map(|task| task.token).chain([taken.first.token]).collect();
    assert_eq!(tokens.len(), 3, "each has its own");
    world.audit();
}

#[test]
fn one_session_has_one_active_task_unless_it_says_otherwise() {
    let mut world = World::with(["ann"]);
    world.add("first");
    world.add("second");
    world.takes("ann").unwrap();
    let Refused::HasTask { task, .. } = refused(world.taking("ann", &best())) else { panic!() };
    assert_eq!(task.task.as_str(), "t1");
    assert!(world.takes_as("ann", &taking::Request { also: true, ..best() }).is_some());
    world.parks("ann", "t1").unwrap();
    world.finishes("ann", "t2", None).unwrap();
    assert!(world.takes("ann").is_none(), "a parked one is not offered");
    assert_eq!(world.takes_as("ann", &this("t1")).unwrap().first.attempt, 1, "no attempt was used");
}

#[test]
fn a_named_task_is_taken_or_refused_with_its_owner_or_state() {
    let mut world = World::with(["ann", "bob"]);
    world.add("first");
    world.add_after("second", &["t1"]);
    world.takes_as("ann", &this("1")).unwrap();
    let Refused::Owned { owner, .. } = refused(world.taking("bob", &this("t1"))) else { panic!() };
    assert_eq!(owner.name, "ann");
    let answer = refused(world.taking("bob", &this("t2")));
    let Refused::WrongState { state, reason, allowed, .. } = answer else { panic!("{answer:?}") };
    assert_eq!((state, reason.unwrap().as_str()), (State::Blocked, "waits for t1"));
    assert!(allowed.contains(&"update") && !allowed.contains(&"take"));
    let answer = refused(world.taking("bob", &this("t21")));
    let Refused::Unknown { near, .. } = answer else { panic!("{answer:?}") };
    assert_eq!(near[0].task.as_str(), "t1");
    let answer = refused(world.taking("bob", &this("second")));
    let Refused::Unknown { near, .. } = answer else { panic!("{answer:?}") };
    assert_eq!(near[0].task.as_str(), "t2");
}

#[test]
fn finishing_wakes_what_waits_exactly_once() {
    let mut world = World::with(["ann"]);
    world.add("first");
    world.add("second");
    world.add_after("third", &["t1", "t2"]);
    world.add_after("fourth", &["t3"]);
    assert_eq!((world.state("t3"), world.task("t1").unblocks), ("blocked", 2));
    world.takes_as("ann", &this("t1")).unwrap();
    assert_eq!(world.finishes("ann", "t1", None).unwrap().woken, []);
    assert_eq!(world.task("t3").pending, [TaskId::numbered(2)]);
    world.takes_as("ann", &this("t2")).unwrap();
    let woken = world.finishes("ann", "t2", None).unwrap().woken;
    assert_eq!(woken, [TaskId::numbered(3)]);
    assert_eq!((world.state("t3"), world.state("t4")), ("open", "blocked"));
    // Reopened, it holds nothing back that is awake; finished again, it wakes nothing twice.
    world.reopens(None, "t2").unwrap();
    assert_eq!(world.state("t3"), "open");
    world.takes_as("ann", &this("t2")).unwrap();
    assert_eq!(world.finishes("ann", "t2", None).unwrap().woken, []);
    world.audit();
}

#[test]
fn what_comes_after_a_finished_task_is_ready_at_once() {
    let mut world = World::with(["ann"]);
    world.add("first");
    world.cancels(None, "t1").unwrap();
    world.add_after("second", &["t1"]);
    assert_eq!(world.state("t2"), "open");
}

#[test]
fn a_circle_is_refused_with_its_names() {
    let mut world = World::with(["ann"]);
    world.add("first");
    world.add_after("second", &["t1"]);
    world.add_after("third", &["t2"]);
    let names = |answer| {
        let Refused::Cycle { tasks } = refused(answer) else { panic!() };
        tasks.iter().map(|task| task.0.clone()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names(world.updates(None, "t1", Edit::default(), &["t3"])), "t1 t3 t2 t1");
    assert_eq!(names(world.updates(None, "t1", Edit::default(), &["t1"])), "t1 t1");
    assert_eq!(names(world.blocks("ann", "t1", "t2")), "t1 t2 t1");
    assert!(world.updates(None, "t3", Edit::default(), &["t1"]).is_ok(), "a second way is none");
    assert_eq!(world.task("t1").unblocks, 2, "counted once though there are two ways");
}

#[test]
fn weights_follow_every_change_of_the_graph() {
    let mut world = World::with(["ann"]);
    for title in ["alpha", "beta", "gamma", "delta"] {
        world.add(title);
    }
    world.updates(None, "t2", Edit::default(), &["t1"]).unwrap();
    world.updates(None, "t4", Edit::default(), &["t3"]).unwrap();
    world.updates(None, "t3", Edit::default(), &["t2"]).unwrap();
    assert_eq!(["t1", "t2", "t3", "t4"].map(|id| world.task(id).unblocks), [3, 2, 1, 0]);
    world.cancels(None, "t3").unwrap();
    assert_eq!(["t1", "t2"].map(|id| world.task(id).unblocks), [1, 0], "and what it led to");
    assert_eq!(world.state("t4"), "open");
    world.reopens(None, "t3").unwrap();
    assert_eq!((world.state("t3"), world.task("t1").unblocks), ("blocked", 2));
    world.audit();
}

#[test]
fn weights_reach_thirty_two_levels() {
    let mut world = World::new();
    world.add("first");
    for number in 1..40 {
        world.add_after(&format!("link number{number}"), &[&format!("t{number}")]);
    }
    assert_eq!(world.task("t1").unblocks, 32);
    assert_eq!(world.task("t30").unblocks, 10);
}

#[test]
fn a_phase_opens_when_all_before_it_is_finished() {
    let mut world = World::with(["ann"]);
    let phase = |phase| adding::Request { phase: Some(phase), ..filing(&format!("in {phase}")) };
    for number in [2, 1, 3, 1] {
        world.file(&phase(number)).unwrap();
    }
    let also = taking::Request { also: true, ..best() };
    assert_eq!(world.takes("ann").unwrap().first.task.as_str(), "t2");
    assert_eq!(world.takes_as("ann", &also).unwrap().first.task.as_str(), "t4");
    assert!(world.takes_as("ann", &also).is_none());
    let answer = refused(world.taking("ann", &taking::Request { also: true, ..this("t1") }));
    let Refused::WrongState { reason: Some(reason), .. } = answer else { panic!("{answer:?}") };
    assert_eq!(reason, "phase 2 opens when phase 1 is finished: 2 tasks left");
    world.finishes("ann", "t2", None).unwrap();
    world.finishes("ann", "t4", None).unwrap();
    assert_eq!(world.tally().ready(), 1);
    assert_eq!(world.takes("ann").unwrap().first.task.as_str(), "t1");
    // A late task of an earlier phase closes the later ones again.
    world.file(&phase(1)).unwrap();
    world.finishes("ann", "t1", None).unwrap();
    assert_eq!(world.takes("ann").unwrap().first.task.as_str(), "t5");
    world.updates(Some("ann"), "t5", Edit { phase: Some(0), ..Edit::default() }, &[]).unwrap();
    assert_eq!(world.takes_as("ann", &also).unwrap().first.task.as_str(), "t3");
    world.audit();
}

#[test]
fn a_role_is_offered_to_its_own_only() {
    let mut world = World::with(["ann"]);
    world.begin_as("rev", "main", None, (Some("review"), process("rev")));
    let role = Some("review".to_owned());
    world.file(&adding::Request { role, priority: Some(0), ..filing("look at it") }).unwrap();
    world.add("anybody's");
    assert_eq!(world.takes("ann").unwrap().first.task.as_str(), "t2");
    world.parks("ann", "t2").unwrap();
    let answer = refused(world.taking("ann", &this("t1")));
    assert!(matches!(answer, Refused::WrongRole { .. }), "{answer:?}");
    let Ok(Answer::Nothing(nothing)) = world.taking("ann", &best()) else { panic!() };
    assert_eq!((nothing.ready, nothing.parked), (1, 1));
    assert_eq!(world.takes("rev").unwrap().first.task.as_str(), "t1");
}

#[test]
fn a_task_whose_paths_others_hold_is_passed_over() {
    let mut world = World::with(["ann", "bob", "cat"]);
    world.claim("bob", ["src/parser/"]).granted();
    world.add_on("one parser", &["src/parser/a.rs"]);
    world.add_on("two lexer", &["src/lexer/*.rs"]);
    world.add_on("three lexer", &["src/lexer/b.rs"]);
    world.add_on("four docs", &["docs/"]);
    let explain = taking::Request { explain: true, ..best() };
    let taken = world.takes_as("ann", &explain).unwrap();
    assert_eq!(taken.first.task.as_str(), "t2");
    let told: Vec<_> = taken.considered.iter().map(|one| one.verdict).collect();
    use Verdict::{Chosen, Conflicts, NotNeeded};
    assert_eq!(told, [Conflicts, Chosen, NotNeeded, NotNeeded]);
    assert_eq!(taken.considered[0].conflict.as_ref().unwrap().with.name, "bob");
    // The paths of an active task count as held; one's own do not.
    assert_eq!(world.takes("cat").unwrap().first.task.as_str(), "t4");
    let also = taking::Request { also: true, ..explain };
    let taken = world.takes_as("ann", &also).unwrap();
    assert_eq!(taken.first.task.as_str(), "t3");
    // When everything conflicts, the first.
    let taken = world.takes_as("cat", &also).unwrap();
    assert_eq!(taken.first.task.as_str(), "t1");
    world.audit();
}

#[test]
fn of_the_first_two_hundred_the_first_that_is_free() {
    for (holders, free, expected) in [(1, 150, "t151"), (1, 250, "t1"), (120, 150, "t151")] {
        let mut world = World::with(["ann", "bob"]);
        for number in 0..holders {
            let path = if holders == 1 { "src/".to_owned() } else { format!("src/f{number}") };
            world.claim("bob", [path.as_str()]).granted();
        }
        for number in 0..=free {
            // Past the claimed ones the paths repeat: each set is tested once.
            let path = format!("src/f{}", number % holders.clamp(2, 120));
            let path = if number == free { "free".to_owned() } else { path };
            let path = if holders == 1 && number != free { format!("src/x{number}") } else { path };
            world.add_on(&format!("work number{number}"), &[&path]);
        }
        assert_eq!(world.takes("ann").unwrap().first.task.as_str(), expected, "{holders} {free}");
    }
}

#[test]
fn a_task_and_the_claim_on_its_paths_come_together_or_not_at_all() {
    let mut world = World::with(["ann", "bob"]);
    world.add_on("parser", &["src/a.rs", "src/b.rs"]);
    let claim = world.claim("bob", ["src/b.rs"]).granted();
    let request = taking::Request { claim: true, ..best() };
    let entries = world.journal.len();
    let answer = world.taking("ann", &request);
    assert!(matches!(&answer, Err(Refusal::Held(held)) if held.holder.name == "bob"), "{answer:?}");
    assert_eq!((world.journal.len(), world.state("t1")), (entries, "open"));
    world.release("bob", ["src/b.rs"]).unwrap();
    let taken = world.takes_as("ann", &request).unwrap();
    let granted = taken.claim.unwrap();
    assert_eq!(granted.resources, resources(["src/a.rs", "src/b.rs"]));
    assert!(granted.token > claim.token);
    let record = &world.claims_of("ann")[0];
    assert_eq!((record.task.as_deref(), record.token), (Some("t1"), granted.token));
    let moved = world.finishes("ann", "t1", Some(taken.first.token)).unwrap();
    assert_eq!(moved.released.len(), 2);
    assert_eq!(world.claims(), []);
    world.audit();
}

#[test]
fn with_a_claim_the_next_task_is_tried_when_paths_are_held() {
    let mut world = World::with(["ann", "bob"]);
    world.add_on("one parser", &["src/a.rs"]);
    world.add_on("two docs", &["docs/x"]);
    world.claim("bob", ["src/"]).granted();
    let request = taking::Request { claim: true, explain: true, ..best() };
    let taken = world.takes_as("ann", &request).unwrap();
    assert_eq!(taken.first.task.as_str(), "t2");
    let chosen = taken.considered.iter().filter(|one| one.verdict == Verdict::Chosen);
    assert_eq!(chosen.map(|one| one.task.as_str()).collect::<Vec<_>>(), ["t2"]);
    world.audit();
}

#[test]
fn failing_uses_an_attempt_and_the_last_one_is_a_dead_letter() {
    let mut world = World::with(["ann"]);
    world.add("hard");
    for attempt in 1..=3 {
        let taken = world.takes("ann").unwrap();
        assert_eq!(
            (taken.first.attempt, taken.first.attempts.len()),
            (attempt, attempt as usize - 1)
        );
        let moved = world.fails("ann", "t1", Class::Failed, None).unwrap();
        assert_eq!(moved.attempts_used, attempt);
    }
    assert_eq!(world.state("t1"), "waiting", "for a person");
    assert!(world.takes("ann").is_none());
    let answer = world.revives(Some("ann"), "t1", None);
    assert!(matches!(answer, Err(Refusal::NeedsPerson { .. })), "{answer:?}");
    world.revives(None, "t1", None).unwrap();
    assert_eq!(world.takes("ann").unwrap().first.attempt, 1);
    world.audit();
}

#[test]
fn what_the_last_owner_left_is_there_for_the_next() {
    let mut world = World::with(["ann", "bob"]);
    world.add("long");
    world.takes("ann").unwrap();
    let edit = Edit { next_action: Some("run the tests".to_owned()), ..Edit::default() };
    world.updates(Some("ann"), "t1", edit, &[]).unwrap();
    assert!(world.dies("ann"));
    assert_eq!(world.state("t1"), "open");
    let taken = world.takes("bob").unwrap();
    assert_eq!(
        (taken.first.attempt, taken.first.next_action.as_deref()),
        (2, Some("run the tests"))
    );
    let Past { name, how, why, .. } = &taken.first.attempts[0];
    assert_eq!((name.as_str(), *how), ("ann", Move::SessionDied));
    assert_eq!(why.as_deref(), Some("its process ended"));
}

#[test]
fn a_session_that_ends_with_a_grace_keeps_its_task_that_long() {
    let mut world = World::with(["ann", "bob"]);
    world.add("first");
    let token = world.takes("ann").unwrap().first.token;
    world.end("ann", Some(sessions::GRACE)).unwrap();
    assert!(world.takes("bob").is_none());
    world.start("ann", "main");
    world.finishes("ann", "t1", Some(token)).unwrap();
    world.add("second");
    world.takes("ann").unwrap();
    world.end("ann", Some(sessions::GRACE)).unwrap();
    world.pass(sessions::GRACE);
    assert_eq!(world.takes("bob").unwrap().first.attempt, 2);
    world.add("third");
    world.end("bob", None).unwrap();
    assert_eq!(world.state("t2"), "open", "without a grace it is free at once");
    world.audit();
}

#[test]
fn a_sleeper_whose_task_nobody_took_takes_it_anew() {
    let mut world = World::with(["ann", "bob"]);
    world.add("first");
    let old = world.takes("ann").unwrap().first;
    world.pass(Span::hours(8));
    let answer = refused(world.finishes("ann", "t1", Some(old.token)));
    let Refused::Stale { current: None, attempt: 1, .. } = answer else { panic!("{answer:?}") };
    let new = world.takes_as("ann", &this("t1")).unwrap().first;
    assert_eq!(new.attempt, 1, "nobody else had it: it is the same attempt");
    assert!(new.token > old.token);
    let answer = refused(world.finishes("ann", "t1", Some(old.token)));
    let Refused::Stale { current, .. } = answer else { panic!("{answer:?}") };
    assert_eq!(current, Some(new.token));
    world.finishes("ann", "t1", Some(new.token)).unwrap();
    world.audit();
}

#[test]
fn words_that_block_are_lifted_by_reopening() {
    let mut world = World::with(["ann", "bob"]);
    world.add("first");
    world.takes("ann").unwrap();
    let foreign = refused(world.blocks("bob", "t1", "the network"));
    assert!(matches!(foreign, Refused::Owned { .. }), "{foreign:?}");
    world.blocks("ann", "t1", "the network").unwrap();
    assert_eq!(world.state("t1"), "blocked");
    assert!(world.takes("bob").is_none());
    world.reopens(Some("bob"), "t1").unwrap();
    assert_eq!(world.takes("bob").unwrap().first.attempt, 1);
    // Blocked on a task, it goes on when that is finished.
    world.add("second");
    world.blocks("bob", "t1", "t2").unwrap();
    assert_eq!(world.takes("ann").unwrap().first.task.as_str(), "t2");
    world.finishes("ann", "t2", None).unwrap();
    assert_eq!(world.state("t1"), "open");
    let finished = refused(world.blocks("ann", "t1", "t2"));
    assert!(matches!(finished, Refused::WrongState { state: State::Done, .. }), "{finished:?}");
    world.audit();
}

#[test]
fn others_tasks_are_not_mine_to_end() {
    let mut world = World::with(["ann", "bob"]);
    world.add("first");
    world.takes("ann").unwrap();
    let owned = |answer| matches!(refused(answer), Refused::Owned { .. });
    assert!(owned(world.finishes("bob", "t1", None)));
    assert!(owned(world.fails("bob", "t1", Class::Failed, None)));
    assert!(owned(world.parks("bob", "t1")));
    assert!(owned(world.cancels(Some("bob"), "t1")));
    assert!(owned(world.cancels(None, "t1")));
    let edit = Edit { priority: Some(0), ..Edit::default() };
    assert!(owned(world.updates(Some("bob"), "t1", edit, &[])));
    let again = refused(world.finishes("bob", "t1", Some(world.task("t1").owner().unwrap().token)));
    assert!(matches!(again, Refused::Stale { .. }), "another's token is no token of mine");
    assert!(world.cancels(Some("ann"), "t1").is_ok());
}

#[test]
fn a_like_title_is_filed_and_told_or_refused_when_asked_to() {
    let mut world = World::with(["ann"]);
    world.add("Fix the login timeout");
    let request = filing("fix login timeouts");
    let unique = adding::Request { unique: true, ..request.clone() };
    let answer = refused(world.file(&unique));
    let Refused::Similar { similar } = answer else { panic!("{answer:?}") };
    assert_eq!(similar[0].task.as_str(), "t1");
    assert_eq!(world.file(&request).unwrap().similar.len(), 1);
    world.cancels(None, "t2").unwrap();
    world.takes("ann").unwrap();
    world.finishes("ann", "t1", None).unwrap();
    world.pass(Span::days(6));
    assert!(world.file(&unique).is_err(), "lately done");
    world.pass(Span::days(2));
    assert_eq!(world.file(&unique).unwrap().similar, []);
    assert!(!world.task("t1").remembered, "and its words are forgotten");
    world.audit();
}

#[test]
fn texts_have_limits_and_say_something() {
    let mut world = World::with(["ann"]);
    for title in ["", "  \n"] {
        let answer = refused(world.file(&filing(title)));
        assert!(matches!(answer, Refused::SaysNothing { .. }), "{answer:?}");
    }
    let long = world.file(&filing(&"x".repeat(TITLE_BYTES_MAX + 1)));
    assert!(matches!(long, Err(Refusal::TooLong { what: "title", .. })), "{long:?}");
    let role = Some("a\u{202e}b".to_owned());
    let bad = world.file(&adding::Request { role, ..filing("x") });
    assert!(matches!(bad, Err(Refusal::BadText { .. })), "{bad:?}");
    let high = world.file(&adding::Request { priority: Some(5), ..filing("x") });
    assert!(matches!(high, Err(Refusal::OutOfRange { .. })), "{high:?}");
    let unknown = world.file(&adding::Request { after: vec!["t9".to_owned()], ..filing("x") });
    assert!(matches!(refused(unknown), Refused::Unknown { .. }));
    assert_eq!(world.tally().made, 0);
    world.add("\u{1b}[2J control \u{202e} and bidi are stored");
}

#[test]
fn activity_renews_and_a_session_without_a_task_writes_nothing() {
    let mut world = World::with(["ann", "bob"]);
    world.add("first");
    world.takes("ann").unwrap();
    for _ in 0..12 {
        world.pass(Span::minutes(10));
        world.acts("ann");
        world.acts("bob");
    }
    let owner = world.task("t1").standing.owner.unwrap();
    assert!(owner.expires_at.since(world.now).0 >= TTL_DEFAULT.0 / 2);
    assert!(world.takes("bob").is_none());
    let renewals = |event: &Event| matches!(event, Event::TasksRenewed { .. });
    let count = world.events_since(0).iter().filter(|event| renewals(event)).count();
    assert!((4..=8).contains(&count), "{count} renewals in two hours");
}

#[test]
fn the_back_off_doubles_up_to_an_hour() {
    let mut world = World::with(["ann"]);
    world.add("first");
    for round in 0..10 {
        let taken = world.takes("ann").unwrap();
        assert_eq!(taken.first.attempt, 1);
        let moved = world.fails("ann", "t1", Class::RateLimited, None).unwrap();
        let wait = moved.not_before.unwrap().since(world.now);
        assert_eq!(wait.0, (BACK_OFF_FIRST.0 << round).min(BACK_OFF_MAX.0));
        world.pass(Span(wait.0 - 1));
        assert!(world.takes("ann").is_none());
        world.pass(Span(2));
    }
    assert_eq!(world.task("t1").standing.attempts_used, 0);
}
