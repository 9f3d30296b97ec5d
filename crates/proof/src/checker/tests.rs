//! A true history passes; every kind of false one is found.
//! The false ones are made by hand, each with one thing wrong.

use baton_core::claim::{Claim, Hold, Holder, Mode, Scope};
use baton_core::event::{EndOfClaim, Event};
use baton_core::id::{ClaimId, Position, SessionId, TreeId};
use baton_core::journal::{Entry, Head};
use baton_core::resource::Resource;
use baton_core::time::{Moment, Span};

use super::{Violation, check};
use crate::history::{Act, Nanos, Operation, Outcome, Verb};

/// A journal and histories, written by hand.
#[derive(Default)]
struct Story {
    journal: Vec<Entry>,
    history: Vec<Operation>,
    clock: u64,
}

impl Story {
    fn next(&self) -> Position {
        Position { epoch: 1, number: self.journal.len() as u64 + 1 }
    }

    /// One event in a commit of its own.
    fn write(&mut self, actor: &str, event: &Event) -> Position {
        self.clock += 1;
        self.write_too(actor, event)
    }

    /// One event more in the same commit.
    fn write_too(&mut self, actor: &str, event: &Event) -> Position {
        let head = self.journal.last().map_or_else(Head::start, Entry::head);
        let position = self.next();
        self.journal.push(Entry::next(&head, position, Moment(self.clock), actor, event));
        position
    }

    fn grant_as(&mut self, session: &str, claim: &str, path: &str, token: Position) -> Position {
        let holder =
            Holder { session: SessionId(session.into()), name: session.into(), agent: None };
        let claim = Claim {
            claim: ClaimId(claim.into()),
            token,
            hold: Hold {
                holder,
                tree: TreeId("t".into()),
                scope: Scope::Workspace,
                mode: Mode::Exclusive,
                resources: vec![Resource::literal(path).unwrap()],
            },
            ttl: Span::minutes(1),
            granted_at: Moment(self.clock),
            renewed_at: Moment(self.clock),
            expires_at: Moment(self.clock + 60_000),
            busy_until: None,
            reason: None,
            task: None,
            suggestions: 0,
            inherited: Vec::new(),
        };
        self.write(session, &Event::ClaimGranted { claim });
        token
    }

    fn grant(&mut self, session: &str, claim: &str, path: &str) -> Position {
        self.grant_as(session, claim, path, self.next())
    }

    fn end(&mut self, session: &str, claim: &str, why: EndOfClaim) -> Position {
        let event = Event::ClaimEnded {
            claim: ClaimId(claim.into()),
            session: SessionId(session.into()),
            resources: Vec::new(),
            why,
            left: None,
        };
        self.write(session, &event)
    }

    fn release(&mut self, session: &str, claim: &str) -> Position {
        self.end(session, claim, EndOfClaim::Released { commit: None })
    }

    fn answered(&mut self, session: &str, operation: &str) {
        let operation = baton_core::operations::Operation {
            operation: operation.into(),
            session: session.into(),
            request_hash: String::new(),
            answer: String::new(),
            at: Moment(self.clock),
        };
        self.write_too(session, &Event::OperationAnswered { operation });
    }

    fn saw(&mut self, times: (Nanos, Nanos), act: Act, outcome: Outcome) {
        let returned = Some((times.1, outcome));
        self.history.push(Operation { act, invoked: times.0, returned });
    }

    fn violations(&self) -> Vec<Violation> {
        check(&self.history, &self.journal).violations
    }
}

fn act(session: &str, verb: Verb, token: Option<Position>) -> Act {
    let (session, resources) = (session.to_owned(), vec!["a".to_owned()]);
    Act { session, verb, resources, shared: false, token, operation: None }
}

fn granted(claim: &str, token: Position) -> Outcome {
    Outcome::Granted { claim: ClaimId(claim.into()), token, already_held: false }
}

/// Ann holds and lets go, then Bob holds and lets go.
fn two_holders() -> (Story, Position, Position) {
    let mut story = Story::default();
    let one = story.grant("ann", "c1", "a");
    story.release("ann", "c1");
    let two = story.grant("bob", "c2", "a");
    story.release("bob", "c2");
    (story, one, two)
}

#[test]
fn a_true_history_passes() {
    let (mut story, one, two) = two_holders();
    story.saw((10, 20), act("ann", Verb::Claim, None), granted("c1", one));
    story.saw((25, 26), act("ann", Verb::Check, Some(one)), Outcome::Done);
    story.saw((30, 45), act("ann", Verb::Release, Some(one)), Outcome::Done);
    story.saw((35, 50), act("bob", Verb::Claim, None), granted("c2", two));
    story.saw((60, 70), act("bob", Verb::Release, Some(two)), Outcome::Done);
    let report = check(&story.history, &story.journal);
    assert_eq!(report.violations, []);
    assert_eq!((report.operations, report.acknowledged, report.grants), (5, 5, 2));
}

#[test]
fn s1_two_live_claims_in_the_journal_are_found() {
    let mut story = Story::default();
    story.grant("ann", "c1", "a/b");
    story.grant("bob", "c2", "a/");
    assert!(matches!(story.violations()[..], [Violation::Conflict { .. }]));
}

#[test]
fn s1_two_workers_that_were_told_they_hold_at_once_are_found() {
    let (mut story, one, two) = two_holders();
    story.saw((10, 20), act("ann", Verb::Claim, None), granted("c1", one));
    story.saw((40, 45), act("ann", Verb::Release, Some(one)), Outcome::Done);
    story.saw((15, 30), act("bob", Verb::Claim, None), granted("c2", two));
    story.saw((60, 70), act("bob", Verb::Release, Some(two)), Outcome::Done);
    let found = story.violations();
    assert!(found.iter().any(|one| matches!(one, Violation::HeldTogether { .. })), "{found:?}");
}

#[test]
fn s4_a_check_with_a_token_that_had_ended_is_found() {
    let (mut story, one, two) = two_holders();
    story.saw((35, 50), act("bob", Verb::Claim, None), granted("c2", two));
    story.saw((60, 61), act("ann", Verb::Check, Some(one)), Outcome::Done);
    let session = "ann".to_owned();
    assert_eq!(story.violations(), [Violation::StaleAccepted { token: one, session }]);
}

#[test]
fn s4_a_renewal_with_a_token_that_had_ended_is_found() {
    let (mut story, one, _) = two_holders();
    story.write("ann", &Event::ClaimsRenewed { claims: Vec::new(), at: Moment(9) });
    story.answered("ann", "op");
    let renewal = Act { operation: Some("op".into()), ..act("ann", Verb::Renew, Some(one)) };
    story.saw((60, 61), renewal, Outcome::Done);
    let session = "ann".to_owned();
    assert_eq!(story.violations(), [Violation::StaleAccepted { token: one, session }]);
}

#[test]
fn s4_a_token_that_ends_in_the_very_act_was_live() {
    let mut story = Story::default();
    let one = story.grant("ann", "c1", "a");
    story.release("ann", "c1");
    story.answered("ann", "op");
    let release = Act { operation: Some("op".into()), ..act("ann", Verb::Release, Some(one)) };
    story.saw((60, 61), release, Outcome::Done);
    assert_eq!(story.violations(), []);
}

#[test]
fn s5_a_token_that_is_not_its_place_or_does_not_increase_is_found() {
    let mut story = Story::default();
    let one = story.grant("ann", "c1", "a");
    story.release("ann", "c1");
    story.grant_as("bob", "c2", "a", one);
    let at = Position { epoch: 1, number: 3 };
    assert_eq!(story.violations(), [Violation::TokenOrder { token: one, at }]);
}

#[test]
fn real_time_order_against_the_journals_order_is_found() {
    let mut story = Story::default();
    let one = story.grant("ann", "c1", "a");
    let two = story.grant("bob", "c2", "b");
    story.saw((10, 20), act("bob", Verb::Claim, None), granted("c2", two));
    story.saw((30, 40), act("ann", Verb::Claim, None), granted("c1", one));
    assert_eq!(story.violations(), [Violation::RealTime { earlier: two, later: one }]);
}

#[test]
fn s12_what_was_acknowledged_and_is_not_there_is_found() {
    let (mut story, _, _) = two_holders();
    let lost = Position { epoch: 1, number: 9 };
    story.saw((10, 20), act("ann", Verb::Claim, None), granted("c9", lost));
    let named = Act { operation: Some("op".into()), ..act("ann", Verb::Release, None) };
    story.saw((30, 40), named, Outcome::Done);
    let found = story.violations();
    let missing = found.iter().filter(|one| matches!(one, Violation::Missing { .. }));
    assert_eq!(missing.count(), 2, "{found:?}");
}

#[test]
fn s12_what_was_done_twice_or_answered_differently_is_found() {
    let mut story = Story::default();
    let one = story.grant("ann", "c1", "a");
    story.answered("ann", "op");
    let two = story.grant("ann", "c2", "a");
    story.answered("ann", "op");
    let named = Act { operation: Some("op".into()), ..act("ann", Verb::Claim, None) };
    story.saw((10, 20), named.clone(), granted("c1", one));
    story.saw((30, 40), named, granted("c2", two));
    let found = story.violations();
    assert!(found.iter().any(|one| matches!(one, Violation::Twice { .. })), "{found:?}");
    assert!(found.iter().any(|one| matches!(one, Violation::Answers { .. })), "{found:?}");
}

#[test]
fn what_was_refused_and_yet_done_is_found() {
    let mut story = Story::default();
    story.grant("ann", "c1", "a");
    story.answered("ann", "op");
    let named = Act { operation: Some("op".into()), ..act("ann", Verb::Claim, None) };
    story.saw((10, 20), named, Outcome::Refused { code: "held".into() });
    let operation = "op".to_owned();
    assert_eq!(story.violations(), [Violation::RefusedButDone { operation }]);
}

#[test]
fn a_release_of_a_part_is_not_taken_for_the_end() {
    let mut story = Story::default();
    let one = story.grant("ann", "c1", "a");
    let narrowed = Event::ClaimNarrowed {
        claim: ClaimId("c1".into()),
        resources: vec![Resource::literal("a").unwrap()],
        released: Vec::new(),
        left: None,
    };
    story.write("ann", &narrowed);
    let two = story.grant("bob", "c2", "b");
    story.release("ann", "c1");
    story.saw((10, 20), act("ann", Verb::Release, Some(one)), Outcome::Done);
    story.saw((30, 40), act("bob", Verb::Claim, None), granted("c2", two));
    assert_eq!(story.violations(), []);
}

#[test]
fn a_changed_journal_is_found() {
    let (mut story, _, _) = two_holders();
    story.journal[1].actor = "eve".into();
    let found = story.violations();
    assert!(matches!(found[..], [Violation::Journal { .. }]), "{found:?}");
}

#[test]
fn a_killed_worker_proves_nothing_either_way() {
    let mut story = Story::default();
    story.grant("ann", "c1", "a");
    story.answered("ann", "op");
    let named = Act { operation: Some("op".into()), ..act("ann", Verb::Claim, None) };
    story.history.push(Operation { act: named, invoked: 10, returned: None });
    let other = Act { operation: Some("no".into()), ..act("ann", Verb::Claim, None) };
    story.history.push(Operation { act: other, invoked: 30, returned: None });
    let report = check(&story.history, &story.journal);
    assert_eq!((report.violations.as_slice(), report.unknown), (&[][..], 2));
}
