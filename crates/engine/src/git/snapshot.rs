//! What a tree has that HEAD has not, made a commit of.
//!
//! Owns the snapshot: reading files exactly as they are, and commits that no reference holds.
//! Invariants: nothing in the tree is written, no filter of the repository runs, and the same files
//! give the same commit; what has the files of HEAD is HEAD.

use std::path::Path;

use super::read::{Changed, Status, oid_in};
use super::rescue::{File, quoted, read_exactly};
use super::write::Author;
use super::{Error, Git, Oid, RESCUE_BYTES_MAX};

/// What differs from HEAD, ready to be made a commit of.
#[derive(Debug, Clone)]
pub struct Work {
    head: Option<Oid>,
    files: Vec<(String, Entry)>,
    ignored: Vec<String>,
}

#[derive(Debug, Clone)]
enum Entry {
    File(File),
    /// A submodule at another commit.
    Module(Oid),
}

impl Work {
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    pub fn head(&self) -> Option<&Oid> {
        self.head.as_ref()
    }

    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(|(path, _)| path.as_str())
    }

    /// Names that git ignores, folders with a `/` at their end.
    pub fn ignored(&self) -> &[String] {
        &self.ignored
    }
}

/// What may differ from HEAD, as far as it is known without git.
#[derive(Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) head: &'a Oid,
    /// Files that are read as they are.
    pub(crate) files: Vec<String>,
    /// Names that git is asked about: not tracked, or perhaps converted.
    pub(crate) names: Vec<String>,
    pub(crate) filters: &'a [String],
}

impl Git {
    /// Reads what differs from HEAD in this tree, without the paths in `except`.
    pub fn work(&self, except: &[String], with_ignored: bool) -> Result<Work, Error> {
        let status = match with_ignored {
            true => self.status_with_ignored()?,
            false => self.status(&[String::new()])?,
        };
        let head = match status.head.clone() {
            Some(known) => known,
            None => self.head()?,
        };
        self.read_all(head, status, except)
    }

    /// The same where it is known already what may differ.
    pub(crate) fn work_of(&self, asked: Asked<'_>, except: &[String]) -> Result<Work, Error> {
        let mut status = Status::default();
        if !asked.names.is_empty() {
            let names: Vec<&str> = asked.names.iter().map(String::as_str).collect();
            status = self.status_of_names(&names, asked.filters)?;
            if status.head.as_ref() != Some(&Some(asked.head.clone())) {
                return self.work(except, true);
            }
        }
        status.changed.extend(asked.files.into_iter().map(Changed::unstaged));
        status.changed.sort_by(|one, two| one.path.cmp(&two.path));
        status.changed.dedup_by(|one, two| one.path == two.path);
        self.read_all(Some(asked.head.clone()), status, except)
    }

    fn read_all(
        &self,
        head: Option<Oid>,
        status: Status,
        except: &[String],
    ) -> Result<Work, Error> {
        let mut left = RESCUE_BYTES_MAX;
        let mut files = Vec::new();
        for changed in status.changed {
            if except.contains(&changed.path) {
                continue;
            }
            let full = self.folder().join(&changed.path);
            let entry = match full.symlink_metadata().is_ok_and(|data| data.is_dir()) {
                true => match self.module_head(&full)? {
                    Some(commit) => Entry::Module(commit),
                    // Not checked out here, so nothing changed in it.
                    None if changed.is_module => continue,
                    // The file is gone, and a folder stands in its place.
                    None => Entry::File(None),
                },
                false => Entry::File(read_exactly(self.folder(), &changed.path, &mut left)?),
            };
            files.push((changed.path, entry));
        }
        Ok(Work { head, files, ignored: status.ignored })
    }

    fn module_head(&self, folder: &Path) -> Result<Option<Oid>, Error> {
        if folder.join(".git").symlink_metadata().is_err() {
            return Ok(None);
        }
        let inner = Self { place: super::At::Tree(folder.to_owned()), ..self.clone() };
        inner.head()
    }

    /// The tree of each commit, in one process; nothing for what is not there.
    pub(crate) fn trees_of(&self, commits: &[&Oid]) -> Result<Vec<Option<Oid>>, Error> {
        let names: Vec<String> =
            commits.iter().map(|commit| format!("{commit}^{{tree}}")).collect();
        self.objects_named(&names)
    }

    /// A commit of each, on top of its HEAD, held by no reference. The same work gives the same
    /// commit: its time is always 0. What has the files of its HEAD is its HEAD.
    pub fn commits_of(&self, works: &[&Work]) -> Result<Vec<Option<Oid>>, Error> {
        let mut stream: Vec<u8> = Vec::new();
        let mut marks = 0;
        for work in works.iter().filter(|work| !work.is_empty()) {
            marks += 1;
            work.write(marks, &mut stream);
        }
        if marks == 0 {
            return Ok(works.iter().map(|work| work.head.clone()).collect());
        }
        stream.extend_from_slice(b"done\n");
        let call = self.call("fast-import").options(&["--quiet", "--done"]);
        let text = call.input(stream).text()?;
        let mut lines = text.lines();
        let mut all = Vec::with_capacity(works.len());
        for work in works {
            let made = match work.is_empty() {
                true => work.head.clone(),
                false => {
                    let made = work.made(&mut lines);
                    Some(made.ok_or(Error::Unexpected { command: "fast-import".into() })?)
                }
            };
            all.push(made);
        }
        match lines.next() {
            None => Ok(all),
            Some(_) => Err(Error::Unexpected { command: "fast-import".into() }),
        }
    }
}

impl Work {
    /// The commands that make a commit of it and then forget the reference it was made under.
    fn write(&self, mark: usize, stream: &mut Vec<u8>) {
        let mut line = |text: &str| {
            stream.extend_from_slice(text.as_bytes());
            stream.push(b'\n');
        };
        let Author { name, email } = Author::baton();
        let reference = format!("refs/baton/snapshot/{mark}");
        line(&format!("commit {reference}"));
        line(&format!("mark :{mark}"));
        line(&format!("committer {name} <{email}> 0 +0000"));
        line("data 8");
        line("snapshot");
        match &self.head {
            Some(head) => line(&format!("from {head}")),
            None => line("deleteall"),
        }
        // What is gone goes first: a folder may stand where a file was.
        for (path, _) in self.files.iter().filter(|(_, one)| matches!(one, Entry::File(None))) {
            line(&format!("D {}", quoted(path)));
        }
        for (path, entry) in &self.files {
            let path = quoted(path);
            match entry {
                Entry::File(None) => {}
                Entry::Module(commit) => {
                    stream.extend_from_slice(format!("M 160000 {commit} {path}\n").as_bytes());
                }
                Entry::File(Some((mode, content))) => {
                    let head = format!("M {mode} inline {path}\ndata {}\n", content.len());
                    stream.extend_from_slice(head.as_bytes());
                    stream.extend_from_slice(content);
                    stream.push(b'\n');
                }
            }
        }
        stream.extend_from_slice(format!("get-mark :{mark}\nls :{mark} \"\"\n").as_bytes());
        if let Some(head) = &self.head {
            stream.extend_from_slice(format!("ls {head} \"\"\n").as_bytes());
        }
        let zero = self.head.as_ref().map_or_else(|| "0".repeat(40), Oid::zero);
        stream.extend_from_slice(format!("reset {reference}\nfrom {zero}\n\n").as_bytes());
    }

    /// What was answered: the commit, its tree, and that of HEAD.
    fn made<'t>(&self, lines: &mut impl Iterator<Item = &'t str>) -> Option<Oid> {
        let commit = oid_in(lines.next()?.as_bytes())?;
        // The empty tree may also be said to be missing.
        let tree = lines.next()?;
        let Some(head) = &self.head else { return Some(commit) };
        Some(if lines.next()? == tree { head.clone() } else { commit })
    }
}
