//! The clients that can be wired, and which of them are in use.
//!
//! Owns the signs of each: its files in the repository, its program on PATH, its folder in the
//! user's home. It only looks whether they exist and reads none of them.

use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Client {
    Claude,
    Codex,
    Gemini,
    Cursor,
    Opencode,
    Aider,
}

/// By what a client shows.
struct Signs {
    in_repository: &'static [&'static str],
    programs: &'static [&'static str],
    in_home: &'static [&'static str],
}

impl Client {
    pub const ALL: [Self; 6] =
        [Self::Claude, Self::Codex, Self::Gemini, Self::Cursor, Self::Opencode, Self::Aider];

    pub fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Cursor => "cursor",
            Self::Opencode => "opencode",
            Self::Aider => "aider",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|client| client.name() == name)
    }

    fn signs(self) -> Signs {
        let (in_repository, programs, in_home): (&[_], &[_], &[_]) = match self {
            Self::Claude => (&[".claude", "CLAUDE.md"], &["claude"], &[".claude", ".claude.json"]),
            Self::Codex => (&[".codex"], &["codex"], &[".codex"]),
            Self::Gemini => (&[".gemini", "GEMINI.md"], &["gemini"], &[".gemini"]),
            Self::Cursor => {
                (&[".cursor", ".cursorrules"], &["cursor", "cursor-agent"], &[".cursor"])
            }
            Self::Opencode => (
                &[".opencode", "opencode.json", "opencode.jsonc"],
                &["opencode"],
                &[".config/opencode", ".opencode"],
            ),
            Self::Aider => {
                let files: &[_] = &[".aider.conf.yml", ".aider.chat.history.md"];
                (files, &["aider"], &[".aider.conf.yml"])
            }
        };
        Signs { in_repository, programs, in_home }
    }

    /// Whether the repository itself shows it.
    pub fn is_in_repository(self, root: &Path) -> bool {
        self.signs().in_repository.iter().any(|name| root.join(name).symlink_metadata().is_ok())
    }

    /// Whether this user has it.
    fn is_on_machine(self, home: Option<&Path>) -> bool {
        let signs = self.signs();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut folders = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
        let installed =
            |folder: &Path| signs.programs.iter().any(|name| folder.join(name).is_file());
        home.is_some_and(|home| signs.in_home.iter().any(|name| home.join(name).exists()))
            || folders.any(|folder| installed(&folder))
    }
}

/// The clients that seem to be in use here.
pub fn in_use(root: &Path, home: Option<&Path>) -> Vec<Client> {
    let used = |client: &Client| client.is_in_repository(root) || client.is_on_machine(home);
    Client::ALL.into_iter().filter(used).collect()
}
