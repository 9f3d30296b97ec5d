//! What only PostgreSQL can get wrong: locks, round trips, failover, lost connections, passwords.

use std::os::fd::AsFd;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use baton_core::event::{Durability, Event};
use baton_core::id::{Position, SessionId, TreeId};
use baton_core::journal::{Entry, follows};
use baton_core::overlay::{Change, Overlay};
use baton_core::sessions::{BY_NAME, Life, Session};
use baton_core::time::{Moment, Span};
use baton_core::view::{Query, Record, get, put};
use baton_engine::store::postgres::{Postgres, Workspace};
use baton_engine::store::{Commit, Error, State, Store, Transaction, Woken};
use baton_testing::cluster::{self, Cluster, PASSWORD};

const PATIENCE: Duration = Duration::from_secs(10);
const ID: &str = "0123456789abcdef";

fn cluster() -> &'static Cluster {
    cluster::shared().unwrap_or_else(|error| panic!("{error}"))
}

/// A database of its own with one workspace.
struct Scratch {
    database: String,
}

impl Scratch {
    fn new() -> Self {
        let scratch = Self { database: cluster().create_database().unwrap() };
        scratch.connect().create_workspace(ID, Some("root"), Some("remote")).unwrap();
        scratch
    }

    fn address(&self) -> String {
        cluster().address(&self.database)
    }

    fn connect(&self) -> Postgres {
        Postgres::connect(&self.address()).unwrap()
    }

    fn open(&self) -> Workspace {
        self.connect().open_workspace(ID).unwrap()
    }

    fn sql(&self, sql: &str) -> String {
        cluster().sql(&self.database, sql).unwrap()
    }
}

fn session(id: &str, name: &str) -> Session {
    Session {
        session: SessionId(id.to_owned()),
        name: name.to_owned(),
        client: None,
        role: None,
        person: false,
        tree: TreeId("t".to_owned()),
        host: "h".to_owned(),
        process: None,
        secret_hashes: Vec::new(),
        started_at: Moment(1),
        renewed_at: Moment(1),
        expires_at: Moment(2),
        ttl: Span::seconds(1),
        life: Life::Live,
    }
}

/// The entries and changes of one event after the state.
fn plan(transaction: &dyn Transaction, record: &Session) -> (Vec<Entry>, Vec<Change>) {
    let mut overlay = Overlay::new(transaction);
    put(&mut overlay, record).unwrap();
    let state = transaction.state();
    let mut events = Vec::new();
    if let Some(why) = &state.raised_because {
        events.push(Event::EpochRaised { why: why.clone() });
    }
    events.push(Event::SessionStarted { session: record.clone() });
    (entries(state, &events), overlay.into_changes().unwrap())
}

fn entries(state: &State, events: &[Event]) -> Vec<Entry> {
    let mut head = state.head.clone();
    let mut entries = Vec::new();
    for event in events {
        let position = Position { epoch: state.epoch, number: head.position.number + 1 };
        let entry = Entry::next(&head, position, state.now, "", event);
        head = entry.head();
        entries.push(entry);
    }
    entries
}

fn write(store: &mut Workspace, record: &Session) -> Result<State, Error> {
    let transaction = store.begin(PATIENCE)?;
    let (entries, changes) = plan(&*transaction, record);
    let state = transaction.state().clone();
    let durability = Durability::Process;
    transaction.commit(&Commit { entries: &entries, changes: &changes, durability })?;
    Ok(state)
}

fn state(store: &mut Workspace) -> State {
    store.snapshot().unwrap().state().clone()
}

#[test]
fn a_decision_takes_at_most_four_round_trips() {
    let scratch = Scratch::new();
    let mut store = scratch.open();
    write(&mut store, &session("a", "amber")).unwrap();
    let before = store.round_trips();
    let transaction = store.begin(PATIENCE).unwrap();
    // Any number of questions, of both sorts, is one round trip.
    let mut queries: Vec<Query> = (0..50).map(|n| Query::get::<Session>(n.to_string())).collect();
    queries.push(Query::get::<Session>("a"));
    queries.extend((0..50).map(|n| Query::equal(BY_NAME, &n.to_string(), 10)));
    queries.push(Query::equal(BY_NAME, "amber", 10));
    let mut overlay = Overlay::new(&*transaction);
    let answers = baton_core::view::View::read(&overlay, &queries).unwrap();
    assert_eq!((answers[50].len(), answers[101].len()), (1, 1));
    put(&mut overlay, &session("a", "ochre")).unwrap();
    for n in 0..50 {
        put(&mut overlay, &session(&n.to_string(), "new")).unwrap();
    }
    let changes = overlay.into_changes().unwrap();
    let event = Event::SessionStarted { session: session("a", "ochre") };
    let entries = entries(transaction.state(), &[event.clone(), event]);
    let durability = Durability::Power;
    transaction.commit(&Commit { entries: &entries, changes: &changes, durability }).unwrap();
    assert_eq!(store.round_trips() - before, 4);
    assert_eq!(scratch.sql("select count(*) from baton.records"), "51");
    assert_eq!(scratch.sql("select count(*) from baton.sessions where name = 'new'"), "50");
}

#[test]
fn two_workspaces_do_not_wait_for_each_other() {
    let scratch = Scratch::new();
    scratch.connect().create_workspace("fedcba9876543210", None, None).unwrap();
    let (mut one, server) = (scratch.open(), scratch.connect());
    let mut two = server.open_workspace("fedcba9876543210").unwrap();
    let held = one.begin(PATIENCE).unwrap();
    write(&mut two, &session("a", "amber")).unwrap();
    drop(held);
    assert_eq!(state(&mut one).head.position, Position::START);
}

#[test]
fn nothing_is_lost_between_eight_connections() {
    const WRITERS: u64 = 8;
    const EACH: u64 = 25;
    let scratch = Scratch::new();
    std::thread::scope(|scope| {
        for _ in 0..WRITERS {
            scope.spawn(|| {
                let mut store = scratch.open();
                for _ in 0..EACH {
                    let transaction = store.begin(PATIENCE).unwrap();
                    let current: Option<Session> = get(&*transaction, "counter").unwrap();
                    let mut counter = current.unwrap_or_else(|| session("counter", "c"));
                    counter.ttl.0 += 1;
                    let (entries, changes) = plan(&*transaction, &counter);
                    let durability = Durability::Process;
                    let commit = Commit { entries: &entries, changes: &changes, durability };
                    transaction.commit(&commit).unwrap();
                }
            });
        }
    });
    let mut store = scratch.open();
    let snapshot = store.snapshot().unwrap();
    let counter: Session = get(&*snapshot, "counter").unwrap().unwrap();
    assert_eq!(counter.ttl.0, 1_000 + WRITERS * EACH);
    let entries = snapshot.entries(0, 10_000).unwrap();
    assert_eq!(entries.len() as u64, WRITERS * EACH);
    let mut head = baton_core::journal::Head::start();
    for entry in &entries {
        follows(&head, entry).unwrap();
        head = entry.head();
    }
    assert_eq!(&head, &snapshot.state().head);
}

#[test]
fn the_order_of_scans_is_that_of_bytes_for_long_values_too() {
    let scratch = Scratch::new();
    let mut store = scratch.open();
    let long = "ä".repeat(5_000);
    let mut names = vec![
        "B".to_owned(),
        "a".to_owned(),
        "Ab".to_owned(),
        "ä".to_owned(),
        "_".to_owned(),
        format!("{long}b"),
        format!("{long}a"),
        long.clone(),
        format!("{}z", "ä".repeat(255)),
        format!("{}𐍈", "ä".repeat(255)),
    ];
    for (n, name) in names.iter().enumerate() {
        write(&mut store, &session(&n.to_string(), name)).unwrap();
    }
    names.sort();
    let snapshot = store.snapshot().unwrap();
    let scan = |from: &str, until: &str, after, limit| {
        let (from, until) = (from.to_owned(), until.to_owned());
        let query = Query::Scan { index: BY_NAME, from, until, after, limit };
        let found: Vec<Session> = baton_core::view::scan(&*snapshot, query).unwrap();
        found.into_iter().map(|session| session.name).collect::<Vec<_>>()
    };
    assert_eq!(scan("", "\u{10ffff}", None, 100), names);
    assert_eq!(scan("", "\u{10ffff}", None, 3), names[..3]);
    for (at, name) in names.iter().enumerate() {
        assert_eq!(scan(name, "\u{10ffff}", None, 100), names[at..], "{at}");
        assert_eq!(scan("", name, None, 100), names[..at], "{at}");
        assert_eq!(scan(name, &format!("{name}\0"), None, 100), [name.clone()], "{at}");
        assert_eq!(scan(&format!("{name}\0"), "\u{10ffff}", None, 100), names[at + 1..], "{at}");
        let after = Some((name.clone(), "session".to_owned(), "~".to_owned()));
        assert_eq!(scan("", "\u{10ffff}", after, 100), names[at + 1..], "{at}");
    }
    let stored = snapshot.index_entries().unwrap();
    assert!(stored.is_sorted());
}

#[test]
fn a_promotion_or_a_copy_raises_the_epoch_once() {
    for (change, because, steps) in [
        ("timeline = timeline - 1", "promoted", 1),
        ("timeline = timeline - 3", "promoted", 3),
        ("server = 'elsewhere'", "another server", 1),
    ] {
        let scratch = Scratch::new();
        let mut store = scratch.open();
        write(&mut store, &session("a", "amber")).unwrap();
        assert_eq!(state(&mut store).failed_over_at, None);
        scratch.sql(&format!("update baton.workspaces set {change}"));
        let looked = state(&mut store);
        assert_eq!(looked.epoch, 1 + steps, "{change}");
        assert!(looked.raised_because.unwrap().contains(because), "{change}");
        let decided = write(&mut store, &session("b", "birch")).unwrap();
        assert_eq!((decided.epoch, decided.failed_over_at), (1 + steps, Some(decided.now)));
        let after = state(&mut store);
        assert_eq!((after.epoch, after.raised_because), (1 + steps, None));
        assert_eq!(after.head.position, Position { epoch: 1 + steps, number: 3 });
        assert_eq!(after.failed_over_at, decided.failed_over_at);
    }
}

#[test]
fn a_commit_that_hides_a_failover_is_refused() {
    let scratch = Scratch::new();
    let mut store = scratch.open();
    scratch.sql("update baton.workspaces set timeline = timeline - 1");
    let transaction = store.begin(PATIENCE).unwrap();
    let commit = Commit { entries: &[], changes: &[], durability: Durability::Process };
    assert!(matches!(transaction.commit(&commit), Err(Error::Backend { .. })));
    assert_eq!(state(&mut store).epoch, 2);
}

#[test]
fn the_clock_never_goes_below_the_head() {
    let scratch = Scratch::new();
    let mut store = scratch.open();
    scratch.sql("update baton.workspaces set head_at = 99999999999999");
    assert_eq!(state(&mut store).now, Moment(99_999_999_999_999));
}

const OTHERS: &str = "select pg_terminate_backend(pid) from pg_stat_activity \
                      where datname = current_database() and pid <> pg_backend_pid()";

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

/// Terminates backends while they commit. An answer "done" must be true, and an error must be
/// "not done" and true, or "unknown".
#[test]
fn a_connection_lost_during_the_commit_is_never_a_false_answer() {
    let scratch = Scratch::new();
    let (stop, stopped) = mpsc::channel::<()>();
    let mut answers: Vec<(String, Result<State, Error>)> = Vec::new();
    std::thread::scope(|scope| {
        let scratch = &scratch;
        scope.spawn(move || {
            let mut wait = Duration::from_millis(3);
            while stopped.recv_timeout(wait) == Err(mpsc::RecvTimeoutError::Timeout) {
                let kill = format!("{OTHERS} and query = 'COMMIT' and state = 'active'");
                let repeated = format!(
                    "do $$ begin for i in 1..200 loop perform pg_stat_clear_snapshot(); \
                     perform 1 from ({kill}) killed; perform pg_sleep(0.0005); end loop; end $$"
                );
                scratch.sql(&repeated);
                wait = Duration::from_millis(1);
            }
        });
        let mut store = scratch.open();
        let until = Instant::now() + Duration::from_secs(3);
        for n in 0.. {
            if Instant::now() > until {
                break;
            }
            let id = format!("n{n}");
            let mut answer = write(&mut store, &session(&id, "amber"));
            if answer.is_err() && store.snapshot().is_err() {
                answer = Err(Error::OutcomeUnknown { detail: "no snapshot".to_owned() });
                store = scratch.open();
            }
            answers.push((id, answer));
        }
        drop(stop);
    });
    let mut store = scratch.open();
    let snapshot = store.snapshot().unwrap();
    let mut unknown = 0;
    for (id, answer) in &answers {
        let there = get::<Session>(&*snapshot, id).unwrap().is_some();
        match answer {
            Ok(_) => assert!(there, "{id} was acknowledged"),
            Err(Error::OutcomeUnknown { .. }) => unknown += 1,
            Err(Error::Unreachable { .. }) => assert!(!there, "{id} was called not done"),
            Err(other) => panic!("{other:?}"),
        }
    }
    assert!(answers.iter().any(|(_, answer)| answer.is_ok()));
    assert!(unknown > 0, "no commit was hit in {} attempts", answers.len());
}

#[test]
fn a_held_workspace_is_busy_and_names_the_server_process() {
    let scratch = Scratch::new();
    let (mut one, mut two) = (scratch.open(), scratch.open());
    let held = one.begin(PATIENCE).unwrap();
    let started = Instant::now();
    let error = two.begin(Duration::from_millis(200)).err().unwrap();
    let waited = started.elapsed();
    assert!(waited >= Duration::from_millis(200) && waited < Duration::from_secs(3), "{waited:?}");
    let holder: u32 = scratch
        .sql("select pid from pg_stat_activity where state = 'idle in transaction'")
        .parse()
        .unwrap();
    let Error::Busy { pid, waited_ms } = error else { panic!("{error:?}") };
    assert_eq!(pid, holder);
    assert!(waited_ms >= 200);
    // A look stops nobody and is stopped by nobody.
    assert_eq!(state(&mut two).head.position, Position::START);
    drop(held);
    write(&mut two, &session("a", "amber")).unwrap();
}

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
fn tables_are_made_once_by_whoever_comes_first() {
    let database = cluster().create_database().unwrap();
    let address = cluster().address(&database);
    std::thread::scope(|scope| {
        let tries: Vec<_> =
            (0..8).map(|_| scope.spawn(|| Postgres::connect(&address).map(drop))).collect();
        for made in tries {
            made.join().unwrap().unwrap();
        }
    });
    let mut server = Postgres::connect(&address).unwrap();
    server.create_workspace(ID, Some("root"), None).unwrap();
    assert!(matches!(server.create_workspace(ID, None, None), Err(Error::Exists { .. })));
    assert!(server.create_workspace("not hex!", None, None).is_err());
    server.create_workspace("fedcba9876543210", Some("root"), Some("origin")).unwrap();
    let found = |found: Vec<baton_engine::store::postgres::Found>| {
        found.into_iter().map(|found| found.id).collect::<Vec<_>>()
    };
    assert_eq!(found(server.find_workspaces("root", None).unwrap()), [ID]);
    assert_eq!(
        found(server.find_workspaces("root", Some("origin")).unwrap()),
        ["fedcba9876543210"]
    );
    assert!(server.find_workspaces("other", None).unwrap().is_empty());
    assert!(matches!(server.open_workspace("00000000").err(), Some(Error::Missing { .. })));
}

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
        let right = matches!(error, Error::Unreachable { .. } | Error::Missing { .. });
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
fn a_backup_comes_back_with_a_higher_epoch_and_nothing_is_deleted() {
    let scratch = Scratch::new();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("backup.jsonl");
    let mut store = scratch.open();
    write(&mut store, &session("a", "amber")).unwrap();
    let backed_up = state(&mut store).head;
    store.backup(&file).unwrap();
    assert!(matches!(store.backup(&file), Err(Error::Exists { .. })));
    let mode = std::os::unix::fs::PermissionsExt::mode(&file.metadata().unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    // A future the backup knows nothing of, in higher epochs.
    for id in ["b", "c"] {
        scratch.sql("update baton.workspaces set timeline = timeline - 1");
        write(&mut store, &session(id, "birch")).unwrap();
    }
    let highest = state(&mut store).epoch;
    assert_eq!(highest, 3);
    for n in 1..=2 {
        assert_eq!(scratch.connect().restore(&file).unwrap(), ID);
        let restored = state(&mut store);
        assert_eq!(restored.head, backed_up);
        assert!(restored.epoch > highest, "{restored:?}");
        let why = restored.raised_because.unwrap();
        assert!(why.contains("restored"), "{why}");
        let written = write(&mut store, &session("d", "dune")).unwrap();
        assert_eq!(written.epoch, highest + n);
        assert!(written.failed_over_at.is_some());
        let snapshot = store.snapshot().unwrap();
        assert!(get::<Session>(&*snapshot, "a").unwrap().is_some());
        assert!(get::<Session>(&*snapshot, "b").unwrap().is_none());
        assert_eq!(snapshot.index_entries().unwrap().len(), 4);
    }
    let kept =
        scratch.sql("select id from baton.workspaces where id <> '0123456789abcdef' order by 1");
    assert_eq!(kept, format!("{ID}.before-restore-1\n{ID}.before-restore-2"));
    assert_eq!(scratch.sql("select count(*) from baton.sessions where session = 'b'"), "1");
}

#[test]
fn a_damaged_backup_changes_nothing() {
    let scratch = Scratch::new();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("backup.jsonl");
    let mut store = scratch.open();
    for id in ["a", "b"] {
        write(&mut store, &session(id, "amber")).unwrap();
    }
    store.backup(&file).unwrap();
    let whole = std::fs::read_to_string(&file).unwrap();
    let lines: Vec<&str> = whole.lines().collect();
    let damages = [
        lines[..lines.len() - 1].join("\n"),
        [&lines[..1], &lines[2..]].concat().join("\n"),
        [&lines[..lines.len() - 2], &lines[lines.len() - 1..]].concat().join("\n"),
        whole.replace("session_started", "session_stopped"),
        whole.replace("amber", "umber"),
        "not a backup".to_owned(),
        String::new(),
    ];
    for (n, damage) in damages.iter().enumerate() {
        std::fs::write(&file, damage).unwrap();
        let error = scratch.connect().restore(&file).unwrap_err();
        assert!(matches!(error, Error::Corrupt { .. }), "{n}: {error:?}");
        assert_eq!(scratch.sql("select id from baton.workspaces"), ID);
    }
    write(&mut store, &session("c", "cedar")).unwrap();
}

#[test]
fn forgotten_entries_are_gone_and_the_chain_goes_on() {
    let scratch = Scratch::new();
    let mut store = scratch.open();
    for id in ["a", "b", "c"] {
        write(&mut store, &session(id, "amber")).unwrap();
    }
    let entries = store.snapshot().unwrap().entries(0, 10).unwrap();
    let mut wrong = entries[1].head();
    wrong.hash.0.push('0');
    assert!(store.forget_entries(&wrong).is_err());
    store.forget_entries(&entries[1].head()).unwrap();
    store.forget_entries(&entries[1].head()).unwrap();
    write(&mut store, &session("d", "dune")).unwrap();
    let snapshot = store.snapshot().unwrap();
    assert_eq!(snapshot.archived().unwrap(), Some(entries[1].head()));
    let left = snapshot.entries(0, 10).unwrap();
    assert_eq!(left[0], entries[2]);
    follows(&entries[1].head(), &left[0]).unwrap();
    drop(snapshot);
    // An archived workspace can be backed up and restored as well.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("backup");
    store.backup(&file).unwrap();
    scratch.connect().restore(&file).unwrap();
    assert_eq!(store.snapshot().unwrap().archived().unwrap(), Some(entries[1].head()));
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
