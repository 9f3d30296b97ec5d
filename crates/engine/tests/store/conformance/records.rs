//! Records, their index entries, traces.

use baton_core::view::Query;

use super::super::writing::{ALIAS, BY_SESSION, NOTICE, alias, delete, get, notice, write};
use super::Fixture;

pub(crate) fn records_have_versions(fixture: &dyn Fixture) {
    let (mut one, mut two) = (fixture.open(), fixture.open());
    write(&mut *one, &[alias("a", "1")]).unwrap();
    write(&mut *two, &[alias("a", "2"), alias("b", "1")]).unwrap();
    write(&mut *one, &[alias("a", "3")]).unwrap();
    let snapshot = two.snapshot().unwrap();
    let row = get(&*snapshot, ALIAS, "a").unwrap();
    assert_eq!((row.version, row.body.contains("\"3\"")), (3, true));
    assert_eq!(get(&*snapshot, ALIAS, "b").unwrap().version, 1);
    drop(snapshot);
    write(&mut *two, &[delete(ALIAS, "a")]).unwrap();
    assert_eq!(get(&*one.snapshot().unwrap(), ALIAS, "a"), None);
    write(&mut *two, &[alias("a", "4")]).unwrap();
    assert_eq!(get(&*one.snapshot().unwrap(), ALIAS, "a").unwrap().version, 1);
}

pub(crate) fn index_entries_follow_their_records(fixture: &dyn Fixture) {
    let mut store = fixture.open();
    write(&mut *store, &[notice("n1", "s1"), notice("n2", "s1")]).unwrap();
    assert_eq!(found(&mut *store, "s1"), ["n1", "n2"]);
    write(&mut *store, &[notice("n1", "s2")]).unwrap();
    assert_eq!(found(&mut *store, "s1"), ["n2"]);
    assert_eq!(found(&mut *store, "s2"), ["n1"]);
    write(&mut *store, &[delete(NOTICE, "n2")]).unwrap();
    assert!(found(&mut *store, "s1").is_empty());
    let entries = store.snapshot().unwrap().index_entries().unwrap();
    let expected = [BY_SESSION, "s2", NOTICE, "n1"].map(str::to_owned);
    assert_eq!(entries, [expected.into()]);
}

fn found(store: &mut dyn baton_engine::store::Store, to: &str) -> Vec<String> {
    let snapshot = store.snapshot().unwrap();
    let answer = snapshot.read(&[Query::equal(BY_SESSION, to, 100)]).unwrap().remove(0);
    answer.into_iter().map(|row| row.key).collect()
}

pub(crate) fn scans_are_ordered_paged_and_limited(fixture: &dyn Fixture) {
    let mut store = fixture.open();
    let values = ["b", "a", "a\u{1}", "ab", "B", "ä", "a/", "a0", "z"];
    let edits: Vec<_> = (0..27).map(|n| notice(&format!("n{n:02}"), values[n % 9])).collect();
    write(&mut *store, &edits).unwrap();
    let snapshot = store.snapshot().unwrap();
    let scan = |after, limit| {
        let query = Query::Scan {
            index: BY_SESSION,
            from: "a".to_owned(),
            until: "b".to_owned(),
            after,
            limit,
        };
        snapshot.read(&[query]).unwrap().remove(0)
    };
    let keys = |rows: &[baton_core::view::Row]| -> Vec<String> {
        rows.iter().map(|row| row.key.clone()).collect()
    };
    let everything = keys(&scan(None, 100));
    let expected = "01 10 19 02 11 20 06 15 24 07 16 25 03 12 21";
    assert_eq!(everything, expected.split(' ').map(|n| format!("n{n}")).collect::<Vec<_>>());
    let mut paged = Vec::new();
    let mut after = None;
    for _ in 0..20 {
        let page = scan(after.take(), 4);
        let Some(last) = page.last() else { break };
        let body: serde_json::Value = serde_json::from_str(&last.body).unwrap();
        let value = body["to"].as_str().unwrap().to_owned();
        after = Some((value, last.kind.to_owned(), last.key.clone()));
        paged.extend(keys(&page));
    }
    assert_eq!(paged, everything);
    assert!(scan(None, 0).is_empty());
}

pub(crate) fn a_batch_answers_in_order(fixture: &dyn Fixture) {
    let mut store = fixture.open();
    write(&mut *store, &[alias("a", "1"), notice("n", "s1")]).unwrap();
    let queries = [
        Query::Get { kind: ALIAS, key: "nobody".to_owned() },
        Query::equal(BY_SESSION, "s1", 5),
        Query::Get { kind: ALIAS, key: "a".to_owned() },
        Query::Get { kind: NOTICE, key: "a".to_owned() },
    ];
    let lengths = |answers: Vec<Vec<baton_core::view::Row>>| -> Vec<usize> {
        answers.iter().map(Vec::len).collect()
    };
    assert_eq!(lengths(store.snapshot().unwrap().read(&queries).unwrap()), [0, 1, 1, 0]);
    let transaction = store.begin(super::super::writing::PATIENCE).unwrap();
    assert_eq!(lengths(transaction.read(&queries).unwrap()), [0, 1, 1, 0]);
    assert!(transaction.read(&[]).unwrap().is_empty());
}

pub(crate) fn all_rows_come_in_pages(fixture: &dyn Fixture) {
    let mut store = fixture.open();
    let mut edits: Vec<_> = (0..25).map(|n| alias(&format!("a{n:02}"), "1")).collect();
    edits.push(notice("a03", "s1"));
    write(&mut *store, &edits).unwrap();
    let snapshot = store.snapshot().unwrap();
    let mut seen: Vec<(String, String)> = Vec::new();
    loop {
        let after = seen.last().map(|(kind, key)| (kind.as_str(), key.as_str()));
        let page = snapshot.rows(after, 7).unwrap();
        if page.is_empty() {
            break;
        }
        seen.extend(page.into_iter().map(|row| (row.kind.to_owned(), row.key)));
    }
    assert_eq!(seen.len(), 26);
    assert!(seen.is_sorted());
    assert_eq!(seen[25], (NOTICE.to_owned(), "a03".to_owned()));
}

pub(crate) fn odd_keys_are_kept(fixture: &dyn Fixture) {
    // No NUL: no value contains it (`Query::equal` relies on that), and PostgreSQL cannot hold it.
    let keys =
        ["", " ", "é", "e\u{301}", "日本語", "🦦", "a'b\"c;--", "%_\\", "\u{feff}", "A", "a", "\n"];
    let mut store = fixture.open();
    let edits: Vec<_> = keys.iter().map(|key| notice(key, &format!("s{key}"))).collect();
    write(&mut *store, &edits).unwrap();
    let snapshot = store.snapshot().unwrap();
    for key in keys {
        assert_eq!(get(&*snapshot, NOTICE, key).unwrap().key, key);
        let query = Query::equal(BY_SESSION, &format!("s{key}"), 5);
        let answer = snapshot.read(&[query]).unwrap().remove(0);
        assert_eq!(answer.iter().map(|row| row.key.as_str()).collect::<Vec<_>>(), [key]);
    }
    let listed: Vec<String> =
        snapshot.rows(None, 100).unwrap().into_iter().map(|row| row.key).collect();
    let mut sorted = keys.map(str::to_owned).to_vec();
    sorted.sort();
    assert_eq!(listed, sorted);
}

pub(crate) fn large_bodies_are_kept(fixture: &dyn Fixture) {
    let mut store = fixture.open();
    let large = "ü".repeat(1_000_000);
    write(&mut *store, &[alias("large", &large), alias("small", "1")]).unwrap();
    let snapshot = store.snapshot().unwrap();
    assert!(get(&*snapshot, ALIAS, "large").unwrap().body.contains(&large));
    assert!(get(&*snapshot, ALIAS, "small").is_some());
}

pub(crate) fn traces_are_kept_and_replaced(fixture: &dyn Fixture) {
    let (mut one, mut two) = (fixture.open(), fixture.open());
    assert_eq!(one.trace("seen").unwrap(), None);
    one.set_trace("seen", "1").unwrap();
    one.set_trace("seen", "1").unwrap();
    assert_eq!(two.trace("seen").unwrap().as_deref(), Some("1"));
    two.set_trace("seen", "2").unwrap();
    assert_eq!(one.trace("seen").unwrap().as_deref(), Some("2"));
    assert_eq!(
        one.snapshot().unwrap().state().head.position.number,
        0,
        "traces are not journalled"
    );
}
