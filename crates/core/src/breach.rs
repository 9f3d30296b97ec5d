//! Breaches: somebody wrote what another held, around every door that could have refused it.
//!
//! Owns what is written down of one, and what its holder is told. It takes nothing away and decides
//! nothing: the journal has the evidence, whoever wrote is told at once, and the holder at its next
//! act. Invariant: a holder that has not heard of one yet is not told of the next by the same: what
//! lay there then was no longer its own.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::{self, Because};
use crate::claim::Holder;
use crate::context::Context;
use crate::event::Event;
use crate::id::NoticeId;
use crate::notices::{self, News, Notice, Was};
use crate::refusal::{Held, Refusal};
use crate::resource::Resource;
use crate::scene::Caller;
use crate::time::Moment;
use crate::view::{View, scan};

/// How many notices of one holder are looked through for an earlier one.
const WAITING_MAX: u32 = 1_000;

/// By which door it came to light.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Door {
    Shell,
    Git,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Breach {
    pub by: Holder,
    pub resource: Resource,
    pub holder: Holder,
    pub door: Door,
    pub at: Moment,
    /// It changed while a command of `by` ran, and its holder tells nobody when it writes: whose
    /// change it is, nobody knows.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unsure: bool,
}

/// Writes down that the caller changed these, as far as others hold them now; of those that are
/// `unsure` only that they changed while it was at work.
pub fn note(
    view: &dyn View,
    resources: &[Resource],
    unsure: bool,
    door: Door,
    context: &Context,
) -> Result<(Vec<Event>, Vec<Held>), Refusal> {
    let by = Caller::read(view, context)?.holder(context);
    let held = held(view, resources, context)?;
    let events = held.iter().map(|held| Event::HoldBreached {
        breach: Breach {
            by: by.clone(),
            resource: held.resource.clone(),
            holder: held.holder.clone(),
            door,
            at: context.now,
            unsure,
        },
    });
    Ok((events.collect(), held))
}

fn held(view: &dyn View, resources: &[Resource], context: &Context) -> Result<Vec<Held>, Refusal> {
    let checked = check::check(view, resources, None, context)?;
    let findings = checked.findings.into_iter().filter(|finding| finding.because == Because::Held);
    let mut all: Vec<Held> = Vec::new();
    for held in findings.flat_map(|finding| finding.held) {
        // Several may share it, and one may hold it twice: for its tree and for all.
        let known = |one: &Held| one.resource == held.resource && one.holder == held.holder;
        if !all.iter().any(known) {
            all.push(held);
        }
    }
    Ok(all)
}

/// Those of these that others hold, and of which their holders are to be told when the caller has
/// written over them.
pub fn to_be_told(
    view: &dyn View,
    resources: &[Resource],
    context: &Context,
) -> Result<Vec<Held>, Refusal> {
    let by = Caller::read(view, context)?.holder(context);
    let mut told = Vec::new();
    for held in held(view, resources, context)? {
        if held.holder.is_session() && !has_word_of(view, &by, &held)? {
            told.push(held);
        }
    }
    Ok(told)
}

/// Does a word of an earlier one wait for the holder already?
fn has_word_of(view: &dyn View, by: &Holder, held: &Held) -> Result<bool, Refusal> {
    let Holder { session, agent, .. } = &held.holder;
    let waiting = notices::waiting_for(session, agent.as_deref(), WAITING_MAX);
    let waiting: Vec<Notice> = scan(view, waiting)?;
    Ok(waiting.iter().any(|notice| match &notice.news {
        News::Overwritten { by: earlier, path, .. } => {
            *path == held.resource && earlier.session == by.session && earlier.agent == by.agent
        }
        _ => false,
    }))
}

/// As `note` of what the caller surely wrote, and its holders are told. `was` says by path what
/// became of the text that lay there.
pub fn note_overwritten(
    view: &dyn View,
    resources: &[Resource],
    was: &BTreeMap<String, Was>,
    door: Door,
    context: &Context,
) -> Result<(Vec<Event>, Vec<Held>), Refusal> {
    let mut told = tell(view, resources, was, false, context)?;
    let (mut events, held) = note(view, resources, false, door, context)?;
    events.append(&mut told);
    Ok((events, held))
}

/// Tells holders that their files changed while commands of theirs and of the caller ran, where
/// there was something uncommitted in them: nobody knows who wrote it, so nothing else is noted.
pub fn tell_unsure(
    view: &dyn View,
    resources: &[Resource],
    was: &BTreeMap<String, Was>,
    context: &Context,
) -> Result<(Vec<Event>, ()), Refusal> {
    let saved = |one: &&Resource| matches!(was.get(&one.to_string()), Some(Was::Saved(_)));
    let saved: Vec<Resource> = resources.iter().filter(saved).cloned().collect();
    Ok((tell(view, &saved, was, true, context)?, ()))
}

fn tell(
    view: &dyn View,
    resources: &[Resource],
    was: &BTreeMap<String, Was>,
    unsure: bool,
    context: &Context,
) -> Result<Vec<Event>, Refusal> {
    let by = Caller::read(view, context)?.holder(context);
    let told = to_be_told(view, resources, context)?;
    let notices = (0..).zip(told).map(|(ordinal, held)| {
        let was = was.get(&held.resource.to_string()).cloned().unwrap_or(Was::Unknown);
        let notice = Notice {
            notice: NoticeId::fresh(&context.fresh, ordinal),
            to: held.holder.session,
            agent: held.holder.agent,
            at: context.now,
            news: News::Overwritten { by: by.clone(), path: held.resource, was, unsure },
        };
        Event::NoticeSent { notice }
    });
    Ok(notices.collect())
}
