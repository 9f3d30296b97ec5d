//! Whether a repository configures filters of its own, seen without asking git.
//!
//! Owns one shortcut: a status is asked for after every command of an agent, and asking for filters
//! first would be a second process each time. Invariant: the answer is "none" only where the files
//! that git would read say so in plain text; whatever is not plain is left to git.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Is it plain that the repository with its tree here has no filters of its own?
pub(super) fn surely_none(root: &Path) -> bool {
    let Some((shared, own)) = configuration(root) else { return false };
    let plain = |bytes: Vec<u8>| {
        let text = bytes.to_ascii_lowercase();
        // What is included may be anywhere.
        ["filter", "include"].iter().all(|word| !has(&text, word.as_bytes()))
    };
    let absent = |error: std::io::Error| error.kind() == ErrorKind::NotFound;
    std::fs::read(shared).is_ok_and(plain) && std::fs::read(own).map_or_else(absent, plain)
}

/// The files of settings that are the repository's, and of those that are this tree's alone.
fn configuration(root: &Path) -> Option<(PathBuf, PathBuf)> {
    let dot_git = root.join(".git");
    let git_dir = match std::fs::metadata(&dot_git).ok()?.is_dir() {
        true => dot_git,
        false => {
            let text = std::fs::read_to_string(&dot_git).ok()?;
            root.join(text.strip_prefix("gitdir: ")?.trim_end_matches(['\n', '\r']))
        }
    };
    let common = match std::fs::read_to_string(git_dir.join("commondir")) {
        Ok(text) => git_dir.join(text.trim_end_matches(['\n', '\r'])),
        Err(error) if error.kind() == ErrorKind::NotFound => git_dir.clone(),
        Err(_) => return None,
    };
    // Of a folder that is no repository git would go on to those above.
    let is_repository = git_dir.join("HEAD").symlink_metadata().is_ok()
        && common.join("objects").is_dir()
        && common.join("refs").is_dir();
    is_repository.then(|| (common.join("config"), git_dir.join("config.worktree")))
}

fn has(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len()).any(|part| part == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_says_so_in_plain_text_has_none() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        assert!(!surely_none(root), "no repository");
        for made in [".git/objects", ".git/refs", ".git/worktrees/side", "side"] {
            std::fs::create_dir_all(root.join(made)).unwrap();
        }
        let write = |file: &str, text: &str| std::fs::write(root.join(file), text).unwrap();
        write(".git/config", "[core]\n\tbare = false\n");
        assert!(!surely_none(root), "without HEAD it is none either");
        for made in [".git/HEAD", ".git/worktrees/side/HEAD"] {
            write(made, "ref: refs/heads/main\n");
        }
        write(".git/worktrees/side/commondir", "../..\n");
        let side = root.join("side");
        write("side/.git", &format!("gitdir: {}/.git/worktrees/side\n", root.display()));
        assert!(surely_none(root) && surely_none(&side));
        for text in ["[Filter \"x\"]\n\tclean = x\n", "[includeIf \"gitdir:/\"]\n\tpath = y\n"] {
            write(".git/worktrees/side/config.worktree", text);
            assert!(surely_none(root) && !surely_none(&side), "{text}");
            write(".git/config", text);
            assert!(!surely_none(root), "{text}");
            write(".git/config", "");
        }
    }
}
