//! The workspace's mark on disk and the random ids of workspaces and trees.
//!
//! Owns the format of `workspace.toml` and of a tree file. The mark is read by every hook, so it
//! has a strict line parser of its own: 0.2 µs against 1.1 of the `toml` crate, and it tells a
//! newer file from a broken one before it understands the rest.
//! Invariant: whoever reads one of these files sees all of it or nothing, and of two who make one
//! at the same moment both end with the same content.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::Error;

/// The version of `workspace.toml` that this Baton writes and understands.
pub const VERSION: u64 = 1;
const ID_CHARS: usize = 32;
const FILE_BYTES_MAX: usize = 4096;
/// Readable by its owner alone.
pub(crate) const PRIVATE: u32 = 0o600;

macro_rules! random_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            pub fn fresh() -> Result<Self, Error> {
                Ok(Self(random_hex()?))
            }

            /// 32 lower-case hexadecimal digits, or nothing.
            pub fn parse(text: &str) -> Option<Self> {
                is_id(text).then(|| Self(text.to_owned()))
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(&self.0)
            }
        }

        impl TryFrom<String> for $name {
            type Error = NotAnId;

            fn try_from(text: String) -> Result<Self, NotAnId> {
                if is_id(&text) { Ok(Self(text)) } else { Err(NotAnId { text }) }
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0
            }
        }
    };
}

random_id!(
    /// The random id of a workspace.
    WorkspaceId
);
random_id!(
    /// The random id of a working tree.
    TreeId
);

#[derive(Debug, thiserror::Error)]
#[error("{text:?} is not an id of {ID_CHARS} hexadecimal digits")]
pub struct NotAnId {
    pub text: String,
}

fn is_id(text: &str) -> bool {
    text.len() == ID_CHARS && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn random_hex() -> Result<String, Error> {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut bytes = [0_u8; ID_CHARS / 2];
    getrandom::fill(&mut bytes).map_err(|_| Error::NoRandomness)?;
    let mut text = String::with_capacity(ID_CHARS);
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    Ok(text)
}

impl TreeId {
    /// The id in a tree file, which is made if it is not there.
    pub(super) fn at(path: &Path) -> Result<Self, Error> {
        if let Some(text) = read_small(path)? {
            return Self::in_file(path, &text);
        }
        let fresh = Self::fresh()?;
        if publish(path, format!("{fresh}\n").as_bytes(), PRIVATE)? {
            return Ok(fresh);
        }
        match read_small(path)? {
            Some(text) => Self::in_file(path, &text),
            None => Err(Error::io("read", path, ErrorKind::NotFound.into())),
        }
    }

    fn in_file(path: &Path, text: &str) -> Result<Self, Error> {
        Self::parse(text.trim_end_matches('\n'))
            .ok_or_else(|| Error::Malformed { path: path.to_path_buf(), line: 1 })
    }
}

/// What was found where a `workspace.toml` may be.
#[derive(Debug)]
pub(super) enum Mark {
    Absent,
    /// Made by a user whose word does not count.
    Foreign {
        owner: u32,
    },
    Ours(WorkspaceFile),
}

/// What `workspace.toml` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceFile {
    pub id: WorkspaceId,
    /// The main tree; a workspace of a bare repository has none.
    pub tree: Option<TreeId>,
    /// Its records are on a shared store. Where that is, the user says and never this file; but
    /// without it a forgotten `BATON_STORE` would quietly split the workspace in two.
    pub shared: bool,
}

impl WorkspaceFile {
    /// A new tree of the workspace `id`, or of a new one.
    pub(super) fn fresh(
        id: Option<WorkspaceId>,
        with_tree: bool,
        shared: bool,
    ) -> Result<Self, Error> {
        let tree = if with_tree { Some(TreeId::fresh()?) } else { None };
        let id = id.map_or_else(WorkspaceId::fresh, Ok)?;
        Ok(Self { id, tree, shared })
    }

    /// What is at `path`. The owner is judged before a byte is believed: what another user left
    /// in a shared folder must neither lead us astray nor stop us.
    pub(super) fn read(path: &Path, accepts: impl Fn(u32) -> bool) -> Result<Mark, Error> {
        match open_small(path) {
            Ok(None) => Ok(Mark::Absent),
            Ok(Some((_, owner))) if !accepts(owner) => Ok(Mark::Foreign { owner }),
            Ok(Some((file, _))) => Ok(Mark::Ours(Self::parse(path, &read_text(file, path)?)?)),
            Err(error) => match path.parent().and_then(|store| closed_by(store, &accepts)) {
                Some(owner) => Ok(Mark::Foreign { owner }),
                None => Err(error),
            },
        }
    }

    fn parse(path: &Path, text: &str) -> Result<Self, Error> {
        let malformed = |line| Error::Malformed { path: path.to_path_buf(), line };
        let (mut version, mut id, mut tree, mut shared) = (None, None, None, None);
        for (index, line) in text.lines().enumerate() {
            let line_number = index + 1;
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (key, value) = line.split_once('=').ok_or_else(|| malformed(line_number))?;
            let (key, value) = (key.trim(), value.trim());
            let quoted = || value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
            if version.is_none() {
                // The version comes first, so that a newer file is called newer and not broken.
                let found = value.parse::<u64>().ok().filter(|_| key == "version");
                let found = found.ok_or_else(|| malformed(line_number))?;
                if found > VERSION {
                    return Err(Error::NewerVersion { path: path.to_path_buf(), found });
                }
                version = Some(found).filter(|found| *found == VERSION);
                version.ok_or_else(|| malformed(line_number))?;
                continue;
            }
            let understood = match key {
                "id" if id.is_none() => {
                    id = quoted().and_then(WorkspaceId::parse);
                    id.is_some()
                }
                "tree" if tree.is_none() => {
                    tree = quoted().and_then(TreeId::parse);
                    tree.is_some()
                }
                "shared" if shared.is_none() => {
                    shared = value.parse::<bool>().ok();
                    shared.is_some()
                }
                _ => false,
            };
            if !understood {
                return Err(malformed(line_number));
            }
        }
        let id = id.ok_or_else(|| malformed(text.lines().count() + 1))?;
        Ok(Self { id, tree, shared: shared.unwrap_or(false) })
    }

    fn render(&self) -> String {
        let mut text = String::from("# Written by `baton init`. Do not edit, do not copy.\n");
        text.push_str(&format!("version = {VERSION}\nid = \"{}\"\n", self.id));
        if let Some(tree) = &self.tree {
            text.push_str(&format!("tree = \"{tree}\"\n"));
        }
        if self.shared {
            text.push_str("shared = true\n");
        }
        text
    }

    /// Writes the file unless there is one; returns what is there, and whether it is ours.
    pub(super) fn publish(self, path: &Path) -> Result<(Self, bool), Error> {
        if publish(path, self.render().as_bytes(), PRIVATE)? {
            return Ok((self, true));
        }
        match read_small(path)? {
            Some(text) => Ok((Self::parse(path, &text)?, false)),
            None => Err(Error::io("read", path, ErrorKind::NotFound.into())),
        }
    }
}

/// A small text file; nothing if it is not there.
pub(super) fn read_small(path: &Path) -> Result<Option<String>, Error> {
    match open_small(path)? {
        Some((file, _)) => read_text(file, path).map(Some),
        None => Ok(None),
    }
}

/// An open regular file and its owner. It never waits, as opening a pipe for reading would.
fn open_small(path: &Path) -> Result<Option<(File, u32)>, Error> {
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error) if is_absent(error.kind()) => return Ok(None),
        Err(error) => return Err(Error::io("open", path, error)),
    };
    let metadata = file.metadata().map_err(|error| Error::io("read", path, error))?;
    if !metadata.is_file() {
        return Err(Error::Malformed { path: path.to_path_buf(), line: 1 });
    }
    Ok(Some((file, metadata.uid())))
}

fn read_text(mut file: File, path: &Path) -> Result<String, Error> {
    let mut buffer = [0_u8; FILE_BYTES_MAX];
    let mut length = 0;
    loop {
        match file.read(&mut buffer[length..]) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(Error::io("read", path, error)),
        }
        if length == FILE_BYTES_MAX {
            return Err(Error::TooLarge { path: path.to_path_buf(), limit: FILE_BYTES_MAX });
        }
    }
    match std::str::from_utf8(&buffer[..length]) {
        Ok(text) => Ok(text.to_owned()),
        Err(_) => Err(Error::Malformed { path: path.to_path_buf(), line: 1 }),
    }
}

/// The owner of a store folder (or of the folder around it, if that is closed to us) if it is
/// someone whose word does not count.
fn closed_by(store: &Path, accepts: &impl Fn(u32) -> bool) -> Option<u32> {
    let metadata = store.ancestors().find_map(|folder| fs::symlink_metadata(folder).ok())?;
    (!accepts(metadata.uid())).then_some(metadata.uid())
}

pub(super) fn is_absent(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// Makes `path` with this content unless it exists: `true` if it was us. The content is complete
/// and on disk before the name appears, and a hard link, unlike a rename, never replaces a winner.
pub(crate) fn publish(path: &Path, content: &[u8], mode: u32) -> Result<bool, Error> {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".{}.new", random_hex()?));
    let draft = path.with_file_name(name);
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(&draft)
        .and_then(|mut file| file.write_all(content).and_then(|()| file.sync_all()));
    let linked = written.and_then(|()| fs::hard_link(&draft, path));
    let removed = fs::remove_file(&draft);
    match linked {
        Ok(()) => removed.map(|()| true).map_err(|error| Error::io("remove", &draft, error)),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(Error::io("make", path, error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0123456789abcdef0123456789abcdef";

    fn parse(text: &str) -> Result<WorkspaceFile, Error> {
        WorkspaceFile::parse(Path::new("workspace.toml"), text)
    }

    #[test]
    fn what_is_written_is_read_back_and_is_toml() {
        for flag in [true, false] {
            let file = WorkspaceFile::fresh(None, flag, !flag).unwrap();
            assert_eq!(parse(&file.render()).unwrap(), file);
            let table: toml::Table = file.render().parse().unwrap();
            assert_eq!(table["id"].as_str(), Some(file.id.as_str()));
        }
    }

    #[test]
    fn s21_a_newer_version_is_called_newer() {
        let newer = parse("version = 2\nsomething = [1, 2]\n");
        assert!(matches!(newer, Err(Error::NewerVersion { found: 2, .. })), "{newer:?}");
    }

    #[test]
    fn anything_else_is_refused_with_its_line() {
        let cases = [
            ("", 1),
            ("version = 1\n", 2),
            ("version = 0\n", 1),
            (&format!("id = \"{ID}\"\nversion = 1\n"), 1),
            ("version = 1\nid = \"short\"\n", 2),
            (&format!("version = 1\nid = \"{ID}\"\nid = \"{ID}\"\n"), 3),
            (&format!("version = 1\nid = \"{ID}\"\nextra = 1\n"), 3),
            (&format!("version = 1\nid = \"{}\"\n", ID.to_uppercase()), 2),
            ("version = 1\nnonsense\n", 2),
        ];
        for (text, expected) in cases {
            let refused = parse(text);
            let Err(Error::Malformed { line, .. }) = refused else { panic!("{text}: {refused:?}") };
            assert_eq!(line, expected, "{text}");
        }
    }

    #[test]
    fn a_large_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("workspace.toml");
        fs::write(&path, "#".repeat(FILE_BYTES_MAX)).unwrap();
        assert!(matches!(WorkspaceFile::read(&path, |_| true), Err(Error::TooLarge { .. })));
    }

    #[test]
    fn what_another_user_left_is_not_even_parsed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("workspace.toml");
        assert!(matches!(WorkspaceFile::read(&path, |_| false), Ok(Mark::Absent)));
        fs::write(&path, "nonsense").unwrap();
        assert!(matches!(WorkspaceFile::read(&path, |_| false), Ok(Mark::Foreign { .. })));
        assert!(matches!(WorkspaceFile::read(&path, |_| true), Err(Error::Malformed { .. })));
        let status = std::process::Command::new("mkfifo").arg(folder.path().join("pipe")).status();
        assert!(status.unwrap().success());
        let pipe = WorkspaceFile::read(&folder.path().join("pipe"), |_| false);
        assert!(matches!(pipe, Ok(Mark::Foreign { .. })), "{pipe:?}");
    }

    #[test]
    fn many_who_name_a_tree_at_once_agree() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("baton-tree");
        let ids: Vec<TreeId> = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..16).map(|_| scope.spawn(|| TreeId::at(&path).unwrap())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(ids.iter().all(|id| *id == ids[0]));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no draft is left");
    }

    #[test]
    fn an_id_in_a_document_is_checked() {
        assert!(serde_json::from_str::<TreeId>(&format!("\"{ID}\"")).is_ok());
        assert!(serde_json::from_str::<TreeId>("\"../../etc\"").is_err());
    }
}
