//! Gathering what a task can show, and running its checks.
//!
//! Owns every look at git and the tree that evidence needs, all before the decision. A check runs
//! without a shell, in the root of the tree, its output live; its life is tied to ours, and its
//! time is limited. What evidence is worth is decided in `baton_core::tasks::evidence`.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use baton_core::claim::{self, Claim};
use baton_core::context::{Actor, Observed};
use baton_core::id::TaskId;
use baton_core::notices::Notice;
use baton_core::resource::Resource;
use baton_core::task::Task;
use baton_core::tasks::evidence::{
    self, CHECKS_MAX, Checked, CommitFacts, Facts, NamedCheck, Proof, Rules, TIMEOUT_DEFAULT,
    UNNAMED,
};
use baton_core::time::Span;
use baton_core::view::{get, scan};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::tasks as api;
use crate::failure::Failure;
use crate::git::{Git, Oid};
use crate::leash::{self, Waited};
use crate::policy;
use crate::sandbox;
use crate::sighting::files::tree_root;
use crate::workspace::{Retry, Workspace};

const CLAIMS_MAX: u32 = 10_000;
/// How often a running check renews its task's lease.
const RENEWED_EVERY: Duration = Duration::from_secs(5 * 60);

/// What the policy in force asks for.
pub fn rules(workspace: &mut Workspace) -> Result<Rules, Failure> {
    Ok(policy::in_force(workspace)?.map(|policy| policy.evidence).unwrap_or_default())
}

/// What the task is about: its own paths, and what its owner claimed for it or for nothing else.
struct About {
    root: PathBuf,
    resources: Vec<Resource>,
}

impl About {
    fn read(workspace: &mut Workspace, text: &str) -> Result<Self, Failure> {
        let id = TaskId::parse(text).map(|id| id.0).unwrap_or_default();
        let (task, claims) =
            workspace.look(&Actor::default(), Observed::default(), |view, _| {
                let task = get::<Task>(view, &id)?;
                let owner = task.as_ref().and_then(Task::owner);
                let claims: Vec<Claim> = match owner {
                    Some(owner) => scan(view, claim::of_session(&owner.session, CLAIMS_MAX))?,
                    None => Vec::new(),
                };
                Ok((task, claims))
            })?;
        let mut resources = task.as_ref().map(|task| task.paths.clone()).unwrap_or_default();
        let ours = |claim: &&Claim| claim.task.as_deref().is_none_or(|task| task == id);
        let held = claims.iter().filter(ours).flat_map(|claim| claim.hold.resources.clone());
        resources.extend(held.filter(|one| matches!(one, Resource::Path(_))));
        let tree = task.and_then(|task| task.standing.owner).map(|owner| owner.tree);
        let root = tree.and_then(|tree| tree_root(workspace, &tree));
        let root = root.unwrap_or_else(|| workspace.place.root.clone());
        Ok(Self { root, resources })
    }

    fn has(&self, path: &str) -> bool {
        Resource::literal(path)
            .is_ok_and(|path| self.resources.iter().any(|one| one.overlaps(&path)))
    }

    fn of(&self, paths: Vec<String>) -> Vec<String> {
        paths.into_iter().filter(|path| self.has(path)).collect()
    }
}

/// Everything that `done` may have to show. Git is asked only for what the policy wants, or when
/// a commit was named.
pub fn gather(
    workspace: &mut Workspace,
    task: &str,
    named: Option<&str>,
) -> Result<Facts, Failure> {
    let rules = rules(workspace)?;
    let wants_commit =
        [Proof::Commit, Proof::Review, Proof::Landed].iter().any(|proof| rules.requires(*proof));
    let mut facts = Facts { named: named.map(str::to_owned), ..Facts::default() };
    if workspace.place.git.is_none() || rules.require.is_empty() && named.is_none() {
        return Ok(facts);
    }
    let about = About::read(workspace, task)?;
    let git = Git::in_tree(&about.root)?;
    if rules.requires(Proof::Check) {
        facts.snapshot = Some(git.snapshot()?.to_string());
    }
    if wants_commit || named.is_some() {
        let commit = git.commit_named(named.unwrap_or("HEAD"))?;
        facts.commit = commit.map(|commit| of_commit(&git, &about, &commit, &rules)).transpose()?;
    }
    Ok(facts)
}

fn of_commit(
    git: &Git,
    about: &About,
    commit: &Oid,
    rules: &Rules,
) -> Result<CommitFacts, Failure> {
    let mut facts = CommitFacts { commit: commit.to_string(), ..CommitFacts::default() };
    if rules.requires(Proof::Commit) && !about.resources.is_empty() {
        let changed = git.status(&[String::new()])?.changed;
        facts.dirty = about.of(changed.into_iter().map(|changed| changed.path).collect());
        facts.touches = Some(!about.of(git.changed_by(commit)?).is_empty());
        if let Some(head) = git.head()?.filter(|head| head != commit)
            && git.is_ancestor(commit, &head)?
        {
            facts.later = about.of(git.changed_between(commit, &head)?);
        }
    }
    if rules.requires(Proof::Landed)
        && let Some((name, tips)) = git.target(rules.target.as_deref())?
    {
        facts.target = Some(name);
        for tip in tips {
            facts.landed |= git.is_ancestor(commit, &tip)?;
        }
    }
    Ok(facts)
}

/// What came of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Outcome {
    pub task: TaskId,
    pub name: String,
    pub argv: Vec<String>,
    pub passed: bool,
    /// As a shell counts it; 124 when it took too long, 127 when it was not found.
    pub exit: u8,
    /// In milliseconds.
    pub took: Span,
    /// The hash of the tree it ran on; nothing when the tree was changed while it ran, and then it
    /// shows nothing.
    pub snapshot: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<Notice>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Outcomes {
    pub checks: Vec<Outcome>,
    pub passed: bool,
}

/// Where the output of a check goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    Inherited,
    /// All of it to standard error: standard output is for the answer.
    ToError,
}

/// Runs the checks that were asked for and keeps what came of each. Stops at the first failure.
pub fn check(
    workspace: &mut Workspace,
    actor: &Actor,
    wanted: &api::Check,
    output: Output,
    operation: Option<&str>,
) -> Result<Outcomes, Failure> {
    let chosen = chosen(&rules(workspace)?, wanted)?;
    let mut outcomes = Outcomes { checks: Vec::new(), passed: true };
    for (place, named) in chosen.iter().enumerate() {
        let outcome =
            one(workspace, actor, wanted, named, output, operation.map(|id| (id, place)))?;
        outcomes.passed = outcome.passed;
        outcomes.checks.push(outcome);
        if !outcomes.passed {
            break;
        }
    }
    Ok(outcomes)
}

/// The policy's own check of that name, all that it needs, or the command that was given.
fn chosen(rules: &Rules, wanted: &api::Check) -> Result<Vec<NamedCheck>, Failure> {
    let refused = |why: &'static str| {
        let known = rules.named.iter().map(|check| check.name.clone()).collect();
        Failure::NoSuchCheck { name: wanted.name.clone(), known, why }
    };
    let by_name = wanted.name.as_deref().and_then(|name| rules.check(name));
    match (by_name, wanted.command.is_empty()) {
        (Some(_), false) => Err(refused("the policy says how it is run")),
        (Some(check), true) => Ok(vec![check.clone()]),
        (None, false) => {
            evidence::fits_command(&wanted.command)?;
            let name = wanted.name.clone().unwrap_or_else(|| UNNAMED.to_owned());
            Ok(vec![NamedCheck { name, run: wanted.command.clone(), timeout: TIMEOUT_DEFAULT }])
        }
        (None, true) if wanted.name.is_some() => Err(refused("the policy names no such check")),
        (None, true) => {
            let needed = rules.needed();
            let all: Vec<NamedCheck> =
                needed.iter().filter_map(|name| rules.check(name)).cloned().collect();
            match all.is_empty() {
                true => Err(refused("the policy names no check")),
                false => Ok(all.into_iter().take(CHECKS_MAX).collect()),
            }
        }
    }
}

fn one(
    workspace: &mut Workspace,
    actor: &Actor,
    wanted: &api::Check,
    named: &NamedCheck,
    output: Output,
    operation: Option<(&str, usize)>,
) -> Result<Outcome, Failure> {
    renew(workspace, actor, wanted)?;
    let about = About::read(workspace, &wanted.task)?;
    let snapshot = |about: &About, there: bool| -> Result<Option<String>, Failure> {
        Ok(match there {
            true => Some(Git::in_tree(&about.root)?.snapshot()?.to_string()),
            false => None,
        })
    };
    let there = workspace.place.git.is_some();
    let before = snapshot(&about, there)?;
    let begun = Instant::now();
    let timeout = Duration::from_millis(named.timeout.0);
    let exit = run(workspace, actor, wanted, &about, &named.run, output, timeout)?;
    let took = Span(u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX));
    let after = snapshot(&about, there)?;
    let request = Checked {
        task: wanted.task.clone(),
        name: named.name.clone(),
        argv: named.run.clone(),
        exit,
        snapshot: before.filter(|before| after.as_ref() == Some(before)),
        took,
        token: wanted.token,
    };
    let retry = operation.map(|(id, place)| {
        Retry::of(&format!("{id} {place}"), "task check", &(wanted, &named.name))
    });
    let moved = workspace.decide_once(
        actor,
        Observed::default(),
        retry.as_ref(),
        |_| true,
        |view, context| evidence::checked(view, &request, context),
    )?;
    let Checked { name, argv, snapshot, .. } = request;
    let (passed, notices) = (exit == 0, moved.notices);
    Ok(Outcome { task: moved.task, name, argv, passed, exit, took, snapshot, notices })
}

fn renew(workspace: &mut Workspace, actor: &Actor, wanted: &api::Check) -> Result<(), Failure> {
    workspace.decide(actor, Observed::default(), |view, context| {
        evidence::begin(view, &wanted.task, wanted.token, context)
    })?;
    Ok(())
}

fn run(
    workspace: &mut Workspace,
    actor: &Actor,
    wanted: &api::Check,
    about: &About,
    words: &[String],
    output: Output,
    timeout: Duration,
) -> Result<u8, Failure> {
    let mut command = sandbox::held(words).unwrap_or_else(|| leash::command(words));
    command.current_dir(&about.root).stdin(Stdio::null()).process_group(0);
    if output == Output::ToError {
        let error = rustix::io::dup(std::io::stderr()).map_err(|error| Failure::File {
            doing: "cannot pass output on",
            path: "standard error".into(),
            source: error.into(),
        })?;
        command.stdout(Stdio::from(error));
    }
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return Ok(leash::code_of(&error)),
    };
    let deadline = Instant::now() + timeout;
    loop {
        let until = deadline.min(Instant::now() + RENEWED_EVERY);
        match leash::wait(&mut child, until, None) {
            Waited::Ended(code) => return Ok(code),
            _ if Instant::now() >= deadline => {
                leash::end(&mut child);
                return Ok(leash::TOO_LONG);
            }
            _ => {}
        }
        if let Err(failure) = renew(workspace, actor, wanted) {
            leash::end(&mut child);
            return Err(failure);
        }
    }
}
