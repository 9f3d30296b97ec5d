//! What every store must do. A backend's test file makes a [`Fixture`] and calls [`all`].

use std::path::Path;

use baton_engine::store::Store;

mod copies;
mod journal;
mod model;
mod records;
mod tasks;
mod turns;

/// A store that tests can open again. Each `Fixture` is one store, empty at first.
pub(crate) trait Fixture: Sync {
    /// Another empty store of the same kind.
    fn fresh(&self) -> Box<dyn Fixture>;

    /// Another handle to this store.
    fn open(&self) -> Box<dyn Store>;

    /// Takes back a backup of this store made by `Store::backup`; false when this kind of store
    /// is restored by other means.
    fn restore(&self, from: &Path) -> bool;
}

type Case = fn(&dyn Fixture);

const CASES: &[(&str, Case)] = &[
    ("records have versions", records::records_have_versions),
    ("index entries follow their records", records::index_entries_follow_their_records),
    ("scans are ordered, paged and limited", records::scans_are_ordered_paged_and_limited),
    ("a batch answers in order", records::a_batch_answers_in_order),
    ("all rows come in pages", records::all_rows_come_in_pages),
    ("odd keys are kept", records::odd_keys_are_kept),
    ("large bodies are kept", records::large_bodies_are_kept),
    ("traces are kept and replaced", records::traces_are_kept_and_replaced),
    ("entries keep their order", journal::entries_keep_their_order),
    ("entries that do not follow are refused", journal::entries_that_do_not_follow_are_refused),
    ("forgotten entries leave a head", journal::forgotten_entries_leave_a_head),
    ("time never goes back", journal::time_never_goes_back),
    ("a snapshot does not move", turns::a_snapshot_does_not_move),
    ("a dropped decision leaves nothing", turns::a_dropped_decision_leaves_nothing),
    ("a refused commit leaves nothing", turns::a_refused_commit_leaves_nothing),
    ("lesson 3: no update is lost", turns::lesson_03_no_update_is_lost),
    ("patience is bounded", turns::patience_is_bounded),
    ("news wakes a waiter", turns::news_wakes_a_waiter),
    ("another descriptor wakes a waiter", turns::another_descriptor_wakes_a_waiter),
    ("s05: a restore raises the epoch", copies::s05_a_restore_raises_the_epoch),
    ("a backup replaces nothing", copies::a_backup_replaces_nothing),
    (
        "lesson 1: a thousand races have one winner each",
        tasks::lesson_01_a_thousand_races_have_one_winner_each,
    ),
    ("random edits end like the model", model::random_edits_end_like_the_model),
];

/// Runs the whole suite, each case on a fresh store.
pub(crate) fn all(fixture: &dyn Fixture) {
    for (name, case) in CASES {
        eprintln!("conformance: {name}");
        case(&*fixture.fresh());
    }
}
