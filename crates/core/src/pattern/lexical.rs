//! Lexical rules every path obeys, literal or glob: relative, inside the workspace, no NUL, within
//! the limits, never in `.git`. Knows no filesystem: symbolic links are the engine's business.
//!
//! Invariant: what comes out has no empty, `.` or `..` segment and cannot leave the root (S10).

use super::error::Error;
use super::fold::is_ignorable;
use super::{SEGMENTS_MAX, TEXT_BYTES_MAX};

/// Checks that hold for any text before it is taken apart.
pub(super) fn check_text(text: &str) -> Result<(), Error> {
    if text.is_empty() {
        return Err(Error::Empty);
    }
    if text.len() > TEXT_BYTES_MAX {
        return Err(Error::TooLong { bytes: text.len(), max: TEXT_BYTES_MAX });
    }
    if let Some(at) = text.find('\0') {
        return Err(Error::Nul { at });
    }
    if text.starts_with('/') {
        return Err(Error::Absolute);
    }
    Ok(())
}

/// What a segment means to the walk from the root.
pub(super) enum Step {
    Stay,
    Up,
    Down,
}

/// `at` is where the name starts, for the error.
pub(super) fn step(name: &str, at: usize) -> Result<Step, Error> {
    match name {
        "" | "." => Ok(Step::Stay),
        ".." => Ok(Step::Up),
        _ if !name.is_ascii() && is_disguised_dots(name) => Err(Error::HiddenDots { at }),
        _ => Ok(Step::Down),
    }
}

/// `.` and `..` must not come back when the key drops the invisible characters.
fn is_disguised_dots(name: &str) -> bool {
    let mut visible = name.chars().filter(|c| !is_ignorable(*c));
    let head = [visible.next(), visible.next(), visible.next()];
    matches!(head, [Some('.'), None, None] | [Some('.'), Some('.'), None])
}

pub(super) fn check_segments(segments: usize) -> Result<(), Error> {
    if segments > SEGMENTS_MAX {
        return Err(Error::TooManySegments { segments, max: SEGMENTS_MAX });
    }
    Ok(())
}

/// The path in the user's spelling without `.`, `..` and doubled slashes; empty for the root.
pub(super) fn normalise(path: &str) -> Result<String, Error> {
    check_text(path)?;
    let mut names: Vec<&str> = Vec::new();
    let mut at = 0;
    for name in path.split('/') {
        match step(name, at)? {
            Step::Stay => {}
            Step::Up => {
                names.pop().ok_or(Error::Escapes { at })?;
            }
            Step::Down => names.push(name),
        }
        at += name.len() + 1;
    }
    check_segments(names.len())?;
    Ok(names.join("/"))
}

/// Whether a folded first segment is the git directory under any spelling git itself guards
/// against: NTFS drops trailing dots and spaces, names streams after `:`, and knows `.git` by the
/// short name `git~1`. Case and the characters HFS+ ignores are already gone from a key.
pub(super) fn is_git_dir(name_key: &str) -> bool {
    let stem = name_key.split([':', '\\']).next().unwrap_or(name_key);
    matches!(stem.trim_end_matches([' ', '.']), ".git" | "git~1")
}

/// Whether `key` is `folder` or lies below it; the root (empty) holds everything.
pub(super) fn is_within(key: &str, folder: &str) -> bool {
    folder.is_empty()
        || key.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
