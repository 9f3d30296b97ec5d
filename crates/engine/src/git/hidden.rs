//! Files of which a status says nothing, whatever is written to them.
//!
//! Owns the question which they are: what git ignores, and what it was told not to look at
//! (`update-index --skip-worktree`, `--assume-unchanged`). That such a file is in no status does
//! not mean that it is committed or as it was.

use std::collections::BTreeMap;

use super::read::{chunks, names, nested_repository};
use super::{At, Error, Git};

/// Repositories inside repositories that are asked.
const NESTING_MAX: usize = 4;

impl Git {
    /// Files at or below these paths that a status never shows, from the root of the tree. Of
    /// repositories too deep in each other only the folder, with a `/` at its end.
    pub fn hidden(&self, paths: &[String]) -> Result<Vec<String>, Error> {
        self.hidden_below(paths, NESTING_MAX)
    }

    fn hidden_below(&self, paths: &[String], nesting_left: usize) -> Result<Vec<String>, Error> {
        let mut nested: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut own = Vec::new();
        for path in paths {
            match nested_repository(self.folder(), path) {
                Some((folder, rest)) => nested.entry(folder).or_default().push(rest),
                None => own.push(path.as_str()),
            }
        }
        let mut hidden = Vec::new();
        for chunk in chunks(&own) {
            // With `--directory` git stumbles over a file deep in a folder that is ignored.
            let ignored = ["-z", "--others", "--ignored", "--exclude-standard"];
            let ignored = self.call("ls-files").options(&ignored).paths(chunk.iter().copied());
            hidden.extend(names(&ignored.bytes()?)?);
            let flags = self.call("ls-files").options(&["-z", "-v", "--cached"]);
            let tagged = names(&flags.paths(chunk.iter().copied()).bytes()?)?;
            hidden.extend(tagged.iter().filter_map(|one| flagged(one)).map(str::to_owned));
        }
        for (folder, paths) in nested {
            let Some(nesting_left) = nesting_left.checked_sub(1) else {
                hidden.push(format!("{folder}/"));
                continue;
            };
            let inner = Git { place: At::Tree(self.folder().join(&folder)), ..self.clone() };
            let found = inner.hidden_below(&paths, nesting_left)?;
            hidden.extend(found.into_iter().map(|path| format!("{folder}/{path}")));
        }
        Ok(hidden)
    }
}

/// The name behind a tag of `ls-files -v`, where git does not look at the file: `S` is skipped, and
/// a small letter is assumed to be unchanged.
fn flagged(tagged: &str) -> Option<&str> {
    let (tag, name) = tagged.split_once(' ')?;
    let skipped = tag == "S" || tag.chars().any(|letter| letter.is_ascii_lowercase());
    skipped.then_some(name)
}
