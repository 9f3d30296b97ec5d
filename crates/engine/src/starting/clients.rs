//! The clients that can be started: what they are called, and where they keep their own things.
//!
//! Owns the one table. A client in a sandbox must be able to write its own folders in the home, or
//! it does not run; nothing else of the home is opened for it.

#[cfg(not(target_os = "linux"))]
use std::ffi::OsStr;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::PathBuf;
use std::process::Command;

/// The hidden verb of the copy that becomes a client.
pub const VERB: &str = "start-client";

/// A client, as a user calls it.
#[derive(Debug, PartialEq, Eq)]
pub struct Client {
    /// As hooks and sessions know it.
    pub name: &'static str,
    pub program: &'static str,
    /// A variable that moves its folder.
    moved_by: Option<&'static str>,
    /// Its folders in the home, made if they are not there, as the client would.
    folders: &'static [&'static str],
    /// Opened where they are there.
    others: &'static [&'static str],
}

const CLIENTS: [Client; 6] = [
    Client {
        name: "claude",
        program: "claude",
        moved_by: Some("CLAUDE_CONFIG_DIR"),
        folders: &[".claude"],
        others: &[".claude.json", ".cache/claude-cli-nodejs", ".local/share/claude"],
    },
    Client {
        name: "codex",
        program: "codex",
        moved_by: Some("CODEX_HOME"),
        folders: &[".codex"],
        others: &[],
    },
    Client {
        name: "gemini",
        program: "gemini",
        moved_by: None,
        folders: &[".gemini"],
        others: &[".cache/gemini-cli"],
    },
    Client {
        name: "cursor",
        program: "cursor-agent",
        moved_by: None,
        folders: &[".cursor"],
        others: &[".config/cursor", ".local/share/cursor-agent"],
    },
    Client {
        name: "opencode",
        program: "opencode",
        moved_by: None,
        folders: &[
            ".local/share/opencode",
            ".local/state/opencode",
            ".config/opencode",
            ".cache/opencode",
        ],
        others: &[],
    },
    Client {
        name: "aider",
        program: "aider",
        moved_by: None,
        folders: &[".aider"],
        others: &[".cache/aider"],
    },
];

/// What may be started, for whoever misspelled it.
pub const NAMES: [&str; 6] = ["claude", "codex", "gemini", "cursor-agent", "opencode", "aider"];

impl Client {
    /// By its own name or its program's.
    pub fn named(text: &str) -> Option<&'static Client> {
        CLIENTS.iter().find(|client| client.name == text || client.program == text)
    }

    /// The user's own, as their shell would find it.
    pub fn installed(&self) -> Option<PathBuf> {
        let path = std::env::var_os("PATH")?;
        let runs = |file: &PathBuf| {
            fs::metadata(file)
                .is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
        };
        std::env::split_paths(&path).map(|folder| folder.join(self.program)).find(runs)
    }

    /// What it must write of the home to run at all.
    pub fn own_folders(&self) -> Vec<PathBuf> {
        let set = |name: &str| std::env::var_os(name).filter(|path| !path.is_empty());
        let home = set("HOME").map(PathBuf::from);
        let below = |names: &[&str]| -> Vec<PathBuf> {
            home.iter().flat_map(|home| names.iter().map(|name| home.join(name))).collect()
        };
        let mut wanted: Vec<PathBuf> = match self.moved_by.and_then(set) {
            Some(moved) => vec![moved.into()],
            None => below(self.folders),
        };
        for folder in &wanted {
            // One that cannot be made is missed by the client, which says so.
            let _ = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
        }
        wanted.extend(below(self.others));
        wanted.into_iter().filter_map(|path| path.canonicalize().ok()).collect()
    }
}

/// A client without a sandbox, through a copy of ourselves that asks the kernel to end it when we
/// are killed, and then becomes it.
#[cfg(target_os = "linux")]
pub fn tied(words: &[OsString]) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg(VERB).arg(std::process::id().to_string()).arg("--").args(words);
    command
}

#[cfg(not(target_os = "linux"))]
pub fn tied(words: &[OsString]) -> Command {
    let mut command = Command::new(words.first().map_or(OsStr::new(""), |word| word.as_os_str()));
    command.args(words.iter().skip(1));
    command
}

/// Becomes the client; returns only if that cannot be.
#[must_use]
pub fn become_client(runner: u32, words: &[OsString]) -> (u8, Option<std::io::Error>) {
    crate::once::child::become_tied(runner, rustix::process::Signal::TERM, words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_that_is_offered_is_known() {
        for name in NAMES {
            assert_eq!(Client::named(name).map(|client| client.program), Some(name));
        }
        assert!(Client::named("cursor").is_some() && Client::named("vim").is_none());
    }
}
