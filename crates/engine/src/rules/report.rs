//! Who was told which rules, and what was done against them: from records and the journal.
//!
//! Owns which events count against what enforces a rule. It accuses nobody: every finding is a
//! place in the journal, in its own words. Only what left an event is seen; a refusal leaves none.

use std::collections::{BTreeMap, BTreeSet};

use baton_core::breach::Door;
use baton_core::context::{Actor, Observed};
use baton_core::deploy::Outcome;
use baton_core::event::Event;
use baton_core::id::{Position, SessionId, TaskId};
use baton_core::landing::Cause;
use baton_core::rules::{Enforcer, Rule};
use baton_core::sessions::{self, Life, Session};
use baton_core::task::Move;
use baton_core::time::Moment;
use baton_core::view::{Query, scan};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::in_force;
use crate::api;
use crate::failure::Failure;
use crate::journal::{Reading, Told};
use crate::workspace::Workspace;

/// How many sessions are looked at.
const SESSIONS_MAX: u32 = 10_000;
/// The newest so many findings of a rule are shown; all are counted.
const EVIDENCE_MAX: usize = 10;
const KINDS: [&str; 5] =
    ["hold_breached", "deploy_ended", "task_moved", "task_proven", "landing_returned"];
const DOORS: &[Enforcer] = &[Enforcer::EditDoor, Enforcer::ShellDoor, Enforcer::GitDoor];

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// The version that counts now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    pub sessions: Vec<Informed>,
    pub rules: Vec<Findings>,
}

/// What a session was told. Of those that ended, only those that were told anything.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Informed {
    pub session: SessionId,
    pub name: String,
    pub live: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Moment>,
    /// That is the version that counts now.
    pub current: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Findings {
    pub number: u32,
    pub title: String,
    pub count: usize,
    /// The newest of them, newest last.
    pub evidence: Vec<Evidence>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// Its place in the journal.
    pub position: Position,
    pub at: Moment,
    /// Who did it, as far as the journal knows.
    pub who: String,
    pub what: String,
}

pub fn report(workspace: &mut Workspace, wanted: &api::RulesReport) -> Result<Report, Failure> {
    let current = in_force(workspace)?;
    let version = current.as_ref().map(|rules| rules.version.clone());
    let rules = current.map(|rules| rules.rules.rules).unwrap_or_default();
    let sessions = informed(workspace, version.as_deref())?;
    let findings = findings(workspace, wanted)?;
    let rules = rules.iter().map(|rule| of_rule(rule, &findings)).collect();
    Ok(Report { version, sessions, rules })
}

fn informed(workspace: &mut Workspace, current: Option<&str>) -> Result<Vec<Informed>, Failure> {
    let found: Vec<Session> =
        workspace.look(&Actor::default(), Observed::default(), |view, _| {
            let mut all = Vec::new();
            for life in ["ended", "live"] {
                let query = Query::equal(sessions::BY_LIFE, life, SESSIONS_MAX);
                all.extend(scan::<Session>(view, query)?);
            }
            Ok(all)
        })?;
    let mut informed: Vec<Informed> = found
        .into_iter()
        .filter(|session| session.life == Life::Live || session.rules.is_some())
        .map(|session| {
            let (version, at) = match session.rules {
                Some(seen) => (Some(seen.version), Some(seen.at)),
                None => (None, None),
            };
            let current = current.is_some() && version.as_deref() == current;
            let live = session.life == Life::Live;
            Informed { session: session.session, name: session.name, live, version, at, current }
        })
        .collect();
    informed.sort_by(|one, two| (one.at, &one.session).cmp(&(two.at, &two.session)));
    Ok(informed)
}

/// Something in the journal, and what it counts against.
struct Finding {
    against: &'static [Enforcer],
    evidence: Evidence,
}

fn of_rule(rule: &Rule, findings: &[Finding]) -> Findings {
    let counts = |finding: &&Finding| {
        finding.against.iter().any(|enforcer| rule.enforced_by.contains(enforcer))
    };
    let mut evidence: Vec<Evidence> =
        findings.iter().filter(counts).map(|finding| finding.evidence.clone()).collect();
    let count = evidence.len();
    evidence.drain(..count.saturating_sub(EVIDENCE_MAX));
    Findings { number: rule.number, title: rule.title.clone(), count, evidence }
}

fn findings(workspace: &mut Workspace, wanted: &api::RulesReport) -> Result<Vec<Finding>, Failure> {
    let journal = api::Journal {
        since: Some(wanted.since.clone()),
        kind: KINDS.map(str::to_owned).to_vec(),
        ..api::Journal::default()
    };
    let root = workspace.place.root.clone();
    let mut reading = Reading::begin(workspace, &root, &journal, false)?;
    let mut found = Vec::new();
    let mut proven: BTreeSet<TaskId> = BTreeSet::new();
    let mut done: BTreeMap<TaskId, Finding> = BTreeMap::new();
    while let Some(page) = reading.next(workspace)? {
        for told in page {
            match &told.event {
                Ok(Event::TaskProven { task, .. }) => {
                    proven.insert(task.clone());
                }
                Ok(Event::TaskMoved { task, how: Move::Done, .. }) => {
                    let what = format!("{task} was called done, and nothing was shown for it");
                    done.insert(task.clone(), finding(&told, &[Enforcer::Done], what, None));
                }
                Ok(event) => found.extend(judge(&told, event)),
                Err(_) => {}
            }
        }
    }
    let unproven = done.into_iter().filter(|(task, _)| !proven.contains(task));
    found.extend(unproven.map(|(_, finding)| finding));
    found.sort_by_key(|finding| finding.evidence.position);
    Ok(found)
}

fn finding(told: &Told, against: &'static [Enforcer], what: String, who: Option<&str>) -> Finding {
    let actor = SessionId(told.entry.actor.clone());
    let who = who.unwrap_or_else(|| told.name(&actor)).to_owned();
    let evidence = Evidence { position: told.entry.position, at: told.entry.at, who, what };
    Finding { against, evidence }
}

fn judge(told: &Told, event: &Event) -> Option<Finding> {
    match event {
        Event::HoldBreached { breach } => {
            let door = match breach.door {
                Door::Shell => "its shell",
                Door::Git => "git",
            };
            let (resource, holder) = (&breach.resource, &breach.holder.name);
            let what = format!("changed {resource} by {door}, which {holder} held");
            Some(finding(told, DOORS, what, Some(&breach.by.name)))
        }
        Event::DeployEnded { deploy, end }
            if matches!(end.outcome, Outcome::Failed | Outcome::Unknown) =>
        {
            let what = format!("deploy {deploy} ended {}", end.outcome.name());
            Some(finding(told, &[Enforcer::Deploy], what, None))
        }
        Event::LandingReturned { landing, cause, reason, .. } => {
            let against: &'static [Enforcer] = match cause {
                Cause::Check => &[Enforcer::Done, Enforcer::Landing],
                Cause::Claims => {
                    &[Enforcer::EditDoor, Enforcer::ShellDoor, Enforcer::GitDoor, Enforcer::Landing]
                }
                Cause::Undo => &[Enforcer::Landing],
                _ => return None,
            };
            Some(finding(told, against, format!("{landing} was returned: {reason}"), None))
        }
        _ => None,
    }
}
