//! The rules of Baton: pure functions over records.
//!
//! `decide` reads through a [`view::View`], looks at one command and says which events follow, or
//! refuses; `evolve` writes one event through [`view::Records`]. Everything the rules need from the
//! world is in [`context::Context`]: there is no file, clock, process, thread or randomness here,
//! and `clippy.toml` beside this crate keeps it so.

pub mod breach;
pub mod calls;
pub mod check;
pub mod claim;
pub mod claims;
pub mod commits;
pub mod conflicts;
pub mod consequences;
pub mod context;
pub mod denials;
pub mod deploy;
pub mod deploys;
pub mod event;
pub mod evolve;
pub mod gate;
pub mod gates;
pub mod handoff;
pub mod handoffs;
pub mod id;
pub mod interfaces;
pub mod journal;
pub mod key;
pub mod landing;
pub mod landings;
pub mod launches;
pub mod memory;
pub mod messages;
pub mod naming;
pub mod notes;
pub mod notices;
pub mod numbers;
pub mod once;
pub mod operations;
pub mod overlay;
pub mod patch;
pub mod patches;
pub mod pattern;
pub mod policy;
pub mod refusal;
pub mod resource;
pub mod roles;
pub mod rules;
pub mod scene;
pub mod serial;
pub mod sessions;
pub mod shell;
pub mod state;
pub mod subagents;
pub mod suggestions;
pub mod syncs;
pub mod task;
pub mod tasks;
pub mod time;
pub mod tree;
pub mod trees;
pub mod trust;
pub mod view;
pub mod votes;
pub mod waiting;
pub mod zones;
