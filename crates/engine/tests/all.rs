//! Every integration test of the engine, in one binary.

mod forgotten;
mod store;
