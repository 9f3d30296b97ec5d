//! Codex: `.codex/hooks.json` and the MCP server in `.codex/config.toml`.
//!
//! Owns its eleven events. Codex runs no hook that its user has not approved, and says nothing
//! about it; approving is the user's, so no trust is ever written here: `init` says how it is
//! given. Its hooks fail open.

use super::command::Program;
use super::json::{Entry, Hook, Json, Kinds, Reader};
use super::{Client, Content, Door, Piece};

const NAME: &str = "codex";
const TOOLS: &str = "Bash|apply_patch|Edit|Write|spawn_agent";
const SECONDS: u32 = 5;
/// Codex gives no more at the end of a session.
const END_SECONDS: u32 = 3;

const EVENTS: [(&str, Option<&str>, u32); 11] = [
    ("SessionStart", None, SECONDS),
    ("UserPromptSubmit", None, SECONDS),
    ("PreToolUse", Some(TOOLS), SECONDS),
    ("PermissionRequest", Some(TOOLS), SECONDS),
    ("PostToolUse", Some(TOOLS), SECONDS),
    ("PreCompact", None, SECONDS),
    ("PostCompact", None, SECONDS),
    ("SubagentStart", None, SECONDS),
    ("SubagentStop", None, SECONDS),
    ("Stop", None, SECONDS),
    ("SessionEnd", None, END_SECONDS),
];

pub(super) fn pieces(program: &Program<'_>) -> Vec<Piece> {
    let one = |(event, matcher, seconds): (&'static str, Option<&'static str>, u32)| {
        let fields = vec![
            ("type", Json::text("command")),
            ("command", Json::text(program.line(NAME, event))),
            ("timeout", Json::Number(seconds)),
        ];
        Entry::Hook(Hook { client: NAME, event, matcher, grouped: true, fields })
    };
    let hooks = Content::Json(
        Reader::Closed(&["description", "hooks"], Kinds::Codex),
        EVENTS.into_iter().map(one).collect(),
    );
    let server = Content::Toml { program: program.name().to_owned() };
    vec![
        Piece::of(Client::Codex, Door::Hooks, ".codex/hooks.json", hooks),
        Piece::of(Client::Codex, Door::Server, ".codex/config.toml", server),
    ]
}
