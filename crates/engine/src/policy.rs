//! The policy in force, and how the file on disk compares with it.
//!
//! Owns putting a policy in force and noticing a file that differs. The rule who may do so is in
//! `baton_core::policy`. Invariant: noticing costs one `stat` as long as the file does not change;
//! what was read is remembered in a trace, which decides nothing.

use std::collections::BTreeMap;

use baton_core::context::{Actor, Observed};
use baton_core::deploy;
use baton_core::landing;
use baton_core::policy::{self, Approved, Difference, Standing};
use baton_core::roles;
use baton_core::state::rules::Rule;
use baton_core::tasks::evidence::Rules;
use baton_core::time::Moment;
use baton_core::tree;
use baton_core::trust::{self, Command};
use baton_core::zones::{Policy, TaskRules, Zone};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config;
use crate::failure::Failure;
use crate::setup::written_policy;
use crate::workspace::{Retry, Workspace};

/// How `baton.toml` of this tree compares with the policy in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnDisk {
    Same,
    Differs,
    /// It cannot be used as it is.
    Broken,
    Missing,
    /// No policy was ever put in force: everything is `auto`.
    NothingInForce,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Shown {
    pub zones: Vec<Zone>,
    pub capacities: BTreeMap<String, u32>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub state: Vec<Rule>,
    /// What holds for tasks.
    pub tasks: TaskRules,
    #[serde(default, skip_serializing_if = "Rules::is_empty")]
    pub evidence: Rules,
    #[serde(default, skip_serializing_if = "tree::Rules::is_default")]
    pub trees: tree::Rules,
    #[serde(default, skip_serializing_if = "landing::Rules::is_default")]
    pub queue: landing::Rules,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub deploys: BTreeMap<String, deploy::Rules>,
    #[serde(default, skip_serializing_if = "roles::Rules::is_empty")]
    pub roles: roles::Rules,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approved_at: Option<Moment>,
    pub on_disk: OnDisk,
    /// What approving the file would change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference: Option<Difference>,
    /// Commands in force that nobody stands for: Baton does not run them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub untrusted: Vec<Command>,
    /// Why the file cannot be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub broken: Option<String>,
}

pub fn in_force(workspace: &mut Workspace) -> Result<Option<Policy>, Failure> {
    workspace.look(&Actor::default(), Observed::default(), |view, _| policy::in_force(view))
}

/// What sessions of which role may do.
pub fn roles(workspace: &mut Workspace) -> Result<roles::Rules, Failure> {
    Ok(in_force(workspace)?.unwrap_or_default().roles)
}

pub fn show(workspace: &mut Workspace) -> Result<Shown, Failure> {
    let current = in_force(workspace)?;
    let (mut difference, mut broken) = (None, None);
    let in_force = current.clone().unwrap_or_default();
    let on_disk = match written_policy(&workspace.place) {
        Ok(None) => OnDisk::Missing,
        Ok(Some(written)) => {
            let change = Difference::between(&in_force, &written);
            let same = change.is_empty();
            difference = Some(change).filter(|_| !same);
            if same { OnDisk::Same } else { OnDisk::Differs }
        }
        Err(Failure::Config { line, detail, .. }) => {
            let line = line.map(|line| format!("{line}: ")).unwrap_or_default();
            broken = Some(format!("{}:{line}{detail}", config::FILE_NAME));
            OnDisk::Broken
        }
        Err(other) => return Err(other),
    };
    let on_disk = match &current {
        None if on_disk != OnDisk::Broken => OnDisk::NothingInForce,
        _ => on_disk,
    };
    let untrusted = commands(workspace, &in_force)?.untrusted;
    Ok(Shown {
        zones: in_force.zones,
        capacities: in_force.capacities,
        tasks: in_force.tasks,
        state: in_force.state,
        evidence: in_force.evidence,
        trees: in_force.trees,
        queue: in_force.queue,
        deploys: in_force.deploys,
        roles: in_force.roles,
        approved_at: current.map(|current| current.approved_at),
        on_disk,
        difference,
        untrusted,
        broken,
    })
}

/// Puts a policy in force if whoever asks may; an agent may only set the first one.
pub fn put_in_force(
    workspace: &mut Workspace,
    actor: &Actor,
    policy: &Policy,
    standing: Standing,
    operation: Option<&str>,
) -> Result<Approved, Failure> {
    let retry =
        operation.map(|operation| Retry::of(operation, "policy approve", &policy.source_hash));
    workspace.decide_once(
        actor,
        Observed::default(),
        retry.as_ref(),
        |_| true,
        |view, context| policy::put_in_force(view, policy, standing, context),
    )
}

/// The commands that a policy lets Baton run, with those that nobody stands for yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commands {
    pub all: Vec<Command>,
    pub untrusted: Vec<Command>,
}

pub fn commands(workspace: &mut Workspace, policy: &Policy) -> Result<Commands, Failure> {
    let all = trust::commands(policy);
    let untrusted = workspace
        .look(&Actor::default(), Observed::default(), |view, _| trust::untrusted(view, &all))?;
    Ok(Commands { all, untrusted })
}

/// Puts a policy in force and trusts exactly its commands, in one decision.
pub fn trust(
    workspace: &mut Workspace,
    actor: &Actor,
    policy: &Policy,
    operation: Option<&str>,
) -> Result<trust::Given, Failure> {
    let retry = operation.map(|operation| Retry::of(operation, "trust", &policy.source_hash));
    workspace.decide_once(
        actor,
        Observed::default(),
        retry.as_ref(),
        |_| true,
        |view, context| trust::give(view, policy, context),
    )
}

/// Whether the file of this tree says something else than the policy in force. Never an error: who
/// only wants to check a path is not stopped by a remark that cannot be made.
pub fn drift(workspace: &mut Workspace) -> OnDisk {
    look(workspace).unwrap_or(OnDisk::Same)
}

fn look(workspace: &mut Workspace) -> Result<OnDisk, Failure> {
    let path = workspace.place.root.join(config::FILE_NAME);
    let Some(current) = in_force(workspace)? else {
        return Ok(if path.exists() { OnDisk::NothingInForce } else { OnDisk::Same });
    };
    if !path.exists() {
        return Ok(OnDisk::Missing);
    }
    let written = written_policy(&workspace.place).ok().flatten();
    let meaning = written.map(|policy| config::meaning(&policy));
    Ok(match meaning {
        None => OnDisk::Broken,
        Some(meaning) if meaning == config::meaning(&current) => OnDisk::Same,
        Some(_) => OnDisk::Differs,
    })
}
