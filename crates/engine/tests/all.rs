//! Every integration test of the engine, in one binary.

#[cfg(test)]
mod forgotten;
#[cfg(test)]
mod store;
