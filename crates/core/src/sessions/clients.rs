//! What is kept of a client's own id of its session.
//!
//! Owns the fingerprint, and which session an id or a process stands for. Whoever says a client's
//! id is taken for its session, so what everybody can read of it in lists and in the journal must
//! not be enough to say it (S19).

use super::{Alias, Life, Session};
use crate::event::Event;
use crate::refusal::Refusal;
use crate::view::{View, get};

/// Of the hash of a client's id: so many that no two ids share them.
const FINGERPRINT_CHARACTERS: usize = 32;

/// The key of the alias record of a client's own session id.
pub fn client_alias(client: &str, id: &str) -> String {
    format!("client:{client}:{}", fingerprint(id))
}

pub(super) fn fingerprint(id: &str) -> String {
    let hash = blake3::derive_key("baton 2026-11 id of a client's session", id.as_bytes());
    let mut text = blake3::Hash::from_bytes(hash).to_hex().to_string();
    text.truncate(FINGERPRINT_CHARACTERS);
    text
}

/// Binds the client's id, unless it is bound as it should be.
pub(super) fn client_bound(
    view: &dyn View,
    alias: Option<String>,
    session: &Session,
) -> Result<Option<Event>, Refusal> {
    let Some(alias) = alias else {
        return Ok(None);
    };
    let wanted = Alias { alias, session: Some(session.session.clone()) };
    let known = get::<Alias>(view, &wanted.alias)?;
    Ok((known.as_ref() != Some(&wanted)).then_some(Event::AliasBound { alias: wanted }))
}

/// Binds the process, unless it belongs to another live session: then it identifies nobody.
pub(super) fn process_alias(view: &dyn View, session: &Session) -> Result<Option<Event>, Refusal> {
    let Some(process) = &session.process else {
        return Ok(None);
    };
    let key = process.alias_key();
    let bound = get::<Alias>(view, &key)?;
    let other = match bound {
        None => None,
        Some(Alias { session: None, .. }) => return Ok(None),
        Some(Alias { session: Some(id), .. }) if id == session.session => return Ok(None),
        Some(Alias { session: Some(id), .. }) => get::<Session>(view, id.as_str())?,
    };
    let contested = other.is_some_and(|other| other.life == Life::Live);
    let owner = if contested { None } else { Some(session.session.clone()) };
    Ok(Some(Event::AliasBound { alias: Alias { alias: key, session: owner } }))
}
