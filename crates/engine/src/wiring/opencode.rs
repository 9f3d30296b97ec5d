//! opencode: a plugin of its own in `.opencode/plugins`, and the MCP server in `opencode.json`.
//!
//! Owns which of its two settings files is used: the one that is there. The plugin asks Baton and
//! throws when it says no; where Baton is missing, late or not understood, the tool runs.

use std::path::Path;

use super::command::Program;
use super::json::{Entry, Json, Reader};
use super::text::{self, SLASHES};
use super::{Client, Content, Door, Mode, Piece, words};

const PLUGIN: &str = ".opencode/plugins/baton.js";
const SETTINGS: [&str; 2] = ["opencode.json", "opencode.jsonc"];

pub(super) fn pieces(program: &Program<'_>, root: &Path) -> Vec<Piece> {
    let name = match program.mode {
        Mode::Team => "baton",
        Mode::Personal => program.path,
    };
    let literal = serde_json::to_string(name).unwrap_or_default();
    let body = words::OPENCODE_PLUGIN.trim_start().replace("@PROGRAM@", &literal);
    let there = |name: &&str| root.join(name).symlink_metadata().is_ok();
    let settings = SETTINGS.into_iter().find(there).unwrap_or(SETTINGS[0]);
    let schema = Json::text("https://opencode.ai/config.json");
    let fields = vec![
        ("type", Json::text("local")),
        ("command", Json::texts(&[name, "mcp"])),
        ("enabled", Json::Flag(true)),
    ];
    let entries =
        vec![Entry::Given { key: "$schema", value: schema }, Entry::Server { list: "mcp", fields }];
    let plugin = Content::File { text: text::file(SLASHES, &body), others_stay: false };
    vec![
        Piece::of(Client::Opencode, Door::Hooks, PLUGIN, plugin),
        Piece::of(
            Client::Opencode,
            Door::Server,
            settings,
            Content::Json(Reader::Lenient, entries),
        ),
    ]
}
