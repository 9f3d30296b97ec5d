//! Money: what a task may cost.
//!
//! Cents inside, dollars outside, and never a float in between.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Money in cents, written as dollars.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Usd(pub u64);

impl Serialize for Usd {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Cents below 2^53 keep their exact value as dollars of two digits.
        #[expect(clippy::cast_precision_loss, reason = "bounded by BUDGET_CENTS_MAX")]
        serializer.serialize_f64(self.0 as f64 / 100.0)
    }
}

impl<'de> Deserialize<'de> for Usd {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let dollars = f64::deserialize(deserializer)?;
        Self::of_dollars(dollars).ok_or_else(|| serde::de::Error::custom("not an amount of money"))
    }
}

impl Usd {
    pub const CENTS_MAX: u64 = 100_000_000;

    pub fn of_dollars(dollars: f64) -> Option<Self> {
        let cents = (dollars * 100.0).round();
        #[expect(clippy::cast_precision_loss, reason = "a small constant")]
        let fits = cents >= 0.0 && cents <= Self::CENTS_MAX as f64;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it fits")]
        fits.then_some(Self(cents as u64))
    }
}

impl std::fmt::Display for Usd {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "${}.{:02}", self.0 / 100, self.0 % 100)
    }
}

impl JsonSchema for Usd {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Usd".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "number", "minimum": 0 })
    }
}
