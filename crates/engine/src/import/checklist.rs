//! A checklist in Markdown: `- [ ] title`, nested, with indented lines below an item as its body.
//!
//! Owns the reader. Headings, paragraphs and plain lists between items are for people and are not
//! read; a box with something else in it than a blank or an x is refused where it stands.

use std::collections::BTreeMap;
use std::path::Path;

use baton_core::id::TaskId;

use super::Format;
use super::found::{At, Found, Identity, Reference, Status, status};
use crate::export::workspace_of_mark;
use crate::failure::Failure;

/// How deep items may be nested.
const DEPTH_MAX: usize = 16;
/// A tab is this wide, as in Markdown.
const TAB: usize = 4;
/// Between a title and what Baton's own export says about its task.
const FACTS: &str = " (priority ";

/// One line that begins an item.
struct Line<'a> {
    indent: usize,
    /// The column of the box.
    column: usize,
    mark: char,
    title: &'a str,
}

/// An item that is being read, with those it stands below.
struct Open {
    indent: usize,
    place: usize,
    body: Vec<String>,
}

pub(super) fn read(file: &Path, text: &str) -> Result<Vec<Found>, Failure> {
    let mut reader = Reader {
        file,
        workspace: text.lines().find_map(workspace_of_mark),
        found: Vec::new(),
        way: Vec::new(),
        fence: false,
        seen: BTreeMap::new(),
    };
    for (index, line) in text.lines().enumerate() {
        reader.line(index + 1, line)?;
    }
    reader.close(0);
    match reader.found.is_empty() {
        true => Err(At::new(file, 1, 1).wrong("it has no checklist item such as \"- [ ] title\"")),
        false => Ok(reader.found),
    }
}

struct Reader<'a> {
    file: &'a Path,
    /// Whose the ids are.
    workspace: Option<&'a str>,
    found: Vec<Found>,
    way: Vec<Open>,
    fence: bool,
    /// How often each identity came.
    seen: BTreeMap<String, usize>,
}

impl<'a> Reader<'a> {
    fn line(&mut self, number: usize, line: &'a str) -> Result<(), Failure> {
        let indent = width(line);
        let fence = line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~");
        if !self.fence
            && !fence
            && let Some(item) = item(line)
                .map_err(|(column, detail)| At::new(self.file, number, column).wrong(detail))?
        {
            self.close(item.indent);
            return self.begin(number, &item);
        }
        let inside = self.fence;
        if fence {
            self.fence = !self.fence;
        }
        if line.trim().is_empty() {
            if let Some(open) = self.way.last_mut() {
                open.body.push(String::new());
            }
            return Ok(());
        }
        // Text belongs to the innermost item that it is indented below; code to where it began.
        if !inside {
            self.close(indent);
        }
        if let Some(open) = self.way.last_mut() {
            let inner = open.indent + 2;
            open.body.push(without_indent(line, inner));
        }
        Ok(())
    }

    fn begin(&mut self, number: usize, item: &Line<'_>) -> Result<(), Failure> {
        let at = At::new(self.file, number, item.column);
        if self.way.len() == DEPTH_MAX {
            return Err(at.wrong(format!("items are nested more than {DEPTH_MAX} deep")));
        }
        if item.title.trim().is_empty() {
            return Err(at.wrong("an item without a title"));
        }
        let mut found = self.read_title(at, item.title.trim());
        match item.mark {
            ' ' => {}
            'x' | 'X' if found.status != Status::Cancelled => found.status = Status::Done,
            'x' | 'X' => {}
            _ => found.status = Status::Cancelled,
        }
        let place = self.found.len();
        if let Some(above) = self.way.last() {
            // The whole is finished after its parts.
            self.found[above.place].parts.push(place);
        }
        self.found.push(found);
        self.way.push(Open { indent: item.indent, place, body: Vec::new() });
        Ok(())
    }

    /// Ends all items that a line with this indent is not below.
    fn close(&mut self, indent: usize) {
        while self.way.last().is_some_and(|open| open.indent >= indent) {
            let Some(open) = self.way.pop() else { return };
            let body = open.body.join("\n");
            let body = body.trim_matches('\n').trim_end();
            self.found[open.place].body = (!body.is_empty()).then(|| body.to_owned());
        }
    }

    fn read_title(&mut self, at: At, text: &str) -> Found {
        let (text, facts) = match text.rfind(FACTS).filter(|_| text.ends_with(')')) {
            Some(start) => (&text[..start], &text[start + 2..text.len() - 1]),
            None => (text, ""),
        };
        let ours = !facts.is_empty() || self.workspace.is_some();
        let (id, title) = match text.split_once(' ') {
            Some((id, title)) if is_id(id) && !title.trim().is_empty() => (Some(id), title.trim()),
            _ => (None, text),
        };
        let title = if ours { title } else { text };
        let mut found = match (id, self.workspace) {
            (Some(id), Some(workspace)) => {
                let (workspace, task) = (workspace.to_owned(), id.to_owned());
                Found::new(Format::Checklist, at, Identity::Baton { workspace, task }, title)
            }
            _ => {
                let identity = Identity::Title(self.identity(title));
                Found {
                    perhaps: id.map(str::to_owned),
                    ..Found::new(Format::Checklist, at, identity, title)
                }
            }
        };
        self.read_facts(facts, &mut found);
        found
    }

    /// The titles of the items above it and its own; the second of the same name is another.
    fn identity(&mut self, title: &str) -> String {
        let above = self.way.iter().map(|open| self.found[open.place].title.as_str());
        let mut name: String = above.chain([title]).collect::<Vec<_>>().join("\0");
        let count = self.seen.entry(name.clone()).or_default();
        *count += 1;
        if *count > 1 {
            name = format!("{name}\0{count}");
        }
        name
    }

    /// `priority 2, blocked, alice, attempt 2 of 3, after t1 t2`, as Baton writes it.
    fn read_facts(&self, facts: &str, found: &mut Found) {
        for (index, fact) in facts.split(", ").enumerate() {
            let (name, value) = fact.split_once(' ').unwrap_or((fact, ""));
            match (index, name) {
                (0, "priority") => found.priority = value.parse().ok(),
                (1, word) => {
                    if let Some(known) = status(word) {
                        found.status = known;
                        found.state_there = Some(word.to_owned());
                    }
                }
                (2, _) if value.is_empty() => found.assigned_to = Some(fact.to_owned()),
                (_, "phase") => found.phase = value.parse().ok(),
                (_, "after") if self.workspace.is_some() => {
                    let ids = value.split(' ').filter(|id| is_id(id));
                    let reference =
                        |id: &str| Reference { name: id.to_owned(), at: found.at.clone() };
                    found.after = ids.map(reference).collect();
                }
                _ => {}
            }
        }
    }
}

fn is_id(word: &str) -> bool {
    word.starts_with('t') && TaskId::parse(word).is_some_and(|id| id.0 == word)
}

fn width(line: &str) -> usize {
    let blank = line.chars().take_while(|c| matches!(c, ' ' | '\t'));
    blank.map(|c| if c == '\t' { TAB } else { 1 }).sum()
}

fn without_indent(line: &str, wide: usize) -> String {
    let (mut rest, mut gone) = (line, 0);
    while let Some(first) = rest.chars().next().filter(|c| matches!(c, ' ' | '\t')) {
        if gone >= wide {
            break;
        }
        gone += if first == '\t' { TAB } else { 1 };
        rest = &rest[1..];
    }
    rest.trim_end().to_owned()
}

/// The item that a line begins, if it begins one.
fn item(line: &str) -> Result<Option<Line<'_>>, (usize, String)> {
    let text = line.trim_start_matches([' ', '\t']);
    let blank = line.len() - text.len();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let marker = match (digits, text.as_bytes().get(digits)) {
        (0, Some(b'-' | b'*' | b'+')) => 1,
        (1..=9, Some(b'.' | b')')) => digits + 1,
        _ => return Ok(None),
    };
    let rest = &text[marker..];
    let inner = rest.trim_start_matches(' ');
    if inner.len() == rest.len() || !inner.starts_with('[') {
        return Ok(None);
    }
    let column = blank + marker + (rest.len() - inner.len()) + 1;
    let mut characters = inner.chars().skip(1);
    let (mark, end, next) = (characters.next(), characters.next(), characters.next());
    let titled = next.is_none_or(|c| c == ' ');
    match (mark, end) {
        (Some(']'), _) if !inner.starts_with("[](") => Err((
            column,
            "an empty box: write [ ] for what is to be done and [x] for what is done".to_owned(),
        )),
        (Some(mark @ (' ' | 'x' | 'X' | '-')), Some(']')) if titled => {
            Ok(Some(Line { indent: width(line), column, mark, title: &inner[3..] }))
        }
        (Some(mark), Some(']')) if titled && !mark.is_ascii_digit() => Err((
            column + 1,
            format!(
                "a box holds a blank, x or -, not \"{}\"",
                crate::escape::line(&mark.to_string())
            ),
        )),
        // A link or a footnote, in a plain list.
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn titles(text: &str) -> Vec<String> {
        let found = read(Path::new("TASKS.md"), text).unwrap();
        found.into_iter().map(|one| one.title).collect()
    }

    #[test]
    fn nesting_bodies_and_code_are_told_apart() {
        let text = "# Plan\n\nintro\n\n- [ ] one\n  more\n\n  ```\n  - [ ] not one\n  ```\n\
                    \x20 - [x] in it\n\
                    1. [ ] two\n- plain\n- [link](x)\n* [X] three\n";
        let found = read(Path::new("TASKS.md"), text).unwrap();
        assert_eq!(titles(text), ["one", "in it", "two", "three"]);
        assert_eq!(found[0].body.as_deref(), Some("more\n\n```\n- [ ] not one\n```"));
        assert_eq!((found[0].parts.as_slice(), found[1].status), (&[1][..], Status::Done));
        assert_eq!(found[2].body, None);
    }

    #[test]
    fn the_same_title_twice_is_two_items() {
        let found = read(Path::new("TASKS.md"), "- [ ] a\n- [ ] a\n- [ ] b\n  - [ ] a\n").unwrap();
        let names: std::collections::BTreeSet<String> =
            found.iter().map(|one| format!("{:?}", one.identity)).collect();
        assert_eq!(names.len(), 4);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        for (text, place) in [
            ("- [ ] a\n - [y] b\n", (2, 5)),
            ("- [] a\n", (1, 3)),
            ("- [ ]  \n", (1, 3)),
            ("nothing\n", (1, 1)),
        ] {
            let wrong = read(Path::new("TASKS.md"), text);
            let Err(Failure::Malformed { line, column, .. }) = wrong else { panic!("{text}") };
            assert_eq!((line, column), place, "{text}");
        }
    }
}
