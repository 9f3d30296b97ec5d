//! Random stories about tasks, with deaths, leases that run out and late results (S6, S7, S12).
//!
//! A ledger remembers every answer that was given. After each step: nobody was given what another
//! still had, no late result changed anything, no task was finished twice. At the end the journal
//! rebuilds the records, and what is kept by counters and weights equals a count by hand.

use std::collections::{BTreeMap, BTreeSet};

use baton_core::event::Event;
use baton_core::gate::Gate;
use baton_core::id::{SessionId, TaskId, Token};
use baton_core::operations::{self, Operation};
use baton_core::refusal::Refusal;
use baton_core::sessions;
use baton_core::task::tally::Tally;
use baton_core::task::{Move, State, Task};
use baton_core::tasks::Moved;
use baton_core::tasks::adding;
use baton_core::tasks::editing::Edit;
use baton_core::tasks::ending::Class;
use baton_core::tasks::refused::Refused;
use baton_core::tasks::taking::{self, Answer};
use baton_core::time::{Moment, Span};
use proptest::prelude::*;
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest, prop_state_machine};

use crate::backlog::{best, filing};
use crate::world::{World, resources};

const SESSIONS: &[&str] = &["ann", "bob", "cat"];
const PATHS: &[&str] = &["src/a", "src/", "docs/*.md", "docs/x.md"];

prop_state_machine! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        max_shrink_iters: 20_000,
        ..ProptestConfig::default()
    })]

    #[test]
    fn s6_s7_s12_random_stories_of_tasks(sequential 1..80 => Stories);
}

#[derive(Clone, Debug)]
pub(crate) enum Act {
    Add { after: Vec<usize>, phase: Option<u16>, path: Option<usize>, key: Option<u8> },
    Take { who: &'static str, task: Option<usize>, also: bool, claim: bool },
    TakeAgain { who: &'static str },
    Done { who: &'static str, task: usize, token: Shown },
    Fail { who: &'static str, task: usize, token: Shown, class: Class },
    Park { who: &'static str, task: usize },
    Block { who: &'static str, task: usize, on: Option<usize> },
    Cancel { who: &'static str, task: usize },
    Reopen { task: usize },
    Tie { task: usize, after: usize },
    Active { who: &'static str },
    Claim { who: &'static str, path: usize },
    Pass { minutes: u64 },
    Die { who: &'static str },
    End { who: &'static str, grace: bool },
    Return { who: &'static str },
    FailOver,
    RaiseEpoch,
}

/// Which token a caller shows with its result.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shown {
    None,
    /// One that this caller was once given for the task.
    Own(usize),
    /// One that anybody was given.
    Any(usize),
}

#[derive(Debug)]
pub(crate) struct Stories;

impl ReferenceStateMachine for Stories {
    type State = ();
    type Transition = Act;

    fn init_state() -> BoxedStrategy<()> {
        Just(()).boxed()
    }

    fn transitions((): &()) -> BoxedStrategy<Act> {
        let who = || prop::sample::select(SESSIONS);
        let task = || 0..6_usize;
        let token = || {
            prop_oneof![
                Just(Shown::None),
                (0..4_usize).prop_map(Shown::Own),
                (0..6_usize).prop_map(Shown::Any)
            ]
        };
        let class = || {
            prop_oneof![
                3 => Just(Class::Failed),
                1 => Just(Class::RateLimited),
                1 => Just(Class::Auth),
            ]
        };
        prop_oneof![
            6 => (
                prop::collection::vec(task(), 0..3),
                prop::option::weighted(0.3, 1..4_u16),
                prop::option::of(0..PATHS.len()),
                prop::option::weighted(0.2, 0..3_u8),
            ).prop_map(|(after, phase, path, key)| Act::Add { after, phase, path, key }),
            8 => (who(), prop::option::weighted(0.3, task()), any::<bool>(), any::<bool>())
                .prop_map(|(who, task, also, claim)| Act::Take { who, task, also, claim }),
            2 => who().prop_map(|who| Act::TakeAgain { who }),
            6 => (who(), task(), token())
                .prop_map(|(who, task, token)| Act::Done { who, task, token }),
            4 => (who(), task(), token(), class())
                .prop_map(|(who, task, token, class)| Act::Fail { who, task, token, class }),
            1 => (who(), task()).prop_map(|(who, task)| Act::Park { who, task }),
            1 => (who(), task(), prop::option::of(task()))
                .prop_map(|(who, task, on)| Act::Block { who, task, on }),
            1 => (who(), task()).prop_map(|(who, task)| Act::Cancel { who, task }),
            1 => task().prop_map(|task| Act::Reopen { task }),
            2 => (task(), task()).prop_map(|(task, after)| Act::Tie { task, after }),
            3 => who().prop_map(|who| Act::Active { who }),
            1 => (who(), 0..PATHS.len()).prop_map(|(who, path)| Act::Claim { who, path }),
            5 => (1..40_u64).prop_map(|minutes| Act::Pass { minutes }),
            2 => who().prop_map(|who| Act::Die { who }),
            1 => (who(), any::<bool>()).prop_map(|(who, grace)| Act::End { who, grace }),
            2 => who().prop_map(|who| Act::Return { who }),
            1 => Just(Act::FailOver),
            1 => Just(Act::RaiseEpoch),
        ]
        .boxed()
    }

    fn apply((): (), _: &Act) {}
}

/// What callers were told.
#[derive(Debug)]
pub(crate) struct Ledger {
    world: World,
    /// Every token that was given out: for which task, to whom.
    given: Vec<(TaskId, SessionId, Token)>,
    /// How often the end of each task was acknowledged, since it was last reopened.
    finished: BTreeMap<TaskId, u32>,
    acknowledged: usize,
    operations: u64,
}

impl StateMachineTest for Stories {
    type SystemUnderTest = Ledger;
    type Reference = Self;

    fn init_test((): &()) -> Ledger {
        let world = World::with(SESSIONS.iter().copied());
        let (given, finished) = (Vec::new(), BTreeMap::new());
        Ledger { world, given, finished, acknowledged: 0, operations: 0 }
    }

    fn apply(mut ledger: Ledger, (): &(), act: Act) -> Ledger {
        ledger.step(act);
        assert_counts(&ledger.world);
        ledger
    }

    fn teardown(ledger: Ledger, (): ()) {
        assert_weights(&ledger.world);
        ledger.assert_journal();
        ledger.world.audit();
    }
}

impl Ledger {
    fn step(&mut self, act: Act) {
        let id = |index: usize| TaskId::numbered(index as u64 + 1).0;
        match act {
            Act::Add { after, phase, path, key } => self.add(&after, phase, path, key),
            Act::Take { who, task, also, claim } => {
                let request = taking::Request { task: task.map(id), also, claim, ..best() };
                self.take(who, &request);
            }
            Act::TakeAgain { who } => self.take_twice_under_one_id(who),
            Act::Done { who, task, token } => {
                let token = self.token(who, task, token);
                self.result(who, &id(task), token, |world, task| world.finishes(who, task, token));
            }
            Act::Fail { who, task, token, class } => {
                let token = self.token(who, task, token);
                self.result(who, &id(task), token, |world, task| {
                    world.fails(who, task, class, token)
                });
            }
            Act::Park { who, task } => drop(self.world.parks(who, &id(task))),
            Act::Block { who, task, on } => {
                let on = on.map_or_else(|| "the weather".to_owned(), id);
                drop(self.world.blocks(who, &id(task), &on));
            }
            Act::Cancel { who, task } => drop(self.world.cancels(Some(who), &id(task))),
            Act::Reopen { task } => {
                if self.world.reopens(None, &id(task)).is_ok() {
                    self.finished.remove(&TaskId(id(task)));
                }
            }
            Act::Tie { task, after } => {
                let edit = Edit::default();
                drop(self.world.updates(None, &id(task), edit, &[&id(after)]));
            }
            Act::Active { who } => self.active(who),
            Act::Claim { who, path } => drop(self.world.claim(who, [PATHS[path]]).answer()),
            Act::Pass { minutes } => self.world.pass(Span::minutes(minutes)),
            Act::Die { who } => drop(self.world.dies(who)),
            Act::End { who, grace } => {
                drop(self.world.end(who, grace.then_some(sessions::GRACE)));
            }
            Act::Return { who } => drop(self.world.start(who, "main")),
            Act::FailOver => self.world.failed_over_at = Some(self.world.now),
            Act::RaiseEpoch => self.world.raise_epoch(),
        }
    }

    fn add(&mut self, after: &[usize], phase: Option<u16>, path: Option<usize>, key: Option<u8>) {
        let made = self.world.tally().made;
        let after = after.iter().map(|index| format!("t{}", index + 1)).collect::<Vec<_>>();
        let known = after.iter().all(|id| TaskId(id.clone()).number() <= made);
        let request = adding::Request {
            after,
            phase,
            paths: resources(path.map(|path| PATHS[path])),
            key: key.map(|key| format!("key {key}")),
            ..filing(&format!("work number{made}"))
        };
        let twice =
            request.key.is_some() && self.tasks().iter().any(|task| task.key == request.key);
        match self.world.file(&request) {
            Ok(added) => {
                assert!(known);
                assert_eq!(added.known, twice, "one key is one task");
                assert_eq!(self.world.tally().made, made + u64::from(!twice));
            }
            Err(refusal) => assert!(!known, "{refusal:?}"),
        }
    }

    fn tasks(&self) -> Vec<Task> {
        self.world.records()
    }

    fn is_there(&self, who: &str) -> bool {
        self.world.session(who).life == sessions::Life::Live
    }

    /// Does this attempt still run? By hand, from the record.
    fn runs(&self, task: &Task) -> bool {
        task.owner().is_some_and(|owner| {
            let late = self.world.failed_over_at.is_some_and(|at| owner.renewed_at < at);
            let end = if late { owner.expires_at + owner.ttl } else { owner.expires_at };
            self.world.now < end
        })
    }

    /// Could anybody without a role take it now?
    fn is_offered(&self, task: &Task, tally: &Tally) -> bool {
        let now: Moment = self.world.now;
        let comes = match task.state() {
            State::Open => true,
            State::Parked => {
                task.standing.not_before.is_some_and(|at| at <= now)
                    && task.at_rest() == State::Open
            }
            State::Active => {
                !self.runs(task)
                    && task.at_rest() == State::Open
                    && task.standing.attempts_used + 1 < task.max_attempts
            }
            _ => false,
        };
        comes && !tally.holds_back(task.phase)
    }

    fn take(&mut self, who: &'static str, request: &taking::Request) {
        let (before, tally) = (self.tasks(), self.world.tally());
        let entries = self.world.journal.len();
        let answer = self.world.taking(who, request);
        match answer {
            Ok(Answer::Taken(taken)) => {
                let task = before.iter().find(|task| task.task == taken.first.task).unwrap();
                assert!(self.is_there(who));
                assert!(!self.runs(task), "S6: {task:?} was given to {who} too");
                assert!(!task.state().is_finished() && !tally.holds_back(task.phase));
                assert!(task.pending.is_empty(), "it waits for {:?}", task.pending);
                self.given(who, &taken.first);
                if let Some(claim) = &taken.claim {
                    let claims = self.world.claims_of(who);
                    assert!(claims.iter().any(|one| one.claim == claim.claim), "all or nothing");
                }
            }
            Ok(Answer::Nothing(_)) => {
                let offered = before.iter().find(|task| self.is_offered(task, &tally));
                assert!(offered.is_none(), "{offered:?} was there, yet nothing was offered");
            }
            Err(refusal) => {
                assert_eq!(self.world.journal.len(), entries, "a refusal writes nothing");
                self.assert_take_refused(who, request, &before, &refusal);
            }
        }
    }

    fn assert_take_refused(
        &self,
        who: &str,
        request: &taking::Request,
        before: &[Task],
        refusal: &Refusal,
    ) {
        let me = self.world.id(who);
        match refusal {
            Refusal::SessionEnded { .. } => assert!(!self.is_there(who)),
            Refusal::Held(_) => assert!(request.claim),
            Refusal::Task(refused) => match &**refused {
                Refused::HasTask { .. } => {
                    let mine = |task: &Task| {
                        task.owner().is_some_and(|owner| owner.session == me) && self.runs(task)
                    };
                    assert!(before.iter().any(mine), "{refused:?}");
                }
                Refused::Owned { task, .. } => {
                    let task = before.iter().find(|one| one.task == task.task).unwrap();
                    assert!(self.runs(task), "{refused:?}");
                }
                Refused::Unknown { .. } | Refused::WrongState { .. } => {
                    assert!(request.task.is_some());
                }
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    fn given(&mut self, who: &'static str, taken: &taking::TakenTask) {
        let highest = self.given.iter().map(|(.., token)| *token).max();
        assert!(highest.is_none_or(|highest| highest < taken.token), "tokens rise (S5)");
        self.given.push((taken.task.clone(), self.world.id(who), taken.token));
        let owner = self.world.task(taken.task.as_str()).standing.owner.unwrap();
        assert_eq!((owner.token, owner.session), (taken.token, self.world.id(who)));
    }

    /// S12: the second time under the same operation id is the first answer, and no second take.
    fn take_twice_under_one_id(&mut self, who: &'static str) {
        if !self.is_there(who) {
            return;
        }
        self.operations += 1;
        let id = format!("operation {}", self.operations);
        let request = taking::Request { also: true, ..best() };
        let mut answers = Vec::new();
        let mut entries = Vec::new();
        for _ in 0..2 {
            let context = self.world.context(Some(who));
            let answer = self.world.decide(context, |view, context| {
                if let Some(kept) = operations::answered(view, &id, who, "hash")? {
                    return Ok((Vec::new(), serde_json::from_str::<Answer>(&kept).unwrap()));
                }
                let (mut events, answer) = taking::take(view, &request, context)?;
                let kept = Operation {
                    operation: id.clone(),
                    session: who.to_owned(),
                    request_hash: "hash".to_owned(),
                    answer: serde_json::to_string(&answer).unwrap(),
                    at: context.now,
                };
                events.extend(operations::keep(view, kept)?);
                Ok((events, answer))
            });
            answers.push(answer.unwrap());
            entries.push(self.world.journal.len());
        }
        assert_eq!(answers[0], answers[1], "S12");
        assert_eq!(entries[0], entries[1], "S12: a retry writes nothing");
        if let Answer::Taken(taken) = &answers[0] {
            self.given(who, &taken.first);
        }
    }

    fn token(&self, who: &str, task: usize, shown: Shown) -> Option<Token> {
        let id = TaskId::numbered(task as u64 + 1);
        let of_task = self.given.iter().filter(|(task, ..)| *task == id);
        let (index, tokens): (usize, Vec<Token>) = match shown {
            Shown::None => return None,
            Shown::Own(index) => (
                index,
                of_task
                    .filter(|(_, to, _)| *to == self.world.id(who))
                    .map(|(.., one)| *one)
                    .collect(),
            ),
            Shown::Any(index) => (index, self.given.iter().map(|(.., one)| *one).collect()),
        };
        tokens.get(index % tokens.len().max(1)).copied()
    }

    /// S7: only the attempt that owns the task ends it; whatever else comes changes nothing.
    fn result(
        &mut self,
        who: &str,
        id: &str,
        token: Option<Token>,
        deed: impl FnOnce(&mut World, &str) -> Result<Moved, Refusal>,
    ) {
        let before = self.tasks().into_iter().find(|task| task.task.0 == id);
        let mine = before.as_ref().is_some_and(|task| {
            self.is_there(who)
                && self.runs(task)
                && task.owner().is_some_and(|owner| {
                    owner.session == self.world.id(who)
                        && token.is_none_or(|token| token == owner.token)
                })
        });
        let records = self.world.store.clone();
        match deed(&mut self.world, id) {
            Ok(moved) => {
                assert!(mine, "S7: {who} ended {id} with {token:?}");
                assert!(self.world.task(id).owner().is_none());
                if moved.state == State::Done {
                    self.acknowledged += 1;
                    *self.finished.entry(moved.task).or_default() += 1;
                }
            }
            Err(refusal) => {
                assert!(!mine, "{who} owns {id}, yet {refusal:?}");
                assert_eq!(self.world.store, records, "S7: a late result changed something");
                let me = self.world.id(who);
                let late = self.given.iter().any(|(task, to, _)| task.0 == id && *to == me);
                let Some(before) = before else { return };
                let unfinished = !before.state().is_finished();
                if self.is_there(who) && (token.is_some() || late) && unfinished {
                    let Refusal::Task(refused) = refusal else { panic!("{refusal:?}") };
                    let Refused::Stale { current, .. } = *refused else { panic!("{refused:?}") };
                    let runs = self.runs(&before);
                    let owner = before.owner().filter(|_| runs);
                    assert_eq!(current, owner.map(|owner| owner.token));
                }
            }
        }
        assert!(self.finished.values().all(|count| *count == 1), "S7: finished twice");
    }

    fn active(&mut self, who: &str) {
        if !self.is_there(who) {
            return;
        }
        let me = self.world.id(who);
        let ran: Vec<Task> = self.tasks().into_iter().filter(|task| self.runs(task)).collect();
        self.world.acts(who);
        for before in ran.iter().filter(|one| one.owner().is_some_and(|one| one.session == me)) {
            let after = self.world.task(before.task.as_str());
            let (old, new) = (before.owner().unwrap(), after.owner().unwrap());
            let left = new.expires_at.since(self.world.now);
            assert!(left.0 >= new.ttl.0 / 2, "lesson 8: {after:?} was not renewed");
            assert!(new.expires_at >= old.expires_at && new.token == old.token);
        }
    }

    /// Every take and every end that was acknowledged stands in the journal exactly once.
    fn assert_journal(&self) {
        let (mut taken, mut done) = (Vec::new(), 0);
        for entry in &self.world.journal {
            match entry.event().unwrap() {
                Event::TaskMoved { how: Move::Taken | Move::TakenAnew, standing, .. } => {
                    let token = standing.owner.unwrap().token;
                    assert_eq!(token, entry.position, "a token is a place in the journal");
                    taken.push(token);
                }
                Event::TaskMoved { how: Move::Done, .. } => done += 1,
                _ => {}
            }
        }
        let given: Vec<Token> = self.given.iter().map(|(.., token)| *token).collect();
        assert_eq!(taken, given, "S12");
        assert_eq!(done, self.acknowledged, "S12");
    }
}

/// What is kept by events equals a count by hand.
pub(crate) fn assert_counts(world: &World) {
    let gates = world.records::<Gate>().len() as u64;
    let mut tally = Tally { made: world.tally().made, gates, ..Tally::default() };
    for task in world.records::<Task>() {
        *tally.states.entry(task.state()).or_default() += 1;
        if let Some(phase) = task.phase.filter(|_| !task.state().is_finished()) {
            let counts = tally.phases.entry(phase).or_default();
            counts.unfinished += 1;
            counts.open += u64::from(task.state() == State::Open);
        }
        let owned = matches!(task.state(), State::Active);
        assert_eq!(task.owner().is_some(), owned, "S6: {task:?}");
    }
    assert_eq!(world.tally(), tally);
}

pub(crate) fn assert_weights(world: &World) {
    let tasks = world.records::<Task>();
    let unfinished: Vec<&Task> = tasks.iter().filter(|task| !task.state().is_finished()).collect();
    for task in &unfinished {
        let mut behind = BTreeSet::from([task.task.clone()]);
        loop {
            let known = behind.len();
            let waits = unfinished
                .iter()
                .filter(|one| one.pending.iter().any(|pending| behind.contains(pending)));
            let more: Vec<TaskId> = waits.map(|one| one.task.clone()).collect();
            behind.extend(more);
            if behind.len() == known {
                break;
            }
        }
        assert_eq!(task.unblocks as usize, behind.len() - 1, "{task:?}");
        let done =
            |id: &TaskId| tasks.iter().any(|one| one.task == *id && one.state().is_finished());
        assert!(!task.pending.iter().any(done), "{task:?} waits for what is finished");
    }
}
