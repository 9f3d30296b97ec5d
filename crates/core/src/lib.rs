//! The rules of Baton.
