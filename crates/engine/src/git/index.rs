//! Git's index, read without git.
//!
//! Owns the format: versions 2 to 4, with SHA-1 or SHA-256. It says which files git tracks, how
//! they looked when git last saw them as they are in the index, and which tree the index is. It
//! refuses to judge. Invariant: an index with anything in it that is not plain (conflicts,
//! submodules, sparse or split indexes, files that git is told not to look at, what is not known
//! here) is not read at all: then git is asked. Like git itself it takes the file as it is, without
//! summing it.

use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::Oid;

const FILE_BYTES_MAX: u64 = 512 * 1024 * 1024;
/// Before the name of the object: two times, and seven numbers.
const STAT_BYTES: usize = 40;
const EXTENDED: u16 = 0x4000;
/// Assume unchanged, extended, and the stage of a conflict.
const ODD_FLAGS: u16 = 0x8000 | 0x3000;
const LENGTH: u16 = 0x0fff;
const SECOND: i128 = 1_000_000_000;
/// Two changes within this time may have the same time: clocks of files tick slowly.
const TICK: i128 = SECOND / 50;
/// The same where a file system keeps whole seconds, or two.
const COARSE_TICK: i128 = 3 * SECOND;
/// How the names of a file with nothing in it begin, in both hashes.
const EMPTY: [[u8; 8]; 2] = [
    [0xe6, 0x9d, 0xe2, 0x9b, 0xb2, 0xd1, 0xd6, 0x43],
    [0x47, 0x3a, 0x0f, 0x4c, 0x3b, 0xe8, 0xa9, 0x36],
];

/// The index of one tree.
#[derive(Debug)]
pub(crate) struct Index {
    paths: Vec<u8>,
    entries: Vec<(Range<usize>, Stamp)>,
    /// The tree that it is, if git has noted it.
    pub(crate) tree: Option<Oid>,
    /// When it was written: what changed then or later may look as it did.
    written: (i64, i64),
}

/// How a file looked, in the widths that the index keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Stamp {
    pub(crate) changed: (u32, u32),
    pub(crate) modified: (u32, u32),
    pub(crate) inode: u32,
    pub(crate) mode: u32,
    pub(crate) user: u32,
    pub(crate) group: u32,
    pub(crate) size: u32,
    /// Git has noted that its look tells nothing.
    pub(crate) doubtful: bool,
}

impl Index {
    /// Nothing if it has to be asked of git. `sample` tells by its length which hash is used.
    pub(crate) fn read(path: &Path, sample: &Oid) -> Option<Self> {
        let mut file = File::open(path).ok()?;
        let data = file.metadata().ok().filter(|data| data.is_file())?;
        let mut bytes = Vec::with_capacity(usize::try_from(data.len()).ok()?);
        file.by_ref().take(FILE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
        let mut index = Self::parse(&bytes, sample.as_str().len() / 2)?;
        index.written = (data.mtime(), data.mtime_nsec());
        Some(index)
    }

    fn parse(bytes: &[u8], hash_bytes: usize) -> Option<Self> {
        let end = bytes.len().checked_sub(hash_bytes)?;
        let mut rest = Bytes(bytes.get(..end)?);
        if rest.take(4)? != b"DIRC" {
            return None;
        }
        let version = rest.number().filter(|version| (2..=4).contains(version))?;
        let count = usize::try_from(rest.number()?).ok()?;
        // A count is no reason to reserve more than the file can hold.
        let possible = count.min(end / (STAT_BYTES + hash_bytes));
        let mut index = Self {
            paths: Vec::with_capacity(end / 2),
            entries: Vec::with_capacity(possible),
            tree: None,
            written: (0, 0),
        };
        for _ in 0..count {
            index.entry(&mut rest, version, hash_bytes)?;
        }
        while !rest.0.is_empty() {
            let name = rest.take(4)?;
            let length = usize::try_from(rest.number()?).ok()?;
            let body = rest.take(length)?;
            match name {
                b"TREE" => index.tree = whole_tree(body, count, hash_bytes)?,
                // What begins with a small letter must be understood.
                _ if name.first().is_some_and(u8::is_ascii_uppercase) => {}
                _ => return None,
            }
        }
        Some(index)
    }

    fn entry(&mut self, rest: &mut Bytes<'_>, version: u32, hash_bytes: usize) -> Option<()> {
        let before = rest.0.len();
        let mut numbers = [0; STAT_BYTES / 4];
        for number in &mut numbers {
            *number = rest.number()?;
        }
        let blob = rest.take(hash_bytes)?;
        let flags = u16::from_be_bytes(rest.take(2)?.try_into().ok()?);
        if flags & ODD_FLAGS != 0 {
            return None;
        }
        // The only other flags are of files that are to come, or not to be in the tree.
        if flags & EXTENDED != 0 && (version < 3 || rest.take(2)? != [0, 0]) {
            return None;
        }
        let start = self.paths.len();
        if version == 4 {
            let last = self.entries.last().map_or(0..0, |(path, _)| path.clone());
            let kept = last.len().checked_sub(rest.offset()?)?;
            self.paths.extend_from_within(last.start..last.start + kept);
            let name = rest.until_nul()?;
            self.paths.extend_from_slice(name);
        } else {
            let name = rest.until_nul()?;
            let told = usize::from(flags & LENGTH);
            if told != name.len().min(usize::from(LENGTH)) {
                return None;
            }
            self.paths.extend_from_slice(name);
            // Entries are as long as a multiple of eight, with one NUL at least.
            let used = before - rest.0.len();
            rest.take(used.next_multiple_of(8) - used)?;
        }
        let path = start..self.paths.len();
        let [cs, cn, ms, mn, _device, inode, mode, user, group, size] = numbers;
        let (changed, modified) = ((cs, cn), (ms, mn));
        // Of a file that changed while the index was written git keeps no size.
        let doubtful = size == 0 && !EMPTY.iter().any(|empty| blob.starts_with(empty));
        let stamp = Stamp { changed, modified, inode, mode, user, group, size, doubtful };
        let plain = matches!(mode, 0o100_644 | 0o100_755 | 0o120_000);
        let last = self.entries.last().map(|(path, _)| &self.paths[path.clone()]);
        if !plain || path.is_empty() || last.is_some_and(|last| *last >= self.paths[path.clone()]) {
            return None;
        }
        self.entries.push((path, stamp));
        Some(())
    }

    /// Every file, by its path in order of bytes.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], &Stamp)> {
        self.entries.iter().map(|(path, stamp)| (&self.paths[path.clone()], stamp))
    }

    /// Might it have changed after git looked at it, without looking so? The time of content can be
    /// set by anybody, so that of the last change of any kind counts as well.
    pub(crate) fn is_racy(&self, stamp: &Stamp) -> bool {
        let nanoseconds =
            |(seconds, part): (i64, i64)| i128::from(seconds) * SECOND + i128::from(part);
        let last = stamp.modified.max(stamp.changed);
        let tick = if stamp.changed.1 == 0 { COARSE_TICK } else { TICK };
        nanoseconds((last.0.into(), last.1.into())) + tick >= nanoseconds(self.written)
    }
}

/// The tree that the whole index is: nothing if git has not noted it since the last change.
fn whole_tree(body: &[u8], count: usize, hash_bytes: usize) -> Option<Option<Oid>> {
    let mut rest = Bytes(body);
    if !rest.until_nul()?.is_empty() {
        return None;
    }
    let line = body.get(1..)?.split(|byte| *byte == b'\n').next()?;
    let (files, _) = std::str::from_utf8(line).ok()?.split_once(' ')?;
    if files.parse::<usize>().ok() != Some(count) {
        return Some(None);
    }
    rest.take(line.len() + 1)?;
    let name = rest.take(hash_bytes)?;
    Some(Oid::parse(&name.iter().map(|byte| format!("{byte:02x}")).collect::<String>()))
}

struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u32> {
        Some(u32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    /// Without the NUL, which is taken as well.
    fn until_nul(&mut self) -> Option<&'a [u8]> {
        let length = self.0.iter().position(|byte| *byte == 0)?;
        let taken = self.take(length);
        self.take(1)?;
        taken
    }

    /// A number in as many bytes as it needs, as in packs.
    fn offset(&mut self) -> Option<usize> {
        let mut value: usize = 0;
        for round in 0..5 {
            let byte = self.take(1)?[0];
            if round > 0 {
                value += 1;
            }
            value = (value << 7) | usize::from(byte & 0x7f);
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests;
