//! Options and operands of a command, as getopt reads them.
//!
//! Owns the one reading that all programs share. Invariant: rather an option too many is seen:
//! long options count from two letters on, as programs that know abbreviations take them.

use super::outcome::Argument;

#[derive(Debug, Default)]
pub(super) struct Options {
    pub(super) operands: Vec<Argument>,
    /// `-x` or `--long`, and its value.
    found: Vec<(String, Option<Argument>)>,
}

/// Reads the arguments of a program. `short` are the letters and `long` the words that take a
/// value of their own; what needs `=` to take one is in neither.
pub(super) fn read(arguments: &[Argument], short: &str, long: &[&str]) -> Options {
    let mut options = Options::default();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let Some(text) = argument.text().filter(|text| text.len() > 1) else {
            options.operands.push(argument.clone());
            continue;
        };
        if text == "--" {
            options.operands.extend(rest.cloned());
            break;
        }
        if text.starts_with("--") {
            let (name, value) = match text.split_once('=') {
                Some((name, value)) => (name, Some(Argument::from(value))),
                None if long.contains(&text) => (text, rest.next().cloned()),
                None => (text, None),
            };
            options.found.push((name.to_owned(), value));
        } else if let Some(letters) = text.strip_prefix('-') {
            for (at, letter) in letters.char_indices() {
                let name = format!("-{letter}");
                if !short.contains(letter) {
                    options.found.push((name, None));
                    continue;
                }
                let value = &letters[at + letter.len_utf8()..];
                let value = match value {
                    "" => rest.next().cloned(),
                    _ => Some(Argument::from(value)),
                };
                options.found.push((name, value));
                break;
            }
        } else {
            options.operands.push(argument.clone());
        }
    }
    options
}

/// May there be options among these that nobody can read? A word that begins with something known
/// is none, and behind `--` there are none.
pub(super) fn may_have_more(arguments: &[Argument]) -> bool {
    let before = arguments.iter().take_while(|one| one.text() != Some("--"));
    let mut unknown = before.filter(|one| matches!(one, Argument::Unknown(_)));
    unknown.any(|one| one.shown().starts_with(['…', '-']))
}

impl Options {
    pub(super) fn has(&self, names: &[&str]) -> bool {
        self.found.iter().any(|(found, _)| names.iter().any(|name| means(found, name)))
    }

    pub(super) fn count(&self, name: &str) -> usize {
        self.found.iter().filter(|(found, _)| means(found, name)).count()
    }

    pub(super) fn value<'a>(&'a self, names: &[&str]) -> Option<&'a Argument> {
        let named = |found: &str| names.iter().any(|name| means(found, name));
        self.found.iter().find(|(found, _)| named(found)).and_then(|(_, value)| value.as_ref())
    }

    pub(super) fn values<'a>(&'a self, names: &'a [&str]) -> impl Iterator<Item = &'a Argument> {
        let named = |found: &str| names.iter().any(|name| means(found, name));
        self.found.iter().filter(move |(found, _)| named(found)).filter_map(|(_, v)| v.as_ref())
    }
}

fn means(found: &str, name: &str) -> bool {
    found == name || name.starts_with("--") && found.len() > 3 && name.starts_with(found)
}
