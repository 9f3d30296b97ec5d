//! Every integration test of the engine, in one binary.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "clippy allows them in test functions only, and everything here serves tests"
)]

mod forgotten;
mod store;
