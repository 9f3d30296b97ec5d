//! What a repository is made of, and which zones that suggests.
//!
//! Owns the looking: a pure function from a list of paths to zones worth proposing. It refuses to
//! read files and to decide: a person does, and may edit what was written. Invariant: every
//! proposed zone covers something that is really there, so that no line of it is noise.

mod checks;
mod kinds;
mod text;

use std::collections::{BTreeMap, BTreeSet};

use baton_core::resource::Resource;
use baton_core::zones::Rule;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use checks::{ProposedCheck, READ, READ_BYTES_MAX, checks};
pub use text::baton_toml;

/// Serial things of one kind that get a zone each. A zone has one holder, so unrelated things must
/// not share one; but a table with more lines than this is not read by anybody.
const SEPARATE_MAX: usize = 6;
/// Paths of one name that are listed one by one; more become a pattern.
const LISTED_MAX: usize = 4;

/// A zone worth having.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Proposed {
    pub paths: Vec<String>,
    pub policy: Rule,
    /// One plain sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

impl Proposed {
    fn new(policy: Rule, reason: &str, paths: Vec<String>) -> Self {
        Self { paths, policy, reason: reason.to_owned() }
    }
}

/// The zones that these paths suggest, in the order in which they belong into the file: the last
/// match wins, so broad folders come first and what must be strict comes last.
pub fn propose(paths: &[String]) -> Vec<Proposed> {
    let seen: Vec<Seen<'_>> =
        paths.iter().map(|path| Seen::new(path)).filter(|seen| !seen.foreign()).collect();
    let mut zones = Vec::new();
    let mut together = |policy, reason: &str, found: Vec<String>| {
        if !found.is_empty() {
            zones.push(Proposed::new(policy, reason, found));
        }
    };
    together(Rule::Require, kinds::SHARED_REASON, listed(&seen, kinds::shared));
    together(Rule::Require, kinds::CI_REASON, listed(&seen, kinds::ci));
    together(Rule::Require, kinds::MANIFEST_REASON, listed(&seen, kinds::manifest));
    let mut rules = listed(&seen, kinds::rules);
    rules.push(crate::config::FILE_NAME.to_owned());
    rules.sort();
    rules.dedup();
    together(Rule::Require, kinds::RULES_REASON, rules);
    together(Rule::Append, kinds::CHANGELOG_REASON, listed(&seen, kinds::changelog));
    zones.extend(route_tables(&seen));
    zones.extend(migrations(&seen));
    zones.extend(lock_files(&seen));
    zones
}

/// A path in pieces, with the folded spelling that names are compared in.
#[derive(Debug)]
pub(crate) struct Seen<'a> {
    path: &'a str,
    folders: Vec<&'a str>,
    name: &'a str,
    folded_name: String,
}

impl<'a> Seen<'a> {
    fn new(path: &'a str) -> Self {
        let mut folders: Vec<&str> = path.split('/').collect();
        let name = folders.pop().unwrap_or_default();
        Self { path, folders, name, folded_name: name.to_lowercase() }
    }

    fn stem_and_extension(&self) -> (&str, &str) {
        self.folded_name.rsplit_once('.').unwrap_or((&self.folded_name, ""))
    }

    /// The path of the folder that ends with the folder at `index`, with a trailing slash.
    fn folder_up_to(&self, index: usize) -> String {
        let mut folder = self.folders[..=index].join("/");
        folder.push('/');
        folder
    }

    fn folder(&self) -> String {
        match self.folders.len() {
            0 => String::new(),
            count => self.folder_up_to(count - 1),
        }
    }

    fn is_under(&self, names: &[&str]) -> bool {
        self.folders.iter().any(|folder| names.iter().any(|name| folder.eq_ignore_ascii_case(name)))
    }

    /// Somebody else's code, or data for tests: not what this team edits together.
    fn foreign(&self) -> bool {
        self.is_under(kinds::FOREIGN_FOLDERS)
    }
}

/// What one kind of thing looks like: a file of this name, or everything in a folder.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Found {
    /// Files of one name, wherever they are; few are listed, many become `**/name`.
    Named { glob: String },
    /// The file or the folder itself.
    Itself(String),
}

/// All things of one kind, shortened to paths and patterns.
fn listed(seen: &[Seen<'_>], kind: fn(&Seen<'_>) -> Option<Found>) -> Vec<String> {
    let mut single = BTreeSet::new();
    let mut named: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for path in seen {
        match kind(path) {
            None => {}
            Some(Found::Itself(text)) => {
                single.insert(text);
            }
            Some(Found::Named { glob }) => named.entry(glob).or_default().push(path.path),
        }
    }
    for (glob, paths) in named {
        match paths.len() > LISTED_MAX {
            true => single.insert(format!("**/{glob}")),
            false => {
                single.extend(paths.into_iter().map(str::to_owned));
                true
            }
        };
    }
    without_covered(single).into_iter().filter_map(|text| spelled(&text)).collect()
}

/// A file below a listed folder needs no line of its own.
fn without_covered(found: BTreeSet<String>) -> Vec<String> {
    let folders: Vec<String> = found.iter().filter(|text| text.ends_with('/')).cloned().collect();
    let covered = |text: &String| {
        folders.iter().any(|folder| text != folder && text.starts_with(folder.as_str()))
    };
    found.into_iter().filter(|text| !covered(text)).collect()
}

/// The text that `baton.toml` needs: a path with wildcard characters in its name is forced to be
/// taken letter by letter. One that cannot be claimed at all is no zone.
fn spelled(text: &str) -> Option<String> {
    if let Some(name) = text.strip_prefix("**/") {
        return Resource::parse(&format!("**/{name}")).ok().map(|found| found.to_string());
    }
    Resource::literal(text).ok().map(|found| found.to_string())
}

/// One zone for each, as long as they are few; then one for all of them.
fn separate(
    found: Vec<Vec<String>>,
    reason: &str,
    many: impl FnOnce() -> Vec<Proposed>,
) -> Vec<Proposed> {
    if found.len() > SEPARATE_MAX {
        return many();
    }
    let spelled = found.into_iter().map(|paths| {
        let paths: Vec<String> = paths.iter().filter_map(|path| spelled(path)).collect();
        Proposed::new(Rule::Serial, reason, paths)
    });
    spelled.filter(|zone| !zone.paths.is_empty()).collect()
}

fn lock_files(seen: &[Seen<'_>]) -> Vec<Proposed> {
    let mut by_name: BTreeMap<&str, Vec<Vec<String>>> = BTreeMap::new();
    for path in seen.iter().filter(|path| kinds::LOCK_FILES.contains(&path.name)) {
        by_name.entry(path.name).or_default().push(vec![path.path.to_owned()]);
    }
    let zones = by_name.into_iter().flat_map(|(name, found)| {
        separate(found, kinds::LOCK_REASON, || {
            // One holder for all of many projects would stop everybody; each is claimed alone.
            let paths = vec![format!("**/{name}")];
            vec![Proposed::new(Rule::Require, kinds::MANY_LOCKS_REASON, paths)]
        })
    });
    zones.collect()
}

fn migrations(seen: &[Seen<'_>]) -> Vec<Proposed> {
    let mut folders: BTreeSet<String> = BTreeSet::new();
    let mut numbered: BTreeMap<String, usize> = BTreeMap::new();
    for path in seen {
        if let Some(folder) = kinds::migrations_folder(path) {
            folders.insert(folder);
        } else if kinds::is_numbered_sql(path) && !path.folders.is_empty() {
            *numbered.entry(path.folder()).or_default() += 1;
        }
    }
    // A single numbered file is a coincidence, two are a sequence.
    folders.extend(numbered.into_iter().filter(|(_, count)| *count > 1).map(|(folder, _)| folder));
    let mut found: Vec<Vec<String>> =
        without_covered(folders).into_iter().map(|folder| vec![folder]).collect();
    // The schema that every migration rewrites belongs to the sequence beside it.
    for path in seen.iter().filter(|path| kinds::SCHEMAS.contains(&path.name)) {
        let beside = found.iter_mut().find(|zone| {
            zone.first().is_some_and(|folder| {
                let parent = folder.trim_end_matches('/').rsplit_once('/').map_or("", |at| at.0);
                path.folder().trim_end_matches('/') == parent
            })
        });
        if let Some(zone) = beside {
            zone.push(path.path.to_owned());
        }
    }
    let all: Vec<String> = found.concat();
    separate(found, kinds::MIGRATIONS_REASON, || {
        let usual = |path: &String| path.to_lowercase().ends_with("migrations/");
        let mut paths: Vec<String> =
            all.iter().filter(|path| !usual(path)).filter_map(|path| spelled(path)).collect();
        if all.iter().any(usual) {
            paths.insert(0, "**/migrations/**".to_owned());
        }
        vec![Proposed::new(Rule::Serial, kinds::MIGRATIONS_REASON, paths)]
    })
}

/// The outermost route tables: those further in are usually small and local. Where many lie side by
/// side there is no table that everybody edits.
fn route_tables(seen: &[Seen<'_>]) -> Vec<Proposed> {
    let tables: Vec<&Seen<'_>> = seen.iter().filter(|path| kinds::is_route_table(path)).collect();
    let outermost = tables.iter().map(|path| path.folders.len()).min();
    let outer = tables.iter().filter(|path| Some(path.folders.len()) == outermost);
    let found: Vec<Vec<String>> = outer.map(|path| vec![path.path.to_owned()]).collect();
    if found.len() > LISTED_MAX {
        return Vec::new();
    }
    separate(found, kinds::ROUTES_REASON, Vec::new)
}

#[cfg(test)]
mod tests;
