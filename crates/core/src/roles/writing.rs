//! What a session of a role may write, asked file by file: for a sandbox, which must know before
//! the session has written anything, and for a landing, which must judge what it did not see.
//!
//! Owns no rule of its own: the answers are those of `judge`, with what they need read once.

use super::{Kind, Kinds, Part, Role, Rules, Tool, may_write_by};
use crate::id::SessionId;
use crate::resource::Resource;

#[derive(Debug)]
pub struct Writes {
    kinds: Kinds,
    role: Role,
    session: SessionId,
}

impl Writes {
    /// Nothing for a role that takes no file away, or that nobody has defined.
    pub fn of(rules: &Rules, role: &str, session: &SessionId) -> Option<Self> {
        let role = rules.role(role)?;
        let limited = role.write.is_some() || !role.deny.is_empty();
        limited.then(|| Self { kinds: rules.kinds(), role, session: session.clone() })
    }

    /// It writes nothing at all.
    pub fn is_nothing(&self) -> bool {
        self.role.write.as_ref().is_some_and(Vec::is_empty)
    }

    /// It writes in its session's own folder and nowhere else.
    pub fn is_own_folder(&self) -> bool {
        self.role.write.as_deref() == Some(&[Part::Scratch])
    }

    /// It writes everything that is not taken away, and so what is of no kind, as files that git
    /// ignores.
    pub fn has_the_rest(&self) -> bool {
        self.role.write.is_none()
    }

    /// It lands what others wrote: it starts them, or writes nothing itself.
    pub fn is_for_others(&self) -> bool {
        self.role.tools.contains(&Tool::Agents) || self.is_nothing()
    }

    /// What it may write, in words.
    pub fn words(&self) -> String {
        self.role.words(&self.session)
    }

    pub fn may(&self, path: &Resource) -> bool {
        may_write_by(&self.kinds, &self.role, &self.session, path)
    }

    /// What a file is for; nothing in a folder that is some session's own.
    pub fn kind_of(&self, path: &Resource) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| self.kinds.covers(*kind, path))
    }
}
