//! `[worktree]` in `baton.toml`: how working trees are made.
//!
//! Owns reading the entry and saying what is wrong with it, with its line. Its setup
//! command runs only when a person stands for it. What is copied stays within the tree.

use baton_core::tree::{Identity, Rules};
use serde::Deserialize;
use toml::Spanned;

use super::Source;
use super::done::Words;
use crate::failure::Failure;

pub(crate) const COPIES_MAX: usize = 100;
const DIR_BYTES_MAX: usize = 1_000;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WorktreeEntry {
    #[serde(default)]
    dir: Option<Spanned<String>>,
    #[serde(default)]
    copy: Vec<Spanned<String>>,
    #[serde(default)]
    identity: Option<Spanned<String>>,
    #[serde(default)]
    setup: Option<Spanned<Words>>,
}

impl Source<'_> {
    pub(super) fn trees(&self, entry: &WorktreeEntry) -> Result<Rules, Failure> {
        if entry.copy.len() > COPIES_MAX {
            return Err(self.wrong(None, format!("more than {COPIES_MAX} files to copy")));
        }
        let dir = match &entry.dir {
            None => None,
            Some(typed) => {
                let text = typed.get_ref();
                let bad = text.trim().is_empty()
                    || text.len() > DIR_BYTES_MAX
                    || text.chars().any(char::is_control);
                if bad {
                    let detail = format!("{text:?} is not a folder such as \"../trees\"");
                    return Err(self.wrong(Some(typed.span().start), detail));
                }
                Some(text.clone())
            }
        };
        let mut copy = Vec::with_capacity(entry.copy.len());
        for typed in &entry.copy {
            let text = typed.get_ref();
            if !stays_within(text) {
                let detail = format!("{text:?} is not a path within the tree");
                return Err(self.wrong(Some(typed.span().start), detail));
            }
            copy.push(text.clone());
        }
        let identity = match entry.identity.as_ref().map(|typed| (typed, typed.get_ref().as_str()))
        {
            None | Some((_, "agent")) => Identity::Agent,
            Some((_, "person")) => Identity::Person,
            Some((_, "off")) => Identity::Off,
            Some((typed, text)) => {
                let detail = format!("{text:?} is not agent, person or off");
                return Err(self.wrong(Some(typed.span().start), detail));
            }
        };
        let setup = entry.setup.as_ref().map(|typed| self.command(typed)).transpose()?;
        Ok(Rules { dir, copy, identity, setup: setup.unwrap_or_default() })
    }
}

/// A plain relative path that leads neither out of the tree nor into git's own folder.
pub(crate) fn stays_within(path: &str) -> bool {
    let part = |part: &str| !matches!(part, "" | "." | "..") && !part.eq_ignore_ascii_case(".git");
    !path.chars().any(char::is_control) && path.trim_end_matches('/').split('/').all(part)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use baton_core::time::Moment;

    use super::*;
    use crate::config::compile;

    #[test]
    fn what_is_said_of_trees_is_read_and_mistakes_are_told() {
        let compiled = |text: &str| compile(Path::new("baton.toml"), text, Moment::default());
        let text =
            "[worktree]\ndir = \"../t\"\ncopy = [\".env\", \"a/b/\"]\nidentity = \"person\"\n";
        let rules = compiled(text).unwrap().trees;
        assert_eq!(rules.dir.as_deref(), Some("../t"));
        assert_eq!(rules.copy, [".env", "a/b/"]);
        assert_eq!(rules.identity, Identity::Person);
        let rules = compiled("[worktree]\nsetup = \"npm ci\"\n").unwrap().trees;
        assert_eq!(rules.setup, ["npm", "ci"]);
        for (rest, line) in [
            ("copy = [\"../x\"]", 2),
            ("copy = [\"/etc/x\"]", 2),
            ("copy = [\"a/.GIT/config\"]", 2),
            ("dir = \"\"", 2),
            ("identity = \"me\"", 2),
            ("setup = []", 2),
            ("setup = \"a | b\"", 2),
        ] {
            match compiled(&format!("[worktree]\n{rest}\n")) {
                Err(Failure::Config { line: Some(found), .. }) => assert_eq!(found, line, "{rest}"),
                other => panic!("{rest}: {other:?}"),
            }
        }
    }
}
