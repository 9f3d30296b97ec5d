//! Measures the PostgreSQL store as resident processes use it: connections that stay open.
//!
//! `measure_postgres ADDRESS CONNECTIONS SECONDS one|many` lets each connection make decisions
//! (lock, seven questions, one record with an index entry, one journal entry, commit), all in one
//! workspace or each in its own, and shows commits per second and how long they took. Without an
//! address (`-`) it starts a cluster of its own. Run it with `--release`.

use std::error::Error;
use std::time::{Duration, Instant};

use baton_core::event::{Durability, Event};
use baton_core::id::Position;
use baton_core::journal::Entry;
use baton_core::overlay::Overlay;
use baton_core::view::{Query, Records, View};
use baton_engine::store::postgres::{Postgres, Workspace};
use baton_engine::store::{Commit, Store};
use baton_testing::cluster;

type Done<T> = Result<T, Box<dyn Error + Send + Sync>>;

const PATIENCE: Duration = Duration::from_secs(60);

fn main() -> Done<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let [address, connections, seconds, spread] = words[..] else {
        return Err("measure_postgres ADDRESS|- CONNECTIONS SECONDS one|many".into());
    };
    let address = match address {
        "-" => {
            let cluster = cluster::shared().map_err(ToString::to_string)?;
            cluster.address(&cluster.create_database()?)
        }
        address => address.to_owned(),
    };
    let (connections, seconds) = (connections.parse()?, seconds.parse()?);
    let took = crowd(&address, connections, Duration::from_secs(seconds), spread == "many")?;
    let at = |part: f64| took[((took.len() - 1) as f64 * part) as usize];
    println!(
        "{connections} connections, {spread}: {:.0} commits/s, p50 {:?}, p99 {:?}, longest {:?}",
        took.len() as f64 / seconds as f64,
        at(0.5),
        at(0.99),
        at(1.0),
    );
    Ok(())
}

/// How long each commit took, from asking for the lock to the acknowledgement; sorted.
fn crowd(address: &str, count: u32, length: Duration, many: bool) -> Done<Vec<Duration>> {
    let mut stores = Vec::new();
    for n in 0..count {
        let id = format!("{:016x}", if many { n + 1 } else { 0 });
        let mut server = Postgres::connect(address)?;
        if many || n == 0 {
            server.create_workspace(&id, None, None)?;
        }
        stores.push(server.open_workspace(&id)?);
    }
    std::thread::scope(|scope| {
        let spawn = |(n, store)| scope.spawn(move || one(store, n, length));
        let threads: Vec<_> = (0..).zip(stores).map(spawn).collect();
        let mut all = Vec::new();
        for thread in threads {
            all.extend(thread.join().map_err(|_| "a thread failed")??);
        }
        all.sort();
        Ok(all)
    })
}

fn one(mut store: Workspace, thread: u32, length: Duration) -> Done<Vec<Duration>> {
    let (mut took, start) = (Vec::new(), Instant::now());
    for n in 0.. {
        let begun = Instant::now();
        if begun.duration_since(start) > length {
            break;
        }
        decide(&mut store, &format!("n{thread}.{}", n % 100))?;
        took.push(begun.elapsed());
    }
    Ok(took)
}

/// About what a claim asks and writes.
fn decide(store: &mut dyn Store, key: &str) -> Done<()> {
    let transaction = store.begin(PATIENCE)?;
    let mut queries = vec![
        Query::Get { kind: "session", key: "s1".to_owned() },
        Query::Get { kind: "alias", key: "process:1".to_owned() },
        Query::Get { kind: "policy", key: "policy".to_owned() },
        Query::Get { kind: "notice", key: key.to_owned() },
    ];
    for value in ["src", "src/store", "src/store/a.rs"] {
        queries.push(Query::equal("claim.resource", value, 100));
    }
    let mut overlay = Overlay::new(&*transaction);
    overlay.read(&queries)?;
    let body = format!(
        r#"{{"notice":"{key}","to":"s{key}","at":"2024-01-01T00:00:00.000Z","news":"lost",
        "claim":"c1","resources":[],"why":"{}"}}"#,
        "x".repeat(200)
    );
    overlay.put("notice", key, body)?;
    let changes = overlay.into_changes()?;
    let state = transaction.state();
    let position = Position { epoch: state.epoch, number: state.head.position.number + 1 };
    let event = Event::EpochRaised { why: "a measurement".to_owned() };
    let entries = [Entry::next(&state.head, position, state.now, "s1", &event)];
    let durability = Durability::Process;
    transaction.commit(&Commit { entries: &entries, changes: &changes, durability })?;
    Ok(())
}
