//! One task in a Markdown file with front matter: Baton's own form, or one like it.
//!
//! Owns which fields mean what. Fields that mean nothing here (dates, authors, nested maps) are
//! passed over; one that does, with a value that cannot be, is refused where it stands.

use std::path::Path;

use super::Format;
use super::found::{At, Found, Identity, PRIORITIES, Reference, STATES, priority, status};
use super::front::{Field, Front, Value};
use crate::escape::{from_prose, line};
use crate::failure::Failure;

/// The task of a file; nothing if it has no front matter.
pub(super) fn read(file: &Path, text: &str) -> Result<Option<Found>, Failure> {
    match super::front::read(file, text)? {
        Some(front) => found(file, &front).map(Some),
        None => Ok(None),
    }
}

fn found(file: &Path, front: &Front<'_>) -> Result<Found, Failure> {
    let fields = Fields(&front.fields);
    let ours = fields.text(&["made_by"])?.is_some_and(|(by, _)| by == "baton");
    let workspace = fields.text(&["workspace"])?.filter(|_| ours);
    let id = fields.text(&["task", "id"])?;
    let heading = front.rest.lines().find(|line| !line.trim().is_empty());
    let heading = heading.and_then(|line| line.strip_prefix("# ")).map(str::trim);
    let (title, at) = match (fields.text(&["title", "name", "summary"])?, heading) {
        (Some((title, at)), _) => (title, at.clone()),
        (None, Some(heading)) => (heading, At::new(file, 1, 1)),
        (None, None) => return Err(At::new(file, 1, 1).wrong("it has no title")),
    };
    let identity = match (id, workspace) {
        (Some((id, _)), Some((workspace, _))) => {
            Identity::Baton { workspace: workspace.to_owned(), task: id.to_owned() }
        }
        (Some((id, _)), None) => Identity::Id(id.to_owned()),
        (None, _) => Identity::Title(title.to_owned()),
    };
    let mut one = Found::new(Format::Files, at, identity, title);
    one.body = body(front.rest, ours, title);
    if let Some((word, at)) = fields.text(&["state", "status"])? {
        one.status = status(word).ok_or_else(|| {
            at.wrong(format!("\"{}\" is no state that is known: {STATES}", line(word)))
        })?;
        one.state_there = Some(word.to_owned());
    }
    if let Some((word, at)) = fields.text(&["priority"])? {
        let known = priority(word).ok_or_else(|| {
            at.wrong(format!("\"{}\" is no priority that is known: {PRIORITIES}", line(word)))
        })?;
        one.priority = Some(known);
    }
    one.assigned_to = fields.owned(&["assigned_to", "assignee", "owner"])?;
    one.role = fields.owned(&["role"])?;
    one.phase = fields.number(&["phase"])?;
    one.max_attempts = fields.number(&["max_attempts"])?;
    one.labels = fields.list(&["labels", "tags"])?.into_iter().map(|one| one.name).collect();
    one.paths = fields.list(&["paths", "files"])?;
    one.after = fields.list(&["after", "depends_on", "dependencies", "blocked_by"])?;
    Ok(one)
}

/// Of Baton's own files what stands under `## Body`; of others everything but the title's heading.
fn body(rest: &str, ours: bool, title: &str) -> Option<String> {
    let text = match ours {
        true => {
            let mut lines = rest.lines().skip_while(|line| *line != "## Body");
            lines.next()?;
            let below: Vec<&str> = lines.take_while(|line| !line.starts_with("## ")).collect();
            from_prose(below.join("\n").trim_matches('\n'))
        }
        false => {
            let text = rest.trim_start_matches(['\n', '\r']);
            let heading = text.lines().next().and_then(|line| line.strip_prefix("# "));
            match heading.is_some_and(|heading| heading.trim() == title.trim()) {
                true => text.split_once('\n').map_or("", |(_, text)| text).to_owned(),
                false => text.to_owned(),
            }
        }
    };
    let text = text.trim_matches(['\n', '\r']).trim_end();
    (!text.is_empty()).then(|| text.to_owned())
}

struct Fields<'a>(&'a [Field]);

impl<'a> Fields<'a> {
    /// The first of these names that says something.
    fn any(&self, names: &[&str]) -> Option<&'a Field> {
        let fields = self.0.iter().filter(|field| field.value != Value::Text(String::new()));
        names.iter().find_map(|name| fields.clone().find(|field| field.name == *name))
    }

    fn text(&self, names: &[&str]) -> Result<Option<(&'a str, &'a At)>, Failure> {
        match self.any(names) {
            None => Ok(None),
            Some(Field { value: Value::Text(text), at, .. }) => Ok(Some((text, at))),
            Some(field) => Err(field.at.wrong(format!("{} must be words", field.name))),
        }
    }

    fn owned(&self, names: &[&str]) -> Result<Option<String>, Failure> {
        Ok(self.text(names)?.map(|(text, _)| text.to_owned()))
    }

    fn number<N: std::str::FromStr>(&self, names: &[&str]) -> Result<Option<N>, Failure> {
        let Some((text, at)) = self.text(names)? else { return Ok(None) };
        match text.parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(at.wrong(format!("\"{}\" is no number that can be here", line(text)))),
        }
    }

    /// A list, or words with commas between them.
    fn list(&self, names: &[&str]) -> Result<Vec<Reference>, Failure> {
        let reference = |name: &str, at: &At| Reference { name: name.to_owned(), at: at.clone() };
        match self.any(names) {
            None => Ok(Vec::new()),
            Some(Field { value: Value::List(entries), .. }) => {
                Ok(entries.iter().map(|(entry, at)| reference(entry, at)).collect())
            }
            Some(Field { value: Value::Text(text), at, .. }) => {
                let words = text.split(',').map(str::trim).filter(|word| !word.is_empty());
                Ok(words.map(|word| reference(word, at)).collect())
            }
            Some(field) => Err(field.at.wrong(format!("{} must be a list", field.name))),
        }
    }
}
