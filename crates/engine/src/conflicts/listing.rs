//! The files of a tree as the file system shows them: one pass, one `stat` each.
//!
//! Owns the walk. It follows no link, leaves no file system and reads no content. Invariant: a name
//! is in the list with its stat, or as something that was passed by, or there is no list.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::ffi::CStr;
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, fstat, openat, statat};

/// What changes within this time of a look may keep the time it had: clocks of files tick slowly.
const TICK: Duration = Duration::from_millis(20);
/// The same where a file system keeps whole seconds, or two.
const COARSE_TICK: Duration = Duration::from_secs(3);
/// Names in one tree; of more there is no list.
const NAMES_MAX: usize = 2_000_000;
/// Folders within each other; each is an open descriptor.
const DEPTH_MAX: usize = 128;
/// Files that change what git says of others, so they count even where they are ignored.
const RULES: [&[u8]; 2] = [b".gitignore", b".gitattributes"];

/// What is gone into and looked at.
#[derive(Clone, Copy)]
pub(super) enum Rule<'a> {
    /// Only folders in which git has files.
    Within(&'a HashSet<&'a [u8]>),
    /// Everything but these; folders with a `/` at their end.
    Without(&'a HashSet<&'a [u8]>),
}

/// A file or a folder, by its path in the tree; folders with a `/` at their end.
#[derive(Debug)]
struct Item {
    path: Range<usize>,
    what: What,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum What {
    File(Stat),
    /// A folder that was not gone into, or a file that is known to be ignored.
    Passed,
}

/// In order of bytes of the paths.
#[derive(Debug, Default)]
pub(super) struct Listing {
    paths: Vec<u8>,
    items: Vec<Item>,
    /// Until when a change might not show, in nanoseconds since 1970.
    pub(super) youngest: i128,
    /// There is a file that says how git is to convert others.
    pub(super) has_attributes: bool,
}

impl Listing {
    /// Nothing if anything is too odd, or changes while it is looked at.
    pub(super) fn of(root: &Path, rule: Rule<'_>) -> Option<Self> {
        let mut listing = Self::default();
        Walk::from(root, rule, &mut listing)?.folder(&open(root)?, 0)?;
        Some(listing)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u8], &What)> {
        self.items.iter().map(|item| (&self.paths[item.path.clone()], &item.what))
    }

    /// Goes into the folders that were passed by and are not ignored, and lets go of the rest.
    pub(super) fn complete(&mut self, root: &Path, ignored: &HashSet<&[u8]>) -> Option<()> {
        let rule = Rule::Without(ignored);
        for item in std::mem::take(&mut self.items) {
            let path = self.paths[item.path.clone()].to_vec();
            let passed = ignored.contains(path.as_slice());
            match (item.what, path.strip_suffix(b"/")) {
                (What::Passed, Some(folder)) if !passed => {
                    use std::os::unix::ffi::OsStrExt;
                    let inner = open(&root.join(std::ffi::OsStr::from_bytes(folder)))?;
                    let mut walk = Walk::from(root, rule, self)?;
                    walk.path = path;
                    walk.folder(&inner, 1)?;
                }
                // It was ignored before, and nothing is known of it.
                (What::Passed, None) if !passed => return None,
                (What::File(_), _) if passed && !is_rule(&path) => {}
                _ => self.items.push(item),
            }
        }
        Some(())
    }
}

/// Until when a change might not show, in nanoseconds since 1970. The time of content can be set by
/// anybody; that of the last change of any kind cannot.
pub(super) fn young_until(stat: &Stat) -> i128 {
    let part = i128::from(stat.st_ctime_nsec);
    let tick = if part == 0 { COARSE_TICK } else { TICK };
    let tick = i128::try_from(tick.as_nanos()).unwrap_or(i128::MAX);
    i128::from(stat.st_ctime) * 1_000_000_000 + part + tick
}

fn is_rule(path: &[u8]) -> bool {
    let start = path.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
    RULES.contains(&&path[start..])
}

fn open(folder: &Path) -> Option<OwnedFd> {
    openat(CWD, folder, folder_flags(), Mode::empty()).ok()
}

fn folder_flags() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK
}

struct Walk<'a> {
    rule: Rule<'a>,
    /// Another file system within the tree may keep time in another way.
    root: Stat,
    /// Of the folder that is open, with a `/` at its end.
    path: Vec<u8>,
    listing: &'a mut Listing,
}

impl<'a> Walk<'a> {
    fn from(root: &Path, rule: Rule<'a>, listing: &'a mut Listing) -> Option<Self> {
        let root = statat(CWD, root, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        Some(Self { rule, root, path: Vec::new(), listing })
    }

    /// Everything in an open folder and below. A name that is gone between the list and its stat
    /// is a change in progress: no list.
    fn folder(&mut self, folder: &OwnedFd, depth: usize) -> Option<()> {
        let stat = fstat(folder).ok()?;
        if depth > DEPTH_MAX || stat.st_dev != self.root.st_dev {
            return None;
        }
        // Its own time tells of names that went or came just now.
        self.listing.youngest = self.listing.youngest.max(young_until(&stat));
        let names = Names::of(folder)?;
        if self.listing.items.len() + names.all.len() > NAMES_MAX {
            return None;
        }
        for (name, is_folder) in names.iter() {
            let bytes = name.to_bytes();
            if bytes.eq_ignore_ascii_case(b".git") {
                match self.path.is_empty() {
                    true => continue,
                    // A repository within the tree: git there has the say.
                    false => return None,
                }
            }
            let length = self.path.len();
            self.path.extend_from_slice(bytes);
            match is_folder {
                true => self.inner(folder, name, depth)?,
                false => self.file(folder, name)?,
            }
            self.path.truncate(length);
        }
        Some(())
    }

    fn inner(&mut self, folder: &OwnedFd, name: &CStr, depth: usize) -> Option<()> {
        let enter = match self.rule {
            Rule::Within(folders) => folders.contains(self.path.as_slice()),
            Rule::Without(ignored) => {
                self.path.push(b'/');
                let passed = ignored.contains(self.path.as_slice());
                self.path.pop();
                !passed
            }
        };
        self.path.push(b'/');
        if !enter {
            self.note(What::Passed);
            return Some(());
        }
        let inner = openat(folder, name, folder_flags(), Mode::empty()).ok()?;
        self.folder(&inner, depth + 1)
    }

    fn file(&mut self, folder: &OwnedFd, name: &CStr) -> Option<()> {
        let is_rule = RULES.contains(&name.to_bytes());
        if let Rule::Without(ignored) = self.rule
            && !is_rule
            && ignored.contains(self.path.as_slice())
        {
            self.note(What::Passed);
            return Some(());
        }
        self.listing.has_attributes |= name.to_bytes() == RULES[1];
        let found = statat(folder.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        // What was a file a moment ago is a change in progress.
        if FileType::from_raw_mode(found.st_mode) == FileType::Directory {
            return None;
        }
        self.listing.youngest = self.listing.youngest.max(young_until(&found));
        self.note(What::File(found));
        Some(())
    }

    fn note(&mut self, what: What) {
        let start = self.listing.paths.len();
        self.listing.paths.extend_from_slice(&self.path);
        self.listing.items.push(Item { path: start..self.listing.paths.len(), what });
    }
}

/// The names in a folder, in the order that their paths have, in one piece of memory.
struct Names {
    text: Vec<u8>,
    /// Where each begins and ends (with its NUL), and whether it is a folder.
    all: Vec<(usize, usize, bool)>,
}

impl Names {
    fn of(folder: &OwnedFd) -> Option<Self> {
        let mut names = Self { text: Vec::new(), all: Vec::new() };
        names.read(folder)?;
        let Self { text, all } = &mut names;
        all.sort_unstable_by(|one, two| in_order(text, *one, *two));
        Some(names)
    }

    /// One list of the kernel's is enough for most folders.
    #[cfg(target_os = "linux")]
    fn read(&mut self, folder: &OwnedFd) -> Option<()> {
        let mut buffer = Vec::with_capacity(32 * 1024);
        let mut entries = rustix::fs::RawDir::new(folder, buffer.spare_capacity_mut());
        while let Some(entry) = entries.next() {
            let entry = entry.ok()?;
            self.push(folder, entry.file_name(), entry.file_type())?;
        }
        Some(())
    }

    #[cfg(not(target_os = "linux"))]
    fn read(&mut self, folder: &OwnedFd) -> Option<()> {
        for entry in rustix::fs::Dir::read_from(folder).ok()? {
            let entry = entry.ok()?;
            self.push(folder, entry.file_name(), entry.file_type())?;
        }
        Some(())
    }

    fn push(&mut self, folder: &OwnedFd, name: &CStr, kind: FileType) -> Option<()> {
        if matches!(name.to_bytes(), b"." | b"..") {
            return Some(());
        }
        let kind = match kind {
            FileType::Unknown => {
                let found = statat(folder.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
                FileType::from_raw_mode(found.st_mode)
            }
            known => known,
        };
        let start = self.text.len();
        self.text.extend_from_slice(name.to_bytes_with_nul());
        self.all.push((start, self.text.len(), kind == FileType::Directory));
        Some(())
    }

    fn iter(&self) -> impl Iterator<Item = (&CStr, bool)> {
        let one = |(start, end, is_folder): &(usize, usize, bool)| {
            Some((CStr::from_bytes_with_nul(&self.text[*start..*end]).ok()?, *is_folder))
        };
        self.all.iter().filter_map(one)
    }
}

/// As the paths of what is in them: a folder's name goes on with a `/`, a file's ends.
fn in_order(text: &[u8], one: (usize, usize, bool), two: (usize, usize, bool)) -> Ordering {
    let name = |at: (usize, usize, bool)| &text[at.0..at.1 - 1];
    let (first, second) = (name(one), name(two));
    let both = first.len().min(second.len());
    let next = |name: &[u8], is_folder: bool| match (name.get(both), is_folder) {
        (Some(byte), _) => *byte,
        (None, true) => b'/',
        (None, false) => 0,
    };
    let rest = || next(first, one.2).cmp(&next(second, two.2));
    first[..both].cmp(&second[..both]).then_with(rest)
}
