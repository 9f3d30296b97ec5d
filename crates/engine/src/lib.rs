//! The deeds of Baton.

pub mod place;
