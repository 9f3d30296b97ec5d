//! The verdict on paths, as an edit would meet it.
//!
//! Owns what surrounds the rule: which paths are ours to judge, and a look at whoever is in the way
//! before "no" is said, so that a dead holder never denies an edit. Takes nothing.

use std::path::{Path, PathBuf};

use baton_core::check::{self, Because, Checked, Finding, Verdict};
use baton_core::context::{Actor, Life, Observed};
use baton_core::id::{SessionId, Token};
use baton_core::notices::Notice;
use baton_core::refusal::{Held, Refusal};
use baton_core::resource::Resource;
use baton_core::sessions::Session;
use baton_core::view::get;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api;
use crate::claiming::LOOKS_MAX;
use crate::failure::Failure;
use crate::place::identity;
use crate::resources::{Meant, meant};
use crate::sighting::{clear_of_the_gone, clear_the_way, foreign_locks, life_of, of_claims};
use crate::workspace::Workspace;

/// The verdict on all paths is the strictest of theirs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Verdicts {
    pub verdict: Verdict,
    pub findings: Vec<Finding>,
    /// Paths that no claim can be about: outside the workspace, or git's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_claimable: Vec<NotClaimable>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<Notice>,
    /// A sign of life is due.
    #[serde(skip)]
    pub due: bool,
    /// Roots of other trees that are meant too, and are not judged here.
    #[serde(skip)]
    pub elsewhere: Vec<PathBuf>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NotClaimable {
    pub path: String,
    pub verdict: Verdict,
    pub because: Because,
}

/// Judges each path in the tree it lies in.
pub fn check(
    workspace: &mut Workspace,
    actor: &Actor,
    cwd: &Path,
    wanted: &api::Check,
) -> Result<Verdicts, Failure> {
    let Here { mut verdicts, mut unknown } = check_here(workspace, actor, cwd, wanted)?;
    for root in std::mem::take(&mut verdicts.elsewhere) {
        let there =
            |workspace: &mut Workspace, actor: &Actor| check_here(workspace, actor, cwd, wanted);
        match workspace.within(&root, actor, there) {
            Ok(Here { verdicts: there, .. }) => {
                verdicts.verdict = verdicts.verdict.max(there.verdict);
                verdicts.findings.extend(there.findings);
            }
            Err(failure) => unknown = unknown.or(Some(failure)),
        }
    }
    unless_unknown(verdicts.verdict, unknown)?;
    Ok(verdicts)
}

/// What was judged in one tree, and why not all of it could be: the first reason.
#[derive(Debug)]
pub(crate) struct Here {
    pub(crate) verdicts: Verdicts,
    pub(crate) unknown: Option<Failure>,
}

/// What cannot be told of one path takes nothing from "no" to another; it is the answer where
/// there would be a "yes" (S11).
pub(crate) fn unless_unknown(verdict: Verdict, unknown: Option<Failure>) -> Result<(), Failure> {
    match unknown {
        Some(failure) if verdict < Verdict::Ask => Err(failure),
        _ => Ok(()),
    }
}

/// Judges what lies in this tree; other trees that are meant are only named.
pub(crate) fn check_here(
    workspace: &mut Workspace,
    actor: &Actor,
    cwd: &Path,
    wanted: &api::Check,
) -> Result<Here, Failure> {
    let mut all = Meant::default();
    let mut not_claimable = Vec::new();
    let mut unknown = None;
    for path in &wanted.paths {
        let (verdict, because) = match meant(&workspace.place, cwd, path) {
            Ok(found) => {
                all.add(found);
                continue;
            }
            // An edit outside the workspace is none of our business; one of git's folder is.
            Err(Failure::Path(identity::Error::Outside { .. })) => {
                (Verdict::Allow, Because::Unjudged)
            }
            Err(Failure::Path(identity::Error::GitDir { .. })) => (Verdict::Deny, Because::GitDir),
            Err(other @ (Failure::Path(_) | Failure::Refused(_))) => {
                unknown = unknown.or(Some(other));
                continue;
            }
            Err(other) => return Err(other),
        };
        not_claimable.push(NotClaimable { path: path.clone(), verdict, because });
    }
    let Meant { here: resources, elsewhere } = all;
    let checked = match resources.is_empty() {
        true => Checked {
            verdict: Verdict::Allow,
            findings: Vec::new(),
            notices: Vec::new(),
            due: true,
        },
        false => judge(workspace, actor, &resources, wanted.token)?,
    };
    let strictest = not_claimable.iter().map(|path| path.verdict).max();
    let verdicts = Verdicts {
        verdict: checked.verdict.max(strictest.unwrap_or(Verdict::Allow)),
        findings: checked.findings,
        not_claimable,
        notices: checked.notices,
        due: checked.due,
        elsewhere,
    };
    Ok(Here { verdicts, unknown })
}

/// Asks the rule once and writes nothing, not even that somebody is gone: for moments in which git
/// holds its own locks. Whoever is visibly dead stands in nobody's way.
pub(crate) fn glance(
    workspace: &mut Workspace,
    actor: &Actor,
    resources: &[Resource],
) -> Result<Checked, Failure> {
    let locks = foreign_locks(workspace, resources);
    let observed = Observed { foreign_locks: locks, complete: true, ..Observed::default() };
    let mut checked = workspace
        .look(actor, observed, |view, context| check::check(view, resources, None, context))?;
    for finding in &mut checked.findings {
        let mut living = Vec::with_capacity(finding.held.len());
        for held in std::mem::take(&mut finding.held) {
            if !is_dead(workspace, &held.holder.session)? {
                living.push(held);
            }
        }
        finding.held = living;
    }
    checked.findings.retain(|finding| finding.because != Because::Held || !finding.held.is_empty());
    Ok(checked)
}

fn is_dead(workspace: &mut Workspace, session: &SessionId) -> Result<bool, Failure> {
    let found: Option<Session> =
        workspace.look(&Actor::default(), Observed::default(), |view, _| {
            Ok(get(view, session.as_str())?)
        })?;
    let process = found.and_then(|session| session.process);
    Ok(process.is_some_and(|process| life_of(&workspace.machine, &process) == Life::Dead))
}

/// Asks the rule, and looks around as long as that may turn a denial.
pub fn judge(
    workspace: &mut Workspace,
    actor: &Actor,
    resources: &[Resource],
    token: Option<Token>,
) -> Result<Checked, Failure> {
    judge_clearing(workspace, actor, resources, token, clear_the_way)
}

/// As things were held until now, for what is done already: files that are clean may have been
/// made so by whoever is judged, and their claims count.
pub(crate) fn judge_done(
    workspace: &mut Workspace,
    actor: &Actor,
    resources: &[Resource],
) -> Result<Checked, Failure> {
    judge_clearing(workspace, actor, resources, None, clear_of_the_gone)
}

/// Takes out of the way what need not be there; true where asking again may help.
type Clear = fn(&mut Workspace, &[Held], &mut Observed) -> Result<bool, Failure>;

fn judge_clearing(
    workspace: &mut Workspace,
    actor: &Actor,
    resources: &[Resource],
    token: Option<Token>,
    clear: Clear,
) -> Result<Checked, Failure> {
    let mut observed =
        Observed { foreign_locks: foreign_locks(workspace, resources), ..Observed::default() };
    for look in 1.. {
        observed.complete = look > LOOKS_MAX;
        let answer = workspace.look(actor, observed.clone(), |view, context| {
            check::check(view, resources, token, context)
        });
        let checked = match answer {
            Err(Failure::Refused(Refusal::Unobserved { claims })) => {
                of_claims(workspace, &claims, &mut observed)?;
                continue;
            }
            other => other?,
        };
        let in_the_way: Vec<Held> = checked
            .findings
            .iter()
            .filter(|finding| finding.because == Because::Held)
            .flat_map(|finding| finding.held.iter().cloned())
            .collect();
        let again = !in_the_way.is_empty()
            && look <= LOOKS_MAX
            && clear(workspace, &in_the_way, &mut observed)?;
        if !again {
            return Ok(checked);
        }
    }
    Err(Refusal::Empty.into())
}
