//! What the clients call the tools that roles speak of.
//!
//! Owns the one table: agent definitions and the start of a client both read it, so a tool has one
//! name in both. A client that knows no word for a tool has an empty row: there the doors and the
//! sandbox alone hold the role. Each row of Claude Code, Codex, Gemini CLI and opencode was seen to
//! take the tool away; those of Cursor and aider are what their documentation says.

use baton_core::roles::{Role, Tool};

use super::Client;

/// By what the client is told: names of tools, keys of opencode's permissions, lines of Codex's
/// configuration, or options of Cursor and aider.
pub(crate) fn words(client: Client, tool: Tool) -> &'static [&'static str] {
    match (client, tool) {
        (Client::Claude, Tool::Read) => &["Read"],
        (Client::Claude, Tool::Search) => &["Grep", "Glob"],
        (Client::Claude, Tool::Edit) => &["Edit", "Write", "NotebookEdit"],
        // A monitor is a command that runs on in the background.
        (Client::Claude, Tool::Shell) => &["Bash", "Monitor"],
        (Client::Claude, Tool::Web) => &["WebFetch", "WebSearch"],
        // The name that older and newer versions understand, and the one that starts many.
        (Client::Claude, Tool::Agents) => &["Task", "Workflow"],

        // It reads and searches by its shell. Its patches are a property of the model.
        (Client::Codex, Tool::Read | Tool::Search | Tool::Edit) => &[],
        (Client::Codex, Tool::Shell) => &["features.shell_tool=false"],
        (Client::Codex, Tool::Web) => &["web_search=\"disabled\""],
        (Client::Codex, Tool::Agents) => {
            &["features.multi_agent=false", "features.multi_agent_v2=false"]
        }

        (Client::Gemini, Tool::Read) => &["read_file", "read_many_files"],
        (Client::Gemini, Tool::Search) => &["grep_search", "glob", "list_directory"],
        (Client::Gemini, Tool::Edit) => &["write_file", "replace"],
        (Client::Gemini, Tool::Shell) => &["run_shell_command"],
        (Client::Gemini, Tool::Web) => &["web_fetch", "google_web_search"],
        (Client::Gemini, Tool::Agents) => &["invoke_agent"],

        (Client::Opencode, Tool::Read) => &["read"],
        (Client::Opencode, Tool::Search) => &["grep", "glob", "list"],
        // One key for everything that writes.
        (Client::Opencode, Tool::Edit) => &["edit"],
        (Client::Opencode, Tool::Shell) => &["bash"],
        (Client::Opencode, Tool::Web) => &["webfetch", "websearch", "codesearch"],
        (Client::Opencode, Tool::Agents) => &["task"],

        // Its one mode without edits is for questions alone.
        (Client::Cursor, Tool::Edit | Tool::Shell) => &["--mode=ask"],
        (Client::Cursor, _) => &[],

        (Client::Aider, Tool::Edit) => &["--chat-mode=ask"],
        (Client::Aider, Tool::Shell) => &["--no-suggest-shell-commands"],
        (Client::Aider, Tool::Web) => &["--no-detect-urls"],
        (Client::Aider, _) => &[],
    }
}

/// What a role takes away.
pub(crate) fn gone(role: &Role) -> Vec<Tool> {
    Tool::ALL.into_iter().filter(|tool| !role.tools.contains(tool)).collect()
}

/// The words for several tools, each once.
pub(crate) fn words_for(client: Client, tools: &[Tool]) -> Vec<&'static str> {
    let mut all: Vec<&'static str> = Vec::new();
    for word in tools.iter().flat_map(|tool| words(client, *tool)) {
        if !all.contains(word) {
            all.push(word);
        }
    }
    all
}

/// What opencode is told of tools that are gone; it says nothing of the others, so that whatever
/// their user is asked about stays asked.
pub(crate) fn denied(client: Client, role: &Role) -> serde_json::Map<String, serde_json::Value> {
    let words = words_for(client, &gone(role)).into_iter();
    words.map(|word| (word.to_owned(), "deny".into())).collect()
}
