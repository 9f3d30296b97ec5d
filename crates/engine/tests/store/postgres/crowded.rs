//! A server that has no connection to spare, or is about to start, is tried again.

use std::io::{Read, Write};

use super::*;

/// The address of a user that has one connection.
fn lonely(scratch: &Scratch) -> String {
    let user = format!("lonely_{}", scratch.database);
    scratch.sql(&format!(
        "create user {user} password '{PASSWORD}' connection limit 1; \
         grant usage on schema baton to {user}; \
         grant select, insert, update, delete on all tables in schema baton to {user}"
    ));
    scratch.address().replace("baton_test:", &format!("{user}:"))
}

#[test]
fn a_connection_that_is_soon_free_is_waited_for() {
    let scratch = Scratch::new();
    let address = lonely(&scratch);
    let held = Postgres::connect(&address).unwrap();
    let begun = Instant::now();
    let freed = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(400));
        drop(held);
    });
    let mut store = Postgres::connect_to_workspace(&address, ID).unwrap();
    assert!(begun.elapsed() >= Duration::from_millis(400), "{:?}", begun.elapsed());
    assert_eq!(write(&mut store, &session("a", "amber")).unwrap().epoch, 1);
    freed.join().unwrap();
}

#[test]
fn a_server_that_stays_full_is_told_as_full() {
    let scratch = Scratch::new();
    let address = lonely(&scratch);
    let _held = Postgres::connect(&address).unwrap();
    let begun = Instant::now();
    let error = Postgres::connect(&address).unwrap_err();
    assert!(matches!(error, Error::NoConnection { .. }), "{error:?}");
    assert!(error.to_string().contains("too many connections for role"), "{error}");
    assert!(!error.to_string().contains(PASSWORD), "{error}");
    let took = begun.elapsed();
    assert!(took >= Duration::from_secs(4) && took < Duration::from_secs(9), "{took:?}");
}

#[test]
fn a_server_that_starts_is_tried_again_and_one_that_does_not_listen_is_not() {
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let codes = ["57P03", "57P03", "57P02", "57P01", "28000"];
    let answering = std::thread::spawn(move || {
        for code in codes {
            let (mut stream, _) = server.accept().unwrap();
            let _ = stream.read(&mut [0; 1_024]).unwrap();
            let fields = format!("SFATAL\0C{code}\0Mnot now\0\0");
            let length = u32::try_from(fields.len() + 4).unwrap().to_be_bytes();
            stream.write_all(&[b"E", &length[..], fields.as_bytes()].concat()).unwrap();
        }
    });
    let address = format!("postgres://me@127.0.0.1:{port}/x?sslmode=disable");
    let error = Postgres::connect(&address).unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "the last answer counts: {error:?}");
    answering.join().unwrap();
    let begun = Instant::now();
    let error = Postgres::connect(&address).unwrap_err();
    assert!(matches!(error, Error::Unreachable { .. }), "{error:?}");
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
}
