//! Building candidates: each landing upon the one before, without any tree.
//!
//! Owns how a branch becomes commits upon another, by the strategy of the policy, and what is done
//! about a conflict: lines of both sides in `append` zones, then the user's own merge driver, then
//! nothing. Invariant: a conflict that is left is told, never resolved (LESSONS 18).

use std::time::Duration;

use baton_core::landing::{Landing, Strategy};
use baton_core::resource::Resource;
use baton_core::zones::{Policy, Rule};

use crate::errand;
use crate::failure::Failure;
use crate::git::{Blob, Entry, Git, Merged, Oid, Unmerged};

/// How long a merge driver may take for one file.
const DRIVER_SECONDS_MAX: u64 = 60;
/// How many subjects a squashed commit lists.
const SUBJECTS_MAX: usize = 50;

/// What came of putting a branch upon a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stacked {
    Commit(Oid),
    Conflict(Vec<String>),
}

pub(super) struct Stacker<'a> {
    pub(super) git: &'a Git,
    pub(super) policy: &'a Policy,
    /// A person stands for the merge driver.
    pub(super) driver_trusted: bool,
}

impl Stacker<'_> {
    /// The branch of a landing upon `upon`.
    pub(super) fn put(&self, landing: &Landing, tip: &Oid, upon: &Oid) -> Result<Stacked, Failure> {
        match self.policy.queue.strategy {
            Strategy::Rebase => match self.git.own_line(upon, tip)? {
                Ok(commits) => self.rebase(&commits, upon),
                // A branch with merges in it cannot be put in one line.
                Err(_) => self.merge(landing, tip, upon),
            },
            Strategy::Merge => self.merge(landing, tip, upon),
            Strategy::Squash => {
                let tree = match self.resolved(self.git.merge(upon, tip)?)? {
                    Ok(tree) => tree,
                    Err(files) => return Ok(Stacked::Conflict(files)),
                };
                let message = self.squashed(landing, tip, upon)?;
                Ok(Stacked::Commit(self.git.join(&tree, &[upon], &message, Some(tip))?))
            }
        }
    }

    fn merge(&self, landing: &Landing, tip: &Oid, upon: &Oid) -> Result<Stacked, Failure> {
        let tree = match self.resolved(self.git.merge(upon, tip)?)? {
            Ok(tree) => tree,
            Err(files) => return Ok(Stacked::Conflict(files)),
        };
        let title = format!("Merge branch '{}' into {}", landing.branch, landing.target);
        let message = format!("{title}\n\n{}", trailers(landing));
        Ok(Stacked::Commit(self.git.join(&tree, &[upon, tip], &message, None)?))
    }

    fn rebase(&self, commits: &[(Oid, Oid)], upon: &Oid) -> Result<Stacked, Failure> {
        let mut at = upon.clone();
        for (commit, parent) in commits {
            let tree = match self.resolved(self.git.merge_upon(parent, &at, commit)?)? {
                Ok(tree) => tree,
                Err(files) => return Ok(Stacked::Conflict(files)),
            };
            // What is there already makes no commit of its own.
            if self.git.tree_of_commit(&at)? != tree {
                at = self.git.again(commit, &tree, &at)?;
            }
        }
        Ok(Stacked::Commit(at))
    }

    fn squashed(&self, landing: &Landing, tip: &Oid, upon: &Oid) -> Result<String, Failure> {
        let subjects = self.git.subjects(upon, tip, SUBJECTS_MAX)?;
        let list = |subjects: &[String]| {
            subjects.iter().map(|one| format!("- {one}\n")).collect::<String>()
        };
        let text = match subjects.as_slice() {
            [only] => format!("{only}\n"),
            several => format!("{}\n\n{}", landing.branch, list(several)),
        };
        Ok(format!("{text}\n{}", trailers(landing)))
    }

    /// The tree without conflicts, or the files that still have one.
    fn resolved(&self, merged: Merged) -> Result<Result<Oid, Vec<String>>, Failure> {
        if merged.unmerged.is_empty() {
            return Ok(Ok(merged.tree));
        }
        let (mut entries, mut left) = (Vec::new(), Vec::new());
        for unmerged in &merged.unmerged {
            match self.one_file(unmerged)? {
                Some(entry) => entries.push(entry),
                None => left.push(unmerged.path.clone()),
            }
        }
        if !left.is_empty() {
            left.sort_unstable();
            left.dedup();
            return Ok(Err(left));
        }
        Ok(Ok(self.git.tree_with(&merged.tree, &entries)?))
    }

    /// One file in which both sides changed the same lines.
    fn one_file(&self, unmerged: &Unmerged) -> Result<Option<Entry>, Failure> {
        let (Some(ours), Some(theirs)) = (&unmerged.ours, &unmerged.theirs) else {
            return Ok(None);
        };
        // A link, a submodule, or a file whose kind changed is for people.
        if ours.mode != theirs.mode || !ours.mode.starts_with("100") {
            return Ok(None);
        }
        let appends = Resource::literal(&unmerged.path)
            .is_ok_and(|path| self.policy.rule(&path) == Rule::Append);
        let driver = &self.policy.queue.merge_driver;
        let sides = match appends || (!driver.is_empty() && self.driver_trusted) {
            true => self.git.sides(unmerged)?,
            false => return Ok(None),
        };
        let content = match appends {
            true => Some(self.git.union(&sides)?),
            false => self.drive(driver, &sides.files, &unmerged.path),
        };
        let Some(content) = content else { return Ok(None) };
        let blob = Blob { mode: ours.mode.clone(), oid: self.git.write_blob(content)? };
        Ok(Some(Entry { path: unmerged.path.clone(), blob: Some(blob) }))
    }

    /// The user's own merge driver: told the three files, it leaves the result in ours.
    fn drive(
        &self,
        driver: &[String],
        files: &[std::path::PathBuf],
        path: &str,
    ) -> Option<Vec<u8>> {
        let [base, ours, theirs] = files else { return None };
        let fill = |word: &String| {
            let places = [("%O", base), ("%A", ours), ("%B", theirs)];
            let word = places.iter().fold(word.clone(), |word, (place, file)| {
                word.replace(place, &file.to_string_lossy())
            });
            word.replace("%P", path)
        };
        let argv: Vec<String> = driver.iter().map(fill).collect();
        let folder = ours.parent()?;
        let at_most = Duration::from_secs(DRIVER_SECONDS_MAX);
        errand::run(&argv, folder, &[], "", at_most).well.then(|| std::fs::read(ours).ok())?
    }
}

/// What the commit tells of its landing.
fn trailers(landing: &Landing) -> String {
    let mut text = format!("Baton-Landing: {}\n", landing.landing);
    if let Some(task) = &landing.task {
        text.push_str(&format!("Baton-Task: {task}\n"));
    }
    if landing.by.is_session() {
        text.push_str(&format!("Baton-Session: {}\n", landing.by.session));
    }
    text
}
