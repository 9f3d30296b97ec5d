//! The front matter of a Markdown file: the part of YAML that people and tools write there.
//!
//! Owns the reader. Words, quoted words, lists and long texts are understood; a nested map is kept
//! as something that has no meaning here. Whatever is neither is refused where it stands.

use std::path::Path;

use super::found::At;
use crate::failure::Failure;

/// The most fields and list entries that are read.
const FIELDS_MAX: usize = 1_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Text(String),
    List(Vec<(String, At)>),
    /// Something nested.
    Other,
}

#[derive(Clone, Debug)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) value: Value,
    /// Where the value begins.
    pub(super) at: At,
}

#[derive(Debug)]
pub(super) struct Front<'a> {
    pub(super) fields: Vec<Field>,
    /// Everything below.
    pub(super) rest: &'a str,
}

/// The front matter of a text, if it has one.
pub(super) fn read<'a>(file: &Path, text: &'a str) -> Result<Option<Front<'a>>, Failure> {
    let mut lines = text.split_inclusive('\n');
    let Some(first) = lines.next().filter(|line| line.trim_end() == "---") else {
        return Ok(None);
    };
    let mut length = first.len();
    let mut body: Vec<&str> = Vec::new();
    for line in lines {
        length += line.len();
        if matches!(line.trim_end(), "---" | "...") {
            let fields = Reader { file, lines: &body, next: 0 }.fields()?;
            return Ok(Some(Front { fields, rest: &text[length..] }));
        }
        body.push(line.trim_end_matches(['\n', '\r']));
    }
    Err(At::new(file, 1, 1).wrong("the front matter has no end: a line with --- below it"))
}

struct Reader<'a> {
    file: &'a Path,
    lines: &'a [&'a str],
    next: usize,
}

impl Reader<'_> {
    /// The first line of a file is `---`.
    fn at(&self, index: usize, column: usize) -> At {
        At::new(self.file, index + 2, column)
    }

    fn fields(mut self) -> Result<Vec<Field>, Failure> {
        let mut fields: Vec<Field> = Vec::new();
        while let Some(line) = self.lines.get(self.next) {
            let index = self.next;
            self.next += 1;
            if is_empty(line) {
                continue;
            }
            let Some((name, value)) = line.split_once(':').filter(|(name, value)| {
                is_name(name) && (value.is_empty() || value.starts_with([' ', '\t']))
            }) else {
                return Err(self.at(index, 1).wrong("not a line such as \"title: words\""));
            };
            let blank = value.len() - value.trim_start().len();
            let at = self.at(index, name.chars().count() + 2 + blank);
            let name = name.trim().to_lowercase().replace('-', "_");
            if fields.iter().any(|field| field.name == name) {
                return Err(self.at(index, 1).wrong(format!("{name} stands twice")));
            }
            if fields.len() == FIELDS_MAX {
                return Err(at.wrong(format!("more than {FIELDS_MAX} fields")));
            }
            let value = self.value(value.trim(), &at)?;
            fields.push(Field { name, value, at });
        }
        Ok(fields)
    }

    fn value(&mut self, text: &str, at: &At) -> Result<Value, Failure> {
        match text.chars().next() {
            None => self.below(),
            Some('|' | '>') => Ok(Value::Text(self.long_text(text.starts_with('>')))),
            Some('[') => inline_list(text, at).map(Value::List),
            Some('{' | '&' | '*' | '!') => Ok(Value::Other),
            Some(_) => scalar(text, at).map(Value::Text),
        }
    }

    /// What stands in the lines below a name: a list, something nested, or nothing.
    fn below(&mut self) -> Result<Value, Failure> {
        let mut entries = Vec::new();
        let mut other = false;
        while let Some(line) = self.lines.get(self.next) {
            let inner = line.trim_start();
            let indented = inner.len() < line.len();
            if is_empty(line) {
                self.next += 1;
                continue;
            }
            if let Some(entry) = inner.strip_prefix("- ").filter(|_| !other) {
                let column = line.len() - inner.len() + 3;
                let at = self.at(self.next, column);
                if entries.len() == FIELDS_MAX {
                    return Err(at.wrong(format!("more than {FIELDS_MAX} entries")));
                }
                entries.push((scalar(entry.trim(), &at)?, at));
            } else if indented {
                other = true;
            } else {
                break;
            }
            self.next += 1;
        }
        Ok(match (other, entries.is_empty()) {
            (true, _) => Value::Other,
            (false, true) => Value::Text(String::new()),
            (false, false) => Value::List(entries),
        })
    }

    fn long_text(&mut self, folded: bool) -> String {
        let mut lines: Vec<&str> = Vec::new();
        while let Some(line) = self.lines.get(self.next) {
            if !line.trim().is_empty() && !line.starts_with([' ', '\t']) {
                break;
            }
            lines.push(line);
            self.next += 1;
        }
        let filled = lines.iter().filter(|line| !line.trim().is_empty());
        let indent = filled.map(|line| line.len() - line.trim_start().len()).min().unwrap_or(0);
        let inner: Vec<&str> =
            lines.iter().map(|line| line.get(indent..).unwrap_or_default()).collect();
        inner.join(if folded { " " } else { "\n" }).trim_end().to_owned()
    }
}

fn is_empty(line: &str) -> bool {
    line.trim().is_empty() || line.trim_start().starts_with('#')
}

fn is_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ' ');
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && name.chars().all(fits)
}

fn scalar(text: &str, at: &At) -> Result<String, Failure> {
    match text.chars().next() {
        Some('"') => {
            let end = closing(text).ok_or_else(|| at.wrong("the quotation has no end"))?;
            nothing_after(&text[end..], at)?;
            serde_json::from_str(&text[..end])
                .map_err(|_| at.wrong("an escape in this quotation is not understood"))
        }
        Some('\'') => {
            let end = closing(text).ok_or_else(|| at.wrong("the quotation has no end"))?;
            nothing_after(&text[end..], at)?;
            Ok(text[1..end - 1].replace("''", "'"))
        }
        _ => {
            let plain = text.split(" #").next().unwrap_or(text).trim();
            Ok(if matches!(plain, "null" | "~") { String::new() } else { plain.to_owned() })
        }
    }
}

fn nothing_after(rest: &str, at: &At) -> Result<(), Failure> {
    match rest.trim().is_empty() || rest.trim_start().starts_with('#') {
        true => Ok(()),
        false => Err(at.wrong("something stands behind the quotation")),
    }
}

/// The length of the quotation that a text begins with.
fn closing(text: &str) -> Option<usize> {
    let quote = text.chars().next()?;
    let mut characters = text.char_indices().skip(1).peekable();
    while let Some((place, character)) = characters.next() {
        match character {
            '\\' if quote == '"' => {
                characters.next();
            }
            '\'' if quote == '\'' && characters.peek().is_some_and(|(_, next)| *next == '\'') => {
                characters.next();
            }
            character if character == quote => return Some(place + 1),
            _ => {}
        }
    }
    None
}

/// `[a, "b, c", 'd']`, on one line.
fn inline_list(text: &str, at: &At) -> Result<Vec<(String, At)>, Failure> {
    let mut entries = Vec::new();
    let mut rest = &text[1..];
    loop {
        let blank = rest.len() - rest.trim_start().len();
        rest = &rest[blank..];
        let here = text.len() - rest.len();
        let column = at.column + text[..here].chars().count();
        let at = At { column, ..at.clone() };
        let length = match rest.chars().next() {
            None => return Err(at.wrong("the list has no end: ] on the same line")),
            Some(']') => {
                nothing_after(&rest[1..], &at)?;
                return Ok(entries);
            }
            Some('"' | '\'') => {
                closing(rest).ok_or_else(|| at.wrong("the quotation has no end"))?
            }
            Some('[' | '{') => return Err(at.wrong("a list in a list is not understood")),
            Some(_) => rest.find([',', ']']).unwrap_or(rest.len()),
        };
        let entry = scalar(rest[..length].trim(), &at)?;
        if !entry.is_empty() {
            entries.push((entry, at.clone()));
        }
        if entries.len() > FIELDS_MAX {
            return Err(at.wrong(format!("more than {FIELDS_MAX} entries")));
        }
        rest = rest[length..].trim_start();
        match rest.chars().next() {
            Some(',') => rest = &rest[1..],
            Some(']') => {}
            _ => return Err(at.wrong("entries of a list are parted by commas, and ] ends it")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(text: &str) -> Vec<(String, Value)> {
        let front = read(Path::new("a.md"), text).unwrap().unwrap();
        front.fields.into_iter().map(|field| (field.name, field.value)).collect()
    }

    #[test]
    fn what_people_write_is_understood() {
        let text = "---\n# a remark\ntitle: \"a: b\" # more\nplain: x: y #z\nnone: ~\n\
                    list: [a, 'b, c']\nmore:\n  - one\n  - \"two\"\ndeep:\n  a: 1\n\
                    long: |\n  first\n\n  second\nlast: 1\n---\nrest\n";
        let fields = fields(text);
        let text_of = |name: &str| match fields.iter().find(|(known, _)| known == name) {
            Some((_, Value::Text(text))) => text.clone(),
            Some((_, Value::List(entries))) => {
                entries.iter().map(|(entry, _)| entry.as_str()).collect::<Vec<_>>().join("|")
            }
            other => format!("{other:?}"),
        };
        assert_eq!(text_of("title"), "a: b");
        assert_eq!(text_of("plain"), "x: y");
        assert_eq!(text_of("none"), "");
        assert_eq!(text_of("list"), "a|b, c");
        assert_eq!(text_of("more"), "one|two");
        assert_eq!(text_of("long"), "first\n\nsecond");
        assert_eq!(text_of("last"), "1");
        assert!(matches!(fields.iter().find(|(name, _)| name == "deep"), Some((_, Value::Other))));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        for (text, place) in [
            ("---\ntitle: x\n", (1, 1)),
            ("---\ntitle: x\nwords\n---\n", (3, 1)),
            ("---\ntitle: \"x\n---\n", (2, 8)),
            ("---\na: 1\na: 2\n---\n", (3, 1)),
            ("---\nlabels: [a, b\n---\n", (2, 13)),
        ] {
            let wrong = read(Path::new("a.md"), text);
            let Err(Failure::Malformed { line, column, .. }) = wrong else { panic!("{text}") };
            assert_eq!((line, column), place, "{text}");
        }
    }
}
