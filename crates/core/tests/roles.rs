//! Roles in stories: the claim, the verdict, who sets one, and what a session passes on.

use baton_core::check::{Because, Verdict};
use baton_core::id::TreeId;
use baton_core::refusal::Refusal;
use baton_core::roles::{Kind, Part, Role, Rules, Tool, giving};
use baton_core::sessions::{Session, Start};
use baton_core::time::Span;
use baton_core::view::get;
use baton_core::zones::Rule;

use crate::world::World;

/// A policy's roles with everything in them.
pub(crate) fn rules() -> Rules {
    let write = ["kind:source", "kind:scratch", "build/"];
    let part = |text: &str| Part::try_from(text.to_owned()).unwrap();
    let role = Role {
        about: "builds".to_owned(),
        write: Some(write.map(part).to_vec()),
        deny: vec![part("build/keep")],
        tools: vec![Tool::Read, Tool::Shell],
        commit: true,
        land: false,
        deploy: false,
    };
    let kinds = [(Kind::Tests, crate::world::resources(["checks/"]))];
    Rules { kinds: kinds.into(), named: [("builder".to_owned(), role)].into() }
}

impl World {
    fn give(&mut self, who: &str, role: &str) -> Result<giving::Given, Refusal> {
        let context = self.context(Some(who));
        self.decide(context, |view, context| giving::give(view, role, None, context))
    }

    fn role(&self, who: &str) -> Option<String> {
        let session: Session = get(&self.store, self.id(who).as_str()).unwrap().unwrap();
        session.role
    }
}

#[test]
fn a_claim_for_writing_outside_the_role_is_refused_and_reading_is_not() {
    let mut world = World::with(["ann", "bob"]);
    world.policy(&[("free/", Rule::Off)], &[("gpu", 2)]);
    world.give("ann", "code").unwrap();
    world.claim("ann", ["src/a.rs"]).granted();
    let refused = world.claim("ann", ["src/b.rs", "tests/b.rs"]).refused();
    let Refusal::Role(refused) = refused else { panic!("{refused:?}") };
    assert_eq!(refused.what, "claim tests/b.rs for writing");
    world.claim("ann", ["tests/b.rs"]).shared().granted();
    world.claim("ann", ["@gpu"]).granted();
    let finding = |world: &mut World, who: &str, path: &str| {
        world.check(who, path, None).unwrap().findings.remove(0)
    };
    let no = finding(&mut world, "ann", "tests/c.rs");
    assert_eq!((no.verdict, no.because), (Verdict::Deny, Because::Role));
    // Also where nothing else is judged, and before anything that others hold is told.
    assert_eq!(finding(&mut world, "ann", "free/tests/c.rs").because, Because::Role);
    assert_eq!(finding(&mut world, "bob", "tests/c.rs").because, Because::Free);
    world.audit();
}

#[test]
fn a_subagent_with_a_role_of_its_own_is_held_to_both() {
    let mut world = World::with(["ann"]);
    world.give("ann", "code").unwrap();
    let judged = |world: &mut World, role: Option<&str>, path: &str| {
        let mut context = world.context(Some("ann/helper"));
        context.actor.role = role.map(str::to_owned);
        let resources = [crate::world::resource(path)];
        let rule = |view: &dyn baton_core::view::View, context: &_| {
            Ok((Vec::new(), baton_core::check::check(view, &resources, None, context)?))
        };
        world.decide(context, rule).unwrap().verdict
    };
    assert_eq!(judged(&mut world, None, "src/a.rs"), Verdict::Allow);
    assert_eq!(judged(&mut world, Some("verify"), "src/a.rs"), Verdict::Deny);
    assert_eq!(judged(&mut world, Some("test"), "tests/a.rs"), Verdict::Deny, "its session's");
}

#[test]
fn a_session_only_narrows_its_role_and_a_person_does_as_it_likes() {
    let mut world = World::with(["ann", "bob"]);
    let refused = world.give("ann", "wizard");
    assert!(matches!(refused, Err(Refusal::OutOfRange { what: "role", .. })), "{refused:?}");
    world.give("ann", "code").unwrap();
    world.give("ann", "docs").unwrap();
    assert!(world.give("ann", "docs").unwrap().already);
    for wider in ["code", "orchestrator", "test"] {
        let refused = world.give("ann", wider);
        assert!(matches!(refused, Err(Refusal::NeedsPerson { .. })), "{wider}: {refused:?}");
    }
    assert_eq!(world.role("ann").as_deref(), Some("docs"));
    let (ann, mut context) = (world.id("ann"), world.context(Some("bob")));
    let give = |view: &dyn baton_core::view::View, context: &_| {
        giving::give(view, "code", Some(&ann), context)
    };
    let refused = world.decide(context.clone(), give);
    assert!(matches!(refused, Err(Refusal::NeedsPerson { .. })), "{refused:?}");
    context = world.context(Some("bob"));
    context.actor.person = true;
    world.decide(context, give).unwrap();
    assert_eq!(world.role("ann").as_deref(), Some("code"));
    world.audit();
}

#[test]
fn who_has_a_role_starts_nobody_with_more() {
    let mut world = World::new();
    let start = |world: &mut World, role: Option<&str>, starter: Option<&str>| {
        let request = Start {
            name: Some("x".to_owned()),
            client: None,
            client_session: None,
            continues: false,
            role: role.map(str::to_owned),
            starter: starter.map(str::to_owned),
            process: None,
            host: "here".to_owned(),
            tree: TreeId("main".to_owned()),
            ttl: Span::hours(1),
            secret_hash: "secret".to_owned(),
        };
        let context = world.context(None);
        let rule = |view: &dyn baton_core::view::View, context: &_| {
            baton_core::sessions::start(view, &request, context)
        };
        let started = world.decide(context, rule)?;
        let session: Session = get(&world.store, started.session.as_str()).unwrap().unwrap();
        Ok::<_, Refusal>(session.role)
    };
    assert_eq!(start(&mut world, None, None).unwrap(), None);
    assert_eq!(start(&mut world, Some("code"), None).unwrap().as_deref(), Some("code"));
    assert_eq!(start(&mut world, None, Some("verify")).unwrap().as_deref(), Some("verify"));
    assert_eq!(
        start(&mut world, Some("explore"), Some("verify")).unwrap().as_deref(),
        Some("explore")
    );
    let orchestrated = start(&mut world, Some("code"), Some("orchestrator")).unwrap();
    assert_eq!(orchestrated.as_deref(), Some("code"), "that is what it is for");
    let refused = start(&mut world, Some("code"), Some("verify"));
    assert!(matches!(refused, Err(Refusal::NeedsPerson { .. })), "{refused:?}");
}
