//! Merging without a tree, and the trees in which checks run.
//!
//! Owns the calls by which candidates of the merge queue are made and looked at. Merge drivers of
//! the repository's own configuration are switched off. Invariants: a merge writes objects only; a
//! conflict is told with all its sides and never resolved by dropping one (LESSONS 18).

use std::io::Write;
use std::path::{Path, PathBuf};

use super::committing::Blob;
use super::read::oid_in;
use super::write::{Author, PrivateIndex};
use super::{Entry, Error, Git, Oid};

/// A path that git could not merge: what each side has there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unmerged {
    pub path: String,
    pub base: Option<Blob>,
    pub ours: Option<Blob>,
    pub theirs: Option<Blob>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merged {
    /// With the marks of conflicts in it where there are any.
    pub tree: Oid,
    pub unmerged: Vec<Unmerged>,
}

impl Git {
    /// Merges two commits; nothing is written but objects.
    pub fn merge(&self, ours: &Oid, theirs: &Oid) -> Result<Merged, Error> {
        self.merge_tree(&[], ours, theirs)
    }

    /// What `theirs` changed since `base`, upon `ours`.
    pub fn merge_upon(&self, base: &Oid, ours: &Oid, theirs: &Oid) -> Result<Merged, Error> {
        self.can_replay()?;
        self.merge_tree(&[&format!("--merge-base={base}")], ours, theirs)
    }

    /// The commits of `tip` that `upon` has not, oldest first, each with its parent; or the one
    /// among them that is a merge or the first of all.
    pub fn own_line(&self, upon: &Oid, tip: &Oid) -> Result<Result<Vec<(Oid, Oid)>, Oid>, Error> {
        let range = format!("{upon}..{tip}");
        let options = ["--reverse", "--topo-order", "--parents", &range];
        let text = self.call("rev-list").options(&options).text()?;
        let mut commits = Vec::new();
        for line in text.lines() {
            let oids: Option<Vec<Oid>> = line.split(' ').map(Oid::parse).collect();
            let unexpected = || Error::Unexpected { command: "rev-list".into() };
            match &oids.ok_or_else(unexpected)?[..] {
                [commit, parent] => commits.push((commit.clone(), parent.clone())),
                other => return other.first().cloned().map(Err).ok_or_else(unexpected),
            }
        }
        Ok(Ok(commits))
    }

    fn merge_tree(&self, more: &[&str], ours: &Oid, theirs: &Oid) -> Result<Merged, Error> {
        let drivers = self.own_drivers()?;
        let options = ["--write-tree", "-z", "--no-messages"];
        let call = self.call("merge-tree").options(&options).options(more);
        let call = call.options(&[ours.as_str(), theirs.as_str()]).without_drivers(&drivers);
        let answer = call.answer(&[1])?;
        let unexpected = || Error::Unexpected { command: "merge-tree".into() };
        let mut fields = answer.output.split(|byte| *byte == 0);
        let tree = fields.next().and_then(oid_in).ok_or_else(unexpected)?;
        let mut unmerged: Vec<Unmerged> = Vec::new();
        for field in fields.filter(|field| !field.is_empty()) {
            let text = std::str::from_utf8(field)
                .map_err(|_| Error::NotUtf8 { lossy: String::from_utf8_lossy(field).into() })?;
            let (about, path) = text.split_once('\t').ok_or_else(unexpected)?;
            let words: Vec<&str> = about.split(' ').collect();
            let [mode, oid, stage] = words[..] else { return Err(unexpected()) };
            let oid = Oid::parse(oid).ok_or_else(unexpected)?;
            let blob = Some(Blob { mode: mode.to_owned(), oid });
            if unmerged.last().is_none_or(|last| last.path != path) {
                let path = path.to_owned();
                unmerged.push(Unmerged { path, base: None, ours: None, theirs: None });
            }
            let Some(unmerged) = unmerged.last_mut() else { continue };
            match stage {
                "1" => unmerged.base = blob,
                "2" => unmerged.ours = blob,
                "3" => unmerged.theirs = blob,
                _ => return Err(unexpected()),
            }
        }
        if (answer.status == Some(1)) == unmerged.is_empty() {
            return Err(unexpected());
        }
        Ok(Merged { tree, unmerged })
    }

    /// The tree with other content at some paths.
    pub fn tree_with(&self, tree: &Oid, entries: &[Entry]) -> Result<Oid, Error> {
        let index = self.index_of(Some(tree))?;
        self.put_entries(&index.file, entries)?;
        self.tree_in(&index)
    }

    /// The sides of a conflict as files of ours: base, ours, theirs. A side that has none is empty.
    pub fn sides(&self, unmerged: &Unmerged) -> Result<Sides, Error> {
        let folder = PrivateIndex::new()?;
        let mut files = Vec::with_capacity(3);
        for (name, blob) in
            [("base", &unmerged.base), ("ours", &unmerged.ours), ("theirs", &unmerged.theirs)]
        {
            let content = match blob {
                Some(blob) => self.blob(&blob.oid)?,
                None => Vec::new(),
            };
            let path = folder.file.with_file_name(name);
            let failed = |source| Error::Io { path: path.clone(), source };
            std::fs::File::create(&path)
                .and_then(|mut file| file.write_all(&content))
                .map_err(failed)?;
            files.push(path);
        }
        Ok(Sides { _folder: folder, files })
    }

    /// Both sides' lines, one after the other where they differ.
    pub fn union(&self, sides: &Sides) -> Result<Vec<u8>, Error> {
        let words: Vec<String> = [&sides.files[1], &sides.files[0], &sides.files[2]]
            .iter()
            .map(|path| path.to_string_lossy().into_owned())
            .collect();
        let options = ["-p", "--union", "--quiet", &words[0], &words[1], &words[2]];
        self.call("merge-file").options(&options).bytes()
    }

    pub fn blob(&self, oid: &Oid) -> Result<Vec<u8>, Error> {
        self.call("cat-file").options(&["blob", oid.as_str()]).bytes()
    }

    pub fn write_blob(&self, content: Vec<u8>) -> Result<Oid, Error> {
        let options = ["-w", "--stdin", "--no-filters"];
        let output = self.call("hash-object").options(&options).input(content).bytes()?;
        oid_in(&output).ok_or(Error::Unexpected { command: "hash-object".into() })
    }

    /// A commit with these parents, in the name of whoever runs this; of Baton where git knows
    /// nobody. `like`: the author is that commit's.
    pub fn join(
        &self,
        tree: &Oid,
        parents: &[&Oid],
        message: &str,
        like: Option<&Oid>,
    ) -> Result<Oid, Error> {
        let mut author = match like {
            Some(commit) => self.author_of(commit)?,
            None => Vec::new(),
        };
        if self.setting("user.email")?.is_none() {
            let Author { name, email } = Author::baton();
            if like.is_none() {
                author.push(("GIT_AUTHOR_NAME", name.clone()));
                author.push(("GIT_AUTHOR_EMAIL", email.clone()));
            }
            author.push(("GIT_COMMITTER_NAME", name));
            author.push(("GIT_COMMITTER_EMAIL", email));
        }
        self.make_commit(tree, parents, message, &author)
    }

    pub fn tree_of_commit(&self, commit: &Oid) -> Result<Oid, Error> {
        self.resolve(&format!("{commit}^{{tree}}"))?
            .ok_or(Error::Unexpected { command: "rev-parse".into() })
    }

    /// The subjects of what `tip` has and `base` has not, oldest first.
    pub fn subjects(&self, base: &Oid, tip: &Oid, limit: usize) -> Result<Vec<String>, Error> {
        let commits = self.log_between(base, tip, limit)?;
        Ok(commits.into_iter().rev().map(|commit| commit.subject).collect())
    }

    pub fn is_shallow(&self) -> Result<bool, Error> {
        let text = self.call("rev-parse").options(&["--is-shallow-repository"]).text()?;
        Ok(text.trim() == "true")
    }
}

/// The three sides of a conflict, removed when done.
#[derive(Debug)]
pub struct Sides {
    _folder: PrivateIndex,
    /// Base, ours, theirs.
    pub files: Vec<PathBuf>,
}

/// Trees in which checks run.
impl Git {
    /// A new tree on no branch, filled later.
    pub fn add_pool_tree(&self, path: &Path, commit: &Oid) -> Result<(), Error> {
        let path = path
            .to_str()
            .ok_or_else(|| Error::NotUtf8 { lossy: path.to_string_lossy().into_owned() })?;
        let options = [
            "add",
            "--quiet",
            "--detach",
            "--no-checkout",
            "--force",
            "--end-of-options",
            path,
            commit.as_str(),
        ];
        self.call("worktree").options(&options).bytes().map(drop)
    }

    /// Makes this tree, which is ours alone, exactly that commit. What git ignores stays: caches.
    pub fn reset_pool_tree(&self, commit: &Oid) -> Result<(), Error> {
        let filters = self.own_filters()?;
        let lock = self.resolve_path("index.lock")?;
        // Nobody else writes this index: a lock is a dead runner's.
        std::fs::remove_file(lock).ok();
        let options = ["--reset", "-u", "--no-recurse-submodules", commit.as_str()];
        let call = self.call("read-tree").options(&options);
        call.without_filters(&filters).bytes()?;
        let options = ["--no-deref", "--end-of-options", "HEAD", commit.as_str()];
        self.call("update-ref").options(&options).bytes()?;
        // A check may have made repositories of its own.
        self.call("clean").options(&["-ffd", "--quiet"]).bytes().map(drop)
    }

    /// The tree's own git directory, and the one that all trees share.
    pub fn directories(&self) -> Result<(PathBuf, PathBuf), Error> {
        let options = ["--path-format=absolute", "--git-dir", "--git-common-dir"];
        let text = self.call("rev-parse").options(&options).text()?;
        let mut lines = text.lines().map(PathBuf::from);
        match (lines.next(), lines.next()) {
            (Some(own), Some(common)) => Ok((own, common)),
            _ => Err(Error::Unexpected { command: "rev-parse".into() }),
        }
    }

    fn resolve_path(&self, name: &str) -> Result<PathBuf, Error> {
        let text = self.call("rev-parse").options(&["--git-path", name]).text()?;
        Ok(self.folder().join(text.trim_end()))
    }
}
