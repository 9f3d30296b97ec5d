//! Stories about zones: which rule holds where, and what a serial zone is.

use baton_core::check::{Because, Verdict};
use baton_core::claim::Scope;
use baton_core::refusal::Refusal;
use baton_core::resource::{NAME_BYTES_MAX, Resource};
use baton_core::time::Span;
use baton_core::zones::Rule;

use crate::world::{World, resource};

#[test]
fn the_last_zone_wins_and_a_pattern_obeys_the_strictest() {
    let mut world = World::with(["ann"]);
    let zones = [
        ("gen/", Rule::Off),
        ("ci/", Rule::Require),
        ("ci/notes.md", Rule::Auto),
        ("CHANGELOG.md", Rule::Append),
        ("LICENSE", Rule::Human),
    ];
    world.policy(&zones, &[]);
    for (text, rule) in [
        ("src/a", Rule::Auto),
        ("gen/x", Rule::Off),
        ("gen/deep/", Rule::Off),
        ("**/x", Rule::Require),
        ("ge*/x", Rule::Auto),
        ("ci/deploy", Rule::Require),
        ("ci/notes.md", Rule::Auto),
        ("ci/", Rule::Require),
        ("**", Rule::Human),
        ("CHANGELOG.md", Rule::Append),
    ] {
        let finding = world.check("ann", text, None).unwrap().findings.remove(0);
        assert_eq!(finding.zone, rule, "{text}");
    }
    assert_eq!(world.check("ann", "gen/x", None).unwrap().findings[0].because, Because::Unjudged);
    assert_eq!(world.check("ann", "ci/deploy", None).unwrap().verdict, Verdict::Deny);
    assert_eq!(world.check("ann", "LICENSE", None).unwrap().verdict, Verdict::Ask);
    assert!(matches!(world.claim("ann", ["LICENSE"]).refused(), Refusal::NeedsPerson { .. }));
    let wide = world.claim("ann", ["ci/deploy"]).in_tree().granted();
    assert_eq!(wide.scope, Scope::Workspace);
}

#[test]
fn a_serial_zone_has_one_holder_everywhere() {
    let mut world = World::with(["ann"]);
    world.start("bob", "side");
    world.policy(&[("db/", Rule::Serial), ("web/", Rule::Serial)], &[]);
    world.claim("ann", ["db/1"]).in_tree().granted();
    world.claim("bob", ["db/2"]).in_tree().held();
    assert_eq!(world.check("bob", "db/2", None).unwrap().verdict, Verdict::Deny);
    world.claim("bob", ["web/1"]).in_tree().granted();
    // A pattern over both needs both.
    assert_eq!(world.claim("ann", ["**/2"]).held().holder.name, "bob");
    world.release("bob", ["web/1"]).unwrap();
    world.claim("ann", ["**/2"]).granted();
    world.claim("bob", ["web/1"]).held();
}

#[test]
fn a_zone_goes_with_the_last_of_its_paths() {
    let mut world = World::with(["ann", "bob"]);
    world.policy(&[("db/", Rule::Serial), ("web/", Rule::Serial)], &[]);
    world.claim("ann", ["db/1", "db/2", "web/1"]).granted();
    world.release("ann", ["db/1"]).unwrap();
    world.claim("bob", ["db/1"]).held();
    world.release("ann", ["db/2"]).unwrap();
    world.claim("bob", ["db/1"]).granted();
    world.claim("bob", ["web/2"]).held();
    // Its name alone cannot be let go while a path of it is held.
    assert!(matches!(world.release("ann", ["@zone/web/"]), Err(Refusal::NotHeld { .. })));
    world.claim("bob", ["web/2"]).held();
    let released = world.release("ann", ["web/1"]).unwrap().released;
    assert_eq!(released, [resource("web/1")]);
    assert_eq!(world.claims_of("ann"), []);
}

#[test]
fn a_zone_that_was_claimed_by_name_can_be_let_go_by_name() {
    let mut world = World::with(["ann", "bob"]);
    world.policy(&[("db/", Rule::Serial)], &[]);
    world.claim("ann", ["@zone/db/"]).granted();
    world.claim("bob", ["db/1"]).held();
    world.release("ann", ["@zone/db/"]).unwrap();
    world.claim("bob", ["db/1"]).granted();
}

#[test]
fn a_zone_with_a_very_long_path_can_be_read_back() {
    let mut world = World::with(["ann"]);
    let long = format!("{}/", "x".repeat(NAME_BYTES_MAX + 50));
    world.policy(&[(&long, Rule::Serial)], &[]);
    world.claim("ann", [&format!("{long}a")[..]]).granted();
    let names = world.claims_of("ann").remove(0).hold.resources;
    assert!(names.iter().any(|one| matches!(one, Resource::Name { .. })));
    world.pass(Span::seconds(1));
    world.audit();
}
