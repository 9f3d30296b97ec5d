//! One of every event of tasks, their parts and suggestions, to be written and read back.

use baton_core::event::{Event, Weight};
use baton_core::handoff::{Offer, To};
use baton_core::id::{
    ClaimId, HandoffId, NoticeId, Position, SessionId, SuggestionId, TaskId, TreeId,
};
use baton_core::notices::{News, Notice};
use baton_core::resource::Resource;
use baton_core::suggestions::{Answer, Suggestion};
use baton_core::task::dossier::Report;
use baton_core::task::split::{OnFailure, Outcome, Split, Stage};
use baton_core::task::{Join, Move, Owner, Renewal as Renewed, Standing, State, Task, Usd};
use baton_core::tasks::editing::Edit;
use baton_core::tasks::evidence::{CheckRun, Proof, Shown};
use baton_core::time::Span;

use crate::events::holder;
use crate::world::{START, resources};

const MOVES: &[Move] = &[
    Move::Taken,
    Move::TakenAnew,
    Move::Done,
    Move::Failed,
    Move::RateLimited,
    Move::Auth,
    Move::Killed,
    Move::RanOut,
    Move::SessionEnded,
    Move::SessionDied,
    Move::Parked,
    Move::Woken,
    Move::Blocked,
    Move::Unblocked,
    Move::Cancelled,
    Move::Reopened,
    Move::HandedOver,
    Move::NoProgress,
    Move::Unanswered,
    Move::Split,
    Move::Joined,
];

fn task() -> Task {
    let standing = Standing {
        owner: Some(Owner {
            session: SessionId("s1".to_owned()),
            name: "amber-otter".to_owned(),
            agent: Some("helper".to_owned()),
            attempt: 2,
            token: Position { epoch: 2, number: 9 },
            tree: TreeId("t1".to_owned()),
            taken_at: START,
            renewed_at: START,
            expires_at: START + Span::minutes(30),
            ttl: Span::minutes(30),
        }),
        attempt: 2,
        attempts_used: 1,
        not_before: Some(START),
        blocked_on: Some("the net".to_owned()),
        why: Some("why \"not\" \u{1f980}".to_owned()),
        next_action: Some("go on".to_owned()),
        held_up: 1,
        base: Some("abc".to_owned()),
        offer: Some(Offer {
            handoff: HandoffId("t3-h1".to_owned()),
            token: Position { epoch: 2, number: 9 },
            to: To::Role("review".to_owned()),
            until: START,
        }),
        ..Standing::new(State::Active, START)
    };
    Task {
        task: TaskId::numbered(3),
        title: "title".to_owned(),
        priority: 1,
        phase: Some(2),
        paths: resources(["src/", "docs/*.md"]),
        role: Some("review".to_owned()),
        labels: vec!["label".to_owned()],
        max_attempts: 3,
        budget_usd: Some(Usd(1_999)),
        key: Some("key".to_owned()),
        created_at: START,
        created_by: Some(holder()),
        standing,
        after: vec![TaskId::numbered(1)],
        pending: vec![TaskId::numbered(1)],
        unblocks: 4,
        parent: Some(TaskId::numbered(2)),
        split: Some(Box::new(split())),
        awaits: Some(TaskId::numbered(2)),
        interface: Some("api".to_owned()),
        submission: Some(crate::review_events::submission()),
        remembered: true,
    }
}

fn check_run() -> CheckRun {
    CheckRun {
        name: "test".to_owned(),
        argv: vec!["cargo".to_owned(), "test".to_owned()],
        exit: 1,
        snapshot: Some("def".to_owned()),
        at: START,
        took: Span::minutes(2),
        by: holder(),
        attempt: 2,
    }
}

fn suggested() -> Vec<Event> {
    let path = Resource::literal("src/a").unwrap();
    let id = SuggestionId("p1".to_owned());
    let (answered_by, answered_at) = (holder(), START);
    let answers = [
        Answer::Open,
        Answer::Applied { answered_by: answered_by.clone(), answered_at },
        Answer::Declined { answered_by, answered_at, because: "no".to_owned() },
        Answer::Filed { task: TaskId::numbered(9), answered_at },
    ];
    let suggestion = |answer: &Answer| Suggestion {
        suggestion: id.clone(),
        path: path.clone(),
        patch: "--- a/src/a\n".to_owned(),
        strip: 1,
        added: 2,
        removed: 3,
        why: "why".to_owned(),
        by: holder(),
        at: START,
        to: holder(),
        tree: TreeId("t1".to_owned()),
        claim: ClaimId("c1".to_owned()),
        answer: answer.clone(),
    };
    let news = [
        News::Suggested {
            suggestion: id.clone(),
            by: holder(),
            path: path.clone(),
            why: "why".to_owned(),
        },
        News::SuggestionAnswered {
            suggestion: id.clone(),
            path: path.clone(),
            by: holder(),
            applied: false,
            why: Some("no".to_owned()),
        },
        News::Joined {
            task: TaskId::numbered(3),
            title: "title".to_owned(),
            why: "why".to_owned(),
        },
    ];
    let mut events: Vec<Event> = Vec::new();
    for answer in &answers {
        events.push(Event::SuggestionMade { suggestion: suggestion(answer) });
        let (suggestion, claim) = (id.clone(), ClaimId("c1".to_owned()));
        events.push(Event::SuggestionAnswered { suggestion, claim, answer: answer.clone() });
    }
    let (from, to) = (ClaimId("c1".to_owned()), ClaimId("c2".to_owned()));
    events.push(Event::SuggestionMoved { suggestion: id.clone(), from, to });
    events.extend(news.map(|news| Event::NoticeSent {
        notice: Notice {
            notice: NoticeId("n3".to_owned()),
            to: SessionId("s1".to_owned()),
            agent: None,
            at: START,
            news,
        },
    }));
    events
}

fn split() -> Split {
    Split {
        parts: vec![TaskId::numbered(4), TaskId::numbered(5)],
        then: Some(TaskId::numbered(6)),
        join: Join::AtLeast(2),
        on_failure: OnFailure::Stop,
        sequence: true,
        by: Some(holder()),
        at: START,
        ended: [(TaskId::numbered(4), State::Failed)].into(),
        stage: Stage::Then,
        outcome: Some(Outcome::Missed),
    }
}

pub(crate) fn all() -> Vec<Event> {
    let id = TaskId::numbered(3);
    let edit = Edit {
        title: Some("other".to_owned()),
        body: Some("body".to_owned()),
        priority: Some(0),
        phase: Some(0),
        paths: Some(resources(["a"])),
        role: Some(String::new()),
        labels: Some(Vec::new()),
        max_attempts: Some(5),
        budget_usd: Some(Usd(1)),
        next_action: Some("next".to_owned()),
    };
    let report = Report {
        done: "all".to_owned(),
        not_done: "nothing".to_owned(),
        result: Some(serde_json::json!({ "status": "ok", "n": [1, 2.5, null] })),
    };
    let expires_at = START + Span::minutes(40);
    let token = Position { epoch: 2, number: 9 };
    let mut events = vec![
        Event::TaskAdded { task: Box::new(task()), body: Some("long".to_owned()) },
        Event::TaskEdited { task: id.clone(), edit },
        Event::TaskReported { task: id.clone(), report },
        Event::TaskTied { task: id.clone(), after: vec![id.clone()], pending: vec![id.clone()] },
        Event::TaskFreed { task: id.clone(), of: TaskId::numbered(1) },
        Event::TasksWeighed { weights: vec![Weight { task: id.clone(), unblocks: 7 }] },
        Event::TasksRenewed {
            tasks: vec![Renewed { task: id.clone(), token, expires_at }],
            at: START,
        },
        Event::TasksForgotten { tasks: vec![id.clone()] },
        Event::TaskChecked { task: id.clone(), run: check_run() },
        Event::TaskProven {
            task: id.clone(),
            shown: Shown {
                at: START,
                commit: Some("abc".to_owned()),
                snapshot: Some("def".to_owned()),
                required: Proof::ALL.to_vec(),
            },
        },
        Event::TaskSplit { task: id.clone(), split: split() },
        Event::TaskPartMoved {
            task: id.clone(),
            part: TaskId::numbered(4),
            ended: Some(State::Done),
        },
        Event::TaskPartMoved { task: id.clone(), part: TaskId::numbered(4), ended: None },
        Event::TaskJoined {
            task: id.clone(),
            outcome: Outcome::GivenUp,
            stage: Stage::Over,
            then: Some(TaskId::numbered(6)),
        },
    ];
    let standing = task().standing;
    events.extend(MOVES.iter().map(|how| Event::TaskMoved {
        task: id.clone(),
        how: *how,
        standing: standing.clone(),
    }));
    events.extend(suggested());
    events
}
