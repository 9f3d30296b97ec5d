//! Random edits, applied to the store and to the model in memory, end equal.

use baton_core::memory::Memory;
use baton_core::view::Records;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::super::writing::{ALIAS, Edit, NOTICE, alias, delete, notice, verified_journal, write};
use super::Fixture;

fn edit() -> impl Strategy<Value = Edit> {
    let key = prop_oneof!["[a-c]", "[é🦦]", Just(String::new())];
    prop_oneof![
        (key.clone(), "[0-9]{1,3}").prop_map(|(key, value)| alias(&key, &value)),
        (key.clone(), "s[1-3]").prop_map(|(key, to)| notice(&key, &to)),
        key.clone().prop_map(|key| delete(ALIAS, &key)),
        key.prop_map(|key| delete(NOTICE, &key)),
    ]
}

pub(crate) fn random_edits_end_like_the_model(fixture: &dyn Fixture) {
    let config = Config { cases: 24, failure_persistence: None, ..Config::default() };
    let commits = vec(vec(edit(), 0..6), 1..12);
    TestRunner::new(config)
        .run(&commits, |commits| {
            check(&*fixture.fresh(), &commits);
            Ok(())
        })
        .unwrap();
}

fn check(fixture: &dyn Fixture, commits: &[Vec<Edit>]) {
    let mut model = Memory::default();
    let mut handles = [fixture.open(), fixture.open()];
    for (n, edits) in commits.iter().enumerate() {
        write(&mut *handles[n % 2], edits).unwrap();
        // Within one commit only the last edit of a record counts for its version.
        for (at, edit) in edits.iter().enumerate() {
            if edits[at + 1..].iter().any(|later| same(later, edit)) {
                continue;
            }
            match edit {
                Edit::Put(kind, key, body) => model.put(kind, key, body.clone()).unwrap(),
                Edit::Delete(kind, key) => model.delete(kind, key).unwrap(),
            }
        }
    }
    let mut store = fixture.open();
    let snapshot = store.snapshot().unwrap();
    let bodies = |row: baton_core::view::Row| (row.kind, row.key, row.body);
    let stored: Vec<_> = snapshot.rows(None, 1_000).unwrap().into_iter().map(bodies).collect();
    assert_eq!(stored, model.rows().map(bodies).collect::<Vec<_>>());
    let owned = |(index, value, kind, key): &(&str, String, &str, String)| {
        ((*index).to_owned(), value.clone(), (*kind).to_owned(), key.clone())
    };
    assert_eq!(snapshot.index_entries().unwrap(), model.index().map(owned).collect::<Vec<_>>());
    verified_journal(&*snapshot);
}

fn same(one: &Edit, two: &Edit) -> bool {
    let name = |edit: &Edit| match edit {
        Edit::Put(kind, key, _) | Edit::Delete(kind, key) => (*kind, key.clone()),
    };
    name(one) == name(two)
}
