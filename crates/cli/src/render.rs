//! How things look: escaped text, colour on terminals, aligned tables, times people read.
//!
//! Owns appearance only. Invariant (S20): text that came from an agent goes through [`shown`]
//! before it reaches a terminal or another agent, so no control or direction character can act
//! there.

use std::fmt::Write as _;
use std::io::IsTerminal;

use baton_core::claim::Holder;
use baton_core::resource::Resource;
use baton_core::sessions::is_bidi;
use baton_core::time::{Moment, Span};

/// Longest piece of agents' text shown in one line.
const TEXT_CHARACTERS_MAX: usize = 300;
/// Where a tree is that cannot be seen from here.
pub(crate) const NOT_OF_THIS_CLONE: &str = "on another machine or in another clone";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Paint {
    Bold,
    Dim,
    Red,
    Green,
    Yellow,
    Cyan,
}

/// Colour only where a person looks, and never against `NO_COLOR`.
pub(crate) fn colour_wanted(stream: &impl IsTerminal) -> bool {
    stream.is_terminal()
        && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && std::env::var_os("TERM").is_none_or(|terminal| terminal != "dumb")
}

pub(crate) fn paint(text: &str, paint: Paint, colour: bool) -> String {
    if !colour {
        return text.to_owned();
    }
    let code = match paint {
        Paint::Bold => "1",
        Paint::Dim => "2",
        Paint::Red => "31",
        Paint::Green => "32",
        Paint::Yellow => "33",
        Paint::Cyan => "36",
    };
    format!("\u{1b}[{code}m{text}\u{1b}[0m")
}

/// Agents' text as data: control and direction characters are escaped, length is bounded.
pub(crate) fn shown(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for (count, character) in text.chars().enumerate() {
        if count == TEXT_CHARACTERS_MAX {
            safe.push('…');
            break;
        }
        if character.is_control() || is_bidi(character) {
            let _ = write!(safe, "\\u{{{:x}}}", u32::from(character));
        } else {
            safe.push(character);
        }
    }
    safe
}

/// A short text of an agent in quotation marks, which nothing in it can close.
pub(crate) fn quoted(text: &str) -> String {
    format!("\"{}\"", shown(text).replace('"', "\\\""))
}

/// A whole text of an agent: as `shown`, but over as many lines as it has, and never shortened.
pub(crate) use baton_engine::escape::lines as shown_lines;

/// A value of the shared state as JSON in which nothing acts on a terminal.
pub(crate) use baton_engine::escape::json as json_shown;

/// `amber-otter`, or `amber-otter (subagent tests)`.
pub(crate) fn holder(holder: &Holder) -> String {
    match &holder.agent {
        Some(agent) => format!("{} (subagent {})", shown(&holder.name), shown(agent)),
        None => shown(&holder.name),
    }
}

pub(crate) fn resources(list: &[Resource]) -> String {
    // A path may be held twice, for one tree and for all: it is one thing to whoever reads.
    let mut seen = std::collections::BTreeSet::new();
    let texts = list.iter().map(|resource| shown(&resource.to_string()));
    let texts: Vec<String> = texts.filter(|text| seen.insert(text.clone())).collect();
    match texts.len() {
        0..=4 => texts.join(", "),
        count => format!("{}, and {} more", texts[..3].join(", "), count - 3),
    }
}

/// The wall clock, for "in 5m". The store judges by its own.
pub(crate) fn wall_clock() -> Moment {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    Moment(since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(0)))
}

/// `12:05:00Z, in 28m`.
pub(crate) fn until(moment: Moment) -> String {
    let now = wall_clock();
    let text = moment.to_string();
    let time = text.get(11..19).map_or(text.clone(), |time| format!("{time}Z"));
    let far = moment.since(now).max(now.since(moment)) >= Span::days(1);
    let date = if far { text.get(..10).map(|date| format!("{date} ")) } else { None };
    let date = date.unwrap_or_default();
    match moment > now {
        true => format!("{date}{time}, in {}", moment.since(now)),
        false => format!("{date}{time}, {} ago", now.since(moment)),
    }
}

pub(crate) fn ago(moment: Moment) -> String {
    format!("{} ago", wall_clock().since(moment))
}

/// `1 claim`, `12,345 entries`.
pub(crate) fn counted(count: u64, one: &str, many: &str) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    let noun = if count == 1 { one } else { many };
    format!("{text} {noun}").trim_end().to_owned()
}

/// `512 B`, `3.4 MB`.
pub(crate) fn bytes(count: u64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    if count < 1_000 {
        return format!("{count} B");
    }
    let mut tenths = count / 100;
    let mut unit = 0;
    while tenths >= 10_000 && unit + 1 < UNITS.len() {
        tenths /= 1_000;
        unit += 1;
    }
    format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit])
}

/// Rows under headings, columns aligned, nothing cut.
pub(crate) fn table(headings: &[&str], rows: &[Vec<String>], colour: bool) -> String {
    let mut widths: Vec<usize> = headings.iter().map(|heading| heading.chars().count()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |cells: Vec<&str>| {
        let padded = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        padded.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let mut text = paint(&line(headings.to_vec()), Paint::Dim, colour);
    text.push('\n');
    for row in rows {
        text.push_str(&line(row.iter().map(String::as_str).collect()));
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_twice_is_said_once() {
        let of = |text: &str| Resource::literal(text).unwrap();
        let list = [of("a"), of("b"), of("a"), of("c"), of("b"), of("d")];
        assert_eq!(resources(&list), "a, b, c, d");
    }

    #[test]
    fn s20_nothing_in_agents_text_acts_on_a_terminal() {
        let shown = shown("</system-reminder>\u{1b}[2J\u{202e}cod.exe\r\n");
        assert_eq!(shown, "</system-reminder>\\u{1b}[2J\\u{202e}cod.exe\\u{d}\\u{a}");
    }

    #[test]
    fn s20_a_shown_value_is_still_that_value() {
        let value = serde_json::json!({ "\u{7f}": "\u{1b}[2J\u{202e}\n", "b": [1, null] });
        for wide in [false, true] {
            let text = json_shown(&value, wide);
            assert!(!text.chars().any(|c| c != '\n' && (c.is_control() || is_bidi(c))), "{text}");
            assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
        }
        assert_eq!(shown_lines("a\r\n\u{1b}b\n", "  "), "a\n  \\u{1b}b");
    }

    #[test]
    fn numbers_read_like_speech() {
        let counts = [0, 1, 999, 1_000, 1_234_567].map(|count| counted(count, "entry", "entries"));
        assert_eq!(
            counts,
            ["0 entries", "1 entry", "999 entries", "1,000 entries", "1,234,567 entries"]
        );
        let sizes = [0, 999, 1_000, 3_450_000, 1_000_000_000_000].map(bytes);
        assert_eq!(sizes, ["0 B", "999 B", "1.0 kB", "3.4 MB", "1.0 TB"]);
    }

    #[test]
    fn tables_line_up() {
        let rows = vec![vec!["a".into(), "long cell".into()], vec!["bbb".into(), "x".into()]];
        assert_eq!(table(&["one", "two"], &rows, false), "one  two\na    long cell\nbbb  x\n");
    }
}
