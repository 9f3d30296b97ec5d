//! What is kept of a client's own id of its session.
//!
//! Owns the fingerprint. Whoever says a client's id is taken for its session, so what everybody can
//! read of it in lists and in the journal must not be enough to say it (S19).

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
