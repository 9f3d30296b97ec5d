//! A shared store whose server has no connection to spare.

use std::time::{Duration, Instant};

use baton_engine::store::postgres::Postgres;
use baton_testing::cluster;
use serde_json::json;

use crate::harness::Scratch;
use crate::hooks::{Agent, denied};
use crate::mcp::{Client, PATIENCE};
use crate::shared_store::address;

fn database(address: &str) -> String {
    let name = address.rsplit('/').next().unwrap();
    name.split('?').next().unwrap().to_owned()
}

fn sql(address: &str, sql: &str) -> String {
    cluster::shared().unwrap().sql(&database(address), sql).unwrap()
}

/// A workspace on PostgreSQL, and its address.
fn workspace() -> Option<(Scratch, String)> {
    let address = address()?;
    let scratch = Scratch::repository().on_store(&address);
    scratch.baton(&["init", "--yes", "--agents", "none"]).ok();
    Some((scratch, address))
}

/// The same for a user that has one connection.
fn lonely(address: &str) -> String {
    let user = format!("lonely_{}", database(address));
    sql(
        address,
        &format!(
            "create user {user} password '{}' connection limit 1; \
             grant usage on schema baton to {user}; \
             grant select, insert, update, delete on all tables in schema baton to {user}",
            cluster::PASSWORD
        ),
    );
    address.replace("baton_test:", &format!("{user}:"))
}

#[test]
fn a_full_server_does_not_open_the_doors_at_once() {
    let Some((scratch, address)) = workspace() else { return };
    let ann = Agent { scratch: &scratch, client: "claude", id: "ann" };
    ann.tells(json!({"hook_event_name": "SessionStart", "source": "startup"}));
    assert_eq!(ann.write("src/a.rs", "fn b() {}\n").out, "");
    let address = lonely(&address);
    let scratch = scratch.on_store(&address);
    let bob = Agent { scratch: &scratch, client: "claude", id: "bob" };
    bob.tells(json!({"hook_event_name": "SessionStart", "source": "startup"}));

    let held = Postgres::connect(&address).unwrap();
    let freed = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(400));
        drop(held);
    });
    let said = bob.write("src/a.rs", "x");
    assert!(denied(&said).is_some_and(|why| why.contains("is held by")), "{said:?}");
    freed.join().unwrap();

    let held = Postgres::connect(&address).unwrap();
    for said in [bob.write("src/a.rs", "x"), bob.shell("before", "echo x > src/a.rs")] {
        assert!(said.out.contains("PostgreSQL has no free connection"), "{said:?}");
        assert!(said.out.contains("max_connections"), "{said:?}");
        assert!(!said.out.contains("BATON_STORE"), "{said:?}");
    }
    let begun = Instant::now();
    let said = scratch.baton(&["status"]).refused(4);
    assert!(said.err.contains("no free connection") && said.err.contains("next: "), "{said:?}");
    let took = begun.elapsed();
    assert!(took >= Duration::from_secs(4) && took < Duration::from_secs(10), "{took:?}");
    drop(held);
}

#[test]
fn a_server_of_tools_without_calls_lets_go_of_its_connection() {
    let Some((scratch, address)) = workspace() else { return };
    scratch.allow_test_hooks();
    let ann = scratch.session("ann");
    let connections = || {
        let told = sql(
            &address,
            "select count(*) from pg_stat_activity \
             where datname = current_database() and pid <> pg_backend_pid()",
        );
        told.trim().parse::<usize>().unwrap()
    };
    let wait_for = |wanted: usize| {
        let begun = Instant::now();
        while connections() != wanted {
            assert!(begun.elapsed() < PATIENCE, "{} connections", connections());
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    let mut patient = Client::of_session(&scratch, &ann);
    patient.good("claim", &json!({ "resources": ["src/a.rs"] }));
    let mut command = scratch.command(&["mcp"]);
    command.env("BATON_SESSION", &ann).env("BATON_TEST_IDLE_MS", "1500");
    let mut idle = Client::of(&mut command);
    idle.initialize("2025-06-18");
    for path in ["src/b.rs", "src/c.rs"] {
        idle.good("claim", &json!({ "resources": [path] }));
        wait_for(2);
        // And it comes back for the next call.
        wait_for(1);
    }
    patient.good("claim", &json!({ "resources": ["src/d.rs"] }));
    assert_eq!(connections(), 1);
    idle.close();
    patient.close();
}
