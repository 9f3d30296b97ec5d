//! Who may set a role: whoever starts a session, a person at any time, and a session its own, but
//! only to a narrower one.
//!
//! Owns what "narrower" means. Where that cannot be told surely, a role is not narrower.
//! Invariant: without a person, nothing that a session or what it started could not do before
//! becomes possible.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Kind, Kinds, Part, Role, Rules, Tool, reach};
use crate::context::Context;
use crate::event::Event;
use crate::id::SessionId;
use crate::policy;
use crate::refusal::Refusal;
use crate::scene::Caller;
use crate::sessions::Session;
use crate::state::rules::{Owner, Rule as KeyRule};
use crate::view::{View, get};
use crate::zones::OnExhausted;

/// Is everything that `new` may do allowed by `old` as well?
pub fn is_narrower(rules: &Rules, new: &Role, old: &Role) -> bool {
    let kinds = rules.kinds();
    let flags = [(new.commit, old.commit), (new.land, old.land), (new.deploy, old.deploy)];
    if flags.iter().any(|(new, old)| *new && !*old) {
        return false;
    }
    if new.tools.iter().any(|tool| !old.tools.contains(tool)) {
        return false;
    }
    let kept = |denied: &Part| new.deny.iter().any(|part| kinds.holds(part, denied));
    let Some(parts) = &new.write else {
        return old.write.is_none() && old.deny.iter().all(kept);
    };
    parts.iter().all(|part| {
        let given = |old: &Vec<Part>| old.iter().any(|given| kinds.holds(given, part));
        let gone = |denied: &Part| kinds.touches(denied, part) && !kept(denied);
        old.write.as_ref().is_none_or(given) && !old.deny.iter().any(gone)
    })
}

impl Kinds {
    /// Is all of `inner` surely within `outer`?
    fn holds(&self, outer: &Part, inner: &Part) -> bool {
        match (outer, inner) {
            (one, two) if one == two => true,
            (Part::Kind(kind), Part::Paths(paths)) => self.covers(*kind, paths),
            (Part::Paths(paths), Part::Kind(kind)) => {
                self.of(*kind).is_some_and(|all| all.iter().all(|one| paths.covers(one)))
            }
            (Part::Paths(one), Part::Paths(two)) => one.covers(two),
            (Part::Paths(paths), Part::Scratch) => paths.covers(&self.scratch[0]),
            _ => false,
        }
    }

    /// May some of one be within the other?
    fn touches(&self, one: &Part, two: &Part) -> bool {
        match (one, two) {
            (one, two) if one == two => true,
            (Part::Kind(kind), Part::Paths(paths)) | (Part::Paths(paths), Part::Kind(kind)) => {
                self.of(*kind).map_or_else(|| self.reaches(*kind, paths), |all| reach(all, paths))
            }
            (Part::Paths(one), Part::Paths(two)) => one.overlaps(two),
            (Part::Paths(paths), Part::Scratch) | (Part::Scratch, Part::Paths(paths)) => {
                reach(&self.scratch, paths)
            }
            _ => false,
        }
    }

    /// The paths of a kind; none where it is simply the rest.
    fn of(&self, kind: Kind) -> Option<&Vec<crate::resource::Resource>> {
        match kind {
            Kind::Source => self.source.as_ref(),
            Kind::Tests => Some(&self.tests),
            Kind::Docs => Some(&self.docs),
        }
    }
}

/// A role that somebody names must be there: a misspelled one would take nothing away, and a task
/// for it would wait for nobody. One that the policy itself gives things to is there.
pub(crate) fn known(view: &dyn View, role: Option<&str>) -> Result<(), Refusal> {
    let Some(role) = role else { return Ok(()) };
    let policy = policy::in_force(view)?.unwrap_or_default();
    let passed_on = matches!(&policy.tasks.on_exhausted, OnExhausted::Role(to) if to == role);
    let owns = |key: &KeyRule| matches!(&key.owner, Some(Owner::Role(owner)) if owner == role);
    match passed_on || policy.state.iter().any(owns) {
        true => Ok(()),
        false => policy.roles.must_have(role).map(drop),
    }
}

/// Which role a new session gets from whoever starts it: what was asked for, within its starter's
/// unless starting others is what that one is for.
pub(crate) fn for_new(
    view: &dyn View,
    wanted: Option<&str>,
    starter: Option<&str>,
) -> Result<Option<String>, Refusal> {
    known(view, wanted)?;
    let Some(starter) = starter else { return Ok(wanted.map(str::to_owned)) };
    let rules = policy::in_force(view)?.unwrap_or_default().roles;
    let starts_others = |role: Role| role.tools.contains(&Tool::Agents);
    let wanted = wanted.unwrap_or(starter);
    match rules.role(starter).is_some_and(starts_others) {
        true => Ok(Some(wanted.to_owned())),
        false => within(&rules, wanted, Some(starter)).map(Some),
    }
}

/// Whether a session may have something run in that role: within its own, as one that it starts.
pub fn must_be_within(
    view: &dyn View,
    wanted: &str,
    session: Option<&SessionId>,
) -> Result<(), Refusal> {
    let Some(session) = session else { return Ok(()) };
    let session: Option<Session> = get(view, session.as_str())?;
    let own = session.and_then(|session| session.role);
    for_new(view, Some(wanted), own.as_deref()).map(drop)
}

/// Which role a session has that its client comes back to: a narrower one where that was asked for.
pub(crate) fn for_known(
    view: &dyn View,
    known: Option<String>,
    wanted: Option<&str>,
    context: &Context,
) -> Result<Option<String>, Refusal> {
    let Some(wanted) = wanted.filter(|wanted| known.as_deref() != Some(wanted)) else {
        return Ok(known);
    };
    self::known(view, Some(wanted))?;
    let rules = policy::in_force(view)?.unwrap_or_default().roles;
    match within(&rules, wanted, known.as_deref()) {
        Err(_) if !context.actor.person => Ok(known),
        _ => Ok(Some(wanted.to_owned())),
    }
}

/// The role, if it is known and takes nothing back that `current` takes away.
fn within(rules: &Rules, wanted: &str, current: Option<&str>) -> Result<String, Refusal> {
    let known = current.and_then(|current| Some((current, rules.role(current)?)));
    let Some((current, old)) = known.filter(|(current, _)| *current != wanted) else {
        return Ok(wanted.to_owned());
    };
    match rules.role(wanted) {
        Some(new) if is_narrower(rules, &new, &old) => Ok(wanted.to_owned()),
        _ => Err(Refusal::NeedsPerson {
            what: format!(
                "going from role {current} to {wanted}, which may do more or other things,"
            ),
        }),
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Given {
    pub session: SessionId,
    pub name: String,
    pub role: String,
    /// It had this role already.
    pub already: bool,
    /// What it may write now, in words.
    pub may: String,
}

/// Sets the role of the caller's session; a person sets it of any.
pub fn give(
    view: &dyn View,
    wanted: &str,
    of: Option<&SessionId>,
    context: &Context,
) -> Result<(Vec<Event>, Given), Refusal> {
    let rules = policy::in_force(view)?.unwrap_or_default().roles;
    let role = rules.must_have(wanted)?;
    let session = match of {
        Some(id) if context.actor.session.as_ref() != Some(id) => {
            if !context.actor.person {
                let what = "setting another session's role".to_owned();
                return Err(Refusal::NeedsPerson { what });
            }
            let found = get::<Session>(view, id.as_str())?;
            found.ok_or_else(|| Refusal::UnknownSession { session: id.0.clone() })?
        }
        _ => Caller::read(view, context)?.session,
    };
    if !context.actor.person {
        within(&rules, wanted, session.role.as_deref())?;
    }
    let may = role.words(&session.session);
    let already = session.role.as_deref() == Some(wanted);
    let Session { session, name, .. } = session;
    let events = match already {
        true => Vec::new(),
        false => vec![Event::RoleGiven {
            session: session.clone(),
            role: wanted.to_owned(),
            at: context.now,
        }],
    };
    Ok((events, Given { session, name, role: wanted.to_owned(), already, may }))
}
