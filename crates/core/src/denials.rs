//! Denials: what a session was refused, written down after it was told so.
//!
//! Owns which refusals are worth a line in the journal, and how often. It decides nothing about the
//! deed: that was refused before. Invariants: a question leaves nothing, and neither does asking
//! for a claim that another has, because asking is what the rules want; whoever tries the same
//! again and again is written down once in [`QUIET`], and no session more than [`MARKS_MAX`] times.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::{Because, Finding, Verdict};
use crate::claim::Holder;
use crate::context::Context;
use crate::event::Event;
use crate::id::SessionId;
use crate::refusal::Refusal;
use crate::roles;
use crate::scene::Caller;
use crate::tasks;
use crate::time::{Moment, Span};
use crate::view::{Index, Kind, Query, Record, View, parse};
use crate::{commits, deploys, landings};

/// The same deed, refused to the same session for the same reason, is written down once in this
/// time: an agent that retries in a loop must not fill the journal.
pub const QUIET: Span = Span::minutes(10);
/// So many things of one session are written down in that time; a session that is refused more has
/// made its point.
pub const MARKS_MAX: usize = 100;
/// One deed may be about thousands of files: the first say enough.
pub const THINGS_MAX: usize = 20;

/// What was to be done.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Deed {
    /// A tool of an agent was to change files.
    Edit,
    /// A line in its shell was to run.
    Shell,
    Claim,
    /// By git, or by Baton.
    Commit,
    Land,
    Deploy,
    /// A task was called done.
    Done,
}

/// Why not, in a word.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// Another holds it.
    Held,
    /// Another changed it since this session read it.
    Stale,
    /// In its zone a claim comes first.
    ClaimFirst,
    /// In its zone a person says yes first.
    NeedsPerson,
    /// In its zone lines are only added at the end.
    AppendOnly,
    /// It belongs to git or to Baton.
    GitDir,
    /// The role of the session does not do that.
    Role,
    /// A verb that endangers the work of others, or is a person's.
    Danger,
    /// It deploys around `baton deploy`.
    ByHand,
    /// It lacks what has landed.
    Behind,
    /// It is older than what is live.
    Older,
    /// There are placeholders in it.
    Unfinished,
    /// What a finished task must show is missing.
    Unproven,
}

/// What it was about: a file, a task, a target, a verb.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Thing {
    pub what: String,
    /// Who holds it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<Holder>,
}

impl Thing {
    pub fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), holder: None }
    }

    fn held(what: impl Into<String>, holder: &Holder) -> Self {
        Self { what: what.into(), holder: Some(holder.clone()) }
    }
}

/// A deed that was refused just now, for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    pub deed: Deed,
    pub why: Why,
    pub things: Vec<Thing>,
    /// The role that does not allow it.
    pub role: Option<String>,
    /// It was done before anybody could refuse it, by a command that did not say what it writes.
    pub done: bool,
}

/// What is written down of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Denial {
    pub by: Holder,
    pub deed: Deed,
    pub why: Why,
    pub things: Vec<Thing>,
    /// How many more there were.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// It was done before anybody could refuse it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub done: bool,
    pub at: Moment,
    /// Until then the same is not written down again.
    pub quiet_until: Moment,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// What was lately written down of a session, and until when it is not again. It goes with the end
/// of the session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Denials {
    pub session: SessionId,
    pub quiet: BTreeMap<String, Moment>,
}

impl Record for Denials {
    const KIND: Kind = "denials";

    fn key(&self) -> String {
        self.session.0.clone()
    }

    /// It is read by its key alone.
    fn index_entries(&self) -> Vec<(Index, String)> {
        Vec::new()
    }
}

impl Denials {
    pub(crate) fn of(session: SessionId) -> Self {
        Self { session, quiet: BTreeMap::new() }
    }

    pub(crate) fn follow(&mut self, denial: &Denial) {
        self.quiet.retain(|_, until| *until > denial.at);
        let what = (denial.deed, denial.why, denial.done);
        let things = denial.things.iter().map(|thing| mark(what, &thing.what));
        let alone = denial.things.is_empty().then(|| mark(what, ""));
        let marks = things.chain(alone);
        self.quiet.extend(marks.map(|mark| (mark, denial.quiet_until)));
    }
}

/// What counts as the same: the deed, the reason and the thing.
fn mark((deed, why, done): (Deed, Why, bool), thing: &str) -> String {
    let done = if done { "done" } else { "refused" };
    format!("{deed:?} {why:?} {done} {thing}")
}

/// Writes down what was refused to the caller, as far as that was not done lately. A person has
/// the last word on every rule, and nothing is written down of one.
pub fn note(
    view: &dyn View,
    refused: &[Refused],
    context: &Context,
) -> Result<(Vec<Event>, ()), Refusal> {
    let Some(session) = context.actor.session.as_ref().filter(|_| !context.actor.person) else {
        return Ok((Vec::new(), ()));
    };
    let (caller, answers) =
        Caller::read_with(view, context, &[Query::get::<Denials>(session.as_str())])?;
    let kept = answers.first().and_then(|rows| rows.first());
    let mut kept = match kept {
        Some(row) => parse(&row.body)?,
        None => Denials::of(session.clone()),
    };
    kept.quiet.retain(|_, until| *until > context.now);
    let mut events = Vec::new();
    for one in refused {
        if let Some(denial) = one.anew(&kept, &caller, context) {
            kept.follow(&denial);
            events.push(Event::DeedRefused { denial });
        }
    }
    Ok((events, ()))
}

impl Refused {
    pub fn new(deed: Deed, why: Why, things: Vec<Thing>) -> Self {
        Self { deed, why, things, role: None, done: false }
    }

    pub fn by_role(deed: Deed, refused: &roles::Refused) -> Self {
        let things = refused.resource.iter().map(|one| Thing::new(one.to_string())).collect();
        Self { role: Some(refused.role.clone()), ..Self::new(deed, Why::Role, things) }
    }

    /// What of it is not written down yet.
    fn anew(&self, kept: &Denials, caller: &Caller, context: &Context) -> Option<Denial> {
        let (deed, why, done) = (self.deed, self.why, self.done);
        let known = |thing: &str| kept.quiet.contains_key(&mark((deed, why, done), thing));
        let room = MARKS_MAX.saturating_sub(kept.quiet.len());
        let mut things = self.things.clone();
        things.retain(|thing| !known(&thing.what));
        let nothing_new = if self.things.is_empty() { known("") } else { things.is_empty() };
        if nothing_new || room == 0 {
            return None;
        }
        let count = things.len();
        things.truncate(THINGS_MAX.min(room));
        let more = u32::try_from(count - things.len()).unwrap_or(u32::MAX);
        let (by, role) = (caller.holder(context), self.role.clone());
        let (at, quiet_until) = (context.now, context.now + QUIET);
        Some(Denial { by, deed, why, things, more, role, done, at, quiet_until })
    }
}

/// What of a refusal is to be written down. `subject` is what the deed was about where the refusal
/// itself does not say: a target, a task.
pub fn of_refusal(deed: Deed, subject: &str, refusal: &Refusal) -> Option<Refused> {
    let about = |why| Some(Refused::new(deed, why, vec![Thing::new(subject)]));
    match refusal {
        Refusal::Role(refused) => Some(Refused::by_role(deed, refused)),
        Refusal::Commit(refused) => match refused.as_ref() {
            commits::Refused::Foreign { foreign } => {
                // What somebody left behind is asked about once; nobody holds it any more.
                let held = foreign.iter().filter(|one| one.left.is_none());
                let things: Vec<Thing> =
                    held.map(|one| Thing::held(&one.path, &one.holder)).collect();
                (!things.is_empty()).then(|| Refused::new(deed, Why::Held, things))
            }
            _ => None,
        },
        Refusal::Landing(refused) => match refused.as_ref() {
            landings::Refused::Held { path, by: holder, .. }
            | landings::Refused::Lost { path, to: holder, .. } => {
                Some(Refused::new(deed, Why::Held, vec![Thing::held(path, holder)]))
            }
            _ => None,
        },
        Refusal::Deploy(refused) => match refused.as_ref() {
            deploys::Refused::Behind { .. } => about(Why::Behind),
            deploys::Refused::Older { .. } => about(Why::Older),
            deploys::Refused::Placeholders { .. } => about(Why::Unfinished),
            _ => None,
        },
        Refusal::Task(refused) => match refused.as_ref() {
            tasks::refused::Refused::Unproven { task, .. } => {
                Some(Refused::new(deed, Why::Unproven, vec![Thing::new(task.task.as_str())]))
            }
            _ => None,
        },
        _ => None,
    }
}

/// What of these verdicts is to be written down. A file that only a person may release is none: a
/// person is asked about it, and that is in the journal.
pub fn of_findings(deed: Deed, findings: &[Finding]) -> Vec<Refused> {
    let mut refused: Vec<Refused> = Vec::new();
    for finding in findings.iter().filter(|finding| finding.verdict >= Verdict::Ask) {
        let path = finding.resource.to_string();
        let one = match (finding.because, &finding.role) {
            (Because::Role, Some(role)) => Refused::by_role(deed, role),
            (Because::Held, _) => {
                let holder = finding.held.first().map(|held| held.holder.clone());
                Refused::new(deed, Why::Held, vec![Thing { what: path, holder }])
            }
            (Because::ClaimFirst, _) => Refused::new(deed, Why::ClaimFirst, vec![Thing::new(path)]),
            (Because::NeedsPerson, _) => {
                Refused::new(deed, Why::NeedsPerson, vec![Thing::new(path)])
            }
            _ => continue,
        };
        match refused.iter_mut().find(|all| all.why == one.why && all.role == one.role) {
            Some(all) => all.things.extend(one.things),
            None => refused.push(one),
        }
    }
    refused
}
