//! Archives: old journal entries in a sealed file, with all records as they were after the last.
//!
//! Owns the file's format: one JSON document a line; a header, the entries byte for byte as they
//! were hashed, the records, and a footer with counts and the hash of everything above it. A file
//! is believed only after all of it was read: its chain, its counts, its hashes. How one comes into
//! being is in [`sealing`].
//!
//! Which state the records are: that right after the file's last entry, rebuilt from the journal
//! and never read from the live records. So it does not matter what is committed meanwhile, and
//! `snapshot + replay of the entries after it` gives the live records at any later moment.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use baton_core::id::Position;
use baton_core::journal::{self, Entry, Hash, Head};
use baton_core::memory::Memory;
use baton_core::time::Moment;
use baton_core::view::{Row, Unreadable, kind_named};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub mod sealing;

/// The folder of archives inside the store folder.
pub const FOLDER: &str = "archive";
/// The version of the file's format. Another one is refused, never half understood (S21).
pub const FORMAT: u32 = 1;
const SUFFIX: &str = ".jsonl";
/// A file that is still being written.
const PART_SUFFIX: &str = ".jsonl.part";
/// No entry or record comes near this; a longer line is damage.
const LINE_BYTES_MAX: u64 = 64 * 1024 * 1024;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot {doing} {path}")]
    Io { doing: &'static str, path: PathBuf, source: std::io::Error },
    #[error("line {line} is not what Baton writes: {why}")]
    Malformed { line: u64, why: String },
    #[error("it was written by a newer Baton (format {found}; this one knows {FORMAT})")]
    Newer { found: u32 },
    #[error("the chain breaks in it: {0}")]
    Broken(#[from] journal::Broken),
    #[error("its content does not match its own hash: it was changed or cut")]
    Changed,
    #[error("its records do not match the hash of the state they stand for")]
    OtherState,
    #[error("it ends too early")]
    Cut,
    #[error("a record in it cannot be understood")]
    Unreadable(#[from] Unreadable),
    #[error("another archive is being made here")]
    Busy,
    #[error("{path} is there already, with other entries")]
    Taken { path: PathBuf },
}

/// A head of the journal, as a document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Seal {
    pub position: Position,
    pub at: Moment,
    pub hash: Hash,
}

impl From<&Head> for Seal {
    fn from(head: &Head) -> Self {
        Self { position: head.position, at: head.at, hash: head.hash.clone() }
    }
}

impl From<&Seal> for Head {
    fn from(seal: &Seal) -> Self {
        Self { position: seal.position, at: seal.at, hash: seal.hash.clone() }
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    BatonArchive(Header),
    Entry(Entry),
    Record { kind: String, key: String, version: u64, body: String },
    End(Footer),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    pub format: u32,
    /// For people: whether the file belongs to a journal is told by the chain.
    pub workspace: String,
    pub first: Position,
    pub last: Position,
    /// The entry before the first: the head of the archive before this one, if there is one.
    pub before: Seal,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Footer {
    entries: u64,
    records: u64,
    /// Of all records, in order: what the snapshot event in the journal also says.
    state_hash: Hash,
    head: Seal,
    /// Of every byte above this line.
    hash: Hash,
}

/// The file name of the entries `first` to `last`. Positions never repeat, so names do not either.
pub fn file_name(first: Position, last: Position) -> String {
    format!("{first}-{last}{SUFFIX}")
}

/// What lies in the archive folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// First and last position with the file's name, in the order of the last.
    pub archives: Vec<(Position, Position, String)>,
    /// Files that a maker which died has left. Harmless.
    pub parts: Vec<String>,
}

pub fn folder_of(store: &Path) -> PathBuf {
    store.join(FOLDER)
}

pub fn find(store: &Path) -> Result<Found, Error> {
    let folder = folder_of(store);
    let mut found = Found::default();
    let entries = match std::fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(found),
        Err(source) => return Err(Error::Io { doing: "look into", path: folder, source }),
    };
    for name in entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()) {
        if name.ends_with(PART_SUFFIX) {
            found.parts.push(name);
        } else if let Some((first, last)) = positions_in(&name) {
            found.archives.push((first, last, name));
        }
    }
    // The widest of those with the same end comes first.
    found.archives.sort_by_key(|(first, last, _)| (*last, *first));
    found.parts.sort_unstable();
    Ok(found)
}

fn positions_in(name: &str) -> Option<(Position, Position)> {
    let (first, last) = name.strip_suffix(SUFFIX)?.split_once('-')?;
    Some((first.parse().ok()?, last.parse().ok()?))
}

/// What a sound archive holds.
#[derive(Debug)]
pub struct Examined {
    pub header: Header,
    pub head: Head,
    pub entries: u64,
    pub state_hash: Hash,
    /// All records after the last entry.
    pub records: Memory,
}

/// Reads all of an archive and checks everything that can be checked from it alone.
pub fn examine(path: &Path) -> Result<Examined, Error> {
    let io = |source| Error::Io { doing: "read", path: path.to_owned(), source };
    let mut lines = Lines {
        reader: BufReader::with_capacity(1 << 17, File::open(path).map_err(io)?),
        path,
        hasher: blake3::Hasher::new(),
        number: 0,
        text: Vec::new(),
    };
    let header = match lines.next()? {
        Line::BatonArchive(header) => header,
        _ => return Err(lines.malformed("it does not begin with a header")),
    };
    if header.format != FORMAT {
        return Err(Error::Newer { found: header.format });
    }
    let mut head = Head::from(&header.before);
    let mut entries = 0;
    let mut records = Memory::default();
    loop {
        let above = lines.hash();
        match lines.next()? {
            Line::Entry(entry) if records.is_empty() => {
                journal::follows(&head, &entry)?;
                head = entry.head();
                entries += 1;
            }
            Line::Record { kind, key, version, body } => {
                let kind = kind_named(&kind);
                let kind = kind.ok_or_else(|| lines.malformed("a record of an unknown kind"))?;
                records.restore(Row { kind, key, version, body })?;
            }
            Line::End(footer) => {
                lines.ends()?;
                if footer.hash != above {
                    return Err(Error::Changed);
                }
                let state_hash = records.hash();
                if footer.state_hash != state_hash || footer.records != records.len() as u64 {
                    return Err(Error::OtherState);
                }
                if footer.entries != entries || head != Head::from(&footer.head) {
                    return Err(Error::Cut);
                }
                return Ok(Examined { header, head, entries, state_hash, records });
            }
            _ => return Err(lines.malformed("a line in the wrong place")),
        }
    }
}

struct Lines<'a> {
    reader: BufReader<File>,
    path: &'a Path,
    hasher: blake3::Hasher,
    number: u64,
    text: Vec<u8>,
}

impl Lines<'_> {
    fn next(&mut self) -> Result<Line, Error> {
        self.text.clear();
        self.number += 1;
        let limited = (&mut self.reader).take(LINE_BYTES_MAX).read_until(b'\n', &mut self.text);
        limited.map_err(|source| Error::Io {
            doing: "read",
            path: self.path.to_owned(),
            source,
        })?;
        if self.text.last() != Some(&b'\n') {
            return Err(Error::Cut);
        }
        self.hasher.update(&self.text);
        serde_json::from_slice(&self.text).map_err(|error| self.malformed(&error.to_string()))
    }

    fn hash(&self) -> Hash {
        Hash(self.hasher.finalize().to_hex().to_string())
    }

    fn ends(&mut self) -> Result<(), Error> {
        let mut more = [0];
        match self.reader.read(&mut more) {
            Ok(0) => Ok(()),
            _ => Err(self.malformed("there is more after the footer")),
        }
    }

    fn malformed(&self, why: &str) -> Error {
        Error::Malformed { line: self.number, why: why.to_owned() }
    }
}
