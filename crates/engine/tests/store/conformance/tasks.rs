//! Many workers, one task: exactly one of them gets it, whatever the store.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};

use baton_core::context::{Actor, Context, Observed, Proof};
use baton_core::event::{Durability, Event};
use baton_core::evolve::evolve;
use baton_core::id::{Fresh, Position, TreeId};
use baton_core::journal::Entry;
use baton_core::overlay::Overlay;
use baton_core::refusal::Refusal;
use baton_core::sessions::{self, Start};
use baton_core::task::Move;
use baton_core::tasks::adding;
use baton_core::tasks::ending::{self, Done};
use baton_core::tasks::refused::Refused;
use baton_core::tasks::taking::{self, Answer};
use baton_core::time::Span;
use baton_core::view::View;
use baton_engine::store::{Commit, Store};

use super::super::writing::{PATIENCE, verified_journal};
use super::Fixture;

const ROUNDS: usize = 1_000;
const WORKERS: usize = 4;

/// One decision, as the engine makes it; short of the sync, which is not what is tried here.
fn decide<T>(
    store: &mut dyn Store,
    actor: &Actor,
    rule: impl FnOnce(&dyn View, &Context) -> Result<(Vec<Event>, T), Refusal>,
) -> Result<T, Refusal> {
    let transaction = store.begin(PATIENCE).unwrap();
    let state = transaction.state().clone();
    let mut seed = [7; 32];
    seed[..8].copy_from_slice(&state.head.position.number.to_le_bytes());
    let context = Context {
        now: state.now,
        next: Position { epoch: state.epoch, number: state.head.position.number + 1 },
        fresh: Fresh(seed),
        actor: actor.clone(),
        observed: Observed { complete: true, ..Observed::default() },
        failed_over_at: state.failed_over_at,
    };
    let mut overlay = Overlay::new(&*transaction);
    let (events, answer) = rule(&overlay, &context)?;
    let mut head = state.head.clone();
    let mut entries = Vec::new();
    for event in &events {
        let position = Position { epoch: state.epoch, number: head.position.number + 1 };
        let entry = Entry::next(&head, position, state.now, "", event);
        head = entry.head();
        entries.push(entry);
        evolve(&mut overlay, event).unwrap();
    }
    let changes = overlay.into_changes().unwrap();
    if !entries.is_empty() {
        let durability = Durability::Process;
        let commit = Commit { entries: &entries, changes: &changes, durability };
        transaction.commit(&commit).unwrap();
    }
    Ok(answer)
}

fn worker(store: &mut dyn Store, number: usize) -> Actor {
    let request = Start {
        // The same name for all: it is never an identity.
        name: Some("worker".to_owned()),
        client: None,
        client_session: None,
        continues: false,
        role: None,
        starter: None,
        process: None,
        host: "here".to_owned(),
        tree: TreeId("t".to_owned()),
        ttl: Span::hours(10),
        secret_hash: format!("secret {number}"),
    };
    let nobody = Actor::default();
    let started = decide(store, &nobody, |view, context| sessions::start(view, &request, context));
    let proof = Proof::Secret(format!("secret {number}"));
    Actor { session: Some(started.unwrap().session), proof, ..Actor::default() }
}

fn file(store: &mut dyn Store, round: usize) {
    let title = format!("work of round{round}");
    let request = adding::Request { title, ..adding::Request::default() };
    let nobody = Actor::default();
    decide(store, &nobody, |view, context| adding::add(view, &request, context)).unwrap();
}

/// Tries to take the one task there is: by its name, or as the best.
fn race(store: &mut dyn Store, actor: &Actor, round: usize) -> bool {
    let task = format!("t{}", round + 1);
    let named = round.is_multiple_of(2).then(|| task.clone());
    let request =
        taking::Request { task: named, count: 1, also: false, claim: false, explain: false };
    let answer = decide(store, actor, |view, context| taking::take(view, &request, context));
    let token = match answer {
        Ok(Answer::Taken(taken)) if taken.first.task.as_str() == task => taken.first.token,
        Ok(Answer::Nothing(_)) => return false,
        Err(Refusal::Task(refused)) => match *refused {
            Refused::Owned { .. } | Refused::WrongState { .. } => return false,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    };
    let request = Done {
        task,
        report_done: "it".to_owned(),
        report_not_done: "nothing".to_owned(),
        result: None,
        token: Some(token),
        facts: baton_core::tasks::evidence::Facts::default(),
    };
    decide(store, actor, |view, context| ending::done(view, &request, context)).unwrap();
    true
}

pub(crate) fn lesson_01_a_thousand_races_have_one_winner_each(fixture: &dyn Fixture) {
    let barrier = Barrier::new(WORKERS);
    let wins: Vec<AtomicUsize> = (0..ROUNDS).map(|_| AtomicUsize::new(0)).collect();
    std::thread::scope(|scope| {
        for number in 0..WORKERS {
            let (barrier, wins) = (&barrier, &wins);
            scope.spawn(move || {
                let mut store = fixture.open();
                let actor = worker(&mut *store, number);
                for (round, wins) in wins.iter().enumerate() {
                    if barrier.wait().is_leader() {
                        file(&mut *store, round);
                    }
                    barrier.wait();
                    if race(&mut *store, &actor, round) {
                        wins.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let lost = wins.iter().position(|wins| wins.load(Ordering::Relaxed) != 1);
    assert_eq!(lost, None, "S6: a round without exactly one winner");
    let mut store = fixture.open();
    let (mut taken, mut done) = (0, 0);
    for entry in verified_journal(&*store.snapshot().unwrap()) {
        match entry.event().unwrap() {
            Event::TaskMoved { how: Move::Taken, .. } => taken += 1,
            Event::TaskMoved { how: Move::Done, .. } => done += 1,
            _ => {}
        }
    }
    assert_eq!((taken, done), (ROUNDS, ROUNDS), "S7");
}
