//! Landing branches: the line, the runner, and the wait for one's own.
//!
//! Owns the way from a request to a landed branch. Whoever waits is the runner when none is alive,
//! so nothing stalls for want of a daemon. Candidates are made in `candidates` and `stacking`,
//! checked in `checking` and `pool`, and the target moves in `moving`; what may happen is decided
//! in `baton_core::landings`.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;
use std::time::Duration;

use baton_core::context::{Actor, Life, Observed};
use baton_core::denials::Deed;
use baton_core::id::{LandingId, Token};
use baton_core::landing::{self as record, Landing, Paused, Queue, Rules, Runner, State};
use baton_core::landings::{self, Changed, Enqueue, Enqueued, Refused, Standing, running};
use baton_core::refusal::Refusal;
use baton_core::view::{get, scan};
use baton_core::zones::Policy;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::landings as api;
use crate::denying;
use crate::failure::Failure;
use crate::git::{Git, Oid};
use crate::policy;
use crate::sighting::{identity_of, life_of};
use crate::store::News;
use crate::trees;
use crate::whoami::process_of;
use crate::workspace::{Retry, Workspace};

use moving::Target;
use pool::Pool;
use runner::{Round, Run};

mod candidates;
mod checking;
mod moving;
mod pool;
mod proposing;
mod runner;
mod stacking;

/// A waiter looks this often even without news: a writer may die before it tells.
const LOOK_AT_LEAST_EVERY: Duration = Duration::from_secs(30);
/// The same, where the end of a runner cannot be slept on.
const UNWATCHED_LOOK_EVERY: Duration = Duration::from_secs(1);
/// How many landings that are over a list shows.
const OVER_SHOWN: u32 = 20;
const ALL_SHOWN: u32 = 10_000;
/// How far back landed commits are looked for in a branch.
const LANDED_LOOKED_AT: u32 = 100;
/// Opens a request, when the policy names no command.
const GH: [&str; 8] = ["gh", "pr", "create", "--fill", "--head", "%B", "--base", "%T"];

/// Whoever shows how it goes, and hears when somebody wants it to end.
pub trait Door {
    fn told(&mut self, progress: &Progress);
    /// Readable when somebody wants this to end.
    fn end_descriptor(&self) -> BorrowedFd<'_>;
    fn end_wanted(&mut self) -> bool;
}

/// How it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// What is waited for stands in line; how it ends is the answer.
    Own {
        landing: LandingId,
    },
    /// Others are ahead, and somebody else moves the queue on.
    InLine {
        landing: LandingId,
        place: usize,
        runner: Box<Runner>,
    },
    Paused {
        paused: Paused,
    },
    Checking {
        landings: Vec<LandingId>,
        log: PathBuf,
    },
    CheckingTarget {
        target: String,
    },
    StillChecking {
        landings: usize,
        check: String,
        seconds: u64,
    },
    Passed {
        landings: usize,
        flaky: bool,
    },
    Failed {
        landings: usize,
        check: String,
        exit: u8,
        log: PathBuf,
    },
    Held {
        landing: LandingId,
        reason: String,
    },
    Landed {
        landing: Box<Landing>,
    },
    Returned {
        landing: Box<Landing>,
    },
    Proposed {
        landing: LandingId,
    },
}

fn refuse(refused: Refused) -> Failure {
    Failure::Refused(Refusal::from(refused))
}

/// The branch that others land on.
fn target_of(git: &Git, policy: &Policy) -> Result<Target, Failure> {
    let named = policy.evidence.target.as_deref();
    let name = match git.target(named)? {
        Some((name, _)) => name,
        None => {
            let target = named.unwrap_or("main").to_owned();
            return Err(refuse(Refused::NoTarget { target }));
        }
    };
    let wanted = policy.queue.remote.as_deref().unwrap_or("origin");
    let url = if wanted.is_empty() { None } else { git.url_of(wanted)? };
    let remote = url.map(|url| (wanted.to_owned(), url));
    if remote.is_none() && policy.queue.remote.as_deref().is_some_and(|name| !name.is_empty()) {
        let remote = wanted.to_owned();
        return Err(Refusal::from(baton_core::syncs::Refused::NoRemote { remote }).into());
    }
    Ok(Target { name, remote })
}

/// What opens a request for this landing.
fn request_command(rules: &Rules, landing: &Landing) -> Vec<String> {
    let words: Vec<String> = match rules.request.is_empty() {
        true => GH.map(str::to_owned).to_vec(),
        false => rules.request.clone(),
    };
    let fill = |word: String| word.replace("%B", &landing.branch).replace("%T", &landing.target);
    words.into_iter().map(fill).collect()
}

/// Under which commits others landed lately.
fn landed_commits(workspace: &mut Workspace) -> Result<Vec<String>, Failure> {
    let known: Vec<Landing> =
        workspace.look(&Actor::default(), Observed::default(), |view, _| {
            Ok(scan(view, record::all_of(record::ALL, LANDED_LOOKED_AT))?)
        })?;
    let landed = known.into_iter().filter(|landing| landing.state == State::Landed);
    Ok(landed.filter_map(|landing| landing.commit).collect())
}

/// Those of them that a branch has in its history.
fn contained(git: &Git, landed: &[String], tip: &Oid) -> Result<Vec<String>, Failure> {
    let mut contained = Vec::new();
    for commit in landed {
        let Some(oid) = Oid::parse(commit) else { continue };
        if git.commit_exists(&oid)? && git.is_ancestor(&oid, tip)? {
            contained.push(commit.clone());
        }
    }
    Ok(contained)
}

/// The branch as it is, ready to be put in line; or the landing that it has had already.
fn look(
    workspace: &mut Workspace,
    git: &Git,
    branch: Option<&str>,
    task: Option<&str>,
) -> Result<(Enqueue, Option<Landing>), Failure> {
    let policy = policy::in_force(workspace)?.unwrap_or_default();
    let target = target_of(git, &policy)?;
    let branch = match branch {
        Some(given) => given.strip_prefix("refs/heads/").unwrap_or(given).to_owned(),
        None => {
            let head = git.head_branch()?.ok_or_else(|| refuse(Refused::NoBranchHere))?;
            head.trim_start_matches("refs/heads/").to_owned()
        }
    };
    let fits = branch.len() <= landings::BRANCH_BYTES_MAX && git.is_branch_name(&branch)?;
    let tip = if fits { git.branch(&branch)? } else { None };
    let Some(tip) = tip else { return Err(refuse(Refused::NoBranch { branch })) };
    if branch == target.name {
        return Err(refuse(Refused::IsTarget { target: target.name }));
    }
    let seen = match &target.remote {
        Some((remote, _)) => git.commit_named(&format!("refs/remotes/{remote}/{}", target.name))?,
        None => None,
    };
    let seen = match seen {
        Some(seen) => Some(seen),
        None => git.branch(&target.name)?,
    };
    let paths = match &seen {
        None => Vec::new(),
        Some(seen) => match git.common(seen, &tip)? {
            Some(base) => git.changed_between(&base, &tip)?,
            None => {
                let (target, shallow) = (target.name, git.is_shallow()?);
                return Err(refuse(Refused::NoBase { branch, target, shallow }));
            }
        },
    };
    let made = trees::Clone::of(workspace)?.records(workspace)?;
    let made = made.into_iter().find(|tree| tree.branch == branch);
    let landed = landed_commits(workspace)?;
    let request = Enqueue {
        tip: tip.to_string(),
        task: task.map(str::to_owned).or_else(|| Some(made.as_ref()?.task.clone()?.0)),
        tree: made.map_or_else(|| workspace.tree.clone(), |tree| tree.tree),
        takes_back: false,
        paths,
        contains: contained(git, &landed, &tip)?,
        branch,
        target: target.name,
    };
    let before = workspace.look(&Actor::default(), Observed::default(), |view, _| {
        Ok(scan::<Landing>(view, record::of_branch(&request.branch, 1))?.pop())
    })?;
    let before = before.filter(|one| one.tip == request.tip);
    // A runner may have died after the target had it: then it is still in line.
    let in_line = before.as_ref().is_some_and(|one| !one.state.is_over());
    let before = before.filter(|one| one.state == State::Landed);
    let there = seen.map(|seen| git.is_ancestor(&tip, &seen)).transpose()?.unwrap_or(false);
    match (there && !in_line, before) {
        (true, None) => {
            let Enqueue { branch, target, .. } = request;
            Err(refuse(Refused::Nothing { branch, target }))
        }
        (_, before) => Ok((request, before)),
    }
}

/// How a landing came out, or stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Reply {
    #[serde(flatten)]
    pub landing: Landing,
    /// Its place in line, from one; nothing when it is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<u64>,
    /// Files of its tree that are not committed, and so do not land.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uncommitted: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<baton_core::notices::Notice>,
}

fn git_of(workspace: &Workspace) -> Result<Git, Failure> {
    match &workspace.place.git {
        Some(_) => Ok(Git::in_tree(&workspace.place.root)?),
        None => Err(refuse(Refused::NoRepository)),
    }
}

/// Puts a branch in line and, unless only that was asked for, waits until it has landed.
pub fn land(
    workspace: &mut Workspace,
    actor: &Actor,
    wanted: &api::Land,
    operation: Option<&str>,
    door: &mut dyn Door,
) -> Result<Reply, Failure> {
    let git = git_of(workspace)?;
    let (request, before) =
        look(workspace, &git, wanted.branch.as_deref(), wanted.task.as_deref())?;
    if let Some(landing) = before {
        return Ok(Reply { landing, place: None, uncommitted: vec![], notices: vec![] });
    }
    let request = Enqueue { takes_back: wanted.takes_back, ..request };
    let uncommitted = uncommitted(&git, &request.branch)?;
    let retry = operation.map(|operation| Retry::of(operation, "land", wanted));
    let came = workspace.decide_once(
        actor,
        Observed::default(),
        retry.as_ref(),
        |_| true,
        |view, context| landings::enqueue(view, &request, context),
    );
    let Enqueued { landing, place, notices, .. } =
        denying::noted(workspace, actor, (Deed::Land, &request.branch), came)?;
    if wanted.queue {
        return Ok(Reply { landing, place: Some(place), uncommitted, notices });
    }
    let id = landing.landing;
    door.told(&Progress::Own { landing: id.clone() });
    attend(workspace, actor, &Goal::Own(id.clone()), door)?;
    let (landing, place) = standing_of(workspace, &id)?;
    Ok(Reply { landing, place, uncommitted, notices })
}

/// Puts a branch in line that a commit was diverted to. One that others' claims keep out is told
/// when somebody tries to land it.
pub(crate) fn divert(
    workspace: &mut Workspace,
    actor: &Actor,
    branch: &str,
) -> Result<Option<LandingId>, Failure> {
    let git = git_of(workspace)?;
    let (request, _) = look(workspace, &git, Some(branch), None)?;
    let enqueued = workspace.decide(actor, Observed::default(), |view, context| {
        landings::enqueue(view, &request, context)
    });
    match enqueued {
        Ok(enqueued) => Ok(Some(enqueued.landing.landing)),
        Err(Failure::Refused(Refusal::Landing(_))) => Ok(None),
        Err(other) => Err(other),
    }
}

/// What lies uncommitted where the branch is checked out.
fn uncommitted(git: &Git, branch: &str) -> Result<Vec<String>, Failure> {
    let trees = git.trees()?;
    let tree = trees.into_iter().find(|tree| tree.branch.as_deref() == Some(branch));
    let Some(tree) = tree.filter(|tree| tree.path.join(".git").exists()) else {
        return Ok(Vec::new());
    };
    let status = Git::in_tree(&tree.path)?.status(&[String::new()])?;
    Ok(status.paths().into_iter().map(str::to_owned).collect())
}

fn standing_of(
    workspace: &mut Workspace,
    id: &LandingId,
) -> Result<(Landing, Option<u64>), Failure> {
    workspace.look(&Actor::default(), Observed::default(), |view, _| {
        let landing = landings::find(view, id.as_str())?;
        let open: Vec<Landing> = scan(view, record::all_of(record::OPEN, landings::OPEN_MAX))?;
        let place = open.iter().position(|one| one.landing == *id);
        Ok((landing, place.map(|place| place as u64 + 1)))
    })
}

/// What a runner or a waiter is there for.
enum Goal {
    /// Until this one is over, or cannot go on.
    Own(LandingId),
    /// Until nothing more can be done now.
    Drain,
    /// Until somebody wants it to end.
    Forever,
}

/// Moves the queue on.
pub fn run(
    workspace: &mut Workspace,
    actor: &Actor,
    wanted: &api::Run,
    door: &mut dyn Door,
) -> Result<Listed, Failure> {
    git_of(workspace)?;
    let goal = if wanted.once { Goal::Drain } else { Goal::Forever };
    let came = attend(workspace, actor, &goal, door);
    denying::noted(workspace, actor, (Deed::Land, ""), came)?;
    list(workspace, &api::List::default())
}

/// Runs the queue, or waits for whoever does, until the goal is reached.
fn attend(
    workspace: &mut Workspace,
    actor: &Actor,
    goal: &Goal,
    door: &mut dyn Door,
) -> Result<(), Failure> {
    // Made before the first look at the state, so that no commit in between is missed.
    let mut news = workspace.store.news()?;
    loop {
        if door.end_wanted() || reached(workspace, goal)? {
            return Ok(());
        }
        let observed = sighted(workspace)?;
        let machine = &workspace.machine;
        let process = machine.current().map(|identity| process_of(machine, &identity));
        let begun = workspace.decide(actor, observed, |view, context| {
            running::begin(view, process.as_ref(), context)
        });
        match begun {
            Ok(runner) => match serve(workspace, actor, goal, door, runner.token, &mut *news) {
                // Another took over while this one slept: then it is waited for.
                Err(Failure::Refused(Refusal::Landing(refused)))
                    if matches!(*refused, Refused::LostTurn { .. }) => {}
                other => return other,
            },
            Err(Failure::Refused(Refusal::Landing(refused))) => match *refused {
                Refused::Running { by } => wait(workspace, goal, door, &by, &mut *news)?,
                other => return Err(refuse(other)),
            },
            Err(other) => return Err(other),
        }
    }
}

/// Is there nothing left to wait for?
fn reached(workspace: &mut Workspace, goal: &Goal) -> Result<bool, Failure> {
    let Goal::Own(id) = goal else { return Ok(false) };
    let (landing, _) = standing_of(workspace, id)?;
    Ok(landing.state.is_over() || landing.state == State::Proposed)
}

/// How the runner looks from here.
fn sighted(workspace: &mut Workspace) -> Result<Observed, Failure> {
    let queue = workspace.look(&Actor::default(), Observed::default(), |view, _| {
        Ok(get::<Queue>(view, Queue::KEY)?.unwrap_or_default())
    })?;
    let mut observed = Observed::default();
    if let Some(Runner { token, process: Some(process), .. }) = queue.runner {
        observed.runners.insert(token, life_of(&workspace.machine, &process));
    }
    Ok(observed)
}

/// Sleeps until something may have changed.
fn wait(
    workspace: &mut Workspace,
    goal: &Goal,
    door: &mut dyn Door,
    runner: &Runner,
    news: &mut dyn News,
) -> Result<(), Failure> {
    if let Goal::Own(id) = goal
        && let (_, Some(place)) = standing_of(workspace, id)?
    {
        let (landing, place) = (id.clone(), usize::try_from(place).unwrap_or(usize::MAX));
        door.told(&Progress::InLine { landing, place, runner: Box::new(runner.clone()) });
    }
    let process = runner.process.as_ref();
    let watched = process.and_then(|process| workspace.machine.watch(&identity_of(process)));
    let mut at_most = LOOK_AT_LEAST_EVERY;
    if watched.is_none() {
        // It may have ended since it was looked at, and then nothing would wake us.
        match process.map(|process| life_of(&workspace.machine, process)) {
            Some(Life::Dead) => return Ok(()),
            _ => at_most = UNWATCHED_LOOK_EVERY,
        }
    }
    let mut also: Vec<BorrowedFd<'_>> = vec![door.end_descriptor()];
    also.extend(watched.iter().map(AsFd::as_fd));
    news.wait(at_most, &also)?;
    Ok(())
}

/// A turn at the queue, ended however it goes.
fn serve(
    workspace: &mut Workspace,
    actor: &Actor,
    goal: &Goal,
    door: &mut dyn Door,
    token: Token,
    news: &mut dyn News,
) -> Result<(), Failure> {
    let git = git_of(workspace)?;
    let (_, common_dir) = git.directories()?;
    let pool = Pool::new(&common_dir)?;
    let mut run = Run { workspace, actor, door, git, pool, token };
    let came = rounds(&mut run, goal, news);
    let ended = run
        .workspace
        .decide(actor, Observed::default(), |view, context| running::end(view, token, context));
    came?;
    match ended {
        Err(Failure::Refused(Refusal::Landing(_))) | Ok(()) => Ok(()),
        Err(other) => Err(other),
    }
}

fn rounds(run: &mut Run<'_>, goal: &Goal, news: &mut dyn News) -> Result<(), Failure> {
    run.recover()?;
    loop {
        if run.door.end_wanted() || reached(run.workspace, goal)? {
            return Ok(());
        }
        run.renew()?;
        match run.round() {
            Ok(Round::Moved) => {}
            Ok(Round::Stopped) => return Ok(()),
            Ok(Round::Idle) => match goal {
                Goal::Own(_) | Goal::Drain => return Ok(()),
                Goal::Forever => {
                    let also = [run.door.end_descriptor()];
                    let at_most = Duration::from_millis(record::RENEWED_EVERY.0);
                    news.wait(at_most, &also)?;
                }
            },
            // The target or the line changed while candidates were checked: all anew.
            Err(Failure::Refused(Refusal::Landing(refused)))
                if matches!(*refused, Refused::Moved) => {}
            Err(other) => return Err(other),
        }
    }
}

/// The line, and what is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Listed {
    /// Those in line first, in their order; then what is over, newest first.
    pub landings: Vec<Landing>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<Paused>,
    /// Whoever moves the queue on now; it may be gone without having said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner: Option<Runner>,
    /// How often a check failed and then passed on the same tree, ever.
    pub flaky: u64,
}

pub fn list(workspace: &mut Workspace, wanted: &api::List) -> Result<Listed, Failure> {
    let observed = sighted(workspace)?;
    workspace.look(&Actor::default(), observed, |view, context| {
        let queue = get::<Queue>(view, Queue::KEY)?.unwrap_or_default();
        let mut landings: Vec<Landing> =
            scan(view, record::all_of(record::OPEN, landings::OPEN_MAX))?;
        let limit = if wanted.all { ALL_SHOWN } else { OVER_SHOWN + landings::OPEN_MAX };
        let all: Vec<Landing> = scan(view, record::all_of(record::ALL, limit))?;
        let over = all.into_iter().filter(|landing| landing.state.is_over());
        let shown = if wanted.all { usize::MAX } else { OVER_SHOWN as usize };
        landings.extend(over.take(shown));
        let runner = queue.runner.filter(|runner| runner.is_there(context));
        Ok(Listed { landings, paused: queue.paused, runner, flaky: queue.flaky })
    })
}

pub fn show(workspace: &mut Workspace, text: &str) -> Result<Reply, Failure> {
    let landing = workspace
        .look(&Actor::default(), Observed::default(), |view, _| landings::find(view, text))?;
    let (landing, place) = standing_of(workspace, &landing.landing)?;
    Ok(Reply { landing, place, uncommitted: Vec::new(), notices: Vec::new() })
}

pub fn remove(
    workspace: &mut Workspace,
    actor: &Actor,
    text: &str,
    why: Option<&str>,
    operation: Option<&str>,
) -> Result<Changed, Failure> {
    let retry = operation.map(|operation| Retry::of(operation, "queue remove", &(text, why)));
    workspace.decide_once(
        actor,
        Observed::default(),
        retry.as_ref(),
        |_| true,
        |view, context| landings::remove(view, text, why, context),
    )
}

/// Puts one that went back or was taken out in line again, as its branch is now.
pub fn again(
    workspace: &mut Workspace,
    actor: &Actor,
    text: &str,
    operation: Option<&str>,
) -> Result<Reply, Failure> {
    let landing = workspace
        .look(&Actor::default(), Observed::default(), |view, _| landings::find(view, text))?;
    let git = git_of(workspace)?;
    let task = landing.task.as_ref().map(|task| task.as_str());
    let (request, _) = look(workspace, &git, Some(&landing.branch), task)?;
    let retry = operation.map(|operation| Retry::of(operation, "queue retry", &text));
    let Enqueued { landing, place, notices, .. } = workspace.decide_once(
        actor,
        Observed::default(),
        retry.as_ref(),
        |_| true,
        |view, context| landings::again(view, text, &request, context),
    )?;
    Ok(Reply { landing, place: Some(place), uncommitted: Vec::new(), notices })
}

pub fn pause(
    workspace: &mut Workspace,
    actor: &Actor,
    why: Option<&str>,
) -> Result<Standing, Failure> {
    workspace
        .decide(actor, Observed::default(), |view, context| landings::pause(view, why, context))
}

pub fn resume(workspace: &mut Workspace, actor: &Actor) -> Result<Standing, Failure> {
    workspace.decide(actor, Observed::default(), landings::resume)
}
