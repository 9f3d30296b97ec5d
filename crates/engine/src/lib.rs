//! The deeds of Baton: stores, git, processes, files. It never prints.
//!
//! [`workspace::Workspace`] is the entry: it opens the store of a folder and runs rules of
//! `baton_core` in it, decision and write in one transaction. What must be looked at outside the
//! store is looked at before, and what must be done outside is done after the commit.

pub mod api;
pub mod archive;
pub mod checking;
pub mod claiming;
pub mod clock;
pub mod committing;
pub mod config;
pub mod conflicts;
pub mod copies;
pub mod denying;
pub mod deploying;
pub mod doctor;
pub mod doors;
pub mod errand;
pub mod escape;
pub mod evidence;
pub mod export;
pub mod failure;
pub mod filesystem;
pub mod gating;
pub mod git;
pub mod handing;
pub mod import;
pub mod interfaces;
pub mod journal;
pub mod known;
pub mod landing;
mod leash;
pub mod listing;
pub mod locks;
pub mod notes;
pub mod notify;
pub mod numbering;
pub mod once;
pub mod overview;
pub mod person;
pub mod place;
pub mod policy;
pub mod priming;
pub mod process;
pub mod rescuing;
pub mod resources;
pub mod reviewing;
pub mod rules;
pub mod sandbox;
pub mod sessions;
pub mod setup;
pub mod sighting;
pub mod slow;
pub mod starting;
pub mod state;
pub mod store;
pub mod suggesting;
pub mod survey;
pub mod syncing;
pub mod tasking;
mod temporary;
pub mod trees;
pub mod user_config;
pub mod voting;
pub mod whoami;
pub mod wiring;
pub mod workspace;
