//! What Baton asks git to judge work by: what a commit changed, and where it landed.
//!
//! Only reads. Invariant: an answer that cannot be understood is an error, never "nothing changed".

use super::{Error, Git, Oid};

impl Git {
    /// The files that a commit changed; of a merge, those it brought to its first parent.
    pub fn changed_by(&self, commit: &Oid) -> Result<Vec<String>, Error> {
        let options = [
            "--no-commit-id",
            "--name-only",
            "-r",
            "-z",
            "--root",
            "-m",
            "--first-parent",
            "--no-renames",
            commit.as_str(),
        ];
        Ok(names(&self.call("diff-tree").options(&options).bytes()?))
    }

    /// The files that differ from one commit to another.
    pub fn changed_between(&self, from: &Oid, to: &Oid) -> Result<Vec<String>, Error> {
        let options = ["--name-only", "-r", "-z", "--no-renames", from.as_str(), to.as_str()];
        Ok(names(&self.call("diff-tree").options(&options).bytes()?))
    }

    /// Is `commit` in the history of `tip`?
    pub fn is_ancestor(&self, commit: &Oid, tip: &Oid) -> Result<bool, Error> {
        let options = ["--is-ancestor", commit.as_str(), tip.as_str()];
        let answer = self.call("merge-base").options(&options).answer(&[1])?;
        Ok(answer.status == Some(0))
    }

    /// A file as a commit has it; nothing where it has none.
    pub fn file_at(&self, commit: &Oid, path: &str) -> Result<Option<Vec<u8>>, Error> {
        let named = format!("{commit}:{path}");
        let answer = self.call("cat-file").options(&["blob", &named]).answer(&[128])?;
        Ok((answer.status == Some(0)).then_some(answer.output))
    }

    /// The newest commit in this history that changed a file.
    pub fn last_change(&self, tip: &str, path: &str) -> Result<Option<Oid>, Error> {
        let options = ["--max-count=1", tip];
        let text = self.call("rev-list").options(&options).paths([path]).text()?;
        Ok(text.lines().find_map(Oid::parse))
    }

    /// The commit that a revision names, if it exists.
    pub fn commit_named(&self, revision: &str) -> Result<Option<Oid>, Error> {
        self.resolve(&format!("{revision}^{{commit}}"))
    }

    /// The branch that work lands in, with its tips: here and at its origin. `named` is a branch;
    /// otherwise what the origin's HEAD names, else main or master.
    pub fn target(&self, named: Option<&str>) -> Result<Option<(String, Vec<Oid>)>, Error> {
        let candidates: Vec<String> = match named {
            Some(name) => vec![name.to_owned()],
            None => {
                let options = ["--quiet", "refs/remotes/origin/HEAD"];
                let answer = self.call("symbolic-ref").options(&options).answer(&[1, 128])?;
                let text = String::from_utf8_lossy(&answer.output).trim().to_owned();
                let origin = text.strip_prefix("refs/remotes/origin/").map(str::to_owned);
                origin.into_iter().chain(["main".to_owned(), "master".to_owned()]).collect()
            }
        };
        let places = ["refs/heads", "refs/remotes/origin"];
        let references = candidates
            .iter()
            .flat_map(|name| places.map(|place| format!("{place}/{name}^{{commit}}")));
        let mut found = self.objects_named(&references.collect::<Vec<_>>())?.into_iter();
        for name in candidates {
            let tips: Vec<Oid> = found.by_ref().take(places.len()).flatten().collect();
            if !tips.is_empty() {
                return Ok(Some((name, tips)));
            }
        }
        Ok(None)
    }
}

/// Names that are not UTF-8 are left out: no resource of Baton's has such a name.
fn names(output: &[u8]) -> Vec<String> {
    let names = output.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    names.filter_map(|name| std::str::from_utf8(name).ok()).map(str::to_owned).collect()
}
