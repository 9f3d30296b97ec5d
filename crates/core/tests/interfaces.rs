//! Interfaces: who may change what others build on, and who is told of a change.

use baton_core::check::{self, Because, Verdict};
use baton_core::claim::Holder;
use baton_core::event::Event;
use baton_core::id::{SessionId, TreeId};
use baton_core::interfaces::refused::{Refused, What};
use baton_core::interfaces::{
    self, Add, Change, Changed, FileChange, Given, Interface, Known, Resigned, Seen, SeenFile, Told,
};
use baton_core::notices::News;
use baton_core::refusal::{Held, Refusal};
use baton_core::sessions::GRACE;
use baton_core::suggestions;
use baton_core::task::Task;
use baton_core::time::Span;
use baton_core::zones::Rule;

use crate::world::{START, World, resource};

fn known(path: &str, mark: &str) -> Known {
    let tree = TreeId("main".to_owned());
    Known { path: resource(path), tree, mark: mark.to_owned() }
}

impl World {
    fn marks(&mut self, who: &str, name: &str, files: &[&str]) -> Result<Told, Refusal> {
        let files = files.iter().map(|file| known(file, "v1")).collect();
        let request = Add { name: name.to_owned(), files };
        let context = self.context(Some(who));
        self.decide(context, |view, context| interfaces::add(view, &request, context))
    }

    fn uses(&mut self, who: &str, name: &str) -> Result<Told, Refusal> {
        let context = self.context(Some(who));
        self.decide(context, |view, context| interfaces::use_it(view, name, context))
    }

    fn gives(&mut self, who: &str, name: &str, to: &str) -> Result<Told, Refusal> {
        let (context, to) = (self.context(Some(who)), self.id(to));
        self.decide(context, |view, context| interfaces::give(view, name, &to, context))
    }

    fn removes(&mut self, who: &str, name: &str) -> Result<Told, Refusal> {
        let context = self.context(Some(who));
        self.decide(context, |view, context| interfaces::remove(view, name, context))
    }

    /// The functions that are new and gone in `api`, from one text to the next.
    fn changes(
        &mut self,
        who: &str,
        texts: (&str, &str),
        added: &[&str],
        removed: &[&str],
    ) -> usize {
        let listed = |list: &[&str]| list.iter().map(|one| (*one).to_owned()).collect();
        let change = FileChange {
            added: listed(added),
            removed: listed(removed),
            ..FileChange::nothing(resource("src/api.rs"))
        };
        let now = known("src/api.rs", texts.1);
        let file = SeenFile { change, known: Some(texts.0.to_owned()), now };
        let readers = vec![self.id("cat"), self.id(who)];
        let seen = [Seen { name: "api".parse().unwrap(), files: vec![file], readers, by: None }];
        let context = self.context(Some(who));
        self.decide(context, |view, context| interfaces::changed(view, &seen, context)).unwrap()
    }

    /// What this session is told of `api` now.
    fn hears(&mut self, who: &str) -> Vec<FileChange> {
        let notices = self.acts(who).notices;
        let files = notices.into_iter().filter_map(|notice| match notice.news {
            News::InterfaceChanged { files, .. } => Some(files),
            _ => None,
        });
        files.flatten().collect()
    }

    fn interface(&self) -> Interface {
        self.records::<Interface>().pop().unwrap()
    }

    fn verdict(&mut self, who: &str, path: &str) -> (Verdict, Because, Vec<Held>) {
        let context = self.context(Some(who));
        let paths = [resource(path)];
        let checked = check::check(&self.store, &paths, None, &context).unwrap();
        let finding = checked.findings.into_iter().next().unwrap();
        (finding.verdict, finding.because, finding.held)
    }
}

fn no<T: std::fmt::Debug>(answer: Result<T, Refusal>) -> Refused {
    match answer {
        Err(Refusal::Interface(refused)) => *refused,
        other => panic!("should be refused, but {other:?}"),
    }
}

fn world() -> World {
    let mut world = World::with(["ann", "bob", "cat"]);
    world.marks("ann", "api", &["src/api.rs", "src/types.rs"]).unwrap();
    world
}

#[test]
fn only_its_owner_changes_what_others_build_on() {
    let mut world = world();
    for asked in ["src/api.rs", "src/", "src/*.rs"] {
        let held = world.claim("bob", [asked]).held();
        assert_eq!(held.interface.unwrap().as_str(), "api", "{asked}");
        assert_eq!((held.holder.name.as_str(), held.until), ("ann", None));
    }
    let (verdict, because, held) = world.verdict("bob", "src/types.rs");
    assert_eq!((verdict, because), (Verdict::Deny, Because::Held));
    assert!(held[0].interface.is_some());
    world.claim("bob", ["src/other.rs"]).granted();
    world.claim("bob", ["src/api.rs"]).shared().granted();
    world.release("bob", ["src/api.rs"]).unwrap();
    assert_eq!(world.verdict("ann", "src/api.rs").0, Verdict::Allow);
    world.claim("ann", ["src/api.rs"]).granted();
    // A claim of its owner is what stands in the way then, with the time it ends.
    assert!(world.claim("bob", ["src/api.rs"]).held().interface.is_none());
    world.release("ann", ["src/api.rs"]).unwrap();
    // In an append zone too: an edit is an edit.
    world.policy(&[("src/api.rs", Rule::Append)], &[]);
    assert_eq!(world.verdict("bob", "src/api.rs").0, Verdict::Deny);
    world.audit();
}

#[test]
fn a_person_is_warned_and_may_remove_it() {
    let mut world = world();
    let mut context = world.context(Some("bob"));
    context.actor.person = true;
    let checked = check::check(&world.store, &[resource("src/api.rs")], None, &context).unwrap();
    assert_eq!(checked.verdict, Verdict::Warn);
    assert!(matches!(no(world.removes("bob", "api")), Refused::NotYours { .. }));
    let context = world.person();
    world.decide(context, |view, context| interfaces::remove(view, "api", context)).unwrap();
    world.claim("bob", ["src/api.rs"]).granted();
    assert!(matches!(no(world.removes("ann", "api")), Refused::Unknown { .. }));
    world.audit();
}

#[test]
fn who_claims_first_after_its_owner_has_ended_keeps_it() {
    let mut world = world();
    world.end("ann", Some(GRACE)).unwrap();
    world.claim("bob", ["src/api.rs"]).refused();
    world.pass(GRACE);
    // To share it is not to keep it.
    world.claim("cat", ["src/api.rs"]).shared().granted();
    assert_eq!(world.interface().owner.name, "ann");
    world.release("cat", ["src/api.rs"]).unwrap();
    let granted = world.claim("bob", ["src/api.rs"]).granted();
    assert_eq!(granted.interfaces[0].as_str(), "api");
    assert_eq!(
        (world.interface().owner.name.as_str(), world.interface().since),
        ("bob", world.now)
    );
    assert!(world.claim("bob", ["src/types.rs"]).granted().interfaces.is_empty());
    world.release("bob", ["src/api.rs", "src/types.rs"]).unwrap();
    assert_eq!(world.claim("cat", ["src/types.rs"]).held().holder.name, "bob");
    world.audit();
}

#[test]
fn an_owner_that_is_silent_for_a_day_is_gone() {
    let mut world = world();
    world.pass(Span::hours(24));
    world.claim("bob", ["src/api.rs"]).refused();
    world.pass(Span::hours(1));
    world.claim("bob", ["src/api.rs"]).granted();
    assert_eq!(world.interface().owner.name, "bob");
}

#[test]
fn it_is_handed_on_by_its_owner_to_one_who_is_there() {
    let mut world = world();
    assert!(matches!(no(world.gives("bob", "api", "bob")), Refused::NotYours { .. }));
    world.claim("ann", ["src/api.rs"]).granted();
    let told = world.gives("ann", "api", "bob").unwrap();
    assert_eq!((told.interface.owner.name.as_str(), told.already), ("bob", false));
    let notices = world.acts("bob").notices;
    assert!(matches!(&notices[0].news, News::InterfaceGiven { by, .. } if by.name == "ann"));
    // The claim that ann still has does not make it hers.
    assert_eq!(world.verdict("ann", "src/api.rs").0, Verdict::Deny);
    assert!(world.gives("bob", "api", "bob").unwrap().already);
    world.end("cat", None).unwrap();
    assert!(matches!(world.gives("bob", "api", "cat"), Err(Refusal::SessionEnded { .. })));
    // Bob is gone: who asks for what it still holds keeps it again.
    world.end("bob", None).unwrap();
    let granted = world.claim("ann", ["src/api.rs"]).granted();
    assert!(granted.already_held && granted.interfaces.len() == 1, "{granted:?}");
    world.start("eve", "main");
    world.gives("ann", "api", "eve").unwrap();
    let context = world.person();
    let ann = world.id("ann");
    world.decide(context, |view, context| interfaces::give(view, "api", &ann, context)).unwrap();
    assert_eq!(world.interface().owner.name, "ann");
    world.audit();
}

#[test]
fn the_owner_is_asked_and_told_what_is_suggested_also_without_a_claim() {
    let mut world = world();
    world.ask("bob", "src/api.rs").unwrap();
    assert!(matches!(world.acts("ann").notices[0].news, News::Asked { .. }));
    let path = resource("src/api.rs");
    let patch = "--- a/src/api.rs\n+++ b/src/api.rs\n@@ -1 +1 @@\n-x\n+y\n".to_owned();
    let request = suggestions::Request { path, patch, why: "it is better".to_owned() };
    let mut suggest = |who: &str| {
        let context = world.context(Some(who));
        world.decide(context, |view, context| suggestions::suggest(view, &request, context))
    };
    let told = suggest("bob").unwrap();
    assert!(matches!(told.answer, suggestions::Answer::Filed { .. }), "{told:?}");
    assert!(matches!(suggest("ann"), Err(Refusal::Suggestion(_))));
    assert_eq!(world.records::<Task>().len(), 1, "it is not lost with its owner");
    assert!(matches!(world.acts("ann").notices[0].news, News::Suggested { .. }));
    world.claim("ann", ["src/api.rs"]).granted();
    let (id, context) = (told.suggestion.0, world.context(Some("ann")));
    let apply = suggestions::Verdict::Apply;
    world.decide(context, |view, context| suggestions::answer(view, &id, &apply, context)).unwrap();
    world.audit();
}

#[test]
fn users_and_readers_are_told_once_and_whoever_changed_it_is_not() {
    let mut world = world();
    world.uses("bob", "api").unwrap();
    assert!(world.uses("bob", "api").unwrap().already);
    world.uses("ann", "api").unwrap();
    assert_eq!(world.changes("ann", ("v1", "v2"), &["a(x)"], &["b()"]), 2);
    // Somebody else saw the same.
    assert_eq!(world.changes("ann", ("v1", "v2"), &["a(x)"], &["b()"]), 0);
    for who in ["bob", "cat"] {
        let heard = world.hears(who);
        assert_eq!((heard[0].added[0].as_str(), heard[0].removed[0].as_str()), ("a(x)", "b()"));
        assert!(world.hears(who).is_empty(), "once");
    }
    assert!(world.hears("ann").is_empty());
    assert_eq!(world.interface().known(&resource("src/api.rs")).unwrap().mark, "v2");
    world.audit();
}

#[test]
fn what_was_not_told_yet_is_told_together() {
    let mut world = world();
    world.uses("bob", "api").unwrap();
    world.changes("ann", ("v1", "v2"), &["a()", "b()"], &["c()"]);
    assert_eq!(world.hears("cat").len(), 1);
    world.changes("ann", ("v2", "v3"), &["d()"], &["a()"]);
    let heard = world.hears("bob");
    assert_eq!(heard.len(), 1, "one notice: {heard:?}");
    assert_eq!(
        (&heard[0].added[..], &heard[0].removed[..]),
        (&["b()".into(), "d()".into()][..], &["c()".into()][..])
    );
    let heard = world.hears("cat");
    assert_eq!((heard[0].added[0].as_str(), heard[0].removed[0].as_str()), ("d()", "a()"));
    // Back to what it was before anybody heard of it: there is nothing to tell.
    world.changes("ann", ("v3", "v4"), &["e()"], &[]);
    world.changes("ann", ("v4", "v3"), &[], &["e()"]);
    assert!(world.hears("bob").is_empty());
    world.audit();
}

#[test]
fn users_that_ended_are_forgotten_and_only_the_last_changes_are_kept() {
    let mut world = world();
    world.uses("bob", "api").unwrap();
    world.uses("cat", "api").unwrap();
    world.end("bob", None).unwrap();
    for at in 1..=7 {
        let texts = (format!("v{at}"), format!("v{}", at + 1));
        world.changes("ann", (&texts.0, &texts.1), &[&format!("f{at}()")], &[]);
    }
    let interface = world.interface();
    assert_eq!(interface.users.len(), 1, "{interface:?}");
    assert_eq!(interface.changes.len(), 5);
    assert_eq!(interface.changes[4].files[0].added, ["f7()"]);
    world.audit();
}

#[test]
fn names_and_files_belong_to_one_and_bad_ones_are_refused() {
    let mut world = world();
    assert!(world.marks("ann", "api", &["src/types.rs", "src/api.rs"]).unwrap().already);
    assert!(matches!(no(world.marks("ann", "api", &["b.rs"])), Refused::Taken { .. }));
    assert!(matches!(
        no(world.marks("bob", "api", &["src/api.rs", "src/types.rs"])),
        Refused::Taken { .. }
    ));
    assert!(matches!(no(world.marks("bob", "api2", &["src/api.rs"])), Refused::FileTaken { .. }));
    for name in ["", "a b", "a\u{1b}", "../x", "a//b", &"x".repeat(201)] {
        assert!(
            matches!(no(world.marks("ann", name, &["b.rs"])), Refused::BadName { .. }),
            "{name}"
        );
    }
    for file in ["src/", "src/*.rs", "@gpu"] {
        assert!(matches!(no(world.marks("ann", "x", &[file])), Refused::NotAFile { .. }), "{file}");
    }
    assert!(matches!(world.marks("ann", "x", &[]), Err(Refusal::Empty)));
    let many: Vec<String> = (0..=interfaces::FILES_MAX).map(|at| format!("f{at}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let refused = no(world.marks("ann", "x", &many));
    assert!(matches!(refused, Refused::TooMany { what: What::Files, .. }));
    let Refused::Unknown { near, .. } = no(world.uses("bob", "apo")) else { panic!() };
    assert_eq!(near[0].as_str(), "api");
    // What another is changing cannot be marked over its head; what is shared can.
    world.claim("bob", ["lib/"]).in_tree().granted();
    assert!(matches!(world.marks("ann", "lib", &["lib/a.rs"]), Err(Refusal::Held(_))));
    world.release("bob", ["lib/"]).unwrap();
    world.claim("bob", ["lib/"]).shared().granted();
    world.marks("ann", "lib", &["lib/a.rs"]).unwrap();
    world.audit();
}

/// One event of each kind.
pub(crate) fn samples(by: &Holder) -> Vec<Event> {
    let name: baton_core::key::Key = "api".parse().unwrap();
    let file = FileChange {
        added: vec!["a()".to_owned()],
        removed: vec!["b()".to_owned()],
        resigned: vec![Resigned { before: "c()".to_owned(), after: "c(x)".to_owned() }],
        lines: Some(3),
        deleted: true,
        more: 2,
        path: resource("src/api.rs"),
    };
    let change = Change { by: by.clone(), at: START, files: vec![file.clone()] };
    let interface = Interface {
        name: name.clone(),
        files: vec![resource("src/api.rs")],
        owner: by.clone(),
        since: START,
        added_at: START,
        users: vec![by.clone()],
        known: vec![known("src/api.rs", "v1")],
        changes: vec![change.clone()],
    };
    let given = Given {
        name: name.clone(),
        from: by.clone(),
        to: by.clone(),
        at: START,
        by: Some(by.clone()),
    };
    let changed = Changed {
        name: name.clone(),
        change,
        known: vec![known("src/api.rs", "v2")],
        gone: vec![SessionId("s9".to_owned())],
    };
    let news = [
        News::InterfaceChanged { interface: name.clone(), by: by.clone(), files: vec![file] },
        News::InterfaceGiven { interface: name.clone(), by: by.clone() },
    ];
    let notices = news.map(|news| Event::NoticeSent {
        notice: baton_core::notices::Notice {
            notice: baton_core::id::NoticeId("n1".to_owned()),
            to: SessionId("s1".to_owned()),
            agent: None,
            at: START,
            news,
        },
    });
    let mut events = vec![
        Event::InterfaceAdded { interface },
        Event::InterfaceUsed { name: name.clone(), user: by.clone() },
        Event::InterfaceChanged { changed },
        Event::InterfaceGiven { given },
        Event::InterfaceRemoved { name, by: by.clone() },
    ];
    events.extend(notices);
    events
}
