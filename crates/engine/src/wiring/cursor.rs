//! Cursor: `.cursor/hooks.json` and `.cursor/mcp.json`.
//!
//! Owns its twelve events. Cursor is the one client whose hooks can fail closed; ours do not, so
//! that a file shared by a team stops nobody who has no Baton.

use super::command::Program;
use super::json::{Entry, Hook, Json, Reader};
use super::{Client, Content, Door, Piece};

const NAME: &str = "cursor";
const TOOLS: &str = "Write|Shell|Read|Grep|Task";
const SECONDS: u32 = 5;

const EVENTS: [(&str, Option<&str>); 12] = [
    ("sessionStart", None),
    ("beforeSubmitPrompt", None),
    ("preToolUse", Some(TOOLS)),
    ("postToolUse", Some(TOOLS)),
    ("beforeShellExecution", None),
    ("afterShellExecution", None),
    ("afterFileEdit", None),
    ("preCompact", None),
    ("subagentStart", None),
    ("subagentStop", None),
    ("stop", None),
    ("sessionEnd", None),
];

pub(super) fn pieces(program: &Program<'_>) -> Vec<Piece> {
    let one = |(event, matcher): (&'static str, Option<&'static str>)| {
        let fields = vec![
            ("command", Json::text(program.line(NAME, event))),
            ("timeout", Json::Number(SECONDS)),
            ("failClosed", Json::Flag(false)),
        ];
        Entry::Hook(Hook { client: NAME, event, matcher, grouped: false, fields })
    };
    let mut entries = vec![Entry::Given { key: "version", value: Json::Number(1) }];
    entries.extend(EVENTS.into_iter().map(one));
    let fields = vec![("command", Json::text(program.name())), ("args", Json::texts(&["mcp"]))];
    let server = vec![Entry::Server { list: "mcpServers", fields }];
    let piece = |door, path, entries| {
        Piece::of(Client::Cursor, door, path, Content::Json(Reader::Lenient, entries))
    };
    vec![
        piece(Door::Hooks, ".cursor/hooks.json", entries),
        piece(Door::Server, ".cursor/mcp.json", server),
    ]
}
