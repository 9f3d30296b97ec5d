//! The deeds of Baton.

pub mod store;
