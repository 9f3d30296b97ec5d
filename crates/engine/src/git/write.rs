//! What Baton writes into a repository: commits under `refs/baton/`, and nothing else.
//!
//! Owns the making of commits from bytes; saving what lies in a tree is in `rescue`. Blobs go in
//! through `fast-import`, trees through a private index, references by compare-and-swap.
//! Invariants: the user's index, files, HEAD and branches are never touched, no filter runs, and a
//! reference that someone else has moved is reported and left alone.

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

use super::read::oid_in;
use super::rescue::File;
use super::{Error, Git, Oid};

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

impl Git {
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
        let whole: Vec<(&str, File)> =
            files.iter().map(|(path, text)| (&**path, Some(("100644", text.clone())))).collect();
        let tree = self.tree_of(&index, &whole, None)?;
        if let Some(before) = &before
            && self.resolve(&format!("{before}^{{tree}}"))?.as_ref() == Some(&tree)
        {
            return Ok(before.clone());
        }
        let commit = self.commit(&tree, before.as_ref(), message, author)?;
        self.move_reference(reference, &commit, before.as_ref())?;
        Ok(commit)
    }

    /// The tree of the private index with these files put into it or taken away.
    pub(super) fn tree_of(
        &self,
        index: &PrivateIndex,
        files: &[(&str, File)],
        head: Option<&Oid>,
    ) -> Result<Oid, Error> {
        let mut blobs = self.blobs(files)?.into_iter();
        let mut input = Vec::new();
        for (path, file) in files {
            let line = match (file, head) {
                (Some((mode, _)), _) => {
                    let blob = blobs.next();
                    let blob = blob.ok_or(Error::Unexpected { command: "fast-import".into() })?;
                    format!("{mode} {blob}\t{path}\0")
                }
                (None, Some(head)) => format!("0 {}\t{path}\0", head.zero()),
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
    fn blobs(&self, files: &[(&str, File)]) -> Result<Vec<Oid>, Error> {
        let contents: Vec<&Vec<u8>> =
            files.iter().filter_map(|(_, file)| Some(&file.as_ref()?.1)).collect();
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
    pub(super) fn move_reference(
        &self,
        name: &str,
        to: &Oid,
        from: Option<&Oid>,
    ) -> Result<(), Error> {
        self.move_saying(name, to, from, "baton")
    }

    /// The same with a reason for the log of the reference.
    pub(super) fn move_saying(
        &self,
        name: &str,
        to: &Oid,
        from: Option<&Oid>,
        why: &str,
    ) -> Result<(), Error> {
        let before = from.map_or_else(|| to.zero(), |from| from.as_str().to_owned());
        let options = ["-m", why, "--no-deref", "--end-of-options", name, to.as_str(), &before];
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
pub(super) fn check_reference(name: &str) -> Result<(), Error> {
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

/// An index file of our own in a folder of its own, removed when done.
#[derive(Debug)]
pub struct PrivateIndex {
    folder: PathBuf,
    pub(crate) file: PathBuf,
}

impl PrivateIndex {
    pub fn new() -> Result<Self, Error> {
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
