//! JSON values: reading them from text, merging, and their limits.
//!
//! Owns that what is stored is exactly what was written: a number that could not be kept digit by
//! digit is refused instead of rounded.

use serde_json::Value as Json;

use super::{Refused, VALUE_BYTES_MAX, VALUE_DEPTH_MAX};
use crate::key::Key;
use crate::refusal::Refusal;

/// Why a text is not a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadValue {
    #[error("it is not JSON: {why} at line {line}, column {column}")]
    NotJson { line: usize, column: usize, why: String },
    #[error("the whole number {digits} is too large to be kept exactly")]
    TooLargeNumber { digits: String },
    #[error("it is longer than {VALUE_BYTES_MAX} bytes")]
    TooLarge,
}

pub fn parse_value(text: &str) -> Result<Json, BadValue> {
    if text.len() > VALUE_BYTES_MAX {
        return Err(BadValue::TooLarge);
    }
    let value = serde_json::from_str(text).map_err(|error| {
        let whole = error.to_string();
        let why = whole.split(" at line ").next().unwrap_or_default().to_owned();
        BadValue::NotJson { line: error.line(), column: error.column(), why }
    })?;
    match inexact_number(text) {
        Some(digits) => Err(BadValue::TooLargeNumber { digits: digits.to_owned() }),
        None => Ok(value),
    }
}

/// The first whole number of a JSON text that no 64 bits can hold.
fn inexact_number(text: &str) -> Option<&str> {
    let bytes = text.as_bytes();
    let (mut at, mut quoted) = (0, false);
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if quoted => at += 1,
            b'"' => quoted = !quoted,
            b'-' | b'0'..=b'9' if !quoted => {
                let number = |byte: &u8| b"+-.eE".contains(byte) || byte.is_ascii_digit();
                let length = bytes[at..].iter().take_while(|byte| number(byte)).count();
                let digits = &text[at..at + length];
                let whole = !digits.contains(['.', 'e', 'E']);
                if whole && digits.parse::<i64>().is_err() && digits.parse::<u64>().is_err() {
                    return Some(digits);
                }
                at += length - 1;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// The limits of a value that is about to be stored.
pub(super) fn check(key: &Key, value: &Json) -> Result<(), Refusal> {
    if depth(value) > VALUE_DEPTH_MAX {
        return Err(Refused::TooDeep { key: key.clone() }.into());
    }
    let bytes = value.to_string().len();
    match bytes > VALUE_BYTES_MAX {
        true => Err(Refused::TooLarge { key: key.clone(), bytes }.into()),
        false => Ok(()),
    }
}

fn depth(value: &Json) -> usize {
    match value {
        Json::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Json::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// RFC 7386: objects are merged, `null` takes a member away, anything else replaces.
pub(super) fn merge(target: &mut Json, patch: &Json) {
    let Json::Object(patch) = patch else {
        target.clone_from(patch);
        return;
    };
    if !target.is_object() {
        *target = Json::Object(serde_json::Map::new());
    }
    if let Json::Object(target) = target {
        for (name, change) in patch {
            match change {
                Json::Null => {
                    target.remove(name);
                }
                change => merge(target.entry(name.clone()).or_insert(Json::Null), change),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The table in the appendix of RFC 7386.
    #[test]
    fn merging_is_that_of_the_standard() {
        for (target, patch, expected) in [
            (json!({"a":"b"}), json!({"a":"c"}), json!({"a":"c"})),
            (json!({"a":"b"}), json!({"b":"c"}), json!({"a":"b","b":"c"})),
            (json!({"a":"b"}), json!({"a":null}), json!({})),
            (json!({"a":"b","b":"c"}), json!({"a":null}), json!({"b":"c"})),
            (json!({"a":["b"]}), json!({"a":"c"}), json!({"a":"c"})),
            (json!({"a":"c"}), json!({"a":["b"]}), json!({"a":["b"]})),
            (json!({"a":{"b":"c"}}), json!({"a":{"b":"d","c":null}}), json!({"a":{"b":"d"}})),
            (json!({"a":[{"b":"c"}]}), json!({"a":[1]}), json!({"a":[1]})),
            (json!(["a", "b"]), json!(["c", "d"]), json!(["c", "d"])),
            (json!({"a":"b"}), json!(["c"]), json!(["c"])),
            (json!({"a":"foo"}), json!(null), json!(null)),
            (json!({"a":"foo"}), json!("bar"), json!("bar")),
            (json!({"e":null}), json!({"a":1}), json!({"e":null,"a":1})),
            (json!([1, 2]), json!({"a":"b","c":null}), json!({"a":"b"})),
            (json!({}), json!({"a":{"bb":{"ccc":null}}}), json!({"a":{"bb":{}}})),
        ] {
            let mut merged = target.clone();
            merge(&mut merged, &patch);
            assert_eq!(merged, expected, "{target} {patch}");
        }
    }

    #[test]
    fn a_value_is_kept_exactly_or_refused() {
        for text in
            ["18446744073709551615", "-9223372036854775808", "[\"1e9 99999999999999999999\"]"]
        {
            assert_eq!(parse_value(text).unwrap().to_string(), text);
        }
        for text in ["18446744073709551616", "[1,{\"a\":-9223372036854775809}]"] {
            assert!(matches!(parse_value(text), Err(BadValue::TooLargeNumber { .. })), "{text}");
        }
        for text in ["word", "", "{\"a\":}", "1 2", "'x'"] {
            assert!(matches!(parse_value(text), Err(BadValue::NotJson { .. })), "{text}");
        }
        // What was printed reads back to the last bit, or the journal could not be verified.
        for text in ["31.245270191439438", "0.1", "1.7976931348623157e+308"] {
            assert_eq!(parse_value(text).unwrap().to_string(), text);
        }
        let long = format!("\"{}\"", "x".repeat(VALUE_BYTES_MAX));
        assert_eq!(parse_value(&long), Err(BadValue::TooLarge));
    }
}
