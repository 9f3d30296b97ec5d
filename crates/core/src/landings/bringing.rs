//! Whether the role of whoever lands a branch allows what the branch brings.
//!
//! Owns the judgement, and whose work a branch is. Commits come by ways that no other door sees, so
//! whatever a branch changes is judged as if whoever lands it had written it, unless it is
//! another's work. Invariant: judged in the transaction that puts the branch in line.

use super::Enqueue;
use crate::context::Context;
use crate::refusal::Refusal;
use crate::resource::Resource;
use crate::roles::writing::Writes;
use crate::roles::{self, Refused};
use crate::sessions::{BY_LIFE, Session};
use crate::tree::Tree;
use crate::view::{Query, View, get, scan};

/// How many sessions of each life are looked through for one that sits in a tree.
const SESSIONS_MAX: u32 = 10_000;
/// So many paths are named.
const NAMED_MAX: usize = 5;

pub fn admit(
    view: &dyn View,
    request: &Enqueue,
    session: &Session,
    context: &Context,
) -> Result<(), Refusal> {
    let Some(rules) = roles::rules_for(view, session, context)? else { return Ok(()) };
    let paths: Vec<Resource> =
        request.paths.iter().filter_map(|path| Resource::literal(path).ok()).collect();
    for role in session.role.iter().chain(&context.actor.role) {
        let Some(writes) = Writes::of(&rules, role, &session.session) else { continue };
        let outside: Vec<&Resource> = paths.iter().filter(|path| !writes.may(path)).collect();
        if !outside.is_empty() && !is_anothers(view, request, session, &writes, context)? {
            return Err(Refusal::Role(Box::new(refused(role, &writes, &outside))));
        }
    }
    Ok(())
}

fn refused(role: &str, writes: &Writes, outside: &[&Resource]) -> Refused {
    let mut named: Vec<String> =
        outside.iter().take(NAMED_MAX).map(|path| path.to_string()).collect();
    if outside.len() > NAMED_MAX {
        named.push(format!("{} more", outside.len() - NAMED_MAX));
    }
    Refused {
        role: role.to_owned(),
        what: format!("land {}", named.join(", ")),
        may: writes.words(),
        resource: outside.first().map(|path| (*path).clone()),
    }
}

/// Is the branch surely somebody else's work? A tree that another made is that one's, unless the
/// lander is at work in it. Who lands for others also makes trees for them: such a tree is theirs
/// once somebody else sits there, and a branch without a tree is nobody's in particular.
fn is_anothers(
    view: &dyn View,
    request: &Enqueue,
    session: &Session,
    writes: &Writes,
    context: &Context,
) -> Result<bool, Refusal> {
    let for_others = writes.is_for_others();
    let tree = get::<Tree>(view, request.tree.as_str())?;
    let Some(tree) = tree.filter(|tree| tree.branch == request.branch) else {
        return Ok(for_others);
    };
    if tree.by.session != session.session {
        let there = session.tree == tree.tree || context.actor.tree.as_ref() == Some(&tree.tree);
        return Ok(for_others || !there);
    }
    Ok(for_others && somebody_else_sits(view, &tree, session)?)
}

fn somebody_else_sits(view: &dyn View, tree: &Tree, me: &Session) -> Result<bool, Refusal> {
    for life in ["live", "ended"] {
        let sessions: Vec<Session> = scan(view, Query::equal(BY_LIFE, life, SESSIONS_MAX))?;
        let there = |one: &Session| one.tree == tree.tree && one.session != me.session;
        if sessions.iter().any(there) {
            return Ok(true);
        }
    }
    Ok(false)
}
