//! One test binary for the engine.

mod store {
    mod postgres;
}
