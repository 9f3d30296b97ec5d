//! The store in memory.

use std::path::Path;

use baton_engine::store::Store;
use baton_engine::store::memory::Memory;

use super::conformance::{self, Fixture};

struct InMemory(Memory);

impl Fixture for InMemory {
    fn fresh(&self) -> Box<dyn Fixture> {
        Box::new(Self(Memory::default()))
    }

    fn open(&self) -> Box<dyn Store> {
        Box::new(self.0.clone())
    }

    fn restore(&self, from: &Path) -> bool {
        self.0.restore(from).unwrap();
        true
    }
}

#[test]
fn memory_conforms() {
    conformance::all(&InMemory(Memory::default()));
}
