//! Once: one runner at a time, a result that is given again, and turns that are lost.

use std::collections::BTreeMap;

use baton_core::context::{Context, Life};
use baton_core::id::Token;
use baton_core::once::{self, Answer, Command, End, LEASE, Output, Refused, Request};
use baton_core::refusal::{Class, Refusal};
use baton_core::time::Span;
use proptest::prelude::*;

use crate::state::key;
use crate::world::{World, process};

fn request(ttl: Option<Span>) -> Request {
    let command = Command { program: "make".to_owned(), hash: "hash".to_owned() };
    Request { key: key("build"), command, ttl, process: Some(process("ann")), errand: false }
}

impl World {
    fn seeing(&mut self, who: &str, seen: &[(Token, Life)]) -> Context {
        let mut context = self.context(Some(who));
        context.observed.runners = seen.iter().copied().collect();
        context
    }

    fn begins(&mut self, who: &str, seen: &[(Token, Life)]) -> Result<Answer, Refusal> {
        self.begins_within(who, seen, None)
    }

    fn begins_within(
        &mut self,
        who: &str,
        seen: &[(Token, Life)],
        ttl: Option<Span>,
    ) -> Result<Answer, Refusal> {
        let context = self.seeing(who, seen);
        let request = request(ttl);
        self.decide(context, |view, context| once::begin(view, &request, context))
    }

    fn ends(&mut self, who: &str, token: Token, end: &End) -> Result<(), Refusal> {
        let context = self.context(Some(who));
        let key = key("build");
        self.decide(context, |view, context| once::finish(view, &key, token, end, context))
            .map(drop)
    }

    fn renews(&mut self, who: &str, token: Token) -> Result<(), Refusal> {
        let context = self.context(Some(who));
        let key = key("build");
        self.decide(context, |view, context| once::renew(view, &key, token, context)).map(drop)
    }
}

fn succeeded() -> End {
    let output = Output { text: "made\n".to_owned(), cut: false };
    End::Succeeded { took: Span::seconds(2), output }
}

#[track_caller]
fn turn(answer: Result<Answer, Refusal>) -> Token {
    match answer {
        Ok(Answer::Run(turn)) => turn.token,
        other => panic!("should be its turn, but {other:?}"),
    }
}

#[track_caller]
fn refused<T: std::fmt::Debug>(answer: Result<T, Refusal>) -> Refused {
    match answer {
        Err(Refusal::Once(refused)) => *refused,
        other => panic!("should be refused, but {other:?}"),
    }
}

#[test]
fn one_runs_and_the_others_get_its_result() {
    let mut world = World::with(["ann", "bob"]);
    let token = turn(world.begins("ann", &[]));
    let running = refused(world.begins("bob", &[]));
    assert!(matches!(&running, Refused::Running { runner, .. } if runner.holder.name == "ann"));
    assert_eq!(running.class(), Class::Refused);
    refused(world.begins("ann", &[]));
    world.ends("ann", token, &succeeded()).unwrap();
    for who in ["ann", "bob"] {
        let Answer::Recorded(success, _) = world.begins(who, &[]).unwrap() else { panic!() };
        assert_eq!((success.output.text.as_str(), success.token), ("made\n", token));
    }
    world.audit();
}

#[test]
fn a_failed_run_may_be_tried_again() {
    let mut world = World::with(["ann", "bob"]);
    let first = turn(world.begins("ann", &[]));
    world.ends("ann", first, &End::Failed { code: 3 }).unwrap();
    let second = turn(world.begins("bob", &[]));
    assert!(second > first, "S5: tokens rise");
    world.audit();
}

#[test]
fn a_success_counts_as_long_as_the_asker_says() {
    let mut world = World::with(["ann"]);
    let token = turn(world.begins("ann", &[]));
    world.ends("ann", token, &succeeded()).unwrap();
    world.pass(Span::hours(1));
    let hour = Some(Span::hours(1));
    let again = turn(world.begins_within("ann", &[], hour));
    world.ends("ann", again, &End::Failed { code: 1 }).unwrap();
    assert!(matches!(world.begins("ann", &[]), Ok(Answer::Recorded(..))), "the old one stands");
    turn(world.begins_within("ann", &[], hour));
    let far = world.begins_within("ann", &[], Some(Span(u64::MAX)));
    assert!(matches!(far, Err(Refusal::OutOfRange { .. })));
    world.audit();
}

#[test]
fn a_dead_runner_has_lost_its_turn_at_once_and_an_unseen_one_after_its_lease() {
    let mut world = World::with(["ann", "bob"]);
    let first = turn(world.begins("ann", &[]));
    refused(world.begins("bob", &[(first, Life::Unknown)]));
    let second = turn(world.begins("bob", &[(first, Life::Dead)]));
    // An older sighting says nothing about the one that runs now.
    refused(world.begins("ann", &[(first, Life::Dead)]));
    world.pass(Span(LEASE.0 - 1));
    world.renews("bob", second).unwrap();
    world.pass(Span(LEASE.0 - 1));
    refused(world.begins("ann", &[(second, Life::Unknown)]));
    world.pass(Span(1));
    refused(world.begins("ann", &[(second, Life::Alive)]));
    let third = turn(world.begins("ann", &[(second, Life::Unknown)]));
    let lost = refused(world.ends("bob", second, &succeeded()));
    assert!(
        matches!(&lost, Refused::LostTurn { current: Some(runner), .. } if runner.token == third)
    );
    assert_eq!(lost.class(), Class::Stale);
    refused(world.renews("bob", second));
    refused(world.ends("bob", third, &succeeded()));
    assert!(matches!(world.begins("bob", &[]), Err(Refusal::Once(_))), "a late success is none");
    world.ends("ann", third, &succeeded()).unwrap();
    let entries = world.journal.len();
    world.ends("ann", third, &succeeded()).unwrap();
    assert_eq!(world.journal.len(), entries, "saying it again changes nothing");
    world.audit();
}

#[test]
fn the_same_session_cannot_finish_a_turn_it_has_lost() {
    let mut world = World::with(["ann"]);
    let first = turn(world.begins("ann", &[]));
    let second = turn(world.begins("ann", &[(first, Life::Dead)]));
    refused(world.ends("ann", first, &succeeded()));
    refused(world.renews("ann", first));
    world.ends("ann", second, &succeeded()).unwrap();
    world.audit();
}

#[test]
fn after_a_failover_a_lease_counts_once_more() {
    let mut world = World::with(["ann", "bob"]);
    let token = turn(world.begins("ann", &[]));
    world.pass(LEASE);
    world.failed_over_at = Some(world.now);
    refused(world.begins("bob", &[(token, Life::Unknown)]));
    world.pass(LEASE);
    turn(world.begins("bob", &[(token, Life::Unknown)]));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever dies, sleeps or comes late: never two turns at once among those that are seen,
    /// and the result of a lost turn never counts.
    #[test]
    fn random_runners_never_both_count(
        acts in proptest::collection::vec((0..3_usize, 0..5_u8), 1..60),
    ) {
        const WHO: [&str; 3] = ["ann", "bob", "cat"];
        let mut world = World::with(WHO);
        let mut turns: BTreeMap<usize, Token> = BTreeMap::new();
        let mut dead: Vec<(Token, Life)> = Vec::new();
        let mut current: Option<Token> = None;
        let mut successes = 0;
        for (who, act) in acts {
            match act {
                0 | 1 => match world.begins(WHO[who], &dead) {
                    Ok(Answer::Run(turn)) => {
                        prop_assert!(successes == 0);
                        prop_assert!(current.is_none_or(|current| turn.token > current));
                        current = Some(turn.token);
                        turns.insert(who, turn.token);
                    }
                    Ok(Answer::Recorded(success, _)) => {
                        prop_assert_eq!((successes, Some(success.token)), (1, current));
                    }
                    Err(_) => prop_assert!(current.is_some()),
                },
                2 => {
                    if let Some(token) = turns.get(&who) {
                        dead.push((*token, Life::Dead));
                    }
                }
                3 => world.pass(Span::seconds(40)),
                _ => {
                    if let Some(token) = turns.remove(&who) {
                        let accepted = world.ends(WHO[who], token, &succeeded()).is_ok();
                        prop_assert_eq!(accepted, successes == 0 && current == Some(token));
                        successes += u32::from(accepted);
                    }
                }
            }
        }
        world.audit();
    }
}
