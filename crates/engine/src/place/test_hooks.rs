//! What a test may pretend: another boot, a later clock.
//!
//! FOR TESTS ONLY. Owns the names of the `BATON_TEST_*` variables. A release binary must be
//! testable, yet an agent must not outlive everyone's claims by setting a variable. Invariant: the
//! two variables that could free a claim count only in a workspace whose store folder holds the
//! marker file, which no command of Baton writes and which lies where edits are denied.

use std::path::Path;
use std::time::Duration;

/// Made by a test in the store folder: `touch .git/baton/test-hooks`.
pub const MARKER: &str = "test-hooks";
/// Test only: the boot id to believe in.
pub const BOOT_ID: &str = "BATON_TEST_BOOT_ID";
/// Test only: milliseconds that the boot-time clock is ahead.
pub const CLOCK_ADVANCE_MS: &str = "BATON_TEST_CLOCK_ADVANCE_MS";

/// Test only: the step at which a deed with several dies.
pub const STOP_AT: &str = "BATON_TEST_STOP_AT";

/// Test only: milliseconds after which a server without calls lets go of its connection.
pub const IDLE_MS: &str = "BATON_TEST_IDLE_MS";

/// How long a server keeps a connection that nobody uses, where a test says so.
pub fn idle(store: &Path) -> Option<Duration> {
    let given = std::env::var(IDLE_MS).ok()?.parse().ok()?;
    store.join(MARKER).exists().then(|| Duration::from_millis(given))
}

/// Should the process die at this step?
pub(crate) fn stops_at(store: &Path, step: &str) -> bool {
    std::env::var(STOP_AT).is_ok_and(|wanted| wanted == step) && store.join(MARKER).exists()
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TestHooks {
    pub boot_id: Option<String>,
    pub clock_advance_ms: u64,
}

impl TestHooks {
    /// The hooks in force for a store; costs no system call when no variable is set.
    pub fn of(store: &Path) -> Self {
        let boot_id = std::env::var(BOOT_ID).ok();
        let advance = std::env::var(CLOCK_ADVANCE_MS).ok();
        Self::given(store, boot_id, advance.as_deref())
    }

    fn given(store: &Path, boot_id: Option<String>, advance: Option<&str>) -> Self {
        if (boot_id.is_none() && advance.is_none()) || !store.join(MARKER).exists() {
            return Self::default();
        }
        let clock_advance_ms = advance.and_then(|text| text.parse().ok()).unwrap_or(0);
        Self { boot_id, clock_advance_ms }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_the_marker_a_variable_changes_nothing() {
        let store = tempfile::tempdir().unwrap();
        let boot = Some("other".to_owned());
        let refused = TestHooks::given(store.path(), boot.clone(), Some("5"));
        assert_eq!(refused, TestHooks::default());
        std::fs::write(store.path().join(MARKER), "").unwrap();
        let taken = TestHooks::given(store.path(), boot.clone(), Some("5"));
        assert_eq!(taken, TestHooks { boot_id: boot, clock_advance_ms: 5 });
    }
}
