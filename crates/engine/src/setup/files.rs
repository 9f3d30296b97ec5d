//! The files of a folder without git, as far as a survey needs them.
//!
//! Owns the walk and its limits. Follows no link, and what cannot be read is left out: the answer
//! is good for proposing zones, and for nothing that must be right.

use std::path::{Path, PathBuf};

const FILES_MAX: usize = 50_000;
const DEPTH_MAX: usize = 16;

/// Folders that hold what tools made.
const SKIPPED: &[&str] =
    &[".baton", "node_modules", "target", "venv", ".venv", "__pycache__", "dist", "build", ".tox"];

#[derive(Debug, Default)]
pub(super) struct Walked {
    /// Relative to the root, in order.
    pub(super) paths: Vec<String>,
    pub(super) repositories: usize,
}

pub(super) fn walk(root: &Path) -> Walked {
    let mut walked = Walked::default();
    let mut folders: Vec<(PathBuf, String, usize)> = vec![(root.to_owned(), String::new(), 0)];
    while let Some((folder, prefix, depth)) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            let (Ok(kind), Ok(name)) = (entry.file_type(), entry.file_name().into_string()) else {
                continue;
            };
            if name == ".git" {
                walked.repositories += 1;
            } else if kind.is_dir() {
                if depth < DEPTH_MAX && !SKIPPED.contains(&name.as_str()) {
                    folders.push((entry.path(), format!("{prefix}{name}/"), depth + 1));
                }
            } else if kind.is_file() {
                walked.paths.push(format!("{prefix}{name}"));
            }
            if walked.paths.len() >= FILES_MAX {
                folders.clear();
                break;
            }
        }
    }
    walked.paths.sort();
    walked
}
