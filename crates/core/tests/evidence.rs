//! What `done` must show, and what counts as shown.

use baton_core::claim::Holder;
use baton_core::event::Event;
use baton_core::id::{SessionId, TaskId, TreeId};
use baton_core::task::dossier::Dossier;
use baton_core::task::{Submission, Task, Verdict};
use baton_core::tasks::ending::{self, Done};
use baton_core::tasks::evidence::{
    self, Checked, CommitFacts, Facts, Missing, NamedCheck, Proof, Rules, Unchecked, approved,
    missing,
};
use baton_core::tasks::refused::Refused;
use baton_core::time::{Moment, Span};
use baton_core::zones::Policy;

use crate::backlog::refused;
use crate::world::World;

fn rules(require: &[Proof]) -> Rules {
    Rules { require: require.to_vec(), ..Rules::default() }
}

fn committed() -> Facts {
    let commit = CommitFacts { commit: "abcdef0123".to_owned(), ..CommitFacts::default() };
    Facts { commit: Some(commit), snapshot: Some("tree".to_owned()), ..Facts::default() }
}

fn world() -> World {
    let mut world = World::with(["ann", "bob"]);
    world.add("work");
    world.takes("ann").unwrap();
    world
}

fn lacks(world: &World, rules: &Rules, facts: &Facts) -> Vec<Missing> {
    let dossier = world.records::<Dossier>().pop();
    let dossier = dossier.unwrap_or_else(|| Dossier::of(TaskId::numbered(1)));
    missing(rules, &world.task("t1"), &dossier, facts)
}

fn check(world: &mut World, name: &str, exit: u8, snapshot: Option<&str>) {
    let request = Checked {
        task: "t1".to_owned(),
        name: name.to_owned(),
        argv: vec!["make".to_owned(), name.to_owned()],
        exit,
        snapshot: snapshot.map(str::to_owned),
        took: Span::seconds(1),
        token: None,
    };
    let context = world.context(Some("ann"));
    world.decide(context, |view, context| evidence::checked(view, &request, context)).unwrap();
}

#[test]
fn a_commit_must_hold_the_work() {
    let (world, rules) = (world(), rules(&[Proof::Commit]));
    assert_eq!(lacks(&world, &rules, &committed()), []);
    assert_eq!(lacks(&world, &rules, &Facts::default()), [Missing::Commit { named: None }]);
    let with = |edit: &dyn Fn(&mut CommitFacts)| {
        let mut facts = committed();
        edit(facts.commit.as_mut().unwrap());
        lacks(&world, &rules, &facts)
    };
    let paths = vec!["src/a".to_owned()];
    let dirty = with(&|facts| facts.dirty = vec!["src/a".to_owned()]);
    assert_eq!(dirty, [Missing::Uncommitted { paths }]);
    assert!(matches!(with(&|facts| facts.touches = Some(false))[..], [Missing::Elsewhere { .. }]));
    let later = with(&|facts| facts.later = vec!["src/a".to_owned()]);
    assert!(matches!(later[..], [Missing::Superseded { .. }]));
}

#[test]
fn a_check_counts_only_for_the_tree_it_passed_on() {
    let mut world = world();
    let rules = rules(&[Proof::Check]);
    let why = |world: &World| match &lacks(world, &rules, &committed())[..] {
        [] => None,
        [Missing::Check { why, .. }] => Some(*why),
        other => panic!("{other:?}"),
    };
    assert_eq!(why(&world), Some(Unchecked::NeverRun));
    check(&mut world, "test", 3, Some("tree"));
    assert_eq!(why(&world), Some(Unchecked::Failed { exit: 3 }));
    check(&mut world, "test", 0, Some("other"));
    assert_eq!(why(&world), Some(Unchecked::ChangedSince));
    check(&mut world, "test", 0, None);
    assert_eq!(why(&world), Some(Unchecked::ChangedMeanwhile));
    check(&mut world, "test", 0, Some("tree"));
    assert_eq!(why(&world), None);
    world.audit();
}

#[test]
fn every_check_that_the_policy_names_must_pass_as_it_says() {
    let mut world = world();
    let named = |name: &str| NamedCheck {
        name: name.to_owned(),
        run: vec!["make".to_owned(), name.to_owned()],
        timeout: Span::minutes(1),
    };
    let mut rules = rules(&[Proof::Check]);
    rules.named = vec![named("test"), named("lint")];
    check(&mut world, "test", 0, Some("tree"));
    let names = |world: &World, rules: &Rules| -> Vec<String> {
        let lacks = lacks(world, rules, &committed());
        lacks
            .iter()
            .map(|missing| match missing {
                Missing::Check { name, .. } => name.clone(),
                other => panic!("{other:?}"),
            })
            .collect()
    };
    assert_eq!(names(&world, &rules), ["lint"]);
    rules.checks = vec!["test".to_owned()];
    assert!(names(&world, &rules).is_empty());
    rules.named[0].run = vec!["make".to_owned(), "everything".to_owned()];
    assert_eq!(names(&world, &rules), ["test"], "it was run otherwise than the policy says now");
}

#[test]
fn an_approval_counts_only_for_its_commit() {
    let world = world();
    let by = Holder { session: SessionId("s".into()), name: "bob".into(), agent: None };
    let verdict =
        |approves| Verdict { by: by.clone(), person: false, at: Moment(1), approves, text: None };
    let mut task: Task = world.task("t1");
    assert!(!approved(&task, "abcdef0123"));
    task.submission = Some(Submission {
        commit: "abcdef0123".to_owned(),
        by: by.clone(),
        at: Moment(1),
        attempt: 1,
        tree: TreeId("t".into()),
        to: None,
        frozen: Vec::new(),
        reported: false,
        reviewers: Vec::new(),
        verdicts: vec![verdict(true)],
    });
    assert!(approved(&task, "abcdef0123") && !approved(&task, "0123abcdef"));
    task.submission.as_mut().unwrap().verdicts.push(verdict(false));
    assert!(!approved(&task, "abcdef0123"));
}

#[test]
fn one_refusal_names_all_that_is_missing() {
    let mut world = world();
    let evidence = rules(&Proof::ALL);
    let policy = Policy { evidence, ..Policy::default() };
    let context = world.context(None);
    let set = vec![Event::PolicySet { policy }];
    world.decide(context, |_, _| Ok((set.clone(), ()))).unwrap();
    let done = |world: &mut World, facts: Facts| {
        let request = Done {
            task: "t1".to_owned(),
            report_done: "all".to_owned(),
            report_not_done: "nothing".to_owned(),
            result: None,
            facts,
            token: None,
        };
        let context = world.context(Some("ann"));
        world.decide(context, |view, context| ending::done(view, &request, context))
    };
    let Refused::Unproven { missing, .. } = refused(done(&mut world, Facts::default())) else {
        panic!("it should lack evidence")
    };
    assert_eq!(missing.len(), 4, "{missing:?}");
    assert_eq!(world.state("t1"), "active");
    let none = vec![Event::PolicySet { policy: Policy::default() }];
    let context = world.context(None);
    world.decide(context, |_, _| Ok((none.clone(), ()))).unwrap();
    done(&mut world, committed()).unwrap();
    let shown = world.records::<Dossier>().pop().unwrap().proven.unwrap();
    assert_eq!(shown.commit.as_deref(), Some("abcdef0123"));
    world.audit();
}

#[test]
fn only_the_owner_checks() {
    let mut world = world();
    let begin = |world: &mut World, who: &str| {
        let context = world.context(Some(who));
        world.decide(context, |view, context| evidence::begin(view, "t1", None, context))
    };
    begin(&mut world, "ann").unwrap();
    assert!(matches!(refused(begin(&mut world, "bob")), Refused::Owned { .. }));
}
