//! Conflicts that were foreseen: told once, told again only after they were gone.

use baton_core::conflicts::{Predicted, Seen, Told, tell};
use baton_core::context::Context;
use baton_core::event::Event;
use baton_core::id::SessionId;
use baton_core::notices::News;
use baton_core::view::View;

use crate::world::World;

fn seen(a: &str, b: &str, findings: &[&str]) -> Seen {
    Seen {
        a: a.to_owned(),
        b: b.to_owned(),
        files: vec!["src/a.rs".to_owned()],
        findings: findings.iter().map(|one| ((*one).to_owned(), format!("{one}!"))).collect(),
        duplicates: findings
            .iter()
            .filter(|one| one.starts_with("twice"))
            .map(|one| ((*one).to_owned(), "sum".to_owned(), vec!["x".to_owned()]))
            .collect(),
        sessions: vec![SessionId("s1".to_owned()), SessionId("s2".to_owned())],
    }
}

fn kinds(events: &[Event]) -> Vec<&'static str> {
    events.iter().map(Event::kind).collect()
}

#[test]
fn a_finding_is_told_once_and_again_after_it_was_gone() {
    let mut world = World::new();
    let mut tells = |pairs: &[Seen]| -> (Vec<Event>, Told) {
        let context = world.context(None);
        let rule = |view: &dyn View, context: &Context| {
            let (events, told) = tell(view, "clone", pairs, context)?;
            Ok((events.clone(), (events, told)))
        };
        let answer = world.decide(context, rule).unwrap();
        world.audit();
        answer
    };
    let (events, told) = tells(&[seen("x", "y", &["one", "twice"]), seen("x", "main", &[])]);
    let expected = ["conflict_predicted", "duplicate_found", "notice_sent", "notice_sent"];
    assert_eq!(kinds(&events), expected);
    assert_eq!(told.fresh.len(), 2);
    assert!(events.iter().any(|event| matches!(event, Event::NoticeSent { notice }
        if matches!(&notice.news, News::Conflict { findings: 2, .. }))));
    assert_eq!(kinds(&tells(&[seen("x", "y", &["one", "twice"])]).0), [""; 0], "the same");
    let (events, told) = tells(&[seen("x", "y", &["one", "twice", "new"])]);
    assert_eq!(kinds(&events), ["conflict_predicted", "notice_sent", "notice_sent"]);
    assert_eq!(told.fresh.into_iter().collect::<Vec<_>>(), ["new"]);
    // One of them is over: that is written down, and nobody is told.
    assert_eq!(kinds(&tells(&[seen("x", "y", &["one"])]).0), ["conflict_predicted"]);
    assert_eq!(kinds(&tells(&[seen("x", "y", &["one", "twice"])]).0).len(), 4, "again");
    assert_eq!(kinds(&tells(&[seen("x", "y", &[])]).0), ["conflict_gone"]);
    assert_eq!(kinds(&tells(&[]).0), [""; 0]);
    assert_eq!(kinds(&tells(&[seen("x", "y", &["one"])]).0).len(), 3);
    // A tree that is no more has nothing between it and another.
    assert_eq!(kinds(&tells(&[]).0), ["conflict_gone"]);
    assert_eq!(world.records::<Predicted>(), []);
}
