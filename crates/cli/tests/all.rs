//! Every test of the command line, in one binary: the real `baton`, real git, real processes.

#[cfg(test)]
mod accusing;
#[cfg(test)]
mod archive;
#[cfg(test)]
mod bad_input;
#[cfg(test)]
mod calls;
#[cfg(test)]
mod claims;
#[cfg(test)]
mod clients;
#[cfg(test)]
mod commits;
#[cfg(test)]
mod comparing;
#[cfg(test)]
mod conflicts;
#[cfg(test)]
mod conformance;
#[cfg(test)]
mod crowded;
#[cfg(test)]
mod demo;
#[cfg(test)]
mod denials;
#[cfg(test)]
mod deploys;
#[cfg(test)]
mod distance;
#[cfg(test)]
mod doctor;
#[cfg(test)]
mod elsewhere;
#[cfg(test)]
mod evidence;
#[cfg(test)]
mod export;
#[cfg(test)]
mod files;
#[cfg(test)]
mod gates;
#[cfg(test)]
mod guide;
#[cfg(test)]
mod handoffs;
#[cfg(test)]
mod harness;
#[cfg(test)]
mod hidden_files;
#[cfg(test)]
mod history;
#[cfg(test)]
mod hook_turns;
#[cfg(test)]
mod hooks;
#[cfg(test)]
mod human_zones;
#[cfg(test)]
mod import;
#[cfg(test)]
mod init;
#[cfg(test)]
mod interfaces;
#[cfg(test)]
mod journal;
#[cfg(test)]
mod loopholes;
#[cfg(test)]
mod mcp;
#[cfg(test)]
mod mcp_identity;
#[cfg(test)]
mod mcp_steps;
#[cfg(test)]
mod mcp_waiting;
#[cfg(test)]
mod notes;
#[cfg(test)]
mod once;
#[cfg(test)]
mod other_trees;
#[cfg(test)]
mod overwritten;
#[cfg(test)]
mod person;
#[cfg(test)]
mod policy;
#[cfg(test)]
mod priming;
#[cfg(test)]
mod reference;
#[cfg(test)]
mod reviews;
#[cfg(test)]
mod roles;
#[cfg(test)]
mod rules;
#[cfg(test)]
mod sandbox;
#[cfg(test)]
mod sandbox_bounds;
#[cfg(test)]
mod sandbox_calls;
#[cfg(test)]
mod sandbox_escapes;
#[cfg(test)]
mod sandbox_mcp;
#[cfg(test)]
mod sandbox_parts;
#[cfg(test)]
mod serial;
#[cfg(test)]
mod sessions;
#[cfg(test)]
mod shared_store;
#[cfg(test)]
mod shell_door;
#[cfg(test)]
mod splits;
#[cfg(test)]
mod start;
#[cfg(test)]
mod start_limits;
#[cfg(test)]
mod state;
#[cfg(test)]
mod status;
#[cfg(test)]
mod store;
#[cfg(test)]
mod subagents;
#[cfg(test)]
mod suggestions;
#[cfg(test)]
mod sync;
#[cfg(test)]
mod tasks;
#[cfg(test)]
mod trust;
#[cfg(test)]
mod unnoticed;
#[cfg(test)]
mod wiring;
#[cfg(test)]
mod wiring_git;
#[cfg(test)]
mod worktrees;

#[test]
fn no_test_file_is_forgotten() {
    let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let listed = std::fs::read_to_string(here.join("all.rs")).unwrap();
    for entry in std::fs::read_dir(here).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let Some(stem) = name.strip_suffix(".rs").filter(|stem| *stem != "all") else { continue };
        assert!(listed.contains(&format!("mod {stem};")), "tests/{name} is not in tests/all.rs");
    }
}
#[cfg(test)]
mod landing;
#[cfg(test)]
mod landing_faults;
