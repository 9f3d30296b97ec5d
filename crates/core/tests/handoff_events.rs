//! Samples of every event about handoffs and checkpoints, for the tests of stored events.

use baton_core::claim::Holder;
use baton_core::event::Event;
use baton_core::handoff::{
    Artifact, Decision, Declined, End, Handoff, Known, Made, Said, Setting, To, Work,
};
use baton_core::id::{HandoffId, Position, TaskId, TreeId};
use baton_core::task::dossier::{Checkpoint, LastCheck};
use serde_json::json;

use crate::world::{START, resources};

fn known() -> Known {
    let work = Work {
        commit: Some("abc".to_owned()),
        commits: vec![Made { commit: "abc".to_owned(), subject: "s".to_owned() }],
        changed: vec!["a".to_owned(), "b".to_owned()],
        uncommitted: vec!["b".to_owned()],
        more: true,
    };
    let last_check = LastCheck { name: "unit".to_owned(), passed: true, at: START };
    Known {
        tree: TreeId("t1".to_owned()),
        seen: true,
        work,
        last_check: Some(last_check),
        claims: resources(["src/"]),
        notes: Vec::new(),
    }
}

/// One of everything that can happen to handoffs.
pub(crate) fn samples(by: &Holder) -> Vec<Event> {
    let holder = || by.clone();
    let (id, task) = (HandoffId("t3-h1".to_owned()), TaskId::numbered(3));
    let (at, token) = (START, Position { epoch: 2, number: 9 });
    let why = "why \u{202e}".to_owned();
    let declined = Declined { by: holder(), at, why: why.clone() };
    let checkpoint =
        Checkpoint { at, by: holder(), attempt: 2, note: Some(why.clone()), known: known() };
    let said = Said {
        state: "s".to_owned(),
        changed: Some("c".to_owned()),
        remaining: "r".to_owned(),
        next: "n".to_owned(),
        decisions: vec![Decision { what: "w".to_owned(), why: why.clone() }],
        blockers: vec!["b".to_owned()],
        assumptions: vec!["a".to_owned()],
        constraints: vec!["c".to_owned()],
        result: Some(json!({ "status": "partial" })),
        artifacts: vec![Artifact::Path("a".to_owned()), Artifact::Commit("abc".to_owned())],
        set: vec![Setting { key: "a/b".parse().unwrap(), value: json!(null) }],
    };
    let mut events = vec![
        Event::TaskCheckpointed { task: task.clone(), checkpoint },
        Event::HandoffDeclined { handoff: id.clone(), declined: declined.clone() },
    ];
    for to in [To::Anyone, To::Role("r".to_owned()), To::Session(holder())] {
        let handoff = Handoff {
            handoff: id.clone(),
            task: task.clone(),
            number: 1,
            from: holder(),
            to,
            attempt: 2,
            token,
            offered_at: at,
            until: at,
            progress: true,
            said: said.clone(),
            known: known(),
            declined: vec![declined.clone()],
            end: None,
        };
        events.push(Event::HandoffOffered { handoff });
    }
    let ends = [
        End::Accepted { by: holder(), at, token },
        End::Declined { by: holder(), at, why },
        End::Withdrawn { at },
        End::Returned { at },
        End::Unanswered { at },
        End::Exhausted { at },
    ];
    events.extend(ends.map(|end| {
        let (handoff, task) = (id.clone(), task.clone());
        Event::HandoffEnded { handoff, task, end }
    }));
    events
}
