//! The deeds of Baton.

pub mod clock;
pub mod filesystem;
pub mod git;
pub mod place;
pub mod process;
pub mod store;
