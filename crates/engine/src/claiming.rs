//! Taking a claim, with everything around it: looking at who is in the way, and waiting.
//!
//! Owns the loop between the rule and the world. The rule decides in one transaction; between two
//! tries this looks (is the holder dead? is its work committed?) or sleeps on news, the blockers'
//! processes and a timer. There is no polling.

use std::collections::HashSet;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use baton_core::claim::{Holder, Mode, Scope};
use baton_core::claims::letting_go::{self, Asked, Released, Renewed, Revoked, Target, Which};
use baton_core::claims::{Answer, Granted, Queued, Request, TTL_DEFAULT, take, take_together};
use baton_core::context::{Actor, Life, Observed};
use baton_core::denials::Deed;
use baton_core::event::EndOfWait;
use baton_core::id::{ClaimId, SessionId};
use baton_core::refusal::{Held, Refusal};
use baton_core::resource::Resource;
use baton_core::sessions::Session;
use baton_core::view::get;
use baton_core::waiting;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api;
use crate::denying;
use crate::failure::Failure;
use crate::process::Identity;
use crate::resources::{named, named_apart};
use crate::sessions::SeatState;
use crate::sighting::{
    clear_the_way, foreign_locks, identity_of, in_the_way, left_by, life_of, of_claims,
};
use crate::whoami::process_of;
use crate::workspace::{Retry, Workspace};

/// How often one try looks around before what is still unseen is judged by its lease alone.
pub(crate) const LOOKS_MAX: usize = 4;

/// Told about the wait as it goes, for whoever shows it.
pub type Progress<'a> = &'a mut dyn FnMut(&Queued);

/// What goes on while a claim is waited for.
pub struct Wait<'a> {
    pub progress: Progress<'a>,
    /// Readable, from then on, when it is not wanted any more.
    pub end: Option<BorrowedFd<'a>>,
}

/// Takes the claim, waiting for it when asked to.
pub fn claim(
    workspace: &mut Workspace,
    actor: &Actor,
    cwd: &Path,
    wanted: &api::Claim,
    operation: Option<&str>,
    progress: Progress<'_>,
) -> Result<Granted, Failure> {
    claim_until(workspace, actor, cwd, wanted, operation, Wait { progress, end: None })
}

impl std::fmt::Debug for Wait<'_> {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Wait").field("end", &self.end).finish_non_exhaustive()
    }
}

/// As `claim`, for somebody who may not want to wait to the end.
pub fn claim_until(
    workspace: &mut Workspace,
    actor: &Actor,
    cwd: &Path,
    wanted: &api::Claim,
    operation: Option<&str>,
    wait: Wait<'_>,
) -> Result<Granted, Failure> {
    let came = take_until(workspace, actor, cwd, wanted, operation, wait);
    denying::noted(workspace, actor, (Deed::Claim, ""), came)
}

fn take_until(
    workspace: &mut Workspace,
    actor: &Actor,
    cwd: &Path,
    wanted: &api::Claim,
    operation: Option<&str>,
    wait: Wait<'_>,
) -> Result<Granted, Failure> {
    let (resources, apart) = named_apart(&workspace.place, cwd, &wanted.resources)?;
    let taking = |workspace: &mut Workspace, actor: &Actor| {
        take_here(workspace, actor, resources, wanted, operation, wait)
    };
    match apart {
        // What lies in another tree is held there: its files are the ones that are looked at.
        Some(root) => workspace.within(&root, actor, taking),
        None => taking(workspace, actor),
    }
}

fn take_here(
    workspace: &mut Workspace,
    actor: &Actor,
    resources: Vec<Resource>,
    wanted: &api::Claim,
    operation: Option<&str>,
    wait: Wait<'_>,
) -> Result<Granted, Failure> {
    let mut request = Request {
        mode: if wanted.shared { Mode::Shared } else { Mode::Exclusive },
        scope: if wanted.tree { Scope::Tree } else { Scope::Workspace },
        ttl: wanted.ttl.unwrap_or(TTL_DEFAULT),
        priority: wanted.priority,
        reason: wanted.reason.clone(),
        wait: wanted.wait,
        ..Request::of(resources)
    };
    let retry = operation.map(|operation| Retry::of(operation, "claim", wanted));
    if request.wait.is_none() {
        return at_once(workspace, actor, &request, retry.as_ref());
    }
    let machine = &workspace.machine;
    request.process = machine.current().map(|identity| process_of(machine, &identity));
    wait_for(workspace, actor, request, retry.as_ref(), wait)
}

/// Takes what an edit needs, in this tree only: these for itself, those together with others. All
/// of it or nothing is granted (S3).
pub(crate) fn for_edit(
    workspace: &mut Workspace,
    actor: &Actor,
    alone: Vec<Resource>,
    shared: Vec<Resource>,
) -> Result<Vec<Granted>, Failure> {
    let request = |resources: Vec<Resource>, mode| Request {
        mode,
        scope: Scope::Tree,
        ..Request::of(resources)
    };
    if shared.is_empty() {
        let request = request(alone, Mode::Exclusive);
        return at_once(workspace, actor, &request, None).map(|granted| vec![granted]);
    }
    let all: Vec<Resource> = alone.iter().chain(&shared).cloned().collect();
    let mut requests = vec![request(shared, Mode::Shared)];
    if !alone.is_empty() {
        requests.insert(0, request(alone, Mode::Exclusive));
    }
    looking_around(workspace, &all, in_the_way_of, |workspace, observed| {
        workspace.decide(actor, observed, |view, context| take_together(view, &requests, context))
    })
}

fn in_the_way_of<T>(answer: &Result<T, Failure>) -> Vec<Held> {
    answer.as_ref().err().map(in_the_way).unwrap_or_default()
}

fn at_once(
    workspace: &mut Workspace,
    actor: &Actor,
    request: &Request,
    retry: Option<&Retry>,
) -> Result<Granted, Failure> {
    match attempt(workspace, actor, request, retry)? {
        Answer::Granted(granted) => Ok(*granted),
        Answer::Queued(queued) => Err(waited_in_vain(&queued)),
    }
}

fn wait_for(
    workspace: &mut Workspace,
    actor: &Actor,
    mut request: Request,
    retry: Option<&Retry>,
    Wait { progress, end }: Wait<'_>,
) -> Result<Granted, Failure> {
    // Made before the first look at the state, so that no commit in between is missed.
    let mut news = workspace.store.news()?;
    let mut deadline = None;
    let mut ended = HashSet::new();
    loop {
        let answer = attempt(workspace, actor, &request, retry);
        let queued = match answer {
            Ok(Answer::Granted(granted)) => return Ok(*granted),
            Ok(Answer::Queued(queued)) => queued,
            Err(failure) => {
                give_up(workspace, actor, &request)?;
                return Err(failure);
            }
        };
        progress(&queued);
        request.waiter = Some(queued.waiter.clone());
        // The first answer counts: a place in the queue that was lost and taken anew does not
        // make the wait longer.
        let deadline = *deadline.get_or_insert(queued.deadline);
        let watched = watch_blockers(workspace, &queued, &mut ended)?;
        // Nothing would wake us for who ended between the answer and this look.
        let Some(watched) = watched else { continue };
        let descriptors: Vec<BorrowedFd<'_>> = watched.iter().map(AsFd::as_fd).chain(end).collect();
        let now = workspace.store.snapshot()?.state().now;
        let rest = queued.look_again_at.min(deadline).since(now);
        news.wait(Duration::from_millis(rest.0 + 1), &descriptors)?;
        if end.is_some_and(is_readable) {
            give_up(workspace, actor, &request)?;
            return Err(waited_in_vain(&queued));
        }
        let now = workspace.store.snapshot()?.state().now;
        if now >= deadline {
            // One last try: it may have become free in the very last moment.
            if let Ok(Answer::Granted(granted)) = attempt(workspace, actor, &request, retry) {
                return Ok(*granted);
            }
            give_up(workspace, actor, &request)?;
            return Err(waited_in_vain(&queued));
        }
    }
}

fn is_readable(descriptor: BorrowedFd<'_>) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(&descriptor, PollFlags::IN)], Some(&now)).is_ok_and(|ready| ready > 0)
}

fn waited_in_vain(queued: &Queued) -> Failure {
    match queued.blockers.first() {
        Some(held) => Refusal::WaitedInVain(Box::new(held.clone())).into(),
        None => Refusal::Empty.into(),
    }
}

fn give_up(workspace: &mut Workspace, actor: &Actor, request: &Request) -> Result<(), Failure> {
    let Some(waiter) = &request.waiter else {
        return Ok(());
    };
    workspace.decide(actor, Observed::default(), |view, _| {
        waiting::withdraw(view, waiter, EndOfWait::TimedOut)
    })
}

/// Descriptors that tell when a blocker's process ends; nothing when one was found ended that is
/// not among those already known to have.
fn watch_blockers(
    workspace: &mut Workspace,
    queued: &Queued,
    ended: &mut HashSet<Identity>,
) -> Result<Option<Vec<OwnedFd>>, Failure> {
    let sessions: Vec<Option<Session>> =
        workspace.look(&Actor::default(), Observed::default(), |view, _| {
            let holders = queued.blockers.iter().map(|held| held.holder.session.as_str());
            holders.map(|session| get(view, session).map_err(Refusal::from)).collect()
        })?;
    let machine = &workspace.machine;
    let (mut watched, mut news) = (Vec::new(), false);
    for process in sessions.into_iter().flatten().filter_map(|session| session.process) {
        let identity = identity_of(&process);
        match machine.watch(&identity) {
            Some(descriptor) => watched.push(descriptor),
            None if life_of(machine, &process) == Life::Dead => news |= ended.insert(identity),
            None => {}
        }
    }
    Ok((!news).then_some(watched))
}

/// One try, looking around as often as that helps.
fn attempt(
    workspace: &mut Workspace,
    actor: &Actor,
    request: &Request,
    retry: Option<&Retry>,
) -> Result<Answer, Failure> {
    let granted = |answer: &Answer| matches!(answer, Answer::Granted(_));
    let blockers = |answer: &Result<Answer, Failure>| match answer {
        Ok(Answer::Queued(queued)) => queued.blockers.clone(),
        other => in_the_way_of(other),
    };
    looking_around(workspace, &request.resources, blockers, |workspace, observed| {
        workspace.decide_once(actor, observed, retry, granted, |view, context| {
            take(view, request, context)
        })
    })
}

fn looking_around<T>(
    workspace: &mut Workspace,
    resources: &[Resource],
    blockers: impl Fn(&Result<T, Failure>) -> Vec<Held>,
    mut decide: impl FnMut(&mut Workspace, Observed) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let mut observed =
        Observed { foreign_locks: foreign_locks(workspace, resources), ..Observed::default() };
    for look in 1.. {
        observed.complete = look > LOOKS_MAX;
        let answer = decide(workspace, observed.clone());
        if let Err(Failure::Refused(Refusal::Unobserved { claims })) = &answer {
            of_claims(workspace, claims, &mut observed)?;
            continue;
        }
        let blockers = blockers(&answer);
        let again = !blockers.is_empty()
            && look <= LOOKS_MAX
            && clear_the_way(workspace, &blockers, &mut observed)?;
        if !again {
            return answer;
        }
    }
    Err(Refusal::Empty.into())
}

/// Which of the caller's claims a request means.
fn which(workspace: &Workspace, cwd: &Path, words: &[String], all: bool) -> Result<Which, Failure> {
    match all {
        true => Ok(Which::All),
        false => Ok(Which::Resources(named(&workspace.place, cwd, words)?)),
    }
}

pub fn release(
    workspace: &mut Workspace,
    actor: &Actor,
    cwd: &Path,
    wanted: &api::Release,
    operation: Option<&str>,
) -> Result<Released, Failure> {
    let which = which(workspace, cwd, &wanted.resources, wanted.all)?;
    let retry = operation.map(|operation| Retry::of(operation, "release", wanted));
    let commit = wanted.commit.as_deref();
    let target = match (&which, &actor.session) {
        (Which::Resources(named), _) => Target::Resources(named.clone()),
        (Which::All, Some(session)) => Target::Session(session.clone()),
        (Which::All, None) => return Err(Refusal::NoSession.into()),
    };
    let observed = left_by(workspace, &target, Some(actor))?;
    workspace.decide_once(
        actor,
        observed,
        retry.as_ref(),
        |_| true,
        |view, context| letting_go::release(view, &which, commit, wanted.token, context),
    )
}

pub fn renew(
    workspace: &mut Workspace,
    actor: &Actor,
    cwd: &Path,
    wanted: &api::Renew,
    operation: Option<&str>,
) -> Result<Renewed, Failure> {
    let which = which(workspace, cwd, &wanted.resources, wanted.resources.is_empty())?;
    let retry = operation.map(|operation| Retry::of(operation, "renew", wanted));
    let mut observed = Observed::default();
    for look in 1.. {
        observed.complete = look > LOOKS_MAX;
        let answer = workspace.decide_once(
            actor,
            observed.clone(),
            retry.as_ref(),
            |_| true,
            |view, context| letting_go::renew(view, &which, wanted.token, context),
        );
        match answer {
            Err(Failure::Refused(Refusal::Unobserved { claims })) => {
                of_claims(workspace, &claims, &mut observed)?;
            }
            other => return other,
        }
    }
    Err(Refusal::Empty.into())
}

/// Who was asked, and who of them is not there to hear it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Asking {
    #[serde(flatten)]
    pub asked: Asked,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub away: Vec<Away>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Away {
    pub holder: Holder,
    pub state: SeatState,
}

pub fn ask(
    workspace: &mut Workspace,
    actor: &Actor,
    cwd: &Path,
    wanted: &api::Ask,
    operation: Option<&str>,
) -> Result<Asking, Failure> {
    let resources = named(&workspace.place, cwd, &wanted.resources)?;
    let retry = operation.map(|operation| Retry::of(operation, "ask", wanted));
    let asked = workspace.decide_once(
        actor,
        Observed::default(),
        retry.as_ref(),
        |_| true,
        |view, context| letting_go::ask(view, &resources, &wanted.why, context),
    )?;
    let away = away_of(workspace, &asked)?;
    Ok(Asking { asked, away })
}

fn away_of(workspace: &mut Workspace, asked: &Asked) -> Result<Vec<Away>, Failure> {
    let machine = workspace.machine.clone();
    workspace.look(&Actor::default(), Observed::default(), |view, context| {
        let mut away = Vec::new();
        for holder in &asked.asked {
            let Some(session) = get::<Session>(view, holder.session.as_str())? else { continue };
            let state = SeatState::of(&session, &machine, context.now);
            if matches!(state, SeatState::Dead | SeatState::Ended) {
                away.push(Away { holder: holder.clone(), state });
            }
        }
        Ok(away)
    })
}

pub fn revoke(
    workspace: &mut Workspace,
    actor: &Actor,
    cwd: &Path,
    wanted: &api::Revoke,
    operation: Option<&str>,
) -> Result<Revoked, Failure> {
    let target = match (&wanted.session, wanted.resources.as_slice()) {
        (Some(session), _) => Target::Session(SessionId(session.clone())),
        (None, [one]) if is_claim(workspace, one)? => Target::Claim(ClaimId(one.clone())),
        (None, words) => Target::Resources(named(&workspace.place, cwd, words)?),
    };
    let retry = operation.map(|operation| Retry::of(operation, "revoke", wanted));
    // Only a person gets further than the rule's first line; for others nothing is looked at.
    let observed = match actor.person {
        true => left_by(workspace, &target, None)?,
        false => Observed::default(),
    };
    workspace.decide_once(
        actor,
        observed,
        retry.as_ref(),
        |_| true,
        |view, context| letting_go::revoke(view, &target, &wanted.why, context),
    )
}

fn is_claim(workspace: &mut Workspace, word: &str) -> Result<bool, Failure> {
    workspace.look(&Actor::default(), Observed::default(), |view, _| {
        Ok(get::<baton_core::claim::Claim>(view, word)?.is_some())
    })
}
