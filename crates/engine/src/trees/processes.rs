//! Processes that work in a folder.
//!
//! Owns the look at where processes stand. What cannot be seen is left out: it is one sign of use
//! among several, and never the only thing that keeps work from being lost.

use std::path::{Path, PathBuf};

use baton_core::trees::Working;

/// Where each process that can be seen stands.
#[derive(Debug, Default)]
pub(super) struct Standing(Vec<(u32, PathBuf)>);

impl Standing {
    pub(super) fn look() -> Self {
        let own = std::process::id();
        let Ok(entries) = std::fs::read_dir("/proc") else { return Self::default() };
        let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let standing = pids.filter(|pid| *pid != own).filter_map(|pid: u32| {
            Some((pid, std::fs::read_link(format!("/proc/{pid}/cwd")).ok()?))
        });
        Self(standing.collect())
    }

    pub(super) fn below(&self, folder: &Path) -> Vec<Working> {
        let there = self.0.iter().filter(|(_, place)| place.starts_with(folder));
        let working = there.map(|(pid, _)| {
            let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            Working { pid: *pid, name: name.trim().to_owned() }
        });
        working.collect()
    }
}
