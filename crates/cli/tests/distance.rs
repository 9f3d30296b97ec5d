//! A shared store far away, and one that does not answer.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::harness::Scratch;
use crate::hooks::{Agent, denied};
use crate::shared_store::address;

/// There and back.
const DISTANCE: Duration = Duration::from_millis(80);
const FAR_START: Duration = Duration::from_millis(40);

/// The same address by a way that takes so long.
fn far(address: &str, distance: Duration) -> String {
    let server = server_of(address).to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        while let Ok((client, _)) = listener.accept() {
            let upstream = TcpStream::connect(&server).unwrap();
            client.set_nodelay(true).unwrap();
            upstream.set_nodelay(true).unwrap();
            let back = (upstream.try_clone().unwrap(), client.try_clone().unwrap());
            delay(back.0, back.1, distance / 2);
            delay(client, upstream, distance / 2);
        }
    });
    elsewhere(address, port)
}

fn server_of(address: &str) -> &str {
    address.split('@').nth(1).unwrap().split('/').next().unwrap()
}

fn elsewhere(address: &str, port: u16) -> String {
    address.replace(server_of(address), &format!("127.0.0.1:{port}"))
}

/// Passes on what comes, so much later.
fn delay(mut from: TcpStream, mut to: TcpStream, by: Duration) {
    let (sent, due) = mpsc::channel::<(Instant, Vec<u8>)>();
    std::thread::spawn(move || {
        let mut buffer = [0; 65_536];
        while let Ok(read @ 1..) = from.read(&mut buffer) {
            if sent.send((Instant::now() + by, buffer[..read].to_vec())).is_err() {
                break;
            }
        }
    });
    std::thread::spawn(move || {
        for (at, bytes) in due {
            std::thread::sleep(at.saturating_duration_since(Instant::now()));
            if to.write_all(&bytes).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    });
}

/// A workspace on PostgreSQL, and its address.
fn workspace() -> Option<(Scratch, String)> {
    let address = address()?;
    let scratch = Scratch::repository().on_store(&address);
    scratch.baton(&["init", "--yes", "--agents", "none"]).ok();
    Some((scratch, address))
}

#[test]
fn a_store_far_away_does_not_open_the_doors() {
    let Some((scratch, address)) = workspace() else { return };
    let scratch = scratch.on_store(&far(&address, FAR_START));
    let ann = Agent { scratch: &scratch, client: "claude", id: "ann" };
    let bob = Agent { scratch: &scratch, client: "claude", id: "bob" };
    for agent in [&ann, &bob] {
        let begun = agent.tells(json!({"hook_event_name": "SessionStart", "source": "startup"}));
        assert!(begun.out.contains("You are"), "{begun:?}");
    }
    let scratch = Scratch { store: Some(far(&address, DISTANCE)), ..scratch };
    let ann = Agent { scratch: &scratch, client: "claude", id: "ann" };
    let bob = Agent { scratch: &scratch, client: "claude", id: "bob" };
    let free = ann.write("src/a.rs", "fn b() {}\n");
    assert_eq!(free.out, "", "{free:?}");
    assert!(denied(&bob.write("src/a.rs", "x")).is_some_and(|why| why.contains("is held by")));
    assert!(denied(&bob.shell("before", "echo x > src/a.rs")).is_some());
}

/// Accepts, and says nothing.
fn mute() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

#[test]
fn a_server_that_hangs_keeps_no_hook_and_no_commit() {
    let Some((scratch, address)) = workspace() else { return };
    scratch.baton(&["init", "--yes", "--agents", "claude"]).ok();
    let (_mute, port) = mute();
    let settings = scratch.path("home/.config/baton");
    std::fs::create_dir_all(&settings).unwrap();
    let text = format!("store = \"{}\"\n", elsewhere(&address, port));
    std::fs::write(settings.join("config.toml"), text).unwrap();
    // By the user's own settings, so that nothing in the environment tells of it.
    let scratch = Scratch { store: None, ..scratch };
    let ann = Agent { scratch: &scratch, client: "claude", id: "ann" };
    let begun = Instant::now();
    let said = ann.write("src/a.rs", "x");
    assert!(said.out.contains("no answer within 2 s"), "{said:?}");
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    scratch.write("src/b.rs", "fn b() {}\n");
    scratch.git(&["add", "-A"]);
    let begun = Instant::now();
    scratch.git(&["commit", "-qm", "b"]);
    // Two hooks of git ask.
    assert!(begun.elapsed() < Duration::from_secs(7), "{:?}", begun.elapsed());
}
