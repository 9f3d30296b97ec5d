//! The rules of Baton.

pub mod pattern;
