//! Review, rule by rule: who may judge, what a verdict is about, what comes of it.

use baton_core::id::{GateId, TaskId, Token};
use baton_core::notices::News;
use baton_core::refusal::{Class, Refusal};
use baton_core::task::State;
use baton_core::task::dossier::Dossier;
use baton_core::tasks::ending::{self, Revive};
use baton_core::tasks::refused::Refused;
use baton_core::tasks::reviewing::judging::{self, Judge, Judged};
use baton_core::tasks::reviewing::{self, Submit, Withdraw};
use baton_core::tasks::{Moved, TTL_DEFAULT};
use baton_core::time::Span;

use crate::backlog::{best, refused, this};
use crate::world::{World, process};

pub(crate) fn commit(digit: char) -> String {
    digit.to_string().repeat(40)
}

impl World {
    pub(crate) fn submitting(
        &mut self,
        who: &str,
        task: &str,
        digit: char,
        to: Option<&str>,
    ) -> Result<Moved, Refusal> {
        let request = Submit {
            task: task.to_owned(),
            commit: commit(digit),
            to: to.map(str::to_owned),
            report: None,
            touched: Vec::new(),
            token: None,
        };
        let context = self.context(Some(who));
        self.decide(context, |view, context| reviewing::submit(view, &request, context))
    }

    pub(crate) fn submits(&mut self, who: &str, task: &str, digit: char) -> Moved {
        self.submitting(who, task, digit, None).unwrap()
    }

    pub(crate) fn withdraws(&mut self, who: &str, task: &str) -> Result<Moved, Refusal> {
        let request = Withdraw { task: task.to_owned(), why: None, token: None };
        let context = self.context(Some(who));
        self.decide(context, |view, context| reviewing::withdraw(view, &request, context))
    }

    pub(crate) fn judging(
        &mut self,
        who: Option<&str>,
        request: &Judge,
    ) -> Result<Judged, Refusal> {
        let mut context = self.context(who);
        context.actor.person = who.is_none();
        self.decide(context, |view, context| judging::judge(view, request, context))
    }

    pub(crate) fn approves(&mut self, who: &str, task: &str) -> Result<Judged, Refusal> {
        self.judging(Some(who), &word(task, true, None))
    }

    pub(crate) fn rejects(&mut self, who: &str, task: &str, text: &str) -> Result<Judged, Refusal> {
        self.judging(Some(who), &word(task, false, Some(text)))
    }

    pub(crate) fn revives(
        &mut self,
        who: Option<&str>,
        task: &str,
        attempts: Option<u32>,
    ) -> Result<Moved, Refusal> {
        let request = Revive { task: task.to_owned(), attempts, why: "once more".to_owned() };
        let mut context = self.context(who);
        context.actor.person = who.is_none();
        self.decide(context, |view, context| ending::revive(view, &request, context))
    }

    pub(crate) fn dossier(&self, task: &str) -> Dossier {
        let found = self.records::<Dossier>().into_iter().find(|one| one.task.0 == task);
        found.unwrap_or_else(|| Dossier::of(TaskId(task.to_owned())))
    }

    fn token_of(&self, task: &str) -> Token {
        self.task(task).owner().unwrap().token
    }
}

pub(crate) fn word(task: &str, approves: bool, text: Option<&str>) -> Judge {
    let (task, text) = (task.to_owned(), text.map(str::to_owned));
    Judge { task, commit: None, approves, text, token: None }
}

/// Ann has handed in t1.
fn submitted(names: &[&str]) -> World {
    let mut world = World::with(names.iter().copied());
    world.add_on("write the parser", &["src/"]);
    world.takes_as("ann", &this("t1")).unwrap();
    world.submits("ann", "t1", 'a');
    world
}

#[test]
fn what_is_handed_in_is_reviewed_by_another_and_then_done() {
    let mut world = submitted(&["ann", "bob"]);
    world.add_after("use the parser", &["t1"]);
    assert_eq!(world.state("t1"), "review");
    assert!(world.task("t1").owner().is_none(), "the author is free for other work");
    assert!(world.takes("ann").is_none(), "nobody is offered their own");
    let taken = world.takes("bob").unwrap().first;
    let review = taken.review.unwrap();
    assert_eq!((review.commit, review.by.name.as_str()), (commit('a'), "ann"));
    assert_eq!(world.task("t1").reviewers()[0].token, taken.token);
    let judged = world.approves("bob", "t1").unwrap();
    assert_eq!((judged.moved.state, judged.commit), (State::Done, commit('a')));
    assert_eq!(judged.moved.woken, [TaskId::numbered(2)]);
    assert!(world.dossier("t1").report.unwrap().done.contains("approved by bob"));
    let told = world.acts("ann").notices;
    assert!(matches!(&told[0].news, News::TaskMoved { state: State::Done, .. }), "{told:?}");
    assert!(world.session("ann").submissions.is_empty());
    world.audit();
}

#[test]
fn a_rejection_goes_back_to_its_author_under_a_new_token() {
    let mut world = submitted(&["ann", "bob"]);
    world.add("other work");
    let first = world.dossier("t1").attempts[0].token;
    world.takes_as("ann", &this("t2")).unwrap();
    let judged = world.rejects("bob", "t1", "tests are missing").unwrap();
    assert_eq!((judged.moved.state, judged.moved.attempt), (State::Active, 2));
    let token = world.token_of("t1");
    assert!(token > first);
    let told = world.acts("ann").notices;
    let News::TaskMoved { token: Some(told), why, attempt: 2, .. } = &told[0].news else {
        panic!("{told:?}")
    };
    assert_eq!((*told, why.as_str()), (token, "tests are missing"));
    let stale = refused(world.finishes("ann", "t1", Some(first)));
    assert!(matches!(stale, Refused::Stale { .. }), "{stale:?}");
    world.submits("ann", "t1", 'b');
    let feedback = world.takes("bob").unwrap().first.feedback;
    assert_eq!(feedback[0].text, "tests are missing");
    assert_eq!(feedback[0].commit, Some(commit('a')));
    world.approves("bob", "t1").unwrap();
    world.audit();
}

#[test]
fn a_rejection_is_offered_again_when_its_author_is_gone() {
    let mut world = submitted(&["ann", "bob", "cid"]);
    world.dies("ann");
    assert_eq!(world.state("t1"), "review", "what is handed in is not lost with its author");
    world.rejects("bob", "t1", "no").unwrap();
    assert_eq!(world.state("t1"), "open");
    let taken = world.takes("cid").unwrap().first;
    assert_eq!((taken.attempt, taken.feedback.len()), (2, 1));
    world.audit();
}

#[test]
fn nobody_reviews_their_own_work_but_a_person_may() {
    let mut world = submitted(&["ann", "bob"]);
    for answer in [world.approves("ann", "t1"), world.rejects("ann", "t1", "no")] {
        let answer = refused(answer);
        assert!(matches!(answer, Refused::OwnWork { .. }), "{answer:?}");
    }
    // A subagent of the author is the author.
    let answer = refused(world.approves("ann/helper", "t1"));
    assert!(matches!(answer, Refused::OwnWork { .. }), "{answer:?}");
    world.judging(None, &word("t1", true, None)).unwrap();
    assert_eq!(world.state("t1"), "done");
}

#[test]
fn a_verdict_is_about_one_commit() {
    let mut world = submitted(&["ann", "bob"]);
    let about = |commit: &str| Judge { commit: Some(commit.to_owned()), ..word("t1", true, None) };
    let answer = world.judging(Some("bob"), &about(&commit('b')));
    let Err(refusal) = answer else { panic!("{answer:?}") };
    assert_eq!((refusal.class(), refusal.code()), (Class::Stale, "other_commit"));
    assert!(world.judging(Some("bob"), &about("aaaaaa")).is_err(), "six digits are too few");
    // The author hands in another while bob still looks at the first.
    world.takes("bob").unwrap();
    world.submits("ann", "t1", 'b');
    let told = world.acts("bob").notices;
    assert!(matches!(&told[0].news, News::ReviewOver { .. }), "{told:?}");
    assert!(world.judging(Some("bob"), &about(&commit('a'))).is_err());
    world.judging(Some("bob"), &about("bbbbbbb")).unwrap();
    assert_eq!(world.state("t1"), "done");
}

#[test]
fn only_those_it_is_for_review_it() {
    let mut world = World::new();
    world.start("ann", "main");
    world.start("bob", "main");
    world.begin_as("rev", "main", Some("client of rev"), (Some("review"), process("rev")));
    world.add("first");
    world.add("second");
    world.takes_as("ann", &this("t1")).unwrap();
    world.submitting("ann", "t1", 'a', Some("role:review")).unwrap();
    assert_eq!(world.takes("bob").unwrap().first.task.as_str(), "t2", "not for bob");
    let answer = refused(world.approves("bob", "t1"));
    assert!(matches!(answer, Refused::NotForYou { .. }), "{answer:?}");
    assert_eq!(world.takes("rev").unwrap().first.task.as_str(), "t1");
    world.approves("rev", "t1").unwrap();
    world.submitting("bob", "t2", 'b', Some("ann")).unwrap();
    assert!(world.takes("rev").is_none());
    assert!(world.takes("ann").unwrap().first.review.is_some());
    let unknown = world.submitting("bob", "t2", 'c', Some("nobody"));
    assert!(matches!(unknown, Err(Refusal::UnknownSession { .. })), "{unknown:?}");
    let own = refused(world.submitting("bob", "t2", 'c', Some("bob")));
    assert!(matches!(own, Refused::OwnWork { .. }), "{own:?}");
}

#[test]
fn a_further_edit_withdraws_what_was_handed_in() {
    let mut world = submitted(&["ann", "bob"]);
    world.takes("bob").unwrap();
    // Somewhere else, in another tree, or by another: none of it is the author's edit.
    world.claim("ann", ["docs/x"]).granted();
    world.claim("bob", ["src/b.rs"]).granted();
    assert_eq!(world.state("t1"), "review");
    world.release("bob", ["src/b.rs"]).unwrap();
    let granted = world.claim("ann", ["src/a.rs"]).granted();
    let told = granted.notices.last().unwrap();
    let News::TaskMoved { token: Some(token), .. } = &told.news else { panic!("{told:?}") };
    assert_eq!((world.state("t1"), world.token_of("t1")), ("active", *token));
    assert_eq!(world.task("t1").standing.attempt, 1, "no attempt is used");
    assert!(world.task("t1").submission.is_none());
    let told = world.acts("bob").notices;
    assert!(matches!(&told[0].news, News::ReviewOver { .. }), "{told:?}");
    // Held already, the next edit asks for nothing new, and withdraws all the same.
    world.submits("ann", "t1", 'b');
    world.claim("ann", ["src/a.rs"]).granted();
    assert_eq!(world.state("t1"), "active");
    world.audit();
}

#[test]
fn the_author_takes_it_back_and_nobody_else() {
    let mut world = submitted(&["ann", "bob"]);
    let answer = refused(world.withdraws("bob", "t1"));
    assert!(matches!(answer, Refused::Owned { .. }), "{answer:?}");
    let answer = refused(world.cancels(Some("bob"), "t1").map(|_| ()));
    assert!(matches!(answer, Refused::Owned { .. }), "{answer:?}");
    world.withdraws("ann", "t1").unwrap();
    assert_eq!(world.state("t1"), "active");
    world.finishes("ann", "t1", None).unwrap();
    let answer = refused(world.approves("bob", "t1"));
    assert!(matches!(answer, Refused::WrongState { .. }), "{answer:?}");
    world.audit();
}

#[test]
fn reviewers_who_disagree_are_decided_about_by_a_person() {
    for (first, then) in [(true, false), (false, true)] {
        for option in ["approve", "reject"] {
            let mut world = submitted(&["ann", "bob", "cid"]);
            world.add_after("use the parser", &["t1"]);
            let verdict = |approves| word("t1", approves, (!approves).then_some("no tests"));
            world.judging(Some("bob"), &verdict(first)).unwrap();
            let judged = world.judging(Some("cid"), &verdict(then)).unwrap();
            assert_eq!(judged.gate, Some(GateId::numbered(1)));
            assert_eq!((world.state("t1"), world.state("t2")), ("waiting", "blocked"));
            let gate = world.gate("g1");
            let said: Vec<_> = gate.reasons.iter().map(|one| one.by.name.as_str()).collect();
            assert_eq!(said, ["bob", "cid"]);
            assert!(world.takes("ann").is_none(), "whoever waits is held");
            let answer = refused(world.judging(Some("bob"), &verdict(then)));
            assert!(matches!(answer, Refused::WrongState { .. }), "{answer:?}");
            let decided = world.decides("g1", true, Some(option)).unwrap();
            let expected = match option {
                "approve" => (State::Done, vec![TaskId::numbered(2)]),
                _ => (State::Active, Vec::new()),
            };
            assert_eq!((decided.state.unwrap(), decided.woken), expected, "{first} {option}");
            world.audit();
        }
    }
}

#[test]
fn one_reviewer_waits_for_the_word_of_the_other() {
    let mut world = submitted(&["ann", "bob", "cid"]);
    world.takes("bob").unwrap();
    world.takes_as("cid", &this("t1")).unwrap();
    let judged = world.approves("bob", "t1").unwrap();
    assert_eq!((judged.moved.state, judged.waits_for[0].name.as_str()), (State::Review, "cid"));
    // Cid's process ends without a word: bob's counts.
    world.dies("cid");
    assert_eq!(world.state("t1"), "done");
    world.audit();
}

#[test]
fn a_reviewer_whose_lease_runs_out_loses_only_the_review() {
    let mut world = submitted(&["ann", "bob", "cid"]);
    world.takes("bob").unwrap();
    assert!(world.takes("cid").is_none(), "bob reviews it");
    let busy = refused(world.taking("bob", &best()));
    assert!(matches!(busy, Refused::HasTask { state: State::Review, .. }), "{busy:?}");
    world.pass(TTL_DEFAULT);
    world.pass(Span::minutes(1));
    let taken = world.takes("cid").unwrap().first;
    assert!(taken.review.is_some());
    assert_eq!(world.task("t1").standing.attempts_used, 0, "no attempt of the author");
    let late = Judge { token: Some(Token { epoch: 1, number: 1 }), ..word("t1", true, None) };
    let answer = world.judging(Some("bob"), &late);
    assert!(matches!(answer, Err(Refusal::StaleToken { .. })), "{answer:?}");
    world.audit();
}

#[test]
fn activity_keeps_a_review_alive() {
    let mut world = submitted(&["ann", "bob", "cid"]);
    world.takes("bob").unwrap();
    for _ in 0..4 {
        world.pass(Span::minutes(20));
        world.acts("bob");
    }
    assert!(world.takes("cid").is_none());
    world.approves("bob", "t1").unwrap();
    world.audit();
}
