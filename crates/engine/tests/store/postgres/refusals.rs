//! What cannot be reached, read or written says so.

use super::*;

#[test]
fn another_layout_is_refused_in_every_transaction() {
    let scratch = Scratch::new();
    let mut store = scratch.open();
    for (version, newer) in [(2, true), (0, false)] {
        scratch.sql(&format!("update baton.layout set version = {version}"));
        let errors = [
            store.begin(PATIENCE).err(),
            store.snapshot().err(),
            store.set_trace("k", "v").err(),
            store.trace("k").err(),
            Postgres::connect(&scratch.address()).err(),
        ];
        for error in errors {
            match error.unwrap() {
                Error::Newer { found, .. } => assert!(newer && found == 2),
                Error::Older { found, .. } => assert!(!newer && found == 0),
                other => panic!("{other:?}"),
            }
        }
    }
    // A newer layout may lack our columns: still its version is told, not a missing column.
    scratch.sql(
        "update baton.layout set version = 2; alter table baton.workspaces drop head_hash cascade",
    );
    assert!(matches!(store.begin(PATIENCE).err(), Some(Error::Newer { .. })));
    assert!(matches!(store.snapshot().err(), Some(Error::Newer { .. })));
}

#[test]
fn what_cannot_be_reached_says_so_in_one_line_without_the_password() {
    let scratch = Scratch::new();
    let wrong = scratch.address().replace(PASSWORD, "wrong-secret");
    let nowhere = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = nowhere.local_addr().unwrap().port();
    let closed = format!("postgres://me:{PASSWORD}@127.0.0.1:1/x");
    let stranger = format!("postgres://me:{PASSWORD}@127.0.0.1:{port}/x");
    let answering = std::thread::spawn(move || {
        use std::io::{Read, Write};
        let (mut stream, _) = nowhere.accept().unwrap();
        let _ = stream.read(&mut [0; 8]);
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    });
    let missing = cluster().address("no_such_database");
    let cases = [(wrong, "password"), (closed, "refused"), (stranger, ""), (missing, "not exist")];
    for (address, says) in cases {
        let error = Postgres::connect(&address).unwrap_err();
        let text = format!("{error} {error:?}");
        assert!(error.to_string().contains(says), "{text}");
        assert!(!text.contains(PASSWORD) && !text.contains("wrong-secret"), "{text}");
        assert!(!error.to_string().contains('\n'), "{text}");
        let right = matches!(error, Error::Unreachable { .. } | Error::NoDatabase { .. });
        assert!(right, "{text}");
    }
    answering.join().unwrap();
    let store = scratch.open();
    let told = format!("{} {store:?}", store.describe());
    assert!(!told.contains(PASSWORD), "{told}");
    assert!(store.describe().contains(&scratch.database));
}

#[test]
fn a_server_that_does_not_answer_is_given_up() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let started = Instant::now();
    let address = format!("postgres://me@127.0.0.1:{port}/x?connect_timeout=1");
    assert!(matches!(Postgres::connect(&address), Err(Error::Unreachable { .. })));
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[test]
fn one_who_may_only_read_is_told_that_the_store_cannot_be_written() {
    let scratch = Scratch::new();
    let user = format!("reader_{}", scratch.database);
    scratch.sql(&format!(
        "create user {user} password '{PASSWORD}'; grant usage on schema baton to {user}; \
         grant select on all tables in schema baton to {user}"
    ));
    let address = scratch.address().replace("baton_test:", &format!("{user}:"));
    let mut store = Postgres::connect(&address).unwrap().open_workspace(ID).unwrap();
    assert!(matches!(store.begin(PATIENCE).err(), Some(Error::ReadOnly { .. })));
    scratch.sql(&format!(
        "grant select, insert, update, delete on all tables in schema baton to {user}"
    ));
    // An ordinary user can tell which server this is.
    assert_eq!(write(&mut store, &session("a", "amber")).unwrap().epoch, 1);
    scratch.sql(
        "alter database {d} set default_transaction_read_only = on"
            .replace("{d}", &scratch.database)
            .as_str(),
    );
    assert_eq!(state(&mut scratch.open()).head.position.number, 1);
}

#[test]
fn a_kind_from_a_newer_baton_is_refused_not_skipped() {
    let scratch = Scratch::new();
    let mut store = scratch.open();
    scratch.sql(
        "insert into baton.records select number, 'dragon', 'k', 1, '{}' from baton.workspaces",
    );
    assert!(store.snapshot().unwrap().rows(None, 10).is_err());
    assert_eq!(Session::KIND, "session");
}

/// A server may say anything, also what it was told.
#[test]
fn a_password_repeated_by_the_server_is_not_repeated_by_us() {
    use std::io::{Read, Write};
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    let answering = std::thread::spawn(move || {
        let (mut stream, _) = server.accept().unwrap();
        let mut buffer = [0; 1_024];
        let _ = stream.read(&mut buffer).unwrap();
        // Asks for the password in clear, and throws it back.
        stream.write_all(b"R\0\0\0\x08\0\0\0\x03").unwrap();
        let read = stream.read(&mut buffer).unwrap();
        let password = String::from_utf8_lossy(&buffer[5..read - 1]).into_owned();
        let fields = format!("SFATAL\0C28000\0Mnot\n{password}\0\0");
        let length = u32::try_from(fields.len() + 4).unwrap().to_be_bytes();
        stream.write_all(&[b"E", &length[..], fields.as_bytes()].concat()).unwrap();
        password
    });
    let address = format!("postgres://me:{PASSWORD}@127.0.0.1:{port}/x?sslmode=disable");
    let error = Postgres::connect(&address).unwrap_err();
    assert_eq!(answering.join().unwrap(), PASSWORD);
    let text = format!("{error} {error:?}");
    assert!(text.contains("not …") && !text.contains(PASSWORD), "{text}");
}
