//! The clock of the SQLite store.
//!
//! Owns the step from the kernel's boot-time clock to milliseconds that go on across boots. It
//! refuses to know claims. Arithmetic and the reading of clocks are apart, so jumps are tested
//! without waiting. Invariant: within one boot the wall clock has no say, so setting it never ends
//! a claim early; and time spent asleep counts, because the boot-time clock counts it.

use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use crate::process;

/// Two clocks of one machine that went on alike differ by less: by the time between reading the one
/// and the other. Time namespaces are told apart by seconds.
const ALIKE_MS: u64 = 100;

/// Milliseconds since 1970 on the store's clock.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Millis(pub i64);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The machine has booted since: the anchor must be renewed before there is a time.
    #[error("the store's clock was set in another boot")]
    OtherBoot { anchored: String, here: String },
    /// A container with its own boot-time offset: its clock is no measure of the others' claims.
    #[error("the store's clock runs in time namespace {anchored}, this process in {here}")]
    OtherTimeNamespace { anchored: u64, here: u64 },
}

/// The time namespace of this process. Looked up only when the clocks leave room for doubt: for
/// every process that asks, the kernel makes new entries under `/proc`, which is a thirtieth of
/// what a hook costs.
#[derive(Debug, Clone, Default)]
pub struct TimeNamespace(OnceLock<u64>);

impl TimeNamespace {
    pub fn number(&self) -> u64 {
        *self.0.get_or_init(process::time_namespace)
    }
}

impl From<u64> for TimeNamespace {
    fn from(number: u64) -> Self {
        Self(number.into())
    }
}

/// What the clocks show at one moment.
#[derive(Debug, Clone)]
pub struct Reading {
    pub boot: String,
    pub time_namespace: TimeNamespace,
    pub wall_ms: i64,
    pub boottime_ms: i64,
}

/// The moment at which the store's clock was last set, on both clocks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Anchor {
    pub boot: String,
    pub wall_ms: i64,
    pub boottime_ms: i64,
    pub time_namespace: u64,
}

impl Anchor {
    /// Sets the clock of a store whose journal ends at `last_journal`: never before that, however
    /// far the wall clock was set back.
    pub fn set(reading: &Reading, last_journal: Millis) -> Self {
        Self {
            boot: reading.boot.clone(),
            wall_ms: reading.wall_ms.max(last_journal.0),
            boottime_ms: reading.boottime_ms,
            time_namespace: reading.time_namespace.number(),
        }
    }

    /// Whether both clocks went on alike since. In another time namespace the boot-time clock is
    /// elsewhere, and was the wall clock set, nothing can be told from it.
    fn agrees(&self, reading: &Reading) -> bool {
        let wall = reading.wall_ms.saturating_sub(self.wall_ms);
        let boottime = reading.boottime_ms.saturating_sub(self.boottime_ms);
        wall.abs_diff(boottime) <= ALIKE_MS
    }

    /// The time now.
    pub fn now(&self, reading: &Reading) -> Result<Millis, Error> {
        if self.boot != reading.boot {
            let (anchored, here) = (self.boot.clone(), reading.boot.clone());
            return Err(Error::OtherBoot { anchored, here });
        }
        let here = || reading.time_namespace.number();
        if !self.agrees(reading) && self.time_namespace != here() {
            let (anchored, here) = (self.time_namespace, here());
            return Err(Error::OtherTimeNamespace { anchored, here });
        }
        // A machine restored from a snapshot may be before its anchor: time stands, not turns.
        let elapsed = reading.boottime_ms.saturating_sub(self.boottime_ms).max(0);
        Ok(Millis(self.wall_ms.saturating_add(elapsed)))
    }

    /// The anchor to go on with: this one, or after a boot a new one, which must then be stored.
    pub fn renew(&self, reading: &Reading, last_journal: Millis) -> Result<Renewed, Error> {
        match self.now(reading) {
            Ok(_) => Ok(Renewed::Same),
            Err(Error::OtherBoot { .. }) => Ok(Renewed::New(Self::set(reading, last_journal))),
            Err(error) => Err(error),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Renewed {
    Same,
    New(Anchor),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(boot: &str, wall_ms: i64, boottime_ms: i64) -> Reading {
        Reading { boot: boot.to_owned(), time_namespace: 7.into(), wall_ms, boottime_ms }
    }

    #[test]
    fn s8_a_jump_of_the_wall_clock_moves_nothing() {
        let anchor = Anchor::set(&reading("a", 1_000_000, 500), Millis(0));
        for wall in [0, 1_000_000, i64::MAX, -5] {
            assert_eq!(anchor.now(&reading("a", wall, 800)), Ok(Millis(1_000_300)), "{wall}");
        }
    }

    #[test]
    fn lesson_10_sleep_counts() {
        let anchor = Anchor::set(&reading("a", 1_000_000, 500), Millis(0));
        let woken = reading("a", 1_000_000 + 3_600_000, 500 + 3_600_000);
        assert_eq!(anchor.now(&woken), Ok(Millis(4_600_000)));
    }

    #[test]
    fn after_a_boot_time_goes_on_from_the_journal_or_the_wall() {
        let anchor = Anchor::set(&reading("a", 1_000, 500), Millis(0));
        for (wall, journal, expected) in [(9_000, 2_000, 9_000), (10, 2_000, 2_000)] {
            let booted = reading("b", wall, 3);
            assert!(matches!(anchor.now(&booted), Err(Error::OtherBoot { .. })));
            let Ok(Renewed::New(new)) = anchor.renew(&booted, Millis(journal)) else { panic!() };
            assert_eq!(new.now(&booted), Ok(Millis(expected)));
        }
        assert_eq!(anchor.renew(&reading("a", 0, 600), Millis(5)), Ok(Renewed::Same));
    }

    #[test]
    fn another_time_namespace_has_no_say() {
        let anchor = Anchor::set(&reading("a", 1_000, 500), Millis(0));
        let other = Reading { time_namespace: 8.into(), ..reading("a", 1_000, 900) };
        let refused = Error::OtherTimeNamespace { anchored: 7, here: 8 };
        assert_eq!(anchor.now(&other), Err(refused.clone()));
        assert_eq!(anchor.renew(&other, Millis(0)), Err(refused));
        let alike = Reading { time_namespace: 8.into(), ..reading("a", 1_400, 900) };
        assert_eq!(anchor.now(&alike), Ok(Millis(1_400)), "the same clock under another number");
    }

    #[test]
    fn time_never_turns_or_overflows() {
        let anchor = Anchor::set(&reading("a", 1_000, 500), Millis(0));
        assert_eq!(anchor.now(&reading("a", 0, 10)), Ok(Millis(1_000)));
        assert_eq!(anchor.now(&reading("a", 0, i64::MAX)), Ok(Millis(i64::MAX)));
        let late = Anchor { wall_ms: i64::MAX, ..anchor };
        assert_eq!(late.now(&reading("a", 0, 600)), Ok(Millis(i64::MAX)));
    }
}
