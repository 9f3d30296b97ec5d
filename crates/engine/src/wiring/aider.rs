//! aider: no hook for edits and no MCP; what guards it are git's own hooks.
//!
//! Owns `.aider.conf.yml`, and only where there is none: it makes aider's commits pass git's hooks,
//! which it passes over by default, and shows it AGENTS.md. One that is there is the user's.

use super::text::{self, HASHES};
use super::{Client, Content, Door, Piece, words};

pub(super) fn pieces() -> Vec<Piece> {
    let content = Content::File { text: text::file(HASHES, words::AIDER), others_stay: true };
    vec![Piece::of(Client::Aider, Door::Words, ".aider.conf.yml", content)]
}
