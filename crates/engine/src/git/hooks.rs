//! Where git looks for hooks, what is staged while one runs, and what a branch would newly have.
//!
//! Owns the one setting of the repository's configuration that Baton changes, `core.hooksPath`. It
//! refuses to know what the hooks do.

use std::collections::BTreeSet;
use std::ffi::OsStr;

use super::read::names;
use super::{Error, Git, Oid};

const KEY: &str = "core.hooksPath";

/// A branch that git is about to move, as it tells its `reference-transaction` hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefMove {
    /// Nothing for a new branch, or when git was not told where it was.
    pub from: Option<Oid>,
    pub to: Oid,
    pub reference: String,
}

impl RefMove {
    /// Reads `OLD NEW REF` lines. What is no branch, goes away or stays is left out.
    pub fn read(input: &str) -> Vec<Self> {
        input.lines().filter_map(Self::read_line).collect()
    }

    fn read_line(line: &str) -> Option<Self> {
        let mut words = line.splitn(3, ' ');
        let (from, to, reference) = (words.next()?, words.next()?, words.next()?);
        let is_zero = |oid: &Oid| oid.as_str() == oid.zero();
        let from = Oid::parse(from).filter(|oid| !is_zero(oid));
        let to = Oid::parse(to).filter(|oid| !is_zero(oid))?;
        let moves = reference.starts_with("refs/heads/") && from.as_ref() != Some(&to);
        moves.then(|| Self { from, to, reference: reference.to_owned() })
    }
}

/// The setting where it counts, and in the repository's own configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HooksPath {
    /// What git uses, with `~` resolved.
    pub effective: Option<String>,
    /// What the repository's own configuration says, as it is written there.
    pub local: Option<String>,
    /// What counts is the setting of this working tree alone.
    pub of_tree: bool,
}

impl Git {
    pub fn hooks_setting(&self) -> Result<HooksPath, Error> {
        let options = ["-z", "--local", "--get", KEY];
        let answer = self.call("config").options(&options).answer(&[1])?;
        let text = String::from_utf8_lossy(&answer.output);
        let value = text.strip_suffix('\0').unwrap_or(&text);
        let local = (answer.status == Some(0)).then(|| value.to_owned());
        let (scope, effective) = self.hooks_path_and_scope()?.unzip();
        let of_tree = scope.as_deref() == Some("worktree");
        Ok(HooksPath { effective, local, of_tree })
    }

    /// Says in the repository's configuration where its hooks are; nothing takes the setting out.
    pub fn set_hooks_path(&self, folder: Option<&str>) -> Result<(), Error> {
        let call = match folder {
            Some(folder) => self.call("config").options(&["--local", KEY, folder]),
            None => self.call("config").options(&["--local", "--unset", KEY]),
        };
        // 5: there is nothing to take out.
        call.answer(&[5]).map(|_| ())
    }

    /// The paths that a commit of this index would change. During a commit git uses an index file
    /// of its own and names it to its hooks.
    pub fn staged(&self, index: Option<&OsStr>) -> Result<Vec<String>, Error> {
        let options = ["--cached", "--name-only", "--no-renames", "--no-ext-diff", "-z"];
        let mut call = self.call("diff").options(&options);
        if let Some(index) = index {
            call = call.set("GIT_INDEX_FILE", index);
        }
        names(&call.bytes()?)
    }

    /// The commits these moves bring that no ref of the repository has yet, at most `count`.
    pub fn unknown_commits(&self, moves: &[RefMove], count: usize) -> Result<Vec<Oid>, Error> {
        if moves.is_empty() {
            return Ok(Vec::new());
        }
        let count = format!("--max-count={count}");
        let tips: Vec<&str> = moves.iter().map(|one| one.to.as_str()).collect();
        let call = self.call("rev-list").options(&[&count]).options(&tips);
        let text = call.options(&["--not", "--all"]).text()?;
        Ok(text.lines().filter_map(Oid::parse).collect())
    }

    /// The paths these commits change; of a merge, those that are as in none of its parents. What
    /// is in the end as it was on the branch, as most of an amended commit is, does not count.
    pub fn changed_in(&self, commits: &[Oid], moves: &[RefMove]) -> Result<Vec<String>, Error> {
        let options = ["--stdin", "-c", "-r", "-z", "--root", "--name-only", "--no-commit-id"];
        let input: String = commits.iter().map(|commit| format!("{commit}\n")).collect();
        let call = self.call("diff-tree").options(&options).options(&["--no-renames"]);
        let changed: BTreeSet<String> =
            names(&call.input(input.into_bytes()).bytes()?)?.into_iter().collect();
        let mut kept = BTreeSet::new();
        for one in moves {
            let Some(from) = &one.from else { return Ok(changed.into_iter().collect()) };
            let differs = self.changed_between(from, &one.to)?;
            kept.extend(differs.into_iter().filter(|path| changed.contains(path)));
        }
        Ok(kept.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lesson_36_only_branches_that_get_something_are_read() {
        let (one, two, zero) = ("1".repeat(40), "2".repeat(40), "0".repeat(40));
        let lines = [
            format!("{one} {two} refs/heads/main"),
            format!("{zero} {two} refs/heads/new"),
            // What gc shows of a branch it packs.
            format!("{one} {zero} refs/heads/main"),
            format!("{two} {two} refs/heads/same"),
            format!("{one} {two} HEAD"),
            format!("{zero} {two} refs/remotes/origin/main"),
            "ref:refs/heads/main ref:refs/heads/x HEAD".to_owned(),
            "nonsense".to_owned(),
        ];
        let read = RefMove::read(&lines.join("\n"));
        let names: Vec<(&str, bool)> =
            read.iter().map(|one| (one.reference.as_str(), one.from.is_some())).collect();
        assert_eq!(names, [("refs/heads/main", true), ("refs/heads/new", false)]);
    }
}
