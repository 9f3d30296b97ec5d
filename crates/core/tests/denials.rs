//! What is written down of refusals: once in a while, never too much, and never of a person.

use baton_core::denials::{self, Deed, Denials, MARKS_MAX, QUIET, Refused, THINGS_MAX, Thing, Why};
use baton_core::event::Event;
use baton_core::refusal::Refusal;
use baton_core::time::Span;

use crate::world::World;

impl World {
    fn refuses(&mut self, who: &str, refused: &[Refused]) {
        let context = self.context(Some(who));
        self.decide(context, |view, context| denials::note(view, refused, context)).unwrap();
    }

    fn denied(&self) -> usize {
        self.journal.iter().filter(|entry| entry.kind == "deed_refused").count()
    }
}

fn edit(files: &[&str]) -> Refused {
    let things = files.iter().map(|file| Thing::new(*file)).collect();
    Refused::new(Deed::Edit, Why::Held, things)
}

#[test]
fn the_same_is_written_down_once_in_a_while() {
    let mut world = World::with(["ann", "bob"]);
    for _ in 0..5 {
        world.refuses("bob", &[edit(&["a"])]);
        world.pass(Span::seconds(1));
    }
    assert_eq!(world.denied(), 1);
    // Another file, another session, another reason, and another deed are something else.
    world.refuses("bob", &[edit(&["b"])]);
    world.refuses("ann", &[edit(&["a"])]);
    world.refuses("bob", &[Refused { why: Why::Stale, ..edit(&["a"]) }]);
    world.refuses("bob", &[Refused { deed: Deed::Commit, ..edit(&["a"]) }]);
    world.refuses("bob", &[Refused { done: true, ..edit(&["a"]) }]);
    world.refuses("bob", &[edit(&[]), edit(&[])]);
    assert_eq!(world.denied(), 7);
    // Of many things those are told that are new.
    let before = world.journal.len();
    world.refuses("bob", &[edit(&["a", "b", "c"])]);
    let events = world.events_since(before);
    let Some(Event::DeedRefused { denial }) = events.first() else { panic!("{events:?}") };
    assert_eq!((denial.things.as_slice(), denial.more), (&[Thing::new("c")][..], 0));
    world.pass(QUIET);
    world.refuses("bob", &[edit(&["a"])]);
    assert_eq!(world.denied(), 9);
    world.audit();
}

#[test]
fn neither_a_large_deed_nor_a_loop_fills_the_journal() {
    let mut world = World::with(["bob"]);
    let names: Vec<String> = (0..500).map(|number| format!("f{number}")).collect();
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    world.refuses("bob", &[edit(&all)]);
    let events = world.events_since(0);
    let Some(Event::DeedRefused { denial }) = events.last() else { panic!("{events:?}") };
    assert_eq!((denial.things.len(), denial.more as usize), (THINGS_MAX, 500 - THINGS_MAX));
    for name in &all {
        world.refuses("bob", &[edit(&[name])]);
    }
    assert_eq!(world.denied(), 1 + MARKS_MAX - THINGS_MAX);
    let kept: Vec<Denials> = world.records();
    assert_eq!(kept[0].quiet.len(), MARKS_MAX);
    // What is over makes room, and with the session it all goes.
    world.pass(QUIET);
    world.refuses("bob", &[edit(&["f0"])]);
    let kept: Vec<Denials> = world.records();
    assert_eq!(kept[0].quiet.len(), 1);
    world.end("bob", None).unwrap();
    assert!(world.records::<Denials>().is_empty());
    world.audit();
}

#[test]
fn nothing_is_written_of_a_person_of_nobody_or_of_who_asks() {
    let mut world = World::with(["ann", "bob"]);
    let mut person = world.context(Some("ann"));
    person.actor.person = true;
    let nobody = world.context(None);
    for context in [person, nobody] {
        world
            .decide(context, |view, context| denials::note(view, &[edit(&["a"])], context))
            .unwrap();
    }
    world.claim("ann", ["src/"]).granted();
    let refusal = world.claim("bob", ["src/a.rs"]).refused();
    assert!(matches!(refusal, Refusal::Held(_)));
    assert_eq!(denials::of_refusal(Deed::Claim, "", &refusal), None);
    assert_eq!(world.denied(), 0);
}
