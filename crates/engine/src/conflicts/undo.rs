//! Work that takes back what others landed.
//!
//! Owns the question of the matrix and of the merge queue: does a branch, made by someone who knew
//! the target only up to some commit, remove lines that others landed after that, or bring back
//! lines that they took out? Three texts tell: the file as it was known, as it is where the branch
//! parts from the target, and as the branch has it. What the merge itself would keep is no undoing,
//! nor is what the same session landed. Also: a function left without its body, outside the task.

use std::collections::BTreeSet;

use baton_core::resource::Resource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::finding::{A, B, Finding, Kind, Place};
use super::lines::{self, Hunk};
use super::pairs::FILE_BYTES_MAX;
use super::sides::{FILES_READ_MAX, Library, Side, is_read};
use crate::failure::Failure;
use crate::git::{Difference, Git, Landed, Oid};

/// Lines of one file that git is asked about.
const LINES_BLAMED_MAX: usize = 2_000;

/// Something a branch takes back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Undone {
    pub kind: Kind,
    pub file: String,
    /// Where in the branch's file, and where in the landed one.
    pub line: usize,
    pub landed_line: usize,
    /// How many lines.
    pub lines: usize,
    /// The function that was emptied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub symbol: Option<String>,
    /// Who landed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
}

/// What the change of a branch takes back. `known_base` is the commit its session began with;
/// `own_session` landed what is no other's; `task_paths` are where it may empty functions, nothing
/// is asked of that when there are none.
pub fn undone(
    git: &Git,
    branch_tip: &Oid,
    known_base: Option<&Oid>,
    target_tip: &Oid,
    own_session: Option<&str>,
    task_paths: &[Resource],
) -> Result<Vec<Undone>, Failure> {
    let Some(base) = git.merge_base(branch_tip, target_tip)? else { return Ok(Vec::new()) };
    let known = known_base.filter(|known| **known != base);
    let known = match known {
        // A shallow clone may not have it, and another history has nothing to do with this one.
        Some(known) if git.commit_exists(known)? && git.is_ancestor(known, &base)? => Some(known),
        _ => None,
    };
    if known.is_none() && task_paths.is_empty() {
        return Ok(Vec::new());
    }
    let mut pairs = vec![(base.clone(), branch_tip.clone())];
    pairs.extend(known.map(|known| (known.clone(), base.clone())));
    let mut changes = git.differences(&pairs)?.into_iter();
    let own = changes.next().unwrap_or_default();
    let landed = changes.next().unwrap_or_default();
    let touched: BTreeSet<&str> = landed.iter().map(|one| one.path.as_str()).collect();
    let read = |one: &&Difference| {
        touched.contains(one.path.as_str()) || !task_paths.is_empty() && is_read(&one.path)
    };
    let wanted: Vec<&Difference> = own.iter().filter(read).take(FILES_READ_MAX).collect();
    let blobs = wanted.iter().copied().chain(&landed).flat_map(|one| [&one.before, &one.after]);
    let blobs = git.contents(&blobs.flatten().cloned().collect(), FILE_BYTES_MAX)?;
    let mut library = Library::of(blobs);
    let mut found = Vec::new();
    for one in &wanted {
        let Some(theirs) = landed.iter().find(|other| other.path == one.path) else { continue };
        let Some(known) = known else { continue };
        let spans = taken_back(theirs, one, &mut library);
        if !spans.is_empty() {
            let about = git.landed(known, &base, &one.path)?;
            found.extend(attributed(git, &base, &one.path, spans, &about, own_session)?);
        }
    }
    if !task_paths.is_empty() {
        found.extend(emptied(&own, &mut library, task_paths));
    }
    Ok(found)
}

/// A stretch of lines that was taken back.
struct Stretch {
    kind: Kind,
    /// In the landed text, for whom to ask.
    landed: Vec<usize>,
    line: usize,
    lines: usize,
}

/// Where the branch's change meets what landed, and goes against it.
fn taken_back(theirs: &Difference, own: &Difference, library: &mut Library) -> Vec<Stretch> {
    let mut text = |blob: &Option<Oid>| match blob {
        Some(_) => library.text(blob.as_ref()),
        None => Some("".into()),
    };
    let texts = (text(&theirs.before), text(&own.before), text(&own.after));
    let (Some(known), Some(base), Some(tip)) = texts else { return Vec::new() };
    stretches(&known, &base, &tip)
}

/// How many lines of what became of `known` would be taken back by making `after` out of `now`.
pub(crate) fn lines_taken_back(known: &str, now: &str, after: &str) -> usize {
    stretches(known, now, after).iter().map(|stretch| stretch.lines).sum()
}

fn stretches(known: &str, base: &str, tip: &str) -> Vec<Stretch> {
    let (known, base, tip) = (lines::split(known), lines::split(base), lines::split(tip));
    let (landed, changed) = (lines::diff(&known, &base), lines::diff(&base, &tip));
    let mut found = Vec::new();
    for change in &changed {
        for land in &landed {
            found.extend(against(land, change, &known, &base, &tip));
        }
    }
    found
}

fn against(
    land: &Hunk,
    change: &Hunk,
    known: &[&str],
    base: &[&str],
    tip: &[&str],
) -> Option<Stretch> {
    let apart = land.after.start > change.before.end || change.before.start > land.after.end;
    if apart {
        return None;
    }
    let speaks = |line: &&&str| line.chars().any(char::is_alphanumeric);
    let said: Vec<&str> = tip[change.after.clone()].iter().filter(speaks).copied().collect();
    let line = change.after.start + 1;
    // Lines that they took out or replaced, and that are back.
    let gone = known[land.before.clone()].iter().filter(speaks);
    let still: BTreeSet<&str> = base[land.after.clone()].iter().copied().collect();
    let back = gone.filter(|line| !still.contains(**line) && said.contains(line)).count();
    let removed: Vec<usize> = land
        .after
        .clone()
        .filter(|at| change.before.contains(at) && speaks(&&base[*at]))
        .filter(|at| !said.contains(&base[*at]))
        .collect();
    if back > 0 {
        let landed = if removed.is_empty() { Vec::new() } else { removed };
        return Some(Stretch { kind: Kind::Restores, landed, line, lines: back });
    }
    // A line that is written anew was read; lines that are simply gone were not.
    let lines = removed.len().saturating_sub(said.len());
    (lines > 0).then_some(Stretch { kind: Kind::Removes, landed: removed, line, lines })
}

/// Keeps what others landed, and says who.
fn attributed(
    git: &Git,
    base: &Oid,
    path: &str,
    stretches: Vec<Stretch>,
    landed: &[Landed],
    own_session: Option<&str>,
) -> Result<Vec<Undone>, Failure> {
    let is_own = |one: &Landed| own_session.is_some() && one.session.as_deref() == own_session;
    let mut found = Vec::new();
    for stretch in stretches {
        let by = match (stretch.landed.first(), stretch.landed.last()) {
            (Some(first), Some(last)) if last - first < LINES_BLAMED_MAX => {
                let authors = git.blamed(base, path, first + 1, last + 1)?;
                let of = |at: &usize| authors.get(at - first);
                let one = stretch.landed.iter().filter_map(of);
                let mut known = one.filter_map(|oid| landed.iter().find(|by| by.commit == *oid));
                known.find(|by| !is_own(by))
            }
            // They took lines out: the latest who touched the file is named.
            _ => landed.iter().find(|by| !is_own(by)),
        };
        let Some(by) = by else { continue };
        found.push(Undone {
            kind: stretch.kind,
            file: path.to_owned(),
            line: stretch.line,
            landed_line: stretch.landed.first().map_or(stretch.line, |at| at + 1),
            lines: stretch.lines,
            symbol: None,
            commit: Some(by.commit.to_string()),
            author: Some(by.author.clone()),
            session: by.session.clone(),
        });
    }
    Ok(found)
}

fn emptied(own: &[Difference], library: &mut Library, paths: &[Resource]) -> Vec<Undone> {
    let at_home = |file: &str| {
        Resource::literal(file).is_ok_and(|file| paths.iter().any(|path| path.overlaps(&file)))
    };
    let side = Side::of(own, library);
    let outside = side.emptied.into_iter().filter(|(file, _)| !at_home(file));
    outside
        .map(|(file, function)| Undone {
            kind: Kind::Empties,
            file,
            line: function.line,
            landed_line: function.line,
            lines: 1,
            symbol: Some(function.symbol()),
            commit: None,
            author: None,
            session: None,
        })
        .collect()
}

impl Undone {
    pub(super) fn finding(&self) -> Finding {
        let symbol = self.symbol.clone().unwrap_or_else(|| self.file.clone());
        let mut detail = String::new();
        if let (Some(commit), Some(author)) = (&self.commit, &self.author) {
            let short: String = commit.chars().take(12).collect();
            let plural = if self.lines == 1 { "line" } else { "lines" };
            detail = format!("{} {plural}, commit {short} by {author}", self.lines);
        }
        let places =
            vec![Place::on(A, &self.file, self.line), Place::on(B, &self.file, self.landed_line)];
        Finding { kind: self.kind, symbol, places, detail }
    }
}
