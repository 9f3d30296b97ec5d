//! S12: a retry with the same operation id gets the first answer, another request is refused.

use baton_core::operations::{self, KEPT, Operation};
use baton_core::refusal::Refusal;
use baton_core::time::Span;

use crate::world::World;

/// An act with an operation id, as the engine does it.
fn once(world: &mut World, id: &str, session: &str, request: &str) -> Result<String, Refusal> {
    let context = world.context(None);
    world.decide(context, |view, context| {
        if let Some(kept) = operations::answered(view, id, session, request)? {
            return Ok((Vec::new(), kept));
        }
        let answer = format!("answer at {}", context.next);
        let kept = Operation {
            operation: id.to_owned(),
            session: session.to_owned(),
            request_hash: request.to_owned(),
            answer: answer.clone(),
            at: context.now,
        };
        Ok((operations::keep(view, kept)?, answer))
    })
}

#[test]
fn s12_the_first_answer_is_the_only_one() {
    let mut world = World::new();
    let first = once(&mut world, "op-1", "s1", "claim a").unwrap();
    let entries = world.journal.len();
    world.pass(Span::hours(1));
    assert_eq!(once(&mut world, "op-1", "s1", "claim a").unwrap(), first);
    assert_eq!(world.journal.len(), entries, "in the journal exactly once");
    for (session, request) in [("s1", "claim b"), ("s2", "claim a"), ("", "claim a")] {
        let refused = once(&mut world, "op-1", session, request);
        assert!(matches!(refused, Err(Refusal::OperationTaken { .. })), "{session} {request}");
    }
    assert_ne!(once(&mut world, "op-2", "s1", "claim a").unwrap(), first);
    world.audit();
}

#[test]
fn s12_answers_are_kept_seven_days_and_then_forgotten() {
    let mut world = World::new();
    let first = once(&mut world, "op-1", "s1", "x").unwrap();
    world.pass(Span(KEPT.0 - 1));
    once(&mut world, "op-2", "s1", "x").unwrap();
    assert_eq!(once(&mut world, "op-1", "s1", "x").unwrap(), first);
    world.pass(Span(2));
    once(&mut world, "op-3", "s1", "x").unwrap();
    assert_ne!(once(&mut world, "op-1", "s1", "x").unwrap(), first);
    world.audit();
}

#[test]
fn bad_operation_ids_are_refused() {
    let mut world = World::new();
    for id in ["", "a\nb", &"x".repeat(65)] {
        assert!(once(&mut world, id, "s1", "x").is_err(), "{id:?}");
    }
}
