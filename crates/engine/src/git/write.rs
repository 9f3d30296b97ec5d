//! What Baton writes into a repository: commits under `refs/baton/`, and a patch where its holder
//! asks for it.
//!
//! Owns the making of commits from bytes. Blobs go in through `fast-import`, trees through a
//! private index, references by compare-and-swap. Invariants: the user's index, files, HEAD and
//! branches are never touched (files only by a patch that whoever holds them applies), no filter runs, and a reference that someone else has moved is
//! reported and left alone.

use std::fs;
use std::io::{ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::read::oid_in;
use super::{Error, Git, Oid};

/// What one rescue may save, since it passes through memory.
pub const RESCUE_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// The only references that Baton writes here.
const REFERENCES: &str = "refs/baton/";
const REFERENCE_BYTES_MAX: usize = 200;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Author {
    pub name: String,
    pub email: String,
}

impl Author {
    /// For commits that nobody in particular has made.
    pub fn baton() -> Self {
        Self { name: "Baton".to_owned(), email: "baton@localhost.invalid".to_owned() }
    }
}

/// A change to a tree.
struct Change {
    path: String,
    /// Mode and content; nothing if the path is gone.
    file: Option<(&'static str, Vec<u8>)>,
}

impl Git {
    /// Saves what the working tree has at these paths as a commit on top of HEAD under
    /// `refs/baton/rescue/…`, byte for byte. Nothing if nothing there is dirty.
    pub fn rescue(
        &self,
        paths: &[String],
        reference: &str,
        message: &str,
    ) -> Result<Option<Oid>, Error> {
        check_reference(reference)?;
        let dirty = self.status_dirty(paths)?;
        if dirty.is_empty() {
            return Ok(None);
        }
        let head = self.head()?;
        let tree = self.tree_with(dirty, head.as_ref())?;
        let commit = self.commit(&tree, head.as_ref(), message, &Author::baton())?;
        self.move_reference(reference, &commit, None)?;
        Ok(Some(commit))
    }

    /// Would this patch apply in the tree, or with `reverse` is it there already? What git says
    /// against it, when not.
    pub fn applies(
        &self,
        patch: &str,
        strip: u8,
        reverse: bool,
    ) -> Result<Result<(), String>, Error> {
        let mut options = vec!["--check"];
        options.extend(reverse.then_some("--reverse"));
        match self.patch(&options, patch, strip) {
            Ok(()) => Ok(Ok(())),
            Err(Error::Failed { message, .. }) => Ok(Err(message)),
            Err(other) => Err(other),
        }
    }

    /// Applies a patch to the files of the tree: all of it, or nothing.
    pub fn apply(&self, patch: &str, strip: u8) -> Result<(), Error> {
        self.patch(&[], patch, strip)
    }

    fn patch(&self, options: &[&str], patch: &str, strip: u8) -> Result<(), Error> {
        let filters = self.own_filters()?;
        let strip = format!("-p{strip}");
        let call = self.call("apply").options(options);
        let call = call.options(&["--whitespace=nowarn", &strip, "-"]);
        call.without_filters(&filters).input(patch.as_bytes().to_vec()).bytes().map(|_| ())
    }

    /// A hash of the whole tree as it is, uncommitted changes included and ignored files not: two
    /// snapshots are equal when nothing that git would commit differs.
    pub fn snapshot(&self) -> Result<Oid, Error> {
        let dirty = self.status_dirty(&[String::new()])?;
        let head = self.head()?;
        if let (true, Some(head)) = (dirty.is_empty(), &head) {
            let tree = self.resolve(&format!("{head}^{{tree}}"))?;
            return tree.ok_or(Error::Unexpected { command: "rev-parse".into() });
        }
        self.tree_with(dirty, head.as_ref())
    }

    /// The tree of HEAD with what the working tree has at these paths, byte for byte.
    fn tree_with(&self, dirty: Vec<String>, head: Option<&Oid>) -> Result<Oid, Error> {
        let mut left = RESCUE_BYTES_MAX;
        let mut changes = Vec::with_capacity(dirty.len());
        for path in dirty {
            let file = read_exactly(self.folder(), &path, &mut left)?;
            changes.push(Change { path, file });
        }
        let index = PrivateIndex::new()?;
        if let Some(head) = head {
            let call = self.call("read-tree").options(&["--end-of-options", head.as_str()]);
            call.set("GIT_INDEX_FILE", &index.file).bytes()?;
        }
        self.tree_of(&index, &changes, head)
    }

    /// Makes these files the whole content of a reference of Baton's, on top of what it was. The
    /// same content makes no new commit.
    pub fn commit_files(
        &self,
        reference: &str,
        files: &[(String, Vec<u8>)],
        message: &str,
        author: &Author,
    ) -> Result<Oid, Error> {
        check_reference(reference)?;
        let before = self.resolve(&format!("{reference}^{{commit}}"))?;
        let index = PrivateIndex::new()?;
        let changes = files.iter().map(|(path, content)| Change {
            path: path.clone(),
            file: Some(("100644", content.clone())),
        });
        let changes: Vec<Change> = changes.collect();
        let tree = self.tree_of(&index, &changes, before.as_ref())?;
        if let Some(before) = &before
            && self.resolve(&format!("{before}^{{tree}}"))?.as_ref() == Some(&tree)
        {
            return Ok(before.clone());
        }
        let commit = self.commit(&tree, before.as_ref(), message, author)?;
        self.move_reference(reference, &commit, before.as_ref())?;
        Ok(commit)
    }

    /// The tree of the private index after the changes.
    fn tree_of(
        &self,
        index: &PrivateIndex,
        changes: &[Change],
        known: Option<&Oid>,
    ) -> Result<Oid, Error> {
        let blobs = self.blobs(changes)?;
        let mut blobs = blobs.into_iter();
        let mut input = Vec::new();
        for change in changes {
            let line = match (&change.file, known) {
                (Some((mode, _)), _) => {
                    let blob = blobs.next();
                    let blob = blob.ok_or(Error::Unexpected { command: "fast-import".into() })?;
                    format!("{mode} {blob}\t{}\0", change.path)
                }
                (None, Some(known)) => format!("0 {}\t{}\0", known.zero(), change.path),
                // Gone, and never committed: there is nothing to take away.
                (None, None) => continue,
            };
            input.extend_from_slice(line.as_bytes());
        }
        // Replacing lets files of a submodule stand where the superproject has only its name.
        let options = ["-z", "--add", "--replace", "--index-info"];
        let call = self.call("update-index").options(&options).input(input);
        call.set("GIT_INDEX_FILE", &index.file).bytes()?;
        let call = self.call("write-tree").set("GIT_INDEX_FILE", &index.file);
        oid_in(&call.bytes()?).ok_or(Error::Unexpected { command: "write-tree".into() })
    }

    /// Writes the contents in one call and returns their names in order.
    fn blobs(&self, changes: &[Change]) -> Result<Vec<Oid>, Error> {
        let contents: Vec<&Vec<u8>> =
            changes.iter().filter_map(|change| Some(&change.file.as_ref()?.1)).collect();
        if contents.is_empty() {
            return Ok(Vec::new());
        }
        let mut input = Vec::new();
        for (index, content) in contents.iter().enumerate() {
            let mark = index + 1;
            let header = format!("blob\nmark :{mark}\ndata {}\n", content.len());
            input.extend_from_slice(header.as_bytes());
            input.extend_from_slice(content);
            input.extend_from_slice(format!("\nget-mark :{mark}\n").as_bytes());
        }
        input.extend_from_slice(b"done\n");
        let call = self.call("fast-import").options(&["--quiet", "--done"]).input(input);
        let text = call.text()?;
        let blobs: Option<Vec<Oid>> = text.lines().map(Oid::parse).collect();
        let complete = blobs.filter(|blobs| blobs.len() == contents.len());
        complete.ok_or(Error::Unexpected { command: "fast-import".into() })
    }

    fn commit(
        &self,
        tree: &Oid,
        parent: Option<&Oid>,
        message: &str,
        author: &Author,
    ) -> Result<Oid, Error> {
        let mut options = vec!["--no-gpg-sign"];
        if let Some(parent) = parent {
            options.extend(["-p", parent.as_str()]);
        }
        options.push(tree.as_str());
        let call = self.call("commit-tree").options(&options).input(message.as_bytes().to_vec());
        let call = call.set("GIT_AUTHOR_NAME", &author.name).set("GIT_AUTHOR_EMAIL", &author.email);
        let call = call.set("GIT_COMMITTER_NAME", "Baton");
        let call = call.set("GIT_COMMITTER_EMAIL", Author::baton().email);
        oid_in(&call.bytes()?).ok_or(Error::Unexpected { command: "commit-tree".into() })
    }

    /// Moves a reference from what we saw to the new commit, or not at all.
    fn move_reference(&self, name: &str, to: &Oid, from: Option<&Oid>) -> Result<(), Error> {
        let before = from.map_or_else(|| to.zero(), |from| from.as_str().to_owned());
        let options = ["--no-deref", "--end-of-options", name, to.as_str(), &before];
        match self.call("update-ref").options(&options).bytes() {
            Ok(_) => Ok(()),
            Err(error @ Error::Failed { .. }) => {
                let now = self.resolve(name)?;
                let moved = now.as_ref() != from;
                if moved {
                    Err(Error::ReferenceMoved { name: name.to_owned() })
                } else {
                    Err(error)
                }
            }
            Err(error) => Err(error),
        }
    }
}

/// Strict on purpose: Baton makes these names itself.
fn check_reference(name: &str) -> Result<(), Error> {
    let part = |part: &str| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        !part.is_empty()
            && part.bytes().all(plain)
            && !part.starts_with(['.', '-'])
            && !part.ends_with('.')
            && !part.ends_with(".lock")
            && !part.contains("..")
    };
    let rest = name.strip_prefix(REFERENCES).filter(|_| name.len() <= REFERENCE_BYTES_MAX);
    if rest.is_some_and(|rest| rest.split('/').all(part)) {
        Ok(())
    } else {
        Err(Error::BadReference { name: name.to_owned() })
    }
}

/// What is at a path, as git would store it; nothing if it is gone or not a thing git stores.
fn read_exactly(
    root: &Path,
    path: &str,
    left: &mut u64,
) -> Result<Option<(&'static str, Vec<u8>)>, Error> {
    let full = root.join(path);
    let io = |source| Error::Io { path: full.clone(), source };
    let metadata = match fs::symlink_metadata(&full) {
        Ok(metadata) => metadata,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(io(error)),
    };
    if metadata.is_symlink() {
        let target = fs::read_link(&full).map_err(io)?;
        return Ok(Some(("120000", target.as_os_str().as_bytes().to_vec())));
    }
    if !metadata.is_file() {
        return Ok(None);
    }
    // Not following: a link put there in between must not make us read its target.
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let mut options = fs::OpenOptions::new();
    options.read(true).custom_flags(flags.bits().cast_signed());
    let file = options.open(&full).map_err(io)?;
    let mut content = Vec::new();
    file.take(*left + 1).read_to_end(&mut content).map_err(io)?;
    let too_large = || Error::TooLarge { path: path.to_owned(), limit: RESCUE_BYTES_MAX };
    *left = left.checked_sub(content.len() as u64).ok_or_else(too_large)?;
    let executable = metadata.permissions().mode() & 0o100 != 0;
    Ok(Some((if executable { "100755" } else { "100644" }, content)))
}

/// An index file of our own in a folder of its own, removed when done.
struct PrivateIndex {
    folder: PathBuf,
    file: PathBuf,
}

impl PrivateIndex {
    fn new() -> Result<Self, Error> {
        let mut random = [0_u8; 8];
        let folder = std::env::temp_dir();
        let failed = |source| Error::Io { path: folder.clone(), source };
        getrandom::fill(&mut random).map_err(|_| Error::NoRandomness)?;
        let name = format!("baton-index-{:016x}", u64::from_ne_bytes(random));
        let private = folder.join(name);
        fs::DirBuilder::new().mode(0o700).create(&private).map_err(failed)?;
        Ok(Self { file: private.join("index"), folder: private })
    }
}

impl Drop for PrivateIndex {
    fn drop(&mut self) {
        // A leftover in the temporary folder harms nobody, and a drop has nobody to tell.
        fs::remove_dir_all(&self.folder).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_references_of_batons_are_written() {
        for name in ["refs/baton/state", "refs/baton/rescue/2026-01-01/amber-otter_1.2"] {
            assert!(check_reference(name).is_ok(), "{name}");
        }
        let long = format!("refs/baton/{}", "x".repeat(REFERENCE_BYTES_MAX));
        let bad = [
            "refs/heads/main",
            "refs/baton/",
            "refs/baton/../heads/main",
            "refs/baton/a..b",
            "refs/baton/-x",
            "refs/baton/a.lock",
            "refs/baton/a b",
            "refs/baton/a//b",
            "--output=x",
            "refs/baton/a\nb",
            "refs/baton/é",
            "refs/baton/.a",
            &long,
        ];
        for name in bad {
            let refused = check_reference(name);
            assert!(matches!(refused, Err(Error::BadReference { .. })), "{name}");
        }
    }
}
