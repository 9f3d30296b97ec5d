//! Which lines that another session left in a file are still there.
//!
//! Owns the comparison of what was saved when a claim ended with what the file has now, line by
//! line against the last commit. What cannot be compared is not told, and then counts as foreign.

use std::collections::BTreeMap;

use baton_core::commits::{Foreign, Lines, SeenLines};

use crate::failure::Failure;
use crate::git::{Git, Oid};

/// Files larger than this are not compared: all of such a file counts.
const COMPARED_BYTES_MAX: usize = 8 * 1024 * 1024;

/// What of each suspect's work is still in the tree.
pub(super) fn lines(
    git: &Git,
    root: &std::path::Path,
    head: Option<&Oid>,
    suspects: &[Foreign],
) -> Result<Vec<SeenLines>, Failure> {
    let mut seen = Vec::new();
    for suspect in suspects {
        let Some(rescue) = suspect.left.as_ref().and_then(|left| left.rescue.as_deref()) else {
            continue;
        };
        let base = match head {
            Some(head) => git.content(head.as_str(), &suspect.path)?.unwrap_or_default(),
            None => Vec::new(),
        };
        let Some(saved_commit) = git.commit_named(rescue)? else { continue };
        let saved = git.content(saved_commit.as_str(), &suspect.path)?.unwrap_or_default();
        // What it was saved upon: what was committed since is nobody's any more.
        let upon = head.map(|head| git.common(head, &saved_commit)).transpose()?.flatten();
        let then = match upon {
            Some(upon) => git.content(upon.as_str(), &suspect.path)?.unwrap_or_default(),
            None => Vec::new(),
        };
        let now = std::fs::read(root.join(&suspect.path)).unwrap_or_default();
        if [&then, &saved, &base, &now].iter().any(|text| text.len() > COMPARED_BYTES_MAX) {
            continue;
        }
        let (claim, path) = (suspect.claim.clone(), suspect.path.clone());
        seen.push(SeenLines { claim, path, lines: still_there(&then, &saved, &base, &now) });
    }
    Ok(seen)
}

/// The uncommitted lines of `now` that `saved` had brought to what was committed then. Where
/// something it took away is still missing, or only the order was changed, no line can be named,
/// and all are.
fn still_there(then: &[u8], saved: &[u8], base: &[u8], now: &[u8]) -> Vec<Lines> {
    let (then_lines, saved_lines) = (counted(then), counted(saved));
    let mut added = surplus(&saved_lines, &then_lines);
    let removed = surplus(&then_lines, &saved_lines);
    let shuffled = added.is_empty() && removed.is_empty() && saved != then;
    let mut committed = counted(base);
    let missing = surplus(&committed, &counted(now));
    let mut ranges: Vec<Lines> = Vec::new();
    let mut number = 0;
    for line in split(now) {
        number += 1;
        if let Some(count) = committed.get_mut(line).filter(|count| **count > 0) {
            *count -= 1;
            continue;
        }
        let Some(count) = added.get_mut(line).filter(|count| **count > 0) else { continue };
        *count -= 1;
        match ranges.last_mut() {
            Some(last) if last.to + 1 == number => last.to = number,
            _ => ranges.push(Lines { from: number, to: number }),
        }
    }
    let taken = removed.keys().any(|line| missing.contains_key(line));
    let moved = shuffled && base == then && now != base;
    if ranges.is_empty() && (taken || moved) {
        ranges.push(Lines { from: 1, to: number.max(1) });
    }
    ranges
}

fn split(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    let lines = text.split(|byte| *byte == b'\n');
    let lines = lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    lines.take(if text.is_empty() { 0 } else { usize::MAX })
}

fn counted(text: &[u8]) -> BTreeMap<&[u8], usize> {
    let mut lines = BTreeMap::new();
    for line in split(text) {
        *lines.entry(line).or_insert(0) += 1;
    }
    lines
}

fn surplus<'a>(
    of: &BTreeMap<&'a [u8], usize>,
    over: &BTreeMap<&'a [u8], usize>,
) -> BTreeMap<&'a [u8], usize> {
    let more = of.iter().filter_map(|(line, count)| {
        let left = count.saturating_sub(over.get(line).copied().unwrap_or(0));
        (left > 0).then_some((*line, left))
    });
    more.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_another_are_found_and_nothing_else() {
        let range = |from, to| vec![Lines { from, to }];
        let cases = [
            ("a\nb\n", "a\nx\ny\nb\n", "a\nb\n", "a\nx\ny\nb\nmine\n", range(2, 3)),
            // Reverted since, or committed since, with more of it gone.
            ("a\nb\n", "a\nx\nb\n", "a\nb\n", "a\nb\nmine\n", vec![]),
            ("a\nb\n", "a\nx\nb\n", "a\nx\nb\nc\n", "a\nx\nb\nmine\n", vec![]),
            // Removed, and still missing, or back again.
            ("a\nb\n", "a\n", "a\nb\n", "a\nmine\n", range(1, 2)),
            ("a\nb\n", "a\n", "a\nb\n", "a\nb\nmine\n", vec![]),
            // Only the order.
            ("a\nb\n", "b\na\n", "a\nb\n", "b\na\n", range(1, 2)),
            // A new file, and one with other line ends.
            ("", "x\n", "", "x\nmine\n", range(1, 1)),
            ("a\n", "a\r\nx\r\n", "a\n", "a\r\nx\r\n", range(2, 2)),
        ];
        for (then, saved, base, now, lines) in cases {
            let [then, saved, base, now] = [then, saved, base, now].map(str::as_bytes);
            assert_eq!(still_there(then, saved, base, now), lines, "{saved:?} {now:?}");
        }
    }
}
