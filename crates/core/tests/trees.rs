//! Working trees and numbers: planned before made, kept while anything of them is worth keeping.

use baton_core::conflicts::{Duplicate, Predicted};
use baton_core::event::Event;
use baton_core::id::{TaskId, TreeId};
use baton_core::numbers::{self, Counter, Given};
use baton_core::refusal::Refusal;
use baton_core::time::Span;
use baton_core::tree::{Stage, Tree};
use baton_core::trees::refused::Keep;
use baton_core::trees::{self, Made, Naming, Plan, Planned, Removed, Seen, Wish, Working, slug};

use crate::events::holder;
use crate::world::{START, World, process};

/// One of everything that can happen to trees and numbers.
pub(crate) fn samples() -> Vec<Event> {
    let tree = TreeId("ab12".to_owned());
    let removed = Removed {
        tree: Some(tree.clone()),
        path: "/r.trees/x".to_owned(),
        branch: Some("baton/x".to_owned()),
        branch_removed: true,
        rescued: vec!["refs/baton/rescue/ab12/changes".to_owned()],
        at: START,
    };
    let planned = Tree {
        tree: tree.clone(),
        stage: Stage::Planned,
        host: "h".to_owned(),
        repository: "/r/.git".to_owned(),
        path: "/r.trees/x".to_owned(),
        branch: "baton/x".to_owned(),
        base: "main".to_owned(),
        commit: "00".to_owned(),
        task: Some(TaskId::numbered(3)),
        ports: vec![20_000],
        by: holder(),
        process: Some(process("ann")),
        at: START,
    };
    let counter = Counter { folder: "db".to_owned(), last: 7, by: holder(), at: START };
    vec![
        Event::TreePlanned { tree: planned },
        Event::TreeMade { tree: tree.clone(), at: START },
        Event::TreeGivenUp { tree, why: "why \u{202e}".to_owned() },
        Event::TreeRemoved { removed: removed.clone() },
        Event::TreeRemoved { removed: Removed { tree: None, branch: None, ..removed } },
        Event::NumberGiven { counter },
        Event::ConflictPredicted { predicted: predicted() },
        Event::ConflictGone { clone: "h".to_owned(), a: "x".to_owned(), b: "y".to_owned() },
        Event::DuplicateFound {
            duplicate: Duplicate {
                symbol: "sum".to_owned(),
                places: vec!["x a.rs:1".to_owned(), "y b.rs:2".to_owned()],
                at: START,
            },
        },
    ]
}

fn predicted() -> Predicted {
    Predicted {
        clone: "h".to_owned(),
        a: "x".to_owned(),
        b: "y".to_owned(),
        files: vec!["src/a.rs".to_owned()],
        findings: vec!["00".to_owned()],
        at: START,
    }
}

fn wanted(name: &str) -> Plan {
    Plan {
        tree: TreeId(format!("id-{name}")),
        host: "h".to_owned(),
        repository: "/r/.git".to_owned(),
        path: format!("/r.trees/{name}"),
        branch: format!("baton/{name}"),
        base: "main".to_owned(),
        commit: "00".to_owned(),
        task: None,
        ports: 0,
        free_ports: Vec::new(),
        process: None,
    }
}

impl World {
    fn plan(&mut self, who: &str, plan: &Plan) -> Result<Planned, Refusal> {
        let context = self.context(Some(who));
        self.decide(context, |view, context| trees::plan(view, plan, context))
    }

    fn made(&mut self, who: &str, name: &str) -> TreeId {
        let planned = self.plan(who, &wanted(name)).unwrap();
        let tree = planned.tree.tree.clone();
        let made = Made {
            tree: planned.tree,
            token: planned.token,
            environment: String::new(),
            carried: Vec::new(),
            author: None,
            remarks: Vec::new(),
            notices: Vec::new(),
        };
        let context = self.context(Some(who));
        self.decide(context, |view, context| trees::finish(view, made.clone(), context)).unwrap();
        tree
    }

    fn kept(&mut self, who: &str, tree: &TreeId, seen: &Seen, wish: Wish) -> Vec<Keep> {
        let context = self.context(Some(who));
        trees::reasons(&self.store, Some(tree), seen, wish, &context).unwrap()
    }

    fn numbered(&mut self, who: &str, seen: Option<(u64, usize)>, claim: bool) -> Given {
        let request = numbers::Request { folder: "db".to_owned(), width: None, claim, seen };
        let context = self.context(Some(who));
        self.decide(context, |view, context| numbers::next(view, &request, context)).unwrap()
    }
}

fn landed() -> Seen {
    Seen { landed: true, target: Some("main".to_owned()), ..Seen::default() }
}

#[test]
fn names_are_plain_whatever_the_title() {
    for (title, expected) in [
        ("Fix the parser!", "fix-the-parser"),
        ("--output=/etc/passwd", "output-etc-passwd"),
        ("../../x", "x"),
        ("\u{1b}[2J\u{202e}", "2j"),
        ("漢字", ""),
        ("A..B.lock", "a-b-lock"),
    ] {
        assert_eq!(slug(title), expected, "{title:?}");
    }
    assert!(slug(&"long ".repeat(100)).len() <= trees::NAME_CHARACTERS_MAX);
}

#[test]
fn a_tree_is_named_by_its_task_or_as_it_is_told() {
    let mut world = World::with(["ann"]);
    let name = |world: &mut World, task, name| {
        let context = world.context(Some("ann"));
        trees::name(&world.store, task, name, &context)
    };
    let Naming { leaf, branch, task } = name(&mut world, None, Some("side-job")).unwrap();
    assert_eq!((leaf.as_str(), branch.as_str(), task), ("side-job", "baton/side-job", None));
    assert_eq!(name(&mut world, None, None).unwrap().leaf, "ann");
    for bad in ["--output=x", "A", "a b", "", "../x", "a\n", "-x"] {
        let refused = name(&mut world, None, Some(bad)).unwrap_err();
        assert_eq!(refused.code(), "bad_name", "{bad:?}");
    }
    assert_eq!(name(&mut world, Some("t9"), None).unwrap_err().code(), "unknown_task");
}

#[test]
fn a_branch_says_its_tree_and_excludes_what_would_lie_in_it() {
    for (branch, leaf) in [
        ("baton/one", Some("one")),
        ("baton/one/work", Some("one")),
        ("baton/work", Some("work")),
        ("one/work", None),
    ] {
        assert_eq!(trees::leaf_of(branch), leaf, "{branch}");
    }
    for (one, two, expected) in [
        ("baton/one", "baton/One", true),
        ("baton/one", "baton/one/work", true),
        ("baton/one/work", "baton/ONE", true),
        ("baton/one", "baton/one-more", false),
        ("baton/one/work", "baton/one/other", false),
    ] {
        assert_eq!(trees::exclude_each_other(one, two), expected, "{one} {two}");
    }
}

#[test]
fn lesson_21_plan_and_claim_are_one_and_giving_up_ends_both() {
    let mut world = World::with(["ann", "bob"]);
    let plan = Plan { ports: 2, free_ports: vec![1, 3, 4, 5], ..wanted("x") };
    let planned = world.plan("ann", &plan).unwrap();
    assert_eq!(planned.tree.ports, [3, 4], "two in a row");
    assert_eq!(world.claims_of("ann")[0].hold.resources.len(), 3);
    let same = world.plan("bob", &wanted("X")).unwrap_err();
    assert_eq!(same.code(), "taken", "names that differ in case are one");
    let other = Plan { ports: 2, free_ports: vec![1, 3, 4, 5], ..wanted("y") };
    assert_eq!(world.plan("bob", &other).unwrap_err().code(), "no_ports", "3 and 4 are leased");
    let tree = planned.tree.tree;
    let kept = world.kept("bob", &tree, &landed(), Wish::Remove);
    assert!(matches!(kept[..], [Keep::BeingMade { .. }]), "{kept:?}");
    let nobody = world.context(None);
    world.decide(nobody, |view, context| trees::give_up(view, &tree, "why", context)).unwrap();
    assert!(world.claims().is_empty() && world.records::<Tree>().is_empty());
    world.plan("bob", &other).unwrap();
    // A maker that was thought dead and comes back does not make it after all.
    let context = world.context(Some("ann"));
    let late = Made {
        tree: Tree { tree, ..world.records::<Tree>()[0].clone() },
        token: planned.token,
        environment: String::new(),
        carried: Vec::new(),
        author: None,
        remarks: Vec::new(),
        notices: Vec::new(),
    };
    let late = world.decide(context, |view, context| trees::finish(view, late.clone(), context));
    assert_eq!(late.unwrap_err().code(), "given_up");
    world.audit();
}

#[test]
fn lesson_16_everything_worth_keeping_keeps_a_tree() {
    let mut world = World::with(["ann", "bob"]);
    let tree = world.made("ann", "x");
    let dirty = Seen { dirty: vec!["a".to_owned(), "b".to_owned()], ..landed() };
    let unmerged = Seen { unmerged: 2, landed: false, ..landed() };
    let elsewhere = Seen { landed: false, ..landed() };
    let busy = Seen { processes: vec![Working { pid: 7, name: "vim".to_owned() }], ..landed() };
    let rebasing = Seen { unfinished: Some("a rebase".to_owned()), ..landed() };
    let locked = Seen { locked: Some(String::new()), ..landed() };
    for (seen, code) in [
        (&dirty, "dirty"),
        (&unmerged, "unmerged"),
        (&busy, "in_use"),
        (&rebasing, "unfinished"),
        (&locked, "locked_tree"),
        (&Seen { main: true, ..landed() }, "main_tree"),
    ] {
        let may = |context: &_, force| {
            trees::may_go(&world.store, Some(&tree), "/x", seen, Wish::Remove, force, context)
        };
        let mut own = world_context(&world, "ann");
        assert_eq!(may(&own, false).unwrap_err().code(), code);
        assert_eq!(may(&own, true).unwrap_err().code(), "needs_person", "{code}");
        own.actor.person = true;
        assert_eq!(may(&own, true).is_ok(), code != "main_tree", "{code}");
    }
    assert!(world.kept("ann", &tree, &elsewhere, Wish::Remove).is_empty(), "safe elsewhere");
    let kept = world.kept("ann", &tree, &elsewhere, Wish::Collect);
    assert!(matches!(kept[..], [Keep::NotLanded { .. }, Keep::Claimed { .. }]), "{kept:?}");
    let kept = world.kept("bob", &tree, &landed(), Wish::Remove);
    assert!(matches!(kept[..], [Keep::Claimed { .. }]), "another's: {kept:?}");
    world.start("cat", tree.as_str());
    let kept = world.kept("ann", &tree, &landed(), Wish::Remove);
    assert!(matches!(&kept[..], [Keep::InUse { session, .. }] if session == "cat"), "{kept:?}");
    world.end("cat", None).unwrap();
    let removed = Removed {
        tree: Some(tree.clone()),
        path: "/r.trees/x".to_owned(),
        branch: None,
        branch_removed: true,
        rescued: Vec::new(),
        at: START,
    };
    let context = world.context(Some("ann"));
    world.decide(context, |view, context| trees::gone(view, removed.clone(), context)).unwrap();
    assert!(world.claims().is_empty() && world.records::<Tree>().is_empty());
    world.audit();
}

fn world_context(world: &World, who: &str) -> baton_core::context::Context {
    let mut copy = World::with([who]);
    let mut context = copy.context(Some(who));
    context.actor.session = Some(world.id(who));
    context.now = world.now;
    context
}

#[test]
fn numbers_are_given_once() {
    let mut world = World::with(["ann", "bob"]);
    assert_eq!(world.numbered("ann", Some((7, 3)), false).text, "008");
    assert_eq!(world.numbered("bob", Some((7, 3)), false).text, "009", "no file has 008 yet");
    assert_eq!(world.numbered("bob", None, false).text, "0010", "nobody looks, nobody forgets");
    assert_eq!(world.numbered("ann", Some((20, 4)), true).text, "0021");
    let claim = &world.claims_of("ann")[0];
    assert_eq!(claim.hold.resources[0].to_string(), "db/0021*");
    world.pass(Span::hours(1));
    assert_eq!(world.numbered("ann", None, false).number, 22);
    world.audit();
    for (name, found) in [
        ("0007_users.sql", Some((7, 4))),
        ("V12__x.sql", Some((12, 2))),
        ("20240102030405_x.rb", Some((20_240_102_030_405, 14))),
        ("README.md", None),
        ("99999999999999999999", None),
        ("v", None),
    ] {
        assert_eq!(numbers::in_name(name), found, "{name}");
    }
    for width in [0, 19] {
        let request = numbers::Request {
            folder: "db".to_owned(),
            width: Some(width),
            claim: false,
            seen: None,
        };
        let context = world.context(Some("ann"));
        let refused = world.decide(context, |view, context| numbers::next(view, &request, context));
        assert_eq!(refused.unwrap_err().code(), "out_of_range");
    }
}
