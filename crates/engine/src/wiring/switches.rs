//! The switches by which a client runs no hooks at all, whatever is written in its files.
//!
//! Owns where each client has its switch, in the repository and in the user's home. They are the
//! user's to set: they are read, told, and never written.

use std::path::{Path, PathBuf};

use super::{Client, Door, Ground, State, Step, claude, json};

/// A switch that is off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Off {
    /// As people know it.
    pub(super) file: String,
    pub(super) why: String,
}

/// The switch that keeps this client from running hooks here, if one does.
pub(super) fn off(ground: &Ground, client: Client) -> Option<Off> {
    let (in_repository, in_home): (&[&str], PathBuf) = match client {
        Client::Claude => (&[claude::TEAM, claude::PERSONAL], ".claude/settings.json".into()),
        Client::Gemini => (&[".gemini/settings.json"], ".gemini/settings.json".into()),
        Client::Codex => (&[".codex/config.toml"], ".codex/config.toml".into()),
        Client::Cursor | Client::Opencode | Client::Aider => return None,
    };
    let set = |name: &str| std::env::var_os(name).filter(|folder| !folder.is_empty());
    let moved = match client {
        Client::Codex => set("CODEX_HOME").map(|folder| PathBuf::from(folder).join("config.toml")),
        Client::Claude => {
            set("CLAUDE_CONFIG_DIR").map(|folder| PathBuf::from(folder).join("settings.json"))
        }
        _ => None,
    };
    let home = ground.home.as_deref().map(|home| match client {
        Client::Gemini => home_of_gemini(home),
        _ => home.to_owned(),
    });
    let own = moved.or_else(|| home.map(|home| home.join(in_home)));
    let here = in_repository.iter().map(|file| (ground.root.join(file), (*file).to_owned()));
    let own = own.map(|path| (path.clone(), path.display().to_string()));
    here.chain(own).find_map(|(path, file)| said(client, &path).map(|why| Off { file, why }))
}

/// Where Gemini has its folder `.gemini`.
pub(super) fn home_of_gemini(home: &Path) -> PathBuf {
    let moved = std::env::var_os("GEMINI_CLI_HOME").filter(|folder| !folder.is_empty());
    moved.map_or_else(|| home.to_owned(), PathBuf::from)
}

fn said(client: Client, path: &Path) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let is = |place: &[&str], wanted: bool| {
        json::value_at(&text, place).and_then(|value| value.as_bool()) == Some(wanted)
    };
    let switch = match client {
        Client::Claude => is(&["disableAllHooks"], true).then_some("`disableAllHooks` is true"),
        Client::Gemini if is(&["hooksConfig", "enabled"], false) => {
            Some("`hooksConfig.enabled` is false")
        }
        Client::Gemini => {
            let disabled = json::value_at(&text, &["hooksConfig", "disabled"])?;
            let names = disabled.as_array()?;
            names.iter().any(|name| name == "baton").then_some("`hooksConfig.disabled` names baton")
        }
        Client::Codex => {
            let document: toml_edit::DocumentMut = text.parse().ok()?;
            let features = document.get("features")?;
            let is_off = |name: &str| features.get(name).and_then(|on| on.as_bool()) == Some(false);
            match (is_off("hooks"), is_off("codex_hooks")) {
                (true, _) => Some("`features.hooks` is false"),
                // Its older name.
                (false, true) if features.get("hooks").is_none() => {
                    Some("`features.codex_hooks` is false")
                }
                _ => None,
            }
        }
        Client::Cursor | Client::Opencode | Client::Aider => None,
    };
    switch.map(|switch| format!("{switch}: {} runs no hook of Baton's", client.name()))
}

/// What `init` has to say of it.
pub(super) fn step(ground: &Ground, client: Client) -> Option<Step> {
    let Off { file, why } = off(ground, client)?;
    let (client, door) = (Some(client), Door::Hooks);
    Some(Step { client, door, ..Step::new(file, State::Failed { why }) })
}
