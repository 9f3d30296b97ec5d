//! What only tests need.
//!
//! Owns the throwaway PostgreSQL cluster of the engine's, the binary's and `xtask`'s tests, and
//! inputs for parsers that nobody would write. Uses the standard library alone, and no product
//! crate may depend on it.

pub mod cluster;
pub mod fuzz;
