//! The clock of the SQLite store.
//!
//! Owns the step from the kernel's boot-time clock to milliseconds that go on across boots. It
//! refuses to know claims. Arithmetic and the reading of clocks are apart, so jumps are tested
//! without waiting. Invariant: within one boot the wall clock has no say, so setting it never ends
//! a claim early; and time spent asleep counts, because the boot-time clock counts it.

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::place::test_hooks::TestHooks;
use crate::process::Machine;

#[cfg(target_os = "linux")]
const SINCE_BOOT: ClockId = ClockId::Boottime;
/// Elsewhere the monotonic clock is the one that also counts sleep (so says macOS's manual).
#[cfg(not(target_os = "linux"))]
const SINCE_BOOT: ClockId = ClockId::Monotonic;

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

/// What the clocks show at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    pub boot: String,
    pub time_namespace: u64,
    pub wall_ms: i64,
    pub boottime_ms: i64,
}

impl Reading {
    /// Reads the clocks. Take it after the write lock is held.
    pub fn take(machine: &Machine, hooks: &TestHooks) -> Self {
        let advance = i64::try_from(hooks.clock_advance_ms).unwrap_or(i64::MAX);
        Self {
            boot: machine.boot.clone(),
            time_namespace: machine.time_namespace,
            wall_ms: milliseconds(ClockId::Realtime),
            boottime_ms: milliseconds(SINCE_BOOT).saturating_add(advance),
        }
    }
}

fn milliseconds(clock: ClockId) -> i64 {
    let time = clock_gettime(clock);
    time.tv_sec.saturating_mul(1000).saturating_add(time.tv_nsec / 1_000_000)
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
            time_namespace: reading.time_namespace,
        }
    }

    /// The time now.
    pub fn now(&self, reading: &Reading) -> Result<Millis, Error> {
        if self.boot != reading.boot {
            let (anchored, here) = (self.boot.clone(), reading.boot.clone());
            return Err(Error::OtherBoot { anchored, here });
        }
        if self.time_namespace != reading.time_namespace {
            let (anchored, here) = (self.time_namespace, reading.time_namespace);
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
        Reading { boot: boot.to_owned(), time_namespace: 7, wall_ms, boottime_ms }
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
        let other = Reading { time_namespace: 8, ..reading("a", 1_000, 900) };
        let refused = Error::OtherTimeNamespace { anchored: 7, here: 8 };
        assert_eq!(anchor.now(&other), Err(refused.clone()));
        assert_eq!(anchor.renew(&other, Millis(0)), Err(refused));
    }

    #[test]
    fn time_never_turns_or_overflows() {
        let anchor = Anchor::set(&reading("a", 1_000, 500), Millis(0));
        assert_eq!(anchor.now(&reading("a", 0, 10)), Ok(Millis(1_000)));
        assert_eq!(anchor.now(&reading("a", 0, i64::MAX)), Ok(Millis(i64::MAX)));
        let late = Anchor { wall_ms: i64::MAX, ..anchor };
        assert_eq!(late.now(&reading("a", 0, 600)), Ok(Millis(i64::MAX)));
    }

    #[test]
    fn a_test_may_be_ahead_of_the_kernel() {
        let machine = Machine::here();
        let now = Reading::take(&machine, &TestHooks::default());
        let hooks = TestHooks { boot_id: None, clock_advance_ms: 3_600_000 };
        let later = Reading::take(&machine, &hooks);
        let ahead = later.boottime_ms - now.boottime_ms;
        assert!((3_600_000..3_660_000).contains(&ahead), "{ahead}");
        assert!(now.wall_ms > 1_500_000_000_000);
    }
}
