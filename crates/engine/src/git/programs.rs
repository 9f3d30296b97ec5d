//! The programs that a repository's own settings would have git run: filters and merge drivers.
//!
//! Those of the user and the machine are trusted; a repository's are switched off, call by call.
//! Whether there are any is asked of git, unless the repository's files cannot name one: that
//! spares a process before nearly every status.

use std::fs;
use std::path::Path;

use super::read::Setting;
use super::{At, Error, Git};
use crate::place::git_dirs;

impl Git {
    /// The filter drivers that the repository itself configures. Status would run them on every
    /// file it has to look into; those of the user's own configuration (such as LFS) are trusted.
    pub(super) fn own_filters(&self) -> Result<Vec<String>, Error> {
        if self.names_none("filter") {
            return Ok(Vec::new());
        }
        self.own("filter", r"^filter\..*\.(clean|smudge|process)$")
    }

    /// The merge drivers that the repository itself configures.
    pub(crate) fn own_drivers(&self) -> Result<Vec<String>, Error> {
        if self.names_none("merge") {
            return Ok(Vec::new());
        }
        self.own("merge", r"^merge\..*\.driver$")
    }

    fn own(&self, section: &str, pattern: &str) -> Result<Vec<String>, Error> {
        let keys = ["clean", "smudge", "process", "driver"];
        Ok(own_programs(section, &keys, &self.settings_like(pattern)?))
    }

    /// Whether the repository's own files have no section of this name, nor one that brings in
    /// other files. What cannot be read is left to git.
    fn names_none(&self, section: &str) -> bool {
        let At::Tree(root) = &self.place else { return false };
        let Ok(Some(dirs)) = git_dirs(root) else { return false };
        let files = [dirs.common_dir.join("config"), dirs.git_dir.join("config.worktree")];
        let words = [section.as_bytes(), b"include"];
        files.iter().all(|file| lacks(file, &words))
    }
}

/// Whether none of these words, in any case, stands anywhere in a file. A missing one has none.
fn lacks(file: &Path, words: &[&[u8]]) -> bool {
    let text = match fs::read(file) {
        Ok(text) => text,
        Err(error) => return error.kind() == std::io::ErrorKind::NotFound,
    };
    let stands =
        |word: &&[u8]| text.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word));
    !words.iter().any(stands)
}

/// The names of drivers in a section that have one of these keys, as far as the repository itself
/// configures them.
pub(crate) fn own_programs(section: &str, keys: &[&str], settings: &[Setting]) -> Vec<String> {
    let mut drivers = Vec::new();
    for Setting { scope, key, .. } in settings {
        let named = key.strip_prefix(section).and_then(|rest| rest.strip_prefix('.'));
        if let Some((driver, last)) = named.and_then(|rest| rest.rsplit_once('.'))
            && keys.contains(&last)
            && !matches!(scope.as_str(), "system" | "global")
        {
            drivers.push(driver.to_owned());
        }
    }
    drivers.sort_unstable();
    drivers.dedup();
    drivers
}
