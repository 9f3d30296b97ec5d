//! Gemini CLI: hooks and MCP server, both in `.gemini/settings.json`.
//!
//! Owns its seven events. Time limits are in milliseconds here. Gemini blocks a tool when a hook's
//! script is missing, so the line must end well where Baton is not installed; a hook that fails
//! with 1 or takes too long lets the tool run.

use super::command::Program;
use super::json::{Entry, Hook, Json, Reader};
use super::{Client, Content, Door, Piece};

const NAME: &str = "gemini";
const TOOLS: &str = "write_file|replace|run_shell_command|read_file|read_many_files";
const MILLISECONDS: u32 = 5_000;

const EVENTS: [(&str, Option<&str>); 7] = [
    ("SessionStart", None),
    ("BeforeAgent", None),
    ("BeforeTool", Some(TOOLS)),
    ("AfterTool", Some(TOOLS)),
    ("AfterAgent", None),
    ("PreCompress", None),
    ("SessionEnd", None),
];

pub(super) fn pieces(program: &Program<'_>) -> Vec<Piece> {
    let one = |(event, matcher): (&'static str, Option<&'static str>)| {
        let fields = vec![
            ("type", Json::text("command")),
            ("name", Json::text("baton")),
            ("command", Json::text(program.line(NAME, event))),
            ("timeout", Json::Number(MILLISECONDS)),
        ];
        Entry::Hook(Hook { client: NAME, event, matcher, grouped: true, fields })
    };
    let mut entries: Vec<Entry> = EVENTS.into_iter().map(one).collect();
    let fields = vec![("command", Json::text(program.name())), ("args", Json::texts(&["mcp"]))];
    entries.push(Entry::Server { list: "mcpServers", fields });
    let content = Content::Json(Reader::Unmarked, entries);
    vec![Piece::of(Client::Gemini, Door::Hooks, ".gemini/settings.json", content)]
}
