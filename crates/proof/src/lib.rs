//! Proof from outside: real processes, what they saw, and whether that can be true.
//!
//! Owns the workers that use Baton as a library or through its binary, the histories they write,
//! the checker over histories and journal, and the measurements. Refuses to be part of the product:
//! nothing depends on it but tests and xtask.

pub mod bench;
pub mod checker;
pub mod failure;
pub mod history;
pub mod race;
pub mod soak;
pub mod traffic;
pub mod worker;
