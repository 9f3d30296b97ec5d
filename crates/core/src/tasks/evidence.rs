//! What `done` must be able to show, where the policy asks for it.
//!
//! Owns the judgement: which evidence is missing, all of it at once. The facts (what git says, the
//! hash of the tree as it is) are gathered before the lock and passed in. Invariant: a check counts
//! only for the very tree it passed on, an approval only for the very commit it names.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::refused::{Brief, Refused};
use super::{Moved, Table, says, word};
use crate::claim::Holder;
use crate::context::Context;
use crate::event::Event;
use crate::id::Token;
use crate::policy;
use crate::refusal::Refusal;
use crate::task::dossier::Dossier;
use crate::task::{State, Task};
use crate::time::{Moment, Span};
use crate::view::View;

pub const NAME_BYTES_MAX: usize = 64;
pub const CHECKS_MAX: usize = 50;
/// Words of one command.
pub const WORDS_MAX: usize = 200;
pub const WORD_BYTES_MAX: usize = 4_000;
/// The last run of so many checks is kept with a task.
pub const KEPT_MAX: usize = 50;
pub const TIMEOUT_DEFAULT: Span = Span::minutes(10);
pub const TIMEOUT_MAX: Span = Span::hours(12);
/// A check that was given no name.
pub const UNNAMED: &str = "check";
/// How many paths a refusal names.
pub const NAMED_MAX: usize = 10;

/// One kind of evidence.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Proof {
    /// The work is committed.
    Commit,
    /// A check passed after the last change.
    Check,
    /// A reviewer approved that commit.
    Review,
    /// That commit is in the target branch.
    Landed,
}

impl Proof {
    pub const ALL: [Self; 4] = [Self::Commit, Self::Check, Self::Review, Self::Landed];

    pub fn name(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::Check => "check",
            Self::Review => "review",
            Self::Landed => "landed",
        }
    }
}

/// A check that the policy names: run exactly so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NamedCheck {
    pub name: String,
    pub run: Vec<String>,
    pub timeout: Span,
}

/// What the policy says about evidence.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rules {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub require: Vec<Proof>,
    /// The checks that must pass; all named ones when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub named: Vec<NamedCheck>,
    /// The branch that work lands in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
}

impl Rules {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub fn requires(&self, proof: Proof) -> bool {
        self.require.contains(&proof)
    }

    /// The names of the checks that must pass; none means that any one will do.
    pub fn needed(&self) -> Vec<&str> {
        match self.checks.is_empty() {
            true => self.named.iter().map(|check| check.name.as_str()).collect(),
            false => self.checks.iter().map(String::as_str).collect(),
        }
    }

    pub fn check(&self, name: &str) -> Option<&NamedCheck> {
        self.named.iter().find(|check| check.name == name)
    }
}

/// One run of a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckRun {
    pub name: String,
    pub argv: Vec<String>,
    pub exit: u8,
    /// The hash of the tree it ran on, uncommitted changes included; nothing when the tree was
    /// changed while it ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<String>,
    pub at: Moment,
    pub took: Span,
    pub by: Holder,
    pub attempt: u32,
}

/// What was shown when a task was done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Shown {
    pub at: Moment,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<String>,
    /// What the policy asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub required: Vec<Proof>,
}

/// What git and the tree say, looked at before the decision.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Facts {
    /// The commit that the caller named, as it was typed.
    pub named: Option<String>,
    /// The commit, in full, when it exists.
    pub commit: Option<CommitFacts>,
    /// The hash of the tree as it is.
    pub snapshot: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CommitFacts {
    pub commit: String,
    /// Paths of the task with uncommitted changes.
    pub dirty: Vec<String>,
    /// Paths of the task that were changed by later commits.
    pub later: Vec<String>,
    /// It changes something of what the task is about; nothing is known about that without paths.
    pub touches: Option<bool>,
    pub target: Option<String>,
    pub landed: bool,
}

/// Evidence that is not there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "missing", rename_all = "snake_case")]
pub enum Missing {
    /// There is no such commit.
    Commit {
        named: Option<String>,
    },
    Uncommitted {
        paths: Vec<String>,
    },
    /// The commit changes nothing of the task's.
    Elsewhere {
        commit: String,
    },
    /// Later commits changed the task's paths.
    Superseded {
        commit: String,
        paths: Vec<String>,
    },
    Check {
        name: String,
        why: Unchecked,
    },
    Review {
        commit: Option<String>,
    },
    Landed {
        commit: Option<String>,
        target: Option<String>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unchecked {
    NeverRun,
    Failed {
        exit: u8,
    },
    /// It passed, and the tree was changed since.
    ChangedSince,
    /// The tree was changed while it ran.
    ChangedMeanwhile,
}

/// Has a reviewer approved that very commit, and nobody rejected it?
pub fn approved(task: &Task, commit: &str) -> bool {
    task.submission.as_ref().is_some_and(|one| one.is_at(commit) && one.is_approved())
}

/// Everything that is missing, in the order in which it is mended.
pub fn missing(rules: &Rules, task: &Task, dossier: &Dossier, facts: &Facts) -> Vec<Missing> {
    let mut missing = Vec::new();
    let commit = facts.commit.as_ref().map(|facts| facts.commit.clone());
    if rules.requires(Proof::Commit) {
        missing.extend(uncommitted(facts));
    }
    if rules.requires(Proof::Check) {
        missing.extend(unchecked(rules, dossier, facts));
    }
    let reviewed = commit.as_deref().is_some_and(|commit| approved(task, commit));
    if rules.requires(Proof::Review) && !reviewed {
        missing.push(Missing::Review { commit: commit.clone() });
    }
    let landed = facts.commit.as_ref().is_some_and(|facts| facts.landed);
    if rules.requires(Proof::Landed) && !landed {
        let target = facts.commit.as_ref().and_then(|facts| facts.target.clone());
        missing.push(Missing::Landed { commit, target: target.or_else(|| rules.target.clone()) });
    }
    missing
}

fn uncommitted(facts: &Facts) -> Vec<Missing> {
    let Some(commit) = &facts.commit else {
        return vec![Missing::Commit { named: facts.named.clone() }];
    };
    let named = |paths: &[String]| paths.iter().take(NAMED_MAX).cloned().collect();
    let mut missing = Vec::new();
    if !commit.dirty.is_empty() {
        missing.push(Missing::Uncommitted { paths: named(&commit.dirty) });
    }
    if commit.touches == Some(false) {
        missing.push(Missing::Elsewhere { commit: commit.commit.clone() });
    }
    if !commit.later.is_empty() {
        let (commit, paths) = (commit.commit.clone(), named(&commit.later));
        missing.push(Missing::Superseded { commit, paths });
    }
    missing
}

fn unchecked(rules: &Rules, dossier: &Dossier, facts: &Facts) -> Vec<Missing> {
    let judge = |run: Option<&CheckRun>| match run {
        None => Some(Unchecked::NeverRun),
        Some(run) if run.exit != 0 => Some(Unchecked::Failed { exit: run.exit }),
        Some(CheckRun { snapshot: None, .. }) => Some(Unchecked::ChangedMeanwhile),
        Some(run) if run.snapshot != facts.snapshot => Some(Unchecked::ChangedSince),
        Some(_) => None,
    };
    let needed = rules.needed();
    if needed.is_empty() {
        let last = dossier.checks.iter().max_by_key(|run| run.at);
        let passed = dossier.checks.iter().any(|run| judge(Some(run)).is_none());
        let name = last.map_or(UNNAMED, |run| run.name.as_str()).to_owned();
        let why = judge(last).filter(|_| !passed);
        return why.map(|why| Missing::Check { name, why }).into_iter().collect();
    }
    let mut missing = Vec::new();
    for name in needed {
        // What the policy names must have been run as the policy says now.
        let same = |run: &&CheckRun| {
            run.name == name && rules.check(name).is_none_or(|check| check.run == run.argv)
        };
        let why = judge(dossier.checks.iter().find(same));
        missing.extend(why.map(|why| Missing::Check { name: name.to_owned(), why }));
    }
    missing
}

/// What `done` adds to its events, or the refusal that names everything that is missing.
pub(super) fn shown(
    view: &dyn View,
    table: &Table,
    facts: &Facts,
    context: &Context,
) -> Result<Option<Event>, Refusal> {
    let policy = policy::in_force(view)?;
    let rules = policy.map(|policy| policy.evidence).unwrap_or_default();
    let missing = missing(&rules, &table.task, &table.dossier, facts);
    if !missing.is_empty() {
        return Err(Refused::Unproven { task: Brief::from(&table.task), missing }.into());
    }
    if let (Some(named), None) = (&facts.named, &facts.commit) {
        let missing = vec![Missing::Commit { named: Some(named.clone()) }];
        return Err(Refused::Unproven { task: Brief::from(&table.task), missing }.into());
    }
    let commit = facts.commit.as_ref().map(|facts| facts.commit.clone());
    if rules.require.is_empty() && commit.is_none() {
        return Ok(None);
    }
    let (at, snapshot) = (context.now, facts.snapshot.clone());
    let shown = Shown { at, commit, snapshot, required: rules.require };
    Ok(Some(Event::TaskProven { task: table.task.task.clone(), shown }))
}

/// A check that the owner ran, to be kept with the task.
#[derive(Clone, Debug, Serialize)]
pub struct Checked {
    pub task: String,
    pub name: String,
    pub argv: Vec<String>,
    pub exit: u8,
    pub snapshot: Option<String>,
    pub took: Span,
    pub token: Option<Token>,
}

/// May the caller run checks for this task now? Also renews its lease.
pub fn begin(
    view: &dyn View,
    task: &str,
    token: Option<Token>,
    context: &Context,
) -> Result<(Vec<Event>, Moved), Refusal> {
    let table = Table::read(view, task, context)?;
    owned(&table, token, context)?;
    let mut events = Vec::new();
    let notices = table.activity(context, &mut events);
    Ok((events, Moved { notices, ..super::editing::told(&table.task) }))
}

fn owned(table: &Table, token: Option<Token>, context: &Context) -> Result<u32, Refusal> {
    let attempt = table.own("check", token, context)?.attempt;
    match table.task.state() {
        State::Active => Ok(attempt),
        _ => Err(table.wrong_state("check")),
    }
}

/// Keeps the result of a check.
pub fn checked(
    view: &dyn View,
    request: &Checked,
    context: &Context,
) -> Result<(Vec<Event>, Moved), Refusal> {
    word("name of a check", &request.name, NAME_BYTES_MAX)?;
    fits_command(&request.argv)?;
    let table = Table::read(view, &request.task, context)?;
    let attempt = owned(&table, request.token, context)?;
    let by = table.caller.as_ref().ok_or(Refusal::NoSession)?.holder(context);
    let run = CheckRun {
        name: request.name.clone(),
        argv: request.argv.clone(),
        exit: request.exit,
        snapshot: request.snapshot.clone(),
        at: context.now,
        took: request.took,
        by,
        attempt,
    };
    let mut events = vec![Event::TaskChecked { task: table.task.task.clone(), run }];
    let notices = table.activity(context, &mut events);
    Ok((events, Moved { notices, ..super::editing::told(&table.task) }))
}

/// A command that can be kept: not too many words, none too long.
pub fn fits_command(argv: &[String]) -> Result<(), Refusal> {
    if argv.len() > WORDS_MAX {
        return Err(Refused::TooMany { what: "words of a command", max: WORDS_MAX }.into());
    }
    says("command", argv.first().map_or("", String::as_str), WORD_BYTES_MAX)?;
    argv.iter().try_for_each(|one| super::fits("word of a command", Some(one), WORD_BYTES_MAX))
}
