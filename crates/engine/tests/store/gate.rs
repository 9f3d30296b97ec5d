//! The gate: bounded, fair, and named.

use std::time::{Duration, Instant};

use baton_core::event::Durability;
use baton_engine::store::{Error, Store};
use rustix::process::Signal;

use super::processes::{said, signal, spawn};
use super::sqlite::InFolder;
use super::writing::{PATIENCE, increment};

#[test]
fn a_stopped_holder_is_named_within_patience() {
    let fixture = InFolder::new();
    let mut child = spawn("hold", fixture.path());
    assert_eq!(said(&mut child).next().as_deref(), Some("held"));
    signal(&child, Signal::STOP);
    let mut store = fixture.sqlite();
    for _ in 0..2 {
        let start = Instant::now();
        let busy = store.begin(Duration::from_millis(200)).map(|_| ());
        let waited = start.elapsed();
        let Err(Error::Busy { pid, waited_ms }) = busy else { panic!("{busy:?}") };
        assert_eq!(pid, child.id());
        assert!(waited_ms >= 200 && waited >= Duration::from_millis(200));
        assert!(waited < Duration::from_secs(3), "{waited:?}");
    }
    assert!(store.snapshot().is_ok(), "reading needs no gate");
    // Dead while stopped: the kernel opens the gate.
    child.kill().unwrap();
    child.wait().unwrap();
    increment(&mut store, "n", Durability::Process).unwrap();
}

#[test]
fn a_wait_that_was_given_up_holds_nobody_up() {
    let fixture = InFolder::new();
    let (mut one, mut two, mut three) = (fixture.sqlite(), fixture.sqlite(), fixture.sqlite());
    let held = one.begin(PATIENCE).unwrap();
    assert!(two.begin(Duration::from_millis(10)).is_err());
    drop(held);
    // The thread that `two` left in the queue gets the gate and must let it go at once.
    for _ in 0..20 {
        increment(&mut three, "n", Durability::Process).unwrap();
        increment(&mut two, "n", Durability::Process).unwrap();
    }
}

#[test]
fn a_gate_that_was_deleted_comes_back() {
    let fixture = InFolder::new();
    let mut store = fixture.sqlite();
    increment(&mut store, "n", Durability::Process).unwrap();
    std::fs::remove_file(fixture.file("gate")).unwrap();
    std::fs::remove_file(fixture.file("news")).unwrap();
    increment(&mut store, "n", Durability::Process).unwrap();
    assert!(fixture.file("gate").exists() && fixture.file("news").exists());
}

#[test]
fn every_waiter_gets_its_turn() {
    const EACH: usize = 60;
    let fixture = InFolder::new();
    let times: Vec<Duration> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    let mut store = fixture.sqlite();
                    let mut times = Vec::new();
                    for _ in 0..EACH {
                        let start = Instant::now();
                        increment(&mut store, "n", Durability::Process).unwrap();
                        times.push(start.elapsed());
                    }
                    times
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    // Generous, because the machine may be busy: a writer that starves waits for seconds.
    let longest = times.iter().max().unwrap();
    assert!(*longest < Duration::from_secs(5), "{longest:?}");
}

/// How many have joined the line so far.
fn end_is_free(fixture: &InFolder) -> bool {
    let end = std::fs::File::open(fixture.path().join("queue/end"));
    let how = rustix::fs::FlockOperation::NonBlockingLockExclusive;
    end.is_ok_and(|end| rustix::fs::flock(&end, how).is_ok())
}

fn joined(fixture: &InFolder) -> u32 {
    let end = std::fs::read(fixture.file("queue/end")).unwrap_or_default();
    end.try_into().map_or(0, u32::from_le_bytes)
}

#[test]
fn who_came_first_is_served_first() {
    const WAITERS: u32 = 6;
    let fixture = InFolder::new();
    let mut holder = fixture.sqlite();
    let started = Instant::now();
    let held = holder.begin(PATIENCE).unwrap();
    let served = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for waiter in 1..=WAITERS {
            let (fixture, served) = (&fixture, &served);
            scope.spawn(move || {
                let mut store = fixture.sqlite();
                let turn = store.begin(PATIENCE).unwrap();
                served.lock().unwrap().push(waiter);
                drop(turn);
            });
            while joined(fixture) < waiter {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        drop(held);
    });
    // On a machine so busy that their patience with the line was over, the order is anybody's.
    if started.elapsed() < Duration::from_millis(400) {
        assert_eq!(*served.lock().unwrap(), Vec::from_iter(1..=WAITERS));
    }
}

#[test]
fn who_stops_or_dies_in_line_holds_nobody_up() {
    let fixture = InFolder::new();
    let mut holder = fixture.sqlite();
    let held = holder.begin(PATIENCE).unwrap();
    let mut first = spawn("hold", fixture.path());
    // In line, and no longer busy with joining it: who is stopped in the middle of that keeps the
    // end of the line to itself, and whoever comes then goes without a place.
    while joined(&fixture) < 1 || !end_is_free(&fixture) {
        std::thread::sleep(Duration::from_millis(1));
    }
    signal(&first, Signal::STOP);
    std::thread::scope(|scope| {
        let second = scope.spawn(|| increment(&mut fixture.sqlite(), "n", Durability::Process));
        while joined(&fixture) < 2 {
            std::thread::sleep(Duration::from_millis(1));
        }
        drop(held);
        second.join().unwrap().unwrap();
    });
    // Behind the second, who is through: the stopped one is not met at all.
    let start = Instant::now();
    increment(&mut holder, "n", Durability::Process).unwrap();
    assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
    first.kill().unwrap();
    first.wait().unwrap();
    increment(&mut holder, "n", Durability::Process).unwrap();
}
