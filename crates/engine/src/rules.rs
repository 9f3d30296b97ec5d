//! The rules of the project in an open workspace: which text counts, and what holds it up.
//!
//! Owns where the text is read: at the tip of the branch where work lands, so that a change reaches
//! every session whatever tree it is in; the file of a working tree counts only where the branch
//! has none, and that is said. The format is in `baton_core::rules`, the past in `report`.

use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use baton_core::context::{Actor, Observed};
use baton_core::notes::{self, Note};
use baton_core::rules::{self, Enforcer, Fault, Rule, Rules};
use baton_core::zones::Policy;
use rustix::fs::OFlags;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::git::{Git, Oid};
use crate::policy;
use crate::wiring::git_hooks::Standing;
use crate::wiring::{self, Ground, Inspection};
use crate::workspace::Workspace;

pub mod report;

/// Lessons shown with each rule.
const LESSONS_MAX: u32 = 5;

/// Where the text was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "from", rename_all = "snake_case")]
pub enum Source {
    /// The tip of the branch where work lands.
    Target { branch: String, tip: String },
    /// That branch has no such file, or there is no branch: the file of a working tree.
    WorkingTree,
}

/// The rules that count now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InForce {
    /// The same words have the same version, wherever they are committed.
    pub version: String,
    pub source: Source,
    /// What it says, and which of its lines are not as they should be.
    #[serde(flatten)]
    pub rules: Rules,
}

/// The rules that count now; nothing when nobody has written any.
pub fn in_force(workspace: &mut Workspace) -> Result<Option<InForce>, Failure> {
    let policy = policy::in_force(workspace)?.unwrap_or_default();
    let at_target = match &workspace.place.git {
        Some(_) => target_text(&Git::in_tree(&workspace.place.root)?, &policy)?,
        None => None,
    };
    let found = match at_target {
        Some(found) => Some(found),
        None => working_text(workspace)?.map(|text| (text, Source::WorkingTree)),
    };
    Ok(found.map(|(text, source)| InForce {
        version: rules::version(&text),
        source,
        rules: rules::parse(&text),
    }))
}

fn target_text(git: &Git, policy: &Policy) -> Result<Option<(String, Source)>, Failure> {
    let Some((branch, tips)) = git.target(policy.evidence.target.as_deref())? else {
        return Ok(None);
    };
    let Some(tip) = newest(git, &tips)? else { return Ok(None) };
    let Some(bytes) = git.file_at(tip, rules::FILE)? else { return Ok(None) };
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Ok(Some((text, Source::Target { branch, tip: tip.to_string() })))
}

/// The branch here and as its origin has it: what contains the other. Where each has commits of its
/// own, what others can see counts.
fn newest<'a>(git: &Git, tips: &'a [Oid]) -> Result<Option<&'a Oid>, Failure> {
    match tips {
        [here, origin] if here != origin && git.is_ancestor(origin, here)? => Ok(Some(here)),
        tips => Ok(tips.last()),
    }
}

/// The file of this tree, else of the repository's main one: a personal file is in no other.
fn working_text(workspace: &Workspace) -> Result<Option<String>, Failure> {
    let place = &workspace.place;
    let main = place.git.as_ref().and_then(|git| git.common_dir.parent().map(Path::to_owned));
    for root in [Some(place.root.clone()), main].into_iter().flatten() {
        if let Some(text) = plain_file(&root.join(rules::FILE))? {
            return Ok(Some(text));
        }
    }
    Ok(None)
}

/// A plain file's text, never a link's. One that is too large is cut, and refused as such.
fn plain_file(path: &PathBuf) -> Result<Option<String>, Failure> {
    if !std::fs::symlink_metadata(path).is_ok_and(|found| found.is_file()) {
        return Ok(None);
    }
    let failed = |source| Failure::File { doing: "cannot read", path: path.clone(), source };
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file = std::fs::OpenOptions::new().read(true).custom_flags(flags).open(path);
    let mut bytes = Vec::new();
    let limit = rules::FILE_BYTES_MAX as u64 + 1;
    file.map_err(failed)?.take(limit).read_to_end(&mut bytes).map_err(failed)?;
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

/// The rules with what belongs to them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Shown {
    #[serde(flatten)]
    pub in_force: InForce,
    /// The commit that brought this text to the branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// What stands in this tree instead, and counts once it has landed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub here: Option<Here>,
    /// What was learnt about them, by `note lesson --rule N`; the newest of each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lessons: Vec<Note>,
}

/// The rules as somebody is writing them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Here {
    pub version: String,
    /// Every line that is not as it should be.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<Fault>,
}

fn here(workspace: &Workspace, in_force: &InForce) -> Result<Option<Here>, Failure> {
    let text = plain_file(&workspace.place.root.join(rules::FILE))?;
    let here = text
        .map(|text| Here { version: rules::version(&text), faults: rules::parse(&text).faults });
    Ok(here.filter(|here| here.version != in_force.version))
}

pub fn show(workspace: &mut Workspace) -> Result<Option<Shown>, Failure> {
    let Some(in_force) = in_force(workspace)? else { return Ok(None) };
    let since = match &in_force.source {
        Source::Target { tip, .. } => {
            Git::in_tree(&workspace.place.root)?.last_change(tip, rules::FILE)?
        }
        Source::WorkingTree => None,
    };
    let numbers: Vec<u32> = in_force.rules.rules.iter().map(|rule| rule.number).collect();
    let lessons = workspace.look(&Actor::default(), Observed::default(), |view, _| {
        let mut found = Vec::new();
        for rule in numbers {
            let wanted =
                notes::Wanted { rule: Some(rule), limit: LESSONS_MAX, ..Default::default() };
            found.extend(notes::list(view, &wanted)?.notes);
        }
        Ok(found)
    })?;
    let since = since.map(|since| since.to_string());
    let here = here(workspace, &in_force)?;
    Ok(Some(Shown { in_force, since, here, lessons }))
}

/// Whether something that a rule names is really on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Held {
    pub by: Enforcer,
    pub on: bool,
    /// Why not, or how.
    pub why: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CheckedRule {
    pub number: u32,
    pub title: String,
    pub held: Vec<Held>,
    /// It says of itself that it may be advice, or names nothing that is known.
    pub advice: bool,
    /// It claims an enforcement that is off.
    pub hollow: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Checked {
    pub version: String,
    pub source: Source,
    /// Every line that is not as it should be.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<Fault>,
    pub rules: Vec<CheckedRule>,
    /// Numbers that wait for a rule.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub free: Vec<u32>,
    /// Every line is as it should be, and no rule claims more than there is.
    pub sound: bool,
}

/// Judges the rules: can they be read, and is what they name really on?
pub fn check(workspace: &mut Workspace) -> Result<Option<Checked>, Failure> {
    let Some(InForce { version, source, rules }) = in_force(workspace)? else {
        return Ok(None);
    };
    let policy = policy::in_force(workspace)?.unwrap_or_default();
    let inspection = wiring::examine(&Ground::of(&workspace.place), &workspace.place)?;
    let judged: Vec<CheckedRule> =
        rules.rules.iter().map(|rule| judge(rule, &policy, &inspection)).collect();
    let Rules { faults, free, .. } = rules;
    let sound = faults.is_empty() && judged.iter().all(|rule| !rule.hollow);
    Ok(Some(Checked { version, source, faults, rules: judged, free, sound }))
}

fn judge(rule: &Rule, policy: &Policy, inspection: &Inspection) -> CheckedRule {
    let held: Vec<Held> = rule
        .enforced_by
        .iter()
        .map(|by| {
            let (on, why) = match state(*by, policy, inspection) {
                Ok(how) => (true, how),
                Err(why) => (false, why),
            };
            Held { by: *by, on, why }
        })
        .collect();
    let hollow = !rule.advice && held.iter().any(|held| !held.on);
    let (number, title) = (rule.number, rule.title.clone());
    CheckedRule { number, title, held, advice: rule.advice, hollow }
}

/// How it is on, or why it is not.
fn state(by: Enforcer, policy: &Policy, inspection: &Inspection) -> Result<String, String> {
    let configured = |is: bool, what: &str| match is {
        true => Ok(format!("{what} in baton.toml")),
        false => Err(format!("no {what} in the policy in force")),
    };
    match by {
        Enforcer::EditDoor | Enforcer::ShellDoor | Enforcer::StartHook | Enforcer::Checkpoints => {
            hooks(inspection)
        }
        Enforcer::GitDoor => match &inspection.git {
            _ if inspection.git_guards() => Ok("git's hooks".to_owned()),
            Some(Standing::Missing) => Err("git's hooks are not installed".to_owned()),
            Some(_) => Err("git's hooks do not reach Baton".to_owned()),
            None => Err("there is no git here".to_owned()),
        },
        Enforcer::Done => configured(!policy.evidence.require.is_empty(), "[done] require"),
        Enforcer::Landing => configured(!policy.evidence.named.is_empty(), "check"),
        Enforcer::Deploy => configured(!policy.deploys.is_empty(), "[deploy.TARGET]"),
        Enforcer::Zones => configured(!policy.zones.is_empty(), "[[zone]]"),
        Enforcer::Roles => Ok("built in".to_owned()),
    }
}

/// The doors of clients: on when there is one, and none in use is without.
fn hooks(inspection: &Inspection) -> Result<String, String> {
    let used = || inspection.doors.iter().filter(|doors| doors.in_use);
    let names = |guarded: bool| {
        let found = used().filter(|doors| doors.guard().is_ok() == guarded);
        found.map(|doors| doors.client.name()).collect::<Vec<_>>().join(", ")
    };
    let without = names(false);
    match (without.is_empty(), names(true)) {
        (false, _) => Err(format!("{without} works here without hooks that guard")),
        (true, on) if on.is_empty() => Err("no client is wired".to_owned()),
        (true, on) => Ok(format!("hooks of {on}")),
    }
}
