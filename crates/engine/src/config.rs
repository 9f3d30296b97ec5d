//! `baton.toml`: what a person wrote, and what it means.
//!
//! Owns reading the file into a policy. Two steps, as with flags: what was typed ([`File`]), then
//! what it means ([`compile`]). Refuses to decide whether the policy is in force: that takes a
//! person (see `setup`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use baton_core::resource::Resource;
use baton_core::time::Moment;
use baton_core::zones::{Policy, Rule, Zone};
use serde::Deserialize;

use crate::failure::Failure;

pub const FILE_NAME: &str = "baton.toml";
/// A policy is read by every hook: it stays small.
pub const FILE_BYTES_MAX: u64 = 256 * 1024;
pub const ZONES_MAX: usize = 200;

/// What was typed. Unknown keys are refused: a typing error must not silently switch a rule off.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    #[serde(default)]
    pub zone: Vec<ZoneEntry>,
    #[serde(default)]
    pub resource: BTreeMap<String, ResourceEntry>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ZoneEntry {
    pub paths: Vec<String>,
    pub policy: Rule,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResourceEntry {
    pub capacity: u32,
}

/// Reads the file of a tree; `None` when there is none.
pub fn read(root: &Path) -> Result<Option<(PathBuf, String)>, Failure> {
    let path = root.join(FILE_NAME);
    let failed = |source| Failure::File { doing: "cannot read", path: path.clone(), source };
    let size = match std::fs::metadata(&path) {
        Ok(metadata) => metadata.len(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    if size > FILE_BYTES_MAX {
        let detail = format!("larger than the {FILE_BYTES_MAX} bytes a policy may have");
        return Err(Failure::Config { path, line: None, detail });
    }
    let text = std::fs::read_to_string(&path).map_err(failed)?;
    Ok(Some((path, text)))
}

pub fn hash(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

/// What the text means.
pub fn compile(path: &Path, text: &str, approved_at: Moment) -> Result<Policy, Failure> {
    let wrong = |line: Option<usize>, detail: String| Failure::Config {
        path: path.to_owned(),
        line,
        detail,
    };
    let file: File = toml::from_str(text).map_err(|error| {
        let line = error.span().map(|span| text[..span.start].lines().count().max(1));
        wrong(line, error.message().to_owned())
    })?;
    if file.zone.len() > ZONES_MAX {
        return Err(wrong(None, format!("more than {ZONES_MAX} zones")));
    }
    let mut zones = Vec::with_capacity(file.zone.len());
    for entry in &file.zone {
        let mut paths = Vec::with_capacity(entry.paths.len());
        for text_of_path in &entry.paths {
            let resource = Resource::parse(text_of_path).map_err(|error| {
                wrong(line_of(text, text_of_path), format!("{text_of_path:?}: {error}"))
            })?;
            if matches!(resource, Resource::Name { .. }) {
                let detail = format!("{text_of_path:?} is a name; a zone is made of paths");
                return Err(wrong(line_of(text, text_of_path), detail));
            }
            paths.push(resource);
        }
        zones.push(Zone { paths, policy: entry.policy });
    }
    let mut capacities = BTreeMap::new();
    for (name, entry) in &file.resource {
        let Ok(Resource::Name { name: bare, .. }) = Resource::parse(name) else {
            let detail = format!("{name:?} is not a named resource such as \"@gpu\"");
            return Err(wrong(line_of(text, name), detail));
        };
        if entry.capacity == 0 {
            return Err(wrong(line_of(text, name), format!("{name}: capacity must be at least 1")));
        }
        capacities.insert(baton_core::pattern::fold(&bare), entry.capacity);
    }
    Ok(Policy { zones, capacities, source_hash: hash(text), approved_at })
}

/// The line a word stands in, for pointing at it.
fn line_of(text: &str, word: &str) -> Option<usize> {
    text.find(word).map(|at| text[..at].matches('\n').count() + 1)
}
