//! Stories about claims: who excludes whom, how far, for how long, and what is left behind.

use baton_core::check::{Because, Verdict};
use baton_core::claims::letting_go::{self, Target, Which};
use baton_core::claims::take_together;
use baton_core::context::ForeignLock;
use baton_core::event::{EndOfClaim, Event};
use baton_core::notices::News;
use baton_core::refusal::Refusal;
use baton_core::time::Span;
use baton_core::view::View;

use crate::world::{World, resource};

const MINUTE: Span = Span::minutes(1);

/// Who may take what beside a claim of ann in the tree `main`.
#[test]
fn s1_conflicts_follow_tree_scope_and_mode() {
    // (ann's scope is tree, ann shares, the other's tree, its scope is tree, it shares) → granted
    for (own_tree, own_shared, tree, in_tree, shared, free) in [
        (true, false, "main", true, false, false),
        (true, false, "main", true, true, false),
        (true, true, "main", true, true, true),
        (true, true, "main", true, false, false),
        (true, false, "side", true, false, true),
        (true, false, "side", false, false, false),
        (false, false, "side", true, false, false),
        (false, true, "side", false, true, true),
        (false, true, "side", false, false, false),
    ] {
        let mut world = World::with(["ann"]);
        world.start("bob", tree);
        let mut first = world.claim("ann", ["src/"]);
        first = if own_tree { first.in_tree() } else { first };
        first = if own_shared { first.shared() } else { first };
        first.granted();
        let mut second = world.claim("bob", ["src/a.rs"]);
        second = if in_tree { second.in_tree() } else { second };
        second = if shared { second.shared() } else { second };
        let case = (own_tree, own_shared, tree, in_tree, shared);
        assert_eq!(second.answer().is_ok(), free, "{case:?}");
    }
}

#[test]
fn other_trees_are_warned_of() {
    let mut world = World::with(["ann"]);
    world.start("bob", "side");
    world.claim("ann", ["a"]).in_tree().ttl(MINUTE).granted();
    let granted = world.claim("bob", ["a"]).in_tree().granted();
    assert_eq!(granted.elsewhere[0].holder.name, "ann");
    let again = world.claim("bob", ["a"]).in_tree().granted();
    assert_eq!((again.already_held, again.elsewhere.len()), (true, 1));
    world.pass(MINUTE);
    let again = world.claim("bob", ["a"]).in_tree().granted();
    assert_eq!((again.already_held, again.elsewhere.len()), (true, 0), "ann's has run out");
}

#[test]
fn subagents_exclude_each_other_but_not_their_session() {
    let mut world = World::with(["ann", "bob"]);
    world.claim("ann/one", ["a"]).granted();
    assert_eq!(world.claim("ann/two", ["a"]).held().holder.agent.as_deref(), Some("one"));
    world.claim("ann", ["a"]).granted();
    assert_eq!(world.claim("bob", ["a"]).held().holder.name, "ann");
    // A subagent lets go of its own only.
    world.claim("ann/two", ["b"]).granted();
    world.let_go("ann/one", &Which::All, None).unwrap();
    assert_eq!(world.claims_of("ann").len(), 2);
    // Their session leaves them what they are at work on.
    world.let_go("ann", &Which::All, None).unwrap();
    let left = world.claims_of("ann");
    assert_eq!((left.len(), left[0].hold.holder.agent.as_deref()), (1, Some("two")));
}

#[test]
fn s3_claims_that_are_taken_together_are_all_granted_or_none() {
    let mut world = World::with(["ann", "bob"]);
    world.claim("bob", ["log"]).shared().in_tree().granted();
    let code = world.claim("ann", ["code"]).in_tree().into_request();
    let log = world.claim("ann", ["log"]).shared().in_tree().into_request();
    let both = [code.clone(), log];
    let context = world.context(Some("ann"));
    let granted =
        world.decide(context, |view, context| take_together(view, &both, context)).unwrap();
    let held = world.claims_of("ann");
    assert_eq!((granted.len(), held.len()), (2, 2));
    assert_ne!(granted[0].claim, granted[1].claim);
    assert!(granted[0].token < granted[1].token, "each is its place in the journal");
    assert!(granted.iter().all(|one| held.iter().any(|held| held.token == one.token)));
    // What is held already stays as it is; what another has alone is in the way of all.
    world.claim("bob", ["other"]).in_tree().granted();
    let other = world.claim("ann", ["other"]).shared().in_tree().into_request();
    let more = world.claim("ann", ["more"]).in_tree().into_request();
    let all = [code, more, other];
    let context = world.context(Some("ann"));
    let refused = world.decide(context, |view, context| take_together(view, &all, context));
    assert!(matches!(refused, Err(Refusal::Held(_))), "{refused:?}");
    assert_eq!(world.claims_of("ann"), held);
    world.audit();
}

#[test]
fn asking_again_keeps_the_token_and_tells_the_true_expiry() {
    let mut world = World::with(["ann"]);
    let first = world.claim("ann", ["a", "b"]).granted();
    world.pass(MINUTE);
    let entries = world.journal.len();
    let again = world.claim("ann", ["a"]).granted();
    assert!(again.already_held);
    assert_eq!((again.token, again.expires_at), (first.token, first.expires_at));
    assert_eq!(world.journal.len(), entries, "nothing new, nothing written");
    // A longer lease is asked for: it is given, kept, and not asked for a second time.
    let longer = world.claim("ann", ["a"]).ttl(Span::hours(2)).granted();
    assert_eq!(longer.expires_at, world.now + Span::hours(2));
    let stored = world.claims_of("ann")[0].clone();
    assert_eq!((stored.ttl, stored.expires_at), (Span::hours(2), longer.expires_at));
    let entries = world.journal.len();
    world.claim("ann", ["a"]).ttl(Span::hours(2)).granted();
    assert_eq!(world.journal.len(), entries);
    // No renewal shortens it, also not one for the shorter time.
    world.renew("ann", &Which::All).unwrap();
    assert!(world.claims_of("ann")[0].expires_at >= longer.expires_at);
}

#[test]
fn amounts_are_for_everyone_together() {
    let mut world = World::with(["ann", "bob"]);
    world.policy(&[], &[("gpu", 4)]);
    assert!(matches!(world.claim("ann", ["@gpu=5"]).refused(), Refusal::OverCapacity { .. }));
    assert!(matches!(
        world.claim("ann", ["@gpu=3", "@GPU=2"]).refused(),
        Refusal::OverCapacity { .. }
    ));
    let both = world.claim("ann", ["@gpu", "@gpu=2"]).granted();
    assert_eq!(both.resources, [resource("@gpu=3")]);
    assert_eq!(world.claim("bob", ["@gpu=2"]).held().free, Some(1));
    world.claim("bob", ["@gpu"]).granted();
    // One's own share counts as well.
    assert_eq!(world.claim("ann", ["@gpu=4"]).held().holder.name, "bob");
    world.release("ann", ["@gpu"]).unwrap();
    world.claim("bob", ["@gpu=3"]).granted();
    assert_eq!(world.claim("ann", ["@gpu"]).held().free, Some(0));
    // A name without a capacity has one holder, and there is nothing to count.
    assert!(matches!(world.claim("ann", ["@port=2"]).refused(), Refusal::OverCapacity { .. }));
}

#[test]
fn an_own_claim_that_ran_out_is_never_in_the_way() {
    let mut world = World::with(["ann", "bob"]);
    world.policy(&[], &[("gpu", 1)]);
    let old = world.claim("ann", ["@gpu", "a", "b"]).ttl(MINUTE).granted();
    world.pass(MINUTE);
    // Inside the lock delay bob is kept out, ann is not.
    world.claim("bob", ["@gpu"]).held();
    let new = world.claim("ann", ["@gpu", "a"]).granted();
    assert!(new.token > old.token && !new.already_held);
    assert_eq!(world.acts("ann").notices, [], "nothing was lost to oneself");
    let rest: Vec<_> = world.claims_of("ann").into_iter().map(|one| one.hold.resources).collect();
    assert!(rest.contains(&vec![resource("b")]), "the rest waits to be renewed: {rest:?}");
    world.renew("ann", &Which::All).unwrap();
    assert!(world.check("ann", "b", None).unwrap().findings[0].because == Because::Mine);
}

#[test]
fn renewing_what_ran_out_keeps_tree_and_agent_and_gives_each_its_own_id() {
    let mut world = World::with(["ann"]);
    world.claim("ann/one", ["a"]).granted();
    for number in 0..300 {
        let text = format!("f/{number}");
        world.claim("ann", [&text[..]]).in_tree().granted();
    }
    world.pass(Span::hours(1));
    let renewed = world.renew("ann", &Which::All).unwrap();
    assert_eq!(renewed.renewed.len(), 301);
    let claims = world.claims_of("ann");
    assert_eq!(claims.len(), 301);
    let one = claims.iter().find(|one| one.hold.resources == [resource("a")]).unwrap();
    assert_eq!(one.hold.holder.agent.as_deref(), Some("one"));
    assert_eq!(one.hold.tree.0, "main");
    world.audit();
}

#[test]
fn renewing_does_not_give_the_same_amount_twice() {
    let mut world = World::with(["ann"]);
    world.policy(&[], &[("gpu", 1)]);
    world.claim("ann/one", ["@gpu", "a"]).ttl(MINUTE).granted();
    world.pass(MINUTE);
    world.claim("ann", ["@gpu", "b"]).ttl(MINUTE).granted();
    world.pass(MINUTE);
    world.renew("ann", &Which::All).unwrap();
    let used = world.claims_of("ann").into_iter().flat_map(|one| one.hold.resources);
    assert_eq!(used.filter(|one| *one == resource("@gpu")).count(), 1);
}

#[test]
fn one_claim_that_cannot_be_renewed_does_not_stop_the_others() {
    let mut world = World::with(["ann", "bob"]);
    world.claim("ann", ["a"]).ttl(MINUTE).granted();
    world.claim("ann", ["b"]).granted();
    world.claim("bob", ["a"]).wait(Span::hours(1)).queued();
    for _ in 0..2 {
        world.pass(Span::seconds(20));
        world.look("bob").unwrap();
    }
    world.pass(Span::seconds(20));
    // Bob was first for what has run out.
    let renewed = world.renew("ann", &Which::All).unwrap();
    assert_eq!(renewed.renewed.len(), 1);
    assert!(renewed.not_renewed[0].held.as_ref().unwrap().queued);
    assert_eq!(world.claims_of("ann")[0].hold.resources.len(), 1);
}

#[test]
fn many_claims_that_ran_out_do_not_hide_one_that_is_due() {
    let mut world = World::with(["ann"]);
    for number in 0..1_100 {
        let text = format!("f/{number}");
        world.claim("ann", [&text[..]]).ttl(Span::seconds(1)).granted();
    }
    world.claim("ann", ["a"]).ttl(Span::minutes(10)).granted();
    world.pass(Span::minutes(6));
    world.acts("ann");
    let claim =
        world.claims_of("ann").into_iter().find(|one| one.hold.resources == [resource("a")]);
    assert_eq!(claim.unwrap().expires_at, world.now + Span::minutes(10));
}

#[test]
fn notices_are_told_once_and_by_every_act_that_takes_them() {
    type Act = (&'static str, fn(&mut World) -> usize);
    let acts: [Act; 4] = [
        ("claim", |world| world.claim("ann", ["z"]).granted().notices.len()),
        ("wait", |world| world.claim("ann", ["b"]).wait(MINUTE).queued().notices.len()),
        ("ask", |world| world.ask("ann", "b").unwrap().notices.len()),
        ("release", |world| world.release("ann", ["c"]).unwrap().notices.len()),
    ];
    for (name, act) in acts {
        let mut world = World::with(["ann", "bob"]);
        world.claim("ann", ["a"]).granted();
        world.claim("ann", ["c"]).granted();
        world.claim("bob", ["b"]).granted();
        world.ask("bob", "a").unwrap();
        assert_eq!(act(&mut world), 1, "{name}");
        assert_eq!(world.acts("ann").notices, [], "{name}");
    }
}

#[test]
fn a_revoke_is_a_persons_and_the_holder_is_told() {
    let mut world = World::with(["ann"]);
    let claim = world.claim("ann", ["a"]).granted().claim;
    let context = world.context(Some("ann"));
    let target = Target::Claim(claim);
    let refused =
        world.decide(context, |view, context| letting_go::revoke(view, &target, "", context));
    assert!(matches!(refused, Err(Refusal::NeedsPerson { .. })));
    world.revoke(&target).unwrap();
    assert!(matches!(world.acts("ann").notices[0].news, News::Lost { to: None, .. }));
    let nobody = Target::Session(baton_core::id::SessionId("s0".to_owned()));
    assert!(matches!(world.revoke(&nobody), Err(Refusal::UnknownSession { .. })));
}

#[test]
fn leftovers_are_told_once_to_the_next_editor_of_each_path() {
    let mut world = World::with(["ann", "bob", "cat"]);
    world.claim("ann", ["a", "b", "c"]).granted();
    world.dirty.insert("ann".to_owned(), vec![resource("a"), resource("b"), resource("c")]);
    // Also a part that is let go leaves its changes behind.
    world.release("ann", ["c"]).unwrap();
    world.end("ann", None).unwrap();
    let told = world.claim("bob", ["a"]).granted().left_behind;
    assert_eq!(told[0].paths, [resource("a")]);
    let mut told = world.claim("cat", ["b", "c"]).granted().left_behind;
    told[0].paths.sort();
    assert_eq!(told[0].paths, [resource("b"), resource("c")]);
    world.let_go("bob", &Which::All, None).unwrap();
    assert_eq!(world.claim("cat", ["a"]).granted().left_behind, []);
    world.audit();
}

#[test]
fn taking_ones_own_again_leaves_nothing_behind() {
    let mut world = World::with(["ann", "bob"]);
    world.claim("ann", ["a"]).granted();
    world.dirty.insert("ann".to_owned(), vec![resource("a")]);
    world.pass(Span::hours(1));
    let from = world.journal.len();
    world.claim("ann", ["a"]).granted();
    let replaced = world.events_since(from).into_iter().find_map(|event| match event {
        Event::ClaimEnded { why: EndOfClaim::Replaced, left, .. } => Some(left),
        _ => None,
    });
    assert_eq!(replaced, Some(None));
    // Released and retaken, then committed: bob hears nothing of it.
    world.release("ann", ["a"]).unwrap();
    assert_eq!(world.claim("ann", ["a"]).granted().left_behind, []);
    world.dirty.clear();
    world.release("ann", ["a"]).unwrap();
    assert_eq!(world.claim("bob", ["a"]).granted().left_behind, []);
}

#[test]
fn a_check_sees_what_a_claim_would_meet() {
    let mut world = World::with(["ann", "bob", "cat"]);
    world.claim("ann", ["a"]).shared().granted();
    assert_eq!(world.check("ann", "a", None).unwrap().findings[0].because, Because::Free);
    assert_eq!(world.check("bob", "a", None).unwrap().verdict, Verdict::Deny);
    // Bob waits; when ann has let go, it is bob's turn and not cat's.
    world.claim("bob", ["a"]).wait(MINUTE).queued();
    world.release("ann", ["a"]).unwrap();
    let finding = world.check("cat", "a", None).unwrap().findings.remove(0);
    assert!(finding.verdict == Verdict::Deny && finding.held[0].queued);
    // Another tool's lock file is respected.
    world.locks.push(ForeignLock { resource: resource("f"), holder: "aider".to_owned() });
    assert_eq!(world.check("cat", "f", None).unwrap().verdict, Verdict::Deny);
    assert_eq!(world.claim("cat", ["f"]).held().holder.name, "aider");
}

#[test]
fn a_token_of_any_own_claim_on_the_path_is_good() {
    let mut world = World::with(["ann"]);
    let narrow = world.claim("ann", ["src/a"]).granted();
    let wide = world.claim("ann", ["src/"]).granted();
    for token in [narrow.token, wide.token] {
        assert!(world.check("ann", "src/a", Some(token)).is_ok());
    }
    assert!(world.check("ann", "src/b", Some(narrow.token)).is_err());
}

#[test]
fn s8_a_failover_extends_leases_and_no_renewal_takes_it_back() {
    let mut world = World::with(["ann", "bob"]);
    let ttl = Span::minutes(10);
    world.claim("ann", ["a"]).ttl(ttl).granted();
    let ends = world.now + ttl + ttl;
    world.pass(MINUTE);
    world.failed_over_at = Some(world.now);
    assert_eq!(world.claim("ann", ["a"]).ttl(ttl).granted().expires_at, ends);
    world.pass(Span::minutes(7));
    world.acts("ann");
    assert_eq!(world.claims_of("ann")[0].expires_at, ends);
    world.pass(Span::minutes(11));
    world.claim("bob", ["a"]).held();
    world.pass(Span::minutes(3));
    world.claim("bob", ["a"]).granted();
}

#[test]
fn s5_tokens_rise_across_epochs() {
    let mut world = World::with(["ann"]);
    let first = world.claim("ann", ["a"]).granted().token;
    world.raise_epoch();
    let second = world.claim("ann", ["b"]).granted().token;
    assert!(second > first && second.epoch == first.epoch + 1);
    world.audit();
}

#[test]
fn bad_requests_are_refused() {
    let mut world = World::with(["ann"]);
    assert!(matches!(world.claim("ann", []).refused(), Refusal::Empty));
    let many: Vec<String> = (0..1_001).map(|number| format!("f{number}")).collect();
    let refusal = world.claim("ann", many.iter().map(String::as_str)).refused();
    assert!(matches!(refusal, Refusal::TooMany { given: 1_001, .. }));
    let refusal = world.claim("ann", ["a"]).ttl(Span::days(2)).refused();
    assert!(matches!(refusal, Refusal::OutOfRange { what: "ttl", .. }));
    let refusal = world.claim("ann", ["a"]).priority(10).refused();
    assert!(matches!(refusal, Refusal::OutOfRange { what: "priority", .. }));
}

#[test]
fn a_claim_settles_only_as_it_was_seen() {
    let mut world = World::with(["ann", "bob"]);
    world.claim("ann", ["a"]).in_tree().granted();
    let seen = world.claims_of("ann").remove(0);
    world.pass(Span::minutes(20));
    world.acts("ann");
    assert!(!world.settle_seen(&seen), "it was renewed in between");
    let seen = world.claims_of("ann").remove(0);
    assert!(world.settle_seen(&seen));
    assert!(!world.settle_seen(&seen), "once");
    // Its holder had written meanwhile: it has it back, if nobody took it.
    let back = |world: &mut World| {
        let context = world.context(None);
        let rule = |view: &dyn View, context: &_| letting_go::unsettled(view, &seen, context);
        world.decide(context, rule).unwrap()
    };
    assert!(back(&mut world));
    assert_eq!(world.claims_of("ann")[0].hold, seen.hold);
    world.let_go("ann", &Which::All, None).unwrap();
    world.claim("bob", ["a"]).in_tree().granted();
    assert!(!back(&mut world));
    world.release("bob", ["a"]).unwrap();
    world.end("ann", None).unwrap();
    assert!(!back(&mut world), "nobody is there to have it back");
    world.audit();
}
