//! A process that does nothing: the floor under every measured command.
//!
//! It is built and started exactly as `baton` is, so a ratio of the two says what Baton itself
//! costs on this machine.

fn main() {}
