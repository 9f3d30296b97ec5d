//! Who was told which rules, and what was done against them: from records and the journal.
//!
//! Owns which events count against what enforces a rule. It accuses nobody: every finding is a
//! place in the journal, in its own words. Who was kept from an edit because another has the file
//! did nothing against a rule, and is told apart from those who did.

use std::collections::{BTreeMap, BTreeSet};

use baton_core::breach::Door;
use baton_core::context::{Actor, Observed};
use baton_core::denials::{Deed, Denial, Why};
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
use crate::denying;
use crate::failure::Failure;
use crate::journal::{Reading, Told};
use crate::workspace::Workspace;

/// How many sessions are looked at.
const SESSIONS_MAX: u32 = 10_000;
/// The newest so many findings of a rule are shown; all are counted.
const EVIDENCE_MAX: usize = 10;
const KINDS: [&str; 6] = [
    "hold_breached",
    "deed_refused",
    "deploy_ended",
    "task_moved",
    "task_proven",
    "landing_returned",
];
const DOORS: &[Enforcer] = &[Enforcer::EditDoor, Enforcer::ShellDoor, Enforcer::GitDoor];
const CLAIMS_AT_LANDING: &[Enforcer] =
    &[Enforcer::EditDoor, Enforcer::ShellDoor, Enforcer::GitDoor, Enforcer::Landing];

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// The version that counts now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    pub sessions: Vec<Informed>,
    pub rules: Vec<Findings>,
    /// What was refused, or done, where no rule names what enforces it.
    #[serde(default, skip_serializing_if = "Found::is_empty")]
    pub without_rule: Found,
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
    #[serde(flatten)]
    pub found: Found,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Found {
    pub count: usize,
    /// So many of them were refused: nothing was done.
    #[serde(default)]
    pub refused: usize,
    /// Whose they are, the most first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by: Vec<Tally>,
    /// The newest of them, newest last.
    pub evidence: Vec<Evidence>,
    /// Who was kept from changing what another has; that is the protocol at work, and not counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub turned_away: Vec<Tally>,
}

/// How often it was somebody.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Tally {
    pub who: String,
    pub count: usize,
    /// The last time.
    pub last: Evidence,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// Its place in the journal.
    pub position: Position,
    pub at: Moment,
    /// Who did it, as far as the journal knows.
    pub who: String,
    pub what: String,
    /// It was refused: nothing was done.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub refused: bool,
}

pub fn report(workspace: &mut Workspace, wanted: &api::RulesReport) -> Result<Report, Failure> {
    let current = in_force(workspace)?;
    let version = current.as_ref().map(|rules| rules.version.clone());
    let rules = current.map(|rules| rules.rules.rules).unwrap_or_default();
    let sessions = informed(workspace, version.as_deref())?;
    let findings = findings(workspace, wanted)?;
    let named = |finding: &&Finding| rules.iter().any(|rule| finding.is_against(rule));
    let without_rule = Found::of(findings.iter().filter(|finding| !named(finding)));
    let rules = rules.iter().map(|rule| of_rule(rule, &findings)).collect();
    Ok(Report { version, sessions, rules, without_rule })
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
    /// Whoever it was did nothing against a rule.
    turned_away: bool,
    evidence: Evidence,
}

impl Finding {
    fn is_against(&self, rule: &Rule) -> bool {
        self.against.iter().any(|enforcer| rule.enforced_by.contains(enforcer))
    }
}

fn of_rule(rule: &Rule, findings: &[Finding]) -> Findings {
    let found = Found::of(findings.iter().filter(|finding| finding.is_against(rule)));
    Findings { number: rule.number, title: rule.title.clone(), found }
}

impl Found {
    pub fn is_empty(&self) -> bool {
        self.count == 0 && self.turned_away.is_empty()
    }

    /// Of findings in the order of the journal.
    fn of<'a>(findings: impl Iterator<Item = &'a Finding>) -> Self {
        let (away, counted): (Vec<&Finding>, Vec<&Finding>) =
            findings.partition(|finding| finding.turned_away);
        let count = counted.len();
        let shown = &counted[count.saturating_sub(EVIDENCE_MAX)..];
        Self {
            count,
            refused: counted.iter().filter(|finding| finding.evidence.refused).count(),
            by: tallied(&counted),
            evidence: shown.iter().map(|finding| finding.evidence.clone()).collect(),
            turned_away: tallied(&away),
        }
    }
}

fn tallied(findings: &[&Finding]) -> Vec<Tally> {
    let mut tallies: BTreeMap<&str, Tally> = BTreeMap::new();
    for Finding { evidence, .. } in findings {
        let tally = tallies.entry(&evidence.who).or_insert_with(|| Tally {
            who: evidence.who.clone(),
            count: 0,
            last: evidence.clone(),
        });
        tally.count += 1;
        tally.last = evidence.clone();
    }
    let mut tallies: Vec<Tally> = tallies.into_values().collect();
    tallies.sort_by(|one, two| two.count.cmp(&one.count).then_with(|| one.who.cmp(&two.who)));
    tallies
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
    let (position, at) = (told.entry.position, told.entry.at);
    let evidence = Evidence { position, at, who, what, refused: false };
    Finding { against, turned_away: false, evidence }
}

/// What a refused deed counts against: what refused it.
fn of_denial(told: &Told, denial: &Denial) -> Finding {
    let against: &'static [Enforcer] = match (denial.deed, denial.why) {
        (_, Why::Role) => &[Enforcer::Roles],
        (_, Why::AppendOnly) => &[Enforcer::Zones],
        (Deed::Edit, Why::ClaimFirst | Why::NeedsPerson) => &[Enforcer::EditDoor, Enforcer::Zones],
        (Deed::Shell, Why::ClaimFirst | Why::NeedsPerson) => {
            &[Enforcer::ShellDoor, Enforcer::Zones]
        }
        (Deed::Shell, Why::ByHand) => &[Enforcer::ShellDoor, Enforcer::Deploy],
        (Deed::Edit | Deed::Claim, _) => &[Enforcer::EditDoor],
        (Deed::Shell, _) => &[Enforcer::ShellDoor],
        (Deed::Commit, _) => &[Enforcer::GitDoor],
        (Deed::Land, _) => CLAIMS_AT_LANDING,
        (Deed::Deploy, _) => &[Enforcer::Deploy],
        (Deed::Done, _) => &[Enforcer::Done],
    };
    // It asked by its edit, as it may, and was told. One that commits or lands has changed it.
    let asked = matches!(denial.deed, Deed::Edit | Deed::Shell);
    let turned_away = asked && !denial.done && matches!(denial.why, Why::Held | Why::Stale);
    let mut finding = finding(told, against, denying::in_words(denial), Some(&denial.by.name));
    finding.evidence.refused = !denial.done;
    Finding { turned_away, ..finding }
}

fn judge(told: &Told, event: &Event) -> Option<Finding> {
    match event {
        // What nobody knows is held against nobody.
        Event::HoldBreached { breach } if !breach.unsure => {
            let door = match breach.door {
                Door::Shell => "its shell",
                Door::Git => "git",
            };
            let (resource, holder) = (&breach.resource, &breach.holder.name);
            let what = format!("changed {resource} by {door}, which {holder} held");
            Some(finding(told, DOORS, what, Some(&breach.by.name)))
        }
        Event::DeedRefused { denial } => Some(of_denial(told, denial)),
        Event::DeployEnded { deploy, end }
            if matches!(end.outcome, Outcome::Failed | Outcome::Unknown) =>
        {
            let what = format!("deploy {deploy} ended {}", end.outcome.name());
            Some(finding(told, &[Enforcer::Deploy], what, None))
        }
        Event::LandingReturned { landing, cause, reason, .. } => {
            let against: &'static [Enforcer] = match cause {
                Cause::Check => &[Enforcer::Done, Enforcer::Landing],
                Cause::Claims => CLAIMS_AT_LANDING,
                Cause::Undo => &[Enforcer::Landing],
                _ => return None,
            };
            Some(finding(told, against, format!("{landing} was returned: {reason}"), None))
        }
        _ => None,
    }
}
