//! Listening: woken when there is news, and only then.

use std::os::fd::AsFd;

use super::*;

#[test]
fn a_listener_wakes_on_a_commit_and_only_then() {
    let scratch = Scratch::new();
    let (mut store, mut other) = (scratch.open(), scratch.open());
    let mut news = store.news().unwrap();
    assert_eq!(news.wait(Duration::from_millis(50), &[]).unwrap(), Woken::TimedOut);
    write(&mut other, &session("a", "amber")).unwrap();
    // Sent before the wait began: still heard.
    assert_eq!(news.wait(PATIENCE, &[]).unwrap(), Woken::News);
    assert_eq!(news.wait(Duration::from_millis(50), &[]).unwrap(), Woken::TimedOut);
    let started = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(100));
            write(&mut other, &session("b", "birch")).unwrap();
        });
        assert_eq!(news.wait(PATIENCE, &[]).unwrap(), Woken::News);
    });
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_listener_wakes_on_other_descriptors_and_on_a_lost_connection() {
    let scratch = Scratch::new();
    let mut store = scratch.open();
    let mut news = store.news().unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    let also = [reader.as_fd()];
    assert_eq!(news.wait(Duration::from_millis(50), &also).unwrap(), Woken::TimedOut);
    drop(writer);
    assert_eq!(news.wait(PATIENCE, &also).unwrap(), Woken::Other);
    // A hint may be lost with the connection, so its loss is news, and then it listens again.
    scratch.sql(OTHERS);
    assert_eq!(news.wait(PATIENCE, &[]).unwrap(), Woken::News);
    write(&mut store, &session("a", "amber")).unwrap();
    assert_eq!(news.wait(PATIENCE, &[]).unwrap(), Woken::News);
}

#[test]
fn nobody_is_notified_when_nobody_listens() {
    let scratch = Scratch::new();
    let mut store = scratch.open();
    write(&mut store, &session("a", "amber")).unwrap();
    assert_eq!(scratch.sql("select waiting_until from baton.workspaces"), "0");
    // A decision under way delays the listener's registration: see `news.rs`.
    let mut other = scratch.open();
    let held = store.begin(PATIENCE).unwrap();
    std::thread::scope(|scope| {
        let listening = scope.spawn(|| {
            let mut news = other.news().unwrap();
            (Instant::now(), news.wait(Duration::from_millis(300), &[]).unwrap())
        });
        std::thread::sleep(Duration::from_millis(200));
        let released = Instant::now();
        drop(held);
        let (listens, woken) = listening.join().unwrap();
        assert!(listens > released);
        assert_eq!(woken, Woken::TimedOut);
    });
}
