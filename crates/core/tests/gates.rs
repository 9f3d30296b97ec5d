//! Gates and votes, rule by rule.

use baton_core::gate::{Check, Gate, Kind, Outcome};
use baton_core::gates::checking::{self, Look, Looked};
use baton_core::gates::deciding::{self, Decide, Decided};
use baton_core::gates::refused::Refused;
use baton_core::gates::{self, Add, Added};
use baton_core::id::GateId;
use baton_core::refusal::{Class, Refusal};
use baton_core::task::State;
use baton_core::time::Span;
use baton_core::votes::{self, Request, Voted};

use crate::backlog::this;
use crate::reviews::commit;
use crate::world::World;

pub(crate) fn asking(on: &str, kind: Kind) -> Add {
    let (on, ask) = (on.to_owned(), "may it go on?".to_owned());
    Add { on, kind, ask, options: Vec::new(), commit: None, check: None }
}

impl World {
    pub(crate) fn gates(&mut self, who: Option<&str>, request: &Add) -> Result<Added, Refusal> {
        let mut context = self.context(who);
        context.actor.person = who.is_none();
        self.decide(context, |view, context| gates::add(view, request, context))
    }

    pub(crate) fn gate(&self, id: &str) -> Gate {
        self.records::<Gate>().into_iter().find(|gate| gate.gate.0 == id).unwrap()
    }

    pub(crate) fn deciding(
        &mut self,
        who: Option<&str>,
        request: &Decide,
    ) -> Result<Decided, Refusal> {
        let mut context = self.context(who);
        context.actor.person = who.is_none();
        self.decide(context, |view, context| deciding::decide(view, request, context))
    }

    /// A person decides.
    pub(crate) fn decides(
        &mut self,
        gate: &str,
        approves: bool,
        option: Option<&str>,
    ) -> Result<Decided, Refusal> {
        self.deciding(None, &answer(gate, approves, option))
    }

    fn looks(&mut self, gate: &str, passed: bool) -> Option<Looked> {
        let look = Look { gate: GateId(gate.to_owned()), passed, saw: "seen".to_owned() };
        let context = self.context(None);
        self.decide(context, |view, context| checking::judge(view, &look, context)).unwrap()
    }

    fn votes(&mut self, who: &str, subject: &str, value: &str) -> Result<Voted, Refusal> {
        let (subject, value) = (subject.to_owned(), value.to_owned());
        let request = Request { subject, value, why: "I think so".to_owned() };
        let context = self.context(Some(who));
        self.decide(context, |view, context| votes::vote(view, &request, context))
    }
}

pub(crate) fn answer(gate: &str, approves: bool, option: Option<&str>) -> Decide {
    let (gate, why) = (gate.to_owned(), "I say so".to_owned());
    Decide { gate, approves, why, option: option.map(str::to_owned), commit: None }
}

#[track_caller]
fn refused<T: std::fmt::Debug>(answer: Result<T, Refusal>) -> Refused {
    match answer {
        Err(Refusal::Gate(refused)) => *refused,
        other => panic!("should be refused, but {other:?}"),
    }
}

#[test]
fn a_gate_holds_its_task_and_an_approval_gives_it_back() {
    let mut world = World::with(["ann", "bob"]);
    world.add("drop the table");
    let first = world.takes("ann").unwrap().first.token;
    let added = world.gates(Some("ann"), &asking("T1", Kind::Approval)).unwrap();
    assert_eq!((added.gate.as_str(), added.on.as_str()), ("g1", "t1"));
    assert_eq!(world.state("t1"), "waiting");
    assert!(world.takes("bob").is_none(), "it is offered to nobody");
    let again = world.gates(Some("bob"), &asking("t1", Kind::Approval)).unwrap();
    assert!(again.known && again.gate == added.gate, "the same question is one gate");
    let by_agent = world.deciding(Some("ann"), &answer("g1", true, None));
    assert!(matches!(by_agent, Err(Refusal::NeedsPerson { .. })), "{by_agent:?}");
    let decided = world.decides("g1", true, None).unwrap();
    assert_eq!((decided.decision.outcome, decided.state), (Outcome::Approved, Some(State::Active)));
    let owner = world.task("t1").standing.owner.unwrap();
    assert!(owner.name == "ann" && owner.token > first && owner.attempt == 1);
    let entries = world.journal.len();
    let twice = refused(world.decides("g1", false, None));
    assert!(matches!(twice, Refused::Decided { .. }), "{twice:?}");
    assert_eq!(world.journal.len(), entries, "woken exactly once");
    world.audit();
}

#[test]
fn a_denial_goes_back_as_rejected_with_the_persons_words() {
    let mut world = World::with(["ann"]);
    world.add("drop the table");
    world.takes("ann").unwrap();
    world.gates(Some("ann"), &asking("t1", Kind::Legal)).unwrap();
    world.decides("g1", false, None).unwrap();
    assert_eq!((world.state("t1"), world.task("t1").standing.attempts_used), ("active", 1));
    let feedback = world.dossier("t1").feedback;
    assert!(feedback[0].text.contains("may it go on?") && feedback[0].text.contains("I say so"));
    // Asked and denied again, it ends at a person: no agent asks for ever.
    world.gates(Some("ann"), &asking("t1", Kind::Legal)).unwrap();
    world.decides("g2", false, None).unwrap();
    assert_eq!(world.state("t1"), "waiting");
    assert_eq!(world.gate("g3").options, ["revive", "cancel"]);
    // What nobody has begun uses no attempt.
    world.add("other");
    world.gates(None, &asking("t2", Kind::Approval)).unwrap();
    world.decides("g4", false, None).unwrap();
    assert_eq!((world.state("t2"), world.task("t2").standing.attempts_used), ("open", 0));
    assert_eq!(world.dossier("t2").feedback.len(), 1);
    world.audit();
}

#[test]
fn two_gates_hold_until_both_are_decided() {
    let mut world = World::with(["ann"]);
    world.add("ship it");
    world.gates(None, &asking("t1", Kind::Approval)).unwrap();
    world.gates(None, &asking("t1", Kind::Legal)).unwrap();
    world.decides("g1", true, None).unwrap();
    let task = world.task("t1");
    assert_eq!((task.state(), task.standing.held), (State::Waiting, vec![GateId::numbered(2)]));
    world.decides("g2", true, None).unwrap();
    assert_eq!(world.state("t1"), "open");
    world.gates(None, &asking("t1", Kind::Deploy)).unwrap();
    let by_agent = world.cancels(Some("ann"), "t1");
    assert!(matches!(by_agent, Err(Refusal::NeedsPerson { .. })), "{by_agent:?}");
    let mut person = world.person();
    person.actor.person = true;
    let change = baton_core::tasks::ending::Change { task: "t1".into(), why: None, token: None };
    world
        .decide(person, |view, context| baton_core::tasks::ending::cancel(view, &change, context))
        .unwrap();
    assert_eq!(world.gate("g3").decision.unwrap().outcome, Outcome::Moot);
    world.audit();
}

#[test]
fn an_approval_of_one_commit_does_not_hold_for_another() {
    let mut world = World::with(["ann", "bob"]);
    world.add("ship it");
    world.takes("ann").unwrap();
    world.submits("ann", "t1", 'a');
    let at = Add { commit: Some(commit('a')), ..asking("t1", Kind::Approval) };
    world.gates(Some("bob"), &at).unwrap();
    let other = Decide { commit: Some(commit('b')), ..answer("g1", true, None) };
    let answer = world.deciding(None, &other);
    let Err(refusal) = answer else { panic!("{answer:?}") };
    assert_eq!((refusal.class(), refusal.code()), (Class::Stale, "other_commit"));
    let decided = world.decides("g1", true, None).unwrap();
    assert_eq!(decided.decision.commit, Some(commit('a')));
    assert_eq!(world.state("t1"), "review", "back to where it was");
    // Another commit: the same is asked again.
    world.submits("ann", "t1", 'b');
    assert_eq!((world.state("t1"), world.gate("g2").commit), ("waiting", Some(commit('b'))));
    world.decides("g2", true, None).unwrap();
    world.approves("bob", "t1").unwrap();
    assert_eq!(world.state("t1"), "done");
    world.audit();
}

#[test]
fn options_are_chosen_from_and_unknown_gates_named() {
    let mut world = World::with(["ann"]);
    let options = vec!["blue".to_owned(), "green".to_owned()];
    let request = Add { options, ..asking("deploy", Kind::Decision) };
    world.gates(Some("ann"), &request).unwrap();
    for wrong in [answer("g1", true, None), answer("g1", true, Some("red"))] {
        let Refused::WhichOption { options, .. } = refused(world.deciding(None, &wrong)) else {
            panic!()
        };
        assert_eq!(options, ["blue", "green"]);
    }
    let Refused::Unknown { near, .. } = refused(world.decides("g7", true, None)) else { panic!() };
    assert_eq!(near[0].gate.as_str(), "g1");
    world.decides("1", true, Some("green")).unwrap();
    let missing = world.gates(None, &asking("t9", Kind::Approval));
    assert!(matches!(missing, Err(Refusal::Task(_))), "{missing:?}");
    world.add("mine");
    world.takes_as("ann", &this("t1")).unwrap();
    world.start("bob", "main");
    let another = world.gates(Some("bob"), &asking("t1", Kind::Approval));
    assert!(matches!(another, Err(Refusal::Task(_))), "another's work: {another:?}");
    world.audit();
}

#[test]
fn baton_looks_itself_at_times_files_and_commands_that_are_trusted() {
    let mut world = World::with(["ann"]);
    world.add("after lunch");
    let at = world.now + Span::hours(1);
    let time = Add { check: Some(Check::Time { at }), ..asking("t1", Kind::Time) };
    world.gates(Some("ann"), &time).unwrap();
    assert!(!world.looks("g1", true).unwrap().passed, "its time has not come");
    world.pass(Span::hours(1));
    let looked = world.looks("g1", false).unwrap();
    assert!(looked.passed && world.state("t1") == "open");
    assert!(world.looks("g1", true).is_none(), "it is decided");
    let path = "ready".to_owned();
    let file = Add { check: Some(Check::File { path }), ..asking("t1", Kind::File) };
    world.gates(Some("ann"), &file).unwrap();
    let entries = world.journal.len();
    assert!(!world.looks("g2", false).unwrap().passed);
    assert_eq!(world.journal.len(), entries, "nothing new is no entry");
    assert!(world.looks("g2", true).unwrap().passed);
    let argv = vec!["make".to_owned()];
    let run = Add { check: Some(Check::Command { argv }), ..asking("t1", Kind::Command) };
    assert!(world.gates(Some("ann"), &run).unwrap().needs_trust);
    assert!(!world.looks("g3", true).unwrap().passed, "nobody stands for it");
    let trust = |world: &mut World, person: bool| {
        let mut context = world.context(Some("ann"));
        context.actor.person = person;
        world.decide(context, |view, context| deciding::trust(view, "g3", context))
    };
    assert!(matches!(trust(&mut world, false), Err(Refusal::NeedsPerson { .. })));
    trust(&mut world, true).unwrap();
    assert!(!world.looks("g3", false).unwrap().passed);
    assert!(!world.gate("g3").checked.unwrap().passed, "each run is recorded");
    assert!(world.looks("g3", true).unwrap().passed);
    assert_eq!(world.state("t1"), "open");
    world.audit();
}

#[test]
fn voters_who_disagree_open_one_gate_and_a_person_chooses() {
    let mut world = World::with(["ann", "bob", "cid"]);
    assert!(world.votes("ann", "Tabs or spaces", "tabs").unwrap().agreed);
    assert!(world.votes("bob", "tabs OR spaces", "tabs").unwrap().agreed);
    let voted = world.votes("bob", "tabs or spaces", "spaces").unwrap();
    assert!(!voted.agreed && voted.ballot.votes.len() == 2, "the last of each counts");
    world.votes("cid", "tabs or spaces", "both").unwrap();
    assert_eq!(world.records::<Gate>().len(), 1);
    assert_eq!(world.gate("g1").options, ["tabs", "spaces"]);
    world.decides("g1", true, Some("spaces")).unwrap();
    let late = refused(world.votes("ann", "tabs or spaces", "tabs"));
    assert!(matches!(late, Refused::Settled { .. }), "{late:?}");
    // A person who refuses to choose leaves it to a new round.
    world.votes("ann", "licence", "mit").unwrap();
    world.votes("bob", "licence", "gpl").unwrap();
    world.decides("g2", false, None).unwrap();
    assert!(world.votes("ann", "licence", "mit").unwrap().agreed);
    // A task that is voted on waits for the choice.
    world.add("choose");
    world.votes("ann", "t1", "approve").unwrap();
    world.votes("bob", "T1", "reject").unwrap();
    assert_eq!(world.state("t1"), "waiting");
    world.decides("g3", true, Some("approve")).unwrap();
    assert_eq!(world.state("t1"), "open");
    world.audit();
}
