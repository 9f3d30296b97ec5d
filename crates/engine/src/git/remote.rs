//! Fetching from a remote, and putting one's own commits upon what came.
//!
//! Owns the only calls that may reach a network. The address is given as such, so that no setting
//! of the repository under the remote's name counts; only the usual ways to reach a remote are
//! open; helpers for passwords come from the user's own configuration; nobody is asked anything.
//! Invariant: commits are put upon others without any tree or index (`merge-tree`), and a conflict
//! changes nothing.

use std::time::Duration;

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
        let slow = self.clone().with_timeout(Duration::from_secs(FETCH_SECONDS_MAX));
        match slow.over_the_network("fetch")?.options(&options).bytes() {
            Ok(_) => Ok(true),
            Err(Error::Failed { message, .. }) if message.contains("find remote ref") => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// A call that may reach a remote, in the usual ways and with the user's own passwords.
    fn over_the_network(&self, subcommand: &'static str) -> Result<super::Call<'_>, Error> {
        let mut settings: Vec<String> = ["https", "http", "ssh", "git", "file"]
            .iter()
            .map(|protocol| format!("protocol.{protocol}.allow=always"))
            .collect();
        settings.push("core.sshCommand=ssh -oBatchMode=yes -oConnectTimeout=10".to_owned());
        settings.extend(self.own_helpers()?);
        let mut call = self.call(subcommand).settings(&settings);
        for name in KEPT {
            if let Some(value) = std::env::var_os(name) {
                call = call.set(name, value);
            }
        }
        Ok(call)
    }

    /// Pushes a commit to a branch that must still be where it was seen; nothing for one that is
    /// not there yet.
    pub fn push(&self, url: &str, branch: &str, to: &Oid, from: Option<&Oid>) -> Result<(), Error> {
        let reference = format!("refs/heads/{branch}");
        let seen = from.map(Oid::as_str).unwrap_or_default();
        let lease = format!("--force-with-lease={reference}:{seen}");
        let refspec = format!("{to}:{reference}");
        let options = [
            "--quiet",
            "--no-follow-tags",
            "--no-recurse-submodules",
            "--no-signed",
            "--no-verify",
            "--receive-pack=git-receive-pack",
            &lease,
            "--end-of-options",
            url,
            &refspec,
        ];
        let slow = self.clone().with_timeout(Duration::from_secs(FETCH_SECONDS_MAX));
        slow.over_the_network("push")?.options(&options).bytes().map(drop)
    }

    /// Where a branch of a remote is, as the remote says now.
    pub fn remote_tip(&self, url: &str, branch: &str) -> Result<Option<Oid>, Error> {
        let reference = format!("refs/heads/{branch}");
        let options =
            ["--quiet", "--upload-pack=git-upload-pack", "--end-of-options", url, &reference];
        let slow = self.clone().with_timeout(Duration::from_secs(FETCH_SECONDS_MAX));
        let text = slow.over_the_network("ls-remote")?.options(&options).text()?;
        let line = text.lines().find(|line| line.ends_with(&format!("\t{reference}")));
        Ok(line.and_then(|line| Oid::parse(line.split('\t').next()?)))
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
        self.can_replay()?;
        let commits = match self.own_line(tip, head)? {
            Ok(commits) => commits,
            Err(commit) => return Ok(Replayed::Merge { commit }),
        };
        let mut tip = tip.clone();
        for (commit, parent) in commits {
            let merged = self.merge_upon(&parent, &tip, &commit)?;
            if !merged.unmerged.is_empty() {
                let files = merged.unmerged.into_iter().map(|clash| clash.path).collect();
                return Ok(Replayed::Conflict { commit, files });
            }
            // What the remote has already makes no commit of its own.
            if self.tree_of_commit(&tip)? != merged.tree {
                tip = self.again(&commit, &merged.tree, &tip)?;
            }
        }
        Ok(Replayed::Tip(tip))
    }

    /// Can this git put a commit upon another base without a tree?
    pub(super) fn can_replay(&self) -> Result<(), Error> {
        let version = self.version()?;
        match version < REPLAY_VERSION {
            true => Err(Error::TooOld { found: version }),
            false => Ok(()),
        }
    }

    /// The same commit with another tree and parent.
    pub(crate) fn again(&self, commit: &Oid, tree: &Oid, parent: &Oid) -> Result<Oid, Error> {
        let options = ["--max-count=1", "--no-show-signature", "--no-notes", "--format=tformat:%B"];
        let message = self.call("log").options(&options).options(&[commit.as_str()]).text()?;
        let message = format!("{}\n", message.trim_end());
        self.make_commit(tree, &[parent], &message, &self.author_of(commit)?)
    }

    /// Who made a commit, and when, as the surroundings of the next.
    pub(super) fn author_of(&self, commit: &Oid) -> Result<Vec<(&'static str, String)>, Error> {
        let options = [
            "--max-count=1",
            "--no-show-signature",
            "--no-notes",
            "--date=raw",
            "--format=tformat:%an%x00%ae%x00%ad",
            commit.as_str(),
        ];
        let text = self.call("log").options(&options).text()?;
        let fields: Vec<&str> = text.trim_end().splitn(3, '\0').collect();
        let [name, email, date] = fields[..] else {
            return Err(Error::Unexpected { command: "log".into() });
        };
        Ok(vec![
            ("GIT_AUTHOR_NAME", name.to_owned()),
            ("GIT_AUTHOR_EMAIL", email.to_owned()),
            ("GIT_AUTHOR_DATE", format!("@{date}")),
        ])
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
