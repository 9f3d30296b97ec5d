//! Random stories of tasks that change hands, with deaths, leases that run out, late givers (S15).
//!
//! After each step: whoever owns a task holds what is claimed for it and nobody else does, no two
//! live claims of different sessions are in conflict (S1), and an old token of an earlier owner is
//! refused as stale and changes nothing. At the end the journal rebuilds the records.

use baton_core::id::{SessionId, TaskId, Token};
use baton_core::refusal::{Class, Refusal};
use baton_core::scene::Scene;
use baton_core::sessions;
use baton_core::task::{State, Task};
use baton_core::tasks::taking;
use baton_core::time::Span;
use proptest::prelude::*;
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest, prop_state_machine};

use crate::backlog::best;
use crate::handoffs::{offering, work};
use crate::world::World;

const SESSIONS: &[&str] = &["ann", "bob", "cat"];
const PATHS: &[&str] = &["src/a", "src/", "lib/x", "lib/"];

prop_state_machine! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        max_shrink_iters: 20_000,
        ..ProptestConfig::default()
    })]

    #[test]
    fn s15_random_stories_of_handoffs(sequential 1..80 => Stories);
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    Add {
        path: usize,
    },
    Take {
        who: &'static str,
        also: bool,
    },
    Claim {
        who: &'static str,
        path: usize,
    },
    Offer {
        who: &'static str,
        task: usize,
        to: Option<&'static str>,
        news: bool,
        changed: usize,
    },
    Accept {
        who: &'static str,
        task: usize,
        also: bool,
    },
    Decline {
        who: &'static str,
        task: usize,
    },
    /// Anyone shows any token it ever had with a result.
    Late {
        who: &'static str,
        token: usize,
    },
    Done {
        who: &'static str,
        task: usize,
    },
    Park {
        who: &'static str,
        task: usize,
    },
    Save {
        who: &'static str,
    },
    Settle,
    Active {
        who: &'static str,
    },
    Pass {
        minutes: u64,
    },
    Die {
        who: &'static str,
    },
    End {
        who: &'static str,
        grace: bool,
    },
    Return {
        who: &'static str,
    },
    Reopen {
        task: usize,
    },
    RaiseEpoch,
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
        let task = || 0..3_usize;
        let path = || 0..PATHS.len();
        prop_oneof![
            3 => path().prop_map(|path| Act::Add { path }),
            6 => (who(), any::<bool>()).prop_map(|(who, also)| Act::Take { who, also }),
            2 => (who(), path()).prop_map(|(who, path)| Act::Claim { who, path }),
            8 => (who(), task(), prop::option::of(who()), any::<bool>(), path())
                .prop_map(|(who, task, to, news, changed)| {
                    Act::Offer { who, task, to, news, changed }
                }),
            8 => (who(), task(), any::<bool>())
                .prop_map(|(who, task, also)| Act::Accept { who, task, also }),
            2 => (who(), task()).prop_map(|(who, task)| Act::Decline { who, task }),
            5 => (who(), 0..12_usize).prop_map(|(who, token)| Act::Late { who, token }),
            2 => (who(), task()).prop_map(|(who, task)| Act::Done { who, task }),
            1 => (who(), task()).prop_map(|(who, task)| Act::Park { who, task }),
            1 => who().prop_map(|who| Act::Save { who }),
            3 => Just(Act::Settle),
            3 => who().prop_map(|who| Act::Active { who }),
            4 => (1..40_u64).prop_map(|minutes| Act::Pass { minutes }),
            2 => who().prop_map(|who| Act::Die { who }),
            1 => (who(), any::<bool>()).prop_map(|(who, grace)| Act::End { who, grace }),
            3 => who().prop_map(|who| Act::Return { who }),
            1 => task().prop_map(|task| Act::Reopen { task }),
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
    /// Every token of an attempt that was given out: for which task, to whom.
    given: Vec<(TaskId, SessionId, Token)>,
    accepted: usize,
}

impl StateMachineTest for Stories {
    type SystemUnderTest = Ledger;
    type Reference = Self;

    fn init_test((): &()) -> Ledger {
        let world = World::with(SESSIONS.iter().copied());
        Ledger { world, given: Vec::new(), accepted: 0 }
    }

    fn apply(mut ledger: Ledger, (): &(), act: Act) -> Ledger {
        ledger.step(&act);
        ledger.assert_together();
        ledger.assert_apart();
        ledger
    }

    fn teardown(ledger: Ledger, (): ()) {
        ledger.world.audit();
    }
}

fn id(index: usize) -> String {
    TaskId::numbered(index as u64 + 1).0
}

impl Ledger {
    fn step(&mut self, act: &Act) {
        match *act {
            Act::Add { path } => {
                let made = self.world.tally().made;
                if made < 3 {
                    self.world.add_on(&format!("work number{made}"), &[PATHS[path]]);
                }
            }
            Act::Take { who, also } => {
                let request = taking::Request { claim: true, also, ..best() };
                if let Ok(taking::Answer::Taken(taken)) = self.world.taking(who, &request) {
                    self.given(taken.first.task, who, taken.first.token);
                }
            }
            Act::Claim { who, path } => drop(self.world.claim(who, [PATHS[path]]).answer()),
            Act::Offer { who, task, to, news, changed } => {
                let commits: &[&str] = if news { &["c"] } else { &[] };
                let seen = work(commits, &[PATHS[changed].trim_end_matches('/')]);
                drop(self.world.offers(who, &offering(&id(task), to), Some(seen)));
            }
            Act::Accept { who, task, also } => self.accept(who, &id(task), also),
            Act::Decline { who, task } => drop(self.world.declines(who, &id(task))),
            Act::Late { who, token } => self.late(who, token),
            Act::Done { who, task } => drop(self.world.finishes(who, &id(task), None)),
            Act::Park { who, task } => drop(self.world.parks(who, &id(task))),
            Act::Save { who } => drop(self.world.saves(who, None)),
            Act::Settle => drop(self.world.settle_offers()),
            Act::Active { who } => {
                if self.world.session(who).life == sessions::Life::Live {
                    self.world.acts(who);
                }
            }
            Act::Pass { minutes } => self.world.pass(Span::minutes(minutes)),
            Act::Die { who } => drop(self.world.dies(who)),
            Act::End { who, grace } => {
                drop(self.world.end(who, grace.then_some(sessions::GRACE)));
            }
            Act::Return { who } => drop(self.world.start(who, "main")),
            Act::Reopen { task } => drop(self.world.reopens(None, &id(task))),
            Act::RaiseEpoch => self.world.raise_epoch(),
        }
    }

    fn given(&mut self, task: TaskId, who: &str, token: Token) {
        let highest = self.given.iter().map(|(.., token)| *token).max();
        assert!(highest.is_none_or(|highest| highest < token), "tokens rise (S5)");
        self.given.push((task, self.world.id(who), token));
    }

    fn tasks(&self) -> Vec<Task> {
        self.world.records()
    }

    fn context(&mut self) -> baton_core::context::Context {
        self.world.context(None)
    }

    /// S15: all of it or nothing of it.
    fn accept(&mut self, who: &str, task: &str, also: bool) {
        let before = self.tasks().into_iter().find(|one| one.task.0 == task);
        let (store, claims) = (self.world.store.clone(), self.world.claims());
        match self.world.accepts_as(who, task, also) {
            Err(refusal) => {
                assert_eq!(self.world.store, store, "a refusal moves nothing: {refusal:?}");
                assert!(!matches!(refusal, Refusal::Held(_)), "nobody can be in the way");
            }
            Ok(accepted) => {
                self.accepted += 1;
                let before = before.unwrap();
                let giver = before.owner().unwrap();
                let (after, me) = (self.world.task(task), self.world.id(who));
                assert_ne!(giver.session, me);
                let owner = after.owner().unwrap();
                assert_eq!((&owner.session, owner.token), (&me, accepted.token));
                assert_eq!(owner.tree, giver.tree, "the tree goes along");
                let for_it = |one: &&baton_core::claim::Claim| one.task.as_deref() == Some(task);
                for old in claims.iter().filter(for_it) {
                    let now = self.world.claims();
                    assert!(now.iter().all(|one| one.token != old.token), "old tokens are dead");
                }
                for new in &accepted.claims {
                    let now = self.world.claims_of(who);
                    assert!(now.iter().any(|one| one.token == new.token));
                }
                self.given(accepted.task, who, accepted.token);
            }
        }
    }

    /// An attempt that is over is told so, with the one that counts, and changes nothing.
    fn late(&mut self, who: &str, index: usize) {
        let me = self.world.id(who);
        let own: Vec<(TaskId, Token)> = self
            .given
            .iter()
            .filter(|(_, to, _)| *to == me)
            .map(|(task, _, token)| (task.clone(), *token))
            .collect();
        let Some((task, token)) = own.get(index % own.len().max(1)).cloned() else { return };
        if self.world.session(who).life != sessions::Life::Live {
            return;
        }
        let context = self.context();
        let before = self.world.task(task.as_str());
        let counts = before.owner().is_some_and(|owner| {
            owner.session == me && owner.token == token && owner.is_live(&context)
        });
        if counts || before.state().is_finished() {
            return;
        }
        let store = self.world.store.clone();
        let refusal = self.world.finishes(who, task.as_str(), Some(token)).unwrap_err();
        assert_eq!(refusal.class(), Class::Stale, "{refusal:?}");
        let offer = self.world.offers(who, &late_offer(&task, token), None).unwrap_err();
        assert_eq!(offer.class(), Class::Stale, "{offer:?}");
        assert_eq!(self.world.store, store, "a late act changed something");
    }

    /// S15: the owner of a task and the holder of what is claimed for it are one.
    fn assert_together(&mut self) {
        let context = self.context();
        for task in self.tasks() {
            let claims = self.world.claims();
            let mut live = claims.iter().filter(|claim| {
                claim.task.as_deref() == Some(task.task.as_str()) && claim.is_live(&context)
            });
            match task.owner() {
                Some(owner) => {
                    let other = live.find(|claim| claim.hold.holder.session != owner.session);
                    assert!(other.is_none(), "S15: {task:?} and {other:?}");
                }
                None => assert!(live.next().is_none(), "S15: nobody owns {task:?}"),
            }
            if task.state() == State::Waiting {
                assert!(task.owner().is_none());
            }
        }
    }

    /// S1: no two live claims of different sessions are in conflict.
    fn assert_apart(&mut self) {
        let context = self.context();
        let mut claims = self.world.claims();
        claims.retain(|claim| claim.is_live(&context));
        let policy = Default::default();
        let scene = Scene {
            caller: None,
            policy,
            claims: vec![],
            waiters: vec![],
            leftovers: vec![],
            zones: vec![],
            interfaces: vec![],
        };
        for (at, one) in claims.iter().enumerate() {
            for two in &claims[at + 1..] {
                assert!(scene.clash(&one.hold, &two.hold).is_none(), "S1: {one:?} and {two:?}");
            }
        }
    }
}

fn late_offer(task: &TaskId, token: Token) -> baton_core::handoffs::offering::Request {
    baton_core::handoffs::offering::Request { token: Some(token), ..offering(task.as_str(), None) }
}
