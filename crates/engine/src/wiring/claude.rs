//! Claude Code: hooks in its settings, the MCP server in `.mcp.json`, and the same as a plugin.
//!
//! Owns which events are asked for and with what time limits. A team shares
//! `.claude/settings.json`; one's own hooks are in `.claude/settings.local.json`. For the server of
//! one's own `.mcp.json` is used too, kept out of git: the other place Claude knows,
//! `~/.claude.json`, is its own state, which only its own command should write. Hooks here fail
//! open: where Baton does not answer, Claude goes on.

use super::command::Program;
use super::json::{Entry, Hook, Json, Kinds, Reader};
use super::{Client, Content, Door, Mode, Piece};

pub(super) const TEAM: &str = ".claude/settings.json";
pub(super) const PERSONAL: &str = ".claude/settings.local.json";
const NAME: &str = "claude";
/// Only tools that Baton judges or learns from: every other call is spared a process.
const TOOLS: &str = "Edit|Write|MultiEdit|NotebookEdit|Bash|Monitor|Read|TaskUpdate";
/// Before it, also those of our own server for which it counts which subagent calls.
const BEFORE: &str = "Edit|Write|MultiEdit|NotebookEdit|Bash|Monitor|Read|TaskUpdate|\
mcp__baton__claim|mcp__baton__release|mcp__baton__commit_and_land|\
mcp__plugin_baton_baton__claim|mcp__plugin_baton_baton__release|\
mcp__plugin_baton_baton__commit_and_land";
const SECONDS: u32 = 5;
/// Making a tree checks files out, and may set it up.
const TREE_SECONDS: u32 = 120;

const EVENTS: [(&str, Option<&str>, u32); 15] = [
    ("SessionStart", None, SECONDS),
    ("UserPromptSubmit", None, SECONDS),
    ("PreToolUse", Some(BEFORE), SECONDS),
    ("PostToolUse", Some(TOOLS), SECONDS),
    ("PostToolUseFailure", Some(TOOLS), SECONDS),
    ("PreCompact", None, SECONDS),
    ("PostCompact", None, SECONDS),
    ("Stop", None, SECONDS),
    ("SubagentStart", None, SECONDS),
    ("SubagentStop", None, SECONDS),
    ("SessionEnd", None, SECONDS),
    ("WorktreeCreate", None, TREE_SECONDS),
    ("WorktreeRemove", None, TREE_SECONDS),
    ("TaskCreated", None, SECONDS),
    ("TaskCompleted", None, SECONDS),
];

pub(super) fn hooks(program: &Program<'_>) -> Vec<Entry> {
    let one = |(event, matcher, seconds): (&'static str, Option<&'static str>, u32)| {
        let mut fields = vec![("type", Json::text("command"))];
        match (program.mode, event) {
            // Without a shell, so that no path has to be quoted.
            (Mode::Personal, event) if event != "WorktreeCreate" => fields.extend([
                ("command", Json::text(program.name())),
                ("args", Json::texts(&["hook", NAME])),
            ]),
            _ => fields.push(("command", Json::text(program.line(NAME, event)))),
        }
        fields.push(("timeout", Json::Number(seconds)));
        Entry::Hook(Hook { client: NAME, event, matcher, grouped: true, fields })
    };
    EVENTS.into_iter().map(one).collect()
}

pub(super) fn server(program: &Program<'_>) -> Vec<Entry> {
    let fields = vec![
        ("type", Json::text("stdio")),
        ("command", Json::text(program.name())),
        ("args", Json::texts(&["mcp"])),
    ];
    vec![Entry::Server { list: "mcpServers", fields }]
}

pub(super) fn pieces(program: &Program<'_>) -> Vec<Piece> {
    let settings = match program.mode {
        Mode::Team => TEAM,
        Mode::Personal => PERSONAL,
    };
    let piece = |door, path, reader, entries| {
        Piece::of(Client::Claude, door, path, Content::Json(reader, entries))
    };
    vec![
        piece(Door::Hooks, settings, Reader::Typed(Kinds::Claude), hooks(program)),
        piece(Door::Server, ".mcp.json", Reader::Strict, server(program)),
    ]
}
