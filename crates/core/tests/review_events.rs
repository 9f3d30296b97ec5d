//! One of every event of reviews, gates and votes, to be written and read back.

use baton_core::claim::Holder;
use baton_core::event::{EndOfReview, Event};
use baton_core::gate::{Check, Checked, Decision, Gate, Kind, Origin, Outcome, Reason};
use baton_core::id::{GateId, NoticeId, Position, SessionId, TaskId, TreeId};
use baton_core::notices::{News, Notice};
use baton_core::task::dossier::Feedback;
use baton_core::task::{Move, Owner, State, Submission, Verdict};
use baton_core::time::Span;
use baton_core::votes::Vote;

use crate::world::{START, resources};

fn holder() -> Holder {
    Holder { session: SessionId("s1".to_owned()), name: "amber-otter".to_owned(), agent: None }
}

fn reviewer() -> Owner {
    Owner {
        session: SessionId("s2".to_owned()),
        name: "bold-fox".to_owned(),
        agent: Some("helper".to_owned()),
        attempt: 2,
        token: Position { epoch: 2, number: 9 },
        tree: TreeId("t1".to_owned()),
        taken_at: START,
        renewed_at: START,
        expires_at: START + Span::minutes(30),
        ttl: Span::minutes(30),
    }
}

fn verdict(approves: bool) -> Verdict {
    let text = Some("no \u{202e}".to_owned());
    Verdict { by: holder(), person: true, at: START, approves, text }
}

pub(crate) fn submission() -> Submission {
    Submission {
        commit: "a".repeat(40),
        by: holder(),
        at: START,
        attempt: 2,
        tree: TreeId("t1".to_owned()),
        to: Some("role:review".to_owned()),
        frozen: resources(["src/"]),
        reported: true,
        reviewers: vec![reviewer()],
        verdicts: vec![verdict(true), verdict(false)],
    }
}

fn decision(outcome: Outcome) -> Decision {
    Decision {
        outcome,
        by: Some(holder()),
        at: START,
        why: Some("because".to_owned()),
        option: Some("approve".to_owned()),
        commit: Some("a".repeat(40)),
    }
}

pub(crate) fn gate(number: u64, kind: Kind, check: Option<Check>) -> Gate {
    Gate {
        gate: GateId::numbered(number),
        on: "t3".to_owned(),
        task: Some(TaskId::numbered(3)),
        kind,
        ask: "may I?".to_owned(),
        options: vec!["approve".to_owned(), "reject".to_owned()],
        commit: Some("a".repeat(40)),
        check,
        origin: Origin::Disagreement,
        reasons: vec![Reason { by: holder(), says: "reject".to_owned(), why: None }],
        opened_at: START,
        opened_by: Some(holder()),
        trusted: true,
        checked: None,
        told_at: Some(START),
        decision: None,
    }
}

pub(crate) fn all() -> Vec<Event> {
    let task = TaskId::numbered(3);
    let (session, sessions) = (SessionId("s1".to_owned()), vec![SessionId("s2".to_owned())]);
    let id = GateId::numbered(1);
    let feedback = Feedback {
        by: holder(),
        at: START,
        attempt: 2,
        commit: Some("a".repeat(40)),
        text: "tests are missing".to_owned(),
    };
    let command = Check::Command { argv: vec!["make".to_owned(), "test".to_owned()] };
    let vote =
        Vote { by: holder(), value: "tabs".to_owned(), why: "shorter".to_owned(), at: START };
    let subject = "style".to_owned();
    let checked = Checked { at: START, passed: false, saw: "exit 1".to_owned() };
    let settled = decision(Outcome::Approved);
    let mut events = vec![
        Event::TaskSubmitted { task: task.clone(), submission: submission() },
        Event::SubmissionEnded { task: task.clone(), session: session.clone(), gone: true },
        Event::SubmissionEnded { task: task.clone(), session, gone: false },
        Event::ReviewTaken { task: task.clone(), reviewer: reviewer() },
        Event::TaskJudged { task: task.clone(), verdict: verdict(false) },
        Event::TaskFeedback { task: task.clone(), feedback },
        Event::GateOpened { gate: gate(1, Kind::Command, Some(command)) },
        Event::GateOpened { gate: gate(2, Kind::Time, Some(Check::Time { at: START })) },
        Event::GateOpened {
            gate: gate(3, Kind::File, Some(Check::File { path: "ready".to_owned() })),
        },
        Event::GateChecked { gate: id.clone(), checked },
        Event::GateTrusted { gate: id.clone(), by: holder() },
        Event::GateTold { gate: id.clone(), at: START, well: false },
        Event::VoteCast { subject: subject.clone(), vote },
        Event::VotesContested { subject: subject.clone(), gate: id.clone() },
        Event::VotesSettled { subject, gate: id.clone(), decision: settled },
    ];
    let ends = [EndOfReview::Said, EndOfReview::RanOut, EndOfReview::Gone, EndOfReview::Withdrawn];
    events.extend(ends.map(|why| Event::ReviewsEnded {
        task: task.clone(),
        sessions: sessions.clone(),
        why,
    }));
    let outcomes = [Outcome::Approved, Outcome::Denied, Outcome::Passed, Outcome::Moot];
    events.extend(
        outcomes
            .map(|outcome| Event::GateDecided { gate: id.clone(), decision: decision(outcome) }),
    );
    events.extend(news(&task).map(|news| Event::NoticeSent {
        notice: Notice {
            notice: NoticeId("n1".to_owned()),
            to: SessionId("s1".to_owned()),
            agent: None,
            at: START,
            news,
        },
    }));
    events
}

fn news(task: &TaskId) -> [News; 2] {
    let (task, title, why) = (task.clone(), "fix it".to_owned(), "no".to_owned());
    [
        News::ReviewOver { task: task.clone(), title: title.clone(), why: why.clone() },
        News::TaskMoved {
            task,
            title,
            how: Move::Rejected,
            by: Some(holder()),
            why,
            state: State::Active,
            attempt: 2,
            max_attempts: 3,
            token: Some(Position { epoch: 1, number: 2 }),
        },
    ]
}
