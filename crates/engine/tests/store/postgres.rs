//! What only PostgreSQL can get wrong: locks, round trips, failover, lost connections, passwords.

use std::path::Path;
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

use super::conformance::{self, Fixture};

mod copies;
mod crowded;
mod failover;
mod lost;
mod refusals;
mod waiting;

const PATIENCE: Duration = Duration::from_secs(10);
/// Ends every other connection to the database.
const OTHERS: &str = "select pg_terminate_backend(pid) from pg_stat_activity \
                      where datname = current_database() and pid <> pg_backend_pid()";
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

impl Fixture for Scratch {
    fn fresh(&self) -> Box<dyn Fixture> {
        Box::new(Self::new())
    }

    fn open(&self) -> Box<dyn Store> {
        Box::new(Self::open(self))
    }

    fn restore(&self, from: &Path) -> bool {
        self.connect().restore(from).unwrap();
        true
    }
}

#[test]
fn postgres_conforms() {
    conformance::all(&Scratch::new());
}

fn session(id: &str, name: &str) -> Session {
    Session {
        session: SessionId(id.to_owned()),
        name: name.to_owned(),
        client: None,
        client_session: None,
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
        calls: Vec::new(),
        submissions: Vec::new(),
        rules: None,
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
fn a_decision_takes_at_most_three_round_trips() {
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
    assert_eq!(store.round_trips() - before, 3);
    assert_eq!(scratch.sql("select count(*) from baton.records"), "51");
    assert_eq!(scratch.sql("select count(*) from baton.sessions where name = 'new'"), "50");
}

/// A hook opens, looks a few times, answers and ends.
#[test]
fn whoever_stays_at_the_moment_of_opening_asks_nothing_twice() {
    let scratch = Scratch::new();
    let mut other = scratch.open();
    write(&mut other, &session("a", "amber")).unwrap();
    let mut store = Postgres::connect_to_workspace(&scratch.address(), ID).unwrap();
    assert_eq!(store.round_trips(), 1);
    store.stay_at_this_moment();
    write(&mut other, &session("b", "birch")).unwrap();
    for _ in 0..2 {
        let look = store.snapshot().unwrap();
        assert_eq!(look.state().head.position.number, 1);
        assert_eq!(get::<Session>(&*look, "a").unwrap().unwrap().name, "amber");
        assert!(get::<Session>(&*look, "b").unwrap().is_none());
        let named = Query::equal(BY_NAME, "amber", 10);
        assert_eq!(baton_core::view::scan::<Session>(&*look, named).unwrap().len(), 1);
    }
    // The opening, two records and one list.
    assert_eq!(store.round_trips(), 4);
    // A decision sees what is, and so does whoever looks after it.
    let transaction = store.begin(PATIENCE).unwrap();
    assert!(get::<Session>(&*transaction, "b").unwrap().is_some());
    drop(transaction);
    write(&mut other, &session("c", "cedar")).unwrap();
    assert_eq!(state(&mut store).head.position.number, 3);
}

#[test]
fn what_was_opened_and_not_stayed_at_is_looked_at_anew() {
    let scratch = Scratch::new();
    let mut other = scratch.open();
    let mut store = Postgres::connect_to_workspace(&scratch.address(), ID).unwrap();
    write(&mut other, &session("a", "amber")).unwrap();
    assert_eq!(state(&mut store).head.position.number, 1);
    store.stay_at_this_moment();
    assert_eq!(state(&mut store).head.position.number, 1);
    write(&mut other, &session("b", "birch")).unwrap();
    assert_eq!(state(&mut store).head.position.number, 1);
    // Whoever listens for news must not look at what was before it.
    let _news = store.news().unwrap();
    assert_eq!(state(&mut store).head.position.number, 2);
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
        long,
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
        assert_eq!(scan(name, &format!("{name}\0"), None, 100), names[at..=at], "{at}");
        assert_eq!(scan(&format!("{name}\0"), "\u{10ffff}", None, 100), names[at + 1..], "{at}");
        let after = Some((name.clone(), "session".to_owned(), "~".to_owned()));
        assert_eq!(scan("", "\u{10ffff}", after, 100), names[at + 1..], "{at}");
    }
    let stored = snapshot.index_entries().unwrap();
    assert!(stored.is_sorted());
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
    assert!(matches!(server.open_workspace("00000000").err(), Some(Error::OtherStore { .. })));
}
