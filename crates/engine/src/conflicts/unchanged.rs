//! Whether a tree is as it was when it was last read, told by the file system alone.
//!
//! Owns the mark of a tree: a hash of HEAD, of git's settings, and of the name and the stat of the
//! index and of every file that git would look at. Ignored names are known from the last full look
//! and passed by. Nothing is parsed and no content is read. Invariant: equal marks mean that a full
//! look would give the same; whatever is too young, too deep or too odd to be sure has no mark.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, fstat, openat, statat};

use crate::filesystem;
use crate::git::{Git, Oid};

/// What changes within this time of a look may keep the time it had: clocks of files tick slowly.
const TICK: Duration = Duration::from_millis(20);
/// The same where a file system keeps whole seconds, or two.
const COARSE_TICK: Duration = Duration::from_secs(3);
/// Names in one tree; of more there is no mark.
const NAMES_MAX: usize = 2_000_000;
/// Folders within each other; each is an open descriptor.
const DEPTH_MAX: usize = 128;
/// Hashed at once.
const PIECE_BYTES: usize = 64 * 1024;
/// Ignored names of one tree that are worth remembering.
pub(super) const IGNORED_MAX: usize = 20_000;
/// Files that change what git says of others, so they count even where they are ignored.
const RULES: [&[u8]; 2] = [b".gitignore", b".gitattributes"];

/// What git's answer depends on besides the tree: its settings, and the files they name.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    hash: blake3::Hash,
    files: Vec<PathBuf>,
    /// Each tree may have settings of its own.
    differ: bool,
}

impl Settings {
    /// Nothing if it cannot be said what they depend on.
    pub(super) fn of(git: &Git) -> Option<Self> {
        let listed = git.settings().ok()?;
        let last = |wanted: &str| {
            let mut found = listed.iter().rev().filter(|(key, _)| key == wanted);
            found.next().map(|(_, value)| value.as_str())
        };
        let mut files = vec![PathBuf::from("/etc/gitattributes")];
        for (key, usual) in [("core.excludesfile", "ignore"), ("core.attributesfile", "attributes")]
        {
            match last(key) {
                None => files.extend(usual_folder().map(|folder| folder.join(usual))),
                Some("") => {}
                Some(named) => files.push(expanded(named)?),
            }
        }
        let differ = listed
            .iter()
            .any(|(key, _)| key.starts_with("includeif.") || key == "extensions.worktreeconfig");
        let mut hasher = blake3::Hasher::new();
        for (key, value) in &listed {
            hasher.update(key.as_bytes()).update(b"\0").update(value.as_bytes()).update(b"\0");
        }
        Some(Self { hash: hasher.finalize(), files, differ })
    }

    /// Those of one tree.
    fn of_tree(&self, root: &Path) -> Option<Self> {
        match self.differ {
            true => Self::of(&Git::in_tree(root).ok()?),
            false => Some(self.clone()),
        }
    }
}

fn usual_folder() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = set("XDG_CONFIG_HOME").or_else(|| Some(set("HOME")?.join(".config")))?;
    Some(folder.join("git"))
}

fn expanded(named: &str) -> Option<PathBuf> {
    let path = match named.strip_prefix("~/") {
        Some(rest) => PathBuf::from(std::env::var_os("HOME")?).join(rest),
        None => PathBuf::from(named),
    };
    path.is_absolute().then_some(path)
}

/// A tree to be marked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ground<'a> {
    pub(super) root: &'a Path,
    /// Git's own folder for it, and the one that all trees share.
    pub(super) admin: &'a Path,
    pub(super) common: &'a Path,
    pub(super) head: &'a Oid,
    pub(super) branch: Option<&'a str>,
    pub(super) settings: &'a Settings,
}

/// How a tree looks to the file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) hash: String,
    /// The youngest change of anything in it, in nanoseconds since 1970.
    youngest: i128,
}

impl Mark {
    /// Is everything in it older than this moment, so that whatever changes later shows?
    pub(super) fn is_older_than(&self, moment: SystemTime) -> bool {
        let since = moment.duration_since(SystemTime::UNIX_EPOCH);
        let moment = since.map_or(0, |since| i128::try_from(since.as_nanos()).unwrap_or(0));
        self.youngest < moment
    }
}

impl Ground<'_> {
    /// The mark of the tree, passing by what is ignored (folders with a `/` at their end).
    pub(super) fn mark(&self, ignored: &[String]) -> Option<Mark> {
        if filesystem::kind(self.root).ok()? != filesystem::Kind::Local {
            return None;
        }
        let settings = self.settings.of_tree(self.root)?;
        let root = openat(CWD, self.root, folder_flags(), Mode::empty()).ok()?;
        let device = fstat(&root).ok()?.st_dev.to_le_bytes();
        let mut scan = Scan {
            ignored: by_folder(ignored),
            hasher: blake3::Hasher::new(),
            unhashed: Vec::with_capacity(2 * PIECE_BYTES),
            youngest: 0,
            names_left: NAMES_MAX,
            device: device.to_vec(),
        };
        scan.text(settings.hash.as_bytes());
        scan.text(self.head.as_str().as_bytes());
        scan.text(self.branch.unwrap_or_default().as_bytes());
        let own = ["index", crate::trees::carrying::LIST].map(|name| self.admin.join(name));
        let shared = ["info/exclude", "info/attributes"].map(|name| self.common.join(name));
        let link = [self.root.join(".git")];
        for file in own.iter().chain(&shared).chain(&link).chain(&settings.files) {
            scan.outside(file)?;
        }
        scan.folder(&root, &mut Vec::new(), 0)?;
        scan.hasher.update(&scan.unhashed);
        let hash = scan.hasher.finalize().to_hex().to_string();
        Some(Mark { hash, youngest: scan.youngest })
    }
}

fn folder_flags() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK
}

/// Ignored names by the folder they are in.
fn by_folder(ignored: &[String]) -> BTreeMap<&[u8], BTreeSet<&[u8]>> {
    let mut folders: BTreeMap<&[u8], BTreeSet<&[u8]>> = BTreeMap::new();
    for path in ignored {
        let bare = path.strip_suffix('/').unwrap_or(path);
        let start = bare.rfind('/').map_or(0, |slash| slash + 1);
        let folder = path[..start].trim_end_matches('/');
        folders.entry(folder.as_bytes()).or_default().insert(&path.as_bytes()[start..]);
    }
    folders
}

struct Scan<'a> {
    ignored: BTreeMap<&'a [u8], BTreeSet<&'a [u8]>>,
    hasher: blake3::Hasher,
    /// Gathered, since the hash is faster in large pieces.
    unhashed: Vec<u8>,
    youngest: i128,
    names_left: usize,
    /// Of the root; another file system within the tree may keep time in another way.
    device: Vec<u8>,
}

impl Scan<'_> {
    fn text(&mut self, text: &[u8]) {
        self.unhashed.extend_from_slice(&text.len().to_le_bytes());
        self.unhashed.extend_from_slice(text);
        if self.unhashed.len() >= PIECE_BYTES {
            self.hasher.update(&self.unhashed);
            self.unhashed.clear();
        }
    }

    /// A file by its full path, and what it leads to if it is a link; it need not be there.
    fn outside(&mut self, path: &Path) -> Option<()> {
        self.text(path.as_os_str().as_bytes());
        for flags in [AtFlags::SYMLINK_NOFOLLOW, AtFlags::empty()] {
            match statat(CWD, path, flags) {
                // Git's own folder changes all the time; what counts in it is named.
                Ok(found) if is_folder(&found) => self.text(b"folder"),
                Ok(found) => self.stat(&found),
                Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => self.text(b"none"),
                Err(_) => return None,
            }
        }
        Some(())
    }

    fn stat(&mut self, stat: &Stat) {
        self.age(stat);
        // Of fixed width, so no length is needed.
        let bytes = &mut self.unhashed;
        bytes.extend_from_slice(&stat.st_dev.to_le_bytes());
        bytes.extend_from_slice(&stat.st_ino.to_le_bytes());
        bytes.extend_from_slice(&stat.st_mode.to_le_bytes());
        bytes.extend_from_slice(&stat.st_uid.to_le_bytes());
        bytes.extend_from_slice(&stat.st_gid.to_le_bytes());
        bytes.extend_from_slice(&stat.st_size.to_le_bytes());
        bytes.extend_from_slice(&stat.st_mtime.to_le_bytes());
        bytes.extend_from_slice(&stat.st_mtime_nsec.to_le_bytes());
        bytes.extend_from_slice(&stat.st_ctime.to_le_bytes());
        bytes.extend_from_slice(&stat.st_ctime_nsec.to_le_bytes());
    }

    /// Notes until when a change might not show. The time of content can be set by anybody; that
    /// of the last change of any kind cannot.
    fn age(&mut self, stat: &Stat) {
        let part = i128::from(stat.st_ctime_nsec);
        let tick = if part == 0 { COARSE_TICK } else { TICK };
        let tick = i128::try_from(tick.as_nanos()).unwrap_or(i128::MAX);
        let until = i128::from(stat.st_ctime) * 1_000_000_000 + part + tick;
        self.youngest = self.youngest.max(until);
    }

    /// Everything in an open folder and below. A name that is gone between the list and its stat
    /// is a change in progress: no mark.
    fn folder(&mut self, folder: &OwnedFd, path: &mut Vec<u8>, depth: usize) -> Option<()> {
        let stat = fstat(folder).ok()?;
        if depth > DEPTH_MAX || stat.st_dev.to_le_bytes() != self.device[..] {
            return None;
        }
        // Its own time tells of names that went or came just now.
        self.age(&stat);
        let names = Names::of(folder)?;
        self.names_left = self.names_left.checked_sub(names.all.len())?;
        let ignored = self.ignored.get(path.as_slice()).cloned().unwrap_or_default();
        for (name, kind) in names.iter() {
            let bytes = name.to_bytes();
            if bytes.eq_ignore_ascii_case(b".git") {
                match depth {
                    0 => continue,
                    // A repository within the tree: git there has the say.
                    _ => return None,
                }
            }
            let (mut kind, mut stat) = (kind, None);
            if kind == FileType::Unknown {
                let found = statat(folder.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
                (kind, stat) = (FileType::from_raw_mode(found.st_mode), Some(found));
            }
            if kind == FileType::Directory {
                let passed = !ignored.is_empty() && ignored.contains(&*[bytes, b"/"].concat());
                if !passed {
                    self.inner(folder, name, path, depth)?;
                }
            } else if !ignored.contains(bytes) || RULES.contains(&bytes) {
                let found = match stat {
                    Some(found) => found,
                    None => statat(folder.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW).ok()?,
                };
                self.text(bytes);
                self.stat(&found);
            }
        }
        Some(())
    }

    fn inner(
        &mut self,
        folder: &OwnedFd,
        name: &CStr,
        path: &mut Vec<u8>,
        depth: usize,
    ) -> Option<()> {
        let inner = openat(folder, name, folder_flags(), Mode::empty()).ok()?;
        let length = path.len();
        if length > 0 {
            path.push(b'/');
        }
        path.extend_from_slice(name.to_bytes());
        self.text(name.to_bytes());
        self.text(b"in");
        self.folder(&inner, path, depth + 1)?;
        self.text(b"out");
        path.truncate(length);
        Some(())
    }
}

fn is_folder(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Directory
}

/// The names in a folder, sorted, in one piece of memory.
struct Names {
    text: Vec<u8>,
    /// Where each begins and ends (with its NUL), and what it is.
    all: Vec<(usize, usize, FileType)>,
}

impl Names {
    fn of(folder: &OwnedFd) -> Option<Self> {
        let mut names = Self { text: Vec::new(), all: Vec::new() };
        names.read(folder)?;
        let Self { text, all } = &mut names;
        all.sort_unstable_by(|one, two| text[one.0..one.1].cmp(&text[two.0..two.1]));
        Some(names)
    }

    /// One list of the kernel's is enough for most folders.
    #[cfg(target_os = "linux")]
    fn read(&mut self, folder: &OwnedFd) -> Option<()> {
        let mut buffer = Vec::with_capacity(32 * 1024);
        let mut entries = rustix::fs::RawDir::new(folder, buffer.spare_capacity_mut());
        while let Some(entry) = entries.next() {
            let entry = entry.ok()?;
            self.push(entry.file_name(), entry.file_type());
        }
        Some(())
    }

    #[cfg(not(target_os = "linux"))]
    fn read(&mut self, folder: &OwnedFd) -> Option<()> {
        for entry in rustix::fs::Dir::read_from(folder).ok()? {
            let entry = entry.ok()?;
            self.push(entry.file_name(), entry.file_type());
        }
        Some(())
    }

    fn push(&mut self, name: &CStr, kind: FileType) {
        if !matches!(name.to_bytes(), b"." | b"..") {
            let start = self.text.len();
            self.text.extend_from_slice(name.to_bytes_with_nul());
            self.all.push((start, self.text.len(), kind));
        }
    }

    fn iter(&self) -> impl Iterator<Item = (&CStr, FileType)> {
        let one = |(start, end, kind): &(usize, usize, FileType)| {
            Some((CStr::from_bytes_with_nul(&self.text[*start..*end]).ok()?, *kind))
        };
        self.all.iter().filter_map(one)
    }
}
