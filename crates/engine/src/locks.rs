//! `FILE.agent-lock`: claims as files, for tools without hooks.
//!
//! Owns their shape. Baton writes its own only when asked (`export --lock-files`); one that Baton
//! did not write is another tool's claim, and is respected.

use std::path::{Path, PathBuf};

use baton_core::context::ForeignLock;
use baton_core::pattern::Kind;
use baton_core::resource::Resource;
use serde::{Deserialize, Serialize};

pub const SUFFIX: &str = ".agent-lock";
/// How many folder entries are looked at for other tools' locks below one folder or pattern.
const ENTRIES_MAX: usize = 20_000;
/// How much of another tool's lock file is read for the name of its holder.
const READ_BYTES_MAX: u64 = 4_096;

/// What Baton writes into a lock file of its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockFile {
    /// The mark by which Baton knows its own.
    pub made_by: String,
    pub workspace: String,
    pub claim: String,
    pub session: String,
    pub name: String,
    pub until: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

pub const MADE_BY: &str = "baton";

pub fn path_of(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(SUFFIX);
    PathBuf::from(name)
}

/// Locks of other tools that touch what is asked for.
pub fn foreign(root: &Path, resources: &[Resource]) -> Vec<ForeignLock> {
    let mut locks = Vec::new();
    for resource in resources {
        let Resource::Path(pattern) = resource else { continue };
        match pattern.kind() {
            Kind::Path => {
                let lock = path_of(&root.join(pattern.text()));
                if lock.symlink_metadata().is_ok()
                    && let Some(holder) = foreign_holder(&lock)
                {
                    locks.push(ForeignLock { resource: resource.clone(), holder });
                }
            }
            Kind::Folder | Kind::Glob => locks.extend(below(root, resource, pattern)),
        }
    }
    locks
}

fn below(
    root: &Path,
    resource: &Resource,
    pattern: &baton_core::pattern::Pattern,
) -> Vec<ForeignLock> {
    let start = match pattern.kind() {
        Kind::Folder => root.join(pattern.text()),
        // The prefix is folded; when it does not exist under that spelling, the root is searched.
        _ => Some(root.join(pattern.literal_prefix()))
            .filter(|folder| folder.is_dir())
            .unwrap_or_else(|| root.to_owned()),
    };
    let mut open = vec![start];
    let mut looked_at = 0;
    let mut found = Vec::new();
    while let Some(folder) = open.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            looked_at += 1;
            if looked_at > ENTRIES_MAX {
                return found;
            }
            let path = entry.path();
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
            let skipped = [".git", "node_modules", "target"].contains(&name);
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) && !skipped {
                open.push(path);
            } else if let Some(stem) = name.strip_suffix(SUFFIX) {
                let file = folder.join(stem);
                let Ok(relative) = file.strip_prefix(root) else { continue };
                let locked = relative.to_str().and_then(|text| Resource::literal(text).ok());
                let wanted = locked.filter(|locked| locked.overlaps(resource));
                if let (Some(resource), Some(holder)) = (wanted, foreign_holder(&path)) {
                    found.push(ForeignLock { resource, holder });
                }
            }
        }
    }
    found
}

/// Who holds it, if Baton did not write it. A lock that cannot be read counts: it is there.
fn foreign_holder(lock: &Path) -> Option<String> {
    use std::io::Read;

    let mut text = String::new();
    let read = std::fs::File::open(lock)
        .and_then(|file| file.take(READ_BYTES_MAX).read_to_string(&mut text));
    if read.is_err() {
        return Some("another tool".to_owned());
    }
    let own = serde_json::from_str::<LockFile>(&text);
    if own.is_ok_and(|own| own.made_by == MADE_BY) {
        return None;
    }
    let named = serde_json::from_str::<serde_json::Value>(&text).ok().and_then(|value| {
        ["holder", "agent", "owner", "name", "session"]
            .iter()
            .find_map(|key| value.get(key)?.as_str().map(str::to_owned))
    });
    let line = || text.lines().next().map(str::trim).filter(|line| !line.is_empty());
    let name = named.or_else(|| line().map(str::to_owned));
    Some(name.unwrap_or_else(|| "another tool".to_owned()).chars().take(64).collect())
}
