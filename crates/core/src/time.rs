//! Moments and spans on the store's clock.
//!
//! Owns how time is counted (milliseconds) and written (RFC 3339, UTC). Refuses to know what time
//! it is: `now` always comes from the store, read after its write lock is held.

use std::fmt;
use std::ops::{Add, Sub};

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A moment: milliseconds since the Unix epoch on the store's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(pub u64);

/// A span in milliseconds.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(transparent)]
pub struct Span(pub u64);

impl Span {
    pub const ZERO: Self = Self(0);

    pub const fn seconds(seconds: u64) -> Self {
        Self(seconds * 1_000)
    }

    pub const fn minutes(minutes: u64) -> Self {
        Self::seconds(minutes * 60)
    }

    pub const fn hours(hours: u64) -> Self {
        Self::minutes(hours * 60)
    }

    pub const fn days(days: u64) -> Self {
        Self::hours(days * 24)
    }
}

impl Moment {
    /// How long from `earlier` to here; zero when `earlier` is later.
    pub fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Span> for Moment {
    type Output = Self;

    fn add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl Sub<Span> for Moment {
    type Output = Self;

    fn sub(self, span: Span) -> Self {
        Self(self.0.saturating_sub(span.0))
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = i64::try_from(self.0).unwrap_or(i64::MAX);
        match jiff::Timestamp::from_millisecond(millis) {
            Ok(timestamp) => write!(formatter, "{timestamp:.3}"),
            // Beyond the calendar: still unambiguous, and never a panic.
            Err(_) => write!(formatter, "@{}", self.0),
        }
    }
}

/// Shown the way people say it: `90s`, `30m`, `2h 5m`.
impl fmt::Display for Span {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.div_ceil(1_000);
        match seconds {
            0..120 => write!(formatter, "{seconds}s"),
            120..7_200 => write!(formatter, "{}m", seconds / 60),
            7_200..172_800 if (seconds / 60).is_multiple_of(60) => {
                write!(formatter, "{}h", seconds / 3_600)
            }
            7_200..172_800 => {
                write!(formatter, "{}h {}m", seconds / 3_600, (seconds / 60) % 60)
            }
            _ => write!(formatter, "{}d", seconds / 86_400),
        }
    }
}

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        parse(&text).ok_or_else(|| {
            serde::de::Error::invalid_value(serde::de::Unexpected::Str(&text), &"an RFC 3339 time")
        })
    }
}

impl JsonSchema for Moment {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Moment".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "format": "date-time" })
    }
}

fn parse(text: &str) -> Option<Moment> {
    if let Some(raw) = text.strip_prefix('@') {
        return raw.parse().ok().map(Moment);
    }
    let timestamp: jiff::Timestamp = text.parse().ok()?;
    u64::try_from(timestamp.as_millisecond()).ok().map(Moment)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_round_trip_through_json() {
        for millis in [0, 1, 999, 1_700_000_000_123, 253_370_764_800_000, u64::MAX] {
            let json = serde_json::to_string(&Moment(millis)).unwrap();
            assert_eq!(serde_json::from_str::<Moment>(&json).unwrap(), Moment(millis), "{json}");
        }
    }

    #[test]
    fn spans_read_like_speech() {
        let shown = [0, 1, 90_000, 120_000, 1_800_000, 7_500_000, 7_200_000, 200_000_000]
            .map(|millis| Span(millis).to_string());
        assert_eq!(shown, ["0s", "1s", "90s", "2m", "30m", "2h 5m", "2h", "2d"]);
    }
}
