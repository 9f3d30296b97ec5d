//! Eight processes that claim, renew, check and release, some killed in the act: what they saw is
//! held against the journal (S1, S4, S5, S12, real-time order), on every store.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use baton_proof::traffic::{self, Ground, Plan, Program};
use baton_proof::worker::{self, Prize, Task};

const WORKERS: usize = 8;
const TRAFFIC: Duration = Duration::from_secs(6);
const RACE: Duration = Duration::from_secs(2);

/// One crowd at a time: four at once would mostly wait for a processor.
static TURN: Mutex<()> = Mutex::new(());

/// Not a test by itself: this program becomes a worker when it finds a task in its environment.
#[test]
fn worker() {
    if let Some(task) = Task::from_environment() {
        worker::run(&task).unwrap();
    }
}

fn plan(store: Option<&str>, time: Duration, faults: bool) -> Plan {
    let words = ["history::worker", "--exact", "--nocapture", "--test-threads=1"];
    Plan {
        workers: WORKERS,
        time,
        store: store.map(str::to_owned),
        faults,
        baton: Some(env!("CARGO_BIN_EXE_baton").into()),
        program: Program {
            path: std::env::current_exe().unwrap(),
            arguments: words.map(str::to_owned).to_vec(),
        },
    }
}

fn prove(store: Option<&str>) {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let ground = Ground::make(store).unwrap();
    let faults = traffic::run(&ground, &plan(store, TRAFFIC, true), 7, &mut |_| {}).unwrap();
    let report = ground.check().unwrap();
    assert_eq!(report.violations, [], "kept: {}", ground.keep().display());
    // A proof over nothing would prove nothing.
    assert!(report.grants > 10 && report.refused > 10 && faults.kills > 2, "{report:?} {faults:?}");
}

/// Named after the incident: two workers ran `claim` on one thing and both won.
fn race_for_one_path(store: Option<&str>) {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let ground = Ground::make(store).unwrap();
    let score = traffic::race(&ground, &plan(store, RACE, false), Prize::Path, 11).unwrap();
    assert_eq!(score.violations, 0, "{score:?}");
    assert!(score.rounds > 10 && score.refused > 10, "{score:?}");
}

fn postgres() -> String {
    let cluster = baton_testing::cluster::shared().unwrap();
    cluster.address(&cluster.create_database().unwrap())
}

#[test]
fn s1_s4_s5_s12_histories_of_killed_processes_hold_on_sqlite() {
    prove(None);
}

#[test]
fn s1_s4_s5_s12_histories_of_killed_processes_hold_on_postgresql() {
    prove(Some(&postgres()));
}

#[test]
fn lesson_1_a_race_for_one_path_has_one_holder_on_sqlite() {
    race_for_one_path(None);
}

#[test]
fn lesson_1_a_race_for_one_path_has_one_holder_on_postgresql() {
    race_for_one_path(Some(&postgres()));
}
