//! Connections that end at the worst moment.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};

use super::*;

#[test]
fn a_connection_lost_before_the_commit_means_not_done() {
    let scratch = Scratch::new();
    let mut store = scratch.open();
    let transaction = store.begin(PATIENCE).unwrap();
    let (entries, changes) = plan(&*transaction, &session("a", "amber"));
    scratch.sql(OTHERS);
    let commit = Commit { entries: &entries, changes: &changes, durability: Durability::Process };
    let error = transaction.commit(&commit).unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error:?}");
    // The next one finds a new connection by itself.
    assert_eq!(write(&mut store, &session("b", "birch")).unwrap().head.position, Position::START);
    scratch.sql(OTHERS);
    assert_eq!(state(&mut store).head.position.number, 1);
    scratch.sql(OTHERS);
    store.set_trace("k", "v").unwrap();
}

/// The moment at which a [`Proxy`] cuts the line.
#[derive(Clone, Copy, Debug)]
enum Cut {
    /// What is written does not arrive, nor does the COMMIT that is sent with it.
    BeforeCommit,
    /// Both arrive, the answer does not.
    AfterCommit,
}

/// Stands between the store and the server and cuts the first line that reaches the moment.
fn proxy(cut: Cut) -> String {
    let server = cluster().address("").split('@').nth(1).unwrap().trim_end_matches('/').to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let mut armed = true;
        while let Ok((client, _)) = listener.accept() {
            let upstream = TcpStream::connect(&server).unwrap();
            let back = (upstream.try_clone().unwrap(), client.try_clone().unwrap());
            let forward = armed.then_some(cut);
            armed = false;
            let answers = std::thread::spawn(move || pass(back.0, back.1, None));
            std::thread::spawn(move || {
                pass(client, upstream, forward);
                answers.join().unwrap();
            });
        }
    });
    format!("127.0.0.1:{port}")
}

fn pass(mut from: TcpStream, mut to: TcpStream, cut: Option<Cut>) {
    let mut buffer = [0; 65_536];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        let sent = &buffer[..read];
        let contains = |text: &[u8]| sent.windows(text.len()).any(|window| window == text);
        let reached = match cut {
            Some(_) => contains(b"COMMIT\0"),
            None => false,
        };
        if reached {
            let _ = from.shutdown(Shutdown::Both);
        }
        if !reached || matches!(cut, Some(Cut::AfterCommit)) {
            let _ = to.write_all(sent);
        }
        if reached {
            // Lets the server finish what it got.
            std::thread::sleep(Duration::from_millis(300));
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}

/// An answer "done" must be true, and an error must be "not done" and true, or "unknown".
#[test]
fn a_connection_lost_at_the_commit_is_never_a_false_answer() {
    for (cut, done) in [(Cut::BeforeCommit, false), (Cut::AfterCommit, true)] {
        let scratch = Scratch::new();
        let address = scratch.address();
        let server = address.split('@').nth(1).unwrap().split('/').next().unwrap();
        let through = format!("{}?sslmode=disable", address.replace(server, &proxy(cut)));
        let mut store = Postgres::connect(&through).unwrap().open_workspace(ID).unwrap();
        let error = write(&mut store, &session("a", "amber")).unwrap_err();
        assert!(matches!(error, Error::OutcomeUnknown { .. }), "{cut:?}: {error:?}");
        assert!(!error.to_string().contains(PASSWORD));
        // The same store finds a new line by itself, and the truth with it.
        let transaction = store.begin(PATIENCE).unwrap();
        assert_eq!(get::<Session>(&*transaction, "a").unwrap().is_some(), done, "{cut:?}");
    }
}

/// The server ends the backend while it works at the commit.
#[test]
fn a_backend_ended_in_the_commit_leaves_the_outcome_unknown() {
    let scratch = Scratch::new();
    scratch.sql(
        "create function slow() returns trigger language plpgsql as \
         $$ begin perform pg_sleep(5); return null; end $$; \
         create constraint trigger slow after insert on baton.journal \
         deferrable initially deferred for each row execute function slow()",
    );
    let mut store = scratch.open();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let ended = format!("{OTHERS} and query = 'COMMIT' and state = 'active'");
            while scratch.sql(&ended).is_empty() {
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        let error = write(&mut store, &session("a", "amber")).unwrap_err();
        assert!(matches!(error, Error::OutcomeUnknown { .. }), "{error:?}");
    });
    assert_eq!(state(&mut store).head.position, Position::START);
}
