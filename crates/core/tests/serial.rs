//! Stories about serial zones: one task has one from its first edit until its branch has landed.

use baton_core::check::{self, Verdict};
use baton_core::claims::letting_go::Target;
use baton_core::claims::{Answer, take};
use baton_core::context::Context;
use baton_core::refusal::{Held, Refusal};
use baton_core::serial::{self, Standing, Whereabouts};
use baton_core::view::Record;
use baton_core::zones::Rule;

use crate::world::{World, resource, resources};

/// A world with a zone `db/`; ann works on the branch `one`, bob on `two`, in trees of their own.
fn world() -> World {
    let mut world = World::new();
    world.start("ann", "one");
    world.start("bob", "two");
    world.policy(&[("db/", Rule::Serial)], &[]);
    world
}

fn standing(world: &mut World, who: &str, branch: &str, unlanded: Option<bool>) -> Context {
    let mut context = world.context(Some(who));
    context.observed.standing =
        Whereabouts::On(Standing { branch: branch.to_owned(), clone: "here".to_owned() });
    let bound = serial::all(&world.store).unwrap();
    let seen = bound.iter().filter_map(|hold| Some((hold.key(), unlanded?)));
    context.observed.zones = seen.collect();
    context
}

fn edits(
    world: &mut World,
    who: &str,
    branch: &str,
    unlanded: Option<bool>,
) -> Result<(), Refusal> {
    let request = world.claim(who, ["db/1"]).in_tree().into_request();
    let context = standing(world, who, branch, unlanded);
    let answer = world.decide(context, |view, context| take(view, &request, context))?;
    assert!(matches!(answer, Answer::Granted(_)));
    Ok(())
}

fn held(answer: Result<(), Refusal>) -> Held {
    match answer {
        Err(Refusal::Held(held)) => *held,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_zone_stays_with_its_branch_when_its_claim_has_ended() {
    let mut world = world();
    edits(&mut world, "ann", "one", None).unwrap();
    // While the claim is there it is what stands in the way, and nothing is looked at.
    assert!(held(edits(&mut world, "bob", "two", None)).unlanded.is_none());
    world.release("ann", ["db/1"]).unwrap();
    // Before anybody has looked at the branch the rule asks for a look.
    let request = world.claim("bob", ["db/1"]).in_tree().into_request();
    let mut context = standing(&mut world, "bob", "two", None);
    context.observed.complete = false;
    let looked = take(&world.store, &request, &context);
    assert!(matches!(looked, Err(Refusal::Unobserved { .. })), "{looked:?}");
    let told = held(edits(&mut world, "bob", "two", Some(true)));
    assert_eq!(told.holder.name, "ann");
    assert_eq!(told.unlanded.unwrap().branch, "one");
    assert_eq!(told.resource, resource("db/1"));
    let context = standing(&mut world, "bob", "two", Some(true));
    let checked = world.decide(context, |view, context| {
        Ok((Vec::new(), check::check(view, &[resource("db/2")], None, context)?))
    });
    assert_eq!(checked.unwrap().verdict, Verdict::Deny);
    // Its own branch goes on, and elsewhere nothing is held.
    edits(&mut world, "ann", "one", Some(true)).unwrap();
    world.claim("bob", ["src/a"]).granted();
    world.audit();
}

#[test]
fn a_zone_is_free_when_its_branch_has_landed_or_nothing_of_it_is_left() {
    let mut world = world();
    edits(&mut world, "ann", "one", None).unwrap();
    world.release("ann", ["db/1"]).unwrap();
    let context = world.context(None);
    let landed = |branch: &'static str| {
        move |view: &dyn baton_core::view::View, _: &Context| {
            Ok((serial::landed(view, branch)?, ()))
        }
    };
    world.decide(context, landed("another")).unwrap();
    held(edits(&mut world, "bob", "two", Some(true)));
    let context = world.context(None);
    world.decide(context, landed("one")).unwrap();
    edits(&mut world, "bob", "two", None).unwrap();
    world.release("bob", ["db/1"]).unwrap();
    // Landed by hand, or reverted: seen, not said.
    edits(&mut world, "ann", "one", Some(false)).unwrap();
    let bound = serial::all(&world.store).unwrap();
    assert_eq!(bound.len(), 1);
    assert_eq!((bound[0].branch.as_str(), bound[0].holder.name.as_str()), ("one", "ann"));
    world.audit();
}

#[test]
fn what_cannot_be_seen_is_never_free() {
    let mut world = world();
    edits(&mut world, "ann", "one", None).unwrap();
    world.release("ann", ["db/1"]).unwrap();
    let request = world.claim("bob", ["db/1"]).into_request();
    let mut context = standing(&mut world, "bob", "two", None);
    context.observed.complete = true;
    let answer = world.decide(context, |view, context| take(view, &request, context));
    assert!(matches!(answer, Err(Refusal::Held(held)) if held.unlanded.is_some()));
}

#[test]
fn the_death_of_a_session_frees_nothing_and_the_same_branch_takes_over() {
    let mut world = world();
    edits(&mut world, "ann", "one", None).unwrap();
    world.dies("ann");
    held(edits(&mut world, "bob", "two", Some(true)));
    edits(&mut world, "bob", "one", Some(true)).unwrap();
    assert_eq!(serial::all(&world.store).unwrap()[0].holder.name, "bob");
}

#[test]
fn on_the_target_and_without_git_it_is_held_by_its_claim_alone() {
    let mut world = world();
    edits(&mut world, "ann", "main", None).unwrap();
    world.release("ann", ["db/1"]).unwrap();
    edits(&mut world, "bob", "two", None).unwrap();
    world.release("bob", ["db/1"]).unwrap();
    let mut plain = self::world();
    plain.claim("ann", ["db/1"]).granted();
    plain.release("ann", ["db/1"]).unwrap();
    plain.claim("bob", ["db/1"]).granted();
    assert!(serial::all(&plain.store).unwrap().is_empty());
}

#[test]
fn a_person_frees_it() {
    let mut world = world();
    edits(&mut world, "ann", "one", None).unwrap();
    world.release("ann", ["db/1"]).unwrap();
    let revoked = world.revoke(&Target::Resources(resources(["db/2"]))).unwrap();
    assert_eq!(revoked.zones[0].branch, "one");
    edits(&mut world, "bob", "two", None).unwrap();
    world.audit();
}
