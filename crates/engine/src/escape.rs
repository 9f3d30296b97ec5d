//! Text of agents as data: what would act on a terminal or hide from a reader is written out.
//!
//! Owns the escapes that every door and every written file uses (S20). Invariant: no control or
//! direction character of an agent's text comes out of here as itself, except line ends, and tabs
//! where a whole text is meant for a file.

use std::fmt::Write as _;

use baton_core::sessions::is_bidi;
use serde_json::Value;

fn acts(character: char) -> bool {
    character.is_control() || is_bidi(character)
}

/// One line: every character that acts is escaped.
pub fn line(text: &str) -> String {
    kept(text, |_| false)
}

/// As many lines as the text has, each but the first indented.
pub fn lines(text: &str, indent: &str) -> String {
    let lines = text.trim_end().split('\n').map(|one| line(one.trim_end_matches('\r')));
    lines.collect::<Vec<_>>().join(&format!("\n{indent}"))
}

/// A whole text for a Markdown file. A line that begins like a heading or a fence is set in by a
/// space, and means the same; so no line can pass for one of ours.
pub fn prose(text: &str) -> String {
    let lines = text.trim_end().split('\n').map(|one| {
        let safe = kept(one.trim_end_matches('\r'), |character| character == '\t');
        match safe.starts_with(['#', '`']) {
            true => format!(" {safe}"),
            false => safe,
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// What [`prose`] wrote, as it was: but a heading that was set in by one space no longer is.
pub fn from_prose(text: &str) -> String {
    let lines = text.split('\n').map(|one| match one.strip_prefix(' ') {
        Some(rest) if rest.starts_with(['#', '`']) => rest,
        _ => one,
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn kept(text: &str, keep: impl Fn(char) -> bool) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match acts(character) && !keep(character) {
            true => {
                let _ = write!(safe, "\\u{{{:x}}}", u32::from(character));
            }
            false => safe.push(character),
        }
    }
    safe
}

/// Frames of clients whose names could be types of a program; most have a hyphen.
const FRAMES: [&str; 9] = [
    "system",
    "tool_result",
    "tool_use_error",
    "function_calls",
    "function_results",
    "hook_context",
    "untrusted_context",
    "environment_context",
    "user_instructions",
];

/// Text for a model, in which no tag stands: what agents wrote cannot begin or end a frame that a
/// client puts around its own words. A bracket after a letter or digit, as in `Vec<u8>`, begins
/// none unless such a frame is named.
pub fn for_models(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    let mut before = ' ';
    let mut rest = text.chars().peekable();
    while let Some(character) = rest.next() {
        let after = rest.peek().copied().unwrap_or(' ');
        let tag = match after {
            '/' | '!' | '|' => true,
            other if !other.is_alphabetic() => false,
            _ => !(before.is_alphanumeric() || before == '_') || names_frame(rest.clone()),
        };
        match character == '<' && tag {
            true => safe.push_str("\\u{3c}"),
            false => safe.push(character),
        }
        before = character;
    }
    safe
}

fn names_frame(rest: impl Iterator<Item = char>) -> bool {
    let name: String = rest.take_while(|c| c.is_alphanumeric() || "_-".contains(*c)).collect();
    name.contains('-') || FRAMES.contains(&name.to_lowercase().as_str())
}

/// JSON in which nothing acts. Such characters stand only within strings, where an escape means
/// the same.
pub fn json(value: &Value, wide: bool) -> String {
    let text = if wide { format!("{value:#}") } else { value.to_string() };
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character != '\n' && acts(character) {
            true => {
                let _ = write!(safe, "\\u{:04x}", u32::from(character));
            }
            false => safe.push(character),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_tag_reaches_a_model_and_code_stays_as_it_is() {
        let code = "fn f(x: Vec<u8>, y: HashMap<K, V>) -> bool { a < b && c <= 1 << 2 }";
        assert_eq!(for_models(code), code);
        let odd = "x</system-reminder> <tool_result> <|im_end|> <!-- -->";
        let safe = "x\\u{3c}/system-reminder> \\u{3c}tool_result> \\u{3c}|im_end|> \\u{3c}!-- -->";
        assert_eq!(for_models(odd), safe);
        let glued = "done<system-reminder>x 1<System>y z_<hook_context>";
        assert!(!for_models(glued).contains('<'), "{}", for_models(glued));
    }

    #[test]
    fn s20_prose_is_read_back_and_nothing_in_it_passes_for_ours() {
        let text = "one\n## Report\n  ## set in\n```sh\n\tmake\n```\n  - list";
        let written = prose(text);
        assert!(!written.lines().any(|line| line.starts_with(['#', '`'])), "{written}");
        assert_eq!(from_prose(&written), text);
        assert_eq!(prose(&written), written, "once is enough");
        assert_eq!(prose("a\u{1b}\u{202e}b\r\n"), "a\\u{1b}\\u{202e}b");
    }
}
