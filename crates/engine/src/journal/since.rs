//! What people type to say which entries they mean: a time, a span, a position, a kind.
//!
//! Owns the spelling only. A position means what came after it, so that a script can hand back the
//! last one it has seen; a time means that moment and later.

use baton_core::event::KINDS;
use baton_core::id::Position;
use baton_core::journal::Entry;
use baton_core::time::{Moment, Span};

use crate::api::span;

/// How many similar kinds a wrong one is answered with.
const SIMILAR_MAX: usize = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    Ago(Span),
    Time(Moment),
    After(Position),
}

impl Since {
    /// Has the journal come to this point with `entry`? Once true, it stays true.
    pub fn reached(&self, entry: &Entry, now: Moment) -> bool {
        self.reached_at(entry.position, entry.at, now)
    }

    pub(super) fn reached_at(&self, position: Position, at: Moment, now: Moment) -> bool {
        match self {
            Self::Ago(span) => at >= now - *span,
            Self::Time(moment) => at >= *moment,
            Self::After(after) => position > *after,
        }
    }
}

/// `10m`, `2026-11-15`, `2026-11-15T10:00:00Z`, `1.42`.
pub fn since(text: &str) -> Result<Since, String> {
    let wrong = || {
        format!(
            "{text:?} is neither a time (10m, 2026-11-15, 2026-11-15T10:00:00Z) \
             nor a position (1.42)"
        )
    };
    if let Ok(position) = text.parse::<Position>() {
        return Ok(Since::After(position));
    }
    if let Some(moment) = moment(text) {
        return Ok(Since::Time(moment));
    }
    let digits = text.chars().all(|character| character.is_ascii_digit());
    // A bare number could be a position, seconds or a year: better ask than guess.
    if digits { Err(wrong()) } else { span(text).map(Since::Ago).map_err(|_| wrong()) }
}

/// Without a zone it is UTC, as everywhere in Baton.
fn moment(text: &str) -> Option<Moment> {
    let full = match text.len() {
        10 => format!("{text}T00:00:00Z"),
        16 => format!("{text}:00Z"),
        19 => format!("{text}Z"),
        _ => text.to_owned(),
    };
    let quoted = serde_json::Value::String(full.replacen(' ', "T", 1));
    serde_json::from_value(quoted).ok().filter(|_| text.contains('-'))
}

/// The name of a kind of event, or the nearest ones.
pub fn kind(text: &str) -> Result<String, String> {
    let name = text.replace('-', "_");
    if KINDS.contains(&name.as_str()) {
        return Ok(name);
    }
    let mut near: Vec<(usize, &str)> = KINDS
        .iter()
        .map(|known| match known.starts_with(name.as_str()) && !name.is_empty() {
            true => (0, *known),
            false => (distance(&name, known), *known),
        })
        .collect();
    near.sort_unstable();
    let near: Vec<&str> = near.iter().take(SIMILAR_MAX).map(|(_, known)| *known).collect();
    Err(format!("no event is called {text:?}; perhaps {}", near.join(", ")))
}

/// How many letters must be put in, taken out or changed to get from one to the other.
fn distance(one: &str, two: &str) -> usize {
    let two: Vec<char> = two.chars().collect();
    let mut row: Vec<usize> = (0..=two.len()).collect();
    for (line, left) in one.chars().take(64).enumerate() {
        let mut before = row[0];
        row[0] = line + 1;
        for (column, right) in two.iter().enumerate() {
            let changed = before + usize::from(left != *right);
            before = row[column + 1];
            row[column + 1] = changed.min(before + 1).min(row[column] + 1);
        }
    }
    row[two.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_type_is_understood_or_refused() {
        assert_eq!(since("10m"), Ok(Since::Ago(Span::minutes(10))));
        assert_eq!(since("1.42"), Ok(Since::After(Position { epoch: 1, number: 42 })));
        let day = Since::Time(Moment(1_700_006_400_000));
        for text in
            ["2023-11-15", "2023-11-15T00:00", "2023-11-15 00:00:00", "2023-11-15T01:00:00+01:00"]
        {
            assert_eq!(since(text), Ok(day), "{text}");
        }
        for text in ["", "42", "1.", "yesterday", "2023-13-01", "-5m", "10 m"] {
            assert!(since(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_wrong_kind_is_answered_with_the_nearest() {
        assert_eq!(kind("claim-granted"), Ok("claim_granted".to_owned()));
        let near = kind("claim_grantd").unwrap_err();
        assert!(near.contains("perhaps claim_granted, "), "{near}");
        assert!(kind("session").unwrap_err().contains("session_ended, session_renewed"));
        assert!(kind("").is_err());
        assert!(kind(&"x".repeat(10_000)).is_err());
    }
}
