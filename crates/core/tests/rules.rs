//! Which rules a session was told: once for each version, whatever else happens.

use baton_core::rules;
use baton_core::sessions::Session;
use baton_core::time::Span;
use baton_core::view::get;

use crate::world::World;

impl World {
    fn told(&mut self, who: &str, version: Option<&str>) {
        let context = self.context(Some(who));
        self.decide(context, |view, context| rules::told(view, version, 20, context)).unwrap();
    }

    fn seen(&self, who: &str) -> Option<String> {
        let session: Session = get(&self.store, self.id(who).as_str()).unwrap().unwrap();
        session.rules.map(|seen| seen.version)
    }

    fn times_told(&self) -> usize {
        self.journal.iter().filter(|entry| entry.kind == "rules_seen").count()
    }
}

#[test]
fn a_version_is_written_down_once_for_each_session() {
    let mut world = World::with(["ann", "bob"]);
    world.told("ann", None);
    assert_eq!((world.seen("ann"), world.times_told()), (None, 0));
    for _ in 0..3 {
        world.told("ann", Some("one"));
        world.pass(Span::seconds(1));
    }
    assert_eq!((world.seen("ann").as_deref(), world.times_told()), (Some("one"), 1));
    world.told("bob", Some("one"));
    world.told("ann", Some("two"));
    world.told("ann", None);
    assert_eq!((world.seen("ann").as_deref(), world.times_told()), (Some("two"), 3));
    assert_eq!(world.seen("bob").as_deref(), Some("one"));
    // Back after its end, it still knows.
    world.end("ann", Some(baton_core::sessions::GRACE)).unwrap();
    assert!(world.start("ann", "main").resumed);
    world.told("ann", Some("two"));
    assert_eq!(world.times_told(), 3);
    world.audit();
}
