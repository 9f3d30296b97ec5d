//! Which files of a tree may not be as git's index has them.
//!
//! Owns the comparison of what the file system shows with what git noted, by rules that are git's
//! or stricter: nanoseconds, the time of the last change of any kind, and the inode always count.
//! Invariant: a file that differs is always named; one that is named may be the same after all, and
//! whoever reads it finds out.

use std::collections::HashSet;

use rustix::fs::{FileType, Stat};

use super::listing::{Listing, What};
use crate::git::{Index, Stamp};

/// Files that are read to find out; of more git is asked about the whole tree.
const FILES_MAX: usize = 2_000;
/// The same for bytes.
const BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Names that git is asked about one by one.
const NAMES_MAX: usize = 500;

/// What may differ, by path.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Differing {
    /// Tracked files that look otherwise, or are gone.
    pub(super) files: Vec<String>,
    /// Names that git does not track: ignored or not.
    pub(super) names: Vec<String>,
    bytes: u64,
}

impl Differing {
    /// Nothing if it is too much, or if a path cannot be said.
    pub(super) fn between(listing: &Listing, index: &Index) -> Option<Self> {
        let mut differing = Self::default();
        let mut tracked = index.iter().peekable();
        // The folder that was passed by last: nothing is known of what is in it.
        let mut passed: Option<&[u8]> = None;
        for (path, what) in listing.iter() {
            while let Some((gone, _)) = tracked.next_if(|(other, _)| *other < path) {
                differing.gone(gone, passed)?;
            }
            match (what, tracked.next_if(|(other, _)| *other == path)) {
                (What::File(stat), Some((_, stamp))) => {
                    if stamp_of(stat) != Some(*stamp) || index.is_racy(stamp) {
                        differing.file(path, stat.st_size.try_into().unwrap_or(u64::MAX))?;
                    }
                }
                (What::Passed, Some(_)) => return None,
                (_, None) => differing.name(path)?,
            }
            if matches!(what, What::Passed) {
                passed = Some(path);
            }
        }
        for (gone, _) in tracked {
            differing.gone(gone, passed)?;
        }
        Some(differing)
    }

    fn gone(&mut self, path: &[u8], passed: Option<&[u8]>) -> Option<()> {
        match passed.is_some_and(|folder| folder.ends_with(b"/") && path.starts_with(folder)) {
            true => None,
            false => self.file(path, 0),
        }
    }

    fn file(&mut self, path: &[u8], bytes: u64) -> Option<()> {
        self.files.push(String::from_utf8(path.to_vec()).ok()?);
        self.bytes = self.bytes.saturating_add(bytes);
        (self.files.len() <= FILES_MAX && self.bytes <= BYTES_MAX).then_some(())
    }

    fn name(&mut self, path: &[u8]) -> Option<()> {
        let path = path.strip_suffix(b"/").unwrap_or(path);
        self.names.push(String::from_utf8(path.to_vec()).ok()?);
        (self.names.len() <= NAMES_MAX).then_some(())
    }
}

/// The folders in which git has files.
pub(super) fn folders(index: &Index) -> HashSet<&[u8]> {
    let mut folders = HashSet::new();
    // Paths are in order, so most are in the same folder as the one before.
    let mut last: &[u8] = b"";
    for (path, _) in index.iter() {
        let slashes = path.iter().enumerate().rev().filter(|(_, byte)| **byte == b'/');
        let mut above = slashes.map(|(slash, _)| &path[..slash]);
        let Some(nearest) = above.next().filter(|nearest| *nearest != last) else { continue };
        last = nearest;
        if folders.insert(nearest) {
            above.take_while(|folder| folders.insert(*folder)).for_each(drop);
        }
    }
    folders
}

/// How the index would note it; nothing if it is nothing that git keeps.
fn stamp_of(stat: &Stat) -> Option<Stamp> {
    let mode = match FileType::from_raw_mode(stat.st_mode) {
        FileType::Symlink => 0o120_000,
        FileType::RegularFile if stat.st_mode & 0o100 != 0 => 0o100_755,
        FileType::RegularFile => 0o100_644,
        _ => return None,
    };
    // The index keeps the lower half of each number.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "as git does")]
    let low = |number: i128| number as u32;
    Some(Stamp {
        changed: (low(stat.st_ctime.into()), low(stat.st_ctime_nsec.into())),
        modified: (low(stat.st_mtime.into()), low(stat.st_mtime_nsec.into())),
        inode: low(stat.st_ino.into()),
        mode,
        user: stat.st_uid,
        group: stat.st_gid,
        size: low(stat.st_size.into()),
        doubtful: false,
    })
}
