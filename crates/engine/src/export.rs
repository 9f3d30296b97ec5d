//! The state as files: for people, for diffs, for tools that know nothing of Baton.
//!
//! Owns what is written and over what. The store stays the only truth (lesson 26): an export is one
//! look, the same state always gives the same bytes, a file is replaced in one step and only when
//! it differs. Refuses to write into `.git` or over anything it did not make. No hash of a secret
//! is ever exported.

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use baton_core::claim::Claim;
use baton_core::id::Position;
use baton_core::refusal::Refusal;
use baton_core::sessions::Session;
use baton_core::view::{Record, Row};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::git::{self, Author, Git};
use crate::journal::{PAGE, without_secrets};
use crate::place::Place;
use crate::store::Snapshot;
use crate::workspace::Workspace;

pub mod lock_files;
mod pages;
mod writing;

pub(crate) use pages::{CHECKLIST, TASKS, workspace_of_mark};

/// Says that the files beside it are Baton's.
pub const MANIFEST: &str = "baton-export.json";
const CLAIMS: &str = "claims.json";
const SESSIONS: &str = "sessions.json";
const JOURNAL: &str = "journal.jsonl";
/// One record a line, for programs.
const LISTS: [&str; 3] = [CLAIMS, SESSIONS, JOURNAL];
/// Everything that stands in the folder itself.
const FILES: [&str; 6] = [CLAIMS, SESSIONS, JOURNAL, CHECKLIST, pages::DECISIONS, pages::LESSONS];
const FORMAT: u32 = 2;

/// The reference that holds the exported state.
pub const REFERENCE: &str = "refs/baton/state";
/// What goes to git passes through memory.
pub const GIT_BYTES_MAX: u64 = 128 * 1024 * 1024;
/// How often a reference that others move is tried again.
const TRIES_MAX: usize = 5;
const ROWS_PAGE: u32 = 5_000;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{path} belongs to git")]
    InsideGit { path: PathBuf },
    #[error("{path} was not made by an export of this workspace")]
    NotOurs { path: PathBuf },
    #[error("{path} is not a folder")]
    NotAFolder { path: PathBuf },
    #[error("this workspace is not in a git repository")]
    NoRepository,
    #[error("the files are larger than the {GIT_BYTES_MAX} bytes an export to git may have")]
    TooLarge,
    #[error("cannot {doing} {path}")]
    Io { doing: &'static str, path: PathBuf, source: std::io::Error },
}

fn io(doing: &'static str, path: &Path) -> impl Fn(std::io::Error) -> Failure + use<> {
    let path = path.to_owned();
    move |source| Error::Io { doing, path: path.clone(), source }.into()
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Exported {
    pub folder: PathBuf,
    pub position: Position,
    /// The files whose content is new; the others were left as they are.
    pub changed: Vec<String>,
    /// Files of an earlier export that nothing stands for any more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<String>,
}

impl Exported {
    pub fn is_unchanged(&self) -> bool {
        self.changed.is_empty() && self.removed.is_empty()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Committed {
    pub reference: String,
    pub commit: String,
    pub position: Position,
    pub changed: bool,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Manifest {
    made_by: String,
    format: u32,
    workspace: String,
    files: Vec<String>,
}

impl Manifest {
    fn of(place: &Place) -> Self {
        Self {
            made_by: "baton".to_owned(),
            format: FORMAT,
            workspace: place.workspace.id.as_str().to_owned(),
            files: FILES.map(str::to_owned).to_vec(),
        }
    }

    fn text(&self) -> Vec<u8> {
        let mut text = serde_json::to_vec_pretty(self).unwrap_or_default();
        text.push(b'\n');
        text
    }
}

/// Writes the files into `folder`, which is made when it is missing.
pub fn to_folder(workspace: &mut Workspace, folder: &Path) -> Result<Exported, Failure> {
    refuse_git(&workspace.place, folder)?;
    let manifest = Manifest::of(&workspace.place);
    refuse_others(folder, &manifest)?;
    std::fs::create_dir_all(folder).map_err(io("make", folder))?;
    // First, so that a run that is cut short has left nothing that the next one would not take.
    replace(folder, MANIFEST, |out| Ok(out.write_all(&manifest.text())?))?;
    let id = workspace.place.workspace.id.as_str().to_owned();
    let snapshot = workspace.store.snapshot()?;
    let mut changed = Vec::new();
    for name in LISTS {
        if replace(folder, name, |out| write(&*snapshot, name, out))? {
            changed.push(name.to_owned());
        }
    }
    let mut writer = writing::Writer::new(folder, &id);
    pages::each(&*snapshot, &id, &mut |name, text| writer.put(&name, &text))?;
    let position = snapshot.state().head.position;
    drop(snapshot);
    let (pages, removed) = writer.finish()?;
    changed.extend(pages);
    Ok(Exported { folder: folder.to_owned(), position, changed, removed })
}

/// Commits the same files to a reference of Baton's; no tree, index or branch is touched.
pub fn to_git(workspace: &mut Workspace) -> Result<Committed, Failure> {
    let common = workspace.place.git.as_ref().map(|git| git.common_dir.clone());
    let git = Git::in_repository(&common.ok_or(Error::NoRepository)?)?;
    let id = workspace.place.workspace.id.as_str().to_owned();
    let mut tries = 0;
    loop {
        tries += 1;
        let snapshot = workspace.store.snapshot()?;
        let position = snapshot.state().head.position;
        let mut files = Vec::new();
        let mut size = 0;
        for name in LISTS {
            let mut content = Limited { bytes: Vec::new() };
            write(&*snapshot, name, &mut content).map_err(|fault| fault.named(name))?;
            size += content.bytes.len() as u64;
            files.push((name.to_owned(), content.bytes));
        }
        pages::each(&*snapshot, &id, &mut |name, text| {
            size += text.len() as u64;
            files.push((name, text.into_bytes()));
            if size > GIT_BYTES_MAX { Err(Error::TooLarge.into()) } else { Ok(()) }
        })?;
        drop(snapshot);
        let before = git.resolve(REFERENCE)?;
        let message = format!("State of the workspace at {position}\n");
        match git.commit_files(REFERENCE, &files, &message, &Author::baton()) {
            Err(git::Error::ReferenceMoved { .. }) if tries < TRIES_MAX => {}
            commit => {
                let commit = commit?;
                let changed = before.as_ref() != Some(&commit);
                let (reference, commit) = (REFERENCE.to_owned(), commit.as_str().to_owned());
                return Ok(Committed { reference, commit, position, changed });
            }
        }
    }
}

/// What stopped a file from being written: reading the store, or the file itself.
enum Fault {
    Store(Failure),
    File(std::io::Error),
}

impl Fault {
    fn named(self, name: &str) -> Failure {
        match self {
            Self::Store(failure) => failure,
            Self::File(error) if error.kind() == std::io::ErrorKind::FileTooLarge => {
                Error::TooLarge.into()
            }
            Self::File(error) => io("write", Path::new(name))(error),
        }
    }
}

impl From<std::io::Error> for Fault {
    fn from(error: std::io::Error) -> Self {
        Self::File(error)
    }
}

impl From<crate::store::Error> for Fault {
    fn from(error: crate::store::Error) -> Self {
        Self::Store(error.into())
    }
}

/// Bytes in memory, up to a limit.
struct Limited {
    bytes: Vec<u8>,
}

impl Write for Limited {
    fn write(&mut self, more: &[u8]) -> std::io::Result<usize> {
        if (self.bytes.len() + more.len()) as u64 > GIT_BYTES_MAX {
            return Err(std::io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(more);
        Ok(more.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn write(snapshot: &dyn Snapshot, name: &str, out: &mut dyn Write) -> Result<(), Fault> {
    match name {
        CLAIMS => list::<Claim>(snapshot, "claims", out),
        SESSIONS => list::<Session>(snapshot, "sessions", out),
        _ => journal(snapshot, out),
    }
}

/// One record a line, keys and rows sorted, so that a diff shows what changed and nothing else.
fn list<R: Record>(snapshot: &dyn Snapshot, name: &str, out: &mut dyn Write) -> Result<(), Fault> {
    write!(out, "{{\"{name}\":[")?;
    let mut after = (R::KIND.to_owned(), String::new());
    let mut first = true;
    loop {
        let page = snapshot.rows(Some((&after.0, &after.1)), ROWS_PAGE)?;
        let rows: Vec<&Row> = page.iter().take_while(|row| row.kind == R::KIND).collect();
        for row in &rows {
            let unreadable = |error| Refusal::from(baton_core::view::Unreadable(Box::new(error)));
            let parsed = serde_json::from_str::<Value>(&row.body);
            let mut body = parsed.map_err(|error| Fault::Store(unreadable(error).into()))?;
            if let Some(object) = body.as_object_mut() {
                object.remove("secret_hashes");
            }
            out.write_all(if first { b"\n" } else { b",\n" })?;
            first = false;
            write!(out, "{body}")?;
        }
        let Some(last) = rows.last().filter(|_| rows.len() == page.len()) else { break };
        after.1.clone_from(&last.key);
    }
    out.write_all(b"\n]}\n")?;
    Ok(())
}

fn journal(snapshot: &dyn Snapshot, out: &mut dyn Write) -> Result<(), Fault> {
    let mut number = 0;
    loop {
        let page = snapshot.entries(number, PAGE)?;
        let Some(last) = page.last() else { return Ok(()) };
        number = last.position.number;
        for entry in &page {
            let line = json!({
                "position": entry.position,
                "at": entry.at,
                "actor": entry.actor,
                "kind": entry.kind,
                "version": entry.version,
                "event": without_secrets(entry),
                "hash": entry.hash,
            });
            writeln!(out, "{line}")?;
        }
    }
}

fn refuse_git(place: &Place, folder: &Path) -> Result<(), Failure> {
    let existing = folder.ancestors().find(|part| part.exists()).unwrap_or(folder);
    let real = existing.canonicalize().map_err(io("look at", existing))?;
    let rest = folder.strip_prefix(existing).unwrap_or(Path::new(""));
    let full = real.join(rest);
    let mut own = vec![place.store.clone()];
    own.extend(place.git.iter().flat_map(|git| [git.common_dir.clone(), git.git_dir.clone()]));
    let inside = own.iter().any(|folder| full.starts_with(folder))
        || full.components().any(|part| part.as_os_str() == ".git");
    match inside {
        true => Err(Error::InsideGit { path: folder.to_owned() }.into()),
        false => Ok(()),
    }
}

/// Files with our names are ours only if the manifest says so.
fn refuse_others(folder: &Path, manifest: &Manifest) -> Result<(), Failure> {
    let there = |path: &Path| path.symlink_metadata().is_ok();
    if there(folder) && !folder.is_dir() {
        return Err(Error::NotAFolder { path: folder.to_owned() }.into());
    }
    let mut listed: Vec<String> = Vec::new();
    let path = folder.join(MANIFEST);
    if there(&path) {
        let text = std::fs::read(&path).map_err(io("read", &path))?;
        let found: Option<Manifest> = serde_json::from_slice(&text).ok();
        let ours = found.is_some_and(|mut found| {
            listed.append(&mut found.files);
            found.made_by == manifest.made_by && found.workspace == manifest.workspace
        });
        if !ours {
            return Err(Error::NotOurs { path }.into());
        }
    }
    // An earlier Baton wrote fewer files: one with a name it did not know is somebody else's.
    let known = |name: &&&str| !listed.iter().any(|one| one == **name);
    let mut others = FILES.iter().filter(known).map(|name| folder.join(name));
    match others.find(|path| there(path)) {
        Some(path) => Err(Error::NotOurs { path }.into()),
        None => Ok(()),
    }
}

/// Writes the file anew under another name and renames it, or leaves it when nothing changed.
fn replace(
    folder: &Path,
    name: &str,
    fill: impl FnOnce(&mut dyn Write) -> Result<(), Fault>,
) -> Result<bool, Failure> {
    let (path, draft) = (folder.join(name), folder.join(format!(".{name}.baton-new")));
    let failed = io("write", &draft);
    // What a run that died has left; the name is ours alone.
    match std::fs::remove_file(&draft) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    let file = File::options().write(true).create_new(true).open(&draft).map_err(&failed)?;
    let mut out = BufWriter::new(&file);
    let filled = fill(&mut out).and_then(|()| Ok(out.flush()?));
    let settled = filled.map_err(|fault| fault.named(name)).and_then(|()| {
        if same(&draft, &path) {
            return Ok(false);
        }
        file.sync_all().map_err(&failed)?;
        std::fs::rename(&draft, &path).map_err(io("replace", &path))?;
        Ok(true)
    });
    if !matches!(settled, Ok(true)) {
        let _ = std::fs::remove_file(&draft);
    }
    settled
}

fn same(one: &Path, two: &Path) -> bool {
    let open = |path: &Path| {
        File::open(path).ok().filter(|_| path.symlink_metadata().is_ok_and(|data| data.is_file()))
    };
    let (Some(mut one), Some(mut two)) = (open(one), open(two)) else { return false };
    let length = |file: &File| file.metadata().map_or(0, |data| data.len());
    if length(&one) != length(&two) {
        return false;
    }
    let (mut left, mut right) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    loop {
        let Ok(count) = one.read(&mut left) else { return false };
        if count == 0 {
            return true;
        }
        if two.read_exact(&mut right[..count]).is_err() || left[..count] != right[..count] {
            return false;
        }
    }
}
