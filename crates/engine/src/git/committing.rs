//! What a commit in a shared tree asks of git, one step each.
//!
//! Owns the calls that read a tree's files as `git add` would, and those that move a branch. Files
//! pass through the user's own filters (LFS, line ends) but never through one that the repository
//! itself configures: that would run a program of a stranger's. Invariant: no call here writes the
//! tree's own index or files.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::programs::own_programs;
use super::read::{PATHS_BYTES_MAX, Setting, oid_in};
use super::write::PrivateIndex;
use super::{Error, Git, Oid};

/// Who commits, when the caller's surroundings say so; else the user's configuration does.
const IDENTITY: &[&str] = &[
    "GIT_AUTHOR_NAME",
    "GIT_AUTHOR_EMAIL",
    "GIT_AUTHOR_DATE",
    "GIT_COMMITTER_NAME",
    "GIT_COMMITTER_EMAIL",
    "GIT_COMMITTER_DATE",
];

/// What an index has at a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blob {
    pub mode: String,
    pub oid: Oid,
}

/// A path and what is to be there; nothing when it is gone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    pub path: String,
    pub blob: Option<Blob>,
}

/// What of the repository's own configuration a commit must know. Read once for all its steps.
#[derive(Clone, Debug, Default)]
pub struct Own {
    /// Filter drivers that the repository itself configures.
    pub(crate) filters: Vec<String>,
    /// Somebody has configured where hooks are.
    pub(crate) has_hooks_path: bool,
}

impl Git {
    /// What is configured here that a commit must know.
    pub fn own_settings(&self) -> Result<Own, Error> {
        let pattern = r"^(filter\..*\.(clean|smudge|process)|core\.hookspath)$";
        let found = self.settings_like(pattern)?;
        // Our own setting, which switches hooks off for git itself, is of the scope `command`.
        let set = |one: &Setting| one.key == "core.hookspath" && one.scope != "command";
        let filters = own_programs("filter", &["clean", "smudge", "process"], &found);
        Ok(Own { has_hooks_path: found.iter().any(set), filters })
    }

    /// The reference that HEAD stands for; nothing when it stands on no branch.
    pub fn head_branch(&self) -> Result<Option<String>, Error> {
        let answer = self.call("symbolic-ref").options(&["--quiet", "HEAD"]).answer(&[1])?;
        let name = String::from_utf8_lossy(&answer.output).trim().to_owned();
        Ok((answer.status == Some(0)).then_some(name))
    }

    /// A private index with everything of a commit.
    pub fn index_of(&self, head: Option<&Oid>) -> Result<PrivateIndex, Error> {
        let index = PrivateIndex::new()?;
        if let Some(head) = head {
            let call = self.call("read-tree").options(&["--end-of-options", head.as_str()]);
            call.set("GIT_INDEX_FILE", &index.file).bytes()?;
        }
        Ok(index)
    }

    /// Takes these files into a private index as `git add` would, and the missing ones out of it.
    pub fn take_files(
        &self,
        index: &PrivateIndex,
        paths: &[String],
        own: &Own,
    ) -> Result<(), Error> {
        let mut input = Vec::new();
        for path in paths {
            input.extend_from_slice(path.as_bytes());
            input.push(0);
        }
        let options = ["--add", "--remove", "--replace", "-z", "--stdin"];
        let call = self.call("update-index").options(&options).input(input);
        call.without_filters(&own.filters).set("GIT_INDEX_FILE", &index.file).bytes().map(drop)
    }

    /// Puts entries into an index file that is not the tree's own.
    pub fn put_entries(&self, index: &Path, entries: &[Entry]) -> Result<(), Error> {
        let width = entries.iter().find_map(|entry| Some(entry.blob.as_ref()?.oid.as_str().len()));
        let zero = "0".repeat(width.unwrap_or(40));
        let mut input = String::new();
        // What is gone goes first: a folder may stand where a file was.
        for entry in entries.iter().filter(|entry| entry.blob.is_none()) {
            input.push_str(&format!("0 {zero}\t{}\0", entry.path));
        }
        for entry in entries {
            if let Some(Blob { mode, oid }) = &entry.blob {
                input.push_str(&format!("{mode} {oid}\t{}\0", entry.path));
            }
        }
        let options = ["-z", "--add", "--replace", "--index-info"];
        let call = self.call("update-index").options(&options).input(input.into_bytes());
        call.set("GIT_INDEX_FILE", index).bytes().map(drop)
    }

    pub fn tree_in(&self, index: &PrivateIndex) -> Result<Oid, Error> {
        let call = self.call("write-tree").set("GIT_INDEX_FILE", &index.file);
        oid_in(&call.bytes()?).ok_or(Error::Unexpected { command: "write-tree".into() })
    }

    /// What an index has at these paths, and which of them have conflicts. Without a file it is
    /// the tree's own.
    pub fn entries(
        &self,
        index: Option<&Path>,
        paths: &[String],
    ) -> Result<(Vec<Entry>, Vec<String>), Error> {
        let mut found: BTreeMap<&str, Option<Blob>> =
            paths.iter().map(|path| (path.as_str(), None)).collect();
        let mut unmerged = Vec::new();
        let mut call = self.call("ls-files").options(&["-s", "-z"]);
        if let Some(index) = index {
            call = call.set("GIT_INDEX_FILE", index);
        }
        // Too many for one command line: then everything is listed.
        let few = paths.iter().map(String::len).sum::<usize>() <= PATHS_BYTES_MAX;
        let output = call.paths(paths.iter().filter(|_| few).map(String::as_str)).bytes()?;
        let unexpected = || Error::Unexpected { command: "ls-files".into() };
        let text = String::from_utf8_lossy(&output);
        for line in text.split_terminator('\0') {
            let (before, path) = line.split_once('\t').ok_or_else(unexpected)?;
            let mut words = before.split(' ');
            let (Some(mode), Some(oid), Some(stage)) = (words.next(), words.next(), words.next())
            else {
                return Err(unexpected());
            };
            let oid = Oid::parse(oid).ok_or_else(unexpected)?;
            let Some(blob) = found.get_mut(path) else { continue };
            match stage {
                "0" => *blob = Some(Blob { mode: mode.to_owned(), oid }),
                _ => unmerged.push(path.to_owned()),
            }
        }
        let entry = |(path, blob): (&str, Option<Blob>)| Entry { path: path.to_owned(), blob };
        Ok((found.into_iter().map(entry).collect(), unmerged))
    }

    /// In what a tree differs from a commit: the paths, and what the tree has there.
    pub fn differs(&self, head: Option<&Oid>, tree: &Oid) -> Result<Vec<Entry>, Error> {
        let Some(head) = head else {
            let options = ["-r", "-z", tree.as_str()];
            let output = self.call("ls-tree").options(&options).bytes()?;
            // `mode type oid<tab>path` each.
            return super::read::names(&output)?.iter().map(|line| listed(line)).collect();
        };
        let options = ["-r", "-z", "--raw", "--no-abbrev", "--no-renames", "--no-ext-diff"];
        let ends = [head.as_str(), tree.as_str()];
        let output = self.call("diff-tree").options(&options).options(&ends).bytes()?;
        let unexpected = || Error::Unexpected { command: "diff-tree".into() };
        let fields = super::read::names(&output)?;
        // `:mode mode oid oid letter`, and then the path.
        let one = |pair: &[String]| {
            let [what, path] = pair else { return Err(unexpected()) };
            let mut words = what.split(' ');
            let (Some(mode), Some(oid)) = (words.nth(1), words.nth(1)) else {
                return Err(unexpected());
            };
            let oid = Oid::parse(oid).ok_or_else(unexpected)?;
            let blob = (mode != "000000").then(|| Blob { mode: mode.to_owned(), oid });
            Ok(Entry { path: path.clone(), blob })
        };
        fields.chunks(2).map(one).collect()
    }

    /// Makes a commit object in the name of whoever commits. It is not signed: a signature would
    /// ask a person.
    pub fn make_commit(
        &self,
        tree: &Oid,
        parents: &[&Oid],
        message: &str,
        author: &[(&'static str, String)],
    ) -> Result<Oid, Error> {
        let mut options = vec!["--no-gpg-sign"];
        options.extend(parents.iter().flat_map(|parent| ["-p", parent.as_str()]));
        options.push(tree.as_str());
        let mut call = self.call("commit-tree").options(&options);
        for name in IDENTITY {
            if let Some(value) = std::env::var_os(name) {
                call = call.set(name, value);
            }
        }
        for (name, value) in author {
            call = call.set(name, value);
        }
        let output = call.input(message.as_bytes().to_vec()).bytes()?;
        oid_in(&output).ok_or(Error::Unexpected { command: "commit-tree".into() })
    }

    /// Moves a branch, or HEAD when it stands on none, from what we saw to the new commit.
    pub fn move_branch(
        &self,
        branch: Option<&str>,
        to: &Oid,
        from: Option<&Oid>,
        why: &str,
    ) -> Result<(), Error> {
        self.move_saying(branch.unwrap_or("HEAD"), to, from, why)
    }

    /// Those of the paths that git ignores.
    pub fn ignored(&self, paths: &[String]) -> Result<Vec<String>, Error> {
        let options = ["-z", "--others", "--ignored", "--exclude-standard", "--directory"];
        let call = self.call("ls-files").options(&options);
        super::read::names(&call.paths(paths.iter().map(String::as_str)).bytes()?)
    }

    /// Those of the paths whose content goes through a filter of the repository's own.
    pub fn own_filtered(
        &self,
        paths: &[String],
        own: &[String],
    ) -> Result<Vec<(String, String)>, Error> {
        if own.is_empty() || paths.is_empty() {
            return Ok(Vec::new());
        }
        let input = paths.join("\0").into_bytes();
        let call = self.call("check-attr").options(&["-z", "--stdin", "filter"]).input(input);
        let output = call.text()?;
        let fields: Vec<&str> = output.split_terminator('\0').collect();
        let found = fields.chunks_exact(3).filter(|fields| own.iter().any(|own| own == fields[2]));
        Ok(found.map(|fields| (fields[0].to_owned(), fields[2].to_owned())).collect())
    }

    /// Everything the index tracks.
    pub fn tracked(&self) -> Result<Vec<String>, Error> {
        let output = self.call("ls-files").options(&["-z", "--cached"]).bytes()?;
        let text = String::from_utf8_lossy(&output);
        Ok(text.split_terminator('\0').map(str::to_owned).collect())
    }

    /// The content at a path of a commit; nothing when it has none.
    pub fn content(&self, commit: &str, path: &str) -> Result<Option<Vec<u8>>, Error> {
        let Some(blob) = self.resolve(&format!("{commit}:{path}"))? else { return Ok(None) };
        let answer = self.call("cat-file").options(&["blob", blob.as_str()]).answer(&[128])?;
        Ok((answer.status == Some(0)).then_some(answer.output))
    }

    /// The best commit that two have in common.
    pub fn common(&self, one: &Oid, two: &Oid) -> Result<Option<Oid>, Error> {
        let call = self.call("merge-base").options(&[one.as_str(), two.as_str()]);
        Ok(oid_in(&call.answer(&[1])?.output))
    }

    /// The folder of the user's hooks as it is configured, if it is.
    pub fn hooks_path(&self) -> Result<Option<String>, Error> {
        Ok(self.hooks_path_and_scope()?.map(|(_, path)| path))
    }

    /// The same, with git's word for where that is set.
    pub(super) fn hooks_path_and_scope(&self) -> Result<Option<(String, String)>, Error> {
        let options = ["-z", "--show-scope", "--type=path", "--get-all", "core.hooksPath"];
        let answer = self.call("config").options(&options).answer(&[1])?;
        let text = String::from_utf8_lossy(&answer.output);
        let fields: Vec<&str> = text.split_terminator('\0').collect();
        // Our own setting, which switches hooks off for git itself, is of the scope `command`.
        let theirs = fields.chunks_exact(2).rfind(|fields| fields[0] != "command");
        Ok(theirs.map(|fields| (fields[0].to_owned(), fields[1].to_owned())))
    }

    /// All references but Baton's and the stash, as a list of packed references.
    pub fn packed_references(&self) -> Result<String, Error> {
        let options = ["--format=%(objectname) %(refname)"];
        let text = self.call("for-each-ref").options(&options).text()?;
        let ours = |line: &&str| !line.contains(" refs/baton/") && !line.ends_with(" refs/stash");
        let lines: Vec<&str> = text.lines().filter(ours).collect();
        Ok(format!("# pack-refs with: sorted \n{}\n", lines.join("\n")))
    }

    /// Fills the index and the files of a checkout of our own.
    pub fn fill_checkout(&self, tree: &Oid) -> Result<(), Error> {
        let filters = self.own_filters()?;
        self.call("read-tree").options(&["--end-of-options", tree.as_str()]).bytes()?;
        let call = self.call("checkout-index").options(&["--all", "--force", "--index", "--quiet"]);
        // A large file that is kept elsewhere is not fetched to please a hook.
        call.without_filters(&filters).set("GIT_LFS_SKIP_SMUDGE", "1").bytes().map(drop)
    }

    /// Copies a blob of another repository on this machine into this one.
    pub fn bring(&self, from: &Git, blob: &Oid) -> Result<(), Error> {
        let content = from.call("cat-file").options(&["blob", blob.as_str()]).bytes()?;
        let options = ["-w", "--stdin", "--no-filters"];
        self.call("hash-object").options(&options).input(content).bytes().map(drop)
    }
}

/// A line of `ls-tree`.
fn listed(line: &str) -> Result<Entry, Error> {
    let parsed = line.split_once('\t').and_then(|(before, path)| {
        let mut words = before.split(' ');
        let mode = words.next()?.to_owned();
        let blob = Some(Blob { mode, oid: Oid::parse(words.nth(1)?)? });
        Some(Entry { path: path.to_owned(), blob })
    });
    parsed.ok_or(Error::Unexpected { command: "ls-tree".into() })
}
