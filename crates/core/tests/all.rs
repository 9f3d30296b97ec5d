//! Every test of the rules that needs a whole world, in one binary.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a helper of a test may fail the test"
)]

mod backlog;
mod bash;
mod calls;
mod claims;
mod conflicts;
mod denials;
mod deploys;
mod events;
mod evidence;
mod gates;
mod handoff_events;
mod handoff_model;
mod handoffs;
mod interfaces;
mod landings;
mod lessons;
mod messages;
mod model;
mod naive;
mod notes;
mod once;
mod operations;
mod planning;
mod retries;
mod review_events;
mod reviews;
mod roles;
mod rules;
mod serial;
mod sessions;
mod split_model;
mod splitting;
mod state;
mod state_model;
mod story;
mod subagents;
mod suggestions;
mod task_events;
mod task_model;
mod tasks;
mod trees;
mod waiting;
mod world;
mod zones;

/// A file that no `mod` line names would never run.
#[test]
fn no_test_file_is_forgotten() {
    let here = concat!(env!("CARGO_MANIFEST_DIR"), "/tests");
    let named: Vec<&str> = include_str!("all.rs")
        .lines()
        .filter_map(|line| line.strip_prefix("mod ")?.strip_suffix(';'))
        .collect();
    for entry in std::fs::read_dir(here).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if let Some(module) = name.strip_suffix(".rs").filter(|module| *module != "all") {
            assert!(named.contains(&module), "tests/{name} is not named in all.rs");
        }
    }
}
