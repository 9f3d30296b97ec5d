//! The fleet store.
