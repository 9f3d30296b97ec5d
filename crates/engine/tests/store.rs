//! Stores: one suite for all of them, and what only one kind can show.

pub(crate) mod conformance;
mod damage;
mod epochs;
mod gate;
mod memory;
mod postgres;
mod processes;
mod sqlite;
pub(crate) mod writing;
