//! Working trees and the branches that stand in them, through git's own commands.
//!
//! Owns making and taking away linked trees and branches by compare-and-swap, and reading what git
//! knows of them. Refuses to judge whether a tree may go. Invariants: a branch that someone else
//! has moved is left alone, no hook and no filter of the repository runs, and a name from outside
//! never becomes an option.

use std::path::{Path, PathBuf};

use super::read::oid_in;
use super::{Error, Git, Oid};

/// How many rescues one may stand on another.
const RESCUES_MAX: usize = 10_000;

/// A tree as git lists it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Linked {
    pub path: PathBuf,
    pub head: Option<Oid>,
    /// Without `refs/heads/`; none when HEAD is detached.
    pub branch: Option<String>,
    pub bare: bool,
    /// Why nobody may move or remove it.
    pub locked: Option<String>,
}

/// A reference of Baton's, and the commit it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    pub name: String,
    pub commit: Oid,
    pub seconds: i64,
    pub author: String,
    pub subject: String,
}

/// Where checks of the merge queue run, below the folder of the store.
pub const POOL: [&str; 2] = ["baton", "checks"];

/// Is it one of those trees? They are nobody's to work in.
fn is_pool(path: &Path) -> bool {
    let parts: Vec<_> =
        path.components().rev().skip(1).take(2).map(|one| one.as_os_str()).collect();
    parts == [POOL[1], POOL[0]]
}

impl Git {
    /// Every tree of the repository that somebody may work in, the main one first.
    pub fn trees(&self) -> Result<Vec<Linked>, Error> {
        let output = self.call("worktree").options(&["list", "--porcelain", "-z"]).bytes()?;
        let mut trees: Vec<Linked> = Vec::new();
        for line in output.split(|byte| *byte == 0) {
            let text = String::from_utf8_lossy(line);
            let (word, rest) = text.split_once(' ').unwrap_or((&text, ""));
            if word == "worktree" {
                use std::os::unix::ffi::OsStrExt;
                let path = line.get(9..).unwrap_or_default();
                let path = PathBuf::from(std::ffi::OsStr::from_bytes(path));
                trees.push(Linked { path, ..Linked::default() });
                continue;
            }
            let Some(tree) = trees.last_mut() else { continue };
            match word {
                "HEAD" => tree.head = Oid::parse(rest).filter(|oid| oid.as_str() != oid.zero()),
                "branch" => {
                    tree.branch = rest.strip_prefix("refs/heads/").map(str::to_owned);
                }
                "bare" => tree.bare = true,
                "locked" => tree.locked = Some(rest.to_owned()),
                _ => {}
            }
        }
        trees.retain(|tree| !is_pool(&tree.path));
        Ok(trees)
    }

    /// May a branch be called so?
    pub fn is_branch_name(&self, name: &str) -> Result<bool, Error> {
        if name.starts_with('-') {
            return Ok(false);
        }
        let options = [&format!("refs/heads/{name}")[..]];
        let answer = self.call("check-ref-format").options(&options).answer(&[1])?;
        Ok(answer.status == Some(0))
    }

    /// The commit of a branch, if there is such a branch.
    pub fn branch(&self, name: &str) -> Result<Option<Oid>, Error> {
        self.commit_named(&format!("refs/heads/{name}"))
    }

    /// The branches whose names begin so, without `refs/heads/`.
    pub fn branches_below(&self, prefix: &str) -> Result<Vec<String>, Error> {
        let pattern = format!("refs/heads/{prefix}");
        let options = ["--format=%(refname)", "--end-of-options", &pattern];
        let text = self.call("for-each-ref").options(&options).bytes()?;
        let text = String::from_utf8_lossy(&text).into_owned();
        let names = text.lines().filter_map(|line| line.strip_prefix("refs/heads/"));
        Ok(names.map(str::to_owned).collect())
    }

    /// Makes a branch that is not there yet.
    pub fn make_branch(&self, name: &str, at: &Oid, why: &str) -> Result<(), Error> {
        let reference = format!("refs/heads/{name}");
        let options = ["--create-reflog", "-m", why, "--end-of-options"];
        let zero = at.zero();
        let ends = [reference.as_str(), at.as_str(), &zero];
        match self.call("update-ref").options(&options).options(&ends).bytes() {
            Ok(_) => Ok(()),
            Err(error) => match self.branch(name)? {
                Some(_) => Err(Error::ReferenceMoved { name: reference }),
                None => Err(error),
            },
        }
    }

    /// Takes a branch away, if it still is where it was seen.
    pub fn delete_branch(&self, name: &str, at: &Oid) -> Result<(), Error> {
        let reference = format!("refs/heads/{name}");
        let options = ["-d", "--end-of-options", &reference, at.as_str()];
        match self.call("update-ref").options(&options).bytes() {
            Ok(_) => Ok(()),
            Err(error) => match self.branch(name)? {
                Some(now) if now != *at => Err(Error::ReferenceMoved { name: reference }),
                None => Ok(()),
                Some(_) => Err(error),
            },
        }
    }

    /// Checks a branch out in a new tree. The folder is empty or not there.
    pub fn add_tree(&self, path: &Path, branch: &str) -> Result<(), Error> {
        let filters = self.own_filters()?;
        let path = path
            .to_str()
            .ok_or_else(|| Error::NotUtf8 { lossy: path.to_string_lossy().into_owned() })?;
        let options = ["add", "--quiet", "--no-guess-remote", "--end-of-options", path, branch];
        let call = self.call("worktree").options(&options).without_filters(&filters);
        call.bytes().map(|_| ())
    }

    /// Checks a commit out in a new tree that stands on no branch.
    pub fn add_detached(&self, path: &Path, commit: &Oid) -> Result<(), Error> {
        let filters = self.own_filters()?;
        let path = path
            .to_str()
            .ok_or_else(|| Error::NotUtf8 { lossy: path.to_string_lossy().into_owned() })?;
        let options = ["add", "--quiet", "--detach", "--end-of-options", path, commit.as_str()];
        let call = self.call("worktree").options(&options).without_filters(&filters);
        call.bytes().map(|_| ())
    }

    /// Makes git forget a tree whose folder is gone.
    pub fn forget_tree(&self, path: &Path) -> Result<(), Error> {
        let path = path
            .to_str()
            .ok_or_else(|| Error::NotUtf8 { lossy: path.to_string_lossy().into_owned() })?;
        let options = ["remove", "--force", "--force", "--end-of-options", path];
        self.call("worktree").options(&options).bytes().map(|_| ())
    }

    /// How many commits of `tip` no reference has but this branch and Baton's own.
    pub fn commits_nowhere_else(&self, tip: &Oid, branch: Option<&str>) -> Result<u64, Error> {
        let mut options = vec!["--count".to_owned(), tip.to_string(), "--not".to_owned()];
        options.extend(branch.map(|branch| format!("--exclude={branch}")));
        options.extend(["--branches", "--remotes", "--tags"].map(str::to_owned));
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        let call = self.call("rev-list").options(&options);
        let command = call.summary();
        call.text()?.trim().parse().map_err(|_| Error::Unexpected { command })
    }

    /// Submodules that are checked out here.
    pub fn submodules(&self) -> Result<Vec<String>, Error> {
        let output = self.call("ls-files").options(&["-s", "-z"]).bytes()?;
        let text = String::from_utf8_lossy(&output);
        let links = text.split_terminator('\0').filter_map(|line| {
            let (about, path) = line.split_once('\t')?;
            about.starts_with("160000 ").then(|| path.to_owned())
        });
        Ok(links.filter(|path| self.folder().join(path).join(".git").exists()).collect())
    }

    /// Has this repository commits, on a branch or checked out, that no remote had when it was
    /// last asked?
    pub fn has_own_commits(&self) -> Result<bool, Error> {
        let mut options = vec!["--max-count=1", "--branches", "--tags"];
        options.extend(self.head()?.is_some().then_some("HEAD"));
        options.extend(["--not", "--remotes"]);
        Ok(!self.call("rev-list").options(&options).bytes()?.is_empty())
    }

    /// How many commits `tip` has that `base` has not, and the other way round.
    pub fn ahead_behind(&self, tip: &Oid, base: &Oid) -> Result<(u64, u64), Error> {
        let range = format!("{base}...{tip}");
        let call = self.call("rev-list").options(&["--left-right", "--count", &range]);
        let command = call.summary();
        let text = call.text()?;
        let mut counts = text.split_whitespace().map(|word| word.parse().ok());
        match (counts.next().flatten(), counts.next().flatten()) {
            (Some(behind), Some(ahead)) => Ok((ahead, behind)),
            _ => Err(Error::Unexpected { command }),
        }
    }

    /// A value of the configuration as git would use it here.
    pub fn setting(&self, key: &str) -> Result<Option<String>, Error> {
        let answer = self.call("config").options(&["-z", "--get", key]).answer(&[1])?;
        let text = String::from_utf8_lossy(&answer.output);
        let value = text.strip_suffix('\0').unwrap_or(&text);
        Ok((answer.status == Some(0)).then(|| value.to_owned()))
    }

    /// Sets values for this tree alone. False, and nothing is set, where that would change what
    /// other trees are: with a bare repository, or a working tree named in its configuration.
    pub fn set_for_tree(&self, values: &[(&str, &str)]) -> Result<bool, Error> {
        let own = |key: &str| {
            let answer = self.call("config").options(&["--local", "--get", key]).answer(&[1])?;
            Ok::<_, Error>(String::from_utf8_lossy(&answer.output).trim().to_owned())
        };
        if own("extensions.worktreeConfig")? != "true" {
            if own("core.bare")? == "true" || !own("core.worktree")?.is_empty() {
                return Ok(false);
            }
            let options = ["--local", "extensions.worktreeConfig", "true"];
            self.call("config").options(&options).bytes()?;
        }
        for (key, value) in values {
            self.call("config").options(&["--worktree", key, value]).bytes()?;
        }
        Ok(true)
    }

    /// The names in a folder of a commit; none when it has no such folder.
    pub fn names_in(&self, commit: &Oid, folder: &str) -> Result<Vec<String>, Error> {
        let Some(tree) = self.resolve(&format!("{commit}:{folder}"))? else {
            return Ok(Vec::new());
        };
        let call = self.call("ls-tree").options(&["-z", "--name-only", tree.as_str()]);
        match call.answer(&[]) {
            Ok(answer) => {
                let text = String::from_utf8_lossy(&answer.output).into_owned();
                Ok(text.split_terminator('\0').map(str::to_owned).collect())
            }
            // A file, where a folder was asked for.
            Err(Error::Failed { .. }) => Ok(Vec::new()),
            Err(other) => Err(other),
        }
    }

    /// Everything under a prefix of Baton's references, oldest first.
    pub fn kept_below(&self, prefix: &str) -> Result<Vec<Kept>, Error> {
        let format = "--format=%(refname)%00%(objectname)%00%(committerdate:unix)%00\
                      %(authorname)%00%(contents:subject)";
        let options = ["--sort=committerdate", format, "--end-of-options", prefix];
        let output = self.call("for-each-ref").options(&options).bytes()?;
        let text = String::from_utf8_lossy(&output);
        let one = |line: &str| {
            let mut fields = line.split('\0');
            let name = fields.next()?.to_owned();
            let commit = Oid::parse(fields.next()?)?;
            let seconds = fields.next()?.parse().ok()?;
            let author = fields.next()?.to_owned();
            Some(Kept { name, commit, seconds, author, subject: fields.next()?.to_owned() })
        };
        // What is no commit is not ours, whoever put it there.
        Ok(text.lines().filter_map(one).collect())
    }

    /// The commit that saved changes were made upon: the first below them that is not a rescue
    /// itself, since a later rescue under the same name stands on an earlier one.
    pub fn below_rescue(&self, commit: &Oid) -> Result<Option<Oid>, Error> {
        let count = format!("--max-count={RESCUES_MAX}");
        let options = ["--first-parent", "--format=tformat:%H %ce", "--no-show-signature", &count];
        let call = self.call("log").options(&options).options(&[commit.as_str(), "--"]);
        let output = call.bytes()?;
        let text = String::from_utf8_lossy(&output);
        let baton = super::Author::baton().email;
        let found = text.lines().filter_map(|line| line.split_once(' '));
        let found = found.skip_while(|(_, email)| *email == baton).map(|(oid, _)| Oid::parse(oid));
        Ok(found.flatten().next())
    }

    /// Where two histories part.
    pub fn merge_base(&self, one: &Oid, two: &Oid) -> Result<Option<Oid>, Error> {
        let answer = self.call("merge-base").options(&[one.as_str(), two.as_str()]).answer(&[1])?;
        Ok(oid_in(&answer.output))
    }

    /// The change from one commit to another, as a patch; from nothing without a first one.
    pub fn patch_between(&self, from: Option<&Oid>, to: &Oid) -> Result<Vec<u8>, Error> {
        let mut options = vec![
            "-p",
            "-r",
            "--binary",
            "--full-index",
            "--no-ext-diff",
            "--no-textconv",
            "--no-color",
            "--no-renames",
            "--no-commit-id",
            "--src-prefix=a/",
            "--dst-prefix=b/",
        ];
        match from {
            Some(from) => options.extend([from.as_str(), to.as_str()]),
            None => options.extend(["--root", to.as_str()]),
        }
        self.call("diff-tree").options(&options).bytes()
    }

    /// Points a reference of Baton's to a commit, which stays reachable from then on.
    pub fn keep(&self, reference: &str, commit: &Oid) -> Result<(), Error> {
        super::write::check_reference(reference)?;
        let before = self.resolve(reference)?;
        if before.as_ref() == Some(commit) {
            return Ok(());
        }
        self.move_reference(reference, commit, before.as_ref())
    }
}
