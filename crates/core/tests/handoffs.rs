//! The rules of handoffs and checkpoints, one by one.

use std::collections::BTreeMap;

use baton_core::claim::Claim;
use baton_core::event::Event;
use baton_core::handoff::{End, Handoff, Made, To, Work};
use baton_core::handoffs::accepting::{self, Accept, Accepted, Answered, Decline};
use baton_core::handoffs::checkpoint::{self, Saved};
use baton_core::handoffs::complete::{Decided, Paper};
use baton_core::handoffs::offering::{self, Offered};
use baton_core::handoffs::refused::{Missing, Refused};
use baton_core::handoffs::{self, Settled, WITHIN_DEFAULT};
use baton_core::id::{TaskId, Token};
use baton_core::notices::News;
use baton_core::refusal::{Class, Refusal};
use baton_core::sessions;
use baton_core::task::dossier::CHECKPOINTS_KEPT;
use baton_core::task::{Move, State};
use baton_core::tasks::TTL_DEFAULT;
use baton_core::tasks::taking;
use baton_core::time::Span;
use serde_json::json;

use crate::backlog::{self, best, this};
use crate::world::World;

/// Everything that must be said.
pub(crate) fn paper() -> Paper {
    Paper {
        state: Some("half of it works".to_owned()),
        remaining: Some("the other half".to_owned()),
        next: Some("write the second half".to_owned()),
        decisions: vec![Decided::Line("two halves: one is too much".to_owned())],
        ..Paper::default()
    }
}

pub(crate) fn offering(task: &str, to: Option<&str>) -> offering::Request {
    offering::Request {
        task: task.to_owned(),
        to: to.map(str::to_owned),
        within: None,
        paper: paper(),
        artifacts: Vec::new(),
        token: None,
    }
}

/// Git shows so many commits, and changes in these files.
pub(crate) fn work(commits: &[&str], changed: &[&str]) -> Work {
    let strings = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let made = |commit: &&str| Made { commit: (*commit).to_owned(), subject: "work".to_owned() };
    Work {
        commit: Some("head".to_owned()),
        commits: commits.iter().map(made).collect(),
        changed: strings(changed),
        uncommitted: strings(changed),
        more: false,
    }
}

impl World {
    pub(crate) fn offers(
        &mut self,
        who: &str,
        request: &offering::Request,
        work: Option<Work>,
    ) -> Result<Offered, Refusal> {
        let mut context = self.context(Some(who));
        let id = TaskId::parse(&request.task).unwrap();
        context.observed.work = work.map(|work| (id, work)).into_iter().collect();
        self.decide(context, |view, context| offering::offer(view, request, context))
    }

    pub(crate) fn accepts(&mut self, who: &str, id: &str) -> Result<Accepted, Refusal> {
        self.accepts_as(who, id, false)
    }

    pub(crate) fn accepts_as(
        &mut self,
        who: &str,
        id: &str,
        also: bool,
    ) -> Result<Accepted, Refusal> {
        let request = Accept { handoff: id.to_owned(), also };
        let mut context = self.context(Some(who));
        context.observed.head = Some("head".to_owned());
        self.decide(context, |view, context| accepting::accept(view, &request, context))
    }

    pub(crate) fn declines(&mut self, who: &str, id: &str) -> Result<Answered, Refusal> {
        let request = Decline { handoff: id.to_owned(), why: "no time".to_owned() };
        let context = self.context(Some(who));
        self.decide(context, |view, context| accepting::decline(view, &request, context))
    }

    pub(crate) fn settle_offers(&mut self) -> Settled {
        let context = self.context(None);
        self.decide(context, handoffs::settle).unwrap()
    }

    pub(crate) fn saves(&mut self, who: &str, task: Option<&str>) -> Result<Saved, Refusal> {
        let (task, note) = (task.map(str::to_owned), Some("so far".to_owned()));
        let request = checkpoint::Request { task, note, token: None };
        let mut context = self.context(Some(who));
        context.observed.work = BTreeMap::from([(TaskId::numbered(1), work(&["c1"], &["src/a"]))]);
        self.decide(context, |view, context| checkpoint::save(view, &request, context))
    }

    pub(crate) fn handoff(&self, id: &str) -> Handoff {
        self.records().into_iter().find(|one: &Handoff| one.handoff.as_str() == id).unwrap()
    }
}

#[track_caller]
fn refused<T: std::fmt::Debug>(answer: Result<T, Refusal>) -> Refused {
    match answer {
        Err(Refusal::Handoff(refused)) => *refused,
        other => panic!("should be refused, but {other:?}"),
    }
}

/// Ann has t1 with a claim on src/, and one on docs/x that has nothing to do with it.
fn started() -> World {
    let mut world = World::with(["ann", "bob", "cat"]);
    world.add_on("first", &["src/"]);
    world.takes_as("ann", &taking::Request { claim: true, ..best() }).unwrap();
    world.claim("ann", ["docs/x"]).answer().unwrap();
    world
}

fn held(world: &World, who: &str) -> Vec<String> {
    let all = world.claims_of(who);
    let mut names: Vec<String> =
        all.iter().flat_map(|claim| claim.hold.resources.iter().map(ToString::to_string)).collect();
    names.sort();
    names
}

#[test]
fn s15_task_claims_and_values_move_in_one_decision() {
    let mut world = started();
    let old = world.task("t1").standing.owner.unwrap();
    let old_claim: Claim =
        world.claims_of("ann").into_iter().find(|claim| claim.task.is_some()).unwrap();
    let mut request = offering("t1", Some("bob"));
    request.paper.set.insert("build/status".parse().unwrap(), json!("green"));
    let offered = world.offers("ann", &request, Some(work(&["c1"], &["src/a"]))).unwrap();
    assert_eq!((offered.handoff.as_str(), offered.progress), ("t1-h1", true));
    assert_eq!(world.task("t1").owner().unwrap().name, "ann", "until accepted the giver owns");
    assert_eq!(held(&world, "ann"), ["docs/x", "src/"]);
    assert!(world.store.rows().all(|row| row.kind != "state"), "nothing is set yet");

    let entries = world.journal.len();
    let accepted = world.accepts("bob", "t1-h1").unwrap();
    let events = world.events_since(entries);
    let at = |wanted: &dyn Fn(&Event) -> bool| events.iter().position(wanted).unwrap();
    let moved = at(&|event| matches!(event, Event::TaskMoved { how: Move::HandedOver, .. }));
    assert_eq!(accepted.token, world.journal[entries + moved].position, "its place is the token");
    assert!(events.iter().any(|event| matches!(event, Event::StateChanged { .. })));
    assert_eq!(
        (held(&world, "ann"), held(&world, "bob")),
        (vec!["docs/x".into()], vec!["src/".into()])
    );
    let owner = world.task("t1").standing.owner.unwrap();
    assert_eq!((owner.name.as_str(), owner.attempt, owner.tree), ("bob", 1, old.tree));
    assert!(accepted.claims[0].token > old_claim.token && owner.token > old.token);
    assert_eq!(accepted.set[0].version, 1);
    assert_eq!(accepted.chain.len(), 1);
    assert_eq!(world.task("t1").standing.next_action.as_deref(), Some("write the second half"));

    // Whatever the giver still tries is refused, and told who has it now.
    for token in [None, Some(old.token)] {
        let refusal = world.finishes("ann", "t1", token).unwrap_err();
        assert_eq!(refusal.class(), Class::Stale, "{refusal:?}");
    }
    let late = world.check("ann", "src/a", Some(old_claim.token)).unwrap_err();
    assert_eq!(late.class(), Class::Stale);
    let which = baton_core::claims::letting_go::Which::All;
    let late = world.let_go("ann", &which, Some(old_claim.token)).unwrap_err();
    assert_eq!(late.class(), Class::Stale);
    world.finishes("bob", "t1", Some(accepted.token)).unwrap();
    assert!(held(&world, "bob").is_empty(), "what was claimed for it ends with it");
    let told = world.acts("ann").notices;
    assert!(matches!(&told[0].news, News::OfferEnded { end: End::Accepted { .. }, .. }));
    world.audit();
}

#[test]
fn claims_on_changed_files_and_what_overlaps_them_go_along() {
    let mut world = World::with(["ann", "bob"]);
    world.add("first");
    world.takes("ann").unwrap();
    world.claim("ann", ["lib/"]).answer().unwrap();
    world.claim("ann", ["lib/x.rs", "other"]).answer().unwrap();
    world.claim("ann", ["docs/"]).answer().unwrap();
    world.offers("ann", &offering("t1", None), Some(work(&[], &["lib/y.rs"]))).unwrap();
    let accepted = world.accepts("bob", "t1").unwrap();
    assert_eq!(accepted.claims.len(), 2);
    assert_eq!((held(&world, "ann"), held(&world, "bob").len()), (vec!["docs/".into()], 3));
    // The second claim went along because bob would otherwise hold lib/ and ann lib/x.rs in it.
    world.audit();
}

#[test]
fn claims_of_two_tasks_that_overlap_cannot_part() {
    let mut world = World::with(["ann", "bob"]);
    world.add_on("first", &["src/"]);
    world.add_on("second", &["src/a"]);
    for task in ["t2", "t1"] {
        let request = taking::Request { claim: true, also: true, ..this(task) };
        world.takes_as("ann", &request).unwrap();
    }
    let answer = refused(world.offers("ann", &offering("t1", None), None));
    let Refused::Entangled { with, .. } = answer else { panic!("{answer:?}") };
    assert_eq!(with.as_str(), "t2");
    world.finishes("ann", "t2", None).unwrap();
    world.offers("ann", &offering("t1", None), None).unwrap();
}

#[test]
fn everything_that_is_missing_is_told_at_once() {
    let mut world = started();
    let empty = offering::Request { paper: Paper::default(), ..offering("t1", None) };
    let missing = |answer| match refused(answer) {
        Refused::Incomplete { missing, .. } => missing,
        other => panic!("{other:?}"),
    };
    let answer = world.offers("ann", &empty, Some(work(&[], &["src/a", "src/b"])));
    assert_eq!(
        missing(answer),
        [
            Missing::State,
            Missing::Remaining,
            Missing::Next { given: None },
            Missing::Decisions { files: 2 },
        ]
    );
    let vague = Paper {
        next: Some("Continue.".to_owned()),
        decisions: vec![Decided::Line("two halves".to_owned())],
        result: Some(json!({ "result": 1 })),
        state: Some("  ".to_owned()),
        ..paper()
    };
    let request = offering::Request { paper: vague, ..offering("t1", None) };
    let given = Some("Continue.".to_owned());
    assert_eq!(
        missing(world.offers("ann", &request, None)),
        [
            Missing::State,
            Missing::Next { given },
            Missing::Why { decision: "two halves".to_owned() },
            Missing::Status,
        ]
    );
    // Nothing changed: no decision is asked for.
    let bare = offering::Request {
        paper: Paper { decisions: Vec::new(), ..paper() },
        ..offering("t1", None)
    };
    world.offers("ann", &bare, Some(work(&[], &[]))).unwrap();
    assert_eq!(world.task("t1").standing.offer.unwrap().handoff.as_str(), "t1-h1");
}

#[test]
fn only_those_it_is_for_may_accept() {
    let mut world = started();
    world.begin_as("rex", "main", Some("rex"), (Some("review"), crate::world::process("rex")));
    world.offers("ann", &offering("t1", Some("bob")), None).unwrap();
    assert!(matches!(refused(world.accepts("cat", "t1-h1")), Refused::NotForYou { .. }));
    assert!(matches!(refused(world.accepts("ann", "t1-h1")), Refused::ToYourself { .. }));
    assert!(matches!(
        refused(world.offers("ann", &offering("t1", Some("ann")), None)),
        Refused::ToYourself { .. }
    ));
    let unknown = world.offers("ann", &offering("t1", Some("zoe")), None);
    assert!(matches!(unknown, Err(Refusal::UnknownSession { .. })));
    // Offering again takes the place of the first.
    world.offers("ann", &offering("t1", Some("role:review")), None).unwrap();
    let answer = refused(world.accepts("bob", "t1-h1"));
    let Refused::Over { end: Some(End::Withdrawn { .. }), .. } = answer else {
        panic!("{answer:?}")
    };
    assert!(matches!(refused(world.accepts("bob", "t1-h2")), Refused::NotForYou { .. }));
    world.add("second");
    world.takes("rex").unwrap();
    let busy = backlog::refused(world.accepts("rex", "t1-h2"));
    assert!(matches!(busy, baton_core::tasks::refused::Refused::HasTask { .. }));
    world.accepts_as("rex", "t1-h2", true).unwrap();
    let answer = refused(world.accepts("bob", "t1-h9"));
    let Refused::Unknown { near, .. } = answer else { panic!("{answer:?}") };
    assert_eq!(near[0].as_str(), "t1-h2");
}

#[test]
fn one_declines_for_itself_or_for_all() {
    let mut world = started();
    world.offers("ann", &offering("t1", None), None).unwrap();
    assert!(world.declines("cat", "t1").unwrap().still_open);
    let answered = world.declines("cat", "t1").unwrap();
    assert!(answered.still_open, "saying it again changes nothing");
    assert_eq!(world.handoff("t1-h1").declined.len(), 1);
    assert_eq!(world.acts("ann").notices.len(), 1);
    assert!(world.declines("ann", "t1").unwrap().withdrawn);
    assert!(matches!(refused(world.accepts("bob", "t1")), Refused::Over { .. }));
    world.offers("ann", &offering("t1", Some("bob")), None).unwrap();
    assert!(matches!(&world.acts("bob").notices[0].news, News::Offered { .. }));
    assert!(!world.declines("bob", "t1").unwrap().still_open);
    assert_eq!(world.task("t1").owner().unwrap().name, "ann");
    assert!(world.task("t1").offer().is_none());
    world.finishes("ann", "t1", None).unwrap();
    world.audit();
}

#[test]
fn an_offer_nobody_takes_returns_to_its_giver() {
    let mut world = started();
    world.offers("ann", &offering("t1", None), None).unwrap();
    world.pass(Span(WITHIN_DEFAULT.0 - 1));
    assert_eq!(world.settle_offers(), Settled::default());
    assert_eq!(held(&world, "ann"), ["docs/x", "src/"]);
    world.pass(Span(1));
    assert!(matches!(refused(world.accepts("bob", "t1-h1")), Refused::Over { .. }));
    assert_eq!(world.settle_offers().returned[0].as_str(), "t1-h1");
    let told = world.acts("ann").notices;
    assert!(matches!(&told[0].news, News::OfferEnded { end: End::Returned { .. }, .. }));
    assert_eq!(world.task("t1").standing.attempts_used, 0, "no attempt was lost by it");
    world.finishes("ann", "t1", None).unwrap();
    world.audit();
}

#[test]
fn what_is_offered_outlives_its_giver_and_then_waits_for_a_person() {
    for how in ["dies", "ends", "sleeps"] {
        let mut world = started();
        world.offers("ann", &offering("t1", None), None).unwrap();
        match how {
            "dies" => drop(world.dies("ann")),
            "ends" => drop(world.end("ann", None).unwrap()),
            _ => {}
        }
        if how != "sleeps" {
            assert_eq!(held(&world, "ann"), ["src/"], "{how}: only what is offered waits");
        }
        assert_eq!(world.state("t1"), "active", "{how}");
        world.pass(WITHIN_DEFAULT);
        if how == "sleeps" {
            world.pass(TTL_DEFAULT);
        }
        let settled = world.settle_offers();
        assert_eq!(settled.waiting[0].as_str(), "t1", "{how}");
        assert_eq!(world.state("t1"), "waiting");
        assert!(world.task("t1").standing.why.unwrap().contains("ann"), "{how}");
        assert!(!held(&world, "ann").contains(&"src/".to_owned()), "{how}");
        assert!(world.takes("bob").is_none(), "{how}: it is a person's now");
        assert!(matches!(world.reopens(Some("bob"), "t1"), Err(Refusal::NeedsPerson { .. })));
        world.reopens(None, "t1").unwrap();
        assert_eq!(world.takes("bob").unwrap().first.attempt, 1, "{how}: no attempt was used");
        world.audit();
    }
}

#[test]
fn a_dead_givers_offer_is_accepted_with_everything() {
    let mut world = started();
    world.offers("ann", &offering("t1", None), Some(work(&["c1"], &["src/a"]))).unwrap();
    world.dies("ann");
    world.pass(Span::minutes(29));
    let accepted = world.accepts("bob", "t1-h1").unwrap();
    assert_eq!((accepted.attempt, accepted.claims.len()), (1, 1));
    assert_eq!(held(&world, "bob"), ["src/"]);
    world.dies("bob");
    assert!(world.claims().is_empty());
    assert_eq!((world.state("t1"), world.task("t1").standing.attempts_used), ("open", 1));
    let taken = world.takes("cat").unwrap().first;
    assert_eq!(taken.handoffs.len(), 1, "the next one sees what was handed over");
    world.audit();
}

#[test]
fn passing_back_and_forth_without_progress_ends() {
    let mut world = started();
    let pairs = [("ann", "bob"), ("bob", "ann"), ("ann", "bob")];
    for (number, (giver, receiver)) in pairs.iter().enumerate() {
        let offered = world.offers(giver, &offering("t1", Some(receiver)), None).unwrap();
        assert!(!offered.progress);
        assert_eq!(offered.attempts_used as usize, number + 1);
        if number < 2 {
            let accepted = world.accepts(receiver, "t1").unwrap();
            assert!(accepted.counted);
            assert_eq!(accepted.chain.len(), number + 1, "the whole chain");
        } else {
            assert_eq!(offered.state, State::Waiting, "no attempt was left: a person decides");
        }
    }
    assert_eq!(world.state("t1"), "waiting");
    assert!(matches!(refused(world.accepts("bob", "t1")), Refused::Over { .. }));
    assert!(!held(&world, "ann").contains(&"src/".to_owned()));
    assert!(matches!(world.handoff("t1-h3").end, Some(End::Exhausted { .. })));
    world.audit();
}

#[test]
fn a_commit_or_a_new_result_is_progress() {
    let mut world = started();
    world.offers("ann", &offering("t1", Some("bob")), Some(work(&["c1"], &[]))).unwrap();
    assert!(!world.accepts("bob", "t1").unwrap().counted);
    let result = |n: u32| offering::Request {
        paper: Paper { result: Some(json!({ "status": "partial", "n": n })), ..paper() },
        ..offering("t1", Some(if n == 2 { "ann" } else { "cat" }))
    };
    assert!(world.offers("bob", &result(2), None).unwrap().progress);
    world.accepts("ann", "t1").unwrap();
    let again = offering::Request { to: Some("bob".to_owned()), ..result(2) };
    assert!(!world.offers("ann", &again, None).unwrap().progress, "the same result again");
    assert!(world.offers("ann", &result(3), None).unwrap().progress);
    assert_eq!(world.task("t1").standing.attempts_used, 0);
}

#[test]
fn values_that_cannot_be_set_stop_the_offer_and_the_acceptance() {
    use baton_core::state::rules;
    let mut world = started();
    world.put_policy(baton_core::zones::Policy {
        state: vec![rules::Rule {
            keys: vec!["leader".parse().unwrap()],
            rule: rules::Kind::Once,
            stages: Vec::new(),
            owner: None,
        }],
        ..Default::default()
    });
    let mut request = offering("t1", None);
    request.paper.set.insert("leader".parse().unwrap(), json!("bob"));
    world.offers("ann", &request, None).unwrap();
    let write = baton_core::state::Request {
        write: baton_core::state::Write {
            key: "leader".parse().unwrap(),
            change: baton_core::state::Change::Set { value: json!("cat") },
            if_version: None,
        },
        reads: Vec::new(),
        draft: false,
    };
    let context = world.context(Some("cat"));
    world.decide(context, |view, context| baton_core::state::write(view, &write, context)).unwrap();
    let before = world.store.clone();
    assert!(matches!(world.accepts("bob", "t1"), Err(Refusal::State(_))));
    assert_eq!(world.store, before, "all or nothing");
    assert!(matches!(world.offers("ann", &request, None), Err(Refusal::State(_))));
}

#[test]
fn checkpoints_are_kept_and_shown_to_the_next() {
    let mut world = started();
    for _ in 0..=CHECKPOINTS_KEPT {
        let saved = world.saves("ann", None).unwrap();
        assert_eq!(saved.saved[0].changed, ["src/a"]);
    }
    assert_eq!(world.dossier("t1").checkpoints.len(), CHECKPOINTS_KEPT);
    let last = world.dossier("t1").checkpoints.pop().unwrap();
    assert_eq!(last.known.claims, crate::world::resources(["src/"]));
    assert!(matches!(refused(world.saves("bob", None)), Refused::NoTask));
    let not_mine = world.saves("bob", Some("t1")).unwrap_err();
    assert_eq!(not_mine.code(), "owned");
    world.dies("ann");
    let taken = world.takes("bob").unwrap().first;
    assert_eq!(taken.checkpoint.unwrap().note.as_deref(), Some("so far"));
    assert_eq!(world.saves("ann", Some("t1")).unwrap_err().code(), "session_ended");
    world.audit();
}

#[test]
fn the_end_of_a_session_saves_what_it_worked_on() {
    let mut world = started();
    let mut context = world.context(Some("ann"));
    context.observed.work = BTreeMap::from([(TaskId::numbered(1), work(&["c1"], &["src/a"]))]);
    world.decide(context, |view, context| sessions::end(view, None, None, context)).unwrap();
    let saved = world.dossier("t1").checkpoints.pop().unwrap();
    assert_eq!((saved.by.name.as_str(), saved.known.work.commits.len()), ("ann", 1));
    assert_eq!(saved.known.claims, crate::world::resources(["src/"]));
    assert_eq!(world.state("t1"), "open");
}

#[test]
fn a_checkpoint_that_tells_nothing_more_is_not_another() {
    let mut world = started();
    let mut saves = |note: Option<&str>, changed: &[&str]| {
        let note = note.map(str::to_owned);
        let request = checkpoint::Request { task: None, note, token: None };
        let mut context = world.context(Some("ann"));
        context.observed.work = BTreeMap::from([(TaskId::numbered(1), work(&["c1"], changed))]);
        let saved =
            world.decide(context, |view, context| checkpoint::save(view, &request, context));
        (saved.unwrap().saved.len(), world.dossier("t1").checkpoints.len())
    };
    assert_eq!(saves(None, &["src/a"]), (1, 1));
    assert_eq!(saves(None, &["src/a"]), (1, 1), "the same is told of the last");
    assert_eq!(saves(None, &["src/a", "src/b"]), (1, 2), "another change");
    assert_eq!(saves(Some("so far"), &["src/a", "src/b"]), (1, 3), "words are always new");
    assert_eq!(saves(None, &["src/a", "src/b"]), (1, 3), "and stay the last");
}

#[test]
fn an_offer_is_to_somebody_or_to_many() {
    let mut world = started();
    let offered = world.offers("ann", &offering("t1", None), None).unwrap();
    assert_eq!(offered.to, To::Anyone);
    let token = Some(Token { epoch: 1, number: 1 });
    let stale = offering::Request { token, ..offering("t1", None) };
    assert_eq!(world.offers("ann", &stale, None).unwrap_err().class(), Class::Stale);
    assert_eq!(world.offers("bob", &offering("t1", None), None).unwrap_err().code(), "owned");
    let long = offering::Request { within: Some(Span::days(30)), ..offering("t1", None) };
    assert_eq!(world.offers("ann", &long, None).unwrap_err().class(), Class::Usage);
    let huge = offering::Request {
        paper: Paper { state: Some("x".repeat(100_000)), ..paper() },
        ..offering("t1", None)
    };
    assert_eq!(world.offers("ann", &huge, None).unwrap_err().code(), "too_long");
}
