//! Measures the SQLite store as hooks use it: fresh processes that open, read or write, and end.
//!
//! `measure_store warm FOLDER` times calls one by one. `measure_store crowd FOLDER N SECONDS` lets
//! N loops start fresh processes that each commit once, and shows how long commits took from
//! asking for the gate to the acknowledgement. Run it with `--release`.

use std::error::Error;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use baton_core::event::{Durability, Event};
use baton_core::id::Position;
use baton_core::journal::Entry;
use baton_core::overlay::Overlay;
use baton_core::view::{Query, Records};
use baton_engine::store::sqlite::Sqlite;
use baton_engine::store::{Commit, Store};

type Done = Result<(), Box<dyn Error>>;

const PATIENCE: Duration = Duration::from_secs(60);

fn main() -> Done {
    let arguments: Vec<String> = std::env::args().collect();
    let words: Vec<&str> = arguments.iter().skip(1).map(String::as_str).collect();
    match words[..] {
        ["warm", folder] => warm(Path::new(folder)),
        ["crowd", folder, count, seconds] => {
            crowd(Path::new(folder), count.parse()?, seconds.parse()?)
        }
        ["read", folder] => read(&mut Sqlite::open(Path::new(folder))?),
        ["commit", folder] => once(Path::new(folder)),
        _ => Err("warm FOLDER | crowd FOLDER COUNT SECONDS".into()),
    }
}

/// What a `check` asks: a session, its alias, claims by three prefixes, its notices.
fn read(store: &mut dyn Store) -> Done {
    let snapshot = store.snapshot()?;
    let mut queries = vec![
        Query::Get { kind: "session", key: "s1".to_owned() },
        Query::Get { kind: "alias", key: "process:1".to_owned() },
        Query::Get { kind: "policy", key: "policy".to_owned() },
        Query::equal("notice.session", "s1", 20),
    ];
    for value in ["src", "src/store", "src/store/a.rs"] {
        queries.push(Query::equal("claim.resource", value, 100));
    }
    snapshot.read(&queries)?;
    Ok(())
}

/// About what a claim writes: a record with two index entries, one journal entry.
fn commit(store: &mut dyn Store, key: &str, durability: Durability) -> Done {
    let transaction = store.begin(PATIENCE)?;
    let body = format!(
        r#"{{"notice":"{key}","to":"s{}","at":"2024-01-01T00:00:00.000Z","news":"lost",
        "claim":"c1","resources":[],"why":"{}"}}"#,
        key.len(),
        "x".repeat(300)
    );
    let mut overlay = Overlay::new(&*transaction);
    overlay.put("notice", key, body)?;
    let changes = overlay.into_changes()?;
    let state = transaction.state();
    let position = Position { epoch: state.epoch, number: state.head.position.number + 1 };
    let event = Event::EpochRaised { why: "x".repeat(300) };
    let entry = Entry::next(&state.head, position, state.now, "s1", &event);
    transaction.commit(&Commit { entries: &[entry], changes: &changes, durability })?;
    Ok(())
}

fn show(name: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |share: usize| times.get(times.len() * share / 1_000).copied().unwrap_or_default();
    let mean = times.iter().sum::<Duration>() / u32::try_from(times.len()).unwrap_or(1).max(1);
    let max = times.last().copied().unwrap_or_default();
    println!(
        "{name:32} n {:6}  mean {mean:9.1?}  min {:9.1?}  p50 {:9.1?}  p99 {:9.1?}  max {max:9.1?}",
        times.len(),
        at(0),
        at(500),
        at(990)
    );
}

fn timed(name: &str, count: usize, mut work: impl FnMut(usize) -> Done) -> Done {
    let mut times = Vec::with_capacity(count);
    for n in 0..count {
        let start = Instant::now();
        work(n)?;
        times.push(start.elapsed());
    }
    show(name, times);
    Ok(())
}

fn warm(folder: &Path) -> Done {
    let mut store = Sqlite::create(folder)?;
    for n in 0..1_000 {
        commit(&mut store, &format!("n{n}"), Durability::Process)?;
    }
    store.checkpoint()?;
    commit(&mut store, "n", Durability::Process)?;
    timed("resident read", 5_000, |_| read(&mut store))?;
    timed("resident commit", 2_000, |n| {
        commit(&mut store, &format!("n{}", n % 100), Durability::Process)
    })?;
    timed("resident commit, synced", 100, |_| commit(&mut store, "n", Durability::Power))?;
    timed("open, another has it open", 1_000, |_| {
        Sqlite::open(folder).map(drop).map_err(Into::into)
    })?;
    timed("open+read, another has it open", 1_000, |_| read(&mut Sqlite::open(folder)?))?;
    timed("open+commit, another has it open", 1_000, |_| once(folder))?;
    drop(store);
    let mut store = Sqlite::open(folder)?;
    store.checkpoint()?;
    drop(store);
    timed("open+read, alone", 1_000, |_| read(&mut Sqlite::open(folder)?))?;
    timed("open+commit, alone", 1_000, |_| once(folder))?;
    timed("process: nothing", 300, |_| run(folder, "nothing"))?;
    timed("process: open+read, alone", 300, |_| run(folder, "read"))?;
    timed("process: open+commit, alone", 300, |_| run(folder, "commit"))
}

fn once(folder: &Path) -> Done {
    let start = Instant::now();
    let key = format!("n{}", std::process::id() % 100);
    commit(&mut Sqlite::open(folder)?, &key, Durability::Process)?;
    if std::env::var_os("SHOW").is_some() {
        println!("{}", start.elapsed().as_nanos());
    }
    Ok(())
}

fn run(folder: &Path, what: &str) -> Done {
    let mut command = Command::new(std::env::current_exe()?);
    let command = command.arg(what).arg(folder).stdout(Stdio::null()).stderr(Stdio::null());
    command.status()?;
    Ok(())
}

fn crowd(folder: &Path, count: usize, seconds: u64) -> Done {
    drop(Sqlite::create(folder)?);
    let end = Instant::now() + Duration::from_secs(seconds);
    let program = std::env::current_exe()?;
    let looped = || {
        let mut times = Vec::new();
        let mut failed = 0;
        while Instant::now() < end {
            let mut command = Command::new(&program);
            let output = command.arg("commit").arg(folder).env("SHOW", "1").output();
            let nanos = output
                .ok()
                .and_then(|output| String::from_utf8_lossy(&output.stdout).trim().parse().ok());
            match nanos {
                Some(nanos) => times.push(Duration::from_nanos(nanos)),
                None => failed += 1,
            }
        }
        (times, failed)
    };
    let (mut all, mut failures) = (Vec::new(), 0);
    std::thread::scope(|scope| {
        let loops: Vec<_> = (0..count).map(|_| scope.spawn(looped)).collect();
        for (times, failed) in loops.into_iter().filter_map(|one| one.join().ok()) {
            all.extend(times);
            failures += failed;
        }
    });
    show(&format!("crowd of {count}, {failures} failed"), all);
    let log = std::fs::metadata(folder.join("store.db-wal"))?.len();
    println!("log {log} bytes");
    Ok(())
}
