//! Whether a tree is as it was when it was last read, told by the file system alone.
//!
//! Owns the mark of a tree: a hash of HEAD, of git's settings, and of the path and the stat of the
//! index and of every file that git would look at. Ignored names are known from the last full look
//! and passed by. Nothing is parsed and no content is read. Invariant: equal marks mean that a full
//! look would give the same; whatever is too young, too deep or too odd to be sure has no mark.

use std::collections::HashSet;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::{AtFlags, CWD, FileType, Stat, statat};

use super::listing::{Listing, Rule, What, young_until};
use crate::filesystem;
use crate::git::{Git, Oid, Setting, own_programs};

/// Hashed at once.
const PIECE_BYTES: usize = 64 * 1024;
/// Ignored names of one tree that are worth remembering.
pub(super) const IGNORED_MAX: usize = 20_000;
/// Where a git may look for attributes of the whole system: it depends on how it was built.
const SYSTEM_ATTRIBUTES: [&str; 3] =
    ["/etc/gitattributes", "/usr/local/etc/gitattributes", "/opt/homebrew/etc/gitattributes"];

/// What git's answer depends on besides the tree: its settings, and the files they name.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    hash: blake3::Hash,
    rules: Option<PathBuf>,
    attributes: Vec<PathBuf>,
    /// Each tree may have settings of its own.
    differ: bool,
    /// Files are in the tree as they are in git, unless attributes say otherwise.
    pub(super) plain: bool,
    /// Filters that the repository itself configures.
    pub(super) filters: Vec<String>,
    /// The same for merge drivers.
    pub(super) drivers: Vec<String>,
}

impl Settings {
    /// Nothing if it cannot be said what they depend on.
    pub(super) fn of(git: &Git) -> Option<Self> {
        let listed = git.settings().ok()?;
        let last = |wanted: &str| {
            let mut found = listed.iter().rev().filter(|setting| setting.key == wanted);
            found.next().map(|setting| setting.value.as_str())
        };
        let named = |key: &str, usual: &str| match last(key) {
            None => Some(usual_folder().map(|folder| folder.join(usual))),
            Some("") => Some(None),
            Some(named) => expanded(named).map(Some),
        };
        let rules = named("core.excludesfile", "ignore")?;
        let mut attributes: Vec<PathBuf> = SYSTEM_ATTRIBUTES.map(PathBuf::from).to_vec();
        attributes.extend(named("core.attributesfile", "attributes")?);
        let differ = listed.iter().any(|setting| {
            setting.key.starts_with("includeif.") || setting.key == "extensions.worktreeconfig"
        });
        let mut hasher = blake3::Hasher::new();
        for Setting { key, value, .. } in &listed {
            hasher.update(key.as_bytes()).update(b"\0").update(value.as_bytes()).update(b"\0");
        }
        let plain = listed.iter().all(Self::leaves_files_alone);
        let filters = own_programs("filter", &["clean", "smudge", "process"], &listed);
        let drivers = own_programs("merge", &["driver"], &listed);
        let hash = hasher.finalize();
        Some(Self { hash, rules, attributes, differ, plain, filters, drivers })
    }

    /// Does git without attributes take files as they are, under this setting?
    fn leaves_files_alone(setting: &Setting) -> bool {
        let value = setting.value.to_ascii_lowercase();
        let is_off = matches!(value.as_str(), "false" | "no" | "off" | "0");
        match setting.key.as_str() {
            "core.autocrlf" | "core.ignorecase" | "core.precomposeunicode" => is_off,
            "core.filemode" | "core.symlinks" => {
                matches!(value.as_str(), "" | "true" | "yes" | "on" | "1")
            }
            "core.worktree" => false,
            _ => true,
        }
    }

    /// Those of one tree.
    pub(super) fn of_tree(&self, root: &Path) -> Option<Self> {
        match self.differ {
            true => Self::of(&Git::in_tree(root).ok()?),
            false => Some(self.clone()),
        }
    }

    /// Is there a file outside the trees that says how git is to convert files?
    pub(super) fn has_attributes(&self, common: &Path) -> bool {
        let own = [common.join("info/attributes")];
        let mut files = self.attributes.iter().chain(&own);
        files.any(|file| std::fs::symlink_metadata(file).is_ok())
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
#[derive(Clone, Debug)]
pub(super) struct Ground<'a> {
    pub(super) root: &'a Path,
    /// Git's own folder for it, and the one that all trees share.
    pub(super) admin: &'a Path,
    pub(super) common: &'a Path,
    pub(super) head: &'a Oid,
    pub(super) branch: Option<&'a str>,
    pub(super) settings: Settings,
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
    /// What the mark depends on besides the files of the tree, as it is now.
    pub(super) fn surroundings(&self) -> Option<Marker> {
        let settings = &self.settings;
        if filesystem::kind(self.root).ok()? != filesystem::Kind::Local {
            return None;
        }
        let mut marker = Marker {
            hasher: blake3::Hasher::new(),
            unhashed: Vec::with_capacity(2 * PIECE_BYTES),
            youngest: 0,
        };
        marker.text(settings.hash.as_bytes());
        marker.text(self.head.as_str().as_bytes());
        marker.text(self.branch.unwrap_or_default().as_bytes());
        let own = ["index", crate::trees::carrying::LIST].map(|name| self.admin.join(name));
        let shared = ["info/exclude", "info/attributes"].map(|name| self.common.join(name));
        let link = [self.root.join(".git")];
        let named = settings.attributes.iter().chain(&settings.rules);
        for file in own.iter().chain(&shared).chain(&link).chain(named) {
            marker.outside(file)?;
        }
        Some(marker)
    }

    /// The mark of the tree, passing by what is ignored (folders with a `/` at their end).
    pub(super) fn mark(&self, ignored: &[String]) -> Option<Mark> {
        let marker = self.surroundings()?;
        let listing = Listing::of(self.root, Rule::Without(&names(ignored)))?;
        Some(marker.mark(&listing))
    }
}

pub(super) fn names(ignored: &[String]) -> HashSet<&[u8]> {
    ignored.iter().map(String::as_bytes).collect()
}

/// What is hashed.
#[derive(Clone)]
pub(super) struct Marker {
    hasher: blake3::Hasher,
    /// Gathered, since the hash is faster in large pieces.
    unhashed: Vec<u8>,
    /// Until when a change of the surroundings might not show.
    youngest: i128,
}

impl Marker {
    /// With every file of the tree.
    pub(super) fn mark(mut self, listing: &Listing) -> Mark {
        for (path, what) in listing.iter() {
            if let What::File(stat) = what {
                self.text(path);
                self.stat(stat);
            }
        }
        self.hasher.update(&self.unhashed);
        let hash = self.hasher.finalize().to_hex().to_string();
        Mark { hash, youngest: self.youngest.max(listing.youngest) }
    }

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
                Ok(found) => {
                    self.youngest = self.youngest.max(young_until(&found));
                    self.stat(&found);
                }
                Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => self.text(b"none"),
                Err(_) => return None,
            }
        }
        Some(())
    }

    fn stat(&mut self, stat: &Stat) {
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
}

fn is_folder(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Directory
}
