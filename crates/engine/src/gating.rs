//! Gates in an open workspace: filing, deciding, listing, and Baton's own looks.
//!
//! Owns what surrounds the rules of `baton_core::gates`: commits are found by git, files and
//! commands are looked at before a rule is asked. A command runs outside every lock, for a bounded
//! time, and only when a person stands for it.

use std::path::Path;
use std::time::Duration;

use baton_core::context::{Actor, Observed};
use baton_core::gate::{self, Check, Gate, Kind};
use baton_core::gates::checking::{self, Look, Looked};
use baton_core::gates::deciding::{self, Decided, Trusted};
use baton_core::gates::{self, Added};
use baton_core::id::TaskId;
use baton_core::refusal::Refusal;
use baton_core::task::dossier::{Dossier, Feedback};
use baton_core::tasks::refused::Refused;
use baton_core::time::Moment;
use baton_core::view::{get, scan};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::gates as api;
use crate::api::span;
use crate::errand;
use crate::failure::Failure;
use crate::git::Git;
use crate::journal::{Since, since};
use crate::place::identity::{self, resolve};
use crate::sandbox;
use crate::tasking::{left_by_task, retry_of};
use crate::workspace::Workspace;

/// How long the command of a gate may take when somebody asked for it.
const ASKED_FOR_MAX: Duration = Duration::from_secs(60);
/// And when it is looked at in passing.
const IN_PASSING_MAX: Duration = Duration::from_secs(20);
/// How many gates are looked at in passing.
const LOOKS_MAX: u32 = 16;
const LISTED_MAX: u32 = 1_000;

pub fn add(
    workspace: &mut Workspace,
    actor: &Actor,
    cwd: &Path,
    wanted: &api::Add,
    operation: Option<&str>,
) -> Result<Added, Failure> {
    let commit = match &wanted.at {
        Some(name) => Some(commit(workspace, name)?),
        None => None,
    };
    let request = gates::Add {
        on: wanted.on.clone(),
        kind: wanted.kind,
        ask: wanted.ask.clone(),
        options: wanted.options.clone(),
        commit,
        check: check_of(workspace, cwd, wanted)?,
    };
    // A task that its owner lets a gate hold gives up what was claimed for it.
    let observed = left_by_task(workspace, &wanted.on)?;
    let retry = retry_of(operation, "gate add", wanted);
    workspace.decide_once(
        actor,
        observed,
        retry.as_ref(),
        |_| true,
        |view, context| gates::add(view, &request, context),
    )
}

/// The commit that a name means, in full.
pub(crate) fn commit(workspace: &Workspace, name: &str) -> Result<String, Failure> {
    let found = match name.contains(|c: char| c.is_control()) {
        true => None,
        false => Git::in_tree(&workspace.place.root)?.commit_named(name)?,
    };
    let named = || Refused::NoCommit { commit: name.chars().take(80).collect() };
    Ok(found.map(|oid| oid.as_str().to_owned()).ok_or_else(|| Refusal::from(named()))?)
}

/// What Baton is to look at. Each kind needs its own word, and no other.
fn check_of(
    workspace: &mut Workspace,
    cwd: &Path,
    wanted: &api::Add,
) -> Result<Option<Check>, Failure> {
    let misplaced = |what: &'static str, allowed: &str| {
        let (given, allowed) = (wanted.kind.name().to_owned(), allowed.to_owned());
        Failure::from(Refusal::OutOfRange { what, given, allowed })
    };
    let given = [
        (wanted.when.is_some(), Kind::Time, "kind for --when", "time"),
        (wanted.path.is_some(), Kind::File, "kind for --path", "file"),
        (!wanted.command.is_empty(), Kind::Command, "kind for a command after --", "command"),
    ];
    for (is, kind, what, allowed) in given {
        if is && wanted.kind != kind {
            return Err(misplaced(what, allowed));
        }
    }
    let missing = |allowed: &str| misplaced("kind without what it needs", allowed);
    match wanted.kind {
        Kind::Command if wanted.command.is_empty() => Err(missing("--kind command -- COMMAND")),
        Kind::Command => Ok(Some(Check::Command { argv: wanted.command.clone() })),
        Kind::Time => {
            let text = wanted.when.as_ref().ok_or_else(|| missing("--kind time --when TIME"))?;
            Ok(Some(Check::Time { at: moment(workspace, text)? }))
        }
        Kind::File => {
            let path = wanted.path.as_ref().ok_or_else(|| missing("--kind file --path PATH"))?;
            let located = resolve(&workspace.place, cwd, path.as_ref())?;
            // A link's own place comes first; that is what must be there.
            let path = located.first().map(|located| located.path.clone());
            let outside = || identity::Error::Outside { given: path.clone().unwrap_or_default() };
            let path = path.clone().filter(|path| !path.is_empty()).ok_or_else(outside)?;
            Ok(Some(Check::File { path }))
        }
        _ => Ok(None),
    }
}

/// `2h` from now, or a moment.
fn moment(workspace: &mut Workspace, text: &str) -> Result<Moment, Failure> {
    let now = workspace.store.snapshot()?.state().now;
    if let Ok(span) = span(text) {
        return Ok(now + span);
    }
    match since(text) {
        Ok(Since::Time(at)) => Ok(at),
        _ => Err(Refusal::OutOfRange {
            what: "time",
            given: text.chars().take(80).collect(),
            allowed: "2h, 2026-11-15 or 2026-11-15T10:00:00Z".to_owned(),
        }
        .into()),
    }
}

pub fn decide(
    workspace: &mut Workspace,
    actor: &Actor,
    wanted: &api::Decide,
    approves: bool,
    operation: Option<&str>,
) -> Result<Decided, Failure> {
    let request = deciding::Decide {
        gate: wanted.gate.clone(),
        approves,
        why: wanted.why.clone(),
        option: wanted.option.clone(),
        commit: wanted.at.clone(),
    };
    let verb = if approves { "gate approve" } else { "gate deny" };
    let retry = retry_of(operation, verb, wanted);
    workspace.decide_once(
        actor,
        Observed::default(),
        retry.as_ref(),
        |_| true,
        |view, context| deciding::decide(view, &request, context),
    )
}

pub fn trust(
    workspace: &mut Workspace,
    actor: &Actor,
    gate: &str,
    operation: Option<&str>,
) -> Result<Trusted, Failure> {
    let retry = retry_of(operation, "gate trust", &gate);
    workspace.decide_once(
        actor,
        Observed::default(),
        retry.as_ref(),
        |_| true,
        |view, context| deciding::trust(view, gate, context),
    )
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GateList {
    pub gates: Vec<Gate>,
    /// There are more than are listed.
    pub more: bool,
}

/// Open gates, oldest first; with `all` every gate, newest first.
pub fn list(workspace: &mut Workspace, all: bool) -> Result<GateList, Failure> {
    look_by_itself(workspace, None);
    let mut gates = match all {
        false => open(workspace, LISTED_MAX + 1)?,
        true => workspace.look(&Actor::default(), Observed::default(), |view, _| {
            Ok(scan::<Gate>(view, gate::all_of(gate::ALL, LISTED_MAX + 1))?)
        })?,
    };
    let more = gates.len() > LISTED_MAX as usize;
    gates.truncate(LISTED_MAX as usize);
    Ok(GateList { gates, more })
}

pub(crate) fn open(workspace: &mut Workspace, limit: u32) -> Result<Vec<Gate>, Failure> {
    workspace.look(&Actor::default(), Observed::default(), |view, _| {
        Ok(scan::<Gate>(view, gate::all_of(gate::OPEN, limit))?)
    })
}

/// A gate in full, with what was said about its task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ShownGate {
    #[serde(flatten)]
    pub gate: Gate,
    /// Everything that was said against the task it holds, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub feedback: Vec<Feedback>,
}

pub fn show(workspace: &mut Workspace, text: &str) -> Result<ShownGate, Failure> {
    workspace.look(&Actor::default(), Observed::default(), |view, _| {
        let id = baton_core::id::GateId::parse(text).map(|id| id.0).unwrap_or_default();
        let Some(gate) = get::<Gate>(view, &id)? else {
            return Err(gates::unknown(view, text)?);
        };
        let dossier = match &gate.task {
            Some(task) => get::<Dossier>(view, task.as_str())?,
            None => None,
        };
        let feedback = dossier.map(|dossier| dossier.feedback).unwrap_or_default();
        Ok(ShownGate { gate, feedback })
    })
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Checks {
    pub gates: Vec<Looked>,
}

/// Looks at one gate, or at all that Baton may look at.
pub fn check(workspace: &mut Workspace, text: Option<&str>) -> Result<Checks, Failure> {
    let gates = match text {
        Some(text) => workspace.look(&Actor::default(), Observed::default(), |view, _| {
            checking::checkable(view, text).map(|gate| vec![gate])
        })?,
        None => automatic(workspace, None, LISTED_MAX)?,
    };
    let mut looked = Vec::new();
    for gate in gates {
        looked.extend(look_at(workspace, &gate, ASKED_FOR_MAX)?);
    }
    Ok(Checks { gates: looked })
}

/// Looks in passing, so that what need not wait any more does not. Never an error: whatever was
/// asked for is not stopped by it, and the next look tells.
pub fn look_by_itself(workspace: &mut Workspace, task: Option<&TaskId>) {
    let due = automatic(workspace, task, LOOKS_MAX).and_then(|gates| {
        workspace.look(&Actor::default(), Observed::default(), |_, context| {
            Ok(gates.into_iter().filter(|gate| checking::is_due(gate, context)).collect::<Vec<_>>())
        })
    });
    for gate in due.unwrap_or_default() {
        let _ = look_at(workspace, &gate, IN_PASSING_MAX);
    }
}

/// Open gates that Baton may look at.
fn automatic(
    workspace: &mut Workspace,
    task: Option<&TaskId>,
    limit: u32,
) -> Result<Vec<Gate>, Failure> {
    let query = match task {
        Some(task) => gate::about(gate::AUTOMATIC, task.as_str(), limit),
        None => gate::all_of(gate::AUTOMATIC, limit),
    };
    let gates: Vec<Gate> =
        workspace.look(&Actor::default(), Observed::default(), |view, _| Ok(scan(view, query)?))?;
    Ok(gates.into_iter().filter(|gate| gate.kind != Kind::Command || gate.trusted).collect())
}

/// Looks outside, then asks the rule. A file that would be there without changing anything is not
/// worth a transaction.
fn look_at(
    workspace: &mut Workspace,
    gate: &Gate,
    at_most: Duration,
) -> Result<Option<Looked>, Failure> {
    let root = workspace.place.root.clone();
    let look = |passed: bool, saw: String| Look { gate: gate.gate.clone(), passed, saw };
    let look = match &gate.check {
        None => return Ok(None),
        Some(Check::Time { at }) => look(true, format!("it opens at {at}")),
        Some(Check::File { path }) => match root.join(path).symlink_metadata() {
            Ok(_) => look(true, format!("{path} is there")),
            Err(_) => look(false, format!("{path} is not there")),
        },
        // It runs what the tree has: for somebody in a sandbox only when it is held as that is.
        Some(Check::Command { .. }) if sandbox::is_bound() && !sandbox::is_held() => {
            return Ok(None);
        }
        Some(Check::Command { argv }) => {
            let told = [("BATON_GATE", gate.gate.0.clone())];
            let held = sandbox::held_words(argv);
            let came = errand::run(held.as_ref().unwrap_or(argv), &root, &told, "", at_most);
            look(came.well, came.saw)
        }
    };
    workspace.decide(&Actor::default(), Observed::default(), |view, context| {
        checking::judge(view, &look, context)
    })
}
