//! `baton.toml`: what a person wrote, and what it means.
//!
//! Owns reading the file into a policy. Two steps, as with flags: what was typed ([`File`]), then
//! what it means ([`compile`]). Refuses to decide whether the policy is in force: that takes a
//! person (see `policy`). Invariant: only a plain file in the tree's root is read, never a link,
//! because its text would come from where no zone and no review guards it.

use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use baton_core::resource::Resource;
use baton_core::time::Moment;
use baton_core::zones::{Policy, Rule, Zone};
use rustix::fs::OFlags;
use serde::Deserialize;
use toml::Spanned;

use crate::failure::Failure;

mod deploy;
mod done;
mod queue;
mod roles;
mod state;
mod tasks;
pub(crate) mod worktree;

pub const FILE_NAME: &str = "baton.toml";
/// A policy is read by every hook: it stays small.
pub const FILE_BYTES_MAX: u64 = 256 * 1024;
pub const ZONES_MAX: usize = 200;
/// Paths of all zones together.
pub const PATHS_MAX: usize = 2_000;

/// What was typed. Unknown keys are refused: a typing error must not silently switch a rule off.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    zone: Vec<ZoneEntry>,
    #[serde(default)]
    resource: BTreeMap<Spanned<String>, ResourceEntry>,
    #[serde(default)]
    state: Vec<state::StateEntry>,
    #[serde(default)]
    tasks: tasks::TasksEntry,
    #[serde(default)]
    done: done::DoneEntry,
    #[serde(default)]
    queue: done::QueueEntry,
    #[serde(default)]
    worktree: worktree::WorktreeEntry,
    #[serde(default)]
    deploy: BTreeMap<Spanned<String>, deploy::DeployEntry>,
    #[serde(default)]
    roles: roles::RolesEntry,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ZoneEntry {
    paths: Spanned<Vec<Spanned<String>>>,
    policy: Rule,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ResourceEntry {
    capacity: Spanned<u32>,
}

/// Reads the file of a tree; `None` when there is none.
pub fn read(root: &Path) -> Result<Option<(PathBuf, String)>, Failure> {
    let path = root.join(FILE_NAME);
    let wrong = |line, detail: String| Failure::Config { path: path.clone(), line, detail };
    let failed = |source| Failure::File { doing: "cannot read", path: path.clone(), source };
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file = match std::fs::OpenOptions::new().read(true).custom_flags(flags).open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) if std::fs::symlink_metadata(&path).is_ok_and(|data| data.is_symlink()) => {
            let _ = error;
            return Err(wrong(None, "it is a symbolic link; a plain file is needed".to_owned()));
        }
        Err(error) => return Err(failed(error)),
    };
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(wrong(None, "it is not a plain file".to_owned()));
    }
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        let detail = format!("it is larger than the {FILE_BYTES_MAX} bytes a policy may have");
        return Err(wrong(None, detail));
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Some((path, text))),
        Err(error) => {
            let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = good.iter().filter(|byte| **byte == b'\n').count() + 1;
            Err(wrong(Some(line), "the text is not UTF-8".to_owned()))
        }
    }
}

pub fn hash(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

/// What a policy says, without when it was approved and how it was written: two texts that differ
/// in comments alone mean the same.
pub fn meaning(policy: &Policy) -> String {
    let Policy { zones, capacities, state, tasks, evidence, trees, queue, deploys, roles, .. } =
        policy;
    let said = (zones, capacities, state, tasks, evidence, trees, queue, deploys, roles);
    hash(&serde_json::to_string(&said).unwrap_or_default())
}

/// What the text means.
pub fn compile(path: &Path, text: &str, approved_at: Moment) -> Result<Policy, Failure> {
    let source = Source { path, text };
    let file: File = toml::from_str(text).map_err(|error| {
        source.wrong(error.span().map(|span| span.start), in_plain_words(error.message()))
    })?;
    Ok(Policy {
        zones: source.zones(&file)?,
        capacities: source.capacities(&file)?,
        state: source.state(&file.state)?,
        tasks: source.tasks(&file.tasks)?,
        evidence: source.evidence(&file.done, &file.queue)?,
        trees: source.trees(&file.worktree)?,
        queue: source.queue(&file.queue)?,
        deploys: source.deploys(&file.deploy)?,
        roles: source.roles(&file.roles)?,
        source_hash: hash(text),
        approved_at,
    })
}

/// The parser speaks to programmers of parsers.
fn in_plain_words(message: &str) -> String {
    let line = message.split_whitespace().collect::<Vec<_>>().join(" ");
    [
        ("unknown variant", "there is no policy"),
        ("unknown field", "unknown key"),
        ("missing field", "missing key"),
        ("expected u32", "expected a whole number from 1 on"),
        ("expected struct ZoneEntry", "expected [[zone]] with paths and policy"),
        ("expected struct StateEntry", "expected [[state]] with keys and rule"),
    ]
    .iter()
    .fold(line, |line, (theirs, ours)| line.replace(theirs, ours))
    .replace("`, expected one of `", "`; there are `")
    .replace("`, `", ", ")
}

/// The text and where it stands, to point at what is wrong in it.
struct Source<'a> {
    path: &'a Path,
    text: &'a str,
}

impl Source<'_> {
    fn wrong(&self, at: Option<usize>, detail: String) -> Failure {
        let before = at.and_then(|at| self.text.get(..at));
        let line = before.map(|before| before.matches('\n').count() + 1);
        Failure::Config { path: self.path.to_owned(), line, detail }
    }

    fn zones(&self, file: &File) -> Result<Vec<Zone>, Failure> {
        if file.zone.len() > ZONES_MAX {
            return Err(self.wrong(None, format!("more than {ZONES_MAX} zones")));
        }
        if file.zone.iter().map(|zone| zone.paths.get_ref().len()).sum::<usize>() > PATHS_MAX {
            return Err(self.wrong(None, format!("more than {PATHS_MAX} paths in all zones")));
        }
        let mut zones = Vec::with_capacity(file.zone.len());
        for entry in &file.zone {
            if entry.paths.get_ref().is_empty() {
                let at = Some(entry.paths.span().start);
                return Err(self.wrong(at, "a zone needs at least one path".to_owned()));
            }
            let paths = entry.paths.get_ref().iter().map(|typed| self.path(typed));
            zones.push(Zone { paths: paths.collect::<Result<_, _>>()?, policy: entry.policy });
        }
        Ok(zones)
    }

    fn path(&self, typed: &Spanned<String>) -> Result<Resource, Failure> {
        let (at, text) = (Some(typed.span().start), typed.get_ref());
        match Resource::parse(text) {
            Ok(Resource::Name { .. }) => {
                Err(self.wrong(at, format!("{text:?} is a name; a zone is made of paths")))
            }
            Ok(path) => Ok(path),
            Err(error) => Err(self.wrong(at, format!("{text:?}: {error}"))),
        }
    }

    fn capacities(&self, file: &File) -> Result<BTreeMap<String, u32>, Failure> {
        let mut capacities = BTreeMap::new();
        for (typed, entry) in &file.resource {
            let (at, text) = (Some(typed.span().start), typed.get_ref());
            let Ok(Resource::Name { name, amount: 1 }) = Resource::parse(text) else {
                let detail = format!("{text:?} is not a named resource such as \"@gpu\"");
                return Err(self.wrong(at, detail));
            };
            let capacity = *entry.capacity.get_ref();
            if capacity == 0 {
                let at = Some(entry.capacity.span().start);
                return Err(self.wrong(at, format!("{text}: a capacity is at least 1")));
            }
            if capacities.insert(baton_core::pattern::fold(&name), capacity).is_some() {
                return Err(self.wrong(at, format!("{text} has a capacity already")));
            }
        }
        Ok(capacities)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaint(text: &str) -> String {
        match compile(Path::new("baton.toml"), text, Moment::default()) {
            Err(Failure::Config { line: Some(line), detail, .. }) => format!("{line}: {detail}"),
            Err(Failure::Config { detail, .. }) => detail,
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn every_mistake_is_told_with_its_line() {
        let zone = |rest: &str| format!("# \"@a\"\n\n[[zone]]\n{rest}\n");
        insta::assert_snapshot!([
            complaint("a = = b"),
            complaint("\n\n[zone"),
            complaint("x = \"red\""),
            complaint(&zone("paths = [\"a\"]\npolicy = \"sirial\"")),
            complaint(&zone("paths = [\"a\"]\npolicy = \"serial\"\nwhy = \"x\"")),
            complaint(&zone("policy = \"serial\"")),
            complaint(&zone("paths = []\npolicy = \"serial\"")),
            complaint(&zone("paths = [\"b\", \"@a\"]\npolicy = \"serial\"")),
            complaint(&zone("paths = [\"b\",\n\"a[\"]\npolicy = \"serial\"")),
            complaint(&zone("paths = [\"../b\"]\npolicy = \"serial\"")),
            complaint(&zone("paths = [\".git/hooks/\"]\npolicy = \"off\"")),
            complaint("[resource.\"gpu\"]\ncapacity = 1"),
            complaint("[resource.\"@gpu=2\"]\ncapacity = 1"),
            complaint("[resource.\"@gpu\"]\ncapacity = 0"),
            complaint("[resource.\"@gpu\"]\ncapacity = -1"),
            complaint("[resource.\"@gpu\"]\ncapacity = 1\n[resource.\"@GPU\"]\ncapacity = 1"),
        ].join("\n"), @r#"
        1: extra `=`, expected nothing
        3: unclosed table, expected `]`
        1: unknown key `x`; there are `zone, resource, state, tasks, done, queue, worktree, deploy, roles`
        5: there is no policy `sirial`; there are `off, auto, append, require, serial, human`
        6: unknown key `why`, expected `paths` or `policy`
        3: missing key `paths`
        4: a zone needs at least one path
        4: "@a" is a name; a zone is made of paths
        5: "a[": the `[` at byte 1 is never closed
        4: "../b": `..` at byte 0 leaves the workspace
        4: ".git/hooks/": the path lies inside the git directory, which is never claimable
        1: "gpu" is not a named resource such as "@gpu"
        1: "@gpu=2" is not a named resource such as "@gpu"
        2: @gpu: a capacity is at least 1
        2: invalid value: integer `-1`, expected a whole number from 1 on
        1: @gpu has a capacity already
        "#);
    }

    #[test]
    fn comments_do_not_change_the_meaning() {
        let compiled = |text| compile(Path::new("baton.toml"), text, Moment::default()).unwrap();
        let one = compiled("[[zone]]\npaths = [\"a\"]\npolicy = \"serial\"\n");
        let two = compiled("# why\n[[zone]]\npolicy = \"serial\"\npaths = ['a']\n");
        let three = compiled("[[zone]]\npaths = [\"a\"]\npolicy = \"require\"\n");
        assert_ne!(one.source_hash, two.source_hash);
        assert_eq!(meaning(&one), meaning(&two));
        assert_ne!(meaning(&one), meaning(&three));
    }

    #[test]
    fn only_a_plain_small_file_of_text_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(FILE_NAME);
        assert!(read(folder.path()).unwrap().is_none());
        let refused = |why: &str| match read(folder.path()) {
            Err(Failure::Config { detail, .. }) => assert!(detail.contains(why), "{detail}"),
            other => panic!("{other:?}"),
        };
        std::fs::write(folder.path().join("other"), "").unwrap();
        std::os::unix::fs::symlink("other", &file).unwrap();
        refused("symbolic link");
        std::fs::remove_file(&file).unwrap();
        std::fs::create_dir(&file).unwrap();
        refused("not a plain file");
        std::fs::remove_dir(&file).unwrap();
        std::fs::write(&file, b"# a\n\xff").unwrap();
        refused("not UTF-8");
        let limit = usize::try_from(FILE_BYTES_MAX).unwrap();
        std::fs::write(&file, "#".repeat(limit)).unwrap();
        assert!(read(folder.path()).unwrap().is_some());
        std::fs::write(&file, "#".repeat(limit + 1)).unwrap();
        refused("larger than");
    }
}
