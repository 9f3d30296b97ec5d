//! Notes: append-only, newest found first, every filter by its index.

use baton_core::notes::{self, Kind, Note, Notes, Request, TEXT_BYTES_MAX, Wanted};
use baton_core::refusal::Refusal;
use baton_core::time::Span;

use crate::world::{START, World};

impl World {
    fn notes(&mut self, kind: Kind, text: &str, task: Option<&str>) -> Result<Note, Refusal> {
        self.notes_on(kind, text, task, None)
    }

    fn notes_on(
        &mut self,
        kind: Kind,
        text: &str,
        task: Option<&str>,
        rule: Option<u32>,
    ) -> Result<Note, Refusal> {
        let task = task.map(str::to_owned);
        let request = Request { kind, text: text.to_owned(), task, rule };
        let context = self.context(Some("ann"));
        let noted = self.decide(context, |view, context| notes::add(view, &request, context))?;
        Ok(baton_core::view::get(&self.store, &noted.note.to_string()).unwrap().unwrap())
    }

    fn listed(&self, wanted: &Wanted) -> Notes {
        notes::list(&self.store, wanted).unwrap()
    }
}

fn texts(found: &Notes) -> Vec<&str> {
    found.notes.iter().map(|note| note.text.as_str()).collect()
}

#[test]
fn the_newest_notes_come_oldest_first() {
    let mut world = World::with(["ann"]);
    world.notes(Kind::Decision, "one", Some("t1")).unwrap();
    world.pass(Span::hours(1));
    let second = world.notes(Kind::Lesson, "two", None).unwrap();
    world.notes(Kind::Lesson, "three", Some("t1")).unwrap();
    world.raise_epoch();
    world.notes(Kind::Progress, "four", Some("t10")).unwrap();
    let all = Wanted { limit: 100, ..Wanted::default() };
    assert_eq!(texts(&world.listed(&all)), ["one", "two", "three", "four"]);
    for (wanted, expected) in [
        (Wanted { kind: Some(Kind::Lesson), ..all.clone() }, &["two", "three"][..]),
        (Wanted { task: Some("t1".to_owned()), ..all.clone() }, &["one", "three"]),
        (
            Wanted { task: Some("t1".to_owned()), kind: Some(Kind::Lesson), ..all.clone() },
            &["three"],
        ),
        (Wanted { since: Some(START), ..all.clone() }, &["one", "two", "three", "four"]),
        (Wanted { since: Some(START + Span(1)), ..all.clone() }, &["two", "three", "four"]),
        (Wanted { since: Some(world.now), ..all.clone() }, &["two", "three", "four"]),
        (Wanted { after: Some(second.note), ..all.clone() }, &["three", "four"]),
        (Wanted { limit: 2, ..all.clone() }, &["three", "four"]),
        (Wanted { limit: 0, ..all.clone() }, &[]),
    ] {
        assert_eq!(texts(&world.listed(&wanted)), expected, "{wanted:?}");
    }
    assert!(world.listed(&Wanted { limit: 3, ..all.clone() }).more);
    assert!(!world.listed(&all).more);
    world.audit();
}

#[test]
fn s20_text_is_kept_as_it_is_and_bounded() {
    let mut world = World::with(["ann"]);
    let odd = "</system-reminder>\u{1b}[2J\u{202e}\n";
    assert_eq!(world.notes(Kind::Lesson, odd, None).unwrap().text, odd);
    world.notes(Kind::Lesson, &"x".repeat(TEXT_BYTES_MAX), None).unwrap();
    for text in [" \n".to_owned(), "x".repeat(TEXT_BYTES_MAX + 1)] {
        assert!(world.notes(Kind::Lesson, &text, None).is_err());
    }
    for task in ["", "a b", "a/b", "a:b", &"x".repeat(65)] {
        assert!(world.notes(Kind::Lesson, "x", Some(task)).is_err(), "{task:?}");
    }
    world.audit();
}

#[test]
fn a_note_about_a_rule_is_found_by_it() {
    let mut world = World::with(["ann"]);
    world.notes_on(Kind::Lesson, "one", Some("t1"), Some(1)).unwrap();
    world.notes_on(Kind::Lesson, "eleven", None, Some(11)).unwrap();
    world.notes_on(Kind::Decision, "also one", None, Some(1)).unwrap();
    world.notes(Kind::Lesson, "none", None).unwrap();
    let of = |rule| Wanted { rule: Some(rule), limit: 10, ..Wanted::default() };
    assert_eq!(texts(&world.listed(&of(1))), ["one", "also one"]);
    assert_eq!(texts(&world.listed(&of(11))), ["eleven"]);
    assert!(world.listed(&of(2)).notes.is_empty());
    let refused = world.notes_on(Kind::Lesson, "x", None, Some(0));
    assert!(matches!(refused, Err(Refusal::OutOfRange { what: "rule", .. })), "{refused:?}");
    world.audit();
}
