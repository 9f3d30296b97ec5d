//! Suggestions: who may make and answer them, and that none is lost with a claim.

use baton_core::claim::Claim;
use baton_core::claims::letting_go::Target;
use baton_core::refusal::Refusal;
use baton_core::resource::Resource;
use baton_core::suggestions::{
    self, Answer, PER_CLAIM_MAX, Refused, Request, Suggestion, Told, Verdict,
};
use baton_core::task::Task;
use baton_core::time::Span;

use crate::world::World;

fn patch(path: &str) -> String {
    format!("--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-x\n+y\n")
}

impl World {
    fn suggests(&mut self, who: &str, path: &str) -> Result<Told, Refusal> {
        let request = Request {
            path: Resource::literal(path).unwrap(),
            patch: patch(path),
            why: "it is better".to_owned(),
        };
        let context = self.context(Some(who));
        self.decide(context, |view, context| suggestions::suggest(view, &request, context))
    }

    fn answers(&mut self, who: &str, id: &str, verdict: &Verdict) -> Result<Told, Refusal> {
        let context = self.context(Some(who));
        self.decide(context, |view, context| suggestions::answer(view, id, verdict, context))
    }

    fn suggestion(&self) -> Suggestion {
        self.records::<Suggestion>().pop().unwrap()
    }
}

fn no<T: std::fmt::Debug>(answer: Result<T, Refusal>) -> Refused {
    match answer {
        Err(Refusal::Suggestion(refused)) => *refused,
        other => panic!("should be refused, but {other:?}"),
    }
}

fn world() -> World {
    let mut world = World::with(["ann", "bob", "cat"]);
    world.claim("ann", ["src/a", "docs/"]).granted();
    world
}

#[test]
fn the_holder_is_told_and_answers_once() {
    let mut world = world();
    let id = world.suggests("bob", "src/a").unwrap().suggestion.0;
    assert_eq!(world.records::<Claim>()[0].suggestions, 1);
    assert_eq!(world.acts("ann").notices.len(), 1, "at its next act");
    assert!(matches!(no(world.answers("cat", &id, &Verdict::Apply)), Refused::NotYours { .. }));
    let told = world.answers("ann", &id, &Verdict::Apply).unwrap();
    assert!(matches!(told.answer, Answer::Applied { .. }));
    assert_eq!(world.records::<Claim>()[0].suggestions, 0);
    assert!(matches!(no(world.answers("ann", &id, &Verdict::Apply)), Refused::Answered { .. }));
    assert_eq!(world.acts("bob").notices.len(), 1, "who suggested it is told");
    let second = world.suggests("bob", "docs/x").unwrap().suggestion.0;
    let why = "no".to_owned();
    world.answers("ann", &second, &Verdict::Decline { why }).unwrap();
    world.release("ann", ["src/a", "docs/"]).unwrap();
    assert!(world.records::<Task>().is_empty(), "answered ones become nothing");
    world.audit();
}

#[test]
fn an_unanswered_one_becomes_a_task_however_the_claim_ends() {
    let ends: [fn(&mut World); 5] = [
        |world| drop(world.release("ann", ["src/a", "docs/"]).unwrap()),
        |world| drop(world.release("ann", ["src/a"]).unwrap()),
        |world| assert!(world.dies("ann")),
        |world| {
            world.pass(Span::hours(9));
            world.claim("cat", ["src/a"]).granted();
        },
        |world| {
            let target = Target::Session(world.id("ann"));
            world.revoke(&target).unwrap();
        },
    ];
    for (place, end) in ends.iter().enumerate() {
        let mut world = world();
        world.suggests("bob", "src/a").unwrap();
        world.suggests("cat", "src/a").unwrap();
        end(&mut world);
        let tasks = world.records::<Task>();
        assert_eq!(tasks.len(), 2, "way {place}");
        assert_eq!(tasks[0].paths, [Resource::literal("src/a").unwrap()]);
        assert!(matches!(world.suggestion().answer, Answer::Filed { .. }), "way {place}");
        assert_eq!(world.tally().made, 2);
        world.audit();
    }
}

#[test]
fn whoever_holds_the_path_later_may_still_apply_it() {
    let mut world = world();
    let id = world.suggests("bob", "src/a").unwrap().suggestion.0;
    world.release("ann", ["src/a"]).unwrap();
    assert!(matches!(
        no(world.answers("ann", &id, &Verdict::Apply)),
        Refused::NotYours { holder: None, .. }
    ));
    world.claim("cat", ["src/"]).granted();
    world.answers("cat", &id, &Verdict::Apply).unwrap();
    world.audit();
}

#[test]
fn it_goes_along_when_the_same_session_claims_anew() {
    let mut world = world();
    world.suggests("bob", "src/a").unwrap();
    world.pass(Span::hours(9));
    world.claim("ann", ["src/a"]).granted();
    assert_eq!(world.suggestion().answer, Answer::Open);
    assert!(world.records::<Task>().is_empty());
    let claims = world.claims_of("ann");
    let carrying: Vec<u32> = claims.iter().map(|claim| claim.suggestions).collect();
    assert_eq!(carrying.iter().sum::<u32>(), 1, "{claims:?}");
    world.release("ann", ["src/a"]).unwrap();
    assert_eq!(world.records::<Task>().len(), 1);
    world.audit();
}

#[test]
fn only_what_another_holds_and_only_one_file() {
    let mut world = world();
    assert!(matches!(no(world.suggests("bob", "src/b")), Refused::NotHeld { .. }));
    assert!(matches!(no(world.suggests("ann", "src/a")), Refused::Own { .. }));
    let make = |world: &mut World, path: Resource, patch: String| {
        let request = Request { path, patch, why: "x".to_owned() };
        let context = world.context(Some("bob"));
        no(world.decide(context, |view, context| suggestions::suggest(view, &request, context)))
    };
    let a = || Resource::literal("src/a").unwrap();
    assert!(matches!(make(&mut world, a(), patch("src/b")), Refused::OtherPath { .. }));
    let two = patch("src/a") + &patch("src/b");
    assert!(matches!(make(&mut world, a(), two), Refused::OtherPath { .. }));
    let wrong = make(&mut world, a(), "--- a/src/a\n+++ b/src/a\n@@ x\n".to_owned());
    assert!(matches!(wrong, Refused::Patch(wrong) if wrong.line == 3));
    let pattern = Resource::parse("src/*").unwrap();
    assert!(matches!(make(&mut world, pattern, patch("src/a")), Refused::NotAFile { .. }));
    for _ in 0..PER_CLAIM_MAX {
        world.suggests("bob", "src/a").unwrap();
    }
    assert!(matches!(no(world.suggests("bob", "src/a")), Refused::TooMany { .. }));
    world.audit();
}
