//! Fetching from a remote, and putting one's own commits upon what came.
//!
//! Owns the only calls that may reach a network. The address is given as such, so that no setting
//! of the repository under the remote's name counts; only the usual ways to reach a remote are
//! open; helpers for passwords come from the user's own configuration; nobody is asked anything.
//! Invariant: commits are put upon others without any tree or index (`merge-tree`), and a conflict
//! changes nothing.

use std::time::Duration;

use super::read::{names, oid_in};
use super::{Commit, Error, Git, Oid};

/// How long a fetch may take.
pub const FETCH_SECONDS_MAX: u64 = 60;
/// Git can put a commit upon another base without a tree since then.
const REPLAY_VERSION: super::Version = super::Version { major: 2, minor: 40, patch: 0 };

/// What a fetch needs of our surroundings.
const KEPT: &[&str] = &[
    "SSH_AUTH_SOCK",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "HTTPS_PROXY",
    "NO_PROXY",
    "ALL_PROXY",
];

/// A commit that the remote has and we have not, with the files it changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incoming {
    pub commit: Commit,
    pub files: Vec<String>,
}

/// What came of putting commits upon another base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Replayed {
    Tip(Oid),
    Conflict {
        commit: Oid,
        files: Vec<String>,
    },
    /// One of them is a merge, or the first of all: that is left to a person.
    Merge {
        commit: Oid,
    },
}

impl Git {
    /// The address of a remote.
    pub fn url_of(&self, remote: &str) -> Result<Option<String>, Error> {
        let options = ["-z", "--get-regexp", r"^remote\..*\.url$"];
        let answer = self.call("config").options(&options).answer(&[1])?;
        let text = String::from_utf8_lossy(&answer.output);
        let key = format!("remote.{remote}.url");
        let mut entries = text.split_terminator('\0').filter_map(|entry| entry.split_once('\n'));
        Ok(entries.find(|(found, _)| *found == key).map(|(_, url)| url.to_owned()))
    }

    /// The branch that the remote's HEAD names, as it was last seen.
    pub fn default_branch(&self, remote: &str) -> Result<Option<String>, Error> {
        let name = format!("refs/remotes/{remote}/HEAD");
        let options = ["--quiet", "--end-of-options", &name];
        let answer = self.call("symbolic-ref").options(&options).answer(&[1, 128])?;
        let text = String::from_utf8_lossy(&answer.output).trim().to_owned();
        Ok(text.strip_prefix(&format!("refs/remotes/{remote}/")).map(str::to_owned))
    }

    /// Fetches one branch. `Ok(false)` when the remote answered and has no such branch.
    pub fn fetch(&self, url: &str, remote: &str, branch: &str) -> Result<bool, Error> {
        let refspec = format!("+refs/heads/{branch}:refs/remotes/{remote}/{branch}");
        let options = [
            "--quiet",
            "--no-tags",
            "--no-prune",
            "--no-recurse-submodules",
            "--no-auto-maintenance",
            "--no-write-fetch-head",
            "--upload-pack=git-upload-pack",
            "--end-of-options",
            url,
            &refspec,
        ];
        let mut settings: Vec<String> = ["https", "http", "ssh", "git", "file"]
            .iter()
            .map(|protocol| format!("protocol.{protocol}.allow=always"))
            .collect();
        settings.push("core.sshCommand=ssh -oBatchMode=yes -oConnectTimeout=10".to_owned());
        settings.extend(self.own_helpers()?);
        let slow = self.clone().with_timeout(Duration::from_secs(FETCH_SECONDS_MAX));
        let mut call = slow.call("fetch").options(&options).settings(&settings);
        for name in KEPT {
            if let Some(value) = std::env::var_os(name) {
                call = call.set(name, value);
            }
        }
        match call.bytes() {
            Ok(_) => Ok(true),
            Err(Error::Failed { message, .. }) if message.contains("find remote ref") => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Helpers for passwords of the user's own configuration; the repository's are not asked.
    fn own_helpers(&self) -> Result<Vec<String>, Error> {
        let options = ["-z", "--show-scope", "--get-regexp", r"^credential\.(.*\.)?helper$"];
        let answer = self.call("config").options(&options).answer(&[1])?;
        let text = String::from_utf8_lossy(&answer.output);
        let fields: Vec<&str> = text.split_terminator('\0').collect();
        let theirs = fields.chunks_exact(2).filter(|one| matches!(one[0], "system" | "global"));
        let settings = theirs.filter_map(|one| {
            let (key, value) = one[1].split_once('\n')?;
            (!key.contains('=')).then(|| format!("{key}={value}"))
        });
        Ok(settings.collect())
    }

    /// How many commits each of the two has that the other has not.
    pub fn apart(&self, one: &Oid, two: &Oid) -> Result<(u64, u64), Error> {
        let range = format!("{one}...{two}");
        let options = ["--left-right", "--count", &range];
        let text = self.call("rev-list").options(&options).text()?;
        let mut numbers = text.split_whitespace().map(str::parse);
        match (numbers.next(), numbers.next()) {
            (Some(Ok(one)), Some(Ok(two))) => Ok((one, two)),
            _ => Err(Error::Unexpected { command: "rev-list".into() }),
        }
    }

    /// The commits of `tip` that `head` has not, newest first, with their files.
    pub fn incoming(&self, head: &Oid, tip: &Oid, limit: usize) -> Result<Vec<Incoming>, Error> {
        let commits = self.log_between(head, tip, limit)?;
        let found = commits.into_iter().map(|commit| {
            let files = self.changed_by(&commit.oid)?;
            Ok(Incoming { commit, files })
        });
        found.collect()
    }

    /// Puts the commits of `head` that `tip` has not upon `tip`, one after the other.
    pub fn replay(&self, head: &Oid, tip: &Oid) -> Result<Replayed, Error> {
        let version = self.version()?;
        if version < REPLAY_VERSION {
            return Err(Error::TooOld { found: version });
        }
        let range = format!("{tip}..{head}");
        let options = ["--reverse", "--topo-order", "--parents", &range];
        let text = self.call("rev-list").options(&options).text()?;
        let drivers = self.own_drivers()?;
        let mut tip = tip.clone();
        for line in text.lines() {
            let oids: Option<Vec<Oid>> = line.split(' ').map(Oid::parse).collect();
            let unexpected = || Error::Unexpected { command: "rev-list".into() };
            let oids = oids.ok_or_else(unexpected)?;
            let [commit, parent] = &oids[..] else {
                let commit = oids.into_iter().next().ok_or_else(unexpected)?;
                return Ok(Replayed::Merge { commit });
            };
            let base = format!("--merge-base={parent}");
            let options = ["--write-tree", "-z", "--name-only", "--no-messages", &base];
            let ends = [tip.as_str(), commit.as_str()];
            let call = self.call("merge-tree").options(&options).options(&ends);
            let answer = call.without_drivers(&drivers).answer(&[1])?;
            let mut fields = answer.output.splitn(2, |byte| *byte == 0);
            let tree = fields.next().and_then(oid_in);
            let tree = tree.ok_or(Error::Unexpected { command: "merge-tree".into() })?;
            if answer.status == Some(1) {
                let files = names(fields.next().unwrap_or_default())?;
                return Ok(Replayed::Conflict { commit: commit.clone(), files });
            }
            // What the remote has already makes no commit of its own.
            if !self.differs(Some(&tip), &tree)?.is_empty() {
                tip = self.again(commit, &tree, &tip)?;
            }
        }
        Ok(Replayed::Tip(tip))
    }

    /// The same commit with another tree and parent.
    fn again(&self, commit: &Oid, tree: &Oid, parent: &Oid) -> Result<Oid, Error> {
        let options = [
            "--max-count=1",
            "--no-show-signature",
            "--no-notes",
            "--date=raw",
            "--format=tformat:%an%x00%ae%x00%ad%x00%B",
            commit.as_str(),
        ];
        let text = self.call("log").options(&options).text()?;
        let fields: Vec<&str> = text.splitn(4, '\0').collect();
        let [name, email, date, message] = fields[..] else {
            return Err(Error::Unexpected { command: "log".into() });
        };
        let author = [
            ("GIT_AUTHOR_NAME", name.to_owned()),
            ("GIT_AUTHOR_EMAIL", email.to_owned()),
            ("GIT_AUTHOR_DATE", format!("@{date}")),
        ];
        let message = format!("{}\n", message.trim_end());
        self.make_commit(tree, Some(parent), &message, &author)
    }

    /// Every file of a commit.
    pub fn every_file_of(&self, commit: &Oid) -> Result<Vec<String>, Error> {
        let options = ["-r", "-z", "--name-only", commit.as_str()];
        let output = self.call("ls-tree").options(&options).bytes()?;
        let text = String::from_utf8_lossy(&output);
        Ok(text.split_terminator('\0').map(str::to_owned).collect())
    }

    /// Moves the files and the index of the tree from one commit to another. Whatever was changed
    /// since the first stays, and where both changed nothing moves at all.
    pub fn move_files(&self, from: &Oid, to: &Oid) -> Result<(), Error> {
        let filters = self.own_filters()?;
        // What git only believes to be changed must not be in the way.
        let call = self.call("update-index").options(&["-q", "--refresh"]);
        call.without_filters(&filters).answer(&[1])?;
        let options = ["-m", "-u", "--no-recurse-submodules", from.as_str(), to.as_str()];
        let call = self.call("read-tree").options(&options);
        call.without_filters(&filters).bytes().map(drop)
    }
}
