//! A handoff in a file: Markdown with headings, JSON or TOML.
//!
//! Owns the three readers. What is malformed is told with its line and column; nothing in a file is
//! skipped in silence, except what `handoff show --markdown` adds from Baton's own knowledge.

use std::path::Path;

use baton_core::handoffs::complete::{Decided, Paper};
use baton_core::key::Key;
use baton_core::state::parse_value;
use serde_json::Value;

use crate::failure::Failure;

/// The largest file that is read.
pub const FILE_BYTES_MAX: usize = 1024 * 1024;

/// What Baton writes under this heading it does not read.
pub const FACTS: &str = "Facts";

const HEADINGS: &str = "State, Changed, Remaining, Next, Decisions, Blockers, Assumptions, \
                        Constraints, Result, Artifacts, Set";

/// Where a file is wrong, and how.
#[derive(Debug, PartialEq, Eq)]
struct Wrong {
    line: usize,
    column: usize,
    detail: String,
}

/// Reads a handoff by the ending of its name.
pub fn read(path: &Path, text: &str) -> Result<Paper, Failure> {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    let read = match ending.to_ascii_lowercase().as_str() {
        "json" => json(text),
        "toml" => toml_(text),
        "md" | "markdown" => markdown(text),
        _ => Err(Wrong {
            line: 1,
            column: 1,
            detail: "its name must end in .md, .json or .toml".to_owned(),
        }),
    };
    read.map_err(|Wrong { line, column, detail }| {
        let path = path.to_owned();
        Failure::Malformed { path, line, column, detail }
    })
}

fn json(text: &str) -> Result<Paper, Wrong> {
    serde_json::from_str(text).map_err(|error| wrong_json(&error, 0))
}

fn wrong_json(error: &serde_json::Error, lines_before: usize) -> Wrong {
    let text = error.to_string();
    let detail = text.rsplit_once(" at line ").map_or(text.as_str(), |(detail, _)| detail);
    let line = error.line().max(1) + lines_before;
    Wrong { line, column: error.column().max(1), detail: detail.to_owned() }
}

fn toml_(text: &str) -> Result<Paper, Wrong> {
    toml::from_str(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start.min(text.len()));
        let before = text.get(..at).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        Wrong { line, column, detail: error.message().to_owned() }
    })
}

/// One `## Heading` with the lines below it.
struct Section<'a> {
    name: String,
    line: usize,
    lines: Vec<(usize, &'a str)>,
}

fn markdown(text: &str) -> Result<Paper, Wrong> {
    let mut paper = Paper::default();
    let sections = sections(text)?;
    for (at, section) in sections.iter().enumerate() {
        if let Some(earlier) = sections[..at].iter().find(|one| one.name == section.name) {
            let detail = format!("this heading stands in line {} already", earlier.line);
            return Err(Wrong { line: section.line, column: 4, detail });
        }
        match section.name.as_str() {
            "state" => paper.state = prose(section),
            "changed" => paper.changed = prose(section),
            "remaining" => paper.remaining = prose(section),
            "next" => paper.next = prose(section),
            "decisions" => {
                let lines = entries(section)?.into_iter().map(|(_, text)| Decided::Line(text));
                paper.decisions = lines.collect();
            }
            "blockers" => paper.blockers = texts(section)?,
            "assumptions" => paper.assumptions = texts(section)?,
            "constraints" => paper.constraints = texts(section)?,
            "artifacts" => paper.artifacts = texts(section)?,
            "result" => paper.result = result(section)?,
            "set" => {
                for (line, text) in entries(section)? {
                    let (key, value) =
                        setting(&text).map_err(|detail| Wrong { line, column: 3, detail })?;
                    paper.set.insert(key, value);
                }
            }
            facts if facts == FACTS.to_lowercase() => {}
            _ => {
                let detail = format!("no such heading; there are {HEADINGS}");
                return Err(Wrong { line: section.line, column: 4, detail });
            }
        }
    }
    Ok(paper)
}

fn sections(text: &str) -> Result<Vec<Section<'_>>, Wrong> {
    let mut sections: Vec<Section<'_>> = Vec::new();
    let mut fenced = false;
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        fenced ^= line.starts_with("```");
        if let Some(name) = line.strip_prefix("## ").filter(|_| !fenced) {
            let name = name.trim().trim_end_matches(':').to_lowercase();
            sections.push(Section { name, line: number, lines: Vec::new() });
        } else if let Some(section) = sections.last_mut() {
            section.lines.push((number, line));
        } else if !line.trim().is_empty() && !line.starts_with("# ") {
            let column = line.len() - line.trim_start().len() + 1;
            let detail = "text before the first heading; begin with ## State".to_owned();
            return Err(Wrong { line: number, column, detail });
        }
    }
    Ok(sections)
}

/// All of a section as it is written.
fn prose(section: &Section<'_>) -> Option<String> {
    let lines: Vec<&str> = section.lines.iter().map(|(_, line)| *line).collect();
    let text = lines.join("\n").trim().to_owned();
    (!text.is_empty()).then_some(text)
}

/// `- an entry`, over several lines when the further ones are indented.
fn entries(section: &Section<'_>) -> Result<Vec<(usize, String)>, Wrong> {
    let mut entries: Vec<(usize, String)> = Vec::new();
    for (number, line) in &section.lines {
        let bullet = line.strip_prefix("- ").or_else(|| line.strip_prefix("* "));
        match (bullet, entries.last_mut()) {
            _ if line.trim().is_empty() => {}
            (Some(entry), _) => entries.push((*number, entry.trim().to_owned())),
            (None, Some((_, entry))) if line.starts_with(' ') => {
                entry.push('\n');
                entry.push_str(line.trim());
            }
            (None, _) => {
                let column = line.len() - line.trim_start().len() + 1;
                let detail = "a list is expected here: begin the line with \"- \"".to_owned();
                return Err(Wrong { line: *number, column, detail });
            }
        }
    }
    Ok(entries)
}

fn texts(section: &Section<'_>) -> Result<Vec<String>, Wrong> {
    Ok(entries(section)?.into_iter().map(|(_, text)| text).collect())
}

/// JSON, plain or in a fence.
fn result(section: &Section<'_>) -> Result<Option<Value>, Wrong> {
    let is_fence = |line: &str| line.trim_start().starts_with("```");
    let inside: Vec<&(usize, &str)> =
        section.lines.iter().filter(|(_, line)| !is_fence(line)).collect();
    let Some(first) = inside.iter().find(|(_, line)| !line.trim().is_empty()) else {
        return Ok(None);
    };
    let lines = inside.iter().filter(|(number, _)| *number >= first.0).map(|(_, line)| *line);
    let text = lines.collect::<Vec<_>>().join("\n");
    serde_json::from_str(&text).map(Some).map_err(|error| wrong_json(&error, first.0 - 1))
}

/// `KEY=JSON`.
pub fn setting(text: &str) -> Result<(Key, Value), String> {
    let Some((key, value)) = text.split_once('=') else {
        return Err(format!("{text:?} is not KEY=JSON, for example build/status='\"green\"'"));
    };
    let key = key.trim().parse().map_err(|why| format!("{key:?} is not a key: {why}"))?;
    let value = parse_value(value.trim()).map_err(|why| format!("the value of {key}: {why}"))?;
    Ok((key, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(read: Result<Paper, Wrong>) -> (usize, usize, String) {
        let Wrong { line, column, detail } = read.unwrap_err();
        (line, column, detail)
    }

    #[test]
    fn one_handoff_reads_the_same_from_all_three() {
        let md = "# Handoff of t1\n\n## State\nThe parser works.\n\n## Remaining\ntests\n\n\
            ## Next\nwrite the test of empty input\n\n## Decisions\n- one pass: it is\n  enough\n\
            - no macros: they hide errors\n\n## Blockers\n\n## Result\n```json\n\
            {\"status\": \"partial\"}\n```\n\n## Set\n- build/status=\"red\"\n\n## Facts\nx\n";
        let json = r#"{"state": "The parser works.", "remaining": "tests",
            "next": "write the test of empty input",
            "decisions": ["one pass: it is\nenough", "no macros: they hide errors"],
            "result": {"status": "partial"}, "set": {"build/status": "red"}}"#;
        let toml = "state = \"The parser works.\"\nremaining = \"tests\"\n\
            next = \"write the test of empty input\"\n\
            decisions = [\"one pass: it is\\nenough\", \"no macros: they hide errors\"]\n\
            [result]\nstatus = \"partial\"\n[set]\n\"build/status\" = \"red\"\n";
        let read = markdown(md).unwrap();
        assert_eq!(super::json(json).unwrap(), read);
        assert_eq!(toml_(toml).unwrap(), read);
        assert_eq!(read.decisions.len(), 2);
    }

    #[test]
    fn malformed_files_are_told_where() {
        let cases = [
            ("State\n", 1, 1, "before the first heading"),
            ("## State\nx\n## Sate\n", 3, 4, "no such heading"),
            ("## State\nx\n\n## State\n", 4, 4, "line 1 already"),
            ("## Decisions\n\n  because\n", 3, 3, "a list is expected"),
            ("## Result\n\n```json\n{\"status\":\n oops}\n```\n", 5, 2, "expected value"),
            ("## Set\n- a/b\n", 2, 3, "not KEY=JSON"),
            ("## Set\n- a b=1\n", 2, 3, "not a key"),
        ];
        for (text, line, column, detail) in cases {
            let (at, place, said) = wrong(markdown(text));
            assert_eq!((at, place), (line, column), "{text:?}: {said}");
            assert!(said.contains(detail), "{text:?}: {said}");
        }
        let (line, column, said) = wrong(json("{\n  \"state\": 5}"));
        assert_eq!((line, column), (2, 12), "{said}");
        let (line, _, said) = wrong(json("{\n\n\"stat\": \"x\"}"));
        assert_eq!((line, said.contains("unknown field")), (3, true), "{said}");
        let (line, column, _) = wrong(toml_("state = \"x\"\nnext = oops\n"));
        assert_eq!((line, column), (2, 8));
        let (line, ..) = wrong(toml_("state = \"x\"\n\nnext = 5\n"));
        assert_eq!(line, 3);
    }
}
