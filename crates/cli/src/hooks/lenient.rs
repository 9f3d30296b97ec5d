//! Payloads that a strict reader gives up on, and their clients do not.
//!
//! Owns what is made of them: half of a pair of UTF-16, or what is no UTF-8, is read as the
//! replacement character, which is what a client writes to disk for it, and what is nested deeper
//! than anything that is looked at counts as nothing. The everyday payload is read as it is and
//! pays nothing. Invariant: one pass without recursion, so no payload can use up the stack.

use serde_json::Value;

/// Deeper than any field that is looked at, and within what the reader takes.
const DEPTH_MAX: usize = 100;
const REPLACEMENT: &[u8] = b"\\ufffd";
/// `\uXXXX`
const ESCAPE_BYTES: usize = 6;

/// What a payload says, if that can be told at all.
pub(crate) fn parse(text: &[u8]) -> Option<Value> {
    let plain = serde_json::from_slice(text);
    plain.or_else(|_| serde_json::from_str(&mended(&String::from_utf8_lossy(text)))).ok()
}

/// The text value of a key in what cannot be read as a whole, as it stands there.
pub(super) fn glimpse<'a>(text: &'a [u8], key: &str) -> Option<&'a str> {
    let quoted = format!("\"{key}\"");
    let mut places = text.windows(quoted.len()).enumerate();
    let (at, _) = places.find(|(_, part)| *part == quoted.as_bytes())?;
    let rest = text[at + quoted.len()..].trim_ascii_start().strip_prefix(b":")?;
    let value = rest.trim_ascii_start().strip_prefix(b"\"")?;
    let end = value.iter().position(|byte| matches!(byte, b'"' | b'\\'))?;
    std::str::from_utf8(&value[..end]).ok()
}

fn mended(text: &str) -> String {
    let text = text.as_bytes();
    let mut mended = Vec::with_capacity(text.len());
    let (mut at, mut depth, mut in_text) = (0, 0_usize, false);
    while let Some(&byte) = text.get(at) {
        let was_skipped = depth > DEPTH_MAX;
        let mut taken = 1;
        match byte {
            b'"' => in_text = !in_text,
            b'\\' if in_text => taken = escape_bytes(&text[at..]),
            b'[' | b'{' if !in_text => depth += 1,
            b']' | b'}' if !in_text => depth = depth.saturating_sub(1),
            _ => {}
        }
        match (was_skipped, depth > DEPTH_MAX) {
            (false, false) if byte == b'\\' && in_text => {
                let lone = taken == ESCAPE_BYTES && unit(&text[at..]).is_some_and(is_half);
                mended.extend_from_slice(if lone { REPLACEMENT } else { &text[at..at + taken] });
            }
            (false, false) => mended.push(byte),
            // What begins here is too deep.
            (false, true) => mended.extend_from_slice(b"null"),
            (true, _) => {}
        }
        at += taken;
    }
    // Only whole characters were left out, each of them plain ASCII, or all of a nested value.
    String::from_utf8_lossy(&mended).into_owned()
}

/// How long the escape is that begins here: a whole pair counts as one.
fn escape_bytes(text: &[u8]) -> usize {
    let Some(first) = unit(text) else { return text.len().min(2) };
    let second = unit(&text[ESCAPE_BYTES..]);
    let is_pair = (0xd800..0xdc00).contains(&first)
        && second.is_some_and(|second| (0xdc00..0xe000).contains(&second));
    if is_pair { 2 * ESCAPE_BYTES } else { ESCAPE_BYTES }
}

/// The unit of UTF-16 that is escaped here.
fn unit(text: &[u8]) -> Option<u16> {
    let digits = text.strip_prefix(b"\\u")?.get(..4)?;
    let digits = std::str::from_utf8(digits).ok()?;
    u16::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+'))
}

fn is_half(unit: u16) -> bool {
    (0xd800..0xe000).contains(&unit)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn halves_of_pairs_are_read_as_clients_write_them() {
        let cases = [
            (r#"{"a":"x\ud83d"}"#, json!({ "a": "x\u{fffd}" })),
            (
                r#"{"a":"\ude00\ud83dx","b":"\ud83d\ude00\n"}"#,
                json!({
                    "a": "\u{fffd}\u{fffd}x", "b": "\u{1f600}\n"
                }),
            ),
            (r#"{"\ud83d":"\ud83d\ud83d\ude00"}"#, json!({ "\u{fffd}": "\u{fffd}\u{1f600}" })),
            (r#"{"a":"\\ud83d\"\ud83d"}"#, json!({ "a": "\\ud83d\"\u{fffd}" })),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(text.as_bytes()), Some(expected), "{text}");
        }
        assert_eq!(parse(b"{\"a\":\"\xff\"}"), Some(json!({ "a": "\u{fffd}" })));
        for text in ["", "{", r#"{"a":"\ud83d"#, r#"{"a":"\ud8"}"#, r#"{"a":"\u+d83"}"#, "\"\\"] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn what_is_too_deep_counts_as_nothing() {
        let deep = |depth: usize, open: &str, close: &str| {
            let (open, close) = (open.repeat(depth), close.repeat(depth));
            format!("{{\"x\":{open}\"]\"{close},\"a\":1}}")
        };
        for (open, close) in [("[", "]"), ("{\"k\":", "}"), ("[1,[2],", ",3]")] {
            for depth in [90, 99, 100, 127, 128, 500, 100_000] {
                let read = parse(deep(depth, open, close).as_bytes()).unwrap();
                assert_eq!(read.get("a"), Some(&json!(1)), "{depth} of {open}");
            }
        }
        assert_eq!(parse("[".repeat(10_000_000).as_bytes()), None);
        assert_eq!(parse("]".repeat(1_000).as_bytes()), None);
    }

    #[test]
    fn a_key_is_seen_in_what_cannot_be_read() {
        let cut = br#"{"session_id":"s", "hook_event_name" : "PreToolUse","tool_input":{"a"#;
        assert_eq!(glimpse(cut, "hook_event_name"), Some("PreToolUse"));
        for text in ["", "\"hook_event_name\"", "\"hook_event_name\":5", "\"hook_event_name\":\"P"]
        {
            assert_eq!(glimpse(text.as_bytes(), "hook_event_name"), None, "{text}");
        }
    }
}
