//! Deploys: looking at everything first, then shipping from a checkout of its own.
//!
//! Owns the order of the steps. What others left in the tree neither ships nor stands in the way:
//! nothing is read from a working tree, only from the commit. Invariants: a remote that cannot be
//! reached is never taken for one that has nothing new, no command runs before the rule has said
//! so, and a deployer that dies leaves a deploy that the next look calls unknown.

use std::path::{Path, PathBuf};

use baton_core::commits;
use baton_core::context::{Actor, Observed};
use baton_core::denials;
use baton_core::deploy::{self, Deploy, Rules};
use baton_core::deploys::{self, Begun, Facts, Placeholder, Refused, Request};
use baton_core::notices::Notice;
use baton_core::refusal::Refusal;
use baton_core::roles::Deed;
use baton_core::syncs;
use baton_core::time::Moment;
use baton_core::view::scan;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::deploys as api;
use crate::config;
use crate::denying;
use crate::doors;
use crate::failure::Failure;
use crate::gating::commit as commit_named;
use crate::git::{Git, Oid};
use crate::sighting::{clear_the_way, in_the_way, life_of, of_claims};
use crate::syncing::{fetch, plain};
use crate::trees::answered;
use crate::whoami::process_of;
use crate::workspace::{Retry, Workspace};

mod shipping;

/// How often a decision is tried again because something changed while it was looked at.
const LOOKS_MAX: usize = 4;
/// How many unfinished places are named.
pub const PLACES_MAX: usize = 20;
/// How many of one file are looked at.
const PER_FILE_MAX: usize = 50;
const LISTED_MAX: u32 = 1_000;
const REMOTE: &str = "origin";

/// Whoever shows how it goes, and may want it to end.
pub trait Door {
    fn step(&mut self, what: &str);
    /// A piece of what a command writes.
    fn wrote(&mut self, bytes: &[u8]);
    fn was_told(&mut self, notices: &[Notice]);
    fn end_wanted(&mut self) -> bool;
}

pub fn deploy(
    workspace: &mut Workspace,
    actor: &Actor,
    wanted: &api::Deploy,
    operation: Option<&str>,
    door: &mut dyn Door,
) -> Result<Deploy, Failure> {
    let came = deploy_once(workspace, actor, wanted, operation, door);
    denying::noted(workspace, actor, (denials::Deed::Deploy, &wanted.target), came)
}

fn deploy_once(
    workspace: &mut Workspace,
    actor: &Actor,
    wanted: &api::Deploy,
    operation: Option<&str>,
    door: &mut dyn Door,
) -> Result<Deploy, Failure> {
    let retry = operation.map(|operation| Retry::of(operation, "deploy", wanted));
    if let Some(deploy) = answered(workspace, actor, retry.as_ref())? {
        return Ok(deploy);
    }
    if workspace.place.git.is_none() {
        return Err(Refusal::from(commits::Refused::NoRepository).into());
    }
    let mut look = 0;
    let (deploy, rules) = loop {
        settle(workspace);
        look += 1;
        match begin(workspace, actor, wanted, door) {
            Err(Failure::Refused(Refusal::Deploy(refused)))
                if matches!(*refused, Refused::Moved { .. }) && look < LOOKS_MAX => {}
            other => break other?,
        }
    };
    shipping::ship(workspace, actor, &deploy, &rules, retry.as_ref(), door)
}

/// Looks at everything the rule needs, and asks it.
fn begin(
    workspace: &mut Workspace,
    actor: &Actor,
    wanted: &api::Deploy,
    door: &mut dyn Door,
) -> Result<(Deploy, Rules), Failure> {
    // Before anything is looked at for it: whose role does not deploy need not know the rest.
    if let Some(refused) = doors::not_by_role(workspace, actor, Deed::Deploy)? {
        return Err(Refusal::Role(refused).into());
    }
    let target = wanted.target.clone();
    let nobody = Actor::default();
    let (rules, landing, live) = workspace.look(&nobody, Observed::default(), |view, _| {
        let rules = deploys::rules(view, &target)?;
        baton_core::trust::demand(view, &rules.commands_of(&target))?;
        let policy = baton_core::policy::in_force(view)?.unwrap_or_default();
        Ok((rules, policy.evidence.target, deploys::live(view, &target)?.0))
    })?;
    let git = Git::in_tree(&workspace.place.root)?;
    door.step("looking at the remote");
    let (landed, tip) = tip_of(&git, &rules, landing.as_deref())?;
    let commit = match (&wanted.commit, wanted.rollback) {
        (Some(named), _) => commit_named(workspace, named)?,
        (None, false) => commit_named(workspace, "HEAD")?,
        (None, true) => workspace
            .look(&nobody, Observed::default(), |view, _| deploys::before(view, &target))?,
    };
    let oid = Oid::parse(&commit).ok_or_else(|| Refused::Moved { target: target.clone() });
    let oid = oid.map_err(Refusal::from)?;
    let live = live.map(|live| live.commit);
    let facts = Facts {
        behind: git.apart(&oid, &tip)?.1,
        older: is_older(&git, &oid, live.as_deref())?,
        landed,
        live,
        rules: rules.clone(),
        ..Facts::default()
    };
    door.step("looking for unfinished text");
    let facts = unfinished(&git, &oid, facts)?;
    let machine = &workspace.machine;
    let request = Request {
        target: target.clone(),
        commit: commit.clone(),
        rollback: wanted.rollback,
        facts,
        process: machine.current().map(|identity| process_of(machine, &identity)),
        host: machine.host.clone(),
        folder: shipping::folder()?.to_string_lossy().into_owned(),
        log: shipping::log_file(workspace, &target)?.to_string_lossy().into_owned(),
    };
    match ask(workspace, actor, &request)? {
        Begun::Started { deploy, notices } => {
            door.was_told(&notices);
            Ok((*deploy, rules))
        }
        Begun::Gated { gate, opened } => {
            Err(Refusal::from(Refused::Gated { gate, target, commit, opened }).into())
        }
    }
}

/// Asks the rule, and looks at whoever stands in the way as long as that may help.
fn ask(workspace: &mut Workspace, actor: &Actor, request: &Request) -> Result<Begun, Failure> {
    let mut observed = sighted(workspace)?;
    for look in 1.. {
        observed.complete = look > LOOKS_MAX;
        let begun = workspace.decide(actor, observed.clone(), |view, context| {
            deploys::begin(view, request, context)
        });
        let blockers = match &begun {
            Err(Failure::Refused(Refusal::Unobserved { claims })) => {
                of_claims(workspace, claims, &mut observed)?;
                continue;
            }
            Err(failure) => in_the_way(failure),
            Ok(_) => Vec::new(),
        };
        let again = !blockers.is_empty()
            && look <= LOOKS_MAX
            && clear_the_way(workspace, &blockers, &mut observed)?;
        if !again {
            return begun;
        }
    }
    Err(Refusal::Empty.into())
}

/// Where work lands, by its name, and the commit there now.
fn tip_of(git: &Git, rules: &Rules, landing: Option<&str>) -> Result<(String, Oid), Failure> {
    let remote = rules.remote.as_deref().unwrap_or(REMOTE);
    let url = if plain(remote) { git.url_of(remote)? } else { None };
    let named = rules.branch.as_deref().or(landing);
    if let Some(url) = url {
        let known = match named {
            Some(branch) => Some(branch.to_owned()),
            None => git.default_branch(remote)?.filter(|branch| plain(branch)),
        };
        let local = || Ok::<_, Failure>(git.target(None)?.map(|(name, _)| name));
        let branch = match known {
            Some(branch) => branch,
            None => local()?.unwrap_or_else(|| "main".to_owned()),
        };
        let tip = fetch(git, &url, remote, &branch)?;
        return Ok((format!("{remote}/{branch}"), tip));
    }
    if rules.remote.is_some() {
        let remote = remote.to_owned();
        return Err(Refusal::from(syncs::Refused::NoRemote { remote }).into());
    }
    let branch = match named {
        Some(branch) => branch.to_owned(),
        None => git.target(None)?.map_or_else(|| "main".to_owned(), |(name, _)| name),
    };
    let missing = || Refusal::from(Refused::NoBranch { branch: branch.clone() });
    let tip = git.branch(&branch)?.ok_or_else(missing)?;
    Ok((branch, tip))
}

/// Is it an ancestor of what is live? A commit that is not here any more has no known ancestors:
/// its branch was rewritten, and what lands there now is what counts.
fn is_older(git: &Git, commit: &Oid, live: Option<&str>) -> Result<bool, Failure> {
    match live.and_then(Oid::parse) {
        Some(live) if git.commit_exists(&live)? => Ok(git.is_ancestor(commit, &live)?),
        _ => Ok(false),
    }
}

/// Words in shipped files that say they are not finished. The policy itself names them too.
fn unfinished(git: &Git, commit: &Oid, mut facts: Facts) -> Result<Facts, Failure> {
    if facts.rules.placeholders.is_empty() {
        return Ok(facts);
    }
    let found = git.lines_with(commit, &facts.rules.placeholders, PER_FILE_MAX)?;
    for (path, line, text) in found {
        if path == config::FILE_NAME || !facts.rules.ships(&path) {
            continue;
        }
        let word = facts.rules.placeholders.iter().find(|word| stands_in(word, &text));
        let Some(word) = word.cloned() else { continue };
        if facts.placeholders.len() == PLACES_MAX {
            facts.more = true;
            break;
        }
        facts.placeholders.push(Placeholder { path, line, word });
    }
    Ok(facts)
}

/// Whole words only; one in capitals in capitals only, others in any case.
fn stands_in(word: &str, line: &str) -> bool {
    let loud = !word.chars().any(char::is_lowercase);
    let (word, line) = match loud {
        true => (word.to_owned(), line.to_owned()),
        false => (word.to_lowercase(), line.to_lowercase()),
    };
    let joins = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(&word).any(|(at, found)| {
        let before = line[..at].chars().next_back().filter(|c| joins(*c));
        let after = line[at + found.len()..].chars().next().filter(|c| joins(*c));
        let begins = word.starts_with(joins) && before.is_some();
        let ends = word.ends_with(joins) && after.is_some();
        !begins && !ends
    })
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeployList {
    /// Newest first.
    pub deploys: Vec<Listed>,
    /// There are more than are listed.
    pub more: bool,
}

/// A deploy, and how it stands in one word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Listed {
    /// `running`, `succeeded`, `unverified`, `failed` or `unknown`.
    pub outcome: String,
    /// It is what the surface shows now.
    pub live: bool,
    #[serde(flatten)]
    pub deploy: Deploy,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Moment>,
}

pub fn list(workspace: &mut Workspace, wanted: &api::Deploys) -> Result<DeployList, Failure> {
    settle(workspace);
    let query = match &wanted.target {
        Some(target) => deploy::of_target(target, LISTED_MAX + 1),
        None => deploy::all_of(deploy::ALL, LISTED_MAX + 1),
    };
    let found: Vec<Deploy> =
        workspace.look(&Actor::default(), Observed::default(), |view, _| {
            if let Some(target) = &wanted.target
                && scan::<Deploy>(view, deploy::of_target(target, 1))?.is_empty()
            {
                // A target that is not there is no target without deploys.
                deploys::rules(view, target)?;
            }
            Ok(scan(view, query)?)
        })?;
    let more = found.len() > LISTED_MAX as usize;
    let mut seen: Vec<String> = Vec::new();
    let mut listed = Vec::new();
    for deploy in found.into_iter().take(LISTED_MAX as usize) {
        let live = deploy.reached() && !seen.contains(&deploy.target);
        if live {
            seen.push(deploy.target.clone());
        }
        let (outcome, ended_at) = (deploy.state().to_owned(), deploy.end.map(|end| end.at));
        listed.push(Listed { outcome, live, deploy, ended_at });
    }
    Ok(DeployList { deploys: listed, more })
}

/// How the deployers of all open deploys look from here.
fn sighted(workspace: &mut Workspace) -> Result<Observed, Failure> {
    let query = deploy::all_of(deploy::OPEN, LISTED_MAX);
    let open: Vec<Deploy> =
        workspace.look(&Actor::default(), Observed::default(), |view, _| Ok(scan(view, query)?))?;
    let mut observed = Observed::default();
    for deploy in open {
        if let Some(process) = &deploy.process {
            observed.runners.insert(deploy.deploy, life_of(&workspace.machine, process));
        }
    }
    Ok(observed)
}

/// Says of deployers that are gone that nobody knows what came of it, and clears up after those of
/// this machine. Never an error: whatever was asked for is not stopped by it.
fn settle(workspace: &mut Workspace) {
    let query = deploy::all_of(deploy::OPEN, LISTED_MAX);
    let open: Result<Vec<Deploy>, Failure> =
        workspace.look(&Actor::default(), Observed::default(), |view, _| Ok(scan(view, query)?));
    for deploy in open.unwrap_or_default() {
        let Ok(observed) = sighted(workspace) else { return };
        let gone = workspace.decide(&Actor::default(), observed, |view, context| {
            deploys::settle(view, deploy.deploy, context)
        });
        if gone.unwrap_or(false) && deploy.host == workspace.machine.host {
            shipping::clear(workspace, Path::new(&deploy.folder));
        }
    }
}

/// Where the logs of a workspace are kept, on this machine.
fn logs(workspace: &Workspace) -> PathBuf {
    workspace.place.store.join("deploys")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_words_are_unfinished() {
        for (word, line, found) in [
            ("TODO", "// TODO: more", true),
            ("TODO", "// todo list of the day", false),
            ("TODO", "TODOS are kept", false),
            ("TODO", "a_TODO", false),
            ("TODO", "(TODO)", true),
            ("coming soon", "<b>Coming Soon!</b>", true),
            ("coming soon", "forthcoming soon", false),
            ("…", "and so on…", true),
        ] {
            assert_eq!(stands_in(word, line), found, "{word} in {line}");
        }
    }
}
