//! The doors at which acts are judged by programs that are not ours to change.
//!
//! Owns what each door asks the one verdict, and what it does when Baton cannot answer.

pub mod git;
