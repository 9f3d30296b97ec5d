//! The commit a working tree stands on, read from files.
//!
//! Owns the reading of `HEAD` and of loose and packed references. Refuses to spawn git, because
//! this runs whenever a task is taken. What it cannot read it leaves open.

use std::path::Path;

use super::{GitDirs, Place};

/// Larger lists of packed references are left to git.
const PACKED_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// What the files say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Head {
    Commit(String),
    /// A branch without a commit yet, or no git at all.
    Nothing,
    /// Kept in a way that only git itself can read.
    AskGit,
}

impl Place {
    pub fn head(&self) -> Head {
        self.stand().1
    }

    /// The reference that HEAD stands for, if it stands for one, and the commit.
    pub fn stand(&self) -> (Option<String>, Head) {
        let Some(git) = &self.git else {
            return (None, Head::Nothing);
        };
        let path = git.git_dir.join("HEAD");
        // Very old repositories have a link there, whose target is what HEAD stands for.
        let linked = std::fs::symlink_metadata(&path).is_ok_and(|file| file.is_symlink());
        let Some(text) = std::fs::read_to_string(path).ok().filter(|_| !linked) else {
            return (None, Head::AskGit);
        };
        let text = text.trim();
        let Some(name) = text.strip_prefix("ref: ").map(str::trim) else {
            return (None, oid(text).map_or(Head::AskGit, Head::Commit));
        };
        // The name that stands there when references are kept as tables.
        if name.ends_with("/.invalid") || name.split('/').any(|part| part == "..") {
            return (None, Head::AskGit);
        }
        (Some(name.to_owned()), Self::commit_of(git, name))
    }

    fn commit_of(git: &GitDirs, name: &str) -> Head {
        for folder in [&git.git_dir, &git.common_dir] {
            if let Ok(text) = std::fs::read_to_string(folder.join(name)) {
                return oid(text.trim()).map_or(Head::AskGit, Head::Commit);
            }
        }
        packed(&git.common_dir, name)
    }
}

fn packed(common_dir: &Path, name: &str) -> Head {
    let path = common_dir.join("packed-refs");
    match std::fs::metadata(&path) {
        Err(_) => return Head::Nothing,
        Ok(metadata) if metadata.len() > PACKED_BYTES_MAX => return Head::AskGit,
        Ok(_) => {}
    }
    let Ok(text) = std::fs::read_to_string(path) else {
        return Head::AskGit;
    };
    let line = text.lines().find_map(|line| line.strip_suffix(name)?.strip_suffix(' '));
    line.and_then(oid).map_or(Head::Nothing, Head::Commit)
}

fn oid(text: &str) -> Option<String> {
    let hex = text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    (hex && matches!(text.len(), 40 | 64)).then(|| text.to_owned())
}
